/* pool_free.c - frees cached blocks: when memory is short, when too much is cached, and after a GPU was
 * lost. */
#include "min_max.h"
#include "pool_blocks.h"
#include "queue_sync.h"
#include "thread.h"
#include <stdlib.h>
#include <string.h>

/* When a block is allocated, cached blocks of at least LEAST_TRIMMED bytes are freed, those first that have
 * not been used for longest, until at most CACHED_SHARE times the bytes are cached that were in use at the
 * same time. PERIOD: allocations after which an earlier maximum is forgotten. */
#define LEAST_TRIMMED ((size_t)64 << 10)
#define CACHED_SHARE  2
#define PERIOD        64

/* Removes a cached block from the tables and puts it before `list`. It stays accounted as cached. */
static block *detach(pool *o, block *b, block *list)
{
    uncache(o, b);
    *find(o, b->p) = b->next;
    o->blocks--;
    b->next = list;
    return b;
}

/* At least `bytes` bytes in total, the largest first. */
static block *detach_largest(pool *o, size_t bytes)
{
    block *list = NULL, *b;
    size_t got = 0;
    for (int c = CLASSES; c-- > 0;)
        while (got < bytes && (b = o->cache[c].oldest)) {
            got += b->bytes;
            list = detach(o, b, list);
        }
    return list;
}

static block *oldest_block(const pool *o)
{
    block *found = NULL;
    size_t size;
    for (int c = class_of(LEAST_TRIMMED, &size); c < CLASSES; c++) {
        block *b = o->cache[c].oldest;
        if (b && (!found || b->since < found->since)) found = b;
    }
    return found;
}

/* At least `bytes` bytes in total, those first that have not been used for longest. */
static block *detach_oldest(pool *o, size_t bytes)
{
    block *list = NULL, *b;
    size_t got = 0;
    while (got < bytes && (b = oldest_block(o))) {
        if (o->trimmed[b->class] < UINT16_MAX) o->trimmed[b->class]++;
        got += b->bytes;
        list = detach(o, b, list);
    }
    o->missed -= o->missed < got / 8 ? o->missed : got / 8;
    return list;
}

/* If too few bytes are cached here, the machine gives back data that it caches itself. */
static void spare(int device, size_t bytes)
{
    spin_take(&pools[device].lock);
    const size_t cached = pools[device].memory.cached;
    spin_give(&pools[device].lock);
    if (cached < bytes) (void)device_machine(device)->spare(device, bytes - cached);
}

/* Work on a lost device counts as done. */
static void wait_for_blocks(int device, const block *list)
{
    uint64_t queues = 0;
    for (const block *b = list; b; b = b->next) queues |= b->queues;
    for (int q = 0; q < QUEUES && device != HOST; q++)
        if (queues >> q & 1) (void)queue_wait(device, q, "memory is given back");
}

/* Frees detached blocks. Returns their bytes. */
static size_t free_blocks(int device, block *list)
{
    pool *o = &pools[device];
    size_t freed = 0, unpinned = 0;
    wait_for_blocks(device, list);
    for (block *b = list, *next; b; b = next) {
        next = b->next;
        freed += b->bytes;
        if (b->pinned_for) {
            device_machine(b->pinned_for)->unpin(b->pinned_for, b->p);
            unpinned += b->bytes;
        }
        device_machine(device)->free(device, b->p);
        free(b);
    }
    spin_take(&o->lock);
    o->memory.cached -= freed;
    o->memory.pinned -= unpinned;
    spin_give(&o->lock);
    return freed;
}

/* Frees cached blocks of at least `bytes` in total, or all of them. Returns how much was freed. The
 * caller holds `dropping`: if this finds nothing to free, no other thread is freeing anything. */
size_t pool_drop(int device, size_t bytes)
{
    pool *o = &pools[device];
    spare(device, bytes);
    spin_take(&o->lock);
    block *list = detach_largest(o, bytes);
    spin_give(&o->lock);
    return free_blocks(device, list);
}

void pool_drop_alone(int device, size_t bytes)
{
    pthread_mutex_lock(&pools[device].dropping);
    pool_drop(device, bytes);
    pthread_mutex_unlock(&pools[device].dropping);
}

/* So much may always be cached. Allocations on a GPU are slow, and each waits for all its work. */
static size_t cached_freely(int device) { return (size_t)(device == HOST ? 32 : 256) << 20; }

/* Begins a period if the last one is over. Returns how many cached bytes are too many. */
static size_t excess(pool *o, int device, int class, size_t bytes)
{
    if (o->trimmed[class]) {
        o->trimmed[class]--;
        o->missed += bytes;
    }
    if (++o->allocations > PERIOD) {
        o->allocations = 0;
        o->most_before = o->most;
        o->most = o->memory.used;
    }
    const size_t most = larger(o->most, o->most_before),
                 keep = larger(CACHED_SHARE * most + o->missed, cached_freely(device));
    return o->memory.cached > keep ? o->memory.cached - keep : 0;
}

/* Before a new block is allocated; it is already accounted. If another thread frees memory, there is nothing
 * to do. */
void pool_trim(int device, int class, size_t bytes)
{
    pool *o = &pools[device];
    block *list = NULL;
    if (pthread_mutex_trylock(&o->dropping)) return;
    spin_take(&o->lock);
    const size_t over = excess(o, device, class, bytes);
    if (over) list = detach_oldest(o, over);
    spin_give(&o->lock);
    if (list) free_blocks(device, list);
    pthread_mutex_unlock(&o->dropping);
}

/* ---- after the loss of a GPU ---- */

/* Removes all blocks. The pool's lock is held. */
static block *detach_all(pool *o)
{
    block *list = NULL;
    for (size_t i = 0; i < o->buckets; i++)
        for (block **at = &buckets_of(o)[i], *b; (b = *at);) {
            *at = b->next;
            b->next = list;
            list = b;
        }
    memset(o->cache, 0, sizeof o->cache);
    memset(o->used_as, 0, sizeof o->used_as);
    o->blocks = 0;
    o->memory.used = o->memory.cached = o->most = o->most_before = 0;
    return list;
}

void pool_forget_device(int device)
{
    pool *o = &pools[device];
    pthread_mutex_lock(&o->dropping);
    spin_take(&o->lock);
    block *list = detach_all(o);
    spin_give(&o->lock);
    for (block *b = list, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    pthread_mutex_unlock(&o->dropping);
    pool_set_pressure(PRESSURE_NONE);
}
