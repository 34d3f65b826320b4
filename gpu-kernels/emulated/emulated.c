/* emulated.c - the steps of DUET_MATH_SPLIT, which emulate f32 by several narrower products on
 * tensor cores. This file decides which steps are emulated, packs their second operand, and divides
 * matrix products over thread blocks. */
#include "emulated.h"
#include "min_max.h"
#include <cudaTypedefs.h>
#include <math.h>

#define ROWS_LEAST 33 /* with fewer rows, strict products are as fast */
/* if gemm_split_k.cu supports the number of rows, strict products are as fast up to this inner axis */
#define INNER_LEAST 1536
#define JOIN_START  0.5    /* microseconds for the thread blocks of a cluster to add their sums, */
#define JOIN_EACH   2.5e-4 /* and microseconds for each sum that a thread block stores */

/* ---- which steps ---- */

static bool is_product(const step *s)
{
    const layout *a = &s->in[0].at, *out = &s->out[0].at;
    const int64_t m = a->size[0], k = a->size[1], n = out->size[1];
    if ((s->ins > 2 && !s->epilogue) || epilogue_infos[s->epilogue].act == OP_softmax) return false;
    const bool few = m <= SPLIT_ROWS && k < INNER_LEAST && (double)m * (double)k * (double)n <= SPLIT_WORK;
    if (m < ROWS_LEAST || few || n <= GEMM_MN_COLUMNS || k < PAIR_UNIT || m > INT32_MAX / 2 ||
        n > INT32_MAX / 2 || k > INT32_MAX / 2)
        return false;
    return a->stride[1] == 1 && a->stride[0] > 0 && a->stride[0] % 4 == 0 && k % 4 == 0 &&
           out->stride[1] == 1;
}

static enum parts choose(const step *s)
{
    if (s->math != DUET_MATH_SPLIT || s->out[0].at.type != DUET_F32 || !card().pairs) return PARTS_NONE;
    if (s->kernel == OP_conv2d) return emulated_conv_supports(s) ? PARTS_PACKED : PARTS_NONE;
    if (s->kernel != OP_matmul) return PARTS_NONE;
    if (product_splits(s)) return PARTS_FEW;
    return is_product(s) ? PARTS_PACKED : PARTS_NONE;
}

/* Caches the choice in the step. Several threads may do this at the same time, because they all
 * store the same value. */
enum parts parts_of(const step *s)
{
    uint8_t *cached = (uint8_t *)&s->choice;
    enum parts p = (enum parts)__atomic_load_n(cached, __ATOMIC_RELAXED);
    if (p == PARTS_UNKNOWN) {
        p = choose(s);
        __atomic_store_n(cached, (uint8_t)p, __ATOMIC_RELAXED);
    }
    return p;
}

bool kernels_splits(const step *s) { return parts_of(s) != PARTS_NONE; }
bool kernels_packs(const step *s) { return parts_of(s) == PARTS_PACKED; }

bool kernels_splits_here(const step *s, const frame *f)
{
    const bool a_fits = (uintptr_t)f->data[s->in[0].slot] % 16 == 0,
               b_fits = (uintptr_t)f->data[s->in[1].slot] % 16 == 0;
    return s->kernel != OP_matmul || (a_fits && (b_fits || kernels_packs(s)));
}

/* ---- operands ---- */

static int64_t units_of(const layout *b)
{
    return quotient_up(b->size[0], PAIR_UNIT) * quotient_up(b->size[1], PAIR_UNIT);
}

/* A matrix product stores the largest magnitude and the packed operand, a convolution only the
 * largest magnitude: its filters are small, so each thread block converts them itself. */
size_t kernels_packed_bytes(const step *s)
{
    return PAIR_HEAD + (s->kernel == OP_matmul ? (size_t)units_of(&s->in[1].at) * 2 * PAIR_PART : 0);
}

/* Computes the largest magnitude of operand 1 into *most. Thread blocks update it with atomic
 * maxima, so it is set to 0 first. */
static cudaError_t measure(const step *s, const frame *f, float *most, cudaStream_t q)
{
    layout l = s->in[1].at, *one[] = { &l };
    magnitude_args a = { .at = f->data[s->in[1].slot], .most = most, .n = layout_count(&l) };
    layout_collapse(one, 1);
    a.rank = l.rank;
    a.flat = l.rank <= 1 && (l.rank == 0 || l.stride[0] == 1) && (uintptr_t)a.at % 16 == 0;
    for (int i = 0; i < l.rank; i++) {
        a.size[i] = divide_by64(l.size[i]);
        a.stride[i] = l.stride[i];
    }
    const cudaError_t e = cudaMemsetAsync(most, 0, sizeof *most, q);
    const int64_t blocks = quotient_up(a.n, MAGNITUDE_THREADS * 16), busy = 8 * card().blocks;
    if (e != cudaSuccess) return e;
    return launch_early(magnitude_kernel(), smaller(blocks, busy), MAGNITUDE_THREADS, 0, &a, q);
}

cudaError_t kernels_pack(const step *s, const frame *f, void *packed, const workspace *w, cudaStream_t q)
{
    const layout *b = &s->in[1].at;
    const cudaError_t e = measure(s, f, packed, q);
    if (e != cudaSuccess || s->kernel != OP_matmul) return e;
    pack_args a = { f->data[s->in[1].slot], packed, b->stride[0], b->stride[1], (int32_t)b->size[0],
                    (int32_t)b->size[1] };
    return launch(pack_kernel(), units_of(b), PACK_THREADS, 0, &a, q);
}

