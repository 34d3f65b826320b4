/* replay.c - what was recorded runs again: statement by statement, or a stretch of them as one graph. */
#include "deferred.h"
#include "matrix.h"
#include "record.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <stdlib.h>

static const machine *machine_of(const duet_recording *r, const stretch *g)
{
    return r->of[g->first].plan->machine;
}

/* ---- statement by statement ---- */

duet_status replay_one(duet_recording *r, recorded *e)
{
    thread *t = thread_get();
    e->s.f = &e->f;
    e->s.to = e->to; /* recordings move while they grow */
    t->scratch_reserve = &r->lent;
    r->queues |= 1ull << t->queue;
    duet_status s = plan_run(e->plan, &e->s);
    t->scratch_reserve = NULL;
    return s;
}

static __attribute__((cold)) duet_status name_statement(duet_status s, const recorded *e)
{
    fail_within(s, "statement %d of a recording", e->number + 1);
    return e->site ? fail_at(s, e->site) : s;
}

/* Those before `at` have run, and half of duet_set_all is none of it. */
static __attribute__((cold)) void lose_half(const duet_recording *r, int at)
{
    for (int i = at; i-- > 0 && r->of[i].number == r->of[at].number;)
        for (int k = 0; k < r->of[i].s.count; k++) matrix_lost(r->of[i].to[k].m);
}

static duet_status run_each(duet_recording *r, const stretch *g)
{
    for (int i = g->first; i < g->end; i++) {
        const duet_status s = replay_one(r, &r->of[i]);
        if (s != DUET_OK) {
            lose_half(r, i);
            return name_statement(s, &r->of[i]);
        }
    }
    return DUET_OK;
}

/* ---- a stretch as a graph ---- */

static duet_status bind(const duet_matrix *m, bool there, enum use use, int queue, void **data, bool *moved)
{
    void *p = matrix_address(m, DEVICE);
    if (!there) TRY(matrix_open(m, DEVICE, use, queue, &p));
    *moved |= p != *data;
    *data = p;
    return DUET_OK;
}

static duet_status bind_one(recorded *e, int queue, bool *moved)
{
    const plan *p = e->plan;
    for (int i = 0; i < p->n_leaves && p->count; i++)
        TRY(bind(e->nodes[p->leaves[i].node].matrix, e->there[p->dests + i], READ, queue,
                 &e->data[p->dests + i], moved));
    for (int k = 0; k < p->dests && p->count; k++)
        if (p->first_write[k] >= 0) TRY(bind(e->to[k].m, e->there[k], OVERWRITE, queue, &e->data[k], moved));
    return DUET_OK;
}

/* Brings what the stretch reads, and has homes for what it writes. *moved: is any of it elsewhere than the last time? */
static duet_status bind_all(duet_recording *r, const stretch *g, int queue, bool *moved)
{
    duet_status s = DUET_OK;
    *moved = false;
    for (int i = g->first; i < g->end && s == DUET_OK; i++)
        if ((s = bind_one(&r->of[i], queue, moved)) != DUET_OK) name_statement(s, &r->of[i]);
    return s;
}

/* ---- whose memory operands are, in a stretch: of a storage that none of its statements writes ---- */

typedef struct stretch_owners {
    owners of;
    const duet_recording *r;
    const stretch *g;
    const recorded *e;
} stretch_owners;

static bool writes_to(const recorded *e, const storage *b)
{
    for (int k = 0; k < e->plan->dests && e->plan->count; k++)
        if (e->plan->first_write[k] >= 0 && e->bits[k] == b) return true;
    return false;
}

static bool is_written(const stretch_owners *w, const storage *b)
{
    for (int i = w->g->first; i < w->g->end; i++)
        if (writes_to(&w->r->of[i], b)) return true;
    return false;
}

static storage *stretch_owner(const owners *o, int slot)
{
    const stretch_owners *w = (const stretch_owners *)o;
    const plan *p = w->e->plan;
    if (slot < p->dests || slot >= p->dests + p->n_leaves) return NULL;
    storage *b = w->e->bits[slot];
    return is_written(w, b) ? NULL : b;
}

