/* pointwise.c - launches fused rows. Axes are free to be taken in any order, so those
 * of the output's memory are; then one of two forms goes over them. */
#include "launch.h"

/* Operand 0 is the output. One without an address is a number. */
typedef struct pointwise {
    void *at[1 + POINT_INPUTS];
    double number[1 + POINT_INPUTS], s, r;
    layout of[1 + POINT_INPUTS];
    int row;
    bool wide; /* f64 */
    const void *(*kernel)(int row, int form);
} pointwise;

#define OPERANDS(p, k)                                                                                                           \
    for (int k = 0; k < 1 + POINT_INPUTS; k++)                                                                                   \
        if ((p)->at[k])
#define EACH_AXIS(p, a) for (int a = 0; a < (p)->of[0].rank; a++)

static size_t element(const pointwise *p) { return p->wide ? 8 : 4; }

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

static void swap_axes(layout *l, int a, int b)
{
    const int64_t size = l->size[a], stride = l->stride[a];
    l->size[a] = l->size[b], l->stride[a] = l->stride[b];
    l->size[b] = size, l->stride[b] = stride;
}

/* Axes in the order of the output's memory, as few as will do. */
static void order_axes(pointwise *p)
{
    layout *given[1 + POINT_INPUTS];
    int n = 0;
    OPERANDS(p, k) given[n++] = &p->of[k];
    for (int a = 1; a < p->of[0].rank; a++)
        for (int b = a; b > 0 && magnitude(p->of[0].stride[b]) > magnitude(p->of[0].stride[b - 1]); b--)
            for (int k = 0; k < n; k++) swap_axes(given[k], b, b - 1);
    layout_collapse(given, n);
}

/* Does operand k repeat along the output's memory as at[e / run % size * stride]? */
static bool cycles(const layout *l, int64_t *run, int64_t *size, int64_t *stride)
{
    int a = l->rank;
    for (*run = *size = 1, *stride = 0; a > 0 && l->stride[a - 1] == 0; a--) *run *= l->size[a - 1];
    for (; a > 0 && (*size == 1 || l->stride[a - 1] == *size * *stride); a--) {
        if (*size == 1) *stride = l->stride[a - 1];
        *size *= l->size[a - 1];
    }
    while (a > 0 && l->stride[a - 1] == 0) a--;
    return a == 0 && *run <= INT32_MAX && *size <= INT32_MAX && magnitude(*stride) <= INT32_MAX / *size;
}

static int lead_of(const pointwise *p, const void *at) { return (int)((uintptr_t)at % 16 / element(p)); }

/* How a flat kernel finds operand k; false when it cannot. */
static bool flat_operand_of(const pointwise *p, int k, flat_operand *o)
{
    const layout *l = &p->of[k];
    const int64_t n = layout_count(&p->of[0]), width = 16 / (int64_t)element(p);
    int64_t run, size, stride;
    *o = (flat_operand){ .at = p->at[k], .number = p->number[k], .how = HOW_NUMBER };
    if (!p->at[k]) return true;
    if (layout_is_dense(l)) {
        o->how = lead_of(p, p->at[k]) == lead_of(p, p->at[0]) ? HOW_VECTORS : HOW_SCALARS;
        return true;
    }
    if (!cycles(l, &run, &size, &stride) || n > INT32_MAX) return false;
    o->how = run == 1 && size >= width ? HOW_CYCLE : run >= width ? HOW_RUNS : HOW_ANY;
    o->run = divide_by32(run), o->size = divide_by32(size), o->stride = (int32_t)stride;
    return true;
}

/* Small arrays take one vector a thread, for more threads. */
static bool flat(const pointwise *p, cudaStream_t q, cudaError_t *e)
{
    const int64_t n = layout_count(&p->of[0]), width = 16 / (int64_t)element(p);
    flat_args a = { .out = p->at[0], .n = n, .lead = lead_of(p, p->at[0]), .s = p->s, .r = p->r };
    if (!layout_is_dense(&p->of[0])) return false;
    for (int k = 0; k < POINT_INPUTS; k++)
        if (!flat_operand_of(p, 1 + k, &a.in[k])) return false;
    const int64_t vectors = (a.lead + n + width - 1) / width;
    a.rounds = vectors <= POINT_SMALL ? 1 : POINT_ROUNDS;
    const int64_t each = (int64_t)POINT_THREADS * a.rounds;
    *e = launch(p->kernel(p->row, FORM_FLAT), (vectors + each - 1) / each, POINT_THREADS, 0, &a, q);
    return true;
}

