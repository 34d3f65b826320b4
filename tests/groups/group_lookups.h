/* group_lookups.h - take along the split axis, einsum, and sums of partial results of small integers. */
#ifndef GROUP_LOOKUPS_H
#define GROUP_LOOKUPS_H

#include "group_along.h"

/* A matrix of the group with these elements: split along an axis, or replicated for -1. */
static duet_matrix *on_group(duet_group *g, const duet_matrix *m, int axis)
{
    int64_t size[DUET_RANK_MAX] = { 0 };
    const int rank = duet_rank(m);
    for (int a = 0; a < rank; a++) size[a] = duet_size(m, a);
    duet_matrix *x = axis < 0 ? duet_new_replicated_shape(g, duet_type(m), rank, size)
                              : duet_new_split_shape(g, duet_type(m), axis, rank, size);
    CHECK(x && duet_set(x, m) == DUET_OK, "%s", duet_error());
    return x;
}

/* The destination is split along an axis; -1: replicated, -2: new. The operands must not be gathered. */
static duet_matrix *evaluated(duet_group *g, duet_expr e, const duet_matrix *like, int axis)
{
    duet_matrix *m = axis < -1 || !like ? NULL : on_group(g, like, axis);
    duet_status s = m ? duet_set(m, 0) : DUET_OK;
    DUET_FORBID_TRANSFERS
    {
        if (!m) m = duet_eval(e);
        else if (s == DUET_OK) s = duet_set(m, e);
    }
    if (s != DUET_OK) duet_free(&m);
    return m;
}

static void same_bits(const char *what, uint64_t seed, duet_matrix *got, duet_matrix *wanted)
{
    CHECK(got && wanted && along_same(got, wanted), "%s, seed %llu: differs: %s", what,
          (unsigned long long)seed, duet_error());
    duet_free(&got, &wanted);
}

/* Takes few rows of a table, whose other axis has fewer or more elements than there are ranks.
 * fails: also tests an index that is out of bounds. On GPUs such a statement fails later. */
static void take_rows(duet_group *g, uint64_t seed, duet_dtype type, bool fails)
{
    rng r = rng_new(seed);
    along t = { .type = type, .seed = seed, .rank = 2, .values = SPECIAL };
    const int axis = (int)rng_below(&r, 2), rank = 1 + (int)rng_below(&r, 2);
    const int64_t n = 300 + rng_below(&r, 50), count[] = { 1 + rng_below(&r, 7), 1 + rng_below(&r, 4) };
    t.size[axis] = n;
    t.size[1 - axis] = 1 + rng_below(&r, 9);
    duet_matrix *table = along_operand(&t), *index = duet_new_shape(DUET_I64, rank, count);
    int64_t *p = duet_overwrite(index);
    for (int64_t i = 0; p && i < duet_count(index); i++) p[i] = rng_below(&r, 2 * n) - n;
    duet_matrix *x = on_group(g, table, axis), *at = on_group(g, index, (int)rng_below(&r, rank + 1) - 1);
    duet_matrix *wanted = duet_eval(duet_take(table, index, axis));
    const int to = (int)rng_below(&r, 3 + rank) - 2;
    same_bits("take", seed, evaluated(g, duet_take(x, at, axis), wanted, to), wanted);
    if (!is_integer(type)) {
        wanted = duet_eval(duet_mul(duet_take(duet_mul(table, 1.5), index, axis), 1.1));
        same_bits("take of a formula", seed,
                  evaluated(g, duet_mul(duet_take(duet_mul(x, 1.5), at, axis), 1.1), wanted, to), wanted);
    }
    if (fails) {
        int64_t *bad = duet_update(at);
        if (bad) bad[0] = rng_chance(&r, 50) ? n : -n - 1;
        duet_matrix *none = duet_eval(duet_take(x, at, axis));
        CHECK(none == NULL, "take, seed %llu: the index is out of bounds", (unsigned long long)seed);
        duet_free(&none);
    }
    duet_free(&table, &index, &x, &at);
}

