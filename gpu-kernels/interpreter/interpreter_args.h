/* interpreter_args.h - the arguments of the interpreter's kernels, and where these are found. */
#ifndef INTERPRETER_ARGS_H
#define INTERPRETER_ARGS_H

#include "fast_divide.h"
#include "interpreter.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MACHINE_VECTORS 4 /* per thread, at most */
#define MACHINE_THREADS(vectors)                                                                             \
    ((vectors) == 1 ? 64 : 256)  /* small blocks for small arrays, so that more multiprocessors work */
#define MACHINE_SMALL  (1 << 14) /* at most so many elements: one element per thread */
#define MACHINE_MIDDLE (1 << 17) /* at most so many vectors: one vector per thread */
#define MACHINE_LARGE  (1 << 19) /* at most so many vectors: two vectors per thread */

/* The arguments of the interpreters of one type; frequently read fields come first. x and y are
 * rows, as offsets in vectors. Vectors are 16 bytes at aligned addresses of the outputs, which
 * start `lead` elements after an aligned address. */
enum {
    MACHINE_CODE = 0xfff,
    MACHINE_X_NUMBER = 0x1000,
    MACHINE_Y_NUMBER = 0x2000,
    MACHINE_SAVES = 0x4000
}; /* of `what` */
#define MACHINE_ARGS(type, number)                                                                           \
    typedef struct machine_code_##type {                                                                     \
        uint32_t what; /* code, numbers, to << 16; reduction << 24, or length of a linear run */             \
        uint32_t rows; /* x, y << 16 */                                                                      \
        number s, r;                                                                                         \
    } machine_code_##type;                                                                                   \
    typedef struct machine_short_##type {                                                                    \
        machine_head head;                                                                                   \
        machine_code_##type code[MACHINE_SHORT];                                                             \
    } machine_short_##type;                                                                                  \
    typedef struct machine_long_##type {                                                                     \
        machine_head head;                                                                                   \
        machine_code_##type code[MACHINE_LENGTH];                                                            \
        machine_paths paths;                                                                                 \
    } machine_long_##type;

typedef struct machine_head {
    int64_t n;
    int32_t lead;
    uint8_t length, inputs, last;
    bool begins; /* the accumulator starts as row `first` */
    uint32_t first;
    bool out_dense;
    void *out[PROGRAM_OUTPUTS];
    const void *in[PROGRAM_INPUTS];
} machine_head;

/* The stored types of a kernel's operands (duet_dtype), if it converts. */
typedef struct machine_types {
    uint8_t in[PROGRAM_INPUTS], out[PROGRAM_OUTPUTS];
} machine_types;

/* How operands are read when their layouts differ: element e of an input is at[e], at[e / run %
 * size * stride], or found by strides. */
typedef struct machine_path {
    divider32 run, size;
    int32_t stride;
    uint32_t how;
} machine_path;
typedef struct machine_paths {
    int32_t rank;
    divider32 size[DUET_RANK_MAX];
    machine_path in[PROGRAM_INPUTS];
    int32_t in_stride[PROGRAM_INPUTS][DUET_RANK_MAX], out_stride[PROGRAM_OUTPUTS][DUET_RANK_MAX];
    machine_types types;
} machine_paths;
MACHINE_ARGS(f32, uint32_t)
MACHINE_ARGS(f64, uint64_t)

/* The kernels with 1, 2 or 4 vectors per thread. plain: all operands are contiguous with the same
 * sizes, and the program is short enough for machine_short. */
typedef const void *machine_kernels(int vectors, bool plain);
#define MACHINE_KERNELS(type)                                                                                \
    machine_kernel_##type, machine_kernel_heavy_##type, machine_kernel_small_##type,                         \
        machine_kernel_small_heavy_##type
machine_kernels MACHINE_KERNELS(f32), MACHINE_KERNELS(f64);
/* For operands of other types than the program's, and for all integer programs; never plain. i64
 * and u64 use machine_long_f64. i32, for integers that all fit into it, uses machine_long_f32. */
machine_kernels machine_kernel_converts_f32, machine_kernel_converts_heavy_f32, machine_kernel_converts_f64,
    machine_kernel_converts_heavy_f64, machine_kernel_converts_i64, machine_kernel_converts_u64,
    machine_kernel_converts_i32;
/* Copies of elements of 1 and 2 bytes, which use machine_short_f64 and machine_long_f64. Those of 4
 * and 8 bytes are copied as f32 and f64. */
machine_kernels machine_kernel_u8, machine_kernel_u16;
/* Writes the instructions of p for rows of `row` vectors, for kernels of f32, f64, i64, u64 or i32,
 * and returns their number. apart: splits pairs into single linear steps, as kernels of one vector
 * per thread require. */
int machine_pack(void *code, const machine_program *p, duet_dtype type, int row, bool apart);

#ifdef __cplusplus
}
#endif

#endif
