/* canonicalize.c - builds the values of a graph and rewrites them to canonical form. Equal values
 * are stored once, numbers come first, and a product that is added becomes an FMA. Every rewrite is
 * exact, except those of operators that libraries compute (fold_gemm.c, fold_fourier.c).
 * build_graph.c reads a formula with these functions; fold_gemm.c moves factors and addends into
 * matrix products. */
#include "canonicalize.h"
#include "dtype.h"
#include <stdlib.h>
#include <string.h>

/* intern() compares a new value with this many of the latest ones. A value that is equal to an
 * older one is computed twice. */
#define SEARCH_WINDOW 256

/* ---- the table of values ---- */

static bool same_value(const value *a, const value *b)
{
    if (a->op != b->op || a->type != b->type || a->rank != b->rank || a->args != b->args) return false;
    if (a->comp != b->comp || a->mem != b->mem || a->join != b->join) return false;
    if (a->leaf != b->leaf || a->number != b->number || a->alpha != b->alpha || a->beta != b->beta)
        return false;
    if (memcmp(a->size, b->size, sizeof a->size[0] * a->rank)) return false;
    if (a->join && memcmp(a->start, b->start, sizeof a->start)) return false;
    return !memcmp(a->arg, b->arg, (size_t)a->args * sizeof *a->arg) &&
           !memcmp(&a->attr, &b->attr, sizeof a->attr);
}

static bool reserve(graph *g)
{
    if (g->count < g->capacity) return true;
    int capacity = g->capacity ? 2 * g->capacity : 32;
    value *more = realloc(g->values, (size_t)capacity * sizeof *more);
    if (!more) {
        g->failed = true;
        return false;
    }
    g->values = more;
    g->capacity = capacity;
    return true;
}

int graph_append(graph *g, const value *v)
{
    if (!reserve(g)) return 0;
    g->values[g->count] = *v;
    return g->count++;
}

int intern(graph *g, const value *given)
{
    value v = *given;
    if (v.comp == COMP_UNSET) v.comp = value_computed_type(g, &v);
    if (v.mem == COMP_UNSET) v.mem = value_memory_type(g, &v);
    for (int i = g->count; i-- > 0 && g->count - i < SEARCH_WINDOW;)
        if (same_value(&g->values[i], &v)) return i;
    return graph_append(g, &v);
}

value value_init(enum op op, const value *like)
{
    value v = { .op = (uint8_t)op, .arg = { -1, -1, -1 }, .leaf = -1, .number = -1, .alpha = -1, .beta = -1 };
    v.comp = v.mem = COMP_UNSET;
    if (like) {
        v.type = like->type;
        v.rank = like->rank;
        v.weak = like->weak;
        memcpy(v.size, like->size, sizeof v.size);
    }
    return v;
}

static int make(graph *g, enum op op, const value *like, int args, int x, int y, int z)
{
    value v = value_init(op, like);
    v.args = args;
    v.arg[0] = x;
    v.arg[1] = y;
    v.arg[2] = z;
    return intern(g, &v);
}

shape value_shape(const graph *g, int v)
{
    shape s = { .rank = g->values[v].rank };
    memcpy(s.size, g->values[v].size, sizeof s.size);
    return s;
}

bool same_sizes(const value *a, const value *b)
{
    return a->rank == b->rank && !memcmp(a->size, b->size, sizeof a->size[0] * a->rank);
}

bool same_shape(const graph *g, int a, int b) { return same_sizes(&g->values[a], &g->values[b]); }

int value_base(const graph *g, int v)
{
    while (is_view(g->values[v].op) || value_is_plane(g, v)) v = g->values[v].arg[0];
    return v;
}

bool value_is_map(const graph *g, int v)
{
    int op = g->values[v].op;
    return op == OP_bias_add || op == OP_LOAD || (op < OPS && op_infos[op].kind == KIND_MAP);
}

/* ---- numbers ---- */

static bool is_number(const graph *g, int v)
{
    return g->values[v].op == OP_NUMBER || g->values[v].op == OP_HOLE_NUMBER;
}
static bool is_class(const graph *g, int v, enum number_class c)
{
    return g->values[v].op == OP_NUMBER && g->values[v].class == c;
}

static void number_first(const graph *g, int *x, int *y)
{
    const int first = *x;
    if (is_number(g, *y) && !is_number(g, *x)) {
        *x = *y;
        *y = first;
    }
}

