/* group_fused.h - sums of products that are distributed in different ways. x*y + z is rounded once, as for
 * ordinary matrices. */
#ifndef GROUP_FUSED_H
#define GROUP_FUSED_H

#include "group_along.h"

enum { FUSED_MATRICES = 6, FUSED_ROWS = 12, FUSED_COLUMNS = 24 };

typedef struct fused {
    duet_dtype type;
    duet_matrix *plain[FUSED_MATRICES], *grouped[FUSED_MATRICES]; /* the last two have one row */
} fused;

static duet_expr fused_leaf(rng *r, const fused *s, bool grouped)
{
    const int64_t k = rng_below(r, FUSED_MATRICES);
    return duet_of_matrix(grouped ? s->grouped[k] : s->plain[k]);
}

/* A formula of FUSED_ROWS x FUSED_COLUMNS, or of one row. */
static duet_expr fused_formula(rng *r, const fused *s, bool grouped, int depth)
{
    if (!depth) return fused_leaf(r, s, grouped);
    const int what = (int)rng_below(r, 16);
    const double number = rng_chance(r, 50) ? 1 : rng_real(r, -2, 2);
    const duet_expr x = fused_formula(r, s, grouped, depth - 1);
    switch (what) {
    case 0:
    case 1:
    case 2: return duet_mul(x, fused_formula(r, s, grouped, depth - 1));
    case 3:
    case 4:
    case 5: return duet_add(x, fused_formula(r, s, grouped, depth - 1));
    case 6:
    case 7: return duet_sub(x, fused_formula(r, s, grouped, depth - 1));
    case 8: return duet_transpose(duet_transpose(duet_mul(x, fused_leaf(r, s, grouped))));
    case 9: { /* reshaped, and back */
        const int64_t rows = duet_expr_size(x, 0);
        return duet_reshape(duet_reshape(x, rows * 4, FUSED_COLUMNS / 4), rows, FUSED_COLUMNS);
    }
    case 10: return duet_mul(number, x);
    case 11: return duet_div(x, 4);
    case 12: return duet_neg(x);
    case 13: return duet_sub(x, duet_mul(number, fused_leaf(r, s, grouped)));
    case 14: return duet_flip(x, 1);
    default: return duet_relu(x);
    }
}

static duet_matrix *fused_matrix(rng *r, duet_group *g, duet_dtype type, int64_t rows)
{
    const int64_t size[] = { rows, FUSED_COLUMNS };
    const int axis = rows == 1 ? 1 : (int)rng_below(r, 2);
    return rng_chance(r, 15) ? duet_new_replicated_shape(g, type, 2, size)
                             : duet_new_split_shape(g, type, axis, 2, size);
}

static void run_fused(duet_group *g, uint64_t seed)
{
    rng r = rng_new(seed * 77 + 5);
    fused s = { .type = rng_chance(&r, 50) ? DUET_F32 : DUET_F64 };
    bool ok = true;
    for (int k = 0; k < FUSED_MATRICES; k++) {
        const int64_t rows = k < FUSED_MATRICES - 2 ? FUSED_ROWS : 1;
        s.plain[k] = duet_new(s.type, rows, FUSED_COLUMNS);
        s.grouped[k] = fused_matrix(&r, g, s.type, rows);
        ok &= s.plain[k] && s.grouped[k] &&
              duet_random_uniform(s.plain[k], seed + (uint64_t)k, -1, 1) == DUET_OK &&
              duet_set(s.grouped[k], s.plain[k]) == DUET_OK;
    }
    duet_matrix *to = fused_matrix(&r, g, s.type, FUSED_ROWS),
                *wanted = duet_new(s.type, FUSED_ROWS, FUSED_COLUMNS);
    rng again = r;
    if (CHECK(ok && to && wanted, "%s", duet_error())) {
        const duet_status a = duet_set(to, fused_formula(&r, &s, true, 4)),
                          b = duet_set(wanted, fused_formula(&again, &s, false, 4));
        CHECK(a == DUET_OK && b == DUET_OK && along_same(to, wanted), "a sum of products differs, seed %llu: %s",
              (unsigned long long)seed, duet_error());
    }
    for (int k = 0; k < FUSED_MATRICES; k++) duet_free(&s.plain[k], &s.grouped[k]);
    duet_free(&to, &wanted);
}

#endif
