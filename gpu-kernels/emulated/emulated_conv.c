/* emulated_conv.c - launches convolutions whose elements are pairs of f16 (emulated_conv.cu). This
 * file decides which convolutions are supported and divides the results into regions. */
#include "emulated.h"
#include "joined.h"
#include "min_max.h"
#include <math.h>

#define CHANNELS_MOST 16
/* bytes of shared memory of a thread block, at most, so that two fit on a multiprocessor */
#define CONV_SHARED (100 << 10)
#define CONV_OTHER  1024 /* bytes that CUDA reserves for each thread block in addition */
#define CONV_MOST   4    /* thread blocks on a multiprocessor */

/* The kernel computes offsets in an image with 32 bits. */
bool emulated_conv_supports(const step *s)
{
    const layout *in = &s->in[0].at;
    const double reach =
        fabs((double)in->stride[1]) * CHANNELS_MOST + fabs((double)in->stride[2]) * (double)in->size[2];
    return in->size[1] <= CHANNELS_MOST && reach < INT32_MAX / 2 && !kernels_unsupported(s) &&
           layout_count(&s->out[0].at) > 0;
}

/* The instance of the kernel: its template arguments (emulated_conv.cu), and whether the tensor
 * memory accelerator copies the elements. */
typedef struct tiling {
    int slots, shifts, lines;
    bool pooled, boxed;
} tiling;

static int by_of(tiling k) { return k.pooled ? 2 : 1; }
static int outputs_of(tiling k) { return EMULATED_CONV_ROWS / k.shifts; }

/* Can the tensor memory accelerator copy the images? All strides but the last must be positive
 * multiples of 16 bytes. The stride of an axis with one element does not matter. */
static bool is_boxed(const step *s, const frame *f)
{
    const operand *x = &s->in[0];
    bool is = (uintptr_t)f->data[x->slot] % 16 == 0;
    for (int i = 0; i < 3; i++) is &= x->at.size[i] == 1 || (x->at.stride[i] > 0 && x->at.stride[i] % 4 == 0);
    return is;
}

/* Returns the number of elements of a line of a box before those that a region needs. Regions start
 * at columns that are multiples of 8, and boxes at addresses that are multiples of 16 bytes. */
static int lead_of(const step *s) { return (4 - s->attr.conv.pad[SPATIAL_WIDTH] % 4) % 4; }

static int slots_of(int64_t channels)
{
    if (channels <= 4) return 4;
    return channels <= 8 ? 8 : 16;
}

static tiling form_of(const step *s, const frame *f)
{
    const int64_t channels = s->in[0].at.size[1], outputs = s->out[0].at.size[1];
    tiling k = { .slots = slots_of(channels),
                 .pooled = epilogue_infos[s->epilogue].pooled,
                 .boxed = is_boxed(s, f) };
    k.shifts = k.slots == 4 && k.pooled && outputs <= EMULATED_CONV_ROWS / 2 ? 2 : 1;
    return k;
}

/* The size of a region. The members that emulated_conv_args has too are described there. */
typedef struct region {
    int down, across; /* blocks */
    int lines, pitch, stage_pitch;
    int results; /* results of one output after pooling */
    int result_pitch, stage;
    size_t shared; /* bytes of shared memory */
    double cost;
} region;

/* Returns a distance between outputs in shared memory that puts the eight outputs of a warp into
 * different banks. */
static int result_pitch(int results, bool pooled) { return (results + 31) / 32 * 32 + (pooled ? 4 : 8); }

/* Estimates the time of a launch. The unit is the time for one pixel on a fully occupied multiprocessor. */
#define ALONE   3   /* for a pixel, if a multiprocessor runs one thread block */
#define REGION  32  /* for each region, in addition */
#define LATENCY 200 /* until the first regions are loaded */
static double cost_of(const step *s, tiling k, int rows, int columns, int pixels)
{
    const int64_t *out = s->out[0].at.size;
    const int by = by_of(k), height = (int)out[2] * by, width = (int)out[3] * by, outputs = outputs_of(k),
              groups = ((int)out[1] + outputs - 1) / outputs;
    const double regions = (double)((height + rows - 1) / rows) * ((width + columns - 1) / columns) * groups *
                           (double)out[0],
                 each = ceil(regions / card().blocks), alone = ALONE * (double)pixels,
                 together = each * (pixels + REGION);
    return LATENCY * ceil(each / CONV_MOST) + (alone > together ? alone : together);
}

