/* test_rows.h - every row of ops.def as tests call it. No operator is named: a new row is tested
 * without further code. */
#ifndef TEST_ROWS_H
#define TEST_ROWS_H

#include "ops.h"
#include <stdbool.h>

typedef duet_expr maker(const duet_expr *x, int axis, const void *options);

/* A row and one way to call it: maps and defs directly, reductions in each form. */
typedef struct row {
    const char *name;
    int op, arity;
    maker *make;
    double domain[6];
    double known[4]; /* operands, then the result; for maps */
    double ulp;
} row;

/* All axes of x except one, from the last to the first. Every other axis is given as a negative number. */
typedef struct axes {
    int count, axis[DUET_RANK_MAX];
} axes;
static inline axes axes_but(duet_expr x, int one)
{
    axes l = { 0 };
    const int rank = duet_expr_rank(x);
    for (int a = rank; a-- > 0;)
        if (a != one) l.axis[l.count++] = a % 2 ? a : a - rank;
    return l;
}

#define UNPACK(...) __VA_ARGS__
#define DUET_MAP1(name, ...)                                                                                 \
    static duet_expr make_##name(const duet_expr *x, int a, const void *o) { return (duet_##name)(x[0]); }
#define DUET_MAP2(name, ...)                                                                                 \
    static duet_expr make_##name(const duet_expr *x, int a, const void *o)                                   \
    {                                                                                                        \
        return (duet_##name)(x[0], x[1]);                                                                    \
    }
#define DUET_MAP3(name, ...)                                                                                 \
    static duet_expr make_##name(const duet_expr *x, int a, const void *o)                                   \
    {                                                                                                        \
        return (duet_##name)(x[0], x[1], x[2]);                                                              \
    }
#define DUET_INT1 DUET_MAP1
#define DUET_INT2 DUET_MAP2
#define DUET_PLACE1(name, ...)                                                                               \
    DUET_MAP1(name, )                                                                                        \
    static duet_expr axis_##name(const duet_expr *x, int a, const void *o)                                   \
    {                                                                                                        \
        return (duet_##name##_axis)(x[0], a);                                                                \
    }                                                                                                        \
    static duet_expr keep_##name(const duet_expr *x, int a, const void *o)                                   \
    {                                                                                                        \
        return (duet_##name##_keep)(x[0], a);                                                                \
    }
#define DUET_FOLD1(name, ...)                                                                                \
    DUET_PLACE1(name, )                                                                                      \
    static duet_expr axes_##name(const duet_expr *x, int a, const void *o)                                   \
    {                                                                                                        \
        const axes l = axes_but(x[0], a);                                                                    \
        return (duet_##name##_axes)(x[0], l.count, l.axis);                                                  \
    }                                                                                                        \
    static duet_expr axes_keep_##name(const duet_expr *x, int a, const void *o)                              \
    {                                                                                                        \
        const axes l = axes_but(x[0], a);                                                                    \
        return (duet_##name##_axes_keep)(x[0], l.count, l.axis);                                             \
    }
#define DUET_FOLD2(name, ...)                                                                                \
    DUET_MAP2(name, )                                                                                        \
    static duet_expr axis_##name(const duet_expr *x, int a, const void *o)                                   \
    {                                                                                                        \
        return (duet_##name##_axis)(x[0], x[1], a);                                                          \
    }                                                                                                        \
    static duet_expr keep_##name(const duet_expr *x, int a, const void *o)                                   \
    {                                                                                                        \
        return (duet_##name##_keep)(x[0], x[1], a);                                                          \
    }                                                                                                        \
    static duet_expr axes_##name(const duet_expr *x, int a, const void *o)                                   \
    {                                                                                                        \
        const axes l = axes_but(x[0], a);                                                                    \
        return (duet_##name##_axes)(x[0], x[1], l.count, l.axis);                                            \
    }                                                                                                        \
    static duet_expr axes_keep_##name(const duet_expr *x, int a, const void *o)                              \
    {                                                                                                        \
        const axes l = axes_but(x[0], a);                                                                    \
        return (duet_##name##_axes_keep)(x[0], x[1], l.count, l.axis);                                       \
    }
#define DUET_MOMENT1 DUET_FOLD1
#define OPTIONS_plain
#define OPTIONS_conv            , o
#define OPTIONS_pool            , o
#define OPTIONS_pool_grad       , o
#define OPTIONS_scale           , o
#define OPTIONS_conv_grad       , o
#define OPTIONS_conv_transposed , o
#define DUET_DEF1(name, kind, ...)                                                                           \
    static duet_expr make_##name(const duet_expr *x, int a, const void *o)                                   \
    {                                                                                                        \
        return (duet_##name)(x[0] OPTIONS_##kind);                                                           \
    }
#define DUET_DEF2(name, kind, ...)                                                                           \
    static duet_expr make_##name(const duet_expr *x, int a, const void *o)                                   \
    {                                                                                                        \
        return (duet_##name)(x[0], x[1] OPTIONS_##kind);                                                     \
    }
#include <duet/ops.def>

static const row maps[] = {
#define MAP_ROW(name, arity, domain, known, ulp)                                                             \
    { #name, OP_##name, arity, make_##name, { UNPACK domain }, { UNPACK known }, ulp },
#define DUET_MAP1(name, f, o, domain, ulp, flags, known, doc) MAP_ROW(name, 1, domain, known, ulp)
#define DUET_MAP2(name, f, o, domain, ulp, flags, known, doc) MAP_ROW(name, 2, domain, known, ulp)
#define DUET_MAP3(name, f, o, domain, ulp, flags, known, doc) MAP_ROW(name, 3, domain, known, ulp)
#include <duet/ops.def>
};
static const row integer_maps[] = {
#define DUET_INT1(name, f, o, domain, flags, known, doc) MAP_ROW(name, 1, domain, known, 0)
#define DUET_INT2(name, f, o, domain, flags, known, doc) MAP_ROW(name, 2, domain, known, 0)
#include <duet/ops.def>
};
static const row reductions[] = {
#define REDUCE_ROW(name, arity, how) { #how " " #name, OP_##name, arity, how##_##name, { -3, 3, -3, 3 } },
#define ONE_AXIS(name, arity)                                                                                \
    REDUCE_ROW(name, arity, make) REDUCE_ROW(name, arity, axis) REDUCE_ROW(name, arity, keep)
#define FORMS(name, arity)                                                                                   \
    ONE_AXIS(name, arity) REDUCE_ROW(name, arity, axes) REDUCE_ROW(name, arity, axes_keep)
#define DUET_FOLD1(name, ...)  FORMS(name, 1)
#define DUET_FOLD2(name, ...)  FORMS(name, 2)
#define DUET_MOMENT1           DUET_FOLD1
#define DUET_PLACE1(name, ...) ONE_AXIS(name, 1)
#include <duet/ops.def>
};
enum kind {
    KIND_plain,
    KIND_conv,
    KIND_pool,
    KIND_conv_grad,
    KIND_conv_transposed,
    KIND_pool_grad,
    KIND_scale
};
static const struct def {
    row row;
    enum kind kind;
} defs[] = {
#define DEF_ROW(name, arity, kind)                                                                           \
    { { #name, OP_##name, arity, make_##name, { -3, 3, -3, 3 } }, KIND_##kind },
#define DUET_DEF1(name, kind, ...) DEF_ROW(name, 1, kind)
#define DUET_DEF2(name, kind, ...) DEF_ROW(name, 2, kind)
#include <duet/ops.def>
};
#define LENGTH(a) (int)(sizeof(a) / sizeof *(a))

/* Vendor steps are compared within the bound of the oracle; all others must have equal bits
 * everywhere. */
static inline bool is_vendor(int op)
{
    const bool back = op == OP_conv2d_input_grad || op == OP_conv2d_filter_grad || op == OP_conv_transpose2d;
    return op == OP_matmul || op == OP_conv2d || op == OP_convolve2d || back;
}

#endif
