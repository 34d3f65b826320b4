/* test_convs.c - convolutions of one and three axes, of plain arrays, and windows of images,
 * against their definitions: random sizes, options, types and views on every machine. The error of
 * a sum of t products is at most t + 1 roundings of the sum of their absolute values. */
#include "convs.h"
#ifdef FAKE_CUDA
#include "fake_cuda.h"
#endif
#include <sys/resource.h>

static duet_place place[2];
static int places;
extern size_t im2col_most_bytes; /* cpu/conv.h, which has other names in common with this file */
static size_t usual_im2col_bytes;

static int64_t drawn(int64_t low, int64_t high) { return low + rng_below(&gen, high - low + 1); }

/* ---- along one axis or three ---- */

static bool draw_geometry(geometry *g, int axes, bool unequal)
{
    *g = (geometry){ .axes = axes, .n = drawn(0, 3), .groups = drawn(1, 2), .flips = rng_chance(&gen, 30) };
    g->c = g->groups * drawn(1, 3);
    g->m = g->groups * drawn(1, 3);
    for (int a = 0; a < axes; a++) {
        g->window[a] = drawn(1, 3);
        g->stride[a] = drawn(1, 3);
        g->pad[a] = drawn(0, 2);
        g->dilation[a] = drawn(1, 2);
        const int64_t reach = (g->window[a] - 1) * g->dilation[a] + 1;
        g->image[a] = drawn(1, axes == 1 ? 40 : 7);
        if (unequal) g->more[a] = drawn(0, 3);
        else g->more[a] = 0;
        const int64_t room = g->image[a] + 2 * g->pad[a] + g->more[a] - reach;
        if (room < 0) return false;
        g->out[a] = room / g->stride[a] + 1;
    }
    return true;
}

static int32_t at(const int64_t *x, int a) { return (int32_t)x[a]; }
#define ALL2(x)                                                                                              \
    {                                                                                                        \
        at(g->x, 0), at(g->x, 1)                                                                             \
    }
#define ALL3(x)                                                                                              \
    {                                                                                                        \
        at(g->x, 0), at(g->x, 1), at(g->x, 2)                                                                \
    }

/* The options that all functions with this number of axes start with. */
#define ONE   at(g->stride, 0), at(g->pad, 0), at(g->dilation, 0), (int32_t)g->groups
#define TWO   ALL2(stride), ALL2(pad), ALL2(dilation), (int32_t)g->groups
#define THREE ALL3(stride), ALL3(pad), ALL3(dilation), (int32_t)g->groups

static duet_expr forward(const geometry *g, duet_expr x, duet_expr w)
{
    const duet_conv1 one = { ONE, at(g->more, 0) };
    const duet_conv two = { TWO, ALL2(more) };
    const duet_conv3 three = { THREE, ALL3(more) };
    if (g->axes == 1) return g->flips ? (duet_convolve1d)(x, w, &one) : (duet_conv1d)(x, w, &one);
    if (g->axes == 2) return g->flips ? (duet_convolve2d)(x, w, &two) : (duet_conv2d)(x, w, &two);
    if (g->flips) return (duet_convolve3d)(x, w, &three);
    return (duet_conv3d)(x, w, &three);
}

static duet_expr to_images(const geometry *g, duet_expr y, duet_expr w)
{
    const duet_conv1_grad one = { ONE, at(g->image, 0), at(g->more, 0) };
    const duet_conv_grad two = { TWO, ALL2(image), ALL2(more) };
    const duet_conv3_grad three = { THREE, ALL3(image), ALL3(more) };
    if (g->axes == 2) return (duet_conv2d_input_grad)(y, w, &two);
    if (g->axes == 1) return (duet_conv1d_input_grad)(y, w, &one);
    return (duet_conv3d_input_grad)(y, w, &three);
}

/* By how much an image exceeds the smallest size along each axis; false: that size would be
 * negative. */
static bool beyond_least(const geometry *g, int32_t *rest)
{
    bool can = true;
    for (int a = 0; a < g->axes; a++) {
        const int64_t reach = (g->window[a] - 1) * g->dilation[a] + 1;
        const int64_t least = (g->out[a] - 1) * g->stride[a] + reach - 2 * g->pad[a] - g->more[a];
        can &= least >= 0;
        rest[a] = (int32_t)(g->image[a] - least);
    }
    return can;
}

/* The same under another name. */
static duet_expr transposed(const geometry *g, duet_expr y, duet_expr w, const int32_t *rest)
{
    const duet_conv1_transposed one = { ONE, rest[0], at(g->more, 0) };
    const duet_conv_transposed two = { TWO, { rest[0], rest[1] }, ALL2(more) };
    const duet_conv3_transposed three = { THREE, { rest[0], rest[1], rest[2] }, ALL3(more) };
    if (g->axes == 2) return (duet_conv_transpose2d)(y, w, &two);
    if (g->axes == 1) return (duet_conv_transpose1d)(y, w, &one);
    return (duet_conv_transpose3d)(y, w, &three);
}

