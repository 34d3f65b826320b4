/* test_gpu_machine.c - the GPU machine alone: memory, order between queues, products and
 * convolutions in every layout. It runs on the fake CUDA and unchanged on a real card. */
#include "pool.h"
#include "tap.h"
#include "tensor.h"

const device_entry devices[DEVICES_MAX] = { [DEFAULT_GPU] = { &gpu_machine } };

static const duet_dtype types[] = { DUET_F32, DUET_F64 };

static bool ran(duet_status s, const char *what) { return CHECK(s == DUET_OK, "%s: %s", what, duet_error()); }

/* ---- memory ---- */

static void test_memory(void)
{
    enum { N = 1000 };
    float there[N], back[N];
    void *p = NULL;
    for (int i = 0; i < N; i++) {
        there[i] = (float)i;
        back[i] = -1;
    }
    ran(gpu_machine.alloc(DEFAULT_GPU, sizeof there, &p), "alloc");
    CHECK(p && (uintptr_t)p % 64 == 0, "the address %p is not aligned to 64", p);
    ran(gpu_machine.upload(DEFAULT_GPU, p, there, sizeof there, 0), "upload");
    ran(gpu_machine.download(DEFAULT_GPU, back, p, sizeof back, 0), "download");
    CHECK(!memcmp(there, back, sizeof back), "the downloaded bytes differ from the uploaded ones");
    ran(gpu_machine.clear(DEFAULT_GPU, p, sizeof there / 2, 0), "clear");
    ran(gpu_machine.download(DEFAULT_GPU, back, p, sizeof back, 0), "download");
    CHECK(back[0] == 0 && back[N / 2 - 1] == 0 && back[N / 2] == N / 2, "clear did not set the bytes to 0");
    ran(gpu_machine.upload(DEFAULT_GPU, p, there, 0, 0), "upload of nothing");
    gpu_machine.free(DEFAULT_GPU, p);
    gpu_machine.free(DEFAULT_GPU, NULL);
    tap_point("memory");
}

/* A copy by a kernel, as the machine makes them internally. */
static duet_status copy_step(const tensor *to, const tensor *from, int queue)
{
    uint8_t type = (uint8_t)to->at.type;
    const program p = { .length = 2,
                        .inputs = 1,
                        .outputs = 1,
                        .code = { { OP_LOAD, type, { { FROM_INPUT, 0 } } },
                                  { OP_STORE, type, { { FROM_ACC, 0 } } } } };
    step s = { .kernel = KERNEL_PROGRAM,
               .outs = 1,
               .ins = 1,
               .out = { { 0, to->at } },
               .in = { { 1, from->at } },
               .program = &p };
    layout_collapse((layout *const[]){ &s.out[0].at, &s.in[0].at }, 2);
    const char *why = gpu_machine.unsupported_reason(&s);
    if (why) return fail(DUET_UNSUPPORTED, "a copy is refused: %s", why);
    return gpu_machine.run(&s, &(frame){ (void *const[]){ tensor_data(to), tensor_data(from) }, NULL, queue,
                                         DEFAULT_GPU });
}

/* Queue 1 writes, queue 2 copies, queue 3 reads; each waits for the one before. */
static void test_order(void)
{
    int64_t size[] = { 300, 70 };
    tensor a, b;
    ran(tensor_new(&b, DUET_F32, 2, size, ROWS, 2), "new");
    ran(tensor_new(&a, DUET_F32, 2, size, COLUMNS, 1), "new");
    ran(gpu_machine.wait(DEFAULT_GPU, 2, DEFAULT_GPU, 1), "wait");
    ran(copy_step(&b, &a, 2), "copy");
    ran(gpu_machine.wait(DEFAULT_GPU, 3, DEFAULT_GPU, 2), "wait");
    ran(gpu_machine.wait(DEFAULT_GPU, 3, DEFAULT_GPU, 3), "wait for itself");
    ran(gpu_machine.wait(DEFAULT_GPU, 3, DEFAULT_GPU, 40), "wait for a queue never used");
    ran(tensor_fetch(&b, 3), "fetch");
    for (int64_t i = 0; i < size[0]; i++)
        for (int64_t j = 0; j < size[1]; j++)
            CHECK(*tensor_at(&b, i, j, 0, 0) == *tensor_at(&a, i, j, 0, 0), "the copy is wrong at %d",
                  (int)i);
    CHECK(gpu_machine.stream(DEFAULT_GPU, 2) &&
              gpu_machine.stream(DEFAULT_GPU, 2) == gpu_machine.stream(DEFAULT_GPU, 2),
          "a queue has another stream than before");
    CHECK(gpu_machine.stream(DEFAULT_GPU, 2) != gpu_machine.stream(DEFAULT_GPU, 3),
          "two queues have the same stream");
    ran(gpu_machine.sync(DEFAULT_GPU, 2), "sync");
    ran(gpu_machine.sync(DEFAULT_GPU, 41), "sync of a queue never used");
    tensor_free(&a);
    tensor_free(&b);
    tap_point("order between queues");
}

