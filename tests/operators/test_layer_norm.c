/* test_layer_norm.c - the rows DUET_ROWWISE of fused.def in three ways: the plan chooses the step,
 * the step equals the oracle, and it has the bits of the operators that it replaces. Also formulas
 * that do not match. */
#include "common.h"
#include "dtype.h"
#include "each_type.h"
#include "modes.h"
#include <math.h>

static duet_place place[2];
static int places;
static rng gen;

/* Evaluates into m in each mode on each machine: equal bits. oracle: compare with it too. */
typedef duet_expr maker(duet_matrix *x, duet_matrix *y, duet_matrix *z);

static void each_way(const char *name, maker *make, duet_matrix *const in[3], duet_matrix *m, bool chosen,
                     bool oracle)
{
    void *first = NULL;
    for (int p = 0; p < places; p++)
        for (int mode = 0; mode < MODES; mode++) {
            plan_fusion(mode);
            DUET_ON(place[p])
            {
                const duet_expr e = make(in[0], in[1], in[2]);
                const char *steps = plan_of(m, e), *why = NULL;
                const bool is = strstr(steps, ". layer_norm;") != NULL, want = chosen && mode != MODE_NONE;
                CHECK(is == want, "%s, fusion %s: %s\n%s", name, mode_names[mode],
                      want ? "not chosen" : "chosen", steps);
                if (oracle) why = oracle_refutes(m, e);
                else CHECK(duet_set(m, e) == DUET_OK, "%s: %s", name, duet_error());
                CHECK(!why, "%s on %s, fusion %s: %s", name, place_name(place[p]), mode_names[mode],
                      why ? why : "");
            }
            void *got = elements(m);
            if (first)
                CHECK(same_bits(duet_type(m), first, got, duet_count(m)),
                      "%s on %s, fusion %s: the bits differ", name, place_name(place[p]), mode_names[mode]);
            else {
                first = got;
                got = NULL;
            }
            free(got);
        }
    free(first);
    plan_fusion(MODE_MACHINE);
}

#define EPS 1e-3
static duet_expr trimmed(duet_matrix *x, duet_matrix *y, duet_matrix *z)
{
    return duet_layer_norm(x, y, z, EPS);
}
static duet_expr numbers(duet_matrix *x, duet_matrix *y, duet_matrix *z)
{
    return duet_layer_norm(x, 1.25, -2, EPS);
}
static duet_expr gained(duet_matrix *x, duet_matrix *y, duet_matrix *z)
{
    return duet_layer_norm(x, y, 0.75, EPS);
}
static duet_expr biased(duet_matrix *x, duet_matrix *y, duet_matrix *z)
{
    return duet_layer_norm(x, 2, z, EPS);
}
static duet_expr plain(duet_matrix *x, duet_matrix *y, duet_matrix *z)
{
    return duet_mul(duet_sub(x, duet_mean_keep(x, -1)), duet_rsqrt(duet_add(duet_var_keep(x, -1), EPS)));
}
static duet_expr instance(duet_matrix *x, duet_matrix *y, duet_matrix *z)
{
    return duet_instance_norm(x, y, z, EPS);
}

/* ---- lengths on both sides of the limits by which kernels are chosen ---- */

static void one_length(duet_dtype type, int64_t rows, int64_t n, bool oracle)
{
    duet_matrix *in[] = { random_matrix(&gen, type, 2, (int64_t[]){ rows, n }, -5, 5),
                          random_matrix(&gen, type, 1, &n, -2, 2), random_matrix(&gen, type, 1, &n, -2, 2) };
    duet_matrix *m = duet_new(type, rows, n);
    const bool chosen = rows * n > 0;
    each_way("with gain and bias", trimmed, in, m, chosen, oracle);
    each_way("without", plain, in, m, chosen, oracle);
    each_way("with numbers", numbers, in, m, chosen, oracle);
    each_way("with a gain and a number", gained, in, m, chosen, oracle);
    each_way("with a number and a bias", biased, in, m, chosen, oracle);
    for (int k = 0; k < 3; k++) duet_free(&in[k]);
    duet_free(&m);
}

