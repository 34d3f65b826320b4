/* thread.h - the state of a thread, behind one pointer. */
#ifndef THREAD_H
#define THREAD_H

#include "compiler.h"
#include <duet/duet.h>
#include <stdbool.h>
#include <stdint.h>

#define QUEUES     64           /* for threads, on each device; threads beyond that share */
#define QUEUE_UP   QUEUES       /* for uploads of streamed statements: run/stream.c */
#define QUEUE_DOWN (QUEUES + 1) /* and for their downloads */
#define QUEUES_ALL (QUEUES + 2)

/* State that higher layers keep in a thread. Each has a destructor, which runs when the thread ends. */
enum thread_slot { SLOT_ARENA, SLOT_PLANS, SLOT_RECORDING, SLOT_REPEATS, SLOT_HISTORY, SLOTS };

/* Does the thread defer work (core/deferred.h)? DEFERS: until it calls duet_stream. DEFERS_ALWAYS:
 * also after that. */
enum deferring { DEFERS_NOT, DEFERS, DEFERS_ALWAYS };

#define MATH_MODES (DUET_MATH_BF16 + 1) /* the number of math modes */

typedef struct thread {
    void *self;               /* thread_pointer() of its thread if threads_found has this state; else NULL */
    char text[1024];          /* of the last error */
    duet_status status;       /* of the last error */
    duet_place place;         /* of the innermost DUET_ON, or of the environment */
    int gpu;                  /* the device that DUET_GPU means: DEFAULT_GPU, or that of thread_use_gpu */
    duet_math_mode math;      /* of the innermost DUET_MATH, or of the environment */
    duet_transfers transfers; /* of the innermost DUET_TRANSFERS, or of the environment */
    bool accesses;            /* it asks for the elements of a matrix on a device: no implicit transfer */
    int queue;                /* its queue on every device: 0 .. QUEUES - 1 */
    int threads;              /* most threads its statements may use on the CPU; 0: all */
    bool foreign_fp;          /* the caller's floating-point environment differs: core/fp_environment.h */
    uint32_t in_library;      /* calls of a library that run: the end of the process waits for them */
    uint32_t uses_of_gpus;    /* core/device_use.h */
    duet_counts counted;      /* written by this thread only; all may read it */
    const char *site;         /* source position of the statement that runs, or NULL */
    bool explains_rank;       /* plans are printed without the formula, which src/group has printed */
    FILE *explaining;         /* if not NULL, statements write their plans here instead of running */
    struct scratch_reserve *scratch_reserve; /* of the recording that runs, or NULL: core/scratch.h */
    struct duet_recording *recording;        /* statements are added to it, unless NULL: replay/record.h */
    struct buffer_user *buffer_user;         /* what it uses on GPUs now, or NULL: core/eviction.h */
    enum deferring deferring;
    bool host_waited; /* since the last statement the host has waited for the queue, or used it directly */
    unsigned deferred_failures; /* how often deferred work that this thread launched has failed */
    bool shared;                /* used by all threads for which there was no memory: it has no slots */
    void *slot[SLOTS];
    void (*leave[SLOTS])(void *);
    uintptr_t stack_from, stack_room; /* addresses with enough of the caller's stack below: core/stack.h */
    void *stack;                      /* one of its own, or NULL */
    bool on_own_stack;
    struct thread *next; /* in the list of all threads, for duet_stats */
} thread;

extern _Thread_local thread *thread_mine __attribute__((tls_model(DUET_TLS)));
/* Never NULL. Threads for which there is no memory share one. */
thread *thread_new(void) __attribute__((cold));

/* With the TLS model local-dynamic, each read of thread_mine is a call, and a small statement would make
 * about 14 of them. So thread_get also finds the state by the thread pointer, which is in a register. An
 * entry of threads_found belongs to one thread until that thread ends. A thread uses thread_mine if
 * another thread has its entry. */
#define THREADS_FOUND 256
#if defined DUET_FINDS_THREADS && defined __x86_64__
static inline void *thread_pointer(void)
{
    void *p;
    __asm__("movq %%fs:0, %0" : "=r"(p));
    return p;
}
#elif defined DUET_FINDS_THREADS && defined __aarch64__
static inline void *thread_pointer(void)
{
    void *p;
    __asm__("mrs %0, tpidr_el0" : "=r"(p));
    return p;
}
#else
static inline void *thread_pointer(void) { return NULL; }
#endif
extern thread *threads_found[THREADS_FOUND];
static inline thread **thread_entry(const void *self)
{
    const uintptr_t at = (uintptr_t)self; /* they differ by multiples of a page, or of the size of a stack */
    return &threads_found[(uint8_t)(at >> 12 ^ at >> 23)];
}

static inline thread *thread_get(void)
{
    void *const self = thread_pointer();
    if (self) {
        thread *t = __atomic_load_n(thread_entry(self), __ATOMIC_ACQUIRE);
        if (likely(t && __atomic_load_n(&t->self, __ATOMIC_RELAXED) == self)) return t;
    }
    thread *t = thread_mine;
    return likely(t != NULL) ? t : thread_new();
}

/* Does another thread run a call of a library? */
bool thread_any_in_library(void);

/* Does another thread use a GPU (core/device_use.h)? */
bool thread_any_uses_gpus(void);

/* Is there another thread with one of these queues? And one that has a buffer_user? */
bool thread_any_on(uint64_t queues);
bool thread_any_uses_buffers(uint64_t queues);

/* Makes all threads of the process execute a memory fence, so that each of them can use a signal fence in
 * its place. Returns false if the system cannot do that. */
bool thread_fence_all(void);

/* Threads with the shared state, which has no buffer_user, are counted instead. */
void thread_count_shared_user(int more);

/* From now on DUET_GPU means this device for this thread. Errors: NO_DEVICE */
duet_status thread_use_gpu(int device);

/* Counts one event, or several, for duet_stats. */
#define COUNT(field)      COUNT_N(field, 1)
#define COUNT_N(field, n) count_up(&thread_get()->counted.field, (uint64_t)(n))
static inline void count_up(uint64_t *c, uint64_t n)
{
    __atomic_store_n(c, __atomic_load_n(c, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

#endif
