/* test_types.c - element types: promotion, result types of operators, casts between all types, and
 * exact integers, on every machine and in every fusion mode. test_type_trees.c has random formulas
 * of mixed types. */
#include "type_values.h"

/* ---- promotion ---- */

static duet_status dropped(duet_expr e, duet_dtype *t)
{
    const duet_status s = duet_expr_status(e);
    *t = duet_expr_type(e);
    forget(e);
    return s;
}

static void pair(duet_dtype a, duet_dtype b)
{
    duet_matrix *x = duet_new(a, 3), *y = duet_new(b, 3);
    const duet_dtype want = promoted(a, b);
    duet_dtype got;
    CHECK(dtype_promote(a, b) == want, "%s with %s promotes to type %d", dtypes[a].name, dtypes[b].name,
          (int)dtype_promote(a, b));
    const bool real = is_real(a) && is_real(b);
    const duet_status common = dropped(real ? duet_maximum(x, y) : duet_add(x, y), &got);
    CHECK(want == DUET_DTYPE_COUNT ? common == DUET_BAD_TYPE && strstr(duet_error(), "duet_cast")
                                   : common == DUET_OK && got == want,
          "%s of %s and %s: %s", real ? "maximum" : "sum", dtypes[a].name, dtypes[b].name, duet_error());
    const duet_status s = duet_set(x, y);
    CHECK(want == a ? s == DUET_OK : s == DUET_BAD_TYPE && strstr(duet_error(), "duet_cast"),
          "%s into %s: %s", dtypes[b].name, dtypes[a].name, duet_error());
    duet_free(&x);
    duet_free(&y);
}

static void promotion(void)
{
    for (duet_dtype a = 0; a < DUET_DTYPE_COUNT; a++)
        for (duet_dtype b = 0; b < DUET_DTYPE_COUNT; b++) pair(a, b);
    tap_point("type promotion in formulas and destinations");
}

/* ---- result types of operators ---- */

