/* index_kernels.h - the arguments of the kernels that move or order elements by data, and where those are found. */
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

/* Lines along an axis, each so many elements of x, `stride` apart; those of out are dense. Line l is of outer place l / inner and inner
 * place l % inner. A line's tiles publish what they have in `state` (1: their total, 2: all up to their end) and sums[2 tile + 0, 1]; of few
 * long lines sums[tile] is the tile's total, and with `chained` then what comes before it. */
typedef struct scan_args {
    const void *x;
    void *out, *sums;
    uint32_t *ticket, *state;
    int64_t n, stride, lines, tiles;
    divider64 by_inner, by_tiles;
    bool chained;
    axes outer, inner;
} scan_args;
/* A thread a line; a thread block a tile of SCAN_BLOCK elements; or of few long lines the sums of tiles, what comes before each, and tiles. */
enum scan_form { SCAN_LINES, SCAN_TILES, SCAN_SUMS, SCAN_CHAINS, SCAN_AFTER };
#define SCAN_CHAIN         4096 /* sums at a time */
#define SCAN_CHAIN_THREADS 512
#define SCAN_CHAIN_SHORT   512 /* of no more tiles each adds up the sums before it by itself */
const void *scan_kernel(duet_dtype type, bool product, enum scan_form form);

/* Out is dense: outer, then as many places as there are indices, then inner. One element a thread, whatever its type. A place that is not
 * there gives 0. one_hot: out is 1 where its last place is the index, and begins `lead` elements past an aligned address. */
typedef struct take_args {
    const void *x, *index;
    void *out;
    int64_t count, n, stride;
    int32_t type, lead; /* type: of indices */
    bool each;          /* every element of out has an index of its own */
    divider64 by_inner, by_indices;
    axes outer, inner, at; /* at: of indices */
    uint64_t one[2];
} take_args;

/* The same where all is so regular that 32 bits find it: row j of outer place o, `width` units without gaps, comes from x + o * outer_stride +
 * index * stride, the index being j * index_stride elements on. With an index for each element (TAKE_EACH) `rows` counts elements. */
#define ROWS_EACH 4 /* units a thread */
typedef struct rows_args {
    const void *x, *index;
    void *out;
    int64_t n, stride, outer_stride, inner_stride, index_stride;
    uint32_t rows, width;
    int32_t type, lanes; /* a group of 2^lanes threads a row */
    divider32 by_chunks, by_indices, by_width;
} rows_args;
enum take_form {
    TAKE_ANY,
    TAKE_HOT,
    TAKE_EACH,
    TAKE_ROWS,
    TAKE_ROWS2,
    TAKE_ROWS4
}; /* units of a row a thread: 1, 2, 4 */
const void *take_kernel(size_t bytes, enum take_form form);

/* Each element of out by itself: x, then the updates whose sorted place is its own, in their order. keys, order: sorted. rows: of out, where
 * those of x and z have no gaps. */
typedef struct scatter_args {
    const void *x, *z;
    void *out;
    const uint32_t *keys, *order;
    int64_t count, n, m;
    divider64 by_inner, by_n;
    axes x_outer, x_inner, z_outer, z_inner, z_along;
    int64_t stride; /* of x along the axis */
    rows_args rows;
    int64_t z_outer_stride, z_stride;
} scatter_args;
enum scatter_form {
    SCATTER_ANY,
    SCATTER_ROWS,
    SCATTER_UNITS,
    SCATTER_LONG
}; /* units: an element; 16 bytes; four of those a thread */
const void *scatter_kernel(int kernel, duet_dtype type, size_t bytes, enum scatter_form form);

/* Sorts lines of n keys with their indices. Lines that fit are sorted in shared memory from x to out; others by digits, from the lower ones
 * up: keys and order from one of a pair of arrays to the other, by way of how many of each digit a tile has. */
#define SORT_KEPT       4096 /* elements of a line in shared memory */
#define SORT_DIGIT      8
#define SORT_DIGITS     (1 << SORT_DIGIT)
#define SORT_TILE(wide) ((wide) ? 2048 : 4096)
typedef struct sort_args {
    const void *x;
    void *out;
    int64_t n, k, stride, lines, tiles;
    int32_t type, each, shift;
    uint32_t places; /* not 0: elements are indices among so many places, and out is keys and order */
    bool down, indices;
    void *keys[2];
    uint32_t *order[2], *counts, *totals;
    divider64 by_inner, by_n, by_k, by_tiles;
    axes outer, inner;
} sort_args;
enum sort_form { FORM_KEPT, FORM_KEYS, FORM_DIGITS, FORM_BEFORE, FORM_MOVE, FORM_SORTED };
const void *sort_kernel(bool wide, enum sort_form form);

