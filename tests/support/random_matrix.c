/* random_matrix.c - random numbers (xoshiro256**, seeded by splitmix64), matrices and views. */
#include "random_matrix.h"
#include "element.h"
#include <stdlib.h>
#include <string.h>

const char *const view_names[VIEWS] = { "whole",     "slice",      "row",     "column",
                                        "submatrix", "transposed", "reshaped" };

rng rng_new(uint64_t seed)
{
    rng r;
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        r.state[i] = z ^ z >> 31;
    }
    return r;
}

static uint64_t turned(uint64_t x, int by) { return x << by | x >> (64 - by); }

uint64_t rng_next(rng *r)
{
    uint64_t *s = r->state;
    const uint64_t result = turned(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = turned(s[3], 45);
    return result;
}

int64_t rng_below(rng *r, int64_t n) { return n > 0 ? (int64_t)(rng_next(r) % (uint64_t)n) : 0; }
double rng_real(rng *r, double low, double high)
{
    return low + (high - low) * (double)(rng_next(r) >> 11) * 0x1p-53;
}
bool rng_chance(rng *r, int percent) { return rng_below(r, 100) < percent; }

/* Gives the next number to every element under axis: from `from`, or drawn if it is NULL. */
static const char *scatter(duet_matrix *m, int axis, char *to, const char *from, rng *r, const double *range)
{
    const duet_dtype type = duet_type(m);
    const size_t bytes = dtypes[type].bytes;
    if (axis == duet_rank(m)) {
        if (!from) {
            element_put(type, to, 0, converted(DUET_F64, type, rng_real(r, range[0], range[1])));
            return from;
        }
        memcpy(to, from, bytes);
        return from + bytes;
    }
    for (int64_t i = 0; i < duet_size(m, axis); i++)
        from = scatter(m, axis + 1, to + i * duet_stride(m, axis) * (ptrdiff_t)bytes, from, r, range);
    return from;
}

void random_fill(rng *r, duet_matrix *m, double low, double high)
{
    char *p = duet_overwrite(m);
    if (p) scatter(m, 0, p, NULL, r, (const double[]){ low, high });
}

void fill_from(duet_matrix *m, const void *from)
{
    char *p = duet_overwrite(m);
    if (p) scatter(m, 0, p, from, NULL, NULL);
}

duet_matrix *random_matrix(rng *r, duet_dtype type, int rank, const int64_t *size, double low, double high)
{
    duet_matrix *m = duet_new_shape(type, rank, size);
    if (m) random_fill(r, m, low, high);
    return m;
}

/* The sizes of a matrix that has such a view. Returns its rank, or -1. */
static int larger(rng *r, enum view view, int rank, const int64_t *size, int64_t *of)
{
    memcpy(of, size, (size_t)rank * sizeof *of);
    switch (view) {
    case VIEW_SLICE: return rank < 1 ? -1 : (of[0] += 1 + rng_below(r, 3), rank);
    case VIEW_ROW:
        if (rank == DUET_RANK_MAX) return -1;
        of[0] = 1 + rng_below(r, 3);
        memcpy(of + 1, size, (size_t)rank * sizeof *of);
        return rank + 1;
    case VIEW_COLUMN: return rank != 1 ? -1 : (of[1] = 2 + rng_below(r, 3), 2);
    case VIEW_SUBMATRIX: return rank != 2 ? -1 : (of[0] += rng_below(r, 3), of[1] += 1 + rng_below(r, 3), 2);
    case VIEW_TRANSPOSED:
        for (int d = 0; d < rank; d++) of[d] = size[rank - 1 - d];
        if (rank < 2) return -1;
        return rank;
    case VIEW_RESHAPED:
        of[0] = 1;
        for (int d = 0; d < rank; d++) of[0] *= size[d];
        return 1;
    default: return rank;
    }
}

static duet_matrix *view_of(rng *r, enum view view, duet_matrix *m, int rank, const int64_t *size)
{
    const int64_t spare0 = duet_size(m, 0) - (rank ? size[0] : 0),
                  spare1 = duet_size(m, 1) - (rank > 1 ? size[1] : 0);
    switch (view) {
    case VIEW_SLICE: return duet_slice(m, rng_below(r, spare0 + 1), size[0]);
    case VIEW_ROW: return duet_row(m, rng_below(r, duet_size(m, 0)));
    case VIEW_COLUMN: return duet_column(m, rng_below(r, duet_size(m, 1)));
    case VIEW_SUBMATRIX:
        return duet_submatrix(m, rng_below(r, spare0 + 1), rng_below(r, spare1 + 1), size[0], size[1]);
    case VIEW_TRANSPOSED: return duet_transposed(m);
    case VIEW_RESHAPED: return duet_reshaped_shape(m, rank, size);
    default: return m;
    }
}

duet_matrix *random_view(rng *r, enum view view, duet_dtype type, int rank, const int64_t *size, double low,
                         double high, duet_matrix **whole)
{
    int64_t of[DUET_RANK_MAX + 1];
    const int base_rank = larger(r, view, rank, size, of);
    if (base_rank < 0) return NULL;
    duet_matrix *base = random_matrix(r, type, base_rank, of, low, high),
                *m = view_of(r, view, base, rank, size);
    if (whole) *whole = base;
    else if (m != base) duet_free(&base); /* the view keeps the storage alive */
    return m;
}
