/* digits_cnn.c - trains a convolutional network on the digits: 16 filters of 3x3, relu, pooling, 32 filters
 * of 3x3, relu, pooling, a dense layer of 10 units, softmax. duet_grad makes the gradients. The optimiser is
 * Adam, which updates a weight and its two running means in one pass over memory. */
#include "digits.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 50, BATCHES = LEARN / BATCH, QUARTER = SIDE / 4 };
enum { FIRST = 16, SECOND = 32, FLAT = SECOND * QUARTER * QUARTER };
static const double rate = 2e-3;

/* A trained parameter: its value, its gradient, and the running means of the gradient and of its square. */
typedef struct weight {
    duet_matrix *at, *grad, *mean, *square;
} weight;

enum { K1, B1, K2, B2, W3, B3, WEIGHTS };
typedef struct cnn {
    weight w[WEIGHTS];
    duet_matrix *in, *target;   /* a batch of images */
    duet_matrix *test, *tested; /* the test images, and the outputs for them */
    int steps, all;             /* steps done and in total: the learning rate decreases linearly to 0 */
} cnn;

/* ---- matrices ---- */

static bool weight_open(weight *w, int rank, const int64_t *size, uint32_t stream, float scale)
{
    duet_matrix **all[] = { &w->at, &w->grad, &w->mean, &w->square };
    bool ok = true;
    for (int i = 0; i < 4; i++) ok &= (*all[i] = duet_new_shape(DUET_F32, rank, size)) != NULL;
    return ok && (scale == 0 || fill_noise(w->at, stream, scale));
}

static bool cnn_open(cnn *c)
{
    const int64_t k1[] = { FIRST, 1, 3, 3 }, k2[] = { SECOND, FIRST, 3, 3 }, w3[] = { FLAT, CLASSES };
    return weight_open(&c->w[K1], 4, k1, 21, sqrtf(6.0f / 9)) && weight_open(&c->w[B1], 1, k1, 0, 0) &&
           weight_open(&c->w[K2], 4, k2, 22, sqrtf(6.0f / (9 * FIRST))) &&
           weight_open(&c->w[B2], 1, k2, 0, 0) && weight_open(&c->w[W3], 2, w3, 23, sqrtf(6.0f / FLAT)) &&
           weight_open(&c->w[B3], 1, w3 + 1, 0, 0) && (c->in = duet_new(DUET_F32, BATCH, 1, SIDE, SIDE)) &&
           (c->target = duet_new(DUET_F32, BATCH, CLASSES)) &&
           (c->test = duet_new(DUET_F32, TEST, 1, SIDE, SIDE)) &&
           (c->tested = duet_new(DUET_F32, TEST, CLASSES));
}

static void cnn_close(cnn *c)
{
    for (weight *w = c->w; w < c->w + WEIGHTS; w++) {
        duet_free(&w->at);
        duet_free(&w->grad);
        duet_free(&w->mean);
        duet_free(&w->square);
    }
    duet_free(&c->in, &c->target, &c->test, &c->tested);
}

/* ---- the network ---- */

static duet_expr layer_of(duet_expr x, const weight *filters, const weight *bias)
{
    const duet_expr sums = duet_bias_add(duet_conv2d(x, filters->at, .pad = { 1, 1 }), bias->at);
    return duet_max_pool2d(duet_relu(sums), .window = { 2, 2 });
}

static duet_expr output(const weight *w, duet_matrix *in)
{
    const duet_expr p1 = layer_of(DUET(in), &w[K1], &w[B1]), p2 = layer_of(p1, &w[K2], &w[B2]);
    return duet_bias_add(duet_matmul(duet_reshape(p2, -1, FLAT), w[W3].at), w[B3].at);
}

/* Computes the gradients of the mean cross-entropy for a batch. */
static duet_status backward(const weight *w, duet_matrix *in, duet_matrix *target)
{
    const duet_expr loss = duet_cross_entropy_logits(output(w, in), target);
    duet_assignment all[WEIGHTS];
    for (int k = 0; k < WEIGHTS; k++) all[k] = (duet_assignment){ w[k].grad, duet_grad(loss, w[k].at) };
    return (duet_set_all)(all, WEIGHTS);
}

static duet_status learn(cnn *c)
{
    STEP(backward(c->w, c->in, c->target));
    c->steps++;
    const double now = rate * (1 - (double)(c->steps - 1) / c->all);
    for (const weight *w = c->w; w < c->w + WEIGHTS; w++)
        STEP(duet_adam(w->at, w->grad, w->mean, w->square, now, c->steps));
    return DUET_OK;
}

/* ---- training ---- */

static duet_status accuracy(const cnn *c, const digits *d, double *share)
{
    STEP(duet_set(c->tested, output(c->w, c->test)));
    return digits_share(d, c->tested, share);
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
            STEP(digits_copy(d, order + i * BATCH, BATCH, c->in, c->target));
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
    float *x = cnn_open(&c) ? duet_overwrite(c.test) : NULL;
    if (x) {
        memcpy(x, d->image + (size_t)LEARN * PIXELS, sizeof *x * TEST * PIXELS);
        s = train(&c, d, passes);
    }
    cnn_close(&c);
    return s;
}
