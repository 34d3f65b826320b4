/* random_matrix.h - random numbers, matrices and views of matrices, from a seed. */
#ifndef RANDOM_MATRIX_H
#define RANDOM_MATRIX_H

#include <duet/duet.h>
#include <stdbool.h>

typedef struct rng {
    uint64_t state[4];
} rng;

rng rng_new(uint64_t seed);
uint64_t rng_next(rng *r);
int64_t rng_below(rng *r, int64_t n);             /* 0 .. n - 1 */
double rng_real(rng *r, double low, double high); /* uniformly distributed */
bool rng_chance(rng *r, int percent);

/* The kinds of views. Not every kind exists for every rank; random_view then returns NULL. */
enum view {
    VIEW_NONE,
    VIEW_SLICE,
    VIEW_ROW,
    VIEW_COLUMN,
    VIEW_SUBMATRIX,
    VIEW_TRANSPOSED,
    VIEW_RESHAPED,
    VIEWS
};
extern const char *const view_names[VIEWS];

/* A matrix of these sizes, a view of a larger one unless VIEW_NONE; all elements of both are drawn
 * between low and high. *whole is the matrix that it is a view of, or the matrix itself; the caller
 * frees both if they differ. whole may be NULL. */
duet_matrix *random_view(rng *r, enum view view, duet_dtype type, int rank, const int64_t *size, double low,
                         double high, duet_matrix **whole);
duet_matrix *random_matrix(rng *r, duet_dtype type, int rank, const int64_t *size, double low, double high);

/* Draws every element of m again, on the host. */
void random_fill(rng *r, duet_matrix *m, double low, double high);

/* Sets the elements of m to those of from, in row-major order, of the type of m. */
void fill_from(duet_matrix *m, const void *from);

#endif
