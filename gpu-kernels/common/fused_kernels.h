/* fused_kernels.h - the kernels of fused rows. */
#ifndef FUSED_KERNELS_H
#define FUSED_KERNELS_H

#include "fast_divide.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define POINT_THREADS 256
#define POINT_INPUTS  3
#define POINT_ROUNDS  2         /* vectors per thread, for a large array */
#define POINT_SMALL   (1 << 18) /* an array of at most this many vectors is small */
#define STRIDED_EACH  4         /* elements per thread */

/* How a flat kernel reads element e of an operand: */
enum how {
    HOW_NUMBER,  /* a number */
    HOW_VECTORS, /* at[e], 16 bytes at a time */
    HOW_SCALARS, /* at[e], when its alignment is not that of out */
    HOW_ROUND,   /* at[e % size], 16 bytes at a time: along columns, when size is a multiple of the vector */
    HOW_CYCLE,   /* at[e % size * stride]: along columns; size is at least a vector */
    HOW_RUNS,    /* at[e / run % size * stride]: along channels; run is at least a vector */
    HOW_ANY,     /* the same for any run and size */
    HOW_WALK,    /* by strides along all axes */
    HOW_SINGLE,  /* at[0] */
};

typedef struct flat_operand {
    const void *at;
    double number;
    enum how how;
    int32_t stride;
    divider32 run, size;
} flat_operand;

/* Vectors are 16 bytes at aligned addresses of out, which starts `lead` elements after an aligned
 * address. A thread computes `rounds` vectors. */
typedef struct flat_args {
    void *out;
    int64_t n;
    int32_t lead, rounds;
    flat_operand in[POINT_INPUTS];
    double s, r;
} flat_args;

/* Operand 0 is the output. An input whose address is NULL is its number. */
typedef struct strided_args {
    void *at[1 + POINT_INPUTS];
    double number[1 + POINT_INPUTS], s, r;
    uint32_t n;
    int32_t rank;
    divider32 size[DUET_RANK_MAX];
    int32_t stride[1 + POINT_INPUTS][DUET_RANK_MAX];
} strided_args;

KERNEL_TABLE(fused)

#ifdef __cplusplus
}
#endif

#endif
