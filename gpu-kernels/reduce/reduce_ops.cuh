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
struct moments {
    T n, mean, squares;
};

/* The reciprocals of small numbers of elements, from a table. */
#define INVERSES(n) T(1) / T(n), T(1) / T((n) + 1), T(1) / T((n) + 2), T(1) / T((n) + 3)
__constant__ T inverse_of[] = { INVERSES(1),  INVERSES(5),  INVERSES(9),  INVERSES(13),
                                INVERSES(17), INVERSES(21), INVERSES(25), INVERSES(29) };
static_assert(sizeof inverse_of / sizeof *inverse_of == REDUCE_BLOCK / REDUCE_LANES,
              "as many as a lane takes");
struct counted {
    int n;
    __device__ inline operator T() const { return T(n); }
};
static __device__ inline counted operator+(counted a, T more) { return { a.n + (int)more }; }

/* d / n rounded to nearest, for small n. The remainder is exact, and the quotient is never closer
 * to the middle of two numbers than the error of the correction, unless the quotient is subnormal.
 * For d = -0 the result is +0, which adds the same to a mean. */
static __device__ inline bool swift_quotient_is_exact(T d)
{
    return ABS(d) >= (sizeof(T) == 4 ? K(0x1p-100) : K(0x1p-900)) || d == K(0);
}
static __device__ inline T swift_quotient(T d, int count)
{
    const T n = T(count), inverse = inverse_of[count - 1], q = d * inverse;
    return FMA(FMA(-q, n, d), inverse, q);
}
static __device__ inline T operator/(T d, counted a)
{
    if (likely(swift_quotient_is_exact(d) && ABS(d) < INF)) return swift_quotient(d, a.n);
    return d / T(a.n);
}

/* The same without a branch; it records whether the result was correct. Infinities are not
 * recorded: the variance is then NaN or negative in either case. */
struct swiftly_counted {
    int n;
    bool right;
    __device__ inline operator T() const { return T(n); }
};
static __device__ inline swiftly_counted operator+(swiftly_counted a, T more)
{
    return { a.n + (int)more, a.right };
}
static __device__ inline T operator/(T d, swiftly_counted &a)
{
    a.right &= swift_quotient_is_exact(d);
    return swift_quotient(d, a.n);
}

/* The share of the second of two accumulators in the number of elements. Most accumulators have
 * equal numbers of elements; then the share is 1/2, without a division. */
struct share_of {
    T n;
    __device__ inline operator T() const { return n; }
};
static __device__ inline T operator/(share_of b, T all) { return b.n + b.n == all ? K(0.5) : b.n / all; }
#define DUET_MOMENT1(name, TAKE, JOIN, EPILOGUE, ...)                                                        \
    struct row_##name {                                                                                      \
        typedef moments carried;                                                                             \
        template <class Count> static __device__ inline void with(Count &a0, T &a1, T &a2, T x) { TAKE; }    \
        static __device__ inline moments both(moments a, moments b)                                          \
        {                                                                                                    \
            T a0 = a.n, a1 = a.mean, a2 = a.squares;                                                         \
            const share_of b0 = { b.n };                                                                     \
            const T b1 = b.mean, b2 = b.squares;                                                             \
            JOIN;                                                                                            \
            return { a0, a1, a2 };                                                                           \
        }                                                                                                    \
        static __device__ inline T result(moments a, int64_t n)                                              \
        {                                                                                                    \
            const T a0 = a.n, a1 = a.mean, a2 = a.squares;                                                   \
            (void)a0, (void)a1, (void)a2;                                                                    \
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
template <class Row> struct folding<Row, moments> {
    struct lane {
        T mean, squares;
        counted n;
    };
    typedef moments acc;
    typedef T result;
    enum { pairs = 0, resident = sizeof(T) == 8 ? 2 : 3 };
    static __device__ inline acc start() { return { K(0), K(0), K(0) }; }
    static __device__ inline lane open() { return { K(0), K(0), { 0 } }; }
    static __device__ inline T see(T x, T) { return x; }
    static __device__ inline lane take(lane a, T x, T, int k)
    {
        a.n = { k };
        Row::with(a.n, a.mean, a.squares, x);
        return a;
    }
    static __device__ inline acc close(lane a, int64_t) { return { a.n, a.mean, a.squares }; }
    static __device__ inline acc join(acc a, acc b) { return Row::both(a, b); }
    static __device__ inline T epilogue(acc a, int64_t n) { return Row::result(a, n); }
    template <class F> static __device__ inline acc each(acc a, F f)
    {
        return { f(a.n), f(a.mean), f(a.squares) };
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
    static __device__ inline acc close(lane a, int64_t first)
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
        const T down = x * TYPED(REDUCE_NORM_DOWN), up = x * TYPED(REDUCE_NORM_UP);
        return { one::take(a.as_is, x, y, k), one::take(a.down, down, y, k), one::take(a.up, up, y, k) };
    }
    static __device__ inline acc close(lane a, int64_t) { return a; }
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
        if (a.as_is == INF) return one::epilogue(a.down, n) * (K(1) / TYPED(REDUCE_NORM_DOWN));
        if (a.as_is < TYPED(REDUCE_NORM_LEAST))
            return one::epilogue(a.up, n) * (K(1) / TYPED(REDUCE_NORM_UP));
        return one::epilogue(a.as_is, n);
    }
};
#endif

} // namespace

#endif
