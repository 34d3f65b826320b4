/* gemm_none.c - gemm.h for builds without oneDNN. */
#include "gemm.h"

bool gemm_is_small(const gemm *g) { return false; }

bool onednn_gemm_supported(const gemm *g) { return false; }

duet_status onednn_gemm(const gemm *g, float alpha, const float *a, const float *b, float beta, float *out)
{
    return fail(DUET_UNSUPPORTED, "the library was built without oneDNN");
}
