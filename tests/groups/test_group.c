/* test_group.c - compares statements with matrices on groups with those of ordinary matrices. Exact operators
 * have the same bits for any number of ranks. The groups have 1 to 8 parts of the CPU, or up to 8 GPUs of
 * this machine; with -DFAKE_CUDA, cards of the fake CUDA, which the fake NCCL connects.
 *
 *     test_group [trials] [seed] */
#include "group_along.h"
#include "group_blocks.h"
#include "group_buckets.h"
#include "group_cases.h"
#include "group_files.h"
#include "group_fused.h"
#include "group_grid.h"
#include "group_grid_traffic.h"
#include "group_lookups.h"
#include "group_nested.h"
#include "group_traffic.h"
#include "group_training.h"
#include "quick.h"
#ifdef FAKE_CUDA
#include "fake_cuda.h"
#endif

static void all_cases(int ranks, int64_t count, uint64_t seed, const char *what)
{
    duet_group *g = duet_group_local(ranks);
    char name[80];
    if (!CHECK(g != NULL, "%s", duet_error())) return;
    for (int64_t i = 0; i < count; i++) {
        *block_sums() = i % 16 == 7 ? BLOCKS_ALWAYS : BLOCKS_IF_FASTER;
        run_case(g, seed + (uint64_t)i, i % 8 == 7);
    }
    *block_sums() = BLOCKS_IF_FASTER;
    snprintf(name, sizeof name, "random statements on %d %s", ranks, what);
    tap_point(name);
    for (int64_t i = 0; i < count; i++) {
        grid_products()->forced = i % 3 == 1;
        run_nested(g, seed + (uint64_t)i);
    }
    grid_products()->forced = false;
    snprintf(name, sizeof name, "lists of nested formulas on %d %s", ranks, what);
    tap_point(name);
    for (int64_t i = 0; i < count; i++) run_training(g, seed + (uint64_t)i, ranks > 1 && strstr(what, "GPU"));
    snprintf(name, sizeof name, "training on %d %s", ranks, what);
    tap_point(name);
    all_along(g, seed);
    snprintf(name, sizeof name, "long operators along the split axis on %d %s", ranks, what);
    tap_point(name);
    all_blocks(g, count / 2, seed, !strcmp(what, "GPUs"));
    snprintf(name, sizeof name, "reductions by blocks on %d %s", ranks, what);
    tap_point(name);
    lookups(g, seed, !strcmp(what, "GPUs"));
    snprintf(name, sizeof name, "take and einsum on %d %s", ranks, what);
    tap_point(name);
    for (int64_t i = 0; i < count; i++) run_fused(g, seed + (uint64_t)i);
    fused_without_gathers(g, DUET_F32);
    fused_without_gathers(g, DUET_I32);
    fused_deeply(g);
    snprintf(name, sizeof name, "sums of products on %d %s", ranks, what);
    tap_point(name);
    all_buckets(g, count, seed);
    snprintf(name, sizeof name, "sums that share an exchange on %d %s", ranks, what);
    tap_point(name);
    for (int64_t i = 0; i < count; i++) run_grid(g, seed + (uint64_t)i);
    snprintf(name, sizeof name, "products in blocks on %d %s", ranks, what);
    tap_point(name);
    all_random(g, count, seed);
    random_locality(g);
    snprintf(name, sizeof name, "random numbers on %d %s", ranks, what);
    tap_point(name);
    char folder[] = "/tmp/duet-group-XXXXXX";
    if (CHECK(mkdtemp(folder) != NULL, "no folder")) all_files(g, folder, count, seed);
    remove_folder(folder);
    snprintf(name, sizeof name, "files of %d %s", ranks, what);
    tap_point(name);
    traffic_of(g);
    traffic_of_vectors(g);
    grid_traffic_of(g);
    if (ranks == 2) order_of_sums(g);
    snprintf(name, sizeof name, "bytes sent by %d %s", ranks, what);
    tap_point(name);
    duet_group_free(&g);
}

static int gpu_count(void)
{
    duet_group *g = duet_group_local(0);
    const int ranks = duet_group_ranks(g);
    char text[200] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    duet_group_info(out, g);
    fclose(out);
    duet_group_free(&g);
    return strstr(text, "GPU") ? ranks : 0;
}

int main(int argc, char **argv)
{
    static const int ranks[] = { 1, 2, 3, 4, 6, 8 };
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const int count = trial_count(argc, argv, 60, 300);
#ifdef FAKE_CUDA
    fake_devices(8);
#endif
    const int gpus = gpu_count();
    for (int i = 0; i < 6; i++)
        if (ranks[i] <= gpus) all_cases(ranks[i], count, seed, "GPUs");
#ifndef FAKE_CUDA
    DUET_ON(DUET_CPU)
    {
        for (int i = 0; i < 6; i++) all_cases(ranks[i], count, seed, "parts of the CPU");
    }
#endif
    return tap_end();
}
