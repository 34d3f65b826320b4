/* random_matrix.h - random numbers, matrices and views of them, from a seed. */
#ifndef RANDOM_H
#define RANDOM_H

#include <duet/duet.h>
#include <stdbool.h>

typedef struct rng {
    uint64_t state[4];
} rng;

rng rng_new(uint64_t seed);
uint64_t rng_next(rng *r);
int64_t rng_below(rng *r, int64_t n);             /* 0 .. n - 1 */
double rng_real(rng *r, double low, double high); /* evenly between them */
bool rng_chance(rng *r, int percent);

/* How a matrix lies in its storage. Not every one goes with every rank: random_view then answers NULL. */
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

/* A matrix of these sizes, a view of a larger one unless VIEW_NONE; every element of both drawn from low to high.
 * *whole: the matrix that it is a view of, or itself again; both are the caller's when they differ. whole may be NULL. */
duet_matrix *random_view(rng *r, enum view view, duet_dtype type, int rank, const int64_t *size, double low,
                         double high, duet_matrix **whole);
duet_matrix *random_matrix(rng *r, duet_dtype type, int rank, const int64_t *size, double low, double high);

/* Draws every element of m anew, on the host. */
void random_fill(rng *r, duet_matrix *m, double low, double high);

/* Sets every element of m to those of from, row-major, of m's type. */
void fill_from(duet_matrix *m, const void *from);

#endif
