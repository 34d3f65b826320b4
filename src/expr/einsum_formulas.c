/* einsum_formulas.c - einsum of any number of operands and any text, made of diagonals, sums, element-wise
 * products and matrix products. Operands are multiplied from left to right. */
#include "call_text.h"
#include "dtype.h"
#include "einsum.h"
#include "general_options.h"
#include "min_max.h"
#include "operands.h"
#include "status.h"
#include "view_formulas.h"
#include <string.h>
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

/* ---- the text. A label is a letter, or an axis of "...", counted from the last one ---- */

enum { LETTERS = 52, LABELS = LETTERS + DUET_RANK_MAX, MOST_OPERANDS = 16, GROUP_MAX = 2 * DUET_RANK_MAX };

typedef struct group {
    int count, dots; /* labels; the position of "..." among them, or -1 */
    int label[GROUP_MAX];
} group;

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Capitals come first, as in alphabetical order. */
static int label_of(char c) { return c >= 'a' ? c - 'a' + 26 : c - 'A'; }
static char letter_of(int label) { return (char)(label < 26 ? 'A' + label : 'a' + label - 26); }

static duet_status bad_text(const char *why)
{
    return fail(DUET_BAD_ARGUMENT, "the indices must have the form \"ij,jk->ik\": %s", why);
}

/* Reads a group up to a comma, an arrow or the end. */
static duet_status read_group(const char **text, group *g)
{
    const char *p = *text;
    *g = (group){ .dots = -1 };
    for (; *p && *p != ',' && *p != '-'; p++) {
        if (*p == ' ') continue;
        if (!strncmp(p, "...", 3)) {
            if (g->dots >= 0) return bad_text("a group has at most one \"...\"");
            g->dots = g->count;
            p += 2;
        } else if (!is_letter(*p)) return bad_text("a group has letters and \"...\" only");
        else if (g->count == GROUP_MAX) return bad_text("a group has too many letters");
        else g->label[g->count++] = label_of(*p);
    }
    *text = p;
    return DUET_OK;
}

typedef struct formula_text {
    group in[MOST_OPERANDS], out;
    bool has_out;
} formula_text;

static duet_status read_text(const char *text, int count, formula_text *f)
{
    if (!text) return bad_text("the text is NULL");
    for (int k = 0; k < count; k++) {
        TRY(read_group(&text, &f->in[k]));
        if (k < count - 1 && *text++ != ',') return bad_text("there must be a group for each operand");
    }
    if (*text == ',') return bad_text("there are more groups than operands");
    f->has_out = *text == '-';
    if (!f->has_out) return DUET_OK;
    if (text[1] != '>') return bad_text("\"->\" must come before the result");
    text += 2;
    TRY(read_group(&text, &f->out));
    return *text ? bad_text("nothing may follow the group of the result") : DUET_OK;
}

/* ---- operands ---- */

/* A formula, and the label of each axis. */
typedef struct term {
    duet_expr x;
    int rank, label[DUET_RANK_MAX];
} term;

typedef struct sizes_of_labels {
    int64_t size[LABELS]; /* -1: not in the text */
    int dots;             /* the axes of "...", of all operands */
} sizes_of_labels;

static duet_status set_size(sizes_of_labels *l, int label, int64_t size)
{
    int64_t *is = &l->size[label];
    if (*is < 0 || *is == 1) *is = size;
    if (*is == size || size == 1) return DUET_OK;
    if (label >= LETTERS)
        return fail(DUET_BAD_SHAPE, "the axes of \"...\" do not broadcast: sizes %lld and %lld",
                    (long long)*is, (long long)size);
    return fail(DUET_BAD_SHAPE, "index %c must have one size in all operands, not %lld and %lld",
                letter_of(label), (long long)*is, (long long)size);
}

