/* group_statement.c - runs a statement with matrices on a group. Each rank builds its own formulas, with
 * collective steps where it needs elements of other ranks, and evaluates them like other formulas. */
#include "group_statement.h"
#include "build.h"
#include "copy_strided.h"
#include "deferred.h"
#include "rank_statement.h"
#include "split_matrix.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

bool group_concerns(const target *to, int count, const formula *f)
{
    for (int k = 0; k < count; k++)
        if (split_of(to[k].m)) return true;
    for (const node *n = leaf_last(f); n; n = leaf_before(f, n))
        if (split_of(n->matrix)) return true;
    return false;
}

/* ---- the statement ---- */

static duet_status find_group(group_run_of *r, const formula *f)
{
    for (uint32_t i = 0; i < f->count + (uint32_t)r->count; i++) {
        const bool is_leaf = i < f->count;
        if (is_leaf && f->nodes[i].op != OP_LEAF) continue;
        const duet_matrix *m = is_leaf ? f->nodes[i].matrix : r->to[i - f->count].m;
        if (!split_of(m)) continue;
        if (r->g && split_of(m)->group != r->g)
            return fail(DUET_BAD_ARGUMENT, "the matrices are on different groups");
        r->g = split_of(m)->group;
    }
    return group_check(NULL, r->g);
}

static duet_status ready_parts(const group_run_of *r)
{
    for (uint32_t i = 0; i < r->p.count; i++)
        if (r->nodes[i].op == OP_LEAF && split_of(r->nodes[i].matrix))
            TRY(split_ready(r->nodes[i].matrix->storage));
    for (int k = 0; k < r->count; k++)
        if (split_of(r->to[k].m)) TRY(split_ready(r->to[k].m->storage));
    return DUET_OK;
}

static uint64_t hash_nodes(const group_run_of *r)
{
    uint64_t hash = hash_step(r->p.count, (uint64_t)r->count);
    for (uint32_t i = 0; i < r->p.count; i++) {
        const node *n = &r->nodes[i];
        hash = hash_step(hash, n->kind & KIND(0xff, 0xff, 0xff, 0));
        for (int a = 0; a < n->rank; a++) hash = hash_step(hash, (uint64_t)n->size[a]);
    }
    return hash;
}

/* ---- distributions ---- */

/* A view whose elements are not split along one axis: all of them are gathered. */
static duet_status gather_leaf(group_run_of *r, uint32_t i)
{
    const duet_matrix *m = r->nodes[i].matrix;
    void *from, *to;
    const int queue = thread_get()->queue;
    duet_matrix *copy = duet_new_shape(m->at.type, m->at.rank, m->at.size);
    if (!copy) return DUET_NO_MEMORY;
    r->gathered[i] = copy;
    TRY(matrix_open(m, HOST, READ, queue, &from));
    TRY(matrix_open(copy, HOST, OVERWRITE, queue, &to));
    copy_strided(to, &copy->at, from, &m->at);
    matrix_wrote(copy, HOST, queue);
    r->nodes[i].matrix = copy;
    r->nodes[i].matrix_serial = copy->serial;
    r->p.of[i].gathers = true;
    return DUET_OK;
}

static duet_status distribute_leaf(group_run_of *r, uint32_t i)
{
    distribution *at = &r->p.of[i].at;
    if (!split_of(r->nodes[i].matrix) || r->g->ranks == 1) return DUET_OK;
    at->bounds = bounds_new(&r->p);
    if (!at->bounds) return fail(DUET_NO_MEMORY, "no memory");
    if (split_distribution(r->nodes[i].matrix, at)) return DUET_OK;
    *at = replicated();
    int owner;
    if (!split_owner(r->nodes[i].matrix, &owner)) return gather_leaf(r, i);
    r->p.of[i].how = OWNED;
    return DUET_OK;
}

