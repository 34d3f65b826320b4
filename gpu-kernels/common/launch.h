/* launch.h - declarations shared by the launchers (C) and the kernels (CUDA): the kernels'
 * arguments, and the functions that return kernels. Nothing here has an element type: addresses are
 * void, numbers double, and strides count elements. Each kernel takes one of these structs. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "interpreter.h"
#include "kernels.h"
#include "random_step.h"
#include "supported.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The access patterns of kernels. A row of ops.def or fused.def has one kernel for each form of its
 * family. */
enum form {
    FORM_FLAT,    /* element-wise, out is contiguous */
    FORM_STRIDED, /* element-wise, any strides */
    FORM_ROWS,    /* reductions: a warp's threads run along the reduced axis */
    FORM_COLUMNS, /* ... or along the outputs */
    FORM_SHORT,   /* ... at most 16 elements, four threads an output */
    FORM_NARROW,  /* ... at most 128 elements, eight threads an output, which run along the reduced axis */
    FORM_LOW,     /* ... or along the outputs */
    FORM_THIN,    /* ... one thread an output */
    FORM_ROW,     /* softmax: a row is held in shared memory */
    FORM_LAST,    /* ... a longer row, after its maximum and sum were computed */
    FORM_WINDOW,  /* pooling, any window */
    FORM_WINDOW2, /* ... 2 x 2 */
};

/* The kernel of a row, or NULL. One pair of functions a .cu file. */
#define KERNEL_TABLE(family)                                                                                 \
    const void *family##_kernel_f32(int row, int form);                                                      \
    const void *family##_kernel_f64(int row, int form);
KERNEL_TABLE(fused)
KERNEL_TABLE(reduce)
KERNEL_TABLE(softmax)
KERNEL_TABLE(norm)
KERNEL_TABLE(pool2d)
KERNEL_TABLE(pool_back)
KERNEL_TABLE(gemm_small_mn)
KERNEL_TABLE(tall)
KERNEL_TABLE(random)
const void *random_kernel_i64(int row, int form);

/* Division by a number that the host knows: q = (high half of n * magic + n) >> shift. Exact for
 * every n < 2^31 (2^63). */
typedef struct divider32 {
    uint32_t by, magic, shift;
} divider32;
typedef struct divider64 {
    uint64_t by, magic;
    uint32_t shift;
} divider64;

#define POINT_THREADS 256
#define POINT_INPUTS  3
#define POINT_ROUNDS  2         /* vectors per thread, for a large array */
#define POINT_SMALL   (1 << 18) /* an array of at most so many vectors is small */
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
 * sizes, and the program is short enough for machine_short. NULL: there is no such kernel. */
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
const void *tile_kernel_u8(void);
const void *tile_kernel_u16(void);
const void *tile_kernel_f32(void);
const void *tile_kernel_f64(void);
cudaError_t machine_launch(const step *s, const frame *f, cudaStream_t q);

#define TILE         64
#define TILE_THREADS 256

/* out[i * out_stride + j * out_fast] = in[i * in_fast + j * in_stride] for i < rows, j < columns,
 * for each index of the outer axes. */
typedef struct tile_args {
    void *out;
    const void *in;
    int64_t rows, columns, in_fast, in_stride, out_fast, out_stride;
    uint32_t tiles_down, tiles_across;
    int32_t rank;
    int64_t size[DUET_RANK_MAX], stride[2][DUET_RANK_MAX]; /* of the outer axes: out, in */
} tile_args;

#define REDUCE_WARPS 8 /* per thread block, when a warp runs along the reduced axis */
/* along outputs: a thread block has REDUCE_ACROSS outputs times REDUCE_DOWN groups of lanes */
#define REDUCE_ACROSS   32
#define REDUCE_DOWN     16
#define REDUCE_FEW_DOWN 8  /* ... if there are at most as many elements as lanes */
#define REDUCE_FEW      16 /* the short kernels take at most so many elements */