static duet_expr to_filters(const geometry *g, duet_expr x, duet_expr y)
{
    const duet_conv1_grad one = { ONE, at(g->window, 0), at(g->more, 0) };
    const duet_conv_grad two = { TWO, ALL2(window), ALL2(more) };
    const duet_conv3_grad three = { THREE, ALL3(window), ALL3(more) };
    if (g->axes == 2) return (duet_conv2d_filter_grad)(x, y, &two);
    if (g->axes == 1) return (duet_conv1d_filter_grad)(x, y, &one);
    return (duet_conv3d_filter_grad)(x, y, &three);
}

static sizes sizes_for(const geometry *g, enum operand which)
{
    if (which == IMAGES) return sizes_with(2, g->n, g->c, g->image, g->axes);
    if (which == FILTERS) return sizes_with(2, g->m, g->c / g->groups, g->window, g->axes);
    return sizes_with(2, g->n, g->m, g->out, g->axes);
}

/* Does the gradient equal the difference quotient of the sum of results times the incoming
 * gradient? The function is linear, so any step works. */
static void check_slope(const geometry *g, const making *k)
{
    for (int64_t i = 0; i < k->of[k->result].count; i++) {
        real up = 0;
        making step = { { array_new(operand_count(g, IMAGES)), array_new(operand_count(g, FILTERS)),
                          array_new(operand_count(g, RESULTS)) },
                        RESULTS };
        const int other = k->result == IMAGES ? FILTERS : IMAGES;
        memcpy(step.of[other].v, k->of[other].v, (size_t)step.of[other].count * sizeof(real));
        step.of[k->result].v[i] = 1;
        each_product(g, add_product, &step);
        for (int64_t j = 0; j < step.of[RESULTS].count; j++)
            up += step.of[RESULTS].v[j] * k->of[RESULTS].v[j];
        CHECK(fabsl(up - k->of[k->result].v[i]) <= 0x1p-50L * (1 + k->of[k->result].size[i]),
              "the gradient of the reference is wrong in element %lld", (long long)i);
        for (int o = 0; o < 3; o++) array_free(&step.of[o]);
    }
}

static void check_result(duet_place p, duet_dtype type, const geometry *g, enum operand result, bool slope)
{
    held h[3];
    making k = { .result = result };
    duet_expr e[3];
    for (int o = 0; o < 3; o++) {
        const sizes s = sizes_for(g, (enum operand)o);
        h[o] = held_new(type, &s);
        if (o == (int)result) k.of[o] = array_new(duet_count(h[o].m));
        else k.of[o] = array_of(h[o].m);
        if (o != (int)result) e[o] = DUET(h[o].m);
    }
    const sizes s = sizes_for(g, result);
    each_product(g, add_product, &k);
    if (slope && result != RESULTS) check_slope(g, &k);
    duet_expr f;
    int32_t rest[3];
    if (result == RESULTS) f = forward(g, e[IMAGES], e[FILTERS]);
    else if (result == FILTERS) f = to_filters(g, e[IMAGES], e[RESULTS]);
    else if (beyond_least(g, rest) && rng_chance(&gen, 50)) f = transposed(g, e[RESULTS], e[FILTERS], rest);
    else f = to_images(g, e[RESULTS], e[FILTERS]);
    duet_matrix *got = evaluated(p, type, f, &s);
    static const char *const names[] = { "to the images", "to the filters", "forward" };
    compare(names[result], got, &k.of[result], terms_of(g, result) + 1);
    for (int o = 0; o < 3; o++) {
        held_free(&h[o]);
        array_free(&k.of[o]);
    }
    duet_free(&got);
}

static void convolutions(int axes, bool unequal, int count)
{
#define NAMES(n, how) "conv" n ", convolve" n ", its gradients, conv_transpose" n how
    static const char *const names[][3] = { { NAMES("1d", ""), NAMES("2d", ""), NAMES("3d", "") },
                                            { NAMES("1d", " of unequal padding"),
                                              NAMES("2d", " of unequal padding"),
                                              NAMES("3d", " of unequal padding") } };
    for (int i = 0; i < count; i++) {
        geometry g;
        if (!draw_geometry(&g, axes, unequal)) continue;
        const duet_dtype type = rng_chance(&gen, 50) ? DUET_F32 : DUET_F64;
        im2col_most_bytes = rng_chance(&gen, 50) ? (size_t)drawn(0, 2000) : usual_im2col_bytes;
        for (int k = 0; k < places; k++)
            for (int result = IMAGES; result <= RESULTS; result++) {
                if (g.flips && result != RESULTS) continue;
                check_result(place[k], type, &g, (enum operand)result, i < 12);
            }
    }
    im2col_most_bytes = usual_im2col_bytes;
    tap_point(names[unequal][axes - 1]);
}

