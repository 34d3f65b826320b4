/* elementwise_operands.c - prepares the operands of an element-wise kernel: merges and reorders
 * axes, halves domains that are too large. */
#include "elementwise_operands.h"
#include "dtype.h"
#include <stdlib.h>

void operands_take(operands *o, const step *s, const frame *f, size_t each)
{
    o->outs = s->outs;
    o->count = s->outs + s->ins;
    o->each = each;
    for (int k = 0; k < o->count; k++) {
        const operand *x = k < s->outs ? &s->out[k] : &s->in[k - s->outs];
        o->at[k] = f->data[x->slot];
        o->of[k] = x->at;
    }
}

int operand_lead(const operands *o, int k)
{
    const size_t bytes = dtypes[o->of[k].type].bytes;
    return (int)((uintptr_t)o->at[k] % ((size_t)operands_width(o) * bytes) / bytes);
}

/* ---- operands as pairs of elements ---- */

static void double_strides(layout *l, duet_dtype part)
{
    l->type = part;
    for (int a = 0; a < l->rank; a++) l->stride[a] *= 2;
}

bool operands_as_pairs(operands *o, duet_dtype part)
{
    layout *given[OPERANDS];
    if (o->of[0].rank == DUET_RANK_MAX) return false;
    o->each = dtypes[part].bytes;
    for (int k = 0; k < o->count; k++) {
        layout *l = given[k] = &o->of[k];
        double_strides(l, part);
        l->size[l->rank] = 2;
        l->stride[l->rank] = 1;
        l->rank++;
    }
    layout_collapse(given, o->count);
    return true;
}

operands operands_halves(const operands *o, duet_dtype part, int which)
{
    operands half = *o;
    half.each = dtypes[part].bytes;
    for (int k = 0; k < o->count; k++) {
        double_strides(&half.of[k], part);
        half.at[k] = (char *)half.at[k] + (size_t)which * half.each;
    }
    return half;
}

/* ---- the order of axes ---- */

/* Is the stride along axis a larger than along the axis before it? */
static bool is_farther(const layout *l, int a) { return llabs(l->stride[a]) > llabs(l->stride[a - 1]); }

static bool is_ordered(const layout *l)
{
    for (int a = 1; a < l->rank; a++)
        if (is_farther(l, a)) return false;
    return true;
}

void operands_order(operands *o)
{
    layout *given[OPERANDS];
    if (is_ordered(&o->of[0])) return;
    for (int k = 0; k < o->count; k++) given[k] = &o->of[k];
    for (int a = 1; a < o->of[0].rank; a++)
        for (int b = a; b > 0 && is_farther(&o->of[0], b); b--)
            for (int k = 0; k < o->count; k++) layout_swap_axes(&o->of[k], b, b - 1);
    layout_collapse(given, o->count);
}

/* ---- domains too large for 32-bit indices ---- */

/* Do 32-bit indices reach all elements of all operands? */
static bool operands_fit(const operands *o)
{
    int64_t low, high;
    for (int k = 0; k < o->count; k++) {
        layout_span(&o->of[k], &low, &high);
        if (low < -INT32_MAX || high > INT32_MAX) return false;
    }
    return layout_count(&o->of[0]) <= INT32_MAX / 2;
}

/* The largest distance between elements along an axis, over all operands; at least the length of
 * the axis. */
static int64_t reach(const operands *o, int a)
{
    int64_t most = o->of[0].size[a];
    for (int k = 0; k < o->count; k++) {
        int64_t r = (o->of[k].size[a] - 1) * llabs(o->of[k].stride[a]);
        most = r > most ? r : most;
    }
    return most;
}

static int farthest_axis(const operands *o)
{
    const int64_t *size = o->of[0].size;
    int far = 0;
    for (int a = 0; a < o->of[0].rank; a++)
        if (size[a] > 1 && (size[far] == 1 || reach(o, a) > reach(o, far))) far = a;
    return far;
}

void operands_halve(const operands *o, operands *low, operands *high)
{
    const int far = farthest_axis(o);
    const int64_t half = o->of[0].size[far] / 2;
    *low = *high = *o;
    for (int k = 0; k < o->count; k++) {
        low->of[k].size[far] = half;
        high->of[k].size[far] -= half;
        high->at[k] = (char *)o->at[k] + half * o->of[k].stride[far] * (int64_t)dtypes[o->of[k].type].bytes;
    }
}

/* ---- how a kernel reads an operand ---- */

void operand_strides(const layout *l, int32_t stride[])
{
    for (int x = 0; x < l->rank; x++) stride[x] = l->size[x] > 1 ? (int32_t)l->stride[x] : 0;
}

/* An operand that repeats along the domain: element e is at[e / run % size * stride]. */
typedef struct cycle {
    int64_t run, size, stride;
} cycle;

/* Returns false if the operand does not repeat. */
static bool cycle_of(const layout *l, cycle *c)
{
    int a = l->rank;
    for (*c = (cycle){ 1, 1, 0 }; a > 0 && l->stride[a - 1] == 0; a--) c->run *= l->size[a - 1];
    for (; a > 0 && (c->size == 1 || l->stride[a - 1] == c->size * c->stride); a--) {
        if (c->size == 1) c->stride = l->stride[a - 1];
        c->size *= l->size[a - 1];
    }
    while (a > 0 && l->stride[a - 1] == 0) a--;
    return a == 0 && c->run <= INT32_MAX && c->size <= INT32_MAX && llabs(c->stride) <= INT32_MAX / c->size;
}

static enum how cycle_how(const cycle *c, int64_t width)
{
    if (c->run == 1 && c->size >= width) return HOW_CYCLE;
    return c->run >= width ? HOW_RUNS : HOW_ANY;
}

enum how operand_how(const operands *o, int k, int64_t n, int lead, interp_path *p)
{
    cycle c;
    if (layout_is_dense(&o->of[k])) return operand_lead(o, k) == lead ? HOW_VECTORS : HOW_SCALARS;
    if (n > INT32_MAX || !cycle_of(&o->of[k], &c)) return HOW_WALK;
    p->run = divide_by32(c.run);
    p->size = divide_by32(c.size);
    p->stride = (int32_t)c.stride;
    if (c.size == 1) return HOW_SINGLE;
    const int64_t width = operands_width(o);
    if (c.run == 1 && c.stride == 1 && c.size % width == 0 && operand_lead(o, k) == lead && lead == 0)
        return HOW_ROUND;
    return cycle_how(&c, width);
}

/* ---- all operands ---- */

bool operands_outputs_dense(const operands *o)
{
    for (int k = 0; k < o->outs; k++)
        if (!layout_is_dense(&o->of[k]) || operand_lead(o, k) != operand_lead(o, 0)) return false;
    return true;
}

bool operands_reachable(const operands *o)
{
    bool dense = operands_outputs_dense(o);
    for (int k = o->outs; k < o->count; k++) dense &= layout_is_dense(&o->of[k]);
    return dense || operands_fit(o);
}

double operands_bytes(const operands *o)
{
    double bytes = 0;
    for (int k = 0; k < o->count; k++) {
        double n = (double)dtypes[o->of[k].type].bytes;
        for (int a = 0; a < o->of[k].rank; a++)
            if (o->of[k].stride[a]) n *= (double)o->of[k].size[a];
        bytes += n;
    }
    return bytes;
}
