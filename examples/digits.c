/* digits.c - trains networks to recognise handwritten digits: a dense network with layers of 784, 1000,
 * 1000 and 10 units, and then a convolutional network. duet_grad makes the gradients.
 *
 *     digits FOLDER [--backend cpu|gpu|auto] [--passes N]
 *
 * FOLDER contains the MNIST test set: t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, or these names
 * with .gz if the program was built with zlib. The first 8000 images are for training, the last 2000
 * for testing. */
#include "digits.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 64, BATCHES = LEARN / BATCH, HIDDEN = 1000 };
static const double rate = 0.05;

/* One layer: weights w and biases b, their velocities vw and vb (for momentum), and the gradients of the
 * loss with respect to w and b. */
typedef struct layer {
    duet_matrix *w, *b, *vw, *vb, *dw, *db;
} layer;

typedef struct trainer {
    layer at[3];
    duet_matrix *images, *targets;                 /* the training images, in the order of this pass */
    duet_matrix *batch[BATCHES], *target[BATCHES]; /* views of them */
    duet_matrix *test, *tested;                    /* the test images, and the outputs for them */
} trainer;

/* ---- the network ---- */

static bool layer_open(layer *l, int k, int n, uint32_t stream)
{
    *l = (layer){ duet_new(DUET_F32, k, n), duet_new(DUET_F32, n),    duet_new(DUET_F32, k, n),
                  duet_new(DUET_F32, n),    duet_new(DUET_F32, k, n), duet_new(DUET_F32, n) };
    return l->w && l->b && l->vw && l->vb && l->dw && l->db &&
           fill_noise(l->w, stream, sqrtf(6.0f / (float)k));
}

static void layer_close(layer *l) { duet_free(&l->w, &l->b, &l->vw, &l->vb, &l->dw, &l->db); }

static duet_expr output(const layer *l, duet_matrix *in)
{
    const duet_expr h1 = duet_relu(duet_bias_add(duet_matmul(in, l[0].w), l[0].b));
    const duet_expr h2 = duet_relu(duet_bias_add(duet_matmul(h1, l[1].w), l[1].b));
    return duet_bias_add(duet_matmul(h2, l[2].w), l[2].b);
}

/* Computes the gradients of the mean cross-entropy for a batch. */
static duet_status backward(const layer *l, duet_matrix *in, duet_matrix *target)
{
    const duet_expr loss = duet_cross_entropy_logits(output(l, in), target);
    return duet_set_all({ l[0].dw, duet_grad(loss, l[0].w) }, { l[0].db, duet_grad(loss, l[0].b) },
                        { l[1].dw, duet_grad(loss, l[1].w) }, { l[1].db, duet_grad(loss, l[1].b) },
                        { l[2].dw, duet_grad(loss, l[2].w) }, { l[2].db, duet_grad(loss, l[2].b) });
}

static duet_status learn(const trainer *t, int batch)
{
    STEP(backward(t->at, t->batch[batch], t->target[batch]));
    for (const layer *l = t->at; l < t->at + 3; l++) {
        STEP(duet_sgd(l->w, l->dw, rate, .momentum = 0.9, .velocity = l->vw));
        STEP(duet_sgd(l->b, l->db, rate, .momentum = 0.9, .velocity = l->vb));
    }
    return DUET_OK;
}

/* ---- training ---- */

/* Copies the training images to t->images in a random order, another one for each pass. */
static duet_status shuffle(const trainer *t, const digits *d, int pass)
{
    static int order[LEARN];
    digits_order(order, 100 + (uint32_t)pass);
    return digits_copy(d, order, LEARN, t->images, t->targets);
}

static duet_status one_pass(const trainer *t, const digits *d, int pass, int passes, double *seconds)
{
    const bool live = isatty(STDERR_FILENO);
    const double start = now();
    STEP(shuffle(t, d, pass));
    for (int i = 0; i < BATCHES; i++) {
        STEP(learn(t, i));
        if (live && i % 25 == 0) fprintf(stderr, "\rpass %d/%d  batch %d/%d ", pass, passes, i, BATCHES);
    }
    STEP(duet_synchronize());
    *seconds = now() - start;
    if (live) fprintf(stderr, "\r%40s\r", "");
    return DUET_OK;
}

