/* test_error_texts.c - what error messages say. Every operator and statement is called with random operands;
 * each failure must name the function and the shapes of its operands, and no internal identifier. Some
 * messages are compared word by word. */
#include "comma_locale.h"
#include "common.h"
#include "dtype.h"
#include "every_call.h"
#include <ctype.h>

#define LENGTH(a) (int)(sizeof(a) / sizeof *(a))

/* ---- random operands of every function ---- */

static rng gen;

static duet_matrix *any_matrix(void)
{
    static const duet_dtype types[] = { DUET_F32, DUET_F32, DUET_F64,  DUET_F16, DUET_I64,
                                        DUET_I32, DUET_U8,  DUET_BOOL, DUET_C64 };
    int64_t size[5];
    const int rank = (int)rng_below(&gen, 6);
    for (int a = 0; a < rank; a++) size[a] = (int64_t)rng_below(&gen, 5);
    return (duet_new_shape)(types[rng_below(&gen, LENGTH(types))], rank, size);
}

static void shape_of(const duet_matrix *m, char text[100])
{
    int n = snprintf(text, 100, "%s[", dtypes[duet_type(m)].name);
    for (int a = 0; a < duet_rank(m); a++)
        n += snprintf(text + n, 100 - (size_t)n, a ? ",%d" : "%d", (int)duet_size(m, a));
    snprintf(text + n, 100 - (size_t)n, "]");
}

/* A word that no user knows: all capitals, but for NULL and the names of duet.h; one capital letter; or the
 * style of old messages. */
static bool is_internal(const char *word, size_t n)
{
    static const char *const old[] = { "needs", "whole", "refuses" };
    bool capitals = true;
    for (size_t i = 0; i < n; i++)
        capitals &= isupper((unsigned char)word[i]) || isdigit((unsigned char)word[i]) || word[i] == '_';
    for (int k = 0; k < LENGTH(old); k++)
        if (n == strlen(old[k]) && !strncmp(word, old[k], n)) return true;
    if (!capitals || !isupper((unsigned char)*word)) return false;
    return strncmp(word, "DUET_", 5) != 0 && !(n == 4 && !strncmp(word, "NULL", 4));
}

static void check_words(const char *name, const char *text)
{
    for (const char *p = text; *p;) {
        size_t n = 0;
        while (isalnum((unsigned char)p[n]) || p[n] == '_') n++;
        CHECK(!n || !is_internal(p, n), "%s: '%.*s' in '%s'", name, (int)n, p, text);
        if (n) p += n;
        else p += 1;
    }
}

static void check_text(const call *c, duet_matrix *const *m, bool all_shapes)
{
    char start[80], shape[100];
    const char *text = duet_error();
    snprintf(start, sizeof start, c->make ? "duet_%s(" : "duet_%s", c->name);
    CHECK(strstr(text, start) != NULL, "%s is not named: '%s'", c->name, text);
    CHECK(strstr(text, "): ") || !c->make, "%s: the rule is not in '%s'", c->name, text);
    for (int k = 0; k < c->operands && all_shapes; k++) {
        shape_of(m[k], shape);
        CHECK(strstr(text, shape) != NULL, "%s: operand %d, %s, is not in '%s'", c->name, k, shape, text);
    }
    check_words(c->name, text);
}

/* One call. Was it an error? */
static bool try_call(const call *c)
{
    duet_matrix *m[4] = { 0 }, *to[3] = { 0 };
    duet_expr x[4];
    duet_status s;
    for (int k = 0; k < c->operands; k++) m[k] = any_matrix();
    for (int k = 0; k < c->results; k++) to[k] = any_matrix();
    for (int k = 0; k < c->operands; k++) x[k] = duet_of_matrix(m[k]);
    if (c->make) {
        const duet_expr e = c->make(x);
        s = duet_expr_status(e);
        if (s != DUET_OK) check_text(c, m, true);
        (duet_drop)(e);
    } else {
        for (int k = 0; k < c->operands; k++) (duet_drop)(x[k]);
        s = c->state(to, m);
        if (s != DUET_OK) check_text(c, m, false);
    }
    for (int k = 0; k < c->operands; k++) duet_free(&m[k]);
    for (int k = 0; k < c->results; k++) duet_free(&to[k]);
    return s != DUET_OK;
}

