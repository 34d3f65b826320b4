/* oracle.c - evaluates a formula node by node with the definitions of the rows. */
#include "oracle.h"
#include "dtype.h"
#include "element.h"
#include "expr.h"
#include "oracle_types.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t oracle_bounded, oracle_wild;

static const precision types[DUET_DTYPE_COUNT] = {
    [DUET_F32] = { 0x1p-24, 0x1p-126, FLT_MAX, false },
    [DUET_F64] = { 0x1p-53, 0x1p-1022, DBL_MAX, true },
};

double element(duet_dtype type, const void *p, int64_t i) { return (double)element_value(type, p, i); }

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
    char *all = malloc((size_t)duet_count(m) * 16 + 8);
    if (p && all) gather(m, 0, p, all);
    else {
        free(all);
        all = NULL;
    }
    return all;
}

bool same_bits(duet_dtype type, const void *a, const void *b, int64_t count)
{
    const size_t bytes = dtypes[type].bytes;
    if (count > 0 && !memcmp(a, b, (size_t)count * bytes)) return true;
    for (int64_t i = 0; i < count; i++) {
        if (is_floating(type) && isnan(element(type, a, i)) && isnan(element(type, b, i))) continue;
        if (memcmp((const char *)a + i * (int64_t)bytes, (const char *)b + i * (int64_t)bytes, bytes))
            return false;
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
    free(t->at);
    free(t->admits);
    *t = (table){ 0 };
}

static table leaf(const node *n)
{
    table t = table_new(n->rank, n->size);
    void *all = elements(n->matrix);
    for (int64_t i = 0; i < t.count && all; i++) {
        const quad v = element_value(duet_type(n->matrix), all, i);
        t.at[i] = (bounds){ v, v, v, false };
    }
    free(all);
    return t;
}

/* A number is rounded to the type of its operation. The plan decides when, so both values are
 * accepted. */
static table number(const node *n, duet_dtype type)
{
    table t = table_new(0, NULL);
    const double near = type == DUET_F32 ? (double)(float)node_number(n) : node_number(n);
    quad v = (quad)n->number;
    if (n->type == DUET_I64) v = (quad)n->integer;
    else if (n->type == DUET_U64) v = (quad)(uint64_t)n->integer;
    const bool whole = !is_floating(type);
    t.at[0] = (bounds){ v, whole || v < near ? v : near, whole || v > near ? v : near, false };
    if (v != v) t.at[0].lo = t.at[0].hi = v;
    return t;
}

/* The common type of the operands of node i; type: if all are numbers. */
static duet_dtype operands_type(const formula *f, uint32_t i, duet_dtype type)
{
    const node *n = &f->nodes[i];
    duet_dtype common = DUET_DTYPE_COUNT;
    for (int k = n->op == OP_where; k < op_infos[n->op].arity; k++) {
        const node *x = n - n->back[k];
        if (!(x->flags & NODE_WEAK))
            common = common == DUET_DTYPE_COUNT ? (duet_dtype)x->type : promoted(common, (duet_dtype)x->type);
    }
    if (common != DUET_DTYPE_COUNT) return common;
    if (n->op == OP_where) return (duet_dtype)n->type;
    return type;
}

static const precision *precision_of(duet_dtype computed)
{
    return &types[computed == DUET_F32 ? DUET_F32 : DUET_F64];
}

static table cast(const table *x, duet_dtype from, duet_dtype to)
{
    table t = table_new(x->rank, x->size);
    for (int64_t e = 0; e < t.count; e++) t.at[e] = cast_bounds(from, to, x->at[e]);
    return t;
}

/* Converts results of def rows for integers and bools, which were evaluated as numbers: sums wrap,
 * or become 0 or 1. */
static void settle(table *t, duet_dtype of)
{
    for (int64_t e = 0; e < t->count; e++) {
        const quad v = t->at[e].v;
        if (of == DUET_BOOL) t->at[e] = (bounds){ v != 0, v != 0, v != 0, false };
        else t->at[e] = whole_bounds(of, v);
    }
}

/* An operator applied to in[], whose common type is `of`. */
static table operator(const node *n, const table *in, duet_dtype of)
{
    table t = table_new(n->rank, n->size);
    if (arranged_meaning(n, &in[0], &t)) return t;
    const duet_dtype computed = computed_type(of);
    const bool sums = n->op == OP_sum || n->op == OP_prod || n->op == OP_dot;
    const bool whole = of == DUET_BOOL ? sums : computed == DUET_I64 || computed == DUET_U64;
    if (whole && whole_meaning(n, in, &t)) return t;
    if (!meaning_of(of == DUET_BOOL ? op_of_bools(n->op) : n->op, n->attr.word, in, &t,
                    precision_of(computed)))
        abort();
    if (op_infos[n->op].kind == KIND_DEF && !is_floating(of)) settle(&t, of);
    return t;
}

static table result_of(const formula *f, uint32_t i, const table *of, duet_dtype type)
{
    const node *n = &f->nodes[i];
    table in[3] = { 0 }, own[3] = { 0 }, t;
    if (n->op == OP_LEAF) return leaf(n);
    if (n->op == OP_NUMBER) return number(n, DUET_F64);
    const duet_dtype common = n->op == OP_cast ? (duet_dtype)n->type : operands_type(f, i, type);
    for (int k = 0; k < op_infos[n->op].arity; k++) {
        const node *x = n - n->back[k];
        if (x->op == OP_NUMBER) own[k] = number(x, n->op == OP_cast ? DUET_F64 : computed_type(common));
        if (x->op == OP_NUMBER) in[k] = own[k];
        else in[k] = of[i - n->back[k]];
    }
    const node *x = n - n->back[0];
    if (n->op == OP_cast) t = cast(&in[0], (duet_dtype)x->type, (duet_dtype)n->type);
    else t = operator(n, in, common);
    for (int k = 0; k < 3; k++) table_free(&own[k]);
    return t;
}

table oracle(duet_expr e, duet_dtype type)
{
    formula f;
    if (formula_of(e, NULL, &f) != DUET_OK) return (table){ 0 };
    table *of = calloc(f.count, sizeof *of), result;
    const node *root = &f.nodes[f.count - 1];
    for (uint32_t i = 0; i < f.count; i++)
        of[i] = result_of(&f, i, of, computed_type(is_floating(type) ? type : DUET_F64));
    result = of[f.count - 1];
    if (!result.admits && (root->type != type || type == DUET_F16 || type == DUET_BF16)) {
        of[f.count - 1] = result;
        result = cast(&result, (duet_dtype)root->type, type);
        table_free(&of[f.count - 1]);
    }
    for (uint32_t i = 0; i + 1 < f.count; i++) table_free(&of[i]);
    free(of);
    return result;
}

/* The distance from the accepted interval, in units of the roundoff of the type at that value; 0
 * inside. */
static double excess(const bounds *w, long double got, duet_dtype type)
{
    if (w->wild) return 0;
    if (w->v != w->v) return isnan(got) ? 0 : INFINITY;
    if (got >= w->lo && got <= w->hi) return 0;
    if (!is_floating(type)) return INFINITY;
    quad most = FLT_MAX;
    if (type == DUET_F64) most = DBL_MAX;
    else if (type == DUET_F16) most = 65504;
    if (isinf(got) && (got > 0 ? w->hi > most : w->lo < -most)) return 0;
    const double d = (double)(got < w->lo ? w->lo - got : got - w->hi);
    if (isnan(d)) return INFINITY;
    return d / (dtypes[type].roundoff * fmax(fabs((double)w->v), dtypes[type].tiny));
}

/* For element e of a table of indices: 0 if the index is accepted. */
static double misplaced(const table *want, int64_t e, double got)
{
    if (got >= 0 && got < (double)want->choices && want->admits[e * want->choices + (int64_t)got]) return 0;
    return INFINITY;
}

static void place_text(const duet_matrix *m, int64_t i, char *text, size_t room)
{
    int64_t index[DUET_RANK_MAX] = { 0 };
    for (int d = duet_rank(m) - 1; d >= 0; d--) {
        index[d] = i % duet_size(m, d);
        i /= duet_size(m, d);
    }
    *text = 0;
    for (int d = 0; d < duet_rank(m); d++) {
        const size_t used = strlen(text);
        snprintf(text + used, room - used, "[%lld]", (long long)index[d]);
    }
}

const char *oracle_differs(const table *want, const duet_matrix *m)
{
    static char text[512];
    const duet_dtype type = duet_type(m);
    table to = { .rank = duet_rank(m) };
    for (int d = 0; d < to.rank; d++) to.size[d] = duet_size(m, d);
    void *got = elements(m);
    if (!want->at || !got) {
        free(got);
        return "there is nothing to compare";
    }

    int64_t worst = 0, wrong = 0;
    double most = 0;
    for (int64_t i = 0; i < duet_count(m); i++) {
        const int64_t e = table_source(want, &to, i);
        const bounds *w = &want->at[e];
        const long double is = element_value(type, got, i);
        const double x = want->admits ? misplaced(want, e, (double)is) : excess(w, is, type);
        *(w->wild ? &oracle_wild : &oracle_bounded) += 1;
        wrong += !(x <= 0);
        if (!(x <= most)) {
            worst = i;
            most = x;
        }
    }
    if (wrong) {
        char at[128];
        const bounds *w = &want->at[table_source(want, &to, worst)];
        place_text(m, worst, at, sizeof at);
        snprintf(text, sizeof text,
                 "%lld of %lld elements wrong, worst at %s: got %.17g, want %.17g, from %.17g to %.17g (off "
                 "by %.3g u)",
                 (long long)wrong, (long long)duet_count(m), at, element(duet_type(m), got, worst),
                 (double)w->v, (double)w->lo, (double)w->hi, most);
    }
    free(got);
    if (wrong) return text;
    return NULL;
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
        if (!why) {
            table_free(&want);
            return NULL;
        }
        snprintf(report, sizeof report, "%s: %s", line, why);
    }
    table_free(&want);
    return report;
}
