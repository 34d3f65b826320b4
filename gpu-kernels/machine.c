/* machine.c - launches programs that go element by element. */
#include "operands.h"
#include <stdlib.h>

#define SHARED_MOST                                                                                                              \
    98304 /* bytes of the rows that vectors_for admits: the same for all threads, since it is a kernel's, not a launch's */

/* ---- how an operand is reached ---- */

static enum how how_of(const operands *o, int k, const machine_head *h, machine_path *p)
{
    cycle c;
    if (layout_is_dense(&o->of[k])) return operand_lead(o, k) == h->lead ? HOW_VECTORS : HOW_SCALARS;
    if (h->n > INT32_MAX || !cycle_of(&o->of[k], &c)) return HOW_WALK;
    p->run = divide_by32(c.run), p->size = divide_by32(c.size), p->stride = (int32_t)c.stride;
    if (c.size == 1) return HOW_SINGLE;
    const int64_t width = operands_width(o);
    if (c.run == 1 && c.stride == 1 && c.size % width == 0 && operand_lead(o, k) == h->lead && h->lead == 0) return HOW_ROUND;
    return cycle_how(&c, width);
}

/* All outputs dense, and vectors of one those of all? */
static bool outputs_dense(const operands *o)
{
    for (int k = 0; k < o->outs; k++)
        if (!layout_is_dense(&o->of[k]) || operand_lead(o, k) != operand_lead(o, 0)) return false;
    return true;
}

static bool is_plain(const operands *o)
{
    bool plain = outputs_dense(o);
    for (int k = o->outs; k < o->count && plain; k++)
        plain = layout_is_dense(&o->of[k]) && operand_lead(o, k) == operand_lead(o, 0);
    return plain;
}

static void set_head(const operands *o, const machine_program *p, machine_head *h)
{
    h->n = layout_count(&o->of[0]), h->out_dense = outputs_dense(o);
    h->lead = h->out_dense ? operand_lead(o, 0) : 0;
    h->last = p->last, h->inputs = (uint8_t)(o->count - o->outs);
    for (int k = 0; k < o->outs; k++) h->out[k] = o->at[k];
    for (int k = 0; k < h->inputs; k++) h->in[k] = o->at[o->outs + k];
}

static void set_paths(const operands *o, const machine_head *h, machine_paths *p)
{
    p->rank = o->of[0].rank;
    for (int x = 0; x < p->rank; x++) p->size[x] = divide_by32(o->of[0].size[x]);
    for (int k = 0; k < o->outs && !h->out_dense; k++) operand_strides(&o->of[k], p->out_stride[k]);
    for (int k = 0; k < h->inputs; k++) {
        p->in[k].how = (uint32_t)how_of(o, o->outs + k, h, &p->in[k]);
        if (p->in[k].how == HOW_WALK) operand_strides(&o->of[o->outs + k], p->in_stride[k]);
    }
}

/* More vectors a thread pay the dispatch for more elements; but all multiprocessors should have several thread blocks, and rows of shared
 * memory must leave room for them. */
static int vectors_for(const machine_program *p, int64_t vectors)
{
    if (vectors <= MACHINE_MIDDLE || p->rows > 12) return 1;
    return p->rows <= 6 && vectors > MACHINE_LARGE ? MACHINE_VECTORS : 2;
}

static const void *kernel_of(const operands *o, const machine_program *p, bool small, int vectors, bool plain)
{
    machine_kernels *const kernels[2][4] = { { MACHINE_KERNELS(f32) }, { MACHINE_KERNELS(f64) } };
    return kernels[o->each == 8][2 * small + p->heavy](vectors, plain);
}

typedef union machine_args {
    machine_head head;
    machine_short_f32 short_f32;
    machine_long_f32 long_f32;
    machine_short_f64 short_f64;
    machine_long_f64 long_f64;
} machine_args;

static cudaError_t launch_rows(const void *kernel, int64_t blocks, int threads, size_t shared, machine_args *a, cudaStream_t q)
{
    const cudaError_t e = with_shared(kernel, shared, SHARED_MOST);
    return e == cudaSuccess ? launch_early(kernel, blocks, threads, shared, a, q) : e;
}