/* ---- products ---- */

enum { NO_ADDEND, ITSELF, ANOTHER };

typedef struct product {
    tensor a, b, c, out;
    double alpha, beta;
    int nums, addend;
} product;

static duet_status run_product(const product *p, int queue)
{
    step s = { .kernel = OP_matmul,
               .outs = 1,
               .ins = p->addend ? 3 : 2,
               .nums = (uint8_t)p->nums,
               .num = { 1, 0 },
               .out = { { 0, p->out.at } },
               .in = { { 1, p->a.at }, { 2, p->b.at }, { p->addend == ITSELF ? 0 : 3, p->c.at } } };
    if (p->addend == ITSELF) s.in[2].at = p->out.at;
    const char *why = gpu_machine.unsupported_reason(&s);
    if (why) return fail(DUET_UNSUPPORTED, "refused: %s", why);
    void *const data[] = { tensor_data(&p->out), tensor_data(&p->a), tensor_data(&p->b), tensor_data(&p->c) };
    return gpu_machine.run(&s, &(frame){ data, (const double[]){ p->beta, p->alpha }, queue, DEFAULT_GPU });
}

static void compare_product(product *p, const double *before, const char *name)
{
    int64_t m = p->out.at.size[0], n = p->out.at.size[1], k = p->a.at.size[1];
    double alpha = p->nums > 0 ? p->alpha : 1, beta = p->nums > 1 ? p->beta : 1,
           eps = dtypes[p->out.at.type].roundoff;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, size = 0, c = 0;
            if (p->addend == ITSELF) c = before[i * n + j];
            else if (p->addend) c = *tensor_at(&p->c, i, j, 0, 0);
            for (int64_t l = 0; l < k; l++) {
                double t = *tensor_at(&p->a, i, l, 0, 0) * *tensor_at(&p->b, l, j, 0, 0);
                sum += t;
                size += fabs(t);
            }
            double want = alpha * sum + beta * c, got = *tensor_at(&p->out, i, j, 0, 0);
            double most = ((double)k + 4) * eps * (fabs(alpha) * size + fabs(beta * c));
            CHECK(fabs(got - want) <= most, "%s [%d,%d]: got %.17g, want %.17g +- %g", name, (int)i, (int)j,
                  got, want, most);
        }
}

static void one_product(duet_dtype type, const int64_t *mnk, enum lie la, enum lie lb, int addend, int nums)
{
    product p = { .alpha = -1.5, .beta = 0.75, .nums = nums, .addend = addend };
    char name[120];
    snprintf(name, sizeof name, "%s %d x %d x %d, layouts %d %d, addend %d, numbers %d", dtypes[type].name,
             (int)mnk[0], (int)mnk[1], (int)mnk[2], la, lb, addend, nums);
    ran(tensor_new(&p.a, type, 2, (int64_t[]){ mnk[0], mnk[2] }, la, 0), name);
    ran(tensor_new(&p.b, type, 2, (int64_t[]){ mnk[2], mnk[1] }, lb, 0), name);
    ran(tensor_new(&p.c, type, 2, (int64_t[]){ mnk[0], mnk[1] }, lb, 0), name);
    ran(tensor_new(&p.out, type, 2, (int64_t[]){ mnk[0], mnk[1] }, ROWS, 0), name);
    double *before = malloc(sizeof *before * (size_t)p.out.room);
    memcpy(before, p.out.value, sizeof *before * (size_t)p.out.room);
    if (ran(run_product(&p, 0), name) && ran(tensor_fetch(&p.out, 0), name))
        compare_product(&p, before, name);
    free(before);
    tensor_free(&p.a);
    tensor_free(&p.b);
    tensor_free(&p.c);
    tensor_free(&p.out);
}

