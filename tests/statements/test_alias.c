/* test_alias.c - statements whose destination is also an operand, in every position. The result
 * must equal that of the same formula in a new matrix. x is written; a, b and c read the same
 * storage elsewhere, shifted, transposed or strided. */
#include "common.h"
#include "modes.h"

typedef struct cast {
    duet_matrix *whole, *x, *a, *b, *c, *y; /* x a b c: views of whole; y is separate; all n x n, c of n */
} cast;

static duet_place place[2];
static int places;

static int N; /* small matrices may be read completely before they are written; large ones are not */
static const int side[] = { 12, 75 };

/* How a and b overlap x in one matrix of 3N x 3N. */
enum how {
    SAME_VIEW,
    EQUAL_VIEWS,
    SHIFTED_DOWN,
    SHIFTED_UP,
    SHIFTED_RIGHT,
    TRANSPOSED,
    APART_ROWS,
    TOUCHING,
    HOWS
};
static const char *how_text[HOWS] = { "the same",      "equal views", "shifted down", "shifted up",
                                      "shifted right", "transposed",  "apart",        "touching" };

static cast cast_new(rng *gen, duet_dtype type, enum how how)
{
    const int64_t at[HOWS][2] = { { 0, 0 }, { 0, 0 }, { 1, 0 }, { -1, 0 },
                                  { 0, 1 }, { 0, 0 }, { N, 1 }, { 0, N } };
    cast k = { .whole = random_matrix(gen, type, 2, (int64_t[]){ 3 * N, 3 * N }, 0.5, 2) };
    k.y = random_matrix(gen, type, 2, (int64_t[]){ N, N }, 0.5, 2);
    k.x = duet_submatrix(k.whole, 3, 3, N, N);
    k.a = duet_submatrix(k.whole, 3 + at[how][0], 3 + at[how][1], N, N);
    if (how == TRANSPOSED) k.b = duet_transposed(k.x);
    else k.b = duet_submatrix(k.whole, 4, 2, N, N);
    if (how == TRANSPOSED) {
        duet_free(&k.a);
        k.a = duet_transposed(k.x);
    }
    k.c = duet_row(k.x, N / 2);
    return k;
}

static void cast_free(cast *k)
{
    duet_free(&k->x);
    duet_free(&k->a);
    duet_free(&k->b);
    duet_free(&k->c);
    duet_free(&k->y);
    duet_free(&k->whole);
}

/* Vendor steps have error bounds, and a temporary may change their bits; these are compared with
 * the oracle only. */
#define FORMULAS(F)                                                                                          \
    F(0, x)                                                                                                  \
    F(0, a)                                                                                                  \
    F(0, duet_neg(x))                                                                                        \
    F(0, duet_add(x, a))                                                                                     \
    F(0, duet_add(duet_mul(3.3, a), x))                                                                      \
    F(0, duet_add(duet_mul(3.3, x), duet_mul(0.7, b)))                                                       \
    F(0, duet_add(duet_add(a, x), duet_mul(b, x)))                                                           \
    F(0, duet_sub(duet_transpose(x), x))                                                                     \
    F(0, duet_transpose(a))                                                                                  \
    F(0, duet_add(x, c))                                                                                     \
    F(0, duet_div(x, duet_norm(x)))                                                                          \
    F(0, duet_sub(a, duet_mean_keep(x, 1)))                                                                  \
    F(0, duet_mul(x, duet_sum_axis(x, 0)))                                                                   \
    F(0, duet_sum_axis(a, 0))                                                                                \
    F(0, duet_softmax(x))                                                                                    \
    F(0, duet_softmax(a))                                                                                    \
    F(0, duet_add(duet_exp(duet_neg(a)), duet_softmax(x)))                                                   \
    F(0, duet_where(duet_less(x, a), b, x))                                                                  \
    F(0, duet_relu(duet_bias_add(x, c)))                                                                     \
    F(1, duet_matmul(x, x))                                                                                  \
    F(1, duet_matmul(x, a))                                                                                  \
    F(1, duet_matmul(duet_transpose(a), x))                                                                  \
    F(1, duet_matmul(y, x))                                                                                  \
    F(1, duet_add(duet_matmul(y, y), x))                                                                     \
    F(1, duet_add(duet_mul(2, duet_matmul(duet_transpose(y), y)), duet_mul(0.5, x)))                         \
    F(1, duet_add(duet_matmul(x, y), x))                                                                     \
    F(1, duet_add(duet_matmul(y, y), a))                                                                     \
    F(1, duet_add(duet_matmul(y, y), duet_transpose(x)))                                                     \
    F(1, duet_sigmoid(duet_bias_add(duet_matmul(x, y), c)))                                                  \
    F(1, duet_matmul(x, c))                                                                                  \
    F(1, duet_add(duet_matmul(x, duet_matmul(a, x)), duet_mul(x, x)))