/* The labels of the axes of operand k. */
static duet_status label_axes(const group *g, int k, duet_expr x, term *t, sizes_of_labels *l)
{
    const int rank = duet_expr_rank(x), dots = g->dots < 0 ? 0 : rank - g->count;
    *t = (term){ .x = x, .rank = rank };
    if (dots < 0 || g->count + dots != rank)
        return fail(DUET_BAD_SHAPE, "the indices name %d %s of operand %d, which has %d", g->count,
                    axes_word(g->count), k, rank);
    for (int a = 0, from = 0; a < rank; a++) {
        const bool is_dot = g->dots >= 0 && a >= g->dots && a < g->dots + dots;
        t->label[a] = is_dot ? LETTERS + (g->dots + dots - 1 - a) : g->label[from++];
        TRY(set_size(l, t->label[a], duet_expr_size(x, a)));
    }
    l->dots = (int)larger(l->dots, dots);
    return DUET_OK;
}

static int times_in(const formula_text *f, int count, int label)
{
    int n = 0;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < f->in[k].count; i++) n += f->in[k].label[i] == label;
    return n;
}

/* The labels of the result. Without "->", the axes of "..." and the letters that occur once. */
static duet_status label_result(const formula_text *f, int count, const sizes_of_labels *l, term *out)
{
    group g = f->out;
    if (!f->has_out) {
        g = (group){ .dots = 0 };
        for (int label = 0; label < LETTERS; label++)
            if (times_in(f, count, label) == 1 && g.count < GROUP_MAX) g.label[g.count++] = label;
    }
    if (g.dots < 0 && l->dots > 0)
        return bad_text("the axes of \"...\" are not summed over, so the result must have \"...\", too");
    const int dots = g.dots < 0 ? 0 : l->dots;
    *out = (term){ .rank = g.count + dots };
    if (out->rank > DUET_RANK_MAX)
        return fail(DUET_BAD_SHAPE, "the result would have %d axes, more than %d", out->rank, DUET_RANK_MAX);
    for (int a = 0, from = 0; a < out->rank; a++) {
        const bool is_dot = g.dots >= 0 && a >= g.dots && a < g.dots + dots;
        out->label[a] = is_dot ? LETTERS + (g.dots + dots - 1 - a) : g.label[from++];
        if (l->size[out->label[a]] < 0)
            return bad_text("a letter of the result must be in a group of an operand");
        for (int b = 0; b < a; b++)
            if (out->label[b] == out->label[a])
                return bad_text("a letter must not occur twice in the result");
    }
    return DUET_OK;
}

static int axis_of(const term *t, int label)
{
    for (int a = 0; a < t->rank; a++)
        if (t->label[a] == label) return a;
    return -1;
}

static void remove_axis(term *t, int axis)
{
    t->rank--;
    memmove(t->label + axis, t->label + axis + 1, sizeof t->label[0] * (size_t)(t->rank - axis));
}

/* ---- one operand ---- */

/* The axes p < q, which have the same label, become their diagonal, the last axis. */
static duet_status take_diagonal(term *t, int p, int q, const char *site)
{
    const int64_t n = duet_expr_size(t->x, p), m = duet_expr_size(t->x, q);
    const int label = t->label[p];
    if (n != m)
        return fail(DUET_BAD_SHAPE, "index %c has sizes %lld and %lld in one operand", letter_of(label),
                    (long long)n, (long long)m);
    t->x = duet_moveaxis(duet_moveaxis(t->x, q, 0), p + 1, 0);
    t->x = duet_diagonal_of(t->x, 0);
    remove_axis(t, q);
    remove_axis(t, p);
    t->label[t->rank++] = label;
    return DUET_OK;
}

static duet_status take_diagonals(term *t, const char *site)
{
    for (int q = 1; q < t->rank; q++)
        for (int p = 0; p < q; p++)
            if (t->label[p] == t->label[q]) {
                TRY(take_diagonal(t, p, q, site));
                q = 0;
                break;
            }
    return DUET_OK;
}

/* Axes of size 1 where the label has another size are not needed: the product broadcasts. */
static void drop_broadcast(term *t, const sizes_of_labels *l, const char *site)
{
    for (int a = t->rank - 1; a >= 0; a--)
        if (duet_expr_size(t->x, a) == 1 && l->size[t->label[a]] != 1) {
            t->x = duet_squeeze(t->x, a);
            remove_axis(t, a);
        }
}

