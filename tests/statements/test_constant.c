/* test_constant.c - memory that must not be written: duet_wrap_const, its views, and read-only tensors. Every
 * statement of every_call.h, and every function that gives a pointer for writing, is refused with a text that
 * names the line of creation. Reading is possible in every way. The memory is on pages without permission to
 * write, so that a write would end the program. */
#include "dlpack_tensor.h"
#include "every_guess.h"
#include "matrix.h"
#include <sys/mman.h>

enum { N = 12, PAGE = 1 << 16 };

/* Pages with numbers, which cannot be written. */
static void *constant_pages(void)
{
    double *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < PAGE / 8; i++) p[i] = i % N;
    mprotect(p, PAGE, PROT_READ);
    return p;
}

static void refused(duet_status s, const char *who, const char *line)
{
    CHECK(s == DUET_BAD_ARGUMENT && strstr(duet_error(), "must not be written") &&
              strstr(duet_error(), who) && strstr(duet_error(), line),
          "%s at %s: status %d: %s", who, line, (int)s, duet_error());
}

/* ---- the ways of writing ---- */

static void refuse_pointers(duet_matrix *m, const char *line)
{
    duet_status s = duet_update(m) ? DUET_OK : duet_error_status();
    refused(s, "duet_update", line);
    s = duet_overwrite(m) ? DUET_OK : duet_error_status();
    refused(s, "duet_overwrite", line);
    s = duet_update_f64(m) ? DUET_OK : duet_error_status();
    refused(s, "duet_update", line);
    s = duet_overwrite_f64(m) ? DUET_OK : duet_error_status();
    refused(s, "duet_overwrite", line);
    if (!duet_device_read(m)) return;
    s = duet_device_update(m) ? DUET_OK : duet_error_status();
    refused(s, "duet_device_update", line);
    s = duet_device_overwrite(m) ? DUET_OK : duet_error_status();
    refused(s, "duet_device_overwrite", line);
}

static void refuse_statements(duet_matrix *m, duet_matrix *other, const char *line)
{
    refused(duet_set(m, 1), "duet_set", line);
    refused(duet_set_on(DUET_CPU, m, 1), "duet_set_on", line);
    refused(duet_set_math(DUET_MATH_TF32, m, 1), "duet_set_math", line);
    refused(duet_iadd(m, 1), "duet_iadd", line);
    refused(duet_isub(m, 1), "duet_isub", line);
    refused(duet_imul(m, 1), "duet_imul", line);
    refused(duet_idiv(m, 1), "duet_idiv", line);
    refused(duet_set_all({ other, duet_mul(2, m) }, { m, DUET(1) }), "duet_set_all", line);
    FILE *nowhere = fopen("/dev/null", "w");
    duet_status s = DUET_OK;
    DUET_EXPLAIN(nowhere) s = duet_set(m, 1);
    refused(s, "duet_set", line);
    refused(duet_explain(nowhere, m, duet_mul(2, other)), "duet_explain", line);
    if (nowhere) fclose(nowhere);
    CHECK(duet_record_begin() == DUET_OK, "%s", duet_error());
    refused(duet_set(m, 1), "duet_set", line);
    duet_recording *rec = duet_record_end();
    CHECK(!rec, "a statement that cannot run was recorded");
    duet_recording_free(&rec);
}

static bool reads(duet_matrix *m, double want)
{
    double sum = 0;
    bool good = CHECK(duet_item(duet_sum(m), &sum) == DUET_OK && sum == want, "the sum is %g, not %g: %s",
                      sum, want, duet_error());
    DUET_ON(DUET_GPU)
    if (duet_stream())
        good &= CHECK(duet_item(duet_sum(m), &sum) == DUET_OK && sum == want, "%g: %s", sum, duet_error());
    duet_matrix *copy = duet_copy(m);
    good &= CHECK(copy && duet_set(copy, duet_add(copy, m)) == DUET_OK &&
                      duet_item(duet_sum(copy), &sum) == DUET_OK && sum == 2 * want,
                  "%g: %s", sum, duet_error());
    duet_free(&copy);
    return good;
}

static double sum_of(const duet_matrix *m)
{
    const double *p = duet_read(m);
    double sum = 0;
    for (int64_t i = 0; p && i < duet_count(m); i++)
        sum += p[strided_offset(m->at.rank, m->at.size, m->at.stride, i)];
    return sum;
}

/* ---- the matrices ---- */

#define LINE_(x) #x
#define LINE(x)  LINE_(x)
#define HERE     "test_constant.c:" LINE(__LINE__)

static void check_all_ways(duet_matrix *m, const char *line)
{
    if (!CHECK(m != NULL, "%s", duet_error())) return;
    duet_matrix *other = duet_new_shape(DUET_F64, m->at.rank, m->at.size);
    const double want = sum_of(m);
    reads(m, want);
    refuse_pointers(m, line);
    refuse_statements(m, other, line);
    reads(m, want);
    duet_free(&other);
}

