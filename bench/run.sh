#!/bin/sh
# run.sh - builds and runs the benchmarks; installs what it needs if it may.
#
#     sh bench/run.sh [--full] [options of duet-bench]
#
# Quick by default, about a minute; --full takes the paper's sizes. Results and charts go to build-bench/results.
# PyTorch and JAX take part where python3 can import them, Eigen where it is installed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build-bench
out=$build/results
. "$root/tools/setup.sh"

speed=--quick
if [ "${1-}" = --full ]; then speed= && shift; fi

setup build bench
if [ ! -f "$build/build.ninja" ]; then meson setup "$build" "$root"; fi
ninja -C "$build" bench/duet-bench
if [ -n "$(ninja -C "$build" -t targets all | grep '^bench/peer-eigen:')" ]; then ninja -C "$build" bench/peer-eigen; fi

peers=
if has_numpy; then peers=--peers; fi
mkdir -p "$out"
status=0
"$build/bench/duet-bench" $speed $peers --json "$out/bench.json" --csv "$out/bench.csv" "$@" || status=$?
if [ -f "$out/bench.json" ] && has_matplotlib; then python3 "$root/bench/charts.py" "$out/bench.json" -o "$out" || status=$?; fi
echo "results: $out"
exit $status
