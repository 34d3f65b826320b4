#!/bin/sh
# headers.sh TOP - compiles each public header alone, as C11 and as C++17, with gcc and clang, without a
# warning; and checks that a formula of sixteen nested macros expands to little text. Reports in TAP; a
# compiler that is not installed is skipped.
top=$1 points=0
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

point() { # status name
    points=$((points + 1))
    if [ "$1" -eq 0 ]; then echo "ok $points - $2"; else echo "not ok $points - $2" && sed 's/^/# /' "$work/log" | head -20; fi
}
skip() { points=$((points + 1)) && echo "ok $points - $1 # SKIP not installed"; }

mpi=$( (pkg-config --cflags ompi-c || pkg-config --cflags mpich) 2>/dev/null | sed 's/-I/-isystem /g')
for header in "$top"/include/duet/*.h; do
    name=duet/$(basename "$header") flags=
    if [ "$name" = duet/mpi.h ]; then
        if [ -z "$mpi" ]; then skip "$name" && continue; fi
        flags="$mpi -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX"
    fi
    case $name in duet/lift.h | duet/cpp.h) continue ;; esac # parts of duet.h that are C alone, and C++ alone
    for run in 'gcc c11 c' 'clang c11 c' 'g++ c++17 cpp' 'clang++ c++17 cpp'; do
        # shellcheck disable=SC2086 # three words
        set -- $run
        if ! command -v "$1" >/dev/null; then skip "$name as $2 by $1" && continue; fi
        printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' "$name" "$name" >"$work/alone.$3"
        # shellcheck disable=SC2086 # words
        "$1" "-std=$2" -Wall -Wextra -Wpedantic -Werror $flags -I"$top/include" -c "$work/alone.$3" -o "$work/alone.o" >"$work/log" 2>&1
        point $? "$name as $2 by $1"
    done
done

# A macro that wrote its operand twice would double at each level: 2^16 times. Linear is some 600 bytes a level, of which each operand takes half.
formula=x depth=0
while [ $depth -lt 16 ]; do formula="duet_add($formula, 1)" depth=$((depth + 1)); done
printf '#include <duet/duet.h>\nduet_expr f(duet_matrix *x);\nduet_expr f(duet_matrix *x) { return %s; }\n' "$formula" >"$work/nest.c"
for cc in gcc clang; do
    if ! command -v $cc >/dev/null; then skip "sixteen levels by $cc" && continue; fi
    bytes=$($cc -std=gnu11 -P -E -I"$top/include" "$work/nest.c" | sed -n '/f(duet_matrix \*x) {/,$p' | wc -c)
    echo "$bytes bytes at sixteen levels" >"$work/log"
    [ "$bytes" -gt 500 ] && [ "$bytes" -lt 24000 ] && $cc -std=gnu11 -Wall -Werror -I"$top/include" -c "$work/nest.c" -o "$work/nest.o" >>"$work/log" 2>&1
    point $? "sixteen levels of macros by $cc: $bytes bytes"
done
echo "1..$points"
