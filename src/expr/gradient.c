/* gradient.c - duet_grad and duet_vjp: reverse-mode differentiation. From the last node of a formula to
 * the first, each node has the gradient with respect to it as a formula. The rows of derivatives.def make
 * the gradients of its operands from it; those of a node with several users are added. The formulas name
 * the nodes of the differentiated formula, so that values are computed once. */
#include "arena.h"
#include "call_text.h"
#include "derivative_rules.h"
#include "einsum.h"
#include "operands.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

/* ---- the rows ---- */

typedef duet_expr derivative(const node *n, duet_expr x, duet_expr y, duet_expr z, duet_expr r, duet_expr g,
                             const char *site);

#define NONE                ((duet_expr){ 0 })
#define IF_FIRST(is, equal) duet_where(is, g, duet_where(equal, duet_mul(0.5, g), 0))
#define SPREAD(v)           spread(n, x, y, v, site)
#define TERMS               terms_of(n, x, y)
#define ZEROS(x)            zeros_like(x, site)
#define NOT_BOOL(x)         (duet_expr_type(x) == DUET_BOOL ? duet_cast(x, duet_expr_type(r)) : x)

#define FUNCTION(name, k, formula)                                                                           \
    static duet_expr name##_##k(const node *n, duet_expr x, duet_expr y, duet_expr z, duet_expr r,           \
                                duet_expr g, const char *site)                                               \
    {                                                                                                        \
        return formula;                                                                                      \
    }
#define DUET_D1(name, dx)         FUNCTION(name, 0, dx)
#define DUET_D2(name, dx, dy)     FUNCTION(name, 0, dx) FUNCTION(name, 1, dy)
#define DUET_D3(name, dx, dy, dz) FUNCTION(name, 0, dx) FUNCTION(name, 1, dy) FUNCTION(name, 2, dz)
#include "derivatives.def"

static const struct {
    derivative *of[3];  /* the operands */
    const char *reason; /* if there is none */
} rules[OPS_ALL] = {
#define DUET_D1(name, ...)       [OP_##name] = { .of = { name##_0 } },
#define DUET_D2(name, ...)       [OP_##name] = { .of = { name##_0, name##_1 } },
#define DUET_D3(name, ...)       [OP_##name] = { .of = { name##_0, name##_1, name##_2 } },
#define DUET_NO_D(name, reason_) [OP_##name] = { .reason = reason_ },
#include "derivatives.def"
};

/* ---- gradients that are kept ---- */

/* The gradient of a formula with respect to one of its nodes does not depend on the matrix that duet_grad
 * is asked about. So the gradients of a formula with respect to several matrices share the formulas of its
 * nodes. */
typedef struct kept_gradients {
    uint64_t root;  /* the formula's serial */
    duet_expr of[]; /* each node; serial 0: unknown */
} kept_gradients;

static bool is_live(const arena *a, duet_expr e)
{
    const node *n = e.serial ? arena_look(a, e.serial) : NULL;
    return n && !(n->flags & (NODE_SPENT | NODE_FAILED));
}

/* Those of the formula with this root, perhaps with nothing known. NULL: no memory. */
static kept_gradients *kept_of(arena *a, uint64_t root, uint32_t count)
{
    kept_gradients *k = a->gradients;
    if (k && k->root == root) return k;
    k = realloc(k, sizeof *k + count * sizeof *k->of);
    if (!k) return NULL;
    a->gradients = k;
    memset(k->of, 0, count * sizeof *k->of);
    k->root = root;
    return k;
}

/* ---- the sweep ---- */

/* The formula's nodes are first .. root of the arena. */
typedef struct sweep {
    arena *a;
    const duet_matrix *x;
    const char *function, *site;
    uint32_t first, root;
    duet_expr *gradient;  /* of each node; serial 0: none yet */
    kept_gradients *kept; /* or NULL */
    bool *depends;        /* does the node depend on x by a function that has a derivative? */
    bool *used, *spent;   /* does the root use the node? Was its handle spent? */
    bool *reached;        /* does the root depend on the node by functions that have a derivative? */
    bool named;           /* does the formula name x? */
    bool hidden;          /* is such a node another view of elements of x? */
    bool freed;           /* does the formula name a matrix that was freed? */
} sweep;

static const node *node_of(const sweep *w, uint32_t i) { return &w->a->nodes[w->first + i]; }
static uint32_t count_of(const sweep *w) { return w->root - w->first + 1; }
static uint32_t operand_at(const node *n, uint32_t i, int k) { return i - n->back[k]; }
static int operands_of(const node *n)
{
    int k = 0;
    if (n->op == OP_NUMBER || n->op == OP_LEAF) return 0;
    while (k < 3 && n->back[k]) k++;
    return k;
}

