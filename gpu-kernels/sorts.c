/* sorts.c - launches sorts of lines, and of indices for scatter. */
#include "dtype.h"
#include "orders.h"

static int64_t room_of(int64_t n)
{
    int64_t room = 1;
    while (room < n) room *= 2;
    return room;
}

static int64_t tiles_of(int64_t n, bool wide) { return quotient_up(n, SORT_TILE(wide)); }

size_t sort_room(int64_t lines, int64_t n, bool wide)
{
    const size_t all = (size_t)(lines * n), counts = (size_t)(lines * tiles_of(n, wide)) * SORT_DIGITS;
    return 2 * round_256(all * (wide ? 8 : 4)) + 2 * round_256(all * 4) + round_256(counts * 4) +
           round_256((size_t)lines * SORT_DIGITS * 4);
}

static void *carve(char **from, size_t bytes)
{
    void *p = *from;
    *from += round_256(bytes);
    return p;
}

static void lay_out(sort_args *a, char *scratch, bool wide)
{
    const size_t all = (size_t)(a->lines * a->n);
    a->tiles = tiles_of(a->n, wide), a->by_tiles = divide_by64(a->tiles), a->by_n = divide_by64(a->n);
    for (int k = 0; k < 2; k++) a->keys[k] = carve(&scratch, all * (wide ? 8 : 4)), a->order[k] = carve(&scratch, all * 4);
    a->counts = carve(&scratch, (size_t)(a->lines * a->tiles) * SORT_DIGITS * 4), a->totals = (uint32_t *)scratch;
}

/* A thread block a line. */
static cudaError_t keep(sort_args *a, bool wide, cudaStream_t q)
{
    const int64_t room = room_of(a->n);
    const int threads = room < 64 ? 32 : room > 1024 ? 512 : (int)room / 2;
    return launch(sort_kernel(wide, FORM_KEPT), a->lines, threads, (size_t)room * (wide ? 12 : 8), a, q);
}

static cudaError_t pass(sort_args *a, bool wide, cudaStream_t q)
{
    cudaError_t e = launch(sort_kernel(wide, FORM_DIGITS), a->lines * a->tiles, ORDER_THREADS, 0, a, q);
    if (e == cudaSuccess) e = launch(sort_kernel(wide, FORM_BEFORE), a->lines * SORT_DIGITS, ORDER_THREADS, 0, a, q);
    if (e == cudaSuccess) e = launch(sort_kernel(wide, FORM_MOVE), a->lines * a->tiles, ORDER_THREADS, 0, a, q);
    void *keys = a->keys[0];
    uint32_t *order = a->order[0];
    a->keys[0] = a->keys[1], a->order[0] = a->order[1];
    a->keys[1] = keys, a->order[1] = order;
    return e;
}

/* Into keys[0] and order[0]. */
static cudaError_t by_digits(sort_args *a, bool wide, int bits, cudaStream_t q)
{
    cudaError_t e = launch(sort_kernel(wide, FORM_KEYS), quotient_up(a->lines * a->n, ORDER_THREADS), ORDER_THREADS, 0, a, q);
    for (a->shift = 0; a->shift < bits && e == cudaSuccess; a->shift += SORT_DIGIT) e = pass(a, wide, q);
    return e;
}

cudaError_t sort_launch(const step *s, const frame *f, void *scratch, cudaStream_t q)
{
    const layout *x = &s->in[0].at;
    const cut at = cut_at(x, s->attr[0], 1);
    const bool wide = dtypes[x->type].bytes == 8;
    const int64_t inner = layout_count(&at.inner);
    sort_args a = {
        .x = f->data[s->in[0].slot], .out = f->data[s->out[0].slot], .n = at.along.size[0], .type = (int32_t)x->type
    };
    a.k = s->out[0].at.size[s->attr[0]], a.stride = at.along.stride[0], a.lines = layout_count(&at.outer) * inner;
    a.each = (int32_t)dtypes[x->type].bytes, a.down = sorts_down(s), a.indices = sorts_indices(s);
    a.by_inner = divide_by64(inner), a.by_k = divide_by64(a.k), a.outer = axes_of(&at.outer), a.inner = axes_of(&at.inner);
    if (a.n <= SORT_KEPT) return keep(&a, wide, q);
    lay_out(&a, scratch, wide);
    const cudaError_t e = by_digits(&a, wide, 8 * a.each, q);
    if (e != cudaSuccess) return e;
    return launch(sort_kernel(wide, FORM_SORTED), quotient_up(a.lines * a.k, ORDER_THREADS), ORDER_THREADS, 0, &a, q);
}

/* Indices that are nowhere come last, as place n. */
cudaError_t sort_places(const void *index, const layout *at, int64_t n, void *scratch, uint32_t **keys, uint32_t **order,
                        cudaStream_t q)
{
    sort_args a = { .x = index, .n = layout_count(at), .lines = 1, .type = (int32_t)at->type, .places = (uint32_t)n };
    int bits = 1;
    while (n >> bits) bits++;
    a.k = a.n, a.by_inner = divide_by64(1), a.inner = axes_of(at), a.outer = (axes){ .rank = 0 };
    lay_out(&a, scratch, false);
    const cudaError_t e = a.n <= SORT_KEPT ? keep(&a, false, q) : by_digits(&a, false, bits, q);
    return *keys = a.keys[0], *order = a.order[0], e;
}