static int64_t resident_most(void) /* KiB */
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_maxrss;
}

/* All windows of this image, one beside the other, take 529 MB. */
static void in_little_memory(void)
{
    const geometry g = { .axes = 2,
                         .n = 1,
                         .c = 1,
                         .m = 1,
                         .groups = 1,
                         .image = { 300, 300 },
                         .window = { 30, 30 },
                         .out = { 271, 271 },
                         .stride = { 1, 1 },
                         .pad = { 0, 0 },
                         .dilation = { 1, 1 } };
    im2col_most_bytes = 16 << 20;
    for (int result = IMAGES; result <= RESULTS; result++) {
        const int64_t before = resident_most();
        check_result(DUET_CPU, DUET_F64, &g, (enum operand)result, false);
        CHECK(resident_most() - before < 128 << 10, "%lld KiB in use, %lld before",
              (long long)resident_most(), (long long)before);
    }
    im2col_most_bytes = usual_im2col_bytes;
    tap_point("a convolution takes little memory for its windows");
}

/* Windows of two rows so far apart that the image is between them, in padding. */
static void far_apart(void)
{
    const geometry g = { .axes = 2,
                         .n = 1,
                         .c = 2,
                         .m = 2,
                         .groups = 1,
                         .image = { 4, 5 },
                         .window = { 2, 1 },
                         .out = { 5, 5 },
                         .stride = { 1, 1 },
                         .pad = { 1 << 30, 0 },
                         .dilation = { INT32_MAX, 1 } };
    for (int result = IMAGES; result <= RESULTS; result++)
        check_result(DUET_CPU, DUET_F32, &g, (enum operand)result, false);
    tap_point("largest windows, strides and dilations on the CPU");
}

/* ---- gradients of images with stride 1: directly, or as convolutions of the gradient of the
 * results ---- */

/* Our GPU kernels have another bound there: test_gpu_conv.c. */
static bool is_square(const geometry *g)
{
    return g->axes == 2 && g->window[0] == 3 && g->dilation[0] == 1 && g->dilation[1] == 1;
}

static void in_steps_of_one(int count)
{
    for (int i = 0; i < count; i++) {
        geometry g;
        if (!draw_geometry(&g, 1 + i % 3, false)) continue;
        const int64_t most = i % 2 ? 3 : g.window[0];
        for (int a = 0; a < g.axes; a++) {
            g.stride[a] = 1;
            g.window[a] = most;
            if (i % 4 == 3) g.dilation[a] = 1;
            g.image[a] = g.window[a] * g.dilation[a] + drawn(0, 9);
            g.out[a] = g.image[a] + 2 * g.pad[a] - (most - 1) * g.dilation[a];
        }
        g.flips = false;
        g.groups = 1;
        for (int k = 0; k < places; k++)
            for (int result = is_square(&g) ? FILTERS : IMAGES; result <= FILTERS; result++)
                check_result(place[k], i % 5 ? DUET_F32 : DUET_F64, &g, (enum operand)result, false);
    }
    tap_point("gradients of convolutions with stride 1");
}

#ifdef FAKE_CUDA
/* The slower algorithm is not run again; with DUET_REPRODUCIBLE=1 nothing is timed. */
static void faster_algorithm(void)
{
    for (int i = 0; i < 3; i++) {
        const geometry g = { .axes = 2,
                             .n = 2 + i,
                             .c = 3,
                             .m = 4,
                             .groups = 1,
                             .image = { 9, 8 },
                             .window = { 5, 3 },
                             .out = { 7, 10 },
                             .stride = { 1, 1 },
                             .pad = { 1, 2 },
                             .dilation = { 1, 1 } };
        const fake_counts before = fake_count();
        fake_slowly(i == 0, i == 1);
        if (i == 2) setenv("DUET_REPRODUCIBLE", "1", 1);
        check_result(DUET_GPU, DUET_F32, &g, IMAGES, false);
        const int tried = (int)(fake_count().backward - before.backward),
                  all = (int)(fake_count().convolutions - before.convolutions);
        check_result(DUET_GPU, DUET_F32, &g, IMAGES, false);
        unsetenv("DUET_REPRODUCIBLE");
        const int again = (int)(fake_count().backward - before.backward) - tried;
        CHECK(again == (i != 1), "the second call ran the backward algorithm %d times", again);
        CHECK(i == 2 ? all == 1 : all == 2 * (tried - (i == 0)) + 1,
              "%d runs were tried, %d of them backward", all, tried);
    }
    fake_slowly(false, false);
    tap_point("the faster algorithm for the image gradient is chosen once");
}
#endif