/* How far an operand reaches along an axis, and never less than the axis is long. */
static int64_t reach(const pointwise *p, int a)
{
    int64_t most = p->of[0].size[a];
    OPERANDS(p, k)
    {
        int64_t r = (p->of[k].size[a] - 1) * magnitude(p->of[k].stride[a]);
        most = r > most ? r : most;
    }
    return most;
}

static bool fits_32_bits(const pointwise *p)
{
    int64_t low, high;
    OPERANDS(p, k)
    {
        layout_span(&p->of[k], &low, &high);
        if (low < -INT32_MAX || high > INT32_MAX) return false;
    }
    return layout_count(&p->of[0]) <= INT32_MAX / 2;
}

static cudaError_t strided_part(const pointwise *p, cudaStream_t q)
{
    strided_args a = { .s = p->s, .r = p->r, .n = (uint32_t)layout_count(&p->of[0]), .rank = p->of[0].rank };
    EACH_AXIS(p, x) a.size[x] = divide_by32(p->of[0].size[x]);
    for (int k = 0; k < 1 + POINT_INPUTS; k++) a.at[k] = p->at[k], a.number[k] = p->number[k];
    OPERANDS(p, k)
    EACH_AXIS(p, x) a.stride[k][x] = a.size[x].by > 1 ? (int32_t)p->of[k].stride[x] : 0;
    const int64_t each = POINT_THREADS * STRIDED_EACH;
    return launch(p->kernel(p->row, FORM_STRIDED), (a.n + each - 1) / each, POINT_THREADS, 0, &a, q);
}

/* Halves the farthest axis until indices of 32 bits do: then the kernel never divides longer ones. */
static cudaError_t strided(const pointwise *p, cudaStream_t q)
{
    if (fits_32_bits(p)) return strided_part(p, q);
    int far = 0;
    EACH_AXIS(p, a)
    if (p->of[0].size[a] > 1 && (p->of[0].size[far] == 1 || reach(p, a) > reach(p, far))) far = a;
    pointwise low = *p, high = *p;
    const int64_t half = p->of[0].size[far] / 2;
    OPERANDS(p, k)
    {
        low.of[k].size[far] = half, high.of[k].size[far] -= half;
        high.at[k] = (char *)p->at[k] + half * p->of[k].stride[far] * (int64_t)element(p);
    }
    cudaError_t e = strided(&low, q);
    return e != cudaSuccess ? e : strided(&high, q);
}

static cudaError_t pointwise_launch(pointwise *p, cudaStream_t q)
{
    cudaError_t e = cudaSuccess;
    if (layout_count(&p->of[0]) == 0) return e;
    order_axes(p);
    return flat(p, q, &e) ? e : strided(p, q);
}

static void operand_into(pointwise *p, int k, const operand *o, const frame *f) { p->at[k] = f->data[o->slot], p->of[k] = o->at; }

static pointwise pointwise_of(const step *s, const frame *f)
{
    pointwise p = { .wide = s->out[0].at.type == DUET_F64 };
    operand_into(&p, 0, &s->out[0], f);
    return p;
}

cudaError_t fused_launch(const step *s, const frame *f, cudaStream_t q)
{
    pointwise p = pointwise_of(s, f);
    for (int k = 0; k < s->ins; k++) operand_into(&p, 1 + k, &s->in[k], f);
    if (s->nums > 0) p.s = f->num[s->num[0]];
    if (s->nums > 1) p.r = f->num[s->num[1]];
    p.row = s->kernel;
    p.kernel = p.wide ? fused_kernel_f64 : fused_kernel_f32;
    return pointwise_launch(&p, q);
}
