/* convert.cuh - conversion of elements of types other than T, from memory into rows of shared
 * memory and from registers to memory. It uses core/convert.h, or an instruction of the card that
 * gives the same bits. The type is tested once for all elements of an operand in a thread. */
#ifndef CONVERT_CUH
#define CONVERT_CUH

#include "device.cuh"

#include "convert.h" /* convert.h uses the FN_DECL of this file */

/* A vector of another type, with as many elements as a vector of T. */
template <class E> struct alignas(WIDTH * sizeof(E) < 16 ? WIDTH * sizeof(E) : 16) other_vec {
    E e[WIDTH];
};
template <class E> struct lot_of {
    typedef other_vec<E> type;
};
template <> struct lot_of<T> {
    typedef vec type;
};
template <class E> using lot = typename lot_of<E>::type;

#ifdef CONVERTS

#if defined T_f32
#define CONVERTED(verb, name) verb##_f32_##name
#define OWN_TYPE              DUET_F32
#elif defined T_f64
#define CONVERTED(verb, name) verb##_f64_##name
#define OWN_TYPE              DUET_F64
#elif defined T_i64
#define CONVERTED(verb, name) verb##_i64_##name
#define OWN_TYPE              DUET_I64
#elif defined T_i32
#define CONVERTED(verb, name) verb##_i32_##name
#define OWN_TYPE              DUET_I32
#else
#define CONVERTED(verb, name) verb##_u64_##name
#define OWN_TYPE              DUET_U64
#endif

namespace
{

/* Conversions for which the card has instructions. */
#if defined T_f32 && __CUDA_ARCH__ >= 800
__device__ __forceinline__ float f16_at_once(uint16_t h)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}
__device__ __forceinline__ uint16_t f16_at_once(float x)
{
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}
__device__ __forceinline__ uint16_t bf16_at_once(float x)
{
    uint16_t h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}
#define read_f32_f16(h)   f16_at_once(h)
#define write_f32_f16(x)  f16_at_once(x)
#define write_f32_bf16(x) bf16_at_once(x)
#endif

/* An element type: its storage type, conversion to T and from T. */
#define STORED(NAME, name)                                                                                   \
    struct element_##NAME {                                                                                  \
        typedef stored_##name stored;                                                                        \
        enum { is_own = DUET_##NAME == OWN_TYPE };                                                           \
        static __device__ __forceinline__ T read(stored x) { return CONVERTED(read, name)(x); }              \
        static __device__ __forceinline__ stored write(T x) { return CONVERTED(write, name)(x); }            \
    };
#ifdef T_i32 /* i32 programs have no operands of the other types */
#define DUET_DTYPE(...)
#else
#define DUET_DTYPE(NAME, name, ...) STORED(NAME, name)
#define DUET_HALF(NAME, name, ...)  STORED(NAME, name)
#endif
#define DUET_INTEGER(NAME, name, ...) STORED(NAME, name)
#define DUET_NARROW(NAME, name, ...)  STORED(NAME, name)
#include <duet/dtype.def>

/* Calls f(element type). */
template <class F> __device__ __forceinline__ void with_type(int type, F f)
{
    switch (type) {
#define TYPE_CASE(NAME)                                                                                      \
    case DUET_##NAME:                                                                                        \
        f(element_##NAME());                                                                                 \
        break;
#ifdef T_i32
#define DUET_DTYPE(...)
#else
#define DUET_DTYPE(NAME, ...) TYPE_CASE(NAME)
#define DUET_HALF(NAME, ...)  TYPE_CASE(NAME)
#endif
#define DUET_INTEGER(NAME, ...) TYPE_CASE(NAME)
#define DUET_NARROW(NAME, ...)  TYPE_CASE(NAME)
#include <duet/dtype.def>
    default: break;
    }
}

/* Calls f(unsigned integer of the same size). */
template <class F> __device__ __forceinline__ void with_size(int type, F f)
{
    switch (type) {
    case DUET_F64:
    case DUET_I64:
    case DUET_U64: f(uint64_t()); break;
    case DUET_F32:
    case DUET_I32:
    case DUET_U32: f(uint32_t()); break;
    case DUET_I8:
    case DUET_U8:
    case DUET_BOOL: f(uint8_t()); break;
    default: f(uint16_t()); break;
    }
}

template <class Element> __device__ __forceinline__ vec read_vec(const lot<typename Element::stored> &bits)
{
    vec v;
#pragma unroll
    for (int u = 0; u < WIDTH; u++) v.e[u] = Element::read(bits.e[u]);
    return v;
}

/* Stores the bits, converted if a row is too small for them. */
template <class Bits> __device__ __forceinline__ void put_bits(vec *to, const lot<Bits> &bits, int type)
{
    if constexpr (sizeof(Bits) <= sizeof(T)) *(lot<Bits> *)to = bits;
    else
        with_type(type, [&](auto x) {
            typedef typename decltype(x)::stored stored;
            if constexpr (sizeof(stored) == sizeof(Bits)) {
                lot<stored> all;
                memcpy(&all, &bits, sizeof all);
                *to = read_vec<decltype(x)>(all);
            }
        });
}

/* Converts the vectors of a row, all of whose bits have arrived. */
template <int V, int STRIDE> __device__ __forceinline__ void convert_row(vec *row, int type)
{
    with_type(type, [&](auto x) {
        typedef typename decltype(x)::stored stored;
        if constexpr (!decltype(x)::is_own && sizeof(stored) <= sizeof(T)) {
#pragma unroll
            for (int j = 0; j < V; j++) {
                const lot<stored> bits = *(const lot<stored> *)(row + j * STRIDE);
                row[j * STRIDE] = read_vec<decltype(x)>(bits);
            }
        }
    });
}

/* Stores one element. */
__device__ __forceinline__ void put_element(void *out, int type, int64_t at, T x)
{
    with_type(type, [&](auto e) { ((typename decltype(e)::stored *)out)[at] = decltype(e)::write(x); });
}

} // namespace

#endif
#endif
