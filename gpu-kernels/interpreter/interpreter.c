/* interpreter.c - chooses and launches the interpreter kernels for element-wise programs. */
#include "compiled_operands.h"
#include "dtype.h"
#include "elementwise_operands.h"
#include <stdlib.h>
#include <string.h>

/* shared memory for the rows that vectors_for allows; a property of the kernel, hence equal for
 * all threads */
#define SHARED_MOST 98304

/* ---- how a kernel reads its operands ---- */

static bool is_plain(const operands *o)
{
    bool plain = operands_outputs_dense(o);
    for (int k = o->outs; k < o->count && plain; k++)
        plain = layout_is_dense(&o->of[k]) && operand_lead(o, k) == operand_lead(o, 0);
    return plain;
}

static void set_head(const operands *o, interp_head *h)
{
    h->n = layout_count(&o->of[0]);
    h->out_dense = operands_outputs_dense(o);
    h->lead = h->out_dense ? operand_lead(o, 0) : 0;
    h->inputs = (uint8_t)(o->count - o->outs);
    for (int k = 0; k < o->outs; k++) h->out[k] = o->at[k];
    for (int k = 0; k < h->inputs; k++) h->in[k] = o->at[o->outs + k];
}

static void set_paths(const operands *o, const interp_head *h, interp_paths *p)
{
    p->rank = o->of[0].rank;
    for (int x = 0; x < p->rank; x++) p->size[x] = divide_by32(o->of[0].size[x]);
    for (int k = 0; k < o->outs && !h->out_dense; k++) operand_strides(&o->of[k], p->out_stride[k]);
    for (int k = 0; k < h->inputs; k++) {
        p->in[k].how = (uint32_t)operand_how(o, o->outs + k, h->n, h->lead, &p->in[k]);
        if (p->in[k].how == HOW_WALK) operand_strides(&o->of[o->outs + k], p->in_stride[k]);
    }
    for (int k = 0; k < o->outs && k < PROGRAM_OUTPUTS; k++) p->types.out[k] = (uint8_t)o->of[k].type;
    for (int k = 0; k < h->inputs; k++) p->types.in[k] = (uint8_t)o->of[o->outs + k].type;
}

/* More vectors per thread spread the cost of a dispatch over more elements. But every
 * multiprocessor should have several thread blocks, and their rows must fit in shared memory. */
static int vectors_for(const interp_program *p, int64_t vectors)
{
    if (vectors <= INTERP_MIDDLE || p->rows > 12) return 1;
    return p->rows <= 6 && vectors > INTERP_LARGE ? INTERP_VECTORS : 2;
}

/* ---- choice of kernels ---- */

/* type: how the kernels interpret instructions: as f32, f64, i64, u64 or i32.
 * source, source_type, num: the program to compile a kernel for, the type in which it computes, and its
 * numbers; NULL: do not compile one
 * used: of a capture, or NULL */
typedef struct kernel_choice {
    duet_dtype type;
    bool converts;
    const program *source;
    duet_dtype source_type;
    const double *num;
    kernels_used *used;
} kernel_choice;

static bool within_i32(int type)
{
    return type == DUET_BOOL ||
           (dtype_is_integer((duet_dtype)type) && dtypes[type].bytes <= 4 && type != DUET_U32);
}

static bool takes_accumulator(const instruction *c)
{
    if (c->op == OP_SAVE) return true;
    for (int k = 0; k < op_infos[c->op].arity; k++)
        if (c->arg[k].kind == FROM_ACC) return true;
    return false;
}

/* Do all later uses see only the low bits of the result, or only values within a type? A bool
 * depends on all bits. */
static bool is_truncated(const step *s, const instruction *next, const instruction *end)
{
    if (next < end && next->op == OP_WRAP) return true;
    if (next == end || next->op != OP_STORE) return false;
    for (; next < end && next->op == OP_STORE; next++)
        if (s->out[next->arg[0].index].at.type == DUET_BOOL) return false;
    return next == end || !takes_accumulator(next);
}

