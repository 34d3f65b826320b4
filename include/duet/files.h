/* files.h - matrices as files, and in print. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_FILES_H
#define DUET_FILES_H

/* NumPy's .npy: one array. What is read may be of any version (1.0, 2.0, 3.0), byte order and element type that Duet has; bf16 is
 * `V2`, as ml_dtypes writes it. An array in Fortran's order enters as a transposed view, and a matrix that is one leaves in
 * Fortran's order.
 * .npz: several, by name, in a zip file. What is read may be stored, or deflated where the build has zlib (duet_info says so),
 * and larger than 4 GB; what is written is stored. A file is written beside the one that it replaces, which is left as it is when
 * that fails.
 *     duet_load_npz      the array of that name
 *     duet_names_npz     the names of all, the last one followed by NULL
 * Owner     of matrices: the caller, until duet_free; of the names: the caller, one block, until free()
 * Errors    IO_ERROR; BAD_FILE: it is no such file, it is cut off, or what it says does not hold; UNSUPPORTED: elements that Duet
 *           has not, a compression other than deflate, encryption, no zlib; BAD_ARGUMENT: NULL, or no array of that name, or a
 *           name twice; NO_MEMORY; of saving also as duet_read. Loading returns NULL */
typedef struct duet_named {
    const char *name;
    const duet_matrix *m;
} duet_named;
DUET_API duet_matrix *duet_load_npy(const char *path);
DUET_API DUET_MUST duet_status duet_save_npy(const char *path, const duet_matrix *m);
DUET_API duet_matrix *duet_load_npz(const char *path, const char *name);
DUET_API char **duet_names_npz(const char *path);
DUET_API DUET_MUST duet_status duet_save_npz(const char *path, const duet_named *list, int count);

/* Matrix Market's dense format, `array`: text, column by column. What is read may be real (f64), integer (i64) or complex (c128,
 * where Duet has it), and general, symmetric, skew-symmetric or hermitian; what is written is general, with as many digits as
 * give the same elements again.
 * Shapes    rank 2
 * Owner     the caller, until duet_free
 * Errors    as above; UNSUPPORTED: the format `coordinate`, the field `pattern`; BAD_SHAPE: another rank */
DUET_API duet_matrix *duet_load_market(const char *path);
DUET_API DUET_MUST duet_status duet_save_market(const char *path, const duet_matrix *m);

/* Writes the elements of m as NumPy prints an array: rows in brackets, columns aligned, of floating point as few digits as tell
 * an element apart, at most 8 behind the point; of more than 1000 elements the first and last three along each axis.
 * Errors    BAD_ARGUMENT, NO_MEMORY, IO_ERROR, and as duet_read */
DUET_API duet_status duet_print(FILE *out, const duet_matrix *m);

#endif
