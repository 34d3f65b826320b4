/* test_ops.c - every row of ops.def, on every machine, for every type, shape, view and broadcast,
 * against the oracle. No operator is named: a new row is tested without further code. */
#include "common.h"
#include "dtype.h"
#include "each_type.h"
#include "element.h"
#include "test_rows.h"

/* One evaluation: operands (a number where there is no matrix), axis, options; what it is compared
 * with. */
typedef struct trial {
    const row *row;
    duet_dtype type;
    duet_matrix *x[3];
    double number[3];
    int axis;
    const void *options;
    enum view view; /* of the destination */
} trial;

static const sizes shapes[] = { SIZES(),           SIZES(1),
                                SIZES(0),          SIZES(7),
                                SIZES(1000),       SIZES(3, 4),
                                SIZES(0, 4),       SIZES(4, 0),
                                SIZES(1, 5),       SIZES(33, 129),
                                SIZES(2, 3, 5),    SIZES(5, 1, 7),
                                SIZES(2, 3, 4, 5), SIZES(2, 1, 2, 1, 2, 1, 2, 3) };

static rng gen;
static bool quick;
static duet_place place[2];
static int places, ran;

static duet_expr build(const trial *t)
{
    duet_expr x[3];
    for (int k = 0; k < t->row->arity; k++)
        x[k] = t->x[k] ? duet_of_matrix(t->x[k]) : duet_of_number(t->number[k]);
    return t->row->make(x, t->axis, t->options);
}

static duet_dtype result_type(const trial *t)
{
    const int flags = op_infos[t->row->op].flags;
    if (flags & OP_GIVES_INDEX) return DUET_I64;
    if (flags & DUET_TRUTH) return DUET_BOOL;
    return t->type;
}

/* Copies the elements of m into a copy of its storage, at the same positions. */
static const char *paste(const duet_matrix *m, int axis, char *to, const char *from)
{
    const size_t bytes = dtypes[duet_type(m)].bytes;
    if (axis == duet_rank(m)) {
        memcpy(to, from, bytes);
        return from + bytes;
    }
    for (int64_t i = 0; i < duet_size(m, axis); i++)
        from = paste(m, axis + 1, to + i * duet_stride(m, axis) * (ptrdiff_t)bytes, from);
    return from;
}

/* Computes t into a view of a larger matrix on one machine; the surroundings must not change.
 * Returns the elements. */
static void *evaluate(const trial *t, duet_place where, const sizes *s)
{
    const duet_dtype type = result_type(t);
    duet_matrix *whole, *m = random_view(&gen, t->view, type, s->rank, s->size, -5, 5, &whole);
    if (!m) m = whole = random_matrix(&gen, type, s->rank, s->size, -5, 5);
    char *before = elements(whole);
    const char *why = NULL;
    DUET_ON(where) why = oracle_refutes(m, build(t));
    CHECK(!why, "%s on %s, %s: %s", t->row->name, place_name(where), view_names[t->view], why);

    char *got = elements(m), *after = elements(whole);
    const ptrdiff_t at = (const char *)duet_read(m) - (const char *)duet_read(whole);
    if (got && before && duet_count(m)) paste(m, 0, before + at, got);
    CHECK(same_bits(type, before, after, duet_count(whole)), "%s on %s wrote outside of its %s destination",
          t->row->name, place_name(where), view_names[t->view]);
    free(before);
    free(after);
    if (m != whole) duet_free(&whole);
    duet_free(&m);
    return got;
}

