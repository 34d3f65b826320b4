/* canonicalize.c - canonical form: equal values once, numbers first, FMA placed, scalars into products (fold_gemm.c). Every rewrite is
 * exact, but those into a product, whose result is bounded by its error, not by its bits. */
#include "canonicalize.h"
#include "dtype.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

/* Equal values are looked for among so many of the latest: beyond, one is computed twice. */
#define WINDOW 256

/* ---- the table of values ---- */

static bool same_value(const value *a, const value *b)
{
    if (a->op != b->op || a->type != b->type || a->rank != b->rank || a->args != b->args) return false;
    if (a->comp != b->comp || a->mem != b->mem || a->join != b->join) return false;
    if (a->leaf != b->leaf || a->number != b->number || a->alpha != b->alpha || a->beta != b->beta)
        return false;
    if (memcmp(a->size, b->size, sizeof a->size[0] * a->rank)) return false;
    return !memcmp(a->arg, b->arg, sizeof a->arg) && !memcmp(&a->attr, &b->attr, sizeof a->attr);
}

static bool reserve(graph *g)
{
    if (g->count < g->room) return true;
    int room = g->room ? 2 * g->room : 32;
    value *more = realloc(g->values, (size_t)room * sizeof *more);
    if (!more) return g->failed = true, false;
    g->values = more, g->room = room;
    return true;
}

int intern(graph *g, const value *given)
{
    value v = *given;
    if (v.comp == COMP_UNSET) v.comp = computed_in(g, &v);
    if (v.mem == COMP_UNSET) v.mem = memory_type(g, &v);
    for (int i = g->count; i-- > 0 && g->count - i < WINDOW;)
        if (same_value(&g->values[i], &v)) return i;
    if (!reserve(g)) return 0;
    g->values[g->count] = v;
    return g->count++;
}

value blank(enum op op, const value *like)
{
    value v = { .op = (uint8_t)op, .arg = { -1, -1, -1 }, .leaf = -1, .number = -1, .alpha = -1, .beta = -1 };
    v.comp = v.mem = COMP_UNSET;
    if (like)
        v.type = like->type, v.rank = like->rank, v.weak = like->weak,
        memcpy(v.size, like->size, sizeof v.size);
    return v;
}

