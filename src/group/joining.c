/* joining.c - the formulas of a rank for reductions along the split axis: see reductions.c. */
#include "joining.h"
#include "buckets.h"
#include "operator_again.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

node reduction_like(const joining *j, uint32_t axes)
{
    node like = *j->n;
    like.flags = 0;
    like.site = j->b->site;
    like.attr = (node_attributes){ .reduce = { (int32_t)axes, 0 } };
    return like;
}

static shape without_axes(const node *x, uint32_t axes)
{
    shape s = { 0 };
    for (int a = 0; a < x->rank; a++)
        if (!(axes >> a & 1)) s.size[s.rank++] = x->size[a];
    return s;
}

/* e with an additional first axis of one element. */
static duet_expr in_front(const joining *j, duet_expr e, const shape *s)
{
    int64_t size[DUET_RANK_MAX + 1] = { 1 };
    memcpy(size + 1, s->size, (size_t)s->rank * sizeof *size);
    return duet_reshape_at(e, s->rank + 1, size, j->b->site);
}

/* The partial results of all ranks, along a first axis. */
static shape gathered_shape(const joining *j)
{
    shape whole = { .rank = j->result.rank + 1, .size = { j->counts[j->p->g->ranks] } };
    memcpy(whole.size + 1, j->result.size, (size_t)j->result.rank * sizeof *whole.size);
    return whole;
}

duet_expr gather_results(const joining *j, duet_expr own, duet_dtype type)
{
    const shape whole = gathered_shape(j);
    const distribution from = { 0, j->counts }, to = replicated();
    return build_collective(j->b, COLLECTIVE_MOVE, own, type, &whole, &from, &to);
}

duet_expr shaped(const joining *j, duet_expr e)
{
    return duet_reshape_at(e, j->n->rank, j->n->size, j->b->site);
}

/* ---- in any order ---- */

/* A reduction without the reduced axes. */
static duet_expr own_result(const joining *j, const node *like, const duet_expr x[])
{
    int64_t size[DUET_RANK_MAX] = { 0 };
    node again = *like;
    again.rank = (uint8_t)j->result.rank;
    memcpy(size, j->result.size, sizeof size);
    return operator_again(&again, x, size);
}

/* The same of partial results, along their first axis. */
static duet_expr reduce_first(const joining *j, const node *like, duet_expr e)
{
    node again = *like;
    again.attr.reduce.axes = 1;
    return own_result(j, &again, &e);
}

static void count_ranks(const joining *j)
{
    j->counts[0] = 0;
    for (int r = 0; r < j->p->g->ranks; r++)
        j->counts[r + 1] = j->counts[r] + (j->bounds[r + 1] > j->bounds[r]);
}

static bool has_part(const joining *j) { return j->counts[j->b->c->rank + 1] > j->counts[j->b->c->rank]; }

/* No partial result: of a rank without elements. */
static duet_expr nothing(const joining *j, duet_expr like)
{
    return build_range(j->b, in_front(j, like, &j->result), 0, 0, 0);
}

/* The operator that reduces the partial results. Those of a dot product are added. */
static enum op second_op(enum op op) { return op == OP_dot ? OP_sum : op; }

static duet_expr own_free(const joining *j, const duet_expr x[])
{
    const node like = reduction_like(j, j->reduced);
    const duet_expr own = own_result(j, &like, x);
    return has_part(j) ? in_front(j, own, &j->result) : nothing(j, own);
}

static duet_expr join_free(const joining *j, const shared_array *all)
{
    node like = reduction_like(j, j->reduced);
    like.op = (uint8_t)second_op((enum op)like.op);
    return shaped(j, reduce_first(j, &like, shared_array_whole(j->b, all)));
}

/* Gathers the index and the value of the extreme element of each rank, and chooses among these. */
static duet_expr join_place(const joining *j, const duet_expr x[])
{
    node like = reduction_like(j, j->reduced), value = like;
    value.op = j->n->op == OP_argmax ? OP_max : OP_min;
    value.type = j->x->type;
    count_ranks(j);
    duet_expr index = own_result(j, &like, x), best = own_result(j, &value, x);
    index = duet_add_at(index, duet_of_integer(j->bounds[j->b->c->rank] * j->unit), j->b->site);
    index = has_part(j) ? in_front(j, index, &j->result) : nothing(j, index);
    best = has_part(j) ? in_front(j, best, &j->result) : nothing(j, best);
    const duet_expr indices = gather_results(j, index, DUET_I64),
                    values = gather_results(j, best, (duet_dtype)j->x->type);
    const duet_expr which = in_front(j, reduce_first(j, &like, values), &j->result);
    return shaped(j, duet_take_along_axis_at(indices, which, 0, j->b->site));
}

