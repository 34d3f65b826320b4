/* orders.c - launches scans, takes, scatters and histograms; sorts.c has the sorts. */
#include "orders.h"
#include "dtype.h"
#include <string.h>

axes axes_of(const layout *l)
{
    axes a = { .rank = l->rank };
    for (int d = 0; d < l->rank; d++) a.size[d] = divide_by64(l->size[d]), a.stride[d] = l->stride[d];
    return a;
}

/* ---- scans ---- */

#define SHORT_LINE 64
#define MANY_LINES (1 << 14)

static bool by_tiles(const cut *at)
{
    const int64_t n = at->along.size[0], inner = layout_count(&at->inner), lines = layout_count(&at->outer) * inner;
    return n > SHORT_LINE && (inner == 1 || (n > 1024 && lines < MANY_LINES));
}

static int64_t tiles_of(const cut *at)
{
    const int64_t lines = layout_count(&at->outer) * layout_count(&at->inner);
    return lines * quotient_up(at->along.size[0], SCAN_BLOCK);
}

/* The ticket and states, then the sums. */
static size_t states_bytes(int64_t tiles) { return round_256((size_t)(tiles + 1) * sizeof(uint32_t)); }

static size_t scan_scratch(const step *s)
{
    const cut at = cut_at(&s->in[0].at, s->attr[0], 1);
    if (!by_tiles(&at) || at.along.size[0] <= SCAN_BLOCK) return 0;
    return states_bytes(tiles_of(&at)) + (size_t)tiles_of(&at) * 2 * sizeof(uint64_t);
}

static cudaError_t scan_launch(const step *s, const frame *f, char *scratch, cudaStream_t q)
{
    const cut at = cut_at(&s->in[0].at, s->attr[0], 1);
    const int64_t inner = layout_count(&at.inner), tiles = tiles_of(&at);
    scan_args a = {
        .x = f->data[s->in[0].slot], .out = f->data[s->out[0].slot], .n = at.along.size[0], .stride = at.along.stride[0]
    };
    a.lines = layout_count(&at.outer) * inner, a.tiles = quotient_up(a.n, SCAN_BLOCK);
    a.by_inner = divide_by64(inner), a.by_tiles = divide_by64(a.tiles), a.outer = axes_of(&at.outer),
    a.inner = axes_of(&at.inner);
    const enum scan_form form = by_tiles(&at) ? SCAN_TILES : SCAN_LINES;
    const void *kernel = scan_kernel(s->out[0].at.type, s->kernel == OP_cumprod, form);
    if (form == SCAN_LINES) return launch(kernel, quotient_up(a.lines, ORDER_THREADS), ORDER_THREADS, 0, &a, q);
    if (a.tiles == 1) return launch(kernel, tiles, ORDER_THREADS, 0, &a, q);
    a.ticket = (uint32_t *)scratch, a.state = a.ticket + 1, a.sums = scratch + states_bytes(tiles);
    const cudaError_t e = cudaMemsetAsync(scratch, 0, states_bytes(tiles), q);
    return e != cudaSuccess ? e : launch(kernel, tiles, ORDER_THREADS, 0, &a, q);
}

/* ---- takes ---- */

static const uint64_t *one_of(duet_dtype type)
{
    static const uint64_t f32[2] = { 0x3f800000 }, f64[2] = { 0x3ff0000000000000 }, f16[2] = { 0x3c00 }, bf16[2] = { 0x3f80 },
                          whole[2] = { 1 };
    switch (type) {
    case DUET_F32:
    case DUET_C64: return f32;
    case DUET_F64:
    case DUET_C128: return f64;
    case DUET_F16: return f16;
    case DUET_BF16: return bf16;
    default: return whole;
    }
}

static cudaError_t one_hot_launch(const step *s, const frame *f, cudaStream_t q)
{
    const layout *by = &s->in[0].at;
    take_args a = { .index = f->data[s->in[0].slot], .out = f->data[s->out[0].slot], .n = s->attr[0], .type = (int32_t)by->type };
    a.count = layout_count(&s->out[0].at), a.by_inner = divide_by64(a.n), a.at = axes_of(by);
    memcpy(a.one, one_of(s->out[0].at.type), sizeof a.one);
    const void *kernel = take_kernel(dtypes[s->out[0].at.type].bytes, true);
    return launch(kernel, quotient_up(a.count, ORDER_THREADS), ORDER_THREADS, 0, &a, q);
}

/* Several elements side by side as one, up to 16 bytes, where all lies so: then strides count those. */
static size_t widened(cut *at, size_t each, const void *x, const void *out)
{
    layout *inner = &at->inner, *all[] = { &at->outer, &at->along, inner };
    const int last = inner->rank - 1;
    int64_t by = 16 / (int64_t)each;
    if (inner->stride[last] != 1) return each;
    for (; by > 1; by /= 2) {
        bool fits = inner->size[last] % by == 0 && ((uintptr_t)x | (uintptr_t)out) % (each * (size_t)by) == 0;
        for (int k = 0; k < 3; k++)
            for (int d = 0; d < all[k]->rank; d++) fits &= (k == 2 && d == last) || all[k]->stride[d] % by == 0;
        if (fits) break;
    }
    for (int k = 0; k < 3; k++)
        for (int d = 0; d < all[k]->rank; d++)
            if (k != 2 || d != last) all[k]->stride[d] /= by;
    return inner->size[last] /= by, each * (size_t)by;
}

