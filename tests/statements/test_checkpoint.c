/* test_checkpoint.c - lists of statements that keep less in memory: checkpoints, the order of steps,
 * values that are computed again because of a limit or because that is faster. The gradients of random
 * networks are those of statements that run one by one. */
#include "common.h"
#include "matrix.h"
#include "plan.h"
#include "pool.h"
#include "stream_policy.h"
#include <math.h>

enum { LAYERS = 12, BATCH = 6, UNITS = 5, DEEP = 50 };

static duet_place place[2];
static int places;

static void ok(duet_status s) { CHECK(s == DUET_OK, "%s", duet_error()); }

static void fill(rng *gen, duet_matrix *m)
{
    double *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = (double)rng_below(gen, 2001) / 1000 - 1;
}

/* ---- random networks ---- */

typedef struct network {
    int layers, kind[LAYERS], from[LAYERS];
    bool checkpoint[LAYERS];
    duet_matrix *x, *target, *loss, *w[LAYERS], *b[LAYERS], *dw[LAYERS], *db[LAYERS];
} network;

enum { TANH, RELU, SILU, ELU, GELU, SOFTPLUS, SIGMOID, NORM, PRODUCT, GATE, JOINED, KINDS };

static duet_expr activated(int kind, duet_expr z)
{
    switch (kind) {
    case TANH: return duet_tanh(z);
    case RELU: return duet_relu(z);
    case SILU: return duet_silu(z);
    case ELU: return duet_elu(z, 1);
    case GELU: return duet_gelu(z);
    case SOFTPLUS: return duet_softplus(z);
    case SIGMOID: return duet_sigmoid(z);
    case NORM: return duet_layer_norm(z, 1.5, 0.25, 1e-3);
    case GATE: return duet_mul(duet_sigmoid(z), duet_add(z, 1));
    case JOINED:
        return duet_concat(1, duet_exp(duet_neg(duet_square(duet_index(z, DUET_ALL, DUET_RANGE(0, 2))))),
                           duet_atan(duet_index(z, DUET_ALL, DUET_RANGE(2, UNITS))));
    default: return z;
    }
}

static duet_expr loss_of(const network *n, bool checkpoints)
{
    duet_expr after[LAYERS + 1] = { DUET(n->x) };
    for (int k = 0; k < n->layers; k++) {
        const duet_expr z = duet_bias_add(duet_matmul(after[k], n->w[k]), n->b[k]);
        duet_expr y = activated(n->kind[k], z);
        if (n->from[k] < k) y = duet_add(y, after[n->from[k]]); /* a layer is skipped */
        after[k + 1] = checkpoints && n->checkpoint[k] ? duet_checkpoint(y) : y;
    }
    return duet_mse(after[n->layers], n->target);
}

static network network_new(rng *gen)
{
    network n = { .layers = 2 + (int)rng_below(gen, LAYERS - 1),
                  .x = duet_new(DUET_F64, BATCH, UNITS),
                  .target = duet_new(DUET_F64, BATCH, UNITS),
                  .loss = duet_new(DUET_F64, 1) };
    fill(gen, n.x);
    fill(gen, n.target);
    for (int k = 0; k < n.layers; k++) {
        n.kind[k] = (int)rng_below(gen, KINDS);
        n.from[k] = rng_below(gen, 4) ? k : (int)rng_below(gen, k + 1);
        n.checkpoint[k] = rng_below(gen, 3) == 0;
        n.w[k] = duet_new(DUET_F64, UNITS, UNITS);
        n.b[k] = duet_new(DUET_F64, UNITS);
        n.dw[k] = duet_new(DUET_F64, UNITS, UNITS);
        n.db[k] = duet_new(DUET_F64, UNITS);
        fill(gen, n.w[k]);
        fill(gen, n.b[k]);
    }
    return n;
}

static void network_free(network *n)
{
    duet_free(&n->x, &n->target, &n->loss);
    for (int k = 0; k < n->layers; k++) duet_free(&n->w[k], &n->b[k], &n->dw[k], &n->db[k]);
}

