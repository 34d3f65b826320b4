/* masked.c - matrices whose size depends on data: masked, nonzero, unique, unique_axis. The indices of true
 * elements come from a stable sort of bools. Only the number of elements is copied to the host. */
#include "matrix.h"
#include "statement.h"
#include "status.h"
#include "thread.h"
#include "view.h"
#include <string.h>

/* A running call, and the matrices that it has created for itself. */
#define OWNS 32
typedef struct selecting {
    const char *who;
    duet_matrix *own[OWNS];
    int owns;
} selecting;

static duet_matrix *own(selecting *c, duet_matrix *m)
{
    if (m) c->own[c->owns++] = m;
    return m;
}

static duet_matrix *vector(selecting *c, duet_dtype type, int64_t n)
{
    return own(c, (duet_new_shape)(type, 1, &n));
}

static duet_matrix *part(selecting *c, duet_matrix *m, int64_t first, int64_t count)
{
    if (!m) return NULL;
    return own(c, (duet_slice)(m, first, count));
}

/* m = e. m is NULL if it could not be created. */
static duet_status put(const selecting *c, duet_matrix *m, duet_expr e)
{
    if (m && m->count) return statement_part(c->who, m, e);
    formula_spend(e, NULL);
    return m ? DUET_OK : DUET_NO_MEMORY;
}

static duet_expr of(const duet_matrix *m) { return duet_of_matrix(m); }

static shape shape_of(duet_expr x)
{
    shape s = { .rank = duet_expr_rank(x) };
    for (int a = 0; a < s.rank; a++) s.size[a] = duet_expr_size(x, a);
    return s;
}

/* ---- checks ---- */

static duet_status check_now(const char *who)
{
    const thread *t = thread_get();
    if (!t->recording && !t->explaining) return DUET_OK;
    return fail(DUET_UNSUPPORTED,
                "%s: the shape of the result depends on the values of the operands, so the call cannot be "
                "recorded or "
                "explained",
                who);
}

static duet_status check_operand(const char *who, const char *name, duet_expr e)
{
    static const char asked[] = "duet_expr_status: e";
    const duet_status s = duet_expr_status(e);
    if (s == DUET_OK || strncmp(duet_error(), asked, sizeof asked - 1)) return s;
    return fail(s, "%s: %s%s", who, name, duet_error() + sizeof asked - 1);
}

/* Evaluates a formula to a dense matrix, or uses the matrix if it is one already. Spends e. */
static duet_status evaluated(selecting *c, duet_expr e, const duet_matrix **m)
{
    formula f;
    int64_t size[DUET_RANK_MAX];
    TRY(formula_of(e, c->who, &f));
    const node *root = &f.nodes[f.count - 1];
    if (root->op == OP_LEAF && root->matrix->dense) {
        *m = root->matrix;
        return formula_lives(c->who, &f);
    }
    for (int a = 0; a < root->rank; a++) size[a] = root->size[a];
    duet_matrix *made = own(c, (duet_new_shape)((duet_dtype)root->type, root->rank, size));
    *m = made;
    return put(c, made, e);
}

/* A vector of the elements. */
static duet_matrix *flat(selecting *c, const duet_matrix *m)
{
    const layout at = { .type = m->at.type, .rank = 1, .size = { m->count }, .stride = { 1 } };
    return own(c, view_of(m, &at, 0));
}

/* ---- indices of zeros ---- */

static duet_status read_count(const duet_matrix *m, int64_t *n)
{
    const int64_t *p = (duet_read)(m);
    if (!p) return duet_error_status();
    *n = *p;
    return DUET_OK;
}

/* The indices of the zeros of `no`, in order; the size of `where` is their number. */
static duet_status find_zeros(selecting *c, duet_matrix *no, duet_matrix **where)
{
    duet_matrix *count = own(c, (duet_new_shape)(DUET_I64, 0, NULL)), *order = vector(c, DUET_I64, no->count);
    int64_t n = 0;
    TRY(put(c, count, (duet_sum)((duet_logical_not)(of(no)))));
    TRY(put(c, order, (duet_argsort)(of(no), 0)));
    TRY(read_count(count, &n));
    *where = part(c, order, 0, n);
    return *where ? DUET_OK : DUET_NO_MEMORY;
}

