/* heat.c - solves the heat equation on a plate with a hot edge. */
#include <duet/duet.h>

int main(void)
{
    const int n = 50, m = n - 2;
    double alpha = 0.24, tolerance = 1e-3, mean = 0;
    duet_matrix *u = duet_zeros(DUET_F64, n, n), *source = duet_zeros(DUET_F64, m, m);
    duet_matrix *top = duet_row(u, 0), *edge = duet_column(u, 0),
                *spot = duet_submatrix(source, 20, 20, 5, 5);
    duet_matrix *middle = duet_submatrix(u, 1, 1, m, m), *change = duet_new(DUET_F64, m, m);
    int step = 0, failed = duet_set(top, 100) || duet_set(edge, 50) || duet_set(spot, 0.5);

    const duet_index_entry before = DUET_RANGE(0, -2), here = DUET_RANGE(1, -1), after = DUET_RANGE(2, n);
    for (double largest = tolerance; !failed && step < 5000 && largest >= tolerance;) {
        const duet_expr rows = duet_add(duet_index(u, before, here), duet_index(u, after, here));
        const duet_expr columns = duet_add(duet_index(u, here, before), duet_index(u, here, after));
        const duet_expr flow = duet_sub(duet_add(rows, columns), duet_mul(4, middle));
        failed = duet_set(change, duet_fma(alpha, flow, source)) || duet_iadd(middle, change);
        if (++step % 100 == 0) failed = failed || duet_item(duet_max(duet_abs(change)), &largest);
    }

    duet_matrix *diagonal = duet_diagonal(u, 0), *seventh = duet_stepped(diagonal, 0, 0, n, 7);
    duet_matrix *center = duet_submatrix(u, 22, 22, 2, 2);
    if (failed || duet_item(duet_mean(u), &mean)) fprintf(stderr, "%s\n", duet_error());
    printf("steps %d\nmean temperature %.9g\nalong the diagonal ", step, mean), duet_print(stdout, seventh);
    printf("the source "), duet_print(stdout, center);
    duet_free(&u), duet_free(&source), duet_free(&top), duet_free(&edge), duet_free(&spot),
        duet_free(&middle);
    duet_free(&change), duet_free(&diagonal), duet_free(&seventh), duet_free(&center);
    return !(mean > 0) || step == 5000 || duet_live(stderr);
}
