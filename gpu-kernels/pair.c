/* pair.c - launches products and convolutions by pairs of f16 (DUET_MATH_SPLIT): which steps they are, and how they are cut. */
#include "pair.h"
#include <cudaTypedefs.h>
#include <math.h>

#define ROWS_LEAST    33   /* of fewer rows products are as fast strictly, */
#define INNER_LEAST   1536 /* and of as few as split.cu takes, with a shorter inner axis than this */
#define CHANNELS_MOST 16
#define CONV_SHARED   (100 << 10) /* bytes of shared memory: two thread blocks, at least, find room */
#define CONV_OTHER    1024        /* bytes of shared memory that a thread block takes beside */
#define CONV_MOST     4           /* thread blocks on a multiprocessor */
#define JOIN_START    0.5         /* microseconds that the thread blocks of a cluster take to join their sums, */
#define JOIN_EACH     2.5e-4      /* and for each sum that one of them writes */

/* ---- which steps ---- */

static bool is_product(const step *s)
{
    const layout *a = &s->in[0].at, *out = &s->out[0].at;
    const int64_t m = a->size[0], k = a->size[1], n = out->size[1];
    if ((s->ins > 2 && !s->finish) || finish_infos[s->finish].act == OP_softmax) return false;
    const bool few = m <= SPLIT_ROWS && k < INNER_LEAST && (double)m * (double)k * (double)n <= SPLIT_WORK;
    if (m < ROWS_LEAST || few || n <= SKINNY_COLUMNS || k < PAIR_UNIT || m > INT32_MAX / 2 || n > INT32_MAX / 2 ||
        k > INT32_MAX / 2)
        return false;
    return a->stride[1] == 1 && a->stride[0] > 0 && a->stride[0] % 4 == 0 && k % 4 == 0 && out->stride[1] == 1;
}

/* The elements of an image have distances of 32 bits. */
static bool is_convolution(const step *s)
{
    const layout *in = &s->in[0].at;
    const double reach = fabs((double)in->stride[1]) * CHANNELS_MOST + fabs((double)in->stride[2]) * (double)in->size[2];
    return in->size[1] <= CHANNELS_MOST && reach < INT32_MAX / 2 && !kernels_refuse(s) && layout_count(&s->out[0].at) > 0;
}

static enum parts choose(const step *s)
{
    if (s->math != DUET_MATH_SPLIT || s->out[0].at.type != DUET_F32 || !card().pairs) return PARTS_NONE;
    if (s->kernel == OP_conv2d) return is_convolution(s) ? PARTS_PACKED : PARTS_NONE;
    if (s->kernel != OP_matmul) return PARTS_NONE;
    return product_splits(s) ? PARTS_FEW : is_product(s) ? PARTS_PACKED : PARTS_NONE;
}

/* Threads that choose at once choose the same. */
enum parts parts_of(const step *s)
{
    uint8_t *kept = (uint8_t *)&s->choice;
    enum parts p = (enum parts)__atomic_load_n(kept, __ATOMIC_RELAXED);
    if (p == PARTS_UNKNOWN) p = choose(s), __atomic_store_n(kept, (uint8_t)p, __ATOMIC_RELAXED);
    return p;
}

bool kernels_splits(const step *s) { return parts_of(s) != PARTS_NONE; }
bool kernels_packs(const step *s) { return parts_of(s) == PARTS_PACKED; }

bool kernels_splits_here(const step *s, const frame *f)
{
    const bool a_fits = (uintptr_t)f->data[s->in[0].slot] % 16 == 0, b_fits = (uintptr_t)f->data[s->in[1].slot] % 16 == 0;
    return s->kernel != OP_matmul || (a_fits && (b_fits || kernels_packs(s)));
}

/* ---- operands ---- */

static int64_t units_of(const layout *b) { return quotient_up(b->size[0], PAIR_UNIT) * quotient_up(b->size[1], PAIR_UNIT); }

/* Of a convolution nothing but the largest filter is kept: filters are few. */
size_t kernels_packed_bytes(const step *s)
{
    return PAIR_HEAD + (s->kernel == OP_matmul ? (size_t)units_of(&s->in[1].at) * 2 * PAIR_PART : 0);
}

/* The largest of operand 1. It is set to 0 first: thread blocks meet there in any order. */
static cudaError_t measure(const step *s, const frame *f, float *most, cudaStream_t q)
{
    layout l = s->in[1].at, *one[] = { &l };
    magnitude_args a = { .at = f->data[s->in[1].slot], .most = most, .n = layout_count(&l) };
    layout_collapse(one, 1);
    a.rank = l.rank, a.flat = l.rank <= 1 && (l.rank == 0 || l.stride[0] == 1) && (uintptr_t)a.at % 16 == 0;
    for (int i = 0; i < l.rank; i++) a.size[i] = divide_by64(l.size[i]), a.stride[i] = l.stride[i];
    const cudaError_t e = cudaMemsetAsync(most, 0, sizeof *most, q);
    const int64_t blocks = quotient_up(a.n, MAGNITUDE_THREADS * 16), busy = 8 * card().blocks;
    return e == cudaSuccess ? launch_early(magnitude_kernel(), blocks < busy ? blocks : busy, MAGNITUDE_THREADS, 0, &a, q) : e;
}

