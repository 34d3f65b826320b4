/* test_bits.c - equal bits, where all NaNs are equal: every row but vendor rows, on the CPU with
 * every instruction set and on the GPU, on difficult operands: random bits, all pairs of special
 * values, numbers of the domain of the row.
 *
 *     test_bits [how many inputs of each row] [seed]
 *     test_bits --all [row ...]      rows with one operand, or those named, over all 2^32 inputs of f32: CPU
 *                                    against GPU, and a hash of the results, to compare machines. DUET_ISA
 *                                    chooses that of the CPU */
#include "common.h"
#include "dtype.h"
#include "each_type.h"
#include "isas.h"
#include "test_rows.h"
#include <math.h>
#include <omp.h>

static rng gen;
static int64_t inputs;
static duet_place place[2];
static int places;

/* ---- difficult numbers ---- */

static const uint32_t special_f32[] = {
    0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345,
    0x7f800001, /* zeros, infinities, NaNs; one is signaling */
    0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
    0x00800001, /* the smallest subnormal and normal numbers */
    /* the largest numbers; 2^64, 2^-64 */
    0x7f7fffff, 0xff7fffff, 0x7f000000, 0x5f800000, 0xdf800000, 0x1f800000, 0x3f800000, 0xbf800000,
    0x3f7fffff, 0x3f800001, 0x3f000000, 0xbf000000, 0x40000000, 0xc0400000, /* near 1 */
    /* integers; pi; the limits of exp */
    0x4b000001, 0xcb800000, 0x3fc90fdb, 0x40490fdb, 0x42b17218, 0xc2cff1b5
};
static const uint64_t special_f64[] = {
    0x0000000000000000, 0x8000000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
    0xfff8123456789abc, 0x7ff0000000000001, 0x0000000000000001, 0x8000000000000001, 0x000fffffffffffff,
    0x800fffffffffffff, 0x0010000000000000, 0x8010000000000000, 0x0010000000000001, 0x7fefffffffffffff,
    0xffefffffffffffff, 0x7fe0000000000000, 0x5ff0000000000000, 0xdff0000000000000, 0x1ff0000000000000,
    0x3ff0000000000000, 0xbff0000000000000, 0x3fefffffffffffff, 0x3ff0000000000001, 0x3fe0000000000000,
    0xbfe0000000000000, 0x4000000000000000, 0xc008000000000000, 0x4330000000000001, 0xc340000000000000,
    0x3ff921fb54442d18, 0x400921fb54442d18, 0x40862e42fefa39ef, 0xc0874385446d71c3
};
enum { SPECIALS = LENGTH(special_f32) };
_Static_assert(LENGTH(special_f64) == SPECIALS, "as many of each type");

static void put_bits(duet_dtype t, void *p, int64_t i, uint64_t bits)
{
    if (t == DUET_F32) ((uint32_t *)p)[i] = (uint32_t)bits;
    else ((uint64_t *)p)[i] = bits;
}

static void put_real(duet_dtype t, void *p, int64_t i, double x)
{
    if (t == DUET_F32) ((float *)p)[i] = (float)x;
    else ((double *)p)[i] = x;
}

static void put_special(duet_dtype t, void *p, int64_t i, int64_t n)
{
    put_bits(t, p, i, t == DUET_F32 ? special_f32[n] : special_f64[n]);
}

/* Operand k of `arity`: first all combinations of special values, then any mix of the three kinds.
 * The last third has mostly numbers of the domain, so that some blocks of elements, whose size
 * differs between machines, contain nothing else. */
static void draw_operand(const row *r, int k, duet_dtype t, void *p)
{
    int64_t crossed = 1, period = 1;
    for (int i = 0; i < r->arity; i++) {
        crossed *= SPECIALS;
        if (i < k) period *= SPECIALS;
    }
    for (int64_t i = 0; i < inputs; i++) {
        const int64_t kind = i % 97 && i > inputs / 3 * 2 ? 10 : rng_below(&gen, 20);
        if (i < crossed && i < inputs / 2) put_special(t, p, i, i / period % SPECIALS);
        else if (kind < 10) put_bits(t, p, i, rng_next(&gen));
        else if (kind < 17) put_real(t, p, i, rng_real(&gen, r->domain[2 * k], r->domain[2 * k + 1]));
        else put_special(t, p, i, rng_below(&gen, SPECIALS));
    }
}

/* For rows that combine many elements, where one NaN decides the result. */
enum { PLAIN, HUGE_ONES, TINY_ONES, ANY_BITS, SEEDED, REGIMES };
static const char *const regimes[REGIMES] = { "plain", "huge", "tiny", "any bits", "with special values" };

