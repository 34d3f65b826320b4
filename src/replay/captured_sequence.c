/* captured_sequence.c - records statements as they run; later it defers the same statements and
 * launches all of them as one CUDA graph. */
#include "captured_sequence.h"
#include "compiler.h"
#include "matrix.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <stdlib.h>
#include <string.h>

/* ---- launching: by any thread that holds the lock of the queue ---- */

/* What the entry was to write is lost; or it is as before, if the entry did not run. */
static void unwrite_entry(const recorded *e, bool ran)
{
    for (int k = e->plan->dests; k-- > 0;) {
        const deferred_write *w = &e->writes[k];
        if (e->plan->first_write[k] < 0) continue;
        if (ran) matrix_unwritten(&w->m, e->plan->device);
        else matrix_not_written(&w->m, e->plan->device, w->before);
    }
}

/* Launching failed at an entry, and those after it did not run. The last one is first, because an entry may
 * overwrite what an earlier one wrote. */
static __attribute__((cold)) void unwrite(const captured_sequence *r, int failed, duet_status s)
{
    for (int i = r->deferred_to; i-- > failed;)
        unwrite_entry(&r->recording.entries[i], i == failed && s == DUET_DEVICE_ERROR);
}

static __attribute__((cold)) void lose_all(const captured_sequence *r)
{
    for (int i = r->deferred_from; i < r->deferred_to; i++) unwrite_entry(&r->recording.entries[i], true);
}

static __attribute__((cold)) duet_status name_statement(duet_status s, const recorded *e)
{
    fail_within(s, "a deferred statement");
    if (e->site) return fail_at(s, e->site);
    return s;
}

/* *failed: the entry that failed. */
static duet_status launch_each(captured_sequence *r, int *failed)
{
    thread *t = thread_get();
    const char *site = t->site;
    struct scratch_reserve *before = t->scratch_reserve;
    duet_status s = DUET_OK;
    t->scratch_reserve = &r->recording.reserve;
    for (int i = r->deferred_from; i < r->deferred_to && s == DUET_OK; i++) {
        t->site = r->recording.entries[i].site;
        s = replay_steps(&r->recording, &r->segment, &r->recording.entries[i], r->segment.queue);
        if (s == DUET_OK) continue;
        name_statement(s, &r->recording.entries[i]);
        *failed = i;
    }
    t->site = site;
    t->scratch_reserve = before;
    return s;
}

/* If it fails with DEVICE_ERROR, any entry may have run. */
static duet_status launch_graph(captured_sequence *r)
{
    const duet_status s =
        device_machine(r->segment.device)->replay(r->segment.device, r->segment.graph, r->segment.queue);
    if (s != DUET_OK) return name_statement(s, &r->recording.entries[0]);
    COUNT(graphs);
    COUNT_N(repeats, r->deferred_to);
    COUNT_N(launches, r->segment.launches);
    return DUET_OK;
}

static duet_status launch_one_by_one(captured_sequence *r)
{
    int failed = r->deferred_from;
    const duet_status s = launch_each(r, &failed);
    if (s != DUET_OK) unwrite(r, failed, s);
    return s;
}

/* If there is no memory to launch the graph, launches the steps one by one. If they succeed, restores the
 * error text. */
static duet_status launch_complete(captured_sequence *r)
{
    error_text before;
    error_keep(&before);
    duet_status s = launch_graph(r);
    if (likely(s == DUET_OK)) return s;
    if (s != DUET_NO_MEMORY) {
        lose_all(r);
        return s;
    }
    s = launch_one_by_one(r);
    if (s == DUET_OK) error_put_back(&before);
    return s;
}

static duet_status launch_sequence(deferred_work *h)
{
    captured_sequence *r = (captured_sequence *)h;
    const bool complete = r->deferred_from == 0 && r->deferred_to == r->recording.count;
    TRACE("launch statements %d to %d of %d that repeat", r->deferred_from + 1, r->deferred_to,
          r->recording.count);
    const duet_status s = complete ? launch_complete(r) : launch_one_by_one(r);
    r->deferred_from = r->deferred_to = 0;
    return s;
}

static bool uses(const deferred_work *h, const storage *b)
{
    const captured_sequence *r = (const captured_sequence *)h;
    for (const recorded *e = r->recording.entries + r->deferred_from,
                        *end = r->recording.entries + r->deferred_to;
         e < end; e++)
        for (int i = 0; i < e->plan->dests + e->plan->n_leaves; i++)
            if (e->storages[i] == b) return true;
    return false;
}

/* ---- deferring ---- */

static bool same_matrices(const recorded *e, const statement *s)
{
    for (int k = 0; k < s->count; k++)
        if (s->to[k].m != e->to[k].m || s->to[k].m->serial != e->serial[k]) return false;
    for (const leaf *l = e->plan->leaves, *end = l + e->plan->n_leaves; l < end; l++) {
        const node *a = &s->f->nodes[l->node], *b = &e->nodes[l->node];
        if (a->matrix != b->matrix || a->matrix_serial != b->matrix_serial) return false;
    }
    return true;
}

static bool same_site(const char *a, const char *b)
{
    if (!a || !b) return a == b;
    return !strcmp(a, b);
}

bool sequence_has(const captured_sequence *r, int i, const plan *p, const statement *s)
{
    const recorded *e = &r->recording.entries[i];
    return p->number == e->plan->number && same_matrices(e, s) && plan_has_numbers(p, s->f, e->num) &&
           same_site(e->site, thread_get()->site);
}

