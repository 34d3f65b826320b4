/* files.h - loads and saves matrices as files (.npy, .npz, Matrix Market), and prints them. Part of
 * duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_FILES_H
#define DUET_FILES_H

/* Load and save NumPy files.
 *     duet_load_npy   loads the array of a .npy file: version 1.0, 2.0 or 3.0, any byte order, and
 *                     any element type that Duet has. An array in Fortran order becomes a transposed
 *                     view
 *     duet_load_npy_into   reads the array of a .npy file into an existing matrix or view, which must have
 *                     its shape and type
 *     duet_save_npy   saves a matrix; if the matrix is a transposed view, in Fortran order
 *     duet_load_npz   loads the array `name` of a .npz file, which is a zip file of .npy files. Arrays
 *                     may be larger than 4 GB. They may be uncompressed or deflated. To load deflated
 *                     arrays, the library must be built with zlib; duet_info prints whether it is
 *     duet_names_npz  returns the names of all arrays of a .npz file; a NULL follows the last one
 *     duet_save_npz   saves `count` matrices with their names, uncompressed
 * bf16 is saved and loaded as `V2`, as ml_dtypes does. A file is first written under another name and
 * then replaces the existing file. If saving fails, the existing file is unchanged. Saving to a pipe
 * that nobody reads, or beyond the process's limit of file sizes, is an IO_ERROR; no signal is raised.
 * On a group of several processes, call duet_save_npy of a split matrix, and duet_load_npy_into, in all
 * processes, with the same file. Each process writes or reads only its part: see docs/groups.md
 * Owner     matrices: the caller, until duet_free. The names: the caller, until free(); they are one
 *           block of memory
 * Errors    functions that load a new matrix return NULL. IO_ERROR; BAD_FILE: the file has another
 *           format, or is truncated or inconsistent; UNSUPPORTED: an element type that Duet does not have,
 *           a compression other than deflate, encryption, or deflate in a build without zlib;
 *           BAD_ARGUMENT: NULL, no array of that name, or a name given twice; NO_MEMORY. Saving also
 *           fails as duet_read does. duet_load_npy_into also fails as duet_update does. BAD_SHAPE, BAD_TYPE:
 *           m has another shape or type than the array. If reading fails after some elements were
 *           written, the elements of m are lost; after other errors m is unchanged. On a group of several
 *           processes, RANK_FAILED: another process failed, and elements of m may be lost */
typedef struct duet_named {
    const char *name;
    const duet_matrix *m;
} duet_named;
DUET_API DUET_MUST duet_matrix *duet_load_npy(const char *path);
DUET_API DUET_MUST duet_status duet_load_npy_into(const char *path, duet_matrix *m);
DUET_API DUET_MUST duet_status duet_save_npy(const char *path, const duet_matrix *m);
DUET_API DUET_MUST duet_matrix *duet_load_npz(const char *path, const char *name);
DUET_API char **duet_names_npz(const char *path);
DUET_API DUET_MUST duet_status duet_save_npz(const char *path, const duet_named *list, int count);

/* Load and save a matrix in Matrix Market's dense text format, `array`, which lists the elements
 * column by column. The field may be real (loaded as f64), integer (i64) or complex (c128); the
 * symmetry may be general, symmetric, skew-symmetric or hermitian. Saving writes `general`, with
 * enough digits to restore the same elements.
 *     duet_load_market   loads a matrix
 *     duet_save_market   saves a matrix
 * Shapes    rank 2
 * Owner     the caller, until duet_free
 * Errors    as duet_load_npy and duet_save_npy; UNSUPPORTED: the format `coordinate` or the field
 *           `pattern`; BAD_SHAPE: the rank is not 2 */
DUET_API DUET_MUST duet_matrix *duet_load_market(const char *path);
DUET_API DUET_MUST duet_status duet_save_market(const char *path, const duet_matrix *m);

/* Write and read matrices one after another on an open stream: a file, a pipe, a socket (fdopen) or memory
 * (fmemopen).
 *     duet_write_npy      writes what duet_save_npy writes to a file, after what the stream has so far
 *     duet_read_npy       reads one array in the formats of duet_load_npy. Then the stream is at the first
 *                         byte after the array
 *     duet_write_market   writes what duet_save_market writes to a file
 *     duet_read_market    reads one matrix in the formats of duet_load_market, and the character after its
 *                         last element. Space and line ends before a matrix are skipped
 * Functions that write flush the stream, so that errors are reported, and signals suppressed, as by
 * duet_save_npy. If they fail, the stream may have part of the matrix. The size of a pipe is not known: of
 * what a header claims, at most three times what has been read is allocated (and 1 MiB), and the limit of
 * duet_load_limits applies. If reading fails, the position of the stream is undefined.
 * Shapes    as duet_save_npy and duet_save_market
 * Owner     the stream: the caller. Matrices: the caller, until duet_free
 * Errors    as the functions for files, without those of paths; reading also END_OF_FILE: the stream ends
 *           before the first byte of a matrix. If it ends later, that is BAD_FILE. BAD_ARGUMENT: the stream
 *           is NULL */