static void draw_many(int regime, duet_dtype t, void *p, int64_t count)
{
    const double huge = t == DUET_F32 ? 0x1p126 : 0x1p1022, tiny = dtypes[t].tiny;
    for (int64_t i = 0; i < count; i++) {
        const double x = rng_real(&gen, -3, 3);
        if (regime == ANY_BITS && rng_chance(&gen, 99))
            put_bits(t, p, i, rng_next(&gen) & (t == DUET_F32 ? 0xbfffffff : ~(1ull << 62))); /* finite */
        else if (regime == SEEDED && !rng_below(&gen, 700)) put_special(t, p, i, rng_below(&gen, SPECIALS));
        else if (regime == HUGE_ONES) put_real(t, p, i, x * huge / 3);
        else if (regime == TINY_ONES) put_real(t, p, i, x * tiny);
        else put_real(t, p, i, x);
    }
}

/* ---- one formula on all machines ---- */

static bool is_nan(duet_dtype t, const void *p, int64_t i)
{
    return dtype_is_f32_or_f64(t) && isnan(element(t, p, i));
}

static bool same_at(duet_dtype t, const void *a, const void *b, int64_t i)
{
    const size_t bytes = dtypes[t].bytes;
    return !memcmp((const char *)a + (size_t)i * bytes, (const char *)b + (size_t)i * bytes, bytes) ||
           (is_nan(t, a, i) && is_nan(t, b, i));
}

static unsigned long long bits_at(duet_dtype t, const void *p, int64_t i)
{
    if (t == DUET_F32) return ((const uint32_t *)p)[i];
    return (unsigned long long)((const uint64_t *)p)[i];
}

typedef struct question {
    const row *row;
    duet_dtype type;
    duet_matrix *x[3];
    int axis;
    const void *options;
    const char *about;
} question;

static duet_expr build(const question *q)
{
    duet_expr x[3];
    for (int k = 0; k < q->row->arity; k++) x[k] = duet_of_matrix(q->x[k]);
    return q->row->make(x, q->axis, q->options);
}

/* Reports the first element that differs, with its operands if each result comes from one element
 * of each operand. */
static void compare(const question *q, duet_matrix *m, const void *want, const void *got, const char *one,
                    const char *other)
{
    const duet_dtype t = duet_type(m);
    int64_t i = 0, count = duet_count(m);
    char from[100] = " many";
    if (same_bits(t, want, got, count)) return (void)CHECK(true, "the bits differ");
    while (same_at(t, want, got, i)) i++;
    for (int k = 0, n = 0; k < q->row->arity && op_infos[q->row->op].kind == KIND_MAP; k++)
        n += snprintf(from + n, sizeof from - (size_t)n, " %#llx", bits_at(q->type, duet_read(q->x[k]), i));
    CHECK(false, "%s %s, %s, element %lld, made of%s: %#llx (%.17g) by %s, %#llx (%.17g) by %s", q->row->name,
          type_name(q->type), q->about, (long long)i, from, bits_at(t, want, i), element(t, want, i), one,
          bits_at(t, got, i), element(t, got, i), other);
}

static bool run(const question *q, duet_matrix *m, duet_place where, int64_t bytes)
{
    void *p = duet_overwrite(m);
    if (p) memset(p, 0xa5, (size_t)bytes); /* makes elements visible that are not written */
    const duet_status s = (duet_set_on)(where, m, build(q));
    return CHECK(s == DUET_OK, "%s %s, %s on %s: %s", q->row->name, type_name(q->type), q->about,
                 place_name(where), duet_error());
}

static void everywhere(const question *q)
{
    const duet_expr e = build(q);
    const sizes s = sizes_of_expr(e);
    const duet_dtype t = duet_expr_type(e);
    const duet_status bad = duet_expr_status(e);
    if (!CHECK(bad == DUET_OK, "%s: %s", q->row->name, duet_error())) return forget(e);
    forget(e);
    duet_matrix *m = duet_new_shape(t, s.rank, s.size);
    const int64_t bytes = duet_count(m) * (int64_t)dtypes[t].bytes;
    void *first = NULL;
    const char *by = NULL;
    for (int k = 0; k < ISAS + places - 1; k++) {
        const char *name = k < ISAS ? use_isa(k) : "the GPU";
        if (k < ISAS && strcmp(name, isa_names[k])) continue; /* the processor does not have it */
        if (!run(q, m, k < ISAS ? DUET_CPU : DUET_GPU, bytes)) continue;
        if (first) compare(q, m, first, duet_read(m), by, name);
        else {
            first = memcpy(malloc((size_t)bytes + 1), duet_read(m), (size_t)bytes);
            by = name;
        }
    }
    free(first);
    duet_free(&m);
}

/* ---- the rows ------------------------------------------------------------------------------------------ */

