/* distributed_cases.c - the table of the cases of duet-distributed: their matrices, statements and sizes. */
#include "distributed.h"
#include <math.h>

enum { COLUMNS = 1000, TINY = 4, SUMMANDS = 1024, CONTRACTED = 8, MOST_DRAWN = 1 << 22 };

/* ---- y = 3.3 x + y, and the sum of x; n elements ---- */

static bool saxpy_open(trial *t)
{
    const int64_t rows = t->n / COLUMNS;
    duet_matrix *x = ADD(t, DUET_F32, 0, rows, COLUMNS), *y = x ? ADD(t, DUET_F32, 0, rows, COLUMNS) : NULL;
    return y && fill(t, x, 1, -1, 1) && fill(t, y, 2, -1, 1);
}

static duet_status saxpy_run(const trial *t)
{
    return duet_set(t->m[1], duet_add(duet_mul(3.3f, t->m[0]), t->m[1]));
}

static double saxpy_work(const trial *t) { return 12e-9 * (double)t->n; }

static bool sum_open(trial *t)
{
    duet_matrix *x = ADD(t, DUET_F32, 0, t->n / COLUMNS, COLUMNS);
    return x && add_shape(t, DUET_F32, WHOLE, 0, NULL) && fill(t, x, 1, -1, 1);
}

static duet_status sum_run(const trial *t) { return duet_set(t->m[1], duet_sum(t->m[0])); }
static double sum_work(const trial *t) { return 4e-9 * (double)t->n; }

/* ---- products: the rows of the left operand split; the rows of both; both along the contracted axis ---- */

static bool product_open(trial *t, int split_of_right)
{
    duet_matrix *a = ADD(t, DUET_F32, 0, t->n, t->base),
                *w = a ? ADD(t, DUET_F32, split_of_right, t->base, t->base) : NULL;
    return w && ADD(t, DUET_F32, 0, t->n, t->base) && fill(t, a, 1, -1, 1) && fill(t, w, 2, -1, 1);
}

static bool matmul_open(trial *t) { return product_open(t, WHOLE); }
static bool large_open(trial *t) { return product_open(t, 0); }

static duet_status matmul_run(const trial *t) { return duet_set(t->m[2], duet_matmul(t->m[0], t->m[1])); }

static double matmul_work(const trial *t) { return 2e-9 * (double)t->n * (double)t->base * (double)t->base; }

static bool contracted_open(trial *t)
{
    const int64_t side = t->n / 16;
    duet_matrix *a = ADD(t, DUET_F32, 1, side, t->n), *b = ADD(t, DUET_F32, 0, t->n, side);
    return a && b && ADD(t, DUET_F32, WHOLE, side, side) && fill(t, a, 1, -1, 1) && fill(t, b, 2, -1, 1);
}

static double contracted_work(const trial *t) { return 2e-9 / 256 * pow((double)t->n, 3); }

/* ---- the Fourier transform of n x n complex numbers: along the rows, which are split, then along the
 *      columns; the result is split by columns ---- */

static bool fft_open(trial *t)
{
    duet_matrix *x = ADD(t, DUET_C64, 0, t->n, t->n);
    return x && ADD(t, DUET_C64, 1, t->n, t->n) && fill(t, x, 1, -1, 1);
}

static duet_status fft_run(const trial *t)
{
    return duet_set(t->m[1], duet_fft(duet_fft(t->m[0], t->n, 1), t->n, 0));
}

static double fft_work(const trial *t) { return 1e-9 * 10 * pow((double)t->n, 2) * log2((double)t->n); }

/* The same as one operator. */
static duet_status fft2_run(const trial *t) { return duet_set(t->m[1], duet_fft2(t->m[0])); }

/* ---- assignments that only communicate. Their rate is the bandwidth that each rank needs, as in NCCL's
 *      tests: the bytes that the best algorithm sends or receives ---- */

static double others(const trial *t) { return (double)(t->parts - 1) / (double)t->parts; }

static bool gather_open(trial *t)
{
    duet_matrix *x = ADD(t, DUET_F32, 0, t->n, t->n);
    return x && ADD(t, DUET_F32, WHOLE, t->n, t->n) && fill(t, x, 1, -1, 1);
}

static bool exchange_open(trial *t)
{
    duet_matrix *x = ADD(t, DUET_F32, 0, t->n, t->n);
    return x && ADD(t, DUET_F32, 1, t->n, t->n) && fill(t, x, 1, -1, 1);
}

static duet_status assign_run(const trial *t) { return duet_set(t->m[1], t->m[0]); }
static double gather_work(const trial *t) { return 4e-9 * pow((double)t->n, 2) * others(t); }
static double exchange_work(const trial *t)
{
    return 4e-9 * pow((double)t->n, 2) * others(t) / (double)t->parts;
}

/* Each rank has one matrix of n elements; all get their sum, which has the same bits as on one rank. */
static bool summands_open(trial *t)
{
    const int64_t rows = t->n / SUMMANDS;
    duet_matrix *x = ADD(t, DUET_F32, 0, t->parts, rows, SUMMANDS);
    return x && ADD(t, DUET_F32, WHOLE, rows, SUMMANDS) && fill(t, x, 1, -1, 1);
}

static duet_status summands_run(const trial *t) { return duet_set(t->m[1], duet_sum_axis(t->m[0], 0)); }
/* A product with a vector, whose contracted axis is split: each rank has a vector of n partial sums. An axis
 * of 8 elements for each rank is so long that the planner adds partial sums, and does not gather the
 * matrix. */
