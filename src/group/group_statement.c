/* group_statement.c - runs a statement with matrices on a group. Each rank builds its own formulas, with
 * collective steps where it needs elements of other ranks, and evaluates them like other formulas. */
#include "group_statement.h"
#include "build.h"
#include "copy_strided.h"
#include "deferred.h"
#include "dtype.h"
#include "group_record.h"
#include "split_matrix.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

static split *split_of(const duet_matrix *m) { return m->storage->split; }

bool group_concerns(const target *to, int count, const formula *f)
{
    for (int k = 0; k < count; k++)
        if (split_of(to[k].m)) return true;
    for (const node *n = leaf_last(f); n; n = leaf_before(f, n))
        if (split_of(n->matrix)) return true;
    return false;
}

/* ---- the statement ---- */

/* A statement, which all ranks share while they run it. */
typedef struct group_run_of {
    duet_group *g;
    const char *who, *site;
    const target *to;
    int count;
    planner p;
    node *nodes;
    duet_matrix **gathered; /* by node: a copy of a view whose elements had to be gathered; or NULL */
    distribution *dest;     /* of each destination */
    duet_matrix **result;   /* the copy of destination k for rank `index`, at [k * near + index]; or NULL */
    uint64_t word;          /* equal on all ranks that run the same statement */
    FILE *explain;
    local_statements *run;
    bool ran;         /* the ranks have begun */
    group_call *call; /* of the recording to which the statement is added; or NULL */
} group_run_of;

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

static duet_status ready_parts(const group_run_of *r, const formula *f)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (f->nodes[i].op == OP_LEAF && split_of(f->nodes[i].matrix))
            TRY(split_ready(f->nodes[i].matrix->storage));
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

