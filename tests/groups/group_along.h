/* group_along.h - operators along the split axis of matrices that are too long to be gathered, with
 * elements of all types, also special ones, and parts of different sizes. They must have the bits of
 * ordinary matrices. */
#ifndef GROUP_ALONG_H
#define GROUP_ALONG_H

#include "group_cases.h"

/* ANY      random numbers of a wide range
 * NEAR     random numbers near 1
 * FEW      few different numbers, so many elements are equal
 * SPECIAL  zeros of both signs, infinities, NaN and few others
 * These are not drawn by along_case:
 * LARGE    in some places numbers whose squares overflow
 * BIG      numbers whose sums overflow
 * TINY     numbers whose squares underflow
 * MINUS    -0 */
enum along_values { ANY, NEAR, FEW, SPECIAL, ALONG_VALUES, LARGE, BIG, TINY, MINUS };

static double along_value(rng *r, enum along_values of)
{
    static const double special[] = { 0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 0.5 };
    if (of == SPECIAL) return special[rng_below(r, 8)];
    if (of == NEAR) return rng_real(r, 0.999, 1.001);
    if (of == MINUS) return -0.0;
    if (of == BIG || of == TINY) return rng_real(r, 1, 2);
    return of == FEW ? (double)rng_below(r, 5) - 2 : rng_real(r, -1e4, 1e4);
}

typedef struct along {
    const char *name;
    duet_group *g;
    uint64_t seed;
    duet_dtype type;
    int rank, axis; /* the axis is split */
    int64_t size[3];
    enum along_values values;
    bool part;    /* the operand is a range, so some ranks have no elements */
    bool gathers; /* it may be gathered */
} along;

typedef duet_expr along_formula(duet_expr x, int axis);

/* Numbers of this type whose squares overflow, whose sums do, and whose squares underflow. */
static double along_scale(enum along_values of, duet_dtype type)
{
    const bool is_double = type == DUET_F64 || type == DUET_C128, is_f16 = type == DUET_F16;
    if (of == LARGE) return is_f16 ? 1e4 : is_double ? 1e280 : 1e28;
    if (of == BIG) return is_f16 ? 3e4 : is_double ? 8e307 : 1.6e38;
    return of != TINY ? 1 : is_f16 ? 1e-4 : is_double ? 1e-180 : 1e-25;
}

static duet_matrix *along_operand(const along *t)
{
    rng r = rng_new(t->seed);
    duet_matrix *all = duet_new_shape(DUET_F64, t->rank, t->size),
                *m = duet_new_shape(t->type, t->rank, t->size);
    double *p = duet_overwrite(all);
    for (int64_t i = 0; p && i < duet_count(all); i++) p[i] = along_value(&r, t->values);
    const double scale = along_scale(t->values, t->type);
    for (int64_t i = 0; p && scale != 1 && i < duet_count(all); i++)
        if (t->values != LARGE || i / 5000 % 3 == 1) p[i] *= scale;
    CHECK(m && p && duet_set(m, duet_cast(all, t->type)) == DUET_OK, "%s", duet_error());
    duet_free(&all);
    return m;
}

static duet_expr along_part(const along *t, const duet_matrix *m)
{
    const int64_t n = t->size[t->axis];
    const duet_expr e = duet_of_matrix(m);
    return t->part ? duet_range(e, t->axis, n / 2, n - n / 7, 1) : e;
}

