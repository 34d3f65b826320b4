/* test_gpu_conv.c - convolutions with 3 x 3 windows that the GPU machine computes with their
 * epilogues, and their gradients: every epilogue, layout and padding, odd sizes, infinities and
 * NaN, against the definition in double. It runs on the fake CUDA and unchanged on a real card. The
 * error bound of each result is that of the kernels (gpu-kernels/conv/winograd_1d.cu,
 * winograd_2d.cu), which is wider than that of the oracle. */
#include "kernels.h"
#include "pool.h"
#include "supported.h"
#include "tap.h"
#include "tensor.h"

const device_entry devices[DEVICES_MAX] = { [DEFAULT_GPU] = { &gpu_machine } };

typedef struct trial {
    int n, c, h, w, m, pad[2];
    enum epilogue epilogue;
    enum lie image, filter;
    bool unaligned, special;
    bool back; /* as the gradient of the images: x is the gradient of the results, and filters are rotated */
} trial;

typedef struct scene {
    tensor x, w, bias, y;
    const trial *t;
    char name[160];
} scene;

static bool ran(duet_status s, const char *what) { return CHECK(s == DUET_OK, "%s: %s", what, duet_error()); }

/* ---- the definition ---- */

/* A value, its error bound, and whether partial sums stay finite, so that the value does not depend
 * on the order. */
typedef struct meant {
    double value, error;
    bool known;
} meant;

static double element_at(const scene *s, int64_t n, int64_t c, int64_t i, int64_t j)
{
    if (i < 0 || j < 0 || i >= s->t->h || j >= s->t->w) return 0;
    return *tensor_at(&s->x, n, c, i, j);
}

static double weight_at(const scene *s, int64_t o, int c, int u, int v)
{
    if (s->t->back) return *tensor_at(&s->w, c, o, 2 - u, 2 - v);
    return *tensor_at(&s->w, o, c, u, v);
}

/* A column of a channel, or the whole channel: the sum of products, the absolute values of the
 * finite ones, and of all that a kernel may multiply. */
typedef struct part {
    double value, finite, weights, elements;
} part;

static part one_column(const scene *s, const int64_t *o, int c, int v)
{
    part p = { 0 };
    for (int u = 0; u < 3; u++) {
        const double w = weight_at(s, o[1], c, u, v);
        const double x = element_at(s, o[0], c, o[2] - s->t->pad[0] + u, o[3] - s->t->pad[1] + v);
        p.value += w * x;
        if (isfinite(w * x)) p.finite += fabs(w * x);
        p.weights += fabs(w);
        p.elements += fabs(x);
    }
    return p;
}

/* Which kernel a shape uses depends on the card too. */
static bool may_use_winograd_2d(const trial *t)
{
    return t->c >= WINOGRAD_2D_CHANNELS && t->m >= WINOGRAD_2D_OUTPUTS;
}

static meant one_sum(const scene *s, const int64_t *o)
{
    const epilogue_info *f = &epilogue_infos[s->t->epilogue];
    meant r = { 0 };
    double columns = 0, squares = 0, finite = 0;
    for (int c = 0; c < s->t->c; c++) {
        part all = { 0 };
        for (int v = 0; v < 3; v++) {
            const part p = one_column(s, o, c, v);
            r.value += p.value;
            finite += p.finite;
            columns += p.weights * p.elements;
            all.weights += p.weights;
            all.elements += p.elements;
        }
        squares += all.weights * all.elements;
    }
    const double bias = s->t->epilogue ? *tensor_at(&s->bias, o[1], 0, 0, 0) : 0;
    r.value += bias;
    columns += fabs(bias);
    squares += fabs(bias);
    r.known = finite <= 1e38 && !(isfinite(columns) && columns > 1e38);
    r.error = columns * (6 * s->t->c + 15) * 0x1p-24;
    if (may_use_winograd_2d(s->t)) r.error = fmax(r.error, squares * (4 * s->t->c + 43) * 0x1p-24);
    if (!isfinite(r.value)) r.error = 0; /* relu makes it exact */
    if (s->t->epilogue && f->act == OP_relu && r.value <= 0) r.value = 0;
    return r;
}

