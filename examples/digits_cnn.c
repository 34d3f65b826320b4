/* digits_cnn.c - trains a convolutional network on the digits: 16 filters of 3x3, relu, pooling, 32 filters
 * of 3x3, relu, pooling, a dense layer of 10 units, softmax. The gradients are operators of Duet. The
 * optimiser is Adam, which updates a weight and its two running means in one pass over memory. */
#include "digits.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 50, BATCHES = LEARN / BATCH, HALF = SIDE / 2, QUARTER = SIDE / 4 };
enum { FIRST = 16, SECOND = 32, FLAT = SECOND * QUARTER * QUARTER };
static const float rate = 2e-3f, keep_mean = 0.9f, keep_square = 0.999f;

/* A trained parameter: its value, its gradient, and the running means of the gradient and of its square. */
typedef struct weight {
    duet_matrix *at, *grad, *mean, *square;
} weight;

/* The outputs of the layers for a batch of images, and the gradients with respect to these outputs. */
typedef struct pass {
    int images;
    duet_matrix *in, *h1, *p1, *h2, *p2, *flat, *out;
    duet_matrix *g1, *gp1, *g2, *gp2, *gflat, *gout;
} pass;

enum { K1, B1, K2, B2, W3, B3, WEIGHTS };
typedef struct cnn {
    weight w[WEIGHTS];
    pass learn, test;
    duet_matrix *target;
    int steps, all; /* steps done and in total: the learning rate decreases linearly to 0 */
} cnn;

/* ---- matrices ---- */

static bool weight_open(weight *w, int rank, const int64_t *size, uint32_t stream, float scale)
{
    duet_matrix **all[] = { &w->at, &w->grad, &w->mean, &w->square };
    bool ok = true;
    for (int i = 0; i < 4; i++) ok &= (*all[i] = duet_new_shape(DUET_F32, rank, size)) != NULL;
    return ok && (scale == 0 || fill_noise(w->at, stream, scale));
}

static bool pass_open(pass *p, int n)
{
    p->images = n;
    p->in = duet_new(DUET_F32, n, 1, SIDE, SIDE);
    p->out = duet_new(DUET_F32, n, CLASSES);
    p->gout = duet_new(DUET_F32, n, CLASSES);
    p->h1 = duet_new(DUET_F32, n, FIRST, SIDE, SIDE);
    p->g1 = duet_new(DUET_F32, n, FIRST, SIDE, SIDE);
    p->p1 = duet_new(DUET_F32, n, FIRST, HALF, HALF);
    p->gp1 = duet_new(DUET_F32, n, FIRST, HALF, HALF);
    p->h2 = duet_new(DUET_F32, n, SECOND, HALF, HALF);
    p->g2 = duet_new(DUET_F32, n, SECOND, HALF, HALF);
    p->p2 = duet_new(DUET_F32, n, SECOND, QUARTER, QUARTER);
    p->gp2 = duet_new(DUET_F32, n, SECOND, QUARTER, QUARTER);
    if (p->p2) p->flat = duet_reshaped(p->p2, n, FLAT);
    else p->flat = NULL;
    if (p->gp2) p->gflat = duet_reshaped(p->gp2, n, FLAT);
    else p->gflat = NULL;
    return p->in && p->h1 && p->p1 && p->h2 && p->flat && p->out && p->g1 && p->gp1 && p->g2 && p->gflat &&
           p->gout;
}

static bool cnn_open(cnn *c)
{
    const int64_t k1[] = { FIRST, 1, 3, 3 }, k2[] = { SECOND, FIRST, 3, 3 }, w3[] = { FLAT, CLASSES };
    return weight_open(&c->w[K1], 4, k1, 21, sqrtf(6.0f / 9)) && weight_open(&c->w[B1], 1, k1, 0, 0) &&
           weight_open(&c->w[K2], 4, k2, 22, sqrtf(6.0f / (9 * FIRST))) &&
           weight_open(&c->w[B2], 1, k2, 0, 0) && weight_open(&c->w[W3], 2, w3, 23, sqrtf(6.0f / FLAT)) &&
           weight_open(&c->w[B3], 1, w3 + 1, 0, 0) && pass_open(&c->learn, BATCH) &&
           pass_open(&c->test, TEST) && (c->target = duet_new(DUET_F32, BATCH, CLASSES));
}

static void pass_close(pass *p)
{
    duet_matrix **all[] = { &p->in, &p->h1,  &p->p1, &p->h2,  &p->p2,    &p->flat, &p->out,
                            &p->g1, &p->gp1, &p->g2, &p->gp2, &p->gflat, &p->gout };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) duet_free(all[i]);
}

static void cnn_close(cnn *c)
{
    for (weight *w = c->w; w < c->w + WEIGHTS; w++) {
        duet_free(&w->at);
        duet_free(&w->grad);
        duet_free(&w->mean);
        duet_free(&w->square);
    }
    pass_close(&c->learn);
    pass_close(&c->test);
    duet_free(&c->target);
}

/* ---- the network ---- */

