#!/bin/sh
# readme.sh TOP LIBRARY-FOLDER CC... - compiles, links and runs the C program of the README, its second and
# third piece of C, and the program at the head of duet.h. Reports in TAP.
top=$1 lib=$2 points=0 && shift 2
cc=${*:-cc} # words: ccache gcc
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

point() { # status name
    points=$((points + 1))
    if [ "$1" -eq 0 ]; then echo "ok $points - $2"; else echo "not ok $points - $2" && sed 's/^/# /' "$work/log" | head -20; fi
}
run() { # source
    # shellcheck disable=SC2086 # words
    $cc -std=gnu11 -Wall -Wextra -Werror -I"$top/include" "$1" -o "$work/program" -L"$lib" -lduet -Wl,-rpath,"$lib" >"$work/log" 2>&1 &&
        "$work/program" >>"$work/log" 2>&1
}

awk '/^```c$/ && !seen { on = 1; seen = 1; next } /^```/ { on = 0 } on' "$top/README.md" >"$work/readme.c" 2>/dev/null
[ -s "$work/readme.c" ] && grep -q main "$work/readme.c" || { echo "no C program in README.md" >"$work/log" && false; }
point $? 'the README has a program'
run "$work/readme.c"
point $? 'the program of the README'
lines=$(wc -l <"$work/readme.c")
[ "$lines" -le 22 ] || { echo "$lines lines" >"$work/log" && false; }
point $? "it is short: $lines lines"

{
    printf '#include <duet/duet.h>\n#include <stdlib.h>\nstatic void fail(void) { puts(duet_error()), exit(1); }\nint main(void)\n{\n'
    printf 'duet_matrix *x = duet_new(DUET_F32, 999), *z = duet_new(DUET_F32, 999), *m = duet_new(DUET_F32), *v = duet_new(DUET_F32);\n'
    printf 'duet_matrix *d = duet_new(DUET_F32), *at = duet_new(DUET_I64);\nfloat *p = duet_overwrite(x);\n'
    printf 'for (int i = 0; i < 999; i++) p[i] = i == 700 ? 9 : 4 + i %% 3;\n'
    awk '/^```c$/ { pieces++; on = pieces == 2; next } /^```/ { on = 0 } on' "$top/README.md"
    printf 'const float *mean = duet_read(m), *apart = duet_read(d);\nconst int64_t *far = duet_read(at);\n'
    printf 'return !(*mean > 4.9f && *mean < 5.1f && *apart > 100 && *apart < 200 && *far == 700);\n}\n'
} >"$work/piece.c"
grep -q duet_set_all "$work/piece.c" || { echo "no second piece of C in README.md" >"$work/log" && false; }
point $? 'the README has a second piece of C'
run "$work/piece.c"
point $? 'the second piece of C of the README'

{
    printf '#include <duet/duet.h>\n#include <stdlib.h>\nstatic void fail(void) { puts(duet_error()), exit(1); }\nint main(void)\n{\n'
    printf 'duet_matrix *x = duet_new(DUET_F32, 8, 6), *w = duet_new(DUET_F32, 6, 5), *b = duet_new(DUET_F32, 5);\n'
    printf 'duet_matrix *z = duet_new(DUET_F32, 8, 5), *v = duet_new(DUET_F32, 5, 4), *y = duet_new(DUET_F32, 8, 4);\n'
    printf 'if (duet_set(x, 0) || duet_set(w, 0) || duet_set(b, 0) || duet_set(v, 0)) fail();\n'
    awk '/^```c$/ { pieces++; on = pieces == 3; next } /^```/ { on = 0 } on' "$top/README.md"
    printf 'const float *p = duet_read(y);\nreturn !(duet_stats().replays == 3 && p && p[0] == 0.25f);\n}\n'
} >"$work/third.c"
grep -q duet_record_end "$work/third.c" || { echo "no third piece of C in README.md" >"$work/log" && false; }
point $? 'the README has a third piece of C'
run "$work/third.c"
point $? 'the third piece of C of the README'

{
    printf '#include <duet/duet.h>\nint main(void)\n{\n'
    sed -n '3,/^ \*$/p' "$top/include/duet/duet.h" | sed -n 's/^ \*     //p'
    printf '}\n'
} >"$work/header.c"
sed -i 's/duet_free(&x, /if (!r || r[10] != 33) return 1;\n    duet_free(\&x, /' "$work/header.c"
run "$work/header.c"
point $? 'the program at the head of duet.h'
echo "1..$points"