static void lengths(bool quick)
{
    static const int64_t few[] = { 1,   2,   15,  16,  17,  64,  65,   100,  128,
                                   129, 200, 256, 500, 512, 768, 1000, 1024, 1025 };
    static const int64_t many[] = { 2048, 4095, 4097, 8192, 8193, 12289, 16384, 16385, 16388, 40000 };
    FOR_FLOAT_TYPES (type) {
        for (size_t i = 0; i < sizeof few / sizeof *few; i++)
            one_length(type, few[i] < 100 ? 67 : 3, few[i], few[i] <= 129);
        for (size_t i = 0; i < sizeof many / sizeof *many; i += 1 + quick)
            one_length(type, 2, many[i], false);
    }
    FOR_FLOAT_TYPES (type) one_length(type, 37, 200, true);
    one_length(DUET_F32, 35, 4096, false);
    one_length(DUET_F32, 1, 5, true);
    one_length(DUET_F32, 1, 5000, false);
    tap_point("row lengths");
}

static void nothing(void)
{
    static const int64_t none[][2] = { { 0, 5 }, { 5, 0 }, { 0, 0 } };
    for (int i = 0; i < 3; i++) {
        duet_matrix *x = duet_new(DUET_F32, none[i][0], none[i][1]), *y = duet_new(DUET_F32, none[i][1]),
                    *m = duet_new(DUET_F32, none[i][0], none[i][1]);
        for (int p = 0; p < places; p++) {
            DUET_ON(place[p])
            CHECK(duet_set(m, trimmed(x, y, y)) == DUET_OK, "layer_norm of an empty matrix: %s",
                  duet_error());
        }
        duet_free(&x);
        duet_free(&y);
        duet_free(&m);
    }
    tap_point("empty operands");
}

/* ---- layouts of operands ---- */

static void as_view(const sizes *s, const sizes *trim, maker *make, enum view kind)
{
    duet_matrix *in[3] = { random_view(&gen, kind, DUET_F32, s->rank, s->size, -5, 5, NULL) };
    for (int k = 1; k < 3; k++) {
        in[k] = random_view(&gen, (enum view)rng_below(&gen, VIEWS), DUET_F32, trim->rank, trim->size, -2, 2,
                            NULL);
        if (!in[k]) in[k] = random_matrix(&gen, DUET_F32, trim->rank, trim->size, -2, 2);
    }
    duet_matrix *m = duet_new_shape(DUET_F32, s->rank, s->size);
    for (int p = 0; in[0] && p < places; p++) {
        void *got[2];
        for (int mode = 0; mode < 2; mode++) {
            plan_fusion(mode ? MODE_NONE : MODE_MACHINE);
            DUET_ON(place[p])
            {
                const char *why = oracle_refutes(m, make(in[0], in[1], in[2]));
                CHECK(!why, "layer_norm of a view, on %s: %s", place_name(place[p]), why);
            }
            got[mode] = elements(m);
        }
        CHECK(same_bits(DUET_F32, got[0], got[1], duet_count(m)), "layer_norm of a view has other bits on %s",
              place_name(place[p]));
        free(got[0]);
        free(got[1]);
    }
    plan_fusion(MODE_MACHINE);
    for (int k = 0; k < 3; k++) duet_free(&in[k]);
    duet_free(&m);
}

static void views(void)
{
    static const sizes x[] = { SIZES(3, 40),         SIZES(2, 3, 8),    SIZES(2, 3, 4, 6),
                               SIZES(2, 2, 3, 2, 4), SIZES(2, 3, 4, 6), SIZES(2, 3, 4, 6) };
    static const sizes trim[] = { SIZES(40),         SIZES(3, 1), SIZES(3, 1, 1),
                                  SIZES(2, 3, 1, 1), SIZES(4, 1), SIZES(6) };
    for (int kind = 0; kind < VIEWS; kind++)
        for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
            as_view(&x[i], &trim[i], trimmed, (enum view)kind);
            if (x[i].rank > 2) as_view(&x[i], &trim[i], instance, (enum view)kind);
        }
    tap_point("views");
}

/* Rows of several axes; groups, whose gain is constant along runs of a row. */
static void channels(void)
{
    static const sizes x[] = { SIZES(2, 3, 4, 8), SIZES(4, 3, 5, 7), SIZES(2, 2, 3, 4, 4),
                               SIZES(3, 2, 5, 3, 31) };
    static const sizes trim[] = { SIZES(3, 1, 1), SIZES(3, 1, 1), SIZES(2, 3, 1, 1), SIZES(2, 5, 1, 1) };
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        FOR_FLOAT_TYPES (type) {
            duet_matrix *in[] = { random_matrix(&gen, type, x[i].rank, x[i].size, -5, 5),
                                  random_matrix(&gen, type, trim[i].rank, trim[i].size, -2, 2),
                                  random_matrix(&gen, type, trim[i].rank, trim[i].size, -2, 2) };
            duet_matrix *m = duet_new_shape(type, x[i].rank, x[i].size);
            each_way("by channels", instance, in, m, true, true);
            for (int k = 0; k < 3; k++) duet_free(&in[k]);
            duet_free(&m);
        }
    tap_point("rows of several axes, and groups");
}