static duet_status check_gathers(const group_run_of *r, uint32_t i)
{
    if (!r->p.of[i].gathers || thread_get()->transfers != DUET_TRANSFERS_FORBIDDEN || r->explain)
        return DUET_OK;
    return fail(DUET_FORBIDDEN, "the operands of duet_%s would be gathered from all ranks",
                r->nodes[i].op == OP_LEAF ? "set (a view that is not split along one axis)"
                                          : op_infos[r->nodes[i].op].name);
}

/* One leaf for each matrix: x*x stays a square, and the elements of x are exchanged once. */
static uint32_t same_leaf(const planner *p, uint32_t i)
{
    uint32_t first = i;
    for (uint32_t k = 0; k < first && p->nodes[i].op == OP_LEAF; k++)
        if (p->nodes[k].op == OP_LEAF && p->nodes[k].matrix == p->nodes[i].matrix &&
            distribution_equal(&p->of[k].at, &p->of[i].at, p->g->ranks))
            first = k;
    return first;
}

static duet_status distribute_nodes(group_run_of *r)
{
    for (uint32_t i = 0; i < r->p.count; i++) {
        if (r->nodes[i].op == OP_LEAF) TRY(distribute_leaf(r, i));
        else if (!distribute_node(&r->p, i)) return fail(DUET_NO_MEMORY, "no memory");
        r->p.of[i].same = same_leaf(&r->p, i);
    }
    find_fused(&r->p);
    for (uint32_t i = 0; i < r->p.count; i++) TRY(check_gathers(r, i));
    return DUET_OK;
}

/* Only destination k uses this node. */
static bool is_only_used_by(const group_run_of *r, uint32_t used, int dest)
{
    for (int k = 0; k < r->count; k++)
        if (k != dest && r->to[k].node == used) return false;
    for (uint32_t i = used + 1; i < r->p.count; i++)
        for (int k = 0; k < op_infos[r->nodes[i].op].arity; k++)
            if (i - r->nodes[i].back[k] == used) return false;
    return true;
}

static duet_status distribute_dest(group_run_of *r, int k)
{
    const duet_matrix *m = r->to[k].m;
    distribution *at = &r->dest[k];
    at->axis = -1;
    if (!split_of(m) || r->g->ranks == 1) return DUET_OK; /* one rank has all elements */
    at->bounds = bounds_new(&r->p);
    if (!at->bounds) return fail(DUET_NO_MEMORY, "no memory");
    int owner;
    if (split_distribution(m, at)) return DUET_OK;
    *at = replicated();
    if (split_owner(m, &owner)) return DUET_OK;
    return fail(DUET_UNSUPPORTED,
                "the destination is a view whose elements are not split along one axis; assign to a matrix, "
                "or to ranges of it with positive steps");
}

/* If only one destination uses a value, operators may compute it where the destination needs it. */
static void note_wanted(group_run_of *r, int k)
{
    spread *s = &r->p.of[r->to[k].node];
    s->is_wanted = is_only_used_by(r, r->to[k].node, k);
    s->wanted = destination_needs(r, k);
}

/* Partial sums are added on the ranks that need them. */
static void place_sums(group_run_of *r)
{
    for (int k = 0; k < r->count; k++) {
        spread *s = &r->p.of[r->to[k].node];
        if (s->how == ADDED && s->is_wanted && s->wanted.axis >= 0) s->at = s->wanted;
    }
}

/* ---- destinations that the ranks do not write themselves ---- */

/* Does the rank write a copy of destination k? It does if the destination is ordinary, and several ranks of
 * this process compute it. It also does if another rank has all elements of the destination: then it computes
 * them only to take part in the communication. */
static bool writes_copy(const group_run_of *r, int k, int index)
{
    const duet_matrix *m = r->to[k].m;
    int owner;
    if (!split_of(m)) return r->g->near > 1;
    return split_of(m)->at.axis >= 0 && r->dest[k].axis < 0 && split_owner(m, &owner) &&
           owner != r->g->first + index;
}