static void try_all(const char *title, const call *rows, int count, int trials)
{
    int errors = 0, silent = 0;
    for (int i = 0; i < count; i++) {
        int own = 0;
        for (int k = 0; k < trials; k++) own += try_call(&rows[i]);
        errors += own;
        silent += own == 0;
    }
    CHECK(errors > count, "%s: only %d errors", title, errors);
    printf("# %s: %d functions, %d errors, %d functions without one\n", title, count, errors, silent);
    tap_point(title);
}

/* ---- messages word by word ---- */

/* The text without the place of the call, which must be there. */
static void says(const char *want)
{
    const char *text = duet_error(), *place = strstr(text, "test_error_texts.c:");
    if (!CHECK(place != NULL, "no source line in '%s'", text)) return;
    place = strstr(place, ": ");
    CHECK(place && !strcmp(place + 2, want), "'%s' should be '%s'", text, want);
}
#define SAYS(e, want)  (CHECK(duet_set(out, e) != DUET_OK, "no error: %s", want), says(want))
#define FAILS(s, want) (CHECK((s) != DUET_OK, "no error: %s", want), says(want))
#define MAKES(m, want) (CHECK(!(m), "no error: %s", want), says(want))

static duet_matrix *out, *v3, *v4, *m23, *m45, *m33, *m43, *i34, *d34, *c34, *b4, *u8, *idx, *image, *filter,
    *none;

static void operators(void)
{
    SAYS(duet_add(m23, v4), "duet_add(x: f32[2,3], y: f32[4]): the shapes of the operands do not broadcast");
    SAYS(duet_add(d34, i34), "duet_add(x: f64[3,4], y: i64[3,4]): the operands have no common element type; "
                             "convert one with duet_cast");
    SAYS(duet_add(u8, -1), "duet_add(x: u8[4], y: -1): -1 is out of the range of u8");
    SAYS(duet_add(u8, 0.5),
         "duet_add(x: u8[4], y: 0.5): 0.5 is not a value of u8; convert the u8 elements with duet_cast");
    SAYS(duet_exp(i34),
         "duet_exp(x: i64[3,4]): the elements must be floating point; convert them with duet_cast");
    SAYS(duet_bitwise_not(m23),
         "duet_bitwise_not(x: f32[2,3]): the elements must be integers; convert them with duet_cast");
    SAYS(duet_maximum(c34, 0), "duet_maximum(x: c64[3,4], y: 0): complex elements are not supported");
    SAYS(duet_neg(b4), "duet_neg(x: bool[4]): bool elements are not supported; convert them with duet_cast");
    SAYS(duet_atan2(m23, v4),
         "duet_atan2(y: f32[2,3], x: f32[4]): the shapes of the operands do not broadcast");
    SAYS(duet_sum_axis(m23, 2), "duet_sum_axis(x: f32[2,3]): axis 2 does not exist; x has 2 axes");
    SAYS(duet_mean_axes_keep(v3, 5), "duet_mean_axes_keep(x: f32[3]): axis 5 does not exist; x has 1 axis");
    SAYS(duet_sum_axes(m23, 1, -1), "duet_sum_axes(x: f32[2,3]): axis 1 is named twice");
    SAYS(duet_max_keep(none, 0), "duet_max_keep(x: f32[0,3]): there must be at least one element to reduce");
    SAYS(duet_dot(v3, v4), "duet_dot(x: f32[3], y: f32[4]): x and y must have the same shape");
    SAYS(duet_matmul(m23, m45),
         "duet_matmul(x: f32[2,3], y: f32[4,5]): the columns of x (3) must match the rows of y (4)");
    SAYS(duet_matmul(c34, m43), "duet_matmul(x: c64[3,4], y: f32[4,3]): the operands must have the same "
                                "element type; convert one with duet_cast");
    SAYS(duet_bias_add(m45, v3), "duet_bias_add(x: f32[4,5], bias: f32[3]): bias must have one element for "
                                 "each of the 5 columns of x, not 3");
    SAYS(duet_conv2d(image, filter), "duet_conv2d(x: f32[1,2,4,4], filters: f32[3,1,2,2]): the channels of x "
                                     "(2) must be the channels of filters (1) times the groups (1)");
    SAYS(duet_conv2d(image, filter, .groups = 2),
         "duet_conv2d(x: f32[1,2,4,4], filters: f32[3,1,2,2]): axis 0 of filters (size 3) must be a multiple "
         "of the groups (2)");
    SAYS(duet_conv2d(image, filter, .stride = { 0, -1 }),
         "duet_conv2d(x: f32[1,2,4,4], filters: f32[3,1,2,2]): stride ({0, -1}) must not be negative");
    SAYS(duet_max_pool2d(image, .window = { 5, 1 }),
         "duet_max_pool2d(x: f32[1,2,4,4]): along axis 2 the window (5) must not be larger than x with its "
         "padding (4)");
    SAYS(duet_max_pool2d(image), "duet_max_pool2d(x: f32[1,2,4,4]): window ({0, 0}) must be positive");
    SAYS(duet_convolve(m23, v3, DUET_OVERLAP_FULL),
         "duet_convolve(x: f32[2,3], y: f32[3]): x and y must have the same number of axes, not 2 and 1");
    SAYS(duet_fft(i34, 0, 0),
         "duet_fft(x: i64[3,4]): the elements must be f32, f64, c64 or c128; convert them with duet_cast");
    SAYS(duet_fft2(v3), "duet_fft2(x: f32[3]): the number of axes (2) must be from 1 to 1, the axes of x");
    SAYS(duet_take(m43, v3, 0), "duet_take(x: f32[4,3], indices: f32[3]): indices must be an integer matrix");
    SAYS(duet_put(m43, idx, m23, 0), "duet_put(x: f32[4,3], indices: i32[2,2], values: f32[2,3]): values "
                                     "must be f32[2,2,3], the shape of duet_take(x, indices, 0)");
    SAYS(duet_sort(c34, 0), "duet_sort(x: c64[3,4]): x must be real, not complex");
    SAYS(duet_top_k(m23, 9, 1), "duet_top_k(x: f32[2,3]): k (9) must be at most the size of axis 1 of x (3)");
    SAYS(duet_histogram(m23, 1, 0, 4),
         "duet_histogram(x: f32[2,3]): low (1) must be less than high (0), and their difference "
         "must be finite");
    SAYS(duet_cast(c34, DUET_F32), "duet_cast(x: c64[3,4]): complex elements cannot be cast to f32; use "
                                   "duet_real, duet_imag or duet_abs");
    SAYS(duet_einsum(m23, m45, "ij,jk->ik"),
         "duet_einsum(x: f32[2,3], y: f32[4,5]): index j must have one size in all operands, not 3 and 4");
    SAYS(duet_inv(m23), "duet_inv(a: f32[2,3]): a must be square, not 2 x 3");
    SAYS(duet_solve(m33, m45),
         "duet_solve(a: f32[3,3], b: f32[4,5]): the columns of a (3) must match the rows of b (4)");
}

