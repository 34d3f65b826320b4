/* arrange_formulas.c - operators that arrange elements, made of others: concat, stack, tile, repeat, pad,
 * roll and im2col. Also iota, which makes elements. */
#include "call_text.h"
#include "min_max.h"
#include "operands.h"
#include "status.h"
#include "view_formulas.h"
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

/* ---- concat and stack ---- */

#define NAMED 3 /* operands that the text of an error names */

/* A failure that consumes all operands. If one of them has failed, that is reported instead. */
static duet_expr bad_list(const char *function, int count, const duet_expr *x, duet_status s,
                          const char *site)
{
    arena *a = arena_mine();
    node *n[NAMED] = { NULL };
    error_text said;
    if (!a) return no_room(DUET_NO_MEMORY);
    const int named = x && count > 0 ? (int)smaller(count, NAMED) : 0;
    error_keep(&said);
    for (int k = named; x && k < count; k++) formula_spend(x[k], site);
    const duet_status own = operands(a, OP_append, named, x, n);
    if (own == DUET_OK) error_put_back(&said);
    return call_failed(a, function, named, n, own == DUET_OK ? s : own, site);
}

static duet_status check_list(int count, const duet_expr *x)
{
    if (count > 0 && x) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "there must be at least one operand, not %d", count);
}

static duet_expr concatenated(const char *function, int axis, int count, const duet_expr *x, const char *site)
{
    duet_expr e = x[0];
    for (int k = 1; k < count; k++)
        e = make_operator(OP_append, function, 2, (duet_expr[]){ e, x[k] },
                          (const int32_t *)&(index_attributes){ .axis = axis }, site);
    return e;
}

/* The axis of the result, whose rank is that of the first operand and `more`. */
static duet_status check_list_axis(const duet_expr *x, int more, int *axis)
{
    const shape s = { .rank = formula_shape(x[0]).rank + more };
    if (duet_expr_status(x[0]) != DUET_OK) return DUET_OK; /* the operator reports it */
    return check_axis_of(&s, axis);
}

/* The text of an error has the names and shapes of the user's operands, of at most NAMED of them. */
static duet_expr named(const char *function, int count, const duet_expr *x, duet_expr made, const char *site)
{
    return formula_called(function, (int)smaller(count, NAMED), x, made, site);
}

duet_expr duet_concat_at(int axis, int count, const duet_expr *x, const char *site)
{
    duet_status s = check_list(count, x);
    if (s == DUET_OK) s = check_list_axis(x, 0, &axis);
    if (s != DUET_OK) return bad_list("concat", count, x, s, site);
    const duet_expr made = not_itself(concatenated("concat", axis, count, x, site), x[0], site);
    return named("concat", count, x, made, site);
}

static duet_expr stacked(int axis, int count, const duet_expr *x, const char *site)
{
    duet_expr e = duet_expand_dims_at(x[0], axis, site);
    for (int k = 1; k < count; k++)
        e = make_operator(OP_append, "stack", 2, (duet_expr[]){ e, duet_expand_dims_at(x[k], axis, site) },
                          (const int32_t *)&(index_attributes){ .axis = axis }, site);
    return e;
}

/* Sizes may differ along the axis for concat, but not for stack. */
static duet_status check_same_shapes(int count, const duet_expr *x)
{
    const shape first = formula_shape(x[0]);
    for (int k = 1; k < count; k++) {
        const shape s = formula_shape(x[k]);
        if (duet_expr_status(x[k]) == DUET_OK && !shape_equal(&s, &first))
            return fail(DUET_BAD_SHAPE, "all operands must have the same shape; operand %d differs", k);
    }
    return DUET_OK;
}

duet_expr duet_stack_at(int axis, int count, const duet_expr *x, const char *site)
{
    duet_status s = check_list(count, x);
    if (s == DUET_OK) s = check_list_axis(x, 1, &axis);
    if (s == DUET_OK && duet_expr_status(x[0]) == DUET_OK) s = check_same_shapes(count, x);
    if (s != DUET_OK) return bad_list("stack", count, x, s, site);
    return named("stack", count, x, stacked(axis, count, x, site), site);
}

/* ---- tile and repeat ---- */

static int64_t product(const int64_t *size, int count)
{
    int64_t n = 1;
    for (int a = 0; a < count; a++) n *= size[a];
    return n;
}

/* Repeats x along an axis: all of it, or each element. A new axis is broadcast, and merged with the axis.
 * If x can have no more axes, those on both sides are merged first. */
