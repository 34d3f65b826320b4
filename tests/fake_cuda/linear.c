/* linear.c - the fake kernels of linalg.h. */
#include "fake.h"
#include "linalg.h"
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double get_part(const linear_args *a, int64_t i)
{
    if (a->wide) return ((const double *)a->in)[i];
    return (double)((const float *)a->in)[i];
}

static void put_part(const linear_args *a, void *to, int64_t i, double x)
{
    if (a->wide) ((double *)to)[i] = x;
    else ((float *)to)[i] = (float)x;
}

static double _Complex get(const linear_args *a, int64_t i)
{
    double x[2] = { get_part(a, a->pairs ? 2 * i : i), a->pairs ? get_part(a, 2 * i + 1) : 0 };
    double _Complex z;
    memcpy(&z, x, sizeof z);
    return z;
}

static void put(const linear_args *a, void *to, int64_t i, double _Complex x)
{
    put_part(a, to, a->pairs ? 2 * i : i, creal(x));
    if (a->pairs) put_part(a, to, 2 * i + 1, cimag(x));
}

static void check(const linear_args *a, int64_t i, int64_t j)
{
    const double _Complex x = get(a, i * a->in_row + j * a->in_col);
    if (!linear_has(a->part, i, j)) return;
    if (!isfinite(creal(x)) || !isfinite(cimag(x))) a->flag[0] = 1;
    if (i == j && x == 0 && a->flag[1] < a->rows - i) a->flag[1] = (int)(a->rows - i);
}

static void triangle(const linear_args *a, int64_t i, int64_t j)
{
    const bool one = i == j && (a->part == PART_UNIT_LOWER || a->part == PART_UNIT_UPPER);
    put(a, a->out, i * a->out_row + j * a->out_col,
        a->in && linear_has(a->part, i, j) ? get(a, i * a->in_row + j * a->in_col) : one);
}

static double column_size(const linear_args *a, const void *from, int64_t first)
{
    linear_args column = *a;
    double sum = 0;
    column.in = from;
    for (int64_t i = 0; i < a->rows; i++) sum += cabs(get(&column, first + i));
    return sum;
}

/* NaN counts as greater than all numbers. */
static void size(const linear_args *a)
{
    double *out = a->out;
    for (int64_t j = 0; j < a->cols; j++) {
        double sum = 0;
        for (int64_t i = 0; i < a->rows; i++)
            if (linear_has(a->part, i, j)) sum += cabs(get(a, i * a->in_row + j * a->in_col));
        if (!isnan(*out) && !(sum <= *out)) *out = sum;
    }
}

static void rest(const linear_args *a)
{
    for (int64_t j = 0; j < a->cols; j++) {
        const double left = column_size(a, a->in, j * a->in_col);
        const double most = a->most * *(const double *)a->out * column_size(a, a->more, j * a->out_col);
        if (!(left <= most && most < INFINITY)) a->flag[0] = 1;
    }
}

static void order(const linear_args *a)
{
    int64_t *row = a->out;
    for (int64_t i = 0; i < a->rows; i++) row[i * a->out_row] = i;
    for (int64_t i = 0; i < a->pivots; i++) {
        int64_t *x = &row[i * a->out_row], *y = &row[(a->pivot[i] - 1) * a->out_row];
        const int64_t t = *x;
        *x = *y;
        *y = t;
    }
}

static void determinant(const linear_args *a)
{
    long double _Complex det = 1, sign = 1;
    long double size = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        const long double _Complex x = get(a, i * (a->in_row + a->in_col)), y = a->pivot[i] == i + 1 ? x : -x;
        det *= y;
        size += logl(cabsl(x));
        if (x == 0) sign = 0;
        else sign = sign * (y / cabsl(y));
    }
    if (det == 0 && !isfinite(size)) size = -INFINITY;
    if (a->what == LINEAR_LOGDET) put_part(a, a->out, 0, (double)size);
    else put(a, a->out, 0, (double _Complex)(a->what == LINEAR_DET ? det : sign));
    if (a->what == LINEAR_SLOGDET) put_part(a, a->more, 0, (double)size);
}

static void run(void *args)
{
    const linear_args *a = args;
    if (a->what == LINEAR_ORDER) return order(a);
    if (a->what == LINEAR_SIZE) return size(a);
    if (a->what == LINEAR_REST) return rest(a);
    if (a->what >= LINEAR_DET) return determinant(a);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) (a->what == LINEAR_CHECK ? check : triangle)(a, i, j);
}

/* Is a matrix with these strides in device memory? */
static bool is_there(const linear_args *a, const void *p, int64_t row, int64_t col, size_t each)
{
    if (!a->rows || !a->cols) return true;
    const int64_t last = (a->rows - 1) * row + (a->cols - 1) * col;
    return fake_owns((const char *)p + (last < 0 ? last * (int64_t)each : 0),
                     ((size_t)llabs(last) + 1) * each);
}

cudaError_t linear_launch(const linear_args *a, cudaStream_t q)
{
    const size_t each = (a->wide ? 8 : 4) * (a->pairs ? 2 : 1);
    ENTER(cudaErrorUnknown);
    bool fits = true;
    if (a->what == LINEAR_CHECK)
        fits = is_there(a, a->in, a->in_row, a->in_col, each) && fake_owns(a->flag, 2 * sizeof *a->flag);
    if (a->what == LINEAR_TRIANGLE) fits = is_there(a, a->out, a->out_row, a->out_col, each);
    if (a->pivots) fits &= fake_owns(a->pivot, (size_t)a->pivots * sizeof *a->pivot);
    if (!fits) return fake_error(cudaErrorInvalidValue);
    pthread_mutex_lock(&fake_lock);
    fake_counted.launches++;
    pthread_mutex_unlock(&fake_lock);
    return fake_queue(q, run, a, sizeof *a);
}
