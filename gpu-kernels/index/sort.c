/* sort.c - launches sorts of lines, selections of the k greatest elements, and sorts of indices for
 * scatters. */
#include "dtype.h"
#include "index_kernels.h"
#include "min_max.h"

static int64_t padded_length(int64_t n)
{
    int64_t padded = 1;
    while (padded < n) padded *= 2;
    return padded;
}

static int64_t tiles_of(int64_t n, bool wide) { return quotient_up(n, SORT_TILE(wide)); }

static size_t sort_scratch(int64_t lines, int64_t n, bool wide)
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
    a->tiles = tiles_of(a->n, wide);
    a->by_tiles = divide_by64(a->tiles);
    a->by_n = divide_by64(a->n);
    for (int k = 0; k < 2; k++) {
        a->keys[k] = carve(&scratch, all * (wide ? 8 : 4));
        a->order[k] = carve(&scratch, all * 4);
    }
    a->counts = carve(&scratch, (size_t)(a->lines * a->tiles) * SORT_DIGITS * 4);
    a->totals = (uint32_t *)scratch;
}

/* Sorts each line by one thread block. A line that one warp sorts needs no shared memory. */
static cudaError_t sort_short(sort_args *a, bool wide, cudaStream_t q)
{
    const int64_t padded = padded_length(a->n);
    const size_t items = padded > 32 * SORT_EACH ? (size_t)padded : 0;
    const int threads = (int)clamp(padded / SORT_EACH, 32, SORT_KEPT / SORT_EACH);
    return launch(sort_kernel(wide, FORM_KEPT), a->lines, threads, items * (wide ? 12 : 8), a, q);
}

/* The results of a pass are the input of the next one. */
static void swap_buffers(void *keys[2], uint32_t *order[2])
{
    void *own_keys = keys[0];
    uint32_t *own_order = order[0];
    keys[0] = keys[1];
    order[0] = order[1];
    keys[1] = own_keys;
    order[1] = own_order;
}

static cudaError_t pass(sort_args *a, bool wide, cudaStream_t q)
{
    cudaError_t e = launch(sort_kernel(wide, FORM_DIGITS), a->lines * a->tiles, INDEX_THREADS, 0, a, q);
    if (e == cudaSuccess)
        e = launch(sort_kernel(wide, FORM_BEFORE), a->lines * SORT_DIGITS, INDEX_THREADS, 0, a, q);
    if (e == cudaSuccess)
        e = launch(sort_kernel(wide, FORM_MOVE), a->lines * a->tiles, INDEX_THREADS, 0, a, q);
    swap_buffers(a->keys, a->order);
    return e;
}

/* Sorts all lines digit by digit; the results are in keys[0] and order[0]. */
static cudaError_t by_digits(sort_args *a, bool wide, int bits, cudaStream_t q)
{
    cudaError_t e = launch(sort_kernel(wide, FORM_KEYS), quotient_up(a->lines * a->n, INDEX_THREADS),
                           INDEX_THREADS, 0, a, q);
    for (a->shift = 0; a->shift < bits && e == cudaSuccess; a->shift += SORT_DIGIT) e = pass(a, wide, q);
    return e;
}

/* ---- long lines, one after the other ---- */

/* The parameters of a radix sort. plan_of is for elements, places_plan for the indices of a scatter. */
typedef struct radix_plan {
    bool wide, ordered; /* words of 8 bytes; indices are in a second array */
    int up, passes;
    enum radix_below below;
} radix_plan;

static radix_plan plan_of(duet_dtype type, bool indices)
{
    const int each = (int)dtypes[type].bytes;
    const bool bits_alone = dtype_kind(type) != TYPE_FLOAT; /* the key determines the element */
    if (each == 8) return (radix_plan){ true, indices || !bits_alone, 0, each, BELOW_NOTHING };
    if (indices) return (radix_plan){ true, false, 32, each, BELOW_INDEX };
    if (each == 4)
        return bits_alone ? (radix_plan){ false, false, 0, each, BELOW_NOTHING }
                          : (radix_plan){ true, false, 32, each, BELOW_BITS };
    return (radix_plan){ false, false, 16, each, BELOW_BITS };
}

