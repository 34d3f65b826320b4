/* replay.c - runs a recording again: statement by statement, or a segment of statements as one CUDA
 * graph. */
#include "compiler.h"
#include "deferred.h"
#include "device_use.h"
#include "direct_results.h"
#include "eviction.h"
#include "fp_environment.h"
#include "matrix.h"
#include "ready.h"
#include "record.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include "undo.h"
#include <stdlib.h>

static int device_of_segment(const duet_recording *r, const segment *g)
{
    return r->entries[g->first].plan->device;
}

/* ---- statement by statement ---- */

duet_status replay_entry(duet_recording *r, recorded *e)
{
    thread *t = thread_get();
    t->scratch_reserve = &r->reserve;
    r->queues |= 1ull << t->queue;
    duet_status s = plan_run(e->plan, &e->s);
    t->scratch_reserve = NULL;
    return s;
}

static __attribute__((cold)) duet_status name_statement(duet_status s, const recorded *e)
{
    fail_within(s, "statement %d of a recording", e->number + 1);
    if (e->site) return fail_at(s, e->site);
    return s;
}

/* The entries of one statement have one number: those of a duet_set_all that takes several passes. */
static bool begins_statement(const duet_recording *r, int i)
{
    return !i || r->entries[i - 1].number != r->entries[i].number;
}

static int end_of_statement(const duet_recording *r, int i)
{
    int end = i + 1;
    while (end < r->count && !begins_statement(r, end)) end++;
    return end;
}

/* ---- what is undone if a later entry of the statement fails ---- */

static bool is_own(const duet_recording *r, const duet_matrix *m)
{
    const duet_matrix *own = r->matrices;
    while (own && own != m) own = own->next;
    return own != NULL;
}

/* The last entry of a statement changes nothing if it fails. */
static void find_kept(duet_recording *r)
{
    for (int i = 0; i < r->count; i++) {
        recorded *e = &r->entries[i];
        for (int k = 0; k < e->plan->dests && i + 1 < end_of_statement(r, i); k++)
            e->is_kept |= e->plan->first_write[k] >= 0 && !is_own(r, e->to[k].m);
        r->keeps_any |= e->is_kept;
    }
}

/* The statement that is incomplete: some of its entries have run. */
typedef struct progress {
    buffer_user user; /* the first member: its function casts it back */
    const duet_recording *r;
    int ready, end;    /* buffers of entries ready .. end - 1 are not freed */
    int end_of_saving; /* entries before are saved, because a later one may fail */
    held_memory held;
    undo_log undo;
} progress;

static bool progress_uses(const buffer_user *u, const storage *b)
{
    const progress *w = (const progress *)u;
    return record_uses(w->r, w->ready, w->end, b);
}

/* Temporaries of a GPU are in the reserve, those of the host are held. */
static bool is_ready(const recorded *e, int device, const duet_matrix *const *written, int count,
                     held_memory *h)
{
    return e->plan->device == device &&
           plan_is_ready(e->plan, &e->s, written, count, device == HOST ? h : NULL) &&
           (device == HOST || plan_open_operands(e->plan, &e->s, written, count));
}

/* Finds the last entries, which only a device error can stop. */
static void find_ready(progress *w)
{
    const duet_matrix *written[STATEMENTS];
    const int device = w->r->entries[w->ready].plan->device;
    int count = 0;
    for (int i = w->ready; i < w->end; i++) {
        const recorded *e = &w->r->entries[i];
        if (count + e->s.count > STATEMENTS || !is_ready(e, device, written, count, &w->held)) {
            w->ready = i + 1;
            release_held(&w->held);
        }
        for (int k = 0; k < e->s.count && count < STATEMENTS; k++) written[count++] = e->to[k].m;
    }
}

static bool keeps_any(const duet_recording *r, int first, int end)
{
    while (first < end && !r->entries[first].is_kept) first++;
    return first < end;
}

/* Entry i, the first one of a statement, will run. */
static void begin_statement(const duet_recording *r, int i, progress *w)
{
    undo_forget(&w->undo);
    release_held(&w->held);
    w->ready = w->end = w->end_of_saving = i;
    if (likely(!keeps_any(r, i, end_of_statement(r, i)))) return;
    w->end = end_of_statement(r, i);
    find_ready(w);
    if (w->ready > i) w->end_of_saving = w->ready - 1;
}