static meant one_result(const scene *s, const int64_t *o)
{
    if (!epilogue_infos[s->t->epilogue].pooled) return one_sum(s, o);
    meant r = { -INFINITY, 0, true };
    for (int k = 0; k < 4; k++) {
        const meant x = one_sum(s, (int64_t[]){ o[0], o[1], 2 * o[2] + k / 2, 2 * o[3] + k % 2 });
        if (isnan(r.value) || isnan(x.value)) r.value = NAN;
        else r.value = fmax(r.value, x.value);
        r.error = fmax(r.error, x.error);
        r.known &= x.known;
    }
    return r;
}

static bool agrees(double got, const meant *want)
{
    if (!want->known) return true;
    if (!isfinite(want->value)) return isnan(want->value) ? isnan(got) : got == want->value;
    return fabs(got - want->value) <= want->error;
}

static void compare(const scene *s)
{
    const int64_t *size = s->y.at.size;
    for (int64_t e = 0; e < layout_count(&s->y.at); e++) {
        const int64_t row = e / size[3], plane = row / size[2],
                      o[] = { plane / size[1], plane % size[1], row % size[2], e % size[3] };
        const meant want = one_result(s, o);
        const double got = *tensor_at(&s->y, o[0], o[1], o[2], o[3]);
        if (!CHECK(agrees(got, &want), "%s [%d,%d,%d,%d]: got %.9g, want %.9g +- %g", s->name, (int)o[0],
                   (int)o[1], (int)o[2], (int)o[3], got, want.value, want.error))
            return;
    }
}

/* ---- operands ---- */

static uint32_t pick(uint32_t n)
{
    tensor_random();
    return (uint32_t)(tensor_seed >> 33) % n;
}

/* Replaces some elements by values that sums do not survive. */
static duet_status spoil(tensor *t, int count)
{
    static const double special[] = { INFINITY, -INFINITY, NAN, 0x1p100, -0x1p100, 0 };
    for (int k = 0; k < count; k++) t->value[pick((uint32_t)t->room)] = special[pick(6)];
    void *host = tensor_pack(t);
    const duet_status s =
        gpu_machine.upload(DEFAULT_GPU, t->device, host, (size_t)t->room * sizeof(float), 0);
    free(host);
    return s;
}

static duet_status open_scene(const trial *t, scene *s)
{
    const bool pooled = epilogue_infos[t->epilogue].pooled;
    const int64_t oh = t->h + 2 * t->pad[0] - 2, ow = t->w + 2 * t->pad[1] - 2;
    *s = (scene){ .t = t };
    snprintf(s->name, sizeof s->name, "%dx%dx%dx%d, %d filters, pad %d %d, epilogue %d, layouts %d %d%s%s%s",
             t->n, t->c, t->h, t->w, t->m, t->pad[0], t->pad[1], t->epilogue, t->image, t->filter,
             t->unaligned ? ", unaligned" : "", t->special ? ", special" : "", t->back ? ", back" : "");
    TRY(tensor_new(&s->x, DUET_F32, 4, (int64_t[]){ t->n, t->c, t->h, t->w + t->unaligned }, t->image, 0));
    TRY(tensor_new(&s->w, DUET_F32, 4, (int64_t[]){ t->back ? t->c : t->m, t->back ? t->m : t->c, 3, 3 },
                   t->filter, 0));
    TRY(tensor_new(&s->bias, DUET_F32, 1, (int64_t[]){ t->m }, t->filter, 0));
    TRY(tensor_new(&s->y, DUET_F32, 4, (int64_t[]){ t->n, t->m, pooled ? oh / 2 : oh, pooled ? ow / 2 : ow },
                   ROWS, 0));
    s->x.at.size[3] = t->w;
    s->x.first += t->unaligned;
    if (!t->special) return DUET_OK;
    TRY(spoil(&s->x, 2 + t->n / 2));
    if (pick(2)) TRY(spoil(&s->w, 1));
    return pick(2) ? spoil(&s->bias, 1) : DUET_OK;
}

