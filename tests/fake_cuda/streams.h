/* streams.h - on the fake CUDA, two sets of the same matrices, one of which has too little device
 * memory, and statements over them. */
#ifndef STREAMS_H
#define STREAMS_H

#include "common.h"
#include "fake_cuda.h"
#include "plan.h"
#include "stream.h"

static rng gen;
static int below(int n) { return (int)rng_below(&gen, n); }

/* ---- sets of matrices ---- */

enum {
    X,
    Y,
    Z,
    T,
    U,
    LINE,
    COLUMN,
    INDEX,
    IMAGES,
    POOLED,
    LONG,
    LONGER,
    ROW_MATRICES,
    W = ROW_MATRICES,
    W2,
    BIAS,
    BIAS2,
    ROW,
    FILTERS,
    BIAS3,
    MATRICES
};

typedef struct matrix_set {
    duet_matrix *m[MATRICES], *upper, *lower, *part, *columns;
} matrix_set;

typedef struct matrix_set_sizes {
    int64_t n, c, d, e, k;
} matrix_set_sizes;

static matrix_set new_matrix_set(const matrix_set_sizes *s)
{
    const int64_t n = s->n, c = s->c, d = s->d;
    matrix_set w = { .m = { [X] = duet_new(DUET_F32, n, c),
                            [Y] = duet_new(DUET_F32, n, c),
                            [Z] = duet_new(DUET_F32, n, c),
                            [T] = duet_new(DUET_F32, n, d),
                            [U] = duet_new(DUET_F32, n, s->e),
                            [LINE] = duet_new(DUET_F32, n),
                            [COLUMN] = duet_new(DUET_F32, n, 1),
                            [INDEX] = duet_new(DUET_I64, n),
                            [IMAGES] = duet_new(DUET_F32, n, 2, 4, 4),
                            [POOLED] = duet_new(DUET_F32, n, s->k, 2, 2),
                            [LONG] = duet_new(DUET_F32, n * c),
                            [LONGER] = duet_new(DUET_F32, 2 * n, c + 1),
                            [W] = duet_new(DUET_F32, c, d),
                            [W2] = duet_new(DUET_F32, d, s->e),
                            [BIAS] = duet_new(DUET_F32, d),
                            [BIAS2] = duet_new(DUET_F32, s->e),
                            [ROW] = duet_new(DUET_F32, c),
                            [FILTERS] = duet_new(DUET_F32, s->k, 2, 3, 3),
                            [BIAS3] = duet_new(DUET_F32, s->k) } };
    w.upper = duet_slice(w.m[LONGER], 0, n);
    w.lower = duet_slice(w.m[LONGER], n, n);
    w.part = duet_submatrix(w.m[LONGER], 1, 1, n, c);
    w.columns = duet_transposed(w.m[X]);
    return w;
}

static void free_matrix_set(matrix_set *w)
{
    duet_free(&w->upper);
    duet_free(&w->lower);
    duet_free(&w->part);
    duet_free(&w->columns);
    for (int i = 0; i < MATRICES; i++) duet_free(&w->m[i]);
}

/* Small integers, whose products are exact. */
static void fill(const matrix_set *a, const matrix_set *b, int i)
{
    const int64_t count = duet_count(a->m[i]);
    void *p = duet_overwrite(a->m[i]), *q = duet_overwrite(b->m[i]);
    for (int64_t j = 0; j < count; j++)
        if (i == INDEX) ((int64_t *)p)[j] = below(7);
        else ((float *)p)[j] = (float)(below(9) - 4);
    memcpy(q, p, (size_t)count * (i == INDEX ? 8 : 4));
}

static bool compare(const matrix_set *a, const matrix_set *b, const char *what)
{
    bool same = true;
    for (int i = 0; i < MATRICES; i++) {
        const void *p = duet_read(a->m[i]), *q = duet_read(b->m[i]);
        same &= CHECK(p && q && same_bits(duet_type(a->m[i]), p, q, duet_count(a->m[i])),
                      "matrix %d differs after %s: %s", i, what, duet_error());
    }
    return same;
}

/* ---- statements that can be cut into parts ---- */