static bool is_kept(const duet_recording *r, const recorded *e, int k)
{
    return e->is_kept && e->plan->first_write[k] >= 0 && !is_own(r, e->to[k].m);
}

/* Entry i will run. */
static duet_status save_entry(const duet_recording *r, int i, progress *w)
{
    const recorded *e = &r->entries[i];
    for (int k = 0; k < e->s.count && i < w->end_of_saving; k++) {
        const duet_status s = is_kept(r, e, k) ? undo_save(&w->undo, e->to[k].m, e->plan->device) : DUET_OK;
        if (s != DUET_OK) return name_statement(s, e);
    }
    return DUET_OK;
}

/* Entry i has run. */
static void lose_entry(const duet_recording *r, int i, progress *w)
{
    const recorded *e = &r->entries[i];
    for (int k = 0; k < e->s.count && i >= w->end_of_saving; k++)
        if (is_kept(r, e, k)) undo_lose(&w->undo, e->to[k].m);
}

static duet_status before_entry(duet_recording *r, int i, progress *w)
{
    if (begins_statement(r, i)) begin_statement(r, i, w);
    TRY(save_entry(r, i, w));
    if (i >= w->end_of_saving) release_held(&w->held);
    return DUET_OK;
}

static duet_status run_each(duet_recording *r, const segment *g, progress *w)
{
    for (int i = g->first; i < g->end; i++) {
        if (unlikely(r->keeps_any)) TRY(before_entry(r, i, w));
        duet_status s = replay_entry(r, &r->entries[i]);
        if (unlikely(s == DUET_NO_MEMORY) && undo_move_to_host(&w->undo)) s = replay_entry(r, &r->entries[i]);
        if (s != DUET_OK) return name_statement(s, &r->entries[i]);
        if (unlikely(r->keeps_any)) lose_entry(r, i, w);
    }
    return DUET_OK;
}

/* ---- a segment as a graph ---- */

static duet_status bind(const duet_matrix *m, int device, bool there, enum use use, int queue, void **data,
                        bool *moved)
{
    void *p;
    if (there) p = matrix_address(m, device);
    else TRY(matrix_open(m, device, use, queue, &p));
    *moved |= p != *data;
    *data = p;
    return DUET_OK;
}

static duet_status bind_one(recorded *e, int queue, bool *moved)
{
    const plan *p = e->plan;
    for (int i = 0; i < p->n_leaves && p->count; i++)
        TRY(bind(e->nodes[p->leaves[i].node].matrix, p->device, e->written_before[p->dests + i], READ, queue,
                 &e->data[p->dests + i], moved));
    for (int k = 0; k < p->dests && p->count; k++)
        if (p->first_write[k] >= 0)
            TRY(bind(e->to[k].m, p->device, e->written_before[k], OVERWRITE, queue, &e->data[k], moved));
    return DUET_OK;
}

/* The matrices of a segment. */
typedef struct segment_user {
    buffer_user user; /* the first member: its function casts it back */
    const duet_recording *r;
    const segment *g;
} segment_user;

static bool segment_uses(const buffer_user *u, const storage *b)
{
    const segment_user *x = (const segment_user *)u;
    return record_uses(x->r, x->g->first, x->g->end, b);
}

/* While memory is scarce, a segment whose matrices are not all on the device runs statement by statement:
 * they may not fit at once. */
static bool is_on_device(const duet_recording *r, const segment *g)
{
    for (const recorded *e = r->entries + g->first; e < r->entries + g->end; e++)
        for (int i = 0; i < e->plan->dests + e->plan->n_leaves; i++)
            if (!storage_has_buffer(e->storages[i], e->plan->device)) return false;
    return true;
}

/* Copy what the segment reads to the device, and allocate what it writes. *moved: has any address
 * changed since the last time? */
static duet_status bind_all(duet_recording *r, const segment *g, int queue, bool *moved)
{
    duet_status s = DUET_OK;
    *moved = false;
    for (int i = g->first; i < g->end && s == DUET_OK; i++)
        if ((s = bind_one(&r->entries[i], queue, moved)) != DUET_OK) name_statement(s, &r->entries[i]);
    return s;
}

/* ---- owners of operands: the storages that no statement of the segment writes ---- */

typedef struct segment_owners {
    owners of;
    const duet_recording *r;
    const segment *g;
    const recorded *e;
} segment_owners;

