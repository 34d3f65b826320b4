/* sparse.h - sparse matrices, for the files that make them. */
#ifndef CORE_SPARSE_H
#define CORE_SPARSE_H

#include "csr.h"

struct duet_sparse {
    int64_t rows, columns, count;
    duet_matrix *pattern, *values;
};

/* Errors: BAD_ARGUMENT: NULL, or the values were freed; BAD_SHAPE: they were resized */
duet_status sparse_check(const char *who, const duet_sparse *s);

/* "f64[3,4] with 5 elements" */
#define SPARSE_TEXT 120
char *sparse_text(char text[SPARSE_TEXT], const duet_sparse *s);

/* A matrix in the making: its lists on the host. */
typedef struct sparse_lists {
    duet_sparse *s;
    void *pattern, *values; /* to be written */
    bool wide;
} sparse_lists;

/* A new matrix whose lists are to be written: the pattern by csr_put. Errors: BAD_ARGUMENT, NO_MEMORY */
duet_status sparse_begin(const char *who, duet_dtype type, int64_t rows, int64_t columns, int64_t count,
                         sparse_lists *l);
/* Declares the pattern, which is right. */
duet_sparse *sparse_done(sparse_lists *l);
/* Checks the pattern first. NULL: BAD_ARGUMENT, and the matrix is freed. */
duet_sparse *sparse_checked(const char *who, sparse_lists *l);
/* Another matrix with the pattern of s, which becomes the owner of values. NULL: NO_MEMORY; values are
 * freed */
duet_sparse *sparse_with(const duet_sparse *s, duet_matrix *values);

/* The lists of s on the host, to be read. Errors: as duet_read */
typedef struct sparse_view {
    csr c;
    const void *values;
    duet_dtype type;
    size_t each; /* bytes of an element */
} sparse_view;
duet_status sparse_open(const char *who, const duet_sparse *s, sparse_view *v);
/* The same for a and b of a function of both. Errors: BAD_TYPE, if they have different element types */
duet_status sparse_open_both(const char *who, const duet_sparse *a, const duet_sparse *b, sparse_view *u,
                             sparse_view *v);

/* Elements in any order: rows and columns of elements k = 0 .. n - 1. */
typedef struct coo {
    int64_t rows, columns, count;
    const int64_t *row, *column;
    const void *values;
    duet_dtype type;
} coo;
/* Sorts them. Elements at the same place are added in their order, or refused.
 * NULL: BAD_ARGUMENT: an index is out of bounds, duplicates; NO_MEMORY */
duet_sparse *sparse_from_coo(const char *who, const coo *c, bool sum_duplicates);

/* to += x, of one element. Inline, so that loops for one type are compiled for it. */
static inline __attribute__((always_inline)) void sparse_add_element(duet_dtype type, void *to, const void *x)
{
    const int parts = type == DUET_C64 || type == DUET_C128 ? 2 : 1;
    for (int i = 0; i < parts; i++) {
        if (type == DUET_F32 || type == DUET_C64) ((float *)to)[i] += ((const float *)x)[i];
        else ((double *)to)[i] += ((const double *)x)[i];
    }
}

/* A block of memory for n items, from the pool, or NULL with a text. sparse_release accepts NULL. */
void *sparse_allocate(const char *who, int64_t n, size_t each);
void sparse_release(void *p);

#endif
