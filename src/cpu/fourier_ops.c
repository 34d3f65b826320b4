/* fourier_ops.c - the operations that core/fourier.h needs, on the CPU; and fftshift, which needs
 * no others. */
#include "fourier_ops.h"
#include <string.h>

duet_status cpu_program(const step *s, const frame *f, void *with)
{
    step own = *s; /* a copy, because the run stores its plan in the step */
    const duet_status r = isa_functions_of(s->out[0].at.type)->program(&own, f);
    program_forget(&own);
    return r;
}

duet_status cpu_clear(void *p, size_t bytes, void *with)
{
    memset(p, 0, bytes);
    return DUET_OK;
}

void cpu_give(void *p, void *with) { scratch_give(p); }

static duet_status run_shift(const step *s, const frame *f)
{
    if (layout_count(&s->out[0].at) == 0) return DUET_OK;
    return fourier_shift(&(const fourier_ops){ .run = cpu_program }, s, f);
}

const cpu_kernel cpu_kernel_fft_shift = { fourier_unsupported, run_shift, cost_of_pass };
