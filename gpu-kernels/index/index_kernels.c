/* index_kernels.c - launches scans, gathers (take, one_hot), scatters and histograms. sort.c
 * launches sorts. */
#include "index_kernels.h"
#include "dtype.h"
#include "min_max.h"
#include <string.h>

/* ---- scans ---- */

#define SHORT_LINE 64
#define MANY_LINES (1 << 14)

static bool by_tiles(const axis_split *at)
{
    const int64_t n = at->along.size[0], inner = layout_count(&at->inner),
                  lines = layout_count(&at->outer) * inner;
    return n > SHORT_LINE && (inner == 1 || (n > 1024 && lines < MANY_LINES));
}

static int64_t tiles_of(const axis_split *at)
{
    const int64_t lines = layout_count(&at->outer) * layout_count(&at->inner);
    return lines * quotient_up(at->along.size[0], SCAN_BLOCK);
}

/* Is a scan that first sums the tiles faster than one that looks back? The look-back scan reads the
 * input only once, but takes about 50 ns for each tile of a line. Only many lines at the same time
 * hide that. */
#define FEW_LINES  8
#define FEW_TILES  1024
#define MANY_TILES 128 /* tiles of a line */
static bool sums_first(int64_t lines, int64_t tiles)
{
    return tiles > 1 && (tiles > MANY_TILES || lines <= FEW_LINES || lines * tiles <= FEW_TILES);
}

/* Bytes of the ticket and the states of the tiles. The sums follow them. */
static size_t states_bytes(int64_t tiles) { return round_256((size_t)(tiles + 1) * sizeof(uint32_t)); }

size_t scan_workspace(const step *s)
{
    const axis_split at = axis_split_at(&s->in[0].at, s->attr.index.axis, 1);
    if (!by_tiles(&at) || at.along.size[0] <= SCAN_BLOCK) return 0;
    return states_bytes(tiles_of(&at)) + (size_t)tiles_of(&at) * 2 * sizeof(uint64_t);
}

/* Launches up to three kernels: the sums of tiles, the prefixes of these sums, and the scans of the
 * tiles. The later ones are launched early and wait for the previous one. */
static cudaError_t scan_by_sums(scan_args *a, duet_dtype type, bool product, cudaStream_t q)
{
    const int64_t tiles = a->lines * a->tiles;
    a->chained = a->tiles > SCAN_CHAIN_SHORT;
    cudaError_t e = launch(scan_kernel(type, product, SCAN_SUMS), tiles, INDEX_THREADS, 0, a, q);
    if (e == cudaSuccess && a->chained)
        e = launch_early(scan_kernel(type, product, SCAN_CHAINS), a->lines, SCAN_CHAIN_THREADS, 0, a, q);
    if (e != cudaSuccess) return e;
    return launch_early(scan_kernel(type, product, SCAN_AFTER), tiles, INDEX_THREADS, 0, a, q);
}

static cudaError_t scan_by_looking_back(scan_args *a, const void *kernel, char *scratch, cudaStream_t q)
{
    const int64_t tiles = a->lines * a->tiles;
    a->ticket = (uint32_t *)scratch;
    a->state = a->ticket + 1;
    a->sums = scratch + states_bytes(tiles);
    const cudaError_t e = cudaMemsetAsync(scratch, 0, states_bytes(tiles), q);
    if (e != cudaSuccess) return e;
    return launch(kernel, tiles, INDEX_THREADS, 0, a, q);
}

cudaError_t scan_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    char *scratch = w->scratch;
    const axis_split at = axis_split_at(&s->in[0].at, s->attr.index.axis, 1);
    const int64_t inner = layout_count(&at.inner);
    const duet_dtype type = s->out[0].at.type;
    const bool product = s->kernel == OP_cumprod;
    scan_args a = { .x = f->data[s->in[0].slot],
                    .out = f->data[s->out[0].slot],
                    .n = at.along.size[0],
                    .stride = at.along.stride[0] };
    a.lines = layout_count(&at.outer) * inner;
    a.tiles = quotient_up(a.n, SCAN_BLOCK);
    a.sums = scratch;
    a.by_inner = divide_by64(inner);
    a.by_tiles = divide_by64(a.tiles);
    a.outer = axes_of(&at.outer);
    a.inner = axes_of(&at.inner);
    if (!by_tiles(&at))
        return launch(scan_kernel(type, product, SCAN_LINES), quotient_up(a.lines, INDEX_THREADS),
                      INDEX_THREADS, 0, &a, q);
    if (sums_first(a.lines, a.tiles)) return scan_by_sums(&a, type, product, q);
    const void *kernel = scan_kernel(type, product, SCAN_TILES);
    if (a.tiles == 1) return launch(kernel, a.lines, INDEX_THREADS, 0, &a, q);
    return scan_by_looking_back(&a, kernel, scratch, q);
}

