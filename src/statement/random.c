/* random.c - statements that fill a matrix with random numbers: their checks, the numbers of the
 * distribution, and one step. Machines generate f32, f64 and i64. For other types a temporary
 * matrix of one of these is filled and then cast. On a group each rank fills its part. */
#include "convert.h"
#include "distributions.h"
#include "dtype.h"
#include "each_part.h"
#include "random_step.h"
#include "single_step.h"
#include "sobol.h"
#include "split_matrix.h"
#include "status.h"
#include "thread.h"
#include <math.h>
#include <string.h>

/* A running statement: its name, its operands for error texts, and its step. */
typedef struct draw {
    const char *who;
    duet_matrix *m;
    random_params l;
    duet_matrix *table; /* of a Sobol sequence, */
    uint64_t points;    /* and its points */
} draw;

/* ---- wrong arguments ---- */

static char *name_matrix(const draw *d, char text[SHAPE_TEXT])
{
    return shape_text(text, d->m->at.type, d->m->at.rank, d->m->at.size);
}

/* Sets the text "who(m: f32[2,3]): low (1) and high (0) <rule>". */
static duet_status wrong_numbers(const draw *d, const char *a, double x, const char *b, double y,
                                 const char *rule)
{
    char text[SHAPE_TEXT];
    name_matrix(d, text);
    return fail(DUET_BAD_ARGUMENT, "%s(m: %s): %s (%.17g) and %s (%.17g) %s", d->who, text, a, x, b, y, rule);
}

static duet_status check_floats(const draw *d)
{
    char text[SHAPE_TEXT];
    if (dtype_kind(d->m->at.type) == TYPE_FLOAT) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s(m: %s): m must be floating point", d->who, name_matrix(d, text));
}

static duet_status check_reals(const draw *d)
{
    char text[SHAPE_TEXT];
    if (dtype_kind(d->m->at.type) != TYPE_COMPLEX) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s(m: %s): m must be real, not complex", d->who, name_matrix(d, text));
}

/* ---- numbers of the matrix's type ---- */

/* Not inline: gcc 12 vectorises two adjacent calls and then omits the rounding. */
static __attribute__((noinline)) double rounded(const draw *d, double x)
{
    switch (d->m->at.type) {
    case DUET_F32: return (double)(float)x;
    case DUET_F16: return f32_of_f16(f64_to_f16(x));
    case DUET_BF16: return f32_of_bf16(f64_to_bf16(x));
    default: return x;
    }
}

static double less(const draw *d, double a, double b)
{
    return d->m->at.type == DUET_F64 ? a - b : (double)((float)a - (float)b);
}

/* The bits of halves are in the order of their values. */
static uint16_t half_below(uint16_t h)
{
    if (h & 0x8000) return (uint16_t)(h == 0x8000 ? 0x8001 : h + 1);
    return (uint16_t)(h ? h - 1 : 0x8001);
}

/* The greatest number of the type below x, a number of the type. */
static double below(const draw *d, double x)
{
    switch (d->m->at.type) {
    case DUET_F32: return (double)nextafterf((float)x, -INFINITY);
    case DUET_F16: return f32_of_f16(half_below(f64_to_f16(x)));
    case DUET_BF16: return f32_of_bf16(half_below(f64_to_bf16(x)));
    default: return nextafter(x, -INFINITY);
    }
}

/* The limit up to which the matrix's type has all integers. */
static int64_t most(const draw *d)
{
    const duet_dtype t = d->m->at.type;
    if (dtype_kind(t) == TYPE_FLOAT) return (int64_t)(1 / dtypes[t].roundoff);
    if (dtype_kind(t) == TYPE_BOOL) return 1;
    const int bits = 8 * (int)dtypes[t].bytes - (dtype_kind(t) == TYPE_SIGNED);
    return bits > 62 ? INT64_MAX : ((int64_t)1 << bits) - 1;
}

static int64_t least(const draw *d)
{
    const duet_dtype t = d->m->at.type;
    if (dtype_kind(t) == TYPE_FLOAT) return -most(d);
    if (dtype_kind(t) != TYPE_SIGNED) return 0;
    return -most(d) - 1;
}

/* ---- the distributions ---- */

static duet_status plan_uniform(draw *d, double low, double high)
{
    TRY(check_floats(d));
    const double from = rounded(d, low), to = rounded(d, high), range = less(d, to, from);
    if (!(from < to && isfinite(range)))
        return wrong_numbers(d, "low", low, "high", high,
                             "must be in ascending order, and their difference must be finite");
    d->l.distribution = DISTRIBUTION_UNIFORM;
    d->l.number[0] = from;
    d->l.number[1] = range;
    d->l.number[2] = below(d, to);
    return DUET_OK;
}

