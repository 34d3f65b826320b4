/* softmax_regression.c - trains a linear classifier by gradient descent on the cross-entropy. */
#include <duet/duet.h>

int main(void)
{
    const int n = 300, features = 5, classes = 3;
    const double rate = 0.5;
    const duet_expr i = duet_iota(DUET_F64, n), f = duet_iota(DUET_F64, features);
    const duet_expr mixed = duet_cos(duet_outer(f, duet_add(duet_iota(DUET_F64, classes), 1.7)));
    duet_matrix *x = duet_eval(duet_sin(duet_outer(duet_add(i, 1), duet_add(f, 1.3))));
    duet_matrix *label = duet_eval(duet_argmax(duet_matmul(x, mixed), 1));
    duet_matrix *target = duet_eval(duet_one_hot(label, classes, DUET_F64));

    duet_matrix *w = duet_zeros(DUET_F64, features, classes), *b = duet_zeros(DUET_F64, classes);
    duet_matrix *p = duet_new(DUET_F64, n, classes), *g = duet_new(DUET_F64, n, classes);
    int failed = 0;
    for (int step = 0; !failed && step < 100; step++) {
        failed = duet_set_all({ p, duet_softmax(duet_bias_add(duet_matmul(x, w), b)) },
                              { g, duet_div(duet_sub(p, target), n) },
                              { w, duet_sub(w, duet_mul(rate, duet_matmul(duet_transpose(x), g))) },
                              { b, duet_sub(b, duet_mul(rate, duet_sum(g, 0))) });
        if (failed || step % 25) continue;
        failed = duet_print(stdout, "step", step, "loss", duet_cross_entropy(p, target));
    }

    double accuracy = 0;
    const duet_expr right = duet_equal(duet_argmax(duet_bias_add(duet_matmul(x, w), b), 1), label);
    failed = failed || duet_item(duet_mean(duet_cast(right, DUET_F64)), &accuracy) ||
             duet_print(stdout, "accuracy", accuracy, "weights", w, "bias", b);
    if (failed) fprintf(stderr, "%s\n", duet_error());
    duet_free(&x, &label, &target, &w, &b, &p, &g);
    return failed || accuracy < 0.9 || duet_live(stderr);
}