/* ---- additional padding at the end: epilogues, other types, results calculated by hand ---- */

#define RIGHT(m, e)                                                                                          \
    do {                                                                                                     \
        const char *why_ = NULL;                                                                             \
        DUET_ON(p) why_ = oracle_refutes(m, e);                                                              \
        CHECK(!why_, "on the %s: %s", place_name(p), why_);                                                  \
    } while (0)

static void unequal_layers(duet_place p)
{
    static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_F16, DUET_I8 };
    for (int t = 0; t < 4; t++) {
        const duet_dtype type = types[t];
        duet_matrix *x = random_matrix(&gen, type, 4, (int64_t[]){ 2, 3, 9, 8 }, -2, 2),
                    *w = random_matrix(&gen, type, 4, (int64_t[]){ 4, 3, 3, 3 }, -2, 2),
                    *b = random_matrix(&gen, type, 1, (int64_t[]){ 4 }, -2, 2),
                    *y = duet_new(type, 2, 4, 9, 8), *pooled = duet_new(type, 2, 4, 4, 4),
                    *half = duet_new(type, 2, 4, 5, 4);
        RIGHT(y, duet_conv2d(x, w, .pad = { 0, 1 }, .more = { 2, 0 }));
        RIGHT(y, duet_relu(duet_bias_add(duet_conv2d(x, w, .pad = { 0, 1 }, .more = { 2, 0 }), b)));
        RIGHT(pooled, duet_max_pool2d(duet_relu(duet_bias_add(duet_conv2d(x, w, .more = { 2, 2 }), b)),
                                      .window = { 2, 2 }));
        RIGHT(half, duet_convolve2d(x, w, .stride = { 2, 2 }, .pad = { 1, 0 }, .more = { 0, 1 }));
        duet_matrix *all[] = { x, w, b, y, pooled, half };
        for (int i = 0; i < 6; i++) duet_free(&all[i]);
    }
}

/* Does the plan contain a copy for a vendor? Padding that no window reads needs none. */
static bool copies(duet_matrix *y, duet_expr e)
{
    char text[4000] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    CHECK(f && duet_explain(f, y, e) == DUET_OK, "%s", duet_error());
    fclose(f);
    forget(e);
    return strstr(text, "of a padded copy") != NULL;
}

static void known_unequal(duet_place p)
{
    const float x[] = { 1, 2, 3, 4, 5, 6 }, w[] = { 1, 10, 100 }, same[] = { 321, 543, 65 };
    duet_matrix *X = duet_wrap((void *)(uintptr_t)x, DUET_F32, 1, 1, 6),
                *W = duet_wrap((void *)(uintptr_t)w, DUET_F32, 1, 1, 3), *y = duet_new(DUET_F32, 1, 1, 3),
                *sum = duet_new(DUET_F32), *row = duet_new(DUET_F32, 1, 1, 6);
    const int32_t n = duet_same_padding(6, 3, 2, 0);
    CHECK(n == 1 && duet_same_padding(6, 4, 0, 0) == 3 && duet_same_padding(7, 3, 2, 2) == 4 &&
              duet_same_padding(0, 3, 1, 1) == 0 && duet_same_padding(8, 1, 2, 1) == 0,
          "duet_same_padding is wrong");
    CHECK(duet_set_on(p, y, duet_conv1d(X, W, .stride = 2, .pad = n / 2, .more = n % 2)) == DUET_OK, "%s",
          duet_error());
    CHECK(!memcmp(duet_read(y), same, sizeof same),
          "the convolution of [1 .. 6] with [1 10 100] and stride 2 is wrong");
    DUET_ON(p)
    {
        CHECK(copies(y, duet_conv1d(X, W, .stride = 2, .more = 1)) == (p == DUET_GPU),
              "whether images are copied is wrong on the %s", place_name(p));
        CHECK(!copies(row, duet_conv1d(X, W, .pad = 1)), "images with equal padding are copied");
        duet_matrix *two = duet_new(DUET_F32, 1, 1, 2);
        CHECK(!copies(two, duet_conv1d(X, W, .stride = 3, .more = 2)),
              "images are copied for padding that no window reads");
        duet_free(&two);
    }
    CHECK(duet_set_on(p, sum, duet_sum(duet_conv1d(X, W))) == DUET_OK, "%s", duet_error());
    CHECK(*(const float *)duet_read(sum) == 1950, "the sum of the convolution is %g",
          (double)*(const float *)duet_read(sum));
    CHECK(duet_set_on(p, sum, duet_sum(duet_conv1d(X, W, .more = 1))) == DUET_OK, "%s", duet_error());
    CHECK(*(const float *)duet_read(sum) == 2015, "the sum of the convolution with .more = 1 is %g",
          (double)*(const float *)duet_read(sum));
    duet_expr e = duet_conv1d(X, W, .stride = 2, .more = 1);
    CHECK(strstr(text_of(e), ".more = 1"), "the option .more is not printed: %s", text_of(e));
    forget(e);
    duet_matrix *all[] = { X, W, y, sum, row };
    for (int i = 0; i < 5; i++) duet_free(&all[i]);
}