/* All gradients in one list, in a random order. */
static duet_status train(rng *gen, const network *n, bool checkpoints)
{
    const duet_expr loss = loss_of(n, checkpoints);
    duet_assignment all[2 * LAYERS + 1] = { { n->loss, loss } };
    int count = 1;
    for (int k = 0; k < n->layers; k++) {
        all[count++] = (duet_assignment){ n->dw[k], duet_grad(loss, n->w[k]) };
        all[count++] = (duet_assignment){ n->db[k], duet_grad(loss, n->b[k]) };
    }
    for (int i = count - 1; i > 0; i--) {
        const int j = (int)rng_below(gen, i + 1);
        const duet_assignment other = all[i];
        all[i] = all[j];
        all[j] = other;
    }
    return (duet_set_all)(all, count);
}

static void clear(const network *n)
{
    ok(duet_set(n->loss, NAN));
    for (int k = 0; k < n->layers; k++) {
        ok(duet_set(n->dw[k], NAN));
        ok(duet_set(n->db[k], NAN));
    }
}

static bool is_near(double a, double b) { return fabs(a - b) <= 1e-12 * (1 + fabs(b)); }

static void check_equal(const duet_matrix *m, const duet_matrix *expected, const char *what)
{
    const double *p = duet_read_f64(m), *q = duet_read_f64(expected);
    CHECK(p && q, "%s: %s", what, duet_error());
    for (int64_t i = 0; p && q && i < duet_count(m); i++)
        CHECK(is_near(p[i], q[i]), "%s, element %d: %.17g, not %.17g", what, (int)i, p[i], q[i]);
}

/* The gradients are those of statements that run one by one, without a limit and without checkpoints. */
static void check_gradients(const network *n, const char *what)
{
    duet_matrix *loss = duet_eval(loss_of(n, false));
    check_equal(n->loss, loss, what);
    duet_free(&loss);
    for (int k = 0; k < n->layers; k++) {
        duet_matrix *dw = duet_eval(duet_grad(loss_of(n, false), n->w[k])),
                    *db = duet_eval(duet_grad(loss_of(n, false), n->b[k]));
        check_equal(n->dw[k], dw, what);
        check_equal(n->db[k], db, what);
        duet_free(&dw, &db);
    }
    clear(n);
}

static void test_networks(int trials)
{
    rng gen = rng_new(11);
    for (int t = 0; t < trials; t++) {
        network n = network_new(&gen);
        for (int p = 0; p < places; p++)
            for (int fusion = 0; fusion < 3; fusion++) {
                plan_fusion(fusion);
                DUET_ON(place[p]) ok(train(&gen, &n, false));
                check_gradients(&n, "a list");
                DUET_ON(place[p]) ok(train(&gen, &n, true));
                check_gradients(&n, "a list with checkpoints");
            }
        plan_fusion(-1);
        network_free(&n);
    }
    tap_point("the gradients of random networks, with and without checkpoints");
}

/* ---- within a limit ---- */

/* The bytes of temporaries, and the number of steps that compute values again, of a list as explained. */
typedef struct explained {
    unsigned long long temporaries;
    int again, steps;
} explained;

static explained explain(duet_place on, const duet_assignment *all, int count)
{
    explained e = { 0 };
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    DUET_ON(on) ok(duet_explain_all(out, all, count));
    fclose(out);
    const char *line = strstr(text, "  memory: "), *on_line = strstr(text, " on the ");
    if (line)
        (void)sscanf(line, "  memory: %*u bytes of matrices, %llu bytes of temporaries; %d", &e.temporaries,
                     &e.again);
    if (on_line) (void)sscanf(on_line, " on the %*[^:]: %d", &e.steps);
    CHECK(line != NULL, "no line about memory:\n%s", text);
    free(text);
    return e;
}

/* A deep network: its weights are W, W2, ... and its gradients go to one list. */
typedef struct deep {
    duet_matrix *x, *target, *loss, *w[DEEP], *d[DEEP];
    duet_assignment all[DEEP + 1];
} deep;

enum {
    ROWS = 64,
    COLUMNS = 32,
    VALUE = ROWS * COLUMNS * sizeof(float),
    RESULTS = DEEP * COLUMNS * COLUMNS * sizeof(float)
};

