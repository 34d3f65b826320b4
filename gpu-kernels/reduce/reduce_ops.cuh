/* reduce_ops.cuh - the reduction rows of ops.def as Folds: folding<row_sum> and so on. */
#ifndef REDUCE_OPS_CUH
#define REDUCE_OPS_CUH

#include "compiler.h"
#include "reduce_tree.cuh"

namespace
{

#ifdef T_INTEGER
#define DUET_ANY_FOLD1(name, START, TAKE, JOIN, EPILOGUE, ...)                                               \
    DUET_REDUCE(name, START, TAKE, JOIN, EPILOGUE, false)
#define DUET_ANY_FOLD2(name, START, TAKE, JOIN, EPILOGUE, ...)                                               \
    DUET_REDUCE(name, START, TAKE, JOIN, EPILOGUE, true)
#else
#define DUET_FOLD1(name, START, TAKE, JOIN, EPILOGUE, ...)                                                   \
    DUET_REDUCE(name, START, TAKE, JOIN, EPILOGUE, false)
#define DUET_FOLD2(name, START, TAKE, JOIN, EPILOGUE, ...)                                                   \
    DUET_REDUCE(name, START, TAKE, JOIN, EPILOGUE, true)
#endif
#define DUET_REDUCE(name, START, TAKE, JOIN, EPILOGUE, PAIRS)                                                \
    struct row_##name {                                                                                      \
        typedef T carried;                                                                                   \
        enum { is_pairs = PAIRS };                                                                           \
        static __device__ inline T first() { return START; }                                                 \
        static __device__ inline T with(T a, T x, T y) { return TAKE; }                                      \
        static __device__ inline T both(T a, T b) { return JOIN; }                                           \
        static __device__ inline T result(T a, int64_t n) { return EPILOGUE; }                               \
    };

#ifndef T_INTEGER
/* The accumulator of a MOMENT1 row: a0 .. a3 of ops.def. */
struct moments {
    T n, origin, mean, squares;
};

/* The share of the second of two accumulators in the number of elements. Most accumulators have
 * equal numbers of elements; then the share is 1/2, without a division. */
struct share_of {
    T n;
    __device__ inline operator T() const { return n; }
};
static __device__ inline T operator/(share_of b, T all) { return b.n + b.n == all ? K(0.5) : b.n / all; }
#define DUET_MOMENT1(name, TAKE, CLOSE, JOIN, EPILOGUE, ...)                                                 \
    struct row_##name {                                                                                      \
        typedef moments carried;                                                                             \
        static __device__ inline void with(T &a1, T &a2, T &a3, T x) { TAKE; }                               \
        static __device__ inline moments closed(moments a)                                                   \
        {                                                                                                    \
            T a0 = a.n, a1 = a.origin, a2 = a.mean, a3 = a.squares;                                          \
            CLOSE;                                                                                           \
            return { a0, a1, a2, a3 };                                                                       \
        }                                                                                                    \
        static __device__ inline moments both(moments a, moments b)                                          \
        {                                                                                                    \
            T a0 = a.n, a1 = a.origin, a2 = a.mean, a3 = a.squares;                                          \
            const share_of b0 = { b.n };                                                                     \
            const T b1 = b.origin, b2 = b.mean, b3 = b.squares;                                              \
            JOIN;                                                                                            \
            return { a0, a1, a2, a3 };                                                                       \
        }                                                                                                    \
        static __device__ inline T result(moments a, int64_t n)                                              \
        {                                                                                                    \
            const T a0 = a.n, a1 = a.origin, a2 = a.mean, a3 = a.squares;                                    \
            (void)a0, (void)a1, (void)a2, (void)a3;                                                          \
            return EPILOGUE;                                                                                 \
        }                                                                                                    \
    };
#endif

struct found {
    T x;
    int64_t at;
};
#define DUET_PLACE1(name, BETTER, ...)                                                                       \
    struct row_##name {                                                                                      \
        typedef found carried;                                                                               \
        static __device__ inline bool better(T x, T a) { return BETTER; }                                    \
    };
#include <duet/ops.def>

