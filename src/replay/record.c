/* record.c - records statements: each with a plan of its own, and with copies of the nodes,
 * matrices and numbers that it was made from. */
#include "record.h"
#include "deferred.h"
#include "device_use.h"
#include "matrix.h"
#include "partition.h"
#include "status.h"
#include "thread.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list of all recordings ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static duet_recording *newest;

void record_enter(duet_recording *r)
{
    pthread_mutex_lock(&lock);
    r->older = newest;
    if (newest) newest->newer = r;
    newest = r;
    pthread_mutex_unlock(&lock);
}

static void leave_list(duet_recording *r)
{
    pthread_mutex_lock(&lock);
    if (r->older) r->older->newer = r->newer;
    if (r->newer) r->newer->older = r->older;
    else newest = r->older;
    pthread_mutex_unlock(&lock);
}

/* The machine has ended the graphs itself, and discards only what is left of one. An entry without
 * addresses counts as moved, so that its graph is recorded again. */
static void drop_devices(duet_recording *r, unsigned which)
{
    for (int i = 0; i < r->count; i++) {
        const recorded *e = &r->entries[i];
        if (which >> e->plan->device & 1) memset(e->data, 0, (size_t)plan_slots(e->plan) * sizeof *e->data);
    }
    for (int i = 0; i < r->n_segments; i++) {
        segment *g = &r->segments[i];
        if (!g->graph || !(which >> g->device & 1)) continue;
        device_machine(g->device)->discard(g->device, g->graph);
        g->graph = NULL;
    }
    scratch_reserve_forget(&r->reserve, which);
}

bool segment_is_outdated(const segment *g)
{
    if (!g->graph) return false;
    const machine *m = device_machine(g->device);
    return m->outdated && m->outdated(g->device, g->graph);
}

void recordings_drop_devices(unsigned which)
{
    pthread_mutex_lock(&lock);
    for (duet_recording *r = newest; r; r = r->older) drop_devices(r, which);
    pthread_mutex_unlock(&lock);
}

/* ---- one statement ---- */

bool record_uses(const duet_recording *r, int first, int end, const storage *b)
{
    for (int k = first; k < end; k++) {
        const recorded *e = &r->entries[k];
        for (int i = 0; i < e->plan->dests + e->plan->n_leaves; i++)
            if (e->storages[i] == b) return true;
    }
    return false;
}

void record_free_entry(recorded *e)
{
    plan_free(e->plan);
    free(e->site);
    free(e->nodes);
    free(e->to);
    free(e->serial);
    free(e->storages);
    free(e->writes);
    free(e->data);
    free(e->num);
    free(e->written_before);
}

static bool allocate(recorded *e, const statement *s, const char *site)
{
    const plan *p = e->plan;
    const size_t length = site ? strlen(site) + 1 : 0;
    if (site && !(e->site = malloc(length))) return false;
    if (site) memcpy(e->site, site, length);
    const size_t operands = (size_t)(p->dests + p->n_leaves);
    e->nodes = malloc((s->f->count + 1) * sizeof *e->nodes);
    e->to = malloc((size_t)s->count * sizeof *e->to);
    e->serial = malloc((size_t)s->count * sizeof *e->serial);
    e->writes = malloc((size_t)s->count * sizeof *e->writes);
    e->data = calloc((size_t)plan_slots(p) + 1, sizeof *e->data);
    e->num = calloc((size_t)p->n_numbers + 1, sizeof *e->num);
    e->written_before = calloc(operands + 1, sizeof *e->written_before);
    e->storages = calloc(operands + 1, sizeof *e->storages);
    return e->nodes && e->to && e->serial && e->storages && e->writes && e->data && e->num &&
           e->written_before;
}

static void remember_storages(recorded *e)
{
    const plan *p = e->plan;
    for (int k = 0; k < p->dests; k++) e->storages[k] = e->to[k].m->storage;
    for (int i = 0; i < p->n_leaves; i++)
        e->storages[p->dests + i] = e->nodes[p->leaves[i].node].matrix->storage;
}

/* The entry owns the plan, even if this fails. */
static duet_status fill_entry(recorded *e, plan *own, const statement *s, int number)
{
    const char *site = thread_get()->site;
    *e = (recorded){ .plan = own, .number = number };
    if (!allocate(e, s, site)) return fail(DUET_NO_MEMORY, "out of memory to record a statement");
    if (s->f->count) memcpy(e->nodes, s->f->nodes, s->f->count * sizeof *e->nodes);
    e->f = (formula){ .nodes = e->nodes, .count = s->f->count };
    for (int k = 0; k < s->count; k++) {
        e->to[k] = s->to[k];
        e->serial[k] = s->to[k].m->serial;
        e->writes[k] = (deferred_write){ .m = *s->to[k].m,
                                         .properties = (uint8_t)storage_properties(s->to[k].m->storage) };
    }
    e->s = (statement){ e->to, s->count, &e->f, s->fusion, s->math };
    plan_numbers(own, &e->f, e->num);
    remember_storages(e);
    return DUET_OK;
}

/* An entry's statement points into the entry, so it follows when the array moves. */
static duet_status grow(duet_recording *r)
{
    const int capacity = r->capacity ? 2 * r->capacity : 16;
    recorded *entries = realloc(r->entries, (size_t)capacity * sizeof *entries);
    if (!entries) return fail(DUET_NO_MEMORY, "out of memory to record %d statements", r->count + 1);
    for (int i = 0; i < r->count; i++) entries[i].s.f = &entries[i].f;
    r->entries = entries;
    r->capacity = capacity;
    return DUET_OK;
}

static recorded *new_entry(duet_recording *r)
{
    if (r->count == r->capacity && grow(r) != DUET_OK) return NULL;
    return &r->entries[r->count];
}

