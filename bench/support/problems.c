/* problems.c - the five benchmarks, one row each: their matrices, their statements in Duet, and the
 * vendor calls that they are compared with. */
#include "bench.h"
#include <math.h>

#define STEP(call)                                                                                           \
    do {                                                                                                     \
        duet_status status_ = (call);                                                                        \
        if (status_ != DUET_OK) return status_;                                                              \
    } while (0)

/* ---- y = 3.3 x + y ---- */

static const tensor saxpy_tensors[] = { { IN, 0, { N } }, { IN, 0, { N } }, { END } };

static duet_status saxpy_run(const problem *p)
{
    duet_matrix *x = p->m[0], *y = p->m[1];
    return duet_set(y, duet_add(duet_mul(3.3f, x), y));
}

static bool saxpy_bare(const problem *p, const engine *e, float *const at[])
{
    return e->axpy(p->n, 3.3f, at[0], at[1]);
}

/* ---- C = A B ---- */

static const tensor sgemm_tensors[] = {
    { IN, 0, { N, N } }, { IN, 0, { N, N } }, { OUT, 0, { N, N } }, { END }
};

static duet_status sgemm_run(const problem *p)
{
    duet_matrix *A = p->m[0], *B = p->m[1], *C = p->m[2];
    return duet_set(C, duet_matmul(A, B));
}

static bool sgemm_bare(const problem *p, const engine *e, float *const at[])
{
    return e->gemm(p->n, p->n, p->n, at[0], at[1], at[2]);
}

/* ---- C = X (1.2 X + Y) (-1.2 Y - X); the fourth matrix is for the vendor's products only ---- */

static const tensor complex_tensors[] = {
    { IN, 0, { N, N } }, { IN, 0, { N, N } }, { OUT, 0, { N, N } }, { OUT, 0, { N, N } }, { END },
};

static duet_status complex_run(const problem *p)
{
    duet_matrix *X = p->m[0], *Y = p->m[1], *C = p->m[2];
    return duet_set(C, duet_matmul(duet_matmul(X, duet_add(duet_mul(X, 1.2f), Y)),
                                   duet_sub(duet_mul(-1.2f, Y), X)));
}

static bool complex_bare(const problem *p, const engine *e, float *const at[])
{
    return e->gemm(p->n, p->n, p->n, at[0], at[1], at[3]) && e->gemm(p->n, p->n, p->n, at[3], at[1], at[2]);
}

/* ---- dense network 784-1000-1000-10 with sigmoid, forward pass ---- */

// clang-format off
static const tensor dense_tensors[] = {
    { IN, 0,    { N, 784 } },
    { IN, 784,  { 784, 1000 } },  { IN, 784,  { 1000 } }, { OUT, 0, { N, 1000 } },
    { IN, 1000, { 1000, 1000 } }, { IN, 1000, { 1000 } }, { OUT, 0, { N, 1000 } },
    { IN, 1000, { 1000, 10 } },   { IN, 1000, { 10 } },   { OUT, 0, { N, 10 } },
    { END },
};
// clang-format on

static duet_status dense_run(const problem *p)
{
    duet_matrix *in = p->m[0], *w1 = p->m[1], *b1 = p->m[2], *o1 = p->m[3];
    duet_matrix *w2 = p->m[4], *b2 = p->m[5], *o2 = p->m[6], *w3 = p->m[7], *b3 = p->m[8], *o3 = p->m[9];
    STEP(duet_set(o1, duet_sigmoid(duet_bias_add(duet_matmul(in, w1), b1))));
    STEP(duet_set(o2, duet_sigmoid(duet_bias_add(duet_matmul(o1, w2), b2))));
    STEP(duet_set(o3, duet_sigmoid(duet_bias_add(duet_matmul(o2, w3), b3))));
    return DUET_OK;
}

static bool dense_bare(const problem *p, const engine *e, float *const at[])
{
    return e->gemm(p->n, 1000, 784, at[0], at[1], at[3]) && e->gemm(p->n, 1000, 1000, at[3], at[4], at[6]) &&
           e->gemm(p->n, 10, 1000, at[6], at[7], at[9]);
}

/* ---- convolutional network, forward pass: 16 filters of 3x3, relu, pooling, 32 filters of 3x3,
 *      relu, pooling, dense 1000, relu, dense 10, softmax ---- */

// clang-format off
static const tensor cnn_tensors[] = {
    { IN, 0,    { N, 3, 32, 32 } },
    { IN, 27,   { 16, 3, 3, 3 } },  { IN, 27,   { 16 } },   { OUT, 0, { N, 16, 16, 16 } },
    { IN, 144,  { 32, 16, 3, 3 } }, { IN, 144,  { 32 } },   { OUT, 0, { N, 32, 8, 8 } },
    { IN, 2048, { 2048, 1000 } },   { IN, 2048, { 1000 } }, { OUT, 0, { N, 1000 } },
    { IN, 1000, { 1000, 10 } },     { IN, 1000, { 10 } },   { OUT, 0, { N, 10 } },
};
// clang-format on

