/* fold.cu - the reductions, from their rows. */
#include "fold.cuh"

namespace
{

#define DUET_FOLD1(name, START, TAKE, JOIN, FINISH, ...) DUET_FOLD(name, START, TAKE, JOIN, FINISH, false)
#define DUET_FOLD2(name, START, TAKE, JOIN, FINISH, ...) DUET_FOLD(name, START, TAKE, JOIN, FINISH, true)
#define DUET_FOLD(name, START, TAKE, JOIN, FINISH, PAIRS)                                                                        \
    struct row_##name {                                                                                                          \
        enum { is_pairs = PAIRS };                                                                                               \
        static __device__ inline T first() { return START; }                                                                     \
        static __device__ inline T with(T a, T x, T y) { return TAKE; }                                                          \
        static __device__ inline T both(T a, T b) { return JOIN; }                                                               \
        static __device__ inline T result(T a, int64_t n) { return FINISH; }                                                     \
    };
#include <duet/ops.def>

template <class Row> struct fold_of : plain<Row> {
    enum { pairs = Row::is_pairs };
};

/* The sums of squares of x, of x made small and of x made large, in one pass; the first of them says which one counts. */
struct squares {
    T as_is, down, up;
};
template <> struct fold_of<row_norm> {
    typedef plain<row_norm> one;
    typedef squares acc;
    enum { pairs = 0, resident = 2 };
    static __device__ inline acc start() { return { one::start(), one::start(), one::start() }; }
    static __device__ inline T see(T x, T) { return x; }
    static __device__ inline acc take(acc a, T x, T y)
    {
        const T down = x * TYPED(FOLD_NORM_DOWN), up = x * TYPED(FOLD_NORM_UP);
        return { one::take(a.as_is, x, y), one::take(a.down, down, y), one::take(a.up, up, y) };
    }
    static __device__ inline acc join(acc a, acc b)
    {
        return { one::join(a.as_is, b.as_is), one::join(a.down, b.down), one::join(a.up, b.up) };
    }
    static __device__ inline acc pass(acc a, int h)
    {
        return { one::pass(a.as_is, h), one::pass(a.down, h), one::pass(a.up, h) };
    }
    static __device__ inline T finish(acc a, int64_t n)
    {
        if (a.as_is == INF) return one::finish(a.down, n) * (K(1) / TYPED(FOLD_NORM_DOWN));
        if (a.as_is < TYPED(FOLD_NORM_LEAST)) return one::finish(a.up, n) * (K(1) / TYPED(FOLD_NORM_UP));
        return one::finish(a.as_is, n);
    }
};

} // namespace

const void *TYPED(fold_kernel)(int row, int form)
{
    switch (row) {
#define DUET_FOLD1(name, ...)                                                                                                    \
    case OP_##name:                                                                                                              \
        return fold_form<fold_of<row_##name>>(form);
#define DUET_FOLD2 DUET_FOLD1
#include <duet/ops.def>
    default: return NULL;
    }
}