/* Complex numbers have no logical_not. */
static duet_expr is_zero(duet_expr e)
{
    const bool is_complex = dtype_kind(duet_expr_type(e)) == TYPE_COMPLEX;
    if (!is_complex) return (duet_logical_not)(e);
    return (duet_equal)(e, duet_of_integer(0));
}

/* Finds the indices of elements that are not 0, in row-major order, and the shape of the formula. */
static duet_status find(selecting *c, duet_expr e, shape *s, duet_matrix **where)
{
    *s = shape_of(e);
    duet_matrix *no = own(c, (duet_new_shape)(DUET_BOOL, s->rank, s->size)), *line;
    TRY(put(c, no, is_zero(e)));
    line = flat(c, no);
    if (!line) return DUET_NO_MEMORY;
    return find_zeros(c, line, where);
}

/* ---- x[mask] ---- */

static duet_status check_mask(const char *who, duet_expr x, duet_expr mask)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    const shape s[2] = { shape_of(x), shape_of(mask) };
    bool fits = s[1].rank <= s[0].rank && s[1].rank > 0;
    for (int k = 0; k < s[1].rank && fits; k++) fits = s[0].size[k] == s[1].size[k];
    if (fits) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s(x: %s, mask: %s): the shape of mask must be that of the first axes of x",
                who, shape_text(a, duet_expr_type(x), s[0].rank, s[0].size),
                shape_text(b, duet_expr_type(mask), s[1].rank, s[1].size));
}

/* m, a dense matrix, with its first `rank` axes as one axis of `count` elements. */
static duet_matrix *lines_of(selecting *c, const duet_matrix *m, int rank, int64_t count)
{
    layout at;
    int64_t size[DUET_RANK_MAX] = { count };
    for (int a = rank; a < m->at.rank; a++) size[a - rank + 1] = m->at.size[a];
    layout_dense(&at, m->at.type, m->at.rank - rank + 1, size);
    return own(c, view_of(m, &at, 0));
}

static duet_status masked(selecting *c, duet_expr x, duet_expr mask, duet_matrix **result)
{
    const duet_matrix *from;
    duet_matrix *where, *lines;
    shape s;
    TRY(check_operand(c->who, "x", x));
    TRY(check_operand(c->who, "mask", mask));
    TRY(check_mask(c->who, x, mask));
    TRY(evaluated(c, x, &from));
    TRY(find(c, mask, &s, &where));
    lines = lines_of(c, from, s.rank, shape_count(&s));
    if (!lines) return DUET_NO_MEMORY;
    layout at = lines->at;
    at.size[0] = where->count;
    *result = (duet_new_shape)(at.type, at.rank, at.size);
    return put(c, *result, (duet_take)(of(lines), of(where), 0));
}

/* ---- nonzero ---- */

/* Converts row-major indices to the index along each axis. */
static duet_status unravel(selecting *c, const shape *s, duet_matrix *where, duet_matrix *to)
{
    int64_t inner = 1;
    for (int a = s->rank; a-- > 0; inner *= s->size[a]) {
        duet_matrix *column = own(c, (duet_column)(to, a));
        const duet_expr q = (duet_floor_divide)(of(where), duet_of_integer(inner));
        TRY(put(c, column, (duet_remainder)(q, duet_of_integer(s->size[a]))));
        c->owns--;
        duet_free(&column);
    }
    return DUET_OK;
}

static duet_status nonzero(selecting *c, duet_expr x, duet_matrix **result)
{
    duet_matrix *where;
    shape s;
    TRY(check_operand(c->who, "x", x));
    TRY(find(c, x, &s, &where));
    *result = (duet_new_shape)(DUET_I64, 2, (const int64_t[]){ where->count, s.rank });
    if (!*result) return DUET_NO_MEMORY;
    if (!where->count) return DUET_OK;
    return unravel(c, &s, where, *result);
}