static void composed_operators(void)
{
    SAYS(duet_clip(m23, v4, 1), "duet_clip(x: f32[2,3], low: f32[4], high: 1): "
                                "the shapes of the operands do not broadcast");
    SAYS(duet_hard_tanh(c34), "duet_hard_tanh(x: c64[3,4]): complex "
                              "elements are not supported");
    SAYS(duet_square(duet_add(m23, v4)),
         "duet_add(x: f32[2,3], y: f32[4]): the shapes of the operands do not broadcast");
    SAYS(duet_trace(v3), "duet_trace(x: f32[3]): x must have 2 axes, not 1");
    SAYS(duet_allclose(m23, m23, -1, 0), "duet_allclose(x: f32[2,3], y: f32[2,3]): relative (-1) and "
                                         "absolute (0) must not be negative or NaN");
    SAYS(duet_cross(m23, m45),
         "duet_cross(x: f32[2,3], y: f32[4,5]): the last axes of x and y must have 3 elements");
    SAYS(duet_instance_norm(v3, 1, 0, 1e-5), "duet_instance_norm(x: f32[3], scale: 1, shift: 0): x must have "
                                             "at least 3 axes, not 1");
    SAYS(duet_softmax_grad(m23, m45),
         "duet_softmax_grad(result: f32[2,3], gradient: f32[4,5]): the shapes of "
         "the operands do not broadcast");
    SAYS(duet_std_axis(m23, 4), "duet_std_axis(x: f32[2,3]): axis 4 does not exist; x has 2 axes");
}

