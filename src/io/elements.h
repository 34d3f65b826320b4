/* elements.h - the elements of a matrix in row-major order, some at a time. */
#ifndef ELEMENTS_H
#define ELEMENTS_H

#include "io.h"

#define PIECE ((size_t)1 << 20) /* bytes that are copied from a GPU, or read from a file, at a time */

/* A position in a matrix. */
typedef struct cursor {
    const duet_matrix *m;
    char *p;      /* the first element on the host; NULL: pieces of m are copied from a GPU */
    int64_t next; /* the number of the next element */
    int64_t index[DUET_RANK_MAX], at; /* its index and offset; unused if m is dense */
    char *piece;                      /* elements piece_from .. piece_end - 1, or NULL */
    int64_t piece_from, piece_end;
} cursor;

void cursor_begin(cursor *c, const duet_matrix *m, void *p);
/* To read the elements of m. Errors: as duet_read */
duet_status cursor_open(cursor *c, const duet_matrix *m);
void cursor_close(cursor *c);

/* Writes the next n elements to `out`. */
duet_status cursor_write(cursor *c, int64_t n, output *out);
/* Sets the next n elements. Requires p. */
void cursor_put(cursor *c, int64_t n, const char *from);

#endif