/* Every machine agrees with the oracle and, in exact rows, bit by bit with each other. */
static void holds(const trial *t)
{
    duet_expr e = build(t);
    const duet_status status = duet_expr_status(e);
    const sizes s = sizes_of_expr(e);
    forget(e);
    if (status == DUET_BAD_SHAPE) return; /* these shapes do not fit together */
    CHECK(status == DUET_OK, "%s: %s", t->row->name, duet_error());
    if (status != DUET_OK) return;

    void *got[2] = { 0 };
    int64_t count = 1;
    for (int d = 0; d < s.rank; d++) count *= s.size[d];
    for (int p = 0; p < places; p++) got[p] = evaluate(t, place[p], &s);
    if (places == 2 && got[0] && got[1] && !is_vendor(t->row->op))
        CHECK(same_bits(result_type(t), got[0], got[1], count), "%s %s: CPU and GPU differ", t->row->name,
              type_name(t->type));
    free(got[0]);
    free(got[1]);
    ran++;
}

static void free_operands(trial *t)
{
    for (int k = 0; k < 3; k++) duet_free(&t->x[k]);
}

/* An operand that broadcasts to s: with axes of size 1, without leading axes, or a number. */
static duet_matrix *broadcast_operand(const row *r, int k, duet_dtype type, const sizes *s, double *number)
{
    sizes o = *s;
    *number = rng_real(&gen, r->domain[2 * k], r->domain[2 * k + 1]);
    if (rng_chance(&gen, 25)) return NULL;
    const int drop = (int)rng_below(&gen, s->rank + 1);
    o.rank -= drop;
    memmove(o.size, o.size + drop, sizeof(int64_t) * (size_t)o.rank);
    for (int d = 0; d < o.rank; d++)
        if (rng_chance(&gen, 40)) o.size[d] = 1;
    return random_matrix(&gen, type, o.rank, o.size, r->domain[2 * k], r->domain[2 * k + 1]);
}

static duet_matrix *operand(const row *r, int k, enum view view, duet_dtype type, const sizes *s)
{
    duet_matrix *m =
        random_view(&gen, view, type, s->rank, s->size, r->domain[2 * k], r->domain[2 * k + 1], NULL);
    if (m) return m;
    return random_matrix(&gen, type, s->rank, s->size, r->domain[2 * k], r->domain[2 * k + 1]);
}

static void map_on(const row *r, duet_dtype type, const sizes *s)
{
    for (enum view view = 0; view < VIEWS; view++) {
        trial t = { .row = r, .type = type, .view = (enum view)rng_below(&gen, VIEWS) };
        for (int k = 0; k < r->arity; k++)
            t.x[k] = operand(r, k, k ? (enum view)rng_below(&gen, VIEWS) : view, type, s);
        holds(&t);
        free_operands(&t);
    }
    for (int n = 0; r->arity > 1 && n < (quick ? 2 : 6); n++) {
        trial t = { .row = r, .type = type };
        const int whole = (int)rng_below(&gen, r->arity);
        for (int k = 0; k < r->arity; k++)
            t.x[k] = k == whole ? operand(r, k, VIEW_NONE, type, s)
                                : broadcast_operand(r, k, type, s, &t.number[k]);
        holds(&t);
        free_operands(&t);
    }
}

/* The value calculated by hand, which detects a formula that is wrong in both columns. */
static void map_known(const row *r, duet_dtype type)
{
    for (int p = 0; p < places; p++) {
        duet_matrix *m = duet_new(type, 1);
        trial t = { .row = r, .type = type };
        for (int k = 0; k < r->arity; k++) {
            t.x[k] = duet_new(type, 1);
            fill_from(t.x[k], type == DUET_F32 ? (void *)&(float){ (float)r->known[k] }
                                               : (void *)&(double){ r->known[k] });
        }
        const duet_status s = (duet_set_on)(place[p], m, build(&t));
        const double u = type == DUET_F32 ? 0x1p-23 : 0x1p-52, want = r->known[r->arity];
        const double got = s == DUET_OK ? element(type, duet_read(m), 0) : 0;
        const double d = got > want ? got - want : want - got;
        CHECK(s == DUET_OK && d <= (r->ulp > 0.5 ? r->ulp : 0) * u * (want < 0 ? -want : want),
              "%s %s on %s: got %.17g, known is %.17g", r->name, type_name(type), place_name(place[p]), got,
              want);
        free_operands(&t);
        duet_free(&m);
    }
}

