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

/* Declare the structure of a matrix, and return it.
 *     duet_declare          declares that m has this structure, after checking its elements
 *     duet_structure_of     the structure of m. A transposed view of a lower triangular matrix is upper
 *                           triangular; other views are general. A Hermitian matrix of real numbers is
 *                           symmetric
 *     duet_expr_structure   the structure that a formula has because of its operators and the structure of
 *                           its matrices, such as the product of two lower triangular matrices
 * A structure is kept until m is freed. To drop it, copy m.
 *
 * Formulas of f32, f64, c64 and c128 use it, where all operands have the same type. matmul with a diagonal
 * matrix scales rows or columns. solve and inv of a triangular matrix substitute instead of factorising, and
 * det and logdet use its diagonal alone. These operators do not read the zeros. duet_explain prints the
 * operators that run.
 *
 * Writes keep it. A statement whose formula has the structure writes m as usual. If only rounding can make
 * the formula differ, as that of matmul(x, transpose(x)), the elements that the structure determines are set
 * after it: they are zero or one, or the mirror image of those below the diagonal. The elements of every
 * other formula are checked before m changes: a write that would break the structure is an error that names
 * the element. The latter two cases compute into a temporary matrix and copy it; a check also waits for the
 * result. A write to a view of m, such as a row or an element, copies and checks all of m.
 * duet_set_all and recordings accept only formulas that need no check, such as sums of lower triangular
 * matrices, or duet_tril(x, 0). A recording that was made before its destination was declared cannot be
 * replayed. Functions that write in other ways (duet_overwrite, duet_random_normal, duet_lu, ...) refuse m.
 * If you own wrapped memory, keep the structure when you write it. duet_declare ends pointers to the elements
 * of m that duet_update and the like returned.
 * Shapes    n x n
 * Errors    duet_declare: BAD_ARGUMENT: an element does not have the structure; the text names it; or m
 *           has another structure already, or is a view of a part of a matrix; BAD_SHAPE; UNSUPPORTED:
 *           m is on a group; as duet_read. m stays as it was. Others: GENERAL for NULL and for a formula that
 *           failed */
DUET_API DUET_MUST duet_status duet_declare(duet_matrix *m, duet_structure structure);
DUET_API duet_structure duet_structure_of(const duet_matrix *m);
DUET_API duet_structure duet_expr_structure(duet_expr e);

#endif
