/* scans.c - cumsum and cumprod along the split axis of a matrix.
 *
 * An element of the result is b + (g + (r + s)), as docs/semantics.md defines: s, r and g are sums within
 * a block of 4096 elements, and b is the sum of the earlier blocks, one after the other. Parts begin at
 * multiples of a block.
 *   1. Each rank scans its blocks one by one. The last element of each is the sum of the block.
 *   2. All ranks receive the sums of all blocks.
 *   3. Each rank adds the sums of the blocks of earlier ranks. scatter_add to one element has the same order.
 *   4. Each rank puts a block in front of its part, and scans both. The first element of this block is the
 *      sum of step 3; the other ones change no sum. */
#include "build.h"
#include "dtype.h"
#include "operator_again.h"
#include "reduce_order.h"
#include "rules.h"
#include "status.h"

bool scan_rule(planner *p, uint32_t i, spread *s)
{
    const node *n = &p->nodes[i];
    const distribution *d = operand_at(p, i, 0);
    const int axis = n->attr.index.axis;
    if (!is_split(d) || d->axis != axis || other_axis(p, n, 1u << axis) >= 0) return index_axis_rule(p, i, s);
    if (n->size[axis] < (int64_t)REDUCE_BLOCK * p->g->ranks) return everywhere(p, i, s);
    s->how = SCANNED;
    s->at = s->need[0] = (distribution){ axis, whole_blocks(p, d, n->size[axis], 1) };
    return s->at.bounds;
}

/* The part of this rank has before x count x behind elements, and is scanned along axis 1. */
typedef struct scanning {
    builder *b;
    const char *site;
    const int64_t *bounds;
    int64_t before, count, behind, blocks; /* blocks of all ranks that are complete */
    int64_t *counts;                       /* bounds of these blocks */
    bool product;
} scanning;

static duet_expr scan(const scanning *t, duet_expr x, int axis)
{
    return (t->product ? duet_cumprod_at : duet_cumsum_at)(x, axis, t->site);
}

/* Numbers that change no sum or product, not even the sign of a zero. */
static duet_expr nothing(const scanning *t, duet_dtype type, int64_t count)
{
    const int64_t size[] = { t->before, count, t->behind };
    const duet_expr one = t->product ? duet_of_integer(1) : zero_of_sums(type, t->site);
    return duet_broadcast_at(duet_cast_at(one, type, t->site), 3, size, t->site);
}

/* Steps 1 and 2. */
static duet_expr block_sums(const scanning *t, duet_expr x, duet_dtype type)
{
    const int r = t->b->c->rank;
    const int64_t own = t->counts[r + 1] - t->counts[r];
    const int64_t size[] = { t->before, own, REDUCE_BLOCK, t->behind },
                  sums[] = { t->before, own, t->behind };
    const shape whole = { 3, { t->before, t->blocks, t->behind } };
    const distribution from = { 1, t->counts }, to = replicated();
    if (own * REDUCE_BLOCK < t->count) x = build_range(t->b, x, 1, 0, own * REDUCE_BLOCK);
    duet_expr e = scan(t, duet_reshape_at(x, 4, size, t->site), 2);
    e = duet_reshape_at(build_range(t->b, e, 2, REDUCE_BLOCK - 1, REDUCE_BLOCK), 3, sums, t->site);
    return build_collective(t->b, COLLECTIVE_MOVE, e, type, &whole, &from, &to);
}

/* Step 3: one element for each line. */
static duet_expr earlier_sum(const scanning *t, duet_expr sums, int64_t count)
{
    if (count == 1) return build_range(t->b, sums, 1, 0, 1);
    const int64_t others[] = { count - 1 };
    const duet_expr zeros =
        duet_broadcast_at(duet_cast_at(duet_of_integer(0), DUET_I64, t->site), 1, others, t->site);
    const duet_expr first = build_range(t->b, sums, 1, 0, 1), more = build_range(t->b, sums, 1, 1, count);
    return (t->product ? duet_scatter_mul_at : duet_scatter_add_at)(first, zeros, more, 1, t->site);
}

static duet_expr scan_real(const scanning *t, duet_expr x, duet_dtype type)
{
    const int64_t earlier = t->counts[t->b->c->rank];
    const duet_expr sums = block_sums(t, x, type);
    if (!t->count || !earlier) { /* the exchange must be part of the formula on all ranks */
        const duet_expr none = build_range(t->b, sums, 1, 0, 0);
        return duet_append_at(scan(t, x, 1), none, 1, t->site);
    }
    const duet_expr block =
        duet_append_at(earlier_sum(t, sums, earlier), nothing(t, type, REDUCE_BLOCK - 1), 1, t->site);
    const duet_expr all = scan(t, duet_append_at(block, x, 1, t->site), 1);
    return build_range(t->b, all, 1, REDUCE_BLOCK, REDUCE_BLOCK + t->count);
}

/* The type in which the elements are added. */
static duet_dtype added_as(const node *n)
{
    const duet_dtype type = (duet_dtype)n->type;
    return dtype_is_half(type) ? DUET_F32 : type;
}

static void count_blocks(scanning *t)
{
    t->counts[0] = 0;
    for (int r = 0; r < t->b->c->ranks; r++)
        t->counts[r + 1] = t->counts[r] + (t->bounds[r + 1] - t->bounds[r]) / REDUCE_BLOCK;
    t->blocks = t->counts[t->b->c->ranks];
}

duet_expr build_scan(builder *b, uint32_t i, duet_expr x)
{
    const node *n = &b->p->nodes[i];
    const int axis = n->attr.index.axis, r = b->c->rank;
    const duet_dtype type = added_as(n);
    scanning t = { .b = b, .site = b->site, .bounds = b->p->of[i].at.bounds, .before = 1, .behind = 1 };
    int64_t size[DUET_RANK_MAX];
    t.product = n->op == OP_cumprod;
    t.counts = bounds_new(&b->own);
    if (!t.counts) return formula_failed(fail(DUET_NO_MEMORY, "no memory for a formula"));
    t.count = t.bounds[r + 1] - t.bounds[r];
    for (int a = 0; a < n->rank; a++) *(a < axis ? &t.before : &t.behind) *= a == axis ? 1 : n->size[a];
    count_blocks(&t);
    part_of_node(b, n, &b->p->of[i].at, size);
    x = duet_reshape_at(x, 3, (int64_t[]){ t.before, t.count, t.behind }, b->site);
    if (!dtype_is_complex(type)) {
        const duet_expr e = scan_real(&t, duet_cast_at(x, type, b->site), type);
        return duet_reshape_at(e, n->rank, size, b->site);
    }
    const duet_dtype part = dtype_part(type);
    const duet_expr re = scan_real(&t, duet_real_at(x, b->site), part),
                    im = scan_real(&t, duet_imag_at(x, b->site), part);
    return duet_reshape_at(duet_complex_at(re, im, b->site), n->rank, size, b->site);
}