static void close_scene(scene *s)
{
    tensor_free(&s->x);
    tensor_free(&s->w);
    tensor_free(&s->bias);
    tensor_free(&s->y);
}

static step step_of(const scene *s)
{
    const trial *t = s->t;
    if (t->back)
        return (step){ .kernel = OP_conv2d_input_grad,
                       .outs = 1,
                       .ins = 2,
                       .out = { { 0, s->y.at } },
                       .in = { { 1, s->x.at }, { 2, s->w.at } },
                       .attr.conv = { .stride = { 1, 1 },
                                      .pad = { 2 - t->pad[0], 2 - t->pad[1] },
                                      .dilation = { 1, 1 },
                                      .groups = 1 } };
    return (step){ .kernel = OP_conv2d,
                   .epilogue = t->epilogue,
                   .outs = 1,
                   .ins = t->epilogue ? 3 : 2,
                   .out = { { 0, s->y.at } },
                   .in = { { 1, s->x.at }, { 2, s->w.at }, { 3, s->bias.at } },
                   .attr.conv = { .stride = { 1, 1 },
                                  .pad = { t->pad[0], t->pad[1] },
                                  .dilation = { 1, 1 },
                                  .groups = 1,
                                  .pool = { .window = { 2, 2 }, .stride = { 2, 2 } } } };
}

/* Runs twice, to test also the state that a run leaves behind. */
static void run_trial(const trial *t)
{
    scene s;
    if (ran(open_scene(t, &s), "a scene")) {
        step conv = step_of(&s);
        void *const data[] = { tensor_data(&s.y), tensor_data(&s.x), tensor_data(&s.w),
                               tensor_data(&s.bias) };
        const char *why = gpu_machine.unsupported_reason(&conv);
        CHECK(!why, "%s: not supported: %s", s.name, why);
        for (int again = 0; again < 2 && !why; again++)
            if (ran(gpu_machine.run(&conv, &(frame){ data, NULL, 0, DEFAULT_GPU }), s.name) &&
                ran(tensor_fetch(&s.y, 0), s.name))
                compare(&s);
        gpu_machine.forget(&conv);
    }
    close_scene(&s);
}

/* ---- trials ---- */

static const enum epilogue epilogues[] = { EPILOGUE_NONE, EPILOGUE_conv2d_bias, EPILOGUE_conv2d_bias_relu,
                                           EPILOGUE_conv2d_bias_relu_pool };
#define FINISHED (int)(sizeof epilogues / sizeof *epilogues)

/* Suits every epilogue: at least two rows and columns of results. */
static trial random_trial(int most)
{
    static const enum lie images[] = { ROWS, PADDED, REPEATED };
    trial t = { .n = 1 + (int)pick(4),
                .c = 1 + (int)pick(9),
                .m = 1 + (int)pick(20),
                .pad = { (int)pick(2), (int)pick(2) } };
    t.h = 4 + (int)pick((uint32_t)most);
    t.w = 4 + (int)pick((uint32_t)most);
    t.epilogue = epilogues[pick(FINISHED)];
    t.image = images[pick(3)];
    t.filter = (enum lie)pick(LIES);
    t.unaligned = pick(2);
    t.back = !t.epilogue && pick(2);
    return t;
}

/* Enough images for the 2-d method on a large card. */
static trial random_square(void)
{
    trial t = random_trial(6);
    t.c = WINOGRAD_2D_CHANNELS + (int)pick(6);
    t.m = WINOGRAD_2D_OUTPUTS + (int)pick(12);
    const int pairs = (t.h / 2 + t.pad[0] - 1) * ((t.w + 2 * t.pad[1]) / 4);
    t.n = 1 + (t.m > 16 ? 2200 : 4400) / pairs;
    return t;
}