static radix_plan places_plan(int64_t places)
{
    int bits = 1;
    while (places >> bits) bits++;
    return (radix_plan){ true, false, 32, (int)quotient_up(bits, SORT_DIGIT), BELOW_INDEX };
}

static key_rule rule_of(duet_dtype type)
{
    const uint64_t sign = (uint64_t)1 << (8 * dtypes[type].bytes - 1);
    switch (type) {
    case DUET_F32: return (key_rule){ sign, 0x7f800000 };
    case DUET_F64: return (key_rule){ sign, 0x7ff0000000000000 };
    case DUET_F16: return (key_rule){ sign, 0x7c00 };
    case DUET_BF16: return (key_rule){ sign, 0x7f80 };
    default: return (key_rule){ dtype_kind(type) == TYPE_SIGNED ? sign : 0, 0 };
    }
}

/* Bytes of the counts of all passes, their tickets and the counts before each tile. The sort sets all
 * of them to 0 first. */
static size_t cleared_bytes(const radix_plan *p, int64_t n)
{
    return ((size_t)p->passes * SORT_DIGITS + 64 +
            (size_t)(p->passes * quotient_up(n, RADIX_TILE(p->wide))) * SORT_DIGITS) *
           4;
}

static size_t radix_workspace(radix_plan p, int64_t n)
{
    return 2 * round_256((size_t)n * (p.wide ? 8 : 4)) + (p.ordered ? 2 * round_256((size_t)n * 4) : 0) +
           round_256(cleared_bytes(&p, n));
}

static cudaError_t radix_passes(radix_args *a, const radix_plan *p, cudaStream_t q)
{
    const int64_t tiles = quotient_up(a->n, RADIX_TILE(p->wide));
    uint32_t *tickets = a->counts + p->passes * SORT_DIGITS;
    cudaError_t e = cudaSuccess;
    for (int k = 0; k < p->passes && e == cudaSuccess; k++) {
        a->shift = p->up + k * SORT_DIGIT;
        a->starts = a->counts + k * SORT_DIGITS;
        a->ticket = tickets + k;
        a->before = tickets + 64 + k * tiles * SORT_DIGITS;
        e = launch(radix_pass_kernel(p->wide, p->ordered), tiles, RADIX_THREADS, 0, a, q);
        swap_buffers(a->keys, a->order);
    }
    return e;
}

/* Sorts one line. `a` describes the line and the result; the other members are set here. */
#define RADIX_WAVES 8 /* thread blocks for each multiprocessor; each adds its counts to the global ones */
static cudaError_t radix_sort(radix_args *a, const radix_plan *p, char *scratch, cudaStream_t q)
{
    const size_t each = p->wide ? 8 : 4, cleared = cleared_bytes(p, a->n);
    for (int k = 0; k < 2; k++) a->keys[k] = carve(&scratch, (size_t)a->n * each);
    for (int k = 0; k < 2; k++) a->order[k] = p->ordered ? carve(&scratch, (size_t)a->n * 4) : NULL;
    a->counts = (uint32_t *)scratch;
    a->up = p->up;
    a->passes = p->passes;
    a->below = (int32_t)p->below;
    cudaError_t e = cudaMemsetAsync(scratch, 0, cleared, q);
    const int64_t blocks = quotient_up(a->n, RADIX_EACH * INDEX_THREADS),
                  most = (int64_t)card().blocks * RADIX_WAVES;
    const void *make = radix_kernel((size_t)a->each, p->wide, RADIX_KEYS);
    if (e == cudaSuccess) e = launch(make, smaller(blocks, most), INDEX_THREADS, 0, a, q);
    if (e == cudaSuccess)
        e = launch(radix_kernel((size_t)a->each, p->wide, RADIX_STARTS), a->passes, INDEX_THREADS, 0, a, q);
    if (e == cudaSuccess) e = radix_passes(a, p, q);
    if (e != cudaSuccess) return e;
    return launch(radix_kernel((size_t)a->each, p->wide, RADIX_OUT), quotient_up(a->k, INDEX_THREADS),
                  INDEX_THREADS, 0, a, q);
}

#define LINE_ALONE (1 << 20) /* elements of one line that occupy the GPU */
static bool uses_radix_sort(int64_t lines, int64_t n)
{
    return n > SORT_KEPT && n < RADIX_MOST && (lines == 1 || n >= LINE_ALONE);
}

