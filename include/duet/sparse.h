/* sparse.h - sparse matrices: few elements are stored, all others are 0. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_SPARSE_H
#define DUET_SPARSE_H

/* A sparse matrix in compressed rows (CSR). It has two matrices:
 *     pattern   where the elements are: first the row offsets, rows + 1 of them, then the column of each
 *               element. Row r has the elements offset[r] to offset[r + 1] - 1. Columns are in ascending
 *               order within a row, without duplicates. It is i32, or i64 if the columns or the elements
 *               are too many for i32. It never changes
 *     values    the elements, in the order of the pattern: f32, f64, c64 or c128. It is a matrix like any
 *               other: formulas read it, statements write it, and gradients are taken with respect to it
 * So an operator that works element by element and keeps the pattern is a formula of the values:
 *     duet_set(duet_sparse_values(s), duet_mul(duet_sparse_values(s), 2))
 * Elements may be 0; they are still stored. No function makes a dense matrix of a sparse one, but
 * duet_sparse_to_dense. */
typedef struct duet_sparse duet_sparse;

/* What duet_sparse_from_coo does with elements at the same place. */
typedef enum duet_duplicates { DUET_DUPLICATES_REFUSE, DUET_DUPLICATES_SUM } duet_duplicates;

/* Make a sparse matrix.
 *     duet_sparse_from_coo     from the row, the column and the value of each element, in any order.
 *                              Duplicates are added in their order, or are an error
 *     duet_sparse_from_csr     from row offsets, columns and values. Columns must be sorted within each
 *                              row and must not repeat
 *     duet_sparse_from_dense   of the elements of m that are not 0
 *     duet_sparse_copy         a copy, with values of its own
 *     duet_sparse_free         frees s with its values and its pattern, and sets it to NULL. NULL is accepted
 * Shapes    from_coo: row, column and values have one axis and n elements. from_csr: offsets has rows + 1
 *           elements, column and values have one axis and n elements. from_dense: m has 2 axes
 * Units     row, column and offsets have any integer type and count from 0; values are f32, f64, c64 or c128
 * Owner     the result: the caller, until duet_sparse_free. All elements are copied. Formulas must be
 *           evaluated before what they name is freed
 * Errors    NULL: BAD_ARGUMENT (NULL, negative sizes, an index out of bounds, offsets that decrease or do
 *           not end at n, columns that are not sorted, duplicates; the text names the first one),
 *           BAD_SHAPE, BAD_TYPE, NO_MEMORY; as duet_read
 * Source    SciPy's coo_array and csr_array */
DUET_API DUET_MUST duet_sparse *duet_sparse_from_coo(int64_t rows, int64_t columns, const duet_matrix *row,
                                                     const duet_matrix *column, const duet_matrix *values,
                                                     duet_duplicates duplicates);
DUET_API DUET_MUST duet_sparse *duet_sparse_from_csr(int64_t rows, int64_t columns,
                                                     const duet_matrix *offsets, const duet_matrix *column,
                                                     const duet_matrix *values);
DUET_API DUET_MUST duet_sparse *duet_sparse_from_dense(const duet_matrix *m);
DUET_API DUET_MUST duet_sparse *duet_sparse_copy(const duet_sparse *s);
DUET_API void duet_sparse_free(duet_sparse **s);
DUET_API void duet_sparse_created_at(duet_sparse *s, const char *site);

/* Read what a sparse matrix has.
 *     duet_sparse_rows      the number of rows
 *     duet_sparse_columns   the number of columns
 *     duet_sparse_count     the number of stored elements
 *     duet_sparse_type      the element type
 *     duet_sparse_values    the values [n]
 *     duet_sparse_pattern   the pattern [rows + 1 + n], which can be read but not written
 * Owner     both matrices belong to s and must not be freed
 * Errors    0 or NULL if s is NULL */
DUET_API int64_t duet_sparse_rows(const duet_sparse *s);
DUET_API int64_t duet_sparse_columns(const duet_sparse *s);
DUET_API int64_t duet_sparse_count(const duet_sparse *s);
DUET_API duet_dtype duet_sparse_type(const duet_sparse *s);
DUET_API duet_matrix *duet_sparse_values(const duet_sparse *s);
DUET_API const duet_matrix *duet_sparse_pattern(const duet_sparse *s);

