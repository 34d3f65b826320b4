/* row_cache.cuh - rows along the last axis that stay in the registers or shared memory of the
 * threads that have read them. */
#ifndef ROW_CACHE_CUH
#define ROW_CACHE_CUH

#include "reduce.cuh"

#define EACH_LANE _Pragma("unroll") for (int l = 0; l < 4; l++)
#define EACH_PACK                                                                                            \
    _Pragma("unroll") for (int r = 0; r < R; r++) _Pragma("unroll") for (int h = 0; h < 4 / W; h++)
#define EACH_OF_PACK _Pragma("unroll") for (int j = 0; j < W; j++)

namespace
{

/* Offset of the first element of a row, for an operand with these strides along the outer axes. */
static __device__ inline int64_t row_offset(const row_args &a, const int64_t *stride, int64_t row)
{
    int64_t at = 0;
    uint64_t left = (uint64_t)row;
#pragma unroll 1
    for (int axis = a.outer - 1; axis >= 0; axis--) {
        const uint64_t q = axis ? quotient(left, a.outer_size[axis]) : 0;
        at += (int64_t)(left - q * a.outer_size[axis].by) * stride[axis];
        left = q;
    }
    return at;
}

static __device__ inline const T *row_of(const row_args &a, int64_t row)
{
    return (const T *)a.in + row_offset(a, a.outer_stride, row);
}

/* Gives the value of thread 0 of each group to the whole group. */
template <int G> static __device__ inline T from_first(T x) { return __shfl_sync(~0u, x, 0, G); }

/* Rows of at most R * REDUCE_LANES elements, one warp for each, in registers: x[r][l] is element r
 * * REDUCE_LANES + lane_of<W>(l, t). Elements are present or absent in groups of W; if W is not 1
 * they are aligned. */
template <int R, int W> struct warp_row {
    T x[R][4];
    int n, t;

    __device__ __forceinline__ int index_of(int r, int h) const
    {
        return r * REDUCE_LANES + lane_of<W>(h * W, t);
    }
    __device__ __forceinline__ bool has(int r, int l) const { return index_of(r, l / W) < n; }
    __device__ __forceinline__ void load(const T *in, int64_t stride, T absent)
    {
        EACH_PACK
        {
            packed<W> p;
            EACH_OF_PACK p.e[j] = absent;
            if (index_of(r, h) < n) p = *(const packed<W> *)(in + index_of(r, h) * (W > 1 ? 1 : stride));
            EACH_OF_PACK x[r][h * W + j] = p.e[j];
        }
    }
    template <class F> __device__ __forceinline__ void store_packs(T *out, F f) const
    {
        EACH_PACK
        {
            packed<W> p;
            EACH_OF_PACK p.e[j] = x[r][h * W + j];
            if (index_of(r, h) < n) *(packed<W> *)(out + index_of(r, h)) = f(p, index_of(r, h));
        }
    }
    template <class F> __device__ __forceinline__ void store(T *out, F f) const
    {
        store_packs(out, [=](packed<W> p, int) {
            EACH_OF_PACK p.e[j] = f(p.e[j]);
            return p;
        });
    }
};

/* Joins the lanes of each block in shared memory, by a warp for each block. Returns the results, in shared
 * memory. */
template <class Fold, int BLOCKS>
static __device__ inline const typename Fold::acc *
join_lanes(const typename Fold::acc (&lane)[BLOCKS][ROW_THREADS], int blocks)
{
    __shared__ typename Fold::acc s[BLOCKS];
    const int t = threadIdx.x % 32;
    for (int b = threadIdx.x / 32; b < BLOCKS; b += ROW_THREADS / 32) {
        typename Fold::acc e[4];
        EACH_LANE e[l] = b < blocks ? lane[b][lane_of<1>(l, t)] : Fold::start();
        const typename Fold::acc sum = join_warp<Fold, 1>(e);
        if (t == 0) s[b] = sum;
    }
    __syncthreads();
    return s;
}

/* Joins the results of blocks. */
template <class Fold, int BLOCKS>
static __device__ inline typename Fold::acc join_tree(typename Fold::acc (&v)[BLOCKS])
{
#pragma unroll
    for (int h = 1; h < BLOCKS; h *= 2)
#pragma unroll
        for (int b = 0; b < BLOCKS; b += 2 * h) v[b] = Fold::join(v[b], v[b + h]);
    return v[0];
}

/* Reduces a row from the lanes of its blocks in shared memory. Every thread gets the result. */
template <class Fold, int BLOCKS>
static __device__ inline typename Fold::acc join_blocks(const typename Fold::acc (&lane)[BLOCKS][ROW_THREADS],
                                                        int blocks)
{
    typename Fold::acc v[BLOCKS];
    const typename Fold::acc *s = join_lanes<Fold>(lane, blocks);
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) v[b] = s[b];
    return join_tree<Fold>(v);
}

} // namespace

#endif