static void fill32(rng *gen, duet_matrix *m)
{
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = (float)rng_below(gen, 2001) / 1000 - 1;
}

static deep deep_new(void)
{
    rng gen = rng_new(5);
    deep n = { duet_new(DUET_F32, ROWS, COLUMNS), duet_new(DUET_F32, ROWS, COLUMNS), duet_new(DUET_F32, 1) };
    fill32(&gen, n.x);
    fill32(&gen, n.target);
    for (int k = 0; k < DEEP; k++) {
        n.w[k] = duet_new(DUET_F32, COLUMNS, COLUMNS);
        n.d[k] = duet_new(DUET_F32, COLUMNS, COLUMNS);
        fill32(&gen, n.w[k]);
        ok(duet_set(n.w[k], duet_mul(n.w[k], 0.3)));
    }
    return n;
}

/* Every `every`-th layer is a checkpoint; 0: none. */
static const duet_assignment *deep_list(deep *n, int every)
{
    duet_expr y = DUET(n->x);
    for (int k = 0; k < DEEP; k++) {
        y = duet_tanh(duet_matmul(y, n->w[k]));
        if (every && k % every == every - 1) y = duet_checkpoint(y);
    }
    const duet_expr loss = duet_mse(y, n->target);
    n->all[0] = (duet_assignment){ n->loss, loss };
    for (int k = 0; k < DEEP; k++) n->all[k + 1] = (duet_assignment){ n->d[k], duet_grad(loss, n->w[k]) };
    return n->all;
}

static void deep_free(deep *n)
{
    duet_free(&n->x, &n->target, &n->loss);
    for (int k = 0; k < DEEP; k++) duet_free(&n->w[k], &n->d[k]);
}

static explained explain_deep(duet_place on, deep *n, int every)
{
    const explained e = explain(on, deep_list(n, every), DEEP + 1);
    for (int k = 0; k <= DEEP; k++) forget(n->all[k].value);
    return e;
}

/* With a checkpoint in every 7th layer, about 7 + 50 / 7 values live at once. */
static void test_memory_of_checkpoints(deep *n)
{
    for (int p = 0; p < places; p++) {
        const explained all = explain_deep(place[p], n, 0), some = explain_deep(place[p], n, 7);
        CHECK(all.temporaries >= (unsigned long long)DEEP * VALUE, "%llu bytes", all.temporaries);
        CHECK(!all.again, "%d steps compute values again", all.again);
        const size_t kept = place[p] == DUET_CPU ? 17 : 25; /* on the GPU, results may be temporaries, too */
        CHECK(some.temporaries <= kept * VALUE + (place[p] == DUET_GPU) * RESULTS,
              "%llu bytes with checkpoints", some.temporaries);
        CHECK(some.again > 0 && some.again <= 2 * DEEP, "%d steps compute values again", some.again);
        CHECK(some.steps == all.steps + some.again, "%d steps, not %d", some.steps, all.steps + some.again);
    }
    tap_point("the memory of a network of 50 layers, with and without checkpoints");
}

static void keep(const deep *n, float *to)
{
    for (int k = 0; k < DEEP; k++) {
        const float *p = duet_read_f32(n->d[k]);
        if (p) memcpy(to + (size_t)k * COLUMNS * COLUMNS, p, COLUMNS * COLUMNS * sizeof *p);
        CHECK(p != NULL, "%s", duet_error());
    }
}

static bool is_same(const deep *n, const float *expected)
{
    bool same = true;
    for (int k = 0; k < DEEP; k++) {
        const float *p = duet_read_f32(n->d[k]);
        same &= p && !memcmp(p, expected + (size_t)k * COLUMNS * COLUMNS, COLUMNS * COLUMNS * sizeof *p);
    }
    return same;
}

/* A limit with room for so many values besides what is in use: the matrices of the network, and on the GPU
 * the memory of libraries. */
static void limit(duet_place on, size_t values)
{
    duet_memory_trim();
    ok(duet_memory_limit(on, duet_memory_of(on).used + values * VALUE));
}