static cudaError_t launch_once(const operands *o, const machine_program *p, cudaStream_t q)
{
    machine_args a;
    const bool wide = o->each == 8, plain = is_plain(o) && p->steps <= MACHINE_SHORT;
    set_head(o, p, &a.head);
    const bool small = a.head.n <= MACHINE_SMALL;
    const int64_t width = small ? 1 : operands_width(o), vectors = (a.head.lead + a.head.n + width - 1) / width;
    const int each = small ? 1 : vectors_for(p, vectors);
    const uint32_t threads = (uint32_t)MACHINE_THREADS(each), row = (uint32_t)each * threads;
    a.head.begins = p->first != ROW_NONE, a.head.first = a.head.begins ? p->first * row : 0;
    a.head.length = (uint8_t)machine_pack(wide ? (void *)a.short_f64.code : a.short_f32.code, p, wide, (int)row, each == 1);
    if (small) a.head.lead = 0;
    if (!plain) set_paths(o, &a.head, wide ? &a.long_f64.paths : &a.long_f32.paths);
    return launch_rows(kernel_of(o, p, small, each, plain), (vectors + row - 1) / row, (int)threads,
                       p->rows * row * (size_t)width * o->each, &a, q);
}

/* ---- a copy between operands whose memory runs along different axes ---- */

static bool is_copy(const program *p)
{
    return p->length == 2 && p->code[0].op == OP_LOAD && p->code[0].arg[0].kind == FROM_INPUT && p->code[1].op == OP_STORE;
}

/* The input's fastest axis, when it is another than the output's and both are long; else -1. */
static int tile_axis(const layout *out, const layout *in)
{
    const int last = out->rank - 1;
    int fast = last;
    if (in->stride[last] == 0) return -1;
    for (int a = 0; a < out->rank; a++)
        if (in->stride[a] != 0 && llabs(in->stride[a]) < llabs(in->stride[fast])) fast = a;
    return fast == last || out->size[fast] < TILE / 4 || out->size[last] < TILE / 4 ? -1 : fast;
}

static bool launch_tile(const operands *o, cudaStream_t q, cudaError_t *e)
{
    const layout *out = &o->of[0], *in = &o->of[1];
    const int fast = tile_axis(out, in), last = out->rank - 1;
    if (fast < 0) return false;
    tile_args a = { .out = o->at[0], .in = o->at[1], .rows = out->size[fast], .columns = out->size[last] };
    a.in_fast = in->stride[fast], a.in_stride = in->stride[last];
    a.out_fast = out->stride[last], a.out_stride = out->stride[fast];
    const int64_t down = (a.rows + TILE - 1) / TILE, across = (a.columns + TILE - 1) / TILE;
    int64_t outside = 1;
    for (int b = 0; b < out->rank; b++)
        if (b != fast && b != last) {
            a.size[a.rank] = out->size[b], a.stride[0][a.rank] = out->stride[b], a.stride[1][a.rank] = in->stride[b];
            outside *= a.size[a.rank++];
        }
    if (down > INT32_MAX / across || down * across > INT32_MAX / outside) return false;
    a.tiles_down = (uint32_t)down, a.tiles_across = (uint32_t)across;
    *e = launch(o->each == 8 ? tile_kernel_f64() : tile_kernel_f32(), down * across * outside, TILE_THREADS, 0, &a, q);
    return true;
}

/* ---- a step ---- */

/* Dense operands need no index, and go in one launch of any size. */
static bool fits(const operands *o)
{
    bool dense = outputs_dense(o);
    for (int k = o->outs; k < o->count; k++) dense &= layout_is_dense(&o->of[k]);
    return dense || operands_fit(o);
}

/* In halves, until they do. */
static cudaError_t launch_parts(const operands *o, const machine_program *p, cudaStream_t q)
{
    operands low, high;
    if (fits(o)) return launch_once(o, p, q);
    operands_halve(o, &low, &high);
    cudaError_t e = launch_parts(&low, p, q);
    return e != cudaSuccess ? e : launch_parts(&high, p, q);
}

cudaError_t machine_launch(const step *s, const frame *f, cudaStream_t q)
{
    operands o;
    machine_program p;
    double num[PROGRAM_NUMBERS];
    cudaError_t e;
    for (int k = 0; k < s->nums; k++) num[k] = f->num[s->num[k]];
    operands_take(&o, s, f);
    if (layout_count(&o.of[0]) == 0) return cudaSuccess;
    if (machine_encode(&p, s->program, num, o.each == 8)) return cudaErrorNotSupported;
    operands_order(&o);
    return is_copy(s->program) && launch_tile(&o, q, &e) ? e : launch_parts(&o, &p, q);
}
