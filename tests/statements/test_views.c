/* test_views.c - random chains of views of random matrices against simple loops over indices
 * (view_model.h), and single views. Elements are small integers: all sums are exact. */
#include "view_base.h"

static duet_place place[2];
static int places;

static shown copy_of(const shown *v)
{
    shown w = *v;
    w.m = duet_permuted_axes(v->m, v->rank, (int[]){ 0, 1, 2, 3, 4, 5, 6, 7 });
    return w;
}

/* ---- checks ---- */

static void check_shape(const shown *v)
{
    bool is = duet_rank(v->m) == v->rank && duet_count(v->m) == v->n;
    for (int a = 0; a < v->rank; a++) is &= duet_size(v->m, a) == v->size[a];
    CHECK(is, "%s: another shape", v->made);
    const char *p = duet_read(v->m);
    CHECK(p || !v->n, "%s: %s", v->made, duet_error());
}

/* By its pointer and strides, as a user reads it. */
static void check_pointer(const base *b, const shown *v)
{
    const void *p = duet_read(v->m);
    int64_t i[DUET_RANK_MAX] = { 0 };
    for (int64_t k = 0; k < v->n; k++, step_on(v->rank, v->size, i)) {
        int64_t at = 0;
        for (int a = 0; a < v->rank; a++) at += i[a] * duet_stride(v->m, a);
        CHECK(number_at(b->type, p, at) == b->of[v->at[k]], "%s: element %d", v->made, (int)k);
    }
}

static void check_read(const base *b, const shown *v, duet_place on)
{
    double want[MOST];
    duet_matrix *m = duet_new_shape(b->type, v->rank, v->size);
    for (int64_t k = 0; k < v->n; k++) want[k] = b->of[v->at[k]];
    CHECK(duet_set_on(on, m, v->m) == DUET_OK, "%s: %s", v->made, duet_error());
    check_matrix(b->type, m, want, "read", v, on);
    for (int64_t k = 0; k < v->n; k++) want[k] = 2 * want[k] * want[k] - want[k];
    if (b->type != DUET_I64) {
        CHECK(duet_set_on(on, m, duet_sub(duet_mul(duet_mul(2, v->m), v->m), v->m)) == DUET_OK, "%s: %s",
              v->made, duet_error());
        check_matrix(b->type, m, want, "a formula", v, on);
    }
    duet_free(&m);
}

static void check_refused(const shown *v, duet_place on)
{
    CHECK(duet_set_on(on, v->m, v->m) == DUET_BAD_ARGUMENT && strstr(duet_error(), "repeats elements"),
          "%s: %s", v->made, duet_error());
    CHECK(!duet_update(v->m) && !duet_overwrite(v->m), "%s can be written by pointer", v->made);
    CHECK(duet_random_bernoulli(v->m, 1, 0.5) == DUET_BAD_ARGUMENT, "%s can be filled", v->made);
}

static void check_write(base *b, const shown *v, duet_place on)
{
    double x[MOST];
    for (int64_t k = 0; k < v->n; k++) x[k] = (double)between(-8, 8);
    duet_matrix *m = matrix_of(b->type, v->rank, v->size, x);
    const bool sums = b->type != DUET_I64 && below(2);
    if (sums) CHECK(duet_set_on(on, v->m, duet_add(m, v->m)) == DUET_OK, "%s: %s", v->made, duet_error());
    else CHECK(duet_set_on(on, v->m, m) == DUET_OK, "%s: %s", v->made, duet_error());
    for (int64_t k = 0; k < v->n; k++) b->of[v->at[k]] = x[k] + (sums ? b->of[v->at[k]] : 0);
    check_matrix(b->type, b->m, b->of, "written", v, on);
    duet_free(&m);
}

/* Appends as much of `more` as fits. */
static void append(char *text, size_t size, const char *more)
{
    const size_t length = strlen(text), wanted = strlen(more), free_bytes = size - 1 - length,
                 taken = wanted < free_bytes ? wanted : free_bytes;
    memcpy(text + length, more, taken);
    text[length + taken] = 0;
}

/* Two views of one matrix, in the shape that both can have: all elements are read before any is
 * written. */