/* Copy a sparse matrix to lists, which are new matrices. A list whose pointer is NULL is not made.
 *     duet_sparse_to_coo   the row, the column and the value of each element, in the order of the values
 *     duet_sparse_to_csr   row offsets, columns and values
 * Shapes    offsets [rows + 1]; the others [n]
 * Units     indices are i32 or i64, as in the pattern
 * Owner     the new matrices: the caller, until duet_free
 * Errors    BAD_ARGUMENT (s is NULL), NO_MEMORY; as duet_read. No list is made then */
DUET_API DUET_MUST duet_status duet_sparse_to_coo(const duet_sparse *s, duet_matrix **row,
                                                  duet_matrix **column, duet_matrix **values);
DUET_API DUET_MUST duet_status duet_sparse_to_csr(const duet_sparse *s, duet_matrix **offsets,
                                                  duet_matrix **column, duet_matrix **values);

/* Formulas with a sparse matrix. They are evaluated like all others, on the CPU or the GPU, and have
 * gradients with respect to x, a, b and the values of s. An axis of -1 or -2 counts from the last one.
 *     duet_sparse_matmul              the product of s and x
 *     duet_sparse_transposed_matmul   the product of the transpose of s and x
 *     duet_sparse_adjoint_matmul      the product of the conjugate transpose of s and x
 *     duet_sparse_sddmm               the elements of the product of a and b at the places of s: values
 *                                     for the pattern of s. Other elements are not computed
 *     duet_sparse_take                the elements of x at the places of s: values for the pattern of s
 *     duet_sparse_sum                 the sums of each column (axis 0) or of each row (axis 1). The sum of
 *                                     all elements is duet_sum(duet_sparse_values(s))
 *     duet_sparse_to_dense            the dense matrix
 *     duet_sparse_solve               the X with s X = b, by sparse LU factorisation, which the CPU does
 *                                     with SuperLU and partial pivoting, and the GPU with cuDSS
 *     duet_sparse_solve_triangular    the X with s X = b, where only one triangle of s is read. In C
 *                                     options are given by name: duet_sparse_solve_triangular(s, b, .lower
 *                                     = 1)
 * Shapes    s is m x n. matmul: x is n or n x k; the result is m or m x k. transposed_matmul and
 *           adjoint_matmul: x is m or m x k; the result is n or n x k. sddmm: a is m x k, b is k x n; the
 *           result has one element for each of s. take: x is m x n; the result has one element for each of
 *           s. sum: n for axis 0, m for axis 1. to_dense: m x n. solve, solve_triangular: s is n x n; b and the result are n or n x k
 * Owner     s stays the caller's; do not free it before the formula is evaluated. The functions consume x, a
 *           and b, also on failure
 * Errors    in the result: BAD_ARGUMENT (s is NULL, axis), BAD_SHAPE, BAD_TYPE (the dense operand does not
 *           have the type of s). Of the statement: SINGULAR (solve, solve_triangular); of solve also
 *           NOT_FINITE, NO_MEMORY, and UNSUPPORTED (neither SuperLU nor cuDSS; 2^31 rows, elements
 *           or right-hand sides)
 * Source    SuperLU: Demmel et al., A supernodal approach to sparse partial pivoting, 1999 */
DUET_OPERATOR(duet_sparse_matmul, const duet_sparse *s, duet_expr x)
DUET_OPERATOR(duet_sparse_transposed_matmul, const duet_sparse *s, duet_expr x)
DUET_OPERATOR(duet_sparse_adjoint_matmul, const duet_sparse *s, duet_expr x)
DUET_OPERATOR(duet_sparse_sddmm, const duet_sparse *s, duet_expr a, duet_expr b)
DUET_OPERATOR(duet_sparse_take, const duet_sparse *s, duet_expr x)
DUET_OPERATOR(duet_sparse_sum, const duet_sparse *s, int axis)
DUET_OPERATOR(duet_sparse_to_dense, const duet_sparse *s)
DUET_OPERATOR(duet_sparse_solve, const duet_sparse *s, duet_expr b)
DUET_OPERATOR(duet_sparse_solve_triangular, const duet_sparse *s, duet_expr b, const duet_triangle *options)