static void reduce_on(const row *r, duet_dtype type, const sizes *s)
{
    for (int axis = 0; axis < (s->rank ? s->rank : 1); axis++)
        for (int n = 0; n < 3; n++) {
            trial t = { .row = r, .type = type, .axis = axis, .view = (enum view)rng_below(&gen, VIEWS) };
            for (int k = 0; k < r->arity; k++)
                t.x[k] = operand(r, k, n ? (enum view)rng_below(&gen, VIEWS) : VIEW_NONE, type, s);
            holds(&t);
            free_operands(&t);
        }
}

static const sizes pairs[] = { SIZES(2, 1, 5, 3), SIZES(3, 3, 4),    SIZES(7, 3, 2),   SIZES(),
                               SIZES(3),          SIZES(4),          SIZES(0),         SIZES(3, 4),
                               SIZES(4, 3),       SIZES(4, 5),       SIZES(0, 4),      SIZES(4, 0),
                               SIZES(0, 5),       SIZES(1, 4),       SIZES(4, 1),      SIZES(65, 70),
                               SIZES(70, 33),     SIZES(70),         SIZES(33),        SIZES(2, 3, 5),
                               SIZES(2, 3, 4, 5), SIZES(1, 4, 0, 2), SIZES(2, 4, 5, 5) };

static void plain_on(const struct def *d, duet_dtype type)
{
    const row *r = &d->row;
    for (int a = 0; a < LENGTH(pairs); a++)
        for (int b = 0; b < (r->arity == 2 ? LENGTH(pairs) : 1); b++)
            for (int n = 0; n < (quick ? 1 : 3); n++) {
                if (r->arity == 1 && pairs[a].size[0] == 65) continue; /* the oracle of softmax is cubic */
                trial t = { .row = r,
                            .type = type,
                            .view = n ? (enum view)rng_below(&gen, VIEWS) : VIEW_NONE };
                t.x[0] = operand(r, 0, n ? (enum view)rng_below(&gen, VIEWS) : VIEW_NONE, type, &pairs[a]);
                if (r->arity == 2)
                    t.x[1] =
                        operand(r, 1, n ? (enum view)rng_below(&gen, VIEWS) : VIEW_NONE, type, &pairs[b]);
                holds(&t);
                free_operands(&t);
            }
}

static const struct image {
    sizes images, filters;
    duet_conv conv;
    duet_pool pool;
} images[] = {
    { SIZES(1, 1, 1, 1), SIZES(1, 1, 1, 1), { { 0 } }, { { 1, 1 }, { 0 }, { 0 } } },
    { SIZES(2, 3, 6, 7), SIZES(4, 3, 3, 3), { { 1, 1 }, { 1, 1 } }, { { 2, 2 }, { 0, 0 }, { 0, 0 } } },
    { SIZES(1, 2, 8, 8), SIZES(3, 2, 3, 3), { { 0, 0 }, { 0, 0 } }, { { 3, 3 }, { 2, 2 }, { 1, 1 } } },
    { SIZES(3, 1, 9, 5), SIZES(2, 1, 2, 3), { { 2, 1 }, { 0, 1 } }, { { 2, 3 }, { 1, 2 }, { 0, 1 } } },
    { SIZES(2, 2, 7, 7), SIZES(1, 2, 5, 5), { { 3, 2 }, { 2, 2 } }, { { 5, 1 }, { 1, 1 }, { 2, 0 } } },
    { SIZES(0, 3, 4, 4), SIZES(2, 3, 3, 3), { { 1, 1 }, { 1, 1 } }, { { 2, 2 }, { 2, 2 }, { 0, 0 } } },
    { SIZES(2, 3, 4, 4), SIZES(0, 3, 3, 3), { { 1, 1 }, { 0, 0 } }, { { 4, 4 }, { 1, 1 }, { 0, 0 } } },
    { SIZES(2, 0, 4, 4), SIZES(2, 0, 2, 2), { { 1, 1 }, { 0, 0 } }, { { 2, 2 }, { 1, 1 }, { 1, 1 } } },
    { SIZES(2, 4, 9, 8),
      SIZES(6, 2, 3, 2),
      { { 1, 2 }, { 1, 0 }, { 2, 3 }, 2 },
      { { 3, 2 }, { 1, 1 }, { 1, 1 } } },
    { SIZES(2, 5, 6, 6),
      SIZES(5, 1, 3, 3),
      { { 0, 0 }, { 2, 1 }, { 1, 2 }, 5 },
      { { 1, 4 }, { 0, 0 }, { 0, 2 } } },
    { SIZES(1, 3, 4, 1),
      SIZES(6, 1, 1, 1),
      { { 2, 1 }, { 0, 0 }, { 4, 4 }, 3 },
      { { 4, 1 }, { 0, 0 }, { 0, 0 } } },
    { SIZES(4, 3, 16, 16), SIZES(8, 3, 3, 3), { { 1, 1 }, { 1, 1 } }, { { 2, 2 }, { 2, 2 }, { 0, 0 } } },
};

