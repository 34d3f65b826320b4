/* random_program.h - the matrices of a random program, and the statements over them that several
 * tests use. */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include <duet/duet.h>

/* The matrices: squares, rows of their length, a number, a part of the last square, and another square
 * transposed. */
enum { SQUARES = 5, ROWS = 3, NUMBER = SQUARES + ROWS, PART, TURNED, MATRICES };

static inline void new_views(duet_matrix *m[MATRICES])
{
    m[PART] = duet_submatrix(m[SQUARES - 1], 3, 0, 7, duet_size(m[SQUARES - 1], 1));
    m[TURNED] = duet_transposed(m[SQUARES - 2]);
}

static inline void new_matrices(duet_matrix *m[MATRICES], int64_t length)
{
    for (int k = 0; k < SQUARES; k++) m[k] = duet_new(DUET_F32, length, length);
    for (int k = SQUARES; k < NUMBER; k++) m[k] = duet_new(DUET_F32, length);
    m[NUMBER] = duet_new(DUET_F32);
    new_views(m);
}

static inline void free_matrices(duet_matrix *m[MATRICES])
{
    for (int k = 0; k < MATRICES; k++) duet_free(&m[k]);
}

/* The statement of a line: one of these, or one that a test adds from LINES on. to, x, y are
 * squares. */
enum { SUM, CHAIN, PRODUCT, LAYER, ONTO, ADD_TO, REDUCE, SCALE, TURN, PIECE, TOGETHER, LINES };
typedef struct line {
    int kind, to, x, y, row;
    duet_place where;
} line;

static inline duet_status run_line(duet_matrix *const m[MATRICES], const line *l)
{
    duet_matrix *to = m[l->to], *x = m[l->x], *y = m[l->y], *row = m[l->row];
    switch (l->kind) {
    case SUM: return duet_set(to, duet_add(duet_mul(0.5, x), y));
    case CHAIN: return duet_set(to, duet_tanh(duet_sub(duet_mul(x, y), duet_mul(row, m[NUMBER]))));
    case PRODUCT: return duet_set(to, duet_mul(0.1, duet_matmul(duet_add(x, y), duet_sub(y, 1))));
    case LAYER: return duet_set(to, duet_sigmoid(duet_bias_add(duet_matmul(x, y), row)));
    case ONTO: return duet_set(to, duet_add(duet_mul(0.01, duet_matmul(x, y)), duet_mul(0.5, to)));
    case ADD_TO: return duet_iadd(to, duet_mul(0.25, duet_sub(row, to)));
    case REDUCE: return duet_set(row, duet_mean_axis(duet_mul(x, y), 0));
    case SCALE: return duet_set(m[NUMBER], duet_div(duet_norm(x), 24));
    case TURN: return duet_set(m[TURNED], duet_add(x, duet_mul(0.5, m[TURNED])));
    case PIECE: return duet_set(m[PART], duet_mul(duet_sum_axis(x, 1), 0.0625));
    default: return duet_set_all({ m[NUMBER], duet_mean(x) }, { to, duet_sub(y, m[NUMBER]) });
    }
}

#endif