/* ---- plain arrays: the modes of SciPy ---- */

enum form { PLAIN, MULTI, DEEP };
static const char *const form_names[] = { "convolve", "convolve_multi", "convolve_deep" };

static duet_expr plain(enum form f, bool flips, duet_expr x, duet_expr y, duet_overlap part)
{
    typedef duet_expr of(duet_expr, duet_expr, duet_overlap);
    static of *const all[][2] = { { duet_correlate, duet_convolve },
                                  { duet_correlate_multi, duet_convolve_multi },
                                  { duet_correlate_deep, duet_convolve_deep } };
    return all[f][flips](x, y, part);
}

/* One element of the full convolution of x and y along the axes by definition: sum of x(j) y(k -
 * j). For correlation y is reversed first. */
static void sum_at(const array *x, const int64_t *nx, const array *y, const int64_t *ny, int axes,
                   const int64_t *k, bool flips, real *sum, real *size)
{
    for (int64_t i = 0; i < x->count; i++) {
        int64_t j[3], other = 0;
        bool inside = true;
        unravel(i, nx, axes, j);
        for (int a = 0; a < axes; a++) {
            const int64_t r = k[a] - j[a];
            inside &= r >= 0 && r < ny[a];
            other = other * ny[a] + (flips ? r : ny[a] - 1 - r);
        }
        if (inside) {
            *sum += x->v[i] * y->v[other];
            *size += fabsl(x->v[i] * y->v[other]);
        }
    }
}

static array part_of(const array *x, int64_t i, int64_t count)
{
    return (array){ count, x->v + i * count, x->size };
}

static void plain_image(const array *x, const int64_t *nx, const array *y, const int64_t *ny, int axes,
                        duet_overlap part, bool flips, array *want, int64_t at, const int64_t *out)
{
    for (int64_t o = 0; o < volume(out, axes); o++) {
        int64_t k[3];
        unravel(o, out, axes, k);
        for (int a = 0; a < axes; a++)
            if (part == DUET_OVERLAP_SAME) k[a] += (ny[a] - 1) / 2;
            else if (part != DUET_OVERLAP_FULL) k[a] += ny[a] - 1;
        sum_at(x, nx, y, ny, axes, k, flips, &want->v[at + o], &want->size[at + o]);
    }
}

static void check_plain(duet_place p, duet_dtype type, enum form f, const sizes *sx, const sizes *sy,
                        duet_overlap part, bool flips)
{
    const int axes = f == PLAIN ? sx->rank : 2, leads = sx->rank - axes, more = sy->rank - axes;
    const int64_t *nx = sx->size + leads, *ny = sy->size + more, images = volume(sx->size, leads),
                  kernels = volume(sy->size, more);
    sizes s = { .rank = leads };
    memcpy(s.size, sx->size, sizeof s.size);
    for (int a = 0; a < more && f == MULTI; a++) s.size[s.rank++] = sy->size[a];
    for (int a = 0; a < axes; a++) {
        int64_t n = nx[a] - ny[a] + 1;
        if (part == DUET_OVERLAP_FULL) n = nx[a] + ny[a] - 1;
        else if (part == DUET_OVERLAP_SAME) n = nx[a];
        s.size[s.rank++] = n > 0 ? n : 0;
    }
    const int64_t *out = s.size + s.rank - axes, each = volume(out, axes);
    held x = held_new(type, sx), y = held_new(type, sy);
    array a = array_of(x.m), b = array_of(y.m), want = array_new(volume(s.size, s.rank));
    for (int64_t i = 0; i < images; i++)
        for (int64_t j = 0; j < (f == MULTI ? kernels : 1); j++) {
            const array image = part_of(&a, i, volume(nx, axes)),
                        kernel = part_of(&b, f == DEEP ? i : j, volume(ny, axes));
            plain_image(&image, nx, &kernel, ny, axes, part, flips, &want,
                        (f == MULTI ? i * kernels + j : i) * each, out);
        }
    duet_matrix *got = evaluated(p, type, plain(f, flips, DUET(x.m), DUET(y.m), part), &s);
    compare(form_names[f], got, &want, (real)volume(ny, axes) + 1);
    duet_free(&got);
    held_free(&x);
    held_free(&y);
    array_free(&a);
    array_free(&b);
    array_free(&want);
}

