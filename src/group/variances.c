/* variances.c - the variance along the split axis.
 *
 * It is computed by element-wise formulas, with the operations of the row of var in ops.def, in the order of
 * core/reduce_order.h. Each rank computes the state of its blocks, and joins these to complete subtrees.
 * All ranks receive the states of all subtrees, and join them.
 *
 * A state is an origin, the mean of the distances from it, and the sum of the squared distances from that
 * mean. All states of a formula have the same number of elements, which is a constant of the formula. The
 * lanes of the last block are an exception, since that block may be incomplete.
 *
 * If the sum of squares overflows, the state of scaled elements is used. So there are two states of each
 * block, one of them scaled, and both are joined. */
#include "dtype.h"
#include "joining.h"
#include "operator_again.h"
#include "status.h"
#include <math.h>

/* The states of several lanes or blocks: formulas of one shape. */
typedef struct moments {
    duet_expr origin, mean, squares;
} moments;

typedef struct variance {
    const joining *j;
    builder *b;
    const char *site;
    duet_dtype type;
    int64_t lines;
} variance;

/* x, rounded to the type of the elements. */
static double as_type(const variance *v, double x) { return v->type == DUET_F32 ? (double)(float)x : x; }

static duet_expr number(double x) { return duet_of_number(x); }
static duet_expr range(const variance *v, duet_expr x, int axis, int64_t from, int64_t upto)
{
    return build_range(v->b, x, axis, from, upto);
}

/* Applies f to each number of the states. */
typedef duet_expr part_function(const variance *v, duet_expr x, const int64_t *to);

static moments each(const variance *v, part_function *f, moments m, const int64_t *to)
{
    return (moments){ f(v, m.origin, to), f(v, m.mean, to), f(v, m.squares, to) };
}

/* to: axis, first, end, step */
static duet_expr part_range(const variance *v, duet_expr x, const int64_t *to)
{
    return duet_range_at(x, (int)to[0], to[1], to[2], to[3], v->site);
}
static moments some(const variance *v, moments m, int axis, int64_t from, int64_t upto, int64_t by)
{
    return each(v, part_range, m, (int64_t[]){ axis, from, upto, by });
}
static duet_expr part_3d(const variance *v, duet_expr x, const int64_t *to)
{
    return duet_reshape_at(x, 3, to, v->site);
}
static moments shaped_3d(const variance *v, moments m, int64_t a, int64_t b, int64_t c)
{
    return each(v, part_3d, m, (int64_t[]){ a, b, c });
}

static moments append(const variance *v, moments a, moments b, int axis)
{
    return (moments){ duet_append_at(a.origin, b.origin, axis, v->site),
                      duet_append_at(a.mean, b.mean, axis, v->site),
                      duet_append_at(a.squares, b.squares, axis, v->site) };
}

/* ---- lanes ---- */

/* Lanes that take `rows` elements each: x has the axes lines, blocks, rows, lanes. */
static moments take_rows(const variance *v, duet_expr x, int64_t rows)
{
    moments m = { .origin = range(v, x, 2, 0, 1) };
    m.mean = duet_sub_at(m.origin, m.origin, v->site);
    m.squares = duet_mul_at(m.mean, m.mean, v->site);
    for (int64_t r = 1; r < rows; r++) {
        const duet_expr d = duet_sub_at(range(v, x, 2, r, r + 1), m.origin, v->site);
        m.mean = duet_add_at(m.mean, d, v->site);
        m.squares = duet_fma_at(d, d, m.squares, v->site);
    }
    if (rows == 1) return m;
    const duet_expr mean = duet_div_at(m.mean, number((double)rows), v->site);
    const duet_expr squares = duet_fma_at(duet_neg_at(m.mean, v->site), mean, m.squares, v->site);
    return (moments){ m.origin, mean, duet_maximum_at(squares, number(0), v->site) };
}

/* ---- joins ---- */

static duet_expr distance(const variance *v, moments a, moments b)
{
    return duet_add_at(duet_sub_at(b.origin, a.origin, v->site), duet_sub_at(b.mean, a.mean, v->site),
                       v->site);
}

