/* block_sums.c - reductions in the canonical order in which the ranks exchange the results of all blocks.
 *
 * joining.c reduces each complete subtree of a rank in a step of its own. A rank has about twenty subtrees if
 * its elements do not begin at a multiple of a large subtree. On a GPU, such a step takes longer than sending
 * the results of some hundred thousand blocks. Here, each rank computes the results of all its blocks in one
 * step. Then all ranks join them level by level, in a step for each four levels. */
#include "block_policy.h"
#include "dtype.h"
#include "joining.h"
#include "min_max.h"
#include "operator_again.h"
#include "program.h"

static enum block_policy policy = BLOCKS_IF_FASTER;

enum block_policy *block_sums(void) { return &policy; }

/* How many neighbours one step joins. A value with so many operators is stored before views of it are read,
 * not computed again for each view (src/graph/views.c). */
#define AT_ONCE PROGRAM_INPUTS

/* The number of steps that join the results of these blocks. All but the last one join AT_ONCE neighbours. */
static int join_steps(int64_t blocks)
{
    int steps = 1;
    for (; blocks > AT_ONCE; blocks = (blocks + AT_ONCE - 1) / AT_ONCE) steps++;
    return steps;
}

/* The number of blocks with those of the padding, so that no neighbour is missing before the last step. */
static int64_t padded(int64_t blocks)
{
    int64_t each = 1;
    for (int k = 1; k < join_steps(blocks); k++) each *= AT_ONCE;
    return (blocks + each - 1) / each * each;
}

/* ---- the choice ---- */

/* On a GPU, seconds of a reduction of few elements, and of a join of few results. Those of the CPU are short
 * compared with a message. */
#define REDUCTION_SECONDS 5e-6
#define JOIN_SECONDS      3e-6

/* Seconds to send `count` partial results of each element of the result to all ranks. */
static double gather_seconds(const joining *j, int64_t count)
{
    node all = { .type = j->n->type, .rank = 1, .size = { count } };
    for (int a = 0; a < j->result.rank; a++) all.size[0] *= j->result.size[a];
    const distribution from = { 0, j->counts }, to = replicated();
    return move_seconds(j->p, &all, &from, &to);
}

/* j->counts: of the subtrees. */
static double seconds_by_subtrees(const joining *j)
{
    const int ranks = j->p->g->ranks;
    int64_t most = 0;
    for (int r = 0; r < ranks; r++) most = larger(most, j->counts[r + 1] - j->counts[r]);
    const double joins = (double)j->counts[ranks] / (AT_ONCE - 1);
    return (double)(most - 1) * REDUCTION_SECONDS + joins * JOIN_SECONDS +
           gather_seconds(j, j->counts[ranks]);
}

static double seconds_by_blocks(const joining *j, int64_t blocks)
{
    const bool copies = padded(blocks) > blocks; /* beside the padding, which is written during the gather */
    return (join_steps(blocks) + copies) * JOIN_SECONDS + gather_seconds(j, blocks);
}

/* Are the reduced axes neighbours? If not, lines of the operand are copies of it. */
static bool has_views_of_lines(const joining *j)
{
    bool began = false, ended = false;
    for (int a = 0; a < j->x->rank; a++) {
        const bool reduced = j->reduced >> a & 1;
        if (j->x->size[a] == 1) continue;
        if (reduced && ended) return false;
        began |= reduced;
        ended |= began && !reduced;
    }
    return true;
}

bool prefers_blocks(const joining *j)
{
    const planner *p = j->p;
    const int64_t blocks = block_of(j, j->bounds[p->g->ranks]);
    if (j->result.rank + 2 > DUET_RANK_MAX || policy == BLOCKS_NEVER) return false;
    if (policy == BLOCKS_ALWAYS) return true;
    return p->g->place == DUET_GPU && has_views_of_lines(j) &&
           seconds_by_blocks(j, blocks) < seconds_by_subtrees(j);
}

/* ---- the blocks of a rank ---- */

static duet_expr identity_of(const joining *j)
{
    return j->n->op == OP_prod ? duet_of_number(1) : zero_of_sums((duet_dtype)j->n->type, j->b->site);
}

/* `count` identity elements: joined with a result, they do not change it. */
static duet_expr padding(const joining *j, int64_t count)
{
    int64_t size[DUET_RANK_MAX] = { count };
    for (int a = 0; a < j->result.rank; a++) size[a + 1] = j->result.size[a];
    const duet_expr one = duet_cast_at(identity_of(j), (duet_dtype)j->n->type, j->b->site);
    return duet_broadcast_at(one, j->result.rank + 1, size, j->b->site);
}

