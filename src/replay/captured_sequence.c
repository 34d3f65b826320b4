/* captured_sequence.c - records statements as they run; later it defers the same statements and
 * launches all of them as one CUDA graph. */
#include "captured_sequence.h"
#include "compiler.h"
#include "device_use.h"
#include "eviction.h"
#include "matrix.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <stdlib.h>
#include <string.h>

/* ---- launching: by any thread that holds the lock of the queue ---- */

static __attribute__((cold)) void fail_entry(const recorded *e, enum deferred_failure how)
{
    for (int k = 0; k < e->plan->dests; k++)
        if (e->plan->first_write[k] >= 0)
            matrix_deferred_write_failed(&e->writes[k].m, e->plan->device, e->writes[k].before, how);
}

/* Entries from `first` on failed. In this order, the first entry that wrote a storage says what the
 * storage held before. */
static __attribute__((cold)) void fail_entries(const captured_sequence *r, int first,
                                               enum deferred_failure how)
{
    for (int i = first; i < r->deferred_to; i++) fail_entry(&r->recording.entries[i], how);
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

/* A failure stops at one entry: those after it did not run. */
static duet_status launch_one_by_one(captured_sequence *r, bool reported)
{
    int failed = r->deferred_from;
    const duet_status s = launch_each(r, &failed);
    if (likely(s == DUET_OK)) return s;
    if (reported && s == DUET_DEVICE_ERROR) fail_entry(&r->recording.entries[failed++], MAY_HAVE_RUN);
    fail_entries(r, failed, reported ? DID_NOT_RUN : NOT_REPORTED);
    return s;
}

/* If there is no memory to launch the graph, launches the steps one by one. If they succeed,
 * restores the error text. */
static duet_status launch_complete(captured_sequence *r, bool reported)
{
    error_text before;
    error_keep(&before);
    duet_status s = launch_graph(r);
    if (likely(s == DUET_OK)) return s;
    if (s != DUET_NO_MEMORY) {
        fail_entries(r, r->deferred_from, reported ? MAY_HAVE_RUN : NOT_REPORTED);
        return s;
    }
    s = launch_one_by_one(r, reported);
    if (s == DUET_OK) error_put_back(&before);
    return s;
}

/* The user whose statements these are must learn of a failure. Another thread reports it to another
 * one. */
static duet_status launch_sequence(deferred_work *h, bool reported)
{
    captured_sequence *r = (captured_sequence *)h;
    reported = reported && r->owner == thread_get();
    const bool complete = r->deferred_from == 0 && r->deferred_to == r->recording.count;
    thread *t = thread_get();
    buffer_user user; /* nothing is freed while the lock of the queue is held */
    TRACE("launch statements %d to %d of %d that repeat", r->deferred_from + 1, r->deferred_to,
          r->recording.count);
    buffer_user_begin(t, &user, buffer_user_of_all);
    const duet_status s = complete ? launch_complete(r, reported) : launch_one_by_one(r, reported);
    buffer_user_end(t, &user);
    r->deferred_from = r->deferred_to = 0;
    return s;
}

static bool uses(const deferred_work *h, const storage *b)
{
    const captured_sequence *r = (const captured_sequence *)h;
    return record_uses(&r->recording, r->deferred_from, r->deferred_to, b);
}

/* ---- deferring ---- */

static bool same_matrices(const recorded *e, const statement *s)
{
    for (int k = 0; k < s->count; k++)
        if (s->to[k].m != e->to[k].m || s->to[k].m->serial != e->serial[k]) return false;
    for (int i = 0; i < e->plan->n_leaves; i++) {
        const uint32_t of = e->plan->leaves[i].node;
        const node *a = &s->f->nodes[of], *b = &e->nodes[of];
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

/* Another thread may have launched the statements before this one. One that shares the queue may have
 * deferred work there since deferred_launch_others. It does not use what this statement writes. */
static void defer_entry(captured_sequence *r, int i)
{
    const int queue = r->segment.queue;
    deferred_lock(queue);
    deferred_work *by = deferred_owner(queue);
    if (by && by != &r->deferred_work) (void)by->launch(by, false);
    if (by != &r->deferred_work) {
        r->deferred_from = i;
        deferred_set(queue, &r->deferred_work);
    }
    r->deferred_to = i + 1;
    r->interrupted = r->deferred_from > 0;
    deferred_unlock(queue);
}

/* What such a statement overwrites could not be lost again if it fails later. */
static bool writes_lost_elements(const statement *s)
{
    for (int k = 0; k < s->count; k++)
        if (matrix_has_lost(s->to[k].m)) return true;
    return false;
}

/* The matrices of one statement, or of all of a sequence. */
typedef struct sequence_user {
    buffer_user user; /* the first member: functions cast it back */
    const captured_sequence *r;
    const plan *p;
    const statement *s;
} sequence_user;

static bool entry_uses(const buffer_user *u, const storage *b)
{
    const sequence_user *x = (const sequence_user *)u;
    return plan_uses(x->p, x->s, b);
}

static duet_status defer(captured_sequence *r, int i, const statement *s, bool *deferred)
{
    const recorded *e = &r->recording.entries[i];
    bool moved;
    TRY(open_operands(e, s, r->segment.queue, &moved));
    if (moved) return DUET_OK;
    for (int k = 0; k < s->count; k++) e->writes[k].before = storage_valid(s->to[k].m->storage);
    plan_wrote(e->plan, s, r->segment.queue);
    defer_entry(r, i);
    *deferred = true;
    return DUET_OK;
}

/* If work that others deferred fails, it must not undo what this statement writes. So it is launched
 * first. */
duet_status sequence_defer(captured_sequence *r, int i, const statement *s, bool *deferred)
{
    thread *t = thread_get();
    sequence_user user;
    *deferred = false;
    deferred_launch_others(r->segment.queue, &r->deferred_work);
    if (unlikely(writes_lost_elements(s))) return DUET_OK;
    user.p = r->recording.entries[i].plan;
    user.s = s;
    if (unlikely(pool_is_watched())) plan_note_uses(user.p, s);
    buffer_user_begin(t, &user.user, entry_uses);
    const duet_status st = defer(r, i, s, deferred);
    buffer_user_end(t, &user.user);
    return st;
}

/* ---- recording statements as they run ---- */

captured_sequence *sequence_new(void)
{
    captured_sequence *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->deferred_work = (deferred_work){ launch_sequence, uses };
    r->owner = thread_get();
    record_enter(&r->recording);
    return r;
}

void sequence_free(captured_sequence *r)
{
    if (!r) return;
    USE_GPUS;
    if (r->segment.graph) device_machine(r->segment.device)->discard(r->segment.device, r->segment.graph);
    record_clear(&r->recording);
    free(r);
}

/* A graph saves some microseconds per launch, but the device is idle while the statements are
 * deferred. A graph also keeps its temporaries. These limits say when that is worthwhile. */
#define WORTH_LAUNCHES 2
#define WORTH_SECONDS  8e-6               /* at most, per step on average */
#define WORTH_BYTES    ((size_t)64 << 20) /* products take up to 32 MiB of workspace */

bool sequence_takes(const plan *p) { return p->temp_bytes <= WORTH_BYTES; }

duet_status sequence_add(captured_sequence *r, const plan *p, const statement *s, bool *added)
{
    error_text before;
    error_keep(&before);
    const bool fits = !r->recording.count || r->recording.entries[0].plan->device == p->device;
    plan *own = fits ? plan_make_within(s, p->device, p->limit) : NULL;
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

/* All statements have just run on this queue, so their matrices are on the device, unless their buffers were
 * freed for others since: then it returns false. */
static bool bind_current_addresses(recorded *e)
{
    const plan *p = e->plan;
    for (int i = 0; i < p->dests + p->n_leaves; i++)
        if (!storage_has_buffer(e->storages[i], p->device)) return false;
    for (int k = 0; k < p->dests; k++) e->data[k] = matrix_address(e->to[k].m, p->device);
    for (int i = 0; i < p->n_leaves; i++)
        e->data[p->dests + i] = matrix_address(e->nodes[p->leaves[i].node].matrix, p->device);
    return true;
}

static bool all_matrices_live(const captured_sequence *r)
{
    for (int i = 0; i < r->recording.count; i++)
        if (replay_check_matrices(&r->recording.entries[i]) != DUET_OK) return false;
    return true;
}

/* While memory is scarce, matrices change their addresses too often for a graph. */
static bool make_graph(captured_sequence *r)
{
    r->segment.end = r->recording.count;
    if (pool_is_tight() || !pays_off(r) || !all_matrices_live(r)) return false;
    for (int i = 0; i < r->recording.count; i++)
        if (!bind_current_addresses(&r->recording.entries[i])) return false;
    const duet_status s = replay_record(&r->recording, &r->segment, thread_get()->queue);
    if (s != DUET_OK)
        TRACE("no graph for %d statements that repeat: %s", r->recording.count, thread_get()->text);
    return s == DUET_OK && r->segment.launches >= WORTH_LAUNCHES;
}

static bool sequence_uses(const buffer_user *u, const storage *b)
{
    const sequence_user *x = (const sequence_user *)u;
    return record_uses(&x->r->recording, 0, x->r->recording.count, b);
}

bool sequence_close(captured_sequence *r)
{
    thread *t = thread_get();
    sequence_user user = { .r = r };
    error_text before;
    error_keep(&before);
    buffer_user_begin(t, &user.user, sequence_uses);
    const bool good = make_graph(r);
    buffer_user_end(t, &user.user);
    error_put_back(&before);
    return good;
}
