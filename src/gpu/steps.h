/* steps.h - how the steps of the GPU machine are run, by kind. A refusal is NULL or a text that stays. */
#ifndef STEPS_H
#define STEPS_H

#include "queue.h"

/* By one of our own kernels. */
duet_status launch(const step *s, const frame *f, queue *q);

/* out = in, by a kernel: the same sizes, any strides. */
duet_status copy(void *out, const layout *out_at, const void *in, const layout *in_at, queue *q);

/* Operand x without gaps: where it is, or a copy in *block, which the caller gives back. */
duet_status densely(const operand *x, const frame *f, queue *q, const void **p, void **block);
void give_block(void *block, const queue *q); /* NULL is accepted */

const char *matmul_refuses(const step *s);
duet_status matmul_run(const step *s, const frame *f, queue *q);

const char *conv_refuses(const step *s);
duet_status conv_run(const step *s, const frame *f, queue *q);
void conv_forget(step *s);

#endif
