/* operators.c - reductions and operators with a definition: each applies the shape rule of its row
 * and appends a node. */
#include "call_text.h"
#include "einsum.h"
#include "general_options.h"
#include "operands.h"
#include "status.h"
#include "structured.h"
#include "view_formulas.h"

/* If all operands are numbers, the operator computes in f64. */
static duet_dtype result_type(enum op op, duet_dtype settled, const node *rule)
{
    if (op_infos[op].flags & OP_ANY_TYPES) return (duet_dtype)rule->type;
    if (settled != DUET_DTYPE_COUNT) return settled;
    if (op_infos[op].flags & OP_GIVES_INDEX) return DUET_I64;
    return op_infos[op].flags & DUET_TRUTH ? DUET_BOOL : DUET_F64;
}

/* duet_complex of two numbers makes a complex number. */
static bool is_number(enum op op, node *const x[])
{
    return op == OP_complex && x[0]->flags & x[1]->flags & NODE_WEAK;
}

/* Has the operator a faster formula for operands that are triangular or diagonal? */
static bool uses_structure(enum op op)
{
    return op == OP_matmul || op == OP_solve || op == OP_inv || op == OP_det || op == OP_logdet;
}

duet_expr make_operator(enum op op, const char *function, int arity, const duet_expr e[], const int32_t *attr,
                        const char *site)
{
    arena *a = arena_mine();
    duet_expr made;
    if (unlikely(!a)) return no_room(DUET_NO_MEMORY);
    if (uses_structure(op) && make_structured(op, function, arity, e, attr, site, &made)) return made;
    node *x[3] = { 0 };
    node rule = { 0 };
    duet_dtype settled = DUET_DTYPE_COUNT;
    duet_status s = operands(a, op, arity, e, x);
    if (s == DUET_OK && !(op_infos[op].flags & OP_ANY_TYPES)) s = settle_type(op, arity, x, &settled);
    else if (s == DUET_OK) s = check_free_types(op, arity, x);
    if (s == DUET_OK && op_infos[op].kind == KIND_REDUCE) s = rule_reduce(op, x[0], x[1], attr, &rule);
    else if (s == DUET_OK) s = rule_def(op, x, attr, &rule);
    if (s != DUET_OK) return call_failed(a, function, arity, x, s, site);
    const duet_dtype type = result_type(op, settled, &rule);
    const uint32_t weak = is_number(op, x) ? KIND(0, 0, 0, NODE_WEAK) : 0;
    node *n = push_operator(a, kind_of(op, type, rule.rank) | weak, arity, x, site);
    if (!n) return call_failed(a, function, arity, x, DUET_ARENA_FULL, site);
    memcpy(n->size, rule.size, sizeof n->size);
    n->attr = rule.attr;
    words_put(a, n, NULL);
    return handle_of(n);
}

static duet_expr reduce_along(enum op op, const char *function, int arity, const duet_expr e[],
                              enum reduce_how how, int count, const int *axis, const char *site)
{
    const int most = REDUCE_GIVEN - REDUCE_AXES;
    int32_t given[REDUCE_GIVEN] = { how, count < most ? count : most };
    if (count > 0 && !axis) given[REDUCE_COUNT] = -1;
    for (int k = 0; k < given[REDUCE_COUNT]; k++) given[REDUCE_AXES + k] = axis[k];
    return make_operator(op, function, arity, e, given, site);
}

/* One form of a reduction of x, or of x and y. OPTIONS_ declares the further parameters, PASS_ passes them
 * on. */