/* ---- gathers ---- */

static const uint64_t *one_of(duet_dtype type)
{
    static const uint64_t f32[2] = { 0x3f800000 }, f64[2] = { 0x3ff0000000000000 }, f16[2] = { 0x3c00 },
                          bf16[2] = { 0x3f80 }, integer[2] = { 1 };
    switch (type) {
    case DUET_F32:
    case DUET_C64: return f32;
    case DUET_F64:
    case DUET_C128: return f64;
    case DUET_F16: return f16;
    case DUET_BF16: return bf16;
    default: return integer;
    }
}

cudaError_t one_hot_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    const layout *by = &s->in[0].at;
    const size_t each = dtypes[s->out[0].at.type].bytes;
    take_args a = { .index = f->data[s->in[0].slot],
                    .out = f->data[s->out[0].slot],
                    .n = s->attr.one_hot.classes,
                    .type = (int32_t)by->type };
    a.count = layout_count(&s->out[0].at);
    a.by_inner = divide_by64(a.n);
    a.at = axes_of(by);
    a.lead = (int32_t)((uintptr_t)a.out % 16 / each);
    memcpy(a.one, one_of(s->out[0].at.type), sizeof a.one);
    const int64_t threads = a.count ? quotient_up(a.count + a.lead, 16 / (int64_t)each) : 0;
    return launch(take_kernel(each, TAKE_HOT), quotient_up(threads, INDEX_THREADS), INDEX_THREADS, 0, &a, q);
}

/* Can `by` contiguous elements be treated as one element in this layout? `inner` says that the
 * elements to join are along its last axis. */
static bool may_join(const layout *l, bool inner, int64_t by)
{
    const int last = l->rank - 1;
    bool may = !inner || (l->stride[last] == 1 && l->size[last] % by == 0);
    for (int d = 0; d < l->rank; d++) may &= (inner && d == last) || l->stride[d] % by == 0;
    return may;
}

static bool axis_split_may_join(const axis_split *at, int64_t by)
{
    return may_join(&at->outer, false, by) && may_join(&at->along, false, by) &&
           may_join(&at->inner, true, by);
}

static void join(axis_split *at, int64_t by)
{
    layout *all[] = { &at->outer, &at->along, &at->inner };
    for (int k = 0; k < 3; k++)
        for (int d = 0; d < all[k]->rank; d++)
            if (k == 2 && d == at->inner.rank - 1) at->inner.size[d] /= by;
            else all[k]->stride[d] /= by;
}

/* Treats several contiguous elements as one element of up to 16 bytes, if all layouts allow it.
 * Strides then count the larger elements. Returns the size of these. */
static size_t widened(axis_split *at, size_t each, const void *x, const void *out)
{
    int64_t by = 16 / (int64_t)each;
    while (by > 1 && (((uintptr_t)x | (uintptr_t)out) % (each * (size_t)by) || !axis_split_may_join(at, by)))
        by /= 2;
    join(at, by);
    return each * (size_t)by;
}

/* Returns the stride of a layout with one axis, or 0 if it has at most one element. */
static int64_t step_of(const layout *l) { return l->size[0] > 1 ? l->stride[0] : 0; }
static bool is_line(const layout *l) { return l->rank == 1; }
static bool is_run(const layout *l) { return l->rank == 1 && (l->size[0] <= 1 || l->stride[0] == 1); }

static int log_of(int64_t n, int most)
{
    int log = 0;
    while (log < most && (int64_t)1 << log < n) log++;
    return log;
}

/* Chooses the number of lanes that copy a row together, with `side` units for each lane. A group
 * copies `together` rows. Returns the number of thread blocks, or -1 if 32 bits do not suffice. */
static int64_t grouped(rows_args *a, int64_t rows, int64_t width, int64_t side, int64_t together)
{
    a->lanes = log_of(quotient_up(width, side), 5);
    const int64_t chunks = quotient_up(width, side << a->lanes),
                  each = together * (INDEX_THREADS >> a->lanes);
    if (rows > INT32_MAX || width > INT32_MAX || quotient_up(rows, each) * chunks > INT32_MAX) return -1;
    a->rows = (uint32_t)rows;
    a->width = (uint32_t)width;
    a->by_chunks = divide_by32(chunks);
    return quotient_up(rows, each) * chunks;
}