static duet_expr repeated(const char *function, duet_expr x, int64_t times, int axis, bool each,
                          const char *site)
{
    shape s = formula_shape(x), to = s, wide = { .rank = 0 };
    if (times == 1) return x;
    to.size[axis] *= times;
    if (s.rank == DUET_RANK_MAX) {
        s = (shape){ 3,
                     { product(s.size, axis), s.size[axis], product(s.size + axis + 1, s.rank - axis - 1) } };
        x = reshaped(function, x, &(sizes_given){ 3, s.size, NULL }, site);
        axis = 1;
    }
    const int new_axis = axis + each;
    for (; wide.rank <= s.rank; wide.rank++)
        wide.size[wide.rank] = wide.rank == new_axis ? times : s.size[wide.rank - (wide.rank > new_axis)];
    x = duet_expand_dims_at(x, new_axis, site);
    x = duet_broadcast_at(x, wide.rank, wide.size, site);
    return reshaped(function, x, &(sizes_given){ to.rank, to.size, NULL }, site);
}

static duet_status check_times(int64_t times, int64_t size)
{
    int64_t n;
    if (times < 0) return fail(DUET_BAD_ARGUMENT, "times (%lld) must not be negative", (long long)times);
    if (__builtin_mul_overflow(times, size, &n))
        return fail(DUET_BAD_SHAPE, "the number of elements overflows");
    return DUET_OK;
}

duet_expr duet_tile_at(duet_expr x, int count, const int64_t *times, const char *site)
{
    shape s = formula_shape(x);
    duet_status status = DUET_OK;
    if (count < 0 || count > DUET_RANK_MAX || (count > 0 && !times))
        status = fail(DUET_BAD_ARGUMENT, "the list must have 0 to %d numbers, not %d", DUET_RANK_MAX, count);
    for (int k = 0; k < count && status == DUET_OK; k++) {
        const int a = s.rank - count + k;
        status = check_times(times[k], a < 0 ? 1 : s.size[a]);
    }
    if (status != DUET_OK) return bad_argument("tile", x, status, site);
    duet_expr made = x;
    for (; s.rank < count; s.rank++) made = duet_expand_dims_at(made, 0, site);
    for (int k = 0; k < count; k++) made = repeated("tile", made, times[k], s.rank - count + k, false, site);
    return not_itself(made, x, site);
}

duet_expr duet_repeat_at(duet_expr x, int64_t times, int axis, const char *site)
{
    const shape s = formula_shape(x);
    duet_status status = check_axis_of(&s, &axis);
    if (status == DUET_OK) status = check_times(times, s.size[axis]);
    if (status != DUET_OK) return bad_argument("repeat", x, status, site);
    return not_itself(repeated("repeat", x, times, axis, true, site), x, site);
}

/* ---- roll ---- */

static duet_expr part(duet_expr x, int axis, int64_t start, int64_t stop, const char *site)
{
    return duet_range_at(x, axis, start, stop, 1, site);
}

static duet_expr appended(duet_expr x, duet_expr y, int axis, const char *site)
{
    return duet_append_at(x, y, axis, site);
}

duet_expr duet_roll_at(duet_expr x, int64_t by, int axis, const char *site)
{
    const shape s = formula_shape(x);
    const duet_status status = check_axis_of(&s, &axis);
    if (status != DUET_OK) return bad_argument("roll", x, status, site);
    const int64_t n = s.size[axis], ahead = n ? (by % n + n) % n : 0;
    if (!ahead) return not_itself(x, x, site);
    const duet_expr last = part(x, axis, n - ahead, n, site), first = part(x, axis, 0, n - ahead, site);
    return appended(last, first, axis, site);
}

/* ---- pad ---- */

/* Makes `n` elements along an axis, all equal to `value`, with the other sizes of x. */
static duet_expr constant(duet_expr x, int axis, int64_t n, double value, const char *site)
{
    shape s = formula_shape(x);
    s.size[axis] = n;
    const duet_expr number = duet_cast_at(duet_of_number(value), duet_expr_type(x), site);
    return duet_broadcast_at(number, s.rank, s.size, site);
}

/* The first or the last element along an axis, n times. */
static duet_expr edge(duet_expr x, int axis, int64_t n, bool last, const char *site)
{
    shape s = formula_shape(x);
    const int64_t at = last ? s.size[axis] - 1 : 0;
    s.size[axis] = n;
    return duet_broadcast_at(part(x, axis, at, at + 1, site), s.rank, s.size, site);
}

