/* structure.h - structured matrices: symmetric, Hermitian, diagonal and triangular ones. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_STRUCTURE_H
#define DUET_STRUCTURE_H

/* What a matrix is declared to be. STRICTLY: with zeros on the diagonal. UNIT: with ones there. */
typedef enum duet_structure {
    DUET_GENERAL,
    DUET_SYMMETRIC,
    DUET_HERMITIAN,
    DUET_DIAGONAL,
    DUET_LOWER,
    DUET_UPPER,
    DUET_STRICTLY_LOWER,
    DUET_STRICTLY_UPPER,
    DUET_UNIT_LOWER,
    DUET_UNIT_UPPER
} duet_structure;

/* Declare and ask for the structure of a matrix.
 *     duet_declare          declares that m has this structure, after checking its elements
 *     duet_structure_of     the structure of m. A transposed view of a lower triangular matrix is upper
 *                           triangular; other views are general. A Hermitian matrix of real numbers is
 *                           symmetric
 *     duet_expr_structure   the structure that a formula has because of its operators and the structure of
 *                           its matrices, such as the product of two lower triangular matrices
 * A structure is kept until m is freed. To drop it, copy m.
 *
 * Formulas use it. matmul with a diagonal matrix scales rows or columns. solve and inv of a triangular matrix
 * substitute instead of factorising, and det multiplies its diagonal. The zeros of a declared matrix do
 * not take part: they have no product with an infinity or a NaN. duet_explain prints the operators that run.
 *
 * Writes keep it. A statement whose formula has the structure writes m as usual. If only rounding can make
 * the formula differ, as that of matmul(x, transpose(x)), the elements that the structure determines are set
 * after it: they are zero or one, or the mirror image of those below the diagonal. The elements of every
 * other formula are checked before m changes: a write that would break the structure is an error that names
 * the element. Both take a temporary matrix and one more pass. A write to a view of m is checked in the same
 * way. duet_set_all accepts only formulas
 * that need no check, and so does a recording. Functions that write in other ways (duet_overwrite,
 * duet_random_normal, duet_sgd, ...) refuse m. The owner of wrapped memory must keep the structure if he
 * writes there.
 * Shapes    n x n
 * Errors    duet_declare: BAD_ARGUMENT: an element does not have the structure; the text names it; or m
 *           has another structure already, or is a view of a part of a matrix; BAD_SHAPE; as duet_read.
 *           m stays as it was. Others: GENERAL for NULL and for a formula that failed */
DUET_API DUET_MUST duet_status duet_declare(duet_matrix *m, duet_structure structure);
DUET_API duet_structure duet_structure_of(const duet_matrix *m);
DUET_API duet_structure duet_expr_structure(duet_expr e);

#endif
