/* layer_norm.c - launches layer_norm. Rows that fit stay in registers or shared memory. Longer
 * rows, which must be dense, are reduced first and then read a second time. */
#include "layer_norm.h"
#include "reduce_kernels.h"
#include "reduce_order.h"

#define ACC_NUMBERS 8 /* numbers in the result of a block in layer_norm.cu; that of a row has two */

typedef struct norms {
    norm_args args;
    bool wide;       /* elements are f64 */
    layout in, each; /* `in`: a row as one axis; `each`: one number for each row, dense */
} norms;

static size_t element(const norms *r) { return r->wide ? 8 : 4; }

/* Merges the axes of a row into one. The kernels support no other layout. */
static layout with_rows(const layout *l, int inner, int64_t n, int64_t stride)
{
    layout r = *l;
    r.rank += 1 - inner;
    r.size[r.rank - 1] = n;
    r.stride[r.rank - 1] = stride;
    return r;
}

static norms norms_of(const step *s)
{
    const layout *x = &s->in[0].at;
    row_path along = { 1, 1 };
    norms r = { .wide = x->type == DUET_F64 };
    norm_path(x, s->inner, &along);
    r.in = with_rows(x, s->inner, norm_length(s), along.stride);
    const int outer = r.in.rank - 1;
    layout_dense(&r.each, x->type, outer, x->size);
    r.args.row.n = r.in.size[outer];
    r.args.row.stride = along.stride;
    r.args.row.rows = layout_count(&r.each);
    r.args.row.outer = outer;
    for (int a = 0; a < outer; a++) {
        r.args.row.outer_size[a] = divide_by64(x->size[a]);
        r.args.row.outer_stride[a] = x->stride[a];
    }
    return r;
}

static norm_trim trim_of(const step *s, const frame *f, int which)
{
    const operand *o = norm_operand(s, which);
    norm_trim t = { .number = norm_number(s, f, which), .run = divide_by64(1) };
    row_path along = { 1, 0 };
    if (!o) return t;
    norm_path(&o->at, s->inner, &along);
    t.at = f->data[o->slot];
    t.stride = along.stride;
    t.run = divide_by64(along.run);
    for (int a = 0; a < o->at.rank - s->inner; a++) t.outer_stride[a] = o->at.stride[a];
    return t;
}

static bool is_long(const norms *r) { return r->args.row.n * (int64_t)element(r) > NORM_BYTES; }

/* Scratch memory for long rows: mean and variance of each row, then partial results. */
static reduce_args reduce_of(const norms *r, size_t *each)
{
    reduce_args a = { .n = 0 };
    reduce_rows_of(&a, &r->in, &r->each);
    *each = round_256((size_t)r->args.row.rows * 2 * element(r));
    return a;
}

size_t norm_workspace(const step *s)
{
    const norms r = norms_of(s);
    size_t each;
    if (!is_long(&r)) return 0;
    const reduce_args a = reduce_of(&r, &each);
    return each + (a.parts > 1 ? (size_t)(a.outputs * a.parts) * ACC_NUMBERS * element(&r) : 0);
}

static cudaError_t run_long(norms *r, const workspace *w, cudaStream_t q)
{
    const void *(*kernel)(int row, int form) = r->wide ? norm_kernel_f64 : norm_kernel_f32;
    size_t each;
    reduce_args a = reduce_of(r, &each);
    r->args.known = w->scratch;
    a.x = a.y = r->args.row.in;
    a.part = (char *)w->scratch + each;
    a.out = w->scratch;
    a.meet.counters = w->counters;
    const cudaError_t e = reduce_run(&a, kernel, 0, q);
    if (e != cudaSuccess) return e;
    const int64_t each_block = LAST_THREADS * LAST_EACH,
                  blocks = (r->args.row.n + each_block - 1) / each_block;
    return launch(kernel(0, FORM_LAST), blocks * r->args.row.rows, LAST_THREADS, 0, &r->args, q);
}

/* Can the rows of an operand with these strides be read 16 bytes at a time? */
static bool is_aligned(const norms *r, const void *p, int64_t stride, const int64_t *outer_stride)
{
    const int64_t width = 16 / (int64_t)element(r);
    bool fits = stride == 1 && (uintptr_t)p % 16 == 0;
    for (int a = 0; a < r->args.row.outer; a++) fits &= outer_stride[a] % width == 0;
    return fits;
}

static bool in_vectors(const norms *r)
{
    const row_args *a = &r->args.row;
    return a->n % (16 / (int64_t)element(r)) == 0 && (uintptr_t)a->out % 16 == 0 &&
           is_aligned(r, a->in, a->stride, a->outer_stride);
}

static bool is_trimmed_in_vectors(const norms *r)
{
    bool dense = r->args.trims;
    for (int k = 0; k < 2; k++) {
        const norm_trim *t = &r->args.with[k];
        dense &= t->at && t->run.by == 1 && is_aligned(r, t->at, t->stride, t->outer_stride);
    }
    return dense;
}

/* Launches a kernel for all rows with this many threads for each row. */
static cudaError_t run_threads(norms *r, const void *kernel, int threads, cudaStream_t q)
{
    return launch(kernel, (r->args.row.rows * threads + ROW_THREADS - 1) / ROW_THREADS, ROW_THREADS, 0,
                  &r->args, q);
}

static cudaError_t run_rows(norms *r, cudaStream_t q)
{
    const void *(*of)(int held, bool vectors, bool dense) =
        r->wide ? norm_row_kernel_f64 : norm_row_kernel_f32;
    const bool vectors = in_vectors(r), dense = is_trimmed_in_vectors(r);
    int held = 1;
    while (held * REDUCE_LANES < r->args.row.n) held *= 2;
    if (r->args.row.n <= ROW_HELD) return run_threads(r, of(held, vectors, dense), 32, q);
    const void *kernel = of(0, vectors, dense);
    const size_t bytes = (size_t)r->args.row.n * element(r);
    const cudaError_t e = with_shared(kernel, bytes + NORM_BYTES / 4, NORM_BYTES);
    if (e != cudaSuccess) return e;
    return launch(kernel, r->args.row.rows, ROW_THREADS, bytes, &r->args, q);
}

cudaError_t norm_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    norms r = norms_of(s);
    r.args.row.in = f->data[s->in[0].slot];
    r.args.row.out = f->data[s->out[0].slot];
    r.args.trims = s->attr.layer_norm.source[NORM_GAIN];
    r.args.r = f->num[s->num[0]];
    for (int k = NORM_GAIN; k <= NORM_BIAS; k++) r.args.with[k] = trim_of(s, f, k);
    if (r.args.row.n == 0 || r.args.row.rows == 0) return cudaSuccess;
    if (is_long(&r)) return run_long(&r, w, q);
    if (r.args.row.n <= REDUCE_FEW)
        return run_threads(&r, (r.wide ? norm_kernel_f64 : norm_kernel_f32)(0, FORM_SHORT), 4, q);
    return run_rows(&r, q);
}