static duet_status plan_normal(draw *d, double mean, double deviation)
{
    TRY(check_floats(d));
    const double at = rounded(d, mean), by = rounded(d, deviation);
    if (!(isfinite(at) && isfinite(by) && by >= 0))
        return wrong_numbers(d, "mean", mean, "deviation", deviation,
                             "must be finite, and deviation must not be negative");
    d->l.distribution = DISTRIBUTION_NORMAL;
    d->l.number[0] = at;
    d->l.number[1] = by;
    return DUET_OK;
}

static void propose(random_params *l, enum proposal p, double origin, double scale, double c0, double c1,
                    double c2)
{
    const double number[] = { origin, scale, c0, c1, c2 };
    l->proposal = p;
    memcpy(&l->number[2], number, sizeof number);
}

/* Both bounds are on one side of the mean. The nearer one is a >= 0 deviations away, and the window
 * is `width` deviations wide. Unless the window is narrow, proposals are exponential, with the rate
 * that is best without an upper bound. Only operations that all machines round alike are used,
 * because the numbers depend on them. */
static void propose_tail(random_params *l, double a, double width, double origin, double deviation)
{
    const double root = sqrt(a * a + 4), lambda = (a + root) / 2;
    if (width * lambda < 4.0 / 3) propose(l, PROPOSE_UNIFORM, origin, deviation, width, 2 * a, 0);
    else propose(l, PROPOSE_EXPONENTIAL, origin, deviation, 1 / lambda, 2 / (a + root), 0);
}

static duet_status plan_truncated_normal(draw *d, double mean, double deviation, double low, double high)
{
    TRY(check_floats(d));
    const double from = rounded(d, low), to = rounded(d, high), by = rounded(d, deviation),
                 at = rounded(d, mean);
    if (!(isfinite(at) && isfinite(by) && by > 0))
        return wrong_numbers(d, "mean", mean, "deviation", deviation,
                             "must be finite, and deviation must be positive");
    if (!(from < to)) return wrong_numbers(d, "low", low, "high", high, "must be in ascending order");
    const double a = (from - at) / by, b = (to - at) / by, width = (to - from) / by;
    if (!(fmax(a, -b) < 1e150))
        return wrong_numbers(d, "low", low, "high", high,
                             "must be less than 1e150 deviations away from mean");
    random_params *l = &d->l;
    l->distribution = DISTRIBUTION_TRUNCATED_NORMAL;
    l->number[0] = from;
    l->number[1] = to;
    if (a >= 0) propose_tail(l, a, width, from, by);
    else if (b <= 0) propose_tail(l, -b, width, to, -by);
    else if (width < 2.5) propose(l, PROPOSE_UNIFORM, from, by, width, 2 * a, a * a);
    else propose(l, PROPOSE_NORMAL, at, by, 0, 0, 0);
    return DUET_OK;
}

static duet_status plan_bernoulli(draw *d, double p)
{
    TRY(check_reals(d));
    if (!(p >= 0 && p <= 1)) {
        char text[SHAPE_TEXT];
        return fail(DUET_BAD_ARGUMENT, "%s(m: %s): p (%.17g) must be from 0 to 1", d->who,
                    name_matrix(d, text), p);
    }
    const double upper = floor(p * 0x1p32);
    d->l.distribution = DISTRIBUTION_BERNOULLI;
    d->l.integer[0] = p < 1 ? (uint64_t)upper : 0xffffffff;
    d->l.integer[1] = p < 1 ? (uint64_t)((p * 0x1p32 - upper) * 0x1p32) : (uint64_t)1 << 32;
    return DUET_OK;
}

static duet_status plan_integers(draw *d, int64_t low, int64_t high)
{
    char text[SHAPE_TEXT];
    TRY(check_reals(d));
    name_matrix(d, text);
    if (low >= high)
        return fail(DUET_BAD_ARGUMENT, "%s(m: %s): low (%lld) must be less than high (%lld)", d->who, text,
                    (long long)low, (long long)high);
    if (low < least(d) || high - 1 > most(d))
        return fail(
            DUET_BAD_TYPE,
            "%s(m: %s): low (%lld) and high - 1 (%lld) must be from %lld to %lld, the integers that %s "
            "holds exactly",
            d->who, text, (long long)low, (long long)(high - 1), (long long)least(d), (long long)most(d),
            dtypes[d->m->at.type].name);
    const uint64_t range = (uint64_t)high - (uint64_t)low;
    d->l.distribution = DISTRIBUTION_INTEGERS;
    d->l.integer[0] = (uint64_t)low;
    d->l.integer[1] = range;
    d->l.integer[2] = -range % range;
    return DUET_OK;
}

