/* distributed_trial.c - makes the matrices of a case on a group, fills them, and compares results. */
#include "distributed.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const mode_names[] = { "strong", "weak", "collective", "overhead" };

/* ---- matrices ---- */

static duet_matrix *new_shape(duet_group *g, duet_dtype type, int axis, int rank, const int64_t *size)
{
    if (!g) return duet_new_shape(type, rank, size);
    return axis == WHOLE ? duet_new_replicated_shape(g, type, rank, size)
                         : duet_new_split_shape(g, type, axis, rank, size);
}

duet_matrix *add_shape(trial *t, duet_dtype type, int axis, int rank, const int64_t *size)
{
    duet_matrix *m = new_shape(t->g, type, axis, rank, size);
    if (!m) return NULL;
    t->axis[t->count] = axis;
    t->m[t->count++] = m;
    return m;
}

/* ---- elements ---- */

enum { MOST_RANDOM = 1 << 22 }; /* elements that the host fills */

/* A factor of the elements of m, along some of its axes; it repeats along the others. */
static duet_matrix *new_factor(const trial *t, const duet_matrix *m, uint32_t axes, int split, uint32_t seed)
{
    int64_t size[DUET_RANK_MAX];
    for (int a = 0; a < duet_rank(m); a++) size[a] = axes >> a & 1 ? duet_size(m, a) : 1;
    duet_matrix *f = new_shape(t->g, DUET_F32, split, duet_rank(m), size);
    if (f && duet_random_uniform(f, seed, 1, 32) != DUET_OK) duet_free(&f);
    return f;
}

static duet_expr between(duet_expr product, double low, double high)
{
    return duet_add(duet_mul(duet_sub(product, duet_floor(product)), high - low), low);
}

static int axis_of(const trial *t, const duet_matrix *m)
{
    for (int k = 0; k < t->count; k++)
        if (t->m[k] == m) return t->axis[k];
    return WHOLE;
}

/* The fraction of the product of two random numbers: one for each index of the split axis, and one for each
 * index of the others. So each rank computes its part, and no element is copied from the host. */
static bool fill_product(const trial *t, duet_matrix *m, uint32_t seed, double low, double high)
{
    const int split = axis_of(t, m), axis = split == WHOLE ? 0 : split, rank = duet_rank(m);
    const uint32_t own = 1u << axis, all = (1u << rank) - 1, last = 1u << (rank - 1 - (axis == rank - 1));
    const bool many = duet_count(m) / duet_size(m, axis) > MOST_RANDOM;
    duet_matrix *u = new_factor(t, m, own, split, 2 * seed),
                *v = new_factor(t, m, many ? last : all & ~own, WHOLE, 2 * seed + 1);
    bool ok = u && v;
    if (ok && duet_type(m) == DUET_C64)
        ok = duet_set(m, duet_complex(between(duet_mul(u, v), low, high),
                                      between(duet_mul(3.7f, duet_mul(u, v)), low, high))) == DUET_OK;
    else if (ok) ok = duet_set(m, between(duet_mul(u, v), low, high)) == DUET_OK;
    duet_free(&u, &v);
    return ok;
}

bool fill(const trial *t, duet_matrix *m, uint32_t seed, double low, double high)
{
    if (duet_rank(m) > 1) return fill_product(t, m, seed, low, high);
    return duet_random_uniform(m, seed, low, high) == DUET_OK;
}

/* ---- a trial ---- */

bool trial_open(trial *t, const test *of, duet_group *g, int64_t base, int64_t parts)
{
    *t = (trial){
        .of = of, .g = g, .parts = parts, .base = base, .n = of->mode == WEAK ? base * parts : base
    };
    const int64_t ranks = g ? duet_group_ranks(g) : 1;
    t->fence = new_shape(g, DUET_F32, 0, 1, &ranks);
    return t->fence && of->open(t) && trial_wait(t) == DUET_OK;
}

void trial_close(trial *t)
{
    duet_recording_free(&t->recording);
    for (int k = 0; k < t->count; k++) duet_free(&t->m[k]);
    duet_free(&t->fence);
    t->count = 0;
}

/* Every rank sends an element after its other work. duet_synchronize waits for the GPU of this thread
 * only. */
duet_status trial_wait(const trial *t)
{
    duet_matrix *all = duet_new(DUET_F32, duet_size(t->fence, 0));
    duet_status s = all ? duet_set(all, duet_add(t->fence, 1)) : duet_error_status();
    if (s == DUET_OK && !duet_read(all)) s = duet_error_status();
    duet_free(&all);
    if (s == DUET_OK) s = duet_synchronize();
    return s;
}

