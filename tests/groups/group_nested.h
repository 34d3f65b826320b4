/* group_nested.h - random nested formulas of small square matrices, in lists of statements. Ranks have parts
 * of different sizes, some of them empty, and must run the same collective steps in the same order. */
#ifndef GROUP_NESTED_H
#define GROUP_NESTED_H

#include "group_cases.h"

enum { NESTED_MATRICES = 8, NESTED_STATEMENTS = 4 };

/* The same matrices on a group and as ordinary ones. */
typedef struct nested {
    int64_t n;
    pair m[NESTED_MATRICES];
} nested;

static duet_expr nested_leaf(rng *r, const nested *s, bool grouped)
{
    const pair *p = &s->m[rng_below(r, NESTED_MATRICES)];
    return duet_of_matrix(grouped ? p->grouped : p->plain);
}

static duet_expr nested_formula(rng *r, const nested *s, bool grouped, int depth)
{
    if (!depth || rng_chance(r, 15)) return nested_leaf(r, s, grouped);
    const int what = (int)rng_below(r, 12), axis = (int)rng_below(r, 2);
    const int64_t from = rng_below(r, s->n);
    const duet_expr x = nested_formula(r, s, grouped, depth - 1);
    switch (what) {
    case 0: return duet_transpose(x);
    case 1: return duet_cumsum(x, axis);
    case 2: return duet_sort(x, axis);
    case 3: return duet_softmax(x);
    case 4: return duet_mul(duet_range(x, axis, from, from + 1, 1), nested_formula(r, s, grouped, depth - 1));
    case 5: return duet_sub(x, duet_sum_keep(x, axis));
    case 6: return duet_sub(x, duet_mul(duet_mean(x), 0.5));
    case 7: return duet_add(x, duet_max_axis(nested_formula(r, s, grouped, depth - 1), axis));
    case 8: return duet_mul(duet_matmul(x, nested_formula(r, s, grouped, depth - 1)), 0.1);
    case 9: return duet_maximum(x, nested_formula(r, s, grouped, depth - 1));
    default: return duet_sub(x, duet_mul(nested_formula(r, s, grouped, depth - 1), 0.5));
    }
}

static bool are_close(const nested *s, const pair *p)
{
    const float *a = duet_read(p->grouped), *b = duet_read(p->plain);
    double most = 1;
    if (!a || !b) return false;
    for (int64_t i = 0; i < s->n * s->n; i++)
        if (isfinite(b[i])) most = fmax(most, fabs((double)b[i]));
    for (int64_t i = 0; i < s->n * s->n; i++) {
        if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))) continue;
        if (!(fabs((double)a[i] - b[i]) <= 1e-3 * most)) return false;
    }
    return true;
}

static void open_nested(rng *r, duet_group *g, nested *s)
{
    s->n = 1 + rng_below(r, 6);
    for (int k = 0; k < NESTED_MATRICES; k++) {
        const int64_t size[] = { s->n, s->n };
        const int how = k % 4;
        duet_matrix *grouped = how == 3   ? duet_new_shape(DUET_F32, 2, size)
                               : how == 2 ? duet_new_replicated_shape(g, DUET_F32, 2, size)
                                          : duet_new_split_shape(g, DUET_F32, how, 2, size);
        s->m[k] = (pair){ grouped, duet_new_shape(DUET_F32, 2, size), NULL, NULL };
        if (CHECK(grouped && s->m[k].plain, "%s", duet_error())) fill_both(r, &s->m[k]);
    }
}

/* Runs a list of random statements. */
static duet_status run_list(rng r, const nested *s, bool grouped)
{
    duet_assignment list[NESTED_STATEMENTS];
    const int count = 1 + (int)rng_below(&r, NESTED_STATEMENTS);
    for (int k = 0; k < count; k++) {
        const pair *to = &s->m[rng_below(&r, NESTED_MATRICES)];
        list[k] = (duet_assignment){ grouped ? to->grouped : to->plain, nested_formula(&r, s, grouped, 3) };
    }
    return (duet_set_all)(list, count);
}

/* The same list in a recording, and replayed once. */
static duet_status replay_list(rng r, const nested *s)
{
    duet_status ran = duet_record_begin();
    if (ran == DUET_OK) ran = run_list(r, s, true);
    duet_recording *recording = duet_record_end();
    if (ran == DUET_OK) ran = duet_replay(recording);
    duet_recording_free(&recording);
    return ran;
}

static void run_nested(duet_group *g, uint64_t seed)
{
    rng r = rng_new(seed);
    nested s;
    open_nested(&r, g, &s);
    const int runs = seed % 3 ? 1 : 2;
    duet_status wanted = DUET_OK, got = runs == 2 ? replay_list(r, &s) : run_list(r, &s, true);
    for (int k = 0; k < runs && wanted == DUET_OK; k++) wanted = run_list(r, &s, false);
    CHECK(wanted == got, "seed %llu: status %d, not %d: %s", (unsigned long long)seed, got, wanted,
          duet_error());
    for (int k = 0; k < NESTED_MATRICES && got == DUET_OK; k++)
        CHECK(are_close(&s, &s.m[k]), "seed %llu: matrix %d differs", (unsigned long long)seed, k);
    for (int k = 0; k < NESTED_MATRICES; k++) free_pair(&s.m[k]);
}

#endif
