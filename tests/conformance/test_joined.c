/* test_joined.c - products followed by random element-wise formulas, and products of such formulas: computed
 * in one kernel, where the machine does so, they give the bits of two kernels. Statements run one by one and
 * recorded; the destination may be an operand.
 *     test_joined [how many formulas] [seed] */
#ifdef FAKE_CUDA
#include "fake_cuda.h"
#endif
#include "generated_mode.h"
#include "quick.h"
#include "tap.h"
#include "test_rng.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void ok(duet_status s, const char *what) { CHECK(s == DUET_OK, "%s: %s", what, duet_error()); }

/* ---- a product or a convolution ---- */

enum { OPERANDS = 5 };
enum kind { PRODUCT, CONVOLUTION, OF_FORMULA, KINDS };
static const char *const names[] = { "product", "convolution", "product of a formula" };
static int statements[KINDS], joined[KINDS];

/* size: of the formula, with `rank` axes. operand: of the formula; its layouts broadcast to that size. a and
 * b are the factors, or images and filters. OF_FORMULA: the formula replaces factor `side` of the product.
 * `turned`: the formula is transposed. a is its first operand. */
typedef struct problem {
    enum kind kind;
    duet_dtype type;
    int64_t m, k, n; /* of a product */
    int rank;
    int64_t size[4];
    duet_matrix *a, *b, *bias, *operand[OPERANDS], *want, *got;
    bool biased, pooled, relu, turned;
    int side;
    int pad;
} problem;

static void fill(duet_matrix *m)
{
    for (int64_t i = 0; i < duet_count(m); i++) {
        const double x = (draw(2001) - 1000) / 500.0;
        if (duet_type(m) == DUET_F32) ((float *)duet_update(m))[i] = (float)x;
        else ((double *)duet_update(m))[i] = x;
    }
}

static duet_matrix *filled(duet_dtype type, int rank, const int64_t *size)
{
    duet_matrix *m = duet_new_shape(type, rank, size);
    fill(m);
    return m;
}

#ifdef FAKE_CUDA
enum { FEW = 12, SOME = 40, MANY = 60, SIDE = 9, LONG = 0 };
#else
enum { FEW = 130, SOME = 300, MANY = 700, SIDE = 40, LONG = 8 }; /* LONG: percent */
#endif

/* Chooses sizes for the kernel in which a warp sums each row. */
static void choose_column(problem *p)
{
    p->m = 2048 + draw(100);
    p->k = 2049 + draw(100);
    p->n = 1;
}

/* Chooses sizes for each kind of kernel: one or two rows; few columns; few columns and many rows; few rows.
 * With DUET_MATH_SPLIT also large tiles. */
static void choose_sizes(problem *p, bool split)
{
    p->k = 1 + draw(chance(50) ? SOME / 8 : MANY);
    p->m = 1 + draw(FEW);
    p->n = 1 + draw(chance(50) ? 16 : SOME);
    if (chance(20)) p->m = 1 + draw(2);
    if (chance(10)) {
        p->m = 15 * FEW + draw(FEW);
        p->n = 1 + draw(16);
    }
    if (split && chance(70)) {
        p->k = 64 + 4 * draw(MANY / 4);
        p->m = 33 + draw(SOME);
        p->n = 17 + draw(SOME);
    }
    if (chance(10)) p->m = p->k = p->n = 1 + draw(60);
    if (chance(40)) {
        p->n = (p->n + 3) / 4 * 4;
        p->k = (p->k + 3) / 4 * 4;
    }
    if (!split && chance(LONG)) choose_column(p);
}

static void make_product(problem *p, bool split)
{
    p->type = split || chance(80) ? DUET_F32 : DUET_F64;
    choose_sizes(p, split);
    p->a = filled(p->type, 2, (int64_t[]){ p->m, p->k });
    if (chance(80)) p->b = filled(p->type, 2, (int64_t[]){ p->k, p->n });
    else { /* its columns are contiguous */ duet_matrix *t = filled(p->type, 2, (int64_t[]){ p->n, p->k });
        p->b = duet_transposed(t);
        duet_free(&t);
    }
    p->bias = filled(p->type, 1, &p->n);
    p->rank = 2;
    p->size[0] = p->m;
    p->size[1] = p->n;
}