static bool same_bound(const bound *a, const bound *b)
{
    return a->node == b->node && a->negated == b->negated && a->inverted == b->inverted &&
           a->integer == b->integer && a->constant == b->constant;
}

int number_value(graph *g, bound b, enum number_class class)
{
    int k = g->n_numbers > SEARCH_WINDOW ? g->n_numbers - SEARCH_WINDOW : 0;
    while (k < g->n_numbers && !same_bound(&g->numbers[k], &b)) k++;
    if (k == g->n_numbers) {
        bound *more = realloc(g->numbers, (size_t)(k + 1) * sizeof *more);
        if (!more) {
            g->failed = true;
            return 0;
        }
        g->numbers = more;
        g->numbers[g->n_numbers++] = b;
    }
    value v = value_init(OP_NUMBER, NULL);
    v.type = b.integer ? b.integer : DUET_F64;
    v.weak = true;
    v.number = k;
    v.class = (uint8_t) class;
    return intern(g, &v);
}

static const enum number_class negated_class[] = { [NUMBER_ONE] = NUMBER_MINUS_ONE,
                                                   [NUMBER_MINUS_ONE] = NUMBER_ONE,
                                                   [NUMBER_ZERO] = NUMBER_ZERO,
                                                   [NUMBER_POWER] = NUMBER_POWER,
                                                   [NUMBER_EXTREME] = NUMBER_EXTREME };

static int negate_number(graph *g, int v)
{
    bound b = g->numbers[g->values[v].number];
    b.negated = !b.negated;
    if (b.node < 0) {
        b.negated = false;
        b.constant = -b.constant;
    }
    return number_value(g, b, negated_class[g->values[v].class]);
}

int constant_number(graph *g, double x)
{
    return number_value(g, (bound){ .node = -1, .constant = x }, number_class(x));
}

int minus_one(graph *g) { return number_value(g, (bound){ .node = -1, .constant = -1 }, NUMBER_MINUS_ONE); }

static int invert_number(graph *g, int v)
{
    bound b = g->numbers[g->values[v].number];
    b.inverted = !b.inverted;
    return number_value(g, b, NUMBER_POWER);
}

int integer_number(graph *g, int v, uint8_t comp)
{
    bound b = g->numbers[g->values[v].number];
    b.integer = comp;
    return number_value(g, b, (enum number_class)g->values[v].class);
}

/* ---- rewrites ---- */

static int negate(graph *g, int v)
{
    value x = copy_of(g, v);
    if (x.op == OP_NUMBER) return negate_number(g, v);
    if (x.op == OP_neg) return x.arg[0];
    if (x.op == OP_mul && g->values[x.arg[0]].op == OP_NUMBER)
        return make(g, OP_mul, &x, 2, negate_number(g, x.arg[0]), x.arg[1], -1);
    return make(g, OP_neg, &x, 1, v, -1, -1);
}

/* Is v a product that is computed in the same type as its user? If not, it is rounded or converted
 * first, and cannot be fused. */
static bool is_product(const graph *g, int v, const value *like)
{
    return is_op(g, v, OP_mul) && g->values[v].comp == dtypes[like->type].computed;
}

/* x*y + z, rounded once, in the shape of `like`. */
static int fused(graph *g, const value *like, int product, int z)
{
    value p = copy_of(g, product);
    return make(g, OP_fma, like, 3, p.arg[0], p.arg[1], z);
}

static int make_add(graph *g, const value *like, int x, int y)
{
    number_first(g, &x, &y);
    if (is_product(g, x, like)) return fused(g, like, x, y);
    if (is_product(g, y, like)) return fused(g, like, y, x);
    return make(g, OP_add, like, 2, x, y, -1);
}

static int make_mul(graph *g, const value *like, int x, int y)
{
    number_first(g, &x, &y);
    if (is_class(g, x, NUMBER_ONE)) return y;
    if (is_class(g, x, NUMBER_MINUS_ONE)) return negate(g, y);
    return make(g, OP_mul, like, 2, x, y, -1);
}

/* x - y. If y is a product with a number, the number takes the sign. Otherwise the first product is
 * the one that is fused. */
static int make_sub(graph *g, const value *like, int x, int y)
{
    bool product = is_product(g, y, like);
    if (product && g->values[g->values[y].arg[0]].op == OP_NUMBER) return fused(g, like, negate(g, y), x);
    if (is_product(g, x, like)) return fused(g, like, x, negate(g, y));
    if (g->values[y].op == OP_NUMBER) return make_add(g, like, negate_number(g, y), x);
    if (!product) return make(g, OP_sub, like, 2, x, y, -1);
    value p = copy_of(g, y);
    int n = negate(g, p.arg[0]);
    return make(g, OP_fma, like, 3, n, p.arg[1], x);
}

