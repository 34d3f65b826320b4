/* derivatives_of_views.c - the gradients of views, scans, gathers and Fourier transforms: elements go back to
 * where they came from. */
#include "derivative_rules.h"
#include "min_max.h"
#include "status.h"
#include <string.h>
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

/* ---- views ---- */

duet_expr of_permutation(const node *n, duet_expr g, const char *site)
{
    int inverse[DUET_RANK_MAX];
    for (int a = 0; a < n->rank; a++) inverse[n->attr.order[a]] = a;
    return duet_permute_at(g, n->rank, inverse, site);
}

/* x with zeros before and after it along an axis. */
static duet_expr padded(duet_expr x, int axis, int64_t before, int64_t after, const char *site)
{
    duet_padding pad = { 0 };
    pad.before[axis] = before;
    pad.after[axis] = after;
    return before || after ? duet_pad_at(x, &pad, site) : x;
}

/* x with by - 1 zeros behind each element along an axis. */
static duet_expr stretched(duet_expr x, int axis, int64_t by, const char *site)
{
    shape apart = formula_shape(x), joined = apart;
    for (int a = apart.rank++; a > axis; a--) apart.size[a] = apart.size[a - 1];
    apart.size[axis + 1] = 1;
    joined.size[axis] *= by;
    const duet_expr thin = duet_reshape_at(x, apart.rank, apart.size, site);
    return duet_reshape_at(padded(thin, axis + 1, 0, by - 1, site), joined.rank, joined.size, site);
}

/* Zeros with n elements along an axis, of which start, start + by, ... are g. */
static duet_expr placed(duet_expr g, int axis, int64_t start, int64_t by, int64_t n, const char *site)
{
    const int64_t count = duet_expr_size(g, axis);
    if (by < 0) return placed(duet_flip_at(g, axis, site), axis, start + (count - 1) * by, -by, n, site);
    if (by > 1 && count) {
        g = stretched(g, axis, by, site);
        const int64_t fits = smaller(count * by, n - start);
        if (fits < count * by) g = duet_range_at(g, axis, 0, fits, 1, site);
    }
    return padded(g, axis, start, n - start - duet_expr_size(g, axis), site);
}

duet_expr of_part(const node *n, duet_expr x, duet_expr y, duet_expr g, int which, const char *site)
{
    const int axis = n->attr.index.axis;
    const int64_t first = duet_expr_size(x, axis), all = first + duet_expr_size(y, axis);
    return which == 0 ? duet_range_at(g, axis, 0, first, 1, site)
                      : duet_range_at(g, axis, first, all, 1, site);
}

duet_expr counted(int axis, int rank, int64_t size, int64_t times, const char *site)
{
    shape s = { .rank = rank };
    for (int a = 0; a < rank; a++) s.size[a] = a == axis ? size : 1;
    return duet_mul(duet_reshape_at(duet_iota_at(DUET_I64, size, site), s.rank, s.size, site), times);
}

/* duet_scatter_add has no complex numbers. */
duet_expr taken_back(duet_expr x, duet_expr indices, duet_expr g, int axis, const char *site)
{
    const duet_expr zeros = zeros_like(x, site);
    if (!is_complex(x)) return duet_scatter_add(zeros, indices, g, axis);
    const duet_expr none = duet_real(zeros);
    return duet_complex(duet_scatter_add(none, indices, duet_real(g), axis),
                        duet_scatter_add(none, indices, duet_imag(g), axis));
}

/* If x has the most axes, none is left to put zeros between elements, which are added to zeros instead. */
duet_expr of_range(const node *n, duet_expr x, duet_expr g, const char *site)
{
    const range_words *r = &n->attr.range;
    const int64_t count = duet_expr_size(g, r->axis), start = count ? pair_of_words(r->start) : 0,
                  by = pair_of_words(r->step);
    if (count && by != 1 && by != -1 && n->rank == DUET_RANK_MAX)
        return taken_back(x, duet_add(counted(0, 1, count, by, site), start), g, r->axis, site);
    return placed(g, r->axis, start, by, duet_expr_size(x, r->axis), site);
}

/* Windows overlap, so that elements are added. */
duet_expr of_windows(const node *n, duet_expr x, duet_expr g, const char *site)
{
    const range_words *r = &n->attr.range;
    const int axis = r->axis, rank = n->rank;
    const int64_t windows = n->size[axis], size = n->size[rank - 1];
    int order[DUET_RANK_MAX], k = 0;
    for (int a = 0; a < rank - 1; a++) {
        order[k++] = a;
        if (a == axis) order[k++] = rank - 1;
    }
    const duet_expr at = duet_add(counted(0, 2, windows, pair_of_words(r->start), site),
                                  counted(1, 2, size, pair_of_words(r->step), site));
    return taken_back(x, at, duet_permute_at(g, rank, order, site), axis, site);
}