static void test_wraps(void *pages)
{
    const int64_t size[] = { 3, 4 }, stride[] = { 1, 3 };
    duet_matrix *m = duet_wrap_const((const double *)pages, DUET_F64, 3, 4);
    const char *line = HERE;
    char before[30];
    snprintf(before, sizeof before, "test_constant.c:%d", __LINE__ - 3);
    (void)line;
    check_all_ways(m, before);
    duet_matrix *views[] = { duet_row(m, 1),     duet_transposed(m),   duet_reshaped(m, 2, 6),
                             duet_flipped(m, 0), duet_picked(m, 1, 2), duet_indexed(m, DUET_AT(1)),
                             duet_expanded(m, 0) };
    for (int i = 0; i < LENGTH(views); i++) {
        check_all_ways(views[i], before);
        duet_free(&views[i]);
    }
    duet_matrix *wide = duet_broadcast_to(m, 2, 3, 4), *one = duet_picked(wide, 0, 1), *parts[2];
    check_all_ways(one, before);
    CHECK(duet_split(m, 1, 2, parts) == DUET_OK, "%s", duet_error());
    check_all_ways(parts[1], before);
    duet_free(&m, &wide, &one, &parts[0], &parts[1]);
    m = duet_wrap_const_strided((const double *)pages + 5, DUET_F64, 2, size, stride);
    snprintf(before, sizeof before, "test_constant.c:%d", __LINE__ - 1);
    check_all_ways(m, before);
    duet_free(&m);
    CHECK(!duet_wrap_const((const double *)NULL, DUET_F64, 3) && strstr(duet_error(), "duet_wrap_const"),
          "%s", duet_error());
    CHECK(!duet_wrap_const((const char *)pages + 1, DUET_F64, 3) && strstr(duet_error(), "aligned"), "%s",
          duet_error());
    CHECK(!duet_wrap_const_strided((const double *)pages, DUET_F64, 2, size, NULL), "no strides");
    m = duet_wrap_const((const double *)pages, DUET_F64, 0, 3);
    CHECK(m && duet_set(m, 1) == DUET_BAD_ARGUMENT, "an empty matrix: %s", duet_error());
    duet_free(&m);
    tap_point("duet_wrap_const and all views can be read, and are refused in every way of writing");
}

static void test_tensors(void *pages)
{
    foreign f;
    char before[30];
    foreign_init(&f, pages, DUET_F64, 2, (const int64_t[]){ 3, 4 }, NULL);
    f.versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    duet_matrix *m = duet_from_dlpack(&f.versioned, DUET_DLPACK_LEGACY);
    snprintf(before, sizeof before, "test_constant.c:%d", __LINE__ - 1);
    check_all_ways(m, before);
    duet_matrix *v = duet_column(m, 2);
    duet_free(&m);
    check_all_ways(v, before);
    duet_free(&v);
    CHECK(f.deleted == 1, "deleted %d times", f.deleted);
    m = duet_full(DUET_F64, 2, 5);
    snprintf(before, sizeof before, "test_constant.c:%d", __LINE__ + 2);
    struct DLManagedTensorVersioned *t = duet_to_dlpack(m, NULL);
    v = t ? duet_from_dlpack(t, DUET_DLPACK_LEGACY) : NULL;
    check_all_ways(v, before);
    duet_matrix *part = duet_slice(v, 1, 3);
    snprintf(before, sizeof before, "test_constant.c:%d", __LINE__ - 1);
    check_all_ways(part, before);
    duet_free(&part);
    CHECK(duet_set(m, 3) == DUET_OK && reads(v, 15), "the original can still be written: %s", duet_error());
    duet_free(&m, &v);
    tap_point("so are read-only tensors, also those that this library has exported");
}

/* ---- every statement with destinations ---- */

/* Destination k uses memory that must not be written. */
static void refuse_call(const call *c, const guess *g, duet_dtype of, int k, void *pages)
{
    duet_matrix *m[MATRICES] = { 0 };
    char line[30];
    guess_take(m, c, g, of);
    for (int i = 0; i < c->operands + c->results; i++)
        if (duet_type(m[i]) != DUET_I64) CHECK(duet_set(m[i], 0.5) == DUET_OK, "%s", duet_error());
    duet_matrix **to = &m[c->operands + k];
    const layout at = (*to)->at;
    duet_free(to);
    *to = duet_wrap_const_shape(pages, at.type, at.rank, at.size);
    snprintf(line, sizeof line, "test_constant.c:%d", __LINE__ - 1);
    char who[60];
    snprintf(who, sizeof who, "duet_%s", c->name);
    refused(call_run(c, m), who, line);
    guess_give(m);
}

static void refuse_calls(const call *list, int count, void *pages)
{
    for (const call *c = list; c < list + count; c++) {
        guess g = { 0 };
        duet_dtype of;
        bool found = guess_sizes(&g, c, &of);
        for (uint32_t bits = 1; !found && bits < 1u << (c->operands + c->results); bits++) {
            g.indices = bits;
            found = guess_sizes(&g, c, &of);
        }
        if (!CHECK(found, "no operands for duet_%s were found", c->name)) continue;
        for (int k = 0; k < c->results; k++) refuse_call(c, &g, of, k, pages);
    }
}

int main(void)
{
    void *pages = constant_pages();
    test_wraps(pages);
    test_tensors(pages);
    refuse_calls(factors, LENGTH(factors), pages);
    tap_point("every factorisation refuses constant results");
    refuse_calls(statements, LENGTH(statements), pages);
    tap_point("every statement refuses constant destinations");
    return tap_end();
}
