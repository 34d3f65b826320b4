#!/bin/sh
# tests/soak.sh - runs random programs over the whole interface for hours (tests/soak/soak.c).
#
#     sh tests/soak.sh [HOURS [KIND [OPTIONS OF soak]]]
#         HOURS   1 by default; fractions are allowed
#         KIND    plain     the library as users build it; on the GPU too if there is one (default)
#                 faults    with the fake CUDA; allocations and calls of CUDA fail at random
#                 address   with the address and undefined-behaviour sanitizers
#                 thread    with the thread sanitizer, clang and libomp, on four threads
# The build folder is build-soak-KIND in the source folder. Its file soak.log has a line for each period of
# 20,000 actions: time, calls, share of calls that succeeded, calls per second, resident memory, mappings and
# open files. The last lines compare the first full periods with the last ones.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
hours=${1:-1}
kind=${2:-plain}
[ $# -lt 2 ] || shift
[ $# -eq 0 ] || shift
build=$top/build-soak-$kind
options= program=soak
case $kind in
plain) ;;
faults) options=-Dgpu=disabled program=soak_faults ;;
address) options='-Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized -Dgpu=disabled' ;;
thread)
    options='-Db_sanitize=thread -Db_lundef=false -Dbuildtype=debugoptimized -Dgpu=disabled'
    export CC=clang CXX=clang++ TSAN_OPTIONS='ignore_noninstrumented_modules=1'
    set -- --threads 4 "$@"
    ;;
*) echo "tests/soak.sh: KIND must be plain, faults, address or thread" >&2 && exit 2 ;;
esac
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}"
export OMP_WAIT_POLICY=passive

cd "$top"
setup_top=$top
. tools/setup.sh
setup build
if [ "$kind" = thread ]; then
    OMP_TOOL_LIBRARIES="$(clang -print-resource-dir)/../../libarcher.so"
    export OMP_TOOL_LIBRARIES
fi
# shellcheck disable=SC2086 # the options are split into words on purpose
[ -f "$build/build.ninja" ] || meson setup "$build" $(gpu_options -Dgpu_arch=90) $options
ninja -C "$build" "tests/$program"
seconds=$(awk "BEGIN { print int($hours * 3600) }")
log=$build/soak.log
status=0
"$build/tests/$program" --seconds "$seconds" "$@" >"$log" 2>&1 || status=$?
grep -v ' calls/s; ' "$log" || true
awk '/ calls\/s; / { n++; rate[n] = $8; memory[n] = $10; mappings[n] = $12; files[n] = $14 }
END {
    m = n > 43 ? 20 : int((n - 3) / 2)
    for (i = 1; i <= m; i++) {
        a = 3 + i; b = n - m + i
        r1 += rate[a]; r2 += rate[b]; m1 += memory[a]; m2 += memory[b]
        p1 += mappings[a]; p2 += mappings[b]; f1 += files[a]; f2 += files[b]
    }
    if (m < 1) { print "too short to compare"; exit }
    printf "periods 4 to %d and the last %d: %.0f and %.0f calls/s, %.0f and %.0f MB, ", 3 + m, m, r1 / m, r2 / m, m1 / m, m2 / m
    printf "%.0f and %.0f mappings, %.0f and %.0f files\n", p1 / m, p2 / m, f1 / m, f2 / m
}' "$log"
exit "$status"