static bool writes_to(const recorded *e, const storage *b)
{
    for (int k = 0; k < e->plan->dests && e->plan->count; k++)
        if (e->plan->first_write[k] >= 0 && e->storages[k] == b) return true;
    return false;
}

static bool is_written(const segment_owners *w, const storage *b)
{
    for (int i = w->g->first; i < w->g->end; i++)
        if (writes_to(&w->r->entries[i], b)) return true;
    return false;
}

static storage *segment_owner(const owners *o, int slot)
{
    const segment_owners *w = (const segment_owners *)o;
    const plan *p = w->e->plan;
    if (slot < p->dests || slot >= p->dests + p->n_leaves) return NULL;
    storage *b = w->e->storages[slot];
    if (is_written(w, b)) return NULL;
    return b;
}

duet_status replay_steps(const duet_recording *r, const segment *g, const recorded *e, int queue)
{
    const plan *p = e->plan;
    const segment_owners whose = { { segment_owner }, r, g, e };
    const frame f = { e->data, e->num, queue, e->plan->device, &whose.of };
    int taken;
    duet_status s = plan_take_temporaries(p, e->data, queue, &taken);
    plan_bind_derived(p, e->data);
    int done = 0;
    while (done < p->count && s == DUET_OK) s = plan_step(p, &f, &done);
    s = plan_join(p, &f, s);
    plan_release_temporaries(p, e->data, queue, taken);
    if (likely(s == DUET_OK)) return s;
    return plan_wrote_before(p, done) ? error_becomes(DUET_DEVICE_ERROR) : s;
}

/* Step i of an entry is captured next. Returns false if the graph does not need it. */
static bool enter_step(const recorded *e, int i, const direct_result *r, int count, void *const *temporaries)
{
    bool needed = true;
    for (int k = 0; k < count; k++) {
        if (r[k].first == i) e->data[r[k].slot] = r[k].to;
        if (r[k].copy != i) continue;
        e->data[r[k].slot] = temporaries[k];
        needed = false;
    }
    return needed;
}

static duet_status capture_steps(const recorded *e, const frame *f)
{
    const plan *p = e->plan;
    direct_result direct[STATEMENTS];
    void *temporaries[STATEMENTS];
    const int count = direct_results(p, e->data, direct);
    duet_status s = DUET_OK;
    for (int k = 0; k < count; k++) temporaries[k] = e->data[direct[k].slot];
    for (int i = 0; i < p->count && s == DUET_OK && !count;) s = plan_step(p, f, &i);
    for (int i = 0; i < p->count && s == DUET_OK && count; i++)
        if (enter_step(e, i, direct, count, temporaries)) s = p->machine->run(&p->steps[i], f);
    for (int k = 0; k < count; k++) e->data[direct[k].slot] = temporaries[k];
    return s;
}

static duet_status capture_entry(const duet_recording *r, const segment *g, const recorded *e, int queue)
{
    const segment_owners whose = { { segment_owner }, r, g, e };
    const frame f = { e->data, e->num, queue, e->plan->device, &whose.of };
    int taken;
    duet_status s = plan_take_temporaries(e->plan, e->data, queue, &taken);
    plan_bind_derived(e->plan, e->data);
    if (s == DUET_OK) s = capture_steps(e, &f);
    plan_release_temporaries(e->plan, e->data, queue, taken);
    return s;
}

static duet_status prepare_entry(const duet_recording *r, const segment *g, const recorded *e, int queue)
{
    const segment_owners whose = { { segment_owner }, r, g, e };
    const frame f = { e->data, e->num, queue, e->plan->device, &whose.of };
    plan_bind_derived(e->plan, e->data);
    for (int i = 0; i < e->plan->count; i++) TRY(e->plan->machine->prepare(&e->plan->steps[i], &f));
    return DUET_OK;
}

static duet_status prepare(duet_recording *r, const segment *g, int queue)
{
    duet_status s = DUET_OK;
    thread_get()->scratch_reserve = &r->reserve;
    for (int i = g->first; i < g->end && s == DUET_OK; i++) s = prepare_entry(r, g, &r->entries[i], queue);
    thread_get()->scratch_reserve = NULL;
    return s;
}