/* ---- unique ---- */

/* Sorts the elements of line; `order`, if not NULL, receives their indices before sorting. */
static duet_status sort_into(const selecting *c, duet_matrix *sorted, duet_matrix *order,
                             const duet_matrix *line)
{
    if (!order) return put(c, sorted, (duet_sort)(of(line), 0));
    TRY(put(c, order, (duet_argsort)(of(line), 0)));
    return put(c, sorted, (duet_take)(of(line), of(order), 0));
}

/* Computes whether each element of a sorted vector equals the one before it. NaN equals NaN. */
static duet_status mark_repeats(selecting *c, const duet_matrix *sorted, duet_matrix *repeats)
{
    const int64_t n = sorted->count;
    duet_matrix *all = own(c, view_of(sorted, &sorted->at, 0));
    duet_matrix *x = part(c, all, 0, n - 1), *y = part(c, all, 1, n - 1), *to = part(c, repeats, 1, n - 1);
    if (!x || !y) return DUET_NO_MEMORY;
    const duet_expr nan = (duet_logical_and)((duet_not_equal)(of(x), of(x)), (duet_not_equal)(of(y), of(y)));
    return put(c, to, (duet_logical_or)((duet_equal)(of(x), of(y)), nan));
}

/* Computes the differences between consecutive first indices, and from the last one to the end. */
static duet_status count_each(selecting *c, duet_matrix *first, int64_t all, duet_matrix *counts)
{
    const int64_t n = first->count;
    duet_matrix *here = part(c, first, 0, n - 1), *next = part(c, first, 1, n - 1),
                *last = part(c, first, n - 1, 1);
    duet_matrix *to = part(c, counts, 0, n - 1), *end = part(c, counts, n - 1, 1);
    if (!here || !next || !last) return DUET_NO_MEMORY;
    TRY(put(c, to, (duet_sub)(of(next), of(here))));
    return put(c, end, (duet_sub)(duet_of_integer(all), of(last)));
}

/* Computes for each element, at its index before sorting, the index of its value. */
static duet_status number_each(selecting *c, const duet_matrix *repeats, const duet_matrix *order,
                               duet_matrix *inverse)
{
    duet_matrix *to = flat(c, inverse), *groups = vector(c, DUET_I64, repeats->count);
    if (!to || !groups) return DUET_NO_MEMORY;
    const duet_expr begins = (duet_cast)((duet_logical_not)(of(repeats)), DUET_I64);
    TRY(put(c, groups, (duet_sub)((duet_cumsum)(begins, 0), duet_of_integer(1))));
    return put(c, to, (duet_put)(of(groups), of(order), of(groups), 0));
}

/* The distinct elements of a vector: the sorted elements, their indices before sorting (only if asked for),
 * whether each equals the one before it, and the indices of those that do not. */
typedef struct distinct {
    duet_matrix *sorted, *order, *repeats, *first;
} distinct;

static duet_status find_distinct(selecting *c, const duet_matrix *line, bool with_order, distinct *d)
{
    const int64_t n = line->count;
    *d = (distinct){ .sorted = vector(c, line->at.type, n), .repeats = vector(c, DUET_BOOL, n) };
    if (with_order) d->order = vector(c, DUET_I64, n);
    if (!d->sorted || !d->repeats || (with_order && !d->order)) return DUET_NO_MEMORY;
    TRY(sort_into(c, d->sorted, d->order, line));
    if (n > 1) TRY(mark_repeats(c, d->sorted, d->repeats));
    return find_zeros(c, d->repeats, &d->first);
}

/* Computes the counts (result[1]) and the inverse ([2], of a shape). want[i] says whether to compute
 * result[i]. */