cudaError_t kernels_pack(const step *s, const frame *f, void *packed, const workspace *w, cudaStream_t q)
{
    const layout *b = &s->in[1].at;
    const cudaError_t e = measure(s, f, packed, q);
    (void)w;
    if (e != cudaSuccess || s->kernel != OP_matmul) return e;
    pack_args a = { f->data[s->in[1].slot], packed, b->stride[0], b->stride[1], (int32_t)b->size[0], (int32_t)b->size[1] };
    return launch(pack_kernel(), units_of(b), PACK_THREADS, 0, &a, q);
}

/* ---- products ---- */

/* How a product is cut: its tiles, how many thread blocks share one, how many each makes in turn. */
typedef struct cutting {
    const pair_kernel *by;
    int parts, rounds;
    double cost;
} cutting;

static int64_t tiles_of(const product_args *a, const pair_kernel *t)
{
    return quotient_up(a->m, t->rows) * quotient_up(a->n, t->columns);
}

static cutting cut_by(const product_args *a, const pair_kernel *t, int parts)
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
    const pair_kernel *of = pair_kernels(&count);
    cutting best = { .cost = INFINITY };
    for (int i = 0; i < count; i++)
        for (int parts = 1; parts <= PAIR_PARTS; parts *= 2) {
            const cutting c = cut_by(a, &of[i], parts);
            if (c.cost < best.cost) best = c;
        }
    return best;
}

double pair_product_cost(const step *s)
{
    const int64_t *a = s->in[0].at.size;
    const product_args of = { .m = (int32_t)a[0], .k = (int32_t)a[1], .n = (int32_t)s->out[0].at.size[1] };
    return is_product(s) ? cheapest(&of).cost : INFINITY;
}

/* How boxes of a are found, by the driver's own function. */
static PFN_cuTensorMapEncodeTiled_v12000 describer(void)
{
    static PFN_cuTensorMapEncodeTiled_v12000 known;
    PFN_cuTensorMapEncodeTiled_v12000 f = __atomic_load_n(&known, __ATOMIC_RELAXED);
    enum cudaDriverEntryPointQueryResult found;
    if (f) return f;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&f, 12000, cudaEnableDefault, &found) != cudaSuccess)
        return (void)cudaGetLastError(), NULL;
    __atomic_store_n(&known, f, __ATOMIC_RELAXED);
    return f;
}

