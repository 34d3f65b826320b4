/* emulated.c - the steps of DUET_MATH_SPLIT, which emulate f32 by several narrower products on
 * tensor cores. This file decides which steps are emulated, and divides matrix products over thread
 * blocks. */
#include "emulated.h"
#include "joined.h"
#include "min_max.h"
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
    if (m < ROWS_LEAST || few || n <= GEMM_MN_COLUMNS || k < EMULATED_UNIT || m > INT32_MAX / 2 ||
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

/* ---- products ---- */

/* A division of a product over thread blocks. */
typedef struct tiling {
    const emulated_kernel *by; /* the kernel, which determines the size of a tile */
    int parts;                 /* thread blocks that share a tile */
    int rounds;                /* tiles that a thread block computes one after the other */
    double cost;               /* microseconds */
} tiling;

static int64_t tiles_of(const product_args *a, const emulated_kernel *t)
{
    return quotient_up(a->m, t->rows) * quotient_up(a->n, t->columns);
}

/* Returns how many clusters of `parts` thread blocks run at the same time. A cluster runs in one GPC, a
 * group of multiprocessors, so some multiprocessors may stay unused. */
static int clusters_by_query(const emulated_kernel *t, int parts)
{
    int count = 0;
    cudaLaunchAttribute of = { .id = cudaLaunchAttributeClusterDimension };
    of.val.clusterDim.x = (unsigned)parts;
    of.val.clusterDim.y = of.val.clusterDim.z = 1;
    const cudaLaunchConfig_t c = { .gridDim = { (unsigned)parts, 1, 1 },
                                   .blockDim = { EMULATED_THREADS, 1, 1 },
                                   .dynamicSmemBytes = (size_t)t->shared,
                                   .attrs = &of,
                                   .numAttrs = 1 };
    if (with_shared(t->kernel, (size_t)t->shared, (size_t)t->shared) == cudaSuccess &&
        cudaOccupancyMaxActiveClusters(&count, t->kernel, &c) == cudaSuccess && count > 0)
        return count;
    (void)cudaGetLastError();
    return card().blocks / parts > 0 ? card().blocks / parts : 1;
}

/* One thread block of any of these kernels fits on a multiprocessor, so the count is the same for all of
 * them. Several threads may ask at once, and store the same value. */
static int clusters_at_once(const emulated_kernel *t, int parts)
{
    static int known[EMULATED_PARTS + 1];
    int count = __atomic_load_n(&known[parts], __ATOMIC_RELAXED);
    if (count) return count;
    count = parts == 1 ? card().blocks : clusters_by_query(t, parts);
    __atomic_store_n(&known[parts], count, __ATOMIC_RELAXED);
    return count;
}

static tiling tiling_by(const product_args *a, const emulated_kernel *t, int parts)
{
    const double rounds = (double)quotient_up(tiles_of(a, t), clusters_at_once(t, parts)),
                 units = (double)quotient_up(quotient_up(a->k, EMULATED_UNIT), parts);
    const bool persists = parts == 1 && t->persists;
    const double join = parts > 1 ? JOIN_START + JOIN_EACH * t->rows * t->columns / parts : 0;
    return (tiling){ t, parts, persists ? (int)rounds : 1,
                     (persists ? t->start : rounds * t->start) + rounds * (units * t->cost + join) };
}

static tiling cheapest(const product_args *a)
{
    int count;
    const emulated_kernel *of = emulated_kernels(&count);
    tiling best = { .cost = INFINITY };
    for (int i = 0; i < count; i++)
        for (int parts = 1; parts <= EMULATED_PARTS; parts *= 2) {
            const tiling c = tiling_by(a, &of[i], parts);
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

static cudaError_t launch_product(const step *s, joined *j, const frame *f, const workspace *w,
                                  cudaStream_t q)
{
    int count;
    emulated_args p = { .of = product_args_of(s, f, w), .packed = w->packed };
    const tiling c = cheapest(&p.of);
    const int64_t tiles = tiles_of(&p.of, c.by);
    p.of.out = joined_out(j, p.of.out);
    p.of.parts = c.parts;
    p.rounds = c.rounds;
    p.packed_is_there = emulated_is_packed(s, w);
    p.out_in_fours = p.of.n % 4 == 0 && p.of.out_row % 4 == 0 && (uintptr_t)p.of.out % 16 == 0;
    cudaError_t e = emulated_describe(p.of.a, p.of.m, p.of.k, p.of.a_row, c.by->rows, &p.a);
    const product_launch_args l = { .kernel = c.by->kernel,
                                    .file = JOINED_EMULATED,
                                    .number = (int)(c.by - emulated_kernels(&count)),
                                    .width = 4,
                                    .blocks = quotient_up(tiles, c.rounds) * c.parts,
                                    .cluster = c.parts,
                                    .threads = EMULATED_THREADS,
                                    .shared = (size_t)c.by->shared,
                                    .shared_most = (size_t)c.by->shared,
                                    .args = &p,
                                    .bytes = sizeof p };
    return e == cudaSuccess ? product_start(&l, j, q) : e;
}

cudaError_t emulated_join(const step *s, joined *j, const frame *f, const workspace *w, cudaStream_t q)
{
    if (layout_count(&s->out[0].at) == 0) return cudaSuccess;
    return (s->kernel == OP_matmul ? launch_product : emulated_conv_join)(s, j, f, w, q);
}

cudaError_t emulated_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    return emulated_join(s, NULL, f, w, q);
}
