#!/bin/sh
# docs.sh TOP GENERATED LIBRARY-FOLDER CC... - compiles each piece of C in README.md and docs/*.md. A piece
# with main is a program, which also runs; another piece is the body of a function that has the matrices
# below, or functions. A comment before a piece changes this:
#     <!-- test: compile -->       the program is compiled but does not run
#     <!-- test: no -->            the piece is not C that compiles
#     <!-- test: given ... -->     C that stands before the piece: declarations that it needs
#     <!-- test: run ... -->       the piece is the body of main, and runs; the text stands before it
#     <!-- test: part -->          the piece is a part of the next program with main, before it
#     <!-- test: output -->        the next block is the output of the piece above
# Reports in TAP.
top=$1 generated=$2 lib=$3 points=0 && shift 3
cc=${*:-cc} # words: ccache gcc
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
given='*A, *B, *C, *L, *Q, *R, *U, *V, *W, *X, *Y, *a, *b, *c, *d, *m, *p, *q, *u, *v, *w, *x, *y, *z, *at, *to, *from, *mask, *indices, *images, *filters, *bias, *target, *labels, *loss, *result, *noise'

point() { # status name
    points=$((points + 1))
    if [ "$1" -eq 0 ]; then echo "ok $points - $2"; else echo "not ok $points - $2" && sed 's/^/# /' "$work/log" | head -20; fi
}
compile() { # source, program
    # shellcheck disable=SC2086 # words
    $cc -std=gnu11 -O1 -Wall -Wextra -Werror -Wno-unused -I"$generated" -I"$top/include" "$1" $2 >"$work/log" 2>&1
}
link() { compile "$1" "-o $work/program -L$lib -lduet -Wl,-rpath,$lib -lm"; }

# The pieces of a page as files: N.piece, N.line, its line in the page, N.how and N.given.
pieces() {
    awk -v folder="$work" '
        /^<!-- test: output -->$/ { output = 1; next }
        /^```/ && output == 1 { output = 2; printf "" > (file ".output"); next }
        /^```/ && output == 2 { output = 0; next }
        output == 2 { print > (file ".output"); next }
        /^<!-- test:/ { how = $3; given = ""; inside = 1; sub(/^<!-- test: [a-z]+ ?/, "") }
        inside { line = $0; if (sub(/-->.*/, "", line)) inside = 0; if (how == "given" || how == "run") given = given line "\n"; next }
        /^```c$/ { n++; on = 1; file = folder "/" n; print NR > (file ".line"); print how > (file ".how"); printf "%s", given > (file ".given"); printf "" > (file ".piece"); how = given = ""; next }
        /^```/ { on = 0 }
        on { print > (file ".piece") }' "$1"
}
head='#include <duet/duet.h>\n#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n'
as_body() {
    # shellcheck disable=SC2059 # the head is a format
    printf "$head"'static void fail(void) { exit(1); }\nint f(void);\nint f(void)\n{\n'
    printf 'duet_matrix %s;\n' "$given" | sed 's/[,;]/ = 0&/g'
    printf '{\n' && cat "$1.given" && printf '{\n' && cat "$1.piece" && printf '}\n}\nreturn 0;\n}\n'
}
as_functions() {
    # shellcheck disable=SC2059
    printf "$head" && cat "$1.given" "$1.piece"
}
as_main() {
    # shellcheck disable=SC2059
    printf "$head"'static void fail(void) { puts(duet_error()), exit(1); }\nint main(void)\n{\n'
    cat "$1.given" && printf '{\n' && cat "$1.piece" && printf '}\nreturn 0;\n}\n'
}
runs() { # piece: runs the program and compares its output with the one in the page
    (cd "$work" && ./program >"$work/log" 2>&1) || return 1
    [ ! -e "$1.output" ] || { diff "$1.output" "$work/log" >"$work/different" || { mv "$work/different" "$work/log" && false; }; }
}
check() { # piece, name
    read -r how <"$1.how"
    if [ "$how" = no ]; then return; fi
    if [ "$how" = part ]; then cat "$1.piece" >>"$work/parts" && return; fi
    if grep -q '\bmain(' "$1.piece"; then
        cat "$1.given" "$work/parts" "$1.piece" >"$1.c" && : >"$work/parts"
        link "$1.c" && { [ "$how" = compile ] || runs "$1"; }
    elif [ "$how" = run ]; then
        as_main "$1" >"$1.c"
        link "$1.c" && runs "$1"
    else
        as_body "$1" >"$1.c"
        compile "$1.c" "-c -o $work/piece.o" || { mv "$work/log" "$work/first"; as_functions "$1" >"$1.c"; compile "$1.c" "-c -o $work/piece.o"; } ||
            { cat "$work/first" >>"$work/log" && false; }
    fi
    point $? "$2"
}
for page in "$top/README.md" "$top"/docs/*.md; do
    case $page in *"${DUET_PAGE:-}"*) ;; *) continue ;; esac # one page while you write it
    rm -f "$work"/[0-9]*.* && : >"$work/parts"
    pieces "$page"
    piece=1
    while [ -e "$work/$piece.line" ]; do
        check "$work/$piece" "${page#"$top"/}, line $(cat "$work/$piece.line")"
        piece=$((piece + 1))
    done
done
cat "$top"/README.md "$top"/docs/*.md | grep -o '_*duet_[a-z0-9_]*[a-z0-9]' | grep -v '^_\|^duet_name_' | sort -u >"$work/named"
cat "$generated"/duet/reference.h "$top"/include/duet/* | grep -ow 'duet_[a-z0-9_]*' | sort -u >"$work/declared"
comm -23 "$work/named" "$work/declared" >"$work/log"
! [ -s "$work/log" ]
point $? 'all functions that the documents name exist'
echo "1..$points"