#define GIVES(e, want)                                                                                       \
    CHECK(dropped(e, &got) == DUET_OK && got == (want), "%s of %s: %s", #e, dtypes[t].name, duet_error())
#define REFUSES(e)                                                                                           \
    CHECK(dropped(e, &got) == DUET_BAD_TYPE && strstr(duet_error(), "duet_cast"), "%s of %s: %s", #e,        \
          dtypes[t].name, duet_error())

static void results_of(duet_dtype t)
{
    duet_matrix *x = duet_new(t, 3);
    const bool number = t != DUET_BOOL, real = is_floating(t);
    duet_dtype sum = DUET_I64;
    if (real) sum = t;
    else if (dtype_kind(t) == TYPE_UNSIGNED) sum = DUET_U64;
    duet_dtype got;
    GIVES(duet_less(x, x), DUET_BOOL);
    GIVES(duet_logical_xor(x, x), DUET_BOOL);
    GIVES(duet_any(x), DUET_BOOL);
    GIVES(duet_argmax(x), DUET_I64);
    GIVES(duet_sum(x), sum);
    GIVES(duet_dot(x, x), sum);
    GIVES(duet_prod_axis(x, 0), sum);
    GIVES(duet_min(x), t);
    GIVES(duet_maximum(x, 1), t);
    GIVES(duet_where(duet_equal(x, 0), x, 1), t);
    GIVES(duet_where(duet_equal(x, 0), 1, 2), DUET_I64);
    GIVES(duet_where(duet_equal(x, 0), 1, 2.5), DUET_F64);
    GIVES(duet_where(duet_equal(x, 0), 1, -INFINITY), DUET_F64);
    GIVES(duet_transpose(x), t);
    if (number) GIVES(duet_add(x, 1), t);
    else REFUSES(duet_add(x, 1));
    if (number) GIVES(duet_neg(x), t);
    else REFUSES(duet_neg(x));
    if (real) GIVES(duet_div(x, 2), t);
    else REFUSES(duet_div(x, 2));
    if (real) GIVES(duet_mean(x), t);
    else REFUSES(duet_mean(x));
    if (real) GIVES(duet_exp(x), t);
    else REFUSES(duet_exp(x));
    if (real) REFUSES(duet_bitwise_and(x, x));
    else GIVES(duet_bitwise_and(x, x), t);
    if (number) GIVES(duet_floor_divide(x, x), t);
    else REFUSES(duet_floor_divide(x, x));
    for (duet_dtype to = 0; is_real(to); to++) GIVES(duet_cast(x, to), to);
    duet_free(&x);
}

/* Every integer operator has its lifting macro: without it these lines do not compile. */
static void lifts(void)
{
    duet_matrix *m = duet_new(DUET_I32, 2), *v = duet_new(DUET_I32, 3), *null = NULL;
    duet_dtype got;
#define DUET_INT1(name, ...)                                                                                 \
    CHECK(dropped(duet_##name(m), &got) == DUET_OK, "%s", duet_error());                                     \
    CHECK(dropped(duet_##name(null), &got) == DUET_BAD_ARGUMENT, "%s", duet_error());
#define DUET_INT2(name, ...)                                                                                 \
    CHECK(dropped(duet_##name(m, 3), &got) == DUET_OK, "%s", duet_error());                                  \
    CHECK(dropped(duet_##name(m, v), &got) == DUET_BAD_SHAPE && strstr(duet_error(), "duet_" #name), "%s",   \
          duet_error());
#include <duet/ops.def>
    CHECK(dropped(duet_cast(3, DUET_U8), &got) == DUET_OK && got == DUET_U8, "%s", duet_error());
    CHECK(dropped(duet_cast(m, (duet_dtype)99), &got) == DUET_BAD_TYPE, "%s", duet_error());
    CHECK(dropped(duet_cast(300, DUET_U8), &got) == DUET_BAD_ARGUMENT, "%s", duet_error());
    duet_free(&m);
    duet_free(&v);
}

static void results(void)
{
    lifts();
    for (duet_dtype t = 0; is_real(t); t++) results_of(t);
    tap_point("the types of results");
}

/* ---- numbers ---- */

static bool holds(duet_dtype t, duet_matrix *m, long double want)
{
    const void *p = duet_read(m);
    return p && element_value(t, p, 0) == want;
}

#define FAILS(s, status, words)                                                                              \
    do {                                                                                                     \
        const duet_status s_ = (s);                                                                          \
        CHECK(s_ == (status) && strstr(duet_error(), words), "%s: %d, %s", #s, (int)s_, duet_error());       \
    } while (0)
#define GOES(s) CHECK((s) == DUET_OK, "%s: %s", #s, duet_error())

static void numbers_of(duet_dtype t)
{
    duet_matrix *m = duet_new(t, 3);
    const long double most = extreme(t, 2), least = extreme(t, 3);
    const duet_expr high = t == DUET_U64 ? duet_of_unsigned((uint64_t)most) : duet_of_integer((int64_t)most);
    GOES((duet_set)(m, high));
    CHECK(holds(t, m, most), "the largest value of %s is wrong", dtypes[t].name);
    GOES((duet_set)(m, duet_of_integer((int64_t)least)));
    CHECK(holds(t, m, least), "the smallest value of %s is wrong", dtypes[t].name);
    GOES(duet_set(m, duet_bitwise_or(m, 5)));
    GOES((duet_set)(m, (duet_maximum)(duet_of_matrix(m), t == DUET_U64 ? duet_of_unsigned(UINT64_MAX)
                                                                       : duet_of_integer((int64_t)most))));
    CHECK(holds(t, m, most), "the maximum with the largest value of %s is wrong", dtypes[t].name);
    FAILS(duet_set(m, 1.5), DUET_BAD_TYPE, "duet_cast");
    FAILS(duet_set(m, duet_add(m, NAN)), DUET_BAD_TYPE, "duet_cast");
    FAILS(duet_set(m, duet_add(m, 1e20)), DUET_BAD_ARGUMENT, "range");
    if (t != DUET_U64)
        FAILS(duet_set(m, duet_add(m, UINT64_MAX)), DUET_BAD_ARGUMENT,
              "18446744073709551615 is out of the range");
    if (t != DUET_U64 && t != DUET_I64) FAILS(duet_set(m, (double)most + 1), DUET_BAD_ARGUMENT, "range");
    if (dtype_kind(t) == TYPE_UNSIGNED) FAILS(duet_set(m, duet_mul(-1, m)), DUET_BAD_ARGUMENT, "range");
    else if (t != DUET_I64) FAILS(duet_set(m, (double)least - 1), DUET_BAD_ARGUMENT, "range");
    CHECK(holds(t, m, most), "a number that does not fit changed a matrix of %s", dtypes[t].name);
    duet_free(&m);
}

static void numbers(void)
{
    duet_matrix *h = duet_new(DUET_F16, 3), *b = duet_new(DUET_BOOL, 3), *f = duet_new(DUET_F32, 3);
    for (duet_dtype t = 0; is_real(t); t++)
        if (is_whole(t)) numbers_of(t);
    GOES(duet_set(h, 1 + 0x1p-11 + 0x1p-40)); /* f32 would round it to a tie */
    CHECK(holds(DUET_F16, h, 1 + 0x1p-10), "a number is not rounded once to f16");
    GOES(duet_set(b, 1));
    CHECK(holds(DUET_BOOL, b, 1), "a bool is wrong");
    FAILS(duet_set(b, 2), DUET_BAD_ARGUMENT, "range");
    FAILS(duet_set(f, duet_bitwise_and(1, 2)), DUET_BAD_TYPE, "one operand must be an integer matrix");
    GOES(duet_set(f, duet_add(INT64_MAX, 0.0)));
    CHECK(holds(DUET_F32, f, 0x1p63L), "a large integer combined with f32 is wrong");
    duet_free(&h);
    duet_free(&b);
    duet_free(&f);
    tap_point("numbers");
}

/* ---- casts ---- */

static void all_floats(duet_matrix *m)
{
    const duet_dtype t = duet_type(m);
    void *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++)
        if (is_floating(t)) element_put(t, p, i, converted(DUET_F64, t, floats[i % LENGTH(floats)]));
        else if (t == DUET_BOOL) element_put(t, p, i, i & 1);
        else element_put(t, p, i, extreme(t, (int)i));
}

static void right(duet_matrix *m, duet_expr e, const char *what, duet_dtype from, duet_dtype to, int p,
                  int mode)
{
    const char *why = NULL;
    DUET_ON(place[p]) why = oracle_refutes(m, e);
    CHECK(!why, "%s, %s to %s on %s, fusion %s: %s", what, dtypes[from].name, dtypes[to].name,
          place_name(place[p]), mode_names[mode], why);
}

static void cast_pair(duet_dtype from, duet_dtype to, int p, int mode)
{
    duet_matrix *x = duet_new(from, LENGTH(floats), 1), *y = duet_new(to, LENGTH(floats), 1),
                *wide = duet_new(to, LENGTH(floats), 3);
    all_floats(x);
    right(y, duet_cast(x, to), "of a matrix", from, to, p, mode);
    right(wide, duet_cast(duet_minimum(x, x), to), "of a formula", from, to, p, mode);
    right(y, duet_maximum(duet_cast(duet_maximum(x, x), to), duet_cast(x, to)), "within a formula", from, to,
          p, mode);
    duet_matrix *back = duet_new(from, 1, LENGTH(floats));
    right(back, duet_transpose(duet_cast(duet_cast(x, to), from)), "there and back", from, to, p, mode);
    duet_free(&x);
    duet_free(&y);
    duet_free(&wide);
    duet_free(&back);
}

static void casts(void)
{
    for (int p = 0; p < places; p++)
        for (int mode = 0; mode < MODES; mode++) {
            plan_fusion(mode);
            for (duet_dtype from = 0; is_real(from); from++)
                for (duet_dtype to = 0; is_real(to); to++) cast_pair(from, to, p, mode);
        }
    plan_fusion(-1);
    tap_point("casts");
}

/* ---- every row for integers, bools and halves ---- */

static duet_expr built(const row *r, duet_matrix *const x[3], int axis)
{
    duet_expr e[3];
    for (int k = 0; k < r->arity; k++) e[k] = duet_of_matrix(x[k]);
    return r->make(e, axis, NULL);
}

static void row_of(const row *r, duet_dtype t, const sizes *s, int percent)
{
    duet_matrix *x[3];
    for (int k = 0; k < 3; k++) x[k] = matrix_of(t, s, percent, r->domain[2 * k], r->domain[2 * k + 1]);
    duet_expr e = built(r, x, 0);
    const bool good = duet_expr_status(e) == DUET_OK;
    const sizes out = sizes_of_expr(e);
    duet_matrix *m = duet_new_shape(good ? duet_expr_type(e) : t, out.rank, out.size);
    forget(e);
    for (int p = 0; p < places && good; p++) {
        const char *why = NULL;
        DUET_ON(place[p]) why = oracle_refutes(m, built(r, x, 0));
        CHECK(!why, "%s of %s on %s: %s", r->name, dtypes[t].name, place_name(place[p]), why);
    }
    CHECK(good || !op_infos[r->op].kind || s->size[0] == 0, "%s of %s: %s", r->name, dtypes[t].name,
          duet_error());
    duet_free(&m);
    for (int k = 0; k < 3; k++) duet_free(&x[k]);
}

static void rows_of(const row *r, int count, const char *what)
{
    static const sizes shapes[] = { SIZES(0, 3), SIZES(1, 1), SIZES(300, 1), SIZES(7, 5), SIZES(4100, 2) };
    for (int i = 0; i < count; i++)
        for (duet_dtype t = DUET_I64; is_real(t); t++)
            for (int s = 0; s < LENGTH(shapes) && admits(&r[i], t); s++)
                row_of(&r[i], t, &shapes[s], is_floating(t) ? 0 : 40);
    tap_point(what);
}

/* ---- several statements, and plans ---- */

/* A later statement reads what an earlier one stored: rounded, and in the type of the destination. */
static void one_after_the_other(int p)
{
    duet_matrix *x = duet_new(DUET_F32, 3), *h = duet_new(DUET_F16, 3), *y = duet_new(DUET_F32, 3),
                *d = duet_new(DUET_F64, 3), *z = duet_new(DUET_F64, 3);
    GOES(duet_set(x, 0.1));
    DUET_ON(place[p])
    GOES(duet_set_all({ h, duet_cast(duet_mul(x, 3), DUET_F16) }, { y, duet_add(h, x) },
                      { d, duet_mul(x, x) }, { z, duet_add(d, 0x1p-40) }));
    const long double x0 = 0.1f, h0 = converted(DUET_F32, DUET_F16, (float)(x0 * 3)),
                      square = (float)(x0 * x0);
    CHECK(holds(DUET_F16, h, h0) && holds(DUET_F32, y, (float)(h0 + x0)),
          "f16 is not rounded before it is read, on %s", place_name(place[p]));
    CHECK(holds(DUET_F64, d, square) && holds(DUET_F64, z, square + 0x1p-40L),
          "a value of f64 is not read as f64, on %s", place_name(place[p]));
    duet_free(&x);
    duet_free(&h);
    duet_free(&y);
    duet_free(&d);
    duet_free(&z);
}

static int steps_of(duet_matrix *m, duet_expr e)
{
    int steps = 0;
    const char *text = plan_of(m, e), *at = strstr(text, "on the CPU: ");
    CHECK(at && sscanf(at, "on the CPU: %d step", &steps) == 1, "%s", text);
    forget(e);
    return steps;
}
#define STEPS(n, m, e)                                                                                       \
    do {                                                                                                     \
        const int n_ = steps_of(m, e);                                                                       \
        CHECK(n_ == (n), "%s takes %d steps, not %d", #e, n_, n);                                            \
    } while (0)

static void plans(void)
{
    plan_fusion(MODE_MACHINE);
    duet_matrix *x = duet_new(DUET_F32, 9), *d = duet_new(DUET_F64, 9), *i = duet_new(DUET_I32, 9),
                *b = duet_new(DUET_BOOL, 9), *h = duet_new(DUET_F16, 9), *n = duet_new(DUET_I64),
                *k = duet_new(DUET_I8, 9), *s = duet_new(DUET_F16);
    DUET_ON(DUET_CPU)
    {
        STEPS(1, x, duet_add(duet_mul(h, 2), x)); /* halves are read as f32 */
        STEPS(1, h, duet_mul(duet_add(h, h), h)); /* and stored as halves */
        STEPS(1, d, duet_add(duet_mul(d, x), x)); /* f32 is read as f64 */
        STEPS(2, d, duet_add(d, duet_exp(x)));    /* but computed as f32 */
        STEPS(1, d, duet_exp(x));                 /* and stored as f64 */
        /* bools do not determine the type */
        STEPS(1, x, duet_where(duet_logical_and(duet_less(x, 1), b), x, 0));
        STEPS(1, n, duet_sum(duet_logical_not(b)));
        STEPS(2, n, duet_sum(duet_less(x, 1)));
        STEPS(1, k, duet_cast(duet_mul(i, i), DUET_I8));
        STEPS(1, i, duet_cast(duet_mul(x, x), DUET_I32));
        STEPS(1, x, duet_exp(duet_cast(i, DUET_F32)));
        STEPS(2, x, duet_exp(duet_cast(duet_mul(i, i), DUET_F32)));
        STEPS(1, s, duet_sum(h));
        STEPS(1, b, duet_equal(i, duet_mul(k, 2)));
        STEPS(1, k, duet_transpose(k));
    }
    duet_free(&x);
    duet_free(&d);
    duet_free(&i);
    duet_free(&b);
    duet_free(&h);
    duet_free(&n);
    duet_free(&k);
    duet_free(&s);
    plan_fusion(-1);
    tap_point("plans");
}

/* 64-bit and unsigned intermediate results between operands and a result that all fit in 32 bits:
 * 32-bit arithmetic would be wrong. */
#define WIDE(x) duet_cast(x, DUET_I64)
static void between(duet_dtype from, duet_dtype to, int p)
{
    const int n = 997; /* several vectors and a remainder */
    duet_matrix *x = duet_new(from, n), *y = duet_new(from, n), *m = duet_new(to, n),
                *b = duet_new(DUET_BOOL, n);
    all_floats(x);
    DUET_ON(DUET_CPU) GOES((duet_set)(y, (duet_roll)(duet_of_matrix(x), 3, 0)));
    right(b, duet_less(duet_mul(WIDE(x), WIDE(y)), WIDE(y)), "a product of 64 bits is compared", from,
          DUET_BOOL, p, 0);
    right(m, duet_cast(duet_shift_right(duet_mul(WIDE(x), WIDE(y)), 16), to), "and its upper bits are taken",
          from, to, p, 0);
    right(m, duet_cast(duet_floor_divide(duet_add(WIDE(x), WIDE(y)), 2), to), "the middle of two", from, to,
          p, 0);
    right(m, duet_cast(duet_add(duet_mul(WIDE(x), WIDE(y)), 5), to), "lower bits of a sum of 64", from, to, p,
          0);
    right(m, duet_cast(duet_remainder(duet_cast(x, DUET_U32), 7), to), "a remainder without a sign", from, to,
          p, 0);
    right(m, duet_cast(duet_minimum(WIDE(x), 3000000000), to), "beside a number of 33 bits", from, to, p, 0);
    right(m, duet_cast(duet_maximum(duet_sub(duet_mul(x, y), x), duet_neg(y)), to), "what wraps", from, to, p,
          0);
    right(b, duet_equal(duet_abs(x), x), "the least number's size", from, DUET_BOOL, p, 0);
    duet_free(&x);
    duet_free(&y);
    duet_free(&m);
    duet_free(&b);
}

static void all_between(void)
{
    static const duet_dtype types[] = { DUET_I8, DUET_U8, DUET_I16, DUET_U16, DUET_I32, DUET_U32 };
    for (int p = 0; p < places; p++)
        for (int i = 0; i < LENGTH(types); i++)
            for (int k = 0; k < LENGTH(types); k++) between(types[i], types[k], p);
    tap_point("wide intermediate results of narrow operands");
}

int main(int argc, char **argv)
{
    gen = rng_new(1);
    list_places_of_types();
    promotion();
    results();
    plans();
    numbers();
    casts();
    for (int p = 0; p < places; p++) one_after_the_other(p);
    tap_point("statements one after the other");
    rows_of(maps, LENGTH(maps), "element by element");
    rows_of(integer_maps, LENGTH(integer_maps), "of integers alone");
    rows_of(reductions, LENGTH(reductions), "reductions");
    all_between();
    return tap_end();
}
