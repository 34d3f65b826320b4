/* test_fused.c - formulas that one step computes, in each fusion mode. Element-wise formulas equal the
 * oracle and have equal bits in all modes. For the rows DUET_FINISHED of fused.def the plan chooses the
 * step, and fused and unfused results are within the bound of the oracle. The formula of a row is
 * built from the tokens of its pattern, with matrices in place of its holes. */
#include "common.h"
#include "dtype.h"
#include "each_type.h"
#include "modes.h"
#include <math.h>

typedef struct holes {
    duet_matrix *X, *Y, *B, *W; /* also IMAGES and FILTERS: X, W */
    double S, R;
} holes;

static duet_place place[2];
static int places;
static bool quick;
static rng gen;

/* Quotients of two affine operands, and activations of an operand with a bias. */
#define FORMULAS(DO)                                                                                         \
    DO(axdbpy, duet_div(duet_mul(S, X), duet_add(R, Y)), "(S*X) / (R+Y)")                                    \
    DO(apxdbpy, duet_div(duet_add(S, X), duet_add(R, Y)), "(S+X) / (R+Y)")                                   \
    DO(bias_relu, duet_relu(duet_bias_add(X, B)), "relu(X + bias)")                                          \
    DO(bias_sigmoid, duet_sigmoid(duet_bias_add(X, B)), "sigmoid(X + bias)")                                 \
    DO(bias_tanh, duet_tanh(duet_bias_add(X, B)), "tanh(X + bias)")

#define MAKER(name, formula, doc)                                                                            \
    static duet_expr pattern_##name(const holes *h)                                                          \
    {                                                                                                        \
        const double S = h->S, R = h->R;                                                                     \
        duet_matrix *X = h->X, *Y = h->Y, *B = h->B;                                                         \
        return (void)S, (void)R, (void)X, (void)Y, (void)B, formula;                                         \
    }
FORMULAS(MAKER)
#define IMAGES  X
#define FILTERS W
#define DUET_FINISHED(name, pattern, ...)                                                                    \
    static duet_expr pattern_##name(const holes *h)                                                          \
    {                                                                                                        \
        duet_matrix *X = h->X, *W = h->W, *B = h->B;                                                         \
        return pattern;                                                                                      \
    }
#include "fused.def"

static const struct row {
    const char *name, *doc;
    duet_expr (*make)(const holes *);
} rows[] = {
#define ROW(name, formula, doc) { #name, doc, pattern_##name },
    FORMULAS(ROW)
};