/* ---- products ---- */

/* A division of a product over thread blocks. */
typedef struct cutting {
    const emulated_kernel *by; /* the kernel, which determines the size of a tile */
    int parts;                 /* thread blocks that share a tile */
    int rounds;                /* tiles that a thread block computes one after the other */
    double cost;               /* microseconds */
} cutting;

static int64_t tiles_of(const product_args *a, const emulated_kernel *t)
{
    return quotient_up(a->m, t->rows) * quotient_up(a->n, t->columns);
}

static cutting cut_by(const product_args *a, const emulated_kernel *t, int parts)
{
    const double rounds = (double)quotient_up(tiles_of(a, t) * parts, card().blocks),
                 units = (double)quotient_up(quotient_up(a->k, PAIR_UNIT), parts);
    const bool persists = parts == 1 && t->persists;
    const double join = parts > 1 ? JOIN_START + JOIN_EACH * t->rows * t->columns / parts : 0;
    return (cutting){ t, parts, persists ? (int)rounds : 1,
                      (persists ? t->start : rounds * t->start) + rounds * (units * t->cost + join) };
}

static cutting cheapest(const product_args *a)
{
    int count;
    const emulated_kernel *of = emulated_kernels(&count);
    cutting best = { .cost = INFINITY };
    for (int i = 0; i < count; i++)
        for (int parts = 1; parts <= PAIR_PARTS; parts *= 2) {
            const cutting c = cut_by(a, &of[i], parts);
            if (c.cost < best.cost) best = c;
        }
    return best;
}

double emulated_gemm_cost(const step *s)
{
    const int64_t *a = s->in[0].at.size;
    const product_args of = { .m = (int32_t)a[0], .k = (int32_t)a[1], .n = (int32_t)s->out[0].at.size[1] };
    if (!is_product(s)) return INFINITY;
    return cheapest(&of).cost;
}

/* Returns the driver's cuTensorMapEncodeTiled, or NULL. It is found at run time, because the library
 * is not linked with the driver. */
static PFN_cuTensorMapEncodeTiled_v12000 describer(void)
{
    static PFN_cuTensorMapEncodeTiled_v12000 cached;
    PFN_cuTensorMapEncodeTiled_v12000 f = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    enum cudaDriverEntryPointQueryResult found;
    if (f) return f;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&f, 12000, cudaEnableDefault,
                                         &found) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    __atomic_store_n(&cached, f, __ATOMIC_RELAXED);
    return f;
}

cudaError_t emulated_describe_boxes(const void *at, int rank, const int64_t *size, const int64_t *stride,
                                    const int *box, CUtensorMapSwizzle swizzle, CUtensorMap *map)
{
    const PFN_cuTensorMapEncodeTiled_v12000 encode = describer();
    cuuint64_t sizes[4], strides[4];
    cuuint32_t boxes[4], each[4] = { 1, 1, 1, 1 };
    for (int i = 0; i < rank; i++) {
        sizes[i] = (cuuint64_t)size[i];
        boxes[i] = (cuuint32_t)box[i];
    }
    for (int i = 0; i + 1 < rank; i++) strides[i] = (cuuint64_t)stride[i] * sizeof(float);
    if (!encode) return cudaErrorNotSupported;
    const CUresult r = encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, (cuuint32_t)rank, (void *)(uintptr_t)at,
                              sizes, strides, boxes, each, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                              CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return r == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t emulated_describe(const void *p, int64_t rows, int64_t columns, int64_t line, int box_rows,
                              CUtensorMap *map)
{
    const int64_t size[] = { columns, rows };
    return emulated_describe_boxes(p, 2, size, &line, (const int[]){ PAIR_UNIT / 2, box_rows },
                                   CU_TENSOR_MAP_SWIZZLE_128B, map);
}

bool emulated_is_packed(const step *s, const workspace *w)
{
    const char *first = w->packed, *end = first + kernels_packed_bytes(s);
    return first >= w->written.end || end <= w->written.first;
}

static cudaError_t launch_product(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    emulated_args p = { .of = product_args_of(s, f, w), .packed = w->packed };
    const cutting c = cheapest(&p.of);
    const int64_t tiles = tiles_of(&p.of, c.by);
    p.of.parts = c.parts;
    p.rounds = c.rounds;
    p.packed_is_there = emulated_is_packed(s, w);
    p.out_in_fours = p.of.n % 4 == 0 && p.of.out_row % 4 == 0 && (uintptr_t)p.of.out % 16 == 0;
    cudaError_t e = emulated_describe(p.of.a, p.of.m, p.of.k, p.of.a_row, c.by->rows, &p.a);
    if (e == cudaSuccess) e = with_shared(c.by->kernel, (size_t)c.by->shared, (size_t)c.by->shared);
    if (e != cudaSuccess) return e;
    return launch_clusters(c.by->kernel, quotient_up(tiles, c.rounds) * c.parts, c.parts, PAIR_THREADS,
                           (size_t)c.by->shared, &p, q);
}

cudaError_t emulated_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    if (layout_count(&s->out[0].at) == 0) return cudaSuccess;
    if (s->kernel == OP_matmul) return launch_product(s, f, w, q);
    return emulated_conv_launch(s, f, w, q);
}
