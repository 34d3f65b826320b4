#!/bin/sh
# tests/run.sh - installs missing packages (tools/setup.sh), configures, builds, runs all tests.
#
#     sh tests/run.sh [--quick] [--build DIR] [--suite NAME]... [--without NAME] [--sanitize [thread]]
#                     [--gpu-check TOOL] [meson options such as -Dgpu=disabled]
#         --quick            test each operator with small shapes only
#         --build DIR        the build folder; the default is build-tests in the source folder
#         --suite NAME       run this suite, and not all: cpu, fake, gpu, mpi, sources, examples or
#                            bench; --gpu-check ignores it
#         --without NAME     leave out this suite; twin: tests that have a twin with the fake CUDA, which
#                            runs the same on the CPU; deaths: tests that kill processes many times
#         --sanitize         use the address and undefined-behaviour sanitizers
#         --sanitize thread  use the thread sanitizer, with clang and with libomp and its tool Archer.
#                            gcc's libgomp does not report its barriers to the sanitizer, which
#                            would report false races
#         --gpu-check TOOL   run each GPU test under a tool of compute-sanitizer: memcheck, racecheck,
#                            initcheck or synccheck
# The last line of output is "N passed, N failed".
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build-tests
options= tool= sanitize= checks= suites=
while [ $# -gt 0 ]; do
    case $1 in
    --quick) export DUET_TEST_QUICK=1 ;;
    --build) build=$2 && shift ;;
    --suite) suites="$suites --suite $2" && shift ;;
    --without) suites="$suites --no-suite $2" && shift ;;
    --sanitize)
        checks=address,undefined
        [ "${2:-}" != thread ] || { checks=thread && shift; }
        sanitize="-Db_sanitize=$checks -Db_lundef=false -Dbuildtype=debugoptimized -Dc_args=-g1 -Dcpp_args=-g1 -Dgpu=disabled"
        ;;
    --gpu-check)
        case ${2:-} in
        memcheck | racecheck | initcheck | synccheck) tool=$2 && shift ;;
        *) echo "tests/run.sh: unknown tool ${2:-} of --gpu-check" >&2 && exit 2 ;;
        esac
        ;;
    -D*) options="$options $1" ;;
    *) echo "tests/run.sh: unknown option $1" >&2 && exit 2 ;;
    esac
    shift
done

cd "$top"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}"
export LSAN_OPTIONS="${LSAN_OPTIONS:-suppressions=$top/tests/leaks.txt:print_suppressions=0}"
[ "$checks" != thread ] || export CC=clang CXX=clang++
setup_top=$top
. tools/setup.sh
. tests/results.sh
setup build
if [ "$checks" = thread ]; then
    export OMP_TOOL_LIBRARIES="$(clang -print-resource-dir)/../../libarcher.so"
    export TSAN_OPTIONS='ignore_noninstrumented_modules=1 allocator_may_return_null=1'
    [ -f "$OMP_TOOL_LIBRARIES" ] || { echo "tests/run.sh: cannot find libarcher.so of clang's libomp; install libomp-dev" >&2 && exit 2; }
fi

# shellcheck disable=SC2086 # the options are split into words on purpose
if [ -f "$build/build.ninja" ]; then meson configure "$build" $sanitize $options
else meson setup "$build" $(gpu_options -Dgpu_arch=90) $sanitize $options; fi
meson compile -C "$build"
log=$build/meson-logs/testlog${tool:+-compute-sanitizer}.txt
status=0
if [ -n "$tool" ]; then
    meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier 20 \
        --suite gpu --no-suite crash \
        --wrapper "compute-sanitizer --tool $tool --error-exitcode 9 --report-api-errors no" || status=$?
else
    # The tests of sources run nothing that a sanitizer could check.
    # shellcheck disable=SC2086 # the suites are split into words on purpose
    meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier 3 \
        $suites ${checks:+--no-suite sources} || status=$?
fi
print_results "$log" "$status"