static void test_products(void)
{
    static const int64_t sizes[][3] = { { 3, 5, 4 }, { 1, 7, 6 }, { 6, 1, 3 },    { 1, 1, 9 },
                                        { 4, 3, 1 }, { 1, 1, 1 }, { 0, 3, 4 },    { 3, 0, 4 },
                                        { 3, 4, 0 }, { 0, 0, 0 }, { 65, 33, 100 } };
    for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++) {
        for (enum lie la = 0; la < LIES; la++)
            for (enum lie lb = 0; lb < LIES; lb++)
                for (int t = 0; t < 2; t++)
                    one_product(types[t], sizes[z], la, lb, (int)(la + lb) % 3, 1 + (int)(la + lb) % 2);
        for (int addend = NO_ADDEND; addend <= ANOTHER; addend++)
            for (int nums = 0; nums <= 2; nums++)
                one_product(DUET_F32, sizes[z], ROWS, COLUMNS, addend, nums);
    }
    tap_point("products");
}

static void test_refusals(void)
{
    step s = { .kernel = OP_matmul, .outs = 1, .ins = 2 };
    for (int i = 0; i < 3; i++) {
        int64_t size[] = { i == 0 || i == 2 ? (int64_t)1 << 31 : 2, 2 };
        layout_dense(i == 2 ? &s.out[0].at : &s.in[i].at, DUET_F32, 2, size);
    }
    CHECK(gpu_machine.unsupported_reason(&s), "a product with a size of 2^31 is supported");
    CHECK(gpu_machine.cost(&s) > 0, "the cost is not positive");
    s.kernel = OP_conv2d;
    for (int i = 0; i < 3; i++)
        layout_dense(i == 2 ? &s.out[0].at : &s.in[i].at, DUET_F32, 4,
                     (int64_t[]){ 1 << 10, 1 << 10, 1 << 10, 2 });
    CHECK(gpu_machine.unsupported_reason(&s), "a matrix of 2^31 elements is supported");
    s.kernel = OP_transpose;
    CHECK(gpu_machine.unsupported_reason(&s), "an operator that is not a step is supported");
    tap_point("invalid and unsupported arguments");
}

/* ---- convolutions ---- */

typedef struct image {
    int n, c, h, w, m, kh, kw, stride, pad;
} image;

static double one_sum(const tensor *x, const tensor *w, const image *g, bool flip, const int64_t *o,
                      double *size)
{
    double sum = 0;
    for (int k = 0; k < g->c; k++)
        for (int u = 0; u < g->kh; u++)
            for (int v = 0; v < g->kw; v++) {
                int64_t i = o[2] * g->stride - g->pad + u, j = o[3] * (g->stride + 1) - (g->pad + 1) + v;
                if (i < 0 || i >= g->h || j < 0 || j >= g->w) continue;
                double t = *tensor_at(x, o[0], k, i, j) *
                           *tensor_at(w, o[1], k, flip ? g->kh - 1 - u : u, flip ? g->kw - 1 - v : v);
                sum += t;
                *size += fabs(t);
            }
    return sum;
}

static void compare_image(const tensor *x, const tensor *w, const tensor *y, const image *g, bool flip,
                          const char *name)
{
    const int64_t *s = y->at.size;
    int64_t o[4];
    for (o[0] = 0; o[0] < s[0]; o[0]++)
        for (o[1] = 0; o[1] < s[1]; o[1]++)
            for (o[2] = 0; o[2] < s[2]; o[2]++)
                for (o[3] = 0; o[3] < s[3]; o[3]++) {
                    double size = 0, want = one_sum(x, w, g, flip, o, &size),
                           got = *tensor_at(y, o[0], o[1], o[2], o[3]);
                    double most = 4 * ((double)g->c * g->kh * g->kw + 4) * dtypes[y->at.type].roundoff * size;
                    CHECK(fabs(got - want) <= most, "%s [%d,%d,%d,%d]: got %.17g, want %.17g +- %g", name,
                          (int)o[0], (int)o[1], (int)o[2], (int)o[3], got, want, most);
                }
}

