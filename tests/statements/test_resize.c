/* test_resize.c - duet_resize against a model, on each device; formulas, recordings and views of a matrix
 * that was resized; what is refused; duet_valid_on and duet_share_memory. */
#include "by_sanitizer.h"
#include "common.h"
#include "dtype.h"

static rng gen;
static duet_place place[2];
static int places;

/* ---- against a model ---- */

static duet_matrix *random_bits(duet_dtype type, int rank, const int64_t *size)
{
    duet_matrix *m = duet_new_shape(type, rank, size);
    unsigned char *p = duet_overwrite(m);
    for (size_t i = 0; i < (size_t)duet_count(m) * dtypes[type].bytes; i++)
        p[i] = (unsigned char)rng_below(&gen, type == DUET_BOOL ? 2 : 256);
    return m;
}

static int draw_shape(int64_t size[3])
{
    const int rank = (int)rng_below(&gen, 4);
    for (int a = 0; a < rank; a++) size[a] = rng_chance(&gen, 8) ? 0 : 1 + rng_below(&gen, 7);
    return rank;
}

/* Row-major elements are kept, and the rest is 0. */
static void against_model(int trials)
{
    for (int t = 0; t < trials; t++) {
        int64_t size[3];
        const duet_dtype type = (duet_dtype)rng_below(&gen, DUET_DTYPE_COUNT);
        const size_t each = dtypes[type].bytes;
        int rank = draw_shape(size);
        duet_matrix *m = random_bits(type, rank, size), *const same = m;
        char want[400 * 16] = { 0 };
        memcpy(want, duet_read(m), (size_t)duet_count(m) * each);
        for (int step = 0; step < 4; step++) {
            const int64_t before = duet_count(m);
            if (rng_chance(&gen, 50))
                DUET_ON(place[rng_below(&gen, places)]) CHECK(!duet_set(m, m), "%s", duet_error());
            rank = draw_shape(size);
            DUET_ON(place[rng_below(&gen, places)])
            CHECK(!duet_resize_shape(m, rank, size), "%s", duet_error());
            const int64_t count = duet_count(m);
            if (count > before) memset(want + (size_t)before * each, 0, (size_t)(count - before) * each);
            bool fits = duet_rank(m) == rank && m == same && duet_type(m) == type;
            for (int a = 0; a < rank; a++) fits &= duet_size(m, a) == size[a];
            const void *p = duet_read(m);
            CHECK(fits && p && !memcmp(p, want, (size_t)count * each), "trial %d, step %d: %s", t, step,
                  duet_error());
        }
        duet_free(&m);
    }
    tap_point("random types and shapes");
}

static void zeros(void)
{
    duet_matrix *m = duet_new(DUET_F32, 2, 3);
    CHECK(!duet_resize(m, 4, 2, 5), "%s", duet_error());
    CHECK(duet_rank(m) == 3 && duet_size(m, 2) == 5 && duet_count(m) == 40, "the shape is wrong");
    const float *p = duet_read(m);
    for (int i = 0; i < 40; i++) CHECK(p && p[i] == 0, "element %d is not 0", i);
    duet_free(&m);
    tap_point("a matrix that was never written");
}

/* ---- who still has the old shape ---- */

static void fails(duet_status s, duet_status want, const char *text)
{
    CHECK(s == want && strstr(duet_error(), text), "status %d, not \"%s\": %s", (int)s, text, duet_error());
}

