/* launch.h - what the launchers (C) and the kernels (CUDA) share: the kernels' arguments and where the kernels are found. Of no
 * element type: addresses are void, numbers double, strides count elements. Each kernel takes one of these structs. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "interpreter.h"
#include "kernels.h"
#include "random_step.h"
#include "supported.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a kernel goes over memory. A row of ops.def or fused.def has a kernel for each form of its family. */
enum form {
    FORM_FLAT,    /* element by element, out without gaps */
    FORM_STRIDED, /* the same, any strides */
    FORM_ROWS,    /* reductions: the threads of a warp along the reduced axis */
    FORM_COLUMNS, /* ... along the outputs */
    FORM_SHORT,   /* ... 16 elements or fewer, four threads an output */
    FORM_NARROW,  /* ... 128 or fewer, eight threads, in a row */
    FORM_LOW,     /* ... or along the outputs */
    FORM_THIN,    /* ... one thread an output */
    FORM_ROW,     /* softmax: a row that stays in shared memory */
    FORM_LAST,    /* ... a longer one, its maximum and sum being known */
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
KERNEL_TABLE(skinny)
KERNEL_TABLE(tall)
KERNEL_TABLE(random)
const void *random_kernel_i64(int row, int form);

/* Division by a number known on the host: q = (high half of n * magic + n) >> shift, exact for every n below 2^31 (2^63). */
typedef struct divider32 {
    uint32_t by, magic, shift;
} divider32;
typedef struct divider64 {
    uint64_t by, magic;
    uint32_t shift;
} divider64;

#define POINT_THREADS 256
#define POINT_INPUTS  3
#define POINT_ROUNDS  2         /* vectors a thread, of a large array */
#define POINT_SMALL   (1 << 18) /* vectors: no more than these is a small array */
#define STRIDED_EACH  4         /* elements a thread */

/* How element e of a flat kernel finds its operand: */
enum how {
    HOW_NUMBER,  /* number */
    HOW_VECTORS, /* at[e], 16 bytes at a time */
    HOW_SCALARS, /* at[e], aligned otherwise than out */
    HOW_ROUND,   /* at[e % size], 16 bytes at a time: along the columns, where they are a number of vectors */
    HOW_CYCLE,   /* at[e % size * stride]: along the columns. size is no less than a vector */
    HOW_RUNS,    /* at[e / run % size * stride]: along the channels. run is no less than a vector */
    HOW_ANY,     /* the same, any run and size */
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

/* Vectors are 16 bytes at aligned addresses of out, which itself lies `lead` elements past one. A thread takes `rounds` of them. */
typedef struct flat_args {
    void *out;
    int64_t n;
    int32_t lead, rounds;
    flat_operand in[POINT_INPUTS];
    double s, r;
} flat_args;

/* Operand 0 is the output; an input without an address is its number. */
typedef struct strided_args {
    void *at[1 + POINT_INPUTS];
    double number[1 + POINT_INPUTS], s, r;
    uint32_t n;
    int32_t rank;
    divider32 size[DUET_RANK_MAX];
    int32_t stride[1 + POINT_INPUTS][DUET_RANK_MAX];
} strided_args;

#define MACHINE_VECTORS 4 /* of a thread, at most */
#define MACHINE_THREADS(vectors)                                                                             \
    ((vectors) == 1 ? 64 : 256)  /* few, where an array is small: it then meets more multiprocessors */
#define MACHINE_SMALL  (1 << 14) /* elements: of no more, each goes to a thread of its own, */
#define MACHINE_MIDDLE (1 << 17) /* and of no more vectors than these, each of those; */
#define MACHINE_LARGE  (1 << 19) /* of no more than these, two */

/* What the kernels of one type read, the hot part first. x, y: rows as offsets in vectors. Vectors are 16 bytes at
 * aligned addresses of the outputs, which themselves lie `lead` elements past one. */
enum {
    MACHINE_CODE = 0xfff,
    MACHINE_X_NUMBER = 0x1000,
    MACHINE_Y_NUMBER = 0x2000,
    MACHINE_SAVES = 0x4000
}; /* of `what` */
#define MACHINE_ARGS(type, number)                                                                           \
    typedef struct machine_code_##type {                                                                     \
        uint32_t what; /* code, numbers, to << 16; reduction << 24, of a linear step its run's length */     \
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
    bool begins; /* the accumulator begins with row `first` */
    uint32_t first;
    bool out_dense;
    void *out[PROGRAM_OUTPUTS];
    const void *in[PROGRAM_INPUTS];
} machine_head;

/* What kernels that convert read and write: duet_dtype. */
typedef struct machine_types {
    uint8_t in[PROGRAM_INPUTS], out[PROGRAM_OUTPUTS];
} machine_types;

/* Where operands lie that do not lie alike: element e of an input is at[e], or at[e / run % size * stride], or walked to. */
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

/* Of 1, 2 or 4 vectors a thread. plain: all operands lie alike, without gaps, and the program is short: it takes
 * machine_short. */
typedef const void *machine_kernels(int vectors, bool plain);
#define MACHINE_KERNELS(type)                                                                                \
    machine_kernel_##type, machine_kernel_heavy_##type, machine_kernel_small_##type,                         \
        machine_kernel_small_heavy_##type
machine_kernels MACHINE_KERNELS(f32), MACHINE_KERNELS(f64);
/* Programs whose operands are of other types than they compute in, and all of integers: never plain. i64 and u64 take machine_long_f64, i32,
 * of integers that are all within that, machine_long_f32. */
machine_kernels machine_kernel_converts_f32, machine_kernel_converts_heavy_f32, machine_kernel_converts_f64,
    machine_kernel_converts_heavy_f64, machine_kernel_converts_i64, machine_kernel_converts_u64,
    machine_kernel_converts_i32;
/* Moves of elements of 1 and 2 bytes, which take machine_short_f64 and machine_long_f64. Those of 4 and 8 go as f32 and f64. */
machine_kernels machine_kernel_u8, machine_kernel_u16;
/* Writes p's instructions for rows of so many vectors, for kernels of f32, f64, i64, u64 or i32, and returns how many there are. apart: pairs as
 * single linear steps, as kernels of one vector a thread want them. */
int machine_pack(void *code, const machine_program *p, duet_dtype type, int row, bool apart);
const void *tile_kernel_u8(void);
const void *tile_kernel_u16(void);
const void *tile_kernel_f32(void);
const void *tile_kernel_f64(void);
cudaError_t machine_launch(const step *s, const frame *f, cudaStream_t q);

#define TILE         64
#define TILE_THREADS 256

/* out[i * out_stride + j * out_fast] = in[i * in_fast + j * in_stride], i < rows, j < columns, over the axes outside of these. */
typedef struct tile_args {
    void *out;
    const void *in;
    int64_t rows, columns, in_fast, in_stride, out_fast, out_stride;
    uint32_t tiles_down, tiles_across;
    int32_t rank;
    int64_t size[DUET_RANK_MAX], stride[2][DUET_RANK_MAX]; /* of the axes outside: out, in */
} tile_args;

#define REDUCE_WARPS    8  /* of a thread block, in rows */
#define REDUCE_ACROSS   32 /* columns: a thread block is so many outputs by so many lane groups */
#define REDUCE_DOWN     16
#define REDUCE_FEW_DOWN 8  /* ... of no more elements than lanes */
#define REDUCE_FEW      16 /* no more elements than this: the short kernels */

/* Outputs of several parts: each part is the work of a thread block, which has one output, or in columns a tile of `across` outputs. The
 * blocks of `tiles` tiles share a counter, and the last of them to arrive there joins the parts. Counters are 0 before and after. */
typedef struct meeting {
    uint32_t *counters;
    uint32_t tiles;
} meeting;

/* A reduction of n elements for each of some outputs. An output is found by its index over the outer axes, an element of it by its
 * index over the inner ones. Blocks of REDUCE_BLOCK are joined `warps` at a time; what is then left of an output are its parts. */
typedef struct reduce_args {
    const void *x, *y,
        *with;        /* with: a number for each output, dense, that the reduction sees beside each element */
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

#define ROW_THREADS  128   /* REDUCE_LANES: a thread is a lane */
#define ROW_BYTES    90112 /* the longest row kept; with the rest it is less than any card's 99 KiB */
#define ROW_BLOCKS   8
#define ROW_HELD     1024 /* no more elements than this: a warp holds a row in registers */
#define LAST_THREADS 256
#define LAST_EACH    8

/* Rows of n elements along the last axis, `stride` apart; rows are found over the outer axes, those of out are dense. */
typedef struct row_args {
    const void *in, *most, *sum; /* most, sum: of each row of softmax, for FORM_LAST */
    void *out;
    int64_t n, rows, stride;
    int32_t outer;
    divider64 outer_size[DUET_RANK_MAX];
    int64_t outer_stride[DUET_RANK_MAX];
} row_args;

/* Gain or bias: element i of a row is at[i / run * stride]; without an address it is the number. */
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
    bool trims;        /* there are gain and bias */
    double r;          /* what is added to the variance */
    const void *known; /* mean and variance of each row, for FORM_LAST */
} norm_args;

#define POOL_THREADS 256
#define POOL_EACH    4

/* Some planes of an image; axes are n, c, h, w. Out is dense; indices into it and into a plane are of 32 bits. */
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

/* Back from pooling, and upsampling: one plane after the other, a thread an element. Indices into a plane's axes are of 32 bits. */
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
#define CONV_WIDTH   32 /* outputs of a thread block, at most */

#define CONV_SQUARE_WARPS  12   /* of a thread block, at most */
#define CONV_SQUARE_OWN    7424 /* bytes of shared memory: of a warp, */
#define CONV_SQUARE_FILTER 512  /* of the filters of eight outputs and one channel */

/* A convolution by windows of 3 x 3, finished (winograd_1d.cu). A strip is `positions` times 2 x 4 results, before pooling: so many images,
 * pairs of rows, fours of columns. Channels of the images are staged `depth` at a time: lines of each, `pitch` apart, in units of
 * fours; `stage` is what that takes. Of a thread block's warps `along` share a strip, each of the others takes other outputs: `width`
 * outputs in all, of which `groups` such blocks have all. Blocks of a group go over all strips, `walkers` of them at once.
 * By squares (winograd_2d.cu) a strip is a warp's pairs of tiles: `positions` counts all pairs. */
typedef struct conv2d_args {
    const void *in, *filters, *bias; /* bias may be NULL */
    void *out;
    int64_t n, image, filter[4], bias_stride; /* strides of in, of filters, of bias */
    int32_t channel, row;                     /* strides of in */
    int32_t c, h, w, m, pad[2], out_h, out_w;
    float least; /* relu's 0, or nothing is less */
    int32_t pitch, stage, width;
    uint32_t along, images, positions, units, strips, walkers;
    divider32 rows, quads, lines, depth, down, across, groups;
    bool vectors,
        wide; /* in and out: by fours of columns of an image, aligned; as wide as a thread's row of results */
    bool filters_are_there; /* and the bias: no kernel that may still run writes them */
} conv2d_args;

#define FILTER_THREADS 256
/* elements in shared memory, of which there are two; together less than any card's 99 KiB, twice
 * them H100's 227 */
#define FILTER_STAGE        10240
#define FILTER_SUMS         72 /* of a thread: eight outputs' windows */
#define FILTER_CHANNEL_BITS 5  /* of a thread block's channels, at most, */
#define FILTER_EIGHT_BITS   3  /* and of its eights of outputs */
#define FILTER_ACROSS       32 /* sums that a thread block joins at once; its warps share their parts */

/* The gradient with respect to filters of 3 x 3 (wgrad.h says where things are). Of two elements, the first is that of the images, the
 * second that of the gradient. A part's sums lie one tile after the other, in each one part after the other. */
typedef struct filter_grad_args {
    const void *x, *dy;
    void *out, *part;
    int64_t n, image[2];  /* images; strides of an image, */
    int32_t stride[2][3]; /* of a channel, a row, a column */
    int32_t c, h, w, m, out_h, out_w, pad[2];
    int32_t rows, columns;      /* of a strip */
    int32_t pitch[2], plane[2]; /* in shared memory, elements: of a line, of a channel, */
    /* of all that comes before the gradient; from one output of a thread to the next; of a stage */
    int32_t second, apart, stage;
    uint32_t channel_bits, eight_bits; /* of a tile: 2^ these channels, and eights of outputs */
    uint32_t channels[2];              /* of the operands' part of a tile */
    uint32_t tasks, splits;            /* a channel with eight outputs each; threads that share one */
    uint32_t strips, each, filters;    /* all strips, those of a part; tiles */
    divider32 tiles, parts;            /* tiles that have all channels; parts of the pixels */
    divider32 across, down;            /* strips of an image */
    divider32 fours[2], lines[2];      /* of a strip of an operand: fours of columns, and lines of those */
    divider32 sums;                    /* of a tile */
    bool vectors[2];                   /* fours lie aligned */
} filter_grad_args;

/* Which products are ours (gemm_small_supported.c). The pretended CUDA takes fewer, to have its vendor's too. */
#ifndef SKINNY_COLUMNS
#define SKINNY_COLUMNS 16
#define SPLIT_ROWS     128
#endif
#define SKINNY_INNER   2048
#define SPLIT_WORK     3e8 /* m k n: beyond, vendors' kernels have enough to do */
#define SKINNY_THREADS 256
#define MATVEC_THREADS 256
#define MATVEC_ROWS    2
#define MATVEC_COLUMNS 8    /* a thread block */
#define SKINNY_ROWS    2    /* a thread block */
#define TALL_LEAST     2048 /* rows: of fewer, the inner axis is shared by a whole thread block */
#define TALL_THREADS   256
#define TALL_ROWS      4           /* a warp, at a time */
#define TALL_SHARED    (100 << 10) /* bytes of b that two thread blocks find room for */

/* out = act(alpha a b + bias): m x k by k x n; a and out have columns side by side. */
typedef struct product_args {
    const void *a, *b, *bias; /* bias NULL: none, and no act */
    void *out;
    int64_t a_row, b_row, b_column, out_row, bias_stride;
    int32_t m, k, n;
    int32_t act;
    int32_t
        parts; /* thread blocks that share a tile of gemm_split_k.cu or emulated_gemm_small.cu: a cluster */
    bool b_is_there; /* no kernel that may still run writes it */
    double alpha;
} product_args;

/* One of gemm_split_k.def, or of emulated_gemm_small.cu: its tile, and what a thread block takes. */
typedef struct split_kernel {
    int rows, columns, threads, shared;
    /* by measurement, microseconds: of a launch, of a thread block, and of that for 1000 of the
     * inner axis */
    double once, start, cost;
    const void *kernel[2]; /* a and b by elements, by 16 bytes */
} split_kernel;
const split_kernel *split_kernels(int *count);
const split_kernel *pair_few_kernels(int *count); /* in DUET_MATH_SPLIT */
const void *matvec_kernel(int rows, int form, bool wide);

#define RANDOM_THREADS 256
#define BUCKET_MEAN    128 /* a permutation: no more elements a bucket than these, on average */
#define BUCKET_THREADS 128
#define BUCKET_KEPT    512 /* elements of a bucket in shared memory */
#define SCAN_THREADS   1024

/* Random numbers, a block of Philox a thread. Permutations: indices go to the bucket of the upper bits of their keys, in no order, and
 * are then ranked in it. `ends` are counts, then where buckets begin, then where they end. */
enum random_form {
    FORM_DRAW,                  /* a law; FORM_DRAW + proposal: a truncated normal */
    FORM_COUNT = FORM_DRAW + 3, /* a permutation: how many indices in a bucket, */
    FORM_SCAN,                  /* where buckets begin, */
    FORM_SPREAD,                /* indices into their buckets, */
    FORM_RANK,                  /* and to their places */
};

typedef struct random_args {
    void *out;
    int64_t n;
    random_params draw;
    int32_t rank;
    bool vectors; /* out has no gaps, and begins at 16 bytes */
    divider64 size[DUET_RANK_MAX];
    int64_t stride[DUET_RANK_MAX];
    uint32_t *indices, *ends;
    int32_t bucket_bits;
} random_args;

/* What kernels.def has of a family: the bytes that a launch needs to work in, and the launch. */
typedef size_t workspace_size(const step *s);
typedef cudaError_t launcher(const step *s, const frame *f, const workspace *w, cudaStream_t q);

launcher fused_launch;
workspace_size reduce_workspace;
size_t reduce_part_bytes(const reduce_args *a, int row, bool wide); /* what a.part must hold */
launcher reduce_launch;
meeting meet_at(uint32_t *counters, int64_t outputs, int64_t across);
void reduce_rows_of(reduce_args *a, const layout *in,
                    const layout *out); /* all but addresses, of a reduction of one input's last axis */
cudaError_t reduce_run(const reduce_args *a, const void *(*kernel)(int row, int form), int row,
                       cudaStream_t q);
workspace_size softmax_workspace;
const void *softmax_warp_kernel_f32(int row, int held, bool vectors); /* held: rows of REDUCE_LANES */
const void *softmax_warp_kernel_f64(int row, int held, bool vectors);
/* The same; a thread block keeps a row where `held` is 0. vectors: 16 bytes at a time; dense: gain and bias too. */
const void *norm_row_kernel_f32(int held, bool vectors, bool dense);
const void *norm_row_kernel_f64(int held, bool vectors, bool dense);
workspace_size norm_workspace;
launcher norm_launch;
launcher softmax_launch;
launcher pool_back_launch;
launcher pool2d_launch;
workspace_size random_workspace;
launcher random_launch;
product_args product_args_of(const step *s, const frame *f, const workspace *w);
launcher product_launch;
/* How a step goes by parts: by kernels that want operand 1 packed, or by those of few rows. */
enum parts { PARTS_UNKNOWN, PARTS_NONE, PARTS_PACKED, PARTS_FEW };
enum parts parts_of(const step *s);
bool product_splits(const step *s); /* of few rows, and fastest by emulated_gemm_small.cu */
double pair_product_cost(
    const step *s); /* microseconds, about, by emulated_gemm.cu; INFINITY: it does not take this step */
cudaError_t pair_launch(const step *s, const frame *f, const workspace *w,
                        cudaStream_t q);                       /* with w->packed */
const void *conv2d_kernel_f32(int outputs, bool pooled);       /* outputs: a thread's, 2, 4 or 8 */
const void *conv2d_square_kernel_f32(int eights, bool pooled); /* eights: of outputs of a warp, 2 or 4 */
launcher conv2d_launch;
launcher conv2d_back_launch;
const void *filter_grad_kernel_f32(int pad); /* pad: of columns */
const void *filter_join_kernel_f32(void);
filter_grad_args filter_grad_cut(const step *s, const void *x,
                                 const void *dy); /* all but out and part, of a step that is taken */
workspace_size filter_grad_workspace;
launcher filter_grad_launch;

/* One kernel with one argument. Of no blocks: nothing. */
cudaError_t launch(const void *kernel, int64_t blocks, int threads, size_t shared, void *args,
                   cudaStream_t q);

/* The same of a kernel that waits by itself (device.cuh, take_turn) for the one before it, which may run on meanwhile; its thread blocks in
 * clusters of so many. */
cudaError_t launch_early(const void *kernel, int64_t blocks, int threads, size_t shared, void *args,
                         cudaStream_t q);
cudaError_t launch_clusters(const void *kernel, int64_t blocks, int cluster, int threads, size_t shared,
                            void *args, cudaStream_t q);

/* Were kernels compiled, for the current device, for compute capability 9: with the instruction that waits, and clusters? */
bool can_wait(const void *kernel);

/* What the card has; where it does not answer, what all have. */
typedef struct card_facts {
    int blocks, shared; /* multiprocessors; bytes that a thread block may have */
    bool clusters;      /* has it, and were kernels compiled with, clusters of thread blocks? */
    bool pairs;         /* ... and what emulated.cuh needs */
} card_facts;
card_facts card(void);

/* Asks for more shared memory than every kernel may have, where a launch takes such: `most`, the same for all launches of a kernel, since
 * threads may launch it at once. */
#define SHARED_ALWAYS (48 << 10)
#define SHARED_LEAST  (99 << 10) /* may be asked for on any card */
cudaError_t with_shared(const void *kernel, size_t bytes, size_t most);

/* May the work before a launch still write an operand? */
bool may_be_written(const workspace *w, const void *p, const layout *at);

size_t round_256(size_t bytes); /* up, for what follows in scratch */
static inline int64_t quotient_up(int64_t n, int64_t by) { return (n + by - 1) / by; }
divider32 divide_by32(int64_t by);
divider64 divide_by64(int64_t by);

#ifdef __cplusplus
}
#endif
#endif
