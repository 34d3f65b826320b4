/* sorting.c - sort and argsort along the split axis of a matrix, for which no rank needs all elements.
 *
 * This is the columnsort of Leighton (Tight bounds on the complexity of parallel sorting, 1985). The
 * exchanges do not depend on the values, so the steps can be recorded. Let P be the number of ranks, and let
 * each rank have R elements, a column of an R x P matrix. R is a multiple of P and at least 2 (P - 1)^2.
 *   1. Each rank sorts its column.
 *   2. The elements of the columns, one column after the other, become rows of P elements.
 *   3. Each rank sorts its column.
 *   4. The inverse of step 2: the elements, row by row, become columns.
 *   5. Each rank sorts its column.
 *   6. The columns move by R / 2: each rank has the second half of a column and the first half of the next
 *      one.
 *   7. Each rank sorts these. All elements are then in order.
 *   8. The elements move to the parts of the result.
 * The last columns are padded with elements that come after all others.
 *
 * The result must be that of a stable sort, so elements are ordered by their values, and equal ones by their
 * indices. In steps 1 and 3, equal elements are in the order of their indices before the step, and a
 * stable sort by values is enough: in step 3 a column has, for each rank in turn, some elements of the
 * sorted column of that rank. In steps 5 and 7 a rank first sorts by indices. So elements move together
 * with their indices. For sort of integers, equal elements cannot be distinguished, and the indices are
 * not needed. */
#include "build.h"
#include "dtype.h"
#include "operator_again.h"
#include "rules.h"
#include "status.h"
#include <math.h>
#include <string.h>

#define FEW_ELEMENTS 65536 /* sorting them on one rank takes less time than the exchanges */

/* R for n elements in all: also a multiple of 2. */
static int64_t column_size(int64_t n, int ranks)
{
    const int64_t each = (n + ranks - 1) / ranks, of = 2 * (int64_t)ranks;
    return (each + of - 1) / of * of;
}

bool sort_rule(planner *p, uint32_t i, spread *s)
{
    const node *n = &p->nodes[i];
    const distribution *d = operand_at(p, i, 0);
    const int axis = n->attr.index.axis, ranks = p->g->ranks;
    if (!is_split(d) || d->axis != axis || other_axis(p, n, 1u << axis) >= 0) return index_axis_rule(p, i, s);
    const int64_t column = column_size(n->size[axis], ranks), others = ranks - 1;
    if (node_count(n) <= FEW_ELEMENTS || column < 2 * others * others) return everywhere(p, i, s);
    int64_t *bounds = bounds_new(p);
    for (int r = 0; bounds && r <= ranks; r++)
        bounds[r] = r * column < n->size[axis] ? r * column : n->size[axis];
    s->how = SORTED;
    s->at = *d;
    s->need[0] = (distribution){ axis, bounds };
    return bounds;
}

/* Elements of this rank, and their indices along the axis: `lines` times `count` of them. */
typedef struct column {
    duet_expr value, index;
} column;

typedef struct sorting {
    builder *b;
    const char *site;
    int64_t lines, n, each; /* n elements in each line, `each` in a column */
    duet_dtype type, index_type;
    bool has_index;
} sorting;

/* ---- local steps ---- */

static duet_expr in_order(const sorting *t, duet_expr x, duet_expr order)
{
    return duet_take_along_axis_at(x, order, 1, t->site);
}

static column sort_column(const sorting *t, column c)
{
    if (!t->has_index) return (column){ duet_sort_at(c.value, 1, t->site), c.index };
    const duet_expr order = duet_argsort_at(c.value, 1, t->site);
    return (column){ in_order(t, c.value, order), in_order(t, c.index, order) };
}

/* Equal elements may be in any order before this. */
static column sort_pairs(const sorting *t, column c)
{
    if (!t->has_index) return sort_column(t, c);
    const duet_expr order = duet_argsort_at(c.index, 1, t->site);
    return sort_column(t, (column){ in_order(t, c.value, order), in_order(t, c.index, order) });
}

/* The first sort, which determines the indices. */
static column sort_first(const sorting *t, duet_expr x)
{
    if (!t->has_index) return sort_column(t, (column){ .value = x });
    const duet_expr order = duet_argsort_at(x, 1, t->site);
    const duet_expr first = duet_of_integer(t->b->c->rank * t->each);
    return (column){ in_order(t, x, order),
                     duet_cast_at(duet_add_at(order, first, t->site), t->index_type, t->site) };
}