static duet_status count_and_number(selecting *c, const distinct *d, const bool want[3], int rank,
                                    const int64_t *size, duet_matrix *result[3])
{
    const int64_t n = d->sorted->count;
    result[1] = want[1] ? (duet_new_shape)(DUET_I64, 1, &d->first->count) : NULL;
    result[2] = want[2] ? (duet_new_shape)(DUET_I64, rank, size) : NULL;
    if ((want[1] && !result[1]) || (want[2] && !result[2])) return DUET_NO_MEMORY;
    if (want[1] && n) TRY(count_each(c, d->first, n, result[1]));
    if (want[2] && n) return number_each(c, d->repeats, d->order, result[2]);
    return DUET_OK;
}

static duet_status check_order(const char *who, duet_expr x)
{
    char text[SHAPE_TEXT];
    if (dtype_kind(duet_expr_type(x)) != TYPE_COMPLEX) return DUET_OK;
    const shape s = shape_of(x);
    return fail(DUET_BAD_TYPE, "%s(x: %s): x must be real, not complex", who,
                shape_text(text, duet_expr_type(x), s.rank, s.size));
}

/* Computes the distinct values of x (result[0]), their counts and the inverse. */
static duet_status unique(selecting *c, duet_expr x, const bool want[3], duet_matrix *result[3])
{
    const duet_matrix *from;
    distinct d;
    TRY(check_operand(c->who, "x", x));
    TRY(check_order(c->who, x));
    TRY(evaluated(c, x, &from));
    duet_matrix *line = flat(c, from);
    if (!line) return DUET_NO_MEMORY;
    TRY(find_distinct(c, line, want[2], &d));
    result[0] = (duet_new_shape)(from->at.type, 1, &d.first->count);
    TRY(put(c, result[0], (duet_take)(of(d.sorted), of(d.first), 0)));
    return count_and_number(c, &d, want, from->at.rank, from->at.size, result);
}

/* ---- unique along an axis ----
 *
 * The parts of x along the axis become columns of a matrix. Each row is replaced by ranks: numbers from 0
 * that have the order of its elements. The ranks of several rows are the digits of one number, which has the
 * order of these rows together; and so on until one row is left, whose order is that of the parts. So the
 * number of statements grows with the logarithm of the size of a part only. */

enum { MOST_DIGITS = 8 };

/* The number of digits from 0 to n - 1 that one i64 holds. */
static int digits_of(int64_t n)
{
    int digits = 1;
    for (int64_t most = n; digits < MOST_DIGITS && most <= INT64_MAX / n; most *= n) digits++;
    return digits;
}

static duet_status check_axis(const char *who, duet_expr x, int *axis)
{
    char text[SHAPE_TEXT];
    const shape s = shape_of(x);
    const int given = *axis;
    if (given < 0) *axis += s.rank;
    if (*axis < 0 || *axis >= s.rank)
        return fail(DUET_BAD_SHAPE, "%s(x: %s): axis %d does not exist; x has %d %s", who,
                    shape_text(text, duet_expr_type(x), s.rank, s.size), given, s.rank, axes_word(s.rank));
    if (s.size[*axis] < 2 || digits_of(s.size[*axis]) > 1) return DUET_OK;
    return fail(DUET_UNSUPPORTED, "%s(x: %s): axis %d must have fewer elements", who,
                shape_text(text, duet_expr_type(x), s.rank, s.size), *axis);
}

/* The numbers from 0 in the order of the elements of each sorted line. Equal elements have equal numbers. */
static duet_expr numbers_of(const duet_matrix *sorted)
{
    const int64_t n = sorted->at.size[1];
    duet_padding first = { .before = { 0, 1 } };
    const duet_expr x = (duet_range)(of(sorted), 1, 0, n - 1, 1), y = (duet_range)(of(sorted), 1, 1, n, 1);
    duet_expr same = (duet_equal)(x, y);
    if (dtype_kind(sorted->at.type) == TYPE_FLOAT)
        same = (duet_logical_or)(same, (duet_logical_and)((duet_isnan)(x), (duet_isnan)(y)));
    const duet_expr steps = (duet_cast)((duet_logical_not)(same), DUET_I64);
    return (duet_cumsum)((duet_pad)(steps, &first), 1);
}

