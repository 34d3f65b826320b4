/* digits_cnn.c - a convolutional network over the digits: conv 16 of 3x3, relu, pool, conv 32 of 3x3, relu, pool, dense 1000 relu,
 * dense 10 softmax. Its weights are random: what it shows is the time, and that each row sums to 1. */
#include "digits.h"
#include <math.h>
#include <stdlib.h>

#define STEP(call)                                                                                                               \
    do {                                                                                                                         \
        duet_status status_ = (call);                                                                                            \
        if (status_ != DUET_OK) return status_;                                                                                  \
    } while (0)

enum { MANY = 1000, WIDE = 32, BORDER = (WIDE - SIDE) / 2, ROUNDS = 5 };

typedef struct cnn {
    duet_matrix *in, *k1, *b1, *p1, *k2, *b2, *p2, *flat, *w3, *b3, *o3, *w4, *b4, *o4;
} cnn;

static bool cnn_open(cnn *c)
{
    c->in = duet_new(DUET_F32, MANY, 3, WIDE, WIDE);
    c->k1 = duet_new(DUET_F32, 16, 3, 3, 3), c->b1 = duet_new(DUET_F32, 16), c->p1 = duet_new(DUET_F32, MANY, 16, 16, 16);
    c->k2 = duet_new(DUET_F32, 32, 16, 3, 3), c->b2 = duet_new(DUET_F32, 32), c->p2 = duet_new(DUET_F32, MANY, 32, 8, 8);
    c->w3 = duet_new(DUET_F32, 2048, 1000), c->b3 = duet_new(DUET_F32, 1000), c->o3 = duet_new(DUET_F32, MANY, 1000);
    c->w4 = duet_new(DUET_F32, 1000, CLASSES), c->b4 = duet_new(DUET_F32, CLASSES), c->o4 = duet_new(DUET_F32, MANY, CLASSES);
    c->flat = c->p2 ? duet_reshaped(c->p2, MANY, 2048) : NULL;
    duet_matrix *weights[] = { c->k1, c->b1, c->k2, c->b2, c->w3, c->b3, c->w4, c->b4 };
    const int fan[] = { 27, 27, 144, 144, 2048, 2048, 1000, 1000 };
    bool ok = c->in && c->p1 && c->o3 && c->o4 && c->flat;
    for (uint32_t i = 0; i < 8 && ok; i++) ok = weights[i] && fill_noise(weights[i], 10 + i, sqrtf(3.0f / (float)fan[i]));
    return ok;
}

static void cnn_close(cnn *c)
{
    duet_matrix **all[] = { &c->in,   &c->k1, &c->b1, &c->p1, &c->k2, &c->b2, &c->p2,
                            &c->flat, &c->w3, &c->b3, &c->o3, &c->w4, &c->b4, &c->o4 };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) duet_free(all[i]);
}

/* The first MANY digits, grey in three channels, in the middle of black. */
static duet_status show(const cnn *c, const digits *d)
{
    float *x = duet_overwrite(c->in);
    if (!x) return DUET_NO_MEMORY;
    for (int n = 0; n < MANY * 3; n++)
        for (int i = 0; i < WIDE; i++)
            for (int j = 0; j < WIDE; j++) {
                int y = i - BORDER, z = j - BORDER;
                bool inside = y >= 0 && y < SIDE && z >= 0 && z < SIDE;
                *x++ = inside ? d->image[n / 3 * PIXELS + y * SIDE + z] : 0;
            }
    return DUET_OK;
}

static duet_status cnn_forward(const cnn *c)
{
    STEP(duet_set(c->p1, duet_max_pool2d(duet_relu(duet_bias_add(duet_conv2d(c->in, c->k1, .pad = { 1, 1 }), c->b1)),
                                         .window = { 2, 2 })));
    STEP(duet_set(c->p2, duet_max_pool2d(duet_relu(duet_bias_add(duet_conv2d(c->p1, c->k2, .pad = { 1, 1 }), c->b2)),
                                         .window = { 2, 2 })));
    STEP(duet_set(c->o3, duet_relu(duet_bias_add(duet_matmul(c->flat, c->w3), c->b3))));
    return duet_set(c->o4, duet_softmax(duet_bias_add(duet_matmul(c->o3, c->w4), c->b4)));
}

/* The best of some rounds, after one that warms up; and by how much a row's sum is off 1 at most. */
static duet_status measure(const cnn *c, double *best, double *off)
{
    STEP(cnn_forward(c));
    *best = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        STEP(duet_synchronize());
        double start = now();
        STEP(cnn_forward(c));
        STEP(duet_synchronize());
        *best = fmin(*best, now() - start);
    }
    const float *p = duet_read(c->o4);
    if (!p) return DUET_DEVICE_ERROR;
    *off = 0;
    for (int i = 0; i < MANY; i++, p += CLASSES) {
        double sum = 0;
        for (int k = 0; k < CLASSES; k++) sum += p[k];
        *off = sum == sum ? fmax(*off, fabs(sum - 1)) : INFINITY;
    }
    return DUET_OK;
}

duet_status look_at_images(const digits *d)
{
    cnn c = { 0 };
    double best = 0, off = 0;
    duet_status s = cnn_open(&c) ? show(&c, d) : DUET_NO_MEMORY;
    if (s == DUET_OK) s = measure(&c, &best, &off);
    if (s == DUET_OK)
        printf("cnn: %d images of 3x32x32, %.2f us an image, rows sum to 1 within %.1e\n", MANY, 1e6 * best / MANY, off);
    cnn_close(&c);
    return s;
}
