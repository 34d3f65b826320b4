/* scan_formulas.c - cumulative sums and products with options, made of other operators. */
#include "call_text.h"
#include "status.h"
#include "view_formulas.h"
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

static duet_status check_scan(const shape *s, int *axis, const duet_scan *o)
{
    TRY(check_axis_of(s, axis));
    if (o->exclusive && o->initial)
        return fail(DUET_BAD_ARGUMENT, "exclusive and initial must not both be 1");
    return DUET_OK;
}

/* v with the result of no elements in front. exclusive: without the last result, of all elements. */
static duet_expr with_first(duet_expr v, int axis, int64_t n, double none, bool exclusive, const char *site)
{
    duet_padding pad = { .value = none };
    pad.before[axis] = 1;
    if (exclusive && !n) return v;
    if (exclusive) v = duet_range(v, axis, 0, n - 1, 1);
    return duet_pad_at(v, &pad, site);
}

static duet_expr scanned(const char *function, duet_expr x, int axis, bool product, const duet_scan *options,
                         const char *site)
{
    static const duet_scan none = { 0 };
    const duet_scan *o = options ? options : &none;
    const shape s = formula_shape(x);
    const duet_status status = check_scan(&s, &axis, o);
    if (status != DUET_OK) return bad_argument(function, x, status, site);
    const duet_expr from = o->reverse ? duet_flip(x, axis) : x;
    duet_expr made = product ? duet_cumprod_at(from, axis, site) : duet_cumsum_at(from, axis, site);
    if (is_valid(made) && (o->exclusive || o->initial))
        made = with_first(made, axis, s.size[axis], product, o->exclusive, site);
    if (is_valid(made) && o->reverse) made = duet_flip(made, axis);
    return formula_called(function, 1, &x, made, site);
}

duet_expr(duet_cumsum_with_at)(duet_expr x, int axis, const duet_scan *options, const char *site)
{
    return scanned("cumsum_with", x, axis, false, options, site);
}
duet_expr(duet_cumsum_with)(duet_expr x, int axis, const duet_scan *options)
{
    return duet_cumsum_with_at(x, axis, options, NULL);
}
duet_expr(duet_cumprod_with_at)(duet_expr x, int axis, const duet_scan *options, const char *site)
{
    return scanned("cumprod_with", x, axis, true, options, site);
}
duet_expr(duet_cumprod_with)(duet_expr x, int axis, const duet_scan *options)
{
    return duet_cumprod_with_at(x, axis, options, NULL);
}
