/* thread.c - the state of a thread: made at its first call. After the thread has ended, another one uses
 * it. */
#define _GNU_SOURCE /* syscall */
#include "thread.h"
#include "backend.h"
#include "stack.h"
#include "trace.h"
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

_Thread_local thread *thread_mine __attribute__((tls_model(DUET_TLS)));

thread *threads_found[THREADS_FOUND];
_Static_assert(THREADS_FOUND == 256, "thread_entry uses 8 bits");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all variables below */
/* Used by all threads for which there was no memory; on queue 0. */
static thread fallback = { .shared = true, .gpu = DEFAULT_GPU };
static thread *threads = &fallback;
static thread
    *unused; /* states of threads that have ended; not freed, because another thread may read `self` */
static bool has_been_shared; /* has a thread got `fallback`? */
static int on_queue[QUEUES]; /* how many threads use each queue */
static duet_counts ended;    /* the counts of threads that have ended */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;
static duet_place first_place;
static duet_math_mode first_math;
static enum deferring first_deferring;
static duet_transfers first_transfers;

static void add_counts(duet_counts *sum, const duet_counts *c)
{
    uint64_t *to = (uint64_t *)sum; /* the struct has no other members */
    const uint64_t *from = (const uint64_t *)c;
    for (size_t i = 0; i < sizeof *c / sizeof *from; i++)
        to[i] += __atomic_load_n(from + i, __ATOMIC_RELAXED);
}

/* Adds t to the unused states. */
static void thread_give_back(thread *t)
{
    if (!t) return;
    pthread_mutex_lock(&lock);
    t->next = unused;
    unused = t;
    pthread_mutex_unlock(&lock);
}