static duet_status train_deep(duet_place on, deep *n)
{
    duet_status s = DUET_OK;
    deep_list(n, 0);
    DUET_ON(on) s = (duet_set_all)(n->all, DEEP + 1);
    return s;
}

static duet_status within(duet_place on, deep *n, size_t values)
{
    limit(on, values);
    const duet_status s = train_deep(on, n);
    ok(duet_memory_limit(on, 0));
    return s;
}

/* The bits are the same with any limit. With too little memory, the destinations keep their elements. */
static void test_limits(deep *n)
{
    static float expected[DEEP * COLUMNS * COLUMNS], zeros[DEEP * COLUMNS * COLUMNS];
    static const size_t values[] = { 60, 40, 25, 18, 12, 9, 7 }; /* without a limit, 51 */
    stream_from(1);
    for (int p = 0; p < places; p++) {
        ok(train_deep(place[p], n));
        keep(n, expected);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            for (int k = 0; k < DEEP; k++) ok(duet_set_on(place[p], n->d[k], 0));
            const duet_status s = within(place[p], n, values[i]);
            const bool may_fail = place[p] == DUET_GPU; /* results may be temporaries */
            CHECK(s == DUET_OK || (may_fail && s == DUET_NO_MEMORY), "%s, room for %zu values: %s",
                  place_name(place[p]), values[i], duet_error());
            CHECK(is_same(n, s == DUET_OK ? expected : zeros), "%s, room for %zu values: other bits",
                  place_name(place[p]), values[i]);
        }
        for (int k = 0; k < DEEP; k++) ok(duet_set(n->d[k], 0));
        CHECK(within(DUET_CPU, n, 1) == DUET_NO_MEMORY, "one value suffices");
        CHECK(is_same(n, zeros), "destinations changed");
    }
    stream_from((size_t)1 << 20);
    tap_point("a network of 50 layers within limits on memory");
}

/* A recording and automatic replay keep the plan that fits. */
static void test_repeated(deep *n)
{
    static float expected[DEEP * COLUMNS * COLUMNS];
    stream_from(1);
    for (int p = 0; p < places; p++) {
        ok(within(place[p], n, 60));
        keep(n, expected);
        for (int recorded = 0; recorded < 2; recorded++) {
            duet_recording *r = NULL;
            limit(place[p], place[p] == DUET_CPU ? 24 : 60);
            for (int i = 0; i < 6; i++) {
                if (recorded && !r) ok(duet_record_begin());
                if (!r) ok(train_deep(place[p], n));
                if (recorded && !r) r = duet_record_end();
                if (r) ok(duet_replay(r));
            }
            ok(duet_synchronize());
            CHECK(is_same(n, expected), "%s: other bits", place_name(place[p]));
            duet_recording_free(&r);
            ok(duet_memory_limit(place[p], 0));
        }
    }
    stream_from((size_t)1 << 20);
    tap_point("a recording, and repeated statements, within a limit");
}

/* Automatic replay keeps temporaries while it learns. A statement that fits once always fits. */
static void test_repeats_fit(deep *n)
{
    stream_from(1);
    for (int p = 0; p < places; p++)
        for (size_t values = 24; values <= 84; values += 60) {
            ok(duet_set_on(place[p], n->loss, 0)); /* not the statements of another limit */
            limit(place[p], values);
            const duet_status first = train_deep(place[p], n);
            for (int i = 1; i < 20 && first == DUET_OK; i++) {
                CHECK(train_deep(place[p], n) == DUET_OK, "%s, room for %zu values, call %d: %s",
                      place_name(place[p]), values, i + 1, duet_error());
                ok(duet_synchronize());
            }
            CHECK(first == DUET_OK || values < 84, "%s, room for %zu values: %s", place_name(place[p]),
                  values, duet_error());
            ok(duet_memory_limit(place[p], 0));
        }
    stream_from((size_t)1 << 20);
    tap_point("statements that repeat many times within a limit");
}

/* The plan that recomputes values belongs to another one, but takes memory of its own. This test runs before
 * the others with limits, so that the plan must be made. */
