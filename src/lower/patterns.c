/* patterns.c - recognises the patterns of fused.def. Each pattern is an expression with holes,
 * built by the public operators and canonicalized like any formula. */
#include "lower.h"
#include "status.h"
#include <pthread.h>
#include <string.h>

enum {
#define DUET_ROWWISE(name, ...) ROWWISE_##name,
#include "fused.def"
    ROWWISE
};

static graph epilogue_patterns[FINISHES], rowwise[ROWWISE];
static bool prepared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static duet_status pattern_make(graph *g, duet_expr e)
{
    formula f;
    duet_status s = formula_of(e, "a row of fused.def", &f);
    if (s == DUET_OK) s = graph_pattern(g, &f);
    formula_spend(e, NULL);
    return s;
}

static const int64_t any_size[] = { 7, 7, 7, 7 }, filter_size[] = { 7, 7, 3, 3 };
#define X       hole_operand(0, 2, any_size)
#define Y       hole_operand(1, 2, any_size)
#define B       hole_operand(1, 1, any_size)
#define W       hole_operand(2, 2, any_size)
#define Z       W
#define IMAGES  hole_operand(0, 4, any_size)
#define FILTERS hole_operand(2, 4, filter_size)
#define S       hole_number()
static duet_status patterns_make(void)
{
#define DUET_FINISHED(name, formula, ...) TRY(pattern_make(&epilogue_patterns[EPILOGUE_##name], formula));
#define DUET_ROWWISE(name, formula, ...)  TRY(pattern_make(&rowwise[ROWWISE_##name], formula));
#include "fused.def"
    return DUET_OK;
}
#undef X
#undef Y
#undef B
#undef W
#undef Z
#undef IMAGES
#undef FILTERS
#undef S