/* An element's bits as its key: of floating point as index_ops.h has it, of integers with the sign turned round. */
typedef struct key_rule {
    uint64_t sign, infinity; /* sign: that bit, 0 of unsigned ones; infinity: 0 of integers */
} key_rule;

/* A long line by itself, or indices of places. A key is its element's, moved up by `up`, with what is wanted of it below: its bits, or
 * its index; the order by itself where there is no room below. Passes go over the upper bits alone. */
#define SWEEP_THREADS    384
#define SWEEP_TILE(wide) (SWEEP_THREADS * ((wide) ? 15 : 20))
#define SWEEP_EACH       8
#define SWEEP_MOST       ((int64_t)1 << 30) /* keys */
enum sweep_below { BELOW_NOTHING, BELOW_BITS, BELOW_INDEX };
typedef struct sweep_args {
    const void *x;
    void *out;
    int64_t n, k, stride, step; /* step: of out */
    key_rule rule;
    int32_t type, each, up, passes, shift, below; /* shift: of this pass */
    bool down, indices;
    uint32_t places; /* not 0: elements are indices among so many places */
    axes at;         /* then: where they are */
    void *keys[2];
    uint32_t *order[2], *counts, *starts, *ticket,
        *before; /* counts: of all passes; starts, ticket, before: of this pass */
} sweep_args;
enum sweep_form { SWEEP_KEYS, SWEEP_STARTS, SWEEP_OUT };
const void *sweep_kernel(size_t each, bool wide, enum sweep_form form);
const void *sweep_pass(bool wide, bool ordered);

/* The k greatest of each line, k being no more than SELECT_MOST: a warp a part of a line keeps what may be among them, and further launches
 * choose among the parts' choices, which are keys with their indices. */
#define SELECT_MOST  32
#define SELECT_PART  4096
#define SELECT_ROOM  128 /* candidates of a warp */
#define SELECT_WARPS 4
typedef struct select_args {
    const void *x;
    void *out;
    int64_t n, stride, lines, parts; /* of a line: elements, or the candidates in keys[0] */
    int32_t k, each;
    key_rule rule;
    bool indices, chosen; /* chosen: candidates are keys[0] and order[0] */
    void *keys[2];        /* [1], order[1]: what comes out; NULL: the choice is the last one */
    uint32_t *order[2];
    divider64 by_inner, by_parts;
    axes outer, inner;
} select_args;
const void *select_kernel(size_t each, bool chosen);

#define COUNT_EACH 16 /* elements a thread, at least */
typedef struct count_args {
    const void *x;
    unsigned long long *out;
    int64_t n;
    int32_t type;
    int32_t copies; /* of the counts, in shared memory, one for some of a thread block's warps; 0: none */
    double inverse; /* of the bins' width */
    bins of;
    axes at;
} count_args;
/* ANY: by the formula of each element; NUMBERS: by the edges, in the narrowest type that holds all elements; VECTORS: and they are dense. */
enum count_form { COUNT_ANY, COUNT_NUMBERS, COUNT_VECTORS };
static inline bool counts_in_f32(duet_dtype type) /* does f32 hold all elements of the type? */
{
    return type == DUET_F32 || type == DUET_F16 || type == DUET_BF16 || type == DUET_BOOL ||
           type == DUET_I8 || type == DUET_U8 || type == DUET_I16 || type == DUET_U16;
}
const void *count_kernel(duet_dtype type, enum count_form form);

size_t order_scratch(const step *s);
cudaError_t order_launch(const step *s, const frame *f, void *scratch, cudaStream_t q);

/* Between the launchers. */
axes axes_of(const layout *l);
size_t sort_scratch(const step *s);
size_t places_scratch(int64_t m);
cudaError_t sort_launch(const step *s, const frame *f, void *scratch, cudaStream_t q);
cudaError_t sort_places(const void *index, const layout *at, int64_t n, void *scratch, uint32_t **keys,
                        uint32_t **order, cudaStream_t q);

#ifdef __cplusplus
}
#endif
#endif