/* Bits may differ between NaNs. */
static bool along_same(const duet_matrix *a, const duet_matrix *b)
{
    const char *p = duet_read((duet_matrix *)a), *q = duet_read((duet_matrix *)b);
    const duet_dtype type = duet_type(b);
    const bool is_f32 = type == DUET_F32 || type == DUET_C64, is_f64 = type == DUET_F64 || type == DUET_C128;
    const size_t bytes = (size_t)duet_count(b) * element_bytes(type);
    if (!p || !q || duet_count(a) != duet_count(b) || duet_type(a) != type) return false;
    if (!memcmp(p, q, bytes)) return true;
    for (size_t i = 0; is_f32 && i < bytes / 4; i++) {
        const float x = ((const float *)p)[i], y = ((const float *)q)[i];
        if (memcmp(&x, &y, 4) && !(isnan(x) && isnan(y))) return false;
    }
    for (size_t i = 0; is_f64 && i < bytes / 8; i++) {
        const double x = ((const double *)p)[i], y = ((const double *)q)[i];
        if (memcmp(&x, &y, 8) && !(isnan(x) && isnan(y))) return false;
    }
    const unsigned infinity = type == DUET_F16 ? 0x7c00 : 0x7f80;
    const bool is_half = type == DUET_F16 || type == DUET_BF16;
    for (size_t i = 0; is_half && i < bytes / 2; i++) {
        const unsigned x = ((const uint16_t *)p)[i], y = ((const uint16_t *)q)[i];
        if (x != y && ((x & 0x7fff) <= infinity || (y & 0x7fff) <= infinity)) return false;
    }
    return is_f32 || is_f64 || is_half;
}

static duet_status along_run(const along *t, along_formula *f, const duet_matrix *x, const duet_matrix *like,
                             int to, duet_matrix **got)
{
    int64_t size[DUET_RANK_MAX] = { 0 };
    const int rank = like ? duet_rank(like) : 0;
    if (!like) return DUET_BAD_ARGUMENT;
    for (int a = 0; a < rank; a++) size[a] = duet_size(like, a);
    if (to == -2 || rank == 0) {
        *got = duet_eval(f(along_part(t, x), t->axis));
        return *got ? DUET_OK : DUET_BAD_ARGUMENT;
    }
    *got = to < 0 ? duet_new_replicated_shape(t->g, duet_type(like), rank, size)
                  : duet_new_split_shape(t->g, duet_type(like), to % rank, rank, size);
    return *got ? duet_set(*got, f(along_part(t, x), t->axis)) : DUET_BAD_ARGUMENT;
}

/* to: the split axis of the destination, -1 for a replicated one, -2 for a new matrix */
static void along_check(const along *t, along_formula *f, int to)
{
    duet_matrix *m = along_operand(t), *x = duet_new_split_shape(t->g, t->type, t->axis, t->rank, t->size);
    CHECK(x && duet_set(x, m) == DUET_OK, "%s", duet_error());
    duet_matrix *wanted = duet_eval(f(along_part(t, m), t->axis)), *got = NULL;
    duet_status s = DUET_OK;
    if (t->gathers) s = along_run(t, f, x, wanted, to, &got);
    else DUET_FORBID_TRANSFERS s = along_run(t, f, x, wanted, to, &got);
    CHECK(s == DUET_OK && wanted && got && along_same(got, wanted),
          "%s, type %d, axis %d of %lld x %lld x %lld, "
          "values %d, seed %llu: differs: %s",
          t->name, (int)t->type, t->axis, (long long)t->size[0], (long long)t->size[1], (long long)t->size[2],
          (int)t->values, (unsigned long long)t->seed, duet_error());
    duet_free(&m, &x, &wanted, &got);
}

#define ALONG(name, e)                                                                                       \
    static duet_expr along_##name(duet_expr x, int axis) { return e; }
ALONG(sort, duet_sort(x, axis))
ALONG(argsort, duet_argsort(x, axis))
ALONG(sorted_sums, duet_add(duet_sort(duet_add(x, x), axis), duet_sort(duet_sub(1, x), axis)))

