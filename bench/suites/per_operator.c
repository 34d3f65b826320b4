/* per_operator.c - times operators of each kind at a small, a medium and a large size. It is a
 * module that per_operator.py loads, so that Duet and its peers run in one process, in turns. It
 * has Duet's calls, and on the CPU the vendors' bare calls. */
#include "per_operator.h"
#include "data.h"
#include "json.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LENGTH(a) (int)(sizeof(a) / sizeof *(a))

/* ---- the cases ---- */

#define MAKE(name, ...)                                                                                      \
    static duet_expr make_##name(duet_matrix *const *x) { return __VA_ARGS__; }
MAKE(add, duet_add(x[0], x[1]))
MAKE(gelu, duet_gelu(x[0]))
MAKE(less, duet_less(x[0], x[1]))
MAKE(sum, duet_sum(x[0]))
MAKE(sum_rows, duet_sum_axis(x[0], 1))
MAKE(sum_columns, duet_sum_axis(x[0], 0))
MAKE(var_rows, duet_var_axis(x[0], 1))
MAKE(argmax_rows, duet_argmax_axis(x[0], 1))
MAKE(softmax, duet_softmax(x[0]))
MAKE(layer_norm, duet_layer_norm(x[0], x[1], x[2], 1e-5))
MAKE(transpose, duet_transpose(x[0]))
MAKE(matmul, duet_matmul(x[0], x[1]))
MAKE(conv2d, duet_conv2d(x[0], x[1], .pad = { 1, 1 }))
MAKE(conv2d_input_grad, duet_conv2d_input_grad(x[0], x[1], .pad = { 1, 1 }))
MAKE(conv2d_filter_grad, duet_conv2d_filter_grad(x[0], x[1], .pad = { 1, 1 }))
MAKE(max_pool2d, duet_max_pool2d(x[0], .window = { 2, 2 }))
MAKE(avg_pool2d, duet_avg_pool2d(x[0], .window = { 2, 2 }))
MAKE(fft, duet_fft(x[0], 0, 1))
MAKE(rfft2, duet_rfft2(x[0]))
MAKE(cumsum, duet_cumsum(x[0], 0))
MAKE(sort, duet_sort(x[0], 0))
MAKE(take, duet_take(x[0], x[1], 0))
MAKE(top_k, duet_top_k(x[0], 10, 1))
MAKE(histogram, duet_histogram(x[0], -1, 1, 256))
MAKE(solve, duet_solve(x[0], x[1]))
MAKE(inv, duet_inv(x[0]))
MAKE(cholesky, duet_cholesky(x[0]))
MAKE(eigvalsh, duet_eigvalsh(x[0]))
MAKE(svdvals, duet_svdvals(x[0]))
static duet_status state_qr(duet_matrix *const *y, duet_matrix *const *x)
{
    return duet_qr(y[1], y[0], x[0]);
}
static duet_status state_uniform(duet_matrix *const *y, duet_matrix *const *x)
{
    return duet_random_uniform(y[0], 1, 0, 1);
}
static duet_status state_normal(duet_matrix *const *y, duet_matrix *const *x)
{
    return duet_random_normal(y[0], 1, 0, 1);
}

