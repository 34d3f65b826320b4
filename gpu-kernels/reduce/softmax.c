/* softmax.c - launches softmax and log_softmax. Rows that fit stay in registers or shared memory.
 * For longer rows, two reductions compute maximum and sum, and a third pass reads the row again. */
#include "reduce_kernels.h"
#include "reduce_order.h"

#define LONG_SUM OP_softmax /* the reduction of exp(x - with), in the kernel table of softmax */

typedef struct rows {
    row_args args;
    bool wide;       /* elements are f64 */
    layout in, each; /* each: one number for each row, dense */
} rows;

static size_t element(const rows *r) { return r->wide ? 8 : 4; }

static rows rows_of(const step *s)
{
    const layout *in = &s->in[0].at;
    const int last = in->rank - 1;
    rows r = { .wide = in->type == DUET_F64, .in = *in };
    layout outside = *in;
    layout *one[] = { &outside };
    layout_dense(&r.each, in->type, last, in->size);
    outside.rank = last;
    layout_collapse(one, 1);
    r.args.n = in->size[last];
    r.args.stride = in->stride[last];
    r.args.rows = layout_count(&outside);
    r.args.outer = outside.rank;
    for (int a = 0; a < outside.rank; a++) {
        r.args.outer_size[a] = divide_by64(outside.size[a]);
        r.args.outer_stride[a] = outside.stride[a];
    }
    return r;
}

static bool is_long(const rows *r) { return r->args.n * (int64_t)element(r) > ROW_BYTES; }

/* Scratch memory for long rows: maxima, sums, then partial results of both. */
static reduce_args reduce_of(const rows *r, size_t *each)
{
    reduce_args a = { .n = 0 };
    reduce_rows_of(&a, &r->in, &r->each);
    *each = round_256((size_t)r->args.rows * element(r));
    return a;
}

size_t softmax_workspace(const step *s)
{
    const rows r = rows_of(s);
    size_t each;
    if (!is_long(&r)) return 0;
    const reduce_args a = reduce_of(&r, &each);
    return 2 * each + reduce_part_bytes(&a, OP_max, r.wide);
}

static cudaError_t run_long(rows *r, int op, const workspace *w, cudaStream_t q)
{
    const void *(*kernel)(int row, int form) = r->wide ? softmax_kernel_f64 : softmax_kernel_f32;
    size_t each;
    reduce_args a = reduce_of(r, &each);
    char *scratch = w->scratch;
    r->args.most = scratch;
    r->args.sum = scratch + each;
    a.x = a.y = r->args.in;
    a.part = scratch + 2 * each;
    a.out = scratch;
    a.meet.counters = w->counters;
    cudaError_t e = reduce_run(&a, r->wide ? reduce_kernel_f64 : reduce_kernel_f32, OP_max, q);
    if (e != cudaSuccess) return e;
    a.with = scratch;
    a.out = scratch + each;
    e = reduce_run(&a, kernel, LONG_SUM, q);
    if (e != cudaSuccess) return e;
    const int64_t each_block = LAST_THREADS * LAST_EACH, blocks = (r->args.n + each_block - 1) / each_block;
    return launch(kernel(op, FORM_LAST), blocks * r->args.rows, LAST_THREADS, 0, &r->args, q);
}

/* Launches a kernel for all rows with this many threads for each row. */
static cudaError_t run_rows(const rows *r, const void *kernel, int threads, cudaStream_t q)
{
    row_args a = r->args;
    return launch(kernel, (a.rows * threads + ROW_THREADS - 1) / ROW_THREADS, ROW_THREADS, 0, &a, q);
}

/* Can every row be read and written 16 bytes at a time? */
static bool in_vectors(const rows *r)
{
    const uint64_t width = 16 / element(r);
    bool fits = r->args.stride == 1 && (uint64_t)r->args.n % width == 0 &&
                ((uintptr_t)r->args.in | (uintptr_t)r->args.out) % 16 == 0;
    for (int a = 0; a < r->args.outer; a++) fits &= (uint64_t)r->args.outer_stride[a] % width == 0;
    return fits;
}

static cudaError_t run_warps(const rows *r, int op, cudaStream_t q)
{
    int held = 1;
    while (held * REDUCE_LANES < r->args.n) held *= 2;
    return run_rows(r, (r->wide ? softmax_warp_kernel_f64 : softmax_warp_kernel_f32)(op, held, in_vectors(r)),
                    32, q);
}

static cudaError_t run_kept(const rows *r, const void *kernel, cudaStream_t q)
{
    row_args a = r->args;
    const size_t bytes = (size_t)a.n * element(r);
    cudaError_t e = cudaSuccess;
    if (bytes > ROW_BYTES / 3)
        e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, ROW_BYTES);
    if (e != cudaSuccess) return e;
    return launch(kernel, a.rows, ROW_THREADS, bytes, &a, q);
}

cudaError_t softmax_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    const void *(*kernel)(int row, int form);
    rows r = rows_of(s);
    r.args.in = f->data[s->in[0].slot];
    r.args.out = f->data[s->out[0].slot];
    kernel = r.wide ? softmax_kernel_f64 : softmax_kernel_f32;
    if (r.args.n == 0 || r.args.rows == 0) return cudaSuccess;
    if (is_long(&r)) return run_long(&r, s->kernel, w, q);
    if (r.args.n <= REDUCE_FEW) return run_rows(&r, kernel(s->kernel, FORM_SHORT), 4, q);
    if (r.args.n <= ROW_HELD) return run_warps(&r, s->kernel, q);
    return run_kept(&r, kernel(s->kernel, FORM_ROW), q);
}