/* Make a sparse matrix from others. These functions run at once, also while this thread records: a replay
 * uses what they made then. All but with_values work on the host. The patterns of their results depend on
 * patterns alone: a sum or product that happens to be 0 is stored. Results have the same bits with any number
 * of threads.
 *     duet_sparse_with_values   a matrix with the pattern of s and the values of the formula e, whose type,
 *                               f32, f64, c64 or c128, it takes. With
 *                               e = duet_exp(duet_sparse_values(s)), a function of each stored element; with
 *                               e = duet_mul(duet_sparse_values(s), duet_sparse_take(s, x)), s times a
 *                               dense x
 *     duet_sparse_transposed    the transpose
 *     duet_sparse_slice         rows from .. to - 1
 *     duet_sparse_add           a + b, with the elements that a or b has
 *     duet_sparse_multiply      a times b element by element, with the elements that both have
 *     duet_sparse_product       the matrix product of a and b. Each element adds its terms in the order of
 *                               the columns of a
 * Shapes    with_values: e has as many elements as s, along one axis. add: a and b have the same sizes.
 *           multiply: a and b have the same sizes. product: a is m x k, b is k x n
 * Owner     the result: the caller, until duet_sparse_free. with_values consumes e, also on failure
 * Errors    NULL: BAD_ARGUMENT (NULL, bounds), BAD_SHAPE, BAD_TYPE (a and b have different types),
 *           NO_MEMORY; as duet_read; with_values also as duet_eval
 * Source    SpGEMM by rows: Gustavson, Two fast algorithms for sparse matrices, 1978 */
DUET_API DUET_MUST duet_sparse *duet_sparse_with_values(const duet_sparse *s, duet_expr e);
DUET_API DUET_MUST duet_sparse *duet_sparse_with_values_at(const duet_sparse *s, duet_expr e,
                                                           const char *site);
DUET_API DUET_MUST duet_sparse *duet_sparse_transposed(const duet_sparse *s);
DUET_API DUET_MUST duet_sparse *duet_sparse_slice(const duet_sparse *s, int64_t from, int64_t to);
DUET_API DUET_MUST duet_sparse *duet_sparse_add(const duet_sparse *a, const duet_sparse *b);
DUET_API DUET_MUST duet_sparse *duet_sparse_multiply(const duet_sparse *a, const duet_sparse *b);
DUET_API DUET_MUST duet_sparse *duet_sparse_product(const duet_sparse *a, const duet_sparse *b);

/* Load and save a sparse matrix in Matrix Market's text format `coordinate`. The field may be real or
 * integer (loaded as f64), complex (c128) or pattern (f64, all elements 1); the symmetry may be general,
 * symmetric, skew-symmetric or hermitian. Elements at the same place are added. Saving writes `general`,
 * with enough digits to restore the values.
 *     duet_sparse_load_market    loads from a file
 *     duet_sparse_save_market    saves to a file, as duet_save_market
 *     duet_sparse_read_market    reads from an open stream, and the character after the last element, as
 *                                duet_read_market
 *     duet_sparse_write_market   writes to an open stream
 * Owner     the result of load and read: the caller, until duet_sparse_free
 * Errors    as duet_load_market and the like; UNSUPPORTED: the format `array`, which duet_load_market reads
 * Source    https://math.nist.gov/MatrixMarket/formats.html */
DUET_API DUET_MUST duet_sparse *duet_sparse_load_market(const char *path);
DUET_API DUET_MUST duet_status duet_sparse_save_market(const char *path, const duet_sparse *s);
DUET_API DUET_MUST duet_sparse *duet_sparse_read_market(FILE *in);
DUET_API DUET_MUST duet_status duet_sparse_write_market(FILE *out, const duet_sparse *s);

#endif
