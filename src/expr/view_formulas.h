/* view_formulas.h - the options of operators that select or arrange elements, as the functions of
 * the API receive them. Private to src/expr. */
#ifndef VIEW_FORMULAS_H
#define VIEW_FORMULAS_H

#include "arena.h"
#include "dtype.h"
#include "index_list.h"

/* Sizes from the user, or the sizes that duet_index selects after it applied the ranges. If they are
 * invalid, `failed` points to the status, and the thread has the text. */
typedef struct sizes_given {
    int rank;
    const int64_t *size;
    const duet_status *failed; /* NULL: none */
} sizes_given;

typedef struct order_given {
    int rank;
    const int *order;
} order_given;

typedef struct range_given {
    int axis;
    int64_t start, stop, step;
} range_given;

typedef struct window_given {
    int axis;
    int64_t size, stride, dilation;
} window_given;

/* v in another type, or v itself if it has that. */
static inline duet_expr in_type(duet_expr v, duet_dtype type, const char *site)
{
    return duet_expr_type(v) == type ? v : duet_cast_at(v, type, site);
}

/* What operators that are made of others share. `function` is the one that the user called. */
shape formula_shape(duet_expr x);

/* An axis of a formula with this shape. Errors: BAD_SHAPE */
duet_status check_axis_of(const shape *s, int *axis);

/* The failure s of an argument, whose text the thread has. If x has failed, that of x. */
duet_expr bad_argument(const char *function, duet_expr x, duet_status s, const char *site);

/* The same for an operator with several operands. The first one that has failed is reported instead. */
duet_expr bad_operands(const char *function, int arity, const duet_expr e[], duet_status s, const char *site);

/* Is x free of failures? */
static inline bool is_valid(duet_expr x) { return duet_expr_status(x) == DUET_OK; }

static inline bool is_complex(duet_expr x) { return dtype_is_complex(duet_expr_type(x)); }

/* statistics.c: integers and bools as f64, in which NumPy computes statistics and linear algebra. */
duet_expr floating(duet_expr x, const char *site);

/* predicates.c: true for each element of x, including NaN. */
duet_expr true_like(duet_expr x, const char *site);

/* `made`, or, if that is the operand x itself, another formula with its elements. The caller of an operator
 * owns its result: a persistent x must not be dropped with it. */
duet_expr not_itself(duet_expr made, duet_expr x, const char *site);

/* The number of nodes of this thread's formulas. */
uint32_t nodes_built(void);

/* Returns `made`. If it has failed, nothing that was built behind the first `from` nodes, and no operand, is
 * left as a formula of its own, which nobody could evaluate or drop. */
duet_expr alone_if_failed(duet_expr made, uint32_t from, int count, const duet_expr e[]);

duet_expr reshaped(const char *function, duet_expr x, const sizes_given *given, const char *site);

/* x with one entry for one axis. */
duet_expr index_axis(const char *function, duet_expr x, int axis, duet_index_entry entry, const char *site);

#endif