#define OPTIONS_ALL
#define OPTIONS_AXIS , int axis
#define OPTIONS_AXES , int count, const int *axis
#define PASS_ALL
#define PASS_AXIS         , axis
#define PASS_AXES         , count, axis
#define LIST_ALL          0, NULL
#define LIST_AXIS         1, &axis
#define LIST_AXES         count, axis
#define BEHIND_DUET(name) (&#name[sizeof "duet_" - 1])
#define FORM1(row, name, how, axes)                                                                          \
    duet_expr(name##_at)(duet_expr x OPTIONS_##axes, const char *site)                                       \
    {                                                                                                        \
        return reduce_along(OP_##row, BEHIND_DUET(name), 1, &x, how, LIST_##axes, site);                     \
    }                                                                                                        \
    duet_expr(name)(duet_expr x OPTIONS_##axes) { return name##_at(x PASS_##axes, NULL); }
#define FORM2(row, name, how, axes)                                                                          \
    duet_expr(name##_at)(duet_expr x, duet_expr y OPTIONS_##axes, const char *site)                          \
    {                                                                                                        \
        return reduce_along(OP_##row, BEHIND_DUET(name), 2, (duet_expr[]){ x, y }, how, LIST_##axes, site);  \
    }                                                                                                        \
    duet_expr(name)(duet_expr x, duet_expr y OPTIONS_##axes) { return name##_at(x, y PASS_##axes, NULL); }
#define FORMS(form, name)                                                                                    \
    form(name, duet_##name, REDUCE_ALL, ALL) form(name, duet_##name##_axis, REDUCE_AXIS, AXIS)               \
        form(name, duet_##name##_keep, REDUCE_KEEP, AXIS)

#define DUET_FOLD1(name, ...)                                                                                \
    FORMS(FORM1, name)                                                                                       \
    FORM1(name, duet_##name##_axes, REDUCE_AXIS, AXES) FORM1(name, duet_##name##_axes_keep, REDUCE_KEEP, AXES)
#define DUET_FOLD2(name, ...)                                                                                \
    FORMS(FORM2, name)                                                                                       \
    FORM2(name, duet_##name##_axes, REDUCE_AXIS, AXES) FORM2(name, duet_##name##_axes_keep, REDUCE_KEEP, AXES)
#define DUET_MOMENT1           DUET_FOLD1
#define DUET_PLACE1(name, ...) FORMS(FORM1, name)

#define GIVE_plain
#define GIVE_type             , type
#define GIVE_pool_grad        , options
#define GIVE_scale            , options
#define GIVE_conv1            , options
#define GIVE_pool1            , options
#define GIVE_pool1_grad       , options
#define GIVE_scale1           , options
#define GIVE_conv1_grad       , options
#define GIVE_conv1_transposed , options
#define GIVE_conv3            , options
#define GIVE_pool3            , options
#define GIVE_pool3_grad       , options
#define GIVE_scale3           , options
#define GIVE_conv3_grad       , options
#define GIVE_conv3_transposed , options
#define GIVE_axis             , axis
#define GIVE_classes          , n, type
#define GIVE_top              , k, axis
#define GIVE_bins             , low, high, n
#define GIVE_conv             , options
#define GIVE_pool             , options
#define GIVE_conv_grad        , options
#define GIVE_conv_transposed  , options
#define GIVE_fourier          , options
#define GIVE_overlap          , overlap
#define GIVE_sizes            , rank, size
#define GIVE_order            , rank, order
#define GIVE_range            , axis, start, stop, by
#define GIVE_window           , axis, size, stride, dilation
#define GIVE_offset           , offset
#define GIVE_triangle         , options
#define GIVE_solver           , options
#define GIVE_indices          , options
#define GIVE_csr              , columns, transposed
#define GIVE_turned           , transposed
#define ATTRS_GIVEN(kind)                                                                                    \
    options ? (const int32_t *)options : (int32_t[OPTIONS_##kind]) { 0 }
#define POOL_GIVEN(kind)                                                                                     \
    options ? (const int32_t *)options : (int32_t[sizeof(duet_##kind) / sizeof(int32_t)]) { 0 }
#define ATTRS_conv             ATTRS_GIVEN(conv)
#define ATTRS_conv_grad        ATTRS_GIVEN(conv_grad)
#define ATTRS_conv_transposed  ATTRS_GIVEN(conv_transposed)
#define ATTRS_pool             POOL_GIVEN(pool)
#define ATTRS_pool_grad        ATTRS_GIVEN(pool_grad)
#define ATTRS_scale            ATTRS_GIVEN(scale)
#define ATTRS_conv1            ATTRS_GIVEN(conv1)
#define ATTRS_pool1            POOL_GIVEN(pool1)
#define ATTRS_pool1_grad       ATTRS_GIVEN(pool1_grad)
#define ATTRS_scale1           ATTRS_GIVEN(scale1)
#define ATTRS_conv1_grad       ATTRS_GIVEN(conv1_grad)
#define ATTRS_conv1_transposed ATTRS_GIVEN(conv1_transposed)
#define ATTRS_conv3            ATTRS_GIVEN(conv3)
#define ATTRS_pool3            POOL_GIVEN(pool3)
#define ATTRS_pool3_grad       ATTRS_GIVEN(pool3_grad)
#define ATTRS_scale3           ATTRS_GIVEN(scale3)
#define ATTRS_conv3_grad       ATTRS_GIVEN(conv3_grad)
#define ATTRS_conv3_transposed ATTRS_GIVEN(conv3_transposed)
#define ATTRS_plain            NULL
#define ATTRS_axis                                                                                           \
    (int32_t[1]) { axis }
#define ATTRS_type                                                                                           \
    (int32_t[1]) { (int32_t) type }
#define ATTRS_classes                                                                                        \
    (int32_t[2]) { n, (int32_t)type }
#define ATTRS_top                                                                                            \
    (const int32_t *)&(const index_attributes) { axis, k, 0 }
#define ATTRS_bins                                                                                           \
    (const int32_t *)&(const struct bins) { low, high, n }
#define ATTRS_fourier                                                                                        \
    options ? (const int32_t *)options : (int32_t[sizeof(duet_fourier) / sizeof(int32_t)]) { 0 }
#define ATTRS_overlap                                                                                        \
    (int32_t[1]) { (int32_t) overlap }
#define ATTRS_sizes                                                                                          \
    (const int32_t *)&(const sizes_given) { rank, size, NULL }
#define ATTRS_order                                                                                          \
    (const int32_t *)&(const order_given) { rank, order }
#define ATTRS_range                                                                                          \
    (const int32_t *)&(const range_given) { axis, start, stop, by }
#define ATTRS_window                                                                                         \
    (const int32_t *)&(const window_given) { axis, size, stride, dilation }
#define ATTRS_offset                                                                                         \
    (const int32_t *)&(const int64_t) { offset }
#define ATTRS_triangle ATTRS_GIVEN(triangle)
#define ATTRS_solver   ATTRS_GIVEN(solver)
#define ATTRS_indices  einsum_read(options, &(einsum_attributes){ { 0 } })
#define ATTRS_csr                                                                                            \
    (const int32_t *)&(const struct csr) { columns, transposed }
#define ATTRS_turned                                                                                         \
    (const int32_t[1]) { transposed }
struct csr {
    int64_t columns;
    int32_t transposed;
};
struct bins {
    double low, high;
    int32_t n;
};
#define IN_ORDER(kind)                                                                                       \
    _Static_assert(sizeof(duet_##kind) == OPTIONS_##kind * sizeof(int32_t), "options are attributes in "     \
                                                                            "order")
IN_ORDER(conv);
IN_ORDER(conv_grad);
IN_ORDER(conv_transposed);
IN_ORDER(pool_grad);
IN_ORDER(scale);
IN_ORDER(conv1);
IN_ORDER(pool1_grad);
IN_ORDER(scale1);
IN_ORDER(conv1_grad);
IN_ORDER(conv1_transposed);
IN_ORDER(conv3);
IN_ORDER(pool3_grad);
IN_ORDER(scale3);
IN_ORDER(conv3_grad);
IN_ORDER(conv3_transposed);

/* Makes an operator with options of a kind. Those of some kinds may need several operators. */
#define MAKE_plain(...)            make_operator(__VA_ARGS__)
#define MAKE_type(...)             make_operator(__VA_ARGS__)
#define MAKE_pool_grad(...)        make_operator(__VA_ARGS__)
#define MAKE_scale(...)            make_operator(__VA_ARGS__)
#define MAKE_pool1_grad(...)       make_operator(__VA_ARGS__)
#define MAKE_scale1(...)           make_operator(__VA_ARGS__)
#define MAKE_conv1_grad(...)       make_operator(__VA_ARGS__)
#define MAKE_conv1_transposed(...) make_operator(__VA_ARGS__)
#define MAKE_pool3_grad(...)       make_operator(__VA_ARGS__)
#define MAKE_scale3(...)           make_operator(__VA_ARGS__)
#define MAKE_conv3_grad(...)       make_operator(__VA_ARGS__)
#define MAKE_conv3_transposed(...) make_operator(__VA_ARGS__)
#define MAKE_axis(...)             make_operator(__VA_ARGS__)
#define MAKE_classes(...)          make_operator(__VA_ARGS__)
#define MAKE_top(...)              make_operator(__VA_ARGS__)
#define MAKE_bins(...)             make_operator(__VA_ARGS__)
#define MAKE_conv_grad(...)        make_operator(__VA_ARGS__)
#define MAKE_conv_transposed(...)  make_operator(__VA_ARGS__)
#define MAKE_fourier(...)          make_operator(__VA_ARGS__)
#define MAKE_overlap(...)          make_operator(__VA_ARGS__)
#define MAKE_sizes(...)            make_operator(__VA_ARGS__)
#define MAKE_order(...)            make_operator(__VA_ARGS__)
#define MAKE_range(...)            make_operator(__VA_ARGS__)
#define MAKE_window(...)           make_operator(__VA_ARGS__)
#define MAKE_offset(...)           make_operator(__VA_ARGS__)
#define MAKE_triangle(...)         make_operator(__VA_ARGS__)
#define MAKE_solver(...)           make_operator(__VA_ARGS__)
#define MAKE_csr(...)              make_operator(__VA_ARGS__)
#define MAKE_turned(...)           make_operator(__VA_ARGS__)
#define MAKE_pool1(...)            make_pooling(1, __VA_ARGS__)
#define MAKE_pool(...)             make_pooling(2, __VA_ARGS__)
#define MAKE_pool3(...)            make_pooling(3, __VA_ARGS__)
#define MAKE_conv1(...)            make_convolution(1, __VA_ARGS__)
#define MAKE_conv(...)             make_convolution(2, __VA_ARGS__)
#define MAKE_conv3(...)            make_convolution(3, __VA_ARGS__)
#define MAKE_indices(...)          make_einsum(options, __VA_ARGS__)

#define DUET_DEF1(name, options_, ...)                                                                       \
    duet_expr(duet_##name##_at)(duet_expr x DUET_OPTIONS_##options_, const char *site)                       \
    {                                                                                                        \
        return MAKE_##options_(OP_##name, #name, 1, (duet_expr[]){ x }, ATTRS_##options_, site);             \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x DUET_OPTIONS_##options_)                                              \
    {                                                                                                        \
        return duet_##name##_at(x GIVE_##options_, NULL);                                                    \
    }
#define DUET_DEF2(name, options_, ...)                                                                       \
    duet_expr(duet_##name##_at)(duet_expr x, duet_expr y DUET_OPTIONS_##options_, const char *site)          \
    {                                                                                                        \
        return MAKE_##options_(OP_##name, #name, 2, (duet_expr[]){ x, y }, ATTRS_##options_, site);          \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x, duet_expr y DUET_OPTIONS_##options_)                                 \
    {                                                                                                        \
        return duet_##name##_at(x, y GIVE_##options_, NULL);                                                 \
    }
#define DUET_CALL1 DUET_DEF1
#define DUET_CALL2 DUET_DEF2
#define DUET_CALL3(name, options_, ...)                                                                      \
    duet_expr(duet_##name##_at)(duet_expr x, duet_expr y, duet_expr z DUET_OPTIONS_##options_,               \
                                const char *site)                                                            \
    {                                                                                                        \
        return MAKE_##options_(OP_##name, #name, 3, (duet_expr[]){ x, y, z }, ATTRS_##options_, site);       \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x, duet_expr y, duet_expr z DUET_OPTIONS_##options_)                    \
    {                                                                                                        \
        return duet_##name##_at(x, y, z GIVE_##options_, NULL);                                              \
    }
#include <duet/ops.def>
