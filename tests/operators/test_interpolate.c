/* test_interpolate.c - duet_interpolate with all modes and alignments and with antialiasing, against loops over random arrays, and gradients, which are those of a linear operator. */
#include "plain_array.h"

static const char *const modes[] = { "nearest", "linear", "cubic" }, *const aligns[] = { "centers", "corners",
                                                                                         "first" };

static double keys(double d, double a)
{
    d = fabs(d);
    if (d < 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
    if (d < 2) return a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a;
    return 0;
}

/* The weight of element j of n in result i of m. */
static double weight(const duet_interpolation *o, int64_t n, int64_t m, int64_t i, int64_t j)
{
    const double a = o->cubic != 0  ? o->cubic
                     : o->antialias ? -0.5
                                    : -0.75,
                 nn = (double)n, mm = (double)m, ii = (double)i;
    double at = (ii + 0.5) * nn / mm - 0.5, sum = 0;
    if (o->align == DUET_ALIGN_CORNERS) at = m > 1 ? ii * (nn - 1) / (mm - 1) : 0;
    if (o->align == DUET_ALIGN_FIRST) at = ii * nn / mm;
    if (o->antialias && m < n) {
        double own = 0;
        for (int64_t k = 0; k < n; k++) {
            const double d = ((double)k - at) / (nn / mm),
                         w = o->mode == DUET_INTERPOLATE_CUBIC ? keys(d, a) : fmax(0, 1 - fabs(d));
            sum += w;
            if (k == j) own = w;
        }
        return own / sum;
    }
    if (o->mode == DUET_INTERPOLATE_NEAREST) {
        const double place_of = floor(o->align == DUET_ALIGN_FIRST ? at : at + 0.5);
        return (double)j == fmin(fmax(place_of, 0), nn - 1);
    }
    const int reach = o->mode == DUET_INTERPOLATE_CUBIC ? 2 : 1;
    for (int k = 1 - reach; k <= reach; k++) {
        const double element = floor(at) + k, d = at - element;
        if (fmin(fmax(element, 0), nn - 1) == (double)j)
            sum += o->mode == DUET_INTERPOLATE_CUBIC ? keys(d, a) : 1 - fabs(d);
    }
    return sum;
}

static void interpolated(const duet_interpolation *o, const array *x, int axis, array *to)
{
    int64_t size[DUET_RANK_MAX], i[DUET_RANK_MAX] = { 0 };
    const int64_t n = x->size[axis], m = o->size[axis];
    memcpy(size, x->size, sizeof size);
    size[axis] = m;
    array_shape(to, x->type, x->rank, size);
    for (int64_t k = 0; k < to->count; k++, array_next(to, i)) {
        int64_t from[DUET_RANK_MAX];
        memcpy(from, i, sizeof from);
        for (int64_t j = 0; j < n; j++) {
            from[axis] = j;
            const double w = weight(o, n, m, i[axis], j);
            if (w != 0) to->x[k] += w * x->x[array_at(x, from)];
        }
    }
}

static void try_interpolation(duet_dtype type)
{
    static array x, y, z, g;
    duet_interpolation o = { .mode = (duet_interpolate_mode)between(0, is_float(type) ? 2 : 0),
                             .align = (duet_align)between(0, 2),
                             .cubic = between(0, 2) ? 0 : -0.6 };
    o.antialias = o.align == DUET_ALIGN_CENTERS && o.mode != DUET_INTERPOLATE_NEAREST && between(0, 1);
    int64_t size[DUET_RANK_MAX];
    const int rank = (int)between(1, 4);
    for (int d = 0; d < rank; d++) {
        size[d] = between(1, rank > 2 ? 5 : 12);
        o.size[d] = between(0, 2) ? between(1, rank > 2 ? 7 : 15) : 0;
    }
    array_shape(&x, type, rank, size);
    array_fill(&x, -2, 2);
    y = x;
    for (int d = rank - 1; d >= 0; d--) {
        if (!o.size[d] || o.size[d] == y.size[d]) continue;
        interpolated(&o, &y, d, &z);
        y = z;
    }
    char what[200];
    snprintf(what, sizeof what, "resize, %s, %s, antialias %d, sizes %d %d %d %d to %d %d %d %d",
             modes[o.mode], aligns[o.align], o.antialias, (int)size[0], (int)size[1], (int)size[2],
             (int)size[3], (int)o.size[0], (int)o.size[1], (int)o.size[2], (int)o.size[3]);
    duet_matrix *m = array_matrix(&x);
    array_check((duet_interpolate)(DUET(m), &o), &y,
                o.mode == DUET_INTERPOLATE_NEAREST ? 0 : 256 * array_error(type), what);
    if (type == DUET_F64) { /* <interpolate(x), g> = <x, vjp(g)> */
        double left = 0, right = 0;
        g = y;
        array_fill(&g, -2, 2);
        duet_matrix *by = array_matrix(&g);
        for (int64_t k = 0; k < y.count; k++) left += y.x[k] * g.x[k];
        DUET_ON(place[at_place])
        CHECK(duet_item(duet_sum(duet_mul(m, duet_vjp((duet_interpolate)(DUET(m), &o), m, by))), &right) ==
                  DUET_OK,
              "%s: %s", what, duet_error());
        CHECK(fabs(left - right) <= 1e-10 * (1 + fabs(left)), "%s: %g and %g", what, left, right);
        duet_free(&by);
    }
    duet_free(&m);
}

static void test_each(int turns)
{
    static const duet_dtype types[] = { DUET_F64, DUET_F32, DUET_I32, DUET_BF16, DUET_U8 };
    array_each_place(turns, types, sizeof types / sizeof *types, try_interpolation);
}

static void test_refusals(void)
{
    duet_matrix *x = duet_new(DUET_F32, 2, 3), *i = duet_new(DUET_I32, 2, 3),
                *none = duet_new(DUET_F32, 2, 0);
    array_refused(duet_interpolate(x, .size = { 2, 3, 4 }), DUET_BAD_SHAPE,
                  "duet_interpolate(x: f32[2,3]): axis 2 does not exist; x has 2 axes");
    array_refused(duet_interpolate(x, .size = { 2, -3 }), DUET_BAD_ARGUMENT,
                  "the size of axis 1 (-3) must not be negative");
    array_refused(duet_interpolate(none, .size = { 2, 3 }), DUET_BAD_SHAPE, "axis 1 of x must not be empty");
    array_refused(duet_interpolate(i, .size = { 4 }, .mode = DUET_INTERPOLATE_LINEAR), DUET_BAD_TYPE,
                  "duet_interpolate(x: i32[2,3]): x must be real and floating point to be interpolated");
    array_refused(duet_interpolate(x, .size = { 4 }, .mode = 9), DUET_BAD_ARGUMENT,
                  "mode (9) is not a duet_interpolate_mode");
    array_refused(duet_interpolate(x, .size = { 4 }, .align = 9), DUET_BAD_ARGUMENT,
                  "align (9) is not a duet_align");
    array_refused(duet_interpolate(x, .size = { 4 }, .antialias = 1), DUET_BAD_ARGUMENT,
                  "antialias needs DUET_ALIGN_CENTERS and linear or cubic interpolation");
    array_refused(duet_interpolate(x, .size = { 4 }, .cubic = NAN), DUET_BAD_ARGUMENT, "must be finite");
    duet_free(&x, &i, &none);
    tap_point("wrong operands are refused");
}

int main(int argc, char **argv)
{
    places = list_places(place);
    test_each(trial_count(argc, argv, 60, 1500));
    test_refusals();
    return tap_end();
}
