/* lower_bound.c - measures a lower bound for the time of some benchmarks, in the same rounds: on
 * the GPU its products and sums by bare calls, on the CPU its arithmetic at the rate of a large
 * matrix product. */
#include "bench.h"
#include "handwritten.h"
#include "measure.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- on the CPU: the arithmetic of a network, at the rate at which the BLAS library multiplies
 *      large matrices ---- */

#define SIDE 1000

static double arithmetic_block(void *state, int64_t calls)
{
    const lower_bound *w = state;
    const double start = now();
    bool ok = true;
    for (int64_t i = 0; i < calls && ok; i++)
        ok = engine_cpu()->gemm(SIDE, SIDE, SIDE, w->at[0], w->at[1], w->at[2]);
    if (ok) return (now() - start) * w->scale;
    return NAN;
}

static bool open_arithmetic(lower_bound *w)
{
    const bench *b = w->p->bench;
    w->scale = b->work * pow((double)w->p->n, b->power) / (2.0 * SIDE * SIDE * SIDE);
    w->own = malloc(sizeof(float) * 3 * SIDE * SIDE);
    for (int i = 0; i < 3 && w->own; i++) w->at[i] = w->own + (size_t)i * SIDE * SIDE;
    for (int64_t i = 0; i < 3 * SIDE * SIDE && w->own; i++) w->own[i] = noise(1, i);
    w->block = arithmetic_block;
    w->max_calls = 10;
    w->name = "its arithmetic at sgemm's rate";
    return w->own;
}

/* ---- on the GPU: the two products of the complex expression by cuBLASLt, and its two sums by
 *      handwritten kernels. at[]: X, Y, C and two buffers ---- */

static double direct_block(void *state, int64_t calls)
{
    const lower_bound *w = state;
    float *const *at = w->at;
    const int64_t n = w->p->n * w->p->n;
    const char *wrong = handwritten_wait();
    const double start = now();
    for (int64_t i = 0; i < calls && !wrong; i++) {
        wrong = handwritten_axpby(at[3], 1.2f, at[0], 1, at[1], n);
        if (!wrong) wrong = handwritten_gemm_run(w->product[0]);
        if (!wrong) wrong = handwritten_axpby(at[3], -1.2f, at[1], -1, at[0], n);
        if (!wrong) wrong = handwritten_gemm_run(w->product[1]);
    }
    if (wrong || handwritten_wait()) return NAN;
    return now() - start;
}

/* Uses matrices of its own, because those of the problem may move to the host. */
static bool open_direct(lower_bound *w)
{
    static bool opened;
    const int n = (int)w->p->n;
    const char *wrong = opened ? NULL : handwritten_open(NULL);
    opened |= !wrong;
    for (int i = 0; i < 5 && !wrong; i++) {
        w->matrix[i] = duet_new(DUET_F32, n, n);
        float *v = w->matrix[i] ? duet_overwrite(w->matrix[i]) : NULL;
        for (int64_t e = 0; v && e < (int64_t)n * n; e++) v[e] = noise((uint32_t)i, e);
        if (!v || !(w->at[i] = duet_device_update(w->matrix[i]))) wrong = duet_error();
    }
    if (!wrong && duet_synchronize() != DUET_OK) wrong = duet_error();
    if (!wrong) wrong = handwritten_gemm_make(&w->product[0], n, n, n, w->at[0], w->at[3], w->at[4]);
    if (!wrong) wrong = handwritten_gemm_make(&w->product[1], n, n, n, w->at[4], w->at[3], w->at[2]);
    w->block = direct_block;
    w->name = "two products and two sums, bare";
    if (wrong)
        fprintf(stderr, "duet-bench: the lower bound of the complex expression is not measured: %s\n", wrong);
    return !wrong;
}

bool lower_bound_open(const problem *p, lower_bound *w)
{
    const char *name = p->bench->name;
    const bool network = !strcmp(name, "dense") || !strcmp(name, "cnn");
    *w = (lower_bound){ .p = p };
    if (p->place == DUET_CPU && network) return open_arithmetic(w);
    return p->place == DUET_GPU && !strcmp(name, "complex") && open_direct(w);
}

void lower_bound_close(lower_bound *w)
{
    for (int i = 0; i < 2; i++) handwritten_gemm_free(&w->product[i]);
    for (int i = 0; i < 5; i++) duet_free(&w->matrix[i]);
    free(w->own);
}