static region measured(const step *s, tiling k, int down, int across)
{
    const int64_t by = by_of(k);
    const int rows = down * k.lines * k.shifts, columns = across * 8, planes = k.slots == 4 ? 1 : k.slots / 4;
    region r = { down, across, .lines = rows + 2, .pitch = columns + 2, .cost = INFINITY };
    const int pixels = r.lines * r.pitch;
    r.stage_pitch = (lead_of(s) + r.pitch + 3) / 4 * 4;
    r.results = rows * columns / (int)(by * by);
    r.result_pitch = result_pitch(r.results, k.pooled);
    r.stage = (int)s->in[0].at.size[1] * r.lines * r.stage_pitch * 4;
    r.shared = (size_t)(EMULATED_CONV_HEAD + r.stage + planes * pixels * 16 +
                        EMULATED_CONV_ROWS * r.result_pitch * 4);
    const bool fits =
        pixels * (k.slots == 16 ? 2 : 1) <= EMULATED_CONV_HELD(k.slots) * EMULATED_CONV_THREADS &&
        r.shared <= CONV_SHARED;
    if (fits) r.cost = cost_of(s, k, rows, columns, pixels);
    if (!k.boxed) { /* the region has the same size as with boxes, so that bits do not depend on addresses */
        r.shared -= (size_t)r.stage;
        r.stage = 0;
    }
    return r;
}

static void improve(region *best, const step *s, tiling *k, tiling t)
{
    const int64_t *out = s->out[0].at.size, by = by_of(t);
    for (int down = 1; down <= 8 && down <= quotient_up(out[2] * by, t.lines * t.shifts); down++)
        for (int across = 1; across <= 16 && across <= quotient_up(out[3] * by, 8); across++) {
            const region r = measured(s, t, down, across);
            if (r.cost == INFINITY) break; /* wider regions are too large, too */
            if (r.cost >= best->cost) continue;
            *best = r;
            k->lines = t.lines;
        }
}

/* Returns the cheapest region, and sets k->lines. */
static region best_region(const step *s, tiling *k)
{
    region best = { .cost = INFINITY };
    for (int lines = 16; lines >= 8; lines -= 8) {
        tiling t = *k;
        t.lines = lines;
        improve(&best, s, k, t);
    }
    return best;
}

static void set_operands(emulated_conv_args *a, const step *s, const joined *j, const frame *f,
                         const workspace *w)
{
    const layout *in = &s->in[0].at, *filters = &s->in[1].at, *out = &s->out[0].at;
    a->in = f->data[s->in[0].slot];
    a->filters = f->data[s->in[1].slot];
    a->out = joined_out(j, f->data[s->out[0].slot]);
    a->largest = w->packed;
    a->image = in->stride[0];
    a->channel = (int32_t)in->stride[1];
    a->row = (int32_t)in->stride[2];
    a->c = (int32_t)in->size[1];
    a->h = (int32_t)in->size[2];
    a->w = (int32_t)in->size[3];
    a->m = (int32_t)out->size[1];
    a->out_h = (int32_t)out->size[2];
    a->out_w = (int32_t)out->size[3];
    for (int i = 0; i < 4; i++) a->filter[i] = filters->stride[i];
    for (int i = 0; i < 2; i++) a->pad[i] = s->attr.conv.pad[i];
    if (s->epilogue) {
        a->bias = f->data[s->in[2].slot];
        a->bias_stride = s->in[2].at.stride[0];
    }
    a->least = s->epilogue && epilogue_infos[s->epilogue].act == OP_relu ? 0 : -INFINITY;
    a->filters_are_there = !may_be_written(w, a->filters, filters) && emulated_is_packed(s, w);
}

