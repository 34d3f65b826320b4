/* reductions.c - reductions along the axis along which their operands are split.
 *
 * Some do not depend on the order of the elements: those of integers, and those that choose an element, such
 * as max. Each rank reduces its part, and the results are reduced again.
 *
 * The others have the order of core/reduce_order.h. Elements are numbered along the reduced axes. The split
 * axis must be the first of these, so that the numbers on each rank are consecutive. Blocks of REDUCE_BLOCK
 * elements must not be divided between ranks, so bounds move to the nearest block. The blocks of a rank form
 * complete subtrees of the canonical tree, and each subtree is an ordinary reduction. All ranks receive the
 * results of all subtrees, and join them in the order of the tree. If that takes many steps on a GPU, they
 * receive the results of all blocks instead (block_sums.c). */
#include "dtype.h"
#include "joining.h"
#include "operator_again.h"
#include "reduce_order.h"
#include "status.h"
#include <math.h>
#include <string.h>

static bool is_place(enum op op) { return op == OP_argmin || op == OP_argmax; }
static bool chooses(enum op op) { return op == OP_min || op == OP_max || op == OP_any || op == OP_all; }

static bool is_sum(enum op op) { return op == OP_sum || op == OP_prod || op == OP_dot; }

/* Is the result independent of the order? */
static bool is_free(const node *n, const node *x)
{
    const bool exact = dtype_kind((duet_dtype)x->type) < TYPE_FLOAT;
    return chooses((enum op)n->op) || (exact && is_sum((enum op)n->op));
}

/* mean and norm are computed from sums, and var from several numbers that are joined in the same order.
 * Those of scaled elements are used if the plain sum overflows or, for norm, underflows. */
static bool is_made_of_sums(enum op op) { return op == OP_mean || op == OP_norm || op == OP_var; }

