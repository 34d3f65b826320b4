/* distributed_networks.c - the networks of duet-distributed: dense 784-500-500-10, and the convolutional
 * network of docs/results.md. The batch is split along axis 0, and the weights are replicated. */
#include "distributed.h"
#include <math.h>

enum { CLASSES = 10, INPUT = 0, TARGET = 1, WEIGHTS = 3, LAYERS = 4 };
static const double rate = 0.05;

/* The matrices of a training are the input, the target, the loss, then for each layer weights and biases,
 * then the gradients in the same order. Those of the forward pass have the output in place of the loss, and
 * no gradients. */
typedef struct network {
    int64_t in[3];                  /* the sizes of one input; 0: no such axis */
    int64_t weights[LAYERS + 1][4]; /* of each layer; 0: no such axis, or no more layers */
} network;

static const network dense = { { 784 }, { { 784, 500 }, { 500, 500 }, { 500, CLASSES } } };
static const network cnn = { { 3, 32, 32 },
                             { { 16, 3, 3, 3 }, { 32, 16, 3, 3 }, { 2048, 1000 }, { 1000, CLASSES } } };

static int rank_of(const int64_t *size, int most)
{
    int rank = 0;
    while (rank < most && size[rank]) rank++;
    return rank;
}

static bool add_layer(trial *t, const int64_t *size, int k)
{
    const int rank = rank_of(size, 4);
    const bool is_conv = rank == 4;
    const int64_t fan = is_conv ? size[1] * size[2] * size[3] : size[0], count = size[is_conv ? 0 : 1];
    const double limit = sqrt(3.0 / (double)fan);
    duet_matrix *w = add_shape(t, DUET_F32, WHOLE, rank, size), *b = ADD(t, DUET_F32, WHOLE, count);
    return w && b && duet_random_uniform(w, 100 + (uint64_t)k, -limit, limit) == DUET_OK;
}

static bool add_network(trial *t, const network *net, bool trains)
{
    const int64_t batch[4] = { t->n, net->in[0], net->in[1], net->in[2] };
    duet_matrix *x = add_shape(t, DUET_F32, 0, rank_of(batch, 4), batch),
                *target = ADD(t, DUET_F32, 0, t->n, CLASSES);
    const int64_t outputs[2] = { t->n, CLASSES };
    bool ok = x && target && add_shape(t, DUET_F32, trains ? WHOLE : 0, trains ? 0 : 2, outputs);
    for (int k = 0; ok && net->weights[k][0]; k++) ok = add_layer(t, net->weights[k], k);
    const int parameters = t->count - WEIGHTS;
    for (int k = 0; trains && ok && k < parameters; k++) {
        const duet_matrix *w = t->m[WEIGHTS + k];
        int64_t size[DUET_RANK_MAX];
        for (int a = 0; a < duet_rank(w); a++) size[a] = duet_size(w, a);
        ok = add_shape(t, DUET_F32, WHOLE, duet_rank(w), size);
    }
    return ok && fill(t, x, 1, -1, 1) && fill(t, target, 2, 0, 2.0 / CLASSES);
}

bool dense_open(trial *t) { return add_network(t, &dense, false); }
bool dense_train_open(trial *t) { return add_network(t, &dense, true); }
bool cnn_train_open(trial *t) { return add_network(t, &cnn, true); }

/* ---- statements ---- */

static duet_expr images(duet_expr x, const duet_matrix *w, const duet_matrix *b)
{
    const duet_expr sums = duet_bias_add(duet_conv2d(x, w, .pad = { 1, 1 }), b);
    return duet_max_pool2d(duet_relu(sums), .window = { 2, 2 });
}

/* The output of the network with `parameters` weights and biases. */
static duet_expr output(const trial *t, int parameters)
{
    duet_expr x = DUET(t->m[INPUT]);
    bool has_images = duet_rank(t->m[INPUT]) == 4;
    for (int k = WEIGHTS; k < WEIGHTS + parameters; k += 2) {
        const duet_matrix *w = t->m[k], *b = t->m[k + 1];
        if (duet_rank(w) == 4) {
            x = images(x, w, b);
            continue;
        }
        if (has_images) x = duet_reshape(x, t->n, -1);
        has_images = false;
        x = duet_bias_add(duet_matmul(x, w), b);
        if (k + 2 < WEIGHTS + parameters) x = duet_relu(x);
    }
    return x;
}

duet_status dense_run(const trial *t) { return duet_set(t->m[LOSS], output(t, t->count - WEIGHTS)); }

duet_status train_run(const trial *t)
{
    const int parameters = (t->count - WEIGHTS) / 2;
    duet_matrix *const *w = t->m + WEIGHTS, *const *d = w + parameters;
    const duet_expr loss = duet_cross_entropy_logits(output(t, parameters), t->m[TARGET]);
    duet_assignment all[2 * LAYERS + 1] = { { t->m[LOSS], loss } };
    for (int k = 0; k < parameters; k++) all[k + 1] = (duet_assignment){ d[k], duet_grad(loss, w[k]) };
    STEP((duet_set_all)(all, parameters + 1));
    for (int k = 0; k < parameters; k++)
        all[k] = (duet_assignment){ w[k], duet_sub(w[k], duet_mul(rate, d[k])) };
    return (duet_set_all)(all, parameters);
}
