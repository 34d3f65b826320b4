#!/bin/sh
# distributed.sh - tests and measures statements with matrices on groups: on 1, 2, 4, ... GPUs of this
# machine, or on parts of its CPU if it has no GPU. It does not prompt.
#
#     sh bench/distributed.sh [--ranks N] [--build DIR] [--out DIR] [--backend cpu|gpu] [--quick]
#                             [--peers] [--mpi] [--only CASE[,CASE]] [--no-tests] [--seconds N]
#         --ranks N      the most ranks; the default is all GPUs, or 2 parts of the CPU
#         --build DIR    the build folder; the default is build-bench. It is configured unless it exists
#         --out DIR      the folder of the results; the default is `results` in the build folder
#         --backend      the default is gpu if nvidia-smi lists a GPU
#         --quick        small sizes and few rounds
#         --peers        also measure PyTorch and JAX (bench/peers/distributed.py), if they are installed
#         --mpi          also measure training in two MPI processes, each with half of the cores
#         --only         measure only these cases of bench/suites/distributed_cases.c
#         --no-tests     do not run the tests of groups before
#         --seconds N    the time limit for all of it, except for building; the default is 1800
# Every part runs, even if one before it has failed; then the exit status is not 0. Results: distributed.json,
# distributed-peers.json, distributed-mpi.json, the outputs as *.txt, a table (distributed.md) and, with
# matplotlib and at least 2 ranks, a chart (distributed.svg).
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build-bench
setup_top=$root
. "$root/tools/setup.sh"

stop() { echo "distributed.sh: $*" >&2 && exit 2; }

ranks='' out='' backend='' quick='' only='' peers='' mpi='' tests=1 limit=1800
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=--quick ;;
    --peers) peers=1 ;;
    --mpi) mpi=1 ;;
    --no-tests) tests='' ;;
    --ranks | --build | --out | --backend | --only | --seconds)
        [ $# -gt 1 ] || stop "$1 needs a value"
        case $1 in
        --ranks) ranks=$2 ;;
        --build) build=$2 ;;
        --out) out=$2 ;;
        --backend) backend=$2 ;;
        --only) only=$2 ;;
        --seconds) limit=$2 ;;
        esac
        shift
        ;;
    *) stop "unknown option $1" ;;
    esac
    shift
done
case $ranks in *[!0-9]*) stop "--ranks $ranks is not a number" ;; esac
case $limit in '' | *[!0-9]*) stop "--seconds $limit is not a whole number" ;; esac
case $backend in
'') if nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then backend=gpu; else backend=cpu; fi ;;
cpu | gpu) ;;
*) stop "--backend must be cpu or gpu" ;;
esac
out=${out:-$build/results}
mkdir -p "$out"

# ---- build ----

# Install only what is required: this machine may have no internet.
if setup_missing build | grep -q '^required'; then setup build; else setup_use_venv; fi
if [ ! -f "$build/build.ninja" ]; then
    # shellcheck disable=SC2046 # no word if the default will do
    meson setup "$build" "$root" $(gpu_options -Dgpu=disabled)
fi
has_target() { ninja -C "$build" -t targets all | grep -q "^$1:"; }
ninja -C "$build" bench/duet-distributed
if [ -n "$mpi" ]; then
    if has_target bench/duet-distributed-mpi; then ninja -C "$build" bench/duet-distributed-mpi
    else
        echo "distributed.sh: --mpi is left out: the build has no MPI (docs/groups.md)" >&2
        mpi=
    fi
fi

# ---- parts ----

began=$(date +%s) status=0
left() { echo $((limit - $(date +%s) + began)); }

# part NAME COMMAND... - runs a command within the time that is left, and writes its output to the screen
# and to a file.
part() {
    name=$1 && shift
    seconds=$(left)
    printf '\n== %s\n' "$name"
    if [ "$seconds" -lt 5 ]; then
        echo "not run: no time left"
        status=1
        return
    fi
    { timeout -k 10 "$((seconds + 20))" "$@" 2>&1 || echo $? >"$out/failed"; } | tee "$out/$name.txt"
    if [ -f "$out/failed" ]; then
        echo "distributed.sh: $name ended with status $(cat "$out/failed")" >&2
        rm -f "$out/failed"
        status=1
    fi
}

