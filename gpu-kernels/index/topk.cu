/* topk.cu - the k greatest elements of lines, for small k. A warp scans a part of a line twice. First
 * each lane finds its maximum; the k-th greatest of these maxima is a lower bound of the result.
 * Then elements that are not below the bound become candidates. When there are too many of them,
 * only the k greatest remain, and the bound rises. */
#include "gather_scatter.cuh"

namespace
{

template <class Key> struct candidates {
    Key key[SELECT_SPACE];
    uint32_t index[SELECT_SPACE];

    /* Executed by a warp. Moves the k greatest of `many` candidates to the front and sorts them. Of
     * equal keys the first one comes first. */
    __device__ inline int keep_best(int many, int k)
    {
        enum { EACH = SELECT_SPACE / 32 };
        const int lane = threadIdx.x % 32;
        Key own[EACH];
        uint32_t which[EACH], rank[EACH] = {};
        __syncwarp();
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (lane + 32 * j < many) {
                own[j] = key[lane + 32 * j];
                which[j] = index[lane + 32 * j];
            } else {
                own[j] = 0;
                which[j] = 0;
            }
        for (int m = 0; m < many; m++) {
            const Key other = key[m];
#pragma unroll
            for (int j = 0; j < EACH; j++)
                if (32 * j < many) rank[j] += other > own[j] || (other == own[j] && m < lane + 32 * j);
        }
        __syncwarp();
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (lane + 32 * j < many && rank[j] < (uint32_t)k) {
                key[rank[j]] = own[j];
                index[rank[j]] = which[j];
            }
        __syncwarp();
        return min(many, k);
    }
};

/* Not inlined, because it is rarely called. */
template <class Key> static __device__ __noinline__ int drop_worst(candidates<Key> &best, int many, int k)
{
    return best.keep_best(many, k);
}

/* The k-th greatest of the keys of the lanes of a warp. */
template <class Key> static __device__ inline Key greatest_of_lanes(Key own, int k)
{
    const int lane = threadIdx.x % 32;
    int rank = 0;
#pragma unroll
    for (int s = 0; s < 32; s++) {
        const Key other = __shfl_sync(~0u, own, s);
        rank += other > own || (other == own && s < lane);
    }
    return __shfl_sync(~0u, own, __ffs((int)__ballot_sync(~0u, rank == k - 1)) - 1);
}

/* A part of a line: elements, or keys of candidates. */
template <class E, bool CHOSEN> struct part {
    enum { BATCH = 8, MANY = 32 * BATCH };
    typedef typename key_type<E>::type Key;
    int64_t line, first; /* index of its first element in the line */
    int many;
    const E *x; /* elements of the line */
    const Key *key;
    const uint32_t *index;

    __device__ inline void find(const select_args &a, int64_t id)
    {
        line = (int64_t)quotient((uint64_t)id, a.by_parts);
        first = (id - line * a.parts) * SELECT_PART;
        many = (int)min((int64_t)SELECT_PART, a.n - first);
        const uint64_t o = quotient((uint64_t)line, a.by_inner), c = line - o * a.by_inner.by;
        x = (const E *)a.x + element_offset(a.outer, o) + element_offset(a.inner, c);
        key = (const Key *)a.keys[0] + line * a.n + first;
        index = a.order[0] + line * a.n + first;
    }
    /* Loads keys i + 32 * j; 0 after the last. */
    __device__ inline void read(const select_args &a, int i, Key out[BATCH]) const
    {
        E bits[BATCH];
        if (CHOSEN)
#pragma unroll
            for (int j = 0; j < BATCH; j++) out[j] = i + 32 * j < many ? key[i + 32 * j] : 0;
        else {
#pragma unroll
            for (int j = 0; j < BATCH; j++)
                bits[j] = i + 32 * j < many ? x[(first + i + 32 * j) * a.stride] : 0;
#pragma unroll
            for (int j = 0; j < BATCH; j++) out[j] = i + 32 * j < many ? key_by(a.rule, (Key)bits[j]) : 0;
        }
    }
    __device__ inline uint32_t index_of(int i) const { return CHOSEN ? index[i] : (uint32_t)(first + i); }
};

template <class E, bool CHOSEN>
static __device__ inline int choose(const select_args &a, const part<E, CHOSEN> &p,
                                    candidates<typename key_type<E>::type> &best)
{
    typedef part<E, CHOSEN> part;
    typename part::Key key[part::BATCH], most = 0;
    const int lane = threadIdx.x % 32;
    for (int i = lane; i - lane < p.many; i += part::MANY) {
        p.read(a, i, key);
#pragma unroll
        for (int j = 0; j < part::BATCH; j++) most = max(most, key[j]);
    }
    typename part::Key least = greatest_of_lanes(most, a.k);
    bool above = false; /* are k keys that equal `least` already among the candidates, or better ones? */
    int count = 0;
    for (int i = lane; i - lane < p.many; i += part::MANY) {
        p.read(a, i, key);
#pragma unroll
        for (int j = 0; j < part::BATCH; j++) {
            bool in = i + 32 * j < p.many && (key[j] > least || (key[j] == least && !above));
            uint32_t all = __ballot_sync(~0u, in);
            if (!all) continue;
            if (count + __popc(all) > SELECT_SPACE) {
                count = drop_worst(best, count, a.k);
                least = best.key[count - 1];
                above = true;
                in = in && key[j] > least;
                all = __ballot_sync(~0u, in);
            }
            const int at = count + __popc(all & ((1u << lane) - 1));
            if (in) {
                best.key[at] = key[j];
                best.index[at] = p.index_of(i + 32 * j);
            }
            count += __popc(all);
        }
    }
    return best.keep_best(count, a.k);
}

template <class E, bool CHOSEN> KERNEL(32 * SELECT_WARPS) select_best(const __grid_constant__ select_args a)
{
    typedef typename key_type<E>::type Key;
    __shared__ candidates<Key> of_warp[SELECT_WARPS];
    const int lane = threadIdx.x % 32;
    const int64_t id = (int64_t)blockIdx.x * SELECT_WARPS + threadIdx.x / 32;
    if (id >= a.lines * a.parts) return;
    candidates<Key> &best = of_warp[threadIdx.x / 32];
    part<E, CHOSEN> p;
    p.find(a, id);
    const int count = choose(a, p, best);
    if (lane >= a.k) return;
    if (a.keys[1]) { /* key 0 fills the list: it is the least, and its index is never used */
        ((Key *)a.keys[1])[id * a.k + lane] = lane < count ? best.key[lane] : 0;
        a.order[1][id * a.k + lane] = lane < count ? best.index[lane] : 0;
        return;
    }
    const uint64_t inner = a.by_inner.by, o = quotient((uint64_t)p.line, a.by_inner), c = p.line - o * inner;
    const int64_t to = (int64_t)((o * a.k + lane) * inner + c);
    if (a.indices) ((int64_t *)a.out)[to] = best.index[lane];
    else ((E *)a.out)[to] = p.x[best.index[lane] * a.stride];
}

template <class E> static const void *best_of(bool chosen)
{
    return chosen ? (const void *)select_best<E, true> : (const void *)select_best<E, false>;
}

} // namespace

const void *select_kernel(size_t each, bool chosen)
{
    switch (each) {
    case 8: return best_of<uint64_t>(chosen);
    case 4: return best_of<uint32_t>(chosen);
    case 2: return best_of<uint16_t>(chosen);
    default: return best_of<uint8_t>(chosen);
    }
}
