/* patterns.c - fused rows: patterns are expressions with holes, made from fused.def by the operators themselves. */
#include "lower.h"
#include "status.h"
#include <pthread.h>
#include <string.h>

enum row {
#define DUET_FUSED(name, ...) ROW_##name,
#include "fused.def"
    ROWS
};

const char *const fused_names[] = {
#define DUET_FUSED(name, ...) #name,
#include "fused.def"
};

enum {
#define DUET_ROWWISE(name, ...) ROWWISE_##name,
#include "fused.def"
    ROWWISE
};

static graph pattern[ROWS], finished[FINISHES], rowwise[ROWWISE];
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
#define DUET_FUSED(name, formula, ...)    TRY(pattern_make(&pattern[ROW_##name], formula));
#define DUET_FINISHED(name, formula, ...) TRY(pattern_make(&finished[EPILOGUE_##name], formula));
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
    duet_status s = prepared ? DUET_OK : patterns_make();
    formulas_back(own);
    for (int r = 0; r < ROWS && s != DUET_OK; r++) graph_free(&pattern[r]);
    for (int r = 1; r < FINISHES && s != DUET_OK; r++) graph_free(&finished[r]);
    for (int r = 0; r < ROWWISE && s != DUET_OK; r++) graph_free(&rowwise[r]);
    __atomic_store_n(&prepared, s == DUET_OK, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return s;
}

duet_status match_prepare(void) { return __atomic_load_n(&prepared, __ATOMIC_ACQUIRE) ? DUET_OK : prepare(); }

int row_flops(int row)
{
    int n = 0;
    for (int v = 0; v < pattern[row].count; v++)
        n += value_at(&pattern[row], v)->op == OP_fma
                 ? 2
                 : value_at(&pattern[row], v)->uses && value_is_map(&pattern[row], v);
    return n;
}

typedef struct trial {
    const lowering *l;
    const graph *p;
    int root, covered;
    bool whole;
    bool
        epilogues; /* p is of a finished step: its values are those of a vendor's operator and of what follows */
    bool by_rows; /* p is of a step by rows: its values are of several passes, */
    int seen[16]; /* these */
    match m;
} trial;

static bool bind(int *place, int v)
{
    if (*place >= 0 && *place != v) return false;
    *place = v;
    return true;
}

static bool same_as_root(const trial *t, int v)
{
    shape a = value_shape(t->l->g, v), b = value_shape(t->l->g, t->root);
    layout at = value_layout(t->l->g, v);
    return shape_equal(&a, &b) && layout_is_dense(&at);
}

/* A hole takes a finished value, or, outside of whole regions, one that is still to be computed. */
static bool bind_operand(trial *t, int hole, int v)
{
    const value *h = value_at(t->p, hole), *x = value_at(t->l->g, v);
    if (t->by_rows && h->attr.hole.which > 0 && x->op == OP_NUMBER)
        return bind(&t->m.in[h->attr.hole.which], v);
    if (x->weak || (t->whole && value_is_map(t->l->g, v) && t->l->pass[v] == t->root)) return false;
    const value *root = value_at(t->l->g, t->root);
    if (x->mem != root->mem || root->mem != root->comp) return false;
    if (t->by_rows)
        return (h->attr.hole.which > 0 || same_shape(t->l->g, v, t->root)) &&
               bind(&t->m.in[h->attr.hole.which], v);
    if (t->epilogues) return h->rank == x->rank && bind(&t->m.in[h->attr.hole.which], v);
    if (h->rank == 1 ? x->rank != 1 : !same_as_root(t, v)) return false;
    return bind(&t->m.in[h->attr.hole.which], v);
}

static bool fits(trial *t, int p, int v);

static bool args_fit(trial *t, const value *q, const value *x, bool crossed)
{
    for (int k = 0; k < q->args; k++)
        if (!fits(t, q->arg[k], x->arg[crossed && k < 2 ? 1 - k : k])) return false;
    return true;
}

/* May the match compute v? Of a finished step also what no pass has. */
static bool of_use_here_alone(const trial *t, int v)
{
    const bool anywhere = t->epilogues || t->by_rows;
    return v == t->root ||
           (value_at(t->l->g, v)->uses == 1 && (anywhere || t->l->pass[v] == t->l->pass[t->root]));
}

/* A finished step's operators with options are noted: the pattern's own count for nothing. */
static void note_options(trial *t, int v)
{
    const int op = value_at(t->l->g, v)->op;
    if (op == OP_max_pool2d) t->m.pool = v;
    else if (!value_is_map(t->l->g, v) && op != OP_softmax) t->m.vendor = v;
}

