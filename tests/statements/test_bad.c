/* test_bad.c - bad input of every kind: the documented status, a text with the function, the
 * operands and the broken rule, and a destination with unchanged bits. The rows determine which
 * shapes are bad. */
#include "common.h"
#include "ops.h"
#include <sys/wait.h>
#include <unistd.h>

static duet_matrix *out; /* the destination of all failing statements */
static float before[12];

static void reset(void)
{
    float *p = duet_overwrite(out);
    for (int i = 0; i < 12; i++) p[i] = before[i] = 100.0f + (float)i;
}

static bool untouched(void)
{
    const float *p = duet_read(out);
    return p && !memcmp(p, before, sizeof before);
}

/* The statement fails with this status and text, and changes nothing. words: up to three, NULL for
 * none. */
static void fails(duet_expr e, duet_status want, const char *name, const char *const words[3])
{
    reset();
    const duet_status got = duet_set(out, e);
    CHECK(got == want, "%s: %s, not %s (%s)", name, duet_status_text(got), duet_status_text(want),
          duet_error());
    for (int i = 0; i < 3 && words[i]; i++)
        CHECK(strstr(duet_error(), words[i]) != NULL, "%s: '%s' is not in '%s'", name, words[i],
              duet_error());
    const bool placed = strstr(duet_error(), "test_bad.c:") ||
                        strstr(duet_error(), "ops.def:"); /* the macro of a row is there */
    CHECK(placed || got == DUET_OK, "%s: no source line in '%s'", name, duet_error());
    CHECK(untouched(), "%s changed the destination", name);
}
#define FAILS(e, status, ...) fails(e, status, #e, (const char *const[3]){ __VA_ARGS__ })

static duet_matrix *f32(int rank, const int64_t *size) { return duet_new_shape(DUET_F32, rank, size); }
#define NEW(...) f32(RANK_OF(__VA_ARGS__), (const int64_t[]){ 0, ##__VA_ARGS__ } + 1)

/* ---- shapes and types, for every row ------------------------------------------------------------------- */

typedef struct pair {
    duet_matrix *x, *y, *z;
} pair;

static const duet_conv conv_good = { { 1, 1 }, { 0, 0 } };
static const duet_pool_grad pool_grad_good = { .window = { 2, 2 } };
static const duet_pool pool_good = { { 2, 2 }, { 1, 1 }, { 0, 0 } };

/* "duet_add(x: f32[2,3], y: f32[4])" */
static const char *call_text(char text[200], const char *function, const char *x, const char *y,
                             const char *z)
{
    static const struct {
        const char *function, *operand[3];
    } named[] = {
#define DUET_OPERANDS(function, x, y, z) { #function, { x, y, z } },
#include <duet/operands.def>
        { NULL, { "x", "y", "z" } },
    };
    const char *const given[] = { x, y, z };
    int i = 0;
    while (named[i].function && strcmp(named[i].function, function)) i++;
    int n = snprintf(text, 200, "duet_%s(", function);
    for (int k = 0; k < 3 && given[k]; k++)
        n += snprintf(text + n, 200 - (size_t)n, "%s%s: %s", k ? ", " : "", named[i].operand[k], given[k]);
    snprintf(text + n, 200 - (size_t)n, ")");
    return text;
}

/* Gives each kind of row a shape that it does not accept: operands that do not broadcast, for
 * reductions an axis that does not exist, for others a shape that no row accepts. */
