/* lru_cache.c - the cache of lru_cache.h, as a linked list. A list is fast enough: frequent users
 * do not release their items, and all others take longer to make than to find. */
#include "lru_cache.h"
#include "pool.h"
#include "thread.h"
#include <stdlib.h>
#include <string.h>

static lru_item *find(const lru_cache *s, const void *key, size_t length)
{
    lru_item *i = s->items;
    while (i && (i->length != length || memcmp(i->key, key, length))) i = i->next;
    return i;
}

static void drop(lru_cache *s, lru_item **at)
{
    lru_item *i = *at;
    *at = i->next;
    s->bytes -= i->bytes;
    pool_count_plans(-(ptrdiff_t)i->bytes);
    s->end(i->thing);
    free(i);
}

/* The least recently used item without users; NULL if there is none. */
static lru_item **oldest(lru_cache *s)
{
    lru_item **found = NULL;
    for (lru_item **i = &s->items; *i; i = &(*i)->next)
        if (!(*i)->users && (!found || (*i)->used < (*found)->used)) found = i;
    return found;
}

static void make_room(lru_cache *s, size_t limit)
{
    lru_item **i;
    while (s->bytes > limit && (i = oldest(s))) drop(s, i);
}

static duet_status add(lru_cache *s, const void *key, size_t length, lru_item **item)
{
    lru_item *i = *item = calloc(1, sizeof *i + length);
    if (!i) return fail(DUET_NO_MEMORY, "out of host memory for a plan");
    i->length = length;
    memcpy(i->key, key, length);
    const duet_status r = s->make(key, &i->thing, &i->bytes);
    if (r != DUET_OK) {
        free(i);
        return r;
    }
    i->next = s->items;
    s->items = i;
    s->bytes += i->bytes;
    pool_count_plans((ptrdiff_t)i->bytes);
    return DUET_OK;
}

duet_status lru_acquire(lru_cache *s, const void *key, size_t length, lru_item **item)
{
    pthread_mutex_lock(&s->lock);
    *item = find(s, key, length);
    duet_status r = DUET_OK;
    if (!*item) r = add(s, key, length, item);
    if (r == DUET_OK) {
        (*item)->users++;
        (*item)->used = ++s->clock;
        make_room(s, s->limit);
    } else {
        *item = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

void lru_release(lru_cache *s, lru_item *item)
{
    if (!item) return;
    pthread_mutex_lock(&s->lock);
    item->users--;
    make_room(s, s->limit);
    pthread_mutex_unlock(&s->lock);
}

void lru_clear(lru_cache *s)
{
    pthread_mutex_lock(&s->lock);
    make_room(s, 0);
    pthread_mutex_unlock(&s->lock);
}

void lru_each(lru_cache *s, void visit(const void *key, void *thing, void *argument), void *argument)
{
    pthread_mutex_lock(&s->lock);
    for (lru_item *i = s->items; i; i = i->next) visit(i->key, i->thing, argument);
    pthread_mutex_unlock(&s->lock);
}
