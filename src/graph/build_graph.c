/* build_graph.c - builds a graph from the formula of one or several statements: reads the nodes in order,
 * rewrites each to canonical form, and finds the value of each destination. */
#include "canonicalize.h"
#include "dtype.h"
#include "status.h"
#include "views.h"
#include <stdlib.h>

/* ---- reading nodes ---- */

/* A barrier that no rewrite looks through. */
static int barrier_of(graph *g, int x)
{
    const value v = copy_of(g, x);
    value barrier = value_init(OP_LOAD, &v);
    barrier.args = 1;
    barrier.arg[0] = x;
    barrier.attr.load.purpose = LOAD_BARRIER;
    barrier.stored = !value_is_fusable(g, x);
    barrier.mem = v.mem;
    barrier.comp = barrier.stored ? (uint8_t)dtypes[v.mem].computed : v.comp;
    return intern(g, &barrier);
}

/* The value of an earlier statement, behind a barrier. It may lack leading axes of one element. */
static int read_earlier(graph *g, int dest, const node *n)
{
    value v = copy_of(g, g->root[dest]);
    const int read = barrier_of(g, g->root[dest]);
    v.rank = n->rank;
    memcpy(v.size, n->size, sizeof n->size[0] * n->rank);
    return broadcast_to_shape(g, &v, read);
}

/* x, whose memory is kept for all that uses it. */
static int read_checkpoint(graph *g, int x)
{
    x = complex_interleaved(g, x);
    value *base = value_at(g, value_base(g, x));
    if (base->op == OP_NUMBER || base->op == OP_LEAF) return x;
    base->checkpoint = g->has_checkpoints = true;
    for (int k = 0; value_is_join(g, value_base(g, x)) && k < base->args; k++)
        g->values[base->arg[k]].checkpoint = true;
    return value_base(g, x) == x ? barrier_of(g, x) : x;
}

static int read_leaf(graph *g, const formula *f, uint32_t i, const int *value_of)
{
    const node *n = &f->nodes[i];
    const uint32_t *w = f->words + (n->word - f->nodes[0].word);
    if (w[1] && w[1] <= i && g->values[value_of[i - w[1]]].op == OP_LEAF) return value_of[i - w[1]];
    leaf *more = realloc(g->leaves, (size_t)(g->n_leaves + 1) * sizeof *more);
    if (!more) {
        g->failed = true;
        return 0;
    }
    g->leaves = more;
    g->leaves[g->n_leaves] = (leaf){ i, n->matrix->at };
    value v = value_init(OP_LEAF, NULL);
    v.type = n->type;
    v.rank = n->rank;
    v.leaf = g->n_leaves++;
    memcpy(v.size, n->size, sizeof n->size[0] * n->rank);
    return intern(g, &v);
}

static int read_number(graph *g, const formula *f, uint32_t i, const int *value_of)
{
    const node *n = &f->nodes[i];
    const uint32_t same = f->words[n->word - f->nodes[0].word + 1];
    if (same && same <= i) return value_of[i - same];
    return number_value(g, (bound){ .node = (int)i, .wide = n->type != DUET_F64 },
                        number_class(node_number(n)));
}

/* If v is a number, make it a matrix of one element. Operators that are not element-wise need a
 * matrix. */
static int matrix_of(graph *g, int v, uint8_t type)
{
    if (!is_op(g, v, OP_NUMBER)) return v;
    const value scalar = { .type = type };
    return load_number(g, v, &scalar, LOAD_SHAPE);
}

/* The type that a number takes if it is an operand of a reduction, or of an operator with a matrix. */
static uint8_t type_of_numbers(const graph *g, const value *v)
{
    for (int k = 0; k < v->args; k++)
        if (!g->values[v->arg[k]].weak) return g->values[v->arg[k]].type;
    if (v->op == OP_histogram || op_infos[v->op].flags & (OP_GIVES_INDEX | DUET_TRUTH)) return DUET_F64;
    return v->type;
}