/* Computes the ranks of the elements of each line. */
static duet_status rank_lines(selecting *c, const duet_matrix *lines, duet_matrix *ranks)
{
    const int64_t *size = lines->at.size;
    duet_matrix *order = own(c, (duet_new_shape)(DUET_I64, 2, size)),
                *sorted = own(c, (duet_new_shape)(lines->at.type, 2, size)),
                *numbers = own(c, (duet_new_shape)(DUET_I64, 2, size));
    if (!order || !sorted || !numbers) return DUET_NO_MEMORY;
    TRY(put(c, order, (duet_argsort)(of(lines), 1)));
    TRY(put(c, sorted, (duet_take_along_axis)(of(lines), of(order), 1)));
    TRY(put(c, numbers, numbers_of(sorted)));
    return put(c, ranks, (duet_put_along_axis)(of(numbers), of(order), of(numbers), 1));
}

/* Line k of each group. */
static duet_expr digit_of(const duet_matrix *ranks, const int64_t divided[3], int k)
{
    return (duet_pick)((duet_reshape)(of(ranks), 3, divided), 1, k);
}

/* Replaces groups of lines by one line each, which has the order of the lines together. The last group gets
 * lines of zeros. `lines` is the last matrix of the call's own, before and after. */
static duet_status join_lines(selecting *c, duet_matrix **lines)
{
    const int at = c->owns - 1;
    const int64_t m = (*lines)->at.size[0], n = (*lines)->at.size[1];
    const int digits = (int)(m < digits_of(n) ? m : digits_of(n));
    const int64_t groups = (m + digits - 1) / digits, all[] = { groups * digits, n },
                  divided[] = { groups, digits, n };
    duet_matrix *joined = own(c, (duet_new_shape)(DUET_I64, 2, (const int64_t[]){ groups, n })),
                *ranks = own(c, (duet_new_shape)(DUET_I64, 2, all)), *used = part(c, ranks, 0, m);
    if (!joined || !ranks || !used) return DUET_NO_MEMORY;
    TRY(rank_lines(c, *lines, used));
    duet_expr number = digit_of(ranks, divided, 0);
    for (int k = 1; k < digits; k++)
        number = (duet_add)((duet_mul)(number, duet_of_integer(n)), digit_of(ranks, divided, k));
    TRY(put(c, joined, number));
    while (c->owns > at + 2) duet_free(&c->own[--c->owns]);
    duet_free(&c->own[at]);
    *lines = c->own[at] = joined;
    c->owns = at + 1;
    return DUET_OK;
}

/* A vector with an element for each part of a matrix along an axis. The elements have the order of the
 * parts. */
static duet_status number_parts(selecting *c, const duet_matrix *from, int axis, duet_matrix **line)
{
    const int64_t n = from->at.size[axis];
    if (from->count == 0 || n == 1) {
        *line = vector(c, DUET_I64, n);
        return *line ? DUET_OK : DUET_NO_MEMORY;
    }
    const int64_t size[] = { from->count / n, n };
    duet_matrix *lines = own(c, (duet_new_shape)(from->at.type, 2, size));
    TRY(put(c, lines, (duet_reshape)((duet_moveaxis)(of(from), axis, -1), 2, size)));
    while (lines->at.size[0] > 1) TRY(join_lines(c, &lines));
    *line = flat(c, lines);
    return *line ? DUET_OK : DUET_NO_MEMORY;
}

