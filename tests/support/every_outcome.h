/* every_outcome.h - runs the calls of every_call.h on ordinary and on extreme numbers, and keeps what each
 * leaves, to compare runs that must not differ. */
#ifndef EVERY_OUTCOME_H
#define EVERY_OUTCOME_H

#include "every_guess.h"
#include "missing.h"
#include "tap.h"
#include <math.h>
#include <unistd.h>

static const char *running = ""; /* the call that is tested */

/* For handlers of signals. why: what happened to the call */
static void end_by_signal(const char *why)
{
    ssize_t all = write(1, why, strlen(why)) + write(1, running, strlen(running));
    _exit(all < 0 || write(1, "\nnot ok\n", 8) < 0 ? 2 : 1);
}

/* The k-th of numbers that set flags when they are computed with, between ordinary ones. */
static double value(int64_t i, bool extreme)
{
    static const double hard[] = { 0,     -0.0,     1e-42,     -3e-40, 3e38, -3e38,
                                   1e-38, INFINITY, -INFINITY, NAN,    88.8, 1 };
    const double plain = 0.3 + 0.01 * (double)(i * 7919 % 1000);
    return extreme && i % 3 == 0 ? hard[i / 3 % LENGTH(hard)] : plain;
}

static void fill(duet_matrix *m, bool extreme)
{
    const int64_t n = duet_count(m), columns = duet_rank(m) ? duet_size(m, duet_rank(m) - 1) : 1;
    void *p = duet_overwrite(m);
    for (int64_t i = 0; i < n; i++) {
        const double v = value(i, extreme) + (i / columns == i % columns ? 9 : 0);
        if (duet_type(m) == DUET_F32) ((float *)p)[i] = (float)v;
        else if (duet_type(m) == DUET_I64) ((int64_t *)p)[i] = i % 4;
        else ((float *)p)[2 * i] = (float)v, ((float *)p)[2 * i + 1] = (float)value(i + 1, extreme);
    }
}

/* What a call leaves: its status, and the elements that it wrote. */
typedef struct outcome {
    duet_status status;
    size_t bytes;
    char *elements;
} outcome;

static size_t bytes_of(const duet_matrix *m)
{
    return m ? (size_t)duet_count(m) * (duet_type(m) == DUET_BOOL ? 1 : dtypes[duet_type(m)].bytes) : 0;
}

static void keep(outcome *o, const duet_matrix *m)
{
    const size_t n = bytes_of(m);
    const void *p = n ? duet_read(m) : NULL;
    char *all = p ? realloc(o->elements, o->bytes + n) : NULL;
    if (!all) return;
    memcpy(all + o->bytes, p, n);
    o->elements = all;
    o->bytes += n;
}

/* Zeros would hide a destination that was not written. */
static duet_status state(const call *c, duet_matrix *const *m)
{
    for (int k = 0; k < c->results; k++)
        memset(duet_overwrite(m[c->operands + k]), 0, bytes_of(m[c->operands + k]));
    return c->state(m + c->operands, m);
}

static duet_status make_call(const call *c, duet_matrix *const *m, duet_matrix *to)
{
    return c->state ? state(c, m) : duet_set(to, call_formula(c, m));
}

/* by: how the call is made; the destination is NULL if the call writes m. */
static outcome outcome_of(const call *c, duet_matrix *const *m,
                          duet_status (*by)(const call *, duet_matrix *const *, duet_matrix *))
{
    duet_matrix *to = c->make ? call_destination(c, m) : NULL;
    outcome o = { .status = by(c, m, to) };
    if (c->make) keep(&o, to);
    for (int k = 0; k < c->results; k++) keep(&o, m[c->operands + k]);
    duet_free(&to);
    return o;
}

static void free_outcome(outcome *o) { free(o->elements); }

static bool same_outcome(const outcome *a, const outcome *b)
{
    return a->bytes == b->bytes && (!a->bytes || !memcmp(a->elements, b->elements, a->bytes));
}

/* share: give the call large matrices, so that several threads share the work. */
static bool guessed(const call *c, guess *g, duet_dtype *t, bool share)
{
    for (*g = (guess){ 0 }; g->indices < 1u << (c->operands + c->results); g->indices += 2) {
        if (!guess_sizes(g, c, t)) continue;
        guess large = *g;
        bool square = share && !c->state && !g->indices;
        for (int k = 0; k < c->operands; k++) square &= g->shape[k] == 0, large.shape[k] = LARGE;
        if (square && guess_holds(&large, c, *t)) *g = large;
        return true;
    }
    return CHECK(is_missing(c->name), "%s was never run", c->name) && false;
}

typedef void call_test(const call *c, bool share);

static void test_table(call_test *test, const call *rows, int count, bool share, const char *what)
{
    for (int i = 0; i < count; i++) test(&rows[i], share);
    tap_point(what);
}

/* share: as for guessed. */
static void test_every_call(call_test *test)
{
    test_table(test, maps, LENGTH(maps), true, "element by element");
    test_table(test, composed, LENGTH(composed), true, "composed");
    test_table(test, reductions, LENGTH(reductions), true, "reductions");
    test_table(test, defs, LENGTH(defs), false,
               "shapes, products, images, transforms, order, linear algebra");
    test_table(test, networks, LENGTH(networks), false, "networks");
    test_table(test, factors, LENGTH(factors), false, "factorisations");
    test_table(test, statements, LENGTH(statements), false, "statements");
}

#endif