/* The shape of the results of conv2d for an image, which is the shape of their gradient; the
 * library is asked for it. */
static sizes results_of(const struct image *im)
{
    duet_matrix *x = duet_new_shape(DUET_F32, 4, im->images.size),
                *w = duet_new_shape(DUET_F32, 4, im->filters.size);
    duet_expr e = (duet_conv2d)(duet_of_matrix(x), duet_of_matrix(w), &im->conv);
    const sizes s = sizes_of_expr(e);
    forget(e);
    duet_free(&x);
    duet_free(&w);
    return s;
}

/* Operands of the gradient row for image im: results and filters, or images and results. */
static void gradient_on(const struct def *d, duet_dtype type, const struct image *im, bool views)
{
    const row *r = &d->row;
    const sizes results = results_of(im), *size = r->op == OP_conv2d_filter_grad ? &im->filters : &im->images;
    const sizes *of[2] = { &results, &im->filters };
    if (r->op == OP_conv2d_filter_grad) {
        of[0] = &im->images;
        of[1] = &results;
    }
    const duet_conv *c = &im->conv;
    duet_conv_grad grad = { { c->stride[0], c->stride[1] },
                            { c->pad[0], c->pad[1] },
                            { c->dilation[0], c->dilation[1] },
                            c->groups,
                            { 0 } };
    trial t = { .row = r,
                .type = type,
                .options = &grad,
                .view = views ? (enum view)rng_below(&gen, VIEWS) : VIEW_NONE };
    for (int k = 0; k < 2; k++) {
        if (d->kind == KIND_conv_transposed)
            grad.size[k] = c->stride[k] > 1 && rng_chance(&gen, 50); /* output_pad */
        else if (views) grad.size[k] = (int32_t)size->size[2 + k];
        t.x[k] = operand(r, k, views ? (enum view)rng_below(&gen, VIEWS) : VIEW_NONE, type, of[k]);
    }
    holds(&t);
    free_operands(&t);
}

/* From the gradient of the results of avg_pool2d for image im, to its size or to the smallest size. */
static void pool_grad_on(const struct def *d, duet_dtype type, const struct image *im, bool views)
{
    duet_matrix *x = duet_new_shape(DUET_F32, 4, im->images.size);
    duet_expr e = (duet_avg_pool2d)(duet_of_matrix(x), &im->pool);
    const sizes results = sizes_of_expr(e);
    forget(e);
    duet_free(&x);
    duet_pool_grad grad = { { 0 }, { 0 }, { 0 }, { 0 } };
    memcpy(&grad, &im->pool, offsetof(duet_pool_grad, size)); /* window, stride, pad */
    for (int k = 0; k < 2 && views; k++) grad.size[k] = (int32_t)im->images.size[2 + k];
    trial t = { .row = &d->row,
                .type = type,
                .options = &grad,
                .view = views ? (enum view)rng_below(&gen, VIEWS) : VIEW_NONE };
    t.x[0] = operand(&d->row, 0, views ? (enum view)rng_below(&gen, VIEWS) : VIEW_NONE, type, &results);
    holds(&t);
    free_operands(&t);
}

