/* rank_statement.c - runs a statement on one rank: the rank builds ordinary formulas of its own, with
 * collective steps where it needs elements of other ranks, and evaluates them like any others. */
#include "rank_statement.h"
#include "build.h"
#include "dtype.h"
#include "status.h"

distribution destination_needs(const group_run_of *r, int k)
{
    const node *n = &r->nodes[r->to[k].node];
    const layout *to = &r->to[k].m->at;
    const int own = r->dest[k].axis - (to->rank - n->rank);
    if (r->dest[k].axis < 0 || own < 0 || n->size[own] != to->size[r->dest[k].axis]) return replicated();
    return (distribution){ own, r->dest[k].bounds };
}

/* The part of a destination on the group that this rank writes. */
static duet_matrix *destination_view(const group_run_of *r, builder *b, int k)
{
    const duet_matrix *m = r->to[k].m;
    const bool is_cut = r->dest[k].axis >= 0 || split_of(m)->at.axis < 0 || r->g->ranks == 1;
    return is_cut ? build_view(b, m) : build_owned(b, m);
}

static duet_status build_statements(const group_run_of *r, builder *b, duet_assignment *a)
{
    for (uint32_t i = 0; i < r->p.count; i++) TRY(build_node(b, r->order[i]));
    b->site = r->site;
    for (int k = 0; k < r->count; k++) {
        const distribution want = destination_needs(r, k);
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

static void print_distribution(const group_run_of *r, uint32_t i)
{
    const spread *s = &r->p.of[i];
    if (s->gathers)
        fprintf(r->explain, "  every rank gathers all elements for: %s\n",
                r->nodes[i].op == OP_LEAF ? "a view" : op_infos[r->nodes[i].op].name);
    if (s->how != GRID) return;
    fprintf(r->explain, "  %s: blocks of a grid of %d x %d ranks", op_infos[r->nodes[i].op].name,
            s->grid.rows, s->grid.columns);
    if (s->grid.panels > 1) fprintf(r->explain, ", in at most %d panels", s->grid.panels);
    fputc('\n', r->explain);
}

/* Prints the formulas of the user, the bytes that the rank sends, which operators gather operands, and which
 * products are computed in blocks. */
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
    for (uint32_t i = 0; i < r->p.count; i++) print_distribution(r, i);
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

/* Collective steps of all statements of the list are in one chain. So a later statement depends on what an
 * earlier one reads, which must not have been overwritten by then. */
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

duet_status rank_statement(void *context, int index)
{
    const group_run_of *r = context;
    thread *t = thread_get();
    FILE *before = t->explaining;
    communicator *c = &r->g->comm[index];
    builder b;
    duet_assignment a[STATEMENTS];
    if (r->explain && index) return DUET_OK;
    duet_recording *own = recording_of_thread(NULL);
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
