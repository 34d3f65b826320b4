/* test_machine_finished.c - conformance of machines: products and convolutions with epilogues. */
#include "machine_trial.h"
#include "quick.h"

static int64_t out_size(int64_t in, int64_t window, int stride, int pad)
{
    return (in + 2 * pad - window) / stride + 1;
}

/* Replaces a few elements of an operand by values that remain visible in any sum. */
static void scatter(trial *t, const operand *o, int percent)
{
    static const double odd[] = { NAN, INFINITY, -INFINITY };
    buffer *b = &t->buffer[o->slot];
    int64_t low, high;
    layout_span(&o->at, &low, &high);
    for (int64_t i = b->start + low; i < b->start + high; i++)
        if (chance(percent)) put(b, i, odd[draw(3)]);
}

static void add_bias(trial *t, duet_dtype type, int64_t n)
{
    layout l = { .type = type, .rank = 1, .size = { n }, .stride = { 1 } };
    if (chance(40)) l.stride[0] = draw(5) - 2;
    add_input(t, l, 0);
}

/* ---- products ---- */

static void product_trial(enum epilogue epilogue, duet_dtype type, int64_t m, int64_t n, int64_t k)
{
    trial t = { .s = { .kernel = OP_matmul, .epilogue = epilogue }, .vendor = true };
    add_dense(&t, true, type, 2, (int64_t[]){ m, n });
    add_input(&t, any_layout(type, 2, (int64_t[]){ m, k }, chance(20)), 0);
    add_input(&t, any_layout(type, 2, (int64_t[]){ k, n }, chance(20)), 0);
    add_bias(&t, type, n);
    if (chance(25)) add_number(&t, draw(3) - 1.0);
    if (chance(25)) scatter(&t, &t.s.in[chance(70) ? 0 : 2], 2);
    run_trial(&t);
}

static void test_products(enum epilogue epilogue, int trials)
{
    static const int64_t few[] = { 0, 1, 1, 2, 5, 16, 17, 40 };
    for (int n = 0; n < trials; n++) product_trial(epilogue, n % 2, few[draw(8)], few[draw(8)], few[draw(8)]);
    /* more rows than a block: whole blocks and a remainder, down to one row */
    const int64_t own = cpu_own_bytes;
    for (int n = 0; n < (trials > 50 ? 2 : 1); n++, cpu_own_bytes = own) {
        cpu_own_bytes = 0;
        product_trial(epilogue, DUET_F32, 1025, 1031, 9);
        product_trial(epilogue, DUET_F32, 515 + n, 600, 50);
        product_trial(epilogue, DUET_F64, 300, 130, 20);
        product_trial(epilogue, DUET_F32, 1, 700, 300);
    }
    tap_point(epilogue_infos[epilogue].name);
}

/* ---- convolutions ---- */

/* Larger ones consist of several groups of images and single remaining images. */
static void conv_trial(enum epilogue epilogue, duet_dtype type, bool large)
{
    const int stride[2] = { 1 + draw(2), 1 + draw(2) }, pad[2] = { draw(3), draw(3) };
    const bool halves = chance(50);
    const int window[2] = { halves ? 2 : 1 + draw(3), halves ? 2 : 1 + draw(3) },
              hop[2] = { halves ? 2 : 1 + draw(3), halves ? 2 : 1 + draw(3) },
              edge[2] = { halves ? 0 : draw(3), halves ? 0 : draw(3) };
    int64_t filters[4] = { large ? 16 << draw(3) : 1 + draw(chance(30) ? 80 : 5),
                           chance(5) ? 0 : 1 + draw(chance(20) ? 20 : 4), 1 + draw(3), 1 + draw(3) };
    const int apart = 1 + chance(20), groups = chance(20) ? 1 + draw(3) : 1;
    filters[0] *= groups;
    const int64_t in[4] = { large ? 20 + draw(9) : draw(6), filters[1] * groups, (large ? 20 : 5) + draw(9),
                            (large ? 20 : 5) + draw(30) };
    int64_t out[4] = { in[0], filters[0], out_size(in[2], (filters[2] - 1) * apart + 1, stride[0], pad[0]),
                       out_size(in[3], (filters[3] - 1) * apart + 1, stride[1], pad[1]) };
    const conv_attributes attr = { .stride = { stride[0], stride[1] },
                                   .pad = { pad[0], pad[1] },
                                   .dilation = { apart, apart },
                                   .groups = groups,
                                   .flip = draw(2),
                                   .pool = { .window = { window[0], window[1] },
                                             .stride = { hop[0], hop[1] },
                                             .pad = { edge[0], edge[1] } } };
    for (int a = 0; a < 2 && epilogue_infos[epilogue].pooled; a++)
        out[2 + a] = out_size(out[2 + a], window[a], hop[a], edge[a]);
    if (out[2] < 1 || out[3] < 1) return;
    trial t = { .s = { .kernel = OP_conv2d, .epilogue = epilogue }, .vendor = true };
    t.s.attr.conv = attr;
    add_dense(&t, true, type, 4, out);
    add_input(&t, any_layout(type, 4, in, chance(20)), 0);
    add_input(&t, any_layout(type, 4, filters, chance(20)), 0);
    add_bias(&t, type, filters[0]);
    if (chance(30)) scatter(&t, &t.s.in[chance(70) ? 0 : 2], 1);
    run_trial(&t);
}