static duet_status unique_axis(selecting *c, duet_expr x, int axis, const bool want[3],
                               duet_matrix *result[3])
{
    const duet_matrix *from;
    duet_matrix *line;
    distinct d;
    TRY(check_operand(c->who, "x", x));
    TRY(check_order(c->who, x));
    TRY(check_axis(c->who, x, &axis));
    TRY(evaluated(c, x, &from));
    TRY(number_parts(c, from, axis, &line));
    TRY(find_distinct(c, line, true, &d));
    shape s = { .rank = from->at.rank };
    for (int a = 0; a < s.rank; a++) s.size[a] = a == axis ? d.first->count : from->at.size[a];
    result[0] = (duet_new_shape)(from->at.type, s.rank, s.size);
    const duet_expr first = (duet_take)(of(d.order), of(d.first), 0);
    TRY(put(c, result[0], (duet_take)(of(from), first, axis)));
    return count_and_number(c, &d, want, 1, &line->count, result);
}

/* ---- the calls ---- */

static selecting begin(const char *who, const char *site)
{
    thread_get()->site = site;
    return (selecting){ .who = who };
}

/* Frees the call's own matrices, and its results if it failed. */
static duet_matrix *end(selecting *c, duet_status s, duet_matrix *result[3], const char *site)
{
    while (c->owns) duet_free(&c->own[--c->owns]);
    for (int k = 0; k < 3 && s != DUET_OK; k++) duet_free(&result[k]);
    statement_ends(s, site);
    return result[0];
}

duet_matrix *(duet_masked_at)(duet_expr x, duet_expr mask, const char *site)
{
    selecting c = begin("duet_masked", site);
    IN_DEFAULT_FP_ENVIRONMENT;
    duet_matrix *result[3] = { 0 };
    duet_status s = check_now(c.who);
    if (s == DUET_OK) s = masked(&c, x, mask, result);
    formula_spend(x, site);
    formula_spend(mask, site);
    return end(&c, s, result, site);
}
duet_matrix *(duet_masked)(duet_expr x, duet_expr mask) { return duet_masked_at(x, mask, NULL); }

duet_matrix *(duet_nonzero_at)(duet_expr x, const char *site)
{
    selecting c = begin("duet_nonzero", site);
    IN_DEFAULT_FP_ENVIRONMENT;
    duet_matrix *result[3] = { 0 };
    duet_status s = check_now(c.who);
    if (s == DUET_OK) s = nonzero(&c, x, result);
    formula_spend(x, site);
    return end(&c, s, result, site);
}
duet_matrix *(duet_nonzero)(duet_expr x) { return duet_nonzero_at(x, NULL); }

duet_matrix *(duet_unique_at)(duet_expr x, duet_matrix **counts, duet_matrix **inverse, const char *site)
{
    selecting c = begin("duet_unique", site);
    IN_DEFAULT_FP_ENVIRONMENT;
    duet_matrix *result[3] = { 0 };
    duet_status s = check_now(c.who);
    if (s == DUET_OK) s = unique(&c, x, (const bool[3]){ true, counts, inverse }, result);
    formula_spend(x, site);
    duet_matrix *values = end(&c, s, result, site);
    if (counts) *counts = result[1];
    if (inverse) *inverse = result[2];
    return values;
}
duet_matrix *(duet_unique)(duet_expr x, duet_matrix **counts, duet_matrix **inverse)
{
    return duet_unique_at(x, counts, inverse, NULL);
}

duet_matrix *(duet_unique_axis_at)(duet_expr x, int axis, duet_matrix **counts, duet_matrix **inverse,
                                   const char *site)
{
    selecting c = begin("duet_unique_axis", site);
    IN_DEFAULT_FP_ENVIRONMENT;
    duet_matrix *result[3] = { 0 };
    duet_status s = check_now(c.who);
    if (s == DUET_OK) s = unique_axis(&c, x, axis, (const bool[3]){ true, counts, inverse }, result);
    formula_spend(x, site);
    duet_matrix *values = end(&c, s, result, site);
    if (counts) *counts = result[1];
    if (inverse) *inverse = result[2];
    return values;
}
duet_matrix *(duet_unique_axis)(duet_expr x, int axis, duet_matrix **counts, duet_matrix **inverse)
{
    return duet_unique_axis_at(x, axis, counts, inverse, NULL);
}
