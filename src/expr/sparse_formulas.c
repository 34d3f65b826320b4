/* sparse_formulas.c - formulas with a sparse matrix: the rows csr_... of ops.def, whose operands are its
 * values and its pattern. */
#include "call_text.h"
#include "operands.h"
#include "sparse.h"
#include "status.h"
#include "view_formulas.h"
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

/* A failed result. The text is set. */
static duet_expr no_formula(duet_status s, const char *site)
{
    arena *a = arena_mine();
    return a ? failed(a, 0, NULL, s, site) : no_room(DUET_NO_MEMORY);
}

/* Did the formula fail, or is it not one? Then the row reports why. */
static bool is_broken(duet_expr e)
{
    formula f;
    return formula_of(e, "", &f) != DUET_OK;
}

static duet_status wrong(const char *who, const duet_sparse *s, const char *name, duet_expr x,
                         duet_status status, const char *rule)
{
    char own[SPARSE_TEXT], text[SHAPE_TEXT];
    const shape of = formula_shape(x);
    return fail(status, "%s(s: %s, %s: %s): %s", who, sparse_text(own, s), name,
                shape_text(text, duet_expr_type(x), of.rank, of.size), rule);
}

/* x must have the type of s, and `rows` rows, which are those of s or its columns. */
static duet_status check_dense(const char *who, const duet_sparse *s, const char *name, duet_expr x,
                               bool turned)
{
    char rule[160];
    const int64_t rows = turned ? s->rows : s->columns;
    const int rank = duet_expr_rank(x);
    if (duet_expr_type(x) != s->values->at.type)
        snprintf(rule, sizeof rule, "s and %s must have the same element type; convert one with duet_cast",
                 name);
    else if (rank < 1 || rank > 2)
        snprintf(rule, sizeof rule, "%s must have 1 to 2 axes, not %d", name, rank);
    else if (duet_expr_size(x, 0) != rows)
        snprintf(rule, sizeof rule, "%s must have %lld rows, as s has %s, not %lld", name, (long long)rows,
                 turned ? "rows" : "columns", (long long)duet_expr_size(x, 0));
    else return DUET_OK;
    return wrong(who, s, name, x, duet_expr_type(x) == s->values->at.type ? DUET_BAD_SHAPE : DUET_BAD_TYPE,
                 rule);
}

static duet_status check_system(const char *who, const duet_sparse *s, const char *name, duet_expr b,
                                bool turned)
{
    if (s->rows != s->columns) return wrong(who, s, name, b, DUET_BAD_SHAPE, "s must be square");
    return check_dense(who, s, name, b, turned);
}

static duet_status check_sizes(const char *who, const duet_sparse *s, const char *name, duet_expr x,
                               bool turned)
{
    if (duet_expr_rank(x) != 2 || duet_expr_size(x, 0) != s->rows || duet_expr_size(x, 1) != s->columns)
        return wrong(who, s, name, x, DUET_BAD_SHAPE, "x must have the sizes of s");
    if (dtype_is_blas(duet_expr_type(x))) return DUET_OK;
    return wrong(who, s, name, x, DUET_BAD_TYPE,
                 "x must be f32, f64, c64 or c128; convert it with duet_cast");
}

/* Checks what the function `name` with the operand x needs. A formula x that failed passes. */
typedef duet_status check_function(const char *who, const duet_sparse *s, const char *name, duet_expr x,
                                   bool turned);
static duet_status check_call(const char *who, const duet_sparse *s, const char *name, duet_expr x,
                              bool turned, check_function *check)
{
    TRY(sparse_check(who, s));
    return is_broken(x) ? DUET_OK : check(who, s, name, x, turned);
}

