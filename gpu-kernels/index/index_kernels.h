/* index_kernels.h - the arguments of the kernels that gather, scatter, scan, sort and count
 * elements. */
#ifndef INDEX_KERNELS_H
#define INDEX_KERNELS_H

#include "fast_divide.h"
#include "index_ops.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define INDEX_THREADS 256

/* A layout, with divisors to find element i in row-major order (element_offset). */
typedef struct axes {
    int32_t rank;
    divider64 size[DUET_RANK_MAX];
    int64_t stride[DUET_RANK_MAX];
} axes;

/* Scans along an axis. A line is n elements of x along the axis, `stride` apart; lines of `out` are
 * dense. Line l has outer index l / inner and inner index l % inner. There are two methods.
 *     Look-back scan   a tile stores its total in sums[2 tile] and its prefix in sums[2 tile + 1].
 *                      state[tile] says which of them is stored: 1 the total, 2 the prefix.
 *                      `ticket` numbers the thread blocks in the order in which they start.
 *     Sums first       sums[tile] is the total of a tile. If `chained` is true, a second launch
 *                      replaces it by its prefix. */
typedef struct scan_args {
    const void *x;
    void *out, *sums;
    uint32_t *ticket, *state;
    int64_t n, stride, lines, tiles;
    divider64 by_inner, by_tiles;
    bool chained;
    axes outer, inner;
} scan_args;
/* LINES: one thread scans each line. TILES: one thread block scans each tile of SCAN_BLOCK elements
 * and looks back. SUMS, CHAINS, AFTER: the three launches of the method that sums first. */
enum scan_form { SCAN_LINES, SCAN_TILES, SCAN_SUMS, SCAN_CHAINS, SCAN_AFTER };
#define SCAN_CHAIN         4096 /* sums that CHAINS loads at a time */
#define SCAN_CHAIN_THREADS 512
/* with at most this many tiles, CHAINS is not launched: each thread block of AFTER adds the sums of
 * the tiles before its own */
#define SCAN_CHAIN_SHORT 512
const void *scan_kernel(duet_dtype type, bool product, enum scan_form form);

/* Where a kernel of operator `kernel` reports an index that is out of bounds. */
typedef struct index_checks {
    index_report report;
    int64_t kernel;
} index_checks;

/* take, take_along_axis and one_hot for any layouts. `out` is dense: it has the outer axes, an axis
 * for the indices, and the inner axes. Each thread computes one element. An index out of bounds
 * gives 0, and is reported. one_hot has no x: an element of `out` is 1 if its last index equals the
 * index read. `out` starts `lead` elements after an address that is aligned to 16 bytes. */
typedef struct take_args {
    const void *x, *index;
    void *out;
    int64_t count, n, stride;
    int32_t type, lead; /* type: of the indices */
    bool each;          /* every element of out has an index of its own */
    divider64 by_inner, by_indices;
    axes outer, inner, at; /* at: layout of the indices */
    uint64_t one[2];
    index_checks checks;
} take_args;

/* The same for layouts whose outer and inner axes can be merged into one each, and whose sizes fit
 * in 32 bits. A unit is one element, or several that are moved as one. Row j of outer index o has
 * `width` contiguous units and is read from x + o * outer_stride + index * stride. Index j is at
 * offset j * index_stride. With one index for each element (TAKE_EACH), `rows` counts elements. */
#define ROWS_EACH 4 /* units of a thread */
typedef struct rows_args {
    const void *x, *index;
    void *out;
    int64_t n, stride, outer_stride, inner_stride, index_stride;
    uint32_t rows, width;
    int32_t type, lanes; /* a group of 2^lanes threads for each row */
    divider32 by_chunks, by_indices, by_width;
    index_checks checks;
} rows_args;
/* ANY: take_args. HOT: one_hot. EACH: one index for each element. ROWS, ROWS2, ROWS4: a thread copies
 * 1, 2 or 4 units of a row. */
enum take_form { TAKE_ANY, TAKE_HOT, TAKE_EACH, TAKE_ROWS, TAKE_ROWS2, TAKE_ROWS4 };
const void *take_kernel(size_t bytes, enum take_form form);