duet_status replay_steps(const duet_recording *r, const stretch *g, const recorded *e, int queue)
{
    const plan *p = e->plan;
    const stretch_owners whose = { { stretch_owner }, r, g, e };
    const frame f = { e->data, e->num, queue, &whose.of };
    int lent;
    duet_status s = plan_take_temporaries(p, e->data, queue, &lent);
    plan_bind_planes(p, e->data);
    for (int i = 0; i < p->count && s == DUET_OK; i++) s = p->machine->run(&p->steps[i], &f);
    plan_release_temporaries(p, e->data, queue, lent);
    return s;
}

static duet_status prepare_steps(const duet_recording *r, const stretch *g, const recorded *e, int queue)
{
    const stretch_owners whose = { { stretch_owner }, r, g, e };
    const frame f = { e->data, e->num, queue, &whose.of };
    plan_bind_planes(e->plan, e->data);
    for (int i = 0; i < e->plan->count; i++) TRY(e->plan->machine->prepare(&e->plan->steps[i], &f));
    return DUET_OK;
}

static duet_status prepare(duet_recording *r, const stretch *g, int queue)
{
    duet_status s = DUET_OK;
    thread_get()->scratch_reserve = &r->lent;
    for (int i = g->first; i < g->end && s == DUET_OK; i++) s = prepare_steps(r, g, &r->of[i], queue);
    thread_get()->scratch_reserve = NULL;
    return s;
}

duet_status replay_record(duet_recording *r, stretch *g, int queue)
{
    thread *t = thread_get();
    const machine *on = machine_of(r, g);
    duet_status s = DUET_OK, ended;
    TRY(prepare(r, g, queue));
    const uint64_t before = t->counted.launches;
    TRY(on->record(queue));
    t->scratch_reserve = &r->lent;
    r->lent.closed = true;
    for (int i = g->first; i < g->end && s == DUET_OK; i++) s = replay_steps(r, g, &r->of[i], queue);
    t->scratch_reserve = NULL;
    r->lent.closed = false;
    ended = on->recorded(queue, &g->graph);
    g->launches = t->counted.launches - before;
    g->queue = queue;
    COUNT_N(launches, -g->launches); /* they were noted, not made */
    return s != DUET_OK ? s : ended;
}

static void forget(duet_recording *r, stretch *g)
{
    machine_of(r, g)->discard(g->graph);
    g->graph = NULL;
}

#define ATTEMPTS 3

/* Its statements have just run on this queue. Without a graph the stretch runs one by one: that is no failure. */
static void capture(duet_recording *r, stretch *g)
{
    const int queue = thread_get()->queue;
    bool moved;
    forget(r, g);
    if (machine_of(r, g)->side != DEVICE || plan_is_apart(r->of[g->first].plan) || g->failures == ATTEMPTS)
        return;
    error_text before;
    error_keep(&before);
    duet_status s = bind_all(r, g, queue, &moved);
    if (s == DUET_OK) s = replay_record(r, g, queue);
    if (s == DUET_OK) return;
    TRACE("no graph for statements %d to %d: %s", r->of[g->first].number + 1, r->of[g->end - 1].number + 1,
          thread_get()->text);
    forget(r, g);
    g->failures++;
    error_put_back(&before);
}

/* How far a graph came that failed on the device is not known. */
static void end_one(const recorded *e, int queue, duet_status s)
{
    const plan *p = e->plan;
    if (s == DUET_OK && p->count) plan_wrote(p, &e->s, queue);
    for (int k = 0; k < p->dests && s == DUET_DEVICE_ERROR; k++)
        if (p->first_write[k] >= 0 && p->count) matrix_lost(e->to[k].m);
}

static duet_status run_graph(duet_recording *r, const stretch *g)
{
    const duet_status s = machine_of(r, g)->replay(g->graph, g->queue);
    for (int i = g->first; i < g->end; i++) end_one(&r->of[i], g->queue, s);
    if (s != DUET_OK) return name_statement(s, &r->of[g->first]);
    COUNT(graphs);
    COUNT_N(launches, g->launches);
    return DUET_OK;
}

