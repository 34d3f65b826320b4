/* fused.cu - kernels of the rows of fused.def. */
#include "fused.cuh"

namespace
{

#define DUET_FUSED(name, pattern, FORMULA, ...)                                                              \
    struct row_##name {                                                                                      \
        static __device__ inline T of(T x, T y, T z, T s, T r) { return FORMULA; }                           \
    };
#include "fused.def"

} // namespace

const void *TYPED(fused_kernel)(int row, int form)
{
    switch (row) {
#define DUET_FUSED(name, ...)                                                                                \
    case KERNEL_##name:                                                                                      \
        return form == FORM_FLAT      ? (const void *)flat<row_##name>                                       \
               : form == FORM_STRIDED ? (const void *)strided<row_##name>                                    \
                                      : NULL;
#include "fused.def"
    default: return NULL;
    }
}
