/* deep.c - the gradients of a deep network, as a module for peers/memory.py: layers of equal size with
 * tanh, of which some are checkpoints. */
#include <duet/duet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS_MAX = 60 };

typedef struct network {
    duet_place place;
    int layers, every; /* a checkpoint follows each multiple of `every`; 0: there is none */
    duet_matrix *x, *target, *loss, *w[LAYERS_MAX], *d[LAYERS_MAX];
    duet_assignment all[LAYERS_MAX + 1];
} network;

const char *deep_error(void) { return duet_error(); }

void deep_close(network *n)
{
    duet_free(&n->x, &n->target, &n->loss);
    for (int k = 0; k < n->layers; k++) duet_free(&n->w[k], &n->d[k]);
    free(n);
}

network *deep_open(int layers, int every, int64_t batch, int64_t width, int on_gpu)
{
    network *n = layers > 0 && layers <= LAYERS_MAX ? calloc(1, sizeof *n) : NULL;
    if (!n) return NULL;
    *n = (network){ .place = on_gpu ? DUET_GPU : DUET_CPU,
                    .layers = layers,
                    .every = every,
                    .x = duet_new(DUET_F32, batch, width),
                    .target = duet_new(DUET_F32, batch, width),
                    .loss = duet_new(DUET_F32, 1) };
    bool ok = n->x && n->target && n->loss;
    for (int k = 0; k < layers; k++)
        ok &= (n->w[k] = duet_new(DUET_F32, width, width)) && (n->d[k] = duet_new(DUET_F32, width, width));
    if (ok) return n;
    deep_close(n);
    return NULL;
}

/* The loss and the gradients of all weights, as formulas. */
static void build(network *n)
{
    duet_expr y = DUET(n->x);
    for (int k = 0; k < n->layers; k++) {
        y = duet_tanh(duet_matmul(y, n->w[k]));
        if (n->every && (k + 1) % n->every == 0) y = duet_checkpoint(y);
    }
    y = duet_mse(y, n->target);
    n->all[0] = (duet_assignment){ n->loss, y };
    for (int k = 0; k < n->layers; k++) n->all[k + 1] = (duet_assignment){ n->d[k], duet_grad(y, n->w[k]) };
}

int deep_run(network *n, int times)
{
    duet_status s = DUET_OK;
    DUET_ON(n->place)
    {
        for (int i = 0; i < times && s == DUET_OK; i++) {
            build(n);
            s = (duet_set_all)(n->all, n->layers + 1);
        }
        if (s == DUET_OK) s = duet_synchronize();
    }
    return (int)s;
}

/* The bytes of temporaries as duet_explain_all prints them. *again: how many steps compute values again. */
int deep_temporaries(network *n, uint64_t *bytes, int *again)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    duet_status s = DUET_NO_MEMORY;
    *bytes = 0;
    *again = 0;
    if (!out) return (int)s;
    build(n);
    DUET_ON(n->place) s = (duet_explain_all)(out, n->all, n->layers + 1);
    fclose(out);
    const char *line = text ? strstr(text, "  memory: ") : NULL;
    unsigned long long found = 0;
    if (line)
        (void)sscanf(line, "  memory: %*u bytes of matrices, %llu bytes of temporaries; %d", &found, again);
    *bytes = found;
    free(text);
    return (int)s;
}

/* Sets the limit to the bytes in use plus `more`; 0 removes it. */
int deep_limit(const network *n, uint64_t more)
{
    return (int)duet_memory_limit(n->place, more ? duet_memory_of(n->place).used + more : 0);
}

/* Matrix k: the input, the target, the loss, the weights, the gradients. */
static duet_matrix *matrix_of(const network *n, int k)
{
    duet_matrix *const first[] = { n->x, n->target, n->loss };
    if (k < 3) return first[k];
    return k - 3 < n->layers ? n->w[k - 3] : n->d[k - 3 - n->layers];
}

int deep_set(const network *n, int k, const float *from)
{
    duet_matrix *m = matrix_of(n, k);
    float *p = duet_overwrite(m);
    if (p) memcpy(p, from, sizeof *p * (size_t)duet_count(m));
    return p != NULL;
}

int deep_get(const network *n, int k, float *to)
{
    const duet_matrix *m = matrix_of(n, k);
    const float *p = duet_read(m);
    if (p) memcpy(to, p, sizeof *p * (size_t)duet_count(m));
    return p != NULL;
}
