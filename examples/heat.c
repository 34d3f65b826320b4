/* heat.c - solves the heat equation on a plate with a hot edge. */
#include <duet/duet.h>

int main(void)
{
    const int n = 50, m = n - 2;
    const double alpha = 0.24, tolerance = 1e-3;
    duet_matrix *u = duet_zeros(DUET_F64, n, n), *source = duet_zeros(DUET_F64, m, m);
    duet_matrix *top = duet_row(u, 0), *edge = duet_column(u, 0), *middle = duet_submatrix(u, 1, 1, m, m);
    duet_matrix *spot = duet_submatrix(source, 20, 20, 5, 5), *change = duet_new(DUET_F64, m, m);
    int step = 0, failed = duet_set(top, 100) || duet_set(edge, 50) || duet_set(spot, 0.5);

    const duet_index_entry before = DUET_RANGE(0, -2), here = DUET_RANGE(1, -1), after = DUET_RANGE(2, n);
    for (double largest = tolerance; !failed && step < 5000 && largest >= tolerance;) {
        const duet_expr rows = duet_add(duet_index(u, before, here), duet_index(u, after, here));
        const duet_expr columns = duet_add(duet_index(u, here, before), duet_index(u, here, after));
        const duet_expr flow = duet_sub(duet_add(rows, columns), duet_mul(4, middle));
        failed = duet_set(change, duet_fma(alpha, flow, source)) || duet_iadd(middle, change);
        if (++step % 100 == 0) failed = failed || duet_item(duet_max(duet_abs(change)), &largest);
    }

    const duet_expr diagonal = duet_index(duet_diagonal_of(u, 0), DUET_STEP(0, n, 7));
    const duet_expr center = duet_index(u, DUET_RANGE(22, 24), DUET_RANGE(22, 24));
    failed = failed || duet_print(stdout, "steps", step, "mean temperature", duet_mean(u),
                                  "along the diagonal", diagonal, "the source", center);
    if (failed) fprintf(stderr, "%s\n", duet_error());
    duet_free(&u, &source, &top, &edge, &middle, &spot, &change);
    return failed || step == 5000 || duet_live(stderr);
}
