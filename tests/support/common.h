/* common.h - functions that many test programs use: the available machines, the amount of work (quick.h),
 * and sizes. */
#ifndef COMMON_H
#define COMMON_H

#include "oracle.h"
#include "quick.h"
#include "random_matrix.h"
#include "tap.h"
#include <stdlib.h>
#include <string.h>

/* Lists the places where a statement can run: the CPU, and the GPU if there is one, real or fake. */
static inline int list_places(duet_place place[2])
{
    duet_matrix *m = duet_new(DUET_F32, 1);
    place[0] = DUET_CPU;
    place[1] = DUET_GPU;
    const bool gpu = duet_set_on(DUET_GPU, m, 1) == DUET_OK;
    printf("# the GPU: %s\n", gpu ? "is there" : duet_error());
    duet_free(&m);
    if (gpu) return 2;
    return 1;
}

static inline const char *place_name(duet_place p)
{
    if (p == DUET_GPU) return "GPU";
    if (p == DUET_CPU) return "CPU";
    return "auto";
}
static inline const char *type_name(duet_dtype t) { return t == DUET_F32 ? "f32" : "f64"; }

/* Drops a formula that no statement uses. */
static inline void forget(duet_expr e)
{
    duet_status s = duet_drop(e);
    (void)s;
}

/* A short notation for sizes: SHAPE(2, 3). */
typedef struct sizes {
    int rank;
    int64_t size[DUET_RANK_MAX];
} sizes;
#define RANK_OF(...) ((int)(sizeof((int64_t[]){ 0, ##__VA_ARGS__ }) / sizeof(int64_t)) - 1)
#define SIZES(...)                                                                                           \
    {                                                                                                        \
        RANK_OF(__VA_ARGS__), { __VA_ARGS__ }                                                                \
    }

static inline sizes sizes_of_expr(duet_expr e)
{
    sizes s = { .rank = duet_expr_rank(e) };
    for (int d = 0; d < s.rank; d++) s.size[d] = duet_expr_size(e, d);
    return s;
}

#endif
