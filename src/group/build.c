/* build.c - builds the formulas of one rank. */
#include "buckets.h"
#include "dtype.h"
#include "operator_again.h"
#include "split_matrix.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

bool build_begin(builder *b, const planner *p, communicator *c, int index)
{
    *b = (builder){ .p = p, .own = { .g = p->g }, .c = c, .index = index, .mark = formulas_mark() };
    b->value = calloc(p->count, sizeof *b->value);
    if (b->value) return true;
    fail(DUET_NO_MEMORY, "no memory for a formula of %u nodes", p->count);
    return false;
}

void build_end(builder *b)
{
    for (moved_value *m = b->moved; m; m = b->moved) {
        b->moved = m->next;
        free(m);
    }
    buckets_free(b);
    formulas_drop_from(b->mark); /* those that no statement needed */
    planner_end(&b->own);
    free(b->view);
    free(b->value);
}

static bool more_views(builder *b)
{
    const int capacity = b->capacity ? 2 * b->capacity : 8;
    duet_matrix **more = realloc(b->view, (size_t)capacity * sizeof *more);
    if (!more) return false;
    b->view = more;
    b->capacity = capacity;
    return true;
}

duet_matrix *build_keep(builder *b, duet_matrix *v)
{
    if (v && (b->views < b->capacity || more_views(b))) return b->view[b->views++] = v;
    duet_free(&v);
    fail(DUET_NO_MEMORY, "no memory for a part of a matrix");
    return NULL;
}

duet_matrix *build_view(builder *b, const duet_matrix *m) { return build_keep(b, split_local(m, b->index)); }
duet_matrix *build_owned(builder *b, const duet_matrix *m) { return build_keep(b, split_owned(m, b->index)); }

/* ---- pieces of formulas ---- */

void part_of_node(const builder *b, const node *n, const distribution *d, int64_t size[DUET_RANK_MAX])
{
    const shape whole = shape_of_node(n);
    shape start, own;
    distribution_part(d, &whole, b->c->rank, &start, &own);
    memcpy(size, own.size, sizeof own.size);
}

duet_expr build_range(const builder *b, duet_expr e, int axis, int64_t from, int64_t upto)
{
    return duet_range_at(e, axis, from, upto, 1, b->site);
}

duet_expr zero_of_sums(duet_dtype type, const char *site)
{
    const duet_expr zero = duet_of_number(-0.0);
    if (dtype_is_complex(type)) return duet_complex_at(zero, zero, site);
    return dtype_kind(type) == TYPE_FLOAT ? zero : duet_of_integer(0);
}

duet_expr build_collective(builder *b, enum collective_kind kind, duet_expr e, duet_dtype type,
                           const shape *whole, const distribution *from, const distribution *to)
{
    const collective *x = collective_new(b->c, kind, type, whole, from, to);
    if (!x) return formula_failed(fail(DUET_NO_MEMORY, "no memory for a collective step"));
    b->bytes += collective_bytes(x);
    const collective_attributes attr = { x->id, b->sequence++ };
    const duet_expr after = b->last.serial ? b->last : e;
    b->last = collective_formula(e, after, attr, type, x->out.rank, x->out.size, b->site);
    return b->last;
}

/* The type in which the value of a node is sent, which is an intermediate one unless the node is a leaf. */
static duet_dtype sent_type(const node *n)
{
    return n->op != OP_LEAF && dtype_is_half((duet_dtype)n->type) ? DUET_F32 : (duet_dtype)n->type;
}

duet_dtype build_widened(const builder *b, uint32_t i, duet_expr *e)
{
    const node *n = &b->p->nodes[i];
    const duet_dtype type = sent_type(n);
    if (type != (duet_dtype)n->type) *e = duet_cast_at(*e, type, b->site);
    return type;
}

static moved_value *find_moved(const builder *b, uint32_t i, const distribution *to, bool fused)
{
    for (moved_value *m = b->moved; m; m = m->next)
        if (m->node == i && m->fused == fused && distribution_equal(&m->to, to, b->c->ranks)) return m;
    return NULL;
}

duet_expr build_value(builder *b, uint32_t i)
{
    if (b->p->of[i].waits && !b->value[i].serial) buckets_send(b);
    return b->value[i];
}

/* Every rank has all elements, and uses its part of them. */
static duet_expr take_part(const builder *b, duet_expr e, const shape *whole, const distribution *to)
{
    shape start, own;
    distribution_part(to, whole, b->c->rank, &start, &own);
    for (int a = 0; a < whole->rank; a++)
        if (own.size[a] != whole->size[a])
            e = build_range(b, e, a, start.size[a], start.size[a] + own.size[a]);
    return e;
}