static sizes drawn_sizes(int rank, int64_t low, int64_t high)
{
    sizes s = { .rank = rank };
    for (int a = 0; a < rank; a++) s.size[a] = drawn(low, high);
    return s;
}

static void plain_arrays(enum form f, int count)
{
    for (int i = 0; i < count; i++) {
        sizes x = drawn_sizes(f == PLAIN ? (int)drawn(1, 3) : (int)drawn(2, 4), 1, 7),
              y = drawn_sizes(f == MULTI ? (int)drawn(2, 4) : x.rank, 1, 5);
        for (int a = 0; a < x.rank - 2 && f != PLAIN; a++) x.size[a] = drawn(0, 3);
        for (int a = 0; a < y.rank - 2 && f != PLAIN; a++) y.size[a] = f == DEEP ? x.size[a] : drawn(0, 3);
        const bool flips = rng_chance(&gen, 50);
        if (!flips && y.rank >= 2)
            y.size[y.rank - 1] = y.size[y.rank - 1] % 2 ? y.size[y.rank - 1] + 1 : y.size[y.rank - 1];
        const duet_dtype type = rng_chance(&gen, 50) ? DUET_F32 : DUET_F64;
        for (int k = 0; k < places; k++)
            for (int part = DUET_OVERLAP_FULL; part <= DUET_OVERLAP_VALID; part++)
                check_plain(place[k], type, f, &x, &y, (duet_overlap)part, flips);
    }
    tap_point(form_names[f]);
}

/* ---- windows as columns ---- */

static void check_im2col(duet_place p, duet_dtype type, const geometry *g, int view)
{
    const int64_t c = g->c, window = volume(g->window, 2), outs = volume(g->out, 2),
                  size[] = { g->n, c * window, outs };
    const sizes s = sizes_with(2, g->n, c, g->image, 2);
    held x = held_new(type, &s);
    duet_matrix *whole = duet_new(type, size[2], size[1], size[0]),
                *to = view ? duet_transposed(whole) : duet_new_shape(type, 3, size);
    array a = array_of(x.m), want = array_new(volume(size, 3));
    for (int64_t i = 0; i < want.count; i++) {
        int64_t k[3];
        unravel(i, size, 3, k);
        const int64_t at = element_offset(g, k[2], k[1] % window);
        if (at < 0) want.v[i] = 0;
        else want.v[i] = a.v[(k[0] * c + k[1] / window) * volume(g->image, 2) + at];
    }
    DUET_ON(p)
    CHECK(duet_set(to, duet_im2col(x.m, .window = { at(g->window, 0), at(g->window, 1) },
                                   .stride = { at(g->stride, 0), at(g->stride, 1) },
                                   .pad = { at(g->pad, 0), at(g->pad, 1) },
                                   .dilation = { at(g->dilation, 0), at(g->dilation, 1) })) == DUET_OK,
          "%s", duet_error());
    compare("im2col", to, &want, 0);
    duet_free(&to);
    duet_free(&whole);
    held_free(&x);
    array_free(&a);
    array_free(&want);
}

static void im2col(int count)
{
    for (int i = 0; i < count; i++) {
        geometry g;
        if (draw_geometry(&g, 2, false))
            for (int k = 0; k < places; k++)
                check_im2col(place[k], i % 2 ? DUET_F32 : DUET_F64, &g, i % 3 == 0);
    }
    duet_matrix *m = duet_new(DUET_F32, 1, 1, 4, 4), *rows = duet_reshaped(m, 1, 4, 4);
    array a = array_of(m);
    float *p = duet_overwrite(m);
    for (int i = 0; i < 16; i++) p[i] = (float)i;
    for (int i = 0; i < 16; i++)
        a.v[i] = (real)(i / 4 % 2 + i / 8 * 4 + (i % 4 / 2) * 8 + i % 2 * 2); /* over itself */
    CHECK(duet_set(rows, duet_im2col(m, .window = { 2, 2 }, .stride = { 2, 2 })) == DUET_OK, "%s",
          duet_error());
    compare("im2col in place", rows, &a, 0);
    array_free(&a);
    duet_free(&rows);
    duet_free(&m);
    tap_point("im2col");
}

/* ---- inside formulas, and results calculated by hand ---- */

