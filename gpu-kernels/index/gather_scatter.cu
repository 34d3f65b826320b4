/* gather_scatter.cu - kernels of take, take_along_axis and one_hot for each size of elements; of
 * put, scatter_add, scatter_mul and scatter_max, whose indices have been sorted; and of histogram. */
#include "gather_scatter.cuh"

namespace
{

struct alignas(16) sixteen {
    uint64_t half[2];
};

template <class E> KERNEL(INDEX_THREADS) take(const __grid_constant__ take_args a)
{
    const int64_t i = thread_index();
    if (i >= a.count) return;
    const uint64_t row = quotient((uint64_t)i, a.by_inner), c = i - row * a.by_inner.by;
    const uint64_t o = quotient(row, a.by_indices), j = row - o * a.by_indices.by;
    const uint64_t element = a.each ? (uint64_t)i : j;
    const int64_t k =
        checked_index(a.checks, index_at(a.index, (duet_dtype)a.type, element_offset(a.at, element)),
                      (int64_t)element, a.n);
    E e = {};
    if (k >= 0) e = ((const E *)a.x)[element_offset(a.outer, o) + k * a.stride + element_offset(a.inner, c)];
    ((E *)a.out)[i] = e;
}

/* A group of lanes, which copies rows of contiguous units. A lane copies ROWS_EACH units, of which
 * SIDE are in the same row. The group reads the index of each row once. */
struct group {
    uint32_t lanes, groups; /* lanes of a group; groups of a thread block */
    uint32_t first;         /* the first row of the group; row r is first + r * groups */
    uint32_t at;            /* the first unit of this lane */