static cudaError_t radix_sort_lines(const step *s, const frame *f, const axis_split *at, char *scratch,
                                    cudaStream_t q)
{
    const duet_dtype type = s->in[0].at.type;
    const int64_t inner = layout_count(&at->inner), lines = layout_count(&at->outer) * inner;
    const radix_plan p = plan_of(type, sorts_indices(s));
    const size_t each = dtypes[type].bytes, to = sorts_indices(s) ? sizeof(int64_t) : each;
    cudaError_t e = cudaSuccess;
    for (int64_t l = 0; l < lines && e == cudaSuccess; l++) {
        radix_args a = { .n = at->along.size[0],
                         .k = s->out[0].at.size[s->attr.index.axis],
                         .stride = at->along.stride[0],
                         .step = inner };
        const int64_t from = layout_offset(&at->outer, l / inner) + layout_offset(&at->inner, l % inner);
        a.x = (const char *)f->data[s->in[0].slot] + from * (int64_t)each;
        a.out = (char *)f->data[s->out[0].slot] + (l / inner * a.k * inner + l % inner) * (int64_t)to;
        a.rule = rule_of(type);
        a.each = (int32_t)each;
        a.down = sorts_down(s);
        a.indices = sorts_indices(s);
        e = radix_sort(&a, &p, scratch, q);
    }
    return e;
}

/* ---- the greatest elements of lines ---- */

static bool is_choice(const step *s)
{
    const int64_t k = s->out[0].at.size[s->attr.index.axis];
    return sorts_down(s) && 0 < k && k <= SELECT_MOST;
}

/* Returns the number of candidates that a launch selects from n elements or candidates of a line, or
 * 0 if it is the last launch, which writes the result. */
static int64_t candidates_of(int64_t n, int64_t k)
{
    if (n <= SELECT_PART) return 0;
    return quotient_up(n, SELECT_PART) * k;
}

static size_t choice_scratch(int64_t lines, int64_t n, int64_t k, size_t each)
{
    const size_t key = each == 8 ? 8 : 4, first = (size_t)(lines * candidates_of(n, k)),
                 next = (size_t)(lines * candidates_of(candidates_of(n, k), k));
    return round_256(first * key) + round_256(first * 4) + round_256(next * key) + round_256(next * 4);
}

static cudaError_t choose(const step *s, const frame *f, const axis_split *at, char *scratch, cudaStream_t q)
{
    const duet_dtype type = s->in[0].at.type;
    const int64_t inner = layout_count(&at->inner);
    const size_t each = dtypes[type].bytes, key = each == 8 ? 8 : 4;
    select_args a = { .x = f->data[s->in[0].slot],
                      .out = f->data[s->out[0].slot],
                      .n = at->along.size[0],
                      .rule = rule_of(type) };
    a.k = (int32_t)s->out[0].at.size[s->attr.index.axis];
    a.each = (int32_t)each;
    a.stride = at->along.stride[0];
    a.lines = layout_count(&at->outer) * inner;
    a.indices = sorts_indices(s);
    a.by_inner = divide_by64(inner);
    a.outer = axes_of(&at->outer);
    a.inner = axes_of(&at->inner);
    void *keys[2];
    uint32_t *order[2];
    for (int64_t r = 0, n = candidates_of(a.n, a.k); r < 2; r++, n = candidates_of(n, a.k)) {
        keys[r] = carve(&scratch, (size_t)(a.lines * n) * key);
        order[r] = carve(&scratch, (size_t)(a.lines * n) * 4);
    }
    cudaError_t e = cudaSuccess;
    for (int round = 0; e == cudaSuccess && (round == 0 || a.keys[1]); round++) {
        const int64_t left = candidates_of(a.n, a.k);
        a.keys[0] = round ? keys[(round - 1) % 2] : NULL;
        a.order[0] = round ? order[(round - 1) % 2] : NULL;
        a.keys[1] = left ? keys[round % 2] : NULL;
        a.order[1] = left ? order[round % 2] : NULL;
        a.parts = quotient_up(a.n, SELECT_PART);
        a.by_parts = divide_by64(a.parts);
        e = launch(select_kernel(each, round > 0), quotient_up(a.lines * a.parts, SELECT_WARPS),
                   32 * SELECT_WARPS, 0, &a, q);
        a.n = left;
    }
    return e;
}