static void rows_of(rows_args *a, const axis_split *at, const void *x, void *out)
{
    *a = (rows_args){ .x = x, .out = out, .n = at->along.size[0], .stride = at->along.stride[0] };
    a->outer_stride = step_of(&at->outer);
    a->inner_stride = step_of(&at->inner);
}

/* Chooses the kernel for rows of `inner` contiguous elements. Returns the number of units of a row
 * that each lane copies. */
static int runs_form(int64_t inner, enum take_form *form)
{
    if (inner <= 32) {
        *form = TAKE_ROWS;
        return 1;
    }
    *form = inner <= 64 ? TAKE_ROWS2 : TAKE_ROWS4;
    return inner <= 64 ? 2 : 4;
}

/* Returns the number of thread blocks, or -1 if the layouts are not regular enough. */
static int64_t take_by_rows(rows_args *a, const axis_split *at, const layout *by, int64_t m, bool every,
                            enum take_form *form)
{
    layout index = *by;
    layout_collapse((layout *[]){ &index }, 1);
    const int64_t inner = layout_count(&at->inner), rows = layout_count(&at->outer) * m;
    if (!is_line(&at->outer) || !is_line(&at->inner) || index.rank > 1 || m > INT32_MAX) return -1;
    a->type = (int32_t)by->type;
    a->index_stride = index.rank ? step_of(&index) : 0;
    a->by_indices = divide_by32(m);
    a->by_width = divide_by32(inner <= INT32_MAX ? inner : 1);
    if (!every) {
        const int side = runs_form(inner, form);
        if (!is_run(&at->inner)) return -1;
        return grouped(a, rows, inner, side, ROWS_EACH / side);
    }
    *form = TAKE_EACH;
    if (rows * inner > INT32_MAX - ROWS_EACH * INDEX_THREADS) return -1;
    a->rows = (uint32_t)(rows * inner);
    return quotient_up(rows * inner, ROWS_EACH * INDEX_THREADS);
}

cudaError_t take_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    const layout *x = &s->in[0].at, *by = &s->in[1].at;
    axis_split at = axis_split_at(x, s->attr.index.axis, 1);
    take_args a = { .x = f->data[s->in[0].slot],
                    .index = f->data[s->in[1].slot],
                    .out = f->data[s->out[0].slot] };
    a.each = s->kernel == OP_take_along_axis;
    a.type = (int32_t)by->type;
    a.n = at.along.size[0];
    const size_t each = a.each ? dtypes[x->type].bytes : widened(&at, dtypes[x->type].bytes, a.x, a.out);
    const int64_t inner = layout_count(&at.inner),
                  m = a.each ? by->size[s->attr.index.axis] : layout_count(by);
    enum take_form form = TAKE_ANY;
    rows_args rows;
    rows_of(&rows, &at, a.x, a.out);
    rows.index = a.index;
    const int64_t blocks = take_by_rows(&rows, &at, by, m, a.each, &form);
    if (blocks >= 0) return launch(take_kernel(each, form), blocks, INDEX_THREADS, 0, &rows, q);
    a.stride = at.along.stride[0];
    a.count = layout_count(&at.outer) * m * inner;
    a.by_inner = divide_by64(inner);
    a.by_indices = divide_by64(m);
    a.outer = axes_of(&at.outer);
    a.inner = axes_of(&at.inner);
    a.at = axes_of(by);
    return launch(take_kernel(each, TAKE_ANY), quotient_up(a.count, INDEX_THREADS), INDEX_THREADS, 0, &a, q);
}

/* ---- scatters ---- */

/* Returns the number of thread blocks, or -1 if the layouts are not regular enough. */
static int64_t scatter_by_rows(scatter_args *a, axis_split at, axis_split z, size_t each,
                               enum scatter_form *form)
{
    const int64_t many = 16 / (int64_t)each, rows = layout_count(&at.outer) * at.along.size[0];
    const uintptr_t addresses = (uintptr_t)a->x | (uintptr_t)a->z | (uintptr_t)a->out;
    if (!is_line(&at.outer) || !is_run(&at.inner) || !is_line(&z.outer) || !is_line(&z.along) ||
        !is_run(&z.inner))
        return -1;
    const bool wide = addresses % 16 == 0 && axis_split_may_join(&at, many) && axis_split_may_join(&z, many);
    if (wide) {
        join(&at, many);
        join(&z, many);
    }
    const int64_t width = layout_count(&at.inner);
    const bool is_long = wide && width >= 128;
    rows_of(&a->rows, &at, a->x, a->out);
    a->rows.by_indices = divide_by32(a->n <= INT32_MAX ? a->n : 1);
    a->z_outer_stride = step_of(&z.outer);
    a->z_stride = step_of(&z.along);
    *form = wide ? SCATTER_UNITS : SCATTER_ROWS;
    if (is_long) *form = SCATTER_LONG;
    if (a->n > INT32_MAX) return -1;
    return grouped(&a->rows, rows, width, is_long ? ROWS_EACH : 1, 1);
}

