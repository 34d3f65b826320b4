/* machine.c - launches programs that go element by element. Axes are free to be taken in any order, so those of the outputs' memory
 * are. */
#include "launch.h"

#define SHARED_ALWAYS (48 << 10) /* bytes that a kernel may have without asking */
#define SHARED_MOST                                                                                                              \
    98304 /* bytes of the rows that vectors_for admits: the same for all threads, since it is a kernel's, not a launch's */
enum { OPERANDS = PROGRAM_OUTPUTS + PROGRAM_INPUTS };

/* Outputs, then inputs. */
typedef struct work {
    int outs, count;
    size_t each; /* bytes an element */
    void *at[OPERANDS];
    layout of[OPERANDS];
    machine_program program;
} work;

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

static void swap_axes(layout *l, int a, int b)
{
    const int64_t size = l->size[a], stride = l->stride[a];
    l->size[a] = l->size[b], l->stride[a] = l->stride[b];
    l->size[b] = size, l->stride[b] = stride;
}

static bool is_ordered(const layout *l)
{
    for (int a = 1; a < l->rank; a++)
        if (magnitude(l->stride[a]) > magnitude(l->stride[a - 1])) return false;
    return true;
}

/* Axes in the order of the first output's memory, as few as will do. */
static void order_axes(work *w)
{
    layout *given[OPERANDS];
    if (is_ordered(&w->of[0])) return;
    for (int k = 0; k < w->count; k++) given[k] = &w->of[k];
    for (int a = 1; a < w->of[0].rank; a++)
        for (int b = a; b > 0 && magnitude(w->of[0].stride[b]) > magnitude(w->of[0].stride[b - 1]); b--)
            for (int k = 0; k < w->count; k++) swap_axes(given[k], b, b - 1);
    layout_collapse(given, w->count);
}

/* ---- how an operand is reached ---- */

/* Does l repeat along the domain as at[e / run % size * stride]? */
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

static int lead_of(const work *w, const void *at) { return (int)((uintptr_t)at % 16 / w->each); }

static enum how how_of(const work *w, int k, const machine_head *h, machine_path *o)
{
    int64_t run, size, stride;
    if (layout_is_dense(&w->of[k])) return lead_of(w, w->at[k]) == h->lead ? HOW_VECTORS : HOW_SCALARS;
    if (h->n > INT32_MAX || !cycles(&w->of[k], &run, &size, &stride)) return HOW_WALK;
    o->run = divide_by32(run), o->size = divide_by32(size), o->stride = (int32_t)stride;
    if (size == 1) return HOW_SINGLE;
    const int64_t width = 16 / (int64_t)w->each;
    if (run == 1 && stride == 1 && size % width == 0 && lead_of(w, w->at[k]) == h->lead && h->lead == 0) return HOW_ROUND;
    return run == 1 && size >= width ? HOW_CYCLE : run >= width ? HOW_RUNS : HOW_ANY;
}

/* All outputs dense, and vectors of one those of all? */
static bool outputs_dense(const work *w)
{
    for (int k = 0; k < w->outs; k++)
        if (!layout_is_dense(&w->of[k]) || lead_of(w, w->at[k]) != lead_of(w, w->at[0])) return false;
    return true;
}

static void set_strides(const work *w, int k, int32_t *stride)
{
    for (int x = 0; x < w->of[k].rank; x++) stride[x] = w->of[k].size[x] > 1 ? (int32_t)w->of[k].stride[x] : 0;
}

static bool is_plain(const work *w)
{
    bool plain = outputs_dense(w);
    for (int k = w->outs; k < w->count && plain; k++)
        plain = layout_is_dense(&w->of[k]) && lead_of(w, w->at[k]) == lead_of(w, w->at[0]);
    return plain;
}

static void set_head(const work *w, machine_head *h)
{
    h->n = layout_count(&w->of[0]), h->out_dense = outputs_dense(w);
    h->lead = h->out_dense ? lead_of(w, w->at[0]) : 0;
    h->last = w->program.last, h->inputs = (uint8_t)(w->count - w->outs);
    for (int k = 0; k < w->outs; k++) h->out[k] = w->at[k];
    for (int k = 0; k < h->inputs; k++) h->in[k] = w->at[w->outs + k];
}

static void set_paths(const work *w, const machine_head *h, machine_paths *p)
{
    p->rank = w->of[0].rank;
    for (int x = 0; x < p->rank; x++) p->size[x] = divide_by32(w->of[0].size[x]);
    for (int k = 0; k < w->outs && !h->out_dense; k++) set_strides(w, k, p->out_stride[k]);
    for (int k = 0; k < h->inputs; k++) {
        p->in[k].how = (uint32_t)how_of(w, w->outs + k, h, &p->in[k]);
        if (p->in[k].how == HOW_WALK) set_strides(w, w->outs + k, p->in_stride[k]);
    }
}

/* More vectors a thread pay the dispatch for more elements; but all multiprocessors should have several thread blocks, and rows of shared
 * memory must leave room for them. */
static int vectors_for(const machine_program *p, int64_t vectors)
{
    if (vectors <= MACHINE_MIDDLE || p->rows > 12) return 1;
    return p->rows <= 6 && vectors > MACHINE_LARGE ? MACHINE_VECTORS : 2;
}

static const void *kernel_of(const work *w, bool small, int vectors, bool plain)
{
    machine_kernels *const kernels[2][4] = { { MACHINE_KERNELS(f32) }, { MACHINE_KERNELS(f64) } };
    return kernels[w->each == 8][2 * small + w->program.heavy](vectors, plain);
}