duet_status replay_record(duet_recording *r, segment *g, int queue)
{
    thread *t = thread_get();
    const int device = device_of_segment(r, g);
    const machine *on = device_machine(device);
    duet_status s = DUET_OK, ended;
    TRY(prepare(r, g, queue));
    const uint64_t before = t->counted.launches;
    TRY(on->record(device, queue));
    t->scratch_reserve = &r->reserve;
    r->reserve.closed = true;
    for (int i = g->first; i < g->end && s == DUET_OK; i++) s = capture_entry(r, g, &r->entries[i], queue);
    t->scratch_reserve = NULL;
    r->reserve.closed = false;
    ended = on->recorded(device, queue, &g->graph);
    g->launches = t->counted.launches - before;
    g->queue = queue;
    g->device = device;
    COUNT_N(launches, -g->launches); /* they were recorded, not made */
    if (s != DUET_OK) return s;
    return ended;
}

static void forget(segment *g)
{
    if (!g->graph) return;
    device_machine(g->device)->discard(g->device, g->graph);
    g->graph = NULL;
}

#define ATTEMPTS 3

/* Record a graph after the segment's statements have run on this queue. A failure is not an error:
 * without a graph, the statements run one by one. */
static void capture(duet_recording *r, segment *g)
{
    const int queue = thread_get()->queue;
    thread *t = thread_get();
    segment_user user = { .r = r, .g = g };
    bool moved;
    forget(g);
    if (device_of_segment(r, g) == HOST || !plan_fits_graph(r->entries[g->first].plan) ||
        g->failures == ATTEMPTS || pool_is_tight())
        return;
    error_text before;
    error_keep(&before);
    buffer_user_begin(t, &user.user, segment_uses);
    duet_status s = bind_all(r, g, queue, &moved);
    if (s == DUET_OK) s = replay_record(r, g, queue);
    buffer_user_end(t, &user.user);
    if (s == DUET_OK) return;
    TRACE("no graph for statements %d to %d: %s", r->entries[g->first].number + 1,
          r->entries[g->end - 1].number + 1, thread_get()->text);
    forget(g);
    g->failures++;
    error_put_back(&before);
}

/* If a graph fails on the device, it is not known which results are complete. */
static void finish_entry(const recorded *e, int queue, duet_status s)
{
    const plan *p = e->plan;
    if (s == DUET_OK && p->count) plan_wrote(p, &e->s, queue);
    for (int k = 0; k < p->dests && s == DUET_DEVICE_ERROR; k++)
        if (p->first_write[k] >= 0 && p->count) matrix_write_failed(e->to[k].m, p->device);
}

static duet_status run_graph(duet_recording *r, const segment *g)
{
    const duet_status s = device_machine(g->device)->replay(g->device, g->graph, g->queue);
    for (int i = g->first; i < g->end; i++) finish_entry(&r->entries[i], g->queue, s);
    if (s != DUET_OK) return name_statement(s, &r->entries[g->first]);
    COUNT(graphs);
    COUNT_N(launches, g->launches);
    return DUET_OK;
}

/* The entry of the segment with which the part of a statement begins that continues in the next
 * segment. It is the end of the segment if there is none. */
static int first_of_open_statement(const duet_recording *r, const segment *g)
{
    int i = g->end;
    if (i == r->count || begins_statement(r, i)) return i;
    while (i > g->first && (i == g->end || !begins_statement(r, i))) i--;
    return i;
}

/* A graph runs as a whole or not at all, so only a statement that continues in the next segment may
 * have to be undone. */
static duet_status save_open_statement(duet_recording *r, const segment *g, progress *w)
{
    const int first = first_of_open_statement(r, g);
    if (begins_statement(r, g->first)) undo_forget(&w->undo);
    if (first < g->end && begins_statement(r, first)) begin_statement(r, first, w);
    for (int i = first; i < g->end; i++) TRY(save_entry(r, i, w));
    return DUET_OK;
}

/* If it does not run, the statements run one by one: they may need less memory, and those before
 * one that fails have run. *ran: there is a graph for this queue, all operands could be bound, no
 * address has changed, and there was memory to launch it. */
static duet_status run_as_graph(duet_recording *r, const segment *g, progress *w, bool *ran)
{
    const int queue = thread_get()->queue;
    bool moved;
    error_text before;
    error_keep(&before);
    duet_status s = bind_all(r, g, queue, &moved);
    if (s == DUET_OK && moved) return DUET_OK;
    if (s == DUET_OK) s = save_open_statement(r, g, w);
    if (s == DUET_OK) {
        s = run_graph(r, g);
        *ran = s == DUET_OK;
        if (s != DUET_NO_MEMORY) return s;
    }
    error_put_back(&before);
    return DUET_OK;
}

