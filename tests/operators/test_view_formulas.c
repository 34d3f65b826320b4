/* test_view_formulas.c - random chains of operators that select or arrange elements, of matrices, of
 * formulas and of results, against simple loops over indices (view_model.h). Elements are small
 * integers, so that all results are exact. */
#include "modes.h"
#include "view_base.h"
#include <math.h>

static duet_place place[2];
static int places;
static int mode;

static void put_elements(const base *b, const shown *v, const double *of, double factor, double plus,
                         double *want)
{
    for (int64_t k = 0; k < v->n; k++) want[k] = factor * of[v->at[k]] + plus;
}

/* A matrix, or a view of a larger one whose axes are in another order. */
static duet_matrix *destination(duet_dtype type, const shown *v, duet_matrix **all)
{
    int64_t size[DUET_RANK_MAX];
    *all = NULL;
    if (!v->rank || below(2)) return duet_new_shape(type, v->rank, v->size);
    for (int a = 0; a < v->rank; a++) size[a] = 2 * v->size[v->rank - 1 - a] + 1;
    *all = duet_new_shape(type, v->rank, size);
    duet_matrix *m = duet_transposed(*all);
    for (int a = 0; a < v->rank; a++) {
        duet_matrix *cut =
            duet_stepped(m, a, 2 * v->size[a] - 1 + below(2), below(2) ? -2 * v->size[a] - 2 : DUET_OPEN, -2);
        duet_matrix *part = duet_stepped(cut, a, 0, v->size[a], 1);
        duet_free(&cut);
        duet_free(&m);
        m = part;
    }
    return m;
}

static void check(const base *b, const shown *v, duet_expr e, const double *want, const char *what,
                  duet_place on)
{
    char text[64];
    duet_matrix *all, *m = destination(b->type, v, &all), *plain = duet_new_shape(b->type, v->rank, v->size);
    snprintf(text, sizeof text, "%s, fusion %s", what, mode_names[mode]);
    CHECK(duet_set_on(on, m, e) == DUET_OK, "%s: %s: %s", v->made, text, duet_error());
    CHECK(duet_set(plain, m) == DUET_OK, "%s", duet_error());
    check_matrix(b->type, plain, want, text, v, on);
    duet_free(&plain);
    duet_free(&m);
    duet_free(&all);
}

static void check_formulas(const base *b, const shown *v, duet_place on)
{
    double want[MOST];
    put_elements(b, v, b->of, 1, 0, want);
    check(b, v, viewed(v, DUET(b->m)), want, "a matrix", on);
    put_elements(b, v, b->of, 3, 1, want);
    check(b, v, viewed(v, duet_add(duet_mul(3, b->m), 1)), want, "a formula", on);
    check(b, v, duet_add(1, duet_mul(viewed(v, DUET(b->m)), 3)), want, "in a formula", on);
    const duet_expr shared = duet_mul(3, b->m);
    check(b, v, duet_sub(duet_add(1, viewed(v, shared)), duet_mul(0, duet_sum(shared))), want, "shared", on);
    put_elements(b, v, b->of, 2, 0, want);
    const duet_expr used = duet_add(b->m, 0);
    check(b, v, duet_add(viewed(v, used), viewed(v, used)), want, "twice", on);
}

/* ---- concatenation ---- */

/* e, cut along some axis and joined again; between both, every piece goes through `map`. */
typedef duet_expr map_function(duet_expr e);
static duet_expr same(duet_expr e) { return e; }
static duet_expr tripled(duet_expr e) { return duet_add(duet_mul(3, e), 1); }

static duet_expr cut_and_joined(const shown *v, duet_expr e, int cuts, map_function *map)
{
    if (!v->rank || !cuts) return map(e);
    const int axis = (int)below(v->rank);
    const int64_t n = duet_expr_size(e, axis), at = n ? below(n + 1) : 0;
    const duet_expr low = duet_range(e, axis, 0, at, 1), high = duet_range(e, axis, at, n, 1);
    const duet_expr first = cut_and_joined(v, low, cuts - 1, map),
                    second = cut_and_joined(v, high, cuts - 1, map);
    return duet_append(first, second, axis);
}