static duet_status plan_permutation(draw *d)
{
    char text[SHAPE_TEXT];
    TRY(check_reals(d));
    if (d->m->at.rank != 1)
        return fail(DUET_BAD_SHAPE, "%s(m: %s): m must have 1 axis", d->who, name_matrix(d, text));
    if (d->m->count - 1 > most(d))
        return fail(DUET_BAD_TYPE,
                    "%s(m: %s): m must have at most %lld elements, as many integers as %s "
                    "holds exactly",
                    d->who, name_matrix(d, text), (long long)most(d) + 1, dtypes[d->m->at.type].name);
    d->l.distribution = DISTRIBUTION_PERMUTATION;
    return DUET_OK;
}

static duet_status plan_sobol(draw *d, uint64_t first)
{
    char text[SHAPE_TEXT];
    TRY(check_floats(d));
    name_matrix(d, text);
    const layout *at = &d->m->at;
    if (at->rank != 1 && at->rank != 2)
        return fail(DUET_BAD_SHAPE, "%s(m: %s): m must be [points, dimensions] or [points]", d->who, text);
    const int64_t points = at->size[0], dims = at->rank > 1 ? at->size[1] : 1;
    if (dims > sobol_dimensions())
        return fail(DUET_BAD_SHAPE,
                    "%s(m: %s): m must have at most %lld columns, the dimensions of the sequence", d->who,
                    text, (long long)sobol_dimensions());
    if (first > (uint64_t)INT64_MAX - (uint64_t)points)
        return fail(DUET_BAD_ARGUMENT, "%s(m: %s): first (%llu) plus %lld points must be less than 2^63",
                    d->who, text, (unsigned long long)first, (long long)points);
    d->points = (uint64_t)points;
    d->l.distribution = DISTRIBUTION_SOBOL;
    d->l.integer[0] = first;
    d->l.integer[1] = (uint64_t)(dims > 0 ? dims : 1);
    return DUET_OK;
}

/* ---- the step ---- */

/* The work of one element of a distribution on one thread, in operations of a product. For
 * permutations it is the sort. */
static const double flops[DISTRIBUTIONS] = {
    [DISTRIBUTION_UNIFORM] = 15,   [DISTRIBUTION_NORMAL] = 60,   [DISTRIBUTION_TRUNCATED_NORMAL] = 200,
    [DISTRIBUTION_BERNOULLI] = 15, [DISTRIBUTION_INTEGERS] = 30, [DISTRIBUTION_PERMUTATION] = 800,
    [DISTRIBUTION_SOBOL] = 20
};

static duet_status fill_itself(const draw *d)
{
    double num[RANDOM_COUNT];
    direct by = { .who = d->who, .out = { d->m }, .num = num };
    random_step_make(&d->l, &by.s, num);
    by.in[0] = d->table;
    single_step_layouts(&by);
    layout_collapse((layout *[]){ &by.s.out[0].at }, 1);
    by.s.bytes = (double)d->m->count * (double)dtypes[d->m->at.type].bytes;
    by.s.flops = (double)d->m->count * flops[d->l.distribution];
    return single_step_run(&by);
}

/* The type that machines generate instead: f32 for halves and Bernoulli numbers, i64 for other
 * integers. */
static duet_dtype drawn_as(const draw *d)
{
    const duet_dtype t = d->m->at.type;
    if (dtype_is_f32_or_f64(t) || t == DUET_I64) return t;
    return dtype_is_half(t) || d->l.distribution == DISTRIBUTION_BERNOULLI ? DUET_F32 : DUET_I64;
}

/* x in a narrower type. Uniform numbers are rounded down: each number of the type then represents
 * those from it to the next one, also the largest number, and `high` is never reached. */
static duet_expr narrowed(const draw *d, duet_expr x, duet_dtype type)
{
    const duet_expr y = (duet_cast)(x, type);
    if (d->l.distribution != DISTRIBUTION_UNIFORM && d->l.distribution != DISTRIBUTION_SOBOL) return y;
    return (duet_where)((duet_greater)(y, x), (duet_nextafter)(y, duet_of_number(-INFINITY)), y);
}

