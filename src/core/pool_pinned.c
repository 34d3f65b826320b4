/* pool_pinned.c - pins blocks of the host for copies by a GPU. */
#include "pool_blocks.h"
#include "thread.h"
#include "trace.h"
#include <unistd.h>

/* The limit of pinned memory: the system needs memory that it can page out. */
static size_t most_pinned(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (size_t)pages / 4 * (size_t)bytes : 0;
}

/* Returns the block, accounted as pinned. NULL: it is pinned already, or not in use, or the limit
 * would be exceeded. */
static block *reserve_pinned(pool *o, const void *p, int device)
{
    spin_take(&o->lock);
    block *b = *find(o, p);
    if (b && (b->cached || b->pinned_for || o->memory.pinned + b->bytes > most_pinned())) b = NULL;
    if (b) {
        o->memory.pinned += b->bytes;
        b->pinned_for = device;
    }
    spin_give(&o->lock);
    return b;
}

static void unreserve_pinned(pool *o, block *b)
{
    spin_take(&o->lock);
    o->memory.pinned -= b->bytes;
    b->pinned_for = HOST;
    spin_give(&o->lock);
}

static bool is_pinned(pool *o, const void *p)
{
    spin_take(&o->lock);
    const block *b = *find(o, p);
    const bool is = b && b->pinned_for;
    spin_give(&o->lock);
    return is;
}

/* If it fails, copies still work, only more slowly. So the thread's error text is restored. */
bool pool_pin(void *p, int device)
{
    pool *o = &pools[HOST];
    block *b = reserve_pinned(o, p, device);
    error_text before;
    if (!b) return is_pinned(o, p);
    error_keep(&before);
    if (device_machine(device)->pin(device, p, b->bytes) == DUET_OK) return true;
    TRACE("%zu bytes are not pinned: %s", b->bytes, thread_get()->text);
    error_put_back(&before);
    unreserve_pinned(o, b);
    return false;
}

int pool_pinned_for(const void *p)
{
    pool *o = &pools[HOST];
    spin_take(&o->lock);
    const block *b = p ? *find(o, p) : NULL;
    const int device = b ? b->pinned_for : HOST;
    spin_give(&o->lock);
    return device;
}

/* Takes the mark of one block that is pinned for the device. */
static void *take_pinned(pool *o, int device)
{
    void *p = NULL;
    spin_take(&o->lock);
    for (size_t i = 0; i < o->buckets && !p; i++)
        for (block *b = buckets_of(o)[i]; b && !p; b = b->next) {
            if (b->pinned_for != device) continue;
            p = b->p;
            b->pinned_for = HOST;
            o->memory.pinned -= b->bytes;
        }
    spin_give(&o->lock);
    return p;
}

/* `dropping`: no block is freed meanwhile. */
void pool_unpin_device(int device)
{
    pool *o = &pools[HOST];
    void *p;
    pthread_mutex_lock(&o->dropping);
    while ((p = take_pinned(o, device))) device_machine(device)->unpin(device, p);
    pthread_mutex_unlock(&o->dropping);
}
