/* test_emulated.c - products and convolutions in DUET_MATH_SPLIT with the shapes that our emulated
 * kernels support: every tile, every number of thread blocks for a tile, edges, views, epilogues,
 * infinities and NaN. Against sums in double, within the bound of docs/semantics.md.
 *
 *     test_emulated [cases] [seed] */
#define _GNU_SOURCE
#include "common.h"
#include <math.h>

static rng gen;
static int64_t within(int64_t low, int64_t high) { return low + rng_below(&gen, high - low + 1); }

enum { LOAD, RELU, SIGMOID, TANH, ACTS }; /* the activation after a bias; LOAD: neither */

static double through(int act, double x)
{
    if (act == RELU) return fmax(x, 0);
    if (act == SIGMOID) return 1 / (1 + exp(-x));
    if (act == TANH) return tanh(x);
    return x;
}

static duet_expr formula(int act, duet_expr product, duet_matrix *bias)
{
    switch (act) {
    case RELU: return duet_relu(duet_bias_add(product, bias));
    case SIGMOID: return duet_sigmoid(duet_bias_add(product, bias));
    case TANH: return duet_tanh(duet_bias_add(product, bias));
    default: return product;
    }
}

/* A matrix, or a part of a larger one, at an address aligned to 16 bytes; NaN surrounds it. */
typedef struct field {
    duet_matrix *all, *m;
    int64_t line;
    const float *p; /* of the part, after it was read */
} field;

static field new_field(int64_t rows, int64_t columns, int64_t beside)
{
    field f = { .all = duet_new(DUET_F32, rows, columns + 2 * beside), .line = columns + 2 * beside };
    if (beside) f.m = duet_submatrix(f.all, 0, beside, rows, columns);
    else f.m = f.all;
    return f;
}

static void fill(field *f, double low, double high)
{
    const bool part = f->m != f->all;
    float *p = duet_overwrite(f->all);
    const int64_t rows = duet_size(f->m, 0), columns = duet_size(f->m, 1), beside = (f->line - columns) / 2;
    for (int64_t i = 0; p && part && i < rows * f->line; i++) p[i] = NAN;
    for (int64_t i = 0; p && i < rows * columns; i++)
        p[i / columns * f->line + beside + i % columns] = (float)rng_real(&gen, low, high);
}

static void read_field(field *f)
{
    const float *p = duet_read(f->all);
    if (p) f->p = p + (f->line - duet_size(f->m, 1)) / 2;
    else f->p = NULL;
    CHECK(p, "%s", duet_error());
}

static void free_field(field *f)
{
    if (f->m != f->all) duet_free(&f->m);
    duet_free(&f->all);
}

/* ---- products ------------------------------------------------------------------------------------------ */

typedef struct product {
    int64_t m, k, n;
    int act;
    field a, b, out;
    duet_matrix *bias;
    double low; /* elements are between low and 1 */
} product;

static bool goes_by_parts(const product *t)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    duet_expr e = formula(t->act, duet_matmul(t->a.m, t->b.m), t->bias);
    CHECK(out && duet_explain(out, t->out.m, e) == DUET_OK, "%s", duet_error());
    if (out) fclose(out);
    const bool by_parts = text && strstr(text, "with emulated f32");
    forget(e);
    free(text);
    return by_parts;
}

static bool is_row_bad(const product *t, int64_t i)
{
    for (int64_t k = 0; k < t->k; k++)
        if (!isfinite(t->a.p[i * t->a.line + k])) return true;
    return false;
}

