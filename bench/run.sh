#!/bin/sh
# run.sh - builds and runs the benchmarks; first installs missing packages, if it has the rights to.
#
#     sh bench/run.sh [--full] [--backend cpu|gpu|both] [--math MODE[,MODE]] [--only NAME[,NAME]]
#                     [options of duet-bench]
#
# Without --only all suites run:
#     paper        the five benchmarks of the paper, compared with vendor libraries (duet-bench,
#                  peers.py)
#     forward      the networks at the batches of docs/results.md, in each math mode (duet-bench,
#                  peers.py)
#     expressions  random expressions on one thread, compared with compiled loops and Eigen
#                  (expressions.py)
#     calls        the overhead of a call (duet-calls)
#     vectors      long vectors: fraction of a copy's bandwidth, compared with handwritten kernels and
#                  peers (duet-vectors, peers.py, ratios.py)
#     place        automatic placement, compared with each device, with data on the host or the GPU
#                  (duet-place)
#     stream       operands in host memory, computed in parts on the GPU, compared with the rate of
#                  the link (duet-stream)
#     threads      the dense network on sixteen host threads, compared with one thread (duet-threads)
#     families     operators of each kind at three sizes, compared with direct vendor calls on the CPU
#                  and with PyTorch on the GPU (per_operator.py)
#     rows         each operator compared with the peak rate (duet-rows)
#
# The default is a quick run of about five minutes. --full uses the sizes of the paper and runs
# forward, vectors and calls three times. Results, charts and the tables
# of docs/results.md (table.py) are written to build-bench/results. PyTorch and JAX are measured if
# python3 can import them, Eigen if it is installed. On a machine without a GPU the library is built
# for the CPU only.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build-bench
out=$build/results
setup_top=$root
. "$root/tools/setup.sh"

speed=--quick runs=1 backend=both maths=strict batches=1,100,512,4096
only=paper,forward,expressions,calls,vectors,place,stream,threads,families,rows
while [ $# -gt 0 ]; do
    case $1 in
    --full) speed='' runs=3 batches=1,10,100,512,1000,4096,16384 ;;
    --math) maths=$2 && shift ;;
    --only) only=$2 && shift ;;
    --backend) backend=$2 && shift ;;
    *) break ;;
    esac
    shift
done
chosen() { case ",$only," in *",$1,"*) ;; *) return 1 ;; esac; }

setup build bench
if [ ! -f "$build/build.ninja" ]; then meson setup "$build" "$root" $(gpu_options -Dgpu=disabled); fi
programs='bench calls expressions families.so place rows stream threads vectors'
# shellcheck disable=SC2046,SC2086 # one word for each program
ninja -C "$build" $(printf 'bench/duet-%s ' $programs)
if ninja -C "$build" -t targets all | grep -q '^bench/peer-eigen:'; then
    ninja -C "$build" bench/peer-eigen
fi

peers=
if has_numpy; then peers=--peers; fi
mkdir -p "$out"
status=0

# table NAME COMMAND... - runs a benchmark and writes its output to the screen and to a file. If it
# fails, the others still run, and its exit status becomes that of this script.
table() {
    name=$1 && shift
    printf '\n== %s\n' "$name"
    { "$@" || echo $? >"$out/failed"; } | tee "$out/$name.txt"
    if [ -f "$out/failed" ]; then status=$(cat "$out/failed"); fi
}

sees_gpu() { python3 -c 'import torch; raise SystemExit(not torch.cuda.is_available())' 2>/dev/null; }

run_families() { python3 "$root/bench/peers/per_operator.py" "$build/bench/duet-families.so" $speed "$@"; }

run_vectors() {
    failed=0
    "$build/bench/duet-vectors" $speed --backend "$backend" --json "$1" || failed=$?
    if [ -n "$peers" ]; then python3 "$root/bench/peers/peers.py" $speed --merge "$1" || failed=$?; fi
    return "$failed"
}

run_forward() {
    "$build/bench/duet-bench" $speed $peers --backend "$backend" --bench dense,cnn --sizes "$batches" \
        --math "$1" --json "$2"
}

rm -f "$out/failed"
if chosen paper; then
    table paper "$build/bench/duet-bench" $speed $peers --backend "$backend" --json "$out/bench.json" \
        --csv "$out/bench.csv" "$@"
fi
if chosen expressions; then
    table expressions python3 "$root/bench/peers/expressions.py" --build "$build" $speed \
        --json "$out/expressions.json"
fi
if chosen forward; then
    rm -f "$out"/forward-*.json
    for run in $(seq $runs); do
        for mode in $(echo "$maths" | tr , ' '); do
            table "forward-$mode-$run" run_forward "$mode" "$out/forward-$mode-$run.json"
        done
    done
fi
if chosen calls; then
    rm -f "$out"/calls-*.json
    for run in $(seq $runs); do
        table "calls-$run" "$build/bench/duet-calls" $speed --json "$out/calls-$run.json"
    done
fi
if chosen vectors; then
    rm -f "$out"/vectors-*.json
    for run in $(seq $runs); do table "vectors-$run" run_vectors "$out/vectors-$run.json"; done
    table ratios python3 "$root/bench/report/ratios.py" "$out"/vectors-*.json
fi
if chosen place; then table place "$build/bench/duet-place" $speed --json "$out/place.json"; fi
if chosen stream; then table stream "$build/bench/duet-stream" $speed --json "$out/stream.json"; fi
if chosen threads; then table threads "$build/bench/duet-threads" $speed --json "$out/threads.json"; fi
if chosen families && has_numpy; then
    if [ "$backend" != gpu ]; then table families-cpu run_families --json "$out/families-cpu.json"; fi
    if [ "$backend" != cpu ] && sees_gpu; then
        table families-gpu run_families --gpu --json "$out/families-gpu.json"
    fi
fi
if chosen rows; then
    table rows "$build/bench/duet-rows" $speed --backend "$backend" --json "$out/rows.json"
fi
rm -f "$out/failed"

set --
for file in "$out/bench.json" "$out"/forward-strict-*.json "$out/expressions.json" "$out/place.json" \
    "$out"/calls-*.json "$out"/vectors-*.json; do
    if [ -f "$file" ]; then set -- "$@" "$file"; fi
done
if [ $# -gt 0 ] && has_matplotlib; then python3 "$root/bench/report/charts.py" "$@" -o "$out" || status=$?; fi
for file in "$out"/forward-[!s]*.json "$out"/forward-split-*.json; do
    if [ -f "$file" ]; then set -- "$@" "$file"; fi
done
if [ $# -gt 0 ] && command -v python3 >/dev/null; then
    python3 "$root/bench/report/table.py" "$@" | tee "$out/tables.md"
fi
echo "results: $out"
exit "$status"
