/* eviction.h - frees buffers of matrices on a GPU when memory is needed for others: memory_take (pool.h). If
 * the elements are valid nowhere else, they are copied to the host first.
 *
 * A buffer may be freed while no thread uses its address. A thread that uses addresses of buffers on a GPU
 * says so by a buffer_user, from before it opens the first buffer until its work is queued. Another thread
 * frees no buffer that a queue of such a thread may use. The thread itself frees none that its own
 * buffer_users name. A thread without a buffer_user frees nothing. While a write on the host has not ended,
 * no buffer of its matrix is freed: HOST_WRITER (matrix.h). */
#ifndef EVICTION_H
#define EVICTION_H

#include "matrix.h"
#include "pool.h"
#include "thread.h"

typedef struct buffer_user {
    bool (*uses)(const struct buffer_user *u, const storage *b);
    struct buffer_user *outer; /* of the same thread */
} buffer_user;

static inline void buffer_user_begin(thread *t, buffer_user *u,
                                     bool (*uses)(const buffer_user *u, const storage *b))
{
    if (unlikely(t->shared)) return thread_count_shared_user(1);
    u->uses = uses;
    u->outer = t->buffer_user;
    __atomic_store_n(&t->buffer_user, u, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* eviction.c makes it a fence of the processor */
}

static inline void buffer_user_end(thread *t, const buffer_user *u)
{
    if (unlikely(t->shared)) return thread_count_shared_user(-1);
    __atomic_store_n(&t->buffer_user, u->outer, __ATOMIC_RELEASE);
}

bool buffer_user_of_all(const buffer_user *u, const storage *b); /* a function `uses`: every buffer */

/* How many bytes memory_take could make available, besides those of pool_room. */
size_t memory_evictable(int device);

/* May another thread use the address of the buffer on this device? Called under the lock of the storage,
 * when no thread can begin to use it without that lock. */
bool buffer_in_use(const storage *b, int device);

/* For tests: false turns eviction off. */
void evict_matrices(bool on);

#endif
