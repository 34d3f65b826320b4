/* vmath_table.cu - measures the errors of the functions of core/vmath.h on a GPU and on its host, and writes
 * the table of docs/accuracy.md.
 *
 *     nvcc -std=c++17 -O3 -arch=sm_90 -fmad=false -Iinclude -Isrc/core \
 *         tests/support/vmath_table.cu -o vmath_table
 *     vmath_table [samples [name...]]   operands of each function in f64, 10^8 if none are given; and the
 *                                       functions, all if none are named
 *
 * f32 is measured on the GPU against CUDA's functions in double: all 2^32 operands of a function of one
 * operand, 2^32 pairs for a function of two. The functions in double are compared with the host's long double;
 * a line after the table names those with an error of more than 0.01 ulp of f32. f64 is measured on all cores
 * of the host, on random operands, against the C library's long double. Without a GPU only f64 is measured.
 * The functions are the rows of ops.def that allow more than half an ulp. */
#define FN_DECL static __host__ __device__ inline
#define T_f32
#include "scalar_ops.h"
#define DUET_MAP1(name, formula, ...)                                                                        \
    FN_DECL T FN(formula_##name)(T x, T) { return formula; }
#define DUET_MAP2(name, formula, ...)                                                                        \
    FN_DECL T FN(formula_##name)(T x, T y) { return formula; }
#include <duet/ops.def>
#undef T_f32
#define T_f64
#include "scalar_ops.h"
#define DUET_MAP1(name, formula, ...)                                                                        \
    FN_DECL T FN(formula_##name)(T x, T) { return formula; }
#define DUET_MAP2(name, formula, ...)                                                                        \
    FN_DECL T FN(formula_##name)(T x, T y) { return formula; }
#include <duet/ops.def>
#undef T
#undef K
#undef FN
#undef INF

#pragma nv_diag_suppress 20208 /* long double is double in device code, which does not use it */
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

/* Oracles that C has no function for. They are exact, so the table leaves out their rows. */
static __device__ double floor_div(double x, double y) { return ::floor(x / y); }
static __device__ double modulo(double x, double y) { return x - y * ::floor(x / y); }
static long double floor_divl(long double x, long double y) { return floorl(x / y); }
static long double modulol(long double x, long double y) { return x - y * floorl(x / y); }

/* The oracles: double on the card, long double on the host. */
namespace card
{
#define Q(f) ::f
#define DUET_MAP1(name, formula, oracle, ...)                                                                \
    static __device__ double name([[maybe_unused]] double x, double) { return oracle; }
#define DUET_MAP2(name, formula, oracle, ...)                                                                \
    static __device__ double name(double x, double y) { return oracle; }
#include <duet/ops.def>
#undef Q
} // namespace card

namespace host
{
#define Q(f) ::f##l
#define DUET_MAP1(name, formula, oracle, ...)                                                                \
    static long double name([[maybe_unused]] long double x, long double) { return oracle; }
#define DUET_MAP2(name, formula, oracle, ...)                                                                \
    static long double name(long double x, long double y) { return oracle; }
#include <duet/ops.def>
#undef Q
} // namespace host

namespace
{

#define BOTH __host__ __device__ inline

#define PARENTHESES(...)                                                                                     \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define ROW(row, operands_, domain_, ulp)                                                                    \
    struct row##_row {                                                                                       \
        static constexpr int operands = operands_;                                                           \
        static constexpr bool function = (ulp) > 0.5;                                                        \
        static constexpr const char *name = #row;                                                            \
        static void domain(double (&d)[4])                                                                   \
        {                                                                                                    \
            const double of[4] = PARENTHESES domain_;                                                        \
            std::copy(of, of + 4, d);                                                                        \
        }                                                                                                    \
        BOTH static float got(float x, float y) { return formula_##row##_f32(x, y); }                        \
        BOTH static double got(double x, double y) { return formula_##row##_f64(x, y); }                     \
        __device__ static double want_here(double x, double y) { return card::row(x, y); }                   \
        static long double want(long double x, long double y) { return host::row(x, y); }                    \
    };
#define DUET_MAP1(name, formula, oracle, domain, ulp, ...) ROW(name, 1, domain, ulp)
#define DUET_MAP2(name, formula, oracle, domain, ulp, ...) ROW(name, 2, domain, ulp)
#include <duet/ops.def>

/* A type: bits of the significand, exponents of the smallest subnormal and of infinity, and its
 * bits. */
template <class T> struct type;
template <> struct type<float> {
    enum { digits = 24, low = -149, high = 128 };
    typedef uint32_t bits;
};
template <> struct type<double> {
    enum { digits = 53, low = -1074, high = 1024 };
    typedef uint64_t bits;
};

template <class T> BOTH T of_bits(uint64_t b)
{
    const typename type<T>::bits low = (typename type<T>::bits)b;
    T x;
    memcpy(&x, &low, sizeof x);
    return x;
}

/* The unit in the last place of a T at want. Beyond the largest number the units continue to the
 * next power of two. */
#pragma nv_exec_check_disable /* R is long double on the host only */
template <class T, class R> BOTH R unit_at(R want)
{
    int e = type<T>::low;
    frexp(want, &e);
    e = e < type<T>::high ? e : type<T>::high;
    return ldexp(R(1), want == 0 || e - type<T>::digits < type<T>::low ? type<T>::low : e - type<T>::digits);
}

#pragma nv_exec_check_disable
template <class T, class R> BOTH R ulps(T got, R want)
{
    if (got != got || want != want) return got != got && want != want ? 0 : INFINITY;
    if (got == 0 && want == 0) return !signbit(got) == !signbit(want) ? 0 : INFINITY;
    const R top = ldexp(R(1), type<T>::high), g = R(got);
    const R a = g > top ? top : g < -top ? -top : g, b = want > top ? top : want < -top ? -top : want;
    return (a > b ? a - b : b - a) / unit_at<T>(b);
}

BOTH uint64_t mixed(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

BOTH double between(double low, double high, uint64_t r)
{
    return low + (high - low) * (double)(r >> 11) * 0x1p-53;
}

template <class T> struct operands {
    T x, y;
};

/* Pair i: random bits, integers, x near 1, results of pow over all exponents, quotients of all
 * magnitudes. */
template <class T> BOTH operands<T> pair_of(uint64_t i)
{
    const uint64_t r = mixed(i), s = mixed(r), t = mixed(s);
    operands<T> o = { of_bits<T>(r), of_bits<T>(s) };
    const int kind = (int)(i % 8);
    if (kind == 0) return o;
    if (kind == 1) return { T((int)(r % 64) - 32), T((int)(s % 64) - 32) };
    if (kind == 2) return { o.x, o.x * T(exp2(between(-30, 30, s))) * (t % 2 ? 1 : -1) };
    if (kind < 5) o.x = T(1 + ldexp(between(-1, 1, r), -(int)(s % type<T>::digits)));
    const double power = between(type<T>::low - 2, type<T>::high + 1, t) / log2(fabs((double)o.x));
    o.y = T(kind == 7 ? rint(power) : power);
    return o;
}

/* Operand i of a function of one operand: random bits, subnormals, near 1, near 0, near multiples
 * of pi / 2, the domain of the tests, all magnitudes. */
operands<double> one_of(uint64_t i, const double *domain)
{
    const uint64_t r = mixed(i), s = mixed(r);
    const double sign = s % 2 ? 1 : -1;
    switch (i % 16) {
    case 0: return { of_bits<double>(r >> 12 | s << 63), 0 };
    case 1:
    case 2: return { 1 + ldexp(between(-1, 1, r), -(int)(s % 53)), 0 };
    case 3: return { ldexp(between(-1, 1, r), -(int)(s % 60)), 0 };
    case 4: return { sign * (double)(r >> (33 + s / 2 % 31)) * 1.57079632679489662, 0 };
    case 5:
    case 6:
    case 7:
    case 8: return { between(domain[0], domain[1], r), 0 };
    case 9:
    case 10:
    case 11:
    case 12: return { sign * exp2(between(-40, 11, r)), 0 };
    default: return { of_bits<double>(r), 0 };
    }
}

template <class Row> BOTH operands<float> f32_operands(uint64_t i)
{
    if (Row::operands == 2) return pair_of<float>(i);
    return { of_bits<float>(i), 0 };
}

struct worst {
    double ulp, x, y;
};

/* The largest error as the bits of a float, above the number of its operand. */
template <class Row> __global__ void look_at_all(unsigned long long *most)
{
    unsigned long long mine = 0;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i >> 32 == 0;
         i += (uint64_t)gridDim.x * blockDim.x) {
        const operands<float> o = f32_operands<Row>(i);
        const float u = (float)ulps(Row::got(o.x, o.y), Row::want_here(o.x, o.y));
        const unsigned long long key = (unsigned long long)__float_as_uint(u) << 32 | i;
        mine = key > mine ? key : mine;
    }
    atomicMax(most, mine);
}

enum { LOOKED_AT = 1 << 20, APART = 4093 };
template <class Row> __global__ void oracle_of(double *want)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    const operands<float> o = f32_operands<Row>(i * (uint64_t)APART);
    if (i < LOOKED_AT) want[i] = Row::want_here(o.x, o.y);
}

void must(cudaError_t e)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "vmath_table: %s\n", cudaGetErrorString(e));
    exit(1);
}

template <class Row> worst worst_f32()
{
    unsigned long long *most, key;
    must(cudaMalloc(&most, sizeof *most));
    must(cudaMemset(most, 0, sizeof *most));
    look_at_all<Row><<<132 * 16, 256>>>(most);
    must(cudaGetLastError());
    must(cudaMemcpy(&key, most, sizeof key, cudaMemcpyDeviceToHost));
    must(cudaFree(most));
    const operands<float> o = f32_operands<Row>(key & 0xffffffffu);
    return { of_bits<float>(key >> 32), o.x, o.y };
}

/* The distance between CUDA's double result and long double, in ulps of f32. */
template <class Row> double doubt()
{
    std::vector<double> want(LOOKED_AT);
    double *there, most = 0;
    must(cudaMalloc(&there, LOOKED_AT * sizeof *there));
    oracle_of<Row><<<LOOKED_AT / 256, 256>>>(there);
    must(cudaGetLastError());
    must(cudaMemcpy(want.data(), there, LOOKED_AT * sizeof *there, cudaMemcpyDeviceToHost));
    must(cudaFree(there));
    for (uint64_t i = 0; i < LOOKED_AT; i++) {
        const operands<float> o = f32_operands<Row>(i * APART);
        const long double w = Row::want(o.x, o.y), top = ldexpl(1, type<float>::high);
        if (fabsl(w) >= top && fabs(want[i]) >= top) continue; /* infinite in f32 */
        const long double u =
            w == want[i] || (w != w && want[i] != want[i]) ? 0 : fabsl(w - want[i]) / unit_at<float>(w);
        if (!(u <= most)) most = (double)u;
    }
    return most;
}

template <class Row> worst worst_f64(uint64_t samples)
{
    constexpr uint64_t block = 1 << 16;
    worst most = { 0, 0, 0 };
    double domain[4];
    std::atomic<uint64_t> next{ 0 };
    std::mutex merging;
    Row::domain(domain);
    const auto work = [&] {
        worst mine = { 0, 0, 0 };
        for (uint64_t from; (from = block * next++) < samples;)
            for (uint64_t i = from; i < std::min(from + block, samples); i++) {
                const operands<double> o = Row::operands == 2 ? pair_of<double>(i) : one_of(i, domain);
                const double u = (double)ulps(Row::got(o.x, o.y), Row::want(o.x, o.y));
                if (!(u <= mine.ulp)) mine = { u, o.x, o.y };
            }
        const std::lock_guard<std::mutex> lock(merging);
        if (!(mine.ulp <= most.ulp)) most = mine;
    };
    std::vector<std::thread> threads;
    for (unsigned k = 0; k < std::max(1u, std::thread::hardware_concurrency()); k++)
        threads.emplace_back(work);
    for (std::thread &t : threads) t.join();
    return most;
}

void print_line(const char *name, const char *type, int operands, worst w, const char *inputs)
{
    printf("| %s | %s | %.3f | %a", name, type, w.ulp, w.x);
    if (operands == 2) printf(", %a", w.y);
    printf(" | %s |\n", inputs);
    fflush(stdout);
}

std::vector<std::pair<const char *, double>> doubts;

bool is_named(const char *name, char **names)
{
    if (!*names) return true;
    while (*names && strcmp(name, *names)) names++;
    return *names;
}

template <class Row> void measure(uint64_t samples, bool card, char **names)
{
    if constexpr (Row::function) {
        if (!is_named(Row::name, names)) return;
        char random[32];
        snprintf(random, sizeof random, "%.2g, random", (double)samples);
        if (card)
            print_line(Row::name, "f32", Row::operands, worst_f32<Row>(),
                       Row::operands == 2 ? "2^32, random" : "all");
        print_line(Row::name, "f64", Row::operands, worst_f64<Row>(samples), random);
        if (card) doubts.emplace_back(Row::name, doubt<Row>());
    }
}

} // namespace

int main(int argc, char **argv)
{
    const uint64_t samples = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000000;
    int cards = 0;
    if (cudaGetDeviceCount(&cards) != cudaSuccess) cards = 0;
    puts("| function | type | worst error, ulp | at | inputs |\n|---|---|---|---|---|");
    char **names = argv + (argc > 2 ? 2 : argc);
#define DUET_MAP1(name, ...) measure<name##_row>(samples, cards > 0, names);
#define DUET_MAP2            DUET_MAP1
#include <duet/ops.def>
    for (const auto &d : doubts)
        if (!(d.second <= 0.01))
            printf("%s f32: CUDA's double is itself off by up to %.3g ulp of f32\n", d.first, d.second);
    return 0;
}
