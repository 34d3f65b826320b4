/* pointwise.cuh - a row's formula over all elements. Row::of(x, y, z, s, r) is the formula; what it does not use is never read. */
#ifndef POINTWISE_CUH
#define POINTWISE_CUH

#include "device.cuh"

/* The vector at element e: of its elements there are low .. high - 1. */
struct reach {
    int64_t e;
    int     low, high;
    __device__ bool whole() const { return low == 0 && high == WIDTH; }
    __device__ bool has(int j) const { return j >= low && j < high; }
};

static __device__ inline int within_vector(int64_t j)
{
    return j < 0 ? 0 : j > WIDTH ? WIDTH : (int)j;
}

static __device__ inline reach reach_of(const flat_args &a, int round)
{
    const int64_t vector = (int64_t)blockIdx.x * a.rounds * POINT_THREADS + round * POINT_THREADS + threadIdx.x;
    const int64_t e = vector * WIDTH - a.lead;
    return { e, within_vector(-e), round < a.rounds ? within_vector(a.n - e) : 0 };
}

static __device__ inline void fetch_dense(T (&v)[WIDTH], const T *at, const reach &r, bool vectors)
{
    if (r.whole() && vectors) {
        const vec all = *(const vec *)(at + r.e);
#pragma unroll
        for (int j = 0; j < WIDTH; j++) v[j] = all.e[j];
    } else {
#pragma unroll
        for (int j = 0; j < WIDTH; j++) v[j] = r.has(j) ? at[r.e + j] : T(0);
    }
}

/* at[e / run % size * stride]. A whole vector that no run or cycle is shorter than meets one end of either at most. */
static __device__ inline void fetch_cycle(T (&v)[WIDTH], const flat_operand &o, const reach &r)
{
    const T *at = (const T *)o.at;
    const uint32_t e = (uint32_t)r.e;
    if (r.whole() && o.how == HOW_CYCLE) {
        const uint32_t first = e - quotient(e, o.size) * o.size.by;
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            const uint32_t i = first + j < o.size.by ? first + j : first + j - o.size.by;
            v[j] = at[(int32_t)i * o.stride];
        }
    } else if (r.whole() && o.how == HOW_RUNS) {
        const uint32_t run = quotient(e, o.run), left = o.run.by - (e - run * o.run.by);
        const uint32_t i = run - quotient(run, o.size) * o.size.by, next = i + 1 < o.size.by ? i + 1 : 0;
        const T here = at[(int32_t)i * o.stride], there = at[(int32_t)next * o.stride];
#pragma unroll
        for (int j = 0; j < WIDTH; j++) v[j] = j < left ? here : there;
    } else {
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            const uint32_t run = quotient(e + j, o.run), i = run - quotient(run, o.size) * o.size.by;
            v[j] = r.has(j) ? at[(int32_t)i * o.stride] : T(0);
        }
    }
}

/* What one operand is for this thread's vectors; all loads are on their way before one is used. */
static __device__ inline void fetch(T (&v)[POINT_ROUNDS][WIDTH], const flat_args &a, const flat_operand &o)
{
    const T *at = (const T *)o.at;
    if (o.how == HOW_NUMBER || o.how == HOW_SAME) {
        const T same = o.how == HOW_SAME ? *at : (T)o.number;
#pragma unroll
        for (int u = 0; u < POINT_ROUNDS; u++)
#pragma unroll
            for (int j = 0; j < WIDTH; j++) v[u][j] = same;
    } else if (o.how == HOW_VECTORS || o.how == HOW_SCALARS) {
#pragma unroll
        for (int u = 0; u < POINT_ROUNDS; u++) fetch_dense(v[u], at, reach_of(a, u), o.how == HOW_VECTORS);
    } else {
#pragma unroll
        for (int u = 0; u < POINT_ROUNDS; u++) fetch_cycle(v[u], o, reach_of(a, u));
    }
}

static __device__ inline void store(T *out, const T (&v)[WIDTH], const reach &r)
{
    if (r.whole()) {
        vec all;
#pragma unroll
        for (int j = 0; j < WIDTH; j++) all.e[j] = v[j];
        *(vec *)(out + r.e) = all;
    } else {
#pragma unroll
        for (int j = 0; j < WIDTH; j++)
            if (r.has(j)) out[r.e + j] = v[j];
    }
}

template <class Row> KERNEL(POINT_THREADS) flat(const __grid_constant__ flat_args a)
{
    T x[POINT_ROUNDS][WIDTH], y[POINT_ROUNDS][WIDTH], z[POINT_ROUNDS][WIDTH];
    const T s = (T)a.s, r = (T)a.r;
    fetch(x, a, a.in[0]), fetch(y, a, a.in[1]), fetch(z, a, a.in[2]);
#pragma unroll
    for (int u = 0; u < POINT_ROUNDS; u++) {
        const reach here = reach_of(a, u);
        if (here.high == 0) break;
        T v[WIDTH];
#pragma unroll
        for (int j = 0; j < WIDTH; j++) v[j] = Row::of(x[u][j], y[u][j], z[u][j], s, r);
        store((T *)a.out, v, here);
    }
}

/* Where the elements i[] lie in each operand. The loops over axes are not unrolled: a.size and a.stride stay in constant memory. */
static __device__ inline void walk(const strided_args &a, uint32_t (&i)[STRIDED_EACH], int32_t (&at)[1 + POINT_INPUTS][STRIDED_EACH])
{
#pragma unroll 1
    for (int axis = a.rank - 1; axis > 0; axis--)
#pragma unroll
        for (int u = 0; u < STRIDED_EACH; u++) {
            const uint32_t q = quotient(i[u], a.size[axis]);
#pragma unroll
            for (int k = 0; k < 1 + POINT_INPUTS; k++) at[k][u] += (int32_t)(i[u] - q * a.size[axis].by) * a.stride[k][axis];
            i[u] = q;
        }
#pragma unroll
    for (int u = 0; u < STRIDED_EACH; u++)
#pragma unroll
        for (int k = 0; k < 1 + POINT_INPUTS; k++) at[k][u] += (int32_t)i[u] * a.stride[k][0];
}

static __device__ inline void gather(T (&v)[STRIDED_EACH], const strided_args &a, int k, const int32_t (&at)[STRIDED_EACH], uint32_t first)
{
    const T number = (T)a.number[k];
#pragma unroll
    for (int u = 0; u < STRIDED_EACH; u++)
        v[u] = a.at[k] && first + u * POINT_THREADS < a.n ? ((const T *)a.at[k])[at[u]] : number;
}

template <class Row> KERNEL(POINT_THREADS) strided(const __grid_constant__ strided_args a)
{
    const uint32_t first = blockIdx.x * (POINT_THREADS * STRIDED_EACH) + threadIdx.x;
    const T s = (T)a.s, r = (T)a.r;
    T x[STRIDED_EACH], y[STRIDED_EACH], z[STRIDED_EACH];
    uint32_t i[STRIDED_EACH];
    int32_t at[1 + POINT_INPUTS][STRIDED_EACH] = {};
#pragma unroll
    for (int u = 0; u < STRIDED_EACH; u++) i[u] = first + u * POINT_THREADS;
    walk(a, i, at);
    gather(x, a, 1, at[1], first), gather(y, a, 2, at[2], first), gather(z, a, 3, at[3], first);
#pragma unroll
    for (int u = 0; u < STRIDED_EACH; u++)
        if (first + u * POINT_THREADS < a.n) ((T *)a.at[0])[at[0][u]] = Row::of(x[u], y[u], z[u], s, r);
}

#endif
