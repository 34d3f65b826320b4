/* reference.c - computes the expected results of the benchmarks in double, row by row, from the
 * noise, and compares Duet's results with them. */
#include "bench.h"
#include <math.h>
#include <stdlib.h>

/* Returns element i of an input. */
static inline double at(const problem *p, int t, int64_t i)
{
    return noise(stream_of(p, t), i) * tensor_scale(p, t);
}

static void load(const problem *p, int t, int64_t from, int64_t count, double *x)
{
    for (int64_t i = 0; i < count; i++) x[i] = at(p, t, from + i);
}

/* Computes y = x W + b. W is tensor t, k x n; b is tensor t + 1. */
static void layer(const problem *p, int t, const double *x, int64_t k, int64_t n, double *y)
{
    const uint32_t stream = stream_of(p, t);
    const float scale = tensor_scale(p, t);
    load(p, t + 1, 0, n, y);
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < n; j++) y[j] += x[i] * (double)(noise(stream, i * n + j) * scale);
}

static void sigmoid(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = 1 / (1 + exp(-x[i]));
}

static void relu(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = x[i] > 0 ? x[i] : 0;
}

static void softmax(double *x, int64_t n)
{
    double most = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++) most = fmax(most, x[i]);
    for (int64_t i = 0; i < n; i++) sum += x[i] = exp(x[i] - most);
    for (int64_t i = 0; i < n; i++) x[i] /= sum;
}

/* Computes element i, j of the convolution of c images of side s with one 3 x 3 filter, with zero
 * padding. The filters are tensor t, their biases tensor t + 1. */
static double conv_at(const problem *p, int t, const double *x, int c, int s, int filter, int i, int j)
{
    double sum = at(p, t + 1, filter);
    for (int k = 0; k < c; k++)
        for (int u = 0; u < 3; u++)
            for (int v = 0; v < 3; v++) {
                int y = i + u - 1, z = j + v - 1;
                if (y < 0 || y >= s || z < 0 || z >= s) continue;
                sum += x[(k * s + y) * s + z] * at(p, t, ((filter * c + k) * 3 + u) * 3 + v);
            }
    return sum;
}

/* Computes convolution, relu and 2 x 2 max pooling: from c images of side s to m images of side s /
 * 2. */
static void conv_block(const problem *p, int t, const double *x, int c, int s, int m, double *y)
{
    for (int f = 0; f < m; f++)
        for (int i = 0; i < s / 2; i++)
            for (int j = 0; j < s / 2; j++) {
                double most = 0; /* relu */
                for (int q = 0; q < 4; q++)
                    most = fmax(most, conv_at(p, t, x, c, s, f, 2 * i + q / 2, 2 * j + q % 2));
                *y++ = most;
            }
}

int64_t saxpy_row(const problem *p, int64_t row, double *want, double *scratch)
{
    int64_t from = row * VECTOR_ROW, count = p->n - from < VECTOR_ROW ? p->n - from : VECTOR_ROW;
    for (int64_t i = 0; i < count; i++) want[i] = (double)3.3f * at(p, 0, from + i) + at(p, 1, from + i);
    return count;
}

int64_t sgemm_row(const problem *p, int64_t row, double *want, double *scratch)
{
    const uint32_t B = stream_of(p, 1);
    for (int64_t j = 0; j < p->n; j++) want[j] = 0;
    for (int64_t k = 0; k < p->n; k++) {
        double a = at(p, 0, row * p->n + k);
        for (int64_t j = 0; j < p->n; j++) want[j] += a * noise(B, k * p->n + j);
    }
    return p->n;
}

int64_t complex_row(const problem *p, int64_t row, double *want, double *scratch)
{
    const double s = 1.2f;
    const uint32_t X = stream_of(p, 0), Y = stream_of(p, 1);
    for (int64_t j = 0; j < p->n; j++) want[j] = scratch[j] = 0;
    for (int64_t k = 0; k < p->n; k++)
        for (int64_t j = 0, i = k * p->n; j < p->n; j++, i++)
            scratch[j] += noise(X, row * p->n + k) * (s * noise(X, i) + noise(Y, i));
    for (int64_t k = 0; k < p->n; k++)
        for (int64_t j = 0, i = k * p->n; j < p->n; j++, i++)
            want[j] += scratch[k] * (-s * noise(Y, i) - noise(X, i));
    return p->n;
}