/* Sums over the axes of which no other operand and the result need the label. */
static void sum_alone(term *t, const bool needed[LABELS], const char *site)
{
    int axis[DUET_RANK_MAX], count = 0;
    const duet_dtype type = duet_expr_type(t->x);
    for (int a = t->rank - 1; a >= 0; a--)
        if (!needed[t->label[a]]) {
            axis[count++] = a;
            remove_axis(t, a);
        }
    if (!count) return;
    t->x = type == DUET_BOOL ? duet_any_axes_at(t->x, count, axis, site)
                             : in_type(duet_sum_axes_at(t->x, count, axis, site), type, site);
}

/* ---- products ---- */

/* x with its axes in the order of a list of labels; labels that it lacks get an axis of size 1. */
static duet_expr arranged(const term *t, const int *label, int count, const char *site)
{
    int order[DUET_RANK_MAX], n = 0;
    shape s = { .rank = count };
    bool moves = false;
    for (int i = 0; i < count; i++) {
        const int axis = axis_of(t, label[i]);
        s.size[i] = axis < 0 ? 1 : duet_expr_size(t->x, axis);
        if (axis < 0) continue;
        moves |= axis != n;
        order[n++] = axis;
    }
    const duet_expr x = moves ? duet_permute_at(t->x, n, order, site) : t->x;
    return n == count ? x : duet_reshape_at(x, s.rank, s.size, site);
}

static duet_expr product(duet_expr a, duet_expr b, const char *site)
{
    const bool bools = duet_expr_type(a) == DUET_BOOL && duet_expr_type(b) == DUET_BOOL;
    return bools ? duet_logical_and(a, b) : duet_mul(a, b);
}

/* The labels of two operands by their roles in a product: of both and of the result; of the first operand
 * only; of the second only; of both, but not needed any more. */
typedef struct roles {
    int both[DUET_RANK_MAX], left[DUET_RANK_MAX], right[DUET_RANK_MAX], inner[DUET_RANK_MAX];
    int boths, lefts, rights, inners;
} roles;

static roles roles_of(const term *a, const term *b, const bool needed[LABELS])
{
    roles r = { .boths = 0 };
    for (int i = 0; i < a->rank; i++) {
        const int label = a->label[i];
        if (axis_of(b, label) < 0) r.left[r.lefts++] = label;
        else if (needed[label]) r.both[r.boths++] = label;
        else r.inner[r.inners++] = label;
    }
    for (int i = 0; i < b->rank; i++)
        if (axis_of(a, b->label[i]) < 0) r.right[r.rights++] = b->label[i];
    return r;
}

static int put_labels(int *to, int count, const int *from, int n)
{
    memcpy(to + count, from, sizeof *from * (size_t)n);
    return count + n;
}

/* An operand as a stack of matrices: the axes of `both` stay, the others become two. */
static duet_expr as_matrices(const term *t, const roles *r, const int *rows, int n_rows, const int *columns,
                             int n_columns, const char *site)
{
    int list[2 * DUET_RANK_MAX], count = put_labels(list, 0, r->both, r->boths);
    shape s = { .rank = r->boths + 2 };
    count = put_labels(list, count, rows, n_rows);
    count = put_labels(list, count, columns, n_columns);
    const duet_expr x = arranged(t, list, count, site);
    s.size[r->boths] = s.size[r->boths + 1] = 1;
    for (int i = 0; i < count; i++) {
        const int to = i < r->boths ? i : r->boths + (i >= r->boths + n_rows);
        if (i < r->boths) s.size[to] = 1;
        s.size[to] *= duet_expr_size(x, i);
    }
    return n_rows == 1 && n_columns == 1 ? x : duet_reshape_at(x, s.rank, s.size, site);
}

static duet_expr matrix_product(const term *a, const term *b, const roles *r, const char *site)
{
    const duet_expr x = as_matrices(a, r, r->left, r->lefts, r->inner, r->inners, site),
                    y = as_matrices(b, r, r->inner, r->inners, r->right, r->rights, site);
    return duet_matmul(x, y);
}