/* The largest number of an integer type. */
static uint64_t most(duet_dtype type)
{
    const int bits = 8 * (int)dtypes[type].bytes - (dtype_kind(type) == TYPE_SIGNED);
    return type == DUET_BOOL ? 1 : ~(uint64_t)0 >> (64 - bits);
}

/* Appends elements that no other one comes after, so that the rank has a whole column. */
static duet_expr padded(const sorting *t, duet_expr x, int64_t count)
{
    const int64_t size[] = { t->lines, t->each - count };
    if (!size[1]) return x;
    const bool is_real = dtype_kind(t->type) == TYPE_FLOAT;
    const duet_expr last = is_real ? duet_of_number(NAN) : duet_of_unsigned(most(t->type));
    const duet_expr more = duet_broadcast_at(duet_cast_at(last, t->type, t->site), 2, size, t->site);
    return count ? duet_append_at(x, more, 1, t->site) : more;
}

/* ---- exchanges ---- */

typedef duet_expr exchange(const sorting *t, duet_expr x, duet_dtype type);

static column exchanged(const sorting *t, exchange *of, column c)
{
    c.value = of(t, c.value, t->type);
    if (t->has_index) c.index = of(t, c.index, t->index_type);
    return c;
}

/* Bounds of equal parts. NULL: out of memory */
static int64_t *bounds_of(const sorting *t, int64_t each)
{
    int64_t *bounds = bounds_new(&t->b->own);
    for (int r = 0; bounds && r <= t->b->c->ranks; r++) bounds[r] = r * each;
    return bounds;
}

static duet_expr no_memory(void) { return formula_failed(fail(DUET_NO_MEMORY, "no memory for a formula")); }

/* Moves elements between rows and columns of the R x P matrix of all elements. In step 2, the elements of a
 * rank are rows of it, and each rank receives a column. Step 4 is the inverse. */
static duet_expr turned(const sorting *t, duet_expr x, duet_dtype type, bool to_columns)
{
    const int64_t ranks = t->b->c->ranks, each = t->each;
    const shape whole = { 3, { t->lines, each, ranks } };
    const distribution rows = { 1, bounds_of(t, each / ranks) }, columns = { 2, bounds_of(t, 1) };
    if (!rows.bounds || !columns.bounds) return no_memory();
    const int64_t own_rows[] = { t->lines, each / ranks, ranks }, own_column[] = { t->lines, each, 1 };
    x = duet_reshape_at(x, 3, to_columns ? own_rows : own_column, t->site);
    x = build_collective(t->b, COLLECTIVE_MOVE, x, type, &whole, to_columns ? &rows : &columns,
                         to_columns ? &columns : &rows);
    return duet_reshape_at(x, 2, (int64_t[]){ t->lines, each }, t->site);
}
static duet_expr deal(const sorting *t, duet_expr x, duet_dtype type) { return turned(t, x, type, true); }
static duet_expr collect(const sorting *t, duet_expr x, duet_dtype type) { return turned(t, x, type, false); }

/* The first element of a rank after step 6. */
static int64_t shifted_first(const sorting *t, int rank)
{
    return rank == 0 ? 0 : rank * t->each - (rank < t->b->c->ranks ? t->each / 2 : 0);
}

static duet_expr shift(const sorting *t, duet_expr x, duet_dtype type)
{
    const shape whole = { 2, { t->lines, t->each * t->b->c->ranks } };
    const distribution from = { 1, bounds_of(t, t->each) }, to = { 1, bounds_new(&t->b->own) };
    if (!from.bounds || !to.bounds) return no_memory();
    for (int r = 0; r <= t->b->c->ranks; r++) to.bounds[r] = shifted_first(t, r);
    return build_collective(t->b, COLLECTIVE_MOVE, x, type, &whole, &from, &to);
}

