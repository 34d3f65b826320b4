/* logistic_regression.c - separates two classes of points by gradient descent with a penalty for large
 * weights. The gradients come from duet_grad. */
#include <duet/duet.h>

int main(void)
{
    enum { POINTS = 500, FEATURES = 4, STEPS = 200 };
    const double rate = 1, penalty = 1e-3;
    duet_matrix *i = duet_arange(DUET_F64, 1, POINTS + 1, 1), *f = duet_arange(DUET_F64, 0, FEATURES, 1);
    duet_matrix *x = duet_eval(duet_sin(duet_outer(i, duet_add(f, 1.3))));
    duet_matrix *truth = duet_eval(duet_cos(duet_mul(3, f)));
    duet_matrix *y = duet_eval(duet_cast(duet_greater(duet_matmul(x, truth), 0.2), DUET_F64));
    duet_matrix *w = duet_zeros(DUET_F64, FEATURES), *b = duet_zeros(DUET_F64, 1),
                *loss = duet_new(DUET_F64, 1);
    duet_matrix *dw = duet_new(DUET_F64, FEATURES), *db = duet_new(DUET_F64, 1);

    int failed = 0;
    for (int step = 0; !failed && step < STEPS; step++) {
        const duet_expr error = duet_binary_cross_entropy_logits(duet_add(duet_matmul(x, w), b), y);
        const duet_expr e = duet_add(error, duet_mul(penalty, duet_sum(duet_square(w))));
        failed = duet_set_all({ loss, e }, { dw, duet_grad(e, w) }, { db, duet_grad(e, b) },
                              { w, duet_sub(w, duet_mul(rate, dw)) }, { b, duet_sub(b, duet_mul(rate, db)) });
        if (!failed && step % 50 == 0) failed = duet_print(stdout, "step", step, "loss", loss);
    }

    double accuracy = 0;
    const duet_expr guess = duet_greater(duet_add(duet_matmul(x, w), b), 0),
                    right = duet_equal(guess, duet_greater(y, 0));
    failed = failed || duet_item(duet_mean(duet_cast(right, DUET_F64)), &accuracy) ||
             duet_print(stdout, "accuracy", accuracy, "weights", w, "bias", b);
    if (failed) fprintf(stderr, "%s\n", duet_error());
    duet_free(&i, &f, &x, &truth, &y, &w, &b, &loss, &dw, &db);
    return failed || accuracy < 0.95 || duet_live(stderr);
}