/* ---- in the canonical order ---- */

int64_t subtree_at(int64_t at, int64_t end)
{
    int64_t n = 1;
    while (at % (2 * n) == 0 && at + 2 * n <= end) n *= 2;
    return n;
}

int64_t block_of(const joining *j, int64_t bound)
{
    return (bound * j->unit + REDUCE_BLOCK - 1) / REDUCE_BLOCK;
}

static int64_t subtrees_of_rank(const joining *j, int r)
{
    int64_t n = 0;
    const int64_t end = block_of(j, j->bounds[r + 1]);
    for (int64_t at = block_of(j, j->bounds[r]); at < end; at += subtree_at(at, end)) n++;
    return n;
}

static void count_subtrees(const joining *j)
{
    j->counts[0] = 0;
    for (int r = 0; r < j->p->g->ranks; r++) j->counts[r + 1] = j->counts[r] + subtrees_of_rank(j, r);
}

duet_expr as_lines(const joining *j, duet_expr x)
{
    int order[DUET_RANK_MAX], n = 0;
    int64_t size[DUET_RANK_MAX];
    bool moves = false;
    for (int turn = 0; turn < 2; turn++)
        for (int a = 0; a < j->x->rank; a++)
            if ((int)(j->reduced >> a & 1) == turn) order[n++] = a;
    for (int a = 0; a < n; a++) moves |= order[a] != a;
    const int r = j->b->c->rank;
    memcpy(size, j->result.size, sizeof size);
    size[j->result.rank] = (j->bounds[r + 1] - j->bounds[r]) * j->unit;
    if (moves) x = duet_permute_at(x, n, order, j->b->site);
    return duet_reshape_at(x, j->result.rank + 1, size, j->b->site);
}

/* The result of the elements from .. upto - 1 of this rank's lines. If these are complete indices of the
 * split axis, a range of the operand itself is reduced: lines of a strided operand would be a copy. */
static duet_expr result_of(const joining *j, const duet_expr x[], int64_t from, int64_t upto)
{
    const int last = j->result.rank, r = j->b->c->rank;
    const int64_t all = (j->bounds[r + 1] - j->bounds[r]) * j->unit;
    const bool is_whole = from == 0 && upto == all,
               is_part = j->unit > 0 && from % j->unit == 0 && upto % j->unit == 0;
    const node like = reduction_like(j, is_part ? j->reduced : 1u << last);
    duet_expr part[2];
    for (int k = 0; k < j->arity; k++) {
        part[k] = is_part ? x[k] : as_lines(j, x[k]);
        if (is_whole) continue;
        part[k] = is_part ? build_range(j->b, part[k], j->axis, from / j->unit, upto / j->unit)
                          : build_range(j->b, part[k], last, from, upto);
    }
    return own_result(j, &like, part);
}

/* The results of this rank's subtrees. */
static duet_expr own_subtrees(const joining *j, const duet_expr x[])
{
    const int r = j->b->c->rank;
    const int64_t first = j->bounds[r] * j->unit, upto = j->bounds[r + 1] * j->unit;
    const int64_t begin = block_of(j, j->bounds[r]), end = block_of(j, j->bounds[r + 1]);
    duet_expr all = { 0 };
    for (int64_t at = begin, n; at < end; at += n) {
        n = subtree_at(at, end);
        const int64_t to = (at + n) * REDUCE_BLOCK < upto ? (at + n) * REDUCE_BLOCK : upto;
        const duet_expr one = in_front(j, result_of(j, x, at * REDUCE_BLOCK - first, to - first), &j->result);
        all = at == begin ? one : duet_append_at(all, one, 0, j->b->site);
    }
    return begin < end ? all : nothing(j, result_of(j, x, 0, 0));
}

/* The subtrees in order, while they are joined. */
typedef struct subtree {
    int64_t first, blocks;
    duet_expr e;
} subtree;