duet_expr build_moved_array(builder *b, duet_expr e, duet_dtype type, const shape *whole,
                            const distribution *from, const distribution *to)
{
    if (distribution_equal(from, to, b->c->ranks)) return e;
    if (from->axis < 0) return take_part(b, e, whole, to);
    return build_collective(b, COLLECTIVE_MOVE, e, type, whole, from, to);
}

/* The value of node i in another distribution. fused: an addition may fuse it, so it is not exchanged. */
static duet_expr in_distribution(builder *b, uint32_t i, const distribution *to, bool fused)
{
    const node *n = &b->p->nodes[i];
    const distribution *from = &b->p->of[i].at;
    if (n->rank == 0 || distribution_equal(from, to, b->c->ranks)) return build_value(b, i);
    i = b->p->of[i].same;
    const moved_value *before = find_moved(b, i, to, fused);
    if (before) return before->e;
    const shape whole = shape_of_node(n);
    duet_expr e = build_value(b, i);
    if (fused && from->axis >= 0) e = build_again(b, i, to);
    else {
        const duet_dtype type = from->axis < 0 ? (duet_dtype)n->type : build_widened(b, i, &e);
        e = build_moved_array(b, e, type, &whole, from, to);
    }
    moved_value *m = malloc(sizeof *m);
    if (!m) return formula_failed(fail(DUET_NO_MEMORY, "no memory for a formula"));
    *m = (moved_value){ i, *to, fused, e, b->moved };
    b->moved = m;
    return e;
}

duet_expr build_moved(builder *b, uint32_t i, const distribution *to)
{
    return in_distribution(b, i, to, false);
}

/* ---- nodes ---- */

/* The rank that has the elements sends them to all. */
static duet_status build_owned_leaf(builder *b, uint32_t i, int owner)
{
    const node *n = &b->p->nodes[i];
    shape whole = { .rank = n->rank + 1, .size = { 1 } };
    distribution from = { 0, bounds_new(&b->own) }, to = replicated();
    const duet_matrix *m = build_owned(b, n->matrix);
    if (!m || !from.bounds) return DUET_NO_MEMORY;
    for (int r = 0; r <= b->c->ranks; r++) from.bounds[r] = r > owner;
    memcpy(whole.size + 1, n->size, (size_t)n->rank * sizeof n->size[0]);
    const duet_expr e =
        build_collective(b, COLLECTIVE_MOVE, duet_of_matrix(m), (duet_dtype)n->type, &whole, &from, &to);
    b->value[i] = duet_reshape_at(e, n->rank, n->size, b->site);
    return DUET_OK;
}

static duet_status build_leaf(builder *b, uint32_t i)
{
    const node *n = &b->p->nodes[i];
    if (n->op == OP_NUMBER) {
        b->value[i] = number_again(n);
        return DUET_OK;
    }
    const duet_matrix *m = n->matrix;
    int owner;
    const uint32_t same = b->p->of[i].same;
    if (same != i) {
        b->value[i] = b->value[same];
        return DUET_OK;
    }
    if (m->storage->split && b->p->of[i].how == OWNED && split_owner(m, &owner))
        return build_owned_leaf(b, i, owner);
    if (m->storage->split) {
        m = build_view(b, m);
        if (!m) return DUET_NO_MEMORY;
    }
    b->value[i] = duet_of_matrix(m);
    return DUET_OK;
}

/* A range along the split axis: this rank's part of it. Indices count from the first element of its
 * operand. */
static duet_expr build_own_range(const builder *b, uint32_t i, duet_expr x)
{
    const node *n = &b->p->nodes[i];
    const spread *s = &b->p->of[i];
    const int64_t start = pair_of_words(n->attr.range.start), by = pair_of_words(n->attr.range.step);
    const int r = b->c->rank;
    const int64_t first = start + s->at.bounds[r] * by - s->need[0].bounds[r],
                  count = s->at.bounds[r + 1] - s->at.bounds[r];
    if (!count) return duet_range_at(x, s->at.axis, 0, 0, 1, b->site);
    return duet_range_at(x, s->at.axis, first, first + (count - 1) * by + 1, by, b->site);
}

static bool is_own_range(const builder *b, uint32_t i)
{
    const node *n = &b->p->nodes[i];
    return n->op == OP_range && b->p->of[i].at.axis >= 0 && b->p->of[i].at.axis == n->attr.range.axis;
}

/* Collective steps add integers of at least 32 bits. Sums modulo 2^32 are right modulo 2^8 and 2^16 too. A
 * bool is true if a term is. */
static bool is_small_integer(duet_dtype type)
{
    return dtype_kind(type) == TYPE_BOOL || (dtype_is_integer(type) && dtypes[type].bytes < 4);
}

