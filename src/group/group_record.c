/* group_record.c - recordings of statements of a group. */
#include "group_record.h"
#include "deferred.h"
#include "status.h"
#include <stdlib.h>

/* A matrix of the group that the statements use. */
typedef struct used_matrix {
    const duet_matrix *m;
    uint64_t serial;
    storage *storage;
} used_matrix;

struct group_call {
    recorded_call base; /* the first member: its functions cast it back */
    duet_group *g;
    duet_recording **of; /* of each rank in this process. Until it is complete: paused, or NULL */
    used_matrix *used;
    int uses, uses_capacity;
    duet_matrix **kept;
    int keeps, keeps_capacity;
};

static bool grow(void **list, int count, int *capacity, size_t size)
{
    if (count < *capacity) return true;
    const int more = *capacity ? 2 * *capacity : 8;
    void *longer = realloc(*list, (size_t)more * size);
    if (!longer) return false;
    *list = longer;
    *capacity = more;
    return true;
}

static duet_status no_memory(void) { return fail(DUET_NO_MEMORY, "no host memory for a recording"); }

/* ---- the end ---- */

static duet_status end_rank(void *context, int index)
{
    group_call *c = context;
    thread *t = thread_get();
    duet_recording *before = t->recording;
    if (!c->of[index]) return DUET_OK;
    t->recording = c->of[index];
    c->of[index] = duet_record_end();
    t->recording = before;
    t->slot[SLOT_RECORDING] = before;
    return c->of[index] ? DUET_OK : t->status;
}

static duet_status end_call(recorded_call *base)
{
    int failed;
    group_call *c = (group_call *)base;
    return group_run(c->g, end_rank, c, &failed);
}

static duet_status free_rank(void *context, int index)
{
    group_call *c = context;
    duet_recording_free(&c->of[index]);
    return DUET_OK;
}

static void free_call(recorded_call *base)
{
    int failed;
    group_call *c = (group_call *)base;
    (void)group_run(c->g, free_rank, c, &failed);
    for (int i = 0; i < c->keeps; i++) duet_free(&c->kept[i]);
    group_release(c->g);
    free(c->kept);
    free(c->used);
    free(c->of);
    free(c);
}

/* ---- replay ---- */

static duet_status check_call(recorded_call *base)
{
    const group_call *c = (const group_call *)base;
    for (int i = 0; i < c->uses; i++)
        if (!matrix_alive(c->used[i].m, c->used[i].serial))
            return fail(DUET_FREED, "duet_replay: a matrix on a group was freed or resized");
    return group_check("duet_replay", c->g);
}

static duet_status replay_rank(void *context, int index)
{
    group_call *c = context;
    communicator *own = &c->g->comm[index];
    own->told = false;
    duet_status s = communicator_agree(own, DUET_OK, (uint64_t)c->uses);
    if (s != DUET_OK) return s;
    own->quiet = true;
    s = duet_replay(c->of[index]);
    own->quiet = false;
    return own->told ? s : communicator_agree(own, s, (uint64_t)c->uses);
}

static duet_status replay_call(recorded_call *base)
{
    int failed;
    group_call *c = (group_call *)base;
    for (int i = 0; i < c->uses; i++) TRY(split_ready(c->used[i].storage));
    const duet_status s = group_run(c->g, replay_rank, c, &failed);
    if (s != DUET_OK && failed >= 0 && s != DUET_RANK_FAILED)
        return fail_within(s, "rank %d", c->g->first + failed);
    return s;
}

/* ---- recording ---- */

static group_call *new_call(duet_recording *r, duet_group *g)
{
    group_call *c = calloc(1, sizeof *c);
    duet_recording **of = calloc((size_t)g->near, sizeof(duet_recording *));
    if (!c || !of) {
        free(c);
        free(of);
        return NULL;
    }
    c->base = (recorded_call){ r->count, end_call, check_call, replay_call, free_call, NULL };
    c->g = g;
    c->of = of;
    __atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED);
    return c;
}

duet_recording *recording_of_thread(duet_recording *r)
{
    thread *t = thread_get();
    duet_recording *before = t->recording;
    t->recording = r;
    t->slot[SLOT_RECORDING] = r;
    return before;
}

duet_status group_call_of(duet_group *g, group_call **call)
{
    duet_recording *r = thread_get()->recording;
    *call = NULL;
    if (!r) return DUET_OK;
    recorded_call **last = &r->calls;
    while (*last && (*last)->next) last = &(*last)->next;
    group_call *c = (group_call *)*last;
    if (c && c->g == g && c->base.at == r->count) {
        *call = c;
        return DUET_OK;
    }
    *call = new_call(r, g);
    if (!*call) return no_memory();
    *(*last ? &(*last)->next : last) = &(*call)->base;
    return DUET_OK;
}

duet_status group_call_resume(group_call *call, int index)
{
    thread *t = thread_get();
    if (!call) return DUET_OK;
    t->recording = call->of[index];
    if (!t->recording) TRY(duet_record_begin());
    call->of[index] = t->recording;
    return DUET_OK;
}

void group_call_pause(group_call *call, int index)
{
    thread *t = thread_get();
    if (!call) return;
    t->recording = NULL;
    t->slot[SLOT_RECORDING] = NULL;
}

duet_status group_call_uses(group_call *call, const duet_matrix *m)
{
    if (!call || !m->storage->split) return DUET_OK;
    if (!grow((void **)&call->used, call->uses, &call->uses_capacity, sizeof *call->used)) return no_memory();
    call->used[call->uses++] = (used_matrix){ m, m->serial, m->storage };
    return DUET_OK;
}

duet_status group_call_keeps(group_call *call, duet_matrix *m)
{
    if (!grow((void **)&call->kept, call->keeps, &call->keeps_capacity, sizeof *call->kept))
        return no_memory();
    call->kept[call->keeps++] = m;
    return DUET_OK;
}