duet_expr join_results(const joining *j, duet_expr a, duet_expr b)
{
    return (j->n->op == OP_prod ? duet_mul_at : duet_add_at)(a, b, j->b->site);
}

/* Joins two neighbours as soon as they are the halves of a larger subtree. The last block may have fewer
 * elements. At the end, the subtrees that remain are joined from right to left. */
static duet_expr join_tree(const joining *j, const shared_array *all)
{
    subtree stack[64];
    int depth = 0, k = 0;
    for (int r = 0; r < j->p->g->ranks; r++) {
        const int64_t end = block_of(j, j->bounds[r + 1]);
        for (int64_t at = block_of(j, j->bounds[r]), n; at < end; at += n, k++) {
            n = subtree_at(at, end);
            stack[depth++] = (subtree){ at, n, shared_array_index(j->b, all, r, k) };
            while (depth > 1 && stack[depth - 2].blocks == stack[depth - 1].blocks &&
                   stack[depth - 2].first % (2 * stack[depth - 2].blocks) == 0) {
                stack[depth - 2].e = join_results(j, stack[depth - 2].e, stack[depth - 1].e);
                stack[depth - 2].blocks *= 2;
                depth--;
            }
        }
    }
    for (; depth > 1; depth--) stack[depth - 2].e = join_results(j, stack[depth - 2].e, stack[depth - 1].e);
    return stack[0].e;
}

/* An addition must not fuse the last product. */
static duet_expr joined(const joining *j, duet_expr e)
{
    if (j->n->op == OP_prod && dtype_kind((duet_dtype)j->n->type) == TYPE_FLOAT) e = not_fused(e, j->b->site);
    return shaped(j, e);
}

scales scales_of(const node *x)
{
    if (x->type == DUET_F32) return (scales){ REDUCE_LEAST_f32, REDUCE_DOWN_f32, REDUCE_UP_f32 };
    return (scales){ REDUCE_LEAST_f64, REDUCE_DOWN_f64, REDUCE_UP_f64 };
}

/* One of the sums from which a reduction is computed, and its operands. */
typedef struct one_sum {
    joining j;
    node n;
    duet_expr x[2];
} one_sum;

/* Sum k of a reduction. mean needs sums, and norm sums of squares, of x and of x times powers of two. */
static void open_sum(const joining *j, const duet_expr x[], int k, one_sum *s)
{
    const scales by = scales_of(j->x);
    const double factors[] = { 1, by.down, by.up };
    const bool squares = j->n->op == OP_norm;
    s->j = *j;
    for (int i = 0; i < j->arity; i++) s->x[i] = x[i];
    if (!is_made_of_sums((enum op)j->n->op)) return;
    s->n = *j->n;
    s->n.op = squares ? OP_dot : OP_sum;
    s->j.n = &s->n;
    s->j.arity = squares ? 2 : 1;
    s->x[0] = s->x[1] = k ? duet_mul_at(x[0], duet_of_number(factors[k]), j->b->site) : x[0];
}

/* If the sum is not finite, the sum of scaled elements replaces it. */
static duet_expr join_mean(const joining *j, const duet_expr sums[])
{
    const scales s = scales_of(j->x);
    const char *site = j->b->site;
    double count = 1;
    for (int a = 0; a < j->x->rank; a++)
        if (j->reduced >> a & 1) count *= (double)j->x->size[a];
    const duet_expr n = duet_of_number(count);
    const duet_expr scaled = duet_mul_at(duet_div_at(sums[1], n, site), duet_of_number(1 / s.down), site);
    return duet_where_at(duet_isfinite_at(sums[0], site), duet_div_at(sums[0], n, site), scaled, site);
}

static duet_expr join_norm(const joining *j, const duet_expr sums[])
{
    const scales s = scales_of(j->x);
    const char *site = j->b->site;
    const duet_expr sum = sums[0],
                    large = duet_mul_at(duet_sqrt_at(sums[1], site), duet_of_number(1 / s.down), site),
                    small = duet_mul_at(duet_sqrt_at(sums[2], site), duet_of_number(1 / s.up), site);
    const duet_expr tiny =
        duet_where_at(duet_less_at(sum, duet_of_number(s.least), site), small, duet_sqrt_at(sum, site), site);
    return duet_where_at(duet_equal_at(sum, duet_of_number(INFINITY), site), large, tiny, site);
}

/* ---- what is gathered ---- */