static void into_itself(void)
{
    const int64_t square[] = { 37, 37 };
    duet_matrix *x = random_matrix(&gen, DUET_F32, 2, square, -5, 5),
                *y = random_matrix(&gen, DUET_F32, 2, square, -5, 5), *row = duet_row(x, 3);
    for (int p = 0; p < places; p++)
        for (int k = 0; k < 4; k++) DUET_ON(place[p])
            {
                duet_expr e;
                if (k == 0) e = trimmed(x, y, row);
                else if (k == 1) e = trimmed(y, x, x);
                else if (k == 2) e = trimmed(x, x, x);
                else e = plain(x, y, y);
                const char *why = oracle_refutes(x, e);
                CHECK(!why, "layer_norm with an operand as destination, on %s: %s", place_name(place[p]),
                      why);
            }
    duet_free(&row);
    duet_free(&x);
    duet_free(&y);
    tap_point("results written into an operand");
}

/* ---- NaN, infinities and extreme numbers ---- */

static void special(void)
{
    static const double odd[] = { NAN, INFINITY, -INFINITY, 0, -0.0, 1e-45, 3e38, -3e38, 1e-38, 1 };
    static const int64_t lengths[] = { 9, 50, 300, 2000, 20000 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int k = 0; k < 10; k++) {
            const int64_t n = lengths[i];
            duet_matrix *in[] = { random_matrix(&gen, DUET_F32, 2, (int64_t[]){ 4, n }, -5, 5),
                                  random_matrix(&gen, DUET_F32, 1, &n, -2, 2),
                                  random_matrix(&gen, DUET_F32, 1, &n, -2, 2) };
            duet_matrix *m = duet_new(DUET_F32, (int64_t)4, n);
            float *v = duet_update(in[0]);
            for (int64_t j = 0; j < n; j++) {
                v[n + j] = (float)odd[k];
                v[2 * n + j] *= 1e-38f;
            }
            v[n / 2] = (float)odd[k];
            each_way("of odd numbers", trimmed, in, m, true, false);
            for (int j = 0; j < 3; j++) duet_free(&in[j]);
            duet_free(&m);
        }
    tap_point("unusual values of gain, bias and r");
}

/* ---- the same formula written differently: numbers and commuting operands in either order ---- */

static duet_expr centered(duet_matrix *x) { return duet_sub(x, duet_mean_keep(x, -1)); }
static duet_expr crossed(duet_matrix *x, duet_matrix *y, duet_matrix *z)
{
    return duet_mul(duet_rsqrt(duet_add(EPS, duet_var_keep(x, -1))), centered(x));
}
static duet_expr crossed_gain(duet_matrix *x, duet_matrix *y, duet_matrix *z)
{
    return duet_fma(y, crossed(x, y, z), z);
}
static duet_expr as_sum(duet_matrix *x, duet_matrix *y, duet_matrix *z)
{
    return duet_add(z, duet_mul(y, crossed(x, y, z)));
}
static duet_expr subtracted(duet_matrix *x, duet_matrix *y, duet_matrix *z)
{
    return duet_mul(centered(x), duet_rsqrt(duet_sub(duet_var_keep(x, -1), -EPS)));
}

static void spellings(void)
{
    duet_matrix *in[] = { random_matrix(&gen, DUET_F32, 2, (int64_t[]){ 5, 40 }, -5, 5),
                          random_matrix(&gen, DUET_F32, 1, (int64_t[]){ 40 }, -2, 2),
                          random_matrix(&gen, DUET_F32, 1, (int64_t[]){ 40 }, -2, 2) };
    duet_matrix *m = duet_new(DUET_F32, 5, 40);
    each_way("operands in the other order", crossed, in, m, true, true);
    each_way("with the gain first", crossed_gain, in, m, true, true);
    each_way("as a sum", as_sum, in, m, true, true);
    each_way("with a difference", subtracted, in, m, true, true);
    for (int k = 0; k < 3; k++) duet_free(&in[k]);
    duet_free(&m);
    tap_point("patterns match equivalent formulas");
}