/* x with its mirror images on both sides, as many as needed: periods of 2 (n - 1) elements. */
static duet_expr reflected(duet_expr x, int axis, int64_t before, int64_t after, const char *site)
{
    const int64_t n = formula_shape(x).size[axis], period = 2 * (n - 1);
    if (n == 1) return repeated("pad", x, before + 1 + after, axis, true, site);
    duet_expr once = x; /* one period; with two elements, x itself */
    if (n > 2) once = appended(x, duet_flip_at(part(x, axis, 1, n - 1, site), axis, site), axis, site);
    const int64_t start = (period - before % period) % period, stop = start + before + n + after;
    const duet_expr all = repeated("pad", once, (stop - 1) / period + 1, axis, false, site);
    return part(all, axis, start, stop, site);
}

/* Padding by less than x itself: parts of x in reverse order. */
static duet_expr mirrored(duet_expr x, int axis, int64_t before, int64_t after, const char *site)
{
    const int64_t n = formula_shape(x).size[axis];
    duet_expr e = x;
    if (before >= n || after >= n) return reflected(x, axis, before, after, site);
    if (before) e = appended(duet_flip_at(part(x, axis, 1, before + 1, site), axis, site), e, axis, site);
    if (after)
        e = appended(e, duet_flip_at(part(x, axis, n - 1 - after, n - 1, site), axis, site), axis, site);
    return e;
}

/* Parts of x again on both sides, or all of it several times if they are longer. */
static duet_expr wrapped(duet_expr x, int axis, int64_t before, int64_t after, const char *site)
{
    const int64_t n = formula_shape(x).size[axis], start = (n - before % n) % n,
                  stop = start + before + n + after;
    duet_expr e = x;
    if (before > n || after > n) {
        const duet_expr all = repeated("pad", x, (stop - 1) / n + 1, axis, false, site);
        return part(all, axis, start, stop, site);
    }
    if (before) e = appended(part(x, axis, n - before, n, site), e, axis, site);
    if (after) e = appended(e, part(x, axis, 0, after, site), axis, site);
    return e;
}

static duet_expr padded(duet_expr x, int axis, const duet_padding *p, const char *site)
{
    const int64_t before = p->before[axis], after = p->after[axis];
    duet_expr e = x;
    if (p->mode == DUET_PAD_REFLECT && before + after) return mirrored(x, axis, before, after, site);
    if (p->mode == DUET_PAD_WRAP && before + after) return wrapped(x, axis, before, after, site);
    const bool is_edge = p->mode == DUET_PAD_EDGE;
    if (before) {
        const duet_expr own =
            is_edge ? edge(x, axis, before, false, site) : constant(x, axis, before, p->value, site);
        e = appended(own, e, axis, site);
    }
    if (after) {
        const duet_expr own =
            is_edge ? edge(x, axis, after, true, site) : constant(x, axis, after, p->value, site);
        e = appended(e, own, axis, site);
    }
    return e;
}

static duet_status check_padding(const shape *s, const duet_padding *p)
{
    if (p->mode < DUET_PAD_CONSTANT || p->mode > DUET_PAD_WRAP)
        return fail(DUET_BAD_ARGUMENT, "mode (%d) is not a duet_pad_mode", (int)p->mode);
    for (int a = 0; a < DUET_RANK_MAX; a++) {
        const int64_t before = p->before[a], after = p->after[a], size = a < s->rank ? s->size[a] : 0;
        int64_t n;
        if (before < 0 || after < 0)
            return fail(DUET_BAD_ARGUMENT, "the padding of axis %d (%lld, %lld) must not be negative", a,
                        (long long)before, (long long)after);
        if (a >= s->rank && (before || after))
            return fail(DUET_BAD_SHAPE, "axis %d does not exist; x has %d %s", a, s->rank,
                        axes_word(s->rank));
        if (!size && (before || after) && p->mode != DUET_PAD_CONSTANT)
            return fail(DUET_BAD_SHAPE, "axis %d has no element to pad with", a);
        if (__builtin_add_overflow(before, after, &n) || __builtin_add_overflow(n, size, &n))
            return fail(DUET_BAD_SHAPE, "the size of axis %d overflows", a);
    }
    return DUET_OK;
}

duet_expr duet_pad_at(duet_expr x, const duet_padding *options, const char *site)
{
    const duet_padding none = { .value = 0 }, *p = options ? options : &none;
    const shape s = formula_shape(x);
    const duet_status status = check_padding(&s, p);
    if (status != DUET_OK) return bad_argument("pad", x, status, site);
    duet_expr made = x;
    for (int a = s.rank; a-- > 0;) made = padded(made, a, p, site);
    return not_itself(made, x, site);
}

/* ---- im2col ---- */