static moments join_by(const variance *v, moments a, moments b, duet_expr d, duet_expr share,
                       duet_expr weight)
{
    const duet_expr sum = duet_add_at(a.squares, b.squares, v->site);
    return (moments){ a.origin, duet_fma_at(d, share, a.mean, v->site),
                      duet_fma_at(duet_mul_at(d, weight, v->site), d, sum, v->site) };
}

/* States of a_count and b_count elements each. */
static moments join(const variance *v, moments a, double a_count, moments b, double b_count)
{
    const double share = as_type(v, b_count / as_type(v, a_count + b_count));
    return join_by(v, a, b, distance(v, a, b), number(share), number(as_type(v, a_count * share)));
}

/* Joins 128 lanes by halving. m has the axes lines, blocks, lanes. */
static moments halve(const variance *v, moments m, int64_t rows)
{
    for (int64_t h = REDUCE_LANES / 2; h > 0; h /= 2, rows *= 2)
        m = join(v, some(v, m, 2, 0, h, 1), (double)rows, some(v, m, 2, h, 2 * h, 1), (double)rows);
    return m;
}

/* ---- blocks ---- */

static moments whole_blocks_of(const variance *v, duet_expr x, int64_t blocks)
{
    const int64_t rows = REDUCE_BLOCK / REDUCE_LANES, size[] = { v->lines, blocks, rows, REDUCE_LANES };
    const moments m = take_rows(v, duet_reshape_at(x, 4, size, v->site), rows);
    return halve(v, shaped_3d(v, m, v->lines, blocks, REDUCE_LANES), rows);
}

static duet_expr repeated(const variance *v, double x, int64_t lines, int64_t count)
{
    return duet_broadcast_at(duet_cast_at(number(x), v->type, v->site), 3, (int64_t[]){ lines, 1, count },
                             v->site);
}

/* The lanes of an incomplete block: the first ones take one more element, or only these take one. */
static moments incomplete_lanes(const variance *v, duet_expr x, int64_t rows, int64_t more)
{
    const duet_expr last = duet_reshape_at(range(v, x, 1, rows * REDUCE_LANES, rows * REDUCE_LANES + more), 4,
                                           (int64_t[]){ v->lines, 1, 1, more }, v->site);
    const int64_t others = REDUCE_LANES - more, size[] = { v->lines, 1, rows, REDUCE_LANES };
    moments first = { { 0 }, { 0 }, { 0 } }, rest = first;
    if (!rows) {
        const duet_expr none = repeated(v, 0, v->lines, others);
        return append(v, shaped_3d(v, take_rows(v, last, 1), v->lines, 1, more),
                      (moments){ none, none, none }, 2);
    }
    const duet_expr all = duet_reshape_at(range(v, x, 1, 0, rows * REDUCE_LANES), 4, size, v->site);
    rest = shaped_3d(v, take_rows(v, range(v, all, 3, more, REDUCE_LANES), rows), v->lines, 1, others);
    if (!more) return rest;
    first = take_rows(v, duet_append_at(range(v, all, 3, 0, more), last, 2, v->site), rows + 1);
    return append(v, shaped_3d(v, first, v->lines, 1, more), rest, 2);
}

/* A block of n elements, with lanes of different numbers of elements. */
static moments last_block(const variance *v, duet_expr x, int64_t n)
{
    const int64_t rows = n / REDUCE_LANES, more = n % REDUCE_LANES;
    moments m = incomplete_lanes(v, x, rows, more);
    duet_expr count = duet_append_at(repeated(v, (double)(rows + 1), 1, more),
                                     repeated(v, (double)rows, 1, REDUCE_LANES - more), 2, v->site);
    for (int64_t h = REDUCE_LANES / 2; h > 0; h /= 2) {
        const moments a = some(v, m, 2, 0, h, 1), b = some(v, m, 2, h, 2 * h, 1);
        const duet_expr own = range(v, count, 2, 0, h), other = range(v, count, 2, h, 2 * h);
        const duet_expr sum = duet_add_at(own, other, v->site), share = duet_div_at(other, sum, v->site),
                        has = duet_greater_at(other, number(0), v->site);
        const moments both = join_by(v, a, b, distance(v, a, b), share, duet_mul_at(own, share, v->site));
        m = (moments){ a.origin, duet_where_at(has, both.mean, a.mean, v->site),
                       duet_where_at(has, both.squares, a.squares, v->site) };
        count = sum;
    }
    return m;
}