static duet_matrix *small_integers(rng *r, duet_dtype type, int rank, const int64_t *size)
{
    duet_matrix *f = duet_new_shape(DUET_F64, rank, size), *m = duet_new_shape(type, rank, size);
    double *p = duet_overwrite(f);
    for (int64_t i = 0; p && i < duet_count(f); i++)
        p[i] = (double)rng_below(r, 9) - (type == DUET_U16 ? 0 : 4);
    CHECK(m && duet_set(m, duet_cast(f, type)) == DUET_OK, "%s", duet_error());
    duet_free(&f);
    return m;
}

/* The library that multiplies depends on the sizes: it may add the products to 0, which becomes 0 where a
 * product alone is -0. */
static duet_matrix *no_negative_zeros(duet_matrix *m)
{
    if (!m || is_integer(duet_type(m))) return m;
    duet_matrix *sum = duet_eval(duet_add(m, 0));
    duet_free(&m);
    return sum;
}

/* Sums of small integers are exact in all types, in any order. */
static void einsum_of(duet_group *g, uint64_t seed, duet_dtype type)
{
    static const char *const texts[] = { "bij,bjk->bik", "ij,kj->ki", "bi,bi->b", "abc,cb->a", "ij,k->kji" };
    static const int64_t sizes[][2][3] = { { { 5, 60, 40 }, { 5, 40, 9 } },
                                           { { 30, 500 }, { 20, 500 } },
                                           { { 90, 40 }, { 90, 40 } },
                                           { { 9, 30, 50 }, { 50, 30 } },
                                           { { 40, 30 }, { 20 } } };
    static const int ranks[][2] = { { 3, 3 }, { 2, 2 }, { 2, 2 }, { 3, 2 }, { 2, 1 } };
    rng r = rng_new(seed);
    const int k = (int)rng_below(&r, 5);
    duet_matrix *x = small_integers(&r, type, ranks[k][0], sizes[k][0]),
                *y = small_integers(&r, type, ranks[k][1], sizes[k][1]);
    duet_matrix *gx = on_group(g, x, (int)rng_below(&r, ranks[k][0] + 1) - 1),
                *gy = on_group(g, y, (int)rng_below(&r, ranks[k][1] + 1) - 1);
    duet_matrix *wanted = duet_eval(duet_einsum(x, y, texts[k]));
    const int to = (int)rng_below(&r, 3) - 2;
    duet_matrix *got = to < -1  ? duet_eval(duet_einsum(gx, gy, texts[k]))
                       : wanted ? on_group(g, wanted, to)
                                : NULL;
    if (to >= -1)
        CHECK(got && !duet_set(got, 0) && !duet_set(got, duet_einsum(gx, gy, texts[k])), "%s", duet_error());
    same_bits(texts[k], seed, no_negative_zeros(got), no_negative_zeros(wanted));
    duet_free(&x, &y, &gx, &gy);
}

static void product_of_small(duet_group *g, uint64_t seed, duet_dtype type)
{
    rng r = rng_new(seed);
    duet_matrix *x = small_integers(&r, type, 2, (int64_t[]){ 4, 3000 }),
                *y = small_integers(&r, type, 2, (int64_t[]){ 3000, 5 });
    duet_matrix *gx = on_group(g, x, 1), *gy = on_group(g, y, 0), *wanted = duet_eval(duet_matmul(x, y));
    same_bits("product of small integers", seed,
              evaluated(g, duet_matmul(gx, gy), wanted, (int)rng_below(&r, 4) - 2), wanted);
    duet_free(&x, &y, &gx, &gy);
}

static void lookups(duet_group *g, uint64_t seed, bool on_gpus)
{
    static const duet_dtype added[] = {
        DUET_I8, DUET_U16, DUET_BOOL, DUET_I32, DUET_F32, DUET_F64, DUET_F16
    };
    for (uint64_t turn = 0; turn < 4; turn++)
        for (duet_dtype type = 0; type < DUET_DTYPE_COUNT; type++)
            take_rows(g, seed + 20 * turn + type, type, !on_gpus);
    for (uint64_t turn = 0; turn < 56; turn++) einsum_of(g, seed + turn, added[turn % 7]);
    for (uint64_t turn = 0; turn < 7; turn++) product_of_small(g, seed + turn, added[turn % 7]);
}

#endif
