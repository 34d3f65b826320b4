/* gemm_operands.h - the operands of a matrix product, out = alpha a b + beta c. */
#ifndef GEMM_OPERANDS_H
#define GEMM_OPERANDS_H

#include "step_kinds.h"

typedef struct gemm_scale {
    double alpha, beta;
    const void *bias; /* that cuBLASLt adds, or NULL */
} gemm_scale;

/* Is there an addend c? The third operand of a step with an epilogue is its bias. */
static inline bool gemm_has_addend(const step *s) { return s->ins > 2 && !s->epilogue; }
gemm_scale gemm_scale_of(const step *s, const frame *f);
part gemm_addend(const step *s, const frame *f);
/* Computes a product whose inner axis is empty: out = beta c + alpha 0. */
duet_status gemm_of_nothing(const step *s, const frame *f, queue *q, gemm_scale by);
/* Computes out = alpha `product` + beta c by kernels, so that 0 times NaN or infinity shows. */
duet_status gemm_apply_scale(const step *s, const frame *f, queue *q, gemm_scale by, part product);

/* Are lines along axis `along` contiguous, without overlapping each other, as cuBLASLt needs? *ld is
 * then the leading dimension. Axes of size 1 may have any stride, and so may empty matrices. */
bool gemm_is_dense(const layout *l, int along, int *ld);

/* gpu_gemm_open for callers that do not hold q->lock. */
duet_status gemm_open(queue *q);

#endif