static duet_status make_results(group_run_of *r)
{
    const int near = r->g->near;
    r->result = calloc((size_t)(r->count * near), sizeof(duet_matrix *));
    if (!r->result) return fail(DUET_NO_MEMORY, "no memory");
    for (int at = 0; at < r->count * near; at++) {
        const layout *like = &r->to[at / near].m->at;
        if (!writes_copy(r, at / near, at % near)) continue;
        r->result[at] = duet_new_shape(like->type, like->rank, like->size);
        if (!r->result[at]) return DUET_NO_MEMORY;
    }
    return DUET_OK;
}

static void free_all(duet_matrix **m, size_t count)
{
    for (size_t i = 0; m && i < count; i++) duet_free(&m[i]);
    free(m);
}

/* The ranks have written copies of the ordinary destinations. The copy of the first rank is assigned. */
static duet_status assign_results(group_run_of *r)
{
    for (int k = 0; k < r->count; k++) {
        duet_matrix *from = split_of(r->to[k].m) ? NULL : r->result[k * r->g->near];
        if (!from) continue;
        const duet_assignment a = { (duet_matrix *)r->to[k].m, duet_of_matrix(from) };
        TRY(r->run(r->who, &a, 1, r->site));
    }
    return DUET_OK;
}

/* ---- all ranks ---- */

static void mark_written(const group_run_of *r)
{
    for (int k = 0; k < r->count; k++)
        if (split_of(r->to[k].m)) split_of(r->to[k].m)->valid = true;
}

static duet_status name_rank(const group_run_of *r, duet_status s, int failed)
{
    if (failed < 0 || r->g->ranks == 1 || s == DUET_RANK_FAILED) return s;
    return fail_within(s, "rank %d", r->g->first + failed);
}

/* The matrices that a replay needs. */
static duet_status note_for_replay(group_run_of *r)
{
    if (r->explain) return DUET_OK;
    TRY(group_call_of(r->g, &r->call));
    for (uint32_t i = 0; r->call && i < r->p.count; i++) {
        if (r->gathered[i])
            return fail(DUET_UNSUPPORTED, "a statement that gathers a view cannot be recorded");
        if (r->nodes[i].op == OP_LEAF) TRY(group_call_uses(r->call, r->nodes[i].matrix));
    }
    for (int k = 0; r->call && k < r->count; k++) TRY(group_call_uses(r->call, r->to[k].m));
    return DUET_OK;
}

/* The recordings of the ranks write these matrices at each replay. */
static duet_status keep_results(group_run_of *r)
{
    for (int at = 0; r->call && at < r->count * r->g->near; at++) {
        if (!r->result[at]) continue;
        TRY(group_call_keeps(r->call, r->result[at]));
        r->result[at] = NULL;
    }
    return DUET_OK;
}

static duet_status run_all_ranks(group_run_of *r)
{
    int failed = -1;
    TRY(make_results(r));
    TRY(note_for_replay(r));
    r->word = hash_nodes(r);
    r->ran = true;
    duet_status s = group_run(r->g, rank_statement, r, &failed);
    if (s != DUET_OK) return name_rank(r, s, failed);
    if (r->explain) return DUET_OK;
    mark_written(r);
    TRY(assign_results(r));
    return keep_results(r);
}

static duet_status prepare(group_run_of *r, node *nodes, uint32_t count)
{
    r->nodes = nodes;
    r->gathered = calloc(count, sizeof(duet_matrix *));
    r->dest = calloc((size_t)r->count + 1, sizeof *r->dest);
    r->order = malloc(count * sizeof *r->order);
    if (!r->gathered || !r->dest || !r->order || !planner_begin(&r->p, r->g, nodes, count))
        return fail(DUET_NO_MEMORY, "no memory for a formula of %u nodes", count);
    TRY(deferred_flush());
    TRY(ready_parts(r));
    for (int k = 0; k < r->count; k++) {
        TRY(distribute_dest(r, k));
        note_wanted(r, k);
    }
    TRY(distribute_nodes(r));
    place_sums(r);
    if (!build_find_waiting(&r->p) || !build_order(&r->p, r->order))
        return fail(DUET_NO_MEMORY, "no memory for a formula of %u nodes", count);
    return DUET_OK;
}

