/* partition.c - splits a statement along the leading axis of its destinations, and plans one part
 * of it. */
#include "partition.h"
#include "dtype.h"
#include "matrix.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

/* ---- which nodes are split: from the destinations down to the leaves ---- */

typedef struct partitioner {
    const statement *s;
    int64_t length;
    uint8_t *part;
} partitioner;

/* An operand of a split operator that works element by element or broadcasts. */
static int part_of_rows(const partitioner *c, const node *n, const node *x)
{
    if (x->rank == n->rank && x->size[0] == c->length) return PART_SPLIT;
    return PART_REPLICATED;
}

/* How a split node n needs its operand k, which is x; PART_NONE: n cannot be split there. */
typedef int part_rule(const partitioner *c, const node *n, int k, const node *x);

static int reduced_part(const partitioner *c, const node *n, int k, const node *x)
{
    return n->attr.reduce.axes & 1 ? PART_NONE : PART_SPLIT;
}

static int along_part(const partitioner *c, const node *n, int k, const node *x)
{
    return part_of_rows(c, n, x);
}

static int product_part(const partitioner *c, const node *n, int k, const node *x)
{
    if (n->rank > 2) return x->rank > n->rank ? PART_NONE : part_of_rows(c, n, x);
    if (k) return PART_REPLICATED;
    return x->rank == 2 ? PART_SPLIT : PART_NONE;
}

static int first_part(const partitioner *c, const node *n, int k, const node *x)
{
    return k ? PART_REPLICATED : PART_SPLIT;
}

static int each_part(const partitioner *c, const node *n, int k, const node *x) { return PART_SPLIT; }

static int row_part(const partitioner *c, const node *n, int k, const node *x)
{
    return x->rank > 1 ? PART_SPLIT : PART_NONE;
}

static int fourier_part(const partitioner *c, const node *n, int k, const node *x)
{
    return n->attr.fourier.axes & 1 ? PART_NONE : PART_SPLIT;
}

