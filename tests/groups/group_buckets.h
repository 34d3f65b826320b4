/* group_buckets.h - lists of statements whose small sums share an exchange. The elements are small
 * integers, so sums have the same bits in any order. */
#ifndef GROUP_BUCKETS_H
#define GROUP_BUCKETS_H

#include "bucket_policy.h"
#include "group_along.h"

enum { BUCKET_STATEMENTS = 30 };

typedef struct bucket_list {
    int count;
    duet_dtype type[BUCKET_STATEMENTS];
    duet_matrix *x[BUCKET_STATEMENTS], *y[BUCKET_STATEMENTS], *to[BUCKET_STATEMENTS];    /* on the group */
    duet_matrix *xs[BUCKET_STATEMENTS], *ys[BUCKET_STATEMENTS], *tos[BUCKET_STATEMENTS]; /* ordinary */
} bucket_list;

/* The value of statement k. Some need the value of an earlier one. */
static duet_expr bucket_formula(rng *r, const bucket_list *l, int k, bool grouped)
{
    duet_matrix *const *x = grouped ? l->x : l->xs, *const *y = grouped ? l->y : l->ys;
    const duet_expr product = duet_matmul(duet_transpose(x[k]), y[k]);
    switch (rng_below(r, 9)) {
    case 0:
    case 1: return product;
    case 2: return duet_add(product, duet_sum(x[k]));
    case 3: return duet_add(product, duet_reshape(duet_sum_axis(x[k], 0), -1, 1));
    case 4: /* with more rows, the sum would not be exact */
        if (duet_size(x[k], 0) > 1000) return duet_mul(product, 3);
        return duet_add(product, duet_matmul(duet_transpose(duet_sub(x[k], duet_sum_axis(x[k], 0))), y[k]));
    case 5:
    case 6: return duet_sub(product, duet_cast(duet_mean(duet_cast(x[k], DUET_F64)), l->type[k]));
    case 7: return duet_add(product, duet_cast(duet_max(x[k]), l->type[k]));
    default: return duet_add(duet_mul(product, 2), duet_reshape(duet_dot(x[k], x[k]), 1, 1));
    }
}

static duet_status fill_small(rng *r, duet_matrix *grouped, duet_matrix *ordinary)
{
    const uint64_t seed = rng_below(r, 1000);
    duet_matrix *u = duet_new(DUET_F32, duet_size(ordinary, 0), duet_size(ordinary, 1));
    duet_status s = u ? duet_random_uniform(u, seed, -1.49f, 1.49f) : DUET_NO_MEMORY;
    if (s == DUET_OK) s = duet_set(ordinary, duet_cast(duet_abs(duet_round(u)), duet_type(ordinary)));
    if (s == DUET_OK) s = duet_set(grouped, ordinary);
    duet_free(&u);
    return s;
}

static bool open_bucket_list(rng *r, duet_group *g, bucket_list *l)
{
    static const duet_dtype types[] = { DUET_F32, DUET_F32, DUET_F64, DUET_I32, DUET_I64, DUET_I8, DUET_F16 };
    const bool one_type = rng_chance(r, 20), is_long = rng_chance(r, 25);
    const int most = is_long ? 4 : one_type || rng_chance(r, 20) ? BUCKET_STATEMENTS : 10;
    *l = (bucket_list){ .count = 1 + (int)rng_below(r, most) };
    for (int k = 0; k < l->count; k++) {
        /* So many rows that reductions of floats exchange partial results. */
        const int64_t few = 1 + rng_below(r, 40), many = 4096 * duet_group_ranks(g) + rng_below(r, 9000),
                      rows = is_long ? many : few, m = 1 + rng_below(r, 9), n = 1 + rng_below(r, 9);
        const duet_dtype t = l->type[k] = one_type ? DUET_F32 : types[rng_below(r, 7)];
        l->x[k] = duet_new_split(g, t, 0, rows, m);
        l->y[k] = duet_new_split(g, t, 0, rows, n);
        l->to[k] = rng_chance(r, 85) ? duet_new_replicated(g, t, m, n) : duet_new_split(g, t, 0, m, n);
        l->xs[k] = duet_new(t, rows, m);
        l->ys[k] = duet_new(t, rows, n);
        l->tos[k] = duet_new(t, m, n);
        if (!l->x[k] || !l->y[k] || !l->to[k] || !l->xs[k] || !l->ys[k] || !l->tos[k] ||
            fill_small(r, l->x[k], l->xs[k]) != DUET_OK || fill_small(r, l->y[k], l->ys[k]) != DUET_OK)
            return false;
    }
    return true;
}

static duet_status set_bucket_list(rng r, const bucket_list *l, bool grouped)
{
    duet_assignment a[BUCKET_STATEMENTS];
    for (int k = 0; k < l->count; k++)
        a[k] = (duet_assignment){ grouped ? l->to[k] : l->tos[k],
                                  duet_cast(bucket_formula(&r, l, k, grouped), l->type[k]) };
    return (duet_set_all)(a, l->count);
}

static void compare_bucket_list(const bucket_list *l, uint64_t seed, const char *how)
{
    for (int k = 0; k < l->count; k++)
        CHECK(along_same(l->to[k], l->tos[k]), "%s: statement %d of a list differs, type %d, seed %llu", how,
              k, (int)l->type[k], (unsigned long long)seed);
}