static bool is_floating(const node *n) { return dtype_kind((duet_dtype)n->type) >= TYPE_FLOAT; }

/* Does the gradient of n pass to its operands? */
static bool passes(const node *n) { return is_floating(n) && !(n->flags & NODE_STOP); }

static bool leaf_depends(sweep *w, const node *n, bool reached)
{
    if (!matrix_alive(n->matrix, n->matrix_serial)) {
        w->freed = true;
        return false;
    }
    const enum overlap shared = n->matrix == w->x ? SAME : matrix_overlap(n->matrix, w->x);
    w->named |= shared == SAME;
    w->hidden |= shared == TANGLED && reached;
    return shared == SAME && is_floating(n);
}

static void find_reached(sweep *w)
{
    w->reached[count_of(w) - 1] = true;
    for (uint32_t i = count_of(w); i-- > 0;) {
        const node *n = node_of(w, i);
        for (int k = 0; w->reached[i] && passes(n) && k < operands_of(n); k++)
            w->reached[operand_at(n, i, k)] = true;
    }
}

static void find_dependent(sweep *w)
{
    arena_mark(w->a->nodes, w->first, w->root, w->used);
    find_reached(w);
    for (uint32_t i = 0; i < count_of(w); i++) {
        const node *n = node_of(w, i);
        if (!w->used[i]) continue;
        if (n->op == OP_LEAF) w->depends[i] = leaf_depends(w, n, w->reached[i]);
        for (int k = 0; k < operands_of(n); k++)
            w->depends[i] |= passes(n) && w->depends[operand_at(n, i, k)];
    }
}

static duet_expr no_derivative(const sweep *w, const node *n, duet_expr g, const char *reason)
{
    const duet_status s =
        fail(DUET_UNSUPPORTED, "there is no derivative of %s: %s", op_infos[n->op].name, reason);
    return bad_argument(w->function, g, s, w->site);
}

/* The row of n could not build the gradient `made`. Of its text, only the rule that was broken means
 * something to the user. */
static duet_expr row_failed(const sweep *w, const node *n, duet_expr g, duet_expr made)
{
    char text[sizeof(error_text)];
    const duet_status s = duet_expr_status(made);
    if (s == DUET_NO_MEMORY || s == DUET_ARENA_FULL) return made;
    rule_of_text(w->site, text);
    return no_derivative(w, n, g, text);
}

static duet_expr kept(const sweep *w, uint32_t i)
{
    if (!w->kept || !is_live(w->a, w->kept->of[i])) return NONE;
    return w->kept->of[i];
}

static duet_expr sum_of(duet_expr a, duet_expr b, const char *site) { return a.serial ? duet_add(a, b) : b; }

/* A gradient that is equal for all elements of its node may be a number. Then its row must not need a
 * shape. */
static bool takes_number(const node *n)
{
    if (n->op == OP_sum || n->op == OP_mean) return true;
    const bool selects = n->op == OP_relu || n->op == OP_where || n->op == OP_minimum || n->op == OP_maximum;
    return op_infos[n->op].kind == KIND_MAP && !selects;
}

/* The gradient of an operand from what a row has made of a number: the gradient of each element of the
 * result, to which the operand is broadcast. */
static duet_expr from_number(duet_expr made, duet_expr r, duet_expr x, const char *site)
{
    const shape to = formula_shape(r), from = formula_shape(x);
    const double all = (double)shape_count(&to), own = (double)shape_count(&from),
                 times = own > 0 ? all / own : 0;
    if (is_number(made)) return times > 1 ? duet_mul(made, times) : made;
    return unbroadcast(spread_to(made, &to, site), x, site);
}

/* The gradient of operand k of node n from that of n, with the shape of n or that of the operand. */
static duet_expr from_row(const sweep *w, const node *n, int k, const duet_expr x[3], duet_expr r,
                          duet_expr g)
{
    derivative *d = rules[n->op].of[k];
    if (!d) return no_derivative(w, n, g, rules[n->op].reason ? rules[n->op].reason : "it has none");
    const duet_expr made = d(n, x[0], x[1], x[2], r, g, w->site);
    return made.serial && !is_valid(made) && is_valid(g) ? row_failed(w, n, g, made) : made;
}

/* Adds the gradients of the operands of node i. */
static void differentiate(sweep *w, uint32_t i)
{
    const node own = *node_of(w, i), *n = &own; /* the arena moves when it grows */
    const int arity = operands_of(n);
    const duet_expr r = handle_of(n);
    duet_expr x[3] = { { 0 } }, g = w->gradient[i];
    for (int k = 0; k < arity; k++) x[k] = handle_of(node_of(w, operand_at(n, i, k)));
    if (arity == 1) x[1] = x[0]; /* reductions take the shape of both */
    if (is_number(g) && !takes_number(n)) g = number_like(g, r, w->site);
    for (int k = 0; k < arity; k++) {
        const uint32_t to = operand_at(n, i, k);
        if (!w->depends[to] || kept(w, to).serial) continue;
        duet_expr made = from_row(w, n, k, x, r, g);
        if (!made.serial) continue;
        made = is_number(g) ? from_number(made, r, x[k], w->site) : unbroadcast(made, x[k], w->site);
        w->gradient[to] = sum_of(w->gradient[to], made, w->site);
    }
}

