/* rows.c - duet-rows: measures the operators of ops.def as a fraction of the peak memory bandwidth or
 * the peak arithmetic rate, on both devices. */
#include "data.h"
#include "handwritten.h"
#include "json.h"
#include "measure.h"
#include "roofline.h"
#include <duet/duet.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = "duet-rows [--backend cpu|gpu|both] [--quick] [--json FILE]\n";

#define WIDTH 1024 /* columns of the matrices; with 1003 each row would have another alignment */

/* ---- matrices ---- */

static uint32_t seed = 1;

static duet_matrix *random_matrix(int rank, const int64_t *size, double from, double to)
{
    static uint32_t stream;
    duet_matrix *m = duet_new_shape(DUET_F32, rank, size);
    float *v = m ? duet_overwrite(m) : NULL;
    const uint32_t s = seed * 64 + stream++ % 64;
    if (!v) {
        duet_free(&m);
        return NULL;
    }
#pragma omp parallel for
    for (int64_t i = 0; i < duet_count(m); i++) v[i] = (float)(from + (to - from) * 0.5 * (noise(s, i) + 1));
    return m;
}

/* Creates a matrix with the type and shape of a formula. */
static duet_matrix *result_matrix(duet_expr e)
{
    int64_t size[DUET_RANK_MAX];
    for (int i = 0; i < duet_expr_rank(e); i++) size[i] = duet_expr_size(e, i);
    if (duet_expr_status(e) == DUET_OK) return duet_new_shape(duet_expr_type(e), duet_expr_rank(e), size);
    return NULL;
}

static double bytes_of(const duet_matrix *m)
{
    static const uint8_t each[DUET_DTYPE_COUNT] = {
#define DUET_DTYPE(NAME, name, type, ...) [DUET_##NAME] = sizeof(type),
#define DUET_INTEGER                      DUET_DTYPE
#define DUET_NARROW                       DUET_DTYPE
#define DUET_HALF(NAME, ...)              [DUET_##NAME] = 2,
#define DUET_COMPLEX(NAME, name, PART)    [DUET_##NAME] = DUET_##PART == DUET_F64 ? 16 : 8,
#include <duet/dtype.def>
    };
    return (double)each[duet_type(m)] * (double)duet_count(m);
}

/* ---- statements: a persistent formula and its destination ---- */

typedef struct statement {
    duet_place place;
    duet_matrix *m;
    duet_expr e;
} statement;

static double statement_block(void *state, int64_t calls)
{
    const statement *s = state;
    const double start = now();
    duet_status status = DUET_OK;
    for (int64_t i = 0; i < calls && status == DUET_OK; i++) status = duet_set_on(s->place, s->m, s->e);
    if (status == DUET_OK && (s->place == DUET_CPU || duet_synchronize() == DUET_OK)) return now() - start;
    return NAN;
}

static const char *place_name(duet_place p) { return p == DUET_GPU ? "gpu" : "cpu"; }

/* ---- operators. in: the operands of make; their shapes depend on the kind, with some exceptions
 *      by name ---- */

enum kind { MAP, REDUCE, REDUCE_ROWS, REDUCE_COLUMNS, PLAIN, POOL, CONV };

typedef struct operator_row {
    const char *name;
    enum kind kind;
    int inputs;
    double range[6], known[4];
    double ulp;
    duet_expr (*make)(duet_matrix *const in[]);
} operator_row;

static const duet_pool pool = { .window = { 2, 2 } };
static const duet_pool_grad pool_grad = { .window = { 2, 2 } };
static const duet_scale scale = { { 2, 2 } };
static const duet_conv conv = { .pad = { 1, 1 } };
static const duet_conv_grad conv_grad = { .pad = { 1, 1 } };
static const duet_conv_transposed conv_transposed = { .pad = { 1, 1 } };

#define OF(k) duet_of_matrix(in[k])
#define LIST(...)                                                                                            \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define MAKE(name, call)                                                                                     \
    static duet_expr make_##name(duet_matrix *const in[]) { return call; }
#define OPTIONS_plain
#define OPTIONS_conv            , &conv
#define OPTIONS_pool            , &pool
#define OPTIONS_pool_grad       , &pool_grad
#define OPTIONS_scale           , &scale
#define OPTIONS_conv_grad       , &conv_grad
#define OPTIONS_conv_transposed , &conv_transposed

