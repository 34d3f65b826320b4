/* triangle_formulas.c - operators that place elements in a matrix or a grid, made of others: tril, triu,
 * diag and meshgrid. */
#include "call_text.h"
#include "min_max.h"
#include "status.h"
#include "view_formulas.h"
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

static duet_expr repeated_bool(int value, int64_t n, const char *site)
{
    return duet_broadcast(duet_cast(value, DUET_BOOL), n);
}

/* `before` times `first`, then `after` times the opposite. One count may be 0. */
static duet_expr two_runs(bool first, int64_t before, int64_t after, const char *site)
{
    if (!before) return repeated_bool(!first, after, site);
    if (!after) return repeated_bool(first, before, site);
    return duet_concat(0, repeated_bool(first, before, site), repeated_bool(!first, after, site));
}

/* A rows x columns matrix whose diagonals are constant. Element (i, j) is element
 * i - j + columns - 1 of v, so the matrix is a view of v. */
static duet_expr diagonals(duet_expr v, int64_t columns, const char *site)
{
    return duet_flip(duet_sliding_window(v, 0, columns, 1, 1), 1);
}

/* ---- tril and triu ---- */

/* x where j - i <= k, or, if not `low`, where j - i >= k; else 0. */
static duet_expr triangle(const char *function, duet_expr x, int64_t k, bool low, const char *site)
{
    const shape s = formula_shape(x);
    if (s.rank < 2) {
        const duet_status status = fail(DUET_BAD_SHAPE, "x must have at least 2 axes, not %d", s.rank);
        return bad_argument(function, x, status, site);
    }
    const int64_t rows = s.size[s.rank - 2], columns = s.size[s.rank - 1], all = rows + columns - 1;
    if (!rows || !columns) return not_itself(x, x, site);
    k = clamp(k, -rows, columns);
    const int64_t before = clamp(columns - k - low, 0, all); /* diagonals above the k-th; with it for triu */
    if (before == (low ? 0 : all)) return not_itself(x, x, site);
    const duet_expr is_kept = diagonals(two_runs(!low, before, all - before, site), columns, site);
    return composed(function, 1, &x, duet_where(is_kept, x, 0), site);
}

duet_expr(duet_tril_at)(duet_expr x, int64_t k, const char *site)
{
    return triangle("tril", x, k, true, site);
}
duet_expr(duet_triu_at)(duet_expr x, int64_t k, const char *site)
{
    return triangle("triu", x, k, false, site);
}

/* ---- diag ---- */

/* The n x n matrix with the elements of x on its diagonal. */
static duet_expr diagonal_matrix(duet_expr x, int64_t n, const char *site)
{
    const duet_expr others = repeated_bool(0, n - 1, site),
                    one = duet_concat(0, others, repeated_bool(1, 1, site), others);
    return duet_where(diagonals(one, n, site), x, 0);
}

static duet_status check_diag(const shape *s, int64_t k)
{
    int64_t n;
    if (s->rank != 1 && s->rank != 2) return fail(DUET_BAD_SHAPE, "x must have 1 or 2 axes, not %d", s->rank);
    const bool overflows = k == INT64_MIN || __builtin_add_overflow(s->size[0], k < 0 ? -k : k, &n) ||
                           __builtin_mul_overflow(n, n, &n);
    if (s->rank == 1 && overflows) return fail(DUET_BAD_SHAPE, "the number of elements overflows");
    return DUET_OK;
}

duet_expr(duet_diag_at)(duet_expr x, int64_t k, const char *site)
{
    const shape s = formula_shape(x);
    const duet_status status = check_diag(&s, k);
    if (status != DUET_OK) return bad_argument("diag", x, status, site);
    if (s.rank == 2) return composed("diag", 1, &x, duet_diagonal_of(x, k), site);
    const int64_t n = s.size[0];
    duet_expr square = n > 1 ? diagonal_matrix(x, n, site) : duet_reshape(x, n, n);
    if (k > 0) square = duet_pad(square, .before = { 0, k }, .after = { k, 0 });
    if (k < 0) square = duet_pad(square, .before = { -k, 0 }, .after = { 0, -k });
    return composed("diag", 1, &x, square, site);
}

/* ---- meshgrid ---- */

static duet_status check_grid(const shape *s, int *axis, int rank, const int64_t *size)
{
    if (s->rank != 1) return fail(DUET_BAD_SHAPE, "x must have 1 axis, not %d", s->rank);
    if (rank < 1 || rank > DUET_RANK_MAX || !size)
        return fail(DUET_BAD_ARGUMENT, "the grid must have 1 to %d sizes, not %d", DUET_RANK_MAX, rank);
    const int a = *axis < 0 ? *axis + rank : *axis;
    if (a < 0 || a >= rank)
        return fail(DUET_BAD_SHAPE, "axis %d does not exist; the grid has %d %s", *axis, rank,
                    axes_word(rank));
    if (size[a] != s->size[0])
        return fail(DUET_BAD_SHAPE, "x has %lld elements, and axis %d of the grid has size %lld",
                    (long long)s->size[0], a, (long long)size[a]);
    *axis = a;
    return DUET_OK;
}

duet_expr(duet_meshgrid_at)(duet_expr x, int axis, int rank, const int64_t *size, const char *site)
{
    const shape s = formula_shape(x);
    int64_t own[DUET_RANK_MAX];
    const duet_status status = check_grid(&s, &axis, rank, size);
    if (status != DUET_OK) return bad_argument("meshgrid", x, status, site);
    for (int a = 0; a < rank; a++) own[a] = a == axis ? size[a] : 1;
    const duet_expr line = reshaped("meshgrid", x, &(sizes_given){ rank, own, NULL }, site);
    return formula_called("meshgrid", 1, &x, duet_broadcast_at(line, rank, size, site), site);
}

/* ---- without a source line ---- */

duet_expr(duet_tril)(duet_expr x, int64_t k) { return duet_tril_at(x, k, NULL); }
duet_expr(duet_triu)(duet_expr x, int64_t k) { return duet_triu_at(x, k, NULL); }
duet_expr(duet_diag)(duet_expr x, int64_t k) { return duet_diag_at(x, k, NULL); }
duet_expr(duet_meshgrid)(duet_expr x, int axis, int rank, const int64_t *size)
{
    return duet_meshgrid_at(x, axis, rank, size, NULL);
}