ALONG(cumsum, duet_cumsum(x, axis))
ALONG(cumprod, duet_cumprod(x, axis))
ALONG(scans, duet_sub(duet_cumsum(duet_mul(x, 1.5), axis), duet_cumprod(duet_add(x, 0.5), axis)))
ALONG(sum, duet_sum_axis(x, axis))
ALONG(prod, duet_prod_axis(x, axis))
ALONG(mean, duet_mean_axis(x, axis))
ALONG(norm, duet_norm_axis(x, axis))
ALONG(var, duet_var_axis(x, axis))
ALONG(centred, duet_div(duet_sub(x, duet_mean_keep(x, axis)), duet_std_keep(duet_mul(x, 1.7), axis)))
ALONG(dot, duet_dot_axis(x, duet_mul(x, x), axis))
ALONG(dot_real, duet_dot_axis(x, duet_real(x), axis))
ALONG(of_real, duet_dot_axis(duet_imag(x), x, axis))
ALONG(max, duet_max_axis(x, axis))
ALONG(argmin, duet_argmin_axis(x, axis))
ALONG(any, duet_any_axis(x, axis))
ALONG(formulas, duet_mul(duet_add(duet_sum_keep(duet_mul(x, 1.7), axis), duet_mean_keep(x, axis)), 1.1))
ALONG(extremes, duet_mul(duet_max_keep(duet_mul(x, 1.7), axis), 1.1))
ALONG(less_prod, duet_sub(0.7, duet_prod_axis(x, axis)))
ALONG(half_sort, duet_sort(duet_mul(x, 1.7), axis))
ALONG(half_top, duet_top_k(duet_mul(x, 1.7), 7, axis))
ALONG(half_append, duet_append(duet_mul(x, 1.7), x, axis))
ALONG(half_take, duet_take(duet_mul(x, 1.7), duet_argmax_axis(x, axis), axis))

/* Operators that copy elements of moved formulas of halves. These are sent as f32. */
static void halves_along(duet_group *g, uint64_t seed)
{
    static along_formula *const all[] = { along_half_sort, along_half_top, along_half_append,
                                          along_half_take };
    for (int i = 0; i < 8 * 4; i++) {
        along t = { "copies of halves", g,         seed + (uint64_t)i, i & 1 ? DUET_F16 : DUET_BF16, 2,
                    i >> 1 & 1,         { 33, 29 } };
        t.gathers = true;
        along_check(&t, all[i >> 3], i >> 2 & 1);
    }
}

static along along_case(duet_group *g, const char *name, uint64_t seed, duet_dtype type)
{
    rng r = rng_new(seed);
    along t = { .name = name, .g = g, .seed = seed, .type = type };
    const int64_t n = rng_chance(&r, 30) ? 17 * 4096 + rng_below(&r, 200) : 70000 + rng_below(&r, 3000);
    t.rank = 1 + (int)rng_below(&r, 3);
    t.axis = (int)rng_below(&r, t.rank);
    for (int a = 0; a < t.rank; a++) t.size[a] = a == t.axis ? n : 1 + rng_below(&r, 2);
    t.values = (enum along_values)rng_below(&r, ALONG_VALUES);
    t.part = rng_chance(&r, 25);
    if (t.part) t.size[t.axis] *= 3;
    return t;
}

static void sorts_along(duet_group *g, uint64_t seed)
{
    for (duet_dtype type = 0; type < DUET_DTYPE_COUNT; type++) {
        if (type == DUET_C64 || type == DUET_C128) continue;
        along t = along_case(g, "sort", seed + type, type);
        along_check(&t, along_sort, (int)(seed % 4) - 2);
        t.name = "argsort";
        along_check(&t, along_argsort, (int)(seed % 4) - 2);
        t.name = "sort of formulas";
        if (type != DUET_BOOL) along_check(&t, along_sorted_sums, t.axis);
    }
}

static bool is_integer(duet_dtype type)
{
    return type != DUET_F16 && type != DUET_BF16 && type != DUET_F32 && type != DUET_F64 &&
           type != DUET_C64 && type != DUET_C128;
}

static void reductions_along(duet_group *g, uint64_t seed)
{
    static const struct {
        const char *name;
        along_formula *f;
        enum { ALL, REAL = 1, FLOATING = 2, SUMS = 4, COMPLEX = 8, GATHERS = 16 } of;
    } all[] = {
        { "sum", along_sum, ALL },
        { "prod", along_prod, GATHERS },
        { "difference to prod", along_less_prod, FLOATING | REAL },
        { "mean", along_mean, FLOATING },
        { "norm", along_norm, FLOATING },
        { "var", along_var, FLOATING },
        { "normalised", along_centred, FLOATING },
        { "dot", along_dot, SUMS },
        { "dot of complex and real", along_dot_real, COMPLEX },
        { "dot of real and complex", along_of_real, COMPLEX },
        { "max", along_max, REAL },
        { "argmin", along_argmin, REAL },
        { "any", along_any, ALL },
        { "reductions of formulas", along_formulas, FLOATING },
        { "max of formulas", along_extremes, FLOATING | REAL },
    };
    for (duet_dtype type = 0; type < DUET_DTYPE_COUNT; type++)
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
            const bool is_complex = type == DUET_C64 || type == DUET_C128;
            if ((all[k].of & REAL && is_complex) || (all[k].of & FLOATING && is_integer(type))) continue;
            if ((all[k].of & COMPLEX && !is_complex) || (all[k].of & SUMS && type == DUET_BOOL)) continue;
            along t = along_case(g, all[k].name, seed + type + k, type);
            t.gathers = all[k].of & GATHERS && is_complex;
            if (all[k].f == along_less_prod) t.values = NEAR; /* others overflow */
            along_check(&t, all[k].f, (int)(seed % 4) - 2);
        }
}