/* *ran: there is a graph for this queue, all is where it was, and there was room to launch it. */
static duet_status try_graph(duet_recording *r, const stretch *g, bool *ran)
{
    const int queue = thread_get()->queue;
    bool moved;
    *ran = false;
    if (!g->graph || g->queue != queue) return DUET_OK;
    TRY(bind_all(r, g, queue, &moved));
    if (moved) return DUET_OK;
    error_text before;
    error_keep(&before);
    const duet_status s = run_graph(r, g);
    *ran = s == DUET_OK;
    if (s != DUET_NO_MEMORY) return s;
    error_put_back(&before);
    return DUET_OK; /* there may be room for its steps */
}

static duet_status run_stretch(duet_recording *r, stretch *g)
{
    bool ran;
    const duet_status s = try_graph(r, g, &ran);
    if (s != DUET_OK) lose_half(r, g->first);
    if (s != DUET_OK || ran) return s;
    TRY(run_each(r, g));
    capture(r, g);
    return DUET_OK;
}

/* ---- before the first replay ---- */

/* Has a statement of the stretch in front of e written where m lies? */
static bool is_there(const duet_recording *r, const stretch *g, const recorded *e, const duet_matrix *m)
{
    for (const recorded *b = r->of + g->first; b < e; b++)
        for (int k = 0; k < b->plan->dests; k++)
            if (b->plan->count && b->plan->first_write[k] >= 0 && b->to[k].m->bits == m->bits) return true;
    return false;
}

static void find_there(duet_recording *r, const stretch *g)
{
    for (recorded *e = r->of + g->first; e < r->of + g->end; e++) {
        for (int k = 0; k < e->plan->dests; k++) e->there[k] = is_there(r, g, e, e->to[k].m);
        for (int i = 0; i < e->plan->n_leaves; i++)
            e->there[e->plan->dests + i] = is_there(r, g, e, e->nodes[e->plan->leaves[i].node].matrix);
    }
}

duet_status replay_lives(const recorded *e)
{
    TRY(formula_lives("duet_replay", &e->f));
    for (int k = 0; k < e->s.count; k++)
        if (!matrix_alive(e->to[k].m, e->serial[k]))
            return fail(DUET_FREED, "duet_replay: a destination was freed");
    return DUET_OK;
}

static duet_status all_live(const duet_recording *r)
{
    for (int i = 0; i < r->count; i++) {
        const duet_status s = replay_lives(&r->of[i]);
        if (s != DUET_OK) return name_statement(s, &r->of[i]);
    }
    return DUET_OK;
}

/* What is streamed, or has to be asked for its status, is no part of a graph. */
static bool goes_on(const plan *p, const plan *next)
{
    return p->machine == next->machine && !plan_is_apart(p) && !plan_is_apart(next);
}

duet_status replay_prepare(duet_recording *r)
{
    r->stretches = calloc((size_t)r->count + 1, sizeof *r->stretches);
    if (!r->stretches) return fail(DUET_NO_MEMORY, "duet_record_end: no memory for %d statements", r->count);
    for (int i = 0; i < r->count; i++) {
        if (!i || !goes_on(r->of[i - 1].plan, r->of[i].plan)) r->stretches[r->n_stretches++].first = i;
        r->stretches[r->n_stretches - 1].end = i + 1;
    }
    for (int i = 0; i < r->n_stretches; i++) find_there(r, &r->stretches[i]);
    if (all_live(r) != DUET_OK) return DUET_OK; /* each replay will say so */
    for (int i = 0; i < r->n_stretches; i++) capture(r, &r->stretches[i]);
    return DUET_OK;
}

static duet_status check(const duet_recording *r)
{
    const thread *t = thread_get();
    if (!r) return fail(DUET_BAD_ARGUMENT, "duet_replay: the recording is null");
    if (t->recording) return fail(DUET_BAD_ARGUMENT, "duet_replay: this thread is recording");
    if (t->explaining)
        return fail(DUET_UNSUPPORTED, "duet_replay: this thread explains, and a recording can only run");
    if (t->shared) return fail(DUET_NO_MEMORY, "duet_replay: no memory for this thread's own state");
    return all_live(r);
}

/* What is lent may have been used by another queue last: that is waited for with the first destination, which that queue wrote too. */
duet_status duet_replay(duet_recording *r)
{
    TRY(check(r));
    TRY(deferred_flush());
    for (int i = 0; i < r->n_stretches; i++) TRY(run_stretch(r, &r->stretches[i]));
    COUNT(replays);
    return DUET_OK;
}
