/* interpreter_kernels.h - the kernels of the interpreter, and their arguments. */
#ifndef INTERPRETER_KERNELS_H
#define INTERPRETER_KERNELS_H

#include "fast_divide.h"
#include "interpreter.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define INTERP_VECTORS 4 /* per thread, at most */
#define INTERP_THREADS(vectors)                                                                              \
    ((vectors) == 1 ? 64 : 256) /* small blocks for small arrays, so that more multiprocessors work */
#define INTERP_SMALL  (1 << 14) /* at most this many elements: one element per thread */
#define INTERP_MIDDLE (1 << 17) /* at most this many vectors: one vector per thread */
#define INTERP_LARGE  (1 << 19) /* at most this many vectors: two vectors per thread */

/* The arguments of the interpreters of one type; frequently read fields come first. x and y are
 * rows, as offsets in vectors. Vectors are 16 bytes at aligned addresses of the outputs, which
 * start `lead` elements after an aligned address. */
enum {
    INTERP_CODE = 0xfff,
    INTERP_X_NUMBER = 0x1000,
    INTERP_Y_NUMBER = 0x2000,
    INTERP_SAVES = 0x4000
}; /* of `what` */
#define INTERP_ARGS(type, number)                                                                            \
    typedef struct interp_code_##type {                                                                      \
        uint32_t what; /* code, numbers, to << 16; reduction << 24, or length of a linear run */             \
        uint32_t rows; /* x, y << 16 */                                                                      \
        number s, r;                                                                                         \
    } interp_code_##type;                                                                                    \
    typedef struct interp_short_##type {                                                                     \
        interp_head head;                                                                                    \
        interp_code_##type code[INTERP_SHORT];                                                               \
    } interp_short_##type;                                                                                   \
    typedef struct interp_long_##type {                                                                      \
        interp_head head;                                                                                    \
        interp_code_##type code[INTERP_LENGTH];                                                              \
        interp_paths paths;                                                                                  \
    } interp_long_##type;

typedef struct interp_head {
    int64_t n;
    int32_t lead;
    uint8_t length, inputs, last;
    bool begins; /* the accumulator starts as row `first` */
    uint32_t first;
    bool out_dense;
    void *out[PROGRAM_OUTPUTS];
    const void *in[PROGRAM_INPUTS];
} interp_head;

/* The stored types of a kernel's operands (duet_dtype), if it converts. */
typedef struct interp_types {
    uint8_t in[PROGRAM_INPUTS], out[PROGRAM_OUTPUTS];
} interp_types;

/* How a kernel reads element e of an operand: */
enum how {
    HOW_VECTORS, /* at[e], 16 bytes at a time */
    HOW_SCALARS, /* at[e], when its alignment is not that of out */
    HOW_ROUND,   /* at[e % size], 16 bytes at a time: along columns, when size is a multiple of the vector */
    HOW_CYCLE,   /* at[e % size * stride]: along columns; size is at least a vector */
    HOW_RUNS,    /* at[e / run % size * stride]: along channels; run is at least a vector */
    HOW_ANY,     /* the same for any run and size */
    HOW_WALK,    /* by strides along all axes */
    HOW_SINGLE,  /* at[0] */
};

/* How operands are read when their layouts differ. */
typedef struct interp_path {
    divider32 run, size;
    int32_t stride;
    uint32_t how; /* enum how */
} interp_path;
typedef struct interp_paths {
    int32_t rank;
    divider32 size[DUET_RANK_MAX];
    interp_path in[PROGRAM_INPUTS];
    int32_t in_stride[PROGRAM_INPUTS][DUET_RANK_MAX], out_stride[PROGRAM_OUTPUTS][DUET_RANK_MAX];
    interp_types types;
} interp_paths;
INTERP_ARGS(f32, uint32_t)
INTERP_ARGS(f64, uint64_t)

/* The kernels with 1, 2 or 4 vectors per thread. plain: all operands are contiguous with the same
 * sizes, and the program is short enough for interp_short. */
typedef const void *interp_kernels(int vectors, bool plain);
#define INTERP_KERNELS(type)                                                                                 \
    interp_kernel_##type, interp_kernel_heavy_##type, interp_kernel_small_##type,                            \
        interp_kernel_small_heavy_##type
interp_kernels INTERP_KERNELS(f32), INTERP_KERNELS(f64);
/* For operands of other types than the program's, and for all integer programs; never plain. i64
 * and u64 use interp_long_f64. i32, for integers that all fit into it, uses interp_long_f32. */
interp_kernels interp_kernel_converts_f32, interp_kernel_converts_heavy_f32, interp_kernel_converts_f64,
    interp_kernel_converts_heavy_f64, interp_kernel_converts_i64, interp_kernel_converts_u64,
    interp_kernel_converts_i32;
/* Copies of elements of 1 and 2 bytes, which use interp_short_f64 and interp_long_f64. Those of 4
 * and 8 bytes are copied as f32 and f64. */
interp_kernels interp_kernel_u8, interp_kernel_u16;
/* Writes the instructions of p for rows of `row` vectors, for kernels of f32, f64, i64, u64 or i32,
 * and returns their number. apart: splits pairs into single linear steps, as kernels of one vector
 * per thread require. */
int interp_pack(void *code, const interp_program *p, duet_dtype type, int row, bool apart);

cudaError_t interp_launch(const step *s, const frame *f, const workspace *space, cudaStream_t q);

#ifdef __cplusplus
}
#endif

#endif