    template <int SIDE> __device__ inline void find(const rows_args &a)
    {
        const uint32_t block = quotient(blockIdx.x, a.by_chunks), chunk = blockIdx.x - block * a.by_chunks.by;
        lanes = 1u << a.lanes;
        groups = INDEX_THREADS >> a.lanes;
        first = block * (ROWS_EACH / SIDE) * groups + (threadIdx.x >> a.lanes);
        at = chunk * SIDE * lanes + (threadIdx.x & (lanes - 1));
    }
};

enum { NO_INDEX = ~0u }; /* stands for an index that does not exist */
template <class I, int N>
static __device__ inline void read_indices(const rows_args &a, const uint32_t at[N], int64_t k[N])
{
#pragma unroll
    for (int r = 0; r < N; r++) k[r] = at[r] == NO_INDEX ? a.n : ((const I *)a.index)[at[r] * a.index_stride];
}

/* Reads N indices and converts them to positions along the axis, or -1 for an index out of bounds, which
 * is reported.
 * The type of the indices is tested before all reads, so that the reads overlap. */
template <int N>
static __device__ inline void places_at(const rows_args &a, const uint32_t at[N], int64_t k[N])
{
    if (a.type == DUET_I64) read_indices<int64_t, N>(a, at, k);
    else if (a.type == DUET_I32) read_indices<int32_t, N>(a, at, k);
    else
        for (int r = 0; r < N; r++)
            k[r] = at[r] == NO_INDEX ? a.n : index_at(a.index, (duet_dtype)a.type, at[r] * a.index_stride);
#pragma unroll
    for (int r = 0; r < N; r++) k[r] = at[r] == NO_INDEX ? -1 : checked_index(a.checks, k[r], at[r], a.n);
}

template <class E, int SIDE> KERNEL(INDEX_THREADS) take_rows(const __grid_constant__ rows_args a)
{
    enum { ROWS = ROWS_EACH / SIDE };
    group g;
    g.find<SIDE>(a);
    const E *from[ROWS];
    E e[ROWS][SIDE] = {};
    uint32_t o[ROWS], at[ROWS];
    int64_t place[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const uint32_t row = g.first + r * g.groups;
        o[r] = row < a.rows ? quotient(row, a.by_indices) : 0;
        at[r] = row < a.rows ? row - o[r] * a.by_indices.by : NO_INDEX;
    }
    places_at<ROWS>(a, at, place);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        from[r] = place[r] < 0 ? NULL : (const E *)a.x + o[r] * a.outer_stride + place[r] * a.stride;
#pragma unroll
    for (int i = 0; i < ROWS_EACH; i++) {
        const uint32_t u = g.at + i % SIDE * g.lanes;
        if (from[i / SIDE] && u < a.width) e[i / SIDE][i % SIDE] = from[i / SIDE][u];
    }
#pragma unroll
    for (int i = 0; i < ROWS_EACH; i++) {
        const uint32_t row = g.first + i / SIDE * g.groups, u = g.at + i % SIDE * g.lanes;
        if (row < a.rows && u < a.width) ((E *)a.out)[(int64_t)row * a.width + u] = e[i / SIDE][i % SIDE];
    }
}

/* take_along_axis: every element has its own index. The elements of a thread are INDEX_THREADS
 * apart. */
template <class E> KERNEL(INDEX_THREADS) take_each(const __grid_constant__ rows_args a)
{
    E e[ROWS_EACH] = {};
    const uint32_t first = blockIdx.x * (ROWS_EACH * INDEX_THREADS) + threadIdx.x;
    uint32_t at[ROWS_EACH];
    int64_t place[ROWS_EACH];
#pragma unroll
    for (int r = 0; r < ROWS_EACH; r++)
        at[r] = first + r * INDEX_THREADS < a.rows ? first + r * INDEX_THREADS : NO_INDEX;
    places_at<ROWS_EACH>(a, at, place);
#pragma unroll
    for (int r = 0; r < ROWS_EACH; r++) {
        if (place[r] < 0) continue;
        const uint32_t row = quotient(at[r], a.by_width), c = at[r] - row * a.by_width.by,
                       o = quotient(row, a.by_indices);
        e[r] = ((const E *)a.x)[o * a.outer_stride + place[r] * a.stride + c * a.inner_stride];
    }
#pragma unroll
    for (int r = 0; r < ROWS_EACH; r++)
        if (first + r * INDEX_THREADS < a.rows) ((E *)a.out)[first + r * INDEX_THREADS] = e[r];
}

/* Each thread writes 16 bytes at an aligned address. They may belong to several rows. */
template <class E> KERNEL(INDEX_THREADS) one_hot(const __grid_constant__ take_args a)
{
    enum { MANY = 16 / sizeof(E) };
    struct alignas(16) vector {
        E e[MANY];
    } all = {};
    const int64_t first = thread_index() * MANY - a.lead, begin = max(first, (int64_t)0),
                  end = min(first + MANY, a.count);
    if (begin >= end) return;
    uint64_t row = quotient((uint64_t)begin, a.by_inner);
    int64_t c = begin - (int64_t)(row * a.by_inner.by), k = -1;
    bool has_index = false; /* is k the index of this row? */
#pragma unroll
    for (int u = 0; u < MANY; u++) {
        if (first + u < begin || first + u >= end) continue;
        if (!has_index) {
            k = checked_index(a.checks, index_at(a.index, (duet_dtype)a.type, element_offset(a.at, row)),
                              (int64_t)row, a.n);
            has_index = true;
        }
        if (c == k) all.e[u] = *(const E *)a.one;
        if (++c == a.n) {
            c = 0;
            row++;
            has_index = false;
        }
    }
    if (end - first == MANY && begin == first) *(vector *)((E *)a.out + first) = all;
    else
#pragma unroll
        for (int u = 0; u < MANY; u++)
            if (first + u >= begin && first + u < end) ((E *)a.out)[first + u] = all.e[u];
}

/* ---- scatter ---- */

struct put {
    template <class E> static __device__ inline E onto(E, E z) { return z; }
};
struct add {
    template <class E> static __device__ inline E onto(E x, E z) { return x + z; }
};
struct multiply {
    template <class E> static __device__ inline E onto(E x, E z) { return x * z; }
};
static __device__ inline bool is_minus(int64_t) { return false; }
static __device__ inline bool is_minus(float x) { return signbit(x); }
static __device__ inline bool is_minus(double x) { return signbit(x); }
struct greatest {
    template <class E> static __device__ inline E onto(E x, E z)
    {
        if (x != x) return x;
        return z != z || z > x || (z == x && is_minus(x)) ? z : x;
    }
};

/* Returns the position of the first of m sorted keys that is not below `key`. */
static __device__ inline int64_t first_not_below(const uint32_t *keys, int64_t m, uint32_t key)
{
    int64_t low = 0;
    while (m > 0) {
        const int64_t half = m / 2;
        if (keys[low + half] < key) {
            low += half + 1;
            m -= half + 1;
        } else m = half;
    }
    return low;
}

template <class Op, class E> KERNEL(INDEX_THREADS) scatter(const __grid_constant__ scatter_args a)
{
    const int64_t i = thread_index();
    if (i >= a.count) return;
    const uint64_t row = quotient((uint64_t)i, a.by_inner), c = i - row * a.by_inner.by;
    const uint64_t o = quotient(row, a.by_n), d = row - o * a.by_n.by;
    E e =
        ((const E *)a.x)[element_offset(a.x_outer, o) + (int64_t)d * a.stride + element_offset(a.x_inner, c)];
    const E *z = (const E *)a.z + element_offset(a.z_outer, o) + element_offset(a.z_inner, c);
    for (int64_t k = first_not_below(a.keys, a.m, (uint32_t)d); k < a.m && a.keys[k] == d; k++)
        e = Op::template onto<E>(e, z[element_offset(a.z_along, a.order[k])]);
    ((E *)a.out)[i] = e;
}

/* The elements of one unit of a row. */
template <class E, int MANY> struct alignas(sizeof(E) * MANY) unit {
    E e[MANY];
};

/* A group of lanes computes one row of `out`, SIDE units for each lane. */
template <class Op, class E, int MANY, int SIDE>
KERNEL(INDEX_THREADS)
scatter_rows(const __grid_constant__ scatter_args a)
{
    typedef unit<E, MANY> unit;
    const rows_args &rows = a.rows;
    const uint32_t lanes = 1u << rows.lanes, block = quotient(blockIdx.x, rows.by_chunks);
    const uint32_t row = block * (INDEX_THREADS >> rows.lanes) + (threadIdx.x >> rows.lanes);
    const uint32_t at = (blockIdx.x - block * rows.by_chunks.by) * SIDE * lanes + (threadIdx.x & (lanes - 1));
    if (row >= rows.rows || at >= rows.width) return;
    const uint32_t o = quotient(row, rows.by_indices), d = row - o * rows.by_indices.by;
    const unit *x = (const unit *)a.x + o * rows.outer_stride + d * rows.stride,
               *z = (const unit *)a.z + o * a.z_outer_stride;
    unit e[SIDE];
#pragma unroll
    for (int s = 0; s < SIDE; s++)
        if (at + s * lanes < rows.width) e[s] = x[at + s * lanes];
    for (int64_t k = first_not_below(a.keys, a.m, d); k < a.m && a.keys[k] == d; k++) {
        const unit *from = z + a.order[k] * a.z_stride;
#pragma unroll
        for (int s = 0; s < SIDE; s++) {
            if (at + s * lanes >= rows.width) continue;
            const unit with = from[at + s * lanes];
#pragma unroll
            for (int u = 0; u < MANY; u++) e[s].e[u] = Op::template onto<E>(e[s].e[u], with.e[u]);
        }
    }
#pragma unroll
    for (int s = 0; s < SIDE; s++)
        if (at + s * lanes < rows.width) ((unit *)a.out)[(int64_t)row * rows.width + at + s * lanes] = e[s];
}

template <class Op, class E> static const void *scatter_as(enum scatter_form form)
{
    enum { MANY = 16 / sizeof(E) };
    switch (form) {
    case SCATTER_ROWS: return (const void *)scatter_rows<Op, E, 1, 1>;
    case SCATTER_UNITS: return (const void *)scatter_rows<Op, E, MANY, 1>;
    case SCATTER_LONG: return (const void *)scatter_rows<Op, E, MANY, 4>;
    default: return (const void *)scatter<Op, E>;
    }
}

template <class Op> static const void *scatter_of(duet_dtype type, enum scatter_form form)
{
    if (type == DUET_F32) return scatter_as<Op, float>(form);
    if (type == DUET_F64) return scatter_as<Op, double>(form);
    return scatter_as<Op, int64_t>(form);
}

/* ---- histogram ---- */

KERNEL(INDEX_THREADS) count(const __grid_constant__ count_args a)
{
    extern __shared__ uint64_t shared[];
    uint32_t *own = (uint32_t *)shared;
    for (int64_t k = threadIdx.x; a.copies && k < a.of.count; k += INDEX_THREADS) own[k] = 0;
    __syncthreads();
    for (int64_t i = thread_index(); i < a.n; i += (int64_t)gridDim.x * INDEX_THREADS) {
        const int64_t k = bin_of(&a.of, order_number(a.x, (duet_dtype)a.type, element_offset(a.at, i)));
        if (k < 0) continue;
        if (a.copies) atomicAdd(own + k, 1u);
        else atomicAdd(a.out + k, 1ull);
    }
    __syncthreads();
    for (int64_t k = threadIdx.x; a.copies && k < a.of.count; k += INDEX_THREADS)
        if (own[k]) atomicAdd(a.out + k, (unsigned long long)own[k]);
}

/* Round a limit of a histogram up or down to a type. An element of this type compares with the
 * rounded limit as it compares with x. */
static __device__ inline void not_below(float *n, double x) { *n = __double2float_ru(x); }
static __device__ inline void not_below(double *n, double x) { *n = x; }
static __device__ inline void not_above(float *n, double x) { *n = __double2float_rd(x); }
static __device__ inline void not_above(double *n, double x) { *n = x; }

/* Does what bin_of does, in the type of the elements. A product gives the bin where the search
 * starts; comparisons with the edges then find the bin. */
template <class N> struct edges {
    const N *edge;
    N low, high, inverse;
    int count;

    __device__ inline void set(const count_args &a, N *own_edges)
    {
        edge = own_edges;
        count = (int)a.of.count;
        inverse = (N)a.inverse;
        not_below(&low, a.of.low);
        not_above(&high, a.of.high);
        for (int k = threadIdx.x; k < count; k += INDEX_THREADS) not_below(own_edges + k, bin_edge(&a.of, k));
    }
    __device__ inline void count_in(uint32_t *counts, N x) const
    {
        if (!(x >= low && x <= high)) return;
        const N guess = (x - low) * inverse;
        int k = guess < (N)count ? (int)guess : count - 1;
        while (k > 0 && x < edge[k]) k--;
        while (k < count - 1 && x >= edge[k + 1]) k++;
        atomicAdd(counts + k, 1u);
    }
};

template <class N, bool VECTORS>
static __device__ inline void count_all(const count_args &a, const edges<N> &e, uint32_t *counts)
{
    enum { MANY = VECTORS ? 16 / sizeof(N) : 1, ROUNDS = 4 };
    typedef unit<N, MANY> unit;
    const int64_t all = (int64_t)gridDim.x * INDEX_THREADS, units = a.n / MANY;
    for (int64_t first = thread_index(); first < units; first += ROUNDS * all) {
        unit v[ROUNDS];
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            const int64_t i = first + r * all;
            if (i >= units) v[r].e[0] = (N)NAN; /* NAN belongs to no bin */
            else if (VECTORS) v[r] = ((const unit *)a.x)[i];
            else v[r].e[0] = (N)order_number(a.x, (duet_dtype)a.type, element_offset(a.at, i));
        }
#pragma unroll
        for (int r = 0; r < ROUNDS; r++)
#pragma unroll
            for (int u = 0; u < MANY; u++)
                if (first + r * all < units) e.count_in(counts, v[r].e[u]);
    }
    if (VECTORS && thread_index() < a.n - units * MANY)
        e.count_in(counts, ((const N *)a.x)[units * MANY + thread_index()]);
}