/* Step 7. The first half of the first column and the second half of the last one are in order already. */
static duet_expr sort_shifted(const sorting *t, column c, bool indices)
{
    const int r = t->b->c->rank;
    if (r == 0) return indices ? c.index : c.value;
    column first = c;
    const bool is_last = r == t->b->c->ranks - 1;
    if (is_last) {
        first.value = build_range(t->b, c.value, 1, 0, t->each);
        if (t->has_index) first.index = build_range(t->b, c.index, 1, 0, t->each);
    }
    const column sorted = sort_pairs(t, first);
    const duet_expr all = indices ? c.index : c.value, e = indices ? sorted.index : sorted.value;
    if (!is_last) return e;
    const duet_expr rest = build_range(t->b, all, 1, t->each, t->each + t->each / 2);
    return duet_append_at(e, rest, 1, t->site);
}

/* Step 8, without the elements that were appended. */
static duet_expr to_parts(const sorting *t, duet_expr x, duet_dtype type, const distribution *at)
{
    const shape whole = { 2, { t->lines, t->n } };
    const distribution from = { 1, bounds_new(&t->b->own) }, to = { 1, at->bounds };
    const int rank = t->b->c->rank;
    if (!from.bounds) return no_memory();
    for (int r = 0; r <= t->b->c->ranks; r++)
        from.bounds[r] = shifted_first(t, r) < t->n ? shifted_first(t, r) : t->n;
    x = build_range(t->b, x, 1, 0, from.bounds[rank + 1] - from.bounds[rank]);
    return build_collective(t->b, COLLECTIVE_MOVE, x, type, &whole, &from, &to);
}

/* ---- the node ---- */

/* The axes in an order in which the sorted one is last; their sizes on this rank. */
static int axis_last(const node *n, int order[DUET_RANK_MAX])
{
    const int axis = n->attr.index.axis;
    for (int a = 0; a < n->rank; a++) order[a] = a < axis ? a : a + 1 < n->rank ? a + 1 : axis;
    return axis;
}

static duet_expr as_lines(const sorting *t, const node *n, duet_expr x, int64_t count)
{
    int order[DUET_RANK_MAX];
    if (axis_last(n, order) != n->rank - 1) x = duet_permute_at(x, n->rank, order, t->site);
    return duet_reshape_at(x, 2, (int64_t[]){ t->lines, count }, t->site);
}

static duet_expr from_lines(const sorting *t, const node *n, duet_expr x, int64_t count)
{
    int order[DUET_RANK_MAX], back[DUET_RANK_MAX];
    int64_t size[DUET_RANK_MAX];
    const int axis = axis_last(n, order);
    for (int a = 0; a < n->rank; a++) size[a] = order[a] == axis ? count : n->size[order[a]];
    for (int a = 0; a < n->rank; a++) back[order[a]] = a;
    x = duet_reshape_at(x, n->rank, size, t->site);
    return axis == n->rank - 1 ? x : duet_permute_at(x, n->rank, back, t->site);
}

duet_expr build_sorted(builder *b, uint32_t i, duet_expr x)
{
    const node *n = &b->p->nodes[i];
    const spread *s = &b->p->of[i];
    const int axis = n->attr.index.axis, rank = b->c->rank;
    const bool indices = n->op == OP_argsort;
    const duet_dtype type = (duet_dtype)operand_node(b->p, i, 0)->type;
    sorting t = { .b = b, .site = b->site, .n = n->size[axis], .type = type, .lines = 1 };
    for (int a = 0; a < n->rank; a++) t.lines *= a == axis ? 1 : n->size[a];
    t.each = column_size(t.n, b->c->ranks);
    t.index_type = t.each * b->c->ranks <= INT32_MAX ? DUET_I32 : DUET_I64;
    t.has_index = indices || dtype_kind(type) == TYPE_FLOAT;
    const int64_t count = s->need[0].bounds[rank + 1] - s->need[0].bounds[rank];
    x = as_lines(&t, n, x, count);
    column c = sort_first(&t, padded(&t, x, count));
    c = exchanged(&t, deal, c);
    c = exchanged(&t, collect, sort_column(&t, c));
    c = exchanged(&t, shift, sort_pairs(&t, c));
    duet_expr e = sort_shifted(&t, c, indices);
    e = to_parts(&t, e, indices ? t.index_type : type, &s->at);
    if (indices) e = duet_cast_at(e, DUET_I64, b->site);
    return from_lines(&t, n, e, s->at.bounds[rank + 1] - s->at.bounds[rank]);
}