static duet_status try_graph(duet_recording *r, const segment *g, progress *w, bool *ran)
{
    thread *t = thread_get();
    segment_user user;
    *ran = false;
    if (!g->graph || g->queue != t->queue || (pool_is_tight() && !is_on_device(r, g)) ||
        segment_is_outdated(g))
        return DUET_OK;
    user.r = r;
    user.g = g;
    for (int i = g->first; i < g->end && pool_is_watched(); i++)
        plan_note_uses(r->entries[i].plan, &r->entries[i].s);
    buffer_user_begin(t, &user.user, segment_uses);
    const duet_status s = run_as_graph(r, g, w, ran);
    buffer_user_end(t, &user.user);
    return s;
}

/* A thread that recovers GPUs need not wait while a segment runs on the CPU, whose graph it ignores. */
static duet_status run_segment(duet_recording *r, segment *g, progress *w)
{
    bool ran;
    USE_GPUS_IF(device_of_segment(r, g) != HOST);
    TRY(try_graph(r, g, w, &ran));
    if (!ran) {
        TRY(run_each(r, g, w));
        capture(r, g);
        return DUET_OK;
    }
    const int open = first_of_open_statement(r, g);
    if (open == g->end) undo_forget(&w->undo);
    for (int i = open; i < g->end; i++) lose_entry(r, i, w);
    return DUET_OK;
}

/* Replays the statements of groups that come before the entry `at`. */
static duet_status run_calls(recorded_call **next, int at)
{
    for (; *next && (*next)->at <= at; *next = (*next)->next) TRY((*next)->replay(*next));
    return DUET_OK;
}

static duet_status run_segments(duet_recording *r)
{
    recorded_call *next = r->calls;
    thread *t = thread_get();
    progress w;
    w.r = r;
    w.ready = w.end = w.end_of_saving = w.held.count = 0;
    w.undo.last = NULL;
    w.undo.unsaved = 0;
    duet_status s = DUET_OK;
    if (unlikely(r->keeps_any)) buffer_user_begin(t, &w.user, progress_uses);
    for (int i = 0; i < r->n_segments && s == DUET_OK; i++) {
        s = run_calls(&next, r->segments[i].first);
        if (s == DUET_OK) s = run_segment(r, &r->segments[i], &w);
    }
    if (s == DUET_OK) s = run_calls(&next, r->count);
    if (unlikely(r->keeps_any)) buffer_user_end(t, &w.user);
    release_held(&w.held);
    if (unlikely(s != DUET_OK)) return undo_all(&w.undo, s);
    undo_forget(&w.undo);
    return DUET_OK;
}

/* ---- before the first replay ---- */

/* Has an earlier statement of the segment written the storage of m? */
static bool is_there(const duet_recording *r, const segment *g, const recorded *e, const duet_matrix *m)
{
    for (const recorded *b = r->entries + g->first; b < e; b++)
        for (int k = 0; k < b->plan->dests; k++)
            if (b->plan->count && b->plan->first_write[k] >= 0 && b->to[k].m->storage == m->storage)
                return true;
    return false;
}

static void find_there(duet_recording *r, const segment *g)
{
    for (recorded *e = r->entries + g->first; e < r->entries + g->end; e++) {
        for (int k = 0; k < e->plan->dests; k++) e->written_before[k] = is_there(r, g, e, e->to[k].m);
        for (int i = 0; i < e->plan->n_leaves; i++)
            e->written_before[e->plan->dests + i] =
                is_there(r, g, e, e->nodes[e->plan->leaves[i].node].matrix);
    }
}

duet_status replay_check_matrices(const recorded *e)
{
    TRY(formula_lives("duet_replay", &e->f));
    for (int k = 0; k < e->s.count; k++)
        if (!matrix_alive(e->to[k].m, e->serial[k]))
            return fail(DUET_FREED, "duet_replay: a destination was freed or resized");
    for (int k = 0; k < e->s.count; k++)
        if (storage_properties(e->to[k].m->storage) != e->writes[k].properties)
            return fail(DUET_UNSUPPORTED,
                        "duet_replay: a destination was declared with duet_declare after it was recorded; "
                        "record the statements again");
    return DUET_OK;
}

