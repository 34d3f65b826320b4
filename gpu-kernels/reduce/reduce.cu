/* reduce.cu - the kernels that reduce elements in memory, one set for each reduction row of
 * ops.def. */
#include "reduce.cuh"
#include "reduce_ops.cuh"

const void *TYPED(reduce_kernel)(int row, int form)
{
    switch (row) {
#define DUET_FOLD1(name, ...)                                                                                \
    case OP_##name:                                                                                          \
        return reduce_form<folding<row_##name>>(form);
#define DUET_FOLD2   DUET_FOLD1
#define DUET_MOMENT1 DUET_FOLD1
#define DUET_PLACE1  DUET_FOLD1
#include <duet/ops.def>
    default: return NULL;
    }
}