/* Infinities and NaN make Winograd kernels compute results again, by the definition. */
static void put_infinities(duet_matrix *m)
{
    float *x = duet_update(m);
    for (int i = 0; i < 3; i++) x[draw((int)duet_count(m))] = i ? INFINITY : NAN;
}

/* Varies what decides which kernel runs: channels, outputs, and the number and size of images. */
static void make_convolution(problem *p)
{
    const int64_t channels = 1 + draw(chance(50) ? 5 : 20), outputs = 1 + draw(chance(50) ? 10 : 40),
                  n = 1 + draw(chance(50) ? 3 : FEW), by = p->pooled = chance(40);
    int64_t height = 2 + draw(SIDE), width = 2 + draw(SIDE);
    p->type = DUET_F32;
    p->pad = by ? 1 : draw(2);
    if (by || chance(50)) {
        height = (height + 3) / 4 * 4;
        width = (width + 3) / 4 * 4;
    }
    if (p->pad == 0) height += 2, width += 2;
    p->relu = by || chance(40);
    p->biased |= p->relu;
    p->a = filled(p->type, 4, (int64_t[]){ n, channels, height, width });
    p->b = filled(p->type, 4, (int64_t[]){ outputs, channels, 3, 3 });
    if (chance(25)) put_infinities(p->a);
    p->bias = filled(p->type, 1, &outputs);
    p->rank = 4;
    const int64_t size[] = { n, outputs, (height - 2 + 2 * p->pad) / (1 + by),
                             (width - 2 + 2 * p->pad) / (1 + by) };
    memcpy(p->size, size, sizeof size);
}

/* Chooses products whose kernel reads each element of the formula once: one or two rows, or few columns. */
static void make_of_formula(problem *p)
{
    p->type = chance(70) ? DUET_F32 : DUET_F64;
    p->side = draw(2);
    p->k = 1 + draw(MANY);
    p->m = p->side ? 1 + draw(2) : 1 + draw(chance(50) ? FEW : 20 * FEW);
    p->n = p->side ? 1 + draw(MANY) : 1 + draw(16);
    p->turned = p->side && chance(40);
    if (chance(60)) {
        p->k = (p->k + 3) / 4 * 4;
        p->n = (p->n + 3) / 4 * 4;
    }
    if (!p->side && chance(LONG)) choose_column(p);
    p->rank = 2;
    p->size[0] = !p->side ? p->m : p->turned ? p->n : p->k;
    p->size[1] = p->side && !p->turned ? p->n : p->k;
    p->a = filled(p->type, 2, p->size);
    p->b = filled(p->type, 2, p->side ? (int64_t[]){ p->m, p->k } : (int64_t[]){ p->k, p->n });
    p->bias = filled(p->type, 1, &p->n);
}

static duet_matrix *any_broadcast(const problem *p)
{
    int64_t size[4];
    for (int a = 0; a < p->rank; a++) size[a] = p->size[a];
    if (chance(60))
        for (int a = 0; a < p->rank; a++) size[a] = chance(50) ? 1 : size[a];
    return filled(p->type, p->rank, size);
}

static problem new_problem(enum kind kind, bool split)
{
    problem p = { .kind = kind, .biased = chance(30) };
    if (kind == PRODUCT) make_product(&p, split);
    else if (kind == CONVOLUTION) make_convolution(&p);
    else make_of_formula(&p);
    for (int i = 0; i < OPERANDS; i++) p.operand[i] = any_broadcast(&p);
    const int64_t product[] = { p.m, p.n }, *size = kind == OF_FORMULA ? product : p.size;
    p.want = duet_new_shape(p.type, p.rank, size);
    p.got = duet_new_shape(p.type, p.rank, size);
    return p;
}