/* The sum of the gradients of all nodes that are x; serial 0 if there is none. */
static duet_expr swept(sweep *w, duet_expr g)
{
    duet_expr sum = { 0 };
    w->gradient[count_of(w) - 1] = g;
    for (uint32_t i = count_of(w); i-- > 0;) {
        if (!w->depends[i]) continue;
        if (kept(w, i).serial) w->gradient[i] = kept(w, i);
        if (!w->gradient[i].serial) continue;
        if (w->kept) w->kept->of[i] = w->gradient[i];
        if (node_of(w, i)->op == OP_LEAF) sum = sum_of(sum, w->gradient[i], w->site);
        else differentiate(w, i);
    }
    return sum;
}

static duet_status check_matrices(const sweep *w)
{
    if (w->freed) return fail(DUET_FREED, "the formula names a matrix that was freed or resized");
    if (!w->hidden) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "the formula names another matrix with elements of x, whose share of the "
                                   "gradient would be lost; use views of x in the formula");
}

/* ---- the functions ---- */

/* The user may have dropped a part of the formula, whose nodes stay as long as the formula needs them. */
static void allow_names(sweep *w)
{
    for (uint32_t i = 0; i < count_of(w); i++) {
        node *n = &w->a->nodes[w->first + i];
        w->spent[i] = w->used[i] && n->flags & NODE_SPENT;
        if (w->spent[i]) n->flags &= (uint8_t)~NODE_SPENT;
    }
}

static void forbid_names(const sweep *w)
{
    for (uint32_t i = 0; i < count_of(w); i++)
        if (w->spent[i]) w->a->nodes[w->first + i].flags |= NODE_SPENT;
}

/* duet_explain says so if the reason is that the formula does not name x. */
static duet_expr no_gradient(const sweep *w, duet_expr like)
{
    const duet_expr zeros = zeros_like(like, w->site);
    node *n = w->named || !is_valid(zeros) ? NULL : arena_look(w->a, zeros.serial);
    if (n && n->op < OPS) node_flag(w->a, n, NODE_ABSENT);
    return zeros;
}

static duet_expr run_sweep(sweep *w, duet_expr y, duet_expr g, duet_expr like)
{
    find_dependent(w);
    const duet_status s = check_matrices(w);
    if (s != DUET_OK) return bad_argument(w->function, y, s, w->site);
    allow_names(w);
    const duet_expr made = swept(w, g.serial ? g : duet_of_number(1));
    forbid_names(w);
    if (!made.serial) return no_gradient(w, like);
    return is_number(made) ? number_like(made, like, w->site) : made;
}

static duet_expr no_memory(const char *function, duet_expr y, const char *site)
{
    return bad_argument(function, y, fail(DUET_NO_MEMORY, "no host memory for the gradient"), site);
}

/* y is a live formula. Nodes of y that the gradient does not name stay until all formulas are evaluated. */
static duet_expr gradient_of(const char *function, arena *a, node *y, const duet_matrix *x, duet_expr g,
                             duet_expr like, const char *site)
{
    sweep w = { .a = a,
                .x = x,
                .function = function,
                .site = site,
                .first = y->first,
                .root = (uint32_t)(y - a->nodes) };
    const duet_expr of = handle_of(y);
    w.gradient = calloc(count_of(&w), sizeof *w.gradient);
    w.kept = g.serial ? NULL : kept_of(a, of.serial, count_of(&w));
    w.depends = calloc(4 * (size_t)count_of(&w), sizeof *w.depends);
    w.used = w.depends ? w.depends + count_of(&w) : NULL;
    w.spent = w.used ? w.used + count_of(&w) : NULL;
    w.reached = w.spent ? w.spent + count_of(&w) : NULL;
    const duet_expr made =
        w.gradient && w.depends ? run_sweep(&w, of, g, like) : no_memory(function, of, site);
    free(w.gradient);
    free(w.depends);
    consume(a, &a->nodes[w.root]);
    a->mixed = true;
    return made;
}

static duet_status check_x(duet_expr x)
{
    const duet_status s = duet_expr_status(x);
    if (s != DUET_OK || dtype_kind(duet_expr_type(x)) >= TYPE_FLOAT) return s;
    return fail(DUET_BAD_TYPE,
                "x is a matrix of %s, and gradients are with respect to floating-point matrices; "
                "use a copy of x that duet_cast has converted",
                dtypes[duet_expr_type(x)].name);
}

