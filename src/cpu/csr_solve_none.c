/* csr_solve_none.c - csr_solve in builds without SuperLU. */
#include "cpu_kernels.h"
#include "status.h"

#define WHY "built without SuperLU (-Dsuperlu=disabled, or the build did not find it)"

static const char *unsupported(const step *s) { return WHY; }
static duet_status run(const step *s, const frame *f) { return fail(DUET_UNSUPPORTED, WHY); }

const cpu_kernel cpu_kernel_csr_solve = { unsupported, run, cost_of_pass };