size_t scatter_workspace(const step *s) { return places_scratch(layout_count(&s->in[1].at)); }

cudaError_t scatter_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    void *scratch = w->scratch;
    const layout *x = &s->in[0].at, *by = &s->in[1].at;
    const axis_split at = axis_split_at(x, s->attr.index.axis, 1),
                     z = axis_split_at(&s->in[2].at, s->attr.index.axis, by->rank);
    const int64_t inner = layout_count(&at.inner);
    const size_t each = dtypes[x->type].bytes;
    scatter_args a = { .x = f->data[s->in[0].slot],
                       .z = f->data[s->in[2].slot],
                       .out = f->data[s->out[0].slot] };
    a.count = layout_count(x);
    a.n = at.along.size[0];
    a.m = layout_count(by);
    a.stride = at.along.stride[0];
    a.by_inner = divide_by64(inner);
    a.by_n = divide_by64(a.n);
    a.x_outer = axes_of(&at.outer);
    a.x_inner = axes_of(&at.inner);
    a.z_outer = axes_of(&z.outer);
    a.z_inner = axes_of(&z.inner);
    a.z_along = axes_of(&z.along);
    uint32_t *keys = NULL, *order = NULL;
    cudaError_t e = cudaSuccess;
    if (a.m && a.count) e = sort_places(f->data[s->in[1].slot], by, a.n, scratch, &keys, &order, q);
    a.keys = keys;
    a.order = order;
    if (e != cudaSuccess) return e;
    enum scatter_form form = SCATTER_ANY;
    const int64_t blocks = scatter_by_rows(&a, at, z, each, &form);
    if (blocks >= 0)
        return launch(scatter_kernel(s->kernel, x->type, each, form), blocks, INDEX_THREADS, 0, &a, q);
    return launch(scatter_kernel(s->kernel, x->type, each, SCATTER_ANY), quotient_up(a.count, INDEX_THREADS),
                  INDEX_THREADS, 0, &a, q);
}

/* ---- histograms ---- */

#define KEPT_BINS   4096 /* bins whose counters fit into shared memory */
#define EDGED_BINS  1024 /* bins whose edges fit there too */
#define KEPT_COUNTS 4096 /* counters in all copies together */
#define COUNT_WAVES 8    /* thread blocks for each multiprocessor */

static enum count_form count_form(const count_args *a)
{
    const bool floats = a->type == DUET_F32 || a->type == DUET_F64,
               dense = a->at.rank == 1 && (a->n <= 1 || a->at.stride[0] == 1);
    if (a->of.count > EDGED_BINS) return COUNT_ANY;
    return floats && dense && (uintptr_t)a->x % 16 == 0 ? COUNT_VECTORS : COUNT_NUMBERS;
}

cudaError_t count_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    layout at = s->in[0].at;
    count_args a = {
        .x = f->data[s->in[0].slot], .out = f->data[s->out[0].slot], .n = layout_count(&at), .of = bins_of(s)
    };
    layout_collapse((layout *[]){ &at }, 1);
    a.type = (int32_t)at.type;
    a.at = axes_of(&at);
    a.inverse = 1 / a.of.width;
    const enum count_form form = count_form(&a);
    a.copies = a.of.count <= KEPT_BINS;
    while (form != COUNT_ANY && a.copies < INDEX_THREADS / 32 && 2 * a.copies * a.of.count <= KEPT_COUNTS)
        a.copies *= 2;
    size_t edge = 0;
    if (form != COUNT_ANY) edge = counts_in_f32(at.type) ? 4 : 8;
    const int64_t blocks = quotient_up(a.n, INDEX_THREADS * (form == COUNT_ANY ? 1 : COUNT_EACH)),
                  most = (int64_t)card().blocks * COUNT_WAVES;
    const cudaError_t e = cudaMemsetAsync(a.out, 0, (size_t)a.of.count * sizeof *a.out, q);
    if (e != cudaSuccess) return e;
    return launch(count_kernel(at.type, form), smaller(blocks, most), INDEX_THREADS,
                  (size_t)a.of.count * (a.copies * 4 + edge), &a, q);
}
