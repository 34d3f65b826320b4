/* eviction.c - frees buffers of matrices on a GPU when memory is needed for others.
 *
 * The choice. Each buffer has a distance: the number of statements until it is expected to be used again
 * (history.c). It has a cost: the copies that freeing it causes, which are one to the host if its elements
 * are nowhere else, and one back if its next use reads them. The buffer with the largest quotient of
 * distance and cost is freed. This is Belady's rule with costs. Buffers without a cost are freed first.
 *
 * Other threads. Opening a buffer that is at hand takes no lock: storage_at_hand. Before the elements of a
 * buffer are saved and it is freed, EVICTING is set in storage.state, and all processors execute a fence
 * (membarrier). A thread that published its buffer_user later finds the flag and waits for the lock of the
 * storage. A thread that published it earlier is found here, and the buffer stays. */
#include "eviction.h"
#include "deferred.h"
#include "history.h"
#include "memory_report.h"
#include "trace.h"
#include <stdlib.h>

static bool off;

void evict_matrices(bool on) { off = !on; }

bool buffer_user_of_all(const buffer_user *u, const storage *b) { return u && b; }

/* ---- other threads ---- */

/* Without a fence, no buffer is freed that a queue of another thread may use. */
bool buffer_in_use(const storage *b, int device)
{
    const uint64_t users = buffer_users(storage_usage(b, device));
    if (thread_any_on(users) && (!thread_fence_all() || thread_any_uses_buffers(users))) return true;
    for (uint64_t deferred = deferred_queues_now() & users; deferred; deferred &= deferred - 1)
        if (deferred_may_use(__builtin_ctzll(deferred), b)) return true;
    return false;
}

/* ---- the choice ---- */

/* Only one thread evicts at a time. */
static pthread_mutex_t evicting = PTHREAD_MUTEX_INITIALIZER;
static uint64_t round_now; /* storage.tried: the last round in which the storage was tried */

static bool is_own(const storage *b)
{
    for (const buffer_user *u = thread_get()->buffer_user; u; u = u->outer)
        if (u->uses(u, b)) return true;
    return false;
}

#define NO_COST 1e-6 /* less than any cost */

static double score(const storage *b, int device)
{
    const unsigned state = storage_state(b), here = 1u << device;
    if (state & (SOME_LOST | HOST_WRITER) || storage_is_lent(b) || !b->bytes) return 0;
    if (storage_is_wrapped(b, device)) return 0;
    if (b->tried == round_now || is_own(b)) return 0;
    const next_use next = history_next(b);
    double cost = NO_COST;
    if (state & here) cost += (state == here) + next.reads;
    return next.distance / cost;
}

static duet_status evict_one(int device, int queue, bool *freed)
{
    duet_matrix m;
    *freed = false;
    while (!*freed && matrix_find_best(score, device, &m)) {
        m.storage->tried = round_now;
        const duet_status st = matrix_evict(&m, device, queue, freed);
        storage_release(m.storage);
        if (st != DUET_OK && st != DUET_NO_MEMORY) return st;
    }
    return DUET_OK;
}

/* Frees at least one buffer if there is one, and then until `bytes` can be allocated. */
static duet_status evict(int device, size_t bytes, int queue, bool *freed)
{
    bool more = true;
    *freed = false;
    round_now++;
    history_predict();
    while (more && (!*freed || pool_room(device) < bytes)) {
        TRY(evict_one(device, queue, &more));
        *freed |= more;
    }
    return DUET_OK;
}

static duet_status take_by_evicting(enum memory_kind kind, int device, size_t bytes, int queue, void **p)
{
    duet_status st = DUET_NO_MEMORY;
    bool freed = true;
    if (pool_room(device) < bytes) pool_note_pressure(); /* otherwise an allocation failed by chance */
    while (st == DUET_NO_MEMORY && freed) {
        TRY(evict(device, bytes, queue, &freed));
        if (freed) st = pool_take_as(kind, device, bytes, queue, p);
    }
    return st;
}

/* ---- allocation ---- */

size_t memory_evictable(int device)
{
    const thread *t = thread_get();
    if (off || t->shared || t->transfers == DUET_TRANSFERS_FORBIDDEN) return 0;
    return pool_used_as(MEMORY_MATRIX, device);
}

/* Without any chance, nothing is freed. */
static bool may_evict(int device, size_t bytes)
{
    const buffer_user *u = thread_get()->buffer_user;
    const size_t evictable = u && u->uses != buffer_user_of_all ? memory_evictable(device) : 0;
    if (!evictable) return false;
    return evictable >= bytes || pool_room(device) >= bytes - evictable;
}

/* Allocation has failed. *before: the error text before it. A GPU that was lost has no memory to free, and
 * its elements cannot be copied.
 * Deferred statements of this thread count as queued, so they are launched before a buffer that they use is
 * freed. While a step runs this is impossible, because the thread may hold locks of its queue; but then it
 * has nothing deferred. */
static __attribute__((cold, noinline)) duet_status
take_or_evict(enum memory_kind kind, int device, size_t bytes, int queue, void **p, const error_text *before)
{
    error_text first;
    const char *why = device_absent(device);
    if (unlikely(why != NULL)) return fail(DUET_NO_DEVICE, "there is no usable GPU: %s", why);
    if (!may_evict(device, bytes)) return name_owners(DUET_NO_MEMORY, device);
    error_keep(&first);
    if (kind == MEMORY_MATRIX) TRY(deferred_flush());
    pthread_mutex_lock(&evicting);
    duet_status st = take_by_evicting(kind, device, bytes, queue, p);
    pthread_mutex_unlock(&evicting);
    if (st == DUET_OK) error_put_back(before);
    if (st != DUET_NO_MEMORY) return st;
    error_put_back(&first);
    return name_owners(st, device);
}

duet_status memory_take(enum memory_kind kind, int device, size_t bytes, int queue, void **p)
{
    error_text before;
    if (device == HOST) return pool_take_as(kind, HOST, bytes, queue, p);
    error_keep(&before);
    const duet_status st = pool_take_as(kind, device, bytes, queue, p);
    if (likely(st != DUET_NO_MEMORY)) return st;
    return take_or_evict(kind, device, bytes, queue, p, &before);
}

duet_status memory_take_workspace(int device, size_t bytes, int queue, void **p)
{
    return memory_take(MEMORY_WORKSPACE, device, bytes, queue, p);
}