static duet_status check_result(const node *y, bool is_scalar)
{
    const shape s = formula_shape(handle_of(y));
    const int64_t n = shape_count(&s);
    if (!is_floating(y)) return fail(DUET_BAD_TYPE, "the formula must have a floating-point type");
    if (is_scalar && n != 1)
        return fail(DUET_BAD_SHAPE, "the formula must have one element; it has %lld. duet_vjp takes others",
                    (long long)n);
    if (is_scalar && dtype_is_complex((duet_dtype)y->type))
        return fail(DUET_BAD_TYPE, "the formula must be real");
    return DUET_OK;
}

static duet_expr differentiated(const char *function, duet_expr y, const duet_matrix *x, duet_expr g,
                                const char *site)
{
    arena *a = arena_mine();
    node *n = NULL;
    if (!a) return no_room(DUET_NO_MEMORY);
    const duet_expr like = (duet_of_matrix)(x);
    duet_status s = x ? check_x(like) : fail(DUET_BAD_ARGUMENT, "x must not be NULL");
    if (s != DUET_OK) return bad_operands(function, 1, &y, s, site);
    s = operands(a, OP_append, 1, &y, &n);
    if (s == DUET_OK) s = check_result(n, !g.serial);
    if (s != DUET_OK) return call_failed(a, function, 1, &n, s, site);
    return gradient_of(function, a, n, x, g, like, site);
}

/* Formulas that were built on the way are no roots: only those that the result names are evaluated. */
static duet_expr only(duet_expr made, duet_expr g, uint32_t from)
{
    arena *a = arena_here();
    for (uint32_t i = from; a && i < a->count; i++)
        if (a->nodes[i].serial != made.serial) consume(a, &a->nodes[i]);
    node *given = a && !(g.serial & SERIAL_HELD) && g.serial != made.serial ? arena_look(a, g.serial) : NULL;
    if (given && !(given->flags & NODE_SPENT)) consume(a, given);
    return made;
}

static uint32_t built(void) { return arena_here() ? arena_here()->count : 0; }

duet_expr(duet_grad_at)(duet_expr y, const duet_matrix *x, const char *site)
{
    const uint32_t from = built();
    const duet_expr made = differentiated("grad", y, x, NONE, site);
    return only(composed("grad", 1, &y, made, site), NONE, from);
}
duet_expr(duet_grad)(duet_expr y, const duet_matrix *x) { return duet_grad_at(y, x, NULL); }

/* g broadcasts to y. */
static duet_expr as_gradient_of(duet_expr y, duet_expr g, const char *site)
{
    const shape to = formula_shape(y), from = formula_shape(g);
    const duet_dtype t = duet_expr_type(y);
    shape both;
    if (!is_valid(y) || !is_valid(g)) return g;
    if (!shape_broadcast(&from, &to, &both) || !shape_equal(&both, &to))
        return bad_argument("vjp", g, fail(DUET_BAD_SHAPE, "g does not broadcast to the shape of y"), site);
    return spread_to(duet_expr_type(g) == t && !is_number(g) ? g : duet_cast(g, t), &to, site);
}

duet_expr(duet_vjp_at)(duet_expr y, const duet_matrix *x, duet_expr g, const char *site)
{
    const uint32_t from = built();
    const duet_expr made = differentiated("vjp", y, x, as_gradient_of(y, g, site), site);
    return only(composed("vjp", 2, (duet_expr[]){ y, g }, not_itself(made, g, site), site), g, from);
}
duet_expr(duet_vjp)(duet_expr y, const duet_matrix *x, duet_expr g) { return duet_vjp_at(y, x, g, NULL); }

/* The same elements, as a reshape with a flag. */
static duet_expr flagged(const char *function, duet_expr x, uint8_t flag, const char *site)
{
    const shape s = formula_shape(x);
    if (is_number(x)) return duet_mul(x, 1);
    const duet_expr made = reshaped(function, x, &(sizes_given){ s.rank, s.size, NULL }, site);
    node *n = is_valid(made) ? arena_look(arena_here(), made.serial) : NULL;
    if (n) node_flag(arena_here(), n, flag);
    return made;
}

duet_expr(duet_stop_gradient_at)(duet_expr x, const char *site)
{
    return flagged("stop_gradient", x, NODE_STOP, site);
}
duet_expr(duet_stop_gradient)(duet_expr x) { return duet_stop_gradient_at(x, NULL); }

duet_expr(duet_checkpoint_at)(duet_expr x, const char *site)
{
    return flagged("checkpoint", x, NODE_CHECKPOINT, site);
}
duet_expr(duet_checkpoint)(duet_expr x) { return duet_checkpoint_at(x, NULL); }