static __attribute__((noinline)) duet_status prepare(void)
{
    pthread_mutex_lock(&lock);
    void *own = formulas_apart();
    duet_status s = DUET_OK;
    if (!prepared) s = patterns_make();
    formulas_back(own);
    for (int r = 1; r < FINISHES && s != DUET_OK; r++) graph_free(&epilogue_patterns[r]);
    for (int r = 0; r < ROWWISE && s != DUET_OK; r++) graph_free(&rowwise[r]);
    __atomic_store_n(&prepared, s == DUET_OK, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return s;
}

duet_status match_prepare(void) { return __atomic_load_n(&prepared, __ATOMIC_ACQUIRE) ? DUET_OK : prepare(); }

/* An attempt to match value `root` with a pattern. */
typedef struct matcher {
    const lowering *l;
    const graph *p; /* the pattern */
    int root, covered;
    bool rowwise; /* p is a layer normalisation, whose values are in values[]; else an operator with an
                   * epilogue */
    int values[16];
    match m;
} matcher;

static bool bind(int *bound_value, int v)
{
    if (*bound_value >= 0 && *bound_value != v) return false;
    *bound_value = v;
    return true;
}

/* A hole matches a value that is computed elsewhere. */
static bool bind_operand(matcher *t, int hole, int v)
{
    const value *h = value_at(t->p, hole), *x = value_at(t->l->g, v), *root = value_at(t->l->g, t->root);
    const int which = h->attr.hole.which;
    const bool may_differ = t->rowwise && which > 0; /* gain or bias */
    if (may_differ && x->op == OP_NUMBER) return bind(&t->m.in[which], v);
    if (x->weak || x->mem != root->mem || root->mem != root->comp) return false;
    if (t->rowwise ? !may_differ && !same_shape(t->l->g, v, t->root) : h->rank != x->rank) return false;
    return bind(&t->m.in[which], v);
}

static bool matches(matcher *t, int p, int v);

static bool args_match(matcher *t, const value *q, const value *x, bool crossed)
{
    for (int k = 0; k < q->args; k++)
        if (!matches(t, q->arg[k], x->arg[crossed && k < 2 ? 1 - k : k])) return false;
    return true;
}

/* May the match compute v? No other value may use v. The values may be of several passes. */
static bool is_used_here_only(const matcher *t, int v)
{
    return v == t->root || value_at(t->l->g, v)->uses == 1;
}

/* Remember the operators whose options the step takes. The options in the pattern do not matter. */
static void remember_options(matcher *t, int v)
{
    const int op = value_at(t->l->g, v)->op;
    if (op == OP_max_pool2d) t->m.pool = v;
    else if (!value_is_map(t->l->g, v) && op != OP_softmax) t->m.vendor = v;
}

/* All reductions of a normalisation must be along the same axes, which must be the last ones and be
 * kept with size 1. */
static bool is_along_rows(matcher *t, int v)
{
    const value *x = value_at(t->l->g, value_at(t->l->g, v)->arg[0]);
    const uint32_t axes = reduced_axes(t->l->g, v), others = ~axes & ((1u << x->rank) - 1);
    if (!t->m.axes) t->m.axes = axes;
    return axes && axes == t->m.axes && (others & (others + 1)) == 0 && value_at(t->l->g, v)->rank == x->rank;
}

/* Does value v match the pattern value p? All values inside the match must be used by the match
 * alone. */
static bool matches(matcher *t, int p, int v)
{
    const value *q = value_at(t->p, p), *x = value_at(t->l->g, v);
    if (q->op == OP_HOLE) return bind_operand(t, p, v);
    if (q->op == OP_HOLE_NUMBER) return x->op == OP_NUMBER && bind(&t->m.num, v);
    if (q->op != x->op || q->args != x->args || !is_used_here_only(t, v)) return false;
    if (x->comp != value_at(t->l->g, t->root)->comp ||
        (x->op == OP_conv2d && x->attr.conv.form != CONV_IMAGES))
        return false;
    match before = t->m;
    if (!t->rowwise) remember_options(t, v);
    if (t->rowwise && value_is_reduce(t->l->g, v) && !is_along_rows(t, v)) return false;
    int covered = t->covered++;
    if (t->rowwise) t->values[covered] = v;
    if (args_match(t, q, x, false)) return true;
    t->m = before;
    t->covered = covered + 1;
    return op_infos[q->op].flags & DUET_COMMUTES && args_match(t, q, x, true);
}

/* A match that binds no operand yet. */
static match empty_match(void) { return (match){ .in = { -1, -1, -1 }, .num = -1, .pool = -1 }; }

/* With fusion, one step must compute a complete pass. Does the epilogue cover the pass of v? */
static bool covers_pass(const lowering *l, int v)
{
    const graph *g = l->g;
    int maps = 0;
    while (!value_is_map(g, v)) v = value_at(g, v)->arg[0];
    for (int u = v; value_is_map(g, u); u = value_at(g, u)->arg[0]) maps += l->pass[u] == l->pass[v];
    return l->fusion != FUSION_MACHINE || l->members[l->pass[v]] == maps;
}

bool match_epilogue(const lowering *l, int v, enum epilogue row, match *m)
{
    matcher t = { .l = l, .p = &epilogue_patterns[row], .root = v, .m = empty_match() };
    if (!matches(&t, epilogue_patterns[row].root[0], v) || !covers_pass(l, v)) return false;
    *m = t.m;
    return true;
}

/* With fusion, one step must compute complete passes. Does the match cover each pass that it
 * touches? */
static bool covers_passes(const matcher *t)
{
    const lowering *l = t->l;
    bool entire = true;
    for (int i = 0; i < t->covered; i++) {
        int here = 0;
        for (int k = 0; k < t->covered; k++) here += l->pass[t->values[k]] == l->pass[t->values[i]];
        entire &= here == l->members[l->pass[t->values[i]]];
    }
    return entire || l->fusion != FUSION_MACHINE;
}

bool match_rows(const lowering *l, int v, match *m)
{
    const int dest = l->dest_of[v];
    if (!value_is_map(l->g, v) || (dest >= 0 && !layout_is_dense(&l->dest[dest].to))) return false;
    for (int r = 0; r < ROWWISE; r++) {
        matcher t = { .l = l, .p = &rowwise[r], .root = v, .rowwise = true, .m = empty_match() };
        if (!matches(&t, rowwise[r].root[0], v) || !covers_passes(&t)) continue;
        *m = t.m;
        m->num = value_at(l->g, m->num)->number;
        return true;
    }
    return false;
}
