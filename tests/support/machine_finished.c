/* machine_finished.c - the reference for vendor operators with an epilogue: the operator by
 * machine_reference.c, then the epilogue, applied to the interval of possible values. */
#include "machine_reference.h"
#include "machine_rounding.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The step of the operator alone, with dense results. */
static step vendor_of(const step *s)
{
    step v = *s;
    const int64_t *x = s->in[0].at.size, *w = s->in[1].at.size;
    v.epilogue = EPILOGUE_NONE;
    v.ins = 2;
    if (!epilogue_infos[s->epilogue].pooled) return v;
    const conv_attributes *a = &s->attr.conv;
    const int64_t size[4] = { x[0], w[0],
                              (x[2] + 2 * a->pad[0] - (w[2] - 1) * a->dilation[0] - 1) / a->stride[0] + 1,
                              (x[3] + 2 * a->pad[1] - (w[3] - 1) * a->dilation[1] - 1) / a->stride[1] + 1 };
    layout_dense(&v.out[0].at, s->out[0].at.type, 4, size);
    return v;
}

/* A result that is not finite must be exact. */
static expected within(long double value, long double allowed)
{
    return (expected){ value, isfinite(value) ? allowed : 0 };
}

static expected biased(duet_dtype t, expected e, double bias)
{
    const long double value = e.value + bias;
    return within(value, e.allowed + 2 * roundoff(t) * (fabsl(value) + fabsl(e.value)));
}

/* No function here has a slope above 1. */
static expected acted(int act, duet_dtype t, expected e)
{
    if (act == OP_LOAD || act == OP_softmax) return e;
    const expected there = reference_map(act, t, (double)e.value, 0, 0);
    return within(there.value, there.allowed + e.allowed + 2 * roundoff(t) * fabsl(e.value));
}

static void soften(duet_dtype t, expected *x, int64_t n)
{
    long double most = -INFINITY, sum = 0, error = 0;
    for (int64_t j = 0; j < n; j++) {
        if (isnan(x[j].value) || x[j].value > most) most = x[j].value;
        if (isnan(most)) break;
    }
    for (int64_t j = 0; j < n; j++) {
        const long double reach = isfinite(x[j].value - most) ? fabsl(x[j].value - most) : 0;
        sum += expl(x[j].value - most);
        error = fmaxl(error, 4 * x[j].allowed + roundoff(t) * (reach + (long double)n + 12));
    }
    for (int64_t j = 0; j < n; j++) {
        const long double value = expl(x[j].value - most) / sum;
        if (isnan(value)) x[j] = (expected){ NAN, 0 };
        else x[j] = (expected){ value, value * error + (t == DUET_F32 ? 0x1p-147L : 0x1p-1072L) };
    }
}

static expected greatest(const expected *plane, const int64_t *in, const pool_attributes *p, int64_t row,
                         int64_t column)
{
    expected e = { -INFINITY, 0 };
    long double allowed = 0;
    for (int u = 0; u < p->window[0]; u++)
        for (int v = 0; v < p->window[1]; v++) {
            const int64_t i = row * p->stride[0] - p->pad[0] + u, j = column * p->stride[1] - p->pad[1] + v;
            if (i < 0 || i >= in[0] || j < 0 || j >= in[1]) continue;
            const expected x = plane[i * in[1] + j];
            allowed = fmaxl(allowed, x.allowed);
            if (!isnan(e.value) && (isnan(x.value) || x.value >= e.value)) e = x;
        }
    return within(e.value, allowed);
}

static void pool(const step *s, const layout *at, const expected *from, expected *out)
{
    const int64_t *size = s->out[0].at.size, plane = size[2] * size[3], in = at->size[2] * at->size[3];
    for (int64_t n = 0; n < layout_count(&s->out[0].at); n++)
        out[n] = greatest(from + n / plane * in, at->size + 2, &s->attr.conv.pool, n % plane / size[3],
                          n % size[3]);
}

bool finished_reference(const step *s, const frame *f, expected *out)
{
    const epilogue_info *info = &epilogue_infos[s->epilogue];
    const step v = vendor_of(s);
    const layout *at = &v.out[0].at;
    const int64_t count = layout_count(at);
    expected *e = malloc(sizeof *e * (size_t)(count + 1));
    bool known = e && reference(&v, f, 0, e);
    for (int64_t i = 0; i < count && known; i++) {
        int64_t index[DUET_RANK_MAX];
        unravel(at, i, index);
        e[i] = acted(info->act, at->type, biased(at->type, e[i], element(f, &s->in[2], &index[1])));
    }
    for (int64_t i = 0; i < count && known && info->act == OP_softmax; i += at->size[1])
        soften(at->type, e + i, at->size[1]);
    if (known && info->pooled) pool(s, at, e, out);
    else if (known) memcpy(out, e, sizeof *e * (size_t)count);
    free(e);
    return known;
}
