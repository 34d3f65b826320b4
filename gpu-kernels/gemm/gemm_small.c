/* gemm_small.c - launches products with few rows or few columns. The kernels of vendors leave most
 * of the card idle for these shapes. */
#include "dtype.h"
#include "emulated.h"
#include "joined.h"
#include "min_max.h"
#include <math.h>

#define SPLIT_PARTS     2
#define SPLIT_JOIN      1.4  /* microseconds for joining the sums of a cluster */
#define GEMM_TALL_OTHER 4096 /* bytes of shared memory that gemm_tall.cu uses besides b */

product_args product_args_of(const step *s, const frame *f, const workspace *w)
{
    const layout *at = &s->in[0].at, *bt = &s->in[1].at;
    product_args a = {
        .a = f->data[s->in[0].slot],
        .b = f->data[s->in[1].slot],
        .out = f->data[s->out[0].slot],
        .a_row = at->stride[0],
        .b_row = bt->stride[0],
        .b_column = bt->stride[1],
        .out_row = s->out[0].at.stride[0],
        .m = (int32_t)at->size[0],
        .k = (int32_t)at->size[1],
        .n = (int32_t)bt->size[1],
        .act = OP_LOAD,
        .alpha = s->nums ? f->num[s->num[0]] : 1,
    };
    a.b_is_there = !may_be_written(w, a.b, bt);
    if (!s->epilogue) return a;
    a.bias = f->data[s->in[2].slot];
    a.bias_stride = s->in[2].at.stride[0];
    a.act = epilogue_infos[s->epilogue].act;
    return a;
}

/* Do all lines of this length start at addresses aligned for vectors of `width` elements? */
static bool in_vectors(const void *p, int64_t line, int64_t lines, int64_t length, size_t bytes, int width)
{
    return (uintptr_t)p % (bytes * (size_t)width) == 0 && length % width == 0 &&
           (lines == 1 || line % width == 0);
}

/* A launch whose thread blocks are not in clusters. Formulas take one result at a time. */
static product_launch_args launch_of(product_args *a, const void *kernel, int64_t blocks, int threads)
{
    return (product_launch_args){ .kernel = kernel,
                                  .width = 1,
                                  .operand = -1,
                                  .blocks = blocks,
                                  .cluster = 1,
                                  .threads = threads,
                                  .args = a,
                                  .bytes = sizeof *a };
}

/* ---- few columns ---- */

/* Bytes of b in the shared memory of gemm_tall.cu. */
static size_t kept_bytes(const product_args *a, size_t each)
{
    const int reach = 32 * 16 / (int)each;
    return (size_t)((a->n + 1) / 2 * 2) * ((size_t)((a->k + reach - 1) / reach * reach) * each + 16);
}

/* The largest amount for any shape. Threads that launch different shapes at the same time set the
 * same attribute. */
static size_t shared_for_tall(void)
{
    const int most = card().shared - GEMM_TALL_OTHER;
    return most < GEMM_TALL_SHARED ? (size_t)most : GEMM_TALL_SHARED;
}

static cudaError_t run_tall(product_args *a, duet_dtype type, size_t shared, joined *j, cudaStream_t q)
{
    const size_t bytes = dtypes[type].bytes;
    const bool vectors = in_vectors(a->a, a->a_row, a->m, a->k, bytes, 16 / (int)bytes);
    const void *kernel = (type == DUET_F64 ? gemm_tall_kernel_f64
                                           : gemm_tall_kernel_f32)(a->n, vectors ? FORM_FLAT : FORM_STRIDED);
    const int64_t each = GEMM_TALL_THREADS / 32 * GEMM_TALL_ROWS, blocks = quotient_up(a->m, each),
                  most = 2 * card().blocks;
    product_launch_args l = launch_of(a, kernel, smaller(blocks, most), GEMM_TALL_THREADS);
    l.file = JOINED_TALL;
    l.operand = 0;
    l.operand_width = vectors ? 16 / (int)bytes : 1;
    l.number = (a->n + 1) / 2 - 1 + 8 * vectors;
    l.shared = shared;
    l.shared_most = shared_for_tall();
    return product_start(&l, j, q);
}