static void set_region(emulated_conv_args *a, const step *s, tiling k, const region *r)
{
    const int by = by_of(k), rows = k.lines * k.shifts;
    a->blocks_down = r->down;
    a->blocks_across = r->across;
    a->pitch = r->pitch;
    a->stage = r->stage;
    a->stage_pitch = r->stage_pitch;
    a->stage_plane = r->lines * r->stage_pitch;
    a->lead = lead_of(s);
    a->region_h = r->down * rows / by;
    a->region_w = r->across * 8 / by;
    a->result_pitch = r->result_pitch;
    a->pixels = (uint32_t)(r->lines * r->pitch);
    a->by_pitch = divide_by32(r->pitch);
    a->down = divide_by32(quotient_up((int64_t)a->out_h * by, r->down * rows));
    a->across = divide_by32(quotient_up((int64_t)a->out_w * by, r->across * 8));
    a->fours = a->out_w % 4 == 0 && (uintptr_t)a->out % 16 == 0;
    a->by_line = divide_by32(a->region_w / (a->fours ? 4 : 1));
    a->by_region = divide_by32(r->results / (a->fours ? 4 : 1));
    a->regions = (uint32_t)(s->in[0].at.size[0] * a->down.by * a->across.by);
}

static cudaError_t describe_images(const step *s, const region *r, emulated_conv_args *a)
{
    const layout *in = &s->in[0].at;
    int64_t size[4], stride[3];
    for (int i = 0; i < 4; i++) size[i] = in->size[3 - i];
    for (int i = 0; i < 3; i++) { /* an axis of one element gets a stride that the driver accepts */
        if (in->size[2 - i] > 1) stride[i] = in->stride[2 - i];
        else stride[i] = i ? stride[i - 1] * size[i] : (size[0] + 3) / 4 * 4;
    }
    return emulated_describe_boxes(a->in, 4, size, stride, (const int[]){ r->stage_pitch, r->lines, a->c, 1 },
                                   CU_TENSOR_MAP_SWIZZLE_NONE, &a->boxes);
}

/* The kernel's number in joined.h. */
static int number_of(tiling k)
{
    if (k.shifts == 2) return 12 + (k.lines == 16);
    return (k.slots == 4 ? 0 : k.slots == 8 ? 4 : 8) + 2 * (k.lines == 16) + k.pooled;
}

/* If the driver cannot describe boxes, threads load the elements instead. */
static cudaError_t launch_as(const step *s, joined *j, const frame *f, const workspace *w, tiling k,
                             cudaStream_t q)
{
    emulated_conv_args a = { .groups = { 0 } };
    const region r = best_region(s, &k);
    set_operands(&a, s, j, f, w);
    set_region(&a, s, k, &r);
    if (k.boxed && describe_images(s, &r, &a) != cudaSuccess) {
        k.boxed = false;
        return launch_as(s, j, f, w, k, q);
    }
    a.groups = divide_by32(quotient_up(a.m, outputs_of(k)));
    const int64_t each = (card().shared + CONV_OTHER) / (int64_t)(r.shared + CONV_OTHER),
                  busy = (int64_t)card().blocks * smaller(each, CONV_MOST);
    const int64_t walkers = larger(busy / a.groups.by, 1);
    a.walkers = (uint32_t)quotient_up(a.regions, quotient_up(a.regions, walkers));
    const product_launch_args l = { .kernel = emulated_conv_kernel(k.slots, k.shifts, k.lines, k.pooled),
                                    .file = JOINED_EMULATED_CONV,
                                    .number = number_of(k),
                                    .width = 4,
                                    .blocks = (int64_t)a.walkers * a.groups.by,
                                    .cluster = 1,
                                    .threads = EMULATED_CONV_THREADS,
                                    .shared = r.shared,
                                    .shared_most = CONV_SHARED,
                                    .args = &a,
                                    .bytes = sizeof a };
    return product_start(&l, j, q);
}

cudaError_t emulated_conv_join(const step *s, joined *j, const frame *f, const workspace *w, cudaStream_t q)
{
    return launch_as(s, j, f, w, form_of(s, f), q);
}