static void statement_texts(void)
{
    duet_matrix *null = NULL;
    FAILS(duet_set(null, m33), "duet_set: m must not be NULL");
    FAILS(duet_set(out, m45),
          "duet_set(m: f32[3,4], e: f32[4,5]): the shape of e does not broadcast to that of m");
    FAILS(duet_set(out, d34), "duet_set(m: f32[3,4], e: f64[3,4]): f64 elements cannot be assigned to f32 "
                              "without loss; convert e with duet_cast");
    FAILS(duet_set(u8, 300), "duet_set(m: u8[4]): 300 is out of the range of u8");
    FAILS(duet_set_all({ out, duet_neg(m23) }, { out, duet_neg(m45) }),
          "statement 1: duet_set_all(to: f32[3,4], value: f32[2,3]): "
          "the shape of value does not broadcast to that of to");
    FAILS(duet_set_all({ out, DUET(d34) }),
          "statement 1: duet_set_all(to: f32[3,4], value: f64[3,4]): "
          "f64 elements cannot be assigned to f32 without loss; convert value with duet_cast");
    FAILS(duet_set_all({ null, DUET(m33) }), "statement 1: duet_set_all: to must not be NULL");
    FAILS(duet_iadd(out, m45),
          "duet_iadd(m: f32[3,4], e: f32[4,5]): the shapes of the operands do not broadcast");
    FAILS(duet_iadd(out, null), "duet_iadd(m: f32[3,4], e: NULL): e must not be NULL");
    FAILS(duet_set(out, duet_concat(0, m23, m45)),
          "duet_concat(x: f32[2,3], y: f32[4,5]): y must have the shape of x except "
          "along axis 0");
    FAILS(duet_random_bernoulli(out, 1, 1.5),
          "duet_random_bernoulli(m: f32[3,4]): p (1.5) must be from 0 to 1");
    FAILS(duet_shuffle(out, m43, 0, 1),
          "duet_shuffle(to: f32[3,4], from: f32[4,3]): the matrices must have the same shape");
    FAILS(duet_qr(m23, m33, m23), "duet_qr(q: f32[2,3], r: f32[3,3], a: f32[2,3]): q must be f32[2,2]");
    FAILS(duet_magic(out), "duet_magic(m: f32[3,4]): m must be square");
    MAKES(duet_masked(m23, v3),
          "duet_masked(x: f32[2,3], mask: f32[3]): the shape of mask must be that of the first axes of x");
}

static void matrix_texts(void)
{
    duet_matrix *null = NULL, *part[2];
    MAKES(duet_read(null), "duet_read: the matrix must not be NULL");
    MAKES(duet_overwrite(null), "duet_overwrite: the matrix must not be NULL");
    MAKES(duet_record_end(), "duet_record_end: this thread is not recording");
    FAILS(duet_replay(NULL), "duet_replay: the recording must not be NULL");
    FAILS(duet_explain(stdout, null, DUET(m33)), "duet_explain: m must not be NULL");
    MAKES(duet_new(DUET_F32, 3, -1), "duet_new(f32[3,-1]): the sizes must not be negative");
    MAKES(duet_wrap(NULL, DUET_F32, 3), "duet_wrap: the pointer must not be NULL");
    MAKES(duet_row(m23, 2), "duet_row(m: f32[2,3]): index 2 of axis 0 is out of bounds; its size is 2");
    MAKES(duet_slice(m23, 1, 4),
          "duet_slice(m: f32[2,3]): 4 elements from index 1 of axis 0 are out of bounds; its size is 2");
    MAKES(duet_indexed(m23, DUET_AT(7)),
          "duet_indexed(m: f32[2,3]): index 7 of axis 0 is out of bounds; its size is 2");
    MAKES(duet_permuted(m23, 0, 0), "duet_permuted(m: f32[2,3]): axis 0 is named twice");
    MAKES(duet_squeezed(m23, 0), "duet_squeezed(m: f32[2,3]): axis 0 must have size 1, not 2");
    MAKES(duet_reshaped(m23, 5),
          "duet_reshaped(m: f32[2,3]): to become f32[5], m must have the same number of elements");
    MAKES(duet_broadcast_to(m23, 4, 4), "duet_broadcast_to(m: f32[2,3]): m does not broadcast to f32[4,4]");
    MAKES(duet_transposed(null), "duet_transposed: the matrix must not be NULL");
    FAILS(duet_split(m23, 4, 2, part),
          "duet_split(m: f32[2,3]): axis 4 is out of range; it must be from -2 to 1");
    MAKES(duet_load_npy(NULL), "duet_load_npy: path must not be NULL");
    MAKES(duet_load_npy("/nowhere/x.npy"), "duet_load_npy(\"/nowhere/x.npy\"): No such file or directory");
    FAILS(duet_load_npy_into("/nowhere/x.npy", m23),
          "duet_load_npy_into(\"/nowhere/x.npy\"): No such file or directory");
    FAILS(duet_save_market("/dev/null", v3), "duet_save_market(m: f32[3]): m must have 2 axes");
}

