/* limits.c - limits for readers of files, which the program sets. */
#include "io.h"

static size_t bytes_limit; /* of a result; 0: no limit */
static int ratio_limit;    /* of a compressed array; 0: no limit */

duet_status(duet_load_limits)(size_t bytes, int ratio)
{
    if (ratio < 0) return fail(DUET_BAD_ARGUMENT, "duet_load_limits: ratio (%d) must not be negative", ratio);
    __atomic_store_n(&bytes_limit, bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&ratio_limit, ratio, __ATOMIC_RELAXED);
    return DUET_OK;
}

duet_status limit_bytes(const input *in, uint64_t bytes)
{
    const size_t most = __atomic_load_n(&bytes_limit, __ATOMIC_RELAXED);
    if (!most || bytes <= most) return DUET_OK;
    return input_failed(in, DUET_NO_MEMORY,
                        "the result has %llu bytes, which exceeds the limit of duet_load_limits (%zu bytes)",
                        (unsigned long long)bytes, most);
}

duet_status limit_ratio(const input *in, uint64_t size, uint64_t packed)
{
    const uint64_t most = (uint64_t)__atomic_load_n(&ratio_limit, __ATOMIC_RELAXED);
    if (!most || size / most < packed || (size / most == packed && size % most == 0)) return DUET_OK;
    return fail(DUET_BAD_FILE,
                "%s(\"%s\"): the array has %llu bytes and %llu compressed ones, which exceeds the ratio of "
                "duet_load_limits (%d)",
                in->who, in->path, (unsigned long long)size, (unsigned long long)packed, (int)most);
}
