/* vector_products.c - products of vectors, made of other operators: vdot, outer and cross. */
#include "call_text.h"
#include "einsum.h"
#include "operands.h"
#include "status.h"

#undef DUET_HERE
#define DUET_HERE site /* the call site of the user */

static bool is_complex(duet_expr x) { return dtype_is_complex(duet_expr_type(x)); }

duet_expr(duet_vdot_at)(duet_expr x, duet_expr y, const char *site)
{
    return composed("vdot", 2, (duet_expr[]){ x, y }, duet_dot(is_complex(x) ? duet_conj(x) : x, y), site);
}
duet_expr(duet_vdot)(duet_expr x, duet_expr y) { return duet_vdot_at(x, y, NULL); }

duet_expr duet_outer_at(duet_expr x, duet_expr y, const char *site)
{
    einsum_attributes e;
    return make_operator(OP_einsum, "outer", 2, (duet_expr[]){ x, y }, einsum_read("i,j->ij", &e), site);
}
duet_expr(duet_outer)(duet_expr x, duet_expr y) { return duet_outer_at(x, y, NULL); }

/* ---- cross ---- */

static bool is_of_three(duet_expr x)
{
    return duet_expr_rank(x) > 0 && duet_expr_size(x, duet_expr_rank(x) - 1) == 3;
}

static duet_expr no_cross(duet_expr e, duet_expr f, const char *site)
{
    arena *a = arena_mine();
    if (!a) return no_room(DUET_NO_MEMORY);
    node *x[3] = { 0 };
    duet_status s = operands(a, OP_mul, 2, (duet_expr[]){ e, f }, x);
    if (s == DUET_OK) s = fail(DUET_BAD_SHAPE, "the last axes of x and y must have 3 elements");
    return call_failed(a, "cross", 2, x, s, site);
}

/* The indices 1, 2, 0 (by 1) or 2, 0, 1 (by 2), computed from numbers. */
static duet_expr rotated_indices(int by, const char *site)
{
    const duet_expr first = duet_one_hot(duet_cast(duet_sum(0), DUET_I64), 3, DUET_I64);
    return duet_remainder(duet_add(duet_cumsum(duet_cumsum(first, 0), 0), by), 3);
}

/* x * y, rounded separately, so that the product of parallel vectors is exactly 0. */
static duet_expr product(duet_expr x, duet_expr y, const char *site)
{
    const bool fuses =
        dtype_kind(duet_expr_type(x)) == TYPE_FLOAT && dtype_kind(duet_expr_type(y)) == TYPE_FLOAT;
    if (fuses) return duet_fma(x, y, 0);
    return duet_mul(x, y);
}

duet_expr(duet_cross_at)(duet_expr x, duet_expr y, const char *site)
{
    if (!is_of_three(x) || !is_of_three(y)) return no_cross(x, y, site);
    const duet_expr j = rotated_indices(0, site), k = rotated_indices(1, site);
    const duet_expr ahead = product(duet_take(x, j, -1), duet_take(y, k, -1), site);
    const duet_expr back = product(duet_take(x, k, -1), duet_take(y, j, -1), site);
    return composed("cross", 2, (duet_expr[]){ x, y }, duet_sub(ahead, back), site);
}
duet_expr(duet_cross)(duet_expr x, duet_expr y) { return duet_cross_at(x, y, NULL); }