/* This rank's blocks, along axis 1. */
static moments blocks_of(const variance *v, duet_expr x, int64_t n)
{
    const int64_t blocks = n / REDUCE_BLOCK, done = blocks * REDUCE_BLOCK;
    const moments m =
        blocks ? whole_blocks_of(v, range(v, x, 1, 0, done), blocks) : (moments){ { 0 }, { 0 }, { 0 } };
    if (done == n) return m;
    const moments last = last_block(v, range(v, x, 1, done, n), n - done);
    return blocks ? append(v, m, last, 1) : last;
}

/* Both states of each block, along axis 0. */
static moments both_of(const variance *v, duet_expr x, int64_t n)
{
    const double down = scales_of(v->j->x).down;
    const duet_expr by = number(down);
    const int64_t blocks = (n + REDUCE_BLOCK - 1) / REDUCE_BLOCK;
    const duet_expr scaled = not_fused(duet_mul_at(x, by, v->site), v->site);
    const moments m = blocks_of(v, x, n), again = blocks_of(v, scaled, n);
    const duet_expr good = duet_isfinite_at(m.squares, v->site);
    const duet_expr squares = duet_mul_at(duet_mul_at(m.squares, by, v->site), by, v->site);
    const moments less = {
        duet_where_at(good, duet_mul_at(m.origin, by, v->site), again.origin, v->site),
        duet_where_at(good, duet_mul_at(m.mean, by, v->site), again.mean, v->site),
        duet_where_at(good, squares, again.squares, v->site),
    };
    return append(v, shaped_3d(v, m, 1, v->lines, blocks), shaped_3d(v, less, 1, v->lines, blocks), 0);
}

/* ---- subtrees of complete blocks, and the last block ---- */

typedef struct span {
    int64_t first, end; /* complete blocks */
    bool has_last;      /* an incomplete one */
} span;

static span span_of(const joining *j, int rank)
{
    const int64_t upto = j->bounds[rank + 1] * j->unit;
    const int64_t first = block_of(j, j->bounds[rank]), end = block_of(j, j->bounds[rank + 1]);
    const bool has_last = end > first && upto % REDUCE_BLOCK;
    return (span){ first, end - has_last, has_last };
}

static void count_states(const joining *j)
{
    j->counts[0] = 0;
    for (int r = 0; r < j->b->c->ranks; r++) {
        const span s = span_of(j, r);
        int64_t n = s.has_last;
        for (int64_t at = s.first; at < s.end; at += subtree_at(at, s.end)) n++;
        j->counts[r + 1] = j->counts[r] + n;
    }
}

/* Joins the blocks of this rank, level by level, to the subtrees of subtree_at(). m has blocks along axis
 * 2. */
static moments subtrees_of(const variance *v, moments m, span s)
{
    moments left[128], right[64], all;
    int lefts = 0, rights = 0;
    if (s.has_last) right[rights++] = some(v, m, 2, s.end - s.first, s.end - s.first + 1, 1);
    int64_t n = s.end - s.first, first = s.first;
    for (double count = REDUCE_BLOCK; n; count *= 2, first /= 2, n /= 2) {
        int64_t from = 0;
        if (first % 2) left[lefts++] = some(v, m, 2, from++, 1, 1), first++, n--;
        if (n % 2) right[rights++] = some(v, m, 2, from + n - 1, from + n, 1), n--;
        if (n)
            m = join(v, some(v, m, 2, from, from + n, 2), count, some(v, m, 2, from + 1, from + n, 2), count);
    }
    while (rights) left[lefts++] = right[--rights];
    all = lefts ? left[0] : m;
    for (int k = 1; k < lefts; k++) all = append(v, all, left[k], 2);
    return all;
}

/* ---- all ranks ---- */

