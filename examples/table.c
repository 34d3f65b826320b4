/* table.c - computes statistics of the columns of a table, with missing values. */
#include <duet/duet.h>
#include <math.h>

int main(void)
{
    const int rows = 1000, columns = 4;
    const duet_expr i = duet_reshape(duet_iota(DUET_F64, rows * columns), rows, columns);
    const duet_expr scale = duet_stack(0, 1, 2, 5, 10), offset = duet_stack(0, 0, 100, -5, 7);
    duet_matrix *table = duet_eval(duet_fma(duet_sin(duet_mul(i, 0.37)), scale, offset));
    duet_matrix *third = duet_column(table, 2);
    duet_matrix *missing = duet_indexed(table, DUET_STEP(5, DUET_OPEN, 50), DUET_AT(3));
    int failed = duet_iadd(third, duet_mul(0.8, duet_pick(table, 1, 1))) || duet_set(missing, NAN);

    duet_matrix *valid = duet_eval(duet_logical_not(duet_isnan(table)));
    duet_matrix *count = duet_eval(duet_cast(duet_sum(valid, 0), DUET_F64));
    duet_matrix *mean = duet_eval(duet_div(duet_sum(duet_where(valid, table, 0), 0), count));
    duet_matrix *filled = duet_eval(duet_where(valid, table, mean));
    const duet_expr squares = duet_sum(duet_square(duet_sub(filled, mean)), 0);
    duet_matrix *deviation = duet_eval(duet_sqrt(duet_div(squares, duet_sub(count, 1))));
    const duet_expr low = duet_min(filled, 0), high = duet_max(filled, 0);
    const duet_expr median = duet_pick(duet_sort(filled, 0), 0, rows / 2);

    duet_matrix *z = duet_eval(duet_div(duet_sub(filled, mean), deviation));
    const duet_expr correlation = duet_div(duet_matmul(duet_transpose(z), z), rows - 1);
    const duet_expr outliers = duet_sum(duet_greater(duet_abs(z), 1.4));
    failed =
        failed || duet_print(stdout, "count", count, "mean", mean, "deviation", deviation, "median", median,
                             "range", low, high, "correlation", correlation, "outliers", outliers);
    if (failed) fprintf(stderr, "%s\n", duet_error());
    duet_free(&table, &third, &missing, &valid, &count, &mean, &filled, &deviation, &z);
    return failed || duet_live(stderr);
}
