#!/bin/sh
# hpp_complete.sh TOP GENERATED CXX... - checks that each function of the C interface has a form in
# duet.hpp, or is listed below with a reason. A form of duet_name calls duet_name or duet_name_at, so the
# preprocessed duet.hpp has that name after the start of its namespace. GENERATED is the folder with
# duet/reference.h. Reports in TAP.
top=$1 generated=$2 points=0 && shift 2
cxx=${*:-c++} # words: ccache g++
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

point() { # status name
    points=$((points + 1))
    if [ "$1" -eq 0 ]; then echo "ok $points - $2" && return; fi
    echo "not ok $points - $2" && sed 's/^/# /' "$work/log" | head -20
}

# name, or a pattern of names: reason
cat >"$work/exceptions" <<'END'
duet_of_expr: an expr is a formula already
duet_read: matrix::read<T>() also compares the type
duet_update: matrix::update<T>() also compares the type
duet_overwrite: matrix::overwrite<T>() also compares the type
duet_(read|update|overwrite)_(f16|bf16|f32|f64|bool|[iu](8|16|32|64)|c64|c128): T of matrix::read<T>()
duet_[a-z0-9_]+_axis: duet::sum(x, axis) calls duet_sum_axes, which must have a form
duet_[a-z0-9_]+_keep: duet::sum_keep(x, axis) calls duet_sum_axes_keep, which must have a form
END

# reference.h does not have the functions with a parameter `site`.
sed -nE 's/^[a-z].*[ *](duet_[a-z0-9_]+)\(.*\);$/\1/p' "$generated/duet/reference.h" |
    sort -u >"$work/functions"
n=$(wc -l <"$work/functions")
echo "$n functions" >"$work/log"
[ "$n" -gt 400 ]
point $? "reference.h has $n functions"

# shellcheck disable=SC2086 # words
printf '#include <duet/duet.hpp>\n' |
    $cxx -std=c++17 -x c++ -E -P -I"$top/include" - >"$work/text" 2>"$work/log"
point $? 'duet.hpp can be preprocessed'
sed '1,/^namespace duet$/d' "$work/text" | grep -ow 'duet_[a-z0-9_]*' |
    sed 's/_at$//' | sort -u >"$work/called"
echo 'no call of duet_sum' >"$work/log"
grep -qx duet_sum "$work/called"
point $? 'duet.hpp calls functions of C'

comm -23 "$work/functions" "$work/called" >"$work/missing"
sed 's/: .*//' "$work/exceptions" >"$work/patterns"
# A reduction along one axis is an exception only if the one along several axes has a form.
while read -r name; do
    case $name in
    *_axes | *_axes_keep) echo "$name" ;;
    *_axis) grep -qx "${name%_axis}_axes" "$work/called" || echo "$name" ;;
    *_keep) grep -qx "${name%_keep}_axes_keep" "$work/called" || echo "$name" ;;
    *) echo "$name" | grep -vxE -f "$work/patterns" ;;
    esac
done <"$work/missing" >"$work/log"
[ ! -s "$work/log" ]
point $? 'each function has a form in duet.hpp or is a stated exception'

while read -r pattern; do
    grep -qxE "$pattern" "$work/missing" || echo "$pattern"
done <"$work/patterns" >"$work/log"
[ ! -s "$work/log" ]
point $? 'each exception is needed'
echo "1..$points"