/* The type in which the terms of a sum are added. */
static duet_dtype added_type(const node *n)
{
    return is_small_integer((duet_dtype)n->type) ? DUET_I32 : sent_type(n);
}

static bool sum_waits(const planner *p, uint32_t i)
{
    const node *n = &p->nodes[i];
    return p->of[i].at.axis < 0 && bucket_takes(p, node_count(n) * (double)dtypes[added_type(n)].bytes);
}

/* Small integers are cast back. */
static duet_expr sum_of_type(const builder *b, uint32_t i, duet_expr e)
{
    const duet_dtype type = (duet_dtype)b->p->nodes[i].type;
    return is_small_integer(type) ? duet_cast_at(e, type, b->site) : e;
}

static duet_expr finish_sum(builder *b, const waiting *w) { return sum_of_type(b, w->node, w->of[0].all); }

/* The sum of this term and those of the other ranks. */
static duet_expr build_sum(builder *b, uint32_t i, duet_expr e)
{
    const node *n = &b->p->nodes[i];
    const shape whole = shape_of_node(n);
    const distribution partial = replicated();
    const duet_dtype type = added_type(n);
    if (type != (duet_dtype)n->type) e = duet_cast_at(e, type, b->site);
    if (!b->p->of[i].waits)
        return sum_of_type(b, i,
                           build_collective(b, COLLECTIVE_ADD, e, type, &whole, &partial, &b->p->of[i].at));
    waiting *w = bucket_begin(b, i);
    if (!w) return b->value[i];
    w->of[w->count++] = (shared_array){ .kind = COLLECTIVE_ADD, .type = type, .whole = whole, .own = e };
    w->finish = finish_sum;
    bucket_end(b, w);
    return b->value[i];
}

bool build_find_waiting(planner *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        spread *s = &p->of[i];
        if (op_infos[p->nodes[i].op].kind == KIND_LEAF) continue;
        if (s->how == ADDED) s->waits = sum_waits(p, i);
        else if (s->how == JOINED && !plan_joined(p, i)) return false;
    }
    return true;
}

duet_expr build_local(builder *b, uint32_t i, const duet_expr x[])
{
    const node *n = &b->p->nodes[i];
    int64_t size[DUET_RANK_MAX];
    if (is_own_range(b, i)) return build_own_range(b, i, x[0]);
    part_of_node(b, n, &b->p->of[i].at, size);
    return operator_again(n, x, size);
}

static duet_expr build_operator(builder *b, uint32_t i, const duet_expr x[])
{
    const node *n = &b->p->nodes[i];
    const spread *s = &b->p->of[i];
    if (s->how == LOCAL) return build_local(b, i, x);
    if (s->how == JOINED) return build_joined(b, i, x);
    if (s->how == TRANSFORMED) return build_transform(b, i, x[0]);
    if (s->how == TOP) return build_top(b, i, x[0]);
    if (s->how == GRID) return build_grid(b, i, x);
    if (s->how == SORTED) return build_sorted(b, i, x[0]);
    if (s->how == SCANNED) return build_scan(b, i, x[0]);
    return build_sum(b, i, n->op == OP_take ? build_take(b, i, x) : operator_again(n, x, n->size));
}

/* Does the operator copy elements in memory? Views do not copy. */
static bool copies_elements(enum op op)
{
    const op_info *info = &op_infos[op];
    return info->kind == KIND_DEF && info->flags & OP_ANY_TYPES && !(info->flags & OP_COMPUTES) &&
           !is_view_operator(op);
}

/* The operand of an operator, given its value. Halves that have been sent as f32 are rounded first, if the
 * operator copies elements. */
static duet_expr as_operand(const builder *b, uint32_t i, int k, duet_expr x)
{
    const duet_dtype type = (duet_dtype)operand_node(b->p, i, k)->type;
    const bool rounds = dtype_is_half(type) && copies_elements((enum op)b->p->nodes[i].op);
    return rounds && duet_expr_type(x) != type ? duet_cast_at(x, type, b->site) : x;
}

duet_expr build_operand(builder *b, uint32_t i, int k, const distribution *to)
{
    const uint32_t x = i - b->p->nodes[i].back[k];
    return as_operand(b, i, k, in_distribution(b, x, to, is_fused(b->p, i, k)));
}

duet_status build_node(builder *b, uint32_t i)
{
    const node *n = &b->p->nodes[i];
    duet_expr x[3];
    if (op_infos[n->op].kind == KIND_LEAF) return build_leaf(b, i);
    b->site = n->site;
    for (int k = 0; k < op_infos[n->op].arity; k++) x[k] = build_operand(b, i, k, &b->p->of[i].need[k]);
    b->value[i] = build_operator(b, i, x);
    return DUET_OK;
}
