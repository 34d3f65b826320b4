/* test_fft_slabs.c - Fourier transforms whose passes run in slabs: against the definition, and against
 * the same transforms with strided plans. */
#include "fake_cuda.h"
#include "fourier_trial.h"
#include "in_thread.h"
#include "step_kinds.h"

typedef struct slab_trial {
    const trial *t;
    const fourier_slabs *how;
    const duet_matrix *x;
    duet_matrix *y;
    uint64_t calls; /* of cuFFT */
} slab_trial;

/* In a thread of its own, because a plan of an earlier statement divides a transform as it was then. */
static void *run_slab_trial(void *arg)
{
    slab_trial *s = arg;
    const uint64_t before = fake_count().transforms;
    const bool in_place = s->x == s->y;
    gpu_fourier_slabs(s->how);
    set_on(DUET_GPU, s->y, formula_for(s->t, s->x));
    if (!in_place && CHECK(duet_read(s->y) != NULL, "%s", duet_error()))
        s->calls = fake_count().transforms - before;
    gpu_fourier_slabs(NULL);
    return NULL;
}

static bool keeps_shape(const trial *t, const array *y)
{
    bool same = t->type == result_type(t) && t->x.rank == y->rank;
    for (int a = 0; a < y->rank && same; a++) same = t->x.size[a] == y->size[a];
    return same;
}

/* The same bits, since the fake cuFFT computes each transform alone. */
static void check_bits(const char *name, const duet_matrix *a, const duet_matrix *b)
{
    const size_t bytes = (size_t)duet_count(a) * dtypes[duet_type(a)].bytes;
    CHECK(!bytes || !memcmp(duet_read(a), duet_read(b), bytes), "%s: the bits differ", name);
}

static void transform_in_place(const char *name, const trial *t, const fourier_slabs *how,
                               const duet_matrix *x, const duet_matrix *want)
{
    duet_matrix *y = duet_new_shape(t->type, t->x.rank, t->x.size);
    set_on(DUET_CPU, y, DUET(x));
    run_in_thread(run_slab_trial, &(slab_trial){ .t = t, .how = how, .x = y, .y = y });
    check_bits(name, want, y);
    duet_free(&y);
}

/* Returns the number of calls of cuFFT with slabs beyond those with strides. */
static int64_t in_slabs(const trial *t, const fourier_slabs *how)
{
    const fourier_slabs none = { SIZE_MAX, how->slab_bytes, how->columns, how->length, how->element };
    duet_matrix *whole, *x = laid(t, &whole);
    char name[300];
    array at = array_of(x);
    real size, terms;
    array want = meant(t, &at, &size, &terms);
    duet_matrix *y[2];
    for (int i = 0; i < 2; i++) y[i] = duet_new_shape(result_type(t), want.rank, want.size);
    slab_trial s = { .t = t, .how = how, .x = x, .y = y[0] },
               strided = { .t = t, .how = &none, .x = x, .y = y[1] };
    name_trial(t, name, DUET_GPU);
    run_in_thread(run_slab_trial, &s);
    run_in_thread(run_slab_trial, &strided);
    compare(name, y[0], &want, size * allowed(&want, terms, t->type));
    check_bits(name, y[0], y[1]);
    if (keeps_shape(t, &want)) transform_in_place(name, t, how, x, y[0]);
    for (int i = 0; i < 2; i++) duet_free(&y[i]);
    array_free(&want);
    array_free(&at);
    if (whole != x) duet_free(&whole);
    duet_free(&x);
    return (int64_t)(s.calls - strided.calls);
}

/* Slabs of columns and of several outer indices, also incomplete ones. */
static void random_slabs(int times)
{
    int64_t calls = 0;
    for (enum kind k = FFT; k <= IRFFT; k++)
        for (int i = 0; i < times; i++) {
            const trial t = random_trial(k, i % 2);
            const fourier_slabs how = { .element = 16,
                                        .slab_bytes = (size_t)1 << rng_below(&gen, 13),
                                        .columns = 1 + rng_below(&gen, 5),
                                        .length = 1 + rng_below(&gen, 4) };
            calls += in_slabs(&t, &how);
        }
    CHECK(calls > 4 * times, "only %d calls for slabs", (int)calls);
    tap_point("random transforms in slabs");
}

static int calls_for(duet_dtype type, sizes x, int axis, size_t slab_bytes)
{
    const trial t = {
        .kind = type == DUET_F32 ? RFFT : FFT, .type = type, .x = x, .o = { 1, { axis }, { 0 } }
    };
    const fourier_slabs how = { 0, slab_bytes, 4, 2, 16 };
    duet_matrix *whole, *m = laid(&t, &whole);
    duet_matrix *y = duet_new_shape(DUET_C64, x.rank, x.size);
    if (type == DUET_F32) {
        duet_free(&y);
        sizes half = x;
        half.size[axis] = x.size[axis] / 2 + 1;
        y = duet_new_shape(DUET_C64, x.rank, half.size);
    }
    slab_trial s = { .t = &t, .how = &how, .x = m, .y = y };
    run_in_thread(run_slab_trial, &s);
    duet_free(&m);
    duet_free(&y);
    return (int)s.calls;
}