/* The results of `count` blocks of `each` elements, along a first axis. The blocks begin at element `from` of
 * this rank's `upto` elements. lines: from as_lines() */
static duet_expr reduce_blocks(const joining *j, const duet_expr lines[], int64_t from, int64_t count,
                               int64_t each, int64_t upto)
{
    const int rank = j->result.rank;
    int64_t apart[DUET_RANK_MAX] = { 0 };
    int order[DUET_RANK_MAX] = { rank };
    node like = reduction_like(j, 1u << (rank + 1));
    duet_expr e[2];
    like.rank = (uint8_t)(rank + 1);
    like.size[0] = apart[rank] = count;
    apart[rank + 1] = each;
    order[rank + 1] = rank + 1;
    for (int a = 0; a < rank; a++) {
        like.size[a + 1] = apart[a] = j->result.size[a];
        order[a + 1] = a;
    }
    for (int k = 0; k < j->arity; k++) {
        const bool all = count * each == upto;
        e[k] = all ? lines[k] : build_range(j->b, lines[k], rank, from, from + count * each);
        e[k] = duet_reshape_at(e[k], rank + 2, apart, j->b->site);
        if (rank) e[k] = duet_permute_at(e[k], rank + 2, order, j->b->site);
    }
    return operator_again(&like, e, like.size);
}

static duet_expr own_blocks(const joining *j, const duet_expr x[])
{
    const int r = j->b->c->rank;
    const int64_t n = (j->bounds[r + 1] - j->bounds[r]) * j->unit, whole = n / REDUCE_BLOCK,
                  rest = n % REDUCE_BLOCK;
    duet_expr lines[2], e = { 0 };
    for (int k = 0; k < j->arity; k++) lines[k] = as_lines(j, x[k]);
    if (whole || !rest) e = reduce_blocks(j, lines, 0, whole, REDUCE_BLOCK, n);
    if (!rest) return e;
    const duet_expr last = reduce_blocks(j, lines, n - rest, 1, rest, n);
    return whole ? duet_append_at(e, last, 0, j->b->site) : last;
}

/* ---- joins ---- */

/* Joins each `each` neighbours of `count` results. If their number is odd, the last one is passed on. */
static duet_expr join_runs(const joining *j, duet_expr e, int64_t count, int64_t each)
{
    int64_t size[DUET_RANK_MAX] = { count / each, each };
    duet_expr part[AT_ONCE];
    for (int a = 0; a < j->result.rank; a++) size[a + 2] = j->result.size[a];
    e = duet_reshape_at(e, j->result.rank + 2, size, j->b->site);
    for (int64_t k = 0; k < each; k++) part[k] = build_range(j->b, e, 1, k, k + 1);
    for (int64_t n = each; n > 1; n = (n + 1) / 2)
        for (int64_t k = 0; k < n; k += 2)
            part[k / 2] = k + 1 < n ? join_results(j, part[k], part[k + 1]) : part[k];
    return part[0];
}

/* The results of all blocks, with padding. */
static duet_expr gather_padded(const joining *j, duet_expr own)
{
    const int64_t blocks = j->counts[j->p->g->ranks], more = padded(blocks) - blocks;
    const duet_expr all = gather_results(j, own, (duet_dtype)j->n->type);
    return more ? duet_append_at(all, padding(j, more), 0, j->b->site) : all;
}

static duet_expr join_levels(const joining *j, duet_expr e)
{
    int64_t count = padded(j->counts[j->p->g->ranks]);
    for (; count > AT_ONCE; count /= AT_ONCE) e = join_runs(j, e, count, AT_ONCE);
    return join_runs(j, e, count, count);
}

/* The parts of complex results are joined separately. */
duet_expr join_blocks(const joining *j, const duet_expr x[])
{
    const char *site = j->b->site;
    for (int r = 0; r <= j->p->g->ranks; r++) j->counts[r] = block_of(j, j->bounds[r]);
    const duet_expr all = gather_padded(j, own_blocks(j, x));
    if (!dtype_is_complex((duet_dtype)j->n->type)) return join_levels(j, all);
    return duet_complex_at(join_levels(j, duet_real_at(all, site)), join_levels(j, duet_imag_at(all, site)),
                           site);
}