// clang-format off
#define OF1(a)       { a }
#define OF2(a, b)    { a, b }
#define UP(...)      { __VA_ARGS__ } /* sizes from small to large */
#define S(...)       { __VA_ARGS__ }
#define VECTOR       UP({ S(1000) }, { S(1000000) }, { S(10000000) })
#define VECTORS      UP({ S(1000), S(1000) }, { S(1000000), S(1000000) }, { S(10000000), S(10000000) })
#define SQUARES      UP({ S(32, 32) }, { S(1000, 1000) }, { S(4096, 4096) })
#define PRODUCTS     UP({ S(32, 32), S(32, 32) }, { S(512, 512), S(512, 512) }, { S(2048, 2048), S(2048, 2048) })
#define BY_VECTOR    UP({ S(64, 64), S(64) }, { S(1024, 1024), S(1024) }, { S(8192, 8192), S(8192) })
#define BATCHES      UP({ S(64, 16, 16), S(64, 16, 16) }, { S(64, 128, 128), S(64, 128, 128) }, { S(32, 512, 512), S(32, 512, 512) })
#define IMAGES       UP({ S(1, 3, 32, 32), S(16, 3, 3, 3) }, { S(32, 16, 32, 32), S(32, 16, 3, 3) }, { S(32, 64, 56, 56), S(64, 64, 3, 3) })
#define TO_IMAGES    UP({ S(1, 16, 32, 32), S(16, 3, 3, 3) }, { S(32, 32, 32, 32), S(32, 16, 3, 3) }, { S(32, 64, 56, 56), S(64, 64, 3, 3) })
#define TO_FILTERS   UP({ S(1, 3, 32, 32), S(1, 16, 32, 32) }, { S(32, 16, 32, 32), S(32, 32, 32, 32) }, { S(32, 64, 56, 56), S(32, 64, 56, 56) })
#define POOLED       UP({ S(1, 16, 32, 32) }, { S(32, 32, 32, 32) }, { S(64, 64, 56, 56) })
#define ROWS         UP({ S(32, 10) }, { S(1000, 1000) }, { S(16384, 1024) })
#define NORMED       UP({ S(32, 10), S(10), S(10) }, { S(1000, 1000), S(1000), S(1000) }, { S(16384, 1024), S(1024), S(1024) })
#define SIGNALS      UP({ S(1, 1024) }, { S(1000, 1024) }, { S(1, 4194304) })
#define PLANES       UP({ S(64, 64) }, { S(512, 512) }, { S(4096, 4096) })
#define MATRIX       UP({ S(16, 16) }, { S(256, 256) }, { S(1024, 1024) })
#define SYSTEM       UP({ S(16, 16), S(16) }, { S(256, 256), S(256) }, { S(1024, 1024), S(1024) })
#define TABLE        UP({ S(100, 16), S(100) }, { S(10000, 128), S(10000) }, { S(100000, 512), S(100000) })
#define F            DUET_F32
#define BY(what, of) bare_##what, of

static const operator_case rows[] = {
    { "element-wise",   "add",                { F, F },               NOISE,   VECTORS,    make_add,                NULL,          BY(add, "oneDNN") },
    { "element-wise",   "add f16",            { DUET_F16, DUET_F16 }, NOISE,   VECTORS,    make_add,                NULL,          NULL, NULL },
    { "element-wise",   "add i32",            { DUET_I32, DUET_I32 }, NOISE,   VECTORS,    make_add,                NULL,          NULL, NULL },
    { "element-wise",   "less",               { F, F },               NOISE,   VECTORS,    make_less,               NULL,          NULL, NULL },
    { "element-wise",   "gelu",               { F },                  NOISE,   VECTOR,     make_gelu,               NULL,          BY(gelu, "oneDNN") },
    { "reductions",     "sum",                { F },                  NOISE,   VECTOR,     make_sum,                NULL,          NULL, NULL },
    { "reductions",     "sum of rows",        { F },                  NOISE,   SQUARES,    make_sum_rows,           NULL,          BY(sum_rows, "oneDNN") },
    { "reductions",     "sum of columns",     { F },                  NOISE,   SQUARES,    make_sum_columns,        NULL,          BY(sum_columns, "oneDNN") },
    { "reductions",     "var of rows",        { F },                  NOISE,   SQUARES,    make_var_rows,           NULL,          NULL, NULL },
    { "reductions",     "argmax of rows",     { F },                  NOISE,   SQUARES,    make_argmax_rows,        NULL,          NULL, NULL },
    { "shapes",         "transpose",          { F },                  NOISE,   SQUARES,    make_transpose,          NULL,          NULL, NULL },
    { "products",       "matmul",             { F, F },               NOISE,   PRODUCTS,   make_matmul,             NULL,          BY(sgemm, "OpenBLAS or oneDNN") },
    { "products",       "matmul f64",         { DUET_F64, DUET_F64 }, NOISE,   PRODUCTS,   make_matmul,             NULL,          BY(dgemm, "OpenBLAS") },
    { "products",       "matrix by vector",   { F, F },               NOISE,   BY_VECTOR,  make_matmul,             NULL,          BY(sgemv, "OpenBLAS") },
    { "products",       "batched matmul",     { F, F },               NOISE,   BATCHES,    make_matmul,             NULL,          BY(batched, "OpenBLAS or oneDNN, one by one") },
    { "networks",       "conv2d",             { F, F },               NOISE,   IMAGES,     make_conv2d,             NULL,          BY(conv2d, "oneDNN") },
    { "networks",       "conv2d_input_grad",  { F, F },               NOISE,   TO_IMAGES,  make_conv2d_input_grad,  NULL,          BY(conv2d_input_grad, "oneDNN") },
    { "networks",       "conv2d_filter_grad", { F, F },               NOISE,   TO_FILTERS, make_conv2d_filter_grad, NULL,          BY(conv2d_filter_grad, "oneDNN") },
    { "networks",       "max_pool2d",         { F },                  NOISE,   POOLED,     make_max_pool2d,         NULL,          BY(max_pool2d, "oneDNN") },
    { "networks",       "avg_pool2d",         { F },                  NOISE,   POOLED,     make_avg_pool2d,         NULL,          BY(avg_pool2d, "oneDNN") },
    { "networks",       "softmax",            { F },                  NOISE,   ROWS,       make_softmax,            NULL,          BY(softmax, "oneDNN") },
    { "networks",       "layer_norm",         { F, F, F },            NOISE,   NORMED,     make_layer_norm,         NULL,          BY(layer_norm, "oneDNN") },
    { "transforms",     "fft",                { DUET_C64 },           NOISE,   SIGNALS,    make_fft,                NULL,          BY(fft, "FFTW") },
    { "transforms",     "rfft2",              { F },                  NOISE,   PLANES,     make_rfft2,              NULL,          BY(rfft2, "FFTW") },
    { "linear algebra", "solve",              { F, F },               REGULAR, SYSTEM,     make_solve,              NULL,          BY(solve, "LAPACK") },
    { "linear algebra", "inv",                { F },                  REGULAR, MATRIX,     make_inv,                NULL,          BY(inv, "LAPACK") },
    { "linear algebra", "cholesky",           { F },                  REGULAR, MATRIX,     make_cholesky,           NULL,          BY(cholesky, "LAPACK") },
    { "linear algebra", "qr",                 { F },                  REGULAR, MATRIX,     NULL,                    state_qr,      BY(qr, "LAPACK") },
    { "linear algebra", "eigvalsh",           { F },                  REGULAR, MATRIX,     make_eigvalsh,           NULL,          BY(eigvalsh, "LAPACK") },
    { "linear algebra", "svdvals",            { F },                  REGULAR, MATRIX,     make_svdvals,            NULL,          BY(svdvals, "LAPACK") },
    { "order",          "cumsum",             { F },                  NOISE,   VECTOR,     make_cumsum,             NULL,          NULL, NULL },
    { "order",          "sort",               { F },                  NOISE,   VECTOR,     make_sort,               NULL,          NULL, NULL },
    { "order",          "histogram",          { F },                  NOISE,   VECTOR,     make_histogram,          NULL,          NULL, NULL },
    { "order",          "top_k",              { F },                  NOISE,   ROWS,       make_top_k,              NULL,          NULL, NULL },
    { "order",          "take",               { F, DUET_I64 },        NOISE,   TABLE,      make_take,               NULL,          NULL, NULL },
    { "random",         "uniform",            { F },                  NOISE,   VECTOR,     NULL,                    state_uniform, NULL, NULL },
    { "random",         "normal",             { F },                  NOISE,   VECTOR,     NULL,                    state_normal,  NULL, NULL },
};
// clang-format on