static int make(graph *g, enum op op, const value *like, int args, int x, int y, int z)
{
    value v = blank(op, like);
    v.args = args, v.arg[0] = x, v.arg[1] = y, v.arg[2] = z;
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

int value_half(const graph *g, int v)
{
    while (is_view(g->values[v].op)) v = g->values[v].arg[0];
    if (value_is_half(g, v)) return g->values[g->values[v].join].arg[1] == v;
    return value_is_plane(g, v) ? g->values[v].op == OP_imag : -1;
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
    if (is_number(g, *y) && !is_number(g, *x)) *x = *y, *y = first;
}

static bool same_bound(const bound *a, const bound *b)
{
    return a->node == b->node && a->negated == b->negated && a->inverted == b->inverted &&
           a->integer == b->integer && a->constant == b->constant;
}

static int number_value(graph *g, bound b, enum number_class class)
{
    int k = g->n_numbers > WINDOW ? g->n_numbers - WINDOW : 0;
    while (k < g->n_numbers && !same_bound(&g->numbers[k], &b)) k++;
    if (k == g->n_numbers) {
        bound *more = realloc(g->numbers, (size_t)(k + 1) * sizeof *more);
        if (!more) return g->failed = true, 0;
        g->numbers = more, g->numbers[g->n_numbers++] = b;
    }
    value v = blank(OP_NUMBER, NULL);
    v.type = b.integer ? b.integer : DUET_F64, v.weak = true, v.number = k, v.class = (uint8_t) class;
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
    if (b.node < 0) b.negated = false, b.constant = -b.constant;
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

int whole_number(graph *g, int v, uint8_t comp)
{
    bound b = g->numbers[g->values[v].number];
    b.integer = comp;
    return number_value(g, b, (enum number_class)g->values[v].class);
}

/* ---- rewrites ---- */

static bool is_op(const graph *g, int v, enum op op) { return g->values[v].op == op; }

static int negate(graph *g, int v)
{
    value x = copy_of(g, v);
    if (x.op == OP_NUMBER) return negate_number(g, v);
    if (x.op == OP_neg) return x.arg[0];
    if (x.op == OP_mul && g->values[x.arg[0]].op == OP_NUMBER)
        return make(g, OP_mul, &x, 2, negate_number(g, x.arg[0]), x.arg[1], -1);
    return make(g, OP_neg, &x, 1, v, -1, -1);
}

/* Is v a product that is computed as its user is? Others are rounded, or converted, before. */
static bool is_product(const graph *g, int v, const value *like)
{
    return is_op(g, v, OP_mul) && g->values[v].comp == dtypes[like->type].computed;
}

/* x*y + z, rounded once, of shape `like`. */
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

/* x - y. A product with a number takes its sign there; else the first product is the one that is fused. */
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
    const bool whole = dtype_is_integer((duet_dtype)like.type);
    const int zero = number_value(g, (bound){ .node = -1, .integer = whole ? dtypes[like.type].computed : 0 },
                                  NUMBER_ZERO);
    like.type = DUET_BOOL;
    return make(g, OP_not_equal, &like, 2, zero, v, -1);
}

/* Of bool the logical operators are what those of bits are of integers. */
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

/* A condition that the choice's type might make 0 is asked in its own. */
static int condition(graph *g, const value *v)
{
    const value *c = &g->values[v->arg[0]];
    return c->weak || c->type == DUET_BOOL || dtypes[c->type].computed == computed_in(g, v)
               ? v->arg[0]
               : make_truth(g, v->arg[0]);
}

static int make_plain(graph *g, const value *v)
{
    value own = *v;
    own.op = logical(v);
    if (own.op == OP_where) own.arg[0] = condition(g, v);
    if (op_infos[own.op].flags & DUET_COMMUTES) number_first(g, &own.arg[0], &own.arg[1]);
    const uint8_t comp = computed_in(g, &own);
    for (int k = 0; k < own.args; k++)
        if (is_op(g, own.arg[k], OP_NUMBER) && dtype_is_integer((duet_dtype)comp))
            own.arg[k] = whole_number(g, own.arg[k], comp);
    return intern(g, &own);
}

static int make_operator(graph *g, const value *v)
{
    int x = v->arg[0], y = v->arg[1];
    if (v->op == OP_cast) return make_cast(g, v, x);
    if (value_widens(g, v)) return make_wide(g, v);
    if (dtype_kind((duet_dtype)v->type) != TYPE_FLOAT && v->op != OP_transpose) return make_plain(g, v);
    switch (v->op) {
    case OP_add: return make_add(g, v, x, y);
    case OP_sub: return make_sub(g, v, x, y);
    case OP_mul: return make_mul(g, v, x, y);
    case OP_div: return make_div(g, v, x, y);
    case OP_neg: return negate(g, x);
    case OP_transpose:
        if (is_op(g, x, OP_transpose)) return g->values[x].arg[0];
        if (v->rank < 2) return x;
        return intern(g, v);
    default: return make_plain(g, v);
    }
}

int make_real(graph *g, const value *v) { return settle_shape(g, v, make_operator(g, v)); }
int make_unfused(graph *g, const value *v) { return settle_shape(g, v, make_plain(g, v)); }

/* The rewrites above may return a value of smaller shape than the operator has (1 * x with x broadcast). */
int settle_shape(graph *g, const value *v, int made)
{
    value m = copy_of(g, made);
    if (same_sizes(&m, v) || m.weak || v->weak) return made;
    if (dtype_is_complex((duet_dtype)m.type)) return complex_shaped(g, made, v);
    return load_as(g, made, v, LOAD_SHAPE, value_passes(g, made) ? m.comp : dtypes[v->type].computed);
}

/* ---- reading a formula ---- */

/* The value of an earlier statement as a later one sees it: no rewrite looks through. It may lack leading axes of one element. */
static int read_earlier(graph *g, int dest, const node *n)
{
    value v = copy_of(g, g->root[dest]), barrier = blank(OP_LOAD, &v);
    barrier.args = 1, barrier.arg[0] = g->root[dest], barrier.attr.load.purpose = LOAD_BARRIER;
    barrier.stored = !value_passes(g, g->root[dest]), barrier.mem = v.mem;
    barrier.comp = barrier.stored ? (uint8_t)dtypes[v.mem].computed : v.comp;
    const int read = intern(g, &barrier);
    v.rank = n->rank;
    memcpy(v.size, n->size, sizeof n->size[0] * n->rank);
    return settle_shape(g, &v, read);
}

static int read_leaf(graph *g, const formula *f, uint32_t i, const int *of)
{
    const node *n = &f->nodes[i];
    const uint32_t *w = f->words + (n->word - f->nodes[0].word);
    if (w[1] && w[1] <= i && g->values[of[i - w[1]]].op == OP_LEAF) return of[i - w[1]];
    leaf *more = realloc(g->leaves, (size_t)(g->n_leaves + 1) * sizeof *more);
    if (!more) return g->failed = true, 0;
    g->leaves = more, g->leaves[g->n_leaves] = (leaf){ i, n->matrix->at };
    value v = blank(OP_LEAF, NULL);
    v.type = n->type, v.rank = n->rank, v.leaf = g->n_leaves++;
    memcpy(v.size, n->size, sizeof n->size[0] * n->rank);
    return intern(g, &v);
}

static int read_number(graph *g, const formula *f, uint32_t i, const int *of)
{
    const node *n = &f->nodes[i];
    const uint32_t same = f->words[n->word - f->nodes[0].word + 1];
    if (same && same <= i) return of[i - same];
    return number_value(g, (bound){ .node = (int)i, .wide = n->type != DUET_F64 },
                        number_class(node_number(n)));
}

/* A number where a matrix is due: a value of the type that its user has. */
static int matrix_of(graph *g, int v, uint8_t type)
{
    if (!is_op(g, v, OP_NUMBER)) return v;
    const value scalar = { .type = type };
    return load_number(g, v, &scalar, LOAD_SHAPE);
}

/* What a reduction of numbers alone is of, or a number beside a matrix. */
static uint8_t type_of_numbers(const graph *g, const value *v)
{
    for (int k = 0; k < v->args; k++)
        if (!g->values[v->arg[k]].weak) return g->values[v->arg[k]].type;
    return op_infos[v->op].flags & (OP_GIVES_INDEX | DUET_TRUTH) ? DUET_F64 : v->type;
}

static int read_node(graph *g, const formula *f, uint32_t i, const int *of, int earlier)
{
    const node *n = &f->nodes[i];
    if (n->op == OP_LEAF) return earlier < 0 ? read_leaf(g, f, i, of) : read_earlier(g, earlier, n);
    if (n->op == OP_NUMBER) return read_number(g, f, i, of);
    value v = blank((enum op)n->op, NULL);
    v.type = n->type, v.rank = n->rank, v.weak = n->flags & NODE_WEAK, v.args = op_infos[n->op].arity;
    memcpy(v.size, n->size, sizeof n->size[0] * n->rank);
    for (int k = 0; k < v.args; k++) v.arg[k] = of[i - n->back[k]];
    if (is_complex_operator(g, &v)) return read_attributes(n, &v.attr), complex_operator(g, &v);
    for (int k = 0; k < v.args; k++) v.arg[k] = complex_whole(g, v.arg[k]);
    const bool matrices = op_infos[n->op].kind != KIND_MAP && n->op != OP_cast;
    const uint8_t type = matrices ? type_of_numbers(g, &v) : n->type;
    for (int k = 0; k < v.args && matrices; k++) v.arg[k] = matrix_of(g, v.arg[k], type);
    if (matrices) read_attributes(n, &v.attr);
    if (n->op == OP_HOLE || n->op == OP_HOLE_NUMBER) return intern(g, &v);
    v.op = (uint8_t)canonical_operator((enum op)n->op);
    if (is_conv(v.op)) settle_padding(g, &v);
    if (is_of_images(n->op)) return make_of_images(g, &v);
    int made = make_operator(g, &v);
    return settle_shape(g, &v, made);
}

/* ---- uses and roots ---- */

void count_uses(graph *g)
{
    for (int i = 0; i < g->count; i++) g->values[i].uses = 0;
    for (int i = 0; i < g->roots; i++)
        if (g->root[i] >= 0) g->values[g->root[i]].uses++;
    for (int i = g->count; i-- > 0;)
        if (g->values[i].uses)
            for (int k = 0; k < g->values[i].args; k++) g->values[g->values[i].arg[k]].uses++;
}

/* Does a job compute v, and not for an earlier dest? */
static bool may_be_root(const graph *g, int v)
{
    for (int i = 0; i < g->roots; i++)
        if (g->root[i] == v) return false;
    return !is_op(g, v, OP_NUMBER) && !is_op(g, v, OP_LEAF) && !is_view(g->values[v].op) &&
           !value_is_plane(g, v) && !value_is_half(g, v);
}

/* The value of a dest. A matrix, a number, a transpose, or what broadcasts to the destination, is loaded there. */
static int make_root(graph *g, int v, const dest_info *dest)
{
    value like = { .type = (uint8_t)dest->to.type, .rank = (uint8_t)dest->to.rank };
    memcpy(like.size, dest->to.size, sizeof like.size[0] * like.rank);
    if (dtype_is_complex(dest->to.type)) v = complex_root(g, v, &like);
    const value *u = &g->values[v];
    const bool same = same_sizes(u, &like) && u->mem == like.type;
    return same && may_be_root(g, v) ? v : load_root(g, v, &like, LOAD_ROOT + g->roots);
}

/* Rewrites are done: what reads a barrier reads what is behind it. */
static void open_barriers(graph *g)
{
    for (int v = 0; v < g->count; v++)
        for (int k = 0; k < g->values[v].args; k++) {
            int *x = &g->values[v].arg[k];
            while (is_op(g, *x, OP_LOAD) && g->values[*x].attr.load.purpose == LOAD_BARRIER)
                *x = g->values[*x].arg[0];
        }
}

static duet_status epilogue(graph *g, const formula *f)
{
    if (!g->failed) return DUET_OK;
    graph_free(g);
    return fail(DUET_NO_MEMORY, "no memory to plan a formula of %u parts", f->count);
}

static void settle(graph *g, const dest_info *dest)
{
    reduce_products(g);
    open_barriers(g);
    for (int i = 0; i < g->roots; i++)
        if (dest[i].overwritten) g->root[i] = -1;
    count_uses(g), reduce_roots(g);
    count_uses(g), settle_computed(g);
}

duet_status graph_make(graph *g, const formula *f, int dests, const dest_info *dest, const int *earlier)
{
    memset(g, 0, sizeof *g);
    int *of = malloc(f->count * sizeof *of);
    g->failed = !of;
    for (uint32_t i = 0; i < f->count && !g->failed; i++) {
        of[i] = read_node(g, f, i, of, earlier ? earlier[i] : -1);
        const bool is_root = !g->failed && g->roots < dests && dest[g->roots].node == i;
        if (is_root) g->root[g->roots] = make_root(g, of[i], &dest[g->roots]), g->roots++;
    }
    if (!g->failed) settle(g, dest);
    free(of);
    return epilogue(g, f);
}

duet_status graph_pattern(graph *g, const formula *f)
{
    memset(g, 0, sizeof *g);
    int *of = malloc(f->count * sizeof *of);
    g->failed = !of;
    for (uint32_t i = 0; i < f->count && !g->failed; i++) of[i] = read_node(g, f, i, of, -1);
    if (!g->failed)
        g->root[0] = of[f->count - 1], g->roots = 1, reduce_products(g), count_uses(g), settle_computed(g);
    free(of);
    return epilogue(g, f);
}

void graph_free(graph *g)
{
    free(g->values), free(g->leaves), free(g->numbers);
    memset(g, 0, sizeof *g);
}
