/* newton.c - minimises a function of several variables by Newton's method. The gradient and the matrix of
 * second derivatives are formulas: duet_grad of the function, and of each element of its gradient. */
#include <duet/duet.h>

enum { N = 4, STEPS = 12 };

/* Rosenbrock's function: sum of 100 (x[i + 1] - x[i]^2)^2 + (1 - x[i])^2. Its minimum is 0, where all x
 * are 1. */
static duet_expr rosenbrock(const duet_matrix *x)
{
    const duet_expr low = duet_index(x, DUET_RANGE(0, N - 1)), high = duet_index(x, DUET_RANGE(1, N));
    const duet_expr bend = duet_square(duet_sub(high, duet_square(low))),
                    rest = duet_square(duet_sub(1, low));
    return duet_sum(duet_add(duet_mul(100, bend), rest));
}

static duet_status step(duet_matrix *x, duet_matrix *value, duet_matrix *gradient, duet_matrix *hessian)
{
    const duet_expr y = rosenbrock(x), g = duet_grad(y, x);
    duet_expr row[N];
    for (int i = 0; i < N; i++) row[i] = duet_grad(duet_index(g, DUET_AT(i)), x);
    duet_status s = duet_set_all({ value, y }, { gradient, g }, { hessian, (duet_stack)(0, N, row) });
    if (s == DUET_OK) s = duet_isub(x, duet_solve(hessian, gradient));
    return s;
}

int main(void)
{
    static const double start[N] = { 0.8, 0.7, 0.6, 0.5 };
    duet_matrix *x = duet_from_array(start, DUET_F64, N), *value = duet_new(DUET_F64, 1);
    duet_matrix *gradient = duet_new(DUET_F64, N), *hessian = duet_new(DUET_F64, N, N);
    double rest = 1;
    int failed = 0;
    for (int i = 0; !failed && i < STEPS; i++)
        failed = step(x, value, gradient, hessian) || duet_print(stdout, "step", i, "value", value, "x", x);
    failed = failed || duet_item(rosenbrock(x), &rest);
    if (failed) fprintf(stderr, "%s\n", duet_error());
    duet_free(&x, &value, &gradient, &hessian);
    return failed || !(rest < 1e-20) || duet_live(stderr);
}