static void test_convs(enum epilogue epilogue, int trials)
{
    for (int n = 0; n < trials; n++) conv_trial(epilogue, n % 3 == 2, n % 8 == 2);
    tap_point(epilogue_infos[epilogue].name);
}

/* ---- caches, between runs with other numbers of threads ---- */

static void test_threads(void)
{
    static const int threads[] = { 1, 3, 2, 16, 1 };
    const machine *m = device_machine(HOST);
    enum { N = 40, C = 3, S = 24, M = 16, OUT = N * M * S * S / 4 };
    float *x = calloc(N * C * S * S, sizeof *x), w[M * C * 9], b[M], *first = malloc(OUT * sizeof *first),
          *y = malloc(OUT * sizeof *y);
    for (int i = 0; i < N * C * S * S; i++) x[i] = (float)number(DUET_F32, 0);
    for (int i = 0; i < M * C * 9; i++) w[i] = (float)number(DUET_F32, 0);
    for (int i = 0; i < M; i++) b[i] = (float)number(DUET_F32, 0);
    step s = { .kernel = OP_conv2d,
               .epilogue = EPILOGUE_conv2d_bias_relu_pool,
               .outs = 1,
               .ins = 3,
               .attr.conv = { .stride = { 1, 1 },
                              .pad = { 1, 1 },
                              .dilation = { 1, 1 },
                              .groups = 1,
                              .pool = { .window = { 2, 2 }, .stride = { 2, 2 } } } };
    const int64_t sizes[4][4] = { { N, C, S, S }, { M, C, 3, 3 }, { M }, { N, M, S / 2, S / 2 } };
    for (int k = 0; k < 3; k++) {
        s.in[k].slot = k;
        layout_dense(&s.in[k].at, DUET_F32, k == 2 ? 1 : 4, sizes[k]);
    }
    s.out[0].slot = 3;
    layout_dense(&s.out[0].at, DUET_F32, 4, sizes[3]);
    cpu_serial_seconds = 0;
    void *data[] = { x, w, b, y };
    const frame f = { .data = data };
    for (int i = 0; i < 5; i++) {
        omp_set_num_threads(threads[i]);
        memset(y, 0xff, OUT * sizeof *y);
        CHECK(m->run(&s, &f) == DUET_OK, "%d threads: %s", threads[i], duet_error());
        CHECK(omp_get_max_threads() == threads[i], "the call changed %d threads to %d", threads[i],
              omp_get_max_threads());
        if (i == 0) memcpy(first, y, OUT * sizeof *y);
        for (int j = 0; j < OUT; j++)
            if (!CHECK(fabsf(y[j] - first[j]) <= 1e-4f * fmaxf(1, fabsf(first[j])),
                       "%d threads: element %d is %g, not %g", threads[i], j, (double)y[j], (double)first[j]))
                break;
    }
    m->forget(&s);
    free(x);
    free(y);
    free(first);
    tap_point("other numbers of threads");
}

int main(int argc, char **argv)
{
    const bool quick = is_quick(argc, argv);
    for (enum epilogue i = 1; i < FINISHES; i++) {
        if (epilogue_infos[i].kernel == OP_matmul) test_products(i, quick ? 20 : 60);
        else test_convs(i, quick ? 20 : 90);
    }
    test_threads();
    return tap_end();
}
