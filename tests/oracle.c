/* oracle.c - walks a formula and asks the rows what each node means. */
#include "oracle.h"
#include "dtype.h"
#include "expr.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t oracle_bounded, oracle_wild;

static const precision types[FLOAT_TYPES] = {
    [DUET_F32] = { 0x1p-24, 0x1p-126, FLT_MAX, false },
    [DUET_F64] = { 0x1p-53, 0x1p-1022, DBL_MAX, true },
};

double element(duet_dtype type, const void *p, int64_t i)
{
    if (type == DUET_I64) return (double)((const int64_t *)p)[i];
    return type == DUET_F32 ? ((const float *)p)[i] : ((const double *)p)[i];
}

/* Copies m in row-major order, axis by axis. */
static char *gather(const duet_matrix *m, int axis, const char *from, char *to)
{
    const size_t bytes = dtypes[duet_type(m)].bytes;
    if (axis == duet_rank(m)) return (char *)memcpy(to, from, bytes) + bytes;
    for (int64_t i = 0; i < duet_size(m, axis); i++)
        to = gather(m, axis + 1, from + i * duet_stride(m, axis) * (ptrdiff_t)bytes, to);
    return to;
}

void *elements(const duet_matrix *m)
{
    const char *p = duet_read(m);
    char *all = malloc((size_t)duet_count(m) * 8 + 8);
    if (p && all) gather(m, 0, p, all);
    else free(all), all = NULL;
    return all;
}

bool same_bits(duet_dtype type, const void *a, const void *b, int64_t count)
{
    const size_t bytes = dtypes[type].bytes;
    if (count > 0 && !memcmp(a, b, (size_t)count * bytes)) return true;
    for (int64_t i = 0; i < count; i++) {
        if (type < FLOAT_TYPES && isnan(element(type, a, i)) && isnan(element(type, b, i))) continue;
        if (memcmp((const char *)a + i * (int64_t)bytes, (const char *)b + i * (int64_t)bytes, bytes)) return false;
    }
    return true;
}

static table table_new(int rank, const int64_t *size)
{
    table t = { .rank = rank, .count = 1 };
    for (int d = 0; d < rank; d++) t.count *= t.size[d] = size[d];
    t.at = calloc((size_t)t.count + 1, sizeof *t.at);
    return t;
}

void table_free(table *t)
{
    free(t->at), free(t->admits);
    *t = (table){ 0 };
}

static table leaf(const node *n)
{
    table t = table_new(n->rank, n->size);
    void *all = elements(n->matrix);
    for (int64_t i = 0; i < t.count && all; i++) {
        const quad v = element(duet_type(n->matrix), all, i);
        t.at[i] = (bounds){ v, v, v, false };
    }
    free(all);
    return t;
}

/* A number takes a type by rounding; when is the plan's affair, so both are admitted. */
static table number(const node *n, duet_dtype type)
{
    table t = table_new(0, NULL);
    const double v = n->number, near = type == DUET_F32 ? (double)(float)v : v;
    t.at[0] = (bounds){ v, fmin(v, near), fmax(v, near), false };
    if (isnan(v)) t.at[0].lo = t.at[0].hi = (quad)v;
    return t;
}

/* An index is at the root, for no operator takes it: below it a formula has the type of its operand. */
static duet_dtype computed_in(const formula *f, duet_dtype type)
{
    const node *root = &f->nodes[f->count - 1];
    return type < FLOAT_TYPES || root->op >= OPS ? type : f->nodes[f->count - 1 - root->back[0]].type;
}

table oracle(duet_expr e, duet_dtype type)
{
    formula f;
    if (formula_of(e, NULL, &f) != DUET_OK) return (table){ 0 };
    type = computed_in(&f, type);
    table *of = calloc(f.count, sizeof *of), result;
    for (uint32_t i = 0; i < f.count; i++) {
        const node *n = &f.nodes[i];
        table in[3] = { 0 };
        for (int k = 0; k < 3; k++)
            if (n->op < OPS && k < op_infos[n->op].arity) in[k] = of[i - n->back[k]];
        if (n->op == OP_LEAF) of[i] = leaf(n);
        else if (n->op == OP_NUMBER) of[i] = number(n, type);
        else {
            of[i] = table_new(n->rank, n->size);
            if (!meaning_of(n->op, n->attr, in, &of[i], &types[type])) abort();
        }
    }
    result = of[f.count - 1];
    for (uint32_t i = 0; i + 1 < f.count; i++) table_free(&of[i]);
    free(of);
    return result;
}