static void check_overlap(base *b, const shown *to, const shown *from, duet_place on)
{
    double x[MOST];
    if (to->rank != from->rank || repeats(to)) return;
    shown v = copy_of(to), w = copy_of(from);
    for (int a = 0; a < v.rank; a++) {
        const int64_t n = v.size[a] < w.size[a] ? v.size[a] : w.size[a];
        int64_t size[DUET_RANK_MAX];
        memcpy(size, v.size, sizeof size);
        size[a] = n;
        change(&v, v.rank, size, old_stepped, (int64_t[]){ a, 0, 1 });
        said(&v, duet_stepped(v.m, a, 0, n, 1), " cut");
        memcpy(size, w.size, sizeof size);
        size[a] = n;
        change(&w, w.rank, size, old_stepped, (int64_t[]){ a, 0, 1 });
        said(&w, duet_stepped(w.m, a, 0, n, 1), " cut");
    }
    const bool sums = b->type != DUET_I64 && below(2);
    for (int64_t k = 0; k < v.n; k++) x[k] = b->of[w.at[k]] + (sums ? b->of[v.at[k]] : 0);
    if (sums) CHECK(duet_set_on(on, v.m, duet_add(w.m, v.m)) == DUET_OK, "%s: %s", v.made, duet_error());
    else CHECK(duet_set_on(on, v.m, w.m) == DUET_OK, "%s: %s", v.made, duet_error());
    for (int64_t k = 0; k < v.n; k++) b->of[v.at[k]] = x[k];
    append(v.made, sizeof v.made, " from ");
    append(v.made, sizeof v.made, w.made);
    check_matrix(b->type, b->m, b->of, "overlapping", &v, on);
    duet_free(&v.m);
    duet_free(&w.m);
}

/* ---- operators that depend on strides ---- */

static void check_reduces(const base *b, const shown *v, duet_place on)
{
    double want[MOST] = { 0 }, all = 0;
    int64_t size[DUET_RANK_MAX], i[DUET_RANK_MAX] = { 0 };
    if (!v->rank || b->type == DUET_I64) return;
    const int axis = (int)below(v->rank);
    without(v, axis, size);
    for (int64_t k = 0; k < v->n; k++, step_on(v->rank, v->size, i)) {
        int64_t at = 0;
        for (int a = 0; a < v->rank; a++)
            if (a != axis) at = at * v->size[a] + i[a];
        want[at] += b->of[v->at[k]];
        all += b->of[v->at[k]];
    }
    duet_matrix *m = duet_new_shape(b->type, v->rank - 1, size), *sum = duet_new_shape(b->type, 0, NULL);
    CHECK(duet_set_on(on, m, duet_sum_axis(v->m, axis)) == DUET_OK, "%s: %s", v->made, duet_error());
    check_matrix(b->type, m, want, "sums", v, on);
    CHECK(duet_set_on(on, sum, duet_sum(v->m)) == DUET_OK, "%s: %s", v->made, duet_error());
    check_matrix(b->type, sum, &all, "the sum", v, on);
    duet_free(&m);
    duet_free(&sum);
}

static void check_product(const base *b, const shown *v, duet_place on)
{
    double want[MOST * 4];
    if (v->rank != 2 || b->type == DUET_I64) return;
    const int64_t rows = v->size[0], inner = v->size[1];
    if (rows * rows > MOST) return;
    for (int64_t i = 0; i < rows * rows; i++) {
        want[i] = 0;
        for (int64_t k = 0; k < inner; k++)
            want[i] += b->of[v->at[i / rows * inner + k]] * b->of[v->at[i % rows * inner + k]];
    }
    duet_matrix *m = duet_new(b->type, rows, rows), *t = duet_transposed(v->m),
                *f = duet_new(b->type, rows, rows), *back = duet_flipped(f, 1);
    CHECK(duet_set_on(on, m, duet_matmul(v->m, t)) == DUET_OK, "%s: %s", v->made, duet_error());
    check_matrix(b->type, m, want, "a product", v, on);
    CHECK(duet_set_on(on, back, duet_matmul(v->m, duet_transpose(v->m))) == DUET_OK, "%s: %s", v->made,
          duet_error());
    CHECK(duet_set_on(on, m, back) == DUET_OK, "%s: %s", v->made, duet_error());
    check_matrix(b->type, m, want, "a product into a flipped view", v, on);
    duet_free(&m);
    duet_free(&t);
    duet_free(&back);
    duet_free(&f);
}

/* Images as views: pooling, convolution and softmax, against a dense copy. Integers, except for
 * softmax, which is compared on one machine. */