typedef duet_expr maker(const cast *);
#define F(vendor, formula) { vendor, #formula },
static const struct text {
    bool vendor;
    const char *text;
} texts[] = { FORMULAS(F) };
#undef F

static duet_expr make(const cast *k, int which)
{
    duet_matrix *x = k->x, *a = k->a, *b = k->b, *c = k->c, *y = k->y;
    int n = 0;
#define F(vendor, formula)                                                                                   \
    if (n++ == which) return (duet_of_expr)(DUET(formula));
    FORMULAS(F)
#undef F
    return (duet_expr){ 0 };
}

/* By the oracle; large ones that are exact are compared in bits alone. */
static void judge(duet_matrix *to, const cast *k, int which, const char *how, int mode)
{
    if (N > side[0] && !texts[which].vendor) {
        CHECK(duet_set(to, make(k, which)) == DUET_OK, "%s: %s", texts[which].text, duet_error());
        return;
    }
    const char *why = oracle_refutes(to, make(k, which));
    CHECK(!why, "%s, %d, fusion %s: %s", how, N, mode_names[mode], why);
}

static void check(duet_place where, duet_dtype type, enum how how, int which, int mode)
{
    rng gen = rng_new(100 + (uint64_t)which);
    cast k = cast_new(&gen, type, how);
    void *before = elements(k.whole);
    plan_fusion(mode);
    DUET_ON(where)
    {
        duet_matrix *fresh = random_matrix(&gen, type, 2, (int64_t[]){ N, N }, 0, 1);
        judge(fresh, &k, which, "a fresh matrix", mode);
        void *want = elements(fresh), *same = elements(k.whole);
        CHECK(same_bits(type, before, same, 9 * N * N), "%s wrote into an operand", texts[which].text);

        judge(k.x, &k, which, how_text[how], mode);
        void *got = elements(k.x);
        if (!texts[which].vendor)
            CHECK(same_bits(type, want, got, N * N),
                  "%s (%s, %s on %s, %d, fusion %s) has other bits than with a new destination",
                  texts[which].text, how_text[how], type_name(type), place_name(where), N, mode_names[mode]);
        free(want);
        free(got);
        free(same);
        duet_free(&fresh);
    }
    free(before);
    cast_free(&k);
}

static void all(enum how how, int mode, bool large)
{
    N = side[large];
    for (size_t which = 0; which < sizeof texts / sizeof *texts; which++)
        for (int p = 0; p < places && !(large && texts[which].vendor && mode != MODE_MACHINE); p++) {
            check(place[p], DUET_F32, how, (int)which, mode);
            if (!large || !texts[which].vendor) check(place[p], DUET_F64, how, (int)which, mode);
        }
}

int main(int argc, char **argv)
{
    const bool quick = is_quick(argc, argv);
    places = list_places(place);
    for (int how = 0; how < HOWS; how++) {
        for (int mode = 0; mode < MODES; mode++) {
            all((enum how)how, mode, false);
            if (!quick) all((enum how)how, mode, true);
        }
        tap_point(how_text[how]);
    }
    return tap_end();
}