static void images_on(const struct def *d, duet_dtype type)
{
    const row *r = &d->row;
    for (int i = 0; i < LENGTH(images) - quick; i++)
        for (int n = 0; n < 3; n++) {
            const struct image *im = &images[i];
            if (d->kind == KIND_conv_grad || d->kind == KIND_conv_transposed) {
                gradient_on(d, type, im, n > 0);
                continue;
            }
            if (d->kind == KIND_pool_grad) {
                pool_grad_on(d, type, im, n > 0);
                continue;
            }
            const duet_scale scale = { { n, 3 - n } };
            trial t = { .row = r, .type = type, .view = n ? (enum view)rng_below(&gen, VIEWS) : VIEW_NONE };
            if (d->kind == KIND_conv) t.options = (const void *)&im->conv;
            else if (d->kind == KIND_scale) t.options = (const void *)&scale;
            else t.options = &im->pool;
            t.x[0] = operand(r, 0, n ? (enum view)rng_below(&gen, VIEWS) : VIEW_NONE, type, &im->images);
            if (r->arity == 2)
                t.x[1] = operand(r, 1, n ? (enum view)rng_below(&gen, VIEWS) : VIEW_NONE, type, &im->filters);
            holds(&t);
            free_operands(&t);
        }
}

/* Every operator has its lifting macro: without it these lines do not compile. Formulas of every
 * row can be dropped. */
