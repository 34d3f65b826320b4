#!/bin/sh
# tests/fuzz/run.sh [SECONDS [TARGET...]] - builds the fuzz targets with clang, libFuzzer, AddressSanitizer and
# UndefinedBehaviorSanitizer, and runs them for SECONDS (60 by default), at the same time. The targets are npy,
# npz, market, stream, einsum and encoder. The output of each is in its file TARGET.log. DUET_FUZZ_SEED is the
# seed of libFuzzer; by default each run has a new one. `encoder` runs machine code with the instruction sets
# that the processor has.
#
# The build folder is build-fuzz in the source folder, or $DUET_FUZZ_BUILD. Its folder `corpus` has the inputs
# that reached new code; they are the seeds of the next run. An input that fails is in its folder `found`.
# To run it again: build-fuzz/fuzz_npy build-fuzz/found/npy-crash-...
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${DUET_FUZZ_BUILD:-$top/build-fuzz}
seconds=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- npy npz market stream einsum encoder
command -v clang >/dev/null || { echo "tests/fuzz/run.sh: clang is not installed" >&2 && exit 2; }
echo 'int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n) { return !p && n; }' |
    clang -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null ||
    { echo "tests/fuzz/run.sh: clang's libFuzzer is not installed; on Debian it is in libclang-rt-dev" >&2 && exit 2; }

# Only the parts of the library that read input and write code matter, so the libraries for fast arithmetic are
# left out. The library of the tests exports all functions, also those that are not public.
ignored=$top/tests/fuzz/ignored.txt
if [ ! -e "$build/build.ninja" ]; then
    CC=clang CXX=clang++ meson setup "$build" "$top" -Dgpu=disabled -Donednn=disabled -Dlapacke=disabled \
        -Dsuperlu=disabled -Dfft=none -Ddocs=disabled -Dexamples=false -Dbench=false \
        -Dbuildtype=debugoptimized -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false \
        -Dc_args="-fsanitize=fuzzer-no-link -fno-sanitize-recover=all -fsanitize-ignorelist=$ignored
            -fsanitize-coverage-ignorelist=$ignored"
fi
ninja -C "$build" tests/libtested.so tests/libmachine_reference.a
compile() { # SOURCE PROGRAM OPTIONS...
    source=$1 program=$2 && shift 2
    [ "$source" != fuzz_encoder ] || set -- "$@" "$top/tests/support/x86_decode.c" "$build/tests/libmachine_reference.a"
    clang -std=gnu11 -g -O1 -fPIC -fopenmp -I"$top/include" -I"$build/tools/reference" -I"$top/tests/support" \
        -I"$top/src/core" -I"$top/src/cpu" -I"$top/src/codegen" "$top/tests/fuzz/$source.c" -o "$build/$program" \
        "$@" -L"$build/tests" -ltested -lm -Wl,-rpath,"$build/tests"
}
compile seeds fuzz_seeds -fsanitize=address,undefined
mkdir -p "$build/corpus" "$build/found"
export OMP_NUM_THREADS=1 DUET_CALIBRATE=0
"$build/fuzz_seeds" "$build/corpus"

for target in "$@"; do compile "fuzz_$target" "fuzz_$target" -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all; done
started=
for target in "$@"; do
    "$build/fuzz_$target" -max_total_time="$seconds" -max_len=4096 -timeout=10 -print_final_stats=1 \
        -seed="${DUET_FUZZ_SEED:-0}" -artifact_prefix="$build/found/$target-" "$build/corpus/$target" >"$build/$target.log" 2>&1 &
    started="$started $target:$!"
done
failed=0
for each in $started; do
    target=${each%%:*} status=0
    wait "${each#*:}" || status=$?
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$target.log") inputs"
    [ "$status" -eq 0 ] && continue
    failed=$((failed + 1))
    echo "FAILED $target, status $status:"
    tail -n 40 "$build/$target.log"
done
echo "$(($# - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
