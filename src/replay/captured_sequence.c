/* captured_sequence.c - statements that are recorded as they run, then held back and launched as one graph. */
#include "captured_sequence.h"
#include "matrix.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <stdlib.h>
#include <string.h>

/* ---- launching; under the lock of the queue, by any thread ---- */

static void lose_all(const captured_sequence *r)
{
    for (int i = r->from; i < r->to; i++) {
        const recorded *e = &r->of.of[i];
        for (int k = 0; k < e->plan->dests; k++)
            if (e->plan->first_write[k] >= 0) storage_unwritten(e->bits[k]);
    }
}

static __attribute__((cold)) duet_status name_one(duet_status s, const recorded *e)
{
    fail_within(s, "a statement that was held back");
    return e->site ? fail_at(s, e->site) : s;
}

static duet_status launch_each(captured_sequence *r)
{
    thread *t = thread_get();
    const char *site = t->site;
    struct scratch_reserve *before = t->scratch_reserve;
    duet_status s = DUET_OK;
    t->scratch_reserve = &r->of.lent;
    for (int i = r->from; i < r->to && s == DUET_OK; i++) {
        t->site = r->of.of[i].site;
        s = replay_steps(&r->of, &r->all, &r->of.of[i], r->all.queue);
        if (s != DUET_OK) name_one(s, &r->of.of[i]);
    }
    t->site = site;
    t->scratch_reserve = before;
    return s;
}

static duet_status launch_graph(captured_sequence *r)
{
    const duet_status s = machines[DEVICE]->replay(r->all.graph, r->all.queue);
    if (s != DUET_OK) return name_one(s, &r->of.of[0]);
    COUNT(graphs);
    COUNT_N(repeats, r->to);
    COUNT_N(launches, r->all.launches);
    return DUET_OK;
}

/* Where there is no room to launch the graph, there may be room for its steps: then the thread's text stays. */
static __attribute__((cold)) duet_status launch_without_room(captured_sequence *r, const error_text *before)
{
    const duet_status s = launch_each(r);
    if (s == DUET_OK) error_put_back(before);
    return s;
}

static duet_status launch_whole(captured_sequence *r)
{
    error_text before;
    error_keep(&before);
    const duet_status s = launch_graph(r);
    return __builtin_expect(s == DUET_NO_MEMORY, 0) ? launch_without_room(r, &before) : s;
}

static duet_status launch(deferred_work *h)
{
    captured_sequence *r = (captured_sequence *)h;
    const bool whole = r->from == 0 && r->to == r->of.count;
    TRACE("launch statements %d to %d of %d that repeat", r->from + 1, r->to, r->of.count);
    const duet_status s = whole ? launch_whole(r) : launch_each(r);
    if (s != DUET_OK) lose_all(r);
    r->from = r->to = 0;
    return s;
}

static bool uses(const deferred_work *h, const storage *b)
{
    const captured_sequence *r = (const captured_sequence *)h;
    for (const recorded *e = r->of.of + r->from, *end = r->of.of + r->to; e < end; e++)
        for (int i = 0; i < e->plan->dests + e->plan->n_leaves; i++)
            if (e->bits[i] == b) return true;
    return false;
}

/* ---- holding back ---- */

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