/* The elements from `by` on, then those before. */
static duet_expr rolled(duet_expr e, int axis, int64_t by)
{
    return duet_append(duet_range(e, axis, by, DUET_OPEN, 1), duet_range(e, axis, 0, by, 1), axis);
}

static void check_concatenation(base *b, const shown *v, duet_place on)
{
    double want[MOST];
    put_elements(b, v, b->of, 1, 0, want);
    check(b, v, cut_and_joined(v, viewed(v, DUET(b->m)), 2, same), want, "joined", on);
    put_elements(b, v, b->of, 3, 1, want);
    check(b, v, cut_and_joined(v, viewed(v, DUET(b->m)), 2, tripled), want, "joined formulas", on);
    check(b, v, tripled(cut_and_joined(v, viewed(v, DUET(b->m)), 3, same)), want,
          "a formula of what is joined", on);
    check(b, v,
          duet_add(duet_mul(2, viewed(v, DUET(b->m))),
                   cut_and_joined(v, viewed(v, duet_add(b->m, 1)), 2, same)),
          want, "joined and not", on);
    int64_t whole[DUET_RANK_MAX], i[DUET_RANK_MAX] = { 0 };
    const int rank = duet_rank(b->m), axis = (int)below(rank);
    double of[MOST];
    for (int a = 0; a < rank; a++) whole[a] = duet_size(b->m, a);
    const int64_t n = whole[axis], by = n ? below(n) : 0;
    for (int64_t k = 0; k < b->n; k++, step_on(rank, whole, i)) {
        int64_t at = 0;
        for (int a = 0; a < rank; a++) at = at * whole[a] + (a == axis ? (i[a] + by) % n : i[a]);
        of[k] = b->of[at];
    }
    put_elements(b, v, of, 1, 0, want);
    check(b, v, viewed(v, rolled(DUET(b->m), axis, by)), want, "a view of what is joined", on);
    const duet_expr shared = rolled(duet_add(b->m, 0), axis, by);
    check(b, v, duet_sub(viewed(v, shared), duet_mul(0, duet_sum(shared))), want, "joined and shared", on);
    CHECK(duet_set_on(on, b->m, rolled(DUET(b->m), axis, by)) == DUET_OK, "%s", duet_error());
    memcpy(b->of, of, sizeof of);
    put_elements(b, v, b->of, 1, 0, want);
    check(b, v, viewed(v, DUET(b->m)), want, "rolled in place", on);
}

/* Of what broadcasts: a part of the matrix along its last axes. */
static void check_broadcast(const base *b, const shown *v, duet_place on)
{
    double want[MOST], of[MOST], row[MOST];
    int64_t size[DUET_RANK_MAX], n = 1, i[DUET_RANK_MAX] = { 0 };
    const int rank = duet_rank(b->m), few = (int)below(rank + 1);
    for (int a = 0; a < few; a++) {
        size[a] = below(2) ? 1 : duet_size(b->m, rank - few + a);
        n *= size[a];
    }
    for (int64_t k = 0; k < n; k++) row[k] = (double)between(-8, 8);
    duet_matrix *r = matrix_of(b->type, few, size, row);
    int64_t whole[DUET_RANK_MAX];
    for (int a = 0; a < rank; a++) whole[a] = duet_size(b->m, a);
    for (int64_t k = 0; k < b->n; k++, step_on(rank, whole, i)) {
        int64_t at = 0;
        for (int a = 0; a < few; a++) at = at * size[a] + (size[a] == 1 ? 0 : i[rank - few + a]);
        of[k] = b->of[k] + 2 * row[at];
    }
    put_elements(b, v, of, 1, 0, want);
    check(b, v, viewed(v, duet_add(b->m, duet_mul(2, r))), want, "a broadcast operand", on);
    duet_free(&r);
}

