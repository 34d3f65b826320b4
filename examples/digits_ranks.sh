#!/bin/sh
# digits_ranks.sh DIGITS_GROUP [MPIRUN DIGITS_MPI] - trains the network of digits_group with 1, 2 and 4 ranks
# on the CPU, and with MPIRUN and DIGITS_MPI in 2 processes. The loss must be that of one rank, within
# rounding. Reports in TAP.
digits_group=$1 mpirun=${2:-} digits_mpi=${3:-} points=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

loss() { sed -nE 's/.*loss ([^ ]+) .*/\1/p' "$1"; }
# Compares the log with that of one rank. Rounding errors grow while the network learns, so 1 % is allowed.
is_alike() {
    loss "$work/1" >"$work/one" && loss "$work/log" | paste "$work/one" - |
        awk '{ if (NF != 2 || !($1 > 0) || $2 / $1 > 1.01 || $2 / $1 < 0.99) exit 1 } END { exit NR != 2 }'
}
point() { # name, command: runs it, and compares the loss after each pass
    points=$((points + 1)) name=$1 && shift
    "$@" --backend cpu --passes 2 >"$work/log" 2>&1
    status=$?
    [ -e "$work/1" ] || cp "$work/log" "$work/1"
    if [ $status -eq 0 ] && is_alike; then echo "ok $points - $name"; else echo "not ok $points - $name"; fi
    sed 's/^/# /' "$work/log" | tail -20
}
point 'one rank' "$digits_group" --ranks 1
point 'two ranks' "$digits_group" --ranks 2
point 'four ranks' "$digits_group" --ranks 4
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" # MPI does not free everything
[ -z "$mpirun" ] || point 'two processes' "$mpirun" -n 2 "$digits_mpi"
echo "1..$points"
