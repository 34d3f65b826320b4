/* program_reduce.c - launches reductions of the results of a program. Along rows a warp takes one
 * block of an output. Along columns threads take neighbouring outputs. With few elements a thread
 * takes a whole output. */
#include "compiled_reduce.h"
#include "dtype.h"
#include "reduce_order.h"
#include <stdlib.h>

/* The arguments for both element types start and end with the same fields. */
typedef union program_reduce_args {
    program_reduce_args_f32 f32;
    program_reduce_args_f64 f64;
} program_reduce_args;

typedef struct reduction {
    const step *s;
    interp_program program;
    program_reduce_axes axes;
    duet_dtype type;       /* the type of the computation */
    size_t each;           /* bytes of an element of that type */
    int64_t blocks, parts; /* for one output */
    int vectors;
    enum form form;
} reduction;

/* ---- axes ---- */

static layout axes_of(const layout *l, int from, int to)
{
    layout r = { .type = l->type, .rank = to - from };
    for (int a = from; a < to; a++) {
        r.size[a - from] = l->size[a];
        r.stride[a - from] = l->stride[a];
    }
    return r;
}

/* Sets the axes from .. to - 1 of all operands after those that a already has, merged where
 * possible. Returns their number. */
static int set_axes(reduction *r, int behind, int from, int to)
{
    layout all[PROGRAM_INPUTS + PROGRAM_OUTPUTS], *given[PROGRAM_INPUTS + PROGRAM_OUTPUTS] = { NULL };
    int at[PROGRAM_INPUTS + PROGRAM_OUTPUTS], n = 0;
    for (int k = 0; k < r->s->outs; k++, n++) {
        at[n] = PROGRAM_INPUTS + k;
        all[n] = axes_of(&r->s->out[k].at, from, to);
    }
    for (int k = 0; k < r->s->ins; k++, n++) {
        at[n] = k;
        all[n] = axes_of(&r->s->in[k].at, from, to);
    }
    for (int i = 0; i < n; i++) given[i] = &all[i];
    layout_collapse(given, n);
    for (int a = 0; a < all[0].rank; a++) r->axes.size[behind + a] = divide_by64(all[0].size[a]);
    for (int i = 0; i < n; i++)
        for (int a = 0; a < all[i].rank; a++) r->axes.stride[at[i]][behind + a] = all[i].stride[a];
    return all[0].rank;
}

static int64_t count(const program_reduce_axes *a, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++) n *= (int64_t)a->size[i].by;
    return n;
}

static void set_domain(reduction *r)
{
    program_reduce_axes *a = &r->axes;
    const int rank = r->s->out[0].at.rank, outer = rank - r->s->inner;
    a->outer = outer ? (uint8_t)set_axes(r, 0, 0, outer) : 0; /* no axes would become one axis of length 1 */
    a->inner = (uint8_t)set_axes(r, a->outer, outer, rank);
    a->outputs = count(a, 0, a->outer);
    a->n = count(a, a->outer, a->outer + a->inner);
    r->blocks = a->n ? (a->n + REDUCE_BLOCK - 1) / REDUCE_BLOCK : 1;
    a->outs = r->s->outs;
    for (const instruction *c = r->s->program->code; c < r->s->program->code + r->s->program->length; c++)
        if (op_infos[c->op].kind == KIND_REDUCE) a->row[c->arg[2].index] = c->op;
    for (int k = 0; k < r->s->outs; k++) a->types.out[k] = (uint8_t)r->s->out[k].at.type;
    for (int k = 0; k < r->s->ins; k++) a->types.in[k] = (uint8_t)r->s->in[k].at.type;
}

/* ---- choice of kernels ---- */

/* Where the lanes are stored, after rows of this many vectors. */
static void set_kept(reduction *r, int vectors)
{
    r->vectors = vectors;
    r->axes.kept = r->program.rows * vectors;
    for (int k = 0; k < r->s->outs; k++) {
        r->axes.lanes[k] = (uint16_t)r->axes.kept;
        r->axes.kept += (int32_t)(4 * reduce_lane_bytes(r->axes.row[k], r->each == 8) / 16);
    }
}

static size_t warp_bytes(const reduction *r) { return (size_t)r->axes.kept * 32 * 16; }

/* Are more inputs contiguous along the outputs than along the reduced axes? */
static bool is_columns(const reduction *r)
{
    const program_reduce_axes *a = &r->axes;
    int columns = 0;
    if (a->inner != 1 || !a->outer || a->size[a->outer - 1].by < PROGRAM_REDUCE_ACROSS / 2) return false;
    for (int k = 0; k < r->s->ins; k++) {
        const int64_t apart = llabs(a->stride[k][a->outer - 1]), along = llabs(a->stride[k][a->outer]);
        if (apart && along) columns += apart < along ? 1 : -1;
    }
    return columns > 0;
}

static void choose_form(reduction *r)
{
    const int width = 16 / (int)r->each, most = r->program.heavy ? 2 : PROGRAM_REDUCE_VECTORS;
    const int few = r->axes.n <= 2 * width ? 2 : most;
    r->form = FORM_THIN;
    r->axes.warps = 1;
    r->parts = 1;
    set_kept(r, few);
    if (r->axes.inner == 1 && r->axes.n <= few * width && warp_bytes(r) <= PROGRAM_REDUCE_BYTES) return;
    r->form = FORM_COLUMNS;
    r->parts = r->blocks;
    set_kept(r, 2);
    if (is_columns(r) && warp_bytes(r) * PROGRAM_REDUCE_THREADS / 32 <= PROGRAM_REDUCE_MOST) return;
    r->form = FORM_ROWS;
    if (r->axes.n > 2 * REDUCE_LANES) set_kept(r, most);
    if (warp_bytes(r) > PROGRAM_REDUCE_BYTES / 2) set_kept(r, 2);
    while (r->axes.warps < REDUCE_WARPS && r->axes.warps < r->blocks &&
           warp_bytes(r) * (size_t)r->axes.warps * 2 <= PROGRAM_REDUCE_BYTES)
        r->axes.warps *= 2;
    r->parts = (r->blocks + r->axes.warps - 1) / r->axes.warps;
}

