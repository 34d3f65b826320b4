/* index_kernels.h - the arguments of the kernels that gather, scatter, scan, sort and count
 * elements. */
#ifndef GPU_ORDERS_H
#define GPU_ORDERS_H

#include "index_ops.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ORDER_THREADS 256

/* Element i in row-major order. */
typedef struct axes {
    int32_t rank;
    divider64 size[DUET_RANK_MAX];
    int64_t stride[DUET_RANK_MAX];
} axes;

/* Scans along an axis. A line has `length` elements of x, `stride` apart; lines of out are dense.
 * Line l has outer index l / inner and inner index l % inner. The tiles of a line publish in
 * `state` what is in sums[2 tile + 0, 1] (1: their total, 2: their prefix). For few long lines
 * sums[tile] is the total of a tile, and after `chained` its prefix. */
typedef struct scan_args {
    const void *x;
    void *out, *sums;
    uint32_t *ticket, *state;
    int64_t n, stride, lines, tiles;
    divider64 by_inner, by_tiles;
    bool chained;
    axes outer, inner;
} scan_args;
/* One thread for each line; one thread block for each tile of SCAN_BLOCK elements; or, for few long
 * lines, launches for the sums of tiles, their prefixes, and the tiles. */
enum scan_form { SCAN_LINES, SCAN_TILES, SCAN_SUMS, SCAN_CHAINS, SCAN_AFTER };
#define SCAN_CHAIN         4096 /* sums at a time */
#define SCAN_CHAIN_THREADS 512
/* with at most this many tiles, each thread block adds the sums before its tile itself */
#define SCAN_CHAIN_SHORT 512
const void *scan_kernel(duet_dtype type, bool product, enum scan_form form);

/* out is dense: outer axes, then one position for each index, then inner axes. One element for each
 * thread, of any type. A bad index gives 0. one_hot: out is 1 where its last index equals the index
 * read; it starts `lead` elements after an aligned address. */
typedef struct take_args {
    const void *x, *index;
    void *out;
    int64_t count, n, stride;
    int32_t type, lead; /* type: of the indices */
    bool each;          /* every element of out has an index of its own */
    divider64 by_inner, by_indices;
    axes outer, inner, at; /* at: layout of the indices */
    uint64_t one[2];
} take_args;

/* The same for regular layouts that 32-bit offsets reach: row j of outer index o has `width`
 * contiguous units and comes from x + o * outer_stride + index * stride. Index j is at j *
 * index_stride. With one index for each element (TAKE_EACH), `rows` counts elements. */
#define ROWS_EACH 4 /* units of a thread */
typedef struct rows_args {
    const void *x, *index;
    void *out;
    int64_t n, stride, outer_stride, inner_stride, index_stride;
    uint32_t rows, width;
    int32_t type, lanes; /* a group of 2^lanes threads for each row */
    divider32 by_chunks, by_indices, by_width;
} rows_args;
enum take_form {
    TAKE_ANY,
    TAKE_HOT,
    TAKE_EACH,
    TAKE_ROWS,
    TAKE_ROWS2,
    TAKE_ROWS4
}; /* units of a row in each thread: 1, 2, 4 */
const void *take_kernel(size_t bytes, enum take_form form);

/* Computes each element of out independently: x, then the updates whose sorted index is its own, in
 * their order. keys, order: sorted indices and the order of the updates. rows: rows of out, where
 * those of x and z are contiguous. */
typedef struct scatter_args {
    const void *x, *z;
    void *out;
    const uint32_t *keys, *order;
    int64_t count, n, m;
    divider64 by_inner, by_n;
    axes x_outer, x_inner, z_outer, z_inner, z_along;
    int64_t stride; /* stride of x along the axis */
    rows_args rows;
    int64_t z_outer_stride, z_stride;
} scatter_args;
enum scatter_form {
    SCATTER_ANY,
    SCATTER_ROWS,
    SCATTER_UNITS,
    SCATTER_LONG
}; /* a unit is one element, 16 bytes, or 16 bytes of which each thread moves four */
const void *scatter_kernel(int kernel, duet_dtype type, size_t bytes, enum scatter_form form);

/* Sorts lines of n keys together with their indices. Lines that fit are sorted in shared memory,
 * from x to out. Others are sorted digit by digit, from the lowest: keys and order move between two
 * pairs of arrays, using the number of each digit in each tile. */