/* The Fold of a row is selected by the type of value that the row carries. */
template <class Row, class Carried = typename Row::carried> struct folding;
template <class Row> struct folding<Row, T> : plain<Row> {
    enum { pairs = Row::is_pairs };
};
#ifndef T_INTEGER
/* mean. Between blocks there are two sums, that of the elements and that of the scaled elements: the first
 * one decides which one is used. */
struct two_sums {
    T as_is, down;
};
template <> struct folding<row_mean, T> : plain<row_mean> {
    static __device__ inline bool is_finite(T a) { return ABS(a) < INF; }
    static __device__ inline T down() { return TYPED(REDUCE_DOWN); }
    static __device__ inline T see(T x, T scale) { return x * scale; }
};
template <> struct between_blocks<folding<row_mean>> {
    typedef folding<row_mean> one;
    typedef two_sums acc;
    typedef T result;
    enum { scales = 1 };
    static __device__ inline acc start() { return { one::start(), one::start() }; }
    static __device__ inline acc as_is(T a) { return { a, a * one::down() }; }
    static __device__ inline acc lost() { return { INF, INF }; }
    static __device__ inline acc again(acc r, T a)
    {
        return { r.as_is, one::is_finite(r.as_is) ? r.down : a };
    }
    static __device__ inline acc join(acc a, acc b)
    {
        return { one::join(a.as_is, b.as_is), one::join(a.down, b.down) };
    }
    template <class F> static __device__ inline acc each(acc a, F f) { return { f(a.as_is), f(a.down) }; }
    static __device__ inline T epilogue(acc a, int64_t n)
    {
        if (one::is_finite(a.as_is)) return one::epilogue(a.as_is, n);
        return one::epilogue(a.down, n) * (K(1) / one::down());
    }
};

template <class Row> struct folding<Row, moments> {
    struct lane {
        T origin, sum, squares;
    };
    typedef moments acc;
    typedef T result;
    enum { pairs = 0, resident = sizeof(T) == 8 ? 2 : 3 };
    static __device__ inline acc start() { return { K(0), K(0), K(0), K(0) }; }
    static __device__ inline lane open() { return { K(NAN), K(0), K(0) }; }
    static __device__ inline bool is_finite(acc a) { return ABS(a.squares) < INF; }
    static __device__ inline T down() { return TYPED(REDUCE_DOWN); }
    static __device__ inline T see(T x, T scale) { return x * scale; }
    static __device__ inline lane take(lane a, T x, T, int)
    {
        Row::with(a.origin, a.sum, a.squares, x);
        return a;
    }
    static __device__ inline acc close(lane a, int64_t, int count)
    {
        return Row::closed({ T(count), a.origin, a.sum, a.squares });
    }
    static __device__ inline acc join(acc a, acc b) { return Row::both(a, b); }
    static __device__ inline T epilogue(acc a, int64_t n) { return Row::result(a, n); }
    template <class F> static __device__ inline acc each(acc a, F f)
    {
        return { f(a.n), f(a.origin), f(a.mean), f(a.squares) };
    }
};

/* The moments of the elements and of the scaled elements. The latter have the same count, and the
 * origin times down(). */
struct two_moments {
    T n, origin, mean, squares, down_mean, down_squares;
};
template <class Row> struct between_blocks<folding<Row, moments>> {
    typedef folding<Row, moments> one;
    typedef two_moments acc;
    typedef T result;
    enum { scales = 1 };
    static __device__ inline acc pair_of(moments a, moments down)
    {
        return { a.n, a.origin, a.mean, a.squares, down.mean, down.squares };
    }
    static __device__ inline moments first(acc a) { return { a.n, a.origin, a.mean, a.squares }; }
    static __device__ inline moments down(acc a)
    {
        return { a.n, a.origin * one::down(), a.down_mean, a.down_squares };
    }
    static __device__ inline acc start() { return pair_of(one::start(), one::start()); }
    static __device__ inline acc as_is(moments a)
    {
        return {
            a.n, a.origin, a.mean, a.squares, a.mean * one::down(), a.squares * one::down() * one::down()
        };
    }
    static __device__ inline acc lost() { return { K(0), K(0), K(0), INF, INF, INF }; }
    static __device__ inline acc again(acc r, moments a)
    {
        if (one::is_finite(first(r))) return r;
        return { a.n, a.origin * (K(1) / one::down()), K(0), INF, a.mean, a.squares };
    }
    static __device__ inline acc join(acc a, acc b)
    {
        return pair_of(one::join(first(a), first(b)), one::join(down(a), down(b)));
    }
    static __device__ inline T epilogue(acc a, int64_t n)
    {
        if (one::is_finite(first(a))) return one::epilogue(first(a), n);
        return one::epilogue(down(a), n) * (K(1) / one::down()) * (K(1) / one::down());
    }
    template <class F> static __device__ inline acc each(acc a, F f)
    {
        return { f(a.n), f(a.origin), f(a.mean), f(a.squares), f(a.down_mean), f(a.down_squares) };
    }
};

