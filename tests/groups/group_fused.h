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
    const bool is_complex = s->type == DUET_C64 || s->type == DUET_C128;
    const int what = (int)rng_below(r, 24);
    const double number = rng_chance(r, 50) ? 1 : rng_real(r, -2, 2);
    const duet_expr x = fused_formula(r, s, grouped, depth - 1);
    const int64_t rows = duet_expr_size(x, 0);
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
    case 9: return duet_reshape(duet_reshape(x, rows * 4, FUSED_COLUMNS / 4), rows, FUSED_COLUMNS);
    case 10: return duet_mul(number, x);
    case 11: return duet_div(x, 4);
    case 12: return duet_neg(x);
    case 13: return duet_sub(x, duet_mul(number, fused_leaf(r, s, grouped)));
    case 14: return duet_flip(x, (int)rng_below(r, 2));
    case 15: return duet_sub(duet_mul(x, x), fused_leaf(r, s, grouped));
    case 16: return duet_checkpoint(x);
    case 17: return duet_range(x, 0, rows - 1, rows, 1);
    case 18: return duet_permute(duet_permute(x, 1, 0), 1, 0);
    case 19: return duet_broadcast(duet_mul(x, fused_leaf(r, s, grouped)), FUSED_ROWS, FUSED_COLUMNS);
    case 20: return is_complex ? duet_mul(duet_real(x), fused_leaf(r, s, grouped)) : duet_minimum(x, number);
    case 21:
        return is_complex ? duet_complex(duet_imag(x), duet_mul(2.5, duet_real(x))) : duet_maximum(x, -1);
    case 22: return is_complex ? duet_conj(x) : duet_abs(x);
    default: return is_complex ? duet_sin(x) : duet_relu(x);
    }
}

static duet_matrix *fused_matrix(rng *r, duet_group *g, duet_dtype type, int64_t rows)
{
    const int64_t size[] = { rows, FUSED_COLUMNS };
    const int axis = rows == 1 ? 1 : (int)rng_below(r, 2);
    return rng_chance(r, 15) ? duet_new_replicated_shape(g, type, 2, size)
                             : duet_new_split_shape(g, type, axis, 2, size);
}

static duet_status fill_fused(duet_matrix *m, uint64_t seed)
{
    const bool is_complex = duet_type(m) == DUET_C64 || duet_type(m) == DUET_C128;
    duet_matrix *x = duet_new(DUET_F64, FUSED_COLUMNS * 2);
    duet_status s = x ? duet_random_uniform(x, seed, -1, 1) : DUET_NO_MEMORY;
    duet_expr row = duet_range(x, 0, 0, FUSED_COLUMNS, 1);
    if (is_complex) row = duet_complex(row, duet_range(x, 0, FUSED_COLUMNS, 2 * FUSED_COLUMNS, 1));
    duet_matrix *rows = duet_new(DUET_F64, duet_size(m, 0), 1);
    if (s == DUET_OK) s = rows ? duet_random_uniform(rows, seed + 50, -1, 1) : DUET_NO_MEMORY;
    if (s == DUET_OK) s = duet_set(m, duet_cast(duet_sub(row, rows), duet_type(m)));
    duet_free(&x, &rows);
    return s;
}