/* Makes d->table, with as many direction vectors as the points need. */
static duet_status take_table(draw *d)
{
    const uint64_t last = d->l.integer[0] + d->points;
    const int bits = last ? 64 - __builtin_clzll(last) : 0;
    const int64_t dims = (int64_t)d->l.integer[1], size[] = { 1 + bits, dims };
    d->table = (duet_new_shape)(DUET_U64, 2, size);
    uint64_t *p = d->table ? (duet_overwrite)(d->table) : NULL;
    if (!p) return DUET_NO_MEMORY;
    sobol_table(p, dims, bits, (uint64_t)d->l.key[1] << 32 | d->l.key[0]);
    return DUET_OK;
}

static duet_status fill_type(draw *d)
{
    duet_matrix *m = d->m;
    const duet_dtype as = drawn_as(d);
    if (as == m->at.type) return fill_itself(d);
    d->m = (duet_new_shape)(as, m->at.rank, m->at.size);
    if (!d->m) return DUET_NO_MEMORY;
    duet_status s = fill_itself(d);
    if (s == DUET_OK) s = statement_part(d->who, m, narrowed(d, duet_of_matrix(d->m), m->at.type));
    return record_own_or_free(d->m, s);
}

static duet_status fill_here(draw *d)
{
    if (d->l.distribution != DISTRIBUTION_SOBOL) return fill_type(d);
    duet_status s = take_table(d);
    if (s == DUET_OK) s = fill_type(d);
    return d->table ? record_own_or_free(d->table, s) : s;
}

static duet_status fill_part(void *context, duet_matrix *part, const part_runs *at)
{
    draw d = *(const draw *)context;
    d.m = part;
    d.l.first = at->first;
    d.l.run = at->run;
    d.l.apart = at->apart;
    return fill_here(&d);
}

/* The keys of a permutation are sorted, so no rank can make a part of it. */
static duet_status fill(draw *d)
{
    if (likely(!d->m->storage->split) || d->l.distribution == DISTRIBUTION_PERMUTATION) return fill_here(d);
    if (!d->m->count) return DUET_OK;
    if (!split_has_parts(d->m)) return fill_here(d);
    const uint64_t word = (uint64_t)d->l.key[1] << 32 | d->l.key[0];
    const duet_status s = each_part(d->m, fill_part, d, hash_step(word, (uint64_t)d->l.distribution));
    if (s == DUET_OK) return s;
    char text[SHAPE_TEXT];
    return fail_within(s, "%s(m: %s)", d->who, name_matrix(d, text));
}

static duet_status begin(draw *d, const char *who, duet_matrix *m, uint64_t seed)
{
    *d = (draw){ .who = who, .m = m, .l.key = { (uint32_t)seed, (uint32_t)(seed >> 32) } };
    TRY(matrix_check(who, m));
    return matrix_check_writable(who, m);
}

/* ---- statements ---- */

#define UNPACK(...) __VA_ARGS__
#define LAW(name, types, values)                                                                             \
    duet_status random_##name(duet_matrix *m, uint64_t seed UNPACK types)                                    \
    {                                                                                                        \
        draw d;                                                                                              \
        TRY(begin(&d, "duet_random_" #name, m, seed));                                                       \
        TRY(plan_##name(&d UNPACK values));                                                                  \
        return fill(&d);                                                                                     \
    }                                                                                                        \
    duet_status duet_random_##name##_at(duet_matrix *m, uint64_t seed UNPACK types, const char *site)        \
    {                                                                                                        \
        thread_get()->site = site;                                                                           \
        IN_DEFAULT_FP_ENVIRONMENT;                                                                           \
        return statement_ends(random_##name(m, seed UNPACK values), site);                                   \
    }                                                                                                        \
    duet_status(duet_random_##name)(duet_matrix * m, uint64_t seed UNPACK types)                             \
    {                                                                                                        \
        return duet_random_##name##_at(m, seed UNPACK values, NULL);                                         \
    }
LAW(uniform, (, double low, double high), (, low, high))
LAW(normal, (, double mean, double deviation), (, mean, deviation))
LAW(truncated_normal, (, double mean, double deviation, double low, double high),
    (, mean, deviation, low, high))
LAW(bernoulli, (, double p), (, p))
LAW(integers, (, int64_t low, int64_t high), (, low, high))
LAW(permutation, (), ())
LAW(sobol, (, uint64_t first), (, first))