/* Of a result that one step computes. */
static void check_results(const base *b, const shown *v, duet_place on)
{
    double want[MOST], of[MOST];
    const int axis = (int)below(duet_rank(b->m));
    int64_t whole[DUET_RANK_MAX];
    for (int a = 0; a < duet_rank(b->m); a++) whole[a] = duet_size(b->m, a);
    duet_matrix *t = duet_new_shape(b->type, duet_rank(b->m), whole);
    CHECK(duet_set_on(on, t, duet_cumsum(b->m, axis)) == DUET_OK, "%s", duet_error());
    const void *p = duet_read(t);
    for (int64_t k = 0; k < b->n; k++) of[k] = number_at(b->type, p, k);
    put_elements(b, v, of, 1, 0, want);
    check(b, v, viewed(v, duet_cumsum(b->m, axis)), want, "a result", on);
    put_elements(b, v, of, -2, 5, want);
    check(b, v, duet_sub(5, duet_mul(2, viewed(v, duet_cumsum(b->m, axis)))), want, "of a result", on);
    put_elements(b, v, of, 1, 1, want);
    CHECK(duet_set(t, 0) == DUET_OK, "%s", duet_error());
    duet_matrix *m = duet_new_shape(b->type, v->rank, v->size);
    DUET_ON(on)
    CHECK(duet_set_all({ t, duet_add(1, duet_cumsum(b->m, axis)) }, { m, viewed(v, DUET(t)) }) == DUET_OK,
          "%s: %s", v->made, duet_error());
    check_matrix(b->type, m, want, "several statements", v, on);
    duet_free(&m);
    duet_free(&t);
}

static void check_complex(const base *b, const shown *v, duet_place on)
{
    double want[MOST];
    const duet_dtype type = b->type == DUET_F32 ? DUET_C64 : DUET_C128;
    if (b->type == DUET_I64) return;
    int64_t whole[DUET_RANK_MAX];
    for (int a = 0; a < duet_rank(b->m); a++) whole[a] = duet_size(b->m, a);
    duet_matrix *z = duet_new_shape(type, duet_rank(b->m), whole),
                *m = duet_new_shape(type, v->rank, v->size),
                *part = duet_new_shape(b->type, v->rank, v->size);
    CHECK(duet_set_on(on, z, duet_complex(b->m, duet_mul(-2, b->m))) == DUET_OK, "%s", duet_error());
    for (int how = 0; how < 4; how++) {
        duet_expr e = DUET(z);
        if (how == 1) e = duet_conj(duet_conj(e));
        if (how == 2) e = duet_complex(b->m, duet_mul(-2, b->m));
        if (how == 3) e = rolled(rolled(duet_add(z, 0), 0, 1), 0, duet_size(z, 0) - 1);
        CHECK(duet_set_on(on, m, viewed(v, e)) == DUET_OK, "%s: %s", v->made, duet_error());
        put_elements(b, v, b->of, 1, 0, want);
        CHECK(duet_set(part, duet_real(m)) == DUET_OK, "%s", duet_error());
        check_matrix(b->type, part, want, "real parts", v, on);
        put_elements(b, v, b->of, -2, 0, want);
        CHECK(duet_set(part, duet_imag(viewed(v, how ? duet_add(z, 0) : DUET(z)))) == DUET_OK, "%s",
              duet_error());
        check_matrix(b->type, part, want, "imaginary parts", v, on);
    }
    duet_free(&z);
    duet_free(&m);
    duet_free(&part);
}