/* `made` from s and x, or a failure, which spends x. */
#define WITH_OPERAND(name, operand, turned, check, made)                                                     \
    duet_expr duet_##name##_at(const duet_sparse *s, duet_expr x, const char *site)                          \
    {                                                                                                        \
        const duet_status why = check_call("duet_" #name, s, operand, x, turned, check);                     \
        if (why == DUET_OK) return composed(#name, 1, &x, made, site);                                       \
        const duet_expr e = no_formula(why, site);                                                           \
        formula_spend(x, site);                                                                              \
        return e;                                                                                            \
    }                                                                                                        \
    duet_expr(duet_##name)(const duet_sparse *s, duet_expr x) { return duet_##name##_at(s, x, NULL); }

WITH_OPERAND(sparse_matmul, "x", false, check_dense, duet_csr_matmul(s->values, s->pattern, x, s->columns, 0))
WITH_OPERAND(sparse_transposed_matmul, "x", true, check_dense,
             duet_csr_matmul(s->values, s->pattern, x, s->columns, 1))
WITH_OPERAND(sparse_adjoint_matmul, "x", true, check_dense,
             dtype_is_complex(s->values->at.type)
                 ? duet_csr_matmul(duet_conj(s->values), s->pattern, x, s->columns, 1)
                 : duet_csr_matmul(s->values, s->pattern, x, s->columns, 1))
WITH_OPERAND(sparse_solve, "b", true, check_system, duet_csr_solve(s->values, s->pattern, x, 0))
WITH_OPERAND(sparse_take, "x", false, check_sizes, duet_csr_take(x, s->pattern))

/* ---- other formulas ---- */

static duet_expr spend_two(duet_status why, duet_expr a, duet_expr b, const char *site)
{
    const duet_expr e = no_formula(why, site);
    formula_spend(a, site);
    formula_spend(b, site);
    return e;
}

/* The product must have the sizes of s. Other errors are those of csr_sddmm. */
static duet_status sddmm_fits(const duet_sparse *s, duet_expr a, duet_expr b)
{
    char text[SPARSE_TEXT];
    if (duet_expr_rank(a) != 2 || duet_expr_rank(b) != 2)
        return fail(DUET_BAD_SHAPE, "duet_sparse_sddmm(s: %s): a and b must have 2 axes, not %d and %d",
                    sparse_text(text, s), duet_expr_rank(a), duet_expr_rank(b));
    const int64_t m = duet_expr_size(a, 0), k = duet_expr_size(a, 1), n = duet_expr_size(b, 1);
    if (m == s->rows && n == s->columns && k == duet_expr_size(b, 0)) return DUET_OK;
    return fail(
        DUET_BAD_SHAPE,
        "duet_sparse_sddmm(s: %s): a and b must be %lld x k and k x %lld, not %lld x %lld and %lld x %lld",
        sparse_text(text, s), (long long)s->rows, (long long)s->columns, (long long)m, (long long)k,
        (long long)duet_expr_size(b, 0), (long long)n);
}

duet_expr duet_sparse_sddmm_at(const duet_sparse *s, duet_expr a, duet_expr b, const char *site)
{
    const duet_expr operands[] = { a, b };
    duet_status why = sparse_check("duet_sparse_sddmm", s);
    if (why == DUET_OK && !is_broken(a) && !is_broken(b)) why = sddmm_fits(s, a, b);
    if (why != DUET_OK) return spend_two(why, a, b, site);
    return composed("sparse_sddmm", 2, operands, duet_csr_sddmm(a, s->pattern, duet_transpose(b)), site);
}
duet_expr(duet_sparse_sddmm)(const duet_sparse *s, duet_expr a, duet_expr b)
{
    return duet_sparse_sddmm_at(s, a, b, NULL);
}

duet_expr duet_sparse_to_dense_at(const duet_sparse *s, const char *site)
{
    const duet_status why = sparse_check("duet_sparse_to_dense", s);
    return why == DUET_OK ? duet_csr_dense(s->values, s->pattern, s->columns, 0) : no_formula(why, site);
}
duet_expr(duet_sparse_to_dense)(const duet_sparse *s) { return duet_sparse_to_dense_at(s, NULL); }

static duet_status check_sum_axis(const duet_sparse *s, int axis)
{
    TRY(sparse_check("duet_sparse_sum", s));
    if (axis >= -2 && axis < 2) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "duet_sparse_sum: axis (%d) must be 0 or 1, or -2 or -1", axis);
}

duet_expr duet_sparse_sum_at(const duet_sparse *s, int axis, const char *site)
{
    const duet_status why = check_sum_axis(s, axis);
    if (why != DUET_OK) return no_formula(why, site);
    const bool by_rows = axis == 1 || axis == -1;
    const int64_t n = by_rows ? s->columns : s->rows;
    const duet_expr ones = duet_broadcast(duet_cast(1, s->values->at.type), n);
    return duet_csr_matmul(s->values, s->pattern, ones, s->columns, !by_rows);
}
duet_expr(duet_sparse_sum)(const duet_sparse *s, int axis) { return duet_sparse_sum_at(s, axis, NULL); }

duet_expr duet_sparse_solve_triangular_at(const duet_sparse *s, duet_expr b, const duet_triangle *options,
                                          const char *site)
{
    const duet_status why = check_call("duet_sparse_solve_triangular", s, "b", b, true, check_system);
    if (why != DUET_OK) {
        const duet_expr e = no_formula(why, site);
        formula_spend(b, site);
        return e;
    }
    const duet_expr v = duet_of_matrix(s->values), p = duet_of_matrix(s->pattern);
    return composed("sparse_solve_triangular", 1, &b, duet_csr_solve_triangular_at(v, p, b, options, site),
                    site);
}
duet_expr(duet_sparse_solve_triangular)(const duet_sparse *s, duet_expr b, const duet_triangle *options)
{
    return duet_sparse_solve_triangular_at(s, b, options, NULL);
}
