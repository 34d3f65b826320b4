/* test_pools.c - pooling of one and three axes, its gradients, upsampling, and probabilistic max
 * pooling, against their definitions: random sizes, options, types and views on every machine.
 * Maxima and copies are exact. The error of a sum of t numbers, divided, is at most t + 3
 * roundings. */
#include "convs.h"
#include "each_type.h"

static duet_place place[2];
static int places;

static int64_t drawn(int64_t low, int64_t high) { return low + rng_below(&gen, high - low + 1); }
static int32_t at(const int64_t *x, int a) { return (int32_t)x[a]; }
#define ALL3(x)                                                                                              \
    {                                                                                                        \
        at(g->x, 0), at(g->x, 1), at(g->x, 2)                                                                \
    }

/* Each channel separately: m and groups are not used. */
static bool draw_geometry(geometry *g, int axes)
{
    *g = (geometry){ .axes = axes, .n = drawn(0, 3), .c = drawn(1, 3) };
    for (int a = 0; a < axes; a++) {
        g->window[a] = drawn(1, 3);
        g->stride[a] = drawn(1, 3);
        g->pad[a] = drawn(0, g->window[a] - 1);
        g->dilation[a] = 1;
        g->image[a] = drawn(1, axes == 1 ? 40 : 7);
        if (g->image[a] + 2 * g->pad[a] < g->window[a]) return false;
        g->out[a] = (g->image[a] + 2 * g->pad[a] - g->window[a]) / g->stride[a] + 1;
    }
    return true;
}

enum what { MOST, MEAN, MOST_BACK, MEAN_BACK, UPSAMPLED, WHATS };
static const char *const names[] = { "max_pool", "avg_pool", "max_pool_grad", "avg_pool_grad", "upsample" };

static duet_expr formula_of_signals(const geometry *g, enum what k, duet_expr x, duet_expr dy)
{
    const duet_pool1 o = { at(g->window, 0), at(g->stride, 0), at(g->pad, 0) };
    const duet_pool1_grad back = { at(g->window, 0), at(g->stride, 0), at(g->pad, 0), at(g->image, 0) };
    switch (k) {
    case MOST: return (duet_max_pool1d)(x, &o);
    case MEAN: return (duet_avg_pool1d)(x, &o);
    case MOST_BACK: return (duet_max_pool1d_grad)(x, dy, &o);
    case MEAN_BACK: return (duet_avg_pool1d_grad)(dy, &back);
    default: return (duet_upsample1d)(x, &(duet_scale1){ at(g->window, 0) });
    }
}

static duet_expr formula_of_volumes(const geometry *g, enum what k, duet_expr x, duet_expr dy)
{
    const duet_pool3 o = { ALL3(window), ALL3(stride), ALL3(pad) };
    const duet_pool3_grad back = { ALL3(window), ALL3(stride), ALL3(pad), ALL3(image) };
    switch (k) {
    case MOST: return (duet_max_pool3d)(x, &o);
    case MEAN: return (duet_avg_pool3d)(x, &o);
    case MOST_BACK: return (duet_max_pool3d_grad)(x, dy, &o);
    case MEAN_BACK: return (duet_avg_pool3d_grad)(dy, &back);
    default: return (duet_upsample3d)(x, &(duet_scale3){ ALL3(window) });
    }
}

/* One window of one channel: its result, and the element that receives its gradient, which is the
 * first NaN or else the first maximum. */
static void pool_window(const geometry *g, enum what k, const real *x, int64_t o, real dy, real *y,
                        real *y_size, real *dx, real *dx_size)
{
    const int64_t window = volume(g->window, g->axes);
    int64_t best = -1;
    real sum = 0, size = 0;
    for (int64_t u = 0; u < window; u++) {
        const int64_t i = element_offset(g, o, u);
        if (i < 0) continue;
        if (k == MEAN_BACK) {
            dx[i] += dy / (real)window;
            dx_size[i] += fabsl(dy) / (real)window;
        } else {
            sum += x[i];
            size += fabsl(x[i]);
        }
        if (k != MEAN_BACK && (best < 0 || x[i] > x[best] || (isnan(x[i]) && !isnan(x[best])))) best = i;
    }
    if (k == MOST) {
        *y = x[best];
        *y_size = 0;
    }
    if (k == MEAN) {
        *y = sum / (real)window;
        *y_size = size / (real)window;
    }
    if (k == MOST_BACK) {
        dx[best] += dy;
        dx_size[best] += fabsl(dy);
    }
}

static void repeat(const geometry *g, const real *x, real *y, const int64_t *size)
{
    for (int64_t i = 0; i < volume(size, g->axes); i++) {
        int64_t k[3], from = 0;
        unravel(i, size, g->axes, k);
        for (int a = 0; a < g->axes; a++) from = from * g->image[a] + k[a] / g->window[a];
        y[i] = x[from];
    }
}