/* Reductions of one step by rows are all along the same axes, the last ones, which are kept. */
static bool is_of_rows(trial *t, int v)
{
    const value *x = value_at(t->l->g, value_at(t->l->g, v)->arg[0]);
    const uint32_t axes = reduced_axes(t->l->g, v), others = ~axes & ((1u << x->rank) - 1);
    if (!t->m.axes) t->m.axes = axes;
    return axes && axes == t->m.axes && (others & (others + 1)) == 0 && value_at(t->l->g, v)->rank == x->rank;
}

/* Has value v the form of pattern value p? Inner values must be of use to this match alone. */
static bool fits(trial *t, int p, int v)
{
    const value *q = value_at(t->p, p), *x = value_at(t->l->g, v);
    if (q->op == OP_HOLE) return bind_operand(t, p, v);
    if (q->op == OP_HOLE_NUMBER) return x->op == OP_NUMBER && bind(&t->m.num[q->attr.hole.which], v);
    if (q->op != x->op || q->args != x->args || !of_use_here_alone(t, v)) return false;
    if (x->comp != value_at(t->l->g, t->root)->comp ||
        (x->op == OP_conv2d && x->attr.conv.form != CONV_IMAGES))
        return false;
    match before = t->m;
    if (t->epilogues) note_options(t, v);
    if (t->by_rows && value_is_reduce(t->l->g, v) && !is_of_rows(t, v)) return false;
    int covered = t->covered++;
    if (t->by_rows) t->seen[covered] = v;
    if (args_fit(t, q, x, false)) return true;
    t->m = before, t->covered = covered + 1;
    return op_infos[q->op].flags & DUET_COMMUTES && args_fit(t, q, x, true);
}

static void epilogue(const lowering *l, match *m)
{
    while (m->ins < 3 && m->in[m->ins] >= 0) m->ins++;
    while (m->nums < 2 && m->num[m->nums] >= 0)
        m->num[m->nums] = value_at(l->g, m->num[m->nums])->number, m->nums++;
}

static match match_of(int row)
{
    return (match){ .row = row, .in = { -1, -1, -1 }, .num = { -1, -1 }, .pool = -1 };
}

bool match_row(const lowering *l, int v, bool whole, match *m)
{
    const int dest = l->dest_of[v], members = l->members[l->pass[v]];
    if (!value_is_map(l->g, v) || (dest >= 0 && !layout_is_dense(&l->dest[dest].to))) return false;
    for (int r = 0; r < ROWS; r++) {
        trial t = { .l = l, .p = &pattern[r], .root = v, .whole = whole, .m = match_of(r) };
        if (!fits(&t, pattern[r].root[0], v) || (whole && t.covered != members)) continue;
        epilogue(l, &t.m);
        *m = t.m;
        return true;
    }
    return false;
}

/* With the machine on, a pass is computed by one step: all of it. */
static bool takes_whole_pass(const lowering *l, int v)
{
    const graph *g = l->g;
    int maps = 0;
    while (!value_is_map(g, v)) v = value_at(g, v)->arg[0];
    for (int u = v; value_is_map(g, u); u = value_at(g, u)->arg[0]) maps += l->pass[u] == l->pass[v];
    return l->fusion != FUSION_MACHINE || l->members[l->pass[v]] == maps;
}

bool match_epilogue(const lowering *l, int v, enum epilogue row, match *m)
{
    trial t = { .l = l, .p = &finished[row], .root = v, .epilogues = true, .m = match_of(row) };
    if (!fits(&t, finished[row].root[0], v) || !takes_whole_pass(l, v)) return false;
    *m = t.m;
    return true;
}

/* With the machine on, a pass is computed by one step: the match has all of each pass that it touches. */
static bool has_whole_passes(const trial *t)
{
    const lowering *l = t->l;
    bool whole = true;
    for (int i = 0; i < t->covered; i++) {
        int here = 0;
        for (int k = 0; k < t->covered; k++) here += l->pass[t->seen[k]] == l->pass[t->seen[i]];
        whole &= here == l->members[l->pass[t->seen[i]]];
    }
    return whole || l->fusion != FUSION_MACHINE;
}

bool match_rows(const lowering *l, int v, match *m)
{
    const int dest = l->dest_of[v];
    if (!value_is_map(l->g, v) || (dest >= 0 && !layout_is_dense(&l->dest[dest].to))) return false;
    for (int r = 0; r < ROWWISE; r++) {
        trial t = { .l = l, .p = &rowwise[r], .root = v, .by_rows = true, .m = match_of(r) };
        if (!fits(&t, rowwise[r].root[0], v) || !has_whole_passes(&t)) continue;
        *m = t.m, m->num[0] = value_at(l->g, m->num[0])->number;
        return true;
    }
    return false;
}
