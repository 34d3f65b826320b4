/* kernel_info.c - what is known of each kernel whatever machine runs it: one entry per kernel number. */
#include "backend.h"

#define MAY_FAIL_SAME   false
#define MAY_FAIL_EVERY  false
#define MAY_FAIL_FREE   false
#define MAY_FAIL_SOLVES true

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
#define DUET_CALL1(name_, options, types, ...)                                                               \
    [OP_##name_] = { .name = #name_, .may_fail = MAY_FAIL_##types },
#define DUET_CALL2 DUET_CALL1
#define DUET_CALL3 DUET_CALL1
#include <duet/ops.def>
    [KERNEL_PROGRAM] = { .name = "program", .is_map = true },
#define DUET_FUSED(name_, ...) [KERNEL_##name_] = { .name = #name_, .is_map = true },
#include "fused.def"
    [KERNEL_RANDOM] = { .name = "random" },
    [KERNEL_LAYER_NORM] = { .name = "layer_norm" },
    [KERNEL_BATCHED] = { .name = "batched matmul" },
#define DUET_FACTOR2(name_, ...) [KERNEL_##name_] = { .name = #name_, .may_fail = true },
#define DUET_FACTOR3             DUET_FACTOR2
#include <duet/factor.def>
};
