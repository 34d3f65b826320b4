/* test_complex_nested.c - deeply nested complex functions. The real formula of each one uses the parts of
 * its operand many times, so a search that follows each path from the result to an operand would not end. */
#include "complex_trial.h"

/* asin and atan by turns: for small operands, they nearly undo each other, and hardly change the relative
 * error of their operand. */
enum { LEVELS = 40 };

static duet_expr nested(duet_expr z)
{
    for (int i = 0; i < LEVELS; i++) z = i % 2 ? duet_atan(z) : duet_asin(z);
    return z;
}

/* The same, with a transpose of each operand. */
static duet_expr nested_with_views(duet_expr z)
{
    for (int i = 0; i < LEVELS; i++) z = duet_transpose(i % 2 ? duet_atan(z) : duet_asin(z));
    return z;
}

static number of_nested(number z)
{
    for (int i = 0; i < LEVELS; i++) z = i % 2 ? catanl(z) : casinl(z);
    return z;
}

enum { ROWS = 6, COLUMNS = 5 };

static void check(duet_place p, const char *name, duet_expr e, const number *want, int rank,
                  const int64_t *size)
{
    duet_matrix *y = duet_new_shape(duet_expr_type(e), rank, size);
    evaluate(p, y, e, name);
    array w = array_new(rank, size);
    memcpy(w.v, want, (size_t)w.count * sizeof *want);
    near(name, &kinds[1], y, &w, 40 * LEVELS);
    array_free(&w);
    duet_free(&y);
}

static void views_of_results(duet_place p)
{
    duet_matrix *x = duet_new(DUET_C128, ROWS, COLUMNS);
    void *q = duet_overwrite(x);
    number f[ROWS][COLUMNS], turned[COLUMNS][ROWS], size[ROWS][COLUMNS], cut[3][COLUMNS];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            const number z = 0.1L + 0.02L * i - 0.05L * j * I;
            put(q, DUET_C128, i * COLUMNS + j, z);
            f[i][j] = of_nested((number)(complex double)z);
            turned[j][i] = f[i][j];
            size[i][j] = cabsl(f[i][j]);
            if (i < 3) cut[i][j] = f[i][j];
        }
    check(p, "abs", duet_abs(nested(DUET(x))), &size[0][0], 2, (int64_t[]){ ROWS, COLUMNS });
    check(p, "transpose", duet_transpose(nested(DUET(x))), &turned[0][0], 2, (int64_t[]){ COLUMNS, ROWS });
    check(p, "transposes between functions", nested_with_views(DUET(x)), &f[0][0], 2,
          (int64_t[]){ ROWS, COLUMNS });
    check(p, "range", duet_index(nested(DUET(x)), DUET_RANGE(0, 3)), &cut[0][0], 2,
          (int64_t[]){ 3, COLUMNS });
    check(p, "padding of the operand",
          duet_index(nested(duet_pad(x, .before = { 1, 2 }, .after = { 1, 2 })), DUET_RANGE(1, 4),
                     DUET_RANGE(2, 7)),
          &cut[0][0], 2, (int64_t[]){ 3, COLUMNS });
    check(p, "abs of a padded result",
          duet_index(duet_abs(duet_pad(nested(DUET(x)), .before = { 1 }, .after = { 1 })), DUET_RANGE(1, 7)),
          &size[0][0], 2, (int64_t[]){ ROWS, COLUMNS });
    duet_matrix *eye = duet_eye(DUET_C128, COLUMNS);
    check(p, "reshape of a product", duet_abs(nested(duet_reshape(duet_matmul(x, eye), ROWS * COLUMNS))),
          &size[0][0], 1, (int64_t[]){ ROWS * COLUMNS });
    duet_free(&eye);
    duet_free(&x);
    tap_point("views, parts and padding of nested functions");
}

static void all(duet_place p, int mode) { views_of_results(p); }

int main(void)
{
    each_mode(all);
    return tap_end();
}
