/* least_squares.c - fits a cubic to points, by QR and by the normal equations. */
#include <duet/duet.h>

int main(void)
{
    duet_matrix *x = duet_linspace(DUET_F64, -1, 1, 200);
    const duet_expr cubic = duet_sub(duet_add(1, duet_mul(2, x)), duet_mul(3, duet_pow_int(x, 3)));
    duet_matrix *y = duet_eval(duet_add(cubic, duet_mul(0.1, duet_sin(duet_mul(37, x)))));

    duet_matrix *A = duet_eval(duet_pow(duet_expand_dims(x, 1), duet_iota(DUET_F64, 4)));
    duet_matrix *c = duet_eval(duet_lstsq(A, y));
    duet_matrix *residual = duet_eval(duet_sub(y, duet_matmul(A, c)));
    const duet_expr At = duet_transpose(A), normal = duet_solve(duet_matmul(At, A), duet_matmul(At, y));

    double apart = 1;
    const duet_expr unexplained = duet_div(duet_var(residual), duet_var(y));
    const int failed =
        duet_item(duet_max(duet_abs(duet_sub(c, normal))), &apart) ||
        duet_print(stdout, "coefficients", c, "r squared", duet_sub(1, unexplained), "largest residual",
                   duet_max(duet_abs(residual)), "the normal equations agree:", apart < 1e-9);
    if (failed) fprintf(stderr, "%s\n", duet_error());
    duet_free(&x, &y, &A, &c, &residual);
    return failed || !(apart < 1e-9) || duet_live(stderr);
}