static void exact(void)
{
    duet_matrix **const all[] = { &out, &v3,  &v4, &m23, &m45, &m33,   &m43,    &i34,
                                  &d34, &c34, &b4, &u8,  &idx, &image, &filter, &none };
    out = duet_new(DUET_F32, 3, 4);
    v3 = duet_new(DUET_F32, 3);
    v4 = duet_new(DUET_F32, 4);
    m23 = duet_new(DUET_F32, 2, 3);
    m45 = duet_new(DUET_F32, 4, 5);
    m33 = duet_new(DUET_F32, 3, 3);
    m43 = duet_new(DUET_F32, 4, 3);
    i34 = duet_new(DUET_I64, 3, 4);
    d34 = duet_new(DUET_F64, 3, 4);
    c34 = duet_new(DUET_C64, 3, 4);
    b4 = duet_new(DUET_BOOL, 4);
    u8 = duet_new(DUET_U8, 4);
    idx = duet_new(DUET_I32, 2, 2);
    image = duet_new(DUET_F32, 1, 2, 4, 4);
    filter = duet_new(DUET_F32, 3, 1, 2, 2);
    none = duet_new(DUET_F32, 0, 3);
    operators();
    composed_operators();
    statement_texts();
    matrix_texts();
    for (int i = 0; i < LENGTH(all); i++) duet_free(all[i]);
    tap_point("exact error messages");
}

static void explained(char text[4000], duet_matrix *m)
{
    FILE *f = fmemopen(text, 4000, "w");
    CHECK(f && duet_explain(f, m, 0.5) == DUET_OK, "%s", duet_error());
    if (f) fclose(f);
}

/* The locale of the program must not change messages. */
static void texts_with_comma(void)
{
    char before[4000] = "", now[4000] = "", number[20];
    m23 = duet_new(DUET_F32, 2, 3);
    i34 = duet_new(DUET_I64, 3, 4);
    out = duet_new(DUET_F32, 3, 4);
    explained(before, m23);
    if (!comma_locale_begin()) {
        printf("ok %d - texts in a locale with decimal commas # SKIP there is no locale\n", ++tap_points);
        return;
    }
    snprintf(number, sizeof number, "%.1f", 0.5);
    CHECK(!strcmp(number, "0,5"), "the locale is not in use");
    SAYS(duet_histogram(m23, 1.5, 0.5, 4), "duet_histogram(x: f32[2,3]): low (1.5) must be less than high "
                                           "(0.5), and their difference must be finite");
    SAYS(duet_add(i34, 0.5),
         "duet_add(x: i64[3,4], y: 0.5): 0.5 is not a value of i64; convert the i64 elements with duet_cast");
    snprintf(number, sizeof number, "%.1f", 0.5);
    CHECK(!strcmp(number, "0,5"), "the locale of the program was changed");
    explained(now, m23);
    CHECK(!strcmp(before, now), "%snot\n%s", now, before);
    comma_locale_end();
    duet_free(&m23);
    duet_free(&i34);
    duet_free(&out);
    tap_point("texts in a locale with decimal commas");
}

int main(void)
{
    gen = rng_new(20261123);
    exact();
    texts_with_comma();
    try_all("element by element", maps, LENGTH(maps), 30);
    try_all("reductions", reductions, LENGTH(reductions), 30);
    try_all("other operators", defs, LENGTH(defs), 60);
    try_all("composed operators", composed, LENGTH(composed), 30);
    try_all("losses and normalisations", networks, LENGTH(networks), 30);
    try_all("factorisations", factors, LENGTH(factors), 30);
    try_all("statements", statements, LENGTH(statements), 30);
    return tap_end();
}