static void test_plans_count(deep *n)
{
    stream_from(1);
    for (int p = 0; p < places; p++) {
        duet_memory_trim();
        ok(train_deep(place[p], n));
        const size_t before = pool_plans();
        limit(place[p], 40);
        ok(train_deep(place[p], n));
        ok(duet_memory_limit(place[p], 0));
        CHECK(pool_plans() > before, "%s: %zu bytes of plans, %zu before", place_name(place[p]), pool_plans(),
              before);
    }
    stream_from((size_t)1 << 20);
    tap_point("plans for less memory count as memory of plans");
}

/* ---- several results of one job, several groups of statements ---- */

static void fill_wave(duet_matrix *m, int phase)
{
    float *p = duet_overwrite(m);
    const int64_t n = duet_count(m) * (duet_type(m) == DUET_C64 ? 2 : 1);
    for (int64_t i = 0; p && i < n; i++) p[i] = (float)sin((double)i * 1.3 + phase) / 2;
}

static void check_equal32(const duet_matrix *m, const duet_matrix *expected)
{
    const float *p = duet_read_f32(m), *q = duet_read_f32(expected);
    CHECK(p && q, "%s", duet_error());
    for (int64_t i = 0; p && q && i < duet_count(m); i++)
        CHECK(fabsf(p[i] - q[i]) <= 1e-4f * (1 + fabsf(q[i])), "element %d: %g, not %g", (int)i, p[i], q[i]);
}

/* One pass computes sums of complex elements, which a Fourier transform reads, and a value that leads to a
 * checkpoint. */
static void complex_list(duet_matrix *const m[5], bool checkpoints, duet_expr to[3])
{
    const duet_expr s = duet_sum(m[0], 1), r = duet_reshape(duet_sum(duet_square(duet_real(m[0])), 1), 1, 8),
                    q = duet_reshape(duet_abs(duet_fft(s, 0, -1)), 1, 8), qs = duet_sum(q);
    duet_expr x = duet_matmul(duet_matmul(q, m[1]), m[4]);
    if (checkpoints) x = duet_checkpoint(x);
    duet_expr c = duet_matmul(duet_tanh(duet_reshape(duet_sum(x, 1), 1, 1)), duet_matmul(r, m[1]));
    if (checkpoints) c = duet_checkpoint(c);
    to[0] = duet_add(duet_mul(duet_matmul(c, m[2]), r), duet_mul(r, 2));
    to[1] = duet_mul(duet_tanh(x), duet_sum(to[0]));
    to[2] = duet_mul(qs, duet_sum(to[0]));
}

static void test_several_results(void)
{
    duet_matrix *m[5] = { duet_new(DUET_C64, 8, 6), duet_new(DUET_F32, 8, 8), duet_new(DUET_F32, 8, 8),
                          duet_new(DUET_F32, 1, 8), duet_new(DUET_F32, 8, 16) };
    duet_matrix *to[3] = { duet_new(DUET_F32, 1, 8), duet_new(DUET_F32, 1, 16), duet_new(DUET_F32, 1, 1) };
    for (int k = 0; k < 5; k++) fill_wave(m[k], k + 1);
    for (int p = 0; p < places; p++) {
        duet_expr e[3];
        complex_list(m, true, e);
        DUET_ON(place[p]) ok(duet_set_all({ to[0], e[0] }, { to[1], e[1] }, { to[2], e[2] }));
        for (int k = 0; k < 3; k++) {
            complex_list(m, false, e);
            duet_matrix *alone = duet_eval(e[k]);
            for (int i = 0; i < 3; i++)
                if (i > k) forget(e[i]);
            const float *a = duet_read_f32(to[k]), *b = duet_read_f32(alone);
            for (int64_t i = 0; a && b && i < duet_count(alone); i++)
                CHECK(fabsf(a[i] - b[i]) <= 1e-4f * (1 + fabsf(b[i])), "result %d, element %d: %g, not %g", k,
                      (int)i, a[i], b[i]);
            CHECK(a && b, "%s", duet_error());
            duet_free(&alone);
        }
    }
    for (int k = 0; k < 5; k++) duet_free(&m[k]);
    duet_free(&to[0], &to[1], &to[2]);
    tap_point("a job that also writes a part of a complex value");
}