/* The kernel's number in joined.h. Kernels 8, 9 and 10 accept any strides, and up to 4, 10 and 16 columns. */
static int number_of(int columns, bool exact)
{
    if (exact) return columns / 2 - 1;
    return columns <= 4 ? 8 : columns <= 10 ? 9 : 10;
}

static cudaError_t run_skinny(product_args *a, duet_dtype type, joined *j, cudaStream_t q)
{
    const size_t kept = kept_bytes(a, dtypes[type].bytes);
    if (a->m >= GEMM_TALL_MIN_ROWS && kept <= shared_for_tall()) return run_tall(a, type, kept, j, q);
    const bool exact = a->b_column == 1 && in_vectors(a->b, a->b_row, a->k, a->n, dtypes[type].bytes, 2);
    const enum form form = exact ? FORM_FLAT : FORM_STRIDED;
    const void *kernel =
        (type == DUET_F64 ? gemm_small_mn_kernel_f64 : gemm_small_mn_kernel_f32)(a->n, (int)form);
    product_launch_args l = launch_of(a, kernel, quotient_up(a->m, GEMM_MN_ROWS), GEMM_MN_THREADS);
    l.file = JOINED_SMALL_MN;
    l.operand = 0;
    l.operand_width = 1;
    l.number = number_of(a->n, exact);
    return product_start(&l, j, q);
}

/* ---- few rows ---- */

/* matrix: the input that is the matrix. */
static cudaError_t run_matvec(product_args *a, int matrix, joined *j, cudaStream_t q)
{
    const bool by_rows = a->b_column == 1 || a->n == 1;
    const bool wide = by_rows ? in_vectors(a->b, a->b_row, a->k, a->n, 4, 4)
                              : in_vectors(a->b, a->b_column, a->n, a->k, 4, 4) &&
                                    in_vectors(a->a, a->a_row, a->m, a->k, 4, 4);
    const void *kernel = gemv_kernel(a->m, by_rows ? FORM_ROWS : FORM_COLUMNS, wide);
    product_launch_args l = launch_of(a, kernel, quotient_up(a->n, GEMV_COLUMNS), GEMV_THREADS);
    l.file = JOINED_GEMV;
    l.operand = matrix;
    l.operand_width = wide ? 4 : 1;
    l.number = (a->m != 1) + 2 * wide + 4 * !by_rows;
    return product_start(&l, j, q);
}

/* a times a column, as the product of a row and the transpose of a. */
static cudaError_t run_column(const product_args *a, const step *s, joined *j, const workspace *w,
                              cudaStream_t q)
{
    product_args t = *a;
    t.a = a->b;
    t.b = a->a;
    t.b_row = s->in[0].at.stride[1];
    t.b_column = s->in[0].at.stride[0];
    t.m = 1;
    t.n = a->m;
    t.bias_stride = 0;
    t.b_is_there = !may_be_written(w, t.b, &s->in[0].at);
    return run_matvec(&t, 0, j, q);
}

static int64_t tiles_of(const product_args *a, const split_kernel *t)
{
    return quotient_up(a->m, t->rows) * quotient_up(a->n, t->columns);
}

/* How a product is split: its tile, and the number of thread blocks that share a tile. */
typedef struct splitting {
    const split_kernel *t;
    int parts;
    double cost;
} splitting;

/* Expected time in microseconds, from figures measured on an H200. */
static double split_cost(const product_args *a, const split_kernel *t, int parts, double join, card_facts of)
{
    const double rounds = (double)quotient_up(tiles_of(a, t) * parts, of.blocks);
    if (t->shared > of.shared || (parts > 1 && !of.clusters)) return INFINITY;
    return t->once + rounds * (t->start + t->cost * a->k / parts / 1000) + (parts > 1 ? join : 0);
}

/* The kernels to choose from. */
typedef struct choice {
    const split_kernel *of;
    int count, parts;
    double join;
} choice;

static choice strict_ones(void)
{
    choice c = { .parts = SPLIT_PARTS, .join = SPLIT_JOIN };
    c.of = split_kernels(&c.count);
    return c;
}