static void lifts(void)
{
    duet_matrix *m = duet_new(DUET_F32, 1, 1, 2, 2), *v = duet_new(DUET_F32, 2);
#define DUET_MAP1(name, ...)                                                                                 \
    forget(duet_##name(m)), forget(duet_##name(2.5)), forget(duet_##name(duet_neg(m)));
#define DUET_MAP2(name, ...) forget(duet_##name(m, 3)), forget(duet_##name(2.5f, m));
#define DUET_MAP3(name, ...) forget(duet_##name(m, 3L, 2.5));
#define DUET_PLACE1(name, ...)                                                                               \
    forget(duet_##name(m)), forget(duet_##name##_axis(m, 0)), forget(duet_##name##_keep(m, 1));
#define DUET_FOLD1(name, ...)                                                                                \
    DUET_PLACE1(name, )                                                                                      \
    forget(duet_##name##_axes(m, 0, -1)), forget(duet_##name##_axes_keep(m)),                                \
        forget(duet_##name##_axes(m, 2));
#define DUET_FOLD2(name, ...)                                                                                \
    forget(duet_##name(m, m)), forget(duet_##name##_axis(m, m, 0)), forget(duet_##name##_keep(m, m, 1)),     \
        forget(duet_##name##_axes(m, m, 0, -1)), forget(duet_##name##_axes_keep(m, m));
#define DUET_MOMENT1                 DUET_FOLD1
#define LIFT_plain(f, ...)           forget(f(__VA_ARGS__));
#define LIFT_conv(f, ...)            forget(f(__VA_ARGS__, .pad = { 1, 1 }));
#define LIFT_pool_grad(f, ...)       forget(f(__VA_ARGS__, .window = { 1, 1 }));
#define LIFT_scale(f, ...)           forget(f(__VA_ARGS__, 2, 3));
#define LIFT_conv_grad(f, ...)       forget(f(__VA_ARGS__, .size = { 3, 3 }));
#define LIFT_conv_transposed(f, ...) forget(f(__VA_ARGS__, .output_pad = { 0, 0 }));
#define LIFT_pool(f, ...)            forget(f(__VA_ARGS__, .window = { 2, 2 }));
#define DUET_DEF1(name, kind, ...)   LIFT_##kind(duet_##name, m)
#define DUET_DEF2(name, kind, ...)   LIFT_##kind(duet_##name, m, v)
#include <duet/ops.def>
    duet_matrix *out = duet_new(DUET_F32, 1, 1, 2, 2);
    CHECK(duet_set(out, duet_add(m, 2)) == DUET_OK, "%s", duet_error());
    duet_free(&m);
    duet_free(&v);
    duet_free(&out);
    tap_point("lifting macros");
}

/* Does an operator with a definition support this type? Convolutions: integers of up to 16 bits;
 * max_pool2d: up to 32. */
static bool admits(int op, duet_dtype type)
{
    const int flags = op_infos[op].flags;
    int needed = OP_INTEGERS;
    if (type == DUET_BOOL) needed = DUET_BOOLS;
    else if (is_floating(type)) needed = OP_FLOATS;
    size_t most = 8;
    if (!is_floating(type) && (op == OP_conv2d || op == OP_convolve2d)) most = 2;
    else if (!is_floating(type) && op == OP_max_pool2d) most = 4;
    return op == OP_transpose || (flags & needed && dtypes[type].bytes <= most);
}

static void def_on(const struct def *d, duet_dtype type)
{
    const bool all = quick;
    quick |= !dtype_is_f32_or_f64(type);
    if (d->kind == KIND_plain) plain_on(d, type);
    else images_on(d, type);
    quick = all;
}

static void point(const char *name)
{
    char text[100];
    CHECK(ran > 0, "%s: no random shape was valid", name);
    snprintf(text, sizeof text, "%s: %d evaluations", name, ran);
    ran = 0;
    tap_point(text);
}

/* The CPU runs formulas with an error of at most 0.5 ulp as vectors, for which FN has no meaning. */
static void formulas_with_functions(void)
{
#define DUET_MAP1(name, formula, oracle, domain, ulp, ...)                                                   \
    CHECK(!strstr(#formula, "FN(") || (ulp) > 0.5, "%s has FN: its ulp must be above 0.5", #name);
#define DUET_MAP2 DUET_MAP1
#define DUET_MAP3 DUET_MAP1
#include <duet/ops.def>
    tap_point("formulas with FN are marked as functions");
}

int main(int argc, char **argv)
{
    gen = rng_new(20);
    quick = is_quick(argc, argv);
    places = list_places(place);
    lifts();
    for (int i = 0; i < LENGTH(maps); i++) {
        FOR_FLOAT_TYPES (type) {
            map_known(&maps[i], type);
            for (int s = 0; s < LENGTH(shapes); s++)
                if (!quick || s != 4) map_on(&maps[i], type, &shapes[s]);
        }
        if (!quick) map_on(&maps[i], DUET_F32, &(sizes)SIZES(20011));
        point(maps[i].name);
    }
    for (int i = 0; i < LENGTH(reductions); i++) {
        FOR_FLOAT_TYPES (type)
            for (int s = 0; s < LENGTH(shapes); s++) reduce_on(&reductions[i], type, &shapes[s]);
        if (!quick) {
            reduce_on(&reductions[i], DUET_F32, &(sizes)SIZES(3, 9001));
            reduce_on(&reductions[i], DUET_F32, &(sizes)SIZES(4099, 2));
        }
        point(reductions[i].name);
    }
    for (int i = 0; i < LENGTH(defs); i++) {
        FOR_REAL_TYPES (type)
            if (admits(defs[i].row.op, type)) def_on(&defs[i], type);
        point(defs[i].row.name);
    }
    CHECK(oracle_wild * 1000 <= oracle_bounded,
          "the reference has no error bound for %lld elements, and one for %lld", (long long)oracle_wild,
          (long long)oracle_bounded);
    tap_point("the error bounds of the oracle hold");
    formulas_with_functions();
    return tap_end();
}