/* |error| <= (k / 64 + 96) u sum |a| |b| + k 2^-35 A B, and the error of the activation. */
static void compare(const product *t)
{
    const float *bias = duet_read(t->bias), largest_b = 1;
    double worst = 0;
    for (int64_t i = 0; i < t->m; i++) {
        const bool bad = is_row_bad(t, i);
        for (int64_t j = 0; j < t->n && !bad; j++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < t->k; k++) {
                const double x = t->a.p[i * t->a.line + k], y = t->b.p[k * t->b.line + j];
                sum += x * y;
                size += fabs(x * y);
            }
            const double z = t->act ? sum + bias[j] : sum, got = t->out.p[i * t->out.line + j],
                         want = through(t->act, z);
            const double bound = ((double)t->k / 64 + 96) * 0x1p-24 * (size + fabs(z)) +
                                 (double)t->k * 0x1p-35 * largest_b + 0x1p-21;
            worst = fmax(worst, fabs(got - want) / bound);
            if (!CHECK(fabs(got - want) <= bound,
                       "%lld x %lld x %lld, act %d: [%lld][%lld] is %.9g, not %.9g, bound %.3g",
                       (long long)t->m, (long long)t->k, (long long)t->n, t->act, (long long)i, (long long)j,
                       got, want, bound))
                return;
        }
    }
}

enum { MAYBE, SURELY }; /* whether the emulated kernels must be used */

static void run_product(product *t, int by_parts, duet_place where)
{
    DUET_ON(where) DUET_MATH(DUET_MATH_SPLIT)
    {
        if (where == DUET_GPU && by_parts == SURELY)
            CHECK(goes_by_parts(t), "the product %lld x %lld x %lld is not split", (long long)t->m,
                  (long long)t->k, (long long)t->n);
        CHECK(duet_set(t->out.m, formula(t->act, duet_matmul(t->a.m, t->b.m), t->bias)) == DUET_OK, "%s",
              duet_error());
    }
    read_field(&t->a);
    read_field(&t->b);
    read_field(&t->out);
    compare(t);
}

#define FEW_ROWS 32

/* b has aligned lines if n is a multiple of four; with few rows, other products are strict. */
static product new_product(int64_t m, int64_t k, int64_t n)
{
    const int64_t beside = n % 4 == 0 ? within(0, 1) * 4 : within(0, 2);
    product t = { .m = m, .k = k, .n = n, .act = (int)within(0, ACTS - 1), .low = within(0, 1) ? -1 : 0 };
    t.a = new_field(m, k, within(0, 1) * 4);
    t.b = new_field(k, n, beside);
    t.out = new_field(m, n, within(0, 2));
    t.bias = duet_new(DUET_F32, n);
    fill(&t.a, t.low, 1);
    fill(&t.b, t.low, 1);
    random_fill(&gen, t.bias, -1, 1);
    return t;
}

static void free_product(product *t)
{
    free_field(&t->a);
    free_field(&t->b);
    free_field(&t->out);
    duet_free(&t->bias);
}

static void one_product(int64_t m, int64_t k, int64_t n, int by_parts, duet_place where)
{
    product t = new_product(m, k, n);
    run_product(&t, by_parts, where);
    free_product(&t);
}

static void products(int cases, duet_place where)
{
#ifdef FAKE_CUDA
    const int64_t large = 140, deep = 1536;
#else
    const int64_t large = 700, deep = 2300;
#endif
    for (int i = 0; i < cases; i++) {
        if (i % 2) one_product(within(33, 128), within(384, deep / 4) * 4, within(17, large), SURELY, where);
        else one_product(within(129, large), within(16, 200) * 4, within(17, large), SURELY, where);
    }
    tap_point("products of random shapes");
}

/* Products with a long inner axis are emulated whatever its length; of other shapes, addresses and
 * lines, some are. */