static bool stays_within_i32(const step *s, const instruction *c, const instruction *end)
{
    if (c->op == OP_WRAP) return within_i32(c->arg[1].index) && c->arg[1].index != DUET_BOOL;
    if (c->op == OP_LOAD || c->op == OP_SAVE || c->op == OP_STORE) return true;
    return op_infos[c->op].flags & (DUET_WITHIN | DUET_TRUTH) || is_truncated(s, c + 1, end);
}

/* Does an i64 program give the same result in i32? It does if operands and numbers fit in i32, and
 * also each result that a later instruction sees. */
static bool fits_i32(const step *s, const double *num)
{
    const instruction *code = s->program->code, *end = code + s->program->length;
    if (step_type(s) != DUET_I64) return false;
    for (int k = 0; k < s->outs + s->ins; k++)
        if (!within_i32((k < s->outs ? &s->out[k] : &s->in[k - s->outs])->at.type)) return false;
    for (int k = 0; k < s->nums; k++) {
        int64_t n;
        memcpy(&n, &num[k], sizeof n);
        if (n != (int32_t)n) return false;
    }
    for (const instruction *c = code; c < end; c++)
        if (!stays_within_i32(s, c, end)) return false;
    return true;
}

/* Programs that only move elements treat them as bits. */
static kernel_choice as_bits(size_t each)
{
    return (kernel_choice){ .type = each == 4 ? DUET_F32 : DUET_F64 };
}

static kernel_choice kernel_choice_of(const step *s, const double *num, kernels_used *used)
{
    const duet_dtype type = step_type(s);
    kernel_choice c = as_bits(dtypes[type].bytes);
    if (program_converts(s))
        c = (kernel_choice){ .type = fits_i32(s, num) ? DUET_I32 : type, .converts = true };
    if ((dtype_is_f32_or_f64(type) || type == DUET_I64 || type == DUET_U64) && !program_moves(s)) {
        c.source = s->program;
        c.source_type = type;
        c.num = num;
        c.used = used;
    }
    return c;
}

static interp_kernels *converting(duet_dtype type, bool heavy)
{
    if (type == DUET_F32) return heavy ? interp_kernel_converts_heavy_f32 : interp_kernel_converts_f32;
    if (type == DUET_F64) return heavy ? interp_kernel_converts_heavy_f64 : interp_kernel_converts_f64;
    if (type == DUET_I32) return interp_kernel_converts_i32;
    return type == DUET_I64 ? interp_kernel_converts_i64 : interp_kernel_converts_u64;
}

static const void *kernel_of(const operands *o, kernel_choice w, const interp_program *p, bool small,
                             int vectors, bool plain)
{
    interp_kernels *const kernels[2][4] = { { INTERP_KERNELS(f32) }, { INTERP_KERNELS(f64) } };
    if (w.converts) return converting(w.type, p->heavy)(vectors, plain);
    if (o->each < 4) return (o->each == 1 ? interp_kernel_u8 : interp_kernel_u16)(vectors, plain);
    return kernels[o->each == 8][2 * small + p->heavy](vectors, plain);
}

typedef union interp_args {
    interp_head head;
    interp_short_f32 short_f32;
    interp_long_f32 long_f32;
    interp_short_f64 short_f64;
    interp_long_f64 long_f64;
} interp_args;

static cudaError_t launch_rows(const void *kernel, int64_t blocks, int threads, size_t shared, interp_args *a,
                               cudaStream_t q)
{
    const cudaError_t e = with_shared(kernel, shared, SHARED_MOST);
    if (e != cudaSuccess) return e;
    return launch_early(kernel, blocks, threads, shared, a, q);
}

/* ---- compiled kernels ---- */

/* For at most COMPILED_SMALL elements a thread computes one element, so that there are enough threads.
 * Otherwise it computes one vector; more were never faster. */
static void size_source(compiled_source *c, const operands *o, int64_t n, int lead)
{
    const int64_t width = n <= COMPILED_SMALL ? 1 : operands_width(o),
                  vectors = (n + lead + width - 1) / width;
    c->form.width = (uint8_t)width;
    c->form.threads = width == 1 ? 64 : 256;
    c->blocks = quotient_up(width == 1 ? n : vectors, c->form.threads);
    c->bytes = operands_bytes(o);
}

