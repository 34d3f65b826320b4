/* fourier_ops.c - the operations that core/fourier.h needs, on the CPU. */
#include "fourier_ops.h"
#include <string.h>

duet_status cpu_program(const step *s, const frame *f, void *with)
{
    step own = *s; /* a copy, because the run stores its plan in the step */
    const duet_status r = kernels_of(s->out[0].at.type)->program(&own, f);
    program_forget(&own);
    return r;
}

duet_status cpu_clear(void *p, size_t bytes, void *with)
{
    memset(p, 0, bytes);
    return DUET_OK;
}

void cpu_give(void *p, void *with) { scratch_give(p); }

duet_status run_shift(const step *s, const frame *f)
{
    return fourier_shift(&(const fourier_ops){ .run = cpu_program }, s, f);
}
