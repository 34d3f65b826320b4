/* radix_sort.cu - the kernel for one pass of a radix sort of long lines, over 8 bits. It is the
 * device code of CUB: it counts and ranks the keys of a tile, looks back for the counts of the
 * tiles before it, and moves the keys. sort.c launches it, because the host code of CUB refers to
 * exit and to the C++ runtime. */
#include <cub/config.cuh>

/* Replaces the header block_load.cuh, of which the kernel of CUB needs only this function. That
 * header includes iostream, which initialises the C++ runtime before main. */
CUB_NAMESPACE_BEGIN
template <class T, int N>
static __device__ __forceinline__ void LoadDirectWarpStriped(int thread, const T *from, T (&to)[N])
{
    const int first = thread / 32 * (32 * N) + thread % 32;
#pragma unroll
    for (int k = 0; k < N; k++) to[k] = from[first + 32 * k];
}
template <class T, int N>
static __device__ __forceinline__ void LoadDirectWarpStriped(int thread, const T *from, T (&to)[N], int many)
{
    const int first = thread / 32 * (32 * N) + thread % 32;
#pragma unroll
    for (int k = 0; k < N; k++)
        if (first + 32 * k < many) to[k] = from[first + 32 * k];
}
template <class T, int N, class U>
static __device__ __forceinline__ void LoadDirectWarpStriped(int thread, const T *from, T (&to)[N], int many,
                                                             U other)
{
#pragma unroll
    for (int k = 0; k < N; k++) to[k] = other;
    LoadDirectWarpStriped(thread, from, to, many);
}
CUB_NAMESPACE_END
#include <cub/agent/agent_radix_sort_onesweep.cuh>

#include <duet/duet.h>
extern "C" {
#include "index_kernels.h"
}

CUB_NAMESPACE_BEGIN
namespace detail
{
namespace radix_sort /* CUB has the agent here in newer versions, in namespace cub in older ones */
{
}
} // namespace detail
CUB_NAMESPACE_END

namespace
{

using namespace cub;
using namespace cub::detail::radix_sort;

/* The tuning that CUB chooses for compute capability 9.0. */
template <class Key>
using policy = AgentRadixSortOnesweepPolicy<RADIX_THREADS, sizeof(Key) == 4 ? 20 : 30, Key, 1,
                                            RADIX_RANK_MATCH_EARLY_COUNTS_ANY, BLOCK_SCAN_RAKING_MEMOIZE,
                                            RADIX_SORT_STORE_DIRECT, SORT_DIGIT>;
static_assert(policy<uint32_t>::BLOCK_THREADS == RADIX_THREADS &&
                  policy<uint64_t>::BLOCK_THREADS == RADIX_THREADS,
              "threads");
static_assert(policy<uint32_t>::ITEMS_PER_THREAD * RADIX_THREADS == RADIX_TILE(false), "a tile of 4 bytes");
static_assert(policy<uint64_t>::ITEMS_PER_THREAD * RADIX_THREADS == RADIX_TILE(true), "a tile of 8 bytes");

template <class Key, class Value>
static __global__ void __launch_bounds__(RADIX_THREADS) radix_sort(const __grid_constant__ radix_args a)
{
    typedef AgentRadixSortOnesweep<policy<Key>, false, Key, Value, uint32_t, int> agent;
    __shared__ typename agent::TempStorage storage;
    agent(storage, (int *)a.before, (int *)a.ticket, (uint32_t *)nullptr, a.starts, (Key *)a.keys[1],
          (const Key *)a.keys[0], (Value *)a.order[1], (const Value *)a.order[0], (int)a.n, a.shift,
          SORT_DIGIT)
        .Process();
}

} // namespace

const void *radix_pass_kernel(bool wide, bool ordered)
{
    if (ordered) return (const void *)radix_sort<uint64_t, uint32_t>;
    return wide ? (const void *)radix_sort<uint64_t, NullType> : (const void *)radix_sort<uint32_t, NullType>;
}