static void shapes(void)
{
    pair p = { NEW(2, 3), NEW(4), NEW(5) };
    char name[200];
#define NAMED(row)          (snprintf(name, sizeof name, "duet_%s", #row), name)
#define CALL2(row, x, y)    call_text(name, #row, x, y, NULL)
#define CALL3(row, x, y, z) call_text(name, #row, x, y, z)
#define DUET_MAP1(row, ...)
#define DUET_MAP2(row, ...)                                                                                  \
    FAILS(duet_##row(p.x, p.y), DUET_BAD_SHAPE, CALL2(row, "f32[2,3]", "f32[4]"), "broadcast");
#define DUET_MAP3(row, ...)                                                                                  \
    FAILS(duet_##row(p.x, p.y, p.z), DUET_BAD_SHAPE, CALL3(row, "f32[2,3]", "f32[4]", "f32[5]"),             \
          "broadcast");                                                                                      \
    FAILS(duet_##row(p.x, 1, p.z), DUET_BAD_SHAPE, NAMED(row), "f32[2,3]", "broadcast");
#define DUET_PLACE1(row, ...)                                                                                \
    FAILS(duet_##row##_axis(p.x, 2), DUET_BAD_SHAPE, NAMED(row), "f32[2,3]", "axis 2");                      \
    FAILS(duet_##row##_keep(p.x, -3), DUET_BAD_SHAPE, NAMED(row), "f32[2,3]", "axis -3");
#define DUET_FOLD1(row, ...)                                                                                 \
    DUET_PLACE1(row, )                                                                                       \
    FAILS(duet_##row##_axes(p.x, 0, 2), DUET_BAD_SHAPE, NAMED(row), "f32[2,3]", "axis 2");                   \
    FAILS(duet_##row##_axes(p.x, 1, 0, -1), DUET_BAD_ARGUMENT, NAMED(row), "f32[2,3]",                       \
          "axis 1 is named twice");                                                                          \
    FAILS(duet_##row##_axes_keep(p.x, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1), DUET_BAD_ARGUMENT, NAMED(row),    \
          "axis 0 is named twice");                                                                          \
    FAILS((duet_##row##_axes)(duet_of_matrix(p.x), 1, NULL), DUET_BAD_ARGUMENT, NAMED(row),                  \
          "the list of axes must not be NULL");                                                              \
    FAILS((duet_##row##_axes_keep)(duet_of_matrix(p.x), -1, (int[1]){ 0 }), DUET_BAD_ARGUMENT, NAMED(row),   \
          "the list of axes must not be NULL");
#define DUET_MOMENT1 DUET_FOLD1
#define DUET_FOLD2(row, ...)                                                                                 \
    FAILS(duet_##row(p.x, p.y), DUET_BAD_SHAPE, CALL2(row, "f32[2,3]", "f32[4]"), "same shape");             \
    FAILS(duet_##row##_axis(p.x, p.x, 2), DUET_BAD_SHAPE, NAMED(row), "axis 2");
#include <duet/ops.def>
    duet_free(&p.x);
    duet_free(&p.y);
    duet_free(&p.z);
    tap_point("operands that do not broadcast, missing axes");
}

/* 2^64 columns must not count as none. */
static void too_wide(void)
{
    duet_matrix *one = duet_new(DUET_U8, 1, 1, 1, 1),
                *wide = duet_broadcast_to(one, 1, 1, 1, (int64_t)1 << 61);
    FAILS(duet_upsample2d(wide, 1, 8), DUET_BAD_SHAPE, "duet_upsample2d(x: u8[1,1,1,2305843009213693952])",
          "the size of axis 3 of x times the scale (8) overflows");
    duet_free(&one);
    duet_free(&wide);
}

/* Breaks the conditions of each row with a definition. The error must contain the text of the
 * condition. */
static void definitions(void)
{
    duet_matrix *scalar = NEW(), *v = NEW(3), *m = NEW(2, 3), *w = NEW(4, 5), *im = NEW(1, 2, 4, 4),
                *few = NEW(3, 1, 2, 2), *large = NEW(3, 2, 9, 2), *two = NEW(2, 1, 2, 2),
                *none = NEW(3, 2, 0, 2), *nothing = NEW(0, 3);
    FAILS(duet_softmax(scalar), DUET_BAD_SHAPE, "duet_softmax(x: f32[])", "x must have at least 1 axis");
    FAILS(duet_log_softmax(scalar), DUET_BAD_SHAPE, "duet_log_softmax(x: f32[])",
          "x must have at least 1 axis");
    FAILS(duet_max_pool2d(m, .window = { 2, 2 }), DUET_BAD_SHAPE, "duet_max_pool2d(x: f32[2,3])",
          "x must have 4 axes, not 2");
    FAILS(duet_max_pool2d(im, .window = { 5, 2 }), DUET_BAD_SHAPE, "duet_max_pool2d(x: f32[1,2,4,4])",
          "along axis 2 the window (5)");
    FAILS(duet_avg_pool2d(im, .window = { 2, 5 }), DUET_BAD_SHAPE, "duet_avg_pool2d(x: f32[1,2,4,4])",
          "along axis 3 the window (5)");
    FAILS(duet_max_pool2d(im), DUET_BAD_ARGUMENT, "duet_max_pool2d", "window");
    FAILS(duet_max_pool2d(im, .window = { 2, 2 }, .stride = { -1, 1 }), DUET_BAD_ARGUMENT, "duet_max_pool2d",
          "stride");
    FAILS(duet_avg_pool2d(im, .window = { 2, 2 }, .stride = { -1, 0 }), DUET_BAD_ARGUMENT, "duet_avg_pool2d",
          "stride");
    FAILS(duet_matmul(m, w), DUET_BAD_SHAPE, "duet_matmul(x: f32[2,3], y: f32[4,5])", "the columns of x (3)");
    FAILS(duet_matmul(v, w), DUET_BAD_SHAPE, "duet_matmul(x: f32[3], y: f32[4,5])", "the columns of x (3)");
    FAILS(duet_matmul(scalar, w), DUET_BAD_SHAPE, "duet_matmul(x: f32[], y: f32[4,5])",
          "x must have at least 1 axis");
    FAILS(duet_matmul(m, scalar), DUET_BAD_SHAPE, "duet_matmul(x: f32[2,3], y: f32[])",
          "y must have at least 1 axis");
    FAILS(duet_matmul(m, 2), DUET_BAD_SHAPE, "duet_matmul(x: f32[2,3], y: 2)", "y must have at least 1 axis");
    FAILS(duet_bias_add(w, v), DUET_BAD_SHAPE, "duet_bias_add(x: f32[4,5], bias: f32[3])",
          "each of the 5 columns of x, not 3");
    FAILS(duet_bias_add(im, v), DUET_BAD_SHAPE, "duet_bias_add(x: f32[1,2,4,4], bias: f32[3])",
          "each of the 2 channels (axis 1) of x, not 3");
    FAILS(duet_bias_add(v, v), DUET_BAD_SHAPE, "duet_bias_add(x: f32[3], bias: f32[3])",
          "x must have 2 to 5 axes");
    FAILS(duet_conv2d(im, few), DUET_BAD_SHAPE, "duet_conv2d(x: f32[1,2,4,4], filters: f32[3,1,2,2])",
          "the channels of x (2)");
    FAILS(duet_conv2d(im, large), DUET_BAD_SHAPE, "duet_conv2d", "along axis 2 filters (extent 9)");
    FAILS(duet_convolve2d(im, none), DUET_BAD_SHAPE, "duet_convolve2d",
          "axis 2 of filters must not be empty");
    FAILS(duet_convolve2d(im, w), DUET_BAD_SHAPE, "duet_convolve2d(x: f32[1,2,4,4], filters: f32[4,5])",
          "filters must have 4 axes");
    FAILS(duet_conv2d(im, few, .stride = { -2, 1 }), DUET_BAD_ARGUMENT, "duet_conv2d", "stride");
    FAILS(duet_conv2d(im, few, .dilation = { 1, -1 }), DUET_BAD_ARGUMENT, "duet_conv2d",
          "dilation ({1, -1})");
    FAILS(duet_max_pool2d_grad(im, few, .window = { 2, 2 }), DUET_BAD_SHAPE, "duet_max_pool2d_grad",
          "axis 0 of x (size 1) and axis 0 of gradient (size 3)");
    FAILS(duet_max_pool2d_grad(im, im, .window = { 2, 2 }), DUET_BAD_SHAPE, "duet_max_pool2d_grad",
          "axis 2 of gradient must have size 2, not 4: windows of size 2 give results of size 2");
    FAILS(duet_max_pool2d_grad(im, im), DUET_BAD_ARGUMENT, "duet_max_pool2d_grad", "window");
    FAILS(duet_avg_pool2d_grad(im, .window = { 2, 2 }, .size = { 3, 8 }), DUET_BAD_SHAPE,
          "duet_avg_pool2d_grad",
          "axis 2 of gradient must have size 1, not 4: images of size 3 give results of size 1");
    FAILS(duet_avg_pool2d_grad(im, .window = { 2, 2 }, .size = { 8, -8 }), DUET_BAD_ARGUMENT,
          "duet_avg_pool2d_grad", "size ({8, -8})");
    FAILS(duet_upsample2d(m, 2, 2), DUET_BAD_SHAPE, "duet_upsample2d(x: f32[2,3])", "x must have 4 axes");
    FAILS(duet_upsample2d(im, -1, 2), DUET_BAD_ARGUMENT, "duet_upsample2d", "scale ({-1, 2})");
    too_wide();
    FAILS(duet_instance_norm(m, 1, 0, 0.1), DUET_BAD_SHAPE,
          "duet_instance_norm(x: f32[2,3], scale: 1, shift: 0)", "x must have at least 3 axes, not 2");
    FAILS(duet_softmax_grad(scalar, scalar), DUET_BAD_SHAPE,
          "duet_softmax_grad(result: f32[], gradient: f32[])", "result must have at least 1 axis, not 0");
    FAILS(duet_conv2d_input_grad(im, few), DUET_BAD_SHAPE,
          "duet_conv2d_input_grad(gradient: f32[1,2,4,4], filters: f32[3,1,2,2])",
          "axis 1 of gradient (size 2)");
    FAILS(duet_conv2d_input_grad(im, large, .size = { 4, 9 }), DUET_BAD_SHAPE, "duet_conv2d_input_grad",
          "axis 0 of filters (size 3)");
    FAILS(duet_conv2d_input_grad(im, two, .size = { 4, 5 }), DUET_BAD_SHAPE, "duet_conv2d_input_grad",
          "axis 2 of gradient must have size 3, not 4: images of size 4 give results of size 3");
    FAILS(duet_conv2d_input_grad(im, two, .size = { -4, 5 }), DUET_BAD_ARGUMENT, "duet_conv2d_input_grad",
          "size ({-4, 5})");
    FAILS(duet_conv2d_filter_grad(im, few), DUET_BAD_SHAPE, "duet_conv2d_filter_grad",
          "axis 0 of gradient (size 3)");
    FAILS(duet_conv2d_filter_grad(im, im, .groups = 4), DUET_BAD_SHAPE, "duet_conv2d_filter_grad",
          "axis 1 of x (size 2) must be a multiple of the groups (4)");
    FAILS(duet_conv2d_filter_grad(im, im, .size = { 2, 1 }), DUET_BAD_SHAPE, "duet_conv2d_filter_grad",
          "axis 2 of gradient must have size 3, not 4: filters of size 2 give results of size 3");
    FAILS(duet_conv_transpose2d(im, two, .output_pad = { 1, 0 }), DUET_BAD_SHAPE, "duet_conv_transpose2d",
          "along axis 2 output_pad (1) must be less than the stride (1)");
    FAILS(duet_conv_transpose2d(im, two, .pad = { 0, 4 }), DUET_BAD_SHAPE, "duet_conv_transpose2d",
          "along axis 3 the padding (4)");
    FAILS(duet_conv2d(im, few, .groups = -2), DUET_BAD_ARGUMENT, "duet_conv2d", "groups (-2)");
    FAILS(duet_conv2d(im, few, .groups = 3), DUET_BAD_SHAPE, "duet_conv2d", "times the groups (3)");
    FAILS(duet_conv2d(im, few, .groups = 2), DUET_BAD_SHAPE, "duet_conv2d",
          "must be a multiple of the groups (2)");
    FAILS(duet_convolve2d(im, im, .dilation = { 1, 2 }), DUET_BAD_SHAPE, "duet_convolve2d",
          "along axis 3 filters (extent 7)");
    FAILS(duet_min(nothing), DUET_BAD_SHAPE, "duet_min(x: f32[0,3])", "at least one element");
    FAILS(duet_max_axis(nothing, 0), DUET_BAD_SHAPE, "duet_max_axis(x: f32[0,3])", "at least one element");
    FAILS(duet_argmin(nothing), DUET_BAD_SHAPE, "duet_argmin(x: f32[0,3])", "at least one element");
    FAILS(duet_argmax_keep(nothing, 0), DUET_BAD_SHAPE, "duet_argmax_keep(x: f32[0,3])",
          "at least one element");
    duet_free(&scalar);
    duet_free(&v);
    duet_free(&m);
    duet_free(&w);
    duet_free(&im);
    duet_free(&few);
    duet_free(&two);
    duet_free(&large);
    duet_free(&none);
    duet_free(&nothing);
    tap_point("violated conditions of the rows of ops.def");
}

/* Every row with more than one operand refuses f32 with i64, a null matrix, and a failed operand. */
static void types_and_nulls(void)
{
    duet_matrix *a = NEW(3, 4), *b = duet_new(DUET_I64, 3, 4), *d = duet_new(DUET_F64, 3, 4), *null = NULL;
    char name[200];
#define TYPES(row, f, ...)                                                                                   \
    FAILS(f(a, b __VA_ARGS__), DUET_BAD_TYPE, CALL2(row, "f32[3,4]", "i64[3,4]"), "common element type");    \
    FAILS(f(b, a __VA_ARGS__), DUET_BAD_TYPE, CALL2(row, "i64[3,4]", "f32[3,4]"), "common element type");
#define DUET_MAP1(row, ...) FAILS((duet_##row)(duet_of_matrix(null)), DUET_BAD_ARGUMENT, "must not be NULL");
#define DUET_MAP2(row, ...)                                                                                  \
    TYPES(row, duet_##row)                                                                                   \
    FAILS(duet_##row(null, a), DUET_BAD_ARGUMENT, "must not be NULL");                                       \
    FAILS(duet_##row(duet_add(a, null), 3), DUET_BAD_ARGUMENT, "must not be NULL");
#define DUET_MAP3(row, ...)  FAILS(duet_##row(1, a, b), DUET_BAD_TYPE, NAMED(row));
#define DUET_FOLD1(row, ...) FAILS(duet_##row(null), DUET_BAD_ARGUMENT, "must not be NULL");
#define DUET_MOMENT1         DUET_FOLD1
#define DUET_PLACE1          DUET_FOLD1
#define DUET_FOLD2(row, ...)                                                                                 \
    TYPES(row, duet_##row) FAILS(duet_##row##_axis(a, b, 0), DUET_BAD_TYPE, NAMED(row));
#define DUET_DEF1(row, kind, ...)                                                                            \
    FAILS((duet_##row)(duet_of_matrix(null) GOOD_##kind), DUET_BAD_ARGUMENT, "must not be NULL");
#define DUET_DEF2(row, kind, ...)                                                                            \
    FAILS((duet_##row)(duet_of_matrix(a), duet_of_matrix(b) GOOD_##kind), DUET_BAD_TYPE,                     \
          CALL2(row, "f32[3,4]", "i64[3,4]"), "common element type");
#define GOOD_plain
#define GOOD_conv            , &conv_good
#define GOOD_conv_grad       , NULL
#define GOOD_conv_transposed , NULL
#define GOOD_pool            , &pool_good
#define GOOD_pool_grad       , &pool_grad_good
#define GOOD_scale           , NULL
#include <duet/ops.def>
    FAILS(duet_add(d, 1), DUET_BAD_TYPE, "duet_set(m: f32[3,4], e: f64[3,4])", "duet_cast");
    duet_free(&a);
    duet_free(&b);
    duet_free(&d);
    tap_point("different element types, NULL matrices");
}

/* ---- statements ---------------------------------------------------------------------------------------- */

static void statements(void)
{
    duet_matrix *a = NEW(3, 4), *b = NEW(4, 3), *d = duet_new(DUET_F64, 3, 4), *gone = NEW(3, 4),
                *deep = NEW(2, 3, 4), *null = NULL;
    FAILS(duet_add(b, 1), DUET_BAD_SHAPE, "duet_set(m: f32[3,4], e: f32[4,3])", "broadcast");
    FAILS(duet_add(deep, 1), DUET_BAD_SHAPE, "duet_set(m: f32[3,4], e: f32[2,3,4])");
    FAILS(duet_of_matrix(d), DUET_BAD_TYPE, "f64[3,4]");

    duet_expr e = duet_add(a, gone);
    duet_free(&gone);
    FAILS(e, DUET_FREED, "duet_set", "f32[3,4]", "freed");
    FAILS(e, DUET_SPENT, "already", "test_bad.c");
    e = duet_add(a, a);
    forget(e);
    FAILS(e, DUET_SPENT, "dropped");

    CHECK(duet_set(null, duet_add(a, 1)) == DUET_BAD_ARGUMENT && strstr(duet_error(), "m must not be NULL"),
          "%s", duet_error());
    CHECK(duet_set_on((duet_place)9, out, duet_add(a, 1)) == DUET_BAD_ARGUMENT, "%s", duet_error());
    CHECK((duet_explain)(NULL, out, duet_add(a, 1)) == DUET_BAD_ARGUMENT, "%s", duet_error());
    CHECK((duet_print_expr)(NULL, duet_add(a, 1)) == DUET_BAD_ARGUMENT, "%s", duet_error());
    duet_scope_close(NULL);
    duet_math_close(NULL);
    duet_explain_close(NULL);
    CHECK(duet_iadd(out, b) == DUET_BAD_SHAPE && strstr(duet_error(), "duet_iadd(m: f32[3,4], e: f32[4,3])"),
          "%s", duet_error());
    duet_free(&a);
    duet_free(&b);
    duet_free(&d);
    duet_free(&deep);
    tap_point("statements with freed, spent or dropped operands");
}

static void refused_matrix(duet_matrix *m, const char *what, const char *words)
{
    CHECK(!m, "%s was made", what);
    CHECK(strstr(duet_error(), words) != NULL, "%s: '%s' is not in '%s'", what, words, duet_error());
    duet_free(&m);
}
#define NO_MATRIX(m, words) refused_matrix(m, #m, words)

static void matrices(void)
{
    const int64_t ones[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 }, huge = (int64_t)1 << 62;
    duet_matrix *m = NEW(3, 4), *null = NULL;
    char bytes[64] __attribute__((aligned(16)));
    NO_MATRIX(duet_new_shape(DUET_F32, 9, ones), "number of axes");
    NO_MATRIX(duet_new_shape(DUET_F32, -1, ones), "number of axes");
    NO_MATRIX(duet_new(DUET_F32, 3, -1), "-1");
    NO_MATRIX(duet_new(DUET_F32, huge), "overflow");
    NO_MATRIX(duet_new(DUET_F64, huge / 4, 2), "overflow");
    NO_MATRIX(duet_new(DUET_F32, 1 << 30, 1 << 30, 1 << 30), "overflow");
    NO_MATRIX(duet_new((duet_dtype)DUET_DTYPE_COUNT, 3), "type");
    NO_MATRIX(duet_wrap(NULL, DUET_F32, 3), "NULL");
    NO_MATRIX(duet_wrap(bytes + 1, DUET_F32, 3), "align");
    NO_MATRIX(duet_slice(m, 2, 2), "duet_slice");
    NO_MATRIX(duet_slice(null, 0, 1), "NULL");
    NO_MATRIX(duet_row(m, 3), "duet_row");
    NO_MATRIX(duet_row(m, -1), "duet_row");
    NO_MATRIX(duet_column(m, 4), "duet_column");
    NO_MATRIX(duet_submatrix(m, 1, 1, 3, 3), "duet_submatrix");
    NO_MATRIX(duet_reshaped(m, 5, 2), "duet_reshaped");
    NO_MATRIX(duet_transposed(null), "NULL");
    CHECK(!duet_read(NULL) && *duet_error(), "%s", duet_error());
    CHECK(duet_rank(NULL) == 0 && duet_count(NULL) == 0 && duet_size(m, 7) == 0,
          "the properties of a NULL matrix are not 0");
    duet_free(&m);
    duet_free(&null);
    duet_free(NULL);

    /* a broadcast whose result overflows although each operand is small */
    duet_matrix *v[8];
    duet_expr e = duet_of_number(1);
    for (int d = 0; d < 8; d++) {
        int64_t size[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
        size[d] = 1000;
        v[d] = duet_new_shape(DUET_F32, 8, size);
        e = duet_add(e, v[d]);
    }
    FAILS(e, DUET_BAD_SHAPE, "overflow");
    for (int d = 0; d < 8; d++) duet_free(&v[d]);
    tap_point("invalid matrices");
}

/* ---- machines ------------------------------------------------------------------------------------------ */

static void memory(void)
{
    duet_matrix *a = duet_new(DUET_F32, 1000, 1000), *small = NEW(3, 4);
    CHECK(duet_overwrite(a) != NULL, "%s", duet_error());
    CHECK(duet_memory_limit(DUET_CPU, duet_memory_of(DUET_CPU).used + (1 << 20)) == DUET_OK, "%s",
          duet_error());
    reset();
    const duet_status s =
        duet_set_on(DUET_CPU, out, duet_sum(duet_matmul(a, duet_transpose(duet_matmul(a, a)))));
    CHECK(s == DUET_NO_MEMORY, "with a memory limit: %s (%s)", duet_status_text(s), duet_error());
    CHECK(strstr(duet_error(), "limit") && strstr(duet_error(), "bytes"),
          "the error text does not name the limit: %s", duet_error());
    CHECK(untouched(), "the destination changed");

    duet_matrix *b = duet_new(DUET_F32, 1000, 1000);
    CHECK(!duet_overwrite(b) && strstr(duet_error(), "limit"), "a host buffer above the limit: %s",
          duet_error());
    CHECK(duet_set_on(DUET_CPU, small, 2) == DUET_OK, "a small allocation after that: %s", duet_error());
    CHECK(duet_memory_limit(DUET_CPU, 0) == DUET_OK, "%s", duet_error());
    CHECK(duet_overwrite(b) != NULL, "without the memory limit: %s", duet_error());
    CHECK(duet_set_on(DUET_CPU, b, duet_matmul(a, a)) == DUET_OK, "%s", duet_error());
    duet_free(&a);
    duet_free(&b);
    duet_free(&small);
    tap_point("a memory limit that is too small");
}

static void no_gpu(void)
{
    duet_matrix *a = NEW(3, 4);
    reset();
    CHECK(duet_set_on(DUET_GPU, out, duet_add(a, 1)) == DUET_NO_DEVICE, "%s", duet_error());
    CHECK(strstr(duet_error(), "GPU") && strstr(duet_error(), "test_bad.c:"), "%s", duet_error());
    CHECK(untouched(), "the destination changed");
    DUET_ON(DUET_GPU) FAILS(duet_add(a, 1), DUET_NO_DEVICE, "GPU");
    CHECK(!duet_device_read(a) && !duet_device_update(a) && !duet_device_overwrite(a) && !duet_stream(),
          "a pointer to GPU memory was returned without a GPU");
    CHECK(duet_memory_limit(DUET_GPU, 1 << 20) == DUET_OK || *duet_error(),
          "a memory limit without a GPU did not fail");
    duet_free(&a);
    tap_point("a requested GPU that does not exist");
}

/* A process reads the environment once, at the start: a new process for each. */
static void environment(const char *name, const char *value, const char *self, duet_status want)
{
    const pid_t child = fork();
    if (!child) {
        setenv(name, value, 1);
        execl(self, self, "child", (char *)NULL);
        _exit(99);
    }
    int code = 0;
    waitpid(child, &code, 0);
    CHECK(WIFEXITED(code) && WEXITSTATUS(code) == (int)want, "%s=%s: status %d, not %d", name, value,
          WEXITSTATUS(code), (int)want);
}

static int child(void)
{
    reset();
    const duet_status s = duet_set(out, duet_add(out, 1));
    if (s != DUET_OK && !untouched()) return 98;
    return (int)s;
}

int main(int argc, char **argv)
{
    out = NEW(3, 4);
    if (argc > 1 && !strcmp(argv[1], "child")) return child();
    duet_place place[2];
    const bool gpu = list_places(place) == 2;
    shapes();
    definitions();
    types_and_nulls();
    statements();
    matrices();
    memory();
    if (!gpu) no_gpu();
    environment("DUET_BACKEND", "gpu", argv[0], gpu ? DUET_OK : DUET_NO_DEVICE);
    environment("DUET_REQUIRE_GPU", "1", argv[0], gpu ? DUET_OK : DUET_NO_DEVICE);
    environment("DUET_BACKEND", "cpu", argv[0], DUET_OK);
    environment("DUET_FUSION", "none", argv[0], DUET_OK);
    tap_point("environment variables");
    duet_free(&out);
    return tap_end();
}