/* ---- dispatch ---- */

size_t sort_workspace(const step *s)
{
    const layout *x = &s->in[0].at;
    const int64_t n = x->size[s->attr.index.axis], lines = n ? layout_count(x) / n : 0;
    const size_t each = dtypes[x->type].bytes;
    if (is_choice(s)) return choice_scratch(lines, n, s->out[0].at.size[s->attr.index.axis], each);
    if (n <= SORT_KEPT) return 0;
    if (uses_radix_sort(lines, n)) return radix_workspace(plan_of(x->type, sorts_indices(s)), n);
    return sort_scratch(lines, n, each == 8);
}

cudaError_t sort_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    void *scratch = w->scratch;
    const layout *x = &s->in[0].at;
    const axis_split at = axis_split_at(x, s->attr.index.axis, 1);
    const bool wide = dtypes[x->type].bytes == 8;
    const int64_t inner = layout_count(&at.inner);
    sort_args a = { .x = f->data[s->in[0].slot],
                    .out = f->data[s->out[0].slot],
                    .n = at.along.size[0],
                    .type = (int32_t)x->type };
    a.k = s->out[0].at.size[s->attr.index.axis];
    a.stride = at.along.stride[0];
    a.lines = layout_count(&at.outer) * inner;
    a.each = (int32_t)dtypes[x->type].bytes;
    a.down = sorts_down(s);
    a.indices = sorts_indices(s);
    a.by_inner = divide_by64(inner);
    a.by_k = divide_by64(a.k);
    a.outer = axes_of(&at.outer);
    a.inner = axes_of(&at.inner);
    if (is_choice(s)) return choose(s, f, &at, scratch, q);
    if (a.n <= SORT_KEPT) return sort_short(&a, wide, q);
    if (uses_radix_sort(a.lines, a.n)) return radix_sort_lines(s, f, &at, scratch, q);
    lay_out(&a, scratch, wide);
    const cudaError_t e = by_digits(&a, wide, 8 * a.each, q);
    if (e != cudaSuccess) return e;
    return launch(sort_kernel(wide, FORM_SORTED), quotient_up(a.lines * a.k, INDEX_THREADS), INDEX_THREADS, 0,
                  &a, q);
}

/* ---- indices for a scatter: those out of bounds come last, as index n ---- */

size_t places_scratch(int64_t m)
{
    const size_t radix = m < RADIX_MOST ? radix_workspace(places_plan(UINT32_MAX), m) : 0,
                 digits = sort_scratch(1, m, false);
    return radix > digits ? radix : digits;
}

static cudaError_t radix_sort_places(const sort_args *of, void *scratch, uint32_t **keys, uint32_t **order,
                                     cudaStream_t q)
{
    const radix_plan p = places_plan(of->places);
    radix_args a = { .x = of->x,
                     .n = of->n,
                     .k = of->n,
                     .each = 4,
                     .type = of->type,
                     .places = of->places,
                     .at = of->inner,
                     .checks = of->checks };
    const cudaError_t e = radix_sort(&a, &p, scratch, q);
    *keys = a.keys[1];
    *order = *keys + a.n;
    return e;
}

cudaError_t sort_places(const void *index, const layout *at, int64_t n, const index_checks *checks,
                        void *scratch, uint32_t **keys, uint32_t **order, cudaStream_t q)
{
    sort_args a = { .x = index,
                    .n = layout_count(at),
                    .lines = 1,
                    .type = (int32_t)at->type,
                    .places = (uint32_t)n,
                    .checks = *checks };
    int bits = 1;
    while (n >> bits) bits++;
    a.k = a.n;
    a.by_inner = divide_by64(1);
    a.inner = axes_of(at);
    a.outer = (axes){ .rank = 0 };
    if (uses_radix_sort(1, a.n)) return radix_sort_places(&a, scratch, keys, order, q);
    lay_out(&a, scratch, false);
    const cudaError_t e = a.n <= SORT_KEPT ? sort_short(&a, false, q) : by_digits(&a, false, bits, q);
    *keys = a.keys[0];
    *order = a.order[0];
    return e;
}