static void meant(const geometry *g, enum what k, const array *x, const array *dy, array *want,
                  const int64_t *size)
{
    const int64_t image = volume(g->image, g->axes), outs = volume(g->out, g->axes),
                  each = volume(size, g->axes);
    const bool back = k == MOST_BACK || k == MEAN_BACK;
    for (int64_t p = 0; p < g->n * g->c; p++) {
        real *to = want->v + p * each, *to_size = want->size + p * each;
        if (k == UPSAMPLED) repeat(g, x->v + p * image, to, size);
        for (int64_t o = 0; o < outs && k != UPSAMPLED; o++)
            pool_window(g, k, x->v + p * image, o, back ? dy->v[p * outs + o] : 0, to + o, to_size + o, to,
                        to_size);
    }
}

/* The sum of dy times the results of pooling x. */
static real weighted(const geometry *g, enum what k, const array *x, const array *dy)
{
    array y = array_new(dy->count);
    real sum = 0;
    meant(g, k, x, dy, &y, g->out);
    for (int64_t i = 0; i < y.count; i++) sum += y.v[i] * dy->v[i];
    array_free(&y);
    return sum;
}

/* Does the gradient equal the difference quotient of that sum? The function is linear for such
 * short steps, if elements differ. */
static void check_slope(const geometry *g, enum what back, array *x, const array *dy, const array *want)
{
    const enum what k = back == MOST_BACK ? MOST : MEAN;
    const real h = 0x1p-30L;
    for (int64_t i = 0; i < x->count; i++) {
        const real was = x->v[i];
        x->v[i] = was + h;
        const real up = weighted(g, k, x, dy);
        x->v[i] = was - h;
        const real slope = (up - weighted(g, k, x, dy)) / (2 * h);
        x->v[i] = was;
        CHECK(fabsl(slope - want->v[i]) <= 0x1p-24L * (1 + want->size[i]),
              "%s, element %lld: %Lg, by differences %Lg", names[back], (long long)i, want->v[i], slope);
    }
}

/* Some elements are equal, some NaN, some at the ends. */
static void make_hard(duet_matrix *m)
{
    char *p = duet_update(m);
    static const double hard[] = { NAN, INFINITY, -INFINITY, 0.5, 0.5, 0.5, 0.0, -0.0 };
    for (int64_t i = 0; p && i < duet_count(m); i++)
        if (rng_chance(&gen, 40)) element_put(duet_type(m), p, i, hard[rng_below(&gen, 8)]);
}

static void check_one(duet_place p, duet_dtype type, const geometry *g, enum what k, bool hard)
{
    const sizes sx = sizes_with(2, g->n, g->c, g->image, g->axes),
                sy = sizes_with(2, g->n, g->c, g->out, g->axes);
    sizes s = k == MOST || k == MEAN ? sy : sx;
    for (int a = 0; a < g->axes && k == UPSAMPLED; a++) s.size[2 + a] *= g->window[a];
    held x = held_new(type, &sx), dy = held_new(type, &sy);
    if (hard && k != MEAN) make_hard(x.whole);
    array a = array_of(x.m), b = array_of(dy.m), want = array_new(volume(s.size, s.rank));
    meant(g, k, &a, &b, &want, s.size + 2);
    if (!hard && (k == MOST_BACK || k == MEAN_BACK)) check_slope(g, k, &a, &b, &want);
    duet_matrix *got =
        evaluated(p, type,
                  (g->axes == 1 ? formula_of_signals : formula_of_volumes)(g, k, DUET(x.m), DUET(dy.m)), &s);
    compare(names[k], got, &want, k == MOST || k == UPSAMPLED ? 0 : (real)volume(g->window, g->axes) + 3);
    duet_free(&got);
    held_free(&x);
    held_free(&dy);
    array_free(&a);
    array_free(&b);
    array_free(&want);
}

static void pooling(int axes, int count)
{
    for (int i = 0; i < count; i++) {
        geometry g;
        if (!draw_geometry(&g, axes)) continue;
        for (int p = 0; p < places; p++)
            for (int k = MOST; k < WHATS; k++)
                check_one(place[p], i % 2 ? DUET_F32 : DUET_F64, &g, (enum what)k, i % 3 == 0);
    }
    tap_point(axes == 1 ? "pooling of signals" : "pooling of volumes");
}