static void free_problem(problem *p)
{
    for (int i = 0; i < OPERANDS; i++) duet_free(&p->operand[i]);
    duet_free(&p->a, &p->b, &p->bias, &p->want, &p->got);
}

/* ---- a formula ---- */

static duet_expr any_operand(const problem *p, duet_expr product)
{
    if (chance(20)) return product;
    if (chance(25)) return duet_of_number((draw(401) - 200) / 100.0);
    return duet_of_matrix(p->operand[draw(OPERANDS)]);
}

static duet_expr apply(const problem *p, duet_expr x, duet_expr product)
{
    switch (draw(13)) {
    case 0: return duet_add(x, any_operand(p, product));
    case 1: return duet_sub(any_operand(p, product), x);
    case 2: return duet_mul(x, any_operand(p, product));
    case 3: return duet_div(x, any_operand(p, product));
    case 4: return duet_maximum(x, any_operand(p, product));
    case 5: return duet_relu(x);
    case 6: return duet_sigmoid(x);
    case 7: return duet_tanh(x);
    case 8: return duet_gelu(x);
    case 9: return duet_where(duet_less(x, any_operand(p, product)), x, any_operand(p, product));
    case 10: return duet_sqrt(duet_abs(x));
    case 11: return duet_exp(duet_neg(duet_abs(x)));
    default: return duet_fma(x, any_operand(p, product), any_operand(p, product));
    }
}

/* The same seed gives the same formula of another product. */
static duet_expr followed_by(const problem *p, duet_expr product, uint64_t of)
{
    const uint64_t before = seed;
    seed = of;
    duet_expr e = duet_mul(product, 0.5);
    for (int i = 1 + draw(chance(10) ? 30 : 6); i-- > 0;) e = apply(p, e, product);
    seed = before;
    return e;
}

static duet_expr convolution_of(const problem *p)
{
    duet_expr e = duet_conv2d(p->a, p->b, .pad = { p->pad, p->pad });
    if (p->biased) e = duet_bias_add(e, p->bias);
    if (p->relu) e = duet_relu(e);
    return p->pooled ? duet_max_pool2d(e, .window = { 2, 2 }) : e;
}

static duet_expr product_of_formula(const problem *p, uint64_t of)
{
    duet_expr f = followed_by(p, duet_of_matrix(p->a), of);
    if (p->turned) f = duet_transpose(f);
    const duet_expr e = p->side ? duet_matmul(p->b, f) : duet_matmul(f, p->b);
    return p->biased ? duet_bias_add(e, p->bias) : e;
}

static duet_expr product_of(const problem *p)
{
    if (p->kind == CONVOLUTION) return convolution_of(p);
    const duet_expr e = duet_matmul(p->a, p->b);
    return p->biased ? duet_bias_add(e, p->bias) : e;
}

/* ---- a trial ---- */

/* All NaNs are equal. */
static bool is_same(const problem *p, const void *x, const void *y, size_t i)
{
    if (p->type == DUET_F32) {
        const float *a = x, *b = y;
        return !memcmp(a + i, b + i, 4) || (isnan(a[i]) && isnan(b[i]));
    }
    const double *a = x, *b = y;
    return !memcmp(a + i, b + i, 8) || (isnan(a[i]) && isnan(b[i]));
}

static void compare(const problem *p, const char *how)
{
    const void *x = duet_read(p->want), *y = duet_read(p->got);
    const size_t count = (size_t)duet_count(p->want);
    size_t differ = 0, first = 0;
    for (size_t i = 0; i < count && x && y; i++)
        if (!is_same(p, x, y, i) && !differ++) first = i;
    CHECK(x && y && !differ,
          "%s, %s of %s, %lld x %lld x %lld, %lld x %lld%s%s: %zu of %zu differ, first %zu", how,
          names[p->kind], p->type == DUET_F32 ? "f32" : "f64", (long long)p->m, (long long)p->k,
          (long long)p->n, (long long)p->size[p->rank - 2], (long long)p->size[p->rank - 1],
          p->biased ? ", biased" : "", p->pooled ? ", pooled" : "", differ, count, first);
}

