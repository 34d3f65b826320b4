/* class_losses.c - losses of classifications by the index of the right class, made of other operators:
 * nll_loss and cross_entropy_loss. */
#include "call_text.h"
#include "dtype.h"
#include "matrix.h"
#include "status.h"
#include "view_formulas.h"
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

static int axis_of_classes(const shape *s) { return s->rank > 1; }

static duet_status check_target(const shape *x, const shape *target)
{
    const int axis = axis_of_classes(x);
    bool fits = target->rank == x->rank - 1;
    for (int a = 0; a < target->rank && fits; a++) fits = target->size[a] == x->size[a + (a >= axis)];
    if (fits) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "target must have the shape of x without axis %d, which has the classes",
                axis);
}

static duet_status check_weights(const duet_matrix *weights, int64_t classes)
{
    const duet_expr w = duet_of_matrix(weights);
    const duet_status s = duet_expr_status(w);
    const int rank = duet_expr_rank(w);
    const int64_t n = duet_expr_size(w, 0);
    const bool floats = dtype_kind(duet_expr_type(w)) == TYPE_FLOAT;
    (void)(duet_drop)(w);
    if (s != DUET_OK) return fail(s, "weights must be a matrix that was not freed");
    if (!floats) return fail(DUET_BAD_TYPE, "weights must be real and floating point");
    if (rank == 1 && n == classes) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "weights must be a vector with one element for each of the %lld classes",
                (long long)classes);
}

static duet_status check_loss(duet_expr x, duet_expr target, const duet_class_loss *o)
{
    const shape s = formula_shape(x), t = formula_shape(target);
    if (o->reduction < DUET_LOSS_MEAN || o->reduction > DUET_LOSS_NONE)
        return fail(DUET_BAD_ARGUMENT, "reduction (%d) is not a duet_loss_reduction", (int)o->reduction);
    if (dtype_kind(duet_expr_type(x)) != TYPE_FLOAT)
        return fail(DUET_BAD_TYPE, "x must be real and floating point");
    if (!dtype_is_integer(duet_expr_type(target)))
        return fail(DUET_BAD_TYPE, "target must be an integer matrix");
    if (!s.rank) return fail(DUET_BAD_SHAPE, "x must have at least 1 axis, not 0");
    TRY(check_target(&s, &t));
    return o->weights ? check_weights(o->weights, s.size[axis_of_classes(&s)]) : DUET_OK;
}

/* The loss of each target, and its weight. `is_ignored` and `weight` may be absent. */
typedef struct losses {
    duet_expr each, is_ignored, weight;
    bool ignores, weighs;
} losses;

static losses losses_of(duet_expr x, duet_expr target, const duet_class_loss *o, const char *site)
{
    const shape s = formula_shape(x);
    const int axis = axis_of_classes(&s);
    losses l = { .ignores = o->ignores, .weighs = o->weights };
    duet_expr index = target;
    if (l.ignores) {
        const duet_expr wide = duet_cast(target, DUET_I64);
        l.is_ignored = duet_equal(wide, o->ignored);
        index = duet_where(l.is_ignored, 0, wide);
    }
    const duet_expr picked = duet_take_along_axis(x, duet_expand_dims(index, axis), axis);
    l.each = is_valid(picked) ? duet_neg(duet_squeeze(picked, axis)) : picked;
    if (l.weighs) {
        l.weight = duet_take(o->weights, index, 0);
        l.each = duet_mul(l.each, l.weight);
    }
    if (l.ignores) l.each = duet_where(l.is_ignored, 0, l.each);
    return l;
}

/* Sums of halves may overflow where their quotient does not, so that they are f32. */
static duet_dtype type_of_sums(duet_expr x)
{
    const duet_dtype type = duet_expr_type(x);
    return dtypes[type].bytes < dtypes[DUET_F32].bytes ? DUET_F32 : type;
}

/* What the sum of the losses is divided by: the sum of the weights. */
static duet_expr total_weight(const losses *l, duet_dtype type, const char *site)
{
    if (!l->weighs) return duet_cast(duet_count_nonzero(duet_logical_not(l->is_ignored)), type);
    const duet_expr counted = l->ignores ? duet_where(l->is_ignored, 0, l->weight) : l->weight;
    return duet_sum(in_type(counted, type, site));
}

static duet_expr reduced_loss(const losses *l, duet_loss_reduction how, const char *site)
{
    if (how == DUET_LOSS_NONE || !is_valid(l->each)) return l->each;
    if (how == DUET_LOSS_SUM) return duet_sum(l->each);
    if (!l->weighs && !l->ignores) return duet_mean(l->each);
    const duet_dtype type = type_of_sums(l->each);
    const duet_expr sum = duet_sum(in_type(l->each, type, site)), total = total_weight(l, type, site);
    return in_type(duet_div(sum, total), duet_expr_type(l->each), site);
}

static duet_expr class_loss(const char *function, duet_expr x, duet_expr target, bool logits,
                            const duet_class_loss *options, const char *site)
{
    static const duet_class_loss none = { .reduction = DUET_LOSS_MEAN };
    const duet_class_loss *o = options ? options : &none;
    const duet_expr e[] = { x, target };
    const bool valid = is_valid(x) && is_valid(target);
    const duet_status status = valid ? check_loss(x, target, o) : DUET_BAD_ARGUMENT;
    if (status != DUET_OK) return bad_operands(function, 2, e, status, site);
    const shape s = formula_shape(x);
    const duet_expr logs = logits ? duet_log_softmax_axis_at(x, axis_of_classes(&s), site) : x;
    const losses l = losses_of(logs, target, o, site);
    return composed(function, 2, e, reduced_loss(&l, o->reduction, site), site);
}

duet_expr(duet_nll_loss_at)(duet_expr x, duet_expr target, const duet_class_loss *options, const char *site)
{
    return class_loss("nll_loss", x, target, false, options, site);
}
duet_expr(duet_nll_loss)(duet_expr x, duet_expr target, const duet_class_loss *options)
{
    return duet_nll_loss_at(x, target, options, NULL);
}
duet_expr(duet_cross_entropy_loss_at)(duet_expr x, duet_expr target, const duet_class_loss *options,
                                      const char *site)
{
    return class_loss("cross_entropy_loss", x, target, true, options, site);
}
duet_expr(duet_cross_entropy_loss)(duet_expr x, duet_expr target, const duet_class_loss *options)
{
    return duet_cross_entropy_loss_at(x, target, options, NULL);
}