/* ---- formulas that are not replaced ---- */

#define STAYS(name, formula)                                                                                 \
    do {                                                                                                     \
        const duet_expr e = formula;                                                                         \
        const char *steps = plan_of(m, e);                                                                   \
        CHECK(!strstr(steps, ". layer_norm;"), name ":\n%s", steps);                                         \
        forget(e);                                                                                           \
    } while (0)

static void left_alone(void)
{
    duet_matrix *x = random_matrix(&gen, DUET_F32, 2, (int64_t[]){ 7, 7 }, -5, 5),
                *m = duet_new(DUET_F32, 7, 7), *half = duet_new(DUET_F16, 7, 7);
    STAYS("what follows is in the same pass", duet_relu(trimmed(x, x, x)));
    STAYS("columns", duet_batch_norm(x, x, x, EPS));
    STAYS("halves", trimmed(half, x, x));
    STAYS("reductions that are not kept",
          duet_mul(duet_sub(x, duet_mean_axis(x, -1)), duet_rsqrt(duet_add(duet_var_axis(x, -1), EPS))));
    STAYS("along different axes",
          duet_mul(duet_sub(x, duet_mean_keep(x, 0)), duet_rsqrt(duet_add(duet_var_keep(x, -1), EPS))));
    STAYS("of different operands",
          duet_mul(duet_sub(x, duet_mean_keep(m, -1)), duet_rsqrt(duet_add(duet_var_keep(x, -1), EPS))));
    STAYS("the mean of use elsewhere", duet_layer_norm(x, duet_mean_keep(x, -1), 0, EPS));
    duet_matrix *line = duet_new(DUET_F32, 2, 70000), *images = duet_new(DUET_F32, 2, 3, 4, 6),
                *column = duet_new(DUET_F32, 6);
    DUET_ON(DUET_CPU) STAYS("few long rows", duet_layer_norm(line, 1, 0, EPS));
    for (int p = 0; p < places; p++) DUET_ON(place[p])
        {
            const duet_expr e = duet_instance_norm(images, column, 0, EPS);
            const char *steps = plan_of(images, e);
            CHECK(strstr(steps, "does not support layer_norm with result f32[2,3,4,6]: gain and bias"),
                  "a gain with several strides along a row:\n%s", steps);
            forget(e);
        }
    duet_free(&x);
    duet_free(&m);
    duet_free(&half);
    duet_free(&line);
    duet_free(&images);
    duet_free(&column);
    tap_point("formulas that must not become layer_norm");
}

/* Together with other statements, after the computation of the operand, and before uses of the
 * result. */
static void among_others(void)
{
    const int64_t size[] = { 20, 33 }, square[] = { 33, 33 };
    for (int p = 0; p < places; p++) {
        duet_matrix *x = random_matrix(&gen, DUET_F32, 2, size, -5, 5),
                    *w = random_matrix(&gen, DUET_F32, 2, square, -1, 1), *gain = duet_row(w, 1),
                    *m = duet_new(DUET_F32, 20, 33);
        const char *why = NULL;
        DUET_ON(place[p]) why = oracle_refutes(m, duet_matmul(trimmed(x, gain, gain), w));
        CHECK(!why, "layer_norm before a product: %s", why);
        DUET_ON(place[p]) why = oracle_refutes(m, trimmed(gain, x, gain));
        CHECK(!why, "layer_norm with a gain of more rows: %s", why);
        DUET_ON(place[p]) why = oracle_refutes(m, duet_layer_norm(x, gain, -3, 7));
        CHECK(!why, "layer_norm with other numbers: %s", why);
        DUET_ON(place[p]) why = oracle_refutes(m, duet_layer_norm(duet_tanh(x), gain, 0.5, EPS));
        CHECK(!why, "layer_norm after a pass: %s", why);
        duet_free(&gain);
        duet_free(&x);
        duet_free(&w);
        duet_free(&m);
    }
    tap_point("layer_norm inside larger formulas");
}

int main(int argc, char **argv)
{
    const bool quick = is_quick(argc, argv);
    gen = rng_new(77);
    places = list_places(place);
    lengths(quick);
    nothing();
    views();
    channels();
    into_itself();
    special();
    spellings();
    left_alone();
    among_others();
    return tap_end();
}