static void among_others(duet_place p)
{
    const float x[] = { 1, 2, 3, 4 }, w[] = { 1, 10 }, full[] = { 1, 12, 23, 34, 40 };
    duet_matrix *X = duet_wrap((void *)(uintptr_t)x, DUET_F32, 4),
                *W = duet_wrap((void *)(uintptr_t)w, DUET_F32, 2), *y = duet_new(DUET_F32, 5),
                *same = duet_new(DUET_F32, 4), *three = duet_expanded(X, 0),
                *signal = duet_expanded(three, 0), *f = duet_expanded(W, 0), *filter = duet_expanded(f, 0),
                *bias = duet_new(DUET_F32, 1), *z = duet_new(DUET_F32, 1, 1, 2);
    CHECK(duet_set_on(p, y, duet_convolve(X, W, DUET_OVERLAP_FULL)) == DUET_OK, "%s", duet_error());
    CHECK(!memcmp(duet_read(y), full, sizeof full), "the full convolution of [1 2 3 4] and [1 10] is wrong");
    CHECK(duet_set_on(p, same, duet_add(duet_mul(2, duet_convolve(duet_neg(X), W, DUET_OVERLAP_SAME)), 1)) ==
              DUET_OK,
          "%s", duet_error());
    for (int i = 0; i < 4; i++)
        CHECK(((const float *)duet_read(same))[i] == 1 - 2 * full[i],
              "1 - 2 times the first four results is wrong");
    CHECK(duet_set_on(p, bias, 0.5f) == DUET_OK, "%s", duet_error());
    CHECK(duet_set_on(p, z,
                      duet_max_pool1d(duet_relu(duet_bias_add(duet_conv1d(signal, filter, .pad = 1), bias)),
                                      .window = 2)) == DUET_OK,
          "%s", duet_error());
    CHECK(((const float *)duet_read(z))[0] == 21.5f && ((const float *)duet_read(z))[1] == 43.5f,
          "a layer of one axis gives %g and %g", (double)((const float *)duet_read(z))[0],
          (double)((const float *)duet_read(z))[1]);
    duet_matrix *all[] = { y, same, three, signal, f, filter, bias, z, X, W };
    for (int i = 0; i < 10; i++) duet_free(&all[i]);
}

/* Errors, and words of their texts. */
static void fails(duet_expr e, duet_status s, const char *a, const char *b)
{
    CHECK(duet_expr_status(e) == s && strstr(duet_error(), a) && strstr(duet_error(), b), "%d: %s",
          (int)duet_expr_status(e), duet_error());
    forget(e);
}