/* How far outside of what is allowed: 0 when inside, in units of the type's roundoff at that place. */
static double excess(const bounds *w, double got, const precision *type)
{
    if (w->wild) return 0;
    if (w->v != w->v) return isnan(got) ? 0 : INFINITY;
    if (got >= w->lo && got <= w->hi) return 0;
    if (isinf(got) && (got > 0 ? w->hi > type->most : w->lo < -type->most)) return 0;
    const double d = (double)(got < w->lo ? w->lo - got : got - w->hi);
    return isnan(d) ? INFINITY : d / (type->roundoff * fmax(fabs((double)w->v), type->tiny));
}

/* Element e of a table of indices: 0 when admitted. */
static double misplaced(const table *want, int64_t e, double got)
{
    return got >= 0 && got < (double)want->choices && want->admits[e * want->choices + (int64_t)got] ? 0 : INFINITY;
}

static void place_text(const duet_matrix *m, int64_t i, char *text, size_t room)
{
    int64_t index[DUET_RANK_MAX] = { 0 };
    for (int d = duet_rank(m) - 1; d >= 0; d--) index[d] = i % duet_size(m, d), i /= duet_size(m, d);
    *text = 0;
    for (int d = 0; d < duet_rank(m); d++) {
        const size_t used = strlen(text);
        snprintf(text + used, room - used, "[%lld]", (long long)index[d]);
    }
}

const char *oracle_differs(const table *want, const duet_matrix *m)
{
    static char text[512];
    const precision *type = duet_type(m) < FLOAT_TYPES ? &types[duet_type(m)] : NULL;
    table to = { .rank = duet_rank(m) };
    for (int d = 0; d < to.rank; d++) to.size[d] = duet_size(m, d);
    void *got = elements(m);
    if (!want->at || !got) return free(got), "there is nothing to compare";
    if (!type != !!want->admits) return free(got), "the types of the formula and of the matrix differ";

    int64_t worst = 0, wrong = 0;
    double most = 0;
    for (int64_t i = 0; i < duet_count(m); i++) {
        const int64_t e = table_source(want, &to, i);
        const bounds *w = &want->at[e];
        const double is = element(duet_type(m), got, i), x = type ? excess(w, is, type) : misplaced(want, e, is);
        *(w->wild ? &oracle_wild : &oracle_bounded) += 1;
        wrong += !(x <= 0);
        if (!(x <= most)) worst = i, most = x;
    }
    if (wrong) {
        char at[128];
        const bounds *w = &want->at[table_source(want, &to, worst)];
        place_text(m, worst, at, sizeof at);
        snprintf(text, sizeof text,
                 "%lld of %lld elements wrong, worst at %s: got %.17g, want %.17g, from %.17g to %.17g (off by %.3g u)",
                 (long long)wrong, (long long)duet_count(m), at, element(duet_type(m), got, worst), (double)w->v, (double)w->lo,
                 (double)w->hi, most);
    }
    free(got);
    return wrong ? text : NULL;
}

static FILE *open_text(const char **text)
{
    static char texts[4][8192];
    static int turn;
    char *t = texts[turn++ % 4];
    *text = t;
    memset(t, 0, sizeof texts[0]);
    return fmemopen(t, sizeof texts[0] - 1, "w");
}

const char *text_of(duet_expr e)
{
    const char *text;
    FILE *f = open_text(&text);
    if ((duet_print_expr)(f, e) != DUET_OK) fprintf(f, "(%s)", duet_error());
    fclose(f);
    return text;
}

const char *plan_of(duet_matrix *m, duet_expr e)
{
    const char *text;
    FILE *f = open_text(&text);
    if ((duet_explain)(f, m, e) != DUET_OK) fprintf(f, "(%s)", duet_error());
    fclose(f);
    return text;
}

const char *oracle_refutes(duet_matrix *m, duet_expr e)
{
    static char report[10000];
    const char *line = text_of(e);
    table want = oracle(e, duet_type(m));
    if ((duet_set)(m, e) != DUET_OK) snprintf(report, sizeof report, "%s: %s", line, duet_error());
    else {
        const char *why = oracle_differs(&want, m);
        if (!why) return table_free(&want), NULL;
        snprintf(report, sizeof report, "%s: %s", line, why);
    }
    table_free(&want);
    return report;
}
