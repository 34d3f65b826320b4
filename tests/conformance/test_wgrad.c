/* test_wgrad.c - the division and the index computations of the gradient with respect to 3 x 3
 * filters (gpu-kernels/conv/wgrad_tiling.c, wgrad.h). The steps of the kernels are executed one
 * thread after the other on the host with integers, so that sums are exact. Every element of shared
 * memory that is read was loaded for that strip, none is loaded twice, and every sum belongs to one
 * element. No card is needed. */
#include "tap.h"
#include "wgrad.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const device_entry devices[DEVICES_MAX] = { { NULL } };

typedef struct trial {
    int n, c, h, w, m, pad[2];
    bool apart; /* operands with gaps, some of them backwards */
} trial;

typedef struct scene {
    step s;
    filter_grad_args a;
    float *memory[2], *first[2], *part, *out;
    int64_t room[2];
    char name[120];
} scene;

static uint64_t seed = 1;

static uint32_t pick(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* ---- operands ---- */

static void lay(layout *l, const int64_t *size, bool apart)
{
    layout_dense(l, DUET_F32, 4, size);
    if (!apart) return;
    int64_t pitch = 1 + (int)pick(2);
    for (int axis = 4; axis-- > 0;) {
        if (pick(3)) l->stride[axis] = pitch;
        else l->stride[axis] = -pitch;
        pitch = pitch * l->size[axis] + (int)pick(5);
    }
}

static void make_operand(scene *s, int k)
{
    int64_t low, high;
    layout_span(&s->s.in[k].at, &low, &high);
    s->room[k] = high - low;
    s->memory[k] = malloc(((size_t)s->room[k] + 1) * sizeof(float));
    for (int64_t i = 0; i < s->room[k]; i++) s->memory[k][i] = (float)((int)pick(7) - 3);
    s->first[k] = s->memory[k] - low;
}

static void open_scene(const trial *t, scene *s)
{
    const int64_t x[] = { t->n, t->c, t->h, t->w }, w[] = { t->m, t->c, 3, 3 },
                  dy[] = { t->n, t->m, t->h + 2 * t->pad[0] - 2, t->w + 2 * t->pad[1] - 2 };
    *s = (scene){ .s = { .kernel = OP_conv2d_filter_grad,
                         .outs = 1,
                         .ins = 2,
                         .attr.conv = { .stride = { 1, 1 },
                                        .pad = { t->pad[0], t->pad[1] },
                                        .dilation = { 1, 1 },
                                        .groups = 1 } } };
    snprintf(s->name, sizeof s->name, "%d x %d x %d x %d, %d outputs, pad %d %d%s", t->n, t->c, t->h, t->w,
             t->m, t->pad[0], t->pad[1], t->apart ? ", apart" : "");
    lay(&s->s.in[0].at, x, t->apart);
    lay(&s->s.in[1].at, dy, t->apart);
    lay(&s->s.out[0].at, w, false);
    for (int k = 0; k < 2; k++) make_operand(s, k);
    s->a = filter_grad_tiling(&s->s, s->first[0], s->first[1]);
    const size_t bytes = filter_grad_workspace(&s->s);
    CHECK(bytes == (size_t)s->a.filters * s->a.parts.by * s->a.sums.by * sizeof(float),
          "%s: the workspace has %zu bytes", s->name, bytes);
    s->part = malloc(bytes + 1);
    s->out = calloc((size_t)layout_count(&s->s.out[0].at) + 1, sizeof(float));
}

static void close_scene(scene *s)
{
    free(s->memory[0]);
    free(s->memory[1]);
    free(s->part);
    free(s->out);
}

/* ---- a thread block ---- */

/* Shared memory, and when each element was loaded. */
typedef struct block {
    const scene *s;
    filter_work e;
    float shared[2 * FILTER_STAGE], sum[FILTER_THREADS][FILTER_SUMS];
    uint32_t brought[2 * FILTER_STAGE], now;
    bool wrong;
} block;

static float fetched(const block *b, int k, const filter_strip *s, const filter_unit *u, int i)
{
    const filter_grad_args *a = &b->s->a;
    const int64_t at = s->image * a->image[k] + u->from + i * (int64_t)a->stride[k][2];
    if (!u->is || (uint32_t)(u->column + i) >= (uint32_t)(k ? a->out_w : a->w)) return 0;
    const float *from = b->s->first[k] + at;
    if (from < b->s->memory[k] || from >= b->s->memory[k] + b->s->room[k]) return NAN;
    return *from;
}

static void load_strip(block *b, uint32_t strip, int stage)
{
    const filter_strip s = filter_strip_of(&b->s->a, strip);
    b->now = strip + 1;
    for (int k = 0; k < 2; k++)
        for (uint32_t u = 0; u < filter_units(&b->s->a, k); u++) {
            const filter_unit unit = filter_unit_of(&b->s->a, k, &b->e, &s, u);
            b->wrong |= unit.place % 4 != 0 || unit.place < 0 || unit.place + 4 > b->s->a.stage ||
                        (stage + unit.place) % 4 != 0;
            for (int i = 0; i < 4 && !b->wrong; i++) {
                const int at = stage + unit.place + i;
                b->wrong |= b->brought[at] == b->now;
                b->brought[at] = b->now;
                b->shared[at] = fetched(b, k, &s, &unit, i);
            }
        }
}

static float read(block *b, int at)
{
    b->wrong |= at < 0 || at >= 2 * b->s->a.stage || b->brought[at] != b->now;
    if (b->wrong) return NAN;
    return b->shared[at];
}

static void add_pixel(block *b, float *sum, int x, int dy)
{
    const filter_grad_args *a = &b->s->a;
    for (int o = 0; o < 8; o++)
        for (int t = 0; t < 9; t++)
            sum[o * 9 + t] +=
                read(b, dy + o * a->apart) * read(b, x + t / 3 * a->pitch[0] + t % 3 - a->pad[1]);
}

static void add_strip(block *b, uint32_t strip, int stage, uint32_t thread)
{
    const filter_grad_args *a = &b->s->a;
    const filter_share t = filter_share_of(a, thread);
    const filter_strip s = filter_strip_of(a, strip);
    const filter_offsets from = filter_offsets_of(a, &t);
    for (uint32_t g = t.split; g < filter_groups(a, &s) && !b->wrong; g += a->splits) {
        const filter_group of = filter_group_of(a, &s, g);
        b->wrong |= of.pixels > 0 && ((stage + from.x + of.x) % 4 != 0 || (stage + from.dy + of.dy) % 4 != 0);
        for (int p = 0; p < of.pixels; p++)
            add_pixel(b, b->sum[thread], stage + from.x + of.x + p, stage + from.dy + of.dy + p);
    }
}

static void store_sums(block *b, uint32_t number)
{
    const filter_grad_args *a = &b->s->a;
    float *part = b->s->part + number * (int64_t)a->sums.by;
    for (uint32_t i = 0; i < a->sums.by; i++) {
        part[i] = 0;
        for (uint32_t k = 0; k < a->splits; k++) part[i] += b->sum[i % a->tasks + k * a->tasks][i / a->tasks];
    }
}

static bool run_block(const scene *s, uint32_t number)
{
    block *b = calloc(1, sizeof *b);
    b->s = s;
    b->e = filter_work_of(&s->a, number);
    CHECK(b->e.first < b->e.end && s->a.stage <= FILTER_STAGE && s->a.stage % 4 == 0,
          "%s: block %u has no strips, or a stage of a wrong size", s->name, number);
    int stage = 0;
    for (uint32_t strip = b->e.first; strip < b->e.end; strip++, stage = s->a.stage - stage) {
        load_strip(b, strip, stage);
        for (uint32_t t = 0; t < FILTER_THREADS; t++) add_strip(b, strip, stage, t);
    }
    store_sums(b, number);
    const bool good = !b->wrong;
    free(b);
    return CHECK(good, "%s: block %u reads or writes memory of another block", s->name, number);
}

/* ---- all together ---- */

static void join(scene *s)
{
    const filter_grad_args *a = &s->a;
    const int64_t count = layout_count(&s->s.out[0].at);
    int *times = calloc((size_t)count + 1, sizeof *times);
    for (uint32_t i = 0; i < a->filters * a->sums.by; i++) {
        const uint32_t tile = i / a->sums.by, own = i % a->sums.by;
        const int64_t e = filter_element(a, tile, own);
        if (e < 0) continue;
        if (!CHECK(e < count && !times[e]++, "%s: element %d has two sums or does not exist", s->name,
                   (int)e))
            break;
        for (uint32_t p = 0; p < a->parts.by; p++)
            s->out[e] += s->part[(tile * (int64_t)a->parts.by + p) * a->sums.by + own];
    }
    for (int64_t e = 0; e < count; e++)
        if (!CHECK(times[e] == 1, "%s: element %d has no sum", s->name, (int)e)) break;
    free(times);
}

static float at(const scene *s, int k, int64_t n, int64_t c, int64_t i, int64_t j)
{
    const layout *l = &s->s.in[k].at;
    if (i < 0 || j < 0 || i >= l->size[2] || j >= l->size[3]) return 0;
    return s->first[k][n * l->stride[0] + c * l->stride[1] + i * l->stride[2] + j * l->stride[3]];
}

static float meant(const scene *s, int64_t m, int64_t c, int u, int v)
{
    const int64_t *dy = s->s.in[1].at.size;
    float sum = 0;
    for (int64_t n = 0; n < dy[0]; n++)
        for (int64_t i = 0; i < dy[2]; i++)
            for (int64_t j = 0; j < dy[3]; j++)
                sum += at(s, 1, n, m, i, j) * at(s, 0, n, c, i + u - s->a.pad[0], j + v - s->a.pad[1]);
    return sum;
}

static void compare(const scene *s)
{
    const int64_t *w = s->s.out[0].at.size;
    for (int64_t e = 0; e < layout_count(&s->s.out[0].at); e++) {
        const float want = meant(s, e / 9 / w[1], e / 9 % w[1], (int)(e % 9 / 3), (int)(e % 3));
        if (!CHECK(s->out[e] == want, "%s: element %d is %g, not %g", s->name, (int)e, (double)s->out[e],
                   (double)want))
            return;
    }
}

static void run_trial(const trial *t)
{
    scene s;
    open_scene(t, &s);
    const char *why = kernels_unsupported(&s.s);
    CHECK(!why, "%s: not supported: %s", s.name, why);
    bool good = !why;
    for (uint32_t b = 0; b < s.a.filters * s.a.parts.by && good; b++) good = run_block(&s, b);
    if (good) {
        join(&s);
        compare(&s);
    }
    close_scene(&s);
}

static void test_sizes(void)
{
    static const trial trials[] = {
        { 1, 3, 32, 32, 16, { 1, 1 }, 0 },  { 2, 16, 32, 32, 32, { 1, 1 }, 0 },
        { 1, 64, 56, 56, 64, { 1, 1 }, 0 }, { 1, 1, 28, 28, 8, { 1, 1 }, 0 },
        { 3, 1, 3, 3, 1, { 0, 0 }, 0 },     { 1, 1, 1, 1, 1, { 1, 1 }, 0 },
        { 0, 4, 8, 8, 9, { 1, 1 }, 0 },     { 300, 2, 6, 5, 3, { 0, 1 }, 0 },
        { 2, 48, 7, 9, 20, { 1, 0 }, 0 },   { 5, 33, 8, 8, 70, { 1, 1 }, 0 },
        { 1, 5, 3, 1200, 9, { 1, 1 }, 0 },  { 1, 40, 5, 130, 66, { 0, 0 }, 0 },
        { 1, 2, 700, 3, 130, { 1, 0 }, 0 }, { 700, 1, 4, 4, 2, { 1, 1 }, 1 },
        { 1, 200, 4, 4, 300, { 1, 1 }, 0 },
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) run_trial(&trials[i]);
    tap_point("sizes");
}

static void test_random(void)
{
    for (int i = 0; i < 60; i++) {
        const trial t = { .n = 1 + (int)pick(6),
                          .c = 1 + (int)pick(pick(3) ? 8 : 70),
                          .h = 3 + (int)pick(20),
                          .w = 3 + (int)pick(pick(5) ? 24 : 90),
                          .m = 1 + (int)pick(pick(3) ? 20 : 80),
                          .pad = { (int)pick(2), (int)pick(2) },
                          .apart = pick(2) };
        run_trial(&t);
    }
    tap_point("random shapes and layouts");
}

/* Enough thread blocks for a large card, with equal work, if there is enough work. */
static void test_evenness(void)
{
    static const int sizes[][5] = {
        { 32, 16, 32, 32, 32 }, { 32, 64, 56, 56, 64 }, { 64, 128, 28, 28, 128 }, { 256, 3, 32, 32, 64 }
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int *z = sizes[i];
        step s = { .kernel = OP_conv2d_filter_grad,
                   .attr.conv = { .stride = { 1, 1 }, .pad = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1 } };
        layout_dense(&s.in[0].at, DUET_F32, 4, (int64_t[]){ z[0], z[1], z[2], z[3] });
        layout_dense(&s.in[1].at, DUET_F32, 4, (int64_t[]){ z[0], z[4], z[2], z[3] });
        const filter_grad_args a = filter_grad_tiling(&s, NULL, NULL);
        const uint32_t blocks = a.filters * a.parts.by, turns = (blocks + 131) / 132;
        CHECK(blocks >= 120 && a.strips * a.filters * 10 >= turns * 132 * a.each * 8,
              "shape %d: %u blocks of %u strips of %d rows", (int)i, blocks, a.each, a.rows);
        printf("# %d x %d x %d x %d, %d outputs: %u tiles, %u parts of %u strips of %d x %d, stage %d\n",
               z[0], z[1], z[2], z[3], z[4], a.filters, a.parts.by, a.each, a.rows, a.columns, a.stage);
    }
    tap_point("parts have equal sizes");
}

int main(void)
{
    test_sizes();
    test_random();
    test_evenness();
    return tap_end();
}