static duet_status all_matrices_live(const duet_recording *r)
{
    for (int i = 0; i < r->count; i++) {
        const duet_status s = replay_check_matrices(&r->entries[i]);
        if (s != DUET_OK) return name_statement(s, &r->entries[i]);
    }
    for (recorded_call *c = r->calls; c; c = c->next) TRY(c->check(c));
    return DUET_OK;
}

/* A streamed statement, and one whose status must be read back, cannot be part of a graph. */
static bool same_device(const plan *p, const plan *next)
{
    return p->device == next->device && plan_fits_graph(p) && plan_fits_graph(next);
}

/* The entries from i on that are of the same statement and can be in the same segment. */
static int end_on_device(const duet_recording *r, int i)
{
    const int end = end_of_statement(r, i);
    int k = i + 1;
    while (k < end && same_device(r->entries[k - 1].plan, r->entries[k].plan)) k++;
    return k;
}

/* Does entry a write elements that entry b overwrites? */
static bool writes_same(const recorded *a, const recorded *b)
{
    for (int j = 0; j < a->s.count; j++)
        for (int k = 0; k < b->s.count; k++)
            if (matrix_overlap(a->to[j].m, b->to[k].m) != APART) return true;
    return false;
}

/* Entry i begins a statement. If the statement does not end in the segment, what it overwrites is
 * saved before the graph of the segment runs. Would that be too early, since the graph writes it
 * before, or completes another statement that may be undone? */
static bool must_begin_segment(const duet_recording *r, int first, int i)
{
    const int end = end_on_device(r, i);
    if (end == end_of_statement(r, i) || !keeps_any(r, i, end)) return false;
    if (!begins_statement(r, first)) return true;
    for (int k = i; k < end; k++)
        for (int j = first; j < i; j++)
            if (r->entries[k].is_kept && writes_same(&r->entries[j], &r->entries[k])) return true;
    return false;
}

static bool follows_call(const duet_recording *r, int i)
{
    const recorded_call *c = r->calls;
    while (c && c->at < i) c = c->next;
    return c && c->at == i;
}

/* first: of the segment before. */
static bool begins_segment(const duet_recording *r, int first, int i)
{
    if (follows_call(r, i)) return true;
    if (!i || !same_device(r->entries[i - 1].plan, r->entries[i].plan)) return true;
    return begins_statement(r, i) && must_begin_segment(r, first, i);
}

duet_status replay_prepare(duet_recording *r)
{
    r->segments = calloc((size_t)r->count + 1, sizeof *r->segments);
    if (!r->segments)
        return fail(DUET_NO_MEMORY, "duet_record_end: out of memory for %d statements", r->count);
    find_kept(r);
    for (int i = 0, first = 0; i < r->count; i++) {
        if (begins_segment(r, first, i)) r->segments[r->n_segments++].first = first = i;
        r->segments[r->n_segments - 1].end = i + 1;
    }
    for (int i = 0; i < r->n_segments; i++) find_there(r, &r->segments[i]);
    if (all_matrices_live(r) != DUET_OK) return DUET_OK; /* each replay will report it */
    for (int i = 0; i < r->n_segments; i++) capture(r, &r->segments[i]);
    return DUET_OK;
}

static duet_status check(const duet_recording *r)
{
    const thread *t = thread_get();
    if (!r) return fail(DUET_BAD_ARGUMENT, "duet_replay: the recording must not be NULL");
    if (t->recording) return fail(DUET_BAD_ARGUMENT, "duet_replay: this thread is recording");
    if (t->explaining)
        return fail(DUET_UNSUPPORTED, "duet_replay: a recording cannot run inside DUET_EXPLAIN");
    if (t->shared) return fail(DUET_NO_MEMORY, "duet_replay: out of memory for the state of this thread");
    return all_matrices_live(r);
}

/* Another queue may have used the reserved memory last. Opening the first destination waits for
 * that queue, because it wrote the destination, too. */
duet_status(duet_replay)(duet_recording *r)
{
    TRY(check(r));
    IN_DEFAULT_FP_ENVIRONMENT;
    TRY(deferred_flush());
    TRY(run_segments(r));
    COUNT(replays);
    return DUET_OK;
}