# The tests whose names say that they are of groups or of what connects the ranks.
list_tests() {
    meson test -C "$build" --no-rebuild --list 2>/dev/null |
        sed -n 's/^.* \/ //; /group\|^mpi\|_mpi\|nccl\|collective/p' | sort -u
}

# The processors that this process may use. Those of a core, and those of a socket, follow each other.
list_processors() {
    { lscpu -p=CPU,SOCKET,CORE 2>/dev/null | grep -v '^#' | sort -t, -k2,2n -k3,3n -k1,1n | cut -d, -f1 | grep . ||
        seq 0 $(($(getconf _NPROCESSORS_ONLN) - 1)); } |
        while read -r cpu; do if taskset -c "$cpu" true 2>/dev/null; then echo "$cpu"; fi; done
}

# Starts a program in two processes, each on half of the processors.
run_mpi() {
    processors=$(list_processors)
    half=$(($(echo "$processors" | wc -l) / 2))
    if [ "$half" -lt 1 ]; then echo "not run: this process may use one processor only" && return; fi
    DUET_CPUS_0=$(echo "$processors" | head -n "$half" | paste -s -d , -)
    DUET_CPUS_1=$(echo "$processors" | tail -n "+$((half + 1))" | head -n "$half" | paste -s -d , -)
    export DUET_CPUS_0 DUET_CPUS_1 OMP_NUM_THREADS="$half"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
    echo "$half processors for each process: $DUET_CPUS_0 and $DUET_CPUS_1"
    # shellcheck disable=SC2016 # expanded in each process
    part mpi "$mpirun" -bind-to none -n 2 sh -c '
        rank=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${PMI_RANK:-0}}}
        if [ "$rank" = 0 ]; then cpus=$DUET_CPUS_0; else cpus=$DUET_CPUS_1; fi
        exec taskset -c "$cpus" "$@"' sh \
        "$build/bench/duet-distributed-mpi" $quick --json "$out/distributed-mpi.json"
}

rm -f "$out/failed" "$out/distributed.json" "$out/distributed-peers.json"
if [ -n "$tests" ]; then
    names=$(list_tests)
    if [ -n "$names" ]; then
        # shellcheck disable=SC2086 # one word for each test
        part tests meson test -C "$build" --print-errorlogs --timeout-multiplier 3 $names
    else echo "distributed.sh: the build has no tests of groups" >&2; fi
fi

set -- --backend "$backend" $quick --json "$out/distributed.json"
[ -z "$ranks" ] || set -- "$@" --ranks "$ranks"
[ -z "$only" ] || set -- "$@" --only "$only"
seconds=$(left)
if [ -n "$peers" ]; then seconds=$((seconds / 2)); fi
if [ "$seconds" -gt 0 ]; then set -- "$@" --seconds "$seconds"; fi
part distributed "$build/bench/duet-distributed" "$@"

if [ -n "$mpi" ]; then
    # The MPI that the program was linked with.
    kind=openmpi
    if ldd "$build/src/mpi/libduet-mpi.so" 2>/dev/null | grep -q libmpich; then kind=mpich; fi
    mpirun=$(command -v "mpirun.$kind" || command -v mpirun || true)
    if [ -n "$mpirun" ]; then run_mpi
    else
        echo "distributed.sh: --mpi is left out: there is no mpirun" >&2
        status=1
    fi
fi

if [ -n "$peers" ]; then
    set -- $quick --seconds "$(left)" --json "$out/distributed-peers.json"
    [ "$backend" = gpu ] || set -- "$@" --cpu
    [ -z "$ranks" ] || set -- "$@" --ranks "$ranks"
    [ -z "$only" ] || set -- "$@" --only "$only"
    if has_numpy; then part peers python3 "$root/bench/peers/distributed.py" "$@"
    else echo "distributed.sh: --peers is left out: python3 has no NumPy" >&2; fi
fi
set --
for name in distributed distributed-peers; do if [ -f "$out/$name.json" ]; then set -- "$@" "$out/$name.json"; fi; done
if [ $# -gt 0 ] && command -v python3 >/dev/null; then
    python3 "$root/bench/report/table.py" "$@" | tee "$out/distributed.md"
fi
if [ $# -gt 0 ] && has_matplotlib; then
    python3 "$root/bench/report/charts.py" "$@" -o "$out" || true # with one rank there is nothing to draw
fi
echo "results: $out"
exit "$status"
