/* autoencoder.c - compresses images of bars, 8 x 8 pixels, to 6 numbers and back. The network learns by
 * Adam; its gradients come from duet_grad. */
#include <duet/duet.h>
#include <math.h>

enum { IMAGES = 512, SIDE = 8, PIXELS = SIDE * SIDE, CODE = 6, HIDDEN = 32, LAYERS = 4, STEPS = 600 };

/* Weights and biases of the layers in turn; gradients, and running means of them and of their squares. */
typedef struct network {
    duet_matrix *w[2 * LAYERS], *d[2 * LAYERS], *mean[2 * LAYERS], *square[2 * LAYERS];
} network;

static int network_open(network *n)
{
    static const int units[] = { PIXELS, HIDDEN, CODE, HIDDEN, PIXELS };
    int failed = 0;
    for (int k = 0; k < 2 * LAYERS; k++) {
        const int from = units[k / 2], to = units[k / 2 + 1], rank = k % 2 ? 1 : 2;
        const int64_t size[] = { k % 2 ? to : from, to };
        duet_matrix **all[] = { &n->w[k], &n->d[k], &n->mean[k], &n->square[k] };
        for (int i = 0; i < 4; i++)
            failed |= !(*all[i] = duet_new_shape(DUET_F32, rank, size)) || duet_set(*all[i], 0);
        if (rank == 2) failed |= duet_random_normal(n->w[k], (uint64_t)k, 0, sqrt(2.0 / from));
    }
    return failed;
}

static void network_close(network *n)
{
    for (int k = 0; k < 2 * LAYERS; k++) duet_free(&n->w[k], &n->d[k], &n->mean[k], &n->square[k]);
}

/* The logits of the pixels. The code has no activation. */
static duet_expr output(const network *n, const duet_matrix *x)
{
    duet_expr h = DUET(x);
    for (int k = 0; k < LAYERS; k++) {
        h = duet_bias_add(duet_matmul(h, n->w[2 * k]), n->w[2 * k + 1]);
        if (k != 1 && k != LAYERS - 1) h = duet_relu(h);
    }
    return h;
}

static duet_status learn(const network *n, const duet_matrix *x, duet_matrix *loss, int step)
{
    const duet_expr e = duet_binary_cross_entropy_logits(output(n, x), x);
    duet_assignment all[2 * LAYERS + 1] = { { loss, e } };
    for (int k = 0; k < 2 * LAYERS; k++) all[k + 1] = (duet_assignment){ n->d[k], duet_grad(e, n->w[k]) };
    duet_status s = (duet_set_all)(all, 2 * LAYERS + 1);
    for (int k = 0; k < 2 * LAYERS && s == DUET_OK; k++)
        s = duet_adam(n->w[k], n->d[k], n->mean[k], n->square[k], 3e-3, step);
    return s;
}

/* Each image has one horizontal and one vertical bar. */
static int draw(duet_matrix *x)
{
    const duet_expr i = duet_iota(DUET_I64, IMAGES);
    const duet_expr row = duet_one_hot(duet_remainder(i, SIDE), SIDE, DUET_F32),
                    column = duet_one_hot(duet_remainder(duet_floor_divide(i, SIDE), SIDE), SIDE, DUET_F32);
    const duet_expr bars = duet_maximum(duet_expand_dims(row, 2), duet_expand_dims(column, 1));
    return duet_set(x, duet_reshape(bars, IMAGES, PIXELS));
}

int main(void)
{
    network n = { 0 };
    duet_matrix *x = duet_new(DUET_F32, IMAGES, PIXELS), *loss = duet_new(DUET_F32, 1);
    double right = 0;
    int failed = draw(x) || network_open(&n);
    for (int step = 1; !failed && step <= STEPS; step++) {
        failed = learn(&n, x, loss, step);
        if (!failed && step % 150 == 0) failed = duet_print(stdout, "step", step, "loss", loss);
    }
    const duet_expr same = duet_equal(duet_greater(output(&n, x), 0), duet_greater(x, 0.5));
    failed = failed || duet_item(duet_mean(duet_cast(same, DUET_F32)), &right) ||
             duet_print(stdout, "pixels restored", right);
    if (failed) fprintf(stderr, "%s\n", duet_error());
    network_close(&n);
    duet_free(&x, &loss);
    return failed || right < 0.98 || duet_live(stderr);
}