static void check_images(const base *b, const shown *v, duet_place on)
{
    if (b->type == DUET_I64 || v->n == 0) return;
    duet_matrix *copy = duet_new_shape(b->type, v->rank, v->size), *m[2];
    CHECK(duet_set_on(on, copy, v->m) == DUET_OK, "%s: %s", v->made, duet_error());
    for (int what = v->rank == 4 ? 0 : 3; what < 4; what++) {
        duet_expr e[2];
        duet_matrix *filters = duet_new(b->type, 2, v->rank == 4 ? duet_size(v->m, 1) : 1, 1, 1);
        if (what == 1) CHECK(duet_set(filters, 3) == DUET_OK, "%s", duet_error());
        if (what == 3 && !v->rank) continue;
        for (int k = 0; k < 2; k++) {
            duet_matrix *x = k ? copy : v->m;
            if (what == 0) e[k] = duet_max_pool2d(x, .window = { 1, 1 });
            else if (what == 1) e[k] = duet_conv2d(x, filters);
            else if (what == 2) e[k] = duet_avg_pool2d(x, .window = { 1, 1 });
            else e[k] = duet_softmax(x);
            const int rank = duet_expr_rank(e[k]);
            int64_t size[DUET_RANK_MAX];
            for (int a = 0; a < rank; a++) size[a] = duet_expr_size(e[k], a);
            m[k] = duet_new_shape(b->type, rank, size);
            CHECK(duet_set_on(on, m[k], e[k]) == DUET_OK, "%s, %d: %s", v->made, what, duet_error());
        }
        const size_t bytes = (size_t)duet_count(m[0]) * (b->type == DUET_F32 ? 4 : 8);
        CHECK(!memcmp(duet_read(m[0]), duet_read(m[1]), bytes),
              "%s, %d on place %d: the result differs from that of a dense copy", v->made, what, (int)on);
        duet_free(&m[0]);
        duet_free(&m[1]);
        duet_free(&filters);
    }
    duet_free(&copy);
}

static void check_one(duet_dtype type, duet_place on)
{
    shown v, w;
    base b = base_new(type, &v);
    w = copy_of(&v);
    derive(&v, 5);
    derive(&w, 4);
    check_shape(&v);
    check_pointer(&b, &v);
    check_read(&b, &v, on);
    check_reduces(&b, &v, on);
    check_product(&b, &v, on);
    check_images(&b, &v, on);
    if (repeats(&v)) check_refused(&v, on);
    else check_write(&b, &v, on);
    check_overlap(&b, &v, &w, on);
    duet_free(&v.m);
    duet_free(&w.m);
    duet_free(&b.m);
}

static void test_chains(int n)
{
    const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_I64 };
    for (int p = 0; p < places; p++) {
        for (int k = 0; k < n; k++) {
            seed = (uint64_t)k + 1;
            below(2);
            check_one(types[k % 3], place[p]);
        }
        tap_point(place[p] == DUET_GPU ? "chains of views on the GPU" : "chains of views on the CPU");
    }
}

/* ---- single views ---- */

static void test_shifted(void)
{
    for (int p = 0; p < places; p++)
        for (int64_t n = 0; n < 300; n = 3 * n + 1) {
            double x[300], want[300];
            for (int64_t i = 0; i < n; i++) x[i] = (double)i;
            duet_matrix *m = matrix_of(DUET_F32, 1, &n, x), *head = duet_stepped(m, 0, DUET_OPEN, -1, 1),
                        *tail = duet_stepped(m, 0, 1, DUET_OPEN, 1), *back = duet_flipped(m, 0);
            const shown v = { .made = "a vector" };
            CHECK(duet_set_on(place[p], tail, head) == DUET_OK, "%s", duet_error());
            for (int64_t i = 0; i < n; i++) want[i] = i ? (double)(i - 1) : 0;
            check_matrix(DUET_F32, m, want, "x[1:] = x[:-1]", &v, place[p]);
            CHECK(duet_set_on(place[p], m, back) == DUET_OK, "%s", duet_error());
            for (int64_t i = 0; i < n; i++) want[i] = n - 1 - i ? (double)(n - 2 - i) : 0;
            check_matrix(DUET_F32, m, want, "x = x[::-1]", &v, place[p]);
            CHECK(duet_set_on(place[p], back, m) == DUET_OK, "%s", duet_error());
            for (int64_t i = 0; i < n; i++) want[i] = i ? (double)(i - 1) : 0;
            check_matrix(DUET_F32, m, want, "x[::-1] = x", &v, place[p]);
            duet_free(&head);
            duet_free(&tail);
            duet_free(&back);
            duet_free(&m);
        }
    tap_point("in-place shift and transpose");
}