static void thread_end(void *mine)
{
    thread *t = mine, **const entry = thread_entry(t->self);
    for (int r = 0; r < SLOTS; r++)
        if (t->slot[r] && t->leave[r]) t->leave[r](t->slot[r]); /* may still count and fail */
    pthread_mutex_lock(&lock);
    thread **p = &threads;
    while (*p != t) p = &(*p)->next;
    *p = t->next;
    add_counts(&ended, &t->counted);
    on_queue[t->queue]--;
    if (*entry == t) __atomic_store_n(entry, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&t->self, NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    thread_mine = NULL;
    stack_end(t);
    thread_give_back(t);
}

/* Returns a cleared state, an unused or a new one; NULL: no memory. */
static thread *thread_take(void)
{
    pthread_mutex_lock(&lock);
    thread *t = unused;
    if (t) unused = t->next;
    pthread_mutex_unlock(&lock);
    if (!t) return calloc(1, sizeof *t);
    memset((char *)t + sizeof t->self, 0, sizeof *t - sizeof t->self);
    return t;
}

/* The position in the list of the variable's value. The first name is the default. */
static int read_choice(const char *variable, const char *const *names, int count, const char *all)
{
    const char *value = getenv(variable);
    if (!value || !*value) return 0;
    for (int i = 0; i < count; i++)
        if (!strcmp(value, names[i])) return i;
    TRACE("%s=%s is not %s; %s is used", variable, value, all, names[0]);
    return 0;
}

static const char *const places[] = { [DUET_AUTO] = "auto", [DUET_CPU] = "cpu", [DUET_GPU] = "gpu" };
static const char *const maths[MATH_MODES] = { [DUET_MATH_STRICT] = "strict",
                                               [DUET_MATH_SPLIT] = "split",
                                               [DUET_MATH_TF32] = "tf32",
                                               [DUET_MATH_BF16] = "bf16" };
static const char *const transfers[] = { [DUET_TRANSFERS_ALLOWED] = "allow",
                                         [DUET_TRANSFERS_REPORTED] = "warn",
                                         [DUET_TRANSFERS_FORBIDDEN] = "error" };

static bool is_off(const char *text) { return text && !strcmp(text, "0"); }

/* A child of fork() has one thread. Its new threads may get the thread pointers of the parent's others. */
static void forget_found(void)
{
    memset(threads_found, 0, sizeof threads_found);
    if (thread_mine && thread_mine->self) *thread_entry(thread_mine->self) = thread_mine;
}

static void begin(void)
{
    (void)pthread_atfork(NULL, NULL, forget_found);
    has_key = pthread_key_create(&key, thread_end) == 0;
    first_place = fallback.place = (duet_place)read_choice("DUET_BACKEND", places, 3, "cpu, gpu or auto");
    first_math = fallback.math =
        (duet_math_mode)read_choice("DUET_MATH", maths, MATH_MODES, "strict, split, tf32 or bf16");
    first_transfers = fallback.transfers =
        (duet_transfers)read_choice("DUET_TRANSFERS", transfers, 3, "allow, warn or error");
    first_deferring = is_off(getenv("DUET_AUTO_REPLAY")) ? DEFERS_NOT : DEFERS;
}

/* The first of the queues with the fewest threads. */
static int free_queue(void)
{
    int best = 0;
    for (int q = 1; q < QUEUES; q++)
        if (on_queue[q] < on_queue[best]) best = q;
    return best;
}

/* Enters t if its entry is free. The lock is held. */
static void enter(thread *t, void *self)
{
    thread **const entry = thread_entry(self);
    if (!self || *entry) return;
    __atomic_store_n(&t->self, self, __ATOMIC_RELAXED);
    __atomic_store_n(entry, t, __ATOMIC_RELEASE);
}

thread *thread_new(void)
{
    pthread_once(&once, begin);
    thread *t = thread_take();
    if (!t || (has_key && pthread_setspecific(key, t) != 0)) {
        thread_give_back(t);
        pthread_mutex_lock(&lock);
        has_been_shared = true;
        pthread_mutex_unlock(&lock);
        return &fallback; /* the next call tries again */
    }
    pthread_mutex_lock(&lock);
    t->place = first_place;
    t->gpu = DEFAULT_GPU;
    t->math = first_math;
    t->transfers = first_transfers;
    t->deferring = first_deferring;
    t->queue = free_queue();
    on_queue[t->queue]++;
    t->next = threads;
    threads = t;
    if (has_key) enter(t, thread_pointer()); /* otherwise thread_end does not run */
    pthread_mutex_unlock(&lock);
    return thread_mine = t;
}

duet_counts duet_stats(void)
{
    pthread_mutex_lock(&lock);
    duet_counts sum = ended;
    for (const thread *t = threads; t; t = t->next) add_counts(&sum, &t->counted);
    pthread_mutex_unlock(&lock);
    return sum;
}

/* The shared state says nothing about its threads. */
static bool is_other_on(const thread *t, uint64_t queues)
{
    return t != thread_mine && !t->shared && (queues >> t->queue & 1);
}

bool thread_any_on(uint64_t queues)
{
    bool any = false;
    pthread_mutex_lock(&lock);
    for (const thread *t = threads; t; t = t->next) any |= is_other_on(t, queues);
    any |= has_been_shared && (queues & 1);
    pthread_mutex_unlock(&lock);
    return any;
}

static bool has_fence;

static void register_fence(void)
{
    has_fence = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool thread_fence_all(void)
{
    static pthread_once_t registered = PTHREAD_ONCE_INIT;
    pthread_once(&registered, register_fence);
    return has_fence && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static int shared_users;

void thread_count_shared_user(int more) { __atomic_add_fetch(&shared_users, more, __ATOMIC_SEQ_CST); }

bool thread_any_uses_buffers(uint64_t queues)
{
    bool any = (queues & 1) && __atomic_load_n(&shared_users, __ATOMIC_ACQUIRE) > 0;
    pthread_mutex_lock(&lock);
    for (const thread *t = threads; t; t = t->next)
        any |= is_other_on(t, queues) && __atomic_load_n(&t->buffer_user, __ATOMIC_ACQUIRE);
    pthread_mutex_unlock(&lock);
    return any;
}

bool thread_any_in_library(void)
{
    bool any = false;
    pthread_mutex_lock(&lock);
    for (const thread *t = threads; t; t = t->next)
        any |= t != thread_mine && __atomic_load_n(&t->in_library, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    return any;
}

bool thread_any_uses_gpus(void)
{
    bool any = false;
    pthread_mutex_lock(&lock);
    for (const thread *t = threads; t; t = t->next)
        any |= t != thread_mine && __atomic_load_n(&t->uses_of_gpus, __ATOMIC_ACQUIRE);
    pthread_mutex_unlock(&lock);
    return any;
}
