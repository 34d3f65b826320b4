/* fused.cuh - applies the formula of a row to all elements. Row::of(x, y, z, s, r) is the formula;
 * operands that it does not use are not read. */
#ifndef FUSED_CUH
#define FUSED_CUH

#include "device.cuh"
#include "fused_kernels.h"

/* The vectors of one operand in one thread. */
typedef T vectors[POINT_ROUNDS][WIDTH];

#define EACH_ROUND     _Pragma("unroll") for (int u = 0; u < POINT_ROUNDS; u++)
#define EACH_IN_VECTOR _Pragma("unroll") for (int j = 0; j < WIDTH; j++)
#define ROUND_ELEMENTS (POINT_THREADS * WIDTH)

/* The offset of element e: e, or e / run % size * stride. */
static __device__ inline int64_t index_of(const flat_operand &o, int64_t e)
{
    const uint32_t run = quotient((uint32_t)e, o.run);
    const int32_t cycle = (int32_t)(run - quotient(run, o.size) * o.size.by) * o.stride;
    return o.how <= HOW_SCALARS ? e : cycle;
}

/* The same for e and the following elements, which cross at most one end of a cycle or run. */
static __device__ inline void fetch_cycle(T (&v)[WIDTH], const flat_operand &o, uint32_t e)
{
    const T *at = (const T *)o.at;
    const uint32_t first = e - quotient(e, o.size) * o.size.by;
    EACH_IN_VECTOR
    {
        const uint32_t i = first + j < o.size.by ? first + j : first + j - o.size.by;
        v[j] = at[(int32_t)i * o.stride];
    }
}

static __device__ inline void fetch_run(T (&v)[WIDTH], const flat_operand &o, uint32_t e)
{
    const T *at = (const T *)o.at;
    const uint32_t run = quotient(e, o.run), left = o.run.by - (e - run * o.run.by);
    const uint32_t i = run - quotient(run, o.size) * o.size.by, next = i + 1 < o.size.by ? i + 1 : 0;
    const T here = at[(int32_t)i * o.stride], there = at[(int32_t)next * o.stride];
    EACH_IN_VECTOR v[j] = j < left ? here : there;
}

/* For thread blocks inside the output; the first vector of the thread is at element e. Operands
 * with the layout of the output are loaded first and without a branch, so that all these loads are
 * issued at once. */
static __device__ inline void fetch_plain(vectors &v, const flat_args &a, const flat_operand &o, int64_t e)
{
    const T number = (T)o.number;
    EACH_ROUND
    {
        vec all;
        EACH_IN_VECTOR all.e[j] = number;
        if (o.how == HOW_VECTORS && u < a.rounds)
            all = *(const vec *)((const T *)o.at + e + u * ROUND_ELEMENTS);
        EACH_IN_VECTOR v[u][j] = all.e[j];
    }
}

static __device__ inline void fetch_other(vectors &v, const flat_args &a, const flat_operand &o, int64_t e)
{
    const T *at = (const T *)o.at;
    if (o.how <= HOW_VECTORS) return;
    EACH_ROUND if (u < a.rounds)
    {
        const int64_t f = e + u * ROUND_ELEMENTS;
        if (o.how == HOW_CYCLE) fetch_cycle(v[u], o, (uint32_t)f);
        else if (o.how == HOW_RUNS) fetch_run(v[u], o, (uint32_t)f);
        else EACH_IN_VECTOR v[u][j] = at[index_of(o, f + j)];
    }
}

/* At the ends of the output, element by element. */
static __device__ inline void fetch_edge(vectors &v, const flat_args &a, const flat_operand &o, int64_t e)
{
    const T *at = (const T *)o.at;
    EACH_ROUND EACH_IN_VECTOR
    {
        const int64_t f = e + u * ROUND_ELEMENTS + j;
        v[u][j] = (T)o.number;
        if (o.how != HOW_NUMBER && u < a.rounds && f >= 0 && f < a.n) v[u][j] = at[index_of(o, f)];
    }
}

static __device__ inline void store(T *out, const T (&v)[WIDTH], const flat_args &a, int64_t e, bool inside)
{
    if (inside) {
        vec all;
        EACH_IN_VECTOR all.e[j] = v[j];
        *(vec *)(out + e) = all;
    } else {
        EACH_IN_VECTOR if (e + j >= 0 && e + j < a.n) out[e + j] = v[j];
    }
}

template <class Row> KERNEL(POINT_THREADS) flat(const __grid_constant__ flat_args a)
{
    const int64_t first = (int64_t)blockIdx.x * a.rounds * ROUND_ELEMENTS - a.lead,
                  e = first + threadIdx.x * WIDTH;
    const bool inside = first >= 0 && first + a.rounds * ROUND_ELEMENTS <= a.n;
    const T s = (T)a.s, r = (T)a.r;
    vectors x, y, z;
    if (inside) {
        fetch_plain(x, a, a.in[0], e);
        fetch_plain(y, a, a.in[1], e);
        fetch_plain(z, a, a.in[2], e);
        fetch_other(x, a, a.in[0], e);
        fetch_other(y, a, a.in[1], e);
        fetch_other(z, a, a.in[2], e);
    } else {
        fetch_edge(x, a, a.in[0], e);
        fetch_edge(y, a, a.in[1], e);
        fetch_edge(z, a, a.in[2], e);
    }
    EACH_ROUND
    {
        if (u >= a.rounds) break;
        T v[WIDTH];
        EACH_IN_VECTOR v[j] = Row::of(x[u][j], y[u][j], z[u][j], s, r);
        store((T *)a.out, v, a, e + u * ROUND_ELEMENTS, inside);
    }
}

/* Computes the offsets of the elements i[] in each operand. The loops over axes are not unrolled,
 * so that a.size and a.stride stay in constant memory. */
static __device__ inline void walk(const strided_args &a, uint32_t (&i)[STRIDED_EACH],
                                   int32_t (&at)[1 + POINT_INPUTS][STRIDED_EACH])
{
#pragma unroll 1
    for (int axis = a.rank - 1; axis > 0; axis--)
#pragma unroll
        for (int u = 0; u < STRIDED_EACH; u++) {
            const uint32_t q = quotient(i[u], a.size[axis]);
#pragma unroll
            for (int k = 0; k < 1 + POINT_INPUTS; k++)
                at[k][u] += (int32_t)(i[u] - q * a.size[axis].by) * a.stride[k][axis];
            i[u] = q;
        }
#pragma unroll
    for (int u = 0; u < STRIDED_EACH; u++)
#pragma unroll
        for (int k = 0; k < 1 + POINT_INPUTS; k++) at[k][u] += (int32_t)i[u] * a.stride[k][0];
}

static __device__ inline void gather(T (&v)[STRIDED_EACH], const strided_args &a, int k,
                                     const int32_t (&at)[STRIDED_EACH], uint32_t first)
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
    gather(x, a, 1, at[1], first);
    gather(y, a, 2, at[2], first);
    gather(z, a, 3, at[3], first);
#pragma unroll
    for (int u = 0; u < STRIDED_EACH; u++)
        if (first + u * POINT_THREADS < a.n) ((T *)a.at[0])[at[0][u]] = Row::of(x[u], y[u], z[u], s, r);
}

#endif
