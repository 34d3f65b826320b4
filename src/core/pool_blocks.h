/* pool_blocks.h - the blocks of a pool, and the table that finds them by address: shared by pool.c,
 * pool_free.c and pool_pinned.c. Private to src/core. */
#ifndef POOL_BLOCKS_H
#define POOL_BLOCKS_H

#include "compiler.h"
#include "pool.h"
#include "spin_lock.h"
#include <pthread.h>

#define CLASSES 440
#define BUCKETS 1024 /* at first */

typedef struct block {
    struct block *next;          /* in its bucket */
    struct block *older, *newer; /* in its class, while it is cached */
    void *p;
    size_t bytes;
    uint64_t since;  /* the pool's clock when it was cached */
    uint64_t queues; /* bit q: queue q of the device may still have work on it */
    int class;
    int pinned_for; /* the device whose machine pinned it; HOST: it is not pinned */
    uint8_t kind;   /* memory_kind, while it is in use */
    bool cached;
} block;

typedef struct block_list {
    block *newest, *oldest;
} block_list;

typedef struct pool {
    spin_lock lock;
    pthread_mutex_t dropping; /* only one thread at a time frees cached blocks of a device */
    block **more_buckets;     /* in place of `bucket` once there are many blocks */
    size_t buckets, blocks;   /* buckets: a power of two */
    block *bucket[BUCKETS];
    block_list cache[CLASSES];
    duet_memory memory;
    size_t used_as[MEMORY_KINDS];
    uint64_t clock;            /* counts blocks that were cached */
    size_t most, most_before;  /* the largest number of bytes in use in this period and in the last one */
    unsigned allocations;      /* in this period */
    size_t missed;             /* bytes to keep in addition, because trimmed blocks were needed again */
    uint16_t trimmed[CLASSES]; /* blocks that were trimmed and not needed again so far */
} pool;

extern pool pools[DEVICES_MAX];

/* Classes are 64 bytes apart up to 512 bytes, then there are eight to each power of two: at most
 * an eighth is wasted. */
static inline int class_of(size_t bytes, size_t *size)
{
    size_t last = bytes ? bytes - 1 : 0;
    if (last < 512) {
        *size = last / 64 * 64 + 64;
        return (int)(last / 64);
    }
    int log = 63 - __builtin_clzll(last);
    size_t unit = (size_t)1 << (log - 3), n = last / unit + 1; /* 9 .. 16 */
    *size = n * unit;
    return 8 * (log - 9) + (int)(n - 9) + 8;
}

/* ---- the table of blocks ---- */

static inline block **buckets_of(pool *o)
{
    return unlikely(o->more_buckets != NULL) ? o->more_buckets : o->bucket;
}

static inline block **bucket_of(pool *o, const void *p)
{
    const uint64_t hash = ((uintptr_t)p >> 6) * 0x9e3779b97f4a7c15u;
    return &buckets_of(o)[(hash >> 32) & (o->buckets - 1)];
}

static inline block **find(pool *o, const void *p)
{
    block **b = bucket_of(o, p);
    while (*b && (*b)->p != p) b = &(*b)->next;
    return b;
}

/* Takes a cached block out of its class; under the lock. */
static inline void uncache(pool *o, block *b)
{
    block_list *list = &o->cache[b->class];
    if (b->newer) b->newer->older = b->older;
    else list->newest = b->older;
    if (b->older) b->older->newer = b->newer;
    else list->oldest = b->newer;
    b->cached = false;
}

/* pool_free.c: free cached blocks of at least `bytes` bytes in total, or all of them. pool_drop returns how
 * much was freed. Its caller holds `dropping`: if it finds nothing to free, no other thread is freeing
 * anything. */
size_t pool_drop(int device, size_t bytes);
void pool_drop_alone(int device, size_t bytes);

/* Frees blocks that were not used for long, before a new block is allocated, which is already accounted. */
void pool_trim(int device, int class, size_t bytes);

void pool_set_pressure(enum pressure to); /* pool.c */

#endif