/* Is the result made of sums in the canonical order? The product of complex numbers has another order. */
static bool is_joined(const node *n, const node *x)
{
    const enum type_kind kind = dtype_kind((duet_dtype)x->type);
    const bool sums = is_sum((enum op)n->op) || is_made_of_sums((enum op)n->op);
    return sums && (kind == TYPE_FLOAT || (kind == TYPE_COMPLEX && n->op != OP_prod));
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* The number of reduced elements for one index of the split axis. */
static int64_t unit_of(const node *x, uint32_t reduced, int axis)
{
    int64_t n = 1;
    for (int a = axis + 1; a < x->rank; a++)
        if (reduced >> a & 1) n *= x->size[a];
    return n;
}

static bool is_first(uint32_t reduced, int axis) { return !(reduced & ((1u << axis) - 1)); }

int64_t *whole_blocks(planner *p, const distribution *d, int64_t n, int64_t unit)
{
    int64_t *bounds = bounds_new(p);
    const int64_t rows = REDUCE_BLOCK / gcd(REDUCE_BLOCK, unit ? unit : 1);
    for (int r = 0; bounds && r <= p->g->ranks; r++) {
        bounds[r] = (d->bounds[r] + rows / 2) / rows * rows;
        if (bounds[r] > n || r == p->g->ranks) bounds[r] = n;
    }
    return bounds;
}

/* Are there fewer blocks than ranks? Then some ranks would have no block. */
static bool are_few(const planner *p, int64_t n, int64_t unit)
{
    return n * unit < (int64_t)REDUCE_BLOCK * p->g->ranks;
}

#define FEW_BYTES (1 << 20)

/* Makes every rank reduce all elements. Returns whether these are few. */
static bool by_all(const planner *p, uint32_t i, spread *s)
{
    s->at = s->need[0] = s->need[1] = replicated();
    return node_bytes(operand_node(p, i, 0)) <= FEW_BYTES;
}

static bool have_one_shape(const node *x, const node *y)
{
    return x->rank == y->rank && !memcmp(x->size, y->size, sizeof x->size[0] * x->rank);
}

static bool is_supported(const node *n, const node *x, uint32_t reduced, int axis)
{
    if (is_free(n, x)) return true;
    return (is_joined(n, x) || is_place((enum op)n->op)) && is_first(reduced, axis);
}

/* The formulas of variances.c are long. Is it faster to move the operand to another axis, if there is one? */
#define MOVED_BYTES (16 << 20)
#define VAR_RANKS   64 /* with more of them, the formulas would be too long */
static bool prefers_move(const planner *p, const node *x, uint32_t reduced)
{
    return other_axis(p, x, reduced) >= 0 && node_bytes(x) <= MOVED_BYTES;
}

bool distribute_reduction(planner *p, uint32_t i, int axis)
{
    const node *n = &p->nodes[i], *x = operand_node(p, i, 0);
    const int arity = op_infos[n->op].arity;
    const bool second = arity > 1 && operand_at(p, i, 0)->axis != axis;
    const distribution *d = operand_at(p, i, second);
    spread *s = &p->of[i];
    const uint32_t reduced = axes_of(n, x);
    if (arity > 1 && !have_one_shape(x, operand_node(p, i, 1))) return false;
    if (d->axis != axis || !is_supported(n, x, reduced, axis)) return by_all(p, i, s);
    const bool ordered = is_joined(n, x), few = are_few(p, x->size[axis], unit_of(x, reduced, axis));
    if (ordered && few && by_all(p, i, s)) return true;
    if (n->op == OP_var && p->g->ranks > VAR_RANKS) return by_all(p, i, s);
    if (n->op == OP_var && prefers_move(p, x, reduced)) return false;
    if (ordered && few && other_axis(p, x, reduced) >= 0) return false; /* reduce_rule then splits along it */
    int64_t *bounds = d->bounds;
    if (ordered) bounds = whole_blocks(p, d, x->size[axis], unit_of(x, reduced, axis));
    if (!bounds) return false;
    s->at = replicated();
    s->how = JOINED;
    for (int k = 0; k < arity; k++) s->need[k] = (distribution){ axis, bounds };
    return true;
}

/* ---- formulas ---- */

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

duet_expr gather_results(const joining *j, duet_expr own, duet_dtype type)
{
    shape whole = { .rank = j->result.rank + 1, .size = { j->counts[j->b->c->ranks] } };
    memcpy(whole.size + 1, j->result.size, (size_t)j->result.rank * sizeof *whole.size);
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
    for (int r = 0; r < j->b->c->ranks; r++)
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

static duet_expr join_free(const joining *j, const duet_expr x[])
{
    node like = reduction_like(j, j->reduced);
    count_ranks(j);
    duet_expr own = own_result(j, &like, x);
    own = has_part(j) ? in_front(j, own, &j->result) : nothing(j, own);
    const duet_expr all = gather_results(j, own, (duet_dtype)j->n->type);
    like.op = (uint8_t)second_op((enum op)like.op);
    return shaped(j, reduce_first(j, &like, all));
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

static void count_subtrees(const joining *j)
{
    j->counts[0] = 0;
    for (int r = 0; r < j->b->c->ranks; r++) {
        int64_t n = 0;
        const int64_t end = block_of(j, j->bounds[r + 1]);
        for (int64_t at = block_of(j, j->bounds[r]); at < end; at += subtree_at(at, end)) n++;
        j->counts[r + 1] = j->counts[r] + n;
    }
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

/* The results of this rank's subtrees. */
static duet_expr own_subtrees(const joining *j, const duet_expr x[])
{
    const int r = j->b->c->rank, last = j->result.rank;
    const int64_t first = j->bounds[r] * j->unit, upto = j->bounds[r + 1] * j->unit;
    const node like = reduction_like(j, 1u << last);
    duet_expr lines[2], all = { 0 };
    for (int k = 0; k < j->arity; k++) lines[k] = as_lines(j, x[k]);
    const int64_t begin = block_of(j, j->bounds[r]), end = block_of(j, j->bounds[r + 1]);
    for (int64_t at = begin, n; at < end; at += n) {
        duet_expr part[2];
        n = subtree_at(at, end);
        const int64_t from = at * REDUCE_BLOCK - first,
                      to = (at + n) * REDUCE_BLOCK < upto ? (at + n) * REDUCE_BLOCK : upto;
        for (int k = 0; k < j->arity; k++)
            part[k] = from || to - first < upto - first ? build_range(j->b, lines[k], last, from, to - first)
                                                        : lines[k];
        const duet_expr one = in_front(j, own_result(j, &like, part), &j->result);
        all = at == begin ? one : duet_append_at(all, one, 0, j->b->site);
    }
    if (begin < end) return all;
    return nothing(j, own_result(j, &like, lines));
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
static duet_expr join_tree(const joining *j, duet_expr all)
{
    subtree stack[64];
    int depth = 0, k = 0;
    for (int r = 0; r < j->b->c->ranks; r++) {
        const int64_t end = block_of(j, j->bounds[r + 1]);
        for (int64_t at = block_of(j, j->bounds[r]), n; at < end; at += n, k++) {
            n = subtree_at(at, end);
            stack[depth++] = (subtree){ at, n, build_range(j->b, all, 0, k, k + 1) };
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

static duet_expr join_ordered(const joining *j, const duet_expr x[])
{
    count_subtrees(j);
    duet_expr e = prefers_blocks(j)
                      ? join_blocks(j, x)
                      : join_tree(j, gather_results(j, own_subtrees(j, x), (duet_dtype)j->n->type));
    if (j->n->op == OP_prod && dtype_kind((duet_dtype)j->n->type) == TYPE_FLOAT) e = not_fused(e, j->b->site);
    return shaped(j, e);
}

scales scales_of(const node *x)
{
    if (x->type == DUET_F32) return (scales){ REDUCE_LEAST_f32, REDUCE_DOWN_f32, REDUCE_UP_f32 };
    return (scales){ REDUCE_LEAST_f64, REDUCE_DOWN_f64, REDUCE_UP_f64 };
}

/* The sum, or the sum of squares, of x times a power of two. */
static duet_expr scaled_sum(const joining *j, duet_expr x, double scale)
{
    node like = *j->n;
    joining of = *j;
    const bool squares = j->n->op == OP_norm;
    const duet_expr y = scale == 1 ? x : duet_mul_at(x, duet_of_number(scale), j->b->site);
    like.op = squares ? OP_dot : OP_sum;
    of.n = &like;
    of.arity = squares ? 2 : 1;
    return join_ordered(&of, (duet_expr[]){ y, y });
}

/* If the sum is not finite, the sum of scaled elements replaces it. */
static duet_expr join_mean(const joining *j, duet_expr x)
{
    const scales s = scales_of(j->x);
    const char *site = j->b->site;
    double count = 1;
    for (int a = 0; a < j->x->rank; a++)
        if (j->reduced >> a & 1) count *= (double)j->x->size[a];
    const duet_expr sum = scaled_sum(j, x, 1), less = scaled_sum(j, x, s.down), n = duet_of_number(count);
    const duet_expr scaled = duet_mul_at(duet_div_at(less, n, site), duet_of_number(1 / s.down), site);
    return duet_where_at(duet_isfinite_at(sum, site), duet_div_at(sum, n, site), scaled, site);
}

static duet_expr join_norm(const joining *j, duet_expr x)
{
    const scales s = scales_of(j->x);
    const char *site = j->b->site;
    const duet_expr sum = scaled_sum(j, x, 1), less = scaled_sum(j, x, s.down), more = scaled_sum(j, x, s.up);
    const duet_expr large = duet_mul_at(duet_sqrt_at(less, site), duet_of_number(1 / s.down), site),
                    small = duet_mul_at(duet_sqrt_at(more, site), duet_of_number(1 / s.up), site);
    const duet_expr tiny =
        duet_where_at(duet_less_at(sum, duet_of_number(s.least), site), small, duet_sqrt_at(sum, site), site);
    return duet_where_at(duet_equal_at(sum, duet_of_number(INFINITY), site), large, tiny, site);
}

static duet_expr join_real(const joining *j, const duet_expr x[])
{
    const enum op op = (enum op)j->n->op;
    if (is_place(op)) return join_place(j, x);
    if (op == OP_mean) return join_mean(j, x[0]);
    if (op == OP_norm) return join_norm(j, x[0]);
    if (op == OP_var) return join_var(j, x[0]);
    return (is_free(j->n, j->x) ? join_free : join_ordered)(j, x);
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

duet_expr build_joined(builder *b, uint32_t i, const duet_expr of[])
{
    node n = b->p->nodes[i], x = *operand_node(b->p, i, 0);
    const distribution *d = &b->p->of[i].need[0];
    joining j = { .b = b, .n = &n, .x = &x, .axis = d->axis, .bounds = d->bounds };
    duet_expr e[2];
    j.arity = op_infos[n.op].arity;
    j.reduced = axes_of(&n, &x);
    j.unit = unit_of(&x, j.reduced, j.axis);
    j.result = without_axes(&x, j.reduced);
    j.counts = bounds_new(&b->own); /* the same for all sums of one reduction */
    if (!j.counts) return formula_failed(fail(DUET_NO_MEMORY, "no memory for a formula"));
    for (int k = 0; k < j.arity; k++) {
        const bool is_half = dtype_is_half((duet_dtype)operand_node(b->p, i, k)->type);
        e[k] = is_half ? duet_cast_at(of[k], DUET_F32, b->site) : of[k];
    }
    widen(&n);
    widen(&x);
    return is_made_of_parts(&n, &x) ? join_complex(&j, e) : join_real(&j, e);
}