static duet_status accuracy(const trainer *t, const digits *d, double *share)
{
    STEP(duet_set(t->tested, output(t->at, t->test)));
    return digits_share(d, t->tested, share);
}

static duet_status train(const trainer *t, const digits *d, int passes)
{
    double seconds, share = 0, total = 0;
    for (int pass = 1; pass <= passes; pass++) {
        STEP(one_pass(t, d, pass, passes, &seconds));
        STEP(accuracy(t, d, &share));
        total += seconds;
        printf("pass %2d/%d  accuracy %.2f %%  %.0f images/s\n", pass, passes, 100 * share, LEARN / seconds);
        fflush(stdout);
    }
    if (passes > 0)
        printf("dense: accuracy %.2f %%, %.0f images/s, %.2f s\n", 100 * share, LEARN * passes / total,
               total);
    return DUET_OK;
}

static bool trainer_open(trainer *t, const digits *d)
{
    t->images = duet_new(DUET_F32, LEARN, PIXELS);
    t->targets = duet_new(DUET_F32, LEARN, CLASSES);
    t->test = duet_wrap(d->image + LEARN * PIXELS, DUET_F32, TEST, PIXELS);
    t->tested = duet_new(DUET_F32, TEST, CLASSES);
    bool ok = t->images && t->targets && t->test && t->tested;
    for (int i = 0; i < BATCHES && ok; i++) {
        t->batch[i] = duet_slice(t->images, i * BATCH, BATCH);
        t->target[i] = duet_slice(t->targets, i * BATCH, BATCH);
        ok = t->batch[i] && t->target[i];
    }
    return ok && layer_open(&t->at[0], PIXELS, HIDDEN, 1) && layer_open(&t->at[1], HIDDEN, HIDDEN, 2) &&
           layer_open(&t->at[2], HIDDEN, CLASSES, 3);
}

static void trainer_close(trainer *t)
{
    for (int i = 0; i < 3; i++) layer_close(&t->at[i]);
    for (int i = 0; i < BATCHES; i++) {
        duet_free(&t->batch[i]);
        duet_free(&t->target[i]);
    }
    duet_free(&t->images);
    duet_free(&t->targets);
    duet_free(&t->test);
    duet_free(&t->tested);
}

/* ---- main ---- */

static int usage(void)
{
    fputs("digits FOLDER [--backend cpu|gpu|auto] [--passes N]\n", stderr);
    return 2;
}

static bool parse(int argc, char **argv, const char **folder, duet_place *place, int *passes)
{
    static const char *const places[] = { [DUET_AUTO] = "auto", [DUET_CPU] = "cpu", [DUET_GPU] = "gpu" };
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--passes") && i + 1 < argc) {
            *passes = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--backend") && i + 1 < argc) {
            int p = DUET_AUTO;
            for (i++; p <= DUET_GPU && strcmp(argv[i], places[p]);) p++;
            if (p > DUET_GPU) return false;
            *place = (duet_place)p;
        } else if (argv[i][0] != '-' && !*folder) {
            *folder = argv[i];
        } else {
            return false;
        }
    }
    return *folder && *passes >= 0;
}

int main(int argc, char **argv)
{
    const char *folder = NULL;
    duet_place place = DUET_AUTO;
    int passes = 12;
    digits d = { 0 };
    trainer t = { 0 };
    if (!parse(argc, argv, &folder, &place, &passes)) return usage();
    if (!digits_read(&d, folder)) return 1;

    duet_status s = DUET_NO_MEMORY;
    DUET_ON(place)
    {
        if (trainer_open(&t, &d)) s = train(&t, &d, passes);
        if (s == DUET_OK) s = train_cnn(&d, passes);
    }
    if (s != DUET_OK) fprintf(stderr, "digits: %s: %s\n", duet_status_text(s), duet_error());
    trainer_close(&t);
    digits_free(&d);
    return s != DUET_OK;
}