static void refuses(duet_matrix *m, const char *text)
{
    CHECK(!m && strstr(duet_error(), text), "%s, not: %s", text, m ? "a view" : duet_error());
    duet_free(&m);
}

static void test_refusals(void)
{
    duet_matrix *m = duet_new(DUET_F32, 2, 3), *wide = duet_new(DUET_F32, 1, 1, 1, 1, 1, 1, 1, 1), *part[2];
    refuses(duet_indexed(m, DUET_AT(2)), "index 2 of axis 0 is out of bounds");
    refuses(duet_indexed(m, DUET_AT(-3)), "index -3");
    refuses(duet_indexed(m, DUET_ALL, DUET_ALL, DUET_ALL), "3 entries for axes");
    refuses(duet_indexed(m, DUET_REST, DUET_REST), "at most one DUET_REST");
    refuses(duet_indexed(m, DUET_STEP(0, 1, 0)), "step along axis 0 must not be 0");
    refuses(duet_indexed(m, duet_index_of((duet_index_kind)9, 0, 0, 0)), "is not valid");
    refuses(duet_indexed(wide, DUET_NEW), "9 axes");
    refuses(duet_indexed_by(m, 1, NULL), "must not be NULL");
    refuses(duet_indexed(NULL, DUET_ALL), "NULL");
    refuses(duet_stepped(m, 2, 0, 1, 1), "axis 2");
    refuses(duet_picked(m, 0, 5), "index 5");
    refuses(duet_flipped(m, -3), "axis -3");
    refuses(duet_permuted(m, 0), "all 2 axes");
    refuses(duet_permuted(m, 0, -2), "axis 0 is named twice");
    refuses(duet_expanded(m, 3), "axis 3");
    refuses(duet_expanded(wide, 0), "more than 8");
    refuses(duet_squeezed(m, 0), "axis 0 must have size 1");
    refuses(duet_broadcast_to(m, 2), "does not broadcast");
    refuses(duet_broadcast_to(m, 2, 1), "does not broadcast");
    refuses(duet_broadcast_to(m, 2, -3), "must not be negative");
    refuses(duet_reshaped(m, -1, -1), "at most one size may be -1");
    refuses(duet_reshaped(m, 4, -1), "at most one size may be -1");
    refuses(duet_reshaped(m, INT64_MAX, INT64_MAX, -1), "at most one size");
    refuses(duet_reshaped(m, 5), "the same number of elements");
    CHECK(duet_split(m, 0, 0, part) == DUET_BAD_ARGUMENT && duet_split(m, 0, 2, NULL) == DUET_BAD_ARGUMENT &&
              duet_split(m, 2, 2, part) == DUET_BAD_SHAPE &&
              duet_split(NULL, 0, 2, part) == DUET_BAD_ARGUMENT,
          "a bad split did not fail: %s", duet_error());
    duet_free(&m);
    duet_free(&wide);
    tap_point("invalid views");
}

static void test_split(void)
{
    for (int64_t n = 0; n < 12; n++)
        for (int count = 1; count < 6; count++) {
            duet_matrix *m = duet_new(DUET_F64, 2, n), *part[6];
            double *p = duet_overwrite(m);
            int64_t at = 0;
            for (int64_t i = 0; i < 2 * n; i++) p[i] = (double)i;
            CHECK(duet_split(m, -1, count, part) == DUET_OK, "%s", duet_error());
            for (int k = 0; k < count; k++) {
                const double *q = duet_read(part[k]);
                const int64_t size = duet_size(part[k], 1);
                CHECK(size == n / count + (k < n % count), "part %d of %d has %d of %d", k, count, (int)size,
                      (int)n);
                for (int64_t j = 0; j < size; j++)
                    CHECK(q[j] == (double)(at + j) && q[n + j] == (double)(n + at + j),
                          "part %d has wrong elements", k);
                at += size;
                duet_free(&part[k]);
            }
            duet_free(&m);
        }
    tap_point("splits");
}