static duet_expr deep_formula(const duet_matrix *x, const duet_matrix *b, const duet_matrix *c)
{
    const duet_expr u = duet_matmul(x, b), d = duet_matmul(duet_tanh(u), c);
    return duet_matmul(duet_add(duet_tanh(duet_matmul(d, c)), u), duet_transpose(b));
}

/* The second statement reads what the first one writes, shifted by a row, so it is another group. Memory is
 * held for it while the first one is planned. */
static void test_groups(void)
{
    enum { N = 40 };
    duet_matrix *b = duet_new(DUET_F32, N, 3 * N), *c = duet_new(DUET_F32, 3 * N, 3 * N),
                *x = duet_new(DUET_F32, N, N), *to = duet_zeros(DUET_F32, N + 1, N),
                *last = duet_zeros(DUET_F32, N, N), *first = duet_indexed(to, DUET_RANGE(0, N), DUET_ALL),
                *shifted = duet_indexed(to, DUET_RANGE(1, N + 1), DUET_ALL);
    fill_wave(b, 1), fill_wave(c, 2), fill_wave(x, 3);
    duet_matrix *expected = duet_eval(deep_formula(x, b, c));
    stream_from(1);
    for (int p = 0; p < places; p++)
        for (size_t room = 20000; room < 100000; room += 2500) {
            duet_memory_trim();
            ok(duet_memory_limit(place[p], duet_memory_of(place[p]).used + room));
            duet_status s = DUET_OK;
            for (int i = 0; i < 3; i++) DUET_ON(place[p])
            s = duet_set_all({ first, deep_formula(x, b, c) }, { last, deep_formula(shifted, b, c) });
            ok(duet_memory_limit(place[p], 0));
            CHECK(s == DUET_OK || s == DUET_NO_MEMORY, "%s", duet_error());
            if (s == DUET_OK) check_equal32(first, expected);
        }
    stream_from((size_t)1 << 20);
    duet_free(&first, &shifted, &b, &c, &x, &to, &last, &expected);
    tap_point("groups of statements within limits");
}

/* ---- what is computed again because that is faster ---- */

/* silu(z) and its gradient: z is read by one pass before the product and by one behind it. */
static void test_faster(void)
{
    duet_matrix *x = duet_zeros(DUET_F32, 256, 128), *w = duet_zeros(DUET_F32, 128, 128),
                *v = duet_zeros(DUET_F32, 128, 128), *dw = duet_zeros(DUET_F32, 128, 128),
                *dv = duet_zeros(DUET_F32, 128, 128), *loss = duet_zeros(DUET_F32, 1);
    for (int p = 0; p < places; p++) {
        const duet_expr y = duet_mean(duet_square(duet_matmul(duet_silu(duet_matmul(x, w)), v)));
        const duet_assignment all[] = { { loss, y }, { dw, duet_grad(y, w) }, { dv, duet_grad(y, v) } };
        const explained e = explain(place[p], all, 3);
        const bool copies = place[p] == DUET_GPU; /* perhaps, and small values have memory of their own */
        CHECK(e.steps <= (copies ? 11 : 9), "%d steps", e.steps);
        CHECK(copies || e.temporaries <= 3ull * 256 * 128 * 4 + 1024, "%llu bytes of temporaries",
              e.temporaries);
        for (int k = 0; k < 3; k++) forget(all[k].value);
    }
    duet_free(&x, &w, &v, &dw, &dv, &loss);
    tap_point("passes compute cheap values for themselves");
}

/* The path of a damped pendulum in 40 steps of Heun's method. All values are small, so each pass gains from
 * computing its operands; plans must not grow with every step. */
static duet_expr force_of(duet_expr angle, duet_expr speed, const duet_matrix *k, const duet_matrix *c)
{
    return duet_neg(duet_add(duet_mul(k, duet_sin(angle)), duet_mul(c, speed)));
}