static cudaError_t take_launch(const step *s, const frame *f, cudaStream_t q)
{
    const layout *x = &s->in[0].at, *by = &s->in[1].at;
    cut at = cut_at(x, s->attr[0], 1);
    take_args a = { .x = f->data[s->in[0].slot], .index = f->data[s->in[1].slot], .out = f->data[s->out[0].slot] };
    a.each = s->kernel == OP_take_along_axis, a.type = (int32_t)by->type, a.n = at.along.size[0];
    const size_t each = a.each ? dtypes[x->type].bytes : widened(&at, dtypes[x->type].bytes, a.x, a.out);
    const int64_t inner = layout_count(&at.inner), m = a.each ? by->size[s->attr[0]] : layout_count(by);
    a.stride = at.along.stride[0], a.count = layout_count(&at.outer) * m * inner;
    a.by_inner = divide_by64(inner), a.by_indices = divide_by64(m);
    a.outer = axes_of(&at.outer), a.inner = axes_of(&at.inner), a.at = axes_of(by);
    return launch(take_kernel(each, false), quotient_up(a.count, ORDER_THREADS), ORDER_THREADS, 0, &a, q);
}

/* ---- scatters ---- */

static cudaError_t scatter_launch(const step *s, const frame *f, void *scratch, cudaStream_t q)
{
    const layout *x = &s->in[0].at, *by = &s->in[1].at;
    const cut at = cut_at(x, s->attr[0], 1), z = cut_at(&s->in[2].at, s->attr[0], by->rank);
    const int64_t inner = layout_count(&at.inner);
    scatter_args a = { .x = f->data[s->in[0].slot], .z = f->data[s->in[2].slot], .out = f->data[s->out[0].slot] };
    a.count = layout_count(x), a.n = at.along.size[0], a.m = layout_count(by), a.stride = at.along.stride[0];
    a.by_inner = divide_by64(inner), a.by_n = divide_by64(a.n);
    a.x_outer = axes_of(&at.outer), a.x_inner = axes_of(&at.inner);
    a.z_outer = axes_of(&z.outer), a.z_inner = axes_of(&z.inner), a.z_along = axes_of(&z.along);
    uint32_t *keys = NULL, *order = NULL;
    const cudaError_t e = a.m ? sort_places(f->data[s->in[1].slot], by, a.n, scratch, &keys, &order, q) : cudaSuccess;
    a.keys = keys, a.order = order;
    if (e != cudaSuccess) return e;
    const void *kernel = scatter_kernel(s->kernel, x->type, dtypes[x->type].bytes);
    return launch(kernel, quotient_up(a.count, ORDER_THREADS), ORDER_THREADS, 0, &a, q);
}

/* ---- histograms ---- */

#define KEPT_BINS   4096
#define COUNT_WAVES 4 /* thread blocks a multiprocessor */

static cudaError_t count_launch(const step *s, const frame *f, cudaStream_t q)
{
    layout at = s->in[0].at;
    count_args a = { .x = f->data[s->in[0].slot], .out = f->data[s->out[0].slot], .n = layout_count(&at), .of = bins_of(s) };
    layout_collapse((layout *[]){ &at }, 1);
    a.type = (int32_t)at.type, a.at = axes_of(&at), a.kept = a.of.count <= KEPT_BINS;
    const int64_t blocks = quotient_up(a.n, ORDER_THREADS), most = (int64_t)card().blocks * COUNT_WAVES;
    const cudaError_t e = cudaMemsetAsync(a.out, 0, (size_t)a.of.count * sizeof *a.out, q);
    if (e != cudaSuccess) return e;
    return launch(count_kernel(), blocks < most ? blocks : most, ORDER_THREADS, a.kept ? (size_t)a.of.count * 4 : 0, &a, q);
}

/* ---- all ---- */

static size_t sort_scratch(const step *s)
{
    const layout *x = &s->in[0].at;
    const int64_t n = x->size[s->attr[0]];
    return n > SORT_KEPT ? sort_room(layout_count(x) / n, n, dtypes[x->type].bytes == 8) : 0;
}

size_t order_scratch(const step *s)
{
    switch (order_family(s->kernel)) {
    case ORDER_SCAN: return scan_scratch(s);
    case ORDER_SCATTER: return sort_room(1, layout_count(&s->in[1].at), false);
    case ORDER_SORT: return sort_scratch(s);
    default: return 0;
    }
}

cudaError_t order_launch(const step *s, const frame *f, void *scratch, cudaStream_t q)
{
    switch (order_family(s->kernel)) {
    case ORDER_SCAN: return scan_launch(s, f, scratch, q);
    case ORDER_TAKE: return s->kernel == OP_one_hot ? one_hot_launch(s, f, q) : take_launch(s, f, q);
    case ORDER_SCATTER: return scatter_launch(s, f, scratch, q);
    case ORDER_SORT: return sort_launch(s, f, scratch, q);
    default: return count_launch(s, f, q);
    }
}
