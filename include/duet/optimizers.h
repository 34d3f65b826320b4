/* optimizers.h - optimisers for training neural networks, and clipping of gradients. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_OPTIMIZERS_H
#define DUET_OPTIMIZERS_H

/* Options of optimisers. In C write them as named arguments: duet_adam(w, g, mean, square, rate, step,
 * .decay = 0.01). Options that you omit are 0. The functions themselves take a pointer; NULL means that all
 * options are 0.
 *     momentum      how much of the previous step is added to each step; 0 means none
 *     velocity      the matrix that keeps the previous step, with the shape of w. It must be given
 *                   if momentum is not 0, and is not used if momentum is 0. Fill it with zeros before the
 *                   first step
 *     nesterov      1 means Nesterov's momentum, which requires a momentum that is not 0
 *     decay         weight decay: decay * w is added to g. In duet_adamw it is subtracted from w instead,
 *                   times rate. 0 means none
 *     keep_mean     the factor of the previous mean, beta1 of the paper; 0 means 0.9
 *     keep_square   the factor of the previous mean square, beta2 of the paper; 0 means 0.999
 *     keep          the same in duet_rmsprop; 0 means 0.99
 *     epsilon       what is added to the root of the squares before the division. 0 means 1e-8; in
 *                   duet_adagrad it means 1e-10
 * Errors    BAD_ARGUMENT: a value is negative or not finite; keep, keep_mean or keep_square is not less
 *           than 1; nesterov is neither 0 nor 1 */
typedef struct duet_sgd_options {
    double momentum;
    duet_matrix *velocity;
    int32_t nesterov;
    double decay;
} duet_sgd_options;
typedef struct duet_adam_options {
    double keep_mean, keep_square, epsilon, decay;
} duet_adam_options;
typedef struct duet_rmsprop_options {
    double keep, epsilon, momentum;
    duet_matrix *velocity;
    double decay;
} duet_rmsprop_options;
typedef struct duet_adagrad_options {
    double epsilon, decay;
} duet_adagrad_options;

/* Update the parameters w of a network, from the gradient g of the loss with respect to w, in one pass over
 * memory. With d = g + decay * w:
 *     duet_sgd       velocity = momentum * velocity + d;
 *                    w -= rate * velocity, or with Nesterov's momentum w -= rate * (d + momentum * velocity),
 *                    or without momentum w -= rate * d
 *     duet_adam      mean = keep_mean * mean + (1 - keep_mean) * d;
 *                    square = keep_square * square + (1 - keep_square) * d^2;
 *                    w -= rate * m / (sqrt(s) + epsilon), where m = mean / (1 - keep_mean^step) and
 *                    s = square / (1 - keep_square^step)
 *     duet_adamw     the same with d = g, and with another w -= rate * decay * w, of the previous w
 *     duet_rmsprop   square = keep * square + (1 - keep) * d^2; u = d / (sqrt(square) + epsilon);
 *                    w -= rate * u, or with momentum velocity = momentum * velocity + u and
 *                    w -= rate * velocity
 *     duet_adagrad   sum = sum + d^2; w -= rate * d / (sqrt(sum) + epsilon)
 * g is a matrix or a formula, such as duet_grad(loss, w). The functions consume g, rate and step, also on
 * failure. Fill mean, square and sum with zeros before the first step. step counts the steps of w from 1.
 * rate and step are numbers, or matrices or formulas of one element:
 *     duet_adam(w, duet_grad(loss, w), mean, square, 0.001, step)
 * Numbers that change from step to step do not need new plans. A recording repeats the numbers that it was
 * recorded with. If it has to use other values later, pass matrices, and write to them before each replay.
 * If step is a matrix, the factors that depend on it are computed first, each by a step of its own on one
 * element.
 * Shapes    g, mean, square, sum and velocity have the shape of w. rate and step have one element
 * Type      w is f32, f64, f16 or bf16. mean, square, sum and velocity have the type in which w is computed:
 *           f64 for f64, else f32. The type of g is that one or promotes to it. rate and step have any real
 *           type but bool
 * Errors    BAD_ARGUMENT: a matrix is NULL, or shares elements with another one that is updated, or repeats
 *           elements; g, rate or step reads a matrix that is updated, other than w; the number rate is
 *           negative or not finite; the number step is less than 1 or not finite; the options, as above.
 *           BAD_SHAPE, BAD_TYPE, FREED; and as duet_set_all. After a failure, all matrices are unchanged;
 *           DEVICE_ERROR: their elements may be lost
 * Source    PyTorch's torch.optim: SGD (without dampening), Adam, AdamW, RMSprop and Adagrad, with their
 *           defaults. Only the default decay of duet_adamw is 0, and not 0.01 */