DUET_API DUET_MUST duet_status duet_write_npy(FILE *out, const duet_matrix *m);
DUET_API DUET_MUST duet_matrix *duet_read_npy(FILE *in);
DUET_API DUET_MUST duet_status duet_write_market(FILE *out, const duet_matrix *m);
DUET_API DUET_MUST duet_matrix *duet_read_market(FILE *in);

/* Prints a matrix as an expression that Octave and MATLAB read, without an end of line: [1, 2; 3, 4]. Each
 * element has the fewest digits that restore it.
 *     f64                numbers, also NaN, Inf and -Inf
 *     f32, f16, bf16     single(...)
 *     integers           int8(...) to uint64(...). Literals beyond 2^53 would be rounded to f64, so such
 *                        matrices are the sum of their upper and lower halves
 *     bool               true, false or logical(...)
 *     complex            [1+2i, 3-4i]; complex(real parts, imaginary parts) if an element has a part that is
 *                        NaN, infinite or -0, or if all imaginary parts are 0, because Octave would make
 *                        them real
 *     one axis           a row
 *     more than 2 axes   reshape([...], sizes)
 *     no elements        zeros(0, 3)
 * Shapes    any
 * Errors    BAD_ARGUMENT, IO_ERROR, and as duet_read */
DUET_API duet_status duet_print_octave(FILE *out, const duet_matrix *m);

/* Sets limits for files that may come from elsewhere. They apply to all threads. There are none at first.
 *     bytes   the largest result of a function that loads or reads a matrix or names, in bytes; 0: no limit.
 *             For a larger result nothing is allocated; the error is NO_MEMORY
 *     ratio   the largest ratio of the bytes of a deflated array of a .npz file to its compressed bytes;
 *             0: no limit. A larger one is the error BAD_FILE. Deflate reaches 1032
 * Errors    BAD_ARGUMENT: `ratio` is negative */
DUET_API duet_status duet_load_limits(size_t bytes, int ratio);

/* Print matrices as NumPy prints arrays: rows in brackets and columns aligned. A floating-point element is
 * printed with the fewest digits that identify it, but at most 8 after the decimal point. If a matrix has
 * more than 1000 elements, only the first three and the last three along each axis are printed.
 *     duet_print       prints a matrix. In C and C++ it also takes several items, at most 16 in C: texts,
 *                      matrices, formulas and numbers. Each text starts a line; the values that follow it
 *                      stand behind it, separated by spaces:
 *                      duet_print(stdout, "mean and deviation", duet_mean(x), duet_std(x), "x", x)
 *     duet_print_all   prints a list of items
 * The formulas are evaluated first, as by duet_eval, and in as few passes as duet_set_all needs. If that
 * fails, nothing is printed. Formulas are consumed, also on failure. While a recording is made, the
 * evaluation is not recorded. In a DUET_EXPLAIN block a call with formulas prints only their plans.
 * Shapes    any; 1 to 255 items
 * Errors    BAD_ARGUMENT, NO_MEMORY, IO_ERROR, and as duet_read; of a formula, as duet_set */
typedef enum duet_printed_kind {
    DUET_PRINTED_TEXT,
    DUET_PRINTED_MATRIX,
    DUET_PRINTED_FORMULA,
    DUET_PRINTED_NUMBER
} duet_printed_kind;
typedef struct duet_printed {
    duet_printed_kind kind;
    duet_dtype type; /* of a number: DUET_F64, DUET_F32, DUET_I64 or DUET_U64 */
    union {
        const char *text;
        const duet_matrix *m;
        duet_expr e;
        double f64;
        float f32;
        int64_t i64;
        uint64_t u64;
    };
#ifdef __cplusplus
    inline duet_printed(const char *x);
    inline duet_printed(const duet_matrix *x);
    inline duet_printed(duet_expr x);
    inline duet_printed(double x);
    inline duet_printed(float x);
    inline duet_printed(long double x);
    inline duet_printed(int x);
    inline duet_printed(long x);
    inline duet_printed(long long x);
    inline duet_printed(unsigned x);
    inline duet_printed(unsigned long x);
    inline duet_printed(unsigned long long x);
#endif
} duet_printed;
DUET_API duet_status duet_print(FILE *out, const duet_matrix *m);
DUET_API duet_status duet_print_all(FILE *out, const duet_printed *list, int count);
DUET_API duet_status duet_print_all_at(FILE *out, const duet_printed *list, int count, const char *site);

#endif