static duet_status forward(const weight *w, const pass *p)
{
    STEP(duet_set(p->h1, duet_relu(duet_bias_add(duet_conv2d(p->in, w[K1].at, .pad = { 1, 1 }), w[B1].at))));
    STEP(duet_set(p->p1, duet_max_pool2d(p->h1, .window = { 2, 2 })));
    STEP(duet_set(p->h2, duet_relu(duet_bias_add(duet_conv2d(p->p1, w[K2].at, .pad = { 1, 1 }), w[B2].at))));
    STEP(duet_set(p->p2, duet_max_pool2d(p->h2, .window = { 2, 2 })));
    return duet_set(p->out, duet_softmax(duet_bias_add(duet_matmul(p->flat, w[W3].at), w[B3].at)));
}

/* Computes the gradient of a pooling layer and of the relu before it. */
static duet_status back_to(duet_matrix *g, duet_matrix *h, duet_matrix *pooled)
{
    return duet_set(g,
                    duet_where(duet_greater(h, 0), duet_max_pool2d_grad(h, pooled, .window = { 2, 2 }), 0));
}

/* Computes the gradients of the mean cross-entropy, from the last layer to the first. */
static duet_status backward(const weight *w, const pass *p, duet_matrix *target)
{
    STEP(duet_set(p->gout, duet_mul(1.0f / BATCH, duet_sub(p->out, target))));
    STEP(duet_set(w[W3].grad, duet_matmul(duet_transpose(p->flat), p->gout)));
    STEP(duet_set(w[B3].grad, duet_sum_axis(p->gout, 0)));
    STEP(duet_set(p->gflat, duet_matmul(p->gout, duet_transpose(w[W3].at))));
    STEP(back_to(p->g2, p->h2, p->gp2));
    STEP(duet_set(w[K2].grad, duet_conv2d_filter_grad(p->p1, p->g2, .pad = { 1, 1 })));
    STEP(duet_set(w[B2].grad, duet_bias_batch_sum(p->g2)));
    STEP(duet_set(p->gp1, duet_conv2d_input_grad(p->g2, w[K2].at, .pad = { 1, 1 })));
    STEP(back_to(p->g1, p->h1, p->gp1));
    STEP(duet_set(w[K1].grad, duet_conv2d_filter_grad(p->in, p->g1, .pad = { 1, 1 })));
    return duet_set(w[B1].grad, duet_bias_batch_sum(p->g1));
}

/* Updates a parameter by Adam in one pass: each statement uses the results of earlier ones. */
static duet_status adam(const weight *w, int step, double left)
{
    const double scale = rate * left * sqrt(1 - pow(keep_square, step)) / (1 - pow(keep_mean, step));
    return duet_set_all({ w->mean, duet_add(duet_mul(keep_mean, w->mean), duet_mul(1 - keep_mean, w->grad)) },
                        { w->square, duet_add(duet_mul(keep_square, w->square),
                                              duet_mul(1 - keep_square, duet_mul(w->grad, w->grad))) },
                        { w->at, duet_sub(w->at, duet_div(duet_mul(scale, w->mean),
                                                          duet_add(duet_sqrt(w->square), 1e-8))) });
}

static duet_status learn(cnn *c)
{
    STEP(forward(c->w, &c->learn));
    STEP(backward(c->w, &c->learn, c->target));
    c->steps++;
    for (int k = 0; k < WEIGHTS; k++) STEP(adam(&c->w[k], c->steps, 1 - (double)(c->steps - 1) / c->all));
    return DUET_OK;
}

/* ---- training ---- */

static duet_status accuracy(const cnn *c, const digits *d, double *share)
{
    STEP(forward(c->w, &c->test));
    return digits_share(d, c->test.out, share);
}

static duet_status train(cnn *c, const digits *d, int passes)
{
    static int order[LEARN];
    double share = 0, total = 0;
    c->all = passes * BATCHES;
    for (int turn = 1; turn <= passes; turn++) {
        const double start = now();
        digits_order(order, 200 + (uint32_t)turn);
        for (int i = 0; i < BATCHES; i++) {
            STEP(digits_copy(d, order + i * BATCH, BATCH, c->learn.in, c->target));
            STEP(learn(c));
        }
        STEP(duet_synchronize());
        total += now() - start;
        STEP(accuracy(c, d, &share));
        printf("cnn pass %2d/%d  accuracy %.2f %%  %.0f images/s\n", turn, passes, 100 * share,
               LEARN * turn / total);
        fflush(stdout);
    }
    if (passes > 0)
        printf("cnn: accuracy %.2f %%, %.0f images/s, %.2f s\n", 100 * share, LEARN * passes / total, total);
    return DUET_OK;
}

duet_status train_cnn(const digits *d, int passes)
{
    cnn c = { 0 };
    duet_status s = DUET_NO_MEMORY;
    float *x = cnn_open(&c) ? duet_overwrite(c.test.in) : NULL;
    if (x) {
        memcpy(x, d->image + (size_t)LEARN * PIXELS, sizeof *x * TEST * PIXELS);
        s = train(&c, d, passes);
    }
    cnn_close(&c);
    return s;
}
