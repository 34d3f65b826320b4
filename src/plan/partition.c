/* partition.c - how a statement is cut along the leading axis of its destinations, and the plan of a part. */
#include "partition.h"
#include "dtype.h"
#include "matrix.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

/* ---- which values go along with the rows: asked from the destinations down to the leaves ---- */

typedef struct cutter {
    const statement *s;
    int64_t length;
    uint8_t *part;
} cutter;

/* An operand of an operator that is cut and broadcasts, or goes element by element. */
static int along(const cutter *c, const node *n, const node *x)
{
    return x->rank == n->rank && x->size[0] == c->length ? PART_CUT : PART_WHOLE;
}

/* case EACH_RANK(conv, ): an operator on signals, images and volumes. */
#define EACH_RANK(name, rest) OP_##name##1d##rest : case OP_##name##2d##rest : case OP_##name##3d##rest

/* What a part of node n, which is cut, needs of operand k; PART_NONE: it cannot be cut there. */
static int needs(const cutter *c, const node *n, int k, const node *x)
{
    if (op_infos[n->op].kind == KIND_MAP) return along(c, n, x);
    if (op_infos[n->op].kind == KIND_REDUCE) return n->attr.reduce.axes & 1 ? PART_NONE : PART_CUT;
    switch (n->op) {
    case OP_matmul:
        if (n->rank > 2) return x->rank > n->rank ? PART_NONE : along(c, n, x);
        return k ? PART_WHOLE : x->rank == 2 ? PART_CUT : PART_NONE;
    case OP_cast:
    case OP_real:
    case OP_imag:
    case OP_conj:
    case OP_arg:
    case OP_complex: return along(c, n, x);
    case OP_bias_add:
    case EACH_RANK(conv, ):
    case EACH_RANK(convolve, ):
    case EACH_RANK(conv, _input_grad):
    case EACH_RANK(conv_transpose, ): return k ? PART_WHOLE : PART_CUT;
    case OP_softmax:
    case OP_log_softmax: return x->rank > 1 ? PART_CUT : PART_NONE;
    case EACH_RANK(max_pool, ):
    case EACH_RANK(max_pool, _grad):
    case EACH_RANK(avg_pool, ):
    case EACH_RANK(avg_pool, _grad):
    case EACH_RANK(upsample, ): return PART_CUT;
    case OP_fftn:
    case OP_ifftn:
    case OP_rfftn:
    case OP_irfftn: return n->attr.fourier.axes & 1 ? PART_NONE : PART_CUT;
    default: return PART_NONE;
    }
}

/* false: another wants it otherwise, or nobody can have it so. */
static bool want(cutter *c, uint32_t i, int part)
{
    const bool same = !c->part[i] || c->part[i] == part;
    c->part[i] = (uint8_t)part;
    return same && part != PART_NONE;
}

static bool want_operands(cutter *c, uint32_t i)
{
    const node *n = &c->s->f->nodes[i];
    bool can = true;
    for (int k = 0; k < op_infos[n->op].arity && can; k++) {
        const uint32_t at = i - n->back[k];
        can = want(c, at, c->part[i] == PART_CUT ? needs(c, n, k, &c->s->f->nodes[at]) : PART_WHOLE);
    }
    return can;
}

/* Rows one after the other, with not much between them. */
static bool has_rows(const layout *l)
{
    int64_t row = 1;
    for (int d = 1; d < l->rank; d++) {
        if (l->stride[d] < 0) return false;
        row += (l->size[d] - 1) * l->stride[d];
    }
    return l->stride[0] >= row && l->stride[0] <= 2 * row;
}

/* The key says which leaves are one matrix, and those become one leaf of the plan. */
static bool is_read_alike(const cutter *c, uint32_t i)
{
    const node *n = &c->s->f->nodes[i];
    const uint32_t same = c->s->f->words[n->word - c->s->f->nodes[0].word + 1];
    return !same || same > i || c->part[i - same] == c->part[i];
}

/* A destination is written part by part: what is read of it is the same rows, or none. */
static bool can_read(const cutter *c, uint32_t i)
{
    const duet_matrix *m = c->s->f->nodes[i].matrix;
    const bool is_cut = c->part[i] == PART_CUT;
    if ((is_cut && !has_rows(&m->at)) || !is_read_alike(c, i)) return false;
    for (int k = 0; k < c->s->count; k++) {
        const enum overlap o = matrix_overlap(c->s->to[k].m, m);
        if (o == TANGLED || (o == SAME && !is_cut)) return false;
    }
    return true;
}

