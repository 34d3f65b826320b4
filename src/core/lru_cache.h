/* lru_cache.h - things that are dear to make, each known by a key: kept for the next who asks, within a limit of bytes. */
#ifndef SHELF_H
#define SHELF_H

#include "status.h"
#include <pthread.h>

/* A thing on a shelf: nobody changes it, and it stays as long as somebody has it. */
typedef struct shelf_item {
    struct shelf_item *next;
    void *thing;
    size_t bytes;
    uint64_t asked; /* when it last was */
    int users;
    size_t length;
    char key[];
} shelf_item;

/* Made and ended under the shelf's lock. make says how many bytes the thing takes, about. */
typedef duet_status shelf_make(const void *key, void **thing, size_t *bytes);

typedef struct shelf {
    shelf_make *make;
    void (*end)(void *thing);
    size_t limit;
    size_t bytes;
    uint64_t clock;
    shelf_item *items;
    pthread_mutex_t lock;
} shelf;

/* The thing of that key, for this user until shelf_give. Beyond the limit what nobody has goes, the longest unasked first.
 * Errors    NO_MEMORY; those of make */
duet_status shelf_take(shelf *s, const void *key, size_t length, shelf_item **item);
void shelf_give(shelf *s, shelf_item *item); /* NULL is accepted */

void shelf_clear(shelf *s); /* ends what nobody has */

#endif
