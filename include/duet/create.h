/* create.h - functions that return a new matrix with elements: results of formulas, constants, sequences
 * and copies. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_CREATE_H
#define DUET_CREATE_H

/* While a recording is made, duet_eval and duet_copy are recorded as statements that write their result. The
 * other functions of this file run once and are not recorded. */

/* Evaluates e into a new matrix. Consumes e, also on failure.
 * Shapes    the result has the type and shape of e; a formula of numbers alone is f64, or c128
 * Owner     the result: the caller, until duet_free
 * Errors    NULL: as duet_set */
DUET_API DUET_MUST duet_matrix *duet_eval(duet_expr e);
DUET_API DUET_MUST duet_matrix *duet_eval_at(duet_expr e, const char *site);

/* Evaluates a formula of one element and stores the result in *x, converted to the type of *x as by
 * duet_cast. Waits for the result. Consumes e, also on failure. While a recording is made, it runs once and
 * is not recorded. In C write duet_item(e, &n), where n is a variable of an integer type, bool, float,
 * double, float _Complex or double _Complex; the macro passes its element type.
 * Shapes    e has one element; its rank may be larger than 0
 * Errors    as duet_set, and BAD_ARGUMENT (x is NULL, or type is no element type), BAD_TYPE (e is complex
 *           and *x is real), BAD_SHAPE (e does not have exactly one element); *x is then unchanged */
DUET_API DUET_MUST duet_status duet_item(duet_expr e, duet_dtype type, void *x);
DUET_API DUET_MUST duet_status duet_item_at(duet_expr e, duet_dtype type, void *x, const char *site);

/* Evaluates several formulas of one element each, and stores the results, converted as by duet_item.
 * Formulas that read the same matrices share a pass over memory, and the call waits for the GPU only once.
 * Consumes all formulas, also on failure. In C write duet_item(duet_mean(x), &mean, duet_argmax(x), &at),
 * with at most 8 formulas.
 *     e      the formula
 *     type   the element type of *x
 *     x      where the result is stored
 * Shapes    as duet_item; 1 to 255 formulas
 * Errors    as duet_item, for the first formula that fails: no *x changes */
typedef struct duet_item_entry {
    duet_expr e;
    duet_dtype type;
    void *x;
} duet_item_entry;
DUET_API DUET_MUST duet_status duet_items(const duet_item_entry *list, int count);
DUET_API DUET_MUST duet_status duet_items_at(const duet_item_entry *list, int count, const char *site);

/* Create a matrix and set its elements. In C write duet_zeros(DUET_F32, 2, 3), duet_ones(DUET_F32, 2, 3) and
 * duet_full(DUET_F32, 0.5, 2, 3).
 *     duet_zeros     every element is 0, as after duet_new
 *     duet_ones      every element is 1
 *     duet_full      every element is `value`, a number
 *     duet_eye       the n x n identity matrix
 *     duet_arange    start, start + step, ... up to stop, which is not included, as NumPy's arange; no
 *                    elements if stop is not beyond start in the direction of step
 *     duet_linspace  n evenly spaced numbers from start to stop, both included; if n is 1, start
 *     duet_copy      the elements of m, in row-major order and without gaps
 * Sequences are computed in f64 and then converted as by duet_cast: integers beyond 2^53 are not exact.
 * Owner     the caller, until duet_free
 * Errors    NULL: as duet_new and duet_set; BAD_ARGUMENT: a step of 0, a negative n, or a start, stop or
 *           step that is not finite */
DUET_API DUET_MUST duet_matrix *duet_zeros_shape(duet_dtype type, int rank, const int64_t *size);
DUET_API DUET_MUST duet_matrix *duet_ones_shape(duet_dtype type, int rank, const int64_t *size);
DUET_API DUET_MUST duet_matrix *duet_full_shape(duet_dtype type, duet_expr value, int rank,
                                                const int64_t *size);
DUET_API DUET_MUST duet_matrix *duet_eye(duet_dtype type, int64_t n);
DUET_API DUET_MUST duet_matrix *duet_arange(duet_dtype type, double start, double stop, double step);
DUET_API DUET_MUST duet_matrix *duet_linspace(duet_dtype type, double start, double stop, int64_t n);
DUET_API DUET_MUST duet_matrix *duet_copy(const duet_matrix *m);

/* Copy elements between a matrix and an array of C, which has the elements of the matrix in row-major
 * order, without gaps, in its element type.
 *     duet_from_array   a new matrix with the elements of the array. The array may be changed or freed
 *                       afterwards; to use its memory instead, call duet_wrap. In C write
 *                       duet_from_array(p, DUET_F32, 2, 3)
 *     duet_to_array     stores the elements of m in the array; it waits for unfinished work on m
 * Owner     the matrix: the caller, until duet_free. The array: the caller
 * Errors    NULL, or the status: as duet_new and duet_set; BAD_ARGUMENT: the array is NULL or not aligned
 *           to the element type */
DUET_API DUET_MUST duet_matrix *duet_from_array_shape(const void *array, duet_dtype type, int rank,
                                                      const int64_t *size);
DUET_API DUET_MUST duet_status duet_to_array(const duet_matrix *m, void *array);

#endif
