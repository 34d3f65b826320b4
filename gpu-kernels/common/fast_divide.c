/* fast_divide.c - prepares the divisors of fast_divide.h on the host. This file does not need CUDA. */
#include "fast_divide.h"

/* The least s with 2^s >= by. */
static uint32_t ceil_log2(uint64_t by) { return by <= 1 ? 0 : 64 - (uint32_t)__builtin_clzll(by - 1); }

divider32 divide_by32(int64_t by)
{
    const uint32_t s = ceil_log2((uint64_t)by);
    const uint64_t magic = by < 1 ? 0 : ((((uint64_t)1 << s) - (uint64_t)by) << 32) / (uint64_t)by + 1;
    return (divider32){ (uint32_t)by, (uint32_t)magic, s };
}

divider64 divide_by64(int64_t by)
{
    const uint32_t s = ceil_log2((uint64_t)by);
    const unsigned __int128 rest = (unsigned __int128)(((uint64_t)1 << s) - (uint64_t)by) << 64;
    return (divider64){ (uint64_t)by, by < 1 ? 0 : (uint64_t)(rest / (uint64_t)by) + 1, s };
}
