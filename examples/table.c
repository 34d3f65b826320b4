/* table.c - computes statistics of the columns of a table, with missing values. */
#include <duet/duet.h>
#include <math.h>

int main(void)
{
    const int rows = 1000, columns = 4;
    const double scales[] = { 1, 2, 5, 10 }, offsets[] = { 0, 100, -5, 7 };
    duet_matrix *i = duet_arange(DUET_F64, 0, rows * columns, 1);
    duet_matrix *scale = duet_from_array(scales, DUET_F64, columns);
    duet_matrix *offset = duet_from_array(offsets, DUET_F64, columns);
    const duet_expr wave = duet_sin(duet_mul(duet_reshape(i, rows, columns), 0.37));
    duet_matrix *table = duet_eval(duet_fma(wave, scale, offset));
    duet_matrix *second = duet_column(table, 1), *third = duet_column(table, 2);
    duet_matrix *missing = duet_indexed(table, DUET_STEP(5, DUET_OPEN, 50), DUET_AT(3));
    int outliers = 0, failed = duet_iadd(third, duet_mul(0.8, second)) || duet_set(missing, NAN);

    duet_matrix *valid = duet_eval(duet_logical_not(duet_isnan(table)));
    duet_matrix *count = duet_eval(duet_cast(duet_sum(valid, 0), DUET_F64));
    duet_matrix *mean = duet_eval(duet_div(duet_sum(duet_where(valid, table, 0), 0), count));
    duet_matrix *filled = duet_eval(duet_where(valid, table, mean));
    duet_matrix *deviation =
        duet_eval(duet_div(duet_norm(duet_sub(filled, mean), 0), duet_sqrt(duet_sub(count, 1))));
    duet_matrix *median = duet_eval(duet_pick(duet_sort(filled, 0), 0, rows / 2));
    duet_matrix *low = duet_eval(duet_min(filled, 0)), *high = duet_eval(duet_max(filled, 0));

    duet_matrix *z = duet_eval(duet_div(duet_sub(filled, mean), deviation));
    duet_matrix *correlation = duet_eval(duet_div(duet_matmul(duet_transpose(z), z), rows - 1));
    failed = failed || duet_item(duet_sum(duet_greater(duet_abs(z), 1.4)), &outliers);
    if (failed) fprintf(stderr, "%s\n", duet_error());

    duet_matrix *shown[] = { count, mean, deviation, median, low, high, correlation };
    const char *name[] = { "count", "mean", "deviation", "median", "range", "to", "correlation" };
    for (int k = 0; k < 7; k++) printf("%s ", name[k]), duet_print(stdout, shown[k]);
    printf("outliers %d\n", outliers);
    duet_free(&i), duet_free(&scale), duet_free(&offset), duet_free(&table), duet_free(&second);
    duet_free(&third), duet_free(&missing), duet_free(&valid), duet_free(&count), duet_free(&mean);
    duet_free(&filled), duet_free(&deviation), duet_free(&median), duet_free(&low), duet_free(&high);
    duet_free(&z), duet_free(&correlation);
    return failed || !outliers || duet_live(stderr);
}