/* Another axis could be split, but the operand is too large to move. */
static void var_of_columns(duet_group *g, uint64_t seed)
{
    const along t = { "var of columns", g, seed, DUET_F32, 2, 0, { 300000, 16 }, ANY, false, false };
    along_check(&t, along_var, 0);
}

/* Sums of squares that overflow on some ranks. */
static void overflows_along(duet_group *g, uint64_t seed)
{
    for (duet_dtype type = 0; type < DUET_DTYPE_COUNT; type++) {
        if (is_integer(type)) continue;
        along t = along_case(g, "var of large numbers", seed + type, type);
        t.values = LARGE;
        along_check(&t, along_var, -1);
        t.name = "norm of large numbers";
        along_check(&t, along_norm, -1);
    }
}

static void scans_along(duet_group *g, uint64_t seed)
{
    for (duet_dtype type = 0; type < DUET_DTYPE_COUNT; type++) {
        const bool is_complex = type == DUET_C64 || type == DUET_C128;
        along t = along_case(g, "cumsum", seed + type, type);
        along_check(&t, along_cumsum, (int)(seed % 4) - 2);
        t.name = "cumprod";
        if (!is_complex) along_check(&t, along_cumprod, (int)(seed % 4) - 2);
        t.name = "scans of formulas";
        if (!is_complex && !is_integer(type)) along_check(&t, along_scans, t.axis);
    }
}

/* Statements that are recorded as they run, and then replayed with other elements. */
static void replays_along(duet_group *g, uint64_t seed)
{
    along t = along_case(g, "replay", seed, DUET_F32);
    t.part = false;
    duet_matrix *m = along_operand(&t), *x = duet_new_split_shape(g, t.type, t.axis, t.rank, t.size), *got[4];
    static along_formula *const all[] = { along_sort, along_argsort, along_cumsum, along_var };
    duet_status s = x && m ? duet_set(x, m) : DUET_NO_MEMORY;
    for (int k = 0; k < 4; k++) got[k] = s == DUET_OK ? duet_eval(all[k](duet_of_matrix(x), t.axis)) : NULL;
    if (s == DUET_OK) s = duet_record_begin();
    for (int k = 0; k < 4 && s == DUET_OK; k++) s = duet_set(got[k], all[k](duet_of_matrix(x), t.axis));
    duet_recording *r = duet_record_end();
    CHECK(s == DUET_OK && r, "%s", duet_error());
    for (int turn = 0; turn < 3 && r && s == DUET_OK; turn++) {
        t.seed++;
        duet_free(&m);
        m = along_operand(&t);
        s = duet_set(x, m) || duet_replay(r);
        for (int k = 0; k < 4; k++) {
            duet_matrix *wanted = duet_eval(all[k](duet_of_matrix(m), t.axis));
            CHECK(s == DUET_OK && along_same(got[k], wanted), "replay %d of formula %d, seed %llu: %s", turn,
                  k, (unsigned long long)seed, duet_error());
            duet_free(&wanted);
        }
    }
    duet_recording_free(&r);
    duet_free(&m, &x, &got[0], &got[1], &got[2], &got[3]);
}

static void all_along(duet_group *g, uint64_t seed)
{
    halves_along(g, seed);
    sorts_along(g, seed);
    scans_along(g, seed);
    reductions_along(g, seed);
    overflows_along(g, seed);
    var_of_columns(g, seed);
    replays_along(g, seed);
}

#endif