static void run_fused(duet_group *g, uint64_t seed)
{
    rng r = rng_new(seed * 77 + 5);
    static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_F16, DUET_C64, DUET_C128 };
    fused s = { .type = types[rng_below(&r, 5)] };
    bool ok = true;
    for (int k = 0; k < FUSED_MATRICES; k++) {
        const int64_t rows = k < FUSED_MATRICES - 2 ? FUSED_ROWS : 1;
        s.plain[k] = duet_new(s.type, rows, FUSED_COLUMNS);
        s.grouped[k] = fused_matrix(&r, g, s.type, rows);
        ok &= s.plain[k] && s.grouped[k] && fill_fused(s.plain[k], seed + (uint64_t)k) == DUET_OK &&
              duet_set(s.grouped[k], s.plain[k]) == DUET_OK;
    }
    duet_matrix *to = fused_matrix(&r, g, s.type, FUSED_ROWS),
                *wanted = duet_new(s.type, FUSED_ROWS, FUSED_COLUMNS);
    rng again = r;
    if (CHECK(ok && to && wanted, "%s", duet_error())) {
        const duet_status a = duet_set(to, fused_formula(&r, &s, true, 4)),
                          b = duet_set(wanted, fused_formula(&again, &s, false, 4));
        CHECK(a == b && (a != DUET_OK || along_same(to, wanted)), "a sum of products differs, seed %llu: %s",
              (unsigned long long)seed, duet_error());
    }
    for (int k = 0; k < FUSED_MATRICES; k++) duet_free(&s.plain[k], &s.grouped[k]);
    duet_free(&to, &wanted);
}

/* Sums of products in different distributions do not gather. */
static void fused_without_gathers(duet_group *g, duet_dtype type)
{
    const int64_t size[] = { 40, 48 };
    duet_matrix *x = duet_new_split_shape(g, type, 0, 2, size),
                *y = duet_new_split_shape(g, type, 1, 2, size),
                *z = duet_new_split_shape(g, type, 0, 2, size),
                *to = duet_new_split_shape(g, type, 1, 2, size);
    if (CHECK(x && y && z && to, "%s", duet_error())) {
        duet_status s = duet_set(x, 2);
        if (s == DUET_OK) s = duet_set(y, 3);
        if (s == DUET_OK) s = duet_set(z, 4);
        DUET_FORBID_TRANSFERS
        {
            if (s == DUET_OK) s = duet_set(to, duet_add(duet_mul(3, x), duet_mul(5, y)));
            if (s == DUET_OK) s = duet_set(x, duet_sub(duet_mul(x, y), duet_mul(y, z)));
            if (s == DUET_OK) s = duet_set(x, duet_add(x, duet_range(duet_mul(x, z), 0, 3, 4, 1)));
            if (s == DUET_OK) s = duet_set(to, duet_add(y, duet_transpose(duet_transpose(duet_mul(x, z)))));
        }
        CHECK(s == DUET_OK, "type %d: %s", (int)type, duet_error());
    }
    duet_free(&x, &y, &z, &to);
}

static duet_expr deep_squares(const duet_matrix *x)
{
    duet_expr e = duet_of_matrix(x);
    for (int k = 0; k < 40; k++) e = duet_add(duet_mul(e, e), x);
    return e;
}

/* Each value is used twice, so there are 2^40 paths through the formula. */
static void fused_deeply(duet_group *g)
{
    const int64_t size[] = { 24, 24 };
    duet_matrix *x = duet_new_shape(DUET_C128, 2, size), *y = duet_new_shape(DUET_C128, 2, size),
                *gx = duet_new_split_shape(g, DUET_C128, 0, 2, size),
                *gy = duet_new_split_shape(g, DUET_C128, 1, 2, size);
    duet_status s = x && y && gx && gy ? fill_fused(x, 1) : DUET_NO_MEMORY;
    if (s == DUET_OK) s = fill_fused(y, 2);
    if (s == DUET_OK) s = duet_set(x, duet_mul(0.1, x));
    if (s == DUET_OK) s = duet_set(y, duet_mul(0.1, y));
    if (s == DUET_OK) s = duet_set(gx, x);
    if (s == DUET_OK) s = duet_set(gy, y);
    if (s == DUET_OK) s = duet_set(gx, duet_sub(deep_squares(gx), deep_squares(gy)));
    if (s == DUET_OK) s = duet_set(x, duet_sub(deep_squares(x), deep_squares(y)));
    CHECK(s == DUET_OK && along_same(gx, x), "deep squares: %s", duet_error());
    duet_free(&x, &y, &gx, &gy);
}

#endif