/* The value of a node without its attributes, which element-wise operators do not have. */
static value plain_value(const node *n, uint32_t i, const int *value_of)
{
    value v = value_init((enum op)n->op, NULL);
    v.type = n->type;
    v.rank = n->rank;
    v.weak = n->flags & NODE_WEAK;
    v.args = op_infos[n->op].arity;
    memcpy(v.size, n->size, sizeof n->size[0] * n->rank);
    for (int k = 0; k < v.args; k++) v.arg[k] = value_of[i - n->back[k]];
    return v;
}

static int read_operator(graph *g, const node *n, value v)
{
    const bool has_attributes = op_infos[n->op].kind != KIND_MAP && n->op != OP_cast;
    for (int k = 0; k < v.args; k++) v.arg[k] = complex_interleaved(g, v.arg[k]);
    if (has_attributes) {
        const uint8_t type = type_of_numbers(g, &v);
        for (int k = 0; k < v.args; k++) v.arg[k] = matrix_of(g, v.arg[k], type);
        read_attributes(n, &v.attr);
    }
    if (n->op == OP_HOLE || n->op == OP_HOLE_NUMBER) return intern(g, &v);
    v.op = (uint8_t)canonical_operator((enum op)n->op);
    if (is_conv(v.op)) trim_padding(g, &v);
    if (is_conv_nd(n->op)) return make_conv_nd(g, &v);
    const int distributed = has_attributes ? -1 : distribute_over_pieces(g, &v);
    if (distributed >= 0) return distributed;
    const int made = value_of_operator(g, &v);
    return broadcast_to_shape(g, &v, made);
}

/* x with y behind it along an axis. */
static int read_append(graph *g, const node *n, const value *v)
{
    int x[2];
    for (int k = 0; k < 2; k++) x[k] = make_stored(g, matrix_of(g, v->arg[k], v->type));
    return concatenate(g, v, n->attr.index.axis, x[0], x[1]);
}

/* All elements of a number are equal, so that each view of it is that number in another shape. */
static int read_view(graph *g, const node *n, int x, bool in_memory)
{
    value like = { .type = n->type, .rank = n->rank };
    memcpy(like.size, n->size, sizeof n->size[0] * n->rank);
    if (is_op(g, x, OP_NUMBER)) return load_number(g, x, &like, LOAD_SHAPE);
    view_change c = change_of_node(n);
    c.in_memory = in_memory;
    return view_of_value(g, x, &c);
}

/* How a node is used. */
enum { USED = 1, SHARED = 2, BY_PRODUCT = 4, BY_OTHERS = 8 };

static int read_node(graph *g, const formula *f, uint32_t i, const int *value_of, int earlier, int use)
{
    const node *n = &f->nodes[i];
    if (n->op == OP_LEAF && earlier >= 0) return read_earlier(g, earlier, n);
    if (n->op == OP_LEAF) return read_leaf(g, f, i, value_of);
    if (n->op == OP_NUMBER) return read_number(g, f, i, value_of);
    if (n->flags & NODE_CHECKPOINT) return read_checkpoint(g, value_of[i - n->back[0]]);
    if (is_view_operator(n->op))
        return read_view(g, n, value_of[i - n->back[0]], (use & (BY_PRODUCT | BY_OTHERS)) == BY_PRODUCT);
    value v = plain_value(n, i, value_of);
    if (n->op == OP_append) return read_append(g, n, &v);
    if (!is_complex_operator(g, &v)) return read_operator(g, n, v);
    read_attributes(n, &v.attr);
    return complex_operator(g, &v);
}

/* ---- uses and roots ---- */

/* Can v be computed straight into a destination? It must have a job of its own, and must not be the
 * root of an earlier statement. */
static bool may_be_root(const graph *g, int v)
{
    for (int i = 0; i < g->roots; i++)
        if (g->root[i] == v) return false;
    return !is_op(g, v, OP_NUMBER) && !is_op(g, v, OP_LEAF) && !is_view(g->values[v].op) &&
           !value_is_plane(g, v) && !value_is_piece(g, v);
}

/* The value that is written to a destination. If the value has no job of its own, a LOAD copies
 * it there. This holds for a matrix, a number, a view, and a value that is broadcast to the destination. */