template <class N, bool VECTORS> KERNEL(INDEX_THREADS) count_numbers(const __grid_constant__ count_args a)
{
    extern __shared__ uint64_t shared[];
    const int count = (int)a.of.count, bins = a.copies * count;
    uint32_t *counts = (uint32_t *)((N *)shared + count);
    edges<N> e;
    e.set(a, (N *)shared);
    for (int k = threadIdx.x; k < bins; k += INDEX_THREADS) counts[k] = 0;
    __syncthreads();
    count_all<N, VECTORS>(a, e, counts + (threadIdx.x / 32 & (a.copies - 1)) * count);
    __syncthreads();
    for (int k = threadIdx.x; k < count; k += INDEX_THREADS) {
        unsigned long long sum = 0;
        for (int c = 0; c < a.copies; c++) sum += counts[c * count + k];
        if (sum) atomicAdd(a.out + k, sum);
    }
}

template <class N> static const void *count_as(bool vectors)
{
    return vectors ? (const void *)count_numbers<N, true> : (const void *)count_numbers<N, false>;
}

} // namespace

#define BY_SIZE(kernel)                                                                                      \
    bytes == 1   ? (const void *)kernel(uint8_t)                                                             \
    : bytes == 2 ? (const void *)kernel(uint16_t)                                                            \
    : bytes == 4 ? (const void *)kernel(uint32_t)                                                            \
    : bytes == 8 ? (const void *)kernel(uint64_t)                                                            \
                 : (const void *)kernel(sixteen)