static void refused(void)
{
    duet_matrix *s = duet_new(DUET_F32, 1, 2, 4), *v = duet_new(DUET_F32, 1, 2, 4, 4, 4),
                *m = duet_new(DUET_F32, 4, 4), *whole = duet_new(DUET_I32, 4, 4),
                *large = duet_new(DUET_F32, 1, 2, 5), *none = duet_new(DUET_F32, 0, 4),
                *to = duet_new(DUET_F32, 1, 4, 9), *im = duet_new(DUET_F32, 1, 1, 4, 4);
    fails(duet_conv1d(m, s), DUET_BAD_SHAPE, "duet_conv1d(x: f32[4,4], filters: f32[1,2,4])",
          "x must have 3 axes, not 2");
    fails(duet_conv1d(s, large), DUET_BAD_SHAPE, "duet_conv1d",
          "along axis 2 filters (extent 5) must not be larger than x with its padding (4)");
    fails(duet_conv1d(s, s, .stride = -1), DUET_BAD_ARGUMENT, "duet_conv1d",
          "stride (-1) must not be negative");
    fails(duet_conv3d(v, s), DUET_BAD_SHAPE, "duet_conv3d", "filters must have 5 axes, not 3");
    fails(duet_conv3d(v, v, .dilation = { 1, 2, 1 }), DUET_BAD_SHAPE, "duet_conv3d",
          "along axis 3 filters (extent 7) must not be larger than x with its padding (4)");
    fails(duet_conv3d(v, v, .pad = { 0, 0, -2 }), DUET_BAD_SHAPE, "duet_conv3d",
          "along axis 4 filters (extent 4) must not be larger than x with its padding (0)");
    fails(duet_conv1d(s, s, .more = -1), DUET_BAD_SHAPE, "duet_conv1d",
          "along axis 2 filters (extent 4) must not be larger than x with its padding (3)");
    fails(duet_conv3d_filter_grad(v, v, .more = { 0, -1, 0 }), DUET_BAD_ARGUMENT, "duet_conv3d_filter_grad",
          "more ({0, -1, 0}) must not be negative");
    fails(duet_conv3d_input_grad(v, v, .size = { 1, 1, -1 }), DUET_BAD_ARGUMENT, "duet_conv3d_input_grad",
          "size ({1, 1, -1}) must not be negative");
    fails(duet_max_pool1d(s, .window = 5), DUET_BAD_SHAPE, "duet_max_pool1d(x: f32[1,2,4])",
          "the window (5)");
    fails(duet_avg_pool3d_grad(v, .window = { 1, 1, 1 }, .pad = { 0, 1, 0 }), DUET_BAD_ARGUMENT,
          "duet_avg_pool3d_grad", "pad ({0, 1, 0}) must be less than the window");
    fails(duet_upsample1d(s, -2), DUET_BAD_ARGUMENT, "duet_upsample1d", "scale (-2) must not be negative");
    fails(duet_convolve(m, s, DUET_OVERLAP_SAME), DUET_BAD_SHAPE, "duet_convolve(x: f32[4,4], y: f32[1,2,4])",
          "x and y must have the same number of axes, not 2 and 3");
    fails(duet_convolve(v, v, DUET_OVERLAP_SAME), DUET_BAD_SHAPE, "duet_convolve",
          "x must have 1 to 3 axes, not 5");
    fails(duet_convolve(m, none, DUET_OVERLAP_SAME), DUET_BAD_SHAPE, "duet_convolve", "y must not be empty");
    fails(duet_convolve(m, m, (duet_overlap)3), DUET_BAD_ARGUMENT, "duet_convolve",
          "overlap (3) must be DUET_OVERLAP_FULL");
    fails(duet_convolve(m, whole, DUET_OVERLAP_SAME), DUET_BAD_TYPE,
          "duet_convolve(x: f32[4,4], y: i32[4,4])", "no common element type");
    fails(duet_correlate_deep(s, large, DUET_OVERLAP_SAME), DUET_OK, "", "");
    fails(duet_correlate_deep(s, m, DUET_OVERLAP_SAME), DUET_BAD_SHAPE, "duet_correlate_deep",
          "x and y must have the same number of axes, not 3 and 2");
    fails(duet_convolve_multi(none, m, DUET_OVERLAP_SAME), DUET_BAD_SHAPE, "duet_convolve_multi",
          "the last two axes of x must not be empty");
    fails(duet_p_max_pool_h(im, 3, 2), DUET_BAD_SHAPE, "duet_p_max_pool_h(x: f32[1,1,4,4])",
          "the sizes of the last two axes of x must be multiples of the window");
    CHECK(duet_set(to, duet_im2col(im, .window = { 2, 2 })) == DUET_OK, "%s", duet_error());
    fails(duet_im2col(im, .window = { 5, 2 }), DUET_BAD_SHAPE, "duet_im2col(x: f32[1,1,4,4])",
          "the window reaches over 5 elements along axis 2; the padded image has 4");
    fails(duet_im2col(im), DUET_BAD_ARGUMENT, "duet_im2col", "window must be positive");
    fails(duet_im2col(m, .window = { 2, 2 }), DUET_BAD_SHAPE, "duet_im2col", "x must have 4 axes");
    CHECK(duet_pad_for(DUET_OVERLAP_SAME, 3, 2) == 2 && duet_pad_for(DUET_OVERLAP_FULL, 3, 0) == 2 &&
              duet_pad_for(DUET_OVERLAP_VALID, 3, 0) == 0,
          "duet_pad_for is wrong");
    duet_matrix *all[] = { s, v, m, whole, large, none, to, im };
    for (int i = 0; i < 8; i++) duet_free(&all[i]);
    tap_point("invalid arguments");
}

int main(int argc, char **argv)
{
    const bool few = is_quick(argc, argv);
    gen = rng_new(20261122);
    usual_im2col_bytes = im2col_most_bytes;
    in_little_memory(); /* before others use more memory */
    places = list_places(place);
    for (int unequal = 0; unequal < 2; unequal++) {
        convolutions(1, unequal, few ? 60 : 200);
        convolutions(2, unequal, few ? 60 : 160);
        convolutions(3, unequal, few ? 40 : 120);
    }
    far_apart();
    in_steps_of_one(few ? 40 : 160);
#ifdef FAKE_CUDA
    faster_algorithm();
#endif
    for (int k = 0; k < places; k++) {
        unequal_layers(place[k]);
        known_unequal(place[k]);
    }
    tap_point("asymmetric padding (SAME of TensorFlow) and its plan");
    for (int f = PLAIN; f <= DEEP; f++) plain_arrays((enum form)f, few ? 40 : 120);
    im2col(few ? 30 : 80);
    for (int k = 0; k < places; k++) among_others(place[k]);
    tap_point("convolutions inside larger formulas");
    refused();
    return tap_end();
}