/* The number of arrays that the ranks gather for one reduction. All have the same counts. */
static int array_count(enum op op) { return op == OP_mean ? 2 : op == OP_norm ? 3 : 1; }

static void count_parts(const joining *j)
{
    if (is_free(j->n, j->x)) count_ranks(j);
    else count_subtrees(j);
}

/* This rank's part of array k. */
static duet_expr own_part(const joining *j, const duet_expr x[], int k)
{
    one_sum s;
    if (is_free(j->n, j->x)) return own_free(j, x);
    open_sum(j, x, k, &s);
    return own_subtrees(&s.j, s.x);
}

static duet_expr of_sums(const joining *j, const duet_expr sums[])
{
    if (j->n->op == OP_mean) return join_mean(j, sums);
    return j->n->op == OP_norm ? join_norm(j, sums) : sums[0];
}

/* The result, given the arrays. */
static duet_expr join_all(const joining *j, const shared_array all[])
{
    duet_expr sums[NODE_ARRAYS];
    if (is_free(j->n, j->x)) return join_free(j, all);
    for (int k = 0; k < array_count((enum op)j->n->op); k++) sums[k] = joined(j, join_tree(j, &all[k]));
    return of_sums(j, sums);
}

static duet_expr join_by_blocks(const joining *j, const duet_expr x[])
{
    duet_expr sums[NODE_ARRAYS];
    for (int k = 0; k < array_count((enum op)j->n->op); k++) {
        one_sum s;
        open_sum(j, x, k, &s);
        sums[k] = joined(j, join_blocks(&s.j, s.x));
    }
    return of_sums(j, sums);
}

static duet_expr join_real(const joining *j, const duet_expr x[])
{
    const enum op op = (enum op)j->n->op;
    shared_array all[NODE_ARRAYS] = { { .whole = { 0 } } };
    if (is_place(op)) return join_place(j, x);
    if (op == OP_var) return join_var(j, x[0]);
    if (j->blocks) return join_by_blocks(j, x);
    count_parts(j);
    for (int k = 0; k < array_count(op); k++)
        all[k].all = gather_results(j, own_part(j, x, k), (duet_dtype)j->n->type);
    return join_all(j, all);
}

/* ---- complex numbers: of their parts, as in graph/complex_ops.c ---- */

static duet_expr join_parts(const joining *j, duet_expr x, duet_expr y)
{
    node n = *j->n, like = *j->x;
    joining of = *j;
    n.type = (uint8_t)dtype_part((duet_dtype)n.type);
    like.type = n.type;
    of.n = &n;
    of.x = &like;
    return join_real(&of, (duet_expr[]){ x, y });
}

static bool is_made_of_parts(const node *n, const node *x)
{
    const bool is_complex = dtype_is_complex((duet_dtype)x->type);
    return n->op == OP_dot ? dtype_is_complex((duet_dtype)n->type)
                           : is_complex && is_made_of_sums((enum op)n->op);
}

/* One operand may be real. */
static duet_expr join_complex_dot(const joining *j, const duet_expr e[])
{
    const char *site = j->b->site;
    const duet_expr re[] = { duet_real_at(e[0], site), duet_real_at(e[1], site) },
                    im[] = { duet_imag_at(e[0], site), duet_imag_at(e[1], site) };
    const bool has_x = dtype_is_complex(duet_expr_type(e[0])), has_y = dtype_is_complex(duet_expr_type(e[1]));
    const duet_expr real = join_parts(j, re[0], re[1]);
    if (!has_y) return duet_complex_at(real, join_parts(j, im[0], re[1]), site);
    if (!has_x) return duet_complex_at(real, join_parts(j, re[0], im[1]), site);
    const duet_expr less = join_parts(j, im[0], im[1]), one = join_parts(j, re[0], im[1]),
                    other = join_parts(j, im[0], re[1]);
    return duet_complex_at(duet_sub_at(real, less, site), duet_add_at(one, other, site), site);
}

static duet_expr join_complex(const joining *j, const duet_expr e[])
{
    const char *site = j->b->site;
    if (j->n->op == OP_dot) return join_complex_dot(j, e);
    const duet_expr x = e[0], re = join_parts(j, duet_real_at(x, site), x),
                    im = join_parts(j, duet_imag_at(x, site), x);
    if (j->n->op == OP_norm) return duet_hypot_at(re, im, site);
    return j->n->op == OP_var ? duet_add_at(re, im, site) : duet_complex_at(re, im, site);
}

