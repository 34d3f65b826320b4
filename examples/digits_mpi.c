/* digits_mpi.c - trains the dense network of digits.c in several processes, on one machine or on several.
 *
 *     mpirun -n N digits_mpi [FOLDER] [--backend cpu|gpu|auto] [--passes N]
 *
 * Each process uses one GPU, or the CPU if there is no GPU. slurm_digits.sh starts it with Slurm. FOLDER: as
 * in digits.c. Without it, the program makes images. */
#include "digits_parallel.h"
#include <duet/mpi.h>
#include <stdlib.h>

/* Another process may have died, so this one does not wait for it in MPI_Finalize. */
static _Noreturn void abandon(duet_status s)
{
    digits_complain("digits_mpi", s);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

int main(int argc, char **argv)
{
    digits d = { 0 };
    digits_options o;
    MPI_Init(&argc, &argv);
    if (!digits_start(argc, argv, &o, &d)) MPI_Abort(MPI_COMM_WORLD, 2);

    duet_group *g = duet_group_mpi(MPI_COMM_WORLD, o.place);
    if (!g) abandon(DUET_NO_DEVICE);
    const duet_status s = digits_parallel(g, &d, o.passes, duet_group_rank(g) == 0);
    if (s != DUET_OK) abandon(s);
    duet_group_free(&g);
    digits_free(&d);
    MPI_Finalize();
    return duet_live(stderr) != 0;
}