static const struct finished_row {
    struct row row;
    int vendor, act;
    bool pooled;
} finished_rows[] = {
#define DUET_FINISHED(name, pattern, vendor, act, pooled, doc)                                               \
    { { #name, doc, pattern_##name }, OP_##vendor, OP_##act, pooled },
#include "fused.def"
};

/* Evaluates the formula on one machine in all modes: right in each, with equal bits. With fusion it is
 * one program. */
static void three_ways(const struct row *row, const holes *h, duet_place where, duet_dtype type,
                       const sizes *s)
{
    void *got[MODES] = { 0 };
    duet_matrix *m = random_matrix(&gen, type, s->rank, s->size, -5, 5);
    for (int mode = 0; mode < MODES; mode++) {
        plan_fusion(mode);
        const char *why = NULL;
        DUET_ON(where)
        {
            const duet_expr e = row->make(h);
            const char *steps = plan_of(m, e);
            const bool one = strstr(steps, " 1. program") && !strstr(steps, " 2. ");
            if (duet_count(m))
                CHECK(one == (mode == MODE_MACHINE), "%s (%s), fusion %s: the plan is\n%s", row->name,
                      row->doc, mode_names[mode], steps);
            why = oracle_refutes(m, e);
        }
        CHECK(!why, "%s on %s, fusion %s: %s", row->name, place_name(where), mode_names[mode], why);
        got[mode] = elements(m);
        if (mode && got[0] && got[mode])
            CHECK(same_bits(type, got[0], got[mode], duet_count(m)), "%s on %s: fusion %s and %s differ",
                  row->name, place_name(where), mode_names[0], mode_names[mode]);
    }
    for (int mode = 0; mode < MODES; mode++) free(got[mode]);
    plan_fusion(MODE_MACHINE);
    duet_free(&m);
}

static const sizes shapes[] = { SIZES(1),    SIZES(16),     SIZES(1003),       SIZES(2, 3),   SIZES(0, 3),
                                SIZES(1, 7), SIZES(65, 17), SIZES(2, 3, 4, 5), SIZES(3, 5, 2) };

static void row_on(const struct row *row, duet_dtype type, const sizes *s)
{
    const int64_t channels = s->rank == 4 || s->rank == 2 ? s->size[1] : 1;
    holes h = { .S = rng_real(&gen, -3, 3), .R = rng_real(&gen, 10, 20) }; /* R + Y is never near 0 */
    h.X = random_matrix(&gen, type, s->rank, s->size, -5, 5);
    h.Y = random_matrix(&gen, type, s->rank, s->size, -5, 5);
    h.B = random_matrix(&gen, type, 1, &channels, -5, 5);
    duet_expr e = row->make(&h);
    const duet_status fits = duet_expr_status(e);
    forget(e);
    for (int p = 0; fits == DUET_OK && p < places; p++) three_ways(row, &h, place[p], type, s);
    CHECK(fits == DUET_OK || fits == DUET_BAD_SHAPE, "%s: %s", row->name, duet_error());
    duet_free(&h.X);
    duet_free(&h.Y);
    duet_free(&h.B);
}

/* ---- steps with epilogues ---- */

static int chosen_by[2], seen_by[2]; /* counts for a row, by machine */

static void finished_ways(const struct row *row, const holes *h, int p, duet_dtype type)
{
    duet_expr e = row->make(h);
    int64_t size[DUET_RANK_MAX];
    const int rank = duet_expr_rank(e);
    for (int a = 0; a < rank; a++) size[a] = duet_expr_size(e, a);
    duet_matrix *m = random_matrix(&gen, type, rank, size, -5, 5);
    forget(e);
    for (int mode = 0; mode < MODES; mode++) {
        plan_fusion(mode);
        DUET_ON(place[p])
        {
            e = row->make(h);
            const char *steps = plan_of(m, e);
            const bool chosen = strstr(steps, row->name) != NULL && !strstr(steps, "does not support");
            CHECK(!chosen || mode != MODE_NONE, "%s, fusion none: the plan is\n%s", row->name, steps);
            chosen_by[p] += chosen;
            seen_by[p]++;
            const char *why = oracle_refutes(m, e);
            CHECK(!why, "%s on %s, fusion %s: %s", row->name, place_name(place[p]), mode_names[mode], why);
        }
    }
    plan_fusion(MODE_MACHINE);
    duet_free(&m);
}

static void finished_on(const struct finished_row *f, duet_dtype type, const int64_t *x, const int64_t *w)
{
    const bool conv = f->vendor == OP_conv2d;
    const int rank = conv ? 4 : 2;
    holes h = { .X = random_matrix(&gen, type, rank, x, -1, 1),
                .W = random_matrix(&gen, type, rank, w, -1, 1) };
    h.B = random_matrix(&gen, type, 1, conv ? &w[0] : &w[1], -1, 1);
    duet_expr e = f->row.make(&h);
    const duet_status fits = duet_expr_status(e);
    forget(e);
    for (int p = 0; fits == DUET_OK && p < places; p++) finished_ways(&f->row, &h, p, type);
    CHECK(fits == DUET_OK || fits == DUET_BAD_SHAPE, "%s: %s", f->row.name, duet_error());
    duet_free(&h.X);
    duet_free(&h.W);
    duet_free(&h.B);
}

/* m, k, n on both sides of the limits by which kernels are chosen. */
static const int64_t products[][3] = { { 1, 1, 1 },     { 1, 300, 70 },  { 2, 100, 64 },  { 3, 5, 7 },
                                       { 10, 129, 90 }, { 17, 64, 10 },  { 100, 33, 12 }, { 50, 64, 40 },
                                       { 128, 49, 33 }, { 600, 40, 10 }, { 130, 24, 36 }, { 0, 5, 7 },
                                       { 4, 0, 9 },     { 33, 201, 16 } };
/* n c h w and m, for 3 x 3 windows. */
static const int64_t images[][5] = { { 1, 1, 5, 5, 1 }, { 2, 3, 12, 12, 16 }, { 2, 16, 8, 8, 32 },
                                     { 2, 2, 7, 9, 5 }, { 1, 17, 8, 6, 33 },  { 3, 1, 16, 16, 8 },
                                     { 0, 3, 8, 8, 4 }, { 2, 20, 4, 4, 20 },  { 1, 4, 2, 2, 4 } };

/* The oracle computes a softmax over n columns by definition: n^3 products for each row. */
static bool too_many(const struct finished_row *f, const int64_t mkn[3])
{
    const double operations = (double)mkn[0] * (double)mkn[1] * pow((double)mkn[2], 3);
    return f->act == OP_softmax && (mkn[2] > 100 || (quick && operations > 60e6));
}

static void finished(const struct finished_row *f)
{
    memset(chosen_by, 0, sizeof chosen_by);
    memset(seen_by, 0, sizeof seen_by);
    FOR_FLOAT_TYPES (type) {
        for (size_t i = 0; f->vendor == OP_matmul && i < sizeof products / sizeof *products; i++)
            if (!too_many(f, products[i]))
                finished_on(f, type, (int64_t[4]){ products[i][0], products[i][1] },
                            (int64_t[4]){ products[i][1], products[i][2] });
        for (size_t i = 0; f->vendor == OP_conv2d && i < sizeof images / sizeof *images; i++)
            finished_on(f, type, images[i], (int64_t[]){ images[i][4], images[i][1], 3, 3 });
    }
    for (int p = 0; p < places; p++)
        CHECK(!seen_by[p] || chosen_by[p], "the row %s is never chosen on %s", f->row.name,
              place_name(place[p]));
}

/* Our kernels support neither dilation nor groups: a vendor computes the epilogue, or a separate
 * pass. */
static void convolutions_apart(void)
{
    FOR_FLOAT_TYPES (type)
        for (int p = 0; p < places; p++) {
            duet_matrix *x = random_matrix(&gen, type, 4, (int64_t[]){ 5, 4, 11, 10 }, -1, 1),
                        *w = random_matrix(&gen, type, 4, (int64_t[]){ 6, 2, 3, 3 }, -1, 1),
                        *b = random_matrix(&gen, type, 1, (int64_t[]){ 6 }, -1, 1),
                        *y = random_matrix(&gen, type, 4, (int64_t[]){ 5, 6, 5, 5 }, -1, 1);
            const char *why = NULL;
            DUET_ON(place[p])
            why = oracle_refutes(y, duet_max_pool2d(duet_relu(duet_bias_add(duet_conv2d(x, w, .pad = { 1, 2 },
                                                                                        .dilation = { 1, 2 },
                                                                                        .groups = 2),
                                                                            b)),
                                                    .window = { 2, 2 }));
            CHECK(!why, "on %s: %s", place_name(place[p]), why);
            duet_free(&x);
            duet_free(&w);
            duet_free(&b);
            duet_free(&y);
        }
    tap_point("convolutions with epilogue, dilation and groups");
}

/* Into an operand, and with a bias inside the destination: as if all operands were read first. */
static void into_itself(const struct finished_row *f, duet_matrix *to, const holes *h)
{
    for (int p = 0; p < places; p++) DUET_ON(place[p])
        {
            const char *why = oracle_refutes(to, f->row.make(h));
            CHECK(!why, "%s with an operand as destination, on %s: %s", f->row.name, place_name(place[p]),
                  why);
        }
}

static void overlapping(const struct finished_row *f)
{
    const bool conv = f->vendor == OP_conv2d;
    const int64_t square[] = { 24, 24 }, batch[] = { 3, 5, 8, 8 }, filters[] = { 5, 5, 3, 3 };
    if (f->pooled) return;
    FOR_FLOAT_TYPES (type) {
        holes h = { .X = random_matrix(&gen, type, conv ? 4 : 2, conv ? batch : square, -1, 1),
                    .W = random_matrix(&gen, type, conv ? 4 : 2, conv ? filters : square, -1, 1) };
        duet_matrix *flat = conv ? duet_reshaped(h.X, 15, 64) : NULL;
        if (conv) h.B = duet_column(flat, 7);
        else h.B = duet_row(h.X, 11);
        duet_matrix *few = conv ? duet_slice(h.B, 0, 5) : NULL, *all = h.B;
        if (conv) h.B = few;
        into_itself(f, h.X, &h);
        if (!conv) into_itself(f, h.W, &h);
        duet_free(&few);
        duet_free(&all);
        duet_free(&flat);
        duet_free(&h.X);
        duet_free(&h.W);
    }
}

int main(int argc, char **argv)
{
    quick = is_quick(argc, argv);
    gen = rng_new(21);
    places = list_places(place);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        FOR_FLOAT_TYPES (type)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                if (!quick || (r + s) % 2 == (type == DUET_F64)) row_on(&rows[r], type, &shapes[s]);
        tap_point(rows[r].name);
    }
    for (size_t r = 0; r < sizeof finished_rows / sizeof *finished_rows; r++) {
        finished(&finished_rows[r]);
        overlapping(&finished_rows[r]);
        tap_point(finished_rows[r].row.name);
    }
    convolutions_apart();
    return tap_end();
}