static void map_row(const row *r)
{
    FOR_FLOAT_TYPES (t) {
        question q = { .row = r, .type = t, .about = "element by element" };
        for (int k = 0; k < r->arity; k++) {
            q.x[k] = duet_new(t, inputs);
            draw_operand(r, k, t, duet_overwrite(q.x[k]));
        }
        everywhere(&q);
        for (int k = 0; k < r->arity; k++) duet_free(&q.x[k]);
    }
    tap_point(r->name);
}

/* All regimes of numbers in matrices of these sizes, and a second operand of the given sizes if
 * there is one. */
static void many_row(const row *r, const sizes *a, const sizes *b, int axis, const void *options)
{
    FOR_FLOAT_TYPES (t)
        for (int regime = 0; regime < REGIMES; regime++) {
            question q = { .row = r, .type = t, .axis = axis, .options = options, .about = regimes[regime] };
            for (int k = 0; k < r->arity; k++) {
                const sizes *s = k ? b : a;
                q.x[k] = duet_new_shape(t, s->rank, s->size);
                draw_many(regime, t, duet_overwrite(q.x[k]), duet_count(q.x[k]));
            }
            everywhere(&q);
            for (int k = 0; k < r->arity; k++) duet_free(&q.x[k]);
        }
}

static void reduce_row(const row *r)
{
    const int64_t side = (int64_t)sqrt((double)inputs);
    const sizes form[] = { SIZES(inputs),
                           SIZES(3, inputs / 3),
                           SIZES(inputs / 7, 7),
                           SIZES(side, side + 1),
                           SIZES(side / 3, 9, side / 3),
                           SIZES(inputs / 60 + 1, 60),
                           SIZES(60, inputs / 60 + 1) };
    const bool whole = !strncmp(r->name, "make ", 5);
    for (int i = 0; i < LENGTH(form); i++)
        for (int axis = 0; axis < (whole ? 1 : form[i].rank); axis++)
            many_row(r, &form[i], &form[i], axis, NULL);
    tap_point(r->name);
}

static void plain_row(const row *r)
{
    const int64_t side = (int64_t)sqrt((double)inputs);
    const sizes form[] = { SIZES(3, inputs / 3), SIZES(inputs / 7, 7), SIZES(side, side + 1),
                           SIZES(inputs / 1000 + 1, 1000) };
    for (int i = 0; i < LENGTH(form); i++) many_row(r, &form[i], &(sizes)SIZES(form[i].size[1]), 0, NULL);
    tap_point(r->name);
}

static void pool_row(const row *r)
{
    static const duet_pool pools[] = { { { 2, 2 }, { 0, 0 }, { 0, 0 } },
                                       { { 3, 3 }, { 2, 2 }, { 1, 1 } },
                                       { { 2, 3 }, { 1, 2 }, { 0, 1 } },
                                       { { 5, 1 }, { 1, 1 }, { 2, 0 } } };
    const int64_t side = (int64_t)sqrt((double)inputs / 6);
    const sizes form = SIZES(2, 3, side, side + 3);
    for (int i = 0; i < LENGTH(pools); i++) many_row(r, &form, NULL, 0, &pools[i]);
    tap_point(r->name);
}

static void pool_grad_row(const row *r)
{
    static const duet_pool_grad pools[] = { { { 2, 2 }, { 2, 2 }, { 0, 0 }, { 0, 0 } },
                                            { { 3, 2 }, { 1, 2 }, { 1, 1 }, { 0, 0 } } };
    const int64_t side = (int64_t)sqrt((double)inputs / 6);
    const sizes form = SIZES(2, 3, side, side + 3);
    for (int i = 0; i < LENGTH(pools); i++) many_row(r, &form, NULL, 0, &pools[i]);
    tap_point(r->name);
}

static void scale_row(const row *r)
{
    static const duet_scale scales[] = { { { 2, 2 } }, { { 3, 1 } } };
    const int64_t side = (int64_t)sqrt((double)inputs / 6);
    const sizes form = SIZES(2, 3, side, side + 3);
    for (int i = 0; i < LENGTH(scales); i++) many_row(r, &form, NULL, 0, &scales[i]);
    tap_point(r->name);
}

static void all_rows(void)
{
    for (int i = 0; i < LENGTH(maps); i++) map_row(&maps[i]);
    for (int i = 0; i < LENGTH(reductions); i++) reduce_row(&reductions[i]);
    for (int i = 0; i < LENGTH(defs); i++) {
        if (is_vendor(defs[i].row.op)) continue;
        if (defs[i].kind == KIND_pool) pool_row(&defs[i].row);
        else if (defs[i].kind == KIND_pool_grad) pool_grad_row(&defs[i].row);
        else if (defs[i].kind == KIND_scale) scale_row(&defs[i].row);
        else plain_row(&defs[i].row);
    }
}