/* A kernel that was compiled, or will be, for the program. */
typedef struct compiled {
    compiled_kernel *kernel; /* NULL: none */
    bool ready;
    compiled_source source;
    ptx_args args;
} compiled;

static void find_compiled(compiled *c, const operands *o, const kernel_choice *w, const interp_head *h)
{
    interp_path paths[PROGRAM_INPUTS];
    c->kernel = NULL;
    if (!w->source) return;
    c->source = (compiled_source){ .program = w->source,
                                   .form.type = (uint8_t)w->source_type,
                                   .form.numbers = w->source->numbers };
    size_source(&c->source, o, h->n, h->lead);
    if (c->source.blocks > INT32_MAX) return;
    c->source.form.waits = can_wait(interp_kernel_f32(1, true)); /* as launch_early decides */
    compiled_form(&c->source.form, o, h, paths);
    c->kernel = compiled_kernel_for(&c->source, w->used, &c->ready);
    if (c->kernel && c->ready) compiled_args(&c->source.form, o, h, w->num, paths, &c->args);
}

/* ---- launch ---- */

/* A program, which is encoded for the interpreter when that has to run. */
typedef struct encoding {
    const program *source;
    const double *num;
    bool done;
    interp_program program;
} encoding;

/* Returns NULL if the interpreter cannot run the program. */
static const interp_program *encoded(encoding *e)
{
    if (!e->done && interp_encode(&e->program, e->source, e->num)) return NULL;
    e->done = true;
    return &e->program;
}

static cudaError_t launch_interpreter(const operands *o, kernel_choice w, const interp_program *p,
                                      interp_args *a, cudaStream_t q)
{
    const bool wide = w.type != DUET_F32 && w.type != DUET_I32,
               plain = !w.converts && is_plain(o) && p->steps <= INTERP_SHORT;
    const bool small = a->head.n <= INTERP_SMALL && !w.converts && o->each >= 4;
    const int64_t width = small ? 1 : operands_width(o),
                  vectors = (a->head.lead + a->head.n + width - 1) / width;
    const int each = small ? 1 : vectors_for(p, vectors);
    const uint32_t threads = (uint32_t)INTERP_THREADS(each), row = (uint32_t)each * threads;
    a->head.last = p->last;
    a->head.begins = p->first != ROW_NONE;
    a->head.first = a->head.begins ? p->first * row : 0;
    a->head.length = (uint8_t)interp_pack(wide ? (void *)a->short_f64.code : a->short_f32.code, p, w.type,
                                          (int)row, each == 1);
    if (small) a->head.lead = 0;
    if (!plain) set_paths(o, &a->head, wide ? &a->long_f64.paths : &a->long_f32.paths);
    return launch_rows(kernel_of(o, w, p, small, each, plain), (vectors + row - 1) / row, (int)threads,
                       p->rows * row * (size_t)width * o->each, a, q);
}

static cudaError_t launch_once(const operands *o, kernel_choice w, encoding *e, cudaStream_t q)
{
    interp_args a;
    compiled c;
    set_head(o, &a.head);
    find_compiled(&c, o, &w, &a.head);
    if (c.kernel && c.ready && compiled_kernel_launch(c.kernel, &c.source, &c.args, q)) return cudaSuccess;
    const interp_program *p = encoded(e);
    return p ? launch_interpreter(o, w, p, &a, q) : cudaErrorNotSupported;
}

/* ---- copies between operands whose fastest axes differ ---- */

static bool is_copy(const step *s)
{
    const program *p = s->program;
    return p->length == 2 && p->code[0].op == OP_LOAD && p->code[1].op == OP_STORE && program_moves(s);
}

/* The fastest axis of the input if it differs from that of the output and both are long; otherwise
 * -1. */
static int tile_axis(const layout *out, const layout *in)
{
    const int last = out->rank - 1;
    int fast = last;
    if (in->stride[last] == 0) return -1;
    for (int a = 0; a < out->rank; a++)
        if (in->stride[a] != 0 && llabs(in->stride[a]) < llabs(in->stride[fast])) fast = a;
    return fast == last || out->size[fast] < TILE / 4 || out->size[last] < TILE / 4 ? -1 : fast;
}