/* put, scatter_add and scatter_max. Each thread computes its elements of `out`: it starts with the
 * element of x and applies the updates with this index in their original order. `keys` has the
 * sorted indices, and `order` the update of each. `rows` is used if the rows of x and z are
 * contiguous. */
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
/* ANY: any layouts. ROWS: a unit is one element. UNITS: a unit is 16 bytes. LONG: a unit is 16 bytes,
 * and each thread has four of them. */
enum scatter_form { SCATTER_ANY, SCATTER_ROWS, SCATTER_UNITS, SCATTER_LONG };
const void *scatter_kernel(int kernel, duet_dtype type, size_t bytes, enum scatter_form form);

/* Sorts lines of n keys together with their indices. A thread block sorts a line of up to SORT_KEPT
 * elements, SORT_EACH in each thread. A longer line is sorted digit by digit, from the lowest digit. Each
 * pass counts the digits of each tile and moves keys and indices from keys[0] and order[0] to keys[1] and
 * order[1]. */
#define SORT_KEPT       4096
#define SORT_EACH       4
#define SORT_DIGIT      8
#define SORT_DIGITS     (1 << SORT_DIGIT)
#define SORT_TILE(wide) ((wide) ? 2048 : 4096)
typedef struct sort_args {
    const void *x;
    void *out;
    int64_t n, k, stride, lines, tiles;
    int32_t type, each, shift;
    uint32_t places; /* not 0: elements are indices below this number; results are keys[0] and order[0] */
    bool down, indices;
    void *keys[2];
    uint32_t *order[2], *counts, *totals;
    divider64 by_inner, by_n, by_k, by_tiles;
    axes outer, inner;
    index_checks checks;
} sort_args;
enum sort_form { FORM_KEPT, FORM_KEYS, FORM_DIGITS, FORM_BEFORE, FORM_MOVE, FORM_SORTED };
const void *sort_kernel(bool wide, enum sort_form form); /* wide: keys of 8 bytes, else of 4 */

/* Converts the bits of an element to a key: floating-point numbers as index_ops.h does, integers
 * with the sign bit inverted. */
typedef struct key_rule {
    uint64_t sign, infinity; /* sign: the sign bit, 0 for unsigned types; infinity: 0 for integers */
} key_rule;

/* Sorts one long line, or the indices of a scatter. A word of the array contains the key of the
 * element, shifted left by `up`. Below it are the bits or the index of the element (`below`). If the
 * index does not fit, `order` has it. The passes sort by the bits from `up` on. */
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
    uint32_t places; /* not 0: elements are indices below this number, with layout `at` */
    axes at;
    void *keys[2];
    uint32_t *order[2];
    uint32_t *counts;                   /* of each digit, for all passes */
    uint32_t *starts, *ticket, *before; /* of this pass: keys with lower digits; data of CUB */
    index_checks checks;
} radix_args;
enum radix_form { RADIX_KEYS, RADIX_STARTS, RADIX_OUT };
const void *radix_kernel(size_t each, bool wide, enum radix_form form);
const void *radix_pass_kernel(bool wide, bool ordered);

/* Finds the k greatest elements of each line, for k up to SELECT_MOST. Each warp finds those of a part
 * of a line. Further launches select from these candidates, which are keys with indices. */
#define SELECT_MOST  32
#define SELECT_PART  4096 /* elements of a part */
#define SELECT_SPACE 128  /* candidates that a warp can store */
#define SELECT_WARPS 4
typedef struct select_args {
    const void *x;
    void *out;
    int64_t n, stride, lines, parts; /* n: elements of a line, or candidates in keys[0] */
    int32_t k, each;
    key_rule rule;
    bool indices;  /* the result is indices, not elements */
    bool chosen;   /* candidates of the previous launch are in keys[0] and order[0] */
    void *keys[2]; /* keys[1] and order[1] receive the candidates; NULL in the last launch */
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
/* ANY: computes the bin of each element by the formula. NUMBERS: compares it with the edges of bins,
 * in f32 or f64. VECTORS: as NUMBERS, for dense elements. */
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
cudaError_t sort_places(const void *index, const layout *at, int64_t n, const index_checks *checks,
                        void *scratch, uint32_t **keys, uint32_t **order, cudaStream_t q);

#ifdef __cplusplus
}
#endif
#endif
