/* lru_cache.c - a list: there are few things, and who uses one often keeps it. */
#include "lru_cache.h"
#include "thread.h"
#include <stdlib.h>
#include <string.h>

static shelf_item *find(const shelf *s, const void *key, size_t length)
{
    shelf_item *i = s->items;
    while (i && (i->length != length || memcmp(i->key, key, length))) i = i->next;
    return i;
}

static void drop(shelf *s, shelf_item **at)
{
    shelf_item *i = *at;
    *at = i->next, s->bytes -= i->bytes;
    s->end(i->thing);
    free(i);
}

/* Of those that nobody has, the one that was asked for longest ago; NULL: there is none. */
static shelf_item **oldest(shelf *s)
{
    shelf_item **found = NULL;
    for (shelf_item **i = &s->items; *i; i = &(*i)->next)
        if (!(*i)->users && (!found || (*i)->asked < (*found)->asked)) found = i;
    return found;
}

static void make_room(shelf *s, size_t limit)
{
    shelf_item **i;
    while (s->bytes > limit && (i = oldest(s))) drop(s, i);
}

static duet_status add(shelf *s, const void *key, size_t length, shelf_item **item)
{
    shelf_item *i = *item = calloc(1, sizeof *i + length);
    if (!i) return fail(DUET_NO_MEMORY, "no memory for a plan");
    memcpy(i->key, key, i->length = length);
    const duet_status r = s->make(key, &i->thing, &i->bytes);
    if (r != DUET_OK) return free(i), r;
    i->next = s->items, s->items = i, s->bytes += i->bytes;
    COUNT(transforms);
    return DUET_OK;
}

duet_status shelf_take(shelf *s, const void *key, size_t length, shelf_item **item)
{
    pthread_mutex_lock(&s->lock);
    *item = find(s, key, length);
    const duet_status r = *item ? DUET_OK : add(s, key, length, item);
    if (r == DUET_OK) (*item)->users++, (*item)->asked = ++s->clock, make_room(s, s->limit);
    else *item = NULL;
    pthread_mutex_unlock(&s->lock);
    return r;
}

void shelf_give(shelf *s, shelf_item *item)
{
    if (!item) return;
    pthread_mutex_lock(&s->lock);
    item->users--;
    make_room(s, s->limit);
    pthread_mutex_unlock(&s->lock);
}

void shelf_clear(shelf *s)
{
    pthread_mutex_lock(&s->lock);
    make_room(s, 0);
    pthread_mutex_unlock(&s->lock);
}