static choice those_by_parts(void)
{
    choice c = { .parts = EMULATED_PARTS };
    c.of = emulated_gemm_small_kernels(&c.count);
    return c;
}

static splitting cheapest(const product_args *a, choice c)
{
    const card_facts here = card();
    splitting best = { c.of, 1, INFINITY };
    for (int i = 0; i < c.count; i++)
        for (int parts = 1; parts <= c.parts; parts *= 2) {
            const splitting s = { &c.of[i], parts, split_cost(a, &c.of[i], parts, c.join, here) };
            if (s.cost < best.cost) best = s;
        }
    return best;
}

/* Can the tensor memory accelerator copy an operand with this layout? Its address is checked when
 * the step runs. */
static bool can_be_described(const layout *l)
{
    return l->stride[1] == 1 && l->stride[0] > 0 && l->stride[0] % 4 == 0;
}

bool product_splits(const step *s)
{
    const int64_t *b = s->in[1].at.size;
    const product_args a = { .m = (int32_t)s->out[0].at.size[0], .k = (int32_t)b[0], .n = (int32_t)b[1] };
    if (s->math != DUET_MATH_SPLIT || !card().pairs || !product_has_few_rows(s) || product_is_thin(s) ||
        product_is_skinny(s))
        return false;
    if (!can_be_described(&s->in[0].at) || !can_be_described(&s->in[1].at)) return false;
    const double cost = cheapest(&a, those_by_parts()).cost;
    return cost < emulated_gemm_cost(s) && (!product_fits(s) || cost < cheapest(&a, strict_ones()).cost);
}

static product_launch_args launch_of_tiles(product_args *a, splitting s, bool wide)
{
    product_launch_args l = launch_of(a, s.t->kernel[wide], tiles_of(a, s.t) * s.parts, s.t->threads);
    l.cluster = a->parts = s.parts;
    l.shared = l.shared_most = (size_t)s.t->shared;
    return l;
}

static cudaError_t run_split_by(product_args *a, splitting s, joined *j, cudaStream_t q)
{
    int count;
    const bool wide =
        in_vectors(a->a, a->a_row, a->m, a->k, 4, 4) && in_vectors(a->b, a->b_row, a->k, a->n, 4, 4);
    product_launch_args l = launch_of_tiles(a, s, wide);
    l.file = JOINED_SPLIT_K;
    l.number = 2 * (int)(s.t - split_kernels(&count)) + wide;
    return product_start(&l, j, q);
}

static cudaError_t run_few(const product_args *a, splitting s, joined *j, cudaStream_t q)
{
    int count;
    emulated_gemm_small_args p = { .of = *a };
    product_launch_args l = launch_of_tiles(&p.of, s, true);
    cudaError_t e = emulated_describe(a->a, a->m, a->k, a->a_row, s.t->rows, &p.a);
    if (e == cudaSuccess) e = emulated_describe(a->b, a->k, a->n, a->b_row, EMULATED_UNIT / 2, &p.b);
    l.file = JOINED_EMULATED_FEW;
    l.number = (int)(s.t - emulated_gemm_small_kernels(&count));
    l.args = &p;
    l.bytes = sizeof p;
    return e == cudaSuccess ? product_start(&l, j, q) : e;
}

cudaError_t product_join(const step *s, joined *j, const frame *f, const workspace *w, cudaStream_t q)
{
    product_args a = product_args_of(s, f, w);
    a.out = joined_out(j, a.out);
    if (layout_count(&s->out[0].at) == 0) return cudaSuccess;
    if (product_is_thin(s)) return run_matvec(&a, 1, j, q);
    if (product_is_column(s)) return run_column(&a, s, j, w, q);
    if (product_is_skinny(s)) return run_skinny(&a, s->out[0].at.type, j, q);
    if (parts_of(s) == PARTS_FEW && kernels_splits_here(s, f))
        return run_few(&a, cheapest(&a, those_by_parts()), j, q);
    return run_split_by(&a, cheapest(&a, strict_ones()), j, q);
}

cudaError_t product_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    return product_join(s, NULL, f, w, q);
}