/* Axes that overlap: windows of memory. They can be read on every machine, and not be written. */
static void test_overlapping(float *host)
{
    static const int64_t size[] = { 4, 3, 2 }, stride[][3] = { { 2, 1, 1 }, { 1, -1, 3 }, { 3, 2, -2 } };
    for (int s = 0; s < 3; s++)
        for (int p = 0; p < places; p++) {
            for (int i = 0; i < 24; i++) host[i] = (float)(i * i % 17);
            duet_matrix *m = duet_wrap_strided(host + 6, DUET_F32, 3, size, stride[s]),
                        *c = duet_new(DUET_F32, 4, 3, 2);
            CHECK(duet_set_on(place[p], c, duet_add(m, 1)) == DUET_OK, "%s", duet_error());
            const float *r = duet_read(c), *own = host + 6;
            for (int i = 0; r && i < 24; i++) {
                const int64_t at = i / 6 * stride[s][0] + i / 2 % 3 * stride[s][1] + i % 2 * stride[s][2];
                CHECK((double)r[i] == (double)own[at] + 1, "element %d of overlapping axes is %g", i,
                      (double)r[i]);
            }
            CHECK(duet_set_on(place[p], m, c) == DUET_BAD_ARGUMENT &&
                      strstr(duet_error(), "must not be written"),
                  "overlapping axes could be written: %s", duet_error());
            CHECK(!duet_update(m) && !duet_overwrite(m), "overlapping axes could be written");
            duet_free(&m, &c);
        }
}

static void test_wrapped(void)
{
    float host[24], lead[24];
    duet_matrix *m = duet_wrap_columns(host, DUET_F32, 2, 3, 4), *gaps, *b, *c;
    for (int i = 0; i < 24; i++) host[i] = lead[i] = (float)i;
    CHECK(duet_stride(m, 0) == 1 && duet_stride(m, 1) == 2 && duet_stride(m, 2) == 6,
          "the strides are not column-major");
    for (int p = 0; p < places; p++) { /* a product of a column-major matrix with gaps, as LAPACK stores it */
        gaps = duet_wrap_strided(lead, DUET_F32, 2, (const int64_t[]){ 3, 4 }, (const int64_t[]){ 1, 6 });
        b = duet_new(DUET_F32, 4, 2);
        c = duet_new(DUET_F32, 3, 2);
        CHECK(duet_set(b, 1) == DUET_OK && duet_set_on(place[p], c, duet_matmul(gaps, b)) == DUET_OK, "%s",
              duet_error());
        const float *r = duet_read(c);
        for (int i = 0; i < 3; i++)
            CHECK((double)r[2 * i] == 4 * i + 36, "row %d is %g", i, (double)r[2 * i]);
        CHECK(duet_set_on(place[p], gaps, duet_add(gaps, 0)) == DUET_OK && duet_read(gaps) == lead, "%s",
              duet_error());
        for (int i = 0; i < 24; i++)
            CHECK((double)lead[i] == i, "the gaps between the elements have changed");
        duet_free(&gaps);
        duet_free(&b);
        duet_free(&c);
    }
    duet_free(&m);
    m = duet_wrap_strided(host + 23, DUET_F32, 1, (const int64_t[]){ 12 }, (const int64_t[]){ -2 });
    CHECK(duet_read(m) == host + 23 && duet_set(m, 7) == DUET_OK && duet_read(m) && (double)host[1] == 7 &&
              (double)host[0] == 0,
          "a matrix with negative strides: %s", duet_error());
    duet_free(&m);
    m = duet_wrap_strided(host, DUET_F32, 2, (const int64_t[]){ 3, 4 }, (const int64_t[]){ 0, 1 });
    CHECK(m && duet_set(m, 1) == DUET_BAD_ARGUMENT, "a matrix with stride 0 could be written");
    duet_free(&m);
    test_overlapping(host);
    refuses(duet_wrap_strided(host, DUET_F32, 2, (const int64_t[]){ 3, 4 },
                              (const int64_t[]){ INT64_MAX, 1 }),
            "overflows");
    refuses(duet_wrap_strided(host, DUET_F32, 2, (const int64_t[]){ 3, 4 },
                              (const int64_t[]){ INT64_MAX / 16, 1 }),
            "overflow");
    refuses(duet_wrap_strided(host, DUET_F32, 1, (const int64_t[]){ 3 }, NULL), "stride must not be NULL");
    refuses(duet_wrap_strided(NULL, DUET_F32, 1, (const int64_t[]){ 3 }, (const int64_t[]){ 1 }),
            "pointer must not be NULL");
    refuses(duet_wrap_columns((char *)host + 1, DUET_F32, 3), "must be aligned");
    tap_point("wrapped memory with strides");
}

int main(int argc, char **argv)
{
    places = list_places(place);
    test_chains(is_quick(argc, argv) ? 600 : 6000);
    test_shifted();
    test_refusals();
    test_split();
    test_wrapped();
    return tap_end();
}
