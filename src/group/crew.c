/* crew.c - the threads of the ranks of one process. */
#include "backend.h"
#include "deferred.h"
#include "ranks.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

typedef struct member {
    crew *of;
    int index;
    pthread_t thread;
    duet_status status;
    error_text error;
} member;

struct crew {
    int count;
    duet_place place;
    int threads; /* of OpenMP, for each */
    pthread_mutex_t lock;
    pthread_cond_t start, done;
    uint64_t tasks; /* started so far */
    int running;
    bool ends;
    rank_work *work;
    void *context;
    duet_math_mode math; /* modes of the calling thread */
    duet_transfers transfers;
    FILE *explaining;
    member *member;
};

static void take_modes(const crew *c, int index)
{
    thread *t = thread_get();
    t->place = c->place;
    t->math = c->math;
    t->transfers = c->transfers;
    t->explaining = index ? NULL : c->explaining;
}

static duet_status start_member(const member *m)
{
    if (m->of->place == DUET_GPU) return thread_use_gpu(DEFAULT_GPU + m->index);
    omp_set_num_threads(m->of->threads);
    return DUET_OK;
}

static duet_status run_task(member *m)
{
    take_modes(m->of, m->index);
    duet_status s = m->of->work(m->of->context, m->index);
    if (s == DUET_OK) s = deferred_flush();
    return s;
}

#define SPINS 4000 /* before a thread sleeps: about 50 us */

static void spin_while(const uint64_t *word, uint64_t value)
{
    for (int i = 0; i < SPINS && __atomic_load_n(word, __ATOMIC_RELAXED) == value; i++) {
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
    }
}

static void *member_main(void *context)
{
    member *m = context;
    crew *c = m->of;
    duet_status started = start_member(m);
    pthread_mutex_lock(&c->lock);
    for (uint64_t seen = 0;;) {
        pthread_mutex_unlock(&c->lock);
        spin_while(&c->tasks, seen);
        pthread_mutex_lock(&c->lock);
        while (c->tasks == seen && !c->ends) pthread_cond_wait(&c->start, &c->lock);
        if (c->tasks == seen) break;
        seen = c->tasks;
        pthread_mutex_unlock(&c->lock);
        m->status = started == DUET_OK ? run_task(m) : started;
        if (m->status != DUET_OK) error_keep(&m->error);
        pthread_mutex_lock(&c->lock);
        if (--c->running == 0) pthread_cond_signal(&c->done);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void end_threads(crew *c, int count)
{
    pthread_mutex_lock(&c->lock);
    c->ends = true;
    pthread_cond_broadcast(&c->start);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < count; i++) pthread_join(c->member[i].thread, NULL);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->start);
    pthread_cond_destroy(&c->done);
    free(c->member);
    free(c);
}

void crew_free(crew *c)
{
    if (c) end_threads(c, c->count);
}

crew *crew_new(int count, duet_place place)
{
    crew *c = calloc(1, sizeof *c);
    member *members = calloc((size_t)count, sizeof *members);
    if (!c || !members) {
        free(c);
        free(members);
        fail(DUET_NO_MEMORY, "no memory for %d threads", count);
        return NULL;
    }
    const int all = omp_get_max_threads();
    *c =
        (crew){ .count = count, .place = place, .threads = all > count ? all / count : 1, .member = members };
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->start, NULL);
    pthread_cond_init(&c->done, NULL);
    for (int i = 0; i < count; i++) {
        members[i] = (member){ .of = c, .index = i };
        if (!pthread_create(&members[i].thread, NULL, member_main, &members[i])) continue;
        end_threads(c, i);
        fail(DUET_NO_MEMORY, "the system could not create thread %d of %d", i + 1, count);
        return NULL;
    }
    return c;
}

static const member *first_failed(const crew *c)
{
    const member *of_others = NULL;
    for (int i = 0; i < c->count; i++) {
        const member *m = &c->member[i];
        if (m->status == DUET_OK) continue;
        if (m->status != DUET_RANK_FAILED) return m;
        if (!of_others) of_others = m;
    }
    return of_others;
}

duet_status crew_run(crew *c, rank_work *work, void *context, int *failed)
{
    const thread *t = thread_get();
    pthread_mutex_lock(&c->lock);
    c->work = work;
    c->context = context;
    c->math = t->math;
    c->transfers = t->transfers;
    c->explaining = t->explaining;
    c->running = c->count;
    __atomic_store_n(&c->tasks, c->tasks + 1, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&c->start);
    while (c->running) pthread_cond_wait(&c->done, &c->lock);
    pthread_mutex_unlock(&c->lock);
    const member *m = first_failed(c);
    *failed = m ? m->index : -1;
    if (!m) return DUET_OK;
    error_put_back(&m->error);
    return m->status;
}

static duet_status run_here(const duet_group *g, rank_work *work, void *context, int *failed)
{
    duet_scope block = duet_scope_open(g->place);
    const duet_status s = work(context, 0);
    duet_scope_close(&block);
    *failed = s == DUET_OK ? -1 : 0;
    return s;
}

duet_status group_run(duet_group *g, rank_work *work, void *context, int *failed)
{
    pthread_mutex_lock(&g->lock);
    const duet_status s =
        g->crew ? crew_run(g->crew, work, context, failed) : run_here(g, work, context, failed);
    pthread_mutex_unlock(&g->lock);
    return s;
}