#define TAKE(E)     take<E>
#define HOT(E)      one_hot<E>
#define EACH(E)     take_each<E>
#define ROWS1(E)    take_rows<E, 1>
#define ROWS2(E)    take_rows<E, 2>
#define ROWS4(E)    take_rows<E, 4>
#define PUT(E)      scatter<put, E>
#define PUT_ROWS(E) scatter_rows<put, E, 1, 1>

const void *take_kernel(size_t bytes, enum take_form form)
{
    switch (form) {
    case TAKE_HOT: return BY_SIZE(HOT);
    case TAKE_EACH: return BY_SIZE(EACH);
    case TAKE_ROWS: return BY_SIZE(ROWS1);
    case TAKE_ROWS2: return BY_SIZE(ROWS2);
    case TAKE_ROWS4: return BY_SIZE(ROWS4);
    default: return BY_SIZE(TAKE);
    }
}

const void *scatter_kernel(int kernel, duet_dtype type, size_t bytes, enum scatter_form form)
{
    if (kernel == OP_put) {
        if (form == SCATTER_ANY) return BY_SIZE(PUT);
        if (form == SCATTER_ROWS) return BY_SIZE(PUT_ROWS);
        return scatter_as<put, sixteen>(form);
    }
    if (kernel == OP_scatter_mul) return scatter_of<multiply>(type, form);
    return kernel == OP_scatter_add ? scatter_of<add>(type, form) : scatter_of<greatest>(type, form);
}

const void *count_kernel(duet_dtype type, enum count_form form)
{
    if (form == COUNT_ANY) return (const void *)count;
    return counts_in_f32(type) ? count_as<float>(form == COUNT_VECTORS)
                               : count_as<double>(form == COUNT_VECTORS);
}