/* Equal bits on both machines. */
static void same_bits_everywhere(int count)
{
    for (int i = 0; i < count && places > 1; i++) {
        geometry g;
        if (!draw_geometry(&g, 3)) continue;
        const sizes sx = sizes_with(2, g.n, g.c, g.image, 3), sy = sizes_with(2, g.n, g.c, g.out, 3);
        held x = held_new(DUET_F32, &sx), dy = held_new(DUET_F32, &sy);
        for (int k = MOST; k < WHATS; k++) {
            duet_expr e[2];
            for (int p = 0; p < 2; p++) e[p] = formula_of_volumes(&g, (enum what)k, DUET(x.m), DUET(dy.m));
            const sizes s = sizes_of_expr(e[0]);
            duet_matrix *a = evaluated(place[0], DUET_F32, e[0], &s),
                        *b = evaluated(place[1], DUET_F32, e[1], &s);
            CHECK(same_bits(DUET_F32, duet_read(a), duet_read(b), duet_count(a)), "%s: the bits differ",
                  names[k]);
            duet_free(&a);
            duet_free(&b);
        }
        held_free(&x);
        held_free(&dy);
    }
    CHECK(true, "the machines differ");
    tap_point("both machines give the same bits");
}

/* ---- probabilistic max pooling: errors relative to what is subtracted from x, and a few roundings
 * for each element ---- */

static void check_probable(duet_place p, duet_dtype type, int64_t n, int64_t c, int64_t h, int64_t w,
                           const int32_t *by, double reach)
{
    duet_matrix *x = duet_new(type, n, c, h * by[0], w * by[1]),
                *on = duet_new(type, n, c, h * by[0], w * by[1]), *any = duet_new(type, n, c, h, w);
    random_fill(&gen, x, -reach, reach);
    array a = array_of(x), each = array_new(a.count), all = array_new(duet_count(any));
    const int64_t cols = w * by[1], rows = h * by[0];
    for (int64_t i = 0; i < all.count; i++) {
        real sum = 0, most = 0, least = 0;
        const int64_t plane = i / (h * w) * rows * cols, top = i / w % h * by[0], left = i % w * by[1];
        for (int k = 0; k < by[0] * by[1]; k++) {
            const real v = a.v[plane + (top + k / by[1]) * cols + left + k % by[1]];
            sum += expl(v);
            most = fmaxl(most, v);
            least = fminl(least, v);
        }
        const real roundings = 2 * (most - least) + by[0] * by[1] + 14;
        all.v[i] = sum / (1 + sum);
        all.size[i] = all.v[i] * roundings + roundoff(type) * 0x1p-60L;
        for (int k = 0; k < by[0] * by[1]; k++) {
            const int64_t j = plane + (top + k / by[1]) * cols + left + k % by[1];
            each.v[j] = expl(a.v[j]) / (1 + sum);
            each.size[j] = each.v[j] * roundings;
        }
    }
    CHECK(duet_set_on(p, on, duet_p_max_pool_h(x, by[0], by[1])) == DUET_OK, "%s", duet_error());
    CHECK(duet_set_on(p, any, duet_p_max_pool_p(x, by[0], by[1])) == DUET_OK, "%s", duet_error());
    compare("p_max_pool_h", on, &each, 1);
    compare("p_max_pool_p", any, &all, 1);
    array_free(&a);
    array_free(&each);
    array_free(&all);
    duet_free(&x);
    duet_free(&on);
    duet_free(&any);
}

static void probable(void)
{
    static const int32_t by[][2] = { { 2, 2 }, { 1, 1 }, { 3, 2 }, { 1, 4 } };
    for (int p = 0; p < places; p++)
        for (int i = 0; i < 4; i++)
            FOR_FLOAT_TYPES (t) {
                check_probable(place[p], t, 2, 3, 3, 2, by[i], 3);
                check_probable(place[p], t, 1, 1, 1, 1, by[i], 30);
                check_probable(place[p], t, 0, 1, 2, 2, by[i], 1);
            }
    duet_matrix *x = duet_new(DUET_F32, 1, 1, 1, 2), *y = duet_new(DUET_F32, 1, 1, 1, 2),
                *z = duet_new(DUET_F32, 1, 1, 1, 1);
    float *v = duet_overwrite(x);
    v[0] = 1000;
    v[1] = -1000;
    for (int p = 0; p < places; p++) {
        CHECK(duet_set_on(place[p], y, duet_p_max_pool_h(x, 1, 2)) == DUET_OK &&
                  duet_set_on(place[p], z, duet_p_max_pool_p(x, 1, 2)) == DUET_OK,
              "%s", duet_error());
        const float *r = duet_read(y);
        CHECK(r[0] == 1 && r[1] == 0 && *(const float *)duet_read(z) == 1,
              "probabilistic max pooling overflows: %g %g", (double)r[0], (double)r[1]);
    }
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    tap_point("probabilistic max pooling");
}

int main(int argc, char **argv)
{
    const bool few = is_quick(argc, argv);
    gen = rng_new(20261123);
    places = list_places(place);
    pooling(1, few ? 60 : 200);
    pooling(3, few ? 40 : 120);
    same_bits_everywhere(few ? 20 : 60);
    probable();
    return tap_end();
}
