#!/bin/sh
# run.sh MPIRUN RANKS PROGRAM              runs a test program with so many processes; rank 0 reports in TAP
# run.sh MPIRUN --failures RANKS PROGRAM   the same, for tests that do not call MPI_Finalize
# run.sh MPIRUN --deaths N PROGRAM [RANKS SECONDS [ARG]]
#                                          runs it N times. Each time, one of RANKS processes dies (2 to 4 if
#                                          RANKS is not given). The others must report a failure within about
#                                          SECONDS (0.5 if not given). ARG is passed on. For mpi_death.c and
#                                          group_death.c. Reports in TAP
mpirun=$1 what=$2 && shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export UCX_LOG_LEVEL=error # it warns in MPI_Finalize of messages that nobody has received
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" # MPI does not free everything

if [ "$what" = --failures ]; then # the shell hides from mpirun that MPI_Finalize was not called
    ranks=$1 && shift
    "$mpirun" -n "$ranks" sh -c '"$@"; exit 0' sh "$@" failures |
        grep -E '^(ok|not ok|#|1\.\.)' | tee "$work/log"
    grep -q '^1\.\.' "$work/log" || echo 'Bail out! the program ended early'
    exit 0
fi
[ "$what" = --deaths ] || { "$mpirun" -n "$what" "$@"; exit; }

# When a process dies, mpirun ends the others. A shell between them hides the death. It waits until all others
# have reported, for at most 10 s.
times=$1 program=$2 fixed=${3:-} seconds=${4:-0.5} what=${5:-}
# When a process dies while UCX reads its memory, UCX ends the reading process. It does not if it copies
# through shared memory. (With tcp in addition, MPI_Finalize of MPICH 4.0 sometimes hangs.)
export UCX_TLS=posix,self
cat >"$work/rank.sh" <<'SCRIPT'
ranks=$1 log=$2 && shift 2
"$@" >>"$log" 2>>"$log.errors"
tries=0
while [ "$(grep -c survivor "$log")" -lt $((ranks - 1)) ] && [ $tries -lt 100 ]; do
    sleep 0.1 && tries=$((tries + 1))
done
exit 0
SCRIPT
seed=1
while [ $seed -le "$times" ]; do
    ranks=${fixed:-$((2 + seed % 3))} log=$work/log.$seed && : >"$log"
    "$mpirun" -n $ranks sh "$work/rank.sh" $ranks "$log" "$program" $seed "$seconds" $what >"$log.mpirun" 2>&1
    sed 's/^/# /' "$log"
    if [ "$(grep -c '^survivor [0-9]*: ok' "$log")" -eq $((ranks - 1)) ]; then
        echo "ok $seed - a rank of $ranks dies, seed $seed"
    else
        echo "not ok $seed - a rank of $ranks dies, seed $seed"
        cat "$log.errors" "$log.mpirun" | head -40 | sed 's/^/# /'
    fi
    seed=$((seed + 1))
done
echo "1..$times"