static void few_rows(int cases, duet_place where)
{
#ifdef FAKE_CUDA
    const int64_t least = 64, deep = 300, large = 140;
#else
    const int64_t least = 1024, deep = 2300, large = 1024;
#endif
    for (int i = 0; i < cases; i++) {
        one_product(within(3, FEW_ROWS), within(least / 4, deep / 4) * 4, within(5, large / 4) * 4, SURELY,
                    where);
        one_product(within(2, 128), within(1, 300), within(5, 140), MAYBE, where);
    }
    one_product(100, least, 1000, SURELY, where);
#ifndef FAKE_CUDA
    static const int64_t one_part[][3] = { { 17, 4, 5340 },
                                           { 41, 4, 11080 },
                                           { 100, 64, 4000 },
                                           { 128, 512, 2100 } },
                         two_parts[][3] = { { 3, 4, 11640 },
                                            { 57, 4, 9260 },
                                            { 128, 300, 3000 } }; /* on a card with 132 multiprocessors */
    for (int i = 0; i < 4; i++) one_product(one_part[i][0], one_part[i][1], one_part[i][2], MAYBE, where);
    for (int i = 0; i < 3; i++) one_product(two_parts[i][0], two_parts[i][1], two_parts[i][2], MAYBE, where);
#endif
    product t = new_product(100, least, 200);
    for (int i = 0; i < 2; i++)
        run_product(&t, SURELY, where); /* the second time no kernel writes its weights */
    free_product(&t);
    tap_point("products of few rows");
}

/* There are more tiles than thread blocks, and fewer units than stages. Runs twice, because the
 * second time the weights are packed already. */
static void many_tiles(duet_place where)
{
#ifdef FAKE_CUDA
    const int64_t m = 140, n = 90;
#else
    const int64_t m = 2100, n = 1400;
#endif
    for (int64_t k = 64; k <= 256; k += 64) {
        product t = new_product(m, k, n);
        for (int i = 0; i < 2; i++) run_product(&t, SURELY, where);
        free_product(&t);
    }
    tap_point("many tiles of a short inner axis");
}

/* An infinity or NaN affects only its row; the scale is that of the other elements. */
static void one_not_numbers(int64_t m, int64_t k, duet_place where)
{
    product t = new_product(m, k, 40);
    float *p = duet_update(t.a.all);
    if (CHECK(p, "%s", duet_error())) {
        p += (t.a.line - t.k) / 2;
        p[3 * t.a.line + 200] = INFINITY;
        p[(m - 1) * t.a.line] = NAN;
        p[m / 2 * t.a.line + k - 1] = -INFINITY;
    }
    run_product(&t, SURELY, where);
    for (int64_t j = 0; j < t.n && t.out.p && !t.act; j++)
        CHECK(!isfinite(t.out.p[3 * t.out.line + j]) && isnan(t.out.p[(m - 1) * t.out.line + j]),
              "element %lld is finite", (long long)j);
    free_product(&t);
}

static void not_numbers(duet_place where)
{
    one_not_numbers(150, 256, where);
    one_not_numbers(12, 1024, where);
    tap_point("NaN and infinity stay in their row");
}

/* Magnitudes far from 1, and zeros alone. With few rows, parts of an element below 2^-136 are lost. */
static void numbers_of_sizes(int64_t m, int64_t k, int64_t n, duet_place where)
{
    static const double size[][2] = { { 1e-30, 1e-5 }, { 1e20, 1e-10 }, { 1e-40, 1 },  { 0, 1 },
                                      { 1e18, 1e18 },  { 1e35, 1e-1 },  { 1e-2, 1e37 } };
    for (size_t s = 0; s < sizeof size / sizeof *size; s++) {
        product t = new_product(m, k, n);
        t.act = LOAD;
        const double lost = m <= FEW_ROWS ? 0x1p-136 * (size[s][0] + size[s][1]) : 0;
        fill(&t.a, -size[s][0], size[s][0]);
        fill(&t.b, -size[s][1], size[s][1]);
        DUET_ON(where)
        DUET_MATH(DUET_MATH_SPLIT)
        CHECK(duet_set(t.out.m, duet_matmul(t.a.m, t.b.m)) == DUET_OK, "%s", duet_error());
        read_field(&t.a);
        read_field(&t.b);
        read_field(&t.out);
        for (int64_t e = 0; e < t.m * t.n && t.out.p; e++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (double)t.a.p[e / t.n * t.a.line + l] * (double)t.b.p[l * t.b.line + e % t.n];
            const double bound = (double)k * (0x1p-20 * size[s][0] * size[s][1] + lost) + 0x1p-149;
            CHECK(fabs(t.out.p[e / t.n * t.out.line + e % t.n] - sum) <= bound,
                  "of %g and %g: [%lld] is %g, not %g", size[s][0], size[s][1], (long long)e,
                  (double)t.out.p[e / t.n * t.out.line + e % t.n], sum);
        }
        free_product(&t);
    }
}

