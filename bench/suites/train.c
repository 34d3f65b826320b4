/* train.c - a training step of the dense network and of the convolutional one, as a module for
 * peers/train.py: cross-entropy, its gradients by duet_grad, and gradient descent with momentum as in
 * PyTorch. */
#include <duet/duet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETERS = 8, CLASSES = 10 };
static const double momentum = 0.9, rate = 0.05;

typedef struct network {
    const char *name;
    int64_t in[3];                   /* the sizes of one input; 0: no such axis */
    int64_t size[PARAMETERS + 1][4]; /* weights and biases of the layers in turn; 0: the end */
} network;

static const network networks[] = {
    { "dense",
      { 784 },
      { { 784, 1000 }, { 1000 }, { 1000, 1000 }, { 1000 }, { 1000, CLASSES }, { CLASSES } } },
    { "cnn",
      { 3, 32, 32 },
      { { 16, 3, 3, 3 },
        { 16 },
        { 32, 16, 3, 3 },
        { 32 },
        { 2048, 1000 },
        { 1000 },
        { 1000, CLASSES },
        { CLASSES } } },
};

typedef struct trial {
    const network *of;
    duet_place place;
    int count;
    duet_matrix *x, *target, *loss, *w[PARAMETERS], *d[PARAMETERS], *v[PARAMETERS];
    duet_recording *recording;
} trial;

/* ---- the step ---- */

static duet_expr layer(duet_expr x, const trial *t, int k)
{
    return duet_bias_add(duet_matmul(x, t->w[k]), t->w[k + 1]);
}

static duet_expr images(duet_expr x, const trial *t, int k)
{
    const duet_expr sums = duet_bias_add(duet_conv2d(x, t->w[k], .pad = { 1, 1 }), t->w[k + 1]);
    return duet_max_pool2d(duet_relu(sums), .window = { 2, 2 });
}

static duet_expr output(const trial *t)
{
    duet_expr x = DUET(t->x);
    int k = 0;
    if (t->of->in[1]) {
        for (; k < 4; k += 2) x = images(x, t, k);
        x = duet_reshape(x, duet_size(t->x, 0), -1);
    }
    for (; k + 2 < t->count; k += 2) x = duet_relu(layer(x, t, k));
    return layer(x, t, k);
}

static duet_status step(const trial *t)
{
    const duet_expr loss = duet_cross_entropy_logits(output(t), t->target);
    duet_assignment all[PARAMETERS + 1] = { { t->loss, loss } };
    for (int k = 0; k < t->count; k++) all[k + 1] = (duet_assignment){ t->d[k], duet_grad(loss, t->w[k]) };
    duet_status s = (duet_set_all)(all, t->count + 1);
    for (int k = 0; k < t->count && s == DUET_OK; k++)
        s = duet_set_all({ t->v[k], duet_add(duet_mul(momentum, t->v[k]), t->d[k]) },
                         { t->w[k], duet_sub(t->w[k], duet_mul(rate, t->v[k])) });
    return s;
}

/* ---- the module ---- */

const char *train_error(void) { return duet_error(); }

void train_close(trial *t)
{
    duet_recording_free(&t->recording);
    duet_free(&t->x, &t->target, &t->loss);
    for (int k = 0; k < t->count; k++) duet_free(&t->w[k], &t->d[k], &t->v[k]);
    free(t);
}

static duet_matrix *new_of(int64_t n, const int64_t *size, int most)
{
    int64_t all[5] = { n };
    int rank = n > 0;
    for (int a = 0; a < most && size[a]; a++) all[rank++] = size[a];
    return duet_new_shape(DUET_F32, rank, all);
}

static bool open_all(trial *t, int64_t batch)
{
    bool ok = (t->x = new_of(batch, t->of->in, 3)) && (t->target = duet_new(DUET_F32, batch, CLASSES)) &&
              (t->loss = duet_new(DUET_F32, 1));
    for (int k = 0; ok && k < PARAMETERS && t->of->size[k][0]; k++) {
        duet_matrix **all[] = { &t->w[k], &t->d[k], &t->v[k] };
        t->count = k + 1;
        for (int i = 0; i < 3; i++) ok &= (*all[i] = new_of(0, t->of->size[k], 4)) != NULL;
    }
    return ok;
}

trial *train_open(const char *name, int64_t batch, int on_gpu)
{
    trial *t = calloc(1, sizeof *t);
    t->place = on_gpu ? DUET_GPU : DUET_CPU;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        if (!strcmp(networks[i].name, name)) t->of = &networks[i];
    if (t->of && open_all(t, batch)) return t;
    train_close(t);
    return NULL;
}

/* Matrix k: the input, the target, the parameters, their velocities, the loss. NULL: there are no more. */
static duet_matrix *matrix_of(const trial *t, int k)
{
    if (k < 2) return k ? t->target : t->x;
    if (k < 2 + t->count) return t->w[k - 2];
    if (k < 2 + 2 * t->count) return t->v[k - 2 - t->count];
    return k == 2 + 2 * t->count ? t->loss : NULL;
}

int train_shape(const trial *t, int k, int64_t *size) /* returns the rank; -1: no such matrix */
{
    const duet_matrix *m = matrix_of(t, k);
    for (int a = 0; m && a < duet_rank(m); a++) size[a] = duet_size(m, a);
    return m ? duet_rank(m) : -1;
}

int train_set(trial *t, int k, const float *from)
{
    float *p = duet_overwrite(matrix_of(t, k));
    if (p) memcpy(p, from, sizeof *p * (size_t)duet_count(matrix_of(t, k)));
    return p != NULL;
}

int train_get(trial *t, int k, float *to)
{
    const float *p = duet_read(matrix_of(t, k));
    if (p) memcpy(to, p, sizeof *p * (size_t)duet_count(matrix_of(t, k)));
    return p != NULL;
}

/* Runs steps and waits for them. how: 0: as statements, which may be replayed automatically; 1: as a
 * recording. */
int train_run(trial *t, int steps, int how)
{
    duet_status s = DUET_OK;
    DUET_ON(t->place)
    {
        if (how && !t->recording) {
            s = duet_record_begin();
            if (s == DUET_OK) s = step(t);
            t->recording = duet_record_end();
            if (!t->recording && s == DUET_OK) s = duet_error_status();
            steps--;
        }
        for (int i = 0; i < steps && s == DUET_OK; i++) s = how ? duet_replay(t->recording) : step(t);
        if (s == DUET_OK) s = duet_synchronize();
    }
    return (int)s;
}

/* How many kernels and CUDA graphs were launched since the process started. */
void train_launches(uint64_t *kernels, uint64_t *graphs)
{
    const duet_counts all = duet_stats();
    *kernels = all.launches;
    *graphs = all.graphs;
}

/* Prints the plan of a step. */
void train_explain(const trial *t)
{
    DUET_ON(t->place)
    DUET_EXPLAIN(stdout)
    {
        const duet_status s = step(t);
        if (s != DUET_OK) printf("%s\n", duet_error());
    }
}
