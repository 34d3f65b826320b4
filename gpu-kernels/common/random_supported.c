/* random_supported.c - which random numbers the kernels support. */
#include "random_step.h"
#include "supported.h"

/* The indices of a permutation have 32 bits. */
const char *random_unsupported(const step *s)
{
    REJECT(s->attr.random.distribution == DISTRIBUTION_PERMUTATION && s->out[0].at.size[0] > UINT32_MAX / 2,
           "a permutation must have less than 2^31 elements");
    return random_step_unsupported(s);
}