recorded *record_add(duet_recording *r, plan *own, const statement *s)
{
    recorded *e = new_entry(r);
    if (!e) {
        plan_free(own);
        return NULL;
    }
    if (fill_entry(e, own, s, r->statements) == DUET_OK) return e;
    record_free_entry(e);
    return NULL;
}

/* A thread that recovers GPUs reads the entries up to r->count, also those of the CPU. While the
 * statement itself runs on the CPU, that thread need not wait. */
static recorded *add_entry(duet_recording *r, plan *own, const statement *s)
{
    USE_GPUS;
    return record_add(r, own, s);
}

static void count_entry(duet_recording *r)
{
    USE_GPUS;
    r->count++;
}

/* Run the statement and add it to the recording, with its plan. */
static duet_status run_and_add(duet_recording *r, plan *own, const statement *s)
{
    recorded *e = add_entry(r, own, s);
    if (!e) return DUET_NO_MEMORY;
    e->s.failed_dest = s->failed_dest;
    const duet_status st = replay_entry(r, e);
    e->s.failed_dest = NULL;
    if (st == DUET_OK) count_entry(r);
    else record_free_entry(e);
    return st;
}

duet_status record_run(const plan *p, const statement *s)
{
    duet_recording *r = thread_get()->recording;
    const streaming *w = p->stream;
    plan *own =
        w ? stream_plan(s, p->device, w->length, w->rows, w->part) : plan_make_within(s, p->device, p->limit);
    if (own) return run_and_add(r, own, s);
    return DUET_NO_MEMORY;
}

/* ---- copying a plan of one step, which its caller made in place ---- */

static void *copy_of(const void *p, size_t bytes)
{
    void *copy = malloc(bytes + 1);
    if (copy) return memcpy(copy, p, bytes);
    return NULL;
}

static plan *copy_of_single(const plan *of)
{
    plan *p = copy_of(of, sizeof *p);
    if (!p) return NULL;
    p->steps = copy_of(of->steps, sizeof *p->steps);
    p->programs = calloc(1, sizeof *p->programs);
    p->numbers = copy_of(of->numbers, (size_t)of->n_numbers * sizeof *p->numbers);
    p->leaves = copy_of(of->leaves, (size_t)of->n_leaves * sizeof *p->leaves);
    if (p->steps && p->programs && p->numbers && p->leaves) return p;
    p->count = p->steps && p->programs;
    plan_free(p);
    return NULL;
}

duet_status record_single(const plan *p, const statement *s)
{
    plan *own = copy_of_single(p);
    if (own) return run_and_add(thread_get()->recording, own, s);
    return fail(DUET_NO_MEMORY, "out of memory to record a statement");
}

/* ---- the public functions ---- */

void record_next(duet_status s)
{
    duet_recording *r = thread_get()->recording;
    r->statements++;
    if (r->failed == DUET_OK) r->failed = s;
}

/* Without a recording, m is freed. This allocates nothing, because the statement has already
 * run. */
duet_status record_own_or_free(duet_matrix *m, duet_status s)
{
    duet_recording *r = thread_get()->recording;
    if (!r || !m || s != DUET_OK) {
        duet_free(&m);
        return s;
    }
    m->next = r->matrices;
    r->matrices = m;
    return s;
}

static void free_matrices(duet_recording *r)
{
    for (duet_matrix *m = r->matrices; m; m = r->matrices) {
        r->matrices = m->next;
        duet_free(&m);
    }
}

void record_clear(duet_recording *r)
{
    USE_GPUS;
    leave_list(r);
    for (int i = 0; i < r->n_segments; i++) {
        const segment *g = &r->segments[i];
        if (g->graph) device_machine(g->device)->discard(g->device, g->graph);
    }
    for (int i = 0; i < r->count; i++) record_free_entry(&r->entries[i]);
    free_matrices(r);
    for (recorded_call *c = r->calls; c; c = r->calls) {
        r->calls = c->next;
        c->free(c);
    }
    scratch_reserve_free(&r->reserve, r->queues);
    free(r->entries);
    free(r->segments);
}

void duet_recording_free(duet_recording **r)
{
    if (!r || !*r) return;
    record_clear(*r);
    free(*r);
    *r = NULL;
}

static void thread_exit(void *recording)
{
    duet_recording *r = recording;
    duet_recording_free(&r);
}

duet_status(duet_record_begin)(void)
{
    thread *t = thread_get();
    if (t->recording) return fail(DUET_BAD_ARGUMENT, "duet_record_begin: this thread is already recording");
    TRY(deferred_flush());
    if (!t->shared) t->recording = calloc(1, sizeof *t->recording);
    if (!t->recording) return fail(DUET_NO_MEMORY, "duet_record_begin: no host memory for a recording");
    record_enter(t->recording);
    t->slot[SLOT_RECORDING] = t->recording;
    t->leave[SLOT_RECORDING] = thread_exit;
    return DUET_OK;
}

static duet_status end_calls(const duet_recording *r)
{
    for (recorded_call *c = r->calls; c; c = c->next) TRY(c->end(c));
    return DUET_OK;
}

duet_recording *(duet_record_end)(void)
{
    thread *t = thread_get();
    duet_recording *r = t->recording;
    if (!r) {
        fail(DUET_BAD_ARGUMENT, "duet_record_end: this thread is not recording");
        return NULL;
    }
    t->recording = t->slot[SLOT_RECORDING] = NULL;
    USE_GPUS;
    duet_status s = r->failed;
    if (s != DUET_OK) fail(s, "duet_record_end: a statement failed while it was recorded");
    else s = end_calls(r);
    if (s == DUET_OK) s = replay_prepare(r);
    if (s != DUET_OK) duet_recording_free(&r);
    return r;
}