static void formulas(void)
{
    duet_matrix *m = duet_ones(DUET_F32, 6), *y = duet_ones(DUET_F32, 6), *z = duet_new(DUET_F32, 12);
    duet_expr e = duet_add(m, 1), held = duet_hold(duet_mul(m, 2));
    CHECK(!duet_record_begin() && !duet_set(y, duet_add(m, 3)), "%s", duet_error());
    duet_recording *r = duet_record_end(), *to;
    CHECK(!duet_record_begin() && !duet_set(m, duet_add(y, 3)), "%s", duet_error());
    to = duet_record_end();
    CHECK(!duet_set(y, 7), "%s", duet_error());
    CHECK(!duet_resize(m, 12), "%s", duet_error());
    fails(duet_set(y, e), DUET_FREED, "that was freed or resized");
    fails(duet_set(y, held), DUET_FREED, "(f32[6]) that was freed or resized");
    fails(duet_set(y, held), DUET_FREED, "test_resize.c:");
    fails(duet_replay(r), DUET_FREED, "");
    fails(duet_replay(to), DUET_FREED, "freed or resized");
    const float *p = duet_read(y);
    CHECK(p && p[0] == 7 && p[5] == 7, "a failed statement has written its destination");
    CHECK(!duet_set(z, duet_add(m, 1)), "%s", duet_error());
    p = duet_read(z);
    CHECK(p && (int)p[5] == 8 && (int)p[6] == 1, "%g and %g", p ? (double)p[5] : 0, p ? (double)p[6] : 0);
    duet_drop(held);
    duet_recording_free(&r);
    duet_recording_free(&to);
    duet_free(&m);
    duet_free(&y);
    duet_free(&z);
    tap_point("formulas and recordings from before");
}

/* A loop that grows its matrix; automatic replay recognises its other statements. */
static void in_loop(duet_place at)
{
    duet_matrix *m = duet_ones(DUET_F32, 4), *sum = duet_new(DUET_F32);
    DUET_ON(at)
    for (int turn = 1; turn < 40; turn++) {
        duet_status s = duet_set(m, duet_add(m, 1));
        if (!s) s = duet_set(m, duet_mul(m, 1));
        if (!s) s = duet_set(sum, duet_sum(m));
        if (!s) s = duet_resize(m, turn + 4);
        CHECK(!s, "%s", duet_error());
    }
    const float *p = duet_read(m);
    CHECK(p && duet_count(m) == 43 && p[0] == 40, "%s", duet_error());
    for (int i = 4; p && i < 43; i++) CHECK((int)p[i] == 42 - i, "element %d is %g", i, (double)p[i]);
    duet_free(&m);
    duet_free(&sum);
}

static void in_loops(void)
{
    for (int k = 0; k < places; k++) in_loop(place[k]);
    tap_point("a matrix that grows in a loop");
}

static void cannot(void)
{
    float memory[6] = { 1, 2, 3, 4, 5, 6 };
    duet_matrix *m = duet_from_array(memory, DUET_F32, 2, 3), *none = NULL, *row = duet_row(m, 1),
                *wrapped = duet_wrap(memory, DUET_F32, 2, 3), *y = duet_new(DUET_F32, 3);
    const float *before = duet_read(m);
    fails(duet_resize(none, 3), DUET_BAD_ARGUMENT, "duet_resize: the matrix must not be NULL");
    fails(duet_resize(m, 3), DUET_BAD_ARGUMENT, "duet_resize(m: f32[2,3]): m shares its memory");
    fails(duet_resize(row, 3), DUET_BAD_ARGUMENT, "test_resize.c:");
    fails(duet_resize(wrapped, 3), DUET_BAD_ARGUMENT, "memory of the caller");
    duet_free(&row);
    fails(duet_resize(m, 3, -1), DUET_BAD_SHAPE, "duet_resize");
    fails(duet_resize(m, INT64_MAX, 9), DUET_BAD_SHAPE, "duet_resize");
    fails(duet_resize_shape(m, 9, (int64_t[9]){ 1 }), DUET_BAD_SHAPE, "duet_resize");
    fails(duet_resize_shape(m, 1, NULL), DUET_BAD_ARGUMENT, "duet_resize");
    if (!by_sanitizer) fails(duet_resize(m, (int64_t)1 << 58), DUET_NO_MEMORY, "");
    CHECK(!duet_record_begin(), "%s", duet_error());
    fails(duet_resize(m, 3), DUET_UNSUPPORTED, "cannot be recorded");
    CHECK(!duet_set(y, duet_sum(m, 0)), "%s", duet_error());
    duet_recording *r = duet_record_end();
    CHECK(!r && strstr(duet_error(), "failed while it was recorded"),
          "a statement is missing in a recording");
    duet_recording_free(&r);
    FILE *f = tmpfile();
    DUET_EXPLAIN(f) fails(duet_resize(m, 3), DUET_UNSUPPORTED, "cannot be explained");
    fclose(f);
    CHECK(duet_read(m) == before && duet_rank(m) == 2 && before[5] == 6, "a failed call has changed m");
    duet_matrix *column = duet_column(m, 1), *turned = duet_transposed(m);
    duet_free(&m);
    fails(duet_resize(column, 3), DUET_BAD_ARGUMENT, "shares its memory");
    duet_free(&turned);
    fails(duet_resize(column, 3), DUET_BAD_ARGUMENT, "m is a view");
    duet_free(&column);
    duet_free(&wrapped);
    duet_free(&y);
    tap_point("what cannot be resized");
}