static const void *tile_kernel(size_t each)
{
    if (each < 4) return each == 1 ? tile_kernel_u8() : tile_kernel_u16();
    if (each == 4) return tile_kernel_f32();
    return tile_kernel_f64();
}

static bool launch_tile(const operands *o, cudaStream_t q, cudaError_t *e)
{
    const layout *out = &o->of[0], *in = &o->of[1];
    const int fast = tile_axis(out, in), last = out->rank - 1;
    if (fast < 0) return false;
    tile_args a = { .out = o->at[0], .in = o->at[1], .rows = out->size[fast], .columns = out->size[last] };
    a.in_fast = in->stride[fast];
    a.in_stride = in->stride[last];
    a.out_fast = out->stride[last];
    a.out_stride = out->stride[fast];
    const int64_t down = (a.rows + TILE - 1) / TILE, across = (a.columns + TILE - 1) / TILE;
    int64_t outside = 1;
    for (int b = 0; b < out->rank; b++)
        if (b != fast && b != last) {
            a.size[a.rank] = out->size[b];
            a.stride[0][a.rank] = out->stride[b];
            a.stride[1][a.rank] = in->stride[b];
            outside *= a.size[a.rank++];
        }
    if (down > INT32_MAX / across || down * across > INT32_MAX / outside) return false;
    a.tiles_down = (uint32_t)down;
    a.tiles_across = (uint32_t)across;
    *e = launch(tile_kernel(o->each), down * across * outside, TILE_THREADS, 0, &a, q);
    return true;
}

/* ---- launch of a step ---- */

/* Halves the operands until they fit. */
static cudaError_t launch_parts(const operands *o, kernel_choice w, encoding *p, cudaStream_t q)
{
    operands low, high;
    if (operands_reachable(o)) return launch_once(o, w, p, q);
    operands_halve(o, &low, &high);
    cudaError_t e = launch_parts(&low, w, p, q);
    if (e != cudaSuccess) return e;
    return launch_parts(&high, w, p, q);
}

static cudaError_t launch_operands(const step *s, operands *o, kernel_choice w, encoding *p, cudaStream_t q)
{
    cudaError_t e;
    operands_order(o);
    if (is_copy(s) && launch_tile(o, q, &e)) return e;
    return launch_parts(o, w, p, q);
}

/* Elements of 16 bytes, and misaligned elements of 8 bytes, are moved as two parts. */
static bool goes_by_parts(const operands *o, duet_dtype type)
{
    if (type != DUET_C64) return type == DUET_C128;
    for (int k = 0; k < o->count; k++)
        if ((uintptr_t)o->at[k] % 8) return true;
    return false;
}

static cudaError_t launch_complex(const step *s, operands *o, encoding *p, cudaStream_t q)
{
    const duet_dtype part = step_type(s) == DUET_C64 ? DUET_F32 : DUET_F64;
    cudaError_t e = cudaSuccess;
    if (operands_as_pairs(o, part)) return launch_operands(s, o, as_bits(o->each), p, q);
    for (int k = 0; k < 2 && e == cudaSuccess; k++) {
        operands half = operands_halves(o, part, k);
        e = launch_operands(s, &half, as_bits(half.each), p, q);
    }
    return e;
}

cudaError_t interp_launch(const step *s, const frame *f, const workspace *space, cudaStream_t q)
{
    operands o;
    double num[PROGRAM_NUMBERS];
    for (int k = 0; k < s->nums; k++) num[k] = f->num[s->num[k]];
    const kernel_choice w = kernel_choice_of(s, num, space->used);
    operands_take(&o, s, f, dtypes[w.converts ? w.type : step_type(s)].bytes);
    if (layout_count(&o.of[0]) == 0) return cudaSuccess;
    encoding p;
    p.source = s->program;
    p.num = num;
    p.done = false;
    if (goes_by_parts(&o, step_type(s))) return launch_complex(s, &o, &p, q);
    return launch_operands(s, &o, w, &p, q);
}
