#!/bin/sh
# hpp.sh TOP LIBRARY-FOLDER - compiles duet.hpp as C++17, C++20 and C++23 with gcc and clang, with and without
# exceptions and RTTI, without a warning; checks that mistakes do not compile; compiles and runs every
# block of C++ of docs/cpp.md and of the README, and the example at the head of duet.hpp. Reports in TAP; a compiler that is
# not installed is skipped.
top=$1 lib=$2 points=0
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
warnings='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror'

point() { # status name
    points=$((points + 1))
    if [ "$1" -eq 0 ]; then echo "ok $points - $2"; else echo "not ok $points - $2" && sed 's/^/# /' "$work/log" | head -20; fi
}
skip() { points=$((points + 1)) && echo "ok $points - $1 # SKIP not installed"; }

cat >"$work/alone.cpp" <<'END'
#include <duet/duet.hpp>
#include <duet/duet.hpp>
duet::expr use(const duet::matrix &x, duet::matrix &y);
duet::expr use(const duet::matrix &x, duet::matrix &y)
{
    y = 3 * duet::conv2d(x, y) + x(duet::all, 3) * duet::sum(x, { 0, 1 });
    return -x;
}
END
printf '#include <duet/duet.hpp>\nint main() { return 0; }\n' >"$work/other.cpp"
for run in 'g++ c++17' 'g++ c++20' 'g++ c++23' 'clang++ c++17' 'clang++ c++20' 'clang++ c++2b'; do
    # shellcheck disable=SC2086 # words
    set -- $run
    if ! command -v "$1" >/dev/null; then skip "duet.hpp as $2 by $1" && continue; fi
    for less in '' '-fno-exceptions -fno-rtti'; do
        # shellcheck disable=SC2086
        "$1" "-std=$2" $warnings $less -I"$top/include" -c "$work/alone.cpp" -o "$work/alone.o" >"$work/log" 2>&1
        point $? "duet.hpp as $2 by $1 ${less:-with exceptions}"
    done
    # the first file is now one without exceptions
    "$1" "-std=$2" -I"$top/include" "$work/other.cpp" "$work/alone.o" -o "$work/both" -L"$lib" -lduet >"$work/log" 2>&1
    point $? "two files, one without exceptions, as $2 by $1"
done

refused() { # what text
    for cc in g++ clang++; do
        command -v $cc >/dev/null || continue
        printf '#include <duet/duet.hpp>\nvoid f(duet::matrix &x, duet::matrix &y, const duet::matrix &c, float *p);\nvoid f(duet::matrix &x, duet::matrix &y, const duet::matrix &c, float *p) { (void)x, (void)y, (void)c, (void)p; %s; }\n' "$2" >"$work/bad.cpp"
        # shellcheck disable=SC2086
        ! $cc -std=c++17 $warnings -fsyntax-only -I"$top/include" "$work/bad.cpp" >"$work/log" 2>&1
        point $? "$cc refuses $1"
    done
}
printf '#include <duet/duet.hpp>\nvoid f(duet::matrix &x, const duet::matrix &c);\nvoid f(duet::matrix &x, const duet::matrix &c) { x = x + c; }\n' >"$work/good.cpp"
# shellcheck disable=SC2086 # words
g++ -std=c++17 $warnings -I"$top/include" -c "$work/good.cpp" -o "$work/good.o" >"$work/log" 2>&1
point $? 'a correct file compiles with the same warnings'
refused 'y = x of two matrices' 'y = x'
refused 'y = c of a constant matrix' 'y = c'
refused 'a row assigned to a row' 'x.row(0) = y.row(0)'
refused 'an assignment to an index formula' 'x(0) = y'
refused 'a copy of a matrix' 'duet::matrix z = x'
refused 'a pointer as an operand' 'y = x + p'
refused '&& of matrices' 'y = x && y'
refused 'a matrix as a condition' 'if (x) y = 1'
refused 'a formula that is not used' 'x + y'
refused 'a result that is not used' 'duet::try_set(x, y)'
refused 'elements of a type that does not exist' 'x.read<long double>()'

run() { # source
    # shellcheck disable=SC2086
    g++ -std=c++20 $warnings -I"$top/include" "$1" -o "$work/program" -L"$lib" -lduet -Wl,-rpath,"$lib" >"$work/log" 2>&1 &&
        (cd "$work" && ./program >>"$work/log" 2>&1)
}
wrap() { # statements: a program of them; a text that is a program stays as it is
    if grep -q 'int main' "$1"; then cat "$1"; else
        printf '#include <duet/duet.hpp>\n#include <iostream>\nint main()\n{\n' && cat "$1" && printf '}\n'
    fi
}
if command -v g++ >/dev/null; then
    awk -v to="$work/block" '/^```cpp$/ { n++; on = 1; next } /^```/ { on = 0 } on { print >(to n ".txt") }' "$top/docs/cpp.md" "$top/README.md"
    n=1
    while [ -f "$work/block$n.txt" ]; do
        wrap "$work/block$n.txt" >"$work/block.cpp"
        run "$work/block.cpp"
        point $? "block $n of docs/cpp.md and the README"
        n=$((n + 1))
    done
    [ $n -gt 8 ] || { echo "$n blocks" >"$work/log" && false; }
    point $? 'docs/cpp.md has blocks of code'
    sed -n '1,/duet::matrix  A/s/^ \*     //p' "$top/include/duet/duet.hpp" | sed '$d' >"$work/head.txt"
    grep -q 'std::cout' "$work/head.txt" && wrap "$work/head.txt" >"$work/head.cpp" && run "$work/head.cpp"
    point $? 'the example at the head of duet.hpp'
else
    skip 'the blocks of docs/cpp.md'
fi
echo "1..$points"