/* Counters for outputs that several thread blocks compute in parts. A thread block computes a part
 * of one output, or along outputs of a tile of `across` outputs. The blocks of `tiles` tiles share
 * a counter; the last block to arrive joins the parts. Counters are 0 before and after. */
typedef struct meeting {
    uint32_t *counters;
    uint32_t tiles;
} meeting;

/* Reduces n elements for each output. Outputs are indexed over the outer axes, elements of an
 * output over the inner ones. `warps` blocks of REDUCE_BLOCK elements are joined at a time; the
 * results are the parts of an output. */
typedef struct reduce_args {
    const void *x, *y;
    const void *with; /* an additional operand of the reduction: a dense array, one number for each output */
    void *out, *part; /* part[output * parts + i] */
    int64_t n, outputs, blocks, parts;
    divider64 by_parts;
    meeting meet;
    int32_t warps; /* a power of two, at most REDUCE_WARPS */
    int32_t outer, inner;
    divider64 outer_size[DUET_RANK_MAX], inner_size[DUET_RANK_MAX];
    int64_t outer_stride[3][DUET_RANK_MAX]; /* x, y, out */
    int64_t inner_stride[2][DUET_RANK_MAX]; /* x, y */
} reduce_args;

#define ROW_THREADS 128 /* REDUCE_LANES: one thread per lane */
/* the longest row held in shared memory; with all else it is below the 99 KiB of any card */
#define ROW_BYTES    90112
#define ROW_BLOCKS   8
#define ROW_HELD     1024 /* a warp holds a row of at most so many elements in registers */
#define LAST_THREADS 256
#define LAST_EACH    8

/* Rows of n elements along the last axis, with stride `stride`. Rows are indexed over the outer
 * axes; out is dense. */
typedef struct row_args {
    const void *in, *most, *sum; /* most, sum: of each row, for FORM_LAST of softmax */
    void *out;
    int64_t n, rows, stride;
    int32_t outer;
    divider64 outer_size[DUET_RANK_MAX];
    int64_t outer_stride[DUET_RANK_MAX];
} row_args;

/* Gain or bias: element i of a row is at[i / run * stride], or `number` if at is NULL. */
typedef struct norm_trim {
    const void *at;
    double number;
    int64_t stride;
    divider64 run;
    int64_t outer_stride[DUET_RANK_MAX];
} norm_trim;
typedef struct norm_args {
    row_args row;
    norm_trim with[2];
    bool trims;        /* there are a gain and a bias */
    double r;          /* is added to the variance */
    const void *known; /* mean and variance of each row, for FORM_LAST */
} norm_args;

#define POOL_THREADS 256
#define POOL_EACH    4

/* Planes of images with axes n, c, h, w. out is dense. Indices into out and into a plane have 32
 * bits. */
typedef struct pool2d_args {
    const void *in;
    void *out;
    uint32_t count;
    divider32 channels, height, width; /* of out */
    int64_t image, plane;              /* strides of in */
    int32_t row, column;
    int32_t in_height, in_width;
    int32_t window[2], stride[2], pad[2];
} pool2d_args;

/* Gradients of pooling, and upsampling: all planes in order, one thread per element. Indices into a
 * plane's axes have 32 bits. */
typedef struct pool_back_args {
    const void *in, *grad;
    void *out;
    divider64 channels, height, width; /* of out */
    int64_t stride[4], grad_stride[4];
    int32_t in_height, in_width, grad_height, grad_width;
    int32_t window[2], step[2], pad[2];
    int64_t count;
} pool_back_args;

#define CONV_THREADS 128
#define CONV_WIDTH   32 /* outputs per thread block, at most */

#define CONV_SQUARE_WARPS  12   /* per thread block, at most */
#define CONV_SQUARE_OWN    7424 /* bytes of shared memory: per warp, */
#define CONV_SQUARE_FILTER 512  /* and for the filters of eight outputs and one channel */

