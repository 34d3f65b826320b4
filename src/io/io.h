/* io.h - functions that the readers and writers of files share. They use matrices, but no formulas, plans or
 * devices. */
#ifndef IO_H
#define IO_H

#include "dtype.h"
#include "matrix.h"
#include "status.h"
#include <stdio.h>

/* ---- file.c: bytes in and out ---- */

struct inflater;

/* A sequence of bytes to read: a file or a part of one, stored or compressed, or a stream of the user. */
typedef struct input {
    const char *who, *path; /* for texts; a stream has no path */
    FILE *f;
    uint64_t size; /* of the file; of a stream, what remained at first */
    uint64_t left; /* bytes that remain to be read, according to the file */
    bool endless;  /* a stream whose size is not known; `size` and `left` are then very large */
    uint32_t sum;  /* CRC-32 of what was read */
    struct inflater *inflater;
} input;

duet_status path_check(const char *who, const char *path); /* BAD_ARGUMENT: NULL */
/* Opens a regular file. Errors: BAD_ARGUMENT, IO_ERROR */
duet_status input_open(input *in, const char *who, const char *path);
void input_close(input *in);
/* Starts to read a stream of the user, which is not closed. Errors: BAD_ARGUMENT */
duet_status input_stream(input *in, const char *who, FILE *f);
/* Has the stream a byte, or with `skip_space` one that is not space? Errors: END_OF_FILE, IO_ERROR */
duet_status input_begins(input *in, bool skip_space);
duet_status input_seek(input *in, uint64_t at);
duet_status input_read(input *in, void *to, size_t bytes); /* BAD_FILE: fewer bytes remain */
/* Reads at a position of an uncompressed file. The position of `in` does not change. */
duet_status input_read_at(const input *in, uint64_t at, void *to, size_t bytes);

/* The text starts with the call. */
duet_status input_failed(const input *in, duet_status s, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
duet_status bad_file(const input *in, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
duet_status no_memory(const input *in) __attribute__((cold)); /* puts the call in front of the text */

/* ---- limits.c: errors if the program has set a smaller limit ---- */

duet_status limit_bytes(const input *in, uint64_t bytes);                 /* of a result: NO_MEMORY */
duet_status limit_ratio(const input *in, uint64_t size, uint64_t packed); /* of an array: BAD_FILE */

/* ---- file.c: writing ---- */

/* A file to write, or a stream of the user. A file gets a temporary name in the folder of the file that it
 * replaces. */
typedef struct output {
    const char *who, *path; /* a stream has no path */
    FILE *stream;           /* or NULL */
    int file;
    int folder;       /* of the target; negative: the file is written in place */
    char *target;     /* the path without links; allocated, or NULL */
    const char *name; /* of the target in its folder; part of `target` */
    char beside[64];  /* the temporary name in the folder */
    uint64_t written;
    uint32_t sum;
    bool read_only; /* make the file read-only when it is complete */
    int64_t at;     /* where the next bytes are written, after those in the buffer; negative: in sequence */
    size_t held;    /* bytes in the buffer */
    char buffer[1 << 14];
} output;
duet_status output_open(output *out, const char *who, const char *path);
duet_status output_stream(output *out, const char *who, FILE *stream);
duet_status output_write(output *out, const void *from, size_t bytes);
duet_status output_rewrite(output *out, uint64_t at, const void *from, size_t bytes); /* not in `sum` */
duet_status output_flush(output *out);
/* The next bytes are written at this position of the file. */
duet_status output_move(output *out, uint64_t at);
/* Puts this call in front of the error text of s, an error of another function. Returns s. */
duet_status output_fail_within(const output *out, duet_status s) __attribute__((cold));

/* A file that several processes write, each its own bytes. */
typedef struct shared_file {
    char beside[64]; /* its temporary name */
    bool is_regular; /* the target is a regular file, or there is none; otherwise no file was opened */
} shared_file;
/* Creates a file of this size, unless the target is not a regular file. */
duet_status output_open_shared(output *out, const char *who, const char *path, uint64_t bytes,
                               shared_file *f);
/* Opens it in another process, where output_close does not rename it. */
duet_status output_join(output *out, const char *who, const char *path, const shared_file *f);

/* If s is OK, renames the file to its target, else removes it; flushes a stream. Returns s, or IO_ERROR */
duet_status output_close(output *out, duet_status s);

/* ---- inflate_zlib.c, inflate_none.c ---- */

extern const char inflate_none[]; /* why compressed files cannot be read, or "" */
void inflate_info(char *text, size_t size);
duet_status inflate_begin(input *in, uint64_t compressed); /* from the current position of in->f */
duet_status inflate_read(input *in, void *to, size_t bytes);
void inflate_end(input *in);

/* ---- npy.c ---- */

/* duet_read, but returns a status. */
static inline duet_status elements_of(const duet_matrix *m, const void **p)
{
    void *again;
    *p = (duet_read)(m);
    if (*p || !m->count) return DUET_OK;
    return matrix_open(m, HOST, READ, thread_get()->queue, &again);
}

/* matrix_open on the host, which may copy m from a GPU whatever DUET_TRANSFERS says. */
static inline duet_status open_elements(const duet_matrix *m, enum use use, void **p)
{
    thread *t = thread_get();
    t->accesses = true;
    const duet_status s = matrix_open(m, HOST, use, t->queue, p);
    t->accesses = false;
    return s;
}

duet_matrix *npy_read(input *in);
uint64_t npy_bytes(const duet_matrix *m); /* the size of the .npy file for m */
duet_status npy_write(output *out, const duet_matrix *m);

/* ---- number.c: elements as text ---- */

static inline bool type_is_complex(duet_dtype t) { return t == DUET_C64 || t == DUET_C128; }
static inline bool type_is_float(duet_dtype t) { return dtypes[t].roundoff > 0; }
static inline duet_dtype type_of_part(duet_dtype t)
{
    if (t == DUET_C64) return DUET_F32;
    return t == DUET_C128 ? DUET_F64 : t;
}

double number_of(duet_dtype type, const void *p);                  /* floating point of any size */
char *integer_text(duet_dtype type, const void *p, char text[32]); /* of any size, and bool as 0 or 1 */
int shortest_digits(duet_dtype type,
                    double x); /* the fewest digits that identify a finite x among the numbers of its type */

#endif