/* Copy what the statement reads to the device, and allocate what it writes. *moved: has any address
 * changed? */
static duet_status open_operands(const recorded *e, const statement *s, int queue, bool *moved)
{
    const plan *p = e->plan;
    void *at;
    *moved = false;
    for (int i = 0; i < p->n_leaves; i++) {
        TRY(matrix_open(s->f->nodes[p->leaves[i].node].matrix, p->device, READ, queue, &at));
        *moved |= at != e->data[p->dests + i];
    }
    for (int k = 0; k < p->dests; k++) {
        if (p->first_write[k] < 0) continue;
        TRY(matrix_open(s->to[k].m, p->device, OVERWRITE, queue, &at));
        *moved |= at != e->data[k];
    }
    return DUET_OK;
}

/* Another thread may have launched the statements before this one. Another sequence may have
 * deferred work on the same queue. */
static void defer_entry(captured_sequence *r, int i)
{
    const int queue = r->segment.queue;
    deferred_lock(queue);
    deferred_work *by = deferred_owner(queue);
    /* if it fails, it has marked its results as lost */
    if (by && by != &r->deferred_work) (void)by->launch(by);
    if (by != &r->deferred_work) {
        r->deferred_from = i;
        deferred_set(queue, &r->deferred_work);
    }
    r->deferred_to = i + 1;
    r->interrupted = r->deferred_from > 0;
    deferred_unlock(queue);
}

duet_status sequence_defer(captured_sequence *r, int i, const statement *s, bool *deferred)
{
    const recorded *e = &r->recording.entries[i];
    bool moved;
    *deferred = false;
    TRY(open_operands(e, s, r->segment.queue, &moved));
    if (moved) return DUET_OK;
    for (int k = 0; k < s->count; k++) e->writes[k].before = matrix_validity(s->to[k].m);
    plan_wrote(e->plan, s, r->segment.queue);
    defer_entry(r, i);
    *deferred = true;
    return DUET_OK;
}

/* ---- recording statements as they run ---- */

captured_sequence *sequence_new(void)
{
    captured_sequence *r = calloc(1, sizeof *r);
    if (r) r->deferred_work = (deferred_work){ launch_sequence, uses };
    return r;
}

void sequence_free(captured_sequence *r)
{
    if (!r) return;
    if (r->segment.graph) device_machine(r->segment.device)->discard(r->segment.device, r->segment.graph);
    record_clear(&r->recording);
    free(r);
}

duet_status sequence_add(captured_sequence *r, const plan *p, const statement *s, bool *added)
{
    error_text before;
    error_keep(&before);
    const bool fits = !r->recording.count || r->recording.entries[0].plan->device == p->device;
    plan *own = fits ? plan_make(s, p->device) : NULL;
    recorded *e = own ? record_add(&r->recording, own, s) : NULL;
    *added = e != NULL;
    if (!e) {
        error_put_back(&before);
        return plan_run(p, s);
    }
    own->number = p->number;
    e->s.failed_dest = s->failed_dest;
    const duet_status st = replay_entry(&r->recording, e);
    e->s.failed_dest = NULL;
    if (st == DUET_OK) r->recording.count++;
    else {
        record_free_entry(e);
        *added = false;
    }
    return st;
}

/* A graph saves some microseconds per launch, but the device is idle while the statements are
 * deferred. A graph also keeps its temporaries. These limits say when that is worthwhile. */
#define WORTH_LAUNCHES 2
#define WORTH_SECONDS  8e-6 /* at most, per step on average */
#define WORTH_BYTES    ((size_t)4 << 20)

static bool pays_off(const captured_sequence *r)
{
    double seconds = 0;
    int steps = 0;
    for (int i = 0; i < r->recording.count; i++) {
        seconds += plan_seconds(r->recording.entries[i].plan);
        steps += r->recording.entries[i].plan->count;
    }
    return steps >= WORTH_LAUNCHES && seconds <= WORTH_SECONDS * steps &&
           scratch_reserve_bytes(&r->recording.reserve) <= WORTH_BYTES;
}

/* All statements have just run on this queue, so their matrices are on the device. */
static void bind_current_addresses(recorded *e)
{
    const plan *p = e->plan;
    for (int k = 0; k < p->dests; k++) e->data[k] = matrix_address(e->to[k].m, p->device);
    for (int i = 0; i < p->n_leaves; i++)
        e->data[p->dests + i] = matrix_address(e->nodes[p->leaves[i].node].matrix, p->device);
}

static bool all_matrices_live(const captured_sequence *r)
{
    for (int i = 0; i < r->recording.count; i++)
        if (replay_check_matrices(&r->recording.entries[i]) != DUET_OK) return false;
    return true;
}

static bool make_graph(captured_sequence *r)
{
    r->segment.end = r->recording.count;
    if (!pays_off(r) || !all_matrices_live(r)) return false;
    for (int i = 0; i < r->recording.count; i++) bind_current_addresses(&r->recording.entries[i]);
    const duet_status s = replay_record(&r->recording, &r->segment, thread_get()->queue);
    if (s != DUET_OK)
        TRACE("no graph for %d statements that repeat: %s", r->recording.count, thread_get()->text);
    return s == DUET_OK && r->segment.launches >= WORTH_LAUNCHES;
}

bool sequence_close(captured_sequence *r)
{
    error_text before;
    error_keep(&before);
    const bool good = make_graph(r);
    error_put_back(&before);
    return good;
}
