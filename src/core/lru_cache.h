/* lru_cache.h - a cache of objects that are expensive to create, by key, within a limit of bytes. */
#ifndef LRU_CACHE_H
#define LRU_CACHE_H

#include "status.h"
#include <pthread.h>

/* A cached object. It is constant, and is not freed while it has users. */
typedef struct lru_item {
    struct lru_item *next;
    void *thing;
    size_t bytes;
    uint64_t used; /* the clock at its last use */
    int users;
    size_t length;
    char key[];
} lru_item;

/* Objects are created and freed under the cache's lock. *bytes: about how much memory the object takes. */
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

/* Finds or creates the object of a key, for one user until lru_release. Beyond the limit, objects
 * without users are freed, the least recently used first.
 * Errors    NO_MEMORY; those of make */
duet_status lru_acquire(lru_cache *s, const void *key, size_t length, lru_item **item);
void lru_release(lru_cache *s, lru_item *item); /* NULL is accepted */

void lru_clear(lru_cache *s); /* frees all objects without users */

/* Calls visit for each object, under the cache's lock. */
void lru_each(lru_cache *s, void visit(const void *key, void *thing, void *argument), void *argument);

#endif
