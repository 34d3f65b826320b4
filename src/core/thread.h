/* thread.h - what a thread has of its own, behind one pointer. */
#ifndef THREAD_H
#define THREAD_H

#include <duet/duet.h>
#include <stdbool.h>

#define QUEUES     64     /* of threads, on a machine; threads beyond that share */
#define QUEUE_UP   QUEUES /* and two more, for copies of what is streamed: plan/stream.c */
#define QUEUE_DOWN (QUEUES + 1)
#define QUEUES_ALL (QUEUES + 2)

/* What upper floors keep in a thread; each has its own destructor, run when the thread ends. */
enum room { ROOM_ARENA, ROOM_PLANS, ROOM_RECORDING, ROOM_REPEATS, ROOMS };

enum holding { HOLDS_NOT, HOLDS, HOLDS_AS_TOLD }; /* until it asks for its stream; also then */

typedef struct thread {
    char text[1024];     /* of the last error */
    duet_place place;    /* the innermost DUET_ON, or that of the environment */
    duet_math_mode math; /* of the innermost DUET_MATH, or of the environment */
    int queue;           /* its queue on every machine: 0 .. QUEUES - 1 */
    duet_counts counted; /* read by other threads, written by this one alone */
    const char *site;    /* the statement under way, for the trace; or NULL */
    FILE *explaining;    /* where statements write their plans in place of running, or NULL */
    struct scratch_reserve
        *scratch_reserve;             /* of the recording that runs now, or NULL: core/scratch_acquire.h */
    struct duet_recording *recording; /* what is being recorded, or NULL: plan/record.h */
    enum holding holding;             /* does it hold work back: core/held.h */
    bool cut; /* since the last statement the host has waited, or worked on the queue otherwise */
    bool
        deferred_failed; /* held work, of whomever, that this thread launched: true until a statement begins */
    int failed_dest; /* which destination of the plan that failed last it was about; -1 where nobody knows */
    bool shared;     /* by all threads that found no memory: it has no rooms */
    void *room[ROOMS];
    void (*leave[ROOMS])(void *);
    struct thread *next; /* all threads, for duet_stats */
} thread;

extern _Thread_local thread *thread_mine __attribute__((tls_model(DUET_TLS)));
thread *thread_new(void)
    __attribute__((cold)); /* never NULL: without memory, one that all such threads share */

static inline thread *thread_get(void)
{
    thread *t = thread_mine;
    return __builtin_expect(t != NULL, 1) ? t : thread_new();
}

/* Counts one event, or several, for duet_stats. */
#define COUNT(field)      COUNT_N(field, 1)
#define COUNT_N(field, n) count_up(&thread_get()->counted.field, (uint64_t)(n))
static inline void count_up(uint64_t *c, uint64_t n)
{
    __atomic_store_n(c, __atomic_load_n(c, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

#endif