static duet_status check_windows(const shape *s, const duet_windows *w, int64_t size[2])
{
    if (s->rank != 4) return fail(DUET_BAD_SHAPE, "x must have 4 axes, not %d", s->rank);
    for (int k = 0; k < 2; k++) {
        const int64_t stride = w->stride[k] ? w->stride[k] : 1,
                      dilation = w->dilation[k] ? w->dilation[k] : 1;
        if (w->window[k] < 1 || stride < 0 || dilation < 0 || w->pad[k] < 0)
            return fail(DUET_BAD_ARGUMENT,
                        "window must be positive; stride, dilation and pad must not be negative");
        const int64_t reach = (int64_t)(w->window[k] - 1) * dilation + 1,
                      image = s->size[2 + k] + 2 * (int64_t)w->pad[k];
        if (reach > image)
            return fail(DUET_BAD_SHAPE,
                        "the window reaches over %lld elements along axis %d; the padded image has %lld",
                        (long long)reach, 2 + k, (long long)image);
        size[k] = (image - reach) / stride + 1;
    }
    return DUET_OK;
}

duet_expr duet_im2col_at(duet_expr x, const duet_windows *options, const char *site)
{
    const duet_windows none = { .window = { 0 } }, *w = options ? options : &none;
    const shape s = formula_shape(x);
    int64_t size[2];
    const duet_status status = check_windows(&s, w, size);
    if (status != DUET_OK) return bad_argument("im2col", x, status, site);
    duet_padding p = { .mode = DUET_PAD_CONSTANT };
    for (int k = 0; k < 2; k++) p.before[2 + k] = p.after[2 + k] = w->pad[k];
    x = duet_pad_at(x, &p, site);
    for (int k = 0; k < 2; k++)
        x = duet_sliding_window_at(x, 2 + k, w->window[k], w->stride[k] ? w->stride[k] : 1,
                                   w->dilation[k] ? w->dilation[k] : 1, site);
    x = duet_permute_at(x, 6, (const int[]){ 0, 1, 4, 5, 2, 3 }, site);
    const int64_t to[] = { s.size[0], s.size[1] * w->window[0] * w->window[1], size[0] * size[1] };
    return reshaped("im2col", x, &(sizes_given){ 3, to, NULL }, site);
}

/* ---- without a source line ---- */

duet_expr(duet_concat)(int axis, int count, const duet_expr *x)
{
    return duet_concat_at(axis, count, x, NULL);
}
duet_expr(duet_stack)(int axis, int count, const duet_expr *x) { return duet_stack_at(axis, count, x, NULL); }
duet_expr(duet_tile)(duet_expr x, int count, const int64_t *times)
{
    return duet_tile_at(x, count, times, NULL);
}
duet_expr(duet_repeat)(duet_expr x, int64_t times, int axis) { return duet_repeat_at(x, times, axis, NULL); }
duet_expr(duet_roll)(duet_expr x, int64_t by, int axis) { return duet_roll_at(x, by, axis, NULL); }
duet_expr(duet_pad)(duet_expr x, const duet_padding *options) { return duet_pad_at(x, options, NULL); }
duet_expr(duet_im2col)(duet_expr x, const duet_windows *options) { return duet_im2col_at(x, options, NULL); }

/* ---- iota ---- */

static duet_status check_iota(duet_dtype type, int64_t n)
{
    if ((unsigned)type >= DUET_DTYPE_COUNT)
        return fail(DUET_BAD_ARGUMENT, "type (%d) is not an element type", (int)type);
    if (dtype_kind(type) == TYPE_COMPLEX || dtype_kind(type) == TYPE_BOOL)
        return fail(DUET_BAD_TYPE, "type (%s) must be an integer or floating-point type", dtypes[type].name);
    return n >= 0 ? DUET_OK : fail(DUET_BAD_ARGUMENT, "n (%lld) must not be negative", (long long)n);
}

/* A cumulative sum of ones: integers, so it is exact and the same on every device. */
duet_expr(duet_iota_at)(duet_dtype type, int64_t n, const char *site)
{
    const duet_status s = check_iota(type, n);
    if (s != DUET_OK) {
        arena *a = arena_mine();
        return a ? call_failed(a, "iota", 0, NULL, s, site) : no_room(DUET_NO_MEMORY);
    }
    const duet_expr one = duet_cast(duet_sum(1), DUET_I64);
    const duet_expr count = duet_sub(duet_cumsum(duet_broadcast(one, n), 0), 1);
    return duet_cast(count, type);
}
duet_expr(duet_iota)(duet_dtype type, int64_t n) { return duet_iota_at(type, n, NULL); }