static void replay_bucket_list(rng *r, const bucket_list *l, uint64_t seed)
{
    duet_status s = duet_record_begin();
    if (s == DUET_OK) s = set_bucket_list(*r, l, true);
    duet_recording *all = duet_record_end();
    if (!CHECK(all && s == DUET_OK, "seed %llu: %s", (unsigned long long)seed, duet_error())) return;
    rng other = *r;
    for (int k = 0; k < l->count; k++) s = s == DUET_OK ? fill_small(&other, l->x[k], l->xs[k]) : s;
    if (s == DUET_OK) s = set_bucket_list(*r, l, false);
    if (s == DUET_OK) s = duet_replay(all);
    if (CHECK(s == DUET_OK, "seed %llu: %s", (unsigned long long)seed, duet_error()))
        compare_bucket_list(l, seed, "replayed");
    duet_recording_free(&all);
}

static void run_buckets(duet_group *g, uint64_t seed)
{
    rng r = rng_new(seed * 31 + 7);
    const bucket_limits before = *bucket_limits_now();
    bucket_list l;
    static const double bytes[] = { 0, 100, 400, 1e9 };
    for (int k = 0; k < 2; k++) {
        bucket_limits_now()->array[k] = bytes[rng_below(&r, 4)];
        bucket_limits_now()->all[k] = bytes[rng_below(&r, 4)];
    }
    if (CHECK(open_bucket_list(&r, g, &l), "%s", duet_error())) {
        const duet_status a = set_bucket_list(r, &l, true), b = set_bucket_list(r, &l, false);
        if (CHECK(a == DUET_OK && b == DUET_OK, "seed %llu: %s", (unsigned long long)seed, duet_error()))
            compare_bucket_list(&l, seed, "set");
        if (a == DUET_OK && rng_chance(&r, 30)) replay_bucket_list(&r, &l, seed);
    }
    for (int k = 0; k < l.count; k++) duet_free(&l.x[k], &l.y[k], &l.to[k], &l.xs[k], &l.ys[k], &l.tos[k]);
    *bucket_limits_now() = before;
}

/* The products of several layers are added in one step, and their sums gathered in another. The sums have the
 * bits of ordinary matrices; the products do not. */
static void buckets_exchange_once(duet_group *g)
{
    enum { LAYERS = 5 };
    duet_matrix *x[LAYERS], *w[LAYERS], *b[LAYERS], *ordinary[LAYERS], *wanted[LAYERS];
    duet_assignment a[2 * LAYERS];
    bool ok = true;
    const int ranks = duet_group_ranks(g);
    for (int k = 0; k < LAYERS; k++) {
        const int64_t rows = 4096 * ranks, columns = 5 + k; /* a block on each rank */
        x[k] = duet_new_split(g, DUET_F32, 0, rows, columns);
        w[k] = duet_new_replicated(g, DUET_F32, columns, columns);
        b[k] = duet_new_replicated(g, DUET_F32, columns);
        ordinary[k] = duet_new(DUET_F32, rows, columns);
        ok &= x[k] && w[k] && b[k] && ordinary[k] &&
              duet_random_uniform(ordinary[k], (uint64_t)k + 1, -1, 1) == DUET_OK &&
              duet_set(x[k], ordinary[k]) == DUET_OK;
        wanted[k] = ok ? duet_eval(duet_sum_axis(ordinary[k], 0)) : NULL;
        a[2 * k] = (duet_assignment){ w[k], duet_matmul(duet_transpose(x[k]), x[k]) };
        a[2 * k + 1] = (duet_assignment){ b[k], duet_sum_axis(x[k], 0) };
    }
    const uint64_t exchanges = duet_stats().exchanges;
    if (CHECK(ok && (duet_set_all)(a, 2 * LAYERS) == DUET_OK, "%s", duet_error())) {
        const uint64_t steps = duet_stats().exchanges - exchanges;
        CHECK(ranks == 1 || steps <= 2 * (uint64_t)ranks, "%d sums take %llu exchanges on %d ranks",
              2 * LAYERS, (unsigned long long)steps, ranks);
        for (int k = 0; k < LAYERS; k++)
            CHECK(wanted[k] && along_same(b[k], wanted[k]), "layer %d has a wrong sum", k);
    }
    for (int k = 0; k < LAYERS; k++) duet_free(&x[k], &w[k], &b[k], &ordinary[k], &wanted[k]);
}

/* Sums over no rows, and products without columns. */
static void buckets_of_nothing(duet_group *g)
{
    duet_matrix *x = duet_new_split(g, DUET_I32, 0, 0, 3), *y = duet_new_split(g, DUET_I32, 0, 0, 4),
                *u = duet_new_split(g, DUET_F32, 0, 6, 0), *v = duet_new_split(g, DUET_F32, 0, 6, 5),
                *a = duet_new_replicated(g, DUET_I64, 3), *b = duet_new_replicated(g, DUET_I64, 4),
                *c = duet_new_replicated(g, DUET_F32, 0, 5), *d = duet_new_replicated(g, DUET_F32, 5, 5);
    CHECK(duet_set(x, 1) == DUET_OK && duet_set(y, 1) == DUET_OK && duet_set(u, 1) == DUET_OK &&
              duet_set(v, 1) == DUET_OK && duet_set(a, 7) == DUET_OK && duet_set(b, 7) == DUET_OK,
          "%s", duet_error());
    CHECK(duet_set_all({ a, duet_sum_axis(x, 0) }, { b, duet_sum_axis(y, 0) },
                       { c, duet_matmul(duet_transpose(u), v) },
                       { d, duet_matmul(duet_transpose(v), v) }) == DUET_OK,
          "%s", duet_error());
    const int64_t *none = duet_read(a), *nothing = duet_read(b);
    const float *six = duet_read(d);
    CHECK(none && nothing && none[2] == 0 && nothing[3] == 0 && six && six[24] == 6, "sums of nothing");
    duet_free(&x, &y, &u, &v, &a, &b, &c, &d);
}

static void all_buckets(duet_group *g, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) run_buckets(g, seed + (uint64_t)i);
    buckets_exchange_once(g);
    buckets_of_nothing(g);
}

#endif