/* The destination is an operand: all elements are read before any is written. */
static void check_in_place(base *b, const shown *v, duet_place on)
{
    double want[MOST];
    if (duet_rank(b->m) != v->rank || repeats(v)) return;
    for (int a = 0; a < v->rank; a++)
        if (duet_size(b->m, a) != v->size[a]) return;
    put_elements(b, v, b->of, 1, 1, want);
    CHECK(duet_set_on(on, b->m, viewed(v, duet_add(b->m, 1))) == DUET_OK, "%s: %s", v->made, duet_error());
    check_matrix(b->type, b->m, want, "in place", v, on);
    memcpy(b->of, want, sizeof want);
}

static void run_chain(duet_dtype type)
{
    shown v;
    base b = base_new(type, &v);
    const duet_place on = place[below(places)];
    if (below(3)) duet_free(&v.m); /* formulas can do more than views */
    mode = (int)below(MODES);
    plan_fusion(mode);
    derive(&v, 4);
    check_formulas(&b, &v, on);
    check_broadcast(&b, &v, on);
    check_results(&b, &v, on);
    check_complex(&b, &v, on);
    check_in_place(&b, &v, on);
    check_concatenation(&b, &v, on);
    plan_fusion(-1);
    duet_free(&v.m);
    duet_free(&b.m);
}

static void test_chains(int first, int n)
{
    for (int k = 0; k < n; k++) {
        seed = (uint64_t)(first + k);
        below(2);
        run_chain((duet_dtype[]){ DUET_F32, DUET_F64, DUET_I64 }[below(3)]);
    }
    tap_point("random chains, of matrices, formulas, results and complex numbers");
}

/* ---- errors ---- */

static void fails(duet_expr e, duet_status status, const char *what)
{
    duet_matrix *m = duet_new(DUET_F32, 2, 3);
    const duet_status s = duet_set(m, e);
    CHECK(s == status && strstr(duet_error(), what), "status %d, not %d: %s", (int)s, (int)status,
          duet_error());
    duet_free(&m);
}

static void test_errors(void)
{
    duet_matrix *m = duet_new(DUET_F32, 2, 3), *wide = duet_new(DUET_F32, 1, 1, 1, 1, 1, 1, 1, 1),
                *gone = NULL;
    fails(duet_reshape(m, 5), DUET_BAD_SHAPE,
          "duet_reshape(x: f32[2,3]): x has 6 elements, but the product of the sizes is 5");
    fails(duet_reshape(m, 4, -1), DUET_BAD_SHAPE, "the product of the sizes other than -1 is 4");
    fails(duet_reshape(m, -1, -1), DUET_BAD_SHAPE,
          "only one size may be -1, but those of axes 0 and 1 are -1");
    fails(duet_reshape(m, 6, -2), DUET_BAD_SHAPE, "size -2 of axis 1 must not be negative");
    fails(duet_reshape(m, INT64_MAX, INT64_MAX), DUET_BAD_SHAPE, "overflows");
    fails((duet_reshape)(DUET(m), 9, NULL), DUET_BAD_SHAPE, "0 to 8 axes, not 9");
    fails((duet_reshape)(DUET(m), 2, NULL), DUET_BAD_SHAPE, "axes");
    fails(duet_broadcast(m, 4, 2), DUET_BAD_SHAPE,
          "duet_broadcast(x: f32[2,3]): x does not broadcast to f32[4,2]");
    fails(duet_permute(m, 0), DUET_BAD_SHAPE, "must name all 2 axes, not 1");
    fails(duet_permute(m, 0, 2), DUET_BAD_SHAPE, "axis 2 does not exist; x has 2 axes");
    fails(duet_permute(m, 0, -2), DUET_BAD_ARGUMENT, "axis 0 is named twice");
    fails(duet_range(m, 0, 0, 1, 0), DUET_BAD_ARGUMENT,
          "duet_range(x: f32[2,3]): the step along axis 0 must not be 0");
    fails(duet_diagonal_of(duet_sum_axis(m, 0), 0), DUET_BAD_SHAPE, "x must have at least 2 axes");
    fails(duet_index(m, DUET_AT(2)), DUET_BAD_ARGUMENT,
          "duet_index(x: f32[2,3]): index 2 of axis 0 is out of bounds");
    fails(duet_index(m, DUET_ALL, DUET_ALL, DUET_ALL), DUET_BAD_SHAPE, "3 entries for axes");
    fails(duet_index(wide, DUET_NEW), DUET_BAD_SHAPE, "9 axes");
    fails(duet_flip(m, 2), DUET_BAD_SHAPE, "duet_flip(x: f32[2,3]): axis 2 does not exist");
    fails(duet_pick(m, 1, 3), DUET_BAD_ARGUMENT,
          "duet_pick(x: f32[2,3]): index 3 of axis 1 is out of bounds");
    fails(duet_part(m, 1, 2, 2), DUET_BAD_ARGUMENT, "duet_part(x: f32[2,3]): k (2) must not be negative");
    fails(duet_expand_dims(wide, 0), DUET_BAD_SHAPE, "duet_expand_dims");
    fails(duet_squeeze(m, 0), DUET_BAD_SHAPE, "duet_squeeze(x: f32[2,3]): axis 0 must have size 1, not 2");
    fails(duet_moveaxis(m, 0, 2), DUET_BAD_SHAPE, "duet_moveaxis(x: f32[2,3]): axis 2 does not exist");
    fails(duet_flip(gone, 0), DUET_BAD_ARGUMENT, "x must not be NULL");
    fails(duet_index(duet_matmul(m, m), DUET_AT(0)), DUET_BAD_SHAPE, "duet_matmul");
    duet_matrix *other = duet_new(DUET_F64, 2, 3);
    fails(duet_append(m, wide, 0), DUET_BAD_SHAPE, "y must have the shape of x except along axis 0");
    fails(duet_append(m, other, 0), DUET_BAD_TYPE, "type");
    fails(duet_append(m, m, 2), DUET_BAD_SHAPE, "axis 2 does not exist");
    duet_free(&other);
    duet_free(&m);
    duet_free(&wide);
    tap_point("invalid arguments");
}