/* The last axis of g becomes the first one, in the rows where the diagonal starts; then each row keeps the
 * column of the diagonal. */
duet_expr of_diagonal(const node *n, duet_expr x, duet_expr g, const char *site)
{
    const shape s = formula_shape(x);
    const int64_t offset = pair_of_words(n->attr.offset), row = offset < 0 ? -offset : 0;
    if (!n->size[n->rank - 1]) return zeros_like(x, site);
    int order[DUET_RANK_MAX] = { n->rank - 1 };
    for (int a = 1; a < n->rank; a++) order[a] = a - 1;
    const duet_expr rows = placed(duet_permute_at(g, n->rank, order, site), 0, row, 1, s.size[0], site);
    shape apart = s;
    apart.size[1] = 1;
    const duet_expr on = duet_equal(counted(1, s.rank, s.size[1], 1, site),
                                    duet_add(counted(0, s.rank, s.size[0], 1, site), offset));
    return duet_where(on, duet_reshape_at(rows, apart.rank, apart.size, site), 0);
}

/* ---- scans, gathers and scatters ---- */

duet_expr backward_sums(const node *n, duet_expr v, const char *site)
{
    const int axis = n->attr.index.axis;
    return duet_flip_at(duet_cumsum_at(duet_flip_at(v, axis, site), axis, site), axis, site);
}

/* For x other than 0, sums of g r, divided by x. For the first zero along the axis, sums of g times products
 * without it. For the second zero, sums of g times products without both, times the first zero. These
 * sums are multiplied by 0, but their derivatives are not. */
duet_expr of_cumulative_product(const node *n, duet_expr x, duet_expr r, duet_expr g, const char *site)
{
    const int axis = n->attr.index.axis;
    const duet_expr is_zero = duet_equal(x, 0),
                    zeros = duet_cumsum_at(duet_cast(is_zero, duet_expr_type(x)), axis, site),
                    is_first = duet_logical_and(is_zero, duet_equal(zeros, 1)),
                    is_second = duet_logical_and(is_zero, duet_equal(zeros, 2));
    const duet_expr others = duet_cumprod_at(duet_where(is_first, 1, x), axis, site),
                    without = duet_where(duet_logical_or(is_first, is_second), 1, x),
                    rest = duet_cumprod_at(without, axis, site),
                    first = duet_cumsum_at(duet_where(is_first, x, 0), axis, site);
    const duet_expr of_first = backward_sums(n, duet_mul(g, others), site),
                    of_second = duet_mul(first, backward_sums(n, duet_mul(g, rest), site)),
                    of_other = duet_div(backward_sums(n, duet_mul(g, r), site), duet_where(is_zero, 1, x));
    return duet_where(is_zero, duet_where(is_first, of_first, duet_where(is_second, of_second, 0)), of_other);
}

/* The positions of the elements in row-major order. Negative indices count from the end. */
static duet_expr flat_positions(duet_expr x, duet_expr indices, int axis, const char *site)
{
    const shape s = formula_shape(x), of = formula_shape(indices);
    const duet_expr at = duet_cast(indices, DUET_I64);
    int64_t each = 1, stride[DUET_RANK_MAX];
    for (int a = s.rank; a-- > 0; each *= s.size[a]) stride[a] = each;
    duet_expr sum = duet_mul(duet_where(duet_less(at, 0), duet_add(at, s.size[axis]), at), stride[axis]);
    for (int a = 0; a < s.rank; a++)
        if (a != axis) sum = duet_add(sum, counted(a, s.rank, of.size[a], stride[a], site));
    return sum;
}

/* Of equal indices the last one wins: the others get nothing. The numbers of the indices are put in the
 * same way to find out which. */
duet_expr of_put_values(const node *n, duet_expr x, duet_expr indices, duet_expr g, const char *site)
{
    const int axis = n->attr.index.axis;
    const shape of = formula_shape(indices);
    shape among = { .rank = duet_expr_rank(x) - 1 + of.rank };
    int64_t count = 1, size[] = { duet_expr_size(x, axis) };
    for (int a = 0; a < of.rank; a++) count *= of.size[a];
    for (int a = 0; a < among.rank; a++)
        among.size[a] = a < axis || a >= axis + of.rank ? 1 : of.size[a - axis];
    const duet_expr number = duet_reshape_at(duet_iota_at(DUET_I64, count, site), of.rank, of.size, site);
    const duet_expr none = duet_broadcast_at(duet_cast(-1, DUET_I64), 1, size, site);
    const duet_expr last = duet_take(duet_put(none, indices, number, 0), indices, 0);
    const duet_expr wins = duet_reshape_at(duet_equal(last, number), among.rank, among.size, site);
    return duet_where(wins, duet_take(g, indices, axis), 0);
}

static duet_expr flat(duet_expr x, const char *site) { return duet_reshape(x, -1); }