static void test_sizes(void)
{
    static const int sizes[][5] = { { 1, 3, 32, 32, 16 }, { 1, 16, 16, 16, 32 }, { 5, 17, 9, 7, 33 },
                                    { 40, 1, 2, 3, 1 },   { 2, 2, 3, 70, 5 },    { 2, 2, 70, 3, 2 },
                                    { 1, 128, 6, 6, 9 },  { 300, 4, 8, 8, 16 },  { 530, 14, 4, 6, 20 },
                                    { 710, 9, 5, 4, 33 }, { 1100, 8, 5, 7, 9 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int f = 0; f < FINISHED; f++) {
            const int *n = sizes[i];
            run_trial(&(trial){
                n[0], n[1], n[2], n[3], n[4], { 1, 1 }, epilogues[f], ROWS, ROWS, false, false, false });
            if (!f)
                run_trial(&(trial){
                    n[0], n[1], n[2], n[3], n[4], { 1, 1 }, epilogues[f], ROWS, ROWS, false, false, true });
        }
    tap_point("sizes");
}

static void test_layouts(void)
{
    for (int i = 0; i < 60; i++) {
        const trial t = random_trial(24);
        run_trial(&t);
    }
    for (int i = 0; i < 4; i++) {
        const trial t = random_square();
        run_trial(&t);
    }
    tap_point("layouts, padding, unaligned images");
}

static void test_special(void)
{
    for (int i = 0; i < 84; i++) {
        trial t = i < 80 ? random_trial(12) : random_square();
        t.special = true;
        run_trial(&t);
    }
    tap_point("infinities, NaN, large numbers");
}

/* ---- gradients of filters ---- */

/* Images x, the gradient y of the results, and that of the filters w. */
static duet_status open_filters(const trial *t, scene *s)
{
    const int64_t oh = t->h + 2 * t->pad[0] - 2, ow = t->w + 2 * t->pad[1] - 2;
    *s = (scene){ .t = t };
    snprintf(s->name, sizeof s->name,
             "gradient of filters, %dx%dx%dx%d, %d filters, pad %d %d, layouts %d %d%s%s", t->n, t->c, t->h,
             t->w, t->m, t->pad[0], t->pad[1], t->image, t->filter, t->unaligned ? ", unaligned" : "",
             t->special ? ", special" : "");
    TRY(tensor_new(&s->x, DUET_F32, 4, (int64_t[]){ t->n, t->c, t->h, t->w + t->unaligned }, t->image, 0));
    TRY(tensor_new(&s->y, DUET_F32, 4, (int64_t[]){ t->n, t->m, oh, ow }, t->filter, 0));
    TRY(tensor_new(&s->w, DUET_F32, 4, (int64_t[]){ t->m, t->c, 3, 3 }, ROWS, 0));
    s->x.at.size[3] = t->w;
    s->x.first += t->unaligned;
    if (!t->special) return DUET_OK;
    TRY(spoil(&s->x, 1));
    return pick(2) ? spoil(&s->y, 1) : DUET_OK;
}

/* The products of the definition, added in some order. */
static meant one_filter_sum(const scene *s, int64_t m, int64_t c, int u, int v)
{
    const int64_t *dy = s->y.at.size;
    double size = 0;
    meant r = { 0 };
    for (int64_t n = 0; n < dy[0]; n++)
        for (int64_t i = 0; i < dy[2]; i++)
            for (int64_t j = 0; j < dy[3]; j++) {
                const double p = *tensor_at(&s->y, n, m, i, j) *
                                 element_at(s, n, c, i + u - s->t->pad[0], j + v - s->t->pad[1]);
                r.value += p;
                if (isfinite(p)) size += fabs(p);
            }
    r.known = size <= 1e38;
    r.error = size * (double)(dy[0] * dy[2] * dy[3] + 1) * 0x1p-24;
    return r;
}

static void compare_filters(const scene *s)
{
    for (int64_t e = 0; e < layout_count(&s->w.at); e++) {
        const int64_t c = e / 9 % s->t->c, m = e / 9 / s->t->c;
        const int u = (int)(e % 9 / 3), v = (int)(e % 3);
        const meant want = one_filter_sum(s, m, c, u, v);
        const double got = *tensor_at(&s->w, m, c, u, v);
        if (!CHECK(agrees(got, &want), "%s [%d,%d,%d,%d]: got %.9g, want %.9g +- %g", s->name, (int)m, (int)c,
                   u, v, got, want.value, want.error))
            return;
    }
}

/* Runs twice; the bits must be equal. */
static void run_filters(const trial *t)
{
    scene s;
    double *before = malloc(sizeof *before * (size_t)(t->m * t->c * 9));
    if (ran(open_filters(t, &s), "a scene")) {
        step back = { .kernel = OP_conv2d_filter_grad,
                      .outs = 1,
                      .ins = 2,
                      .out = { { 0, s.w.at } },
                      .in = { { 1, s.x.at }, { 2, s.y.at } },
                      .attr.conv = { .stride = { 1, 1 },
                                     .pad = { t->pad[0], t->pad[1] },
                                     .dilation = { 1, 1 },
                                     .groups = 1 } };
        void *const data[] = { tensor_data(&s.w), tensor_data(&s.x), tensor_data(&s.y) };
        const char *why = kernels_unsupported(&back);
        CHECK(!why, "%s: not supported: %s", s.name, why);
        for (int again = 0; again < 2 && !why; again++) {
            if (!ran(gpu_machine.run(&back, &(frame){ data, NULL, 0, DEFAULT_GPU }), s.name) ||
                !ran(tensor_fetch(&s.w, 0), s.name))
                break;
            if (again)
                CHECK(!memcmp(before, s.w.value, sizeof *before * (size_t)s.w.room),
                      "%s: the operand was changed", s.name);
            else {
                compare_filters(&s);
                memcpy(before, s.w.value, sizeof *before * (size_t)s.w.room);
            }
        }
        gpu_machine.forget(&back);
    }
    close_scene(&s);
    free(before);
}

static void test_filters(void)
{
    static const int sizes[][7] = { { 1, 3, 32, 32, 16, 1, 1 },   { 2, 16, 32, 32, 20, 1, 1 },
                                    { 12, 33, 14, 14, 20, 1, 1 }, { 1, 1, 28, 28, 8, 0, 0 },
                                    { 7, 1, 3, 3, 1, 0, 0 },      { 1, 1, 1, 1, 1, 1, 1 },
                                    { 900, 2, 6, 5, 3, 0, 1 },    { 3, 48, 7, 9, 20, 1, 0 },
                                    { 5, 33, 8, 8, 70, 1, 1 },    { 1, 5, 3, 1200, 9, 1, 1 },
                                    { 2, 40, 5, 60, 66, 0, 0 },   { 1, 2, 300, 3, 130, 1, 0 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int *n = sizes[i];
        run_filters(&(trial){
            n[0], n[1], n[2], n[3], n[4], { n[5], n[6] }, EPILOGUE_NONE, ROWS, ROWS, false, false, false });
    }
    for (int i = 0; i < 60; i++) {
        trial t = random_trial(24);
        t.image = (enum lie)pick(LIES);
        t.filter = (enum lie)pick(LIES);
        t.special = i % 3 == 2;
        t.unaligned &= t.image == ROWS || t.image == PADDED;
        run_filters(&t);
    }
    tap_point("filter gradients: sizes, layouts, infinities, NaN, reproducible bits");
}

#define AT(field) offsetof(conv_attributes, field)
static void set_attribute(step *s, size_t offset, int32_t value)
{
    memcpy((char *)&s->attr.conv + offset, &value, sizeof value);
}

/* Steps that no kernel supports are refused if they have an epilogue, because cuDNN has none. */
static void test_refusals(void)
{
    const trial t = {
        2, 3, 8, 8, 4, { 1, 1 }, EPILOGUE_conv2d_bias_relu_pool, ROWS, ROWS, false, false, false
    };
    scene s;
    ran(open_scene(&t, &s), "a scene");
    static const struct {
        size_t attr; /* an offset into conv_attributes */
        int value;
    } others[] = { { AT(stride[0]), 2 },      { AT(pad[0]), 2 },     { AT(dilation[0]), 2 },
                   { AT(groups), 3 },         { AT(flip), 1 },       { AT(pool.window[0]), 3 },
                   { AT(pool.stride[0]), 1 }, { AT(pool.pad[1]), 1 } };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        step conv = step_of(&s);
        CHECK(!gpu_machine.unsupported_reason(&conv), "the convolution is supported");
        set_attribute(&conv, others[i].attr, others[i].value);
        CHECK(gpu_machine.unsupported_reason(&conv),
              "the convolution with the attribute at %zu = %d is supported", others[i].attr, others[i].value);
    }
    step gaps = step_of(&s);
    gaps.in[0].at.stride[3] = 2;
    CHECK(gpu_machine.unsupported_reason(&gaps), "the convolution of rows with gaps is supported");
    close_scene(&s);
    tap_point("invalid and unsupported arguments");
}

/* Gradients that no kernel supports; cuDNN computes them where it is available. */
static void test_refused_gradients(void)
{
    const int64_t x[] = { 2, 3, 8, 8 }, w[] = { 4, 3, 3, 3 }, dy[] = { 2, 4, 8, 8 };
    static const struct {
        size_t attr; /* an offset into conv_attributes */
        int value;
        bool images, filters; /* not supported by Duet's kernels */
    } others[] = { { AT(pad[0]), 1, false, false },    { AT(pad[0]), 2, false, true },
                   { AT(pad[0]), 0, true, false },     { AT(pad[0]), 3, true, true },
                   { AT(stride[0]), 2, true, true },   { AT(stride[1]), 2, true, true },
                   { AT(dilation[1]), 2, true, true }, { AT(groups), 3, true, true },
                   { AT(pad_end[0]), 1, true, true } };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        step images = { .kernel = OP_conv2d_input_grad,
                        .outs = 1,
                        .ins = 2,
                        .attr.conv = { .stride = { 1, 1 },
                                       .pad = { 1, 1 },
                                       .dilation = { 1, 1 },
                                       .groups = 1 } },
             filters = images;
        filters.kernel = OP_conv2d_filter_grad;
        layout_dense(&images.out[0].at, DUET_F32, 4, x);
        layout_dense(&images.in[0].at, DUET_F32, 4, dy);
        layout_dense(&images.in[1].at, DUET_F32, 4, w);
        layout_dense(&filters.out[0].at, DUET_F32, 4, w);
        layout_dense(&filters.in[0].at, DUET_F32, 4, x);
        layout_dense(&filters.in[1].at, DUET_F32, 4, dy);
        set_attribute(&images, others[i].attr, others[i].value);
        set_attribute(&filters, others[i].attr, others[i].value);
        const char *a = kernels_unsupported(&images), *b = kernels_unsupported(&filters);
        CHECK(!a == !others[i].images && !b == !others[i].filters,
              "attribute at %zu = %d: which gradients are supported is wrong: %s; %s", others[i].attr,
              others[i].value, a ? a : "the convolution is supported",
              b ? b : "the convolution is supported");
        filters.math = DUET_MATH_TF32;
        filters.in[1].at.size[0] = filters.in[0].at.size[0] = i ? 2 : 1 << 20;
        CHECK(i || kernels_unsupported(&filters), "a large gradient that may use tensor cores is supported");
    }
    tap_point("unsupported gradients");
}

int main(void)
{
    const char *why = gpu_machine.absent(DEFAULT_GPU);
    if (why) {
        printf("1..0 # SKIP %s\n", why);
        return 0;
    }
    test_sizes();
    test_layouts();
    test_special();
    test_filters();
    test_refusals();
    test_refused_gradients();
    return tap_end();
}
