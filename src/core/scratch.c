/* scratch.c - temporaries and scratch, from the pool or from what a recording keeps. */
#include "scratch.h"
#include "pool.h"
#include "thread.h"
#include <stdlib.h>

typedef struct lent {
    void *p;
    size_t bytes; /* as they were asked for: the same work asks for the same again */
    bool out;
} lent;

static lent *find_free(const scratch_reserve *l, size_t bytes)
{
    for (lent *b = l->block; b < l->block + l->count; b++)
        if (!b->out && b->bytes == bytes) return b;
    return NULL;
}

static bool make_room(scratch_reserve *l)
{
    if (l->count < l->room) return true;
    const int room = l->room ? 2 * l->room : 16;
    lent *block = realloc(l->block, (size_t)room * sizeof *block);
    if (block) l->block = block, l->room = room;
    return block != NULL;
}

static duet_status lend_new(scratch_reserve *l, size_t bytes, int queue, void **p)
{
    if (l->closed)
        return fail(DUET_UNSUPPORTED,
                    "a recording has no block of %zu bytes, and may not allocate while it records", bytes);
    if (!make_room(l)) return fail(DUET_NO_MEMORY, "no memory to note what a recording keeps");
    TRY(pool_take(DEVICE, bytes, queue, p));
    l->block[l->count++] = (lent){ *p, bytes, true };
    return DUET_OK;
}

duet_status scratch_acquire(enum side s, size_t bytes, int queue, void **p)
{
    scratch_reserve *l = s == DEVICE ? thread_get()->scratch_reserve : NULL;
    if (__builtin_expect(!l, 1)) return pool_take(s, bytes, queue, p);
    lent *b = find_free(l, bytes);
    if (!b) return lend_new(l, bytes, queue, p);
    b->out = true, *p = b->p;
    return DUET_OK;
}

void scratch_release(enum side s, void *p, int queue)
{
    const scratch_reserve *l = s == DEVICE ? thread_get()->scratch_reserve : NULL;
    if (__builtin_expect(!l, 1)) return pool_give(s, p, 1ull << queue);
    for (lent *b = l->block; b < l->block + l->count; b++)
        if (b->p == p) b->out = false;
}

size_t scratch_reserve_bytes(const scratch_reserve *l)
{
    size_t sum = 0;
    for (int i = 0; i < l->count; i++) sum += l->block[i].bytes;
    return sum;
}

void scratch_reserve_free(scratch_reserve *l, uint64_t queues)
{
    for (int i = 0; i < l->count; i++) pool_give(DEVICE, l->block[i].p, queues);
    free(l->block);
    *l = (scratch_reserve){ 0 };
}
