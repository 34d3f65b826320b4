/* lower_bound.c - what a benchmark can hardly be faster than, taken in the same rounds: its products and passes by bare calls, or its arithmetic at
 * the rate of a large product. */
#include "bench.h"
#include "handwritten.h"
#include "measure.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- on the CPU: the arithmetic of a network at the rate at which the library in use multiplies large matrices ---- */

#define SIDE 1000

static double arithmetic_block(void *state, int64_t calls)
{
    const floor_work *w = state;
    const double start = now();
    bool ok = true;
    for (int64_t i = 0; i < calls && ok; i++)
        ok = engine_cpu()->gemm(SIDE, SIDE, SIDE, w->at[0], w->at[1], w->at[2]);
    return ok ? (now() - start) * w->scale : NAN;
}

static bool open_arithmetic(floor_work *w)
{
    const bench *b = w->p->bench;
    w->scale = b->work * pow((double)w->p->n, b->power) / (2.0 * SIDE * SIDE * SIDE);
    w->own = malloc(sizeof(float) * 3 * SIDE * SIDE);
    for (int i = 0; i < 3 && w->own; i++) w->at[i] = w->own + (size_t)i * SIDE * SIDE;
    for (int64_t i = 0; i < 3 * SIDE * SIDE && w->own; i++) w->own[i] = noise(1, i);
    w->block = arithmetic_block, w->most = 10, w->name = "its arithmetic at sgemm's rate";
    return w->own;
}

/* ---- on the GPU: the complex expression's two products by bare cuBLASLt, and its two sums by kernels by hand. at: X, Y, C, and room ---- */

static double calls_block(void *state, int64_t calls)
{
    const floor_work *w = state;
    float *const *at = w->at;
    const int64_t n = w->p->n * w->p->n;
    const char *wrong = hand_wait();
    const double start = now();
    for (int64_t i = 0; i < calls && !wrong; i++) {
        wrong = hand_axpby(at[3], 1.2f, at[0], 1, at[1], n);
        if (!wrong) wrong = hand_product_run(w->product[0]);
        if (!wrong) wrong = hand_axpby(at[3], -1.2f, at[1], -1, at[0], n);
        if (!wrong) wrong = hand_product_run(w->product[1]);
    }
    return wrong || hand_wait() ? NAN : now() - start;
}

/* Rooms of its own, since Duet's may move. */
static bool open_calls(floor_work *w)
{
    static bool opened;
    const int n = (int)w->p->n;
    const char *wrong = opened ? NULL : hand_open(NULL);
    opened |= !wrong;
    for (int i = 0; i < 5 && !wrong; i++) {
        w->room[i] = duet_new(DUET_F32, n, n);
        float *v = w->room[i] ? duet_overwrite(w->room[i]) : NULL;
        for (int64_t e = 0; v && e < (int64_t)n * n; e++) v[e] = noise((uint32_t)i, e);
        if (!v || !(w->at[i] = duet_device_update(w->room[i]))) wrong = duet_error();
    }
    if (!wrong && duet_synchronize() != DUET_OK) wrong = duet_error();
    if (!wrong) wrong = hand_product_make(&w->product[0], n, n, n, w->at[0], w->at[3], w->at[4]);
    if (!wrong) wrong = hand_product_make(&w->product[1], n, n, n, w->at[4], w->at[3], w->at[2]);
    w->block = calls_block, w->name = "two products and two sums, bare";
    if (wrong) fprintf(stderr, "duet-bench: no bare calls beside the complex expression: %s\n", wrong);
    return !wrong;
}

bool floor_open(const problem *p, floor_work *w)
{
    const char *name = p->bench->name;
    const bool network = !strcmp(name, "dense") || !strcmp(name, "cnn");
    *w = (floor_work){ .p = p };
    if (p->place == DUET_CPU && network) return open_arithmetic(w);
    return p->place == DUET_GPU && !strcmp(name, "complex") && open_calls(w);
}

void floor_close(floor_work *w)
{
    for (int i = 0; i < 2; i++) hand_product_free(&w->product[i]);
    for (int i = 0; i < 5; i++) duet_free(&w->room[i]);
    free(w->own);
}
