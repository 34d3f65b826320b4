/* match.c - fused rows: patterns are expressions with holes, made from fused.def by the operators themselves. */
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

static graph pattern[ROWS];
static bool prepared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static duet_status pattern_make(enum row r, duet_expr e)
{
    formula f;
    duet_status s = formula_of(e, "a row of fused.def", &f);
    if (s == DUET_OK) s = graph_pattern(&pattern[r], &f);
    formula_spend(e, NULL);
    return s;
}

#define X hole_operand(0, 2)
#define Y hole_operand(1, 2)
#define B hole_operand(1, 1)
#define S hole_number(0)
#define R hole_number(1)
static duet_status patterns_make(void)
{
#define DUET_FUSED(name, formula, ...) TRY(pattern_make(ROW_##name, formula));
#include "fused.def"
    return DUET_OK;
}
#undef X
#undef Y
#undef B
#undef S
#undef R

static __attribute__((noinline)) duet_status prepare(void)
{
    pthread_mutex_lock(&lock);
    void *own = formulas_apart();
    duet_status s = prepared ? DUET_OK : patterns_make();
    formulas_back(own);
    for (int r = 0; r < ROWS && s != DUET_OK; r++) graph_free(&pattern[r]);
    __atomic_store_n(&prepared, s == DUET_OK, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return s;
}

duet_status match_prepare(void) { return __atomic_load_n(&prepared, __ATOMIC_ACQUIRE) ? DUET_OK : prepare(); }

int row_flops(int row)
{
    int n = 0;
    for (int v = 0; v < pattern[row].count; v++)
        n += value_at(&pattern[row], v)->op == OP_fma ? 2 : value_at(&pattern[row], v)->uses && value_is_map(&pattern[row], v);
    return n;
}

typedef struct trial {
    const lowering *l;
    const graph *p;
    int root, covered;
    bool whole;
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
    if (x->weak || (t->whole && value_is_map(t->l->g, v) && t->l->pass[v] == t->root)) return false;
    if (h->rank == 1 ? x->rank != 1 : !same_as_root(t, v)) return false;
    return bind(&t->m.in[h->attr[0]], v);
}

static bool fits(trial *t, int p, int v);

static bool args_fit(trial *t, const value *q, const value *x, bool crossed)
{
    for (int k = 0; k < q->args; k++)
        if (!fits(t, q->arg[k], x->arg[crossed && k < 2 ? 1 - k : k])) return false;
    return true;
}

/* Has value v the form of pattern value p? Inner values must be of use to this match alone. */
static bool fits(trial *t, int p, int v)
{
    const value *q = value_at(t->p, p), *x = value_at(t->l->g, v);
    if (q->op == OP_HOLE) return bind_operand(t, p, v);
    if (q->op == OP_HOLE_NUMBER) return x->op == OP_NUMBER && bind(&t->m.num[q->attr[0]], v);
    if (q->op != x->op || (v != t->root && (x->uses != 1 || t->l->pass[v] != t->l->pass[t->root]))) return false;
    match before = t->m;
    int covered = t->covered++;
    if (args_fit(t, q, x, false)) return true;
    t->m = before, t->covered = covered + 1;
    return op_infos[q->op].flags & DUET_COMMUTES && args_fit(t, q, x, true);
}

static void finish(const lowering *l, match *m)
{
    while (m->ins < 3 && m->in[m->ins] >= 0) m->ins++;
    while (m->nums < 2 && m->num[m->nums] >= 0) m->num[m->nums] = value_at(l->g, m->num[m->nums])->number, m->nums++;
}

bool match_row(const lowering *l, int v, bool whole, match *m)
{
    const int goal = l->goal_of[v], members = l->members[l->pass[v]];
    if (!value_is_map(l->g, v) || (goal >= 0 && !layout_is_dense(&l->goal[goal].to))) return false;
    for (int r = 0; r < ROWS; r++) {
        trial t = { l, &pattern[r], v, 0, whole, { r, { -1, -1, -1 }, { -1, -1 }, 0, 0 } };
        if (!fits(&t, pattern[r].root[0], v) || (whole && t.covered != members)) continue;
        finish(l, &t.m);
        *m = t.m;
        return true;
    }
    return false;
}