/* A convolution with windows of 3 x 3 and its epilogue (winograd_1d.cu). A strip is `positions`
 * times 2 x 4 results before pooling: `images` images, pairs of rows, groups of four columns.
 * Channels of the images are copied to shared memory `depth` at a time, as lines of groups of four
 * elements, `pitch` apart; `stage` is the size of one copy. `along` warps of a thread block share a
 * strip; the other warps compute other outputs. A thread block computes `width` outputs, and
 * `groups` such blocks compute all of them. The blocks of a group share all strips; `walkers`
 * blocks run at a time. In winograd_2d.cu a strip is the pairs of tiles of a warp, and `positions`
 * is the number of all pairs. */
typedef struct conv2d_args {
    const void *in, *filters, *bias; /* bias may be NULL */
    void *out;
    int64_t n, image, filter[4], bias_stride; /* strides of in, of filters, of bias */
    int32_t channel, row;                     /* strides of in */
    int32_t c, h, w, m, pad[2], out_h, out_w;
    float least; /* 0 for relu, else -infinity */
    int32_t pitch, stage, width;
    uint32_t along, images, positions, units, strips, walkers;
    divider32 rows, quads, lines, depth, down, across, groups;
    bool vectors;           /* in and out are read and written as aligned groups of four columns */
    bool wide;              /* so are all rows of results of a thread */
    bool filters_are_there; /* no kernel that may still be running writes the filters or the bias */
} conv2d_args;

#define FILTER_THREADS 256
/* elements of one of two buffers in shared memory. One fits into the 99 KiB of any card, two
     * into the 227 KiB of H100 */
#define FILTER_STAGE        10240
#define FILTER_SUMS         72 /* per thread: the windows of eight outputs */
#define FILTER_CHANNEL_BITS 5  /* log2 of the channels of a thread block, at most */
#define FILTER_EIGHT_BITS   3  /* log2 of its groups of eight outputs, at most */
#define FILTER_ACROSS       32 /* sums that a thread block joins at once; its warps share the parts of each */

/* The gradient of 3 x 3 filters (wgrad.h describes the layout). In arrays of two, element 0 is for
 * the images, 1 for the gradient. The sums of a part are stored tile by tile, and within a tile
 * part by part. */
typedef struct filter_grad_args {
    const void *x, *dy;
    void *out, *part;
    int64_t n, image[2];  /* images; stride between images, */
    int32_t stride[2][3]; /* between channels, rows, columns */
    int32_t c, h, w, m, out_h, out_w, pad[2];
    int32_t rows, columns;             /* of a strip */
    int32_t pitch[2], plane[2];        /* in shared memory, elements: of a line, of a channel */
    int32_t second;                    /* offset of the gradient in shared memory */
    int32_t apart;                     /* distance between two outputs of a thread */
    int32_t stage;                     /* size of one copy */
    uint32_t channel_bits, eight_bits; /* log2 of a tile's channels, and of its groups of eight outputs */
    uint32_t channels[2];              /* of a tile, for each operand */
    /* tasks: a channel with eight outputs each; splits: threads that share a task */
    uint32_t tasks, splits;
    uint32_t strips, each, filters; /* all strips, strips of a part, tiles */
    divider32 tiles, parts;         /* tiles with all channels; parts of the pixels */
    divider32 across, down;         /* strips per image */
    /* per strip of an operand: groups of four columns, and lines of them */
    divider32 fours[2], lines[2];
    divider32 sums;  /* per tile */
    bool vectors[2]; /* groups of four are aligned */
} filter_grad_args;

/* The products that our kernels compute (gemm_small_supported.c). The fake CUDA sets smaller
 * limits, so that tests also reach its cuBLASLt. */
