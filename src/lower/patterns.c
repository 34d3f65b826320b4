/* patterns.c - recognises the fused kernels of fused.def. Each pattern is an expression with holes,
 * built by the public operators and canonicalized like any formula. */
#include "lower.h"
#include "status.h"
#include <pthread.h>
#include <string.h>

enum row {
#define DUET_FUSED(name, ...) ROW_##name,
#include "fused.def"
    ROWS
};

static const int row_kernels[ROWS] = {
#define DUET_FUSED(name, ...) [ROW_##name] = KERNEL_##name,
#include "fused.def"
};
static const uint8_t kernel_rows[KERNELS_ALL] = {
#define DUET_FUSED(name, ...) [KERNEL_##name] = ROW_##name,
#include "fused.def"
};

enum {
#define DUET_ROWWISE(name, ...) ROWWISE_##name,
#include "fused.def"
    ROWWISE
};

static graph fused_patterns[ROWS], epilogue_patterns[FINISHES], rowwise[ROWWISE];
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
#define S       hole_number(0)
#define R       hole_number(1)
static duet_status patterns_make(void)
{
#define DUET_FUSED(name, formula, ...)    TRY(pattern_make(&fused_patterns[ROW_##name], formula));
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
#undef R

static __attribute__((noinline)) duet_status prepare(void)
{
    pthread_mutex_lock(&lock);
    void *own = formulas_apart();
    duet_status s = DUET_OK;
    if (!prepared) s = patterns_make();
    formulas_back(own);
    for (int r = 0; r < ROWS && s != DUET_OK; r++) graph_free(&fused_patterns[r]);
    for (int r = 1; r < FINISHES && s != DUET_OK; r++) graph_free(&epilogue_patterns[r]);
    for (int r = 0; r < ROWWISE && s != DUET_OK; r++) graph_free(&rowwise[r]);
    __atomic_store_n(&prepared, s == DUET_OK, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return s;
}

duet_status match_prepare(void) { return __atomic_load_n(&prepared, __ATOMIC_ACQUIRE) ? DUET_OK : prepare(); }

static int value_flops(const graph *pattern, int v)
{
    if (value_at(pattern, v)->op == OP_fma) return 2;
    return value_at(pattern, v)->uses && value_is_map(pattern, v);
}

int fused_flops(int kernel)
{
    const int row = kernel_rows[kernel];
    int n = 0;
    for (int v = 0; v < fused_patterns[row].count; v++) n += value_flops(&fused_patterns[row], v);
    return n;
}

/* An attempt to match value `root` with a pattern. */
typedef struct matcher {
    const lowering *l;
    const graph *p; /* the pattern */
    int root, covered;
    bool entire;    /* the match must cover the pass of root */
    bool epilogues; /* p is an operator with an epilogue: values of several passes */
    bool rowwise;   /* p is a layer normalisation: values of several passes, which are in values[] */
    int values[16];
    match m;
} matcher;

static bool bind(int *bound_value, int v)
{
    if (*bound_value >= 0 && *bound_value != v) return false;
    *bound_value = v;
    return true;
}

static bool is_like_root(const matcher *t, int v)
{
    shape a = value_shape(t->l->g, v), b = value_shape(t->l->g, t->root);
    layout at = value_layout(t->l->g, v);
    return shape_equal(&a, &b) && layout_is_dense(&at);
}

/* A hole matches a value that is computed elsewhere. Unless the match must cover a complete pass,
 * the value may be part of the pass. */
static bool bind_operand(matcher *t, int hole, int v)
{
    const value *h = value_at(t->p, hole), *x = value_at(t->l->g, v);
    if (t->rowwise && h->attr.hole.which > 0 && x->op == OP_NUMBER)
        return bind(&t->m.in[h->attr.hole.which], v);
    if (x->weak || (t->entire && value_is_map(t->l->g, v) && t->l->pass[v] == t->root)) return false;
    const value *root = value_at(t->l->g, t->root);
    if (x->mem != root->mem || root->mem != root->comp) return false;
    if (t->rowwise)
        return (h->attr.hole.which > 0 || same_shape(t->l->g, v, t->root)) &&
               bind(&t->m.in[h->attr.hole.which], v);
    if (t->epilogues) return h->rank == x->rank && bind(&t->m.in[h->attr.hole.which], v);
    if (h->rank == 1 ? x->rank != 1 : !is_like_root(t, v)) return false;
    return bind(&t->m.in[h->attr.hole.which], v);
}

static bool matches(matcher *t, int p, int v);

static bool args_match(matcher *t, const value *q, const value *x, bool crossed)
{
    for (int k = 0; k < q->args; k++)
        if (!matches(t, q->arg[k], x->arg[crossed && k < 2 ? 1 - k : k])) return false;
    return true;
}

/* May the match compute v? No other value may use v. An epilogue or a normalisation may take values
 * of several passes. */
static bool is_used_here_only(const matcher *t, int v)
{
    const bool anywhere = t->epilogues || t->rowwise;
    return v == t->root ||
           (value_at(t->l->g, v)->uses == 1 && (anywhere || t->l->pass[v] == t->l->pass[t->root]));
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
    if (q->op == OP_HOLE_NUMBER) return x->op == OP_NUMBER && bind(&t->m.num[q->attr.hole.which], v);
    if (q->op != x->op || q->args != x->args || !is_used_here_only(t, v)) return false;
    if (x->comp != value_at(t->l->g, t->root)->comp ||
        (x->op == OP_conv2d && x->attr.conv.form != CONV_IMAGES))
        return false;
    match before = t->m;
    if (t->epilogues) remember_options(t, v);
    if (t->rowwise && value_is_reduce(t->l->g, v) && !is_along_rows(t, v)) return false;
    int covered = t->covered++;
    if (t->rowwise) t->values[covered] = v;
    if (args_match(t, q, x, false)) return true;
    t->m = before;
    t->covered = covered + 1;
    return op_infos[q->op].flags & DUET_COMMUTES && args_match(t, q, x, true);
}

static void finish_match(const lowering *l, match *m)
{
    while (m->ins < 3 && m->in[m->ins] >= 0) m->ins++;
    while (m->nums < 2 && m->num[m->nums] >= 0) {
        m->num[m->nums] = value_at(l->g, m->num[m->nums])->number;
        m->nums++;
    }
}

/* A match that binds no operand yet. */
static match empty_match(void) { return (match){ .in = { -1, -1, -1 }, .num = { -1, -1 }, .pool = -1 }; }

bool match_row(const lowering *l, int v, bool entire, match *m)
{
    const int dest = l->dest_of[v], members = l->members[l->pass[v]];
    if (!value_is_map(l->g, v) || (dest >= 0 && !layout_is_dense(&l->dest[dest].to))) return false;
    for (int r = 0; r < ROWS; r++) {
        matcher t = { .l = l, .p = &fused_patterns[r], .root = v, .entire = entire, .m = empty_match() };
        if (!matches(&t, fused_patterns[r].root[0], v) || (entire && t.covered != members)) continue;
        finish_match(l, &t.m);
        t.m.kernel = row_kernels[r];
        *m = t.m;
        return true;
    }
    return false;
}

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
    matcher t = { .l = l, .p = &epilogue_patterns[row], .root = v, .epilogues = true, .m = empty_match() };
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
        m->num[0] = value_at(l->g, m->num[0])->number;
        return true;
    }
    return false;
}