/* ---- all inputs ---------------------------------------------------------------------------------------- */

enum { CHUNK_BITS = 26, CHUNKS = 1 << (32 - CHUNK_BITS) };
#define CHUNK ((int64_t)1 << CHUNK_BITS)

typedef struct sweep {
    const row *row;
    uint64_t hash;
    int64_t different;
    uint32_t first; /* an input whose results differ */
} sweep;

static inline uint32_t canonical(uint32_t bits)
{
    return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits;
}

static inline uint64_t mixed(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* A sum over pairs of input and result that does not depend on their order; counts differences of a
 * and b. b is NULL without a GPU. */
static void sum_up(sweep *w, uint32_t from, const uint32_t *a, const uint32_t *b)
{
    uint64_t hash = 0;
    int64_t different = 0;
    uint32_t first = UINT32_MAX;
    if (!b) b = a;
#pragma omp parallel for reduction(+ : hash, different) reduction(min : first)
    for (int64_t i = 0; i < CHUNK; i++) {
        const uint32_t input = from + (uint32_t)i, x = canonical(a[i]), y = canonical(b[i]);
        hash += mixed((uint64_t)input << 32 | x);
        if (x == y) continue;
        different++;
        if (input < first) first = input;
    }
    if (different && !w->different) w->first = first;
    w->hash += hash;
    w->different += different;
}

/* GPU and CPU compute at the same time. */
static void sweep_chunk(sweep *w, uint32_t from, duet_matrix *x, duet_matrix *host, duet_matrix *device)
{
    const duet_expr e[] = { duet_of_matrix(x), duet_of_matrix(x) };
    bool ran = places < 2 || (duet_set_on)(DUET_GPU, device, w->row->make(&e[0], 0, NULL)) == DUET_OK;
    ran &= (duet_set_on)(DUET_CPU, host, w->row->make(&e[1], 0, NULL)) == DUET_OK;
    const uint32_t *a = duet_read(host), *b = places < 2 ? NULL : duet_read(device);
    if (!CHECK(ran && a && (b || places < 2), "%s from %#x: %s", w->row->name, from, duet_error())) return;
    sum_up(w, from, a, b);
}

static void count_from(uint32_t from, uint32_t *p)
{
#pragma omp parallel for
    for (int64_t i = 0; i < CHUNK; i++) p[i] = from + (uint32_t)i;
}

static bool is_wanted(const row *r, int names, char **name)
{
    bool wanted = !names;
    for (int i = 0; i < names; i++) wanted |= !strcmp(r->name, name[i]);
    return wanted && r->arity == 1;
}

static void all_inputs(int names, char **name)
{
    sweep w[LENGTH(maps)];
    int count = 0;
    duet_matrix *x = duet_new(DUET_F32, CHUNK), *host = duet_new(DUET_F32, CHUNK),
                *device = duet_new(DUET_F32, CHUNK);
    for (int i = 0; i < LENGTH(maps); i++)
        if (is_wanted(&maps[i], names, name)) w[count++] = (sweep){ .row = &maps[i] };
    CHECK(count > 0, "no row with one operand was tested");
    tap_point("rows of ops.def exist");
    for (int c = 0; c < CHUNKS && count; c++) {
        const uint32_t from = (uint32_t)c << CHUNK_BITS;
        count_from(from, duet_overwrite(x));
        for (int i = 0; i < count; i++) sweep_chunk(&w[i], from, x, host, device);
    }
    for (int i = 0; i < count; i++) {
        printf("# %-9s %016llx\n", w[i].row->name, (unsigned long long)w[i].hash);
        CHECK(!w[i].different, "%s: %lld results differ, the first of input %#x", w[i].row->name,
              (long long)w[i].different, w[i].first);
        tap_point(w[i].row->name);
    }
    duet_free(&x);
    duet_free(&host);
    duet_free(&device);
}

int main(int argc, char **argv)
{
    const bool all = argc > 1 && !strcmp(argv[1], "--all");
    const uint64_t seed = argc > 2 && !all ? strtoull(argv[2], NULL, 0) : 1;
    places = list_places(place);
    gen = rng_new(seed);
    if (argc > 1 && atoll(argv[1]) > 0) inputs = atoll(argv[1]);
    else if (is_quick(argc, argv)) inputs = 2500;
    else inputs = 20011;
    if (all) {
        printf("# the CPU: %s, all 2^32 inputs of f32\n", cpu_choose_isa());
        all_inputs(argc - 2, argv + 2);
    } else {
        printf("# %lld inputs of each row, seed %llu\n", (long long)inputs, (unsigned long long)seed);
        all_rows();
    }
    return tap_end();
}
