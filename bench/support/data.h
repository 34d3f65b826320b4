/* data.h - the input data of the benchmarks: reproducible pseudo-random numbers. */
#ifndef DATA_H
#define DATA_H

#include <stdint.h>

/* Returns element i of a stream: a multiple of 2^-23 in [-1, 1). bench/peers/common.py computes the
 * same numbers with NumPy. */
static inline uint32_t noise_mix(uint32_t h)
{
    h = (h ^ h >> 16) * 0x21F0AAADu;
    h = (h ^ h >> 15) * 0x735A2D97u;
    return h ^ h >> 15;
}
static inline float noise(uint32_t stream, int64_t i)
{
    return (float)(noise_mix((uint32_t)i + noise_mix(stream)) >> 8) * 0x1p-23f - 1;
}
#endif