static duet_status cnn_run(const problem *p)
{
    duet_matrix *in = p->m[0], *k1 = p->m[1], *b1 = p->m[2], *p1 = p->m[3], *k2 = p->m[4], *b2 = p->m[5],
                *p2 = p->m[6];
    duet_matrix *w3 = p->m[7], *b3 = p->m[8], *o3 = p->m[9], *w4 = p->m[10], *b4 = p->m[11], *o4 = p->m[12];
    STEP(duet_set(p1, duet_max_pool2d(duet_relu(duet_bias_add(duet_conv2d(in, k1, .pad = { 1, 1 }), b1)),
                                      .window = { 2, 2 })));
    STEP(duet_set(p2, duet_max_pool2d(duet_relu(duet_bias_add(duet_conv2d(p1, k2, .pad = { 1, 1 }), b2)),
                                      .window = { 2, 2 })));
    STEP(duet_set(o3, duet_relu(duet_bias_add(duet_matmul(p->flat, w3), b3))));
    STEP(duet_set(o4, duet_softmax(duet_bias_add(duet_matmul(o3, w4), b4))));
    return DUET_OK;
}

/* ---- the table ---- */

static int64_t rows_of_output(const problem *p) { return tensor_size(p, p->bench->output, 0); }
static int64_t rows_of_vector(const problem *p) { return (p->n + VECTOR_ROW - 1) / VECTOR_ROW; }

int64_t saxpy_row(const problem *p, int64_t row, double *want, double *scratch);
int64_t sgemm_row(const problem *p, int64_t row, double *want, double *scratch);
int64_t complex_row(const problem *p, int64_t row, double *want, double *scratch);
int64_t dense_row(const problem *p, int64_t row, double *want, double *scratch);
int64_t cnn_row(const problem *p, int64_t row, double *want, double *scratch);

// clang-format off
#define ORDERS  { 10, 20, 50, 100, 200, 300, 500, 700, 1000, 1500, 2000 }, { 10, 100, 500 }
#define BATCHES { 1, 2, 5, 10, 20, 50, 100, 200, 512, 1000, 2000, 4096, 16384 }, { 1, 16, 256 }
#define LENGTHS { 100, 1000, 10000, 100000, 1000000, 10000000, 100000000 }, { 100, 10000, 1000000, 10000000 }
#define DENSE   (2.0 * (784 * 1000 + 1000 * 1000 + 1000 * 10))
#define CNN     (2.0 * (16 * 27 * 1024 + 32 * 144 * 256 + 2048 * 1000 + 1000 * 10))

const bench benches[] = {
    /* name      unit       tensors          out work   n^ terms        run          bare
     * row          rows            sizes */
    { "saxpy",   "GB/s",    saxpy_tensors,   1,  12,    1, { 1, 0 },    saxpy_run,   saxpy_bare,   saxpy_row,   rows_of_vector, LENGTHS },
    { "sgemm",   "GFLOP/s", sgemm_tensors,   2,  2,     3, { 0, 1 },    sgemm_run,   sgemm_bare,   sgemm_row,   rows_of_output, ORDERS },
    { "complex", "GFLOP/s", complex_tensors, 2,  4,     3, { 0, 2 },    complex_run, complex_bare, complex_row, rows_of_output, ORDERS },
    { "dense",   "GFLOP/s", dense_tensors,   9,  DENSE, 1, { 2784, 0 }, dense_run,   dense_bare,   dense_row,   rows_of_output, BATCHES },
    { "cnn",     "GFLOP/s", cnn_tensors,     12, CNN,   1, { 3219, 0 }, cnn_run,     NULL,         cnn_row,     rows_of_output, BATCHES },
};
// clang-format on
const int bench_count = sizeof benches / sizeof *benches;

/* ---- a problem and its matrices ---- */

int64_t tensor_size(const problem *p, int t, int axis)
{
    int64_t s = axis < 4 ? p->bench->tensors[t].size[axis] : 0;
    if (s == N) return p->n;
    return s;
}

float tensor_scale(const problem *p, int t)
{
    int fan = p->bench->tensors[t].fan;
    if (fan) return (float)sqrt(3.0 / fan);
    return 1;
}

static bool fill(const problem *p, int t)
{
    bool in = p->bench->tensors[t].role == IN;
    float *v = duet_overwrite(p->m[t]), scale = tensor_scale(p, t);
    uint32_t stream = stream_of(p, t);
    if (!v) return false;
#pragma omp parallel for
    for (int64_t i = 0; i < duet_count(p->m[t]); i++) v[i] = in ? noise(stream, i) * scale : NAN;
    return true;
}

bool problem_open(problem *p)
{
    for (int t = 0; t < TENSORS && p->bench->tensors[t].role != END; t++) {
        int64_t size[4];
        int rank = 0;
        while (rank < 4 && tensor_size(p, t, rank)) {
            size[rank] = tensor_size(p, t, rank);
            rank++;
        }
        p->m[t] = duet_new_shape(DUET_F32, rank, size);
        if (!p->m[t] || !fill(p, t)) return false;
    }
    if (p->bench->tensors == cnn_tensors) p->flat = duet_reshaped(p->m[6], p->n, 2048);
    return p->bench->tensors != cnn_tensors || p->flat;
}

void problem_close(problem *p)
{
    duet_free(&p->flat);
    for (int t = 0; t < TENSORS; t++) duet_free(&p->m[t]);
}

bool gpu_is_available(void)
{
    duet_matrix *m = duet_new(DUET_F32, 1);
    const bool available = m && duet_device_overwrite(m);
    duet_free(&m);
    return available;
}