static bool reduction_of(reduction *r, const step *s, const double *num)
{
    *r = (reduction){ .s = s, .type = step_type(s), .each = dtypes[step_type(s)].bytes };
    if (interp_encode(&r->program, s->program, num)) return false;
    set_domain(r);
    choose_form(r);
    r->axes.by_parts = divide_by64(r->parts);
    return true;
}

/* ---- parts ---- */

static size_t part_bytes(const reduction *r, int output)
{
    if (r->parts <= 1) return 0;
    return round_256((size_t)(r->axes.outputs * r->parts) *
                     reduce_acc_bytes(r->axes.row[output], r->each == 8));
}

size_t program_reduce_workspace(const step *s)
{
    reduction r;
    size_t bytes = 0;
    if (!reduction_of(&r, s, NULL)) return 0;
    for (int k = 0; k < s->outs; k++) bytes += part_bytes(&r, k);
    return bytes;
}

/* ---- launching ---- */

static program_reduce_kernels *converting(const reduction *r)
{
    const bool heavy = r->program.heavy;
    if (r->type == DUET_F32)
        return heavy ? program_reduce_kernel_converts_heavy_f32 : program_reduce_kernel_converts_f32;
    if (r->type == DUET_F64)
        return heavy ? program_reduce_kernel_converts_heavy_f64 : program_reduce_kernel_converts_f64;
    return r->type == DUET_I64 ? program_reduce_kernel_converts_i64 : program_reduce_kernel_converts_u64;
}

/* The form of a compiled kernel. */
static enum ptx_form compiled_form_of(const reduction *r)
{
    if (r->axes.n <= REDUCE_FEW && r->axes.inner == 1) return is_columns(r) ? PTX_FEW_ACROSS : PTX_FEW;
    return r->form == FORM_COLUMNS ? PTX_COLUMNS : PTX_ROWS;
}

static const void *kernel_of(const reduction *r)
{
    if (program_converts(r->s)) return converting(r)(r->vectors, (int)r->form);
    program_reduce_kernels *light = r->each == 8 ? program_reduce_kernel_f64 : program_reduce_kernel_f32,
                           *heavy = r->each == 8 ? program_reduce_kernel_heavy_f64
                                                 : program_reduce_kernel_heavy_f32;
    return (r->program.heavy ? heavy : light)(r->vectors, (int)r->form);
}

static interp_head head_of(const reduction *r, const frame *f)
{
    interp_head h = { .length = r->program.length,
                      .inputs = r->s->ins,
                      .begins = r->program.first != ROW_NONE };
    h.first = h.begins ? r->program.first * (uint32_t)r->vectors * 32 : 0;
    for (int k = 0; k < r->s->ins; k++) h.in[k] = f->data[r->s->in[k].slot];
    for (int k = 0; k < r->s->outs; k++) h.out[k] = f->data[r->s->out[k].slot];
    return h;
}

/* Warps per thread block: as many as fit, but not more than there are outputs and blocks. */
static int warps_of(const reduction *r)
{
    int warps = REDUCE_WARPS;
    while (warps > r->axes.warps && warp_bytes(r) * (size_t)warps > PROGRAM_REDUCE_BYTES) warps /= 2;
    return warps;
}

static cudaError_t launch_form(const reduction *r, void *args, cudaStream_t q)
{
    const program_reduce_axes *a = &r->axes;
    const void *kernel = kernel_of(r);
    const int warps = r->form == FORM_COLUMNS ? PROGRAM_REDUCE_THREADS / 32 : warps_of(r);
    const size_t shared = warp_bytes(r) * (size_t)warps;
    int64_t blocks = (a->outputs * r->parts * a->warps + warps - 1) / warps;
    if (r->form == FORM_THIN) blocks = (a->outputs + warps * 32 - 1) / (warps * 32);
    if (r->form == FORM_COLUMNS) {
        blocks = (a->outputs + PROGRAM_REDUCE_ACROSS - 1) / PROGRAM_REDUCE_ACROSS * r->blocks;
        cudaError_t e =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, PROGRAM_REDUCE_MOST);
        if (e != cudaSuccess) return e;
    }
    return launch(kernel, blocks, warps * 32, shared, args, q);
}

cudaError_t program_reduce_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    reduction r;
    program_reduce_args args;
    double num[PROGRAM_NUMBERS];
    char *part = w->scratch;
    for (int k = 0; k < s->nums; k++) num[k] = f->num[s->num[k]];
    if (!reduction_of(&r, s, num)) return cudaErrorNotSupported;
    if (r.axes.outputs == 0) return cudaSuccess;
    for (int k = 0; k < s->outs; k++) {
        r.axes.part[k] = part;
        part += part_bytes(&r, k);
    }
    if (compiled_reduce_launch(s, num, &r.axes, compiled_form_of(&r), f, w, q)) return cudaSuccess;
    r.axes.meet = meet_at(w->counters, r.axes.outputs, r.form == FORM_COLUMNS ? PROGRAM_REDUCE_ACROSS : 1);
    args.f32.head = head_of(&r, f);
    *(r.each == 8 ? &args.f64.axes : &args.f32.axes) = r.axes;
    interp_pack(r.each == 8 ? (void *)args.f64.code : args.f32.code, &r.program, r.type, r.vectors * 32,
                false);
    return launch_form(&r, &args, q);
}
