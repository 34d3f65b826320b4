/* linalg_small.cu - the kernels of linalg_small.h. */
#include "device.cuh"
#include "linalg_small.h"

enum { THREADS = 64 };

namespace
{

/* A complex element; its address need only be aligned for its parts. */
struct pair {
    T re, im;
};
static __device__ inline pair operator-(pair x, pair y) { return { x.re - y.re, x.im - y.im }; }
static __device__ inline pair operator*(pair x, pair y)
{
    return { x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re };
}
/* Smith's method, which squares no element. */
static __device__ inline pair operator/(pair x, pair y)
{
    if (fabs(y.re) >= fabs(y.im)) {
        const T r = y.im / y.re, d = y.re + y.im * r;
        return { (x.re + x.im * r) / d, (x.im - x.re * r) / d };
    }
    const T r = y.re / y.im, d = y.re * r + y.im;
    return { (x.re * r + x.im) / d, (x.im * r - x.re) / d };
}

#ifdef T_f32
enum { LARGEST = 112, LEAST = -96 };
#else
enum { LARGEST = 1008, LEAST = -960 };
#endif
#define QUALIFIERS static __device__ inline
#define R          T
#define LANE       threadIdx.x
#define LANES      THREADS
#define SYNC()     __syncthreads()

#define E            T
#define PARTS        1
#define NAME(f)      f##_real
#define SIZE(x)      fabs(x)
#define RE(x)        (x)
#define IM(x)        T(0)
#define MAKE(re, im) T(re)
#define CONJ(x)      (x)
#include "small_matrix_ops.h"
#undef E
#undef PARTS
#undef NAME
#undef SIZE
#undef RE
#undef IM
#undef MAKE
#undef CONJ

static __device__ inline pair make_pair_of(T re, T im) { return { re, im }; }
#define E            pair
#define PARTS        2
#define NAME(f)      f##_pair
#define SIZE(x)      (fabs((x).re) + fabs((x).im))
#define RE(x)        ((x).re)
#define IM(x)        ((x).im)
#define MAKE(re, im) make_pair_of(T(re), T(im))
#define CONJ(x)      make_pair_of((x).re, -(x).im)
#include "small_matrix_ops.h"

extern __shared__ double memory[];

KERNEL(THREADS) small_real(const small_args a) { small_matrix_real(&a, blockIdx.x, memory); }
KERNEL(THREADS) small_pair(const small_args a) { small_matrix_pair(&a, blockIdx.x, memory); }

} // namespace

extern "C" const void *TYPED(small_kernel)(bool pairs)
{
    return pairs ? (const void *)small_pair : (const void *)small_real;
}
