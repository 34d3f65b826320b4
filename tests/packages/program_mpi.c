/* program_mpi.c - makes a group of MPI processes; mpirun is not needed for one. */
#include <duet/mpi.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    duet_group *g = duet_group_mpi(MPI_COMM_WORLD, DUET_CPU);
    const int ranks = duet_group_ranks(g);
    if (g) printf("%d ranks\n", ranks);
    else puts(duet_error());
    duet_group_free(&g);
    MPI_Finalize();
    return ranks != 1;
}