static duet_expr error_of_path(const duet_matrix *start, const duet_matrix *k, const duet_matrix *c)
{
    duet_expr x = DUET(start), v = duet_mul(0, start), all = duet_expand_dims(x, 0);
    for (int i = 0; i < 40; i++) {
        const duet_expr a = force_of(x, v, k, c), u = duet_add(v, duet_mul(0.1, a)),
                        b = force_of(duet_add(x, duet_mul(0.1, v)), u, k, c);
        x = duet_add(x, duet_mul(0.1, duet_mul(0.5, duet_add(v, u))));
        v = duet_add(v, duet_mul(0.1, duet_mul(0.5, duet_add(a, b))));
        all = duet_concat(0, all, duet_expand_dims(x, 0));
    }
    forget(v);
    return duet_mean(duet_square(all));
}

static void test_chain(void)
{
    duet_matrix *start = duet_ones(DUET_F64, 7), *k = duet_full(DUET_F64, 3, 1),
                *c = duet_full(DUET_F64, 0.3, 1), *loss = duet_new(DUET_F64, 1), *dk = duet_new(DUET_F64, 1),
                *dc = duet_new(DUET_F64, 1);
    duet_matrix *alone = duet_eval(error_of_path(start, k, c)),
                *by_k = duet_eval(duet_grad(error_of_path(start, k, c), k)),
                *by_c = duet_eval(duet_grad(error_of_path(start, k, c), c));
    for (int p = 0; p < places; p++) {
        const duet_expr e = error_of_path(start, k, c);
        DUET_ON(place[p]) ok(duet_set_all({ loss, e }, { dk, duet_grad(e, k) }, { dc, duet_grad(e, c) }));
        check_equal(loss, alone, "the loss");
        check_equal(dk, by_k, "the derivative by the stiffness");
        check_equal(dc, by_c, "the derivative by the damping");
    }
    duet_free(&start, &k, &c, &loss, &dk, &dc, &alone, &by_k, &by_c);
    tap_point("a long chain of small values");
}

/* ---- formulas ---- */

static void test_formulas(void)
{
    duet_matrix *x = duet_full(DUET_F32, 2, 3, 4), *z = duet_full(DUET_C64, 2, 5),
                *y = duet_new(DUET_F32, 3, 4), *g = duet_new(DUET_C64, 5), *i = duet_full(DUET_I32, 7, 2);
    for (int p = 0; p < places; p++) DUET_ON(place[p])
        {
            ok(duet_set(y, duet_add(duet_checkpoint(duet_mul(x, 3)), 1)));
            CHECK(duet_read(y) && *duet_read_f32(y) == 7, "%g", *duet_read_f32(y));
            ok(duet_set(y, duet_transpose(duet_checkpoint(duet_transpose(duet_exp(duet_mul(x, 0)))))));
            CHECK(duet_read(y) && *duet_read_f32(y) == 1, "%g", *duet_read_f32(y));
            ok(duet_set(g, duet_grad(duet_sum(duet_square(duet_abs(duet_checkpoint(duet_mul(z, 3))))), z)));
            CHECK(duet_read(g) && fabsf(*(const float *)duet_read(g) - 36) <= 1e-4f, "%g",
                  *(const float *)duet_read(g));
        }
    duet_expr e = duet_checkpoint(3);
    CHECK(duet_expr_status(e) == DUET_OK, "a number: %s", duet_error());
    forget(e);
    e = duet_checkpoint(i);
    CHECK(duet_expr_type(e) == DUET_I32, "type %d", (int)duet_expr_type(e));
    forget(e);
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    e = duet_checkpoint(duet_add(x, 1));
    ok(duet_print_expr(out, e));
    fclose(out);
    CHECK(strstr(text, "duet_checkpoint(") != NULL, "%s", text);
    free(text);
    forget(e);
    duet_free(&x, &z, &y, &g, &i);
    tap_point("checkpoints of formulas, views, numbers, complex and integer matrices");
}

int main(int argc, char **argv)
{
    const int trials = trial_count(argc, argv, 40, 300);
    places = list_places(place);
    test_formulas();
    test_networks(trials);
    deep n = deep_new();
    test_memory_of_checkpoints(&n);
    test_plans_count(&n);
    test_limits(&n);
    test_repeated(&n);
    test_repeats_fit(&n);
    deep_free(&n);
    test_several_results();
    test_groups();
    test_faster();
    test_chain();
    return tap_end();
}