/* ---- fusion: as many steps as without the views ---- */

static char explained[4000];

static int steps_of(duet_matrix *m, duet_expr e)
{
    FILE *out = fmemopen(explained, sizeof explained, "w");
    int steps = -1;
    CHECK(duet_explain(out, m, e) == DUET_OK, "%s", duet_error());
    fclose(out);
    const char *on = strstr(explained, "on the CPU: ");
    if (on) sscanf(on, "on the CPU: %d step", &steps);
    CHECK(duet_drop(e) == DUET_OK, "%s", duet_error());
    return steps;
}

static void test_steps(void)
{
    duet_matrix *x = duet_new(DUET_F32, 6, 4), *w = duet_new(DUET_F32, 4, 6), *b = duet_new(DUET_F32, 6),
                *y = duet_new(DUET_F32, 6, 4), *v = duet_new(DUET_F32, 24), *s = duet_new(DUET_F32, 6, 6),
                *f = duet_new(DUET_F32, 36), *r = duet_new(DUET_F32, 4), *one = duet_new(DUET_F32);
    DUET_ON(DUET_CPU)
    {
        CHECK(steps_of(v, duet_reshape(duet_exp(duet_add(x, y)), 24)) == 1, "a reshape at the end");
        CHECK(steps_of(y, duet_add(duet_transpose(duet_mul(w, 2)), duet_flip(x, 0))) == 1,
              "a transpose of a formula");
        CHECK(steps_of(v, duet_reshape(duet_transpose(x), 24)) == 1, "a reshape that strides cannot express");
        CHECK(steps_of(r, duet_sum_axis(duet_index(duet_exp(x), DUET_STEP(DUET_OPEN, DUET_OPEN, 2)), 0)) == 1,
              "a reduction of some rows");
        CHECK(steps_of(one, duet_sum(duet_diagonal_of(duet_mul(s, s), 0))) == 1, "a trace");
        CHECK(steps_of(f, duet_reshape(duet_relu(duet_bias_add(duet_matmul(x, w), b)), 36)) == 1,
              "a reshape behind an epilogue");
        CHECK(steps_of(s, duet_relu(duet_reshape(duet_bias_add(duet_matmul(x, w), b), 6, 6))) == 1,
              "a reshape to the same sizes");
        CHECK(steps_of(s, duet_matmul(duet_transpose(duet_transpose(x)), duet_transpose(x))) == 1,
              "a product");
        CHECK(steps_of(f, duet_add(1, duet_reshape(duet_matmul(x, w), 36))) == 2, "a formula of a product");
        const duet_expr flat = duet_reshape(x, 24);
        CHECK(steps_of(v, duet_exp(duet_append(duet_range(flat, 0, 12, 24, 1), duet_range(flat, 0, 0, 12, 1),
                                               0))) == 1,
              "a formula of two halves");
        CHECK(steps_of(y, duet_add(x, duet_append(duet_range(y, 0, 1, 6, 1), duet_range(y, 0, 0, 1, 1),
                                                  0))) == 3,
              "a formula of two unequal parts, of the destination itself");
        CHECK(steps_of(r, duet_sub(duet_pick(x, 0, 1), duet_pick(x, 0, -1))) == 1, "two rows");
        CHECK(steps_of(y, duet_roll(duet_exp(x), 1, 0)) == 2 && !strstr(explained, ". copy"), "a roll");
        CHECK(steps_of(y, duet_index(duet_matmul(x, w), DUET_RANGE(0, 6), DUET_RANGE(0, 4))) == 2 &&
                  strstr(explained, " 2. copy; result"),
              "a part of a product: %s", explained);
        CHECK(steps_of(y, duet_cast(duet_cast(x, DUET_F64), DUET_F32)) == 1, "two conversions");
        CHECK(steps_of(y, duet_of_number(3)) == 1 && strstr(explained, "1. fill; result f32[24];"),
              "a number: %s", explained);
    }
    duet_matrix **all[] = { &x, &w, &b, &y, &v, &s, &f, &r, &one };
    for (int k = 0; k < 9; k++) duet_free(all[k]);
    tap_point("steps of formulas with views");
}

