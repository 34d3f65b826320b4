/* fourier_rules.c - the options of Fourier transforms, and the shapes and types of their results. */
#include "arena.h"
#include "dtype.h"
#include "status.h"

static bool is_complex(int type) { return type == DUET_C64 || type == DUET_C128; }

static bool is_real(int type) { return type == DUET_F32 || type == DUET_F64; }

static bool is_shift(enum op op) { return op == OP_fftshift || op == OP_ifftshift; }

static duet_status check_type(enum op op, const node *x)
{
    if (is_shift(op) || (op != OP_irfftn && is_real(x->type)) || (op != OP_rfftn && is_complex(x->type)))
        return DUET_OK;
    const char *types = "f32, f64, c64 or c128";
    if (op == OP_rfftn) types = "f32 or f64";
    if (op == OP_irfftn) types = "c64 or c128";
    return fail(DUET_BAD_TYPE, "the elements must be %s; convert them with duet_cast", types);
}

static duet_status one_axis(enum op op, const node *x, int given, int n, fourier_rule *r)
{
    const int axis = given < 0 ? given + x->rank : given;
    if (axis < 0 || axis >= x->rank)
        return fail(DUET_BAD_SHAPE, "axis %d does not exist; x has %d %s", given, x->rank,
                    axes_word(x->rank));
    if (r->attr.axes >> axis & 1) return fail(DUET_BAD_ARGUMENT, "axis %d is named twice", given);
    if (n < 0) return fail(DUET_BAD_ARGUMENT, "n (%d) must not be negative", n);
    if (n && is_shift(op)) return fail(DUET_BAD_ARGUMENT, "n (%d) must be 0: a shift has no length", n);
    r->attr.axes |= 1 << axis;
    r->attr.last = axis;
    r->attr.length[axis] = n;
    return DUET_OK;
}

static duet_status find_axes(enum op op, const node *x, const duet_fourier *o, fourier_rule *r)
{
    const int count = o->axes ? o->axes : x->rank;
    if (count < 1 || count > x->rank)
        return fail(DUET_BAD_SHAPE, "the number of axes (%d) must be from 1 to %d, the axes of x", count,
                    x->rank);
    for (int k = 0; k < count; k++) TRY(one_axis(op, x, o->axes ? o->axis[k] : k, o->n[k], r));
    return DUET_OK;
}

/* How long each transform is. */
static duet_status find_lengths(enum op op, const node *x, fourier_rule *r)
{
    for (int a = 0; a < x->rank; a++) {
        if (!(r->attr.axes >> a & 1)) continue;
        const bool mirrored = op == OP_irfftn && a == r->attr.last;
        int64_t n = r->attr.length[a];
        if (!n) n = mirrored ? 2 * (x->size[a] - 1) : x->size[a];
        if (n < 1 || n > INT32_MAX)
            return fail(DUET_BAD_SHAPE,
                        "the transform along axis %d has length %lld; it must be from 1 to %d", a,
                        (long long)n, INT32_MAX);
        r->attr.length[a] = (int32_t)n;
        r->size[a] = n;
    }
    if (op == OP_rfftn) r->size[r->attr.last] = r->attr.length[r->attr.last] / 2 + 1;
    return DUET_OK;
}

static duet_dtype result_type(enum op op, duet_dtype x)
{
    const bool wide = x == DUET_F64 || x == DUET_C128;
    if (is_shift(op)) return x;
    return op == OP_irfftn ? dtype_real(wide) : dtype_complex(wide);
}

duet_status rule_fourier(enum op op, const node *x, const duet_fourier *options, fourier_rule *r)
{
    *r = (fourier_rule){ .type = result_type(op, (duet_dtype)x->type) };
    for (int a = 0; a < x->rank; a++) r->size[a] = x->size[a];
    TRY(check_type(op, x));
    TRY(find_axes(op, x, options, r));
    if (is_shift(op)) return DUET_OK;
    return find_lengths(op, x, r);
}