#ifndef GEMM_MN_COLUMNS
#define GEMM_MN_COLUMNS 16
#define SPLIT_ROWS      128
#endif
#define GEMM_MN_INNER   2048
#define SPLIT_WORK      3e8 /* m k n; larger products keep the vendor's kernels busy */
#define GEMM_MN_THREADS 256
#define GEMV_THREADS    256
#define GEMV_ROWS       2
#define GEMV_COLUMNS    8 /* per thread block */
#define GEMM_MN_ROWS    2 /* per thread block */
/* minimum number of rows; with fewer rows, a thread block shares the inner axis */
#define GEMM_TALL_MIN_ROWS 2048
#define GEMM_TALL_THREADS  256
#define GEMM_TALL_ROWS     4           /* per warp and iteration */
#define GEMM_TALL_SHARED   (100 << 10) /* bytes of b for which two thread blocks fit on a multiprocessor */

/* out = act(alpha a b + bias), m x k times k x n. The columns of a and out are adjacent. */
typedef struct product_args {
    const void *a, *b, *bias; /* bias NULL: neither bias nor act */
    void *out;
    int64_t a_row, b_row, b_column, out_row, bias_stride;
    int32_t m, k, n;
    int32_t act;
    /* thread blocks of a cluster, which share a tile of gemm_split_k.cu or emulated_gemm_small.cu */
    int32_t parts;
    bool b_is_there; /* no kernel that may still be running writes b */
    double alpha;
} product_args;

/* A kernel of gemm_split_k.def or emulated_gemm_small.cu: its tile, and the resources of a thread
 * block. */
typedef struct split_kernel {
    int rows, columns, threads, shared;
    /* measured microseconds: of a launch, of a thread block, and of a thread block per 1000 of the
     * inner axis */
    double once, start, cost;
    const void *kernel[2]; /* reads a and b by elements; by 16 bytes */
} split_kernel;
const split_kernel *split_kernels(int *count);
const split_kernel *emulated_gemm_small_kernels(int *count); /* for DUET_MATH_SPLIT */
const void *gemv_kernel(int rows, int form, bool wide);

#define RANDOM_THREADS 256
#define BUCKET_MEAN    128 /* of a permutation: the greatest average size of a bucket */
#define BUCKET_THREADS 128
#define BUCKET_KEPT    512 /* elements of a bucket that fit into shared memory */
#define SCAN_THREADS   1024

/* Random numbers, one Philox block per thread. For a permutation, indices are put into buckets by
 * the upper bits of their keys, in any order, and then ranked within the bucket. `ends` has the
 * sizes of the buckets, then their starts, then their ends. */
enum random_form {
    FORM_DRAW,                  /* any distribution; FORM_DRAW + proposal for a truncated normal one */
    FORM_COUNT = FORM_DRAW + 3, /* permutations: counts the indices of each bucket, */
    FORM_SCAN,                  /* computes the starts of buckets, */
    FORM_SPREAD,                /* puts indices into buckets, */
    FORM_RANK,                  /* and ranks them */
};

typedef struct random_args {
    void *out;
    int64_t n;
    random_params draw;
    int32_t rank;
    bool vectors; /* out is contiguous and aligned to 16 bytes */
    divider64 size[DUET_RANK_MAX];
    int64_t stride[DUET_RANK_MAX];
    uint32_t *indices, *ends;
    int32_t bucket_bits;
} random_args;

/* The functions of a family in kernels.def: the bytes of workspace that a launch needs, and the
 * launch. */
typedef size_t workspace_size(const step *s);
typedef cudaError_t launcher(const step *s, const frame *f, const workspace *w, cudaStream_t q);
#define KERNEL(number, unsupported, cost, launch) launcher launch;
#define KERNEL_WORKSPACE(number, unsupported, cost, workspace, launch)                                       \
    workspace_size workspace;                                                                                \
    launcher launch;
#include "kernels.def"

