/* every_guess.h - finds operands for the calls of every_call.h by trial: sizes and types that a
 * call accepts. */
#ifndef EVERY_GUESS_H
#define EVERY_GUESS_H

#include "dtype.h"
#include "every_call.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(a) (int)(sizeof(a) / sizeof *(a))
enum { OPERANDS = 3, MATRICES = OPERANDS + 3 };

static const struct {
    int rank;
    int64_t size[5];
} shapes[] = { { 2, { 4, 4 } },
               { 1, { 4 } },
               { 0 },
               { 4, { 1, 2, 6, 6 } },
               { 4, { 2, 2, 3, 3 } },
               { 4, { 1, 2, 3, 3 } },
               { 4, { 1, 2, 4, 4 } },
               { 2, { 8, 4 } },
               { 3, { 2, 4, 4 } },
               { 3, { 2, 4, 2 } },
               { 3, { 2, 2, 3 } },
               { 3, { 1, 2, 9 } },
               { 5, { 2, 2, 4, 4, 4 } },
               { 5, { 2, 2, 2, 2, 2 } },
               { 1, { 9 } }, /* a pattern of 4 rows with 4 elements */
               { 2, { 600, 600 } } };
enum { LARGE = LENGTH(shapes) - 1 }; /* not tried alone */

/* Sizes of the operands, then of the results, and a bit mask of those that are indices. The others
 * have the type under test; results may have the type of its real parts. */
typedef struct guess {
    int shape[MATRICES];
    uint32_t indices, parts;
} guess;

static inline duet_dtype guess_type(const guess *g, const call *c, int k, duet_dtype t)
{
    if (g->indices >> k & 1) return DUET_I64;
    if (k >= c->operands && g->parts >> (k - c->operands) & 1) return dtype_part(t);
    return t;
}

static inline bool guess_take(duet_matrix **m, const call *c, const guess *g, duet_dtype t)
{
    bool all = true;
    for (int k = 0; k < c->operands + c->results; k++)
        all &= (m[k] = duet_new_shape(guess_type(g, c, k, t), shapes[g->shape[k]].rank,
                                      shapes[g->shape[k]].size)) != NULL;
    return all;
}

static inline void guess_give(duet_matrix **m)
{
    for (int k = 0; k < MATRICES; k++) duet_free(&m[k]);
}

static inline duet_expr call_formula(const call *c, duet_matrix *const *m)
{
    duet_expr x[OPERANDS];
    for (int k = 0; k < c->operands; k++) x[k] = duet_of_matrix(m[k]);
    return c->make(x);
}

/* A destination with the type and shape of the formula. */
static inline duet_matrix *call_destination(const call *c, duet_matrix *const *m)
{
    int64_t size[DUET_RANK_MAX];
    const duet_expr e = call_formula(c, m);
    const int rank = duet_expr_rank(e);
    const duet_dtype type = duet_expr_type(e);
    for (int a = 0; a < rank; a++) size[a] = duet_expr_size(e, a);
    if (duet_drop(e) == DUET_OK) return duet_new_shape(type, rank, size);
    return NULL;
}

static inline duet_status call_run(const call *c, duet_matrix *const *m)
{
    if (c->state) return c->state(m + c->operands, m);
    duet_matrix *to = call_destination(c, m);
    const duet_status s = to ? duet_set(to, call_formula(c, m)) : DUET_BAD_ARGUMENT;
    duet_free(&to);
    return s;
}

static inline bool guess_holds(const guess *g, const call *c, duet_dtype t)
{
    duet_matrix *m[MATRICES] = { 0 };
    duet_status s = DUET_NO_MEMORY;
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere && guess_take(m, c, g, t)) DUET_ON(DUET_CPU) DUET_EXPLAIN(nowhere) s = call_run(c, m);
    if (nowhere) fclose(nowhere);
    guess_give(m);
    return s == DUET_OK;
}

/* Advances to the next choice of sizes; false: there is none. */
static inline bool guess_next(guess *g, int matrices)
{
    for (int k = matrices - 1; k >= 0; k--) {
        if (++g->shape[k] < LARGE) return true;
        g->shape[k] = 0;
    }
    return false;
}

/* Finds sizes that the call accepts for the first accepted type in a list, with the same matrices
 * as indices. */
static inline bool guess_sizes(guess *g, const call *c, duet_dtype *of)
{
    static const duet_dtype first[] = { DUET_F32, DUET_I64, DUET_C64 };
    for (int i = 0; i < LENGTH(first); i++) {
        memset(g->shape, 0, sizeof g->shape);
        *of = first[i];
        do
            if (guess_holds(g, c, *of)) return true;
        while (guess_next(g, c->operands + c->results));
    }
    return false;
}

#endif