/* A matrix of f32 in boxes; sizes and strides from the last axis on, strides in elements and without that of the last axis. */
static cudaError_t describe(const void *at, int rank, const int64_t *size, const int64_t *stride, const int *box,
                            CUtensorMapSwizzle swizzle, CUtensorMap *map)
{
    const PFN_cuTensorMapEncodeTiled_v12000 encode = describer();
    cuuint64_t sizes[4], strides[4];
    cuuint32_t boxes[4], each[4] = { 1, 1, 1, 1 };
    for (int i = 0; i < rank; i++) sizes[i] = (cuuint64_t)size[i], boxes[i] = (cuuint32_t)box[i];
    for (int i = 0; i + 1 < rank; i++) strides[i] = (cuuint64_t)stride[i] * sizeof(float);
    if (!encode) return cudaErrorNotSupported;
    const CUresult r =
        encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, (cuuint32_t)rank, (void *)(uintptr_t)at, sizes, strides, boxes, each,
               CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return r == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t pair_describe(const void *p, int64_t rows, int64_t columns, int64_t line, int box_rows, CUtensorMap *map)
{
    const int64_t size[] = { columns, rows };
    return describe(p, 2, size, &line, (const int[]){ PAIR_UNIT / 2, box_rows }, CU_TENSOR_MAP_SWIZZLE_128B, map);
}

/* May anything before this launch still write what was packed? */
static bool is_packed(const step *s, const workspace *w)
{
    const char *first = w->packed, *end = first + kernels_packed_bytes(s);
    return first >= w->written.end || end <= w->written.first;
}

static cudaError_t launch_product(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    pair_args p = { .of = product_args_of(s, f, w), .packed = w->packed };
    const cutting c = cheapest(&p.of);
    const int64_t tiles = tiles_of(&p.of, c.by);
    p.of.parts = c.parts, p.rounds = c.rounds, p.packed_is_there = is_packed(s, w);
    p.out_in_fours = p.of.n % 4 == 0 && p.of.out_row % 4 == 0 && (uintptr_t)p.of.out % 16 == 0;
    cudaError_t e = pair_describe(p.of.a, p.of.m, p.of.k, p.of.a_row, c.by->rows, &p.a);
    if (e == cudaSuccess) e = with_shared(c.by->kernel, (size_t)c.by->shared, (size_t)c.by->shared);
    if (e != cudaSuccess) return e;
    return launch_clusters(c.by->kernel, quotient_up(tiles, c.rounds) * c.parts, c.parts, PAIR_THREADS, (size_t)c.by->shared, &p,
                           q);
}

/* ---- convolutions ---- */

/* Which kernel: slots of a pixel, lines of results that a product has, groups of eight results that it has of each; and whether they are
 * pooled. */
typedef struct conv_form {
    int slots, shifts, lines;
    bool pooled, boxed; /* the card brings boxes of elements by itself */
} conv_form;

static int by_of(conv_form k) { return k.pooled ? 2 : 1; }
static int outputs_of(conv_form k) { return PAIR_CONV_ROWS / k.shifts; }

/* Are all strides but the last such as boxes may have? Of one element any will do. */
static bool is_boxed(const step *s, const frame *f)
{
    const operand *x = &s->in[0];
    bool is = (uintptr_t)f->data[x->slot] % 16 == 0;
    for (int i = 0; i < 3; i++) is &= x->at.size[i] == 1 || (x->at.stride[i] > 0 && x->at.stride[i] % 4 == 0);
    return is;
}

/* Elements of a box's line before those that a region needs, whose columns are multiples of 8: boxes begin at addresses of 16 bytes. */
static int lead_of(const step *s) { return (4 - s->attr[3] % 4) % 4; }

static conv_form form_of(const step *s, const frame *f)
{
    const int64_t channels = s->in[0].at.size[1], outputs = s->out[0].at.size[1];
    conv_form k = { .slots = channels <= 4   ? 4
                             : channels <= 8 ? 8
                                             : 16,
                    .pooled = finish_infos[s->finish].pooled,
                    .boxed = is_boxed(s, f) };
    k.shifts = k.slots == 4 && k.pooled && outputs <= PAIR_CONV_ROWS / 2 ? 2 : 1;
    k.lines = s->out[0].at.size[2] * by_of(k) > 8 * k.shifts ? 16 : 8;
    return k;
}

/* A region's size in blocks, and what that takes. */
typedef struct region {
    int down, across, lines, pitch, stage_pitch; /* lines of elements, and how long they are in shared memory, and in a box */
    int results, result_pitch, stage;            /* results of an output, after pooling, and how they lie there; bytes of a box */
    size_t shared;
    double cost; /* elements that are brought for all of an image */
} region;

/* Those of a warp's eight outputs lie in different banks. */
static int result_pitch(int results, bool pooled) { return (results + 31) / 32 * 32 + (pooled ? 4 : 8); }

static region measured(const step *s, conv_form k, int down, int across)
{
    const int64_t *out = s->out[0].at.size, by = by_of(k);
    const int rows = down * k.lines * k.shifts, columns = across * 8, planes = k.slots == 4 ? 1 : k.slots / 4;
    region r = { down, across, .lines = rows + 2, .pitch = columns + 2, .cost = INFINITY };
    const int pixels = r.lines * r.pitch;
    r.stage_pitch = (lead_of(s) + r.pitch + 3) / 4 * 4;
    r.results = rows * columns / (int)(by * by), r.result_pitch = result_pitch(r.results, k.pooled);
    r.stage = k.boxed ? (int)s->in[0].at.size[1] * r.lines * r.stage_pitch * 4 : 0;
    r.shared = (size_t)(PAIR_CONV_HEAD + r.stage + planes * pixels * 16 + PAIR_CONV_ROWS * r.result_pitch * 4);
    const bool fits = pixels * (k.slots == 16 ? 2 : 1) <= PAIR_CONV_HELD(k.slots) * PAIR_CONV_THREADS && r.shared <= CONV_SHARED;
    if (fits) r.cost = (double)quotient_up(out[2] * by, rows) * (double)quotient_up(out[3] * by, columns) * pixels;
    return r;
}

static region best_region(const step *s, conv_form k)
{
    const int64_t *out = s->out[0].at.size, by = by_of(k);
    region best = { .cost = INFINITY };
    for (int down = 1; down <= 8 && down <= quotient_up(out[2] * by, k.lines * k.shifts); down++)
        for (int across = 1; across <= 16 && across <= quotient_up(out[3] * by, 8); across++) {
            const region r = measured(s, k, down, across);
            if (r.cost < best.cost) best = r;
        }
    return best;
}

static void set_operands(pair_conv_args *a, const step *s, const frame *f, const workspace *w)
{
    const layout *in = &s->in[0].at, *filters = &s->in[1].at, *out = &s->out[0].at;
    a->in = f->data[s->in[0].slot], a->filters = f->data[s->in[1].slot], a->out = f->data[s->out[0].slot], a->largest = w->packed;
    a->image = in->stride[0], a->channel = (int32_t)in->stride[1], a->row = (int32_t)in->stride[2];
    a->c = (int32_t)in->size[1], a->h = (int32_t)in->size[2], a->w = (int32_t)in->size[3];
    a->m = (int32_t)out->size[1], a->out_h = (int32_t)out->size[2], a->out_w = (int32_t)out->size[3];
    for (int i = 0; i < 4; i++) a->filter[i] = filters->stride[i];
    for (int i = 0; i < 2; i++) a->pad[i] = s->attr[2 + i];
    if (s->finish) a->bias = f->data[s->in[2].slot], a->bias_stride = s->in[2].at.stride[0];
    a->least = s->finish && finish_infos[s->finish].act == OP_relu ? 0 : -INFINITY;
    a->filters_are_there = !may_be_written(w, a->filters, filters) && is_packed(s, w);
}

static void set_region(pair_conv_args *a, const step *s, conv_form k, const region *r)
{
    const int by = by_of(k), rows = k.lines * k.shifts;
    a->blocks_down = r->down, a->blocks_across = r->across, a->pitch = r->pitch;
    a->stage = r->stage, a->stage_pitch = r->stage_pitch, a->stage_plane = r->lines * r->stage_pitch, a->lead = lead_of(s);
    a->region_h = r->down * rows / by, a->region_w = r->across * 8 / by;
    a->result_pitch = r->result_pitch;
    a->pixels = (uint32_t)(r->lines * r->pitch), a->by_pitch = divide_by32(r->pitch);
    a->down = divide_by32(quotient_up((int64_t)a->out_h * by, r->down * rows)),
    a->across = divide_by32(quotient_up((int64_t)a->out_w * by, r->across * 8));
    a->fours = a->out_w % 4 == 0 && (uintptr_t)a->out % 16 == 0;
    a->by_line = divide_by32(a->region_w / (a->fours ? 4 : 1)), a->by_region = divide_by32(r->results / (a->fours ? 4 : 1));
    a->regions = (uint32_t)(s->in[0].at.size[0] * a->down.by * a->across.by);
}

static cudaError_t describe_images(const step *s, const region *r, pair_conv_args *a)
{
    const layout *in = &s->in[0].at;
    int64_t size[4], stride[3];
    for (int i = 0; i < 4; i++) size[i] = in->size[3 - i];
    for (int i = 0; i < 3; i++) /* each a multiple of 16 bytes, and no less than what it goes past */
        stride[i] = in->size[2 - i] > 1 ? in->stride[2 - i] : i ? stride[i - 1] * size[i] : (size[0] + 3) / 4 * 4;
    return describe(a->in, 4, size, stride, (const int[]){ r->stage_pitch, r->lines, a->c, 1 }, CU_TENSOR_MAP_SWIZZLE_NONE,
                    &a->boxes);
}

static cudaError_t launch_convolution(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    pair_conv_args a = { .groups = { 0 } };
    const conv_form k = form_of(s, f);
    const region r = best_region(s, k);
    const void *kernel = pair_conv_kernel(k.slots, k.shifts, k.lines, k.pooled);
    set_operands(&a, s, f, w), set_region(&a, s, k, &r);
    a.groups = divide_by32(quotient_up(a.m, outputs_of(k)));
    const int64_t each = (card().shared + CONV_OTHER) / (int64_t)(r.shared + CONV_OTHER),
                  busy = (int64_t)card().blocks * (each < CONV_MOST ? each : CONV_MOST);
    const int64_t walkers = busy / a.groups.by > 1 ? busy / a.groups.by : 1;
    a.walkers = (uint32_t)quotient_up(a.regions, quotient_up(a.regions, walkers));
    cudaError_t e = k.boxed ? describe_images(s, &r, &a) : cudaSuccess;
    if (e == cudaSuccess) e = with_shared(kernel, r.shared, CONV_SHARED);
    return e == cudaSuccess ? launch_early(kernel, (int64_t)a.walkers * a.groups.by, PAIR_CONV_THREADS, r.shared, &a, q) : e;
}

cudaError_t pair_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    if (layout_count(&s->out[0].at) == 0) return cudaSuccess;
    return s->kernel == OP_matmul ? launch_product(s, f, w, q) : launch_convolution(s, f, w, q);
}
