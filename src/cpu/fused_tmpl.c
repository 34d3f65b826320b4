/* fused_tmpl.c - the rows of fused.def, each one loop. */
#include "pass.h"

#define DUET_FUSED(name, pattern, formula, doc) LOOPS3(name, formula)
#include "fused.def"

static loop_choice rows[KERNELS] = {
#define DUET_FUSED(name, ...) [KERNEL_##name] = PICK3(name),
#include "fused.def"
};

duet_status NAME(run_fused)(const step *s, const frame *f)
{
    pass p;
    pass_open(&p, s, f);
    const uint8_t y = s->ins > 1 ? INPUTS + 1 : INPUTS, z = s->ins > 2 ? INPUTS + 2 : INPUTS;
    p.loop[0] = (loop){ rows[s->kernel], NULL, OUTPUTS, { INPUTS, y, z } };
    p.loops = 1;
    p.seconds = SECONDS_PER_FUNCTION;
    pass_run(&p);
    return DUET_OK;
}
