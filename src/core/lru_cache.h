/* lru_cache.h - things that are dear to make, each known by a key: kept for the next who asks, within a limit of bytes. */
#ifndef LRU_CACHE_H
#define LRU_CACHE_H

#include "status.h"
#include <pthread.h>

/* A thing on a lru_cache: nobody changes it, and it stays as long as somebody has it. */
typedef struct lru_item {
    struct lru_item *next;
    void *thing;
    size_t bytes;
    uint64_t asked; /* when it last was */
    int users;
    size_t length;
    char key[];
} lru_item;

/* Made and ended under the lru_cache's lock. make says how many bytes the thing takes, about. */
typedef duet_status lru_make(const void *key, void **thing, size_t *bytes);

typedef struct lru_cache {
    lru_make *make;
    void (*end)(void *thing);
    size_t limit;
    size_t bytes;
    uint64_t clock;
    lru_item *items;
    pthread_mutex_t lock;
} lru_cache;

/* The thing of that key, for this user until lru_release. Beyond the limit what nobody has goes, the longest unasked first.
 * Errors    NO_MEMORY; those of make */
duet_status lru_acquire(lru_cache *s, const void *key, size_t length, lru_item **item);
void lru_release(lru_cache *s, lru_item *item); /* NULL is accepted */

void lru_clear(lru_cache *s); /* ends what nobody has */

#endif