/* All labels of the result of a product. */
static void labels_of_product(const roles *r, term *out)
{
    int count = put_labels(out->label, 0, r->both, r->boths);
    count = put_labels(out->label, count, r->left, r->lefts);
    out->rank = put_labels(out->label, count, r->right, r->rights);
}

static duet_status check_rank(const roles *r)
{
    const int own = r->boths + r->lefts + r->rights, matrices = r->inners ? r->boths + 2 : 0;
    const int rank = (int)larger(own, matrices);
    if (rank <= DUET_RANK_MAX) return DUET_OK;
    return fail(DUET_UNSUPPORTED, "a product would have %d axes, more than %d", rank, DUET_RANK_MAX);
}

static duet_status multiply(term *a, const term *b, const bool needed[LABELS], const sizes_of_labels *l,
                            const char *site)
{
    const roles r = roles_of(a, b, needed);
    term out = { .rank = 0 };
    TRY(check_rank(&r));
    labels_of_product(&r, &out);
    if (r.inners) {
        shape s = { .rank = out.rank };
        for (int i = 0; i < out.rank; i++) s.size[i] = l->size[out.label[i]];
        out.x = matrix_product(a, b, &r, site);
        if (duet_expr_status(out.x) == DUET_OK && (r.lefts != 1 || r.rights != 1))
            out.x = duet_reshape_at(out.x, s.rank, s.size, site);
    } else
        out.x = product(arranged(a, out.label, out.rank, site), arranged(b, out.label, out.rank, site), site);
    *a = out;
    return DUET_OK;
}

/* ---- all operands ---- */

/* The labels that the result, or an operand from number k on, has. */
static void mark_needed(const term t[], int k, int count, const term *out, bool needed[LABELS])
{
    memset(needed, 0, sizeof(bool[LABELS]));
    for (int a = 0; a < out->rank; a++) needed[out->label[a]] = true;
    for (; k < count; k++)
        for (int a = 0; a < t[k].rank; a++) needed[t[k].label[a]] = true;
}

/* The product with the axes of the result: permuted, and broadcast where no operand has the full size. */
static duet_expr as_result(const term *t, const term *out, const sizes_of_labels *l, const char *site)
{
    const duet_expr x = arranged(t, out->label, out->rank, site);
    shape s = { .rank = out->rank };
    for (int a = 0; a < out->rank; a++) s.size[a] = l->size[out->label[a]];
    const shape is = formula_shape(x);
    return shape_equal(&is, &s) ? x : duet_broadcast_at(x, s.rank, s.size, site);
}

/* The common type of the operands with axes, in which sums are computed, too, also those of one operand alone.
 * DUET_DTYPE_COUNT: there is none. */
static duet_dtype type_of_sums(int count, const duet_expr x[])
{
    duet_dtype type = DUET_DTYPE_COUNT;
    bool any = false;
    for (int k = 0; k < count; k++) {
        if (duet_expr_rank(x[k]) == 0) continue;
        const duet_dtype own = duet_expr_type(x[k]);
        type = any ? dtype_promote(type, own) : own;
        if (type == DUET_DTYPE_COUNT) return type;
        any = true;
    }
    return type;
}

static duet_status einsum(const char *text, int count, const duet_expr x[], duet_expr *made, const char *site)
{
    formula_text f = { .has_out = false };
    term t[MOST_OPERANDS], out;
    sizes_of_labels l = { .dots = 0 };
    bool needed[LABELS];
    const duet_dtype type = type_of_sums(count, x);
    for (int i = 0; i < LABELS; i++) l.size[i] = -1;
    TRY(read_text(text, count, &f));
    for (int k = 0; k < count; k++) {
        TRY(label_axes(&f.in[k], k, x[k], &t[k], &l));
        if (t[k].rank > 0 && type != DUET_DTYPE_COUNT) t[k].x = in_type(t[k].x, type, site);
    }
    TRY(label_result(&f, count, &l, &out));
    for (int k = 0; k < count; k++) {
        TRY(take_diagonals(&t[k], site));
        drop_broadcast(&t[k], &l, site);
    }
    for (int k = 0; k < count; k++) {
        term others[MOST_OPERANDS];
        memcpy(others, t, sizeof others);
        others[k].rank = 0;
        mark_needed(others, 0, count, &out, needed);
        sum_alone(&t[k], needed, site);
    }
    for (int k = 1; k < count; k++) {
        mark_needed(t, k + 1, count, &out, needed);
        TRY(multiply(&t[0], &t[k], needed, &l, site));
    }
    *made = duet_expr_status(t[0].x) == DUET_OK ? as_result(&t[0], &out, &l, site) : t[0].x;
    return DUET_OK;
}

