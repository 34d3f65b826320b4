/* kernel_info.c - the facts of each kernel that do not depend on the machine that runs it. */
#include "backend.h"

const kernel_info kernel_infos[KERNELS_ALL] = {
#define NAMED(name_, ...) [OP_##name_] = { .name = #name_ },
#define DUET_MAP1         NAMED
#define DUET_MAP2         NAMED
#define DUET_MAP3         NAMED
#define DUET_INT1         NAMED
#define DUET_INT2         NAMED
#define DUET_FOLD1        NAMED
#define DUET_FOLD2        NAMED
#define DUET_MOMENT1      NAMED
#define DUET_PLACE1       NAMED
#define DUET_DEF1         NAMED
#define DUET_DEF2         NAMED
#define DUET_CALL1        NAMED
#define DUET_CALL2        NAMED
#define DUET_CALL3        NAMED
#include <duet/ops.def>
    [KERNEL_PROGRAM] = { .name = "program" },
    [KERNEL_RANDOM] = { .name = "random" },
    [KERNEL_LAYER_NORM] = { .name = "layer_norm" },
    [KERNEL_BATCHED] = { .name = "batched matmul" },
    [KERNEL_COLLECTIVE] = { .name = "collective", .is_collective = true },
#define DUET_FACTOR2(name_, ...) [KERNEL_##name_] = { .name = #name_ },
#define DUET_FACTOR3             DUET_FACTOR2
#include <duet/factor.def>
#define SOLVER(number) [number].may_fail = true,
#include "solvers.def"
    [OP_csr_solve].may_fail = true,
    [OP_csr_solve_triangular].may_fail = true,
    [OP_conv2d].conv = CONV_FORWARD,
    [OP_conv2d_input_grad].conv = CONV_INPUT_GRAD,
    [OP_conv2d_filter_grad].conv = CONV_FILTER_GRAD,
};