/* ---- questions ---- */

static void valid_on(void)
{
    duet_matrix *m = duet_new(DUET_F32, 5), *none = NULL;
    CHECK(!duet_valid_on(none, DUET_CPU), "NULL is valid");
    CHECK(duet_valid_on(m, DUET_CPU) == 1 && duet_valid_on(m, DUET_AUTO) == 1, "zeros must be copied");
    CHECK(duet_valid_on(m, DUET_GPU) == (places > 1), "zeros on a GPU: %d", duet_valid_on(m, DUET_GPU));
    ((float *)duet_update(m))[0] = 1;
    CHECK(duet_valid_on(m, DUET_CPU) && !duet_valid_on(m, DUET_GPU) && duet_valid_on(m, DUET_AUTO),
          "after a write by the host");
    CHECK(!duet_valid_on(m, (duet_place)7), "another place");
    if (places > 1) {
        CHECK(!duet_set_on(DUET_GPU, m, duet_add(m, 1)), "%s", duet_error());
        CHECK(!duet_valid_on(m, DUET_CPU) && duet_valid_on(m, DUET_GPU), "after a statement on the GPU");
        CHECK(!duet_resize(m, 7), "%s", duet_error());
        CHECK(!duet_valid_on(m, DUET_CPU) && duet_valid_on(m, DUET_GPU), "resizing has moved the elements");
        CHECK(duet_read(m) && duet_valid_on(m, DUET_CPU) && duet_valid_on(m, DUET_GPU), "after a read");
    }
    duet_matrix *const gone = m;
    duet_free(&m);
    CHECK(!duet_valid_on(gone, DUET_CPU) && !duet_share_memory(gone, gone), "a freed matrix");
    tap_point("duet_valid_on");
}

/* Marks the elements of a, and looks for a mark in b. */
static bool really_share(duet_matrix *all, duet_matrix *a, duet_matrix *b)
{
    bool found = false;
    CHECK(!duet_set(all, 0) && !duet_set(a, 1), "%s", duet_error());
    duet_matrix *sum = duet_eval(duet_sum(b));
    found = sum && *(const double *)duet_read(sum) > 0;
    duet_free(&sum);
    return found;
}

static void share_memory(void)
{
    int claimed = 0, wrong = 0;
    duet_matrix *all = duet_new(DUET_F64, 6, 8), *other = duet_new(DUET_F64, 6, 8), *none = NULL;
    CHECK(!duet_share_memory(all, other) && duet_share_memory(all, all) == 1 && !duet_share_memory(all, none),
          "whole matrices");
    for (int t = 0; t < 4000; t++) {
        duet_matrix *v[2];
        for (int k = 0; k < 2; k++) {
            duet_index_entry index[2];
            for (int a = 0; a < 2; a++)
                index[a] = DUET_STEP(rng_below(&gen, 8), rng_below(&gen, 9),
                                     rng_chance(&gen, 60) ? 1 : 1 + rng_below(&gen, 3));
            v[k] = duet_indexed_by(all, 2, index);
        }
        const bool share = duet_share_memory(v[0], v[1]), really = really_share(all, v[0], v[1]);
        CHECK(share == duet_share_memory(v[1], v[0]), "the order of the matrices matters");
        CHECK(share || !really, "trial %d: elements are shared, and the answer is 0", t);
        claimed += share;
        wrong += share && !really;
        duet_free(&v[0]);
        duet_free(&v[1]);
    }
    CHECK(wrong * 4 < claimed, "%d of %d answers are wrong", wrong, claimed);
    duet_free(&all);
    duet_free(&other);
    tap_point("duet_share_memory");
}

int main(void)
{
    gen = rng_new(9);
    places = list_places(place);
    against_model(400);
    zeros();
    formulas();
    in_loops();
    cannot();
    valid_on();
    share_memory();
    return tap_end();
}
