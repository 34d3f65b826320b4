/* gemm_none.c - the library built without oneDNN. */
#include "gemm.h"

bool onednn_takes(const gemm *g) { return (void)g, false; }

duet_status onednn_gemm(const gemm *g, float alpha, const float *a, const float *b, float beta, float *out)
{
    (void)g, (void)alpha, (void)a, (void)b, (void)beta, (void)out;
    return fail(DUET_UNSUPPORTED, "the library was built without oneDNN");
}