static void end_run(group_run_of *r, duet_status s)
{
    error_text why;
    error_keep(&why);
    free_all(r->result, r->result ? (size_t)(r->count * r->g->near) : 0);
    free_all(r->gathered, r->gathered ? r->p.count : 0);
    planner_end(&r->p);
    free(r->order);
    free(r->dest);
    if (s != DUET_OK) error_put_back(&why);
}

/* Statements that use no destination of an earlier one. If this process fails before it begins, the others
 * are told. */
static duet_status run_part(group_run_of *r, node *nodes, uint32_t count)
{
    duet_status s = prepare(r, nodes, count);
    if (s == DUET_OK) s = run_all_ranks(r);
    communicator *c = &r->g->comm[0];
    if (s != DUET_OK && !r->ran && !r->explain && r->g->near < r->g->ranks) s = communicator_agree(c, s, 0);
    end_run(r, s);
    return s;
}

/* Does statement k read or write what an earlier statement writes? Then its formula has no node of theirs
 * (formulas_of). */
static bool uses_destination(const target *to, const node *nodes, int k)
{
    for (int e = 0; e < k; e++) {
        if (matrix_overlap(to[e].m, to[k].m) != APART) return true;
        for (uint32_t i = to[k - 1].node + 1; i <= to[k].node; i++)
            if (nodes[i].op == OP_LEAF && matrix_overlap(to[e].m, nodes[i].matrix) != APART) return true;
    }
    return false;
}

/* Whether parts of matrices overlap differs from rank to rank. So a list is divided by whether the matrices
 * do. */
static duet_status run_list(group_run_of *all, node *nodes, uint32_t count)
{
    target to[STATEMENTS];
    for (int first = 0, end; first < all->count; first = end) {
        const uint32_t from = first ? all->to[first - 1].node + 1 : 0;
        for (end = first + 1; end < all->count && !uses_destination(all->to, nodes, end);) end++;
        const uint32_t upto = end < all->count ? all->to[end - 1].node + 1 : count;
        for (int k = first; k < end; k++) to[k - first] = (target){ all->to[k].m, all->to[k].node - from };
        group_run_of r = *all;
        r.to = to;
        r.count = end - first;
        TRY(run_part(&r, nodes + from, upto - from));
    }
    return DUET_OK;
}

/* Later formulas may move the nodes of the arena, and leaves that are gathered are replaced. */
static node *copy_nodes(const formula *f)
{
    node *nodes = malloc(f->count * sizeof *nodes);
    if (nodes) memcpy(nodes, f->nodes, f->count * sizeof *nodes);
    else fail(DUET_NO_MEMORY, "no memory for a formula of %u nodes", f->count);
    return nodes;
}

duet_status group_statement(const char *who, const target *to, int count, const formula *f, FILE *explain,
                            const char *site, local_statements *run)
{
    group_run_of r = { .who = who, .site = site, .to = to, .count = count, .explain = explain, .run = run };
    TRY(find_group(&r, f));
    node *nodes = copy_nodes(f);
    const duet_status s = nodes ? run_list(&r, nodes, f->count) : DUET_NO_MEMORY;
    free(nodes);
    return s;
}

duet_matrix *group_result(const char *who, const formula *f)
{
    const uint32_t root = f->count - 1;
    group_run_of r = { .who = who };
    duet_matrix *m = NULL;
    node *nodes = find_group(&r, f) == DUET_OK ? copy_nodes(f) : NULL;
    if (!nodes) return NULL;
    if (prepare(&r, nodes, f->count) == DUET_OK) {
        const shape whole = shape_of_node(&nodes[root]);
        m = split_new(r.g, (duet_dtype)nodes[root].type, &whole, &r.p.of[root].at);
        if (!m) fail(DUET_NO_MEMORY, "%s: no memory", who);
    }
    end_run(&r, m ? DUET_OK : thread_get()->status);
    free(nodes);
    return m;
}