#define DUET_MAP1(name, ...) MAKE(name, (duet_##name)(OF(0)))
#define DUET_MAP2(name, ...) MAKE(name, (duet_##name)(OF(0), OF(1)))
#define DUET_MAP3(name, ...) MAKE(name, (duet_##name)(OF(0), OF(1), OF(2)))
#define DUET_FOLD1(name, ...)                                                                                \
    MAKE(name, (duet_##name)(OF(0)))                                                                         \
    MAKE(name##_rows, (duet_##name##_axis)(OF(0), 1)) MAKE(name##_columns, (duet_##name##_axis)(OF(0), 0))
#define DUET_FOLD2(name, ...)                                                                                \
    MAKE(name, (duet_##name)(OF(0), OF(1)))                                                                  \
    MAKE(name##_rows, (duet_##name##_axis)(OF(0), OF(1), 1))                                                 \
    MAKE(name##_columns, (duet_##name##_axis)(OF(0), OF(1), 0))
#define DUET_MOMENT1(...)             DUET_FOLD1(__VA_ARGS__)
#define DUET_PLACE1(...)              DUET_FOLD1(__VA_ARGS__)
#define DUET_DEF1(name, options, ...) MAKE(name, (duet_##name)(OF(0) OPTIONS_##options))
#define DUET_DEF2(name, options, ...) MAKE(name, (duet_##name)(OF(0), OF(1) OPTIONS_##options))
#include <duet/ops.def>

enum {
    KIND_plain = PLAIN,
    KIND_pool = POOL,
    KIND_conv = CONV,
    KIND_pool_grad = POOL,
    KIND_scale = POOL,
    KIND_conv_grad = CONV,
    KIND_conv_transposed = CONV
};
#define MAP_ROW(name, inputs, domain, ulp, known)                                                            \
    { #name, MAP, inputs, LIST domain, LIST known, ulp, make_##name },
#define REDUCE_ROW(name, inputs)                                                                             \
    { #name, REDUCE, inputs, { -1, 1, -1, 1 }, { 0 }, 0, make_##name },                                      \
        { #name " of rows", REDUCE_ROWS, inputs, { -1, 1, -1, 1 }, { 0 }, 0, make_##name##_rows },           \
        { #name " of columns", REDUCE_COLUMNS, inputs, { -1, 1, -1, 1 }, { 0 }, 0, make_##name##_columns },
#define DEF_ROW(name, inputs, options)                                                                       \
    { #name, (enum kind)KIND_##options, inputs, { -1, 1, -1, 1 }, { 0 }, 0, make_##name },

static const operator_row operators[] = {
#define DUET_MAP1(name, formula, oracle, domain, ulp, flags, known, doc) MAP_ROW(name, 1, domain, ulp, known)
#define DUET_MAP2(name, formula, oracle, domain, ulp, flags, known, doc) MAP_ROW(name, 2, domain, ulp, known)
#define DUET_MAP3(name, formula, oracle, domain, ulp, flags, known, doc) MAP_ROW(name, 3, domain, ulp, known)
#define DUET_FOLD1(name, ...)                                            REDUCE_ROW(name, 1)
#define DUET_FOLD2(name, ...)                                            REDUCE_ROW(name, 2)
#define DUET_MOMENT1(name, ...)                                          REDUCE_ROW(name, 1)
#define DUET_PLACE1(name, ...)                                           REDUCE_ROW(name, 1)
#define DUET_DEF1(name, options, ...)                                    DEF_ROW(name, 1, options)
#define DUET_DEF2(name, options, ...)                                    DEF_ROW(name, 2, options)
#include <duet/ops.def>
};
static const int operator_count = sizeof operators / sizeof *operators;

typedef struct shape {
    int rank;
    int64_t size[4];
} shape;

/* Returns the shape of input k. If arithmetic and not memory limits the operator, sets *arithmetic
 * to the number of operations. */
static shape shape_of(const operator_row *r, int k, int64_t n, double *arithmetic)
{
    const int64_t side = n >= 1 << 24 ? 4096 : 1024, images = n / (64 * 32 * 32);
    if (!strcmp(r->name, "matmul")) {
        *arithmetic = 2.0 * (double)(side * side * side);
        return (shape){ 2, { side, side } };
    }
    if (!strcmp(r->name, "bias_add") && k) return (shape){ 1, { WIDTH } };
    const bool filters = strcmp(r->name, "conv2d_filter_grad") != 0; /* the second operand */
    if (r->kind == CONV && k && filters) {
        *arithmetic = 2.0 * 9 * 64 * (double)(images * 64 * 32 * 32);
        return (shape){ 4, { 64, 64, 3, 3 } };
    }
    if (r->kind == CONV || r->kind == POOL) return (shape){ 4, { images, 64, 32, 32 } };
    return (shape){ 2, { n / WIDTH, WIDTH } };
}

/* Sets the first element of an element-wise operator's inputs to the values whose result the row of
 * ops.def gives. */
static void put_known_input(const operator_row *r, duet_matrix *const in[])
{
    for (int k = 0; k < r->inputs && r->kind == MAP; k++) {
        float *v = duet_update(in[k]);
        if (v) *v = (float)r->known[k];
    }
}

static bool is_known(const operator_row *r, duet_matrix *m)
{
    const void *v = duet_read(m);
    const double want = r->known[r->inputs];
    if (duet_type(m) != DUET_F32) return v && *(const uint8_t *)v == want;
    return v && fabs(*(const float *)v - want) <= (r->ulp + 0.5) * 0x1p-23 * fmax(fabs(want), 0x1p-126);
}

/* Checks the first element of element-wise operators against ops.def, and that other results are
 * not NaN. The tests compare every bit; this is only to be sure that the operator ran. */
static bool is_correct(const operator_row *r, duet_matrix *m)
{
    if (r->kind == MAP) return is_known(r, m);
    if (duet_type(m) != DUET_F32) return duet_read(m) != NULL;
    const float *v = duet_read(m);
    for (int64_t i = 0; v && i < duet_count(m); i++)
        if (isnan(v[i])) return false;
    return v != NULL;
}

/* ---- peaks ---- */

static struct {
    duet_place place;
    duet_matrix *m[2];
    float *from, *to;
    int64_t n;
    double arithmetic; /* operations per second */
} peak;

static double copy_block(void *state, int64_t calls)
{
    const double start = now();
    const char *wrong = NULL;
    for (int64_t i = 0; i < calls && !wrong; i++)
        if (peak.place == DUET_GPU) wrong = handwritten_copy(peak.to, peak.from, peak.n);
        else copy_on_host(peak.to, peak.from, peak.n);
    if (peak.place == DUET_GPU && !wrong) wrong = handwritten_wait();
    if (wrong) fprintf(stderr, "duet-rows: copy: %s\n", wrong);
    if (wrong) return NAN;
    return now() - start;
}

static bool find_peak(duet_place place, int64_t n)
{
    peak.place = place;
    peak.n = n;
    for (int k = 0; k < 2; k++) {
        duet_free(&peak.m[k]);
        peak.m[k] = duet_new(DUET_F32, n);
        float *at = place == DUET_GPU ? duet_device_update(peak.m[k]) : duet_update(peak.m[k]);
        *(k ? &peak.to : &peak.from) = at;
        if (!at) return false;
    }
    if (place == DUET_GPU) peak.arithmetic = handwritten_peak();
    else peak.arithmetic = host_peak();
    printf("%s: peak arithmetic rate %.1f GFLOP/s in f32\n", place_name(place), peak.arithmetic / 1e9);
    return peak.arithmetic > 0;
}

static double fraction_of_peak(const contender c[2], double bytes, double arithmetic)
{
    if (arithmetic > 0) return arithmetic / (median_us(&c[0]) * 1e-6) / peak.arithmetic;
    return bytes / (8.0 * (double)peak.n) / median_ratio(&c[0], &c[1]);
}

static bool time_operator(json *j, const operator_row *r, statement *s, double bytes, double arithmetic,
                          effort how)
{
    contender c[2] = { { "Duet", statement_block, s }, { "copy", copy_block, NULL } };
    if (!s->m || !isfinite(statement_block(s, 1))) {
        fprintf(stderr, "duet-rows: %s: %s\n", r->name, duet_error());
        return false;
    }
    if (!is_correct(r, s->m)) {
        fprintf(stderr, "duet-rows: %s on %s: wrong result\n", r->name, place_name(s->place));
        return false;
    }
    if (!measure(c, 2, how)) return false;
    const double us = median_us(&c[0]), share = fraction_of_peak(c, bytes, arithmetic);
    printf("%-24s %-4s %12.2f us %7.1f %% of %s\n", r->name, place_name(s->place), us, 100 * share,
           arithmetic > 0 ? "arithmetic" : "memory");
    fflush(stdout);
    json_begin(j, NULL, '{');
    json_text(j, "bench", "ops");
    json_text(j, "row", r->name);
    json_text(j, "machine", place_name(s->place));
    json_number(j, "us", us);
    json_number(j, "share", share);
    json_text(j, "of", arithmetic > 0 ? "arithmetic" : "memory");
    json_end(j, '}');
    return true;
}

static bool run_operator(json *j, const operator_row *r, duet_place place, int64_t n, effort how)
{
    duet_matrix *in[3] = { NULL };
    double bytes = 0, arithmetic = 0;
    bool ok = true;
    for (int k = 0; k < r->inputs && ok; k++) {
        const shape s = shape_of(r, k, n, &arithmetic);
        in[k] = random_matrix(s.rank, s.size, r->range[2 * k], r->range[2 * k + 1]);
        ok = in[k] != NULL;
        if (ok) bytes += bytes_of(in[k]);
    }
    if (ok) put_known_input(r, in);
    statement s = { place, NULL, ok ? duet_hold(r->make(in)) : (duet_expr){ 0 } };
    if (ok) s.m = result_matrix(s.e);
    else s.m = NULL;
    if (s.m) bytes += bytes_of(s.m);
    ok = ok && time_operator(j, r, &s, bytes, arithmetic, how);
    duet_drop(s.e);
    duet_free(&s.m);
    for (int k = 0; k < 3; k++) duet_free(&in[k]);
    return ok;
}

/* ---- the run ---- */

typedef struct options {
    bool cpu, gpu, quick;
    const char *json;
} options;

static bool parse(options *o, char **argv)
{
    *o = (options){ true, true };
    while (*++argv)
        if (!strcmp(*argv, "--quick")) o->quick = true;
        else if (!argv[1]) return false;
        else if (!strcmp(*argv, "--json")) o->json = *++argv;
        else if (!strcmp(*argv, "--backend")) {
            argv++;
            o->cpu = strcmp(*argv, "gpu") != 0;
            o->gpu = strcmp(*argv, "cpu") != 0;
        } else {
            return false;
        }
    return true;
}

static bool run_place(json *j, const options *o, duet_place place)
{
    const effort how = o->quick ? (effort){ 0.003, 0.002, 5 } : effort_full;
    const bool large = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE) > 32e9;
    int64_t n = large ? 1 << 26 : 1 << 24;
    if (o->quick) n = 1 << 20;
    bool ok = true;
    if (!find_peak(place, n)) return false;
    for (int i = 0; i < operator_count; i++) ok &= run_operator(j, &operators[i], place, n, how);
    return ok;
}

static const char *why_no_gpu(void) { return duet_stream() ? handwritten_open(duet_stream()) : duet_error(); }

int main(int argc, char **argv)
{
    options o;
    json j;
    if (!parse(&o, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    const char *why = o.gpu ? why_no_gpu() : NULL;
    if (why) {
        fprintf(stderr, "duet-rows: no GPU: %s\n", why);
        o.gpu = false;
    }
    if (!json_open(&j, o.json)) return 1;
    json_begin(&j, "results", '[');
    bool ok = o.cpu || o.gpu;
    if (o.cpu) ok &= run_place(&j, &o, DUET_CPU);
    if (o.gpu) ok &= run_place(&j, &o, DUET_GPU);
    json_end(&j, ']');
    for (int k = 0; k < 2; k++) duet_free(&peak.m[k]);
    if (json_close(&j) && ok) return 0;
    return 1;
}