static void sizes_of_numbers(duet_place where)
{
    numbers_of_sizes(140, 128, 33, where);
    numbers_of_sizes(12, 1024, 36, where);
    tap_point("elements of all magnitudes");
}

/* Rows with different magnitudes, which grow or shrink along the inner axis: each is as exact as if
 * it were alone. */
static void rows_of_all_sizes(duet_place where)
{
    product t = new_product(150, 1000, 70);
    float *p = duet_overwrite(t.a.all), largest[150] = { 0 };
    fill(&t.b, -1, 1);
    for (int64_t i = 0; p && i < t.m; i++) {
        const double size = rng_real(&gen, -40, 40), growth = rng_real(&gen, -40, 40);
        float *row = p + (t.a.line - t.k) / 2 + i * t.a.line;
        for (int64_t k = 0; k < t.k; k++) {
            row[k] = (float)(rng_real(&gen, -1, 1) * exp2(size + growth * (double)k / (double)t.k));
            largest[i] = fmaxf(largest[i], fabsf(row[k]));
        }
    }
    DUET_ON(where)
    DUET_MATH(DUET_MATH_SPLIT)
    CHECK(duet_set(t.out.m, duet_matmul(t.a.m, t.b.m)) == DUET_OK, "%s", duet_error());
    read_field(&t.a);
    read_field(&t.b);
    read_field(&t.out);
    for (int64_t e = 0; e < t.m * t.n && t.out.p; e++) {
        const int64_t i = e / t.n, j = e % t.n;
        double sum = 0, size = 0;
        for (int64_t k = 0; k < t.k; k++) {
            const double x = (double)t.a.p[i * t.a.line + k] * (double)t.b.p[k * t.b.line + j];
            sum += x;
            size += fabs(x);
        }
        const double got = t.out.p[i * t.out.line + j];
        const double bound = ((double)t.k / 64 + 96) * 0x1p-24 * size + (double)t.k * 0x1p-35 * largest[i];
        CHECK(fabs(got - sum) <= bound, "[%lld][%lld] is %g, not %g, bound %g", (long long)i, (long long)j,
              got, sum, bound);
    }
    free_product(&t);
    tap_point("rows of all magnitudes");
}

/* ---- convolutions -------------------------------------------------------------------------------------- */

typedef struct images {
    int64_t n, c, h, w, m;
    int pad;
    bool pooled;
} images;

static double at_image(const images *t, const float *x, int64_t n, int64_t c, int64_t i, int64_t j)
{
    if (i < 0 || j < 0 || i >= t->h || j >= t->w) return 0;
    return (double)x[((n * t->c + c) * t->h + i) * t->w + j];
}

/* One sum, and the sum of the absolute values of its terms. */
static double convolved(const images *t, const float *x, const float *w, int64_t n, int64_t m, int64_t i,
                        int64_t j, double *size)
{
    double sum = 0;
    for (int64_t c = 0; c < t->c; c++)
        for (int k = 0; k < 9; k++) {
            const double p = at_image(t, x, n, c, i - t->pad + k / 3, j - t->pad + k % 3) *
                             (double)w[(m * t->c + c) * 9 + k];
            sum += p;
            *size += fabs(p);
        }
    return sum;
}