/* ---- for Python ---- */

/* A case at one size on one device. */
typedef struct trial {
    const operator_case *row;
    duet_place place;
    duet_matrix *x[CASE_OPERANDS], *y[2];
    bare b;
} trial;

__attribute__((visibility("default"))) int case_count(void) { return LENGTH(rows); }
__attribute__((visibility("default"))) const char *case_family(int i) { return rows[i].family; }
__attribute__((visibility("default"))) const char *case_name(int i) { return rows[i].name; }
__attribute__((visibility("default"))) const char *case_vendor(int i) { return rows[i].vendor; }
__attribute__((visibility("default"))) const char *case_error(void) { return duet_error(); }

/* Returns the number of the element type with this name, or -1. */
__attribute__((visibility("default"))) int type_number(const char *name)
{
    static const char *const names[] = {
        [DUET_F32] = "f32", [DUET_F64] = "f64",   [DUET_I64] = "i64", [DUET_F16] = "f16",
        [DUET_I32] = "i32", [DUET_BOOL] = "bool", [DUET_C64] = "c64"
    };
    for (int i = 0; i < LENGTH(names); i++)
        if (names[i] && !strcmp(names[i], name)) return i;
    return -1;
}

/* Writes a JSON file that describes where the benchmark runs. */
__attribute__((visibility("default"))) bool write_environment(const char *path)
{
    json j;
    return json_open(&j, path) && json_close(&j);
}

static int rank_of(const int64_t *size)
{
    int rank = 0;
    while (rank < 4 && size[rank]) rank++;
    return rank;
}

/* Returns element i of an operand with n columns. Indices are random numbers below the number of
 * rows. */
static double value(const operator_case *r, int operand, int64_t i, int64_t n)
{
    const double v = (double)noise((uint32_t)operand + 1, i);
    if (r->type[operand] == DUET_I64) return (double)(int64_t)((v + 1) / 2 * (double)n);
    if (r->type[operand] == DUET_I32) return (double)(int64_t)(v * 1000);
    if (r->fill == REGULAR && operand == 0 && i / n == i % n) return v + 2 * (double)n;
    return v;
}

