/* index_ops.h - steps that move or sort elements by data: scans, gathers, scatters, sorts and histograms. */
#ifndef INDEX_OPS_H
#define INDEX_OPS_H

#include "backend.h"
#include <math.h>

#ifdef __CUDACC__
#define ORDER_FN static __host__ __device__ inline
#else
#define ORDER_FN static inline
#endif

/* NULL, or why no machine supports such a step. Operators that compute with elements (scans, scatter_add,
 * scatter_max) do so in f32, f64 and i64 only. The others only move elements. */
const char *index_unsupported(const step *s);
const char *index_arithmetic_unsupported(const step *s);

/* The order of cumsum and cumprod (docs/semantics.md): runs of elements, groups of runs, blocks of groups. */
#define SCAN_RUN   16
#define SCAN_GROUP 256
#define SCAN_BLOCK 4096

/* A layout split in three: the axes before some axes, these axes, and the axes after them. Each part is
 * collapsed separately, and has at least rank 1. */
typedef struct axis_split {
    layout outer, along, inner;
} axis_split;
axis_split axis_split_at(const layout *l, int axis, int width);

/* The offset of element i of a layout, in row-major order. */
static inline int64_t layout_offset(const layout *l, int64_t i)
{
    int64_t at = 0;
    for (int a = l->rank; a-- > 1 && i;) {
        at += i % l->size[a] * l->stride[a];
        i /= l->size[a];
    }
    return l->rank ? at + i * l->stride[0] : at;
}

/* Reads an index. One that does not fit into int64_t becomes the greatest. */
ORDER_FN int64_t index_at(const void *p, duet_dtype type, int64_t i)
{
    switch (type) {
    case DUET_I8: return ((const int8_t *)p)[i];
    case DUET_I16: return ((const int16_t *)p)[i];
    case DUET_I32: return ((const int32_t *)p)[i];
    case DUET_U8: return ((const uint8_t *)p)[i];
    case DUET_U16: return ((const uint16_t *)p)[i];
    case DUET_U32: return ((const uint32_t *)p)[i];
    case DUET_U64: return ((const uint64_t *)p)[i] > INT64_MAX ? INT64_MAX : ((const int64_t *)p)[i];
    default: return ((const int64_t *)p)[i];
    }
}

/* Resolves an index into n elements, where negative ones count from the end. -1: it is out of bounds. */
ORDER_FN int64_t index_among(int64_t index, int64_t n)
{
    if (index < 0) index += n;
    return 0 <= index && index < n ? index : -1;
}

/* ---- elements as sort keys: unsigned integers of the same size and in the same order ---- */

/* The key of a floating-point number from its bits. NaN comes last, and -0 equals +0. */
ORDER_FN uint64_t float_key(uint64_t x, int bits, uint64_t infinity)
{
    const uint64_t sign = (uint64_t)1 << (bits - 1), size = x & (sign - 1);
    if (size > infinity) return sign | (sign - 1);
    if (!size) return sign;
    return x & sign ? sign - size : sign + size;
}

ORDER_FN uint64_t order_key(const void *p, duet_dtype type, int64_t i)
{
    switch (type) {
    case DUET_F32: return float_key(((const uint32_t *)p)[i], 32, 0x7f800000);
    case DUET_F64: return float_key(((const uint64_t *)p)[i], 64, 0x7ff0000000000000);
    case DUET_F16: return float_key(((const uint16_t *)p)[i], 16, 0x7c00);
    case DUET_BF16: return float_key(((const uint16_t *)p)[i], 16, 0x7f80);
    case DUET_I8: return (uint64_t)(((const int8_t *)p)[i] + 0x80);
    case DUET_I16: return (uint64_t)(((const int16_t *)p)[i] + 0x8000);
    case DUET_I32: return ((const uint32_t *)p)[i] ^ 0x80000000;
    case DUET_I64: return ((const uint64_t *)p)[i] ^ (uint64_t)1 << 63;
    case DUET_U16: return ((const uint16_t *)p)[i];
    case DUET_U32: return ((const uint32_t *)p)[i];
    case DUET_U64: return ((const uint64_t *)p)[i];
    default: return ((const uint8_t *)p)[i];
    }
}

ORDER_FN double half_number(uint16_t bits, int exponents)
{
    const int fraction = 15 - exponents, bias = (1 << (exponents - 1)) - 1,
              e = bits >> fraction & ((1 << exponents) - 1);
    const double f = bits & ((1 << fraction) - 1), sign = bits >> 15 ? -1 : 1;
    if (e == (1 << exponents) - 1) return f != 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * ldexp(e ? f + (1 << fraction) : f, (e ? e : 1) - bias - fraction);
}

ORDER_FN double order_number(const void *p, duet_dtype type, int64_t i)
{
    switch (type) {
    case DUET_F32: return ((const float *)p)[i];
    case DUET_F64: return ((const double *)p)[i];
    case DUET_F16: return half_number(((const uint16_t *)p)[i], 5);
    case DUET_BF16: return half_number(((const uint16_t *)p)[i], 8);
    case DUET_BOOL: return ((const uint8_t *)p)[i];
    case DUET_U64: return (double)((const uint64_t *)p)[i];
    default: return (double)index_at(p, type, i);
    }
}

/* top_k sorts in descending order, or in ascending order if it returns the smallest elements. argsort and
 * top_k_indices give indices. */
static inline bool sorts_down(const step *s)
{
    return (s->kernel == OP_top_k || s->kernel == OP_top_k_indices) && !s->attr.index.smallest;
}
static inline bool sorts_indices(const step *s)
{
    return s->kernel == OP_argsort || s->kernel == OP_top_k_indices;
}

/* The bins of a histogram. Edge k is low + k * width, the last one is high. */
typedef struct bins {
    double low, high, width;
    int64_t count;
} bins;
bins bins_of(const step *s);

/* The bin of x, or -1. The quotient gives the first bin to try; comparing x with edges is exact. */
ORDER_FN double bin_edge(const bins *b, int64_t k)
{
    return k == b->count ? b->high : b->low + (double)k * b->width;
}
ORDER_FN int64_t bin_of(const bins *b, double x)
{
    if (!(x >= b->low && x <= b->high)) return -1;
    const double guess = (x - b->low) / b->width;
    int64_t k = guess < (double)b->count ? (int64_t)guess : b->count - 1;
    while (k > 0 && x < bin_edge(b, k)) k--;
    while (k < b->count - 1 && x >= bin_edge(b, k + 1)) k++;
    return k;
}

#endif
