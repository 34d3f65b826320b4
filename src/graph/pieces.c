/* pieces.c - concatenation. Its value is a join: memory that several LOADs, its pieces, write, each at
 * its place. What a piece reads is computed straight into that place.
 *
 * An element-wise operator on a concatenation is computed for each piece by itself, and the results are
 * concatenated. So a formula of concatenations needs no memory for them, and no pass. */
#include "dtype.h"
#include "views.h"

typedef struct piece {
    int source; /* the value that it reads */
    shape size;
    int64_t start[DUET_RANK_MAX]; /* in the join */
} piece;

static bool is_concatenation(const graph *g, int v)
{
    return g->values[v].op == OP_append && value_is_join(g, v);
}

/* The value of type and shape *like that consists of these pieces. */
static int make_join(graph *g, const value *like, const piece *p, int count)
{
    value v = value_init(OP_append, like);
    v.join = g->count + 2 * VALUE_ARGS; /* a number that no other value has: pieces must not be merged */
    v.weak = false;
    v.args = count;
    for (int k = 0; k < count; k++) {
        value of = value_init(OP_LOAD, like);
        of.join = v.join;
        of.rank = (uint8_t)p[k].size.rank;
        memcpy(of.size, p[k].size.size, sizeof of.size);
        memcpy(of.start, p[k].start, sizeof of.start);
        v.arg[k] = load_root(g, p[k].source, &of, LOAD_PIECE);
    }
    const int joined = intern(g, &v);
    for (int k = 0; k < count && !g->failed; k++) g->values[v.arg[k]].join = joined;
    g->values[joined].join = joined;
    return joined;
}

/* Appends x, which begins at `start` along an axis, to the pieces; those of a concatenation one by one.
 * False: there are too many. */
static bool append_pieces(const graph *g, int x, int axis, int64_t start, piece *p, int *count)
{
    const value *u = value_at(g, x);
    if (!is_concatenation(g, x) || u->shared) {
        if (*count == VALUE_ARGS) return false;
        p[*count] = (piece){ .source = x, .size = value_shape(g, x) };
        p[(*count)++].start[axis] = start;
        return true;
    }
    if (*count + u->args > VALUE_ARGS) return false;
    for (int k = 0; k < u->args; k++) {
        const value *w = value_at(g, u->arg[k]);
        p[*count] = (piece){ .source = w->arg[0], .size = value_shape(g, u->arg[k]) };
        memcpy(p[*count].start, w->start, sizeof w->start);
        p[(*count)++].start[axis] += start;
    }
    return true;
}

int concatenate(graph *g, const value *like, int axis, int x, int y)
{
    piece p[VALUE_ARGS] = { { 0 } };
    int count = 0;
    const int64_t first = value_at(g, x)->size[axis];
    x = complex_interleaved(g, x);
    y = complex_interleaved(g, y);
    if (append_pieces(g, x, axis, 0, p, &count) && append_pieces(g, y, axis, first, p, &count))
        return make_join(g, like, p, count);
    count = 0;
    for (int k = 0; k < 2; k++) {
        p[count] = (piece){ .source = k ? y : x, .size = value_shape(g, k ? y : x) };
        p[count++].start[axis] = k ? first : 0;
    }
    return make_join(g, like, p, count);
}

/* ---- operators on concatenations ---- */

/* Returns the operand of v that is a concatenation, has the shape of v, and is used only by v; -1 if no
 * operand is. */
static int joined_operand(const graph *g, const value *v)
{
    for (int k = 0; k < v->args; k++) {
        const value *u = value_at(g, v->arg[k]);
        if (is_concatenation(g, v->arg[k]) && !u->shared && same_sizes(u, v)) return k;
    }
    return -1;
}

/* The part of operand x, which broadcasts to the shape of v, that belongs to a piece. */
static int part_of_operand(graph *g, const value *v, int x, const piece *p)
{
    const value u = copy_of(g, x);
    const int missing = v->rank - u.rank;
    shape s = value_shape(g, x);
    if (u.op == OP_NUMBER || u.weak) return x;
    for (int a = 0; a < u.rank; a++) {
        const int64_t size = p->size.size[a + missing];
        if (s.size[a] == 1 || s.size[a] == size) continue;
        s.size[a] = size;
        const view_change c = {
            .kind = CHANGE_RANGE, .to = s, .axis = a, .start = p->start[a + missing], .step = 1
        };
        x = change_view(g, x, &c);
    }
    return x;
}

int distribute_over_pieces(graph *g, const value *v)
{
    const int k = dtypes[v->type].computed == v->type ? joined_operand(g, v) : -1;
    if (k < 0 || dtypes[g->values[v->arg[k]].type].computed != g->values[v->arg[k]].type) return -1;
    const value of = copy_of(g, v->arg[k]);
    piece p[VALUE_ARGS];
    for (int i = 0; i < of.args; i++) {
        const value w = copy_of(g, of.arg[i]);
        value part = *v;
        p[i] = (piece){ .source = w.arg[0], .size = value_shape(g, of.arg[i]) };
        memcpy(p[i].start, w.start, sizeof w.start);
        memcpy(part.size, w.size, sizeof part.size);
        for (int j = 0; j < v->args; j++)
            part.arg[j] = j == k ? p[i].source : part_of_operand(g, v, v->arg[j], &p[i]);
        p[i].source = make_real(g, &part);
    }
    return make_join(g, v, p, of.args);
}