static duet_status distribute_nodes(group_run_of *r)
{
    for (uint32_t i = 0; i < r->p.count; i++) {
        if (r->nodes[i].op == OP_LEAF) TRY(distribute_leaf(r, i));
        else if (!distribute_node(&r->p, i)) return fail(DUET_NO_MEMORY, "no memory");
        TRY(check_gathers(r, i));
    }
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

/* The distribution that destination k needs of the value of its formula, which may broadcast. */
static distribution wanted(const group_run_of *r, int k)
{
    const node *n = &r->nodes[r->to[k].node];
    const layout *to = &r->to[k].m->at;
    const int own = r->dest[k].axis - (to->rank - n->rank);
    if (r->dest[k].axis < 0 || own < 0 || n->size[own] != to->size[r->dest[k].axis]) return replicated();
    return (distribution){ own, r->dest[k].bounds };
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
    if (!split_distribution(m, at)) {
        *at = replicated();
        if (split_owner(m, &owner)) return DUET_OK;
        return fail(
            DUET_UNSUPPORTED,
            "the destination is a view whose elements are not split along one axis; assign to a matrix, "
            "or to ranges of it with positive steps");
    }
    spread *s = &r->p.of[r->to[k].node];
    const distribution want = wanted(r, k);
    if (s->how == ADDED && want.axis >= 0 && is_only_used_by(r, r->to[k].node, k)) s->at = want;
    return DUET_OK;
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

/* ---- one rank ---- */

/* The part of a destination on the group that this rank writes. */
static duet_matrix *destination_view(const group_run_of *r, builder *b, int k)
{
    const duet_matrix *m = r->to[k].m;
    const bool is_cut = r->dest[k].axis >= 0 || split_of(m)->at.axis < 0 || r->g->ranks == 1;
    return is_cut ? build_view(b, m) : build_owned(b, m);
}

static duet_status build_statements(const group_run_of *r, builder *b, duet_assignment *a)
{
    for (uint32_t i = 0; i < r->p.count; i++) TRY(build_node(b, i));
    b->site = r->site;
    for (int k = 0; k < r->count; k++) {
        const distribution want = wanted(r, k);
        const node *n = &r->nodes[r->to[k].node];
        duet_matrix *m = (duet_matrix *)r->to[k].m, *result = r->result[k * r->g->near + b->index];
        if (!result && split_of(m) && !(m = destination_view(r, b, k))) return DUET_NO_MEMORY;
        duet_expr e = build_moved(b, r->to[k].node, &want);
        if (duet_expr_type(e) != (duet_dtype)n->type && dtype_is_half((duet_dtype)n->type))
            e = duet_cast_at(e, (duet_dtype)n->type, r->site);
        a[k] = (duet_assignment){ result ? result : m, e };
    }
    return DUET_OK;
}

/* A recording keeps the views that it uses; the others are freed. */
static duet_status end_views(builder *b, duet_status s)
{
    for (int i = 0; i < b->views; i++) s = record_own_or_free(b->view[i], s);
    return s;
}

/* Another rank has failed, and this one has already written. */
static void lose_results(const builder *b, const duet_assignment *a, int count)
{
    for (int k = 0; k < count; k++) matrix_lost(a[k].to);
}

/* May an operator find that there is no result, as for a singular matrix? */
static bool may_fail(const group_run_of *r)
{
    for (uint32_t i = 0; i < r->p.count; i++)
        if (op_infos[r->nodes[i].op].flags & OP_ASKS) return true;
    return false;
}

/* Prints the formulas of the user, the bytes that the rank sends, and which operators gather operands. */
static void print_statements(const group_run_of *r, const builder *b)
{
    names n = { 0 };
    const formula f = { .nodes = r->nodes, .count = r->p.count };
    for (int k = 0; k < r->count; k++) {
        formula_print(r->explain, &f, r->to[k].node, &n);
        fputc('\n', r->explain);
    }
    fprintf(r->explain, "  rank %d of %d: %d collective step%s; this rank sends %lld bytes\n", b->c->rank,
            b->c->ranks, b->sequence, b->sequence == 1 ? "" : "s", (long long)b->bytes);
    for (uint32_t i = 0; i < r->p.count; i++)
        if (r->p.of[i].gathers)
            fprintf(r->explain, "  every rank gathers all elements for: %s\n",
                    r->nodes[i].op == OP_LEAF ? "a view" : op_infos[r->nodes[i].op].name);
}

static duet_status run_built(const group_run_of *r, builder *b, duet_assignment *a)
{
    TRY(build_statements(r, b, a));
    if (r->explain) print_statements(r, b);
    return r->run(r->who, a, r->count, r->site);
}

/* A rank may find that there is no result. So all ranks compute into temporary matrices, and assign these to
 * the destinations only if no rank has failed. */
static duet_status run_in_two_steps(const group_run_of *r, builder *b, duet_assignment *a)
{
    duet_matrix *to[STATEMENTS];
    TRY(build_statements(r, b, a));
    for (int k = 0; k < r->count; k++) {
        const layout *at = &a[k].to->at;
        to[k] = a[k].to;
        a[k].to = build_keep(b, duet_new_shape(at->type, at->rank, at->size));
        if (!a[k].to) return DUET_NO_MEMORY;
    }
    duet_status s = r->run(r->who, a, r->count, r->site);
    if (!b->c->told) s = communicator_agree(b->c, s, r->word);
    if (s != DUET_OK) return s;
    for (int k = 0; k < r->count; k++) a[k] = (duet_assignment){ to[k], duet_of_matrix(a[k].to) };
    return r->run(r->who, a, r->count, r->site);
}

/* Sets the recording of this thread, and returns the previous one. */
static duet_recording *recording_of_thread(duet_recording *r)
{
    thread *t = thread_get();
    duet_recording *before = t->recording;
    t->recording = r;
    t->slot[SLOT_RECORDING] = r;
    return before;
}

/* Collective steps of all statements of the list are in one chain. So a later statement depends on what an earlier
 * one reads, which must not have been overwritten by then. */
static bool reads_destination(const group_run_of *r)
{
    for (int k = 0; k < r->count && r->count > 1; k++)
        for (uint32_t i = 0; i < r->p.count; i++)
            if (r->nodes[i].op == OP_LEAF && matrix_overlap(r->to[k].m, r->nodes[i].matrix) != APART)
                return true;
    return false;
}

/* A rank of a group of several processes runs in the caller's thread, which may record. */
static duet_status run_recorded(const group_run_of *r, builder *b, duet_assignment *a, int index)
{
    TRY(group_call_resume(r->call, index));
    const bool apart = b->c->ranks > 1 && !r->explain && (may_fail(r) || reads_destination(r));
    const duet_status s = (apart ? run_in_two_steps : run_built)(r, b, a);
    if (s == DUET_OK && r->call) record_next(s);
    return s;
}

static duet_status run_rank(void *context, int index)
{
    const group_run_of *r = context;
    thread *t = thread_get();
    FILE *before = t->explaining;
    duet_recording *own = recording_of_thread(NULL);
    communicator *c = &r->g->comm[index];
    builder b;
    duet_assignment a[STATEMENTS];
    if (r->explain && index) return DUET_OK;
    t->explaining = r->explain;
    t->explains_rank = r->explain != NULL;
    c->told = false;
    duet_status s = build_begin(&b, &r->p, c, index) ? run_recorded(r, &b, a, index) : DUET_NO_MEMORY;
    const bool wrote = s == DUET_OK;
    if (!c->told && !r->explain) s = communicator_agree(c, s, hash_step(r->word, ~0ull));
    if (wrote && s != DUET_OK) lose_results(&b, a, r->count);
    s = end_views(&b, s);
    group_call_pause(r->call, index);
    recording_of_thread(own);
    build_end(&b);
    t->explaining = before;
    t->explains_rank = false;
    return s;
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
        if (r->nodes[i].op == OP_LEAF) TRY(group_call_uses(r->call, r->nodes[i].matrix, false));
    }
    for (int k = 0; r->call && k < r->count; k++) TRY(group_call_uses(r->call, r->to[k].m, true));
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
    duet_status s = group_run(r->g, run_rank, r, &failed);
    if (s != DUET_OK) return name_rank(r, s, failed);
    if (r->explain) return DUET_OK;
    mark_written(r);
    TRY(assign_results(r));
    return keep_results(r);
}

static duet_status prepare(group_run_of *r, const formula *f)
{
    r->nodes = malloc(f->count * sizeof *r->nodes);
    r->gathered = calloc(f->count, sizeof(duet_matrix *));
    r->dest = calloc((size_t)r->count + 1, sizeof *r->dest);
    if (r->nodes) memcpy(r->nodes, f->nodes, f->count * sizeof *r->nodes);
    if (!r->nodes || !r->gathered || !r->dest || !planner_begin(&r->p, r->g, r->nodes, f->count))
        return fail(DUET_NO_MEMORY, "no memory for a formula of %u nodes", f->count);
    TRY(deferred_flush());
    TRY(ready_parts(r, f));
    TRY(distribute_nodes(r));
    for (int k = 0; k < r->count; k++) TRY(distribute_dest(r, k));
    return DUET_OK;
}

static void end_run(group_run_of *r, duet_status s)
{
    error_text why;
    error_keep(&why);
    free_all(r->result, r->result ? (size_t)(r->count * r->g->near) : 0);
    free_all(r->gathered, r->gathered ? r->p.count : 0);
    planner_end(&r->p);
    free(r->dest);
    free(r->nodes);
    if (s != DUET_OK) error_put_back(&why);
}

/* Statements that use no destination of an earlier one. If this process fails before it begins, the others are
 * told. */
static duet_status run_part(group_run_of *r, const formula *f)
{
    duet_status s = prepare(r, f);
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

/* Whether parts of matrices overlap differs from rank to rank. So a list is divided by whether the matrices do. */
static duet_status run_list(group_run_of *all, const node *nodes, const formula *f)
{
    target to[STATEMENTS];
    for (int first = 0, end; first < all->count; first = end) {
        const uint32_t from = first ? all->to[first - 1].node + 1 : 0;
        for (end = first + 1; end < all->count && !uses_destination(all->to, nodes, end);) end++;
        const uint32_t upto = end < all->count ? all->to[end - 1].node + 1 : f->count;
        for (int k = first; k < end; k++) to[k - first] = (target){ all->to[k].m, all->to[k].node - from };
        group_run_of r = *all;
        r.to = to;
        r.count = end - first;
        const formula part = { .nodes = nodes + from, .count = upto - from };
        TRY(run_part(&r, &part));
    }
    return DUET_OK;
}

duet_status group_statement(const char *who, const target *to, int count, const formula *f, FILE *explain,
                            const char *site, local_statements *run)
{
    group_run_of r = { .who = who, .site = site, .to = to, .count = count, .explain = explain, .run = run };
    TRY(find_group(&r, f));
    node *nodes = malloc(f->count * sizeof *nodes); /* later formulas may move those of the arena */
    if (!nodes) return fail(DUET_NO_MEMORY, "no memory for a formula of %u nodes", f->count);
    memcpy(nodes, f->nodes, f->count * sizeof *nodes);
    const duet_status s = run_list(&r, nodes, f);
    free(nodes);
    return s;
}

duet_matrix *group_result(const char *who, const formula *f)
{
    const uint32_t root = f->count - 1;
    group_run_of r = { .who = who };
    duet_matrix *m = NULL;
    if (find_group(&r, f) != DUET_OK) return NULL;
    if (prepare(&r, f) == DUET_OK) {
        shape whole = { .rank = f->nodes[root].rank };
        memcpy(whole.size, f->nodes[root].size, sizeof whole.size);
        m = split_new(r.g, (duet_dtype)f->nodes[root].type, &whole, &r.p.of[root].at);
        if (!m) fail(DUET_NO_MEMORY, "%s: no memory", who);
    }
    end_run(&r, m ? DUET_OK : thread_get()->status);
    return m;
}