static bool reduce_open(trial *t)
{
    duet_matrix *a = ADD(t, DUET_F32, 1, t->n, CONTRACTED * t->parts),
                *b = ADD(t, DUET_F32, 0, CONTRACTED * t->parts);
    if (!a || !b || !ADD(t, DUET_F32, WHOLE, t->n) || !fill(t, b, 2, -1, 1)) return false;
    return t->n > MOST_DRAWN ? duet_set(a, 0.5f) == DUET_OK : fill(t, a, 1, -1, 1);
}

static double reduce_work(const trial *t) { return 4e-9 * 2 * (double)t->n * others(t); }

/* ---- statements with tiny matrices: overhead ---- */

static bool tiny_open(trial *t)
{
    duet_matrix *x = ADD(t, DUET_F32, 0, t->n, TINY), *w = ADD(t, DUET_F32, WHOLE, TINY, TINY);
    return x && w && ADD(t, DUET_F32, 0, t->n, TINY) && add_shape(t, DUET_F32, WHOLE, 0, NULL) &&
           fill(t, x, 1, -1, 1) && fill(t, w, 2, -1, 1);
}

static duet_status tiny_map_run(const trial *t) { return duet_set(t->m[2], duet_mul(2, t->m[0])); }
static duet_status tiny_sum_run(const trial *t) { return duet_set(t->m[3], duet_sum(t->m[0])); }

static double one(const trial *t)
{
    (void)t;
    return 1;
}
static double batch(const trial *t) { return (double)t->n; }

/* ---- the table ---- */

#define M(k) (1u << (k))
#define ALL  (~3u) /* the outputs of a network: all but input and target */
#define VECTOR                                                                                               \
    {                                                                                                        \
        200 * COLUMNS, 20000 * COLUMNS, 100000 * COLUMNS, 1000000 * COLUMNS                                  \
    }

// clang-format off
const test tests[] = {
    /* name              mode        tolerance outputs unit       work             open              run           sizes */
    { "saxpy",            STRONG,     0,    M(1), "GB/s",    saxpy_work,      saxpy_open,       saxpy_run,    VECTOR },
    { "saxpy",            WEAK,       0,    M(1), "GB/s",    saxpy_work,      saxpy_open,       saxpy_run,    VECTOR },
    { "sum",              STRONG,     0,    M(1), "GB/s",    sum_work,        sum_open,         sum_run,      VECTOR },
    { "sum",              WEAK,       0,    M(1), "GB/s",    sum_work,        sum_open,         sum_run,      VECTOR },
    { "matmul",           STRONG,     1e-4, M(2), "GFLOP/s", matmul_work,     matmul_open,      matmul_run,   { 96, 768, 8192, 16384 } },
    { "matmul",           WEAK,       1e-4, M(2), "GFLOP/s", matmul_work,     matmul_open,      matmul_run,   { 96, 512, 4096, 16384 } },
    { "dense_train",      WEAK,       1e-4, ALL,  "items/s", batch,           dense_train_open, train_run,    { 96, 1024, 16384, 16384 } },
    { "dense_train",      STRONG,     1e-4, ALL,  "items/s", batch,           dense_train_open, train_run,    { 96, 2048, 16384, 16384 } },
    { "dense_forward",    WEAK,       1e-4, M(2), "items/s", batch,           dense_open,       dense_run,    { 96, 1024, 16384, 16384 } },
    { "cnn_train",        WEAK,       1e-3, ALL,  "items/s", batch,           cnn_train_open,   train_run,    { 12, 64, 4096, 4096 } },
    { "all_gather",       COLLECTIVE, 0,    M(1), "GB/s",    gather_work,     gather_open,      assign_run,   { 99, 2048, 8192, 16384 } },
    { "all_reduce",       COLLECTIVE, 1e-4, M(2), "GB/s",    reduce_work,     reduce_open,      matmul_run,   { 9216, 1 << 20, 1 << 25, 1 << 27 } },
    { "sum_of_parts",     COLLECTIVE, 0,    M(1), "GB/s",    reduce_work,     summands_open,    summands_run, { 9216, 1 << 20, 1 << 25, 1 << 27 } },
    { "all_to_all",       COLLECTIVE, 0,    M(1), "GB/s",    exchange_work,   exchange_open,    assign_run,   { 99, 2048, 8192, 16384 } },
    { "fft",              STRONG,     1e-4, M(1), "GFLOP/s", fft_work,        fft_open,         fft_run,      { 96, 1024, 8192, 16384 } },
    { "fft2",             STRONG,     1e-4, M(1), "GFLOP/s", fft_work,        fft_open,         fft2_run,     { 96, 1024, 8192, 16384 } },
    { "matmul_contracted", STRONG,    1e-4, M(2), "GFLOP/s", contracted_work, contracted_open,  matmul_run,   { 1024, 8192, 65536, 131072 } },
    { "matmul_large",     STRONG,     1e-4, M(2), "GFLOP/s", matmul_work,     large_open,       matmul_run,   { 128, 1024, 16384, 32768 } },
    { "map",              OVERHEAD,   0,    M(2), "calls/s", one,             tiny_open,        tiny_map_run, { 64, 64, 64, 64 } },
    { "matmul",           OVERHEAD,   1e-4, M(2), "calls/s", one,             tiny_open,        matmul_run,   { 64, 64, 64, 64 } },
    { "sum",              OVERHEAD,   0,    M(3), "calls/s", one,             tiny_open,        tiny_sum_run, { 64, 64, 64, 64 } },
};
// clang-format on
const int test_count = sizeof tests / sizeof *tests;