duet_expr scatter_along(duet_expr x, duet_expr indices, duet_expr v, int axis, const char *site)
{
    const duet_expr at = flat_positions(x, indices, axis, site);
    const duet_expr sums =
        taken_back(flat(zeros_like(x, site), site), flat(at, site), flat(v, site), 0, site);
    return like_shape(sums, x, site);
}

/* Of equal elements, each gets the same share: of x where it is the largest, and of the values that are. */
duet_expr of_largest(const node *n, duet_expr x, duet_expr indices, duet_expr v, duet_expr r, duet_expr g,
                     int which, const char *site)
{
    const int axis = n->attr.index.axis;
    const duet_dtype t = duet_expr_type(x);
    const duet_expr own = duet_cast(duet_equal(x, r), t),
                    given = duet_cast(duet_equal(v, duet_take(r, indices, axis)), t);
    const duet_expr each = duet_div(g, duet_scatter_add(own, indices, given, axis));
    return which == 0 ? duet_where(own, each, 0) : duet_where(given, duet_take(each, indices, axis), 0);
}

/* The values that scatter_mul multiplies. If none of the values of an element is 0, the gradient is g times
 * the result, divided by the value. A value that is the only zero gets g times the product of the others. */
duet_expr of_multiplied(const node *n, duet_expr x, duet_expr indices, duet_expr v, duet_expr g,
                        const char *site)
{
    const int axis = n->attr.index.axis;
    const duet_expr is_zero = duet_equal(v, 0), is = duet_cast(is_zero, duet_expr_type(x)),
                    others = duet_where(is_zero, 1, v);
    const duet_expr zeros =
                        duet_take(duet_scatter_add(zeros_like(x, site), indices, is, axis), indices, axis),
                    rest = duet_take(duet_mul(g, duet_scatter_mul(x, indices, others, axis)), indices, axis);
    return duet_where(duet_equal(zeros, is), duet_div(rest, others), 0);
}

/* ---- Fourier transforms ---- */

static void add_axis(duet_fourier *o, const node *n, int a)
{
    o->axis[o->axes] = a;
    o->n[o->axes++] = n->attr.fourier.length[a];
}

/* The transform's axes and lengths. The axis of a real transform comes last. */
static duet_fourier transform_of(const node *n)
{
    duet_fourier o = { 0 };
    const int last = n->attr.fourier.last;
    for (int a = 0; a < n->rank; a++)
        if (n->attr.fourier.axes >> a & 1 && a != last) add_axis(&o, n, a);
    if (last >= 0 && n->attr.fourier.axes >> last & 1) add_axis(&o, n, last);
    return o;
}

/* v with the sizes of x along all axes: truncated, or with zeros at the end. */
static duet_expr fitted(duet_expr v, duet_expr x, const char *site)
{
    for (int a = 0; a < duet_expr_rank(x); a++) {
        const int64_t n = duet_expr_size(v, a), m = duet_expr_size(x, a);
        if (n > m) v = duet_range_at(v, a, 0, m, 1, site);
        else v = padded(v, a, 0, m - n, site);
    }
    return v;
}

/* The matrix of a transform is symmetric. That of a real one is the full transform of g, which has zeros for
 * the elements that the half lacks. */
duet_expr of_transform(const node *n, duet_expr x, duet_expr g, const char *site)
{
    const duet_fourier o = transform_of(n);
    const duet_expr d = n->op == OP_ifftn ? duet_ifftn_at(g, &o, site) : duet_fftn_at(g, &o, site);
    return fitted(is_complex(x) ? d : duet_real(d), x, site);
}

/* Elements of the half count twice, except those that are their own conjugates. */
duet_expr of_real_inverse(const node *n, duet_expr x, duet_expr g, const char *site)
{
    const duet_fourier o = transform_of(n);
    const int last = n->attr.fourier.last;
    const int64_t length = n->attr.fourier.length[last], half = length / 2 + 1;
    double terms = 1;
    for (int k = 0; k < o.axes; k++) terms *= (double)o.n[k];
    const duet_expr at = counted(last, n->rank, half, 1, site),
                    end = duet_equal(at, length % 2 ? 0 : length / 2),
                    alone = duet_logical_or(duet_equal(at, 0), end);
    const duet_expr part = duet_cast(duet_where(alone, 1 / terms, 2 / terms), duet_expr_type(g));
    const duet_expr spectrum = duet_conj(duet_rfftn_at(g, &o, site));
    return fitted(duet_mul(spectrum, part), x, site);
}

duet_expr of_shift(const node *n, duet_expr g, bool forward, const char *site)
{
    duet_fourier o = { 0 };
    for (int a = 0; a < n->rank; a++)
        if (n->attr.fourier.axes >> a & 1) o.axis[o.axes++] = a;
    return forward ? duet_fftshift_at(g, &o, site) : duet_ifftshift_at(g, &o, site);
}
