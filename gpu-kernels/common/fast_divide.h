/* fast_divide.h - division by multiplication, for divisors for which the host has prepared a factor. */
#ifndef FAST_DIVIDE_H
#define FAST_DIVIDE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A divisor `by` and its factor: n / by = (high half of n * magic + n) >> shift. This is exact for every
 * n < 2^31 (2^63). */
typedef struct divider32 {
    uint32_t by, magic, shift;
} divider32;
typedef struct divider64 {
    uint64_t by, magic;
    uint32_t shift;
} divider64;

divider32 divide_by32(int64_t by);
divider64 divide_by64(int64_t by);

#ifdef __cplusplus
}
#endif

#endif