static bool fill(const operator_case *r, int k, duet_matrix *m)
{
    const int64_t n = duet_size(m, duet_rank(m) - 1), count = duet_count(m);
    if (r->type[k] == DUET_C64) {
        float *p = duet_overwrite(m);
        for (int64_t i = 0; p && i < 2 * count; i++) p[i] = noise((uint32_t)k + 1, i);
        return p != NULL;
    }
    duet_matrix *wide = duet_new(DUET_F64, count), *flat = duet_reshaped(m, count);
    double *p = duet_overwrite(wide);
    for (int64_t i = 0; p && i < count; i++) p[i] = value(r, k, i, n);
    const bool ok = p && duet_set_on(DUET_CPU, flat, duet_cast(wide, r->type[k])) == DUET_OK;
    duet_free(&wide);
    duet_free(&flat);
    return ok;
}

static bool take_results(trial *t)
{
    if (t->row->state) {
        const int64_t *size = t->b.size[0];
        for (int k = 0; k < 2; k++) t->y[k] = duet_new_shape(t->row->type[0], rank_of(size), size);
        return t->y[0] && t->y[1];
    }
    const duet_expr e = t->row->make(t->x);
    int64_t size[DUET_RANK_MAX];
    for (int a = 0; a < duet_expr_rank(e); a++) size[a] = duet_expr_size(e, a);
    if (duet_expr_status(e) == DUET_OK) t->y[0] = duet_new_shape(duet_expr_type(e), duet_expr_rank(e), size);
    else t->y[0] = NULL;
    return duet_drop(e) == DUET_OK && t->y[0];
}

static duet_status statement(trial *t)
{
    if (t->row->make) return duet_set(t->y[0], t->row->make(t->x));
    return t->row->state(t->y, t->x);
}

__attribute__((visibility("default"))) void trial_close(trial *t)
{
    for (int k = 0; k < CASE_OPERANDS; k++) duet_free(&t->x[k]);
    for (int k = 0; k < 2; k++) duet_free(&t->y[k]);
    bare_end(&t->b);
    free(t);
}

/* Creates the matrices and runs the statement once. Returns NULL on failure; case_error() says
 * why. */
__attribute__((visibility("default"))) trial *trial_open(int row, int size, int on_gpu)
{
    trial *t = calloc(1, sizeof *t);
    t->row = &rows[row];
    if (on_gpu) t->place = DUET_GPU;
    else t->place = DUET_CPU;
    t->b.size = rows[row].size[size];
    bool ok = true;
    for (int k = 0; ok && k < CASE_OPERANDS && t->b.size[k][0]; k++) {
        t->x[k] = duet_new_shape(t->row->type[k], rank_of(t->b.size[k]), t->b.size[k]);
        ok = t->x[k] && fill(t->row, k, t->x[k]);
    }
    ok = ok && take_results(t);
    if (ok) DUET_ON(t->place) ok = statement(t) == DUET_OK;
    if (!ok) {
        trial_close(t);
        t = NULL;
    }
    return t;
}

/* Returns the elements, type and shape of operand k, or of the result if k is CASE_OPERANDS. NULL:
 * there is no such operand. */
__attribute__((visibility("default"))) const void *trial_data(trial *t, int k, int *type, int *rank,
                                                              int64_t *size)
{
    const duet_matrix *m = k < CASE_OPERANDS ? t->x[k] : t->y[0];
    if (!m) return NULL;
    *type = (int)duet_type(m);
    *rank = duet_rank(m);
    for (int a = 0; a < *rank; a++) size[a] = duet_size(m, a);
    return duet_read(m);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs the statement `calls` times, waits for the device, and returns the seconds; a negative
 * number on failure. */
__attribute__((visibility("default"))) double trial_run(trial *t, int64_t calls)
{
    duet_status s = DUET_OK;
    const double start = now();
    DUET_ON(t->place) for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = statement(t);
    if (s == DUET_OK && t->place == DUET_GPU) s = duet_synchronize();
    if (s == DUET_OK) return now() - start;
    return -1;
}

/* Does the same with the vendor's bare call. *y points to its result, which has as many bytes as
 * that of the statement. */
__attribute__((visibility("default"))) double trial_bare(trial *t, int64_t calls, const void **y)
{
    bool ok = t->row->bare != NULL && bare_begin(&t->b, t->x, t->y[0]);
    const double start = now();
    for (int64_t i = 0; i < calls && ok; i++) ok = t->row->bare(&t->b);
    *y = t->b.y;
    if (ok) return now() - start;
    return -1;
}
