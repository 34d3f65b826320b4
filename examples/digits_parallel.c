/* digits_parallel.c - trains a dense network with layers of 784, 1000, 1000 and 10 units on a group. Each
 * rank has all weights and a part of each batch. Each rank computes the gradients of its images, and Duet
 * adds them. docs/tutorial-groups.md explains the differences to digits.c. */
#include "digits_parallel.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1000, BATCHES = LEARN / BATCH, HIDDEN = 1000 };
static const double rate = 0.05;

/* One layer: weights w and biases b, their velocities vw and vb (for momentum), and the gradients of the
 * loss with respect to w and b. */
typedef struct layer {
    duet_matrix *w, *b, *vw, *vb, *dw, *db;
} layer;

typedef struct trainer {
    layer at[3];
    duet_matrix *images, *targets;                 /* all batches, in the order of this pass */
    duet_matrix *batch[BATCHES], *target[BATCHES]; /* views of them */
    duet_matrix *test, *tested;                    /* the test images, and their targets */
    duet_matrix *loss, *right;                     /* of the test images; right: how many are recognised */
} trainer;

/* ---- the network ---- */

/* Each rank has all elements of these matrices. */
static bool layer_open(duet_group *g, layer *l, int k, int n, uint32_t stream)
{
    *l = (layer){ duet_new_replicated(g, DUET_F32, k, n), duet_new_replicated(g, DUET_F32, n),
                  duet_new_replicated(g, DUET_F32, k, n), duet_new_replicated(g, DUET_F32, n),
                  duet_new_replicated(g, DUET_F32, k, n), duet_new_replicated(g, DUET_F32, n) };
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

/* Copies the training images to t->images in a random order, another one for each pass. Every process of the
 * group writes the same elements. */
static duet_status shuffle(const trainer *t, const digits *d, int pass)
{
    static int order[LEARN];
    digits_order(order, 100 + (uint32_t)pass);
    return digits_copy(d, order, LEARN, t->images, t->targets);
}

static duet_status one_pass(const trainer *t, const digits *d, int pass, double *seconds)
{
    const double start = now();
    STEP(shuffle(t, d, pass));
    for (int i = 0; i < BATCHES; i++) STEP(learn(t, i));
    STEP(duet_synchronize());
    *seconds = now() - start;
    return DUET_OK;
}

/* The mean loss of the test images, and the fraction that the network recognises. */
static duet_status test(const trainer *t, double *loss, double *share)
{
    const duet_expr out = output(t->at, t->test);
    const duet_expr is_right = duet_equal(duet_argmax(out, 1), duet_argmax(t->tested, 1));
    STEP(duet_set_all({ t->loss, duet_cross_entropy_logits(out, t->tested) },
                      { t->right, duet_sum(duet_cast(is_right, DUET_I64)) }));
    const float *of = duet_read_f32(t->loss);
    const int64_t *right = duet_read_i64(t->right);
    if (!of || !right) return DUET_DEVICE_ERROR;
    *loss = *of;
    *share = (double)*right / TEST;
    return DUET_OK;
}

static duet_status train(const trainer *t, const digits *d, int passes, bool prints)
{
    double seconds, loss, share;
    for (int pass = 1; pass <= passes; pass++) {
        STEP(one_pass(t, d, pass, &seconds));
        STEP(test(t, &loss, &share));
        if (prints)
            printf("pass %2d/%d  loss %.5g  accuracy %.2f %%  %.0f images/s\n", pass, passes, loss,
                   100 * share, LEARN / seconds);
        if (prints) fflush(stdout);
    }
    return DUET_OK;
}

/* ---- matrices ---- */

/* Writes the test images and their targets. */
static bool fill_tests(const trainer *t, const digits *d)
{
    float *image = duet_overwrite_f32(t->test), *digit = duet_overwrite_f32(t->tested);
    if (!image || !digit) return false;
    memcpy(image, d->image + LEARN * PIXELS, sizeof *image * TEST * PIXELS);
    for (int i = 0; i < TEST * CLASSES; i++) digit[i] = d->label[LEARN + i / CLASSES] == i % CLASSES;
    return true;
}

/* The images of each batch are split, so that each rank has a part of each batch. */
static bool trainer_open(duet_group *g, trainer *t, const digits *d)
{
    t->images = duet_new_split(g, DUET_F32, 1, BATCHES, BATCH, PIXELS);
    t->targets = duet_new_split(g, DUET_F32, 1, BATCHES, BATCH, CLASSES);
    t->test = duet_new_split(g, DUET_F32, 0, TEST, PIXELS);
    t->tested = duet_new_split(g, DUET_F32, 0, TEST, CLASSES);
    t->loss = duet_new_replicated(g, DUET_F32);
    t->right = duet_new_replicated(g, DUET_I64);
    bool ok = t->images && t->targets && t->test && t->tested && t->loss && t->right;
    for (int i = 0; i < BATCHES && ok; i++) {
        t->batch[i] = duet_row(t->images, i); /* BATCH x PIXELS, split along axis 0 */
        t->target[i] = duet_row(t->targets, i);
        ok = t->batch[i] && t->target[i];
    }
    return ok && fill_tests(t, d) && layer_open(g, &t->at[0], PIXELS, HIDDEN, 1) &&
           layer_open(g, &t->at[1], HIDDEN, HIDDEN, 2) && layer_open(g, &t->at[2], HIDDEN, CLASSES, 3);
}

static void trainer_close(trainer *t)
{
    for (int i = 0; i < 3; i++) layer_close(&t->at[i]);
    for (int i = 0; i < BATCHES; i++) duet_free(&t->batch[i], &t->target[i]);
    duet_free(&t->images, &t->targets, &t->test, &t->tested, &t->loss, &t->right);
}

duet_status digits_parallel(duet_group *g, const digits *d, int passes, bool prints)
{
    trainer t = { 0 };
    if (prints) duet_group_info(stdout, g);
    const duet_status s = trainer_open(g, &t, d) ? train(&t, d, passes, prints) : DUET_NO_MEMORY;
    trainer_close(&t);
    return s;
}

void digits_complain(const char *program, duet_status s)
{
    fprintf(stderr, "%s: %s: %s\n", program, duet_status_text(s), duet_error());
}

/* ---- the command line ---- */

static bool parse_place(const char *word, duet_place *place)
{
    static const char *const places[] = { [DUET_AUTO] = "auto", [DUET_CPU] = "cpu", [DUET_GPU] = "gpu" };
    for (int p = DUET_AUTO; p <= DUET_GPU; p++)
        if (!strcmp(word, places[p])) return *place = (duet_place)p, true;
    return false;
}

static bool parse(int argc, char **argv, digits_options *o)
{
    *o = (digits_options){ .place = DUET_AUTO, .passes = 3 };
    for (int i = 1; i < argc; i++) {
        const bool has_value = argv[i][0] == '-' && i + 1 < argc;
        if (argv[i][0] != '-' && !o->folder) o->folder = argv[i];
        else if (has_value && !strcmp(argv[i], "--passes")) o->passes = atoi(argv[++i]);
        else if (has_value && !strcmp(argv[i], "--ranks")) o->ranks = atoi(argv[++i]);
        else if (has_value && !strcmp(argv[i], "--backend") && parse_place(argv[i + 1], &o->place)) i++;
        else return false;
    }
    return o->passes >= 0;
}

bool digits_start(int argc, char **argv, digits_options *o, digits *d)
{
    if (!parse(argc, argv, o)) {
        fprintf(stderr, "usage: %s [FOLDER] [--backend cpu|gpu|auto] [--ranks N] [--passes N]\n", argv[0]);
        return false;
    }
    return o->folder ? digits_read(d, o->folder) : digits_make(d);
}
