/* test_group_mpi.c - compares statements with matrices on a group of MPI processes, on the CPU, with those of
 * ordinary matrices. Every process checks its results; rank 0 reports. */
#include "group_blocks.h"
#include "group_buckets.h"
#include "group_files.h"
#include "group_fused.h"
#include "group_grid.h"
#include "group_lookups.h"
#include <duet/mpi.h>

/* The failures of all processes count. A statement evaluates or drops all formulas that it has made. */
static void point(int rank, const char *name)
{
    int all = 0;
    CHECK(duet_arena_limit((size_t)64 << 20) == DUET_OK, "%s: %s", name, duet_error());
    MPI_Allreduce(&tap_failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    tap_failures = all;
    if (rank == 0) tap_point(name);
    tap_failures = tap_checks = 0;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int64_t count = argc > 2 ? atoll(argv[2]) : 200;
    duet_group *g = duet_group_mpi(MPI_COMM_WORLD, DUET_CPU);
    CHECK(g != NULL, "%s", duet_error());
    for (int64_t i = 0; g && i < count; i++) run_case(g, seed + (uint64_t)i, i % 4 == 3);
    point(rank, "random statements");
    if (g) {
        all_along(g, seed);
        lookups(g, seed, false);
    }
    point(rank, "long operators along the split axis, take and einsum");
    if (g) all_blocks(g, count / 8, seed, false);
    point(rank, "reductions by blocks");
    if (g) all_buckets(g, count / 2, seed);
    point(rank, "sums that share an exchange");
    for (int64_t i = 0; g && i < count; i++) run_fused(g, seed + (uint64_t)i);
    if (g) {
        fused_without_gathers(g, DUET_F32);
        fused_deeply(g);
    }
    point(rank, "sums of products");
    for (int64_t i = 0; g && i < count; i++) run_grid(g, seed + (uint64_t)i);
    point(rank, "products in blocks");
    if (g) all_random(g, count / 4, seed);
    point(rank, "random numbers");
    char folder[] = "/tmp/duet-group-XXXXXX";
    if (rank == 0) CHECK(mkdtemp(folder) != NULL, "no folder");
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (g) all_files(g, folder, count / 4, seed);
    point(rank, "files");
    if (rank == 0) remove_folder(folder);
    duet_group_free(&g);
    if (rank == 0) tap_end();
    MPI_Finalize();
    return 0;
}