DUET_API DUET_MUST duet_status duet_sgd(duet_matrix *w, duet_expr g, duet_expr rate,
                                        const duet_sgd_options *options);
DUET_API DUET_MUST duet_status duet_sgd_at(duet_matrix *w, duet_expr g, duet_expr rate,
                                           const duet_sgd_options *options, const char *site);
DUET_API DUET_MUST duet_status duet_adam(duet_matrix *w, duet_expr g, duet_matrix *mean, duet_matrix *square,
                                         duet_expr rate, duet_expr step, const duet_adam_options *options);
DUET_API DUET_MUST duet_status duet_adam_at(duet_matrix *w, duet_expr g, duet_matrix *mean,
                                            duet_matrix *square, duet_expr rate, duet_expr step,
                                            const duet_adam_options *options, const char *site);
DUET_API DUET_MUST duet_status duet_adamw(duet_matrix *w, duet_expr g, duet_matrix *mean, duet_matrix *square,
                                          duet_expr rate, duet_expr step, const duet_adam_options *options);
DUET_API DUET_MUST duet_status duet_adamw_at(duet_matrix *w, duet_expr g, duet_matrix *mean,
                                             duet_matrix *square, duet_expr rate, duet_expr step,
                                             const duet_adam_options *options, const char *site);
DUET_API DUET_MUST duet_status duet_rmsprop(duet_matrix *w, duet_expr g, duet_matrix *square, duet_expr rate,
                                            const duet_rmsprop_options *options);
DUET_API DUET_MUST duet_status duet_rmsprop_at(duet_matrix *w, duet_expr g, duet_matrix *square,
                                               duet_expr rate, const duet_rmsprop_options *options,
                                               const char *site);
DUET_API DUET_MUST duet_status duet_adagrad(duet_matrix *w, duet_expr g, duet_matrix *sum, duet_expr rate,
                                            const duet_adagrad_options *options);
DUET_API DUET_MUST duet_status duet_adagrad_at(duet_matrix *w, duet_expr g, duet_matrix *sum, duet_expr rate,
                                               const duet_adagrad_options *options, const char *site);

/* Build formulas that limit gradients.
 *     duet_global_norm   the root of the sum of the squares of all elements of all operands, without
 *                        overflow; in C duet_global_norm(a, b, c)
 *     duet_clip_norm     g * min(1, most / (norm + 1e-6)): g, scaled so that the norm of all gradients is at
 *                        most `most`
 * A formula is evaluated once. If several parameters use one norm, store it in a matrix first:
 *     if (duet_set(norm, duet_global_norm(da, db)) ||
 *         duet_sgd(a, duet_clip_norm(da, norm, 1), rate) ||
 *         duet_sgd(b, duet_clip_norm(db, norm, 1), rate)) fail();
 * Shapes    global_norm: any operands, at least one; the result has rank 0. clip_norm: norm and most have one
 *           element; the result has the shape of g
 * Errors    in the result: BAD_ARGUMENT (no operand), BAD_SHAPE, BAD_TYPE, and those of the operands
 * Source    PyTorch's clip_grad_norm_ */
DUET_OPERATOR(duet_global_norm, int count, const duet_expr *x)
DUET_OPERATOR(duet_clip_norm, duet_expr g, duet_expr norm, duet_expr most)

#endif
