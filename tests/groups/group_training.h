/* group_training.h - training steps of a small network, whose sums of gradients are exchanged while other
 * gradients are computed. All numbers are integers, so results do not depend on the order of sums. */
#ifndef GROUP_TRAINING_H
#define GROUP_TRAINING_H

#include "group_cases.h"

enum { TRAINED = 4, TRAINING_STEPS = 3 };

typedef struct trained {
    duet_matrix *x, *t, *loss;
    duet_matrix *w[TRAINED], *d[TRAINED]; /* weights and biases of two layers, and their gradients */
} trained;

static duet_matrix *new_trained(duet_group *g, int axis, int64_t rows, int64_t columns)
{
    const int64_t size[] = { rows, columns };
    const int rank = 1 + (columns > 0);
    if (!g) return duet_new_shape(DUET_F64, rank, size);
    return axis < 0 ? duet_new_replicated_shape(g, DUET_F64, rank, size)
                    : duet_new_split_shape(g, DUET_F64, axis, rank, size);
}

static void fill_integers(rng *r, duet_matrix *m)
{
    double *p = duet_overwrite(m);
    for (int64_t i = 0; CHECK(p != NULL, "%s", duet_error()) && i < duet_count(m); i++)
        p[i] = (double)(rng_below(r, 5) - 2);
}

static void open_trained(rng r, duet_group *g, trained *w)
{
    const int64_t n = 1 + rng_below(&r, 40), a = 1 + rng_below(&r, 9), b = 1 + rng_below(&r, 9),
                  c = 1 + rng_below(&r, 5);
    const int64_t rows[TRAINED] = { a, b, b, c }, columns[TRAINED] = { b, 0, c, 0 };
    w->x = new_trained(g, 0, n, a);
    w->t = new_trained(g, 0, n, c);
    w->loss = new_trained(g, -1, 1, 0);
    for (int k = 0; k < TRAINED; k++) {
        w->w[k] = new_trained(g, -1, rows[k], columns[k]);
        w->d[k] = new_trained(g, rng_chance(&r, 30) ? 0 : -1, rows[k], columns[k]);
    }
    fill_integers(&r, w->x);
    fill_integers(&r, w->t);
    for (int k = 0; k < TRAINED; k++) fill_integers(&r, w->w[k]);
}

static void free_trained(trained *w)
{
    duet_free(&w->x, &w->t, &w->loss);
    for (int k = 0; k < TRAINED; k++) duet_free(&w->w[k], &w->d[k]);
}

static duet_status find_gradients(const trained *w)
{
    const duet_expr h = duet_relu(duet_add(duet_matmul(w->x, w->w[0]), w->w[1])),
                    y = duet_add(duet_matmul(h, w->w[2]), w->w[3]),
                    e = duet_sum(duet_square(duet_sub(y, w->t)));
    duet_assignment list[TRAINED + 1] = { { w->loss, e } };
    for (int k = 0; k < TRAINED; k++) list[k + 1] = (duet_assignment){ w->d[k], duet_grad(e, w->w[k]) };
    return (duet_set_all)(list, TRAINED + 1);
}

static duet_status train(const trained *w)
{
    duet_assignment list[TRAINED];
    const duet_status s = find_gradients(w);
    for (int k = 0; s == DUET_OK && k < TRAINED; k++) {
        const duet_expr next = duet_sub(w->w[k], duet_mul(w->d[k], 1.0 / 64));
        list[k] = (duet_assignment){ w->w[k], duet_clip(duet_round(next), -3, 3) };
    }
    return s == DUET_OK ? (duet_set_all)(list, TRAINED) : s;
}

static bool are_equal(duet_matrix *a, duet_matrix *b)
{
    const double *x = duet_read(a), *y = duet_read(b);
    return x && y && !memcmp(x, y, (size_t)duet_count(a) * sizeof *x);
}

static void compare_trained(const trained *a, const trained *b, const char *how, uint64_t seed)
{
    bool same = are_equal(a->loss, b->loss);
    for (int k = 0; k < TRAINED; k++) same &= are_equal(a->w[k], b->w[k]);
    CHECK(same, "training %s differs, seed %llu", how, (unsigned long long)seed);
}

/* Does the explanation say that other steps run during an exchange? */
static void check_overlap(const trained *w, uint64_t seed)
{
    static char text[20000];
    FILE *out = fmemopen(text, sizeof text, "w");
    duet_status s = DUET_OK;
    DUET_EXPLAIN(out) s = find_gradients(w);
    fclose(out);
    CHECK(s == DUET_OK && strstr(text, "the next steps run meanwhile"), "seed %llu: nothing overlaps: %s",
          (unsigned long long)seed, text);
}

static void run_training(duet_group *g, uint64_t seed, bool overlaps)
{
    const rng r = rng_new(seed);
    trained grouped, plain;
    duet_status s = DUET_OK;
    open_trained(r, g, &grouped);
    open_trained(r, NULL, &plain);
    if (overlaps) check_overlap(&grouped, seed);
    for (int k = 0; k < TRAINING_STEPS; k++)
        CHECK(train(&grouped) == DUET_OK && train(&plain) == DUET_OK, "%s", duet_error());
    compare_trained(&grouped, &plain, "in single steps", seed);
    CHECK(duet_record_begin() == DUET_OK && train(&grouped) == DUET_OK, "%s", duet_error());
    duet_recording *recording = duet_record_end();
    for (int k = 0; CHECK(recording != NULL, "%s", duet_error()) && k < TRAINING_STEPS; k++) {
        if (s == DUET_OK) s = duet_replay(recording);
        CHECK(train(&plain) == DUET_OK, "%s", duet_error());
    }
    CHECK(s == DUET_OK && train(&plain) == DUET_OK, "%s", duet_error());
    compare_trained(&grouped, &plain, "in a recording", seed);
    duet_recording_free(&recording);
    free_trained(&grouped);
    free_trained(&plain);
}

#endif
