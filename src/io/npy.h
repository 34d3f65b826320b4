/* npy.h - what the files about .npy share. */
#ifndef NPY_H
#define NPY_H

#include "io.h"

typedef struct npy_header {
    char descr[16];
    bool fortran;
    int rank;
    int64_t size[DUET_RANK_MAX];
    int seen; /* bits: descr, fortran_order, shape */
    duet_dtype type;
    bool swapped; /* the bytes of numbers are in the other order */
} npy_header;

/* Reads all that precedes the elements. Errors: BAD_FILE; UNSUPPORTED: the version or the element type */
duet_status npy_read_header(input *in, npy_header *h);
/* BAD_FILE: the file is too short for the shape, or the shape too large. *bytes: of the elements */
duet_status npy_check_size(const input *in, const npy_header *h, uint64_t *bytes);
/* Puts the bytes of elements in order. Errors: BAD_FILE: a bool element is neither 0 nor 1 */
duet_status npy_convert(const input *in, const npy_header *h, unsigned char *p, size_t bytes);

/* Makes all that precedes the elements of m in a file, padded so that they are aligned. Returns its size in
 * bytes. */
#define NPY_FRONT_MOST 384
size_t npy_front(const duet_matrix *m, unsigned char front[NPY_FRONT_MOST]);
/* A header of m for which the file has the elements in row-major order: of m itself, or of its transpose. */
duet_matrix npy_as_stored(const duet_matrix *m);
duet_matrix npy_reversed(const duet_matrix *m); /* the transpose */

/* npy.c: writes m, whose elements are at p. NULL: npy_write_parts writes them. */
duet_status npy_write_from(output *out, const duet_matrix *m, const void *p);

/* npy_parts.c. Is m on a group, with all elements in parts of this process? Then npy_write_parts writes these
 * without a copy of the whole matrix. */
bool npy_has_near_parts(const duet_matrix *as_stored);
duet_status npy_write_parts(output *out, const duet_matrix *as_stored);

/* A call of a function that all processes of a group make with this matrix on it. */
typedef struct npy_call {
    const char *who, *path;
    const duet_matrix *m;
} npy_call;
/* communicator_agree. Requires split.busy. turn: another number for each agreement of a call */
duet_status npy_agree(const npy_call *call, duet_status mine, int turn);

/* Are parts of m in other processes, so that these must take part in writing it? */
bool npy_is_spread(const duet_matrix *m);
duet_status npy_save_together(const char *path, const duet_matrix *m);

#endif