/* The states of all subtrees, with the axes number of the state, lines, subtree. */
static duet_expr all_states(const variance *v, duet_expr x)
{
    const joining *j = v->j;
    const int r = j->b->c->rank;
    const int64_t n = (j->bounds[r + 1] - j->bounds[r]) * j->unit, own = j->counts[r + 1] - j->counts[r];
    const shape whole = { 3, { 3, 2 * v->lines, j->counts[j->b->c->ranks] } };
    const int64_t size[] = { 3, 2 * v->lines, own };
    const distribution from = { 2, j->counts }, to = replicated();
    duet_expr e = duet_broadcast_at(duet_cast_at(number(0), v->type, v->site), 3, size, v->site);
    if (own) {
        const moments m = subtrees_of(v, both_of(v, x, n), span_of(j, r));
        e = duet_append_at(duet_append_at(m.origin, m.mean, 0, v->site), m.squares, 0, v->site);
        e = duet_reshape_at(e, 3, size, v->site);
    }
    return build_collective(v->b, COLLECTIVE_MOVE, e, v->type, &whole, &from, &to);
}

typedef struct joined {
    int64_t first, blocks;
    double count;
    moments m;
} joined;

static joined join_two(const variance *v, joined a, joined b)
{
    return (joined){ a.first, a.blocks + b.blocks, as_type(v, a.count + b.count),
                     join(v, a.m, a.count, b.m, b.count) };
}

/* Adds a subtree: neighbours are joined as soon as they are the halves of a larger one. */
static int add_subtree(const variance *v, joined *stack, int depth, joined next)
{
    stack[depth++] = next;
    for (; depth > 1 && stack[depth - 2].blocks == stack[depth - 1].blocks &&
           stack[depth - 2].first % (2 * stack[depth - 2].blocks) == 0;
         depth--)
        stack[depth - 2] = join_two(v, stack[depth - 2], stack[depth - 1]);
    return depth;
}

static moments join_all(const variance *v, duet_expr all)
{
    const joining *j = v->j;
    joined stack[64];
    int depth = 0;
    int64_t k = 0;
    const moments m = { range(v, all, 0, 0, 1), range(v, all, 0, 1, 2), range(v, all, 0, 2, 3) };
    for (int r = 0; r < j->b->c->ranks; r++) {
        const span s = span_of(j, r);
        for (int64_t at = s.first, n; at < s.end + s.has_last; at += n, k++) {
            n = at < s.end ? subtree_at(at, s.end) : 1;
            const int64_t upto = (at + n) * REDUCE_BLOCK, end = j->bounds[r + 1] * j->unit;
            const double count = (double)((upto < end ? upto : end) - at * REDUCE_BLOCK);
            depth = add_subtree(v, stack, depth,
                                (joined){ at, n, as_type(v, count), some(v, m, 2, k, k + 1, 1) });
        }
    }
    for (; depth > 1; depth--) stack[depth - 2] = join_two(v, stack[depth - 2], stack[depth - 1]);
    return stack[0].m;
}

duet_expr join_var(const joining *j, duet_expr x)
{
    variance v = { .j = j, .b = j->b, .site = j->b->site, .type = (duet_dtype)j->x->type, .lines = 1 };
    const int r = j->b->c->rank;
    double n = 1;
    for (int a = 0; a < j->result.rank; a++) v.lines *= j->result.size[a];
    for (int a = 0; a < j->x->rank; a++)
        if (j->reduced >> a & 1) n *= (double)j->x->size[a];
    const int64_t size[] = { v.lines, (j->bounds[r + 1] - j->bounds[r]) * j->unit };
    count_states(j);
    x = duet_checkpoint_at(x, v.site); /* no product among its operators becomes part of an FMA */
    x = duet_reshape_at(as_lines(j, x), 2, size, v.site);
    const duet_expr all = join_all(&v, all_states(&v, x)).squares;
    const duet_expr plain = range(&v, all, 1, 0, v.lines), scaled = range(&v, all, 1, v.lines, 2 * v.lines);
    const duet_expr count = number(as_type(&v, n)), up = number(1 / scales_of(j->x).down);
    duet_expr less = duet_div_at(scaled, count, v.site);
    less = duet_mul_at(duet_mul_at(less, up, v.site), up, v.site);
    const duet_expr e =
        duet_where_at(duet_isfinite_at(plain, v.site), duet_div_at(plain, count, v.site), less, v.site);
    return shaped(j, e);
}