/* A slab of c64 takes 8 bytes an element, and one of f32 4 for the input and 8 for the output. */
static void numbers_of_slabs(void)
{
    const struct {
        duet_dtype type;
        sizes x;
        int axis;
        size_t bytes;
        int calls;
        const char *what;
    } rows[] = {
        { DUET_C64, SIZES(8, 21), 0, 8 * 8 * 21, 1, "one slab" },
        { DUET_C64, SIZES(8, 21), 0, 8 * 8 * 20, 2, "21 columns by up to 20" },
        { DUET_C64, SIZES(8, 21), 0, 8 * 8 * 7, 6, "21 columns by up to 7, rounded down to 4" },
        { DUET_C64, SIZES(8, 21), 0, 1, 6, "at least 4 columns" },
        { DUET_C64, SIZES(8, 3), 0, 1, 1, "strided: 3 columns" },
        { DUET_C64, SIZES(5, 8, 6), 1, 8 * 8 * 6, 5, "an outer index at a time" },
        { DUET_C64, SIZES(5, 8, 6), 1, 8 * 8 * 6 * 3, 2, "three outer indices, then two" },
        { DUET_C64, SIZES(5, 8, 6), 1, 8 * 8 * 5, 10, "4 columns and 2 for each outer index" },
        { DUET_C64, SIZES(20, 8, 2), 1, 8 * 8 * 2 * 7, 3, "20 outer indices by up to 7" },
        { DUET_F32, SIZES(8, 21), 0, (8 * 4 + 5 * 8) * 20, 2, "21 columns by up to 20, real" },
    };
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
        const int calls = calls_for(rows[i].type, rows[i].x, rows[i].axis, rows[i].bytes);
        CHECK(calls == rows[i].calls, "%s: %d calls", rows[i].what, calls);
    }
    tap_point("how many slabs a pass takes");
}

/* The fake CUDA runs the nodes of a graph in any order that their dependencies allow. */
static void *record_slabs(void *arg)
{
    enum { N = 12, COLUMNS = 21 };
    const fourier_slabs how = { 0, 8 * N * 4, 4, 2, 16 };
    duet_matrix *x = duet_new(DUET_C64, N, COLUMNS), *y = duet_new(DUET_C64, N, COLUMNS),
                *z = duet_new(DUET_C64, N, COLUMNS);
    gpu_fourier_slabs(&how);
    fill(x);
    const uint64_t before = fake_count().transforms;
    CHECK(duet_record_begin() == DUET_OK, "%s", duet_error());
    set_on(DUET_GPU, y, duet_fft(x, 0, 0));
    set_on(DUET_GPU, z, duet_ifft(y, 0, 0));
    set_on(DUET_GPU, y, duet_fft(y, 0, 0));
    duet_recording *r = duet_record_end();
    CHECK(r != NULL, "%s", duet_error());
    for (int i = 0; i < 6 && r; i++) {
        fill(x);
        array want = array_of(x);
        CHECK(duet_replay(r) == DUET_OK, "%s", duet_error());
        compare("replayed", z, &want, norm(&want) * 100 * 0x1p-24L);
        array_free(&want);
    }
    CHECK(fake_count().graphs_alive > 0, "there is no graph");
    const int calls = (int)(fake_count().transforms - before);
    CHECK(calls >= 18, "%d calls for three transforms in six slabs each", calls);
    duet_recording_free(&r);
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    gpu_fourier_slabs(NULL);
    return NULL;
}

static void recorded(void)
{
    run_in_thread(record_slabs, NULL);
    tap_point("slabs in a CUDA graph");
}

typedef struct limited {
    duet_matrix *x, *y;
    size_t bytes; /* beyond those in use */
    duet_status status;
} limited;

static void *transform_within(void *arg)
{
    enum { N = 64, COLUMNS = 21 };
    const fourier_slabs how = { 0, 8 * N * 4, 4, 2, 16 };
    limited *l = arg;
    gpu_fourier_slabs(&how);
    CHECK(duet_memory_limit(DUET_GPU, duet_memory_of(DUET_GPU).used + l->bytes) == DUET_OK, "%s",
          duet_error());
    l->status = duet_set_on(DUET_GPU, l->y, duet_fft(l->x, 0, 0));
    gpu_fourier_slabs(NULL);
    return NULL;
}

/* A slab and the workspace of its plan are taken before the first result is written. */
static void little_memory(void)
{
    duet_matrix *x = duet_new(DUET_C64, 64, 21), *y = duet_new(DUET_C64, 64, 21),
                *want = duet_new(DUET_C64, 64, 21);
    int refused = 0, computed = 0;
    fill(x);
    set_on(DUET_GPU, want, duet_fft(x, 0, 0));
    for (size_t bytes = 0; bytes <= 16384; bytes += 512) {
        set_on(DUET_GPU, y, DUET(x));
        duet_memory_trim();
        limited l = { x, y, bytes, DUET_OK };
        run_in_thread(transform_within, &l);
        CHECK(duet_memory_limit(DUET_GPU, 0) == DUET_OK, "%s", duet_error());
        CHECK(l.status == DUET_OK || l.status == DUET_NO_MEMORY, "%zu bytes: %s", bytes, duet_error());
        check_bits("with little memory", y, l.status == DUET_OK ? want : x);
        refused += l.status != DUET_OK;
        computed += l.status == DUET_OK;
    }
    CHECK(refused > 1 && computed > 0, "%d transforms ran, %d did not", computed, refused);
    printf("# %d transforms ran, %d did not\n", computed, refused);
    duet_free(&x);
    duet_free(&y);
    duet_free(&want);
    tap_point("the output is unchanged if there is no memory for slabs");
}

int main(void)
{
    gen = rng_new(20261129);
    random_slabs(150);
    numbers_of_slabs();
    recorded();
    little_memory();
    return tap_end();
}