/* The number of letters that both operands have and the result lacks. */
static int summed(const einsum_attributes *e)
{
    int n = 0;
    for (int a = 0, letter; (letter = einsum_letter(e, EINSUM_A, a)); a++)
        n += einsum_axis(e, EINSUM_B, letter) >= 0 && einsum_axis(e, EINSUM_OUT, letter) < 0;
    return n;
}

/* Do the operands have the axes that the text names, with equal sizes? */
static bool fits(const einsum_attributes *e, const duet_expr x[])
{
    if (duet_expr_rank(x[0]) != einsum_rank(e, EINSUM_A) || duet_expr_rank(x[1]) != einsum_rank(e, EINSUM_B))
        return false;
    for (int a = 0, letter; (letter = einsum_letter(e, EINSUM_A, a)); a++) {
        const int b = einsum_axis(e, EINSUM_B, letter);
        if (b >= 0 && duet_expr_size(x[0], a) != duet_expr_size(x[1], b)) return false;
    }
    return true;
}

static duet_expr general_einsum(const char *function, const char *text, int count, const duet_expr x[],
                                const char *site)
{
    duet_expr made = x[0];
    const int named = (int)smaller(count, 3);
    const uint32_t from = nodes_built();
    const duet_status status = einsum(text, count, x, &made, site);
    if (status != DUET_OK) made = bad_operands(function, named, x, status, site);
    else made = composed(function, named, x, not_itself(made, x[0], site), site);
    return alone_if_failed(made, from, count, x);
}

/* Backends have products of two operands with one summed letter. */
duet_expr make_einsum(const char *text, enum op op, const char *function, int arity, const duet_expr e[],
                      const int32_t *words, const char *site)
{
    const einsum_attributes *read = (const einsum_attributes *)words;
    const bool valid = is_valid(e[0]) && is_valid(e[1]), is_read = words[0] != EINSUM_INVALID;
    if (!valid || (is_read && summed(read) <= 1 && fits(read, e)))
        return make_operator(op, function, arity, e, words, site);
    return general_einsum(function, text, 2, e, site);
}

static duet_status check_count(int count, const duet_expr *x)
{
    if (x && count >= 1 && count <= MOST_OPERANDS) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "there must be 1 to %d operands, not %d", MOST_OPERANDS, count);
}

duet_expr(duet_einsum_list_at)(int count, const duet_expr *x, const char *indices, const char *site)
{
    const duet_status status = check_count(count, x);
    const int given = x ? (int)larger(count, 0) : 0, named = (int)smaller(given, 3);
    const uint32_t from = nodes_built();
    for (int k = 0; status == DUET_OK && k < count; k++)
        if (!is_valid(x[k])) {
            const duet_expr bad = bad_operands("einsum_list", 1, &x[k], DUET_BAD_ARGUMENT, site);
            return alone_if_failed(bad, from, given, x);
        }
    if (status != DUET_OK)
        return alone_if_failed(bad_operands("einsum_list", named, x, status, site), from, given, x);
    if (count == 2) {
        einsum_attributes e;
        return make_einsum(indices, OP_einsum, "einsum_list", 2, x, einsum_read(indices, &e), site);
    }
    return general_einsum("einsum_list", indices, count, x, site);
}
duet_expr(duet_einsum_list)(int count, const duet_expr *x, const char *indices)
{
    return duet_einsum_list_at(count, x, indices, NULL);
}