/* An operator on signals, images and volumes. */
#define EACH_RANK(name, rest, rule)                                                                          \
    [OP_##name##1d##rest] = rule, [OP_##name##2d##rest] = rule, [OP_##name##3d##rest] = rule

/* By operator; NULL: it cannot be split. */
static part_rule *const part_rules[OPS_ALL] = {
#define DUET_MAP1(name, ...)  [OP_##name] = along_part,
#define DUET_MAP2             DUET_MAP1
#define DUET_MAP3             DUET_MAP1
#define DUET_INT1             DUET_MAP1
#define DUET_INT2             DUET_MAP1
#define DUET_FOLD1(name, ...) [OP_##name] = reduced_part,
#define DUET_FOLD2            DUET_FOLD1
#define DUET_MOMENT1          DUET_FOLD1
#define DUET_PLACE1           DUET_FOLD1
#include <duet/ops.def>
    [OP_matmul] = product_part,
    [OP_cast] = along_part,
    [OP_real] = along_part,
    [OP_imag] = along_part,
    [OP_conj] = along_part,
    [OP_arg] = along_part,
    [OP_complex] = along_part,
    [OP_bias_add] = first_part,
    EACH_RANK(conv, , first_part),
    EACH_RANK(convolve, , first_part),
    EACH_RANK(conv, _input_grad, first_part),
    EACH_RANK(conv_transpose, , first_part),
    [OP_softmax] = row_part,
    [OP_log_softmax] = row_part,
    EACH_RANK(max_pool, , each_part),
    EACH_RANK(max_pool, _grad, each_part),
    EACH_RANK(avg_pool, , each_part),
    EACH_RANK(avg_pool, _grad, each_part),
    EACH_RANK(upsample, , each_part),
    [OP_fftn] = fourier_part,
    [OP_ifftn] = fourier_part,
    [OP_rfftn] = fourier_part,
    [OP_irfftn] = fourier_part,
};

static int operand_part(const partitioner *c, const node *n, int k, const node *x)
{
    return part_rules[n->op] ? part_rules[n->op](c, n, k, x) : PART_NONE;
}

/* false: node i is needed with two different partitions, or with one that is impossible. */
static bool set_part(partitioner *c, uint32_t i, int part)
{
    const bool same = !c->part[i] || c->part[i] == part;
    c->part[i] = (uint8_t)part;
    return same && part != PART_NONE;
}

static bool set_operand_parts(partitioner *c, uint32_t i)
{
    const node *n = &c->s->f->nodes[i];
    bool can = true;
    for (int k = 0; k < op_infos[n->op].arity && can; k++) {
        const uint32_t at = i - n->back[k];
        int part = PART_REPLICATED;
        if (c->part[i] == PART_SPLIT) part = operand_part(c, n, k, &c->s->f->nodes[at]);
        can = set_part(c, at, part);
    }
    return can;
}

/* Are the rows in order, with small gaps between them? */
static bool has_rows(const layout *l)
{
    int64_t row = 1;
    for (int d = 1; d < l->rank; d++) {
        if (l->stride[d] < 0) return false;
        row += (l->size[d] - 1) * l->stride[d];
    }
    return l->stride[0] >= row && l->stride[0] <= 2 * row;
}

/* Leaves that the key says are one matrix become one leaf of the plan, so they must be treated
 * alike. */
static bool is_read_alike(const partitioner *c, uint32_t i)
{
    const node *n = &c->s->f->nodes[i];
    const uint32_t same = c->s->f->words[n->word - c->s->f->nodes[0].word + 1];
    return !same || same > i || c->part[i - same] == c->part[i];
}

/* A destination is written part by part. The statement may read the same rows of it, or none. */
static bool can_read(const partitioner *c, uint32_t i)
{
    const duet_matrix *m = c->s->f->nodes[i].matrix;
    const bool is_split = c->part[i] == PART_SPLIT;
    if ((is_split && !has_rows(&m->at)) || !is_read_alike(c, i)) return false;
    for (int k = 0; k < c->s->count; k++) {
        const enum overlap o = matrix_overlap(c->s->to[k].m, m);
        if (o == TANGLED || (o == SAME && !is_split)) return false;
    }
    return true;
}

static bool find_parts(partitioner *c)
{
    const node *nodes = c->s->f->nodes;
    bool can = true;
    for (int k = 0; k < c->s->count && can; k++) {
        const node *n = &nodes[c->s->to[k].node];
        const bool splits = n->rank == c->s->to[k].m->at.rank && n->size[0] == c->length;
        can = set_part(c, c->s->to[k].node, splits ? PART_SPLIT : PART_REPLICATED);
    }
    for (uint32_t i = c->s->f->count; i-- > 0 && can;) can = c->part[i] && set_operand_parts(c, i);
    for (uint32_t i = 0; i < c->s->f->count && can; i++) can = nodes[i].op != OP_LEAF || can_read(c, i);
    return can;
}

/* The number of rows, which all destinations must have in common, without gaps; 0: they differ, or
 * are too few. */
static int64_t length_of(const statement *s)
{
    const layout *first = &s->to[0].m->at;
    const int64_t length = first->rank ? first->size[0] : 0;
    for (int k = 0; k < s->count; k++) {
        const layout *l = &s->to[k].m->at;
        if (!l->rank || l->size[0] != length || !layout_is_dense(l)) return 0;
    }
    if (length > 1) return length;
    return 0;
}

const partition *partition_of(const plan *unsplit, const statement *s)
{
    plan *p = (plan *)(uintptr_t)unsplit; /* belongs to this thread */
    if (p->partition) return p->partition;
    partition *c = calloc(1, sizeof *c);
    uint8_t *part = calloc(s->f->count, sizeof *part);
    if (!c || !part) {
        free(c);
        free(part);
        return NULL;
    }
    partitioner by = { s, length_of(s), part };
    c->part = part;
    if (by.length && find_parts(&by)) c->length = by.length;
    return p->partition = c;
}

void partition_free(partition *c)
{
    if (!c) return;
    for (plan *p = c->plans; p; p = c->plans) {
        c->plans = p->next;
        plan_free(p);
    }
    free(c->part);
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

/* A header for the first rows of m, only for planning. */
static duet_matrix first_rows(const duet_matrix *m, int64_t rows)
{
    duet_matrix part = *m;
    part.at.size[0] = rows;
    part.count = layout_count(&part.at);
    return part;
}

/* Memory for the statement that a part is planned from. */
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
        if (part[i] != PART_SPLIT) continue;
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

static plan *plan_rows(const statement *s, int device, int64_t rows, const uint8_t *part)
{
    draft d = { .nodes = malloc(s->f->count * sizeof *d.nodes),
                .headers = malloc((s->f->count + (size_t)s->count) * sizeof *d.headers) };
    plan *p = NULL;
    if (d.nodes && d.headers) {
        write_draft(&d, s, rows, part);
        p = plan_make(&(statement){ d.to, s->count, &d.f, s->fusion, s->math }, device);
    }
    free(d.nodes);
    free(d.headers);
    if (p && p->status != DUET_OK) {
        plan_free(p);
        p = NULL;
    }
    return p;
}

static streaming *new_streaming(const statement *s, int device, int64_t length, int64_t rows,
                                const uint8_t *part)
{
    streaming *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->length = length;
    w->rows = rows;
    w->part = malloc(s->f->count);
    if (w->part) memcpy(w->part, part, s->f->count);
    if (length % rows) w->remainder = plan_rows(s, device, length % rows, part);
    if (w->part && (w->remainder || length % rows == 0)) return w;
    stream_free(w);
    return NULL;
}

plan *stream_plan(const statement *s, int device, int64_t length, int64_t rows, const uint8_t *part)
{
    plan *p = plan_rows(s, device, rows, part);
    if (p && !(p->stream = new_streaming(s, device, length, rows, part))) {
        plan_free(p);
        p = NULL;
    }
    return p;
}

void stream_free(streaming *w)
{
    if (w) {
        plan_free(w->remainder);
        free(w->part);
    }
    free(w);
}