workspace_size reduce_workspace;
size_t reduce_part_bytes(const reduce_args *a, int row, bool wide); /* the size of a.part */
launcher reduce_launch;
meeting meet_at(uint32_t *counters, int64_t outputs, int64_t across);
/* fills in a reduction of the last axis of one input, except for addresses */
void reduce_rows_of(reduce_args *a, const layout *in, const layout *out);
cudaError_t reduce_run(const reduce_args *a, const void *(*kernel)(int row, int form), int row,
                       cudaStream_t q);
/* held: number of elements of each thread */
const void *softmax_warp_kernel_f32(int row, int held, bool vectors);
const void *softmax_warp_kernel_f64(int row, int held, bool vectors);
/* held: as above, or 0 if a thread block holds a row. vectors: reads 16 bytes at a time. dense:
 * gain and bias are dense too. */
const void *norm_row_kernel_f32(int held, bool vectors, bool dense);
const void *norm_row_kernel_f64(int held, bool vectors, bool dense);
product_args product_args_of(const step *s, const frame *f, const workspace *w);
/* How a step runs in DUET_MATH_SPLIT: by kernels that need operand 1 packed, or by those for few
 * rows. */
enum parts { PARTS_UNKNOWN, PARTS_NONE, PARTS_PACKED, PARTS_FEW };
enum parts parts_of(const step *s);
bool product_splits(const step *s); /* has few rows, and emulated_gemm_small.cu is the fastest */
double emulated_gemm_cost(
    const step *s); /* expected microseconds of emulated_gemm.cu; INFINITY: it does not support the step */
cudaError_t emulated_launch(const step *s, const frame *f, const workspace *w,
                            cudaStream_t q);             /* uses w->packed */
const void *conv2d_kernel_f32(int outputs, bool pooled); /* outputs: per thread, 2, 4 or 8 */
/* eights: groups of eight outputs per warp, 2 or 4 */
const void *conv2d_square_kernel_f32(int eights, bool pooled);
const void *filter_grad_kernel_f32(int pad); /* pad: padding of the columns */
const void *filter_join_kernel_f32(void);
filter_grad_args filter_grad_cut(const step *s, const void *x,
                                 const void *dy); /* fills in all but out and part, for a supported step */

/* Launches a kernel that has one argument. Does nothing for 0 blocks. */
cudaError_t launch(const void *kernel, int64_t blocks, int threads, size_t shared, void *args,
                   cudaStream_t q);

/* The same for a kernel that waits for the previous one itself (take_turn in device.cuh), and may
 * start before that one ends. launch_clusters also groups thread blocks into clusters. */
cudaError_t launch_early(const void *kernel, int64_t blocks, int threads, size_t shared, void *args,
                         cudaStream_t q);
cudaError_t launch_clusters(const void *kernel, int64_t blocks, int cluster, int threads, size_t shared,
                            void *args, cudaStream_t q);

/* Was the kernel compiled for compute capability 9 and later, which have this wait instruction and
 * clusters? */
bool can_wait(const void *kernel);

/* Properties of the current card, or values that hold for every card if the query fails. */
typedef struct card_facts {
    int blocks, shared; /* multiprocessors; bytes of shared memory per thread block */
    bool clusters;      /* card and kernels support clusters of thread blocks */
    bool pairs;         /* ... and the instructions of emulated.cuh */
} card_facts;
card_facts card(void);

/* Allows a kernel more shared memory than the default, if a launch needs it. `most` must be the
 * same for all launches of a kernel, because several threads may launch it at once. */
#define SHARED_ALWAYS (48 << 10)
#define SHARED_LEAST  (99 << 10) /* every card allows so much */
cudaError_t with_shared(const void *kernel, size_t bytes, size_t most);

/* May work queued before a launch still be writing an operand? */
bool may_be_written(const workspace *w, const void *p, const layout *at);

size_t round_256(size_t bytes); /* rounds up, for the next array in scratch memory */
static inline int64_t quotient_up(int64_t n, int64_t by) { return (n + by - 1) / by; }
divider32 divide_by32(int64_t by);
divider64 divide_by64(int64_t by);

#ifdef __cplusplus
}
#endif
#endif