static uint64_t joins_now(void)
{
#ifdef FAKE_CUDA
    return fake_count().joins;
#else
    return 0;
#endif
}

static void set(duet_matrix *to, const problem *p, uint64_t of, const char *what)
{
    const duet_expr e = p->kind == OF_FORMULA ? product_of_formula(p, of) : followed_by(p, product_of(p), of);
    ok(duet_set(to, e), what);
}

static void replay(const problem *p, uint64_t of)
{
    duet_recording *r = NULL;
    ok(duet_set(p->got, 7), "a number");
    ok(duet_record_begin(), "recording");
    set(p->got, p, of, "a recorded statement");
    CHECK((r = duet_record_end()) != NULL, "%s", duet_error());
    for (int i = 0; i < 2; i++) ok(duet_replay(r), "a replay");
    duet_recording_free(&r);
    compare(p, "replayed");
}

static bool has_size_of(const duet_matrix *x, const duet_matrix *y)
{
    bool equal = true;
    for (int a = 0; a < duet_rank(y); a++) equal &= duet_size(x, a) == duet_size(y, a);
    return equal;
}

static void run_all(const problem *p, uint64_t of)
{
    generated_mode = GENERATED_NEVER;
    set(p->want, p, of, "two kernels");
    generated_mode = GENERATED_AT_ONCE; /* the first launch waits for the kernel */
    const uint64_t launches = duet_stats().launches, joins = joins_now();
    set(p->got, p, of, "one kernel");
    joined[p->kind] += duet_stats().launches == launches + 1 || joins_now() > joins;
    statements[p->kind]++;
    compare(p, "at once");
    replay(p, of);
    for (int i = 0; i < OPERANDS; i++) {
        if (!has_size_of(p->operand[i], p->got)) continue;
        set(p->operand[i], p, of, "over an operand of the formula");
        ok(duet_set(p->got, p->operand[i]), "a copy");
        compare(p, "over an operand of the formula");
        return;
    }
    if (p->kind != PRODUCT || p->m != p->k || p->n != p->k) return;
    set(p->a, p, of, "in place");
    ok(duet_set(p->got, p->a), "a copy");
    compare(p, "in place");
}

static void try(duet_place place, enum kind kind, bool split)
{
    problem p = new_problem(kind, split);
    DUET_ON(place) DUET_MATH(split ? DUET_MATH_SPLIT : DUET_MATH_STRICT) run_all(&p, seed);
    free_problem(&p);
}

int main(int argc, char **argv)
{
    const int count = trial_count(argc, argv, 60, 400);
    duet_matrix *one = duet_new(DUET_F32, 1);
    const bool gpu = duet_set_on(DUET_GPU, one, 1) == DUET_OK;
    printf("# the GPU: %s\n", gpu ? "is there" : duet_error());
    duet_free(&one);
    if (argc > 2) seed ^= (uint64_t)atoll(argv[2]) * 0x9e3779b97f4a7c15u;
    for (int i = 0; i < count; i++)
        try(gpu ? DUET_GPU : DUET_CPU, (enum kind)(i % KINDS), i % (KINDS + 1) == 0);
    for (int k = 0; k < KINDS; k++) {
        printf("# %s: %d of %d ran with their formula\n", names[k], joined[k], statements[k]);
        /* the fake CUDA's kernels take few of the products of formulas */
        const int least = statements[k] / (k == OF_FORMULA ? 6 : 3);
        CHECK(!gpu || joined[k] > least, "%s: %d of %d", names[k], joined[k], statements[k]);
    }
    tap_point("products and convolutions with formulas");
    return tap_end();
}