static int make_div(graph *g, const value *like, int x, int y)
{
    bool power =
        is_class(g, y, NUMBER_POWER) || is_class(g, y, NUMBER_ONE) || is_class(g, y, NUMBER_MINUS_ONE);
    if (!power) return make(g, OP_div, like, 2, x, y, -1);
    return make_mul(g, like, is_class(g, y, NUMBER_POWER) ? invert_number(g, y) : y, x);
}

int make_truth(graph *g, int v)
{
    value like = copy_of(g, v);
    const bool is_integer = dtype_is_integer((duet_dtype)like.type);
    const int zero =
        number_value(g, (bound){ .node = -1, .integer = is_integer ? dtypes[like.type].computed : 0 },
                     NUMBER_ZERO);
    like.type = DUET_BOOL;
    return make(g, OP_not_equal, &like, 2, zero, v, -1);
}

/* For bool, a bitwise operator equals the logical one. */
static uint8_t logical(const value *v)
{
    static const uint8_t of[][2] = { { OP_bitwise_not, OP_logical_not },
                                     { OP_bitwise_and, OP_logical_and },
                                     { OP_bitwise_or, OP_logical_or },
                                     { OP_bitwise_xor, OP_logical_xor } };
    for (int i = 0; i < 4 && v->type == DUET_BOOL; i++)
        if (v->op == of[i][0]) return of[i][1];
    return v->op;
}

/* Compare a condition with 0 in its own type, if converting it to the type of the choice could make
 * it 0. */
static int condition(graph *g, const value *v)
{
    const value *c = &g->values[v->arg[0]];
    if (c->weak || c->type == DUET_BOOL || dtypes[c->type].computed == value_computed_type(g, v))
        return v->arg[0];
    return make_truth(g, v->arg[0]);
}

static int make_plain(graph *g, const value *v)
{
    value own = *v;
    own.op = logical(v);
    if (own.op == OP_where) own.arg[0] = condition(g, v);
    if (op_infos[own.op].flags & DUET_COMMUTES) number_first(g, &own.arg[0], &own.arg[1]);
    const uint8_t comp = value_computed_type(g, &own);
    for (int k = 0; k < own.args; k++)
        if (is_op(g, own.arg[k], OP_NUMBER) && dtype_is_integer((duet_dtype)comp))
            own.arg[k] = integer_number(g, own.arg[k], comp);
    return intern(g, &own);
}

int value_of_operator(graph *g, const value *v)
{
    int x = v->arg[0], y = v->arg[1];
    if (v->op == OP_cast) return make_cast(g, v, x);
    if (value_needs_legalizing(g, v)) return make_legalized(g, v);
    if (dtype_kind((duet_dtype)v->type) != TYPE_FLOAT) return make_plain(g, v);
    switch (v->op) {
    case OP_add: return make_add(g, v, x, y);
    case OP_sub: return make_sub(g, v, x, y);
    case OP_mul: return make_mul(g, v, x, y);
    case OP_div: return make_div(g, v, x, y);
    case OP_neg: return negate(g, x);
    default: return make_plain(g, v);
    }
}

int make_real(graph *g, const value *v) { return broadcast_to_shape(g, v, value_of_operator(g, v)); }
int make_unfused(graph *g, const value *v) { return broadcast_to_shape(g, v, make_plain(g, v)); }

/* A rewrite may return a value of a smaller shape than the operator has: 1 * x gives x, even if x
 * is broadcast. */
int broadcast_to_shape(graph *g, const value *v, int made)
{
    value m = copy_of(g, made);
    if (same_sizes(&m, v) || m.weak || v->weak) return made;
    if (dtype_is_complex((duet_dtype)m.type)) return complex_in_shape(g, made, v);
    return load_as(g, made, v, LOAD_SHAPE, value_is_fusable(g, made) ? m.comp : dtypes[v->type].computed);
}

void count_uses(graph *g)
{
    for (int i = 0; i < g->count; i++) g->values[i].uses = 0;
    for (int i = 0; i < g->roots; i++)
        if (g->root[i] >= 0) g->values[g->root[i]].uses++;
    for (int i = g->count; i-- > 0;)
        if (g->values[i].uses)
            for (int k = 0; k < g->values[i].args; k++) g->values[g->values[i].arg[k]].uses++;
}