static bool find_parts(cutter *c)
{
    const node *nodes = c->s->f->nodes;
    bool can = true;
    for (int k = 0; k < c->s->count && can; k++) {
        const node *n = &nodes[c->s->to[k].node];
        can = want(c, c->s->to[k].node,
                   n->rank == c->s->to[k].m->at.rank && n->size[0] == c->length ? PART_CUT : PART_WHOLE);
    }
    for (uint32_t i = c->s->f->count; i-- > 0 && can;) can = c->part[i] && want_operands(c, i);
    for (uint32_t i = 0; i < c->s->f->count && can; i++) can = nodes[i].op != OP_LEAF || can_read(c, i);
    return can;
}

/* The rows that all destinations have, without gaps; 0: they differ, or are too few. */
static int64_t length_of(const statement *s)
{
    const layout *first = &s->to[0].m->at;
    const int64_t length = first->rank ? first->size[0] : 0;
    for (int k = 0; k < s->count; k++) {
        const layout *l = &s->to[k].m->at;
        if (!l->rank || l->size[0] != length || !layout_is_dense(l)) return 0;
    }
    return length > 1 ? length : 0;
}

const cut *cut_of(const plan *whole, const statement *s)
{
    plan *p = (plan *)(uintptr_t)whole; /* this thread's own */
    if (p->cut) return p->cut;
    cut *c = calloc(1, sizeof *c);
    uint8_t *part = calloc(s->f->count, sizeof *part);
    if (!c || !part) {
        free(c);
        free(part);
        return NULL;
    }
    cutter by = { s, length_of(s), part };
    c->part = part;
    if (by.length && find_parts(&by)) c->length = by.length;
    return p->cut = c;
}

void cut_free(cut *c)
{
    if (c) {
        plan_free(c->chosen);
        free(c->part);
    }
    free(c);
}

/* ---- the plan of a part ---- */

size_t row_step(const duet_matrix *m) { return (size_t)m->at.stride[0] * dtypes[m->at.type].bytes; }

size_t rows_bytes(const duet_matrix *m, int64_t rows)
{
    int64_t low, high;
    layout l = m->at;
    l.size[0] = rows;
    layout_span(&l, &low, &high);
    return (size_t)high * dtypes[l.type].bytes;
}

/* A header over the first rows of m, for planning alone. */
static duet_matrix first_rows(const duet_matrix *m, int64_t rows)
{
    duet_matrix part = *m;
    part.at.size[0] = rows;
    part.count = layout_count(&part.at);
    return part;
}

/* Room for what a part is planned from. */
typedef struct draft {
    node *nodes;
    duet_matrix *headers; /* of the leaves, by node; then of the destinations */
    target to[STATEMENTS];
    formula f;
} draft;

static void write_draft(draft *d, const statement *s, int64_t rows, const uint8_t *part)
{
    d->f = *s->f;
    d->f.nodes = d->nodes;
    memcpy(d->nodes, s->f->nodes, s->f->count * sizeof *d->nodes);
    for (uint32_t i = 0; i < s->f->count; i++) {
        node *n = &d->nodes[i];
        if (part[i] != PART_CUT) continue;
        n->size[0] = rows;
        if (n->op == OP_LEAF) {
            d->headers[i] = first_rows(n->matrix, rows);
            n->matrix = &d->headers[i];
        }
    }
    for (int k = 0; k < s->count; k++) {
        duet_matrix *m = &d->headers[s->f->count + (uint32_t)k];
        *m = first_rows(s->to[k].m, rows);
        d->to[k] = (target){ m, s->to[k].node };
    }
}

static plan *plan_rows(const statement *s, const machine *on, int64_t rows, const uint8_t *part)
{
    draft d = { .nodes = malloc(s->f->count * sizeof *d.nodes),
                .headers = malloc((s->f->count + (size_t)s->count) * sizeof *d.headers) };
    plan *p = NULL;
    if (d.nodes && d.headers) {
        write_draft(&d, s, rows, part);
        p = plan_make(&(statement){ d.to, s->count, &d.f, s->fusion, s->math }, on);
    }
    free(d.nodes);
    free(d.headers);
    if (p && p->status != DUET_OK) {
        plan_free(p);
        p = NULL;
    }
    return p;
}

static streaming *new_streaming(const statement *s, const machine *on, int64_t length, int64_t rows,
                                const uint8_t *part)
{
    streaming *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->length = length;
    w->rows = rows;
    w->part = malloc(s->f->count);
    if (w->part) memcpy(w->part, part, s->f->count);
    if (length % rows) w->rest = plan_rows(s, on, length % rows, part);
    if (w->part && (w->rest || length % rows == 0)) return w;
    stream_free(w);
    return NULL;
}

plan *stream_plan(const statement *s, const machine *on, int64_t length, int64_t rows, const uint8_t *part)
{
    plan *p = plan_rows(s, on, rows, part);
    if (p && !(p->stream = new_streaming(s, on, length, rows, part))) {
        plan_free(p);
        p = NULL;
    }
    return p;
}

void stream_free(streaming *w)
{
    if (w) {
        plan_free(w->rest);
        free(w->part);
    }
    free(w);
}