duet_recording *record(const trial *t)
{
    if (duet_record_begin() != DUET_OK) return NULL;
    (void)!t->of->run(t); /* if it fails, so does the recording */
    return duet_record_end();
}

/* ---- comparison ---- */

enum { MOST_COMPARED = 1 << 24, ROWS_COMPARED = 64 };

/* An ordinary matrix with the elements of m, or with some of its rows if there are many. */
static duet_matrix *sample(const duet_matrix *m)
{
    int64_t size[DUET_RANK_MAX];
    const int64_t rows = duet_rank(m) ? duet_size(m, 0) : 1;
    const bool many = duet_count(m) > MOST_COMPARED && rows > ROWS_COMPARED;
    const int64_t by = many ? rows / ROWS_COMPARED + 1 : 1;
    for (int a = 0; a < duet_rank(m); a++) size[a] = a ? duet_size(m, a) : (rows + by - 1) / by;
    duet_matrix *s = duet_new_shape(duet_type(m), duet_rank(m), size);
    if (s && duet_set(s, many ? duet_range(m, 0, 0, rows, by) : duet_of_matrix(m)) != DUET_OK) duet_free(&s);
    return s;
}

/* The relative error of f32 numbers in the Frobenius norm. NaN if one of them is not finite. */
static double error_of(const float *got, const float *want, int64_t n)
{
    double error = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)got[i] - (double)want[i];
        error += d * d;
        norm += (double)want[i] * (double)want[i];
    }
    return error == 0 ? 0 : sqrt(error / norm);
}

static bool same_matrix(const duet_matrix *got, const duet_matrix *want, double tolerance, char why[200])
{
    duet_matrix *a = sample(got), *b = sample(want);
    const float *x = a ? duet_read(a) : NULL, *y = b ? duet_read(b) : NULL;
    bool ok = x && y;
    snprintf(why, 200, "%s", ok ? "" : duet_error());
    if (ok) {
        const int64_t n = duet_count(a) * (duet_type(a) == DUET_C64 ? 2 : 1);
        const double error = error_of(x, y, n);
        ok = tolerance > 0 ? error <= tolerance : !memcmp(x, y, (size_t)n * sizeof *x);
        if (!ok) snprintf(why, 200, "the relative error is %.3g, allowed is %g", error, tolerance);
    }
    duet_free(&a, &b);
    return ok;
}

bool same_results(const trial *got, const trial *want, char why[200])
{
    for (int k = 0; k < got->count; k++)
        if (got->of->outputs >> k & 1 && !same_matrix(got->m[k], want->m[k], got->of->tolerance, why))
            return false;
    return true;
}

bool check_small(const test *of, duet_group *g, duet_group *one, char why[200])
{
    trial got, want;
    const int64_t parts = g ? duet_group_ranks(g) : 1, base = of->size[LEVEL_CHECK];
    const bool opened = trial_open(&got, of, g, base, parts);
    bool ok = trial_open(&want, of, one, base, parts) && opened;
    for (int k = 0; k < 2 && ok; k++) ok = of->run(&got) == DUET_OK && of->run(&want) == DUET_OK;
    if (ok) ok = same_results(&got, &want, why);
    else snprintf(why, 200, "%.199s", duet_error());
    trial_close(&got);
    trial_close(&want);
    return ok;
}

/* Runs the case once, and again with another input: as statements or as a recording. */
static bool run_twice(trial *t, bool recorded)
{
    if (recorded) t->recording = record(t);
    if (recorded ? !t->recording : t->of->run(t) != DUET_OK) return false;
    if (!fill(t, t->m[0], 77, -1, 1)) return false;
    return (recorded ? duet_replay(t->recording) : t->of->run(t)) == DUET_OK;
}

bool check_recording(const test *of, duet_group *g, char why[200])
{
    trial got, want;
    const int64_t parts = g ? duet_group_ranks(g) : 1, base = of->size[LEVEL_CHECK];
    const bool opened = trial_open(&got, of, g, base, parts);
    bool ok =
        trial_open(&want, of, g, base, parts) && opened && run_twice(&want, false) && run_twice(&got, true);
    if (ok) ok = same_results(&got, &want, why);
    else snprintf(why, 200, "%.199s", duet_error());
    trial_close(&got);
    trial_close(&want);
    return ok;
}