static bool same_site(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

bool sequence_has(const captured_sequence *r, int i, const plan *p, const statement *s)
{
    const recorded *e = &r->of.of[i];
    return p->number == e->plan->number && same_matrices(e, s) && plan_has_numbers(p, s->f, e->num) &&
           same_site(e->site, thread_get()->site);
}

/* Brings what the statement reads, and has homes for what it writes. *moved: is any of it elsewhere than it was? */
static duet_status open_all(const recorded *e, const statement *s, int queue, bool *moved)
{
    const plan *p = e->plan;
    void *at;
    *moved = false;
    for (int i = 0; i < p->n_leaves; i++) {
        TRY(matrix_open(s->f->nodes[p->leaves[i].node].matrix, DEVICE, READ, queue, &at));
        *moved |= at != e->data[p->dests + i];
    }
    for (int k = 0; k < p->dests; k++) {
        if (p->first_write[k] < 0) continue;
        TRY(matrix_open(s->to[k].m, DEVICE, OVERWRITE, queue, &at));
        *moved |= at != e->data[k];
    }
    return DUET_OK;
}

/* Another thread may have launched those before it, and one that shares the queue may hold something there. */
static void hold_one(captured_sequence *r, int i)
{
    const int queue = r->all.queue;
    deferred_lock(queue);
    deferred_work *by = deferred_owner(queue);
    if (by && by != &r->deferred_work) (void)by->launch(by); /* what that cannot launch, it has lost */
    if (by != &r->deferred_work) {
        r->from = i;
        deferred_set(queue, &r->deferred_work);
    }
    r->to = i + 1;
    r->broken = r->from > 0;
    deferred_unlock(queue);
}

duet_status sequence_defer(captured_sequence *r, int i, const statement *s, bool *held)
{
    const recorded *e = &r->of.of[i];
    bool moved;
    *held = false;
    TRY(open_all(e, s, r->all.queue, &moved));
    if (moved) return DUET_OK;
    plan_wrote(e->plan, s, r->all.queue);
    hold_one(r, i);
    *held = true;
    return DUET_OK;
}

/* ---- made from statements that run ---- */

captured_sequence *sequence_new(void)
{
    captured_sequence *r = calloc(1, sizeof *r);
    if (r) r->deferred_work = (deferred_work){ launch, uses };
    return r;
}

void sequence_free(captured_sequence *r)
{
    if (!r) return;
    machines[DEVICE]->discard(r->all.graph);
    record_clear(&r->of);
    free(r);
}

duet_status sequence_add(captured_sequence *r, const plan *p, const statement *s, bool *added)
{
    error_text before;
    error_keep(&before);
    plan *own = plan_make(s, p->machine);
    recorded *e = own ? record_note(&r->of, own, s) : NULL;
    *added = e != NULL;
    if (!e) {
        error_put_back(&before);
        return plan_run(p, s);
    }
    own->number = p->number;
    const duet_status st = replay_one(&r->of, e);
    if (st == DUET_OK) r->of.count++;
    else {
        record_free_one(e);
        *added = false;
    }
    return st;
}

/* A graph spares some microseconds a launch, at the price that nothing runs while its statements are made. It keeps their temporaries. */
#define WORTH_LAUNCHES 2
#define WORTH_SECONDS  8e-6 /* a step on average, at most */
#define WORTH_BYTES    ((size_t)4 << 20)

static bool is_worth(const captured_sequence *r)
{
    double seconds = 0;
    int steps = 0;
    for (int i = 0; i < r->of.count; i++) {
        seconds += plan_seconds(r->of.of[i].plan);
        steps += r->of.of[i].plan->count;
    }
    return steps >= WORTH_LAUNCHES && seconds <= WORTH_SECONDS * steps &&
           scratch_reserve_bytes(&r->of.lent) <= WORTH_BYTES;
}

/* All have just run on this queue: their matrices lie there. */
static void bind_as_they_lie(recorded *e)
{
    const plan *p = e->plan;
    for (int k = 0; k < p->dests; k++) e->data[k] = matrix_address(e->to[k].m, DEVICE);
    for (int i = 0; i < p->n_leaves; i++)
        e->data[p->dests + i] = matrix_address(e->nodes[p->leaves[i].node].matrix, DEVICE);
}

static bool all_live(const captured_sequence *r)
{
    for (int i = 0; i < r->of.count; i++)
        if (replay_lives(&r->of.of[i]) != DUET_OK) return false;
    return true;
}

static bool make_graph(captured_sequence *r)
{
    r->all.end = r->of.count;
    if (!is_worth(r) || !all_live(r)) return false;
    for (int i = 0; i < r->of.count; i++) bind_as_they_lie(&r->of.of[i]);
    const duet_status s = replay_record(&r->of, &r->all, thread_get()->queue);
    if (s != DUET_OK) TRACE("no graph for %d statements that repeat: %s", r->of.count, thread_get()->text);
    return s == DUET_OK && r->all.launches >= WORTH_LAUNCHES;
}

bool sequence_close(captured_sequence *r)
{
    error_text before;
    error_keep(&before);
    const bool good = make_graph(r);
    error_put_back(&before);
    return good;
}
