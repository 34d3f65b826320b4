#!/bin/sh
# reference.sh TOP LIBRARY GENERATED - checks the generated reference: reference.h has one prototype for each
# exported function, the headers compile alone and in duet.h, and each function has a manual page that
# renders without warnings. GENERATED is the folder with duet/reference.h and perhaps man3. Reports in TAP; a
# program that is not installed is skipped.
top=$1 library=$2 generated=$3 points=0
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
reference=$generated/duet/reference.h

point() { # status name
    points=$((points + 1))
    if [ "$1" -eq 0 ]; then echo "ok $points - $2"; else echo "not ok $points - $2" && sed 's/^/# /' "$work/log" | head -20; fi
}
skip() { points=$((points + 1)) && echo "ok $points - $1 # SKIP $2"; }
none() { [ ! -s "$work/log" ]; }

# Functions of headers that duet.h does not include. mpi.h declares those of libduet-mpi.
(cd "$top/include/duet" && cat dlpack.h mpi.h transport.h) | tr '\n' ' ' | grep -oE 'DUET_API [^;]*;' | sed -E 's/.*[ *](duet_[a-z0-9_]+)\(.*/\1/' | sort >"$work/apart"
nm -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | grep '^duet_' | grep -v '_at$' | sort |
    comm -23 - "$work/apart" >"$work/exported"
sed -nE 's/^[a-z].*[ *](duet_[a-z0-9_]+)\(.*\);$/\1/p' "$reference" >"$work/all"
grep -E '^[a-z]' "$reference" | grep -v '^static ' | sed -nE 's/.*[ *](duet_[a-z0-9_]+)\(.*/\1/p' | sort >"$work/prototypes"
diff "$work/exported" "$work/prototypes" >"$work/log"
point $? "one prototype for each of $(wc -l <"$work/exported") exported functions"

grep -B1 -E '^[a-z].*\);$' "$reference" | grep -vE '^([a-z].*\);|--)$|\*/$' >"$work/log"
none
point $? 'a comment in front of each prototype'

sed -nE 's/^#define (duet_[a-z0-9_]+)\(.*/\1/p' "$top/include/duet/lift.h" "$top/include/duet/call_site.h" | sort -u >"$work/macros"
sed -nE 's/^#define (duet_[a-z0-9_]+)\(.*/\1/p' "$generated/duet/hover.h" | sort -u | diff "$work/macros" - >"$work/log"
point $? "a comment in each of $(wc -l <"$work/macros") macros"

for header in reference hover duet; do
    for run in 'gcc c11 c' 'clang c11 c' 'g++ c++17 cpp' 'clang++ c++17 cpp'; do
        # shellcheck disable=SC2086 # three words
        set -- $run
        if ! command -v "$1" >/dev/null; then skip "duet/$header.h as $2 by $1" 'not installed' && continue; fi
        printf '#include <duet/%s.h>\n#ifndef DUET_REFERENCE_H\n#error not included\n#endif\nint main(void) { return 0; }\n' $header >"$work/alone.$3"
        "$1" "-std=$2" -Wall -Wextra -Wpedantic -Wredundant-decls -Werror -I"$generated" -I"$top/include" -c "$work/alone.$3" -o "$work/alone.o" >"$work/log" 2>&1
        point $? "duet/$header.h with the reference as $2 by $1"
    done
done

if [ -d "$generated/man3" ]; then
    sort -u "$work/all" "$work/macros" "$work/apart" >"$work/pages"
    while read -r name; do [ -f "$generated/man3/$name.3" ] || echo "$name"; done <"$work/pages" >"$work/log"
    none
    point $? "a manual page for each of $(wc -l <"$work/pages") functions and macros"
    grep -h '^\.so ' "$generated"/man3/*.3 | sort -u | while read -r _ page; do [ -f "$generated/$page" ] || echo "$page"; done >"$work/log"
    none
    point $? 'pages refer to pages that exist'
    if command -v groff >/dev/null; then
        (cd "$generated" && grep -L '^\.so ' man3/*.3 | xargs groff -ww -man -Tutf8 -z) >"$work/log" 2>&1
        none
        point $? 'the pages render without warnings'
    else
        skip 'the pages render without warnings' 'groff is not installed'
    fi
    if command -v man >/dev/null && command -v col >/dev/null; then
        man -M "$generated" duet_sum_axis 2>"$work/log" | col -b | grep -q 'duet_expr duet_sum_axis(duet_expr x, int axis)' && none
        point $? 'man duet_sum_axis'
    else
        skip 'man duet_sum_axis' 'man is not installed'
    fi
else
    skip 'manual pages' 'not built'
fi
echo "1..$points"
