/* fourier_formulas.c - Fourier transforms: what their options mean, and those with names of their own. */
#include "arena.h"
#include "status.h"

static bool is_complex(int type) { return type == DUET_C64 || type == DUET_C128; }
static bool is_real(int type) { return type == DUET_F32 || type == DUET_F64; }
static bool is_shift(enum op op) { return op == OP_fftshift || op == OP_ifftshift; }

static __attribute__((cold)) duet_status wrong(duet_status s, enum op op, const node *x, const char *what,
                                               int number)
{
    char text[SHAPE_TEXT];
    shape_text(text, (duet_dtype)x->type, x->rank, x->size);
    return fail(s, "duet_%s(%s): %s %d", op_infos[op].name, text, what, number);
}

static duet_status check_type(enum op op, const node *x)
{
    char text[SHAPE_TEXT];
    if (is_shift(op) || (op != OP_irfftn && is_real(x->type)) || (op != OP_rfftn && is_complex(x->type)))
        return DUET_OK;
    return fail(DUET_BAD_TYPE, "duet_%s(%s) needs elements of %s", op_infos[op].name,
                shape_text(text, (duet_dtype)x->type, x->rank, x->size),
                op == OP_rfftn    ? "f32 or f64"
                : op == OP_irfftn ? "c64 or c128"
                                  : "f32, f64, c64 or c128");
}

static duet_status one_axis(enum op op, const node *x, int given, int n, fourier_rule *r)
{
    const int axis = given < 0 ? given + x->rank : given;
    if (axis < 0 || axis >= x->rank) return wrong(DUET_BAD_SHAPE, op, x, "there is no axis", given);
    if (r->attr.axes >> axis & 1) return wrong(DUET_BAD_ARGUMENT, op, x, "named twice: axis", given);
    if (n < 0 || (n && is_shift(op))) return wrong(DUET_BAD_ARGUMENT, op, x, "there is no length", n);
    r->attr.axes |= 1 << axis, r->attr.last = axis, r->attr.length[axis] = n;
    return DUET_OK;
}

static duet_status find_axes(enum op op, const node *x, const duet_fourier *o, fourier_rule *r)
{
    const int count = o->axes ? o->axes : x->rank;
    if (count < 1 || count > x->rank)
        return wrong(DUET_BAD_SHAPE, op, x, "it has not so many axes:", o->axes);
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
            return wrong(DUET_BAD_SHAPE, op, x, "no transform is of such a length along axis", a);
        r->attr.length[a] = (int32_t)n, r->size[a] = n;
    }
    if (op == OP_rfftn) r->size[r->attr.last] = r->attr.length[r->attr.last] / 2 + 1;
    return DUET_OK;
}

duet_status rule_fourier(enum op op, const node *x, const duet_fourier *options, fourier_rule *r)
{
    const bool wide = x->type == DUET_F64 || x->type == DUET_C128;
    *r = (fourier_rule){ .type = is_shift(op)      ? (duet_dtype)x->type
                                 : op == OP_irfftn ? (wide ? DUET_F64 : DUET_F32)
                                                   : (wide ? DUET_C128 : DUET_C64) };
    for (int a = 0; a < x->rank; a++) r->size[a] = x->size[a];
    TRY(check_type(op, x));
    TRY(find_axes(op, x, options, r));
    return is_shift(op) ? DUET_OK : find_lengths(op, x, r);
}

#define DUET_FOURIER(name)                                                                                   \
    duet_expr(duet_##name##_at)(duet_expr x, int n, int axis, const char *site)                              \
    {                                                                                                        \
        return duet_##name##n_at(x, &(const duet_fourier){ 1, { axis }, { n } }, site);                      \
    }                                                                                                        \
    duet_expr(duet_##name##2_at)(duet_expr x, const char *site)                                              \
    {                                                                                                        \
        return duet_##name##n_at(x, &(const duet_fourier){ 2, { -2, -1 }, { 0 } }, site);                    \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x, int n, int axis) { return duet_##name##_at(x, n, axis, NULL); }      \
    duet_expr(duet_##name##2)(duet_expr x) { return duet_##name##2_at(x, NULL); }
DUET_FOURIER(fft)
DUET_FOURIER(ifft)
DUET_FOURIER(rfft)
DUET_FOURIER(irfft)
