/* mpi.h - groups of MPI processes: libduet-mpi. Not part of duet.h. Compile with
 * `pkg-config --cflags --libs duet-mpi`, and start the program with mpirun or srun (docs/groups.md).
 *
 *     MPI_Init(&argc, &argv);
 *     duet_group *g = duet_group_mpi(MPI_COMM_WORLD, DUET_AUTO);
 *     if (!g) puts(duet_error()), MPI_Abort(MPI_COMM_WORLD, 1);
 *     ...
 *     duet_group_free(&g);
 *     MPI_Finalize();
 */
#ifndef DUET_MPI_H
#define DUET_MPI_H

#include <duet/duet.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a group with one rank for each process of comm, in the same order. Every process of comm calls it,
 * after MPI_Init. It duplicates comm, so that messages of the program and of Duet cannot be confused.
 * place: as in duet_group_connect (transport.h).
 *
 * Threads    Duet calls MPI in the threads that run statements on the group. If only the thread that
 *            initialised MPI does so, any thread level of MPI is enough. Otherwise, initialise MPI with
 *            MPI_THREAD_MULTIPLE, or with MPI_THREAD_SERIALIZED if no two threads use MPI at the same time.
 *            While Duet sends messages, errors of MPI_COMM_WORLD and MPI_COMM_SELF do not call their
 *            error handlers; the functions of MPI return them
 * Failures   If a rank sends nothing for the time of duet_group_timeout, or MPI reports an error, statements
 *            return RANK_FAILED. Then end the process with MPI_Abort: MPI_Finalize may wait for the failed
 *            rank
 * Owner      the caller, until duet_group_free. Every process calls it before MPI_Finalize. The caller
 *            also remains the owner of comm
 * Errors     NULL: BAD_ARGUMENT: MPI is not initialised or has been finalised, or comm is MPI_COMM_NULL or
 *            an intercommunicator. RANK_FAILED: a process of comm does not call it within 60 seconds, or MPI
 *            reports an error. NO_MEMORY. As duet_group_connect */
DUET_API DUET_MUST duet_group *duet_group_mpi(MPI_Comm comm, duet_place place);

#ifdef __cplusplus
}
#endif
#endif