static int make_root(graph *g, int v, dest_info *dest, bool alone)
{
    const int behind = is_barrier(g, v) ? g->values[v].arg[0] : -1;
    if (behind >= 0 && g->values[behind].checkpoint && may_be_root(g, behind)) v = behind;
    if (alone && !dtype_is_complex(dest->to.type))
        v = move_view_to_destination(g, v, &dest->to, &dest->rearranged);
    value like = { .type = (uint8_t)dest->to.type, .rank = (uint8_t)dest->to.rank };
    memcpy(like.size, dest->to.size, sizeof like.size[0] * like.rank);
    if (dtype_is_complex(dest->to.type)) v = complex_root(g, v, &like);
    const value *u = &g->values[v];
    const bool same = same_sizes(u, &like) && u->mem == like.type;
    if (same && may_be_root(g, v)) return v;
    return load_root(g, v, &like, LOAD_ROOT + g->roots);
}

/* All rewrites are done: let the users of a barrier read the value behind it. */
static void remove_barriers(graph *g)
{
    for (int v = 0; v < g->count; v++)
        for (int k = 0; k < g->values[v].args; k++) {
            int *x = &g->values[v].arg[k];
            while (is_barrier(g, *x)) *x = g->values[*x].arg[0];
        }
}

static duet_status graph_status(graph *g, const formula *f)
{
    if (!g->failed) return DUET_OK;
    graph_free(g);
    return fail(DUET_NO_MEMORY, "no host memory to plan a formula of %u nodes", f->count);
}

static void finish_graph(graph *g, const dest_info *dest)
{
    fold_products(g);
    fold_transforms(g);
    remove_barriers(g);
    for (int i = 0; i < g->roots; i++)
        if (dest[i].overwritten) g->root[i] = -1;
    count_uses(g);
    move_reductions_to_roots(g);
    count_uses(g);
    resolve_computed_types(g);
}

/* How each node is used. NULL: out of memory. */
static uint8_t *find_uses(const formula *f)
{
    uint8_t *use = calloc((size_t)f->count + 1, sizeof *use);
    for (uint32_t i = 0; i < f->count && use; i++) {
        const node *n = &f->nodes[i];
        const bool is_product = n->op == OP_matmul || is_conv(n->op) || is_conv_grad(n->op);
        for (int k = 0; k < 3 && n->op < OPS && n->back[k]; k++) {
            uint8_t *x = &use[i - n->back[k]];
            *x |= (*x & USED ? SHARED : USED) | (is_product ? BY_PRODUCT : BY_OTHERS);
        }
    }
    return use;
}

duet_status graph_make(graph *g, const formula *f, int dests, dest_info *dest, const int *earlier)
{
    memset(g, 0, sizeof *g);
    int *value_of = malloc(f->count * sizeof *value_of);
    uint8_t *use = find_uses(f);
    g->failed = !value_of || !use;
    for (uint32_t i = 0; i < f->count && !g->failed; i++) {
        value_of[i] = read_node(g, f, i, value_of, earlier ? earlier[i] : -1, use[i]);
        if (!g->failed) g->values[value_of[i]].shared |= (use[i] & SHARED) != 0;
        const bool is_root = !g->failed && g->roots < dests && dest[g->roots].node == i;
        if (is_root) {
            g->root[g->roots] = make_root(g, value_of[i], &dest[g->roots], dests == 1);
            g->roots++;
        }
    }
    if (!g->failed) finish_graph(g, dest);
    free(value_of);
    free(use);
    return graph_status(g, f);
}

duet_status graph_pattern(graph *g, const formula *f)
{
    memset(g, 0, sizeof *g);
    int *value_of = malloc(f->count * sizeof *value_of);
    g->failed = !value_of;
    for (uint32_t i = 0; i < f->count && !g->failed; i++)
        value_of[i] = read_node(g, f, i, value_of, -1, USED);
    if (!g->failed) {
        g->root[0] = value_of[f->count - 1];
        g->roots = 1;
        fold_products(g);
        count_uses(g);
        resolve_computed_types(g);
    }
    free(value_of);
    return graph_status(g, f);
}

void graph_free(graph *g)
{
    free(g->values);
    free(g->leaves);
    free(g->numbers);
    memset(g, 0, sizeof *g);
}