int64_t dense_row(const problem *p, int64_t row, double *want, double *scratch)
{
    double *in = scratch, *o1 = in + 784, *o2 = o1 + 1000;
    load(p, 0, row * 784, 784, in);
    layer(p, 1, in, 784, 1000, o1);
    sigmoid(o1, 1000);
    layer(p, 4, o1, 1000, 1000, o2);
    sigmoid(o2, 1000);
    layer(p, 7, o2, 1000, 10, want);
    sigmoid(want, 10);
    return 10;
}

int64_t cnn_row(const problem *p, int64_t row, double *want, double *scratch)
{
    double *in = scratch, *p1 = in + 3 * 32 * 32, *p2 = p1 + 16 * 16 * 16, *o3 = p2 + 32 * 8 * 8;
    load(p, 0, row * 3 * 32 * 32, 3 * 32 * 32, in);
    conv_block(p, 1, in, 3, 32, 16, p1);
    conv_block(p, 4, p1, 16, 16, 32, p2);
    layer(p, 7, p2, 2048, 1000, o3);
    relu(o3, 1000);
    layer(p, 10, o3, 1000, 10, want);
    softmax(want, 10);
    return 10;
}

/* ---- the comparison ---- */

typedef struct sums {
    double wrong, right;
} sums;

/* Returns the squared error and the squared norm of one row. A NaN in the row makes the error
 * NaN. */
static sums compare_row(const problem *p, const float *got, int64_t row, double *want, double *scratch)
{
    sums s = { 0, 0 };
    int64_t count = p->bench->row(p, row, want, scratch), width = of_vectors(p->bench) ? VECTOR_ROW : count;
    for (int64_t j = 0; j < count; j++) {
        double d = got[row * width + j] - want[j];
        s.wrong += d * d;
        s.right += want[j] * want[j];
    }
    return s;
}

/* Checks every row of saxpy. Of the others it checks at most 48 rows, evenly spread from the first
 * to the last. */
static double relative_error(const problem *p, const float *got)
{
    int64_t rows = p->bench->rows(p), looked = rows > 48 && !of_vectors(p->bench) ? 48 : rows;
    double wrong = 0, right = 0;
    size_t width = (size_t)(p->n < VECTOR_ROW ? VECTOR_ROW : p->n);
#pragma omp parallel reduction(+ : wrong, right)
    {
        double *want = malloc(sizeof(double) * (2 * width + SCRATCH));
        double *scratch = want ? want + width : NULL;
#pragma omp for schedule(dynamic, 4)
        for (int64_t r = 0; r < looked; r++) {
            int64_t row = looked < 2 ? 0 : (int64_t)((double)r * (double)(rows - 1) / (double)(looked - 1));
            sums s = want ? compare_row(p, got, row, want, scratch) : (sums){ NAN, 1 };
            wrong += s.wrong;
            right += s.right;
        }
        free(want);
    }
    return sqrt(wrong / right);
}

check_result check(const problem *p)
{
    const bench *b = p->bench;
    duet_status status = DUET_OK;
    DUET_ON(p->place) status = b->run(p);
    const float *got = status ? NULL : duet_read(p->m[b->output]);
    if (!got) return (check_result){ .error = NAN };

    double norm = 0, probe = 0;
#pragma omp parallel for reduction(+ : norm, probe)
    for (int64_t i = 0; i < duet_count(p->m[b->output]); i++) {
        norm += (double)got[i] * got[i];
        probe += (double)got[i] * noise(0, i);
    }

    check_result v = { .ran = true, .error = relative_error(p, got), .norm = sqrt(norm), .probe = probe };
    v.bound = fmax(0x1p-24 * (8 + 4 * sqrt(b->terms[0] + b->terms[1] * (double)p->n)), math_error());
    v.ok = v.error <= v.bound &&
           isfinite(v.norm); /* rows that were not checked must at least have been written */
    return v;
}
