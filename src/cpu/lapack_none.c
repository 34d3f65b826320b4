/* lapack_none.c - lapack.h for builds without LAPACKE: no step is supported. */
#include "cpu_kernels.h"
#include "lapack.h"

const char *linear_version(void) { return "absent: no linear algebra on the CPU"; }
const char *linear_unsupported(const step *s) { return "the library was built without LAPACKE"; }

run_function run_linear_f32, run_linear_f64, run_linear_c64, run_linear_c128;
duet_status run_linear_f32(const step *s, const frame *f)
{
    return fail(DUET_UNSUPPORTED, "%s", linear_unsupported(s));
}
duet_status run_linear_f64(const step *s, const frame *f) { return run_linear_f32(s, f); }
duet_status run_linear_c64(const step *s, const frame *f) { return run_linear_f32(s, f); }
duet_status run_linear_c128(const step *s, const frame *f) { return run_linear_f32(s, f); }