static void compare_images(const images *t, duet_matrix *x, duet_matrix *w, duet_matrix *bias, duet_matrix *y)
{
    const float *px = duet_read(x), *pw = duet_read(w), *pb = duet_read(bias), *py = duet_read(y);
    const int64_t h = duet_size(y, 2), v = duet_size(y, 3);
    const int by = t->pooled ? 2 : 1;
    if (!CHECK(px && pw && pb && py, "%s", duet_error())) return;
    for (int64_t e = 0; e < t->n * t->m * h * v; e++) {
        const int64_t j = e % v, i = e / v % h, m = e / v / h % t->m, n = e / v / h / t->m;
        double most = -INFINITY, size = 1;
        for (int k = 0; k < by * by; k++)
            most = fmax(most, convolved(t, px, pw, n, m, by * i + k / 2, by * j + k % 2, &size));
        const double want = fmax(most + (double)pb[m], 0), bound = (double)(9 * t->c + 64) * 0x1p-24 * size;
        if (!CHECK(fabs(py[e] - want) <= bound,
                   "%lld images of %lld x %lld x %lld to %lld, pad %d%s: [%lld] is %.9g, not %.9g",
                   (long long)t->n, (long long)t->c, (long long)t->h, (long long)t->w, (long long)t->m,
                   t->pad, t->pooled ? ", pooled" : "", (long long)e, (double)py[e], want))
            return;
    }
}

static void one_convolution(const images *t, duet_place where)
{
    duet_matrix *x = duet_new(DUET_F32, t->n, t->c, t->h, t->w), *w = duet_new(DUET_F32, t->m, t->c, 3, 3);
    duet_matrix *bias = duet_new(DUET_F32, t->m);
    const int64_t h = t->h + 2 * t->pad - 2, v = t->w + 2 * t->pad - 2, by = t->pooled ? 2 : 1;
    duet_matrix *y = duet_new(DUET_F32, t->n, t->m, h / by, v / by);
    random_fill(&gen, x, -1, 1);
    random_fill(&gen, w, -1, 1);
    random_fill(&gen, bias, -1, 1);
    duet_expr e = duet_relu(duet_bias_add(duet_conv2d(x, w, .pad = { t->pad, t->pad }), bias));
    if (t->pooled) e = duet_max_pool2d(e, .window = { 2, 2 });
    DUET_ON(where) DUET_MATH(DUET_MATH_SPLIT) CHECK(duet_set(y, e) == DUET_OK, "%s", duet_error());
    compare_images(t, x, w, bias, y);
    duet_free(&x);
    duet_free(&w);
    duet_free(&bias);
    duet_free(&y);
}

static void convolutions(int cases, duet_place where)
{
#ifdef FAKE_CUDA
    const int64_t images_most = 3, side = 24;
#else
    const int64_t images_most = 9, side = 70;
#endif
    for (int i = 0; i < cases; i++) {
        images t = { within(1, images_most), within(1, 16),     within(4, side), within(4, side),
                     within(1, 40),          (int)within(0, 1), within(0, 1) };
        if (i % 2) t.w -= t.w % 4; /* lines of 16 bytes */
        one_convolution(&t, where);
    }
#ifndef FAKE_CUDA
    static const images rounds[] = {
        { 1500, 1, 16, 16, 16, 1, true }, { 4096, 3, 16, 16, 8, 1, true },  { 1500, 3, 8, 8, 5, 1, false },
        { 1500, 6, 8, 8, 20, 1, false },  { 1500, 12, 8, 8, 20, 1, false }, { 600, 16, 16, 16, 32, 1, true },
        { 700, 2, 3, 4, 17, 0, false },   { 5, 3, 1, 4, 16, 1, false },     { 5, 3, 2, 4, 16, 1, true },
        { 3, 1, 3, 3, 1, 0, false }
    }; /* thread blocks compute several regions */
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) one_convolution(&rounds[i], where);
#endif
    tap_point("convolutions of random shapes");
}

int main(int argc, char **argv)
{
    duet_place place[2];
    const int places = list_places(place), cases = trial_count(argc, argv, 4, 24);
    gen = rng_new(argc > 2 ? strtoull(argv[2], NULL, 0) : 1);
    if (places < 2) {
        printf("ok %d - split on the GPU # SKIP there is no GPU\n", ++tap_points);
        return tap_end();
    }
    products(cases, DUET_GPU);
    few_rows(cases, DUET_GPU);
    many_tiles(DUET_GPU);
    not_numbers(DUET_GPU);
    sizes_of_numbers(DUET_GPU);
    rows_of_all_sizes(DUET_GPU);
    convolutions(cases, DUET_GPU);
    return tap_end();
}