#endif

/* A new lane holds the worst possible value at the index of its first element. That element or
 * another one replaces it. */
template <class Row> struct folding<Row, found> {
    struct lane {
        T x;
        int k;
    };
    typedef found acc;
    typedef int64_t result;
    enum { pairs = 0, resident = 3 };
    static __device__ inline bool beats(T x, T a) { return (a == a) & ((x != x) | Row::better(x, a)); }
    static __device__ inline T worst() { return Row::better(INF, -INF) ? -INF : INF; }
    static __device__ inline acc start() { return { worst(), INT64_MAX }; }
    static __device__ inline lane open() { return { worst(), 0 }; }
    static __device__ inline T see(T x, T) { return x; }
    static __device__ inline lane take(lane a, T x, T, int k)
    {
        const bool next = beats(x, a.x);
        return { next ? x : a.x, next ? k : a.k };
    }
    static __device__ inline acc close(lane a, int64_t first, int)
    {
        return { a.x, first + (int64_t)a.k * REDUCE_LANES };
    }
    static __device__ inline acc join(acc a, acc b)
    {
        const bool other = beats(b.x, a.x) | (!beats(a.x, b.x) & (b.at < a.at));
        return { other ? b.x : a.x, other ? b.at : a.at };
    }
    static __device__ inline int64_t epilogue(acc a, int64_t n) { return n == 0 ? -1 : a.at; }
    template <class F> static __device__ inline acc each(acc a, F f) { return { f(a.x), f(a.at) }; }
};

#ifndef T_INTEGER
/* Sums of squares of x, of x scaled down and of x scaled up, in one pass. The first sum decides
 * which one is used. */
struct squares {
    T as_is, down, up;
};
template <> struct folding<row_norm, T> {
    typedef plain<row_norm> one;
    typedef squares acc;
    typedef squares lane;
    typedef T result;
    enum { pairs = 0, resident = 3 };
    static __device__ inline acc start() { return { one::start(), one::start(), one::start() }; }
    static __device__ inline lane open() { return start(); }
    static __device__ inline T see(T x, T) { return x; }
    static __device__ inline lane take(lane a, T x, T y, int k)
    {
        const T down = x * TYPED(REDUCE_DOWN), up = x * TYPED(REDUCE_UP);
        return { one::take(a.as_is, x, y, k), one::take(a.down, down, y, k), one::take(a.up, up, y, k) };
    }
    static __device__ inline acc close(lane a, int64_t, int) { return a; }
    static __device__ inline acc join(acc a, acc b)
    {
        return { one::join(a.as_is, b.as_is), one::join(a.down, b.down), one::join(a.up, b.up) };
    }
    template <class F> static __device__ inline acc each(acc a, F f)
    {
        return { f(a.as_is), f(a.down), f(a.up) };
    }
    static __device__ inline T epilogue(acc a, int64_t n)
    {
        if (a.as_is == INF) return one::epilogue(a.down, n) * (K(1) / TYPED(REDUCE_DOWN));
        if (a.as_is < TYPED(REDUCE_LEAST)) return one::epilogue(a.up, n) * (K(1) / TYPED(REDUCE_UP));
        return one::epilogue(a.as_is, n);
    }
};
#endif

} // namespace

#endif