/* A view of a formula that is so deep that a call for each operator would overflow the stack. */
static void test_depth(void)
{
    enum { OPERATORS = 30000 };
    duet_matrix *x = duet_ones(DUET_F32, 4, 6), *y = duet_new(DUET_F32, 6, 4);
    for (int form = 0; form < 4; form++) {
        duet_expr e = DUET(x);
        for (int i = 0; i < OPERATORS; i++) e = duet_add(e, x);
        switch (form) {
        case 0: e = duet_reshape(e, 6, 4); break;
        case 1: e = duet_transpose(e); break;
        case 2:
            e = duet_reshape(duet_append(duet_range(e, 0, 0, 1, 1), duet_range(x, 0, 1, 4, 1), 0), 6, 4);
            break;
        default: e = duet_add(duet_reshape(e, 6, 4), duet_reshape(x, 6, 4)); break;
        }
        CHECK(duet_set_on(DUET_CPU, y, e) == DUET_OK, "%s", duet_error());
        const float *got = duet_read(y), want = OPERATORS + 1 + (form == 3);
        CHECK(got && got[0] == want && got[23] == (form == 2 ? 1 : want), "view %d of a deep formula: %g %g",
              form, got ? got[0] : NAN, got ? got[23] : NAN);
    }
    duet_free(&x);
    duet_free(&y);
    tap_point("views of deep formulas");
}

int main(int argc, char **argv)
{
    places = list_places(place);
    const int given = argc > 1 ? atoi(argv[1]) : 0;
    test_chains(argc > 2 ? atoi(argv[2]) : 1, given > 0 ? given : is_quick(argc, argv) ? 1000 : 10000);
    test_errors();
    test_steps();
    test_depth();
    return tap_end();
}