#define SORT_KEPT       4096 /* elements of a line in shared memory */
#define SORT_DIGIT      8
#define SORT_DIGITS     (1 << SORT_DIGIT)
#define SORT_TILE(wide) ((wide) ? 2048 : 4096)
typedef struct sort_args {
    const void *x;
    void *out;
    int64_t n, k, stride, lines, tiles;
    int32_t type, each, shift;
    uint32_t places; /* not 0: elements are indices below this number, and out consists of keys and order */
    bool down, indices;
    void *keys[2];
    uint32_t *order[2], *counts, *totals;
    divider64 by_inner, by_n, by_k, by_tiles;
    axes outer, inner;
} sort_args;
enum sort_form { FORM_KEPT, FORM_KEYS, FORM_DIGITS, FORM_BEFORE, FORM_MOVE, FORM_SORTED };
const void *sort_kernel(bool wide, enum sort_form form);

/* Converts the bits of an element to a key: floating-point numbers as index_ops.h does, integers
 * with the sign bit inverted. */
typedef struct key_rule {
    uint64_t sign, infinity; /* sign: the sign bit, 0 for unsigned types; infinity: 0 for integers */
} key_rule;

/* Sorts one long line, or indices for a scatter. A key is the key of the element shifted left by
 * `up`, with the bits or the index of the element below; the order is an array of its own if these
 * do not fit. Passes go over the upper bits alone. */
#define RADIX_THREADS    384
#define RADIX_TILE(wide) (RADIX_THREADS * ((wide) ? 15 : 20))
#define RADIX_EACH       8
#define RADIX_MOST       ((int64_t)1 << 30) /* keys */
enum radix_below { BELOW_NOTHING, BELOW_BITS, BELOW_INDEX };
typedef struct radix_args {
    const void *x;
    void *out;
    int64_t n, k, stride, step; /* step: stride of out */
    key_rule rule;
    int32_t type, each, up, passes, shift, below; /* shift: of this pass */
    bool down, indices;
    uint32_t places; /* not 0: elements are indices below this number */
    axes at;         /* then: their layout */
    void *keys[2];
    uint32_t *order[2], *counts, *starts, *ticket,
        *before; /* counts: of all passes; starts, ticket, before: of this pass */
} radix_args;
enum radix_form { RADIX_KEYS, RADIX_STARTS, RADIX_OUT };
const void *radix_kernel(size_t each, bool wide, enum radix_form form);
const void *radix_pass_kernel(bool wide, bool ordered);

/* Finds the k greatest elements of each line, k at most SELECT_MOST. Each warp collects candidates
 * from a part of a line; further launches choose among the candidates of the parts, which are keys
 * with indices. */
#define SELECT_MOST  32
#define SELECT_PART  4096
#define SELECT_ROOM  128 /* candidates of a warp */
#define SELECT_WARPS 4
typedef struct select_args {
    const void *x;
    void *out;
    int64_t n, stride, lines, parts; /* n: elements of a line, or candidates in keys[0] */
    int32_t k, each;
    key_rule rule;
    bool indices, chosen; /* chosen: candidates are in keys[0] and order[0] */
    void *keys[2];        /* [1], order[1]: the result; NULL in the last launch */
    uint32_t *order[2];
    divider64 by_inner, by_parts;
    axes outer, inner;
} select_args;
const void *select_kernel(size_t each, bool chosen);

#define COUNT_EACH 16 /* elements of a thread, at least */
typedef struct count_args {
    const void *x;
    unsigned long long *out;
    int64_t n;
    int32_t type;
    /* copies of the counters in shared memory, each for some warps of the thread block; 0: none */
    int32_t copies;
    double inverse; /* reciprocal of the width of a bin */
    bins of;
    axes at;
} count_args;
/* ANY: by the formula for each element. NUMBERS: by the edges, in the narrowest type that holds all
 * elements. VECTORS: the same, elements are dense. */
enum count_form { COUNT_ANY, COUNT_NUMBERS, COUNT_VECTORS };
static inline bool counts_in_f32(duet_dtype type) /* does f32 represent all values of the type? */
{
    return type == DUET_F32 || type == DUET_F16 || type == DUET_BF16 || type == DUET_BOOL ||
           type == DUET_I8 || type == DUET_U8 || type == DUET_I16 || type == DUET_U16;
}
const void *count_kernel(duet_dtype type, enum count_form form);

/* Functions that the launchers share. */
axes axes_of(const layout *l);
size_t places_scratch(int64_t m);
cudaError_t sort_places(const void *index, const layout *at, int64_t n, void *scratch, uint32_t **keys,
                        uint32_t **order, cudaStream_t q);

#ifdef __cplusplus
}
#endif
#endif