/* Stride and padding of the second axis differ from those of the first, so that a mix-up shows. */
static void one_image(duet_dtype type, const image *g, bool flip, enum lie lx, enum lie lw)
{
    int64_t oh = (g->h + 2 * g->pad - g->kh) / g->stride + 1,
            ow = (g->w + 2 * (g->pad + 1) - g->kw) / (g->stride + 1) + 1;
    tensor x, w, y;
    char name[120];
    snprintf(name, sizeof name,
             "%s image %dx%dx%dx%d, %d filters %dx%d, stride %d, pad %d, flip %d, layouts %d %d",
             dtypes[type].name, g->n, g->c, g->h, g->w, g->m, g->kh, g->kw, g->stride, g->pad, flip, lx, lw);
    ran(tensor_new(&x, type, 4, (int64_t[]){ g->n, g->c, g->h, g->w }, lx, 0), name);
    ran(tensor_new(&w, type, 4, (int64_t[]){ g->m, g->c, g->kh, g->kw }, lw, 0), name);
    ran(tensor_new(&y, type, 4, (int64_t[]){ g->n, g->m, oh, ow }, ROWS, 0), name);
    step s = { .kernel = OP_conv2d,
               .outs = 1,
               .ins = 2,
               .out = { { 0, y.at } },
               .in = { { 1, x.at }, { 2, w.at } },
               .attr.conv = { .stride = { g->stride, g->stride + 1 },
                              .pad = { g->pad, g->pad + 1 },
                              .dilation = { 1, 1 },
                              .groups = 1,
                              .flip = flip } };
    void *const data[] = { tensor_data(&y), tensor_data(&x), tensor_data(&w) };
    const char *why = gpu_machine.unsupported_reason(&s);
    CHECK(!why, "%s: not supported: %s", name, why);
    for (int again = 0; again < 2 && !why; again++)
        if (ran(gpu_machine.run(&s, &(frame){ data, NULL, 0, DEFAULT_GPU }), name) &&
            ran(tensor_fetch(&y, 0), name))
            compare_image(&x, &w, &y, g, flip, name);
    gpu_machine.forget(&s);
    CHECK(!s.cached, "the step still has cached data");
    gpu_machine.forget(&s);
    tensor_free(&x);
    tensor_free(&w);
    tensor_free(&y);
}

static void test_convolutions(void)
{
    static const image images[] = { { 2, 3, 8, 9, 4, 3, 3, 1, 1 },   { 1, 1, 5, 5, 1, 5, 5, 1, 0 },
                                    { 2, 2, 7, 6, 3, 2, 3, 2, 2 },   { 3, 4, 4, 4, 2, 1, 1, 1, 0 },
                                    { 0, 3, 8, 9, 4, 3, 3, 1, 1 },   { 2, 0, 8, 9, 4, 3, 3, 1, 1 },
                                    { 2, 3, 8, 9, 0, 3, 3, 1, 1 },   { 2, 3, 0, 4, 2, 2, 2, 1, 1 },
                                    { 1, 3, 20, 20, 16, 5, 3, 1, 2 } };
    for (size_t g = 0; g < sizeof images / sizeof *images; g++)
        for (int t = 0; t < 2; t++)
            for (int flip = 0; flip < 2; flip++) {
                for (enum lie lie = 0; lie < LIES; lie++) one_image(types[t], &images[g], flip, lie, ROWS);
                for (enum lie lie = 0; lie < LIES; lie++) one_image(types[t], &images[g], flip, ROWS, lie);
            }
    tap_point("convolutions");
}

int main(void)
{
    const char *why = gpu_machine.absent(DEFAULT_GPU);
    if (why) {
        printf("1..0 # SKIP %s\n", why);
        return 0;
    }
    size_t before = duet_memory_of(DUET_GPU).used;
    test_memory();
    test_order();
    test_products();
    test_refusals();
    test_convolutions();
    CHECK(duet_memory_of(DUET_GPU).used - before <= 64 << 20, "%zu bytes were not released",
          duet_memory_of(DUET_GPU).used - before);
    tap_point("all memory is released");
    return tap_end();
}