/* ---- the node ---- */

/* Halves are computed in f32. */
static void widen(node *n)
{
    if (dtype_is_half((duet_dtype)n->type)) n->type = DUET_F32;
}

/* A reduction that waits, with copies of its nodes. */
typedef struct joining_copy {
    joining j;
    node n, x;
} joining_copy;

static void open_joining(joining_copy *c, const planner *p, uint32_t i)
{
    const distribution *d = &p->of[i].need[0];
    c->n = p->nodes[i];
    c->x = *operand_node(p, i, 0);
    widen(&c->n);
    widen(&c->x);
    c->j = (joining){ .p = p, .n = &c->n, .x = &c->x, .axis = d->axis, .bounds = d->bounds };
    c->j.blocks = p->of[i].blocks;
    c->j.arity = op_infos[c->n.op].arity;
    c->j.reduced = axes_of(&c->n, &c->x);
    c->j.unit = unit_of(&c->x, c->j.reduced, c->j.axis);
    c->j.result = without_axes(&c->x, c->j.reduced);
}

/* Reductions in any order share a step on at most so many ranks: on more, concatenating the ranks' parts
 * needs too many copies. */
#define FREE_RANKS 8

bool plan_joined(planner *p, uint32_t i)
{
    joining_copy c;
    open_joining(&c, p, i);
    const enum op op = (enum op)c.n.op;
    const bool ordered = !is_free(&c.n, &c.x);
    if (is_place(op) || op == OP_var) return true;
    c.j.counts = bounds_new(p);
    if (!c.j.counts) return false;
    count_parts(&c.j);
    if (!c.j.counts[p->g->ranks]) return true; /* there is nothing to reduce */
    p->of[i].blocks = ordered && prefers_blocks(&c.j);
    if (!ordered && p->g->ranks > FREE_RANKS) return true;
    const double bytes =
        (double)shape_count(&c.j.result) * (double)c.j.counts[p->g->ranks] * (double)dtypes[c.n.type].bytes;
    p->of[i].waits =
        !p->of[i].blocks && !is_made_of_parts(&c.n, &c.x) && bucket_takes(p, bytes * array_count(op));
    return true;
}

static duet_expr finish_joined(builder *b, const waiting *w)
{
    const joining_copy *c = w->with;
    (void)b;
    return join_all(&c->j, w->of);
}

/* The arrays wait, and are gathered together with others. */
static duet_expr join_later(const joining_copy *c, uint32_t i, const duet_expr x[])
{
    builder *b = c->j.b;
    joining_copy *kept = malloc(sizeof *kept);
    waiting *w = kept ? bucket_begin(b, i) : NULL;
    if (!w) {
        free(kept);
        return formula_failed(fail(DUET_NO_MEMORY, "no memory for a formula"));
    }
    *kept = *c;
    kept->j.n = &kept->n;
    kept->j.x = &kept->x;
    count_parts(&kept->j);
    w->with = kept;
    w->finish = finish_joined;
    for (; w->count < array_count((enum op)c->n.op); w->count++)
        w->of[w->count] = (shared_array){ .kind = COLLECTIVE_MOVE,
                                          .type = (duet_dtype)c->n.type,
                                          .whole = gathered_shape(&kept->j),
                                          .counts = kept->j.counts,
                                          .own = own_part(&kept->j, x, w->count) };
    bucket_end(b, w);
    return b->value[i];
}

duet_expr build_joined(builder *b, uint32_t i, const duet_expr of[])
{
    joining_copy c;
    duet_expr e[2];
    open_joining(&c, b->p, i);
    c.j.b = b;
    c.j.counts = bounds_new(&b->own); /* the same for all sums of one reduction */
    if (!c.j.counts) return formula_failed(fail(DUET_NO_MEMORY, "no memory for a formula"));
    for (int k = 0; k < c.j.arity; k++) {
        const bool is_half = dtype_is_half((duet_dtype)operand_node(b->p, i, k)->type);
        e[k] = is_half ? duet_cast_at(of[k], DUET_F32, b->site) : of[k];
    }
    if (is_made_of_parts(&c.n, &c.x)) return join_complex(&c.j, e);
    return b->p->of[i].waits ? join_later(&c, i, e) : join_real(&c.j, e);
}
