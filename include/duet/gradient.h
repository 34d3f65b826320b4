/* gradient.h - gradients of formulas. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_GRADIENT_H
#define DUET_GRADIENT_H

/* Build the gradient of a formula y with respect to a matrix x, as a formula. It can be used in other
 * formulas, in statements and recordings, and can be differentiated again.
 *     duet_grad            for a y with one real element: the derivative of y with respect to each element
 *                          of x
 *     duet_vjp             for any y: the derivative of the sum of y * g
 *     duet_stop_gradient   the elements of x; gradients are 0 there, as if it were a constant
 *     duet_checkpoint      the elements of x, stored in memory. The values that x is computed from are not
 *                          stored for the gradients. They are recomputed from the matrices and
 *                          checkpoints before x. This saves memory, and costs time
 * y is an operand: until the gradient is evaluated, it can be used in other formulas and gradients. If y
 * does not use x, the gradient is 0, and duet_explain says so. What y and its gradients share is computed
 * once, if they are statements of one duet_set_all:
 *     duet_expr loss = duet_mse(duet_matmul(x, w), target);
 *     duet_set_all({ l, loss }, { dw, duet_grad(loss, w) })
 * Formulas that select elements of x (duet_index, duet_transpose) are differentiated as others. Views of x
 * (duet_row, duet_transposed) are other matrices. y may have one that shares elements with x only where no
 * gradient passes, as in duet_stop_gradient.
 * Derivatives at points where an operator has none, and those of complex numbers: docs/semantics.md.
 * Shapes    duet_grad: y has one element. duet_vjp: g broadcasts to y. The result has the shape of x
 * Type      the result has that of x. x and y must be floating point; for duet_grad, y must also be real
 * Errors    in the result: BAD_ARGUMENT (y depends on a view that shares elements with x), BAD_SHAPE,
 *           BAD_TYPE, UNSUPPORTED (y depends on x by an operator that has no derivative), FREED,
 *           NO_MEMORY
 * Source    reverse-mode differentiation, as JAX's grad and vjp; the derivatives are in
 *           src/expr/derivatives.def */
DUET_OPERATOR(duet_grad, duet_expr y, const duet_matrix *x)
DUET_OPERATOR(duet_vjp, duet_expr y, const duet_matrix *x, duet_expr g)
DUET_OPERATOR(duet_stop_gradient, duet_expr x)
DUET_OPERATOR(duet_checkpoint, duet_expr x)

#endif