typedef union machine_args {
    machine_head head;
    machine_short_f32 short_f32;
    machine_long_f32 long_f32;
    machine_short_f64 short_f64;
    machine_long_f64 long_f64;
} machine_args;

/* Asks for the shared memory that a kernel does not have anyway. */
static cudaError_t launch_rows(const void *kernel, int64_t blocks, int threads, size_t shared, machine_args *a, cudaStream_t q)
{
    cudaError_t e = cudaSuccess;
    if (shared > SHARED_ALWAYS) e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_MOST);
    return e == cudaSuccess ? launch_early(kernel, blocks, threads, shared, a, q) : e;
}

static cudaError_t launch_once(const work *w, cudaStream_t q)
{
    machine_args a;
    const bool wide = w->each == 8, plain = is_plain(w) && w->program.steps <= MACHINE_SHORT;
    set_head(w, &a.head);
    const bool small = a.head.n <= MACHINE_SMALL;
    const int64_t width = small ? 1 : 16 / (int64_t)w->each, vectors = (a.head.lead + a.head.n + width - 1) / width;
    const int each = small ? 1 : vectors_for(&w->program, vectors);
    const uint32_t threads = (uint32_t)MACHINE_THREADS(each), row = (uint32_t)each * threads;
    a.head.begins = w->program.first != ROW_NONE, a.head.first = a.head.begins ? w->program.first * row : 0;
    a.head.length =
        (uint8_t)machine_pack(wide ? (void *)a.short_f64.code : a.short_f32.code, &w->program, wide, (int)row, each == 1);
    if (small) a.head.lead = 0;
    if (!plain) set_paths(w, &a.head, wide ? &a.long_f64.paths : &a.long_f32.paths);
    return launch_rows(kernel_of(w, small, each, plain), (vectors + row - 1) / row, (int)threads,
                       w->program.rows * row * (size_t)width * w->each, &a, q);
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
        if (in->stride[a] != 0 && magnitude(in->stride[a]) < magnitude(in->stride[fast])) fast = a;
    return fast == last || out->size[fast] < TILE / 4 || out->size[last] < TILE / 4 ? -1 : fast;
}

static bool launch_tile(const work *w, cudaStream_t q, cudaError_t *e)
{
    const layout *out = &w->of[0], *in = &w->of[1];
    const int fast = tile_axis(out, in), last = out->rank - 1;
    if (fast < 0) return false;
    tile_args a = { .out = w->at[0], .in = w->at[1], .rows = out->size[fast], .columns = out->size[last] };
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
    *e = launch(w->each == 8 ? tile_kernel_f64() : tile_kernel_f32(), down * across * outside, TILE_THREADS, 0, &a, q);
    return true;
}

/* ---- domains too large for indices of 32 bits ---- */

/* Is every index that a kernel divides or walks to one of 32 bits? */
static bool fits(const work *w)
{
    int64_t low, high;
    bool dense = outputs_dense(w);
    for (int k = w->outs; k < w->count; k++) dense &= layout_is_dense(&w->of[k]);
    for (int k = 0; k < w->count && !dense; k++) {
        layout_span(&w->of[k], &low, &high);
        if (low < -INT32_MAX || high > INT32_MAX) return false;
    }
    return dense || layout_count(&w->of[0]) <= INT32_MAX / 2;
}

/* How far operands reach along an axis, and never less than the axis is long. */
static int64_t reach(const work *w, int a)
{
    int64_t most = w->of[0].size[a];
    for (int k = 0; k < w->count; k++) {
        int64_t r = (w->of[k].size[a] - 1) * magnitude(w->of[k].stride[a]);
        most = r > most ? r : most;
    }
    return most;
}

/* Halves the farthest axis until they are. */
static cudaError_t launch_parts(const work *w, cudaStream_t q)
{
    if (fits(w)) return launch_once(w, q);
    int far = 0;
    for (int a = 0; a < w->of[0].rank; a++)
        if (w->of[0].size[a] > 1 && (w->of[0].size[far] == 1 || reach(w, a) > reach(w, far))) far = a;
    work low = *w, high = *w;
    const int64_t half = w->of[0].size[far] / 2;
    for (int k = 0; k < w->count; k++) {
        low.of[k].size[far] = half, high.of[k].size[far] -= half;
        high.at[k] = (char *)w->at[k] + half * w->of[k].stride[far] * (int64_t)w->each;
    }
    cudaError_t e = launch_parts(&low, q);
    return e != cudaSuccess ? e : launch_parts(&high, q);
}

/* ---- a step ---- */

static void take_operands(work *w, const step *s, const frame *f)
{
    w->outs = s->outs, w->count = s->outs + s->ins, w->each = s->out[0].at.type == DUET_F32 ? 4 : 8;
    for (int k = 0; k < w->count; k++) {
        const operand *o = k < s->outs ? &s->out[k] : &s->in[k - s->outs];
        w->at[k] = f->data[o->slot], w->of[k] = o->at;
    }
}

cudaError_t machine_launch(const step *s, const frame *f, cudaStream_t q)
{
    work w;
    double num[PROGRAM_NUMBERS];
    cudaError_t e;
    for (int k = 0; k < s->nums; k++) num[k] = f->num[s->num[k]];
    take_operands(&w, s, f);
    if (layout_count(&w.of[0]) == 0) return cudaSuccess;
    if (machine_encode(&w.program, s->program, num, w.each == 8)) return cudaErrorNotSupported;
    order_axes(&w);
    return is_copy(s->program) && launch_tile(&w, q, &e) ? e : launch_parts(&w, q);
}