typedef duet_status statement_of(const matrix_set *w);
#define M(i) w->m[i]
static duet_status axpy(const matrix_set *w) { return duet_set(M(Y), duet_add(duet_mul(0.5, M(X)), M(Y))); }
static duet_status vectors(const matrix_set *w)
{
    return duet_set(M(LONG), duet_sub(duet_mul(3, M(LONG)), 1));
}
static duet_status chain(const matrix_set *w)
{
    return duet_set(M(Z), duet_tanh(duet_sub(duet_mul(M(X), M(Y)), duet_mul(M(ROW), M(COLUMN)))));
}
static duet_status spread(const matrix_set *w) { return duet_set(M(Z), duet_exp(M(ROW))); }
static duet_status layer(const matrix_set *w)
{
    return duet_set(M(T), duet_sigmoid(duet_bias_add(duet_matmul(M(X), M(W)), M(BIAS))));
}
static duet_status dense(const matrix_set *w)
{
    const duet_expr h = duet_relu(duet_bias_add(duet_matmul(M(X), M(W)), M(BIAS)));
    return duet_set(M(U), duet_softmax(duet_bias_add(duet_matmul(h, M(W2)), M(BIAS2))));
}
static duet_status onto(const matrix_set *w)
{
    return duet_set(M(T), duet_add(duet_mul(2, duet_matmul(M(X), M(W))), duet_mul(0.5, M(T))));
}
static duet_status times_vector(const matrix_set *w) { return duet_set(M(LINE), duet_matmul(M(X), M(ROW))); }
static duet_status softmax(const matrix_set *w) { return duet_set(M(Z), duet_softmax(M(X))); }
static duet_status rows(const matrix_set *w)
{
    return duet_set(M(LINE), duet_sum_axis(duet_mul(M(X), M(Y)), 1));
}
static duet_status rows_kept(const matrix_set *w)
{
    return duet_set(M(Z), duet_sub(M(X), duet_mean_keep(M(X), 1)));
}
static duet_status first_greatest(const matrix_set *w)
{
    return duet_set(M(INDEX), duet_argmax_axis(M(X), 1));
}
static duet_status pooled(const matrix_set *w)
{
    const duet_expr y = duet_bias_add(duet_conv2d(M(IMAGES), M(FILTERS), .pad = { 1, 1 }), M(BIAS3));
    return duet_set(M(POOLED), duet_max_pool2d(duet_relu(y), .window = { 2, 2 }));
}
static duet_status together(const matrix_set *w)
{
    return duet_set_all({ M(Y), duet_add(M(X), M(Y)) }, { M(LINE), duet_sum_axis(M(Y), 1) },
                        { M(Z), duet_mul(M(Y), M(ROW)) });
}
static duet_status twice(const matrix_set *w)
{
    return duet_set_all({ M(Y), duet_mul(2, M(X)) }, { M(Y), duet_add(M(Y), M(Z)) });
}
static duet_status halves(const matrix_set *w)
{
    return duet_set(w->upper, duet_add(w->upper, duet_mul(2, w->lower)));
}
static duet_status narrow(const matrix_set *w) { return duet_set(M(Z), duet_sub(w->part, M(Y))); }
static duet_status copied(const matrix_set *w) { return duet_set(M(Z), M(X)); }

typedef struct kind {
    const char *name;
    statement_of *run;
} kind;
#define CASE(f)                                                                                              \
    {                                                                                                        \
#f, f                                                                                                \
    }
static const kind kinds[] = { CASE(axpy),    CASE(vectors),  CASE(chain),     CASE(spread),
                              CASE(layer),   CASE(dense),    CASE(onto),      CASE(times_vector),
                              CASE(softmax), CASE(rows),     CASE(rows_kept), CASE(first_greatest),
                              CASE(pooled),  CASE(together), CASE(twice),     CASE(halves),
                              CASE(narrow),  CASE(copied) };
#define KINDS (int)(sizeof kinds / sizeof *kinds)

/* ---- little device memory ---- */

static size_t used(void) { return duet_memory_of(DUET_GPU).used; }

/* Limits device memory to what is allocated and `bytes` more. */
static void leave(size_t bytes)
{
    duet_memory_trim();
    CHECK(duet_memory_limit(DUET_GPU, used() + bytes) == DUET_OK, "%s", duet_error());
}
static void leave_all(void) { CHECK(duet_memory_limit(DUET_GPU, 0) == DUET_OK, "%s", duet_error()); }

static uint64_t streams(void) { return duet_stats().streams; }

static void fill_all(const matrix_set *a, const matrix_set *b)
{
    for (int i = 0; i < MATRICES; i++) fill(a, b, i);
}

static void new_pair(matrix_set *a, matrix_set *b)
{
    const matrix_set_sizes s = { 900, 6, 7, 5, 2 };
    *a = new_matrix_set(&s);
    *b = new_matrix_set(&s);
    fill_all(a, b);
}

static duet_status on(duet_place place, statement_of *run, const matrix_set *w)
{
    DUET_ON(place) return run(w);
    return DUET_OK;
}

#endif
