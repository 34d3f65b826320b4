/* pool.c - allocates all memory of all devices. Blocks come in size classes. A block that is given
 * back is cached in its class, to be used again.
 *
 * The header of a block is stored apart from it, in a hash table by address, for as long as the block
 * exists. No function of a machine is called under the lock. While a machine allocates or frees
 * memory, this memory stays accounted. */
#include "memory_report.h"
#include "pool_blocks.h"
#include "queue_sync.h"
#include "stack.h"
#include "thread.h"
#include <stdlib.h>

#define LOOKED 8 /* cached blocks to look at for one that needs no wait */

pool pools[DEVICES_MAX] = { [0 ... DEVICES_MAX - 1] = { .dropping = PTHREAD_MUTEX_INITIALIZER,
                                                        .buckets = BUCKETS } };

/* ---- the table of blocks ---- */

static void link_block(pool *o, block *b)
{
    block **to = bucket_of(o, b->p);
    b->next = *to;
    *to = b;
}

/* Doubles the buckets if there is memory for them. If not, the chains grow longer. */
static void grow(pool *o)
{
    const size_t n = o->buckets;
    block **old = buckets_of(o), **new = calloc(2 * n, sizeof *new);
    if (!new) return;
    o->more_buckets = new;
    o->buckets = 2 * n;
    for (size_t i = 0; i < n; i++)
        for (block *b = old[i], *next; b; b = next) {
            next = b->next;
            link_block(o, b);
        }
    if (old != o->bucket) free(old);
}

static void enter(pool *o, block *b)
{
    if (++o->blocks > o->buckets) grow(o);
    link_block(o, b);
}

/* ---- cached blocks; under the lock ---- */

static void note_peak(pool *o)
{
    duet_memory *m = &o->memory;
    if (m->used + m->cached > m->peak) m->peak = m->used + m->cached;
    if (m->used > o->most) o->most = m->used;
}

static void cache(pool *o, block *b)
{
    block_list *list = &o->cache[b->class];
    b->cached = true;
    b->since = ++o->clock;
    b->newer = NULL;
    b->older = list->newest;
    if (b->older) b->older->newer = b;
    else list->oldest = b;
    list->newest = b;
    o->memory.used -= b->bytes;
    o->used_as[b->kind] -= b->bytes;
    o->memory.cached += b->bytes;
}

/* Returns the newest block that only this queue may still use. If there is none among the first,
 * it returns the oldest, whose work is most likely done. */
static block *pick(const pool *o, int class, uint64_t own)
{
    block *b = o->cache[class].newest;
    for (int i = 0; b && i < LOOKED; i++, b = b->older)
        if (!(b->queues & ~own)) return b;
    return o->cache[class].oldest;
}

static void use_as(pool *o, block *b, enum memory_kind kind)
{
    b->kind = (uint8_t)kind;
    o->used_as[kind] += b->bytes;
}

static block *take_cached(pool *o, int class, uint64_t own, enum memory_kind kind)
{
    spin_take(&o->lock);
    block *b = pick(o, class, own);
    if (b) {
        uncache(o, b);
        o->memory.cached -= b->bytes;
        o->memory.used += b->bytes;
        use_as(o, b, kind);
        note_peak(o);
    }
    spin_give(&o->lock);
    return b;
}

/* ---- new blocks ---- */

static duet_status no_memory(int device, size_t asked, const char *why)
{
    spin_take(&pools[device].lock);
    duet_memory m = pools[device].memory;
    spin_give(&pools[device].lock);
    fail(DUET_NO_MEMORY, "%s %zu bytes on the %s: used %zu, cached %zu, limit %zu%s", why, asked,
         device_name(device), m.used, m.cached, m.limit, m.limit ? "" : " (none)");
    return device == HOST ? name_owners(DUET_NO_MEMORY, HOST) : DUET_NO_MEMORY;
}

/* Accounts for a new block. false: it would exceed the limit, by *over bytes. */
static bool reserve(pool *o, size_t bytes, size_t *over)
{
    spin_take(&o->lock);
    duet_memory *m = &o->memory;
    size_t all = m->used + m->cached;
    bool fits = m->limit == 0 || (all <= m->limit && bytes <= m->limit - all);
    *over = fits ? 0 : all + bytes - m->limit;
    if (fits) {
        m->used += bytes;
        note_peak(o);
    }
    spin_give(&o->lock);
    return fits;
}

/* ---- scarce memory of GPUs ---- */

uint8_t pool_pressure;
static unsigned calm_reviews; /* since buffers were freed, or half of a limit was used */
#define CALM 16

void pool_set_pressure(enum pressure to)
{
    __atomic_store_n(&calm_reviews, 0, __ATOMIC_RELAXED);
    if (pool_pressure != to) __atomic_store_n(&pool_pressure, (uint8_t)to, __ATOMIC_RELAXED);
}

void pool_note_pressure(void) { pool_set_pressure(PRESSURE_TIGHT); }

static bool uses_half(int device)
{
    const duet_memory m = pool_memory(device);
    return m.limit && m.used > m.limit / 2;
}

void pool_review_pressure(void)
{
    if (__atomic_add_fetch(&calm_reviews, 1, __ATOMIC_RELAXED) < CALM) return;
    bool any = false;
    for (int d = DEFAULT_GPU; d < DEVICES_MAX; d++) any |= uses_half(d);
    pool_set_pressure(any ? PRESSURE_WATCHED : PRESSURE_NONE);
}

static void unreserve(pool *o, size_t bytes)
{
    spin_take(&o->lock);
    o->memory.used -= bytes;
    spin_give(&o->lock);
}

static duet_status reserve_or_drop(int device, size_t bytes)
{
    pool *o = &pools[device];
    size_t over;
    if (reserve(o, bytes, &over)) {
        if (device != HOST && !pool_is_watched() && uses_half(device)) pool_set_pressure(PRESSURE_WATCHED);
        return DUET_OK;
    }
    pthread_mutex_lock(&o->dropping);
    bool fits = reserve(o, bytes, &over);
    while (!fits && pool_drop(device, over) > 0) fits = reserve(o, bytes, &over);
    pthread_mutex_unlock(&o->dropping);
    if (!fits) return no_memory(device, bytes, "the memory limit does not allow");
    return DUET_OK;
}

static duet_status alloc_or_drop(int device, size_t bytes, void **p)
{
    duet_status st = device_machine(device)->alloc(device, bytes, p);
    if (st != DUET_NO_MEMORY) return st;
    pthread_mutex_lock(&pools[device].dropping);
    pool_drop(device, SIZE_MAX);
    st = device_machine(device)->alloc(device, bytes, p);
    pthread_mutex_unlock(&pools[device].dropping);
    if (st == DUET_NO_MEMORY) return no_memory(device, bytes, "the system could not allocate");
    return st;
}

static duet_status new_block(enum memory_kind kind, int device, int class, size_t bytes, void **p)
{
    pool *o = &pools[device];
    block *b = calloc(1, sizeof *b);
    if (!b)
        return fail(DUET_NO_MEMORY, "the system could not allocate %zu bytes for the header of a block",
                    sizeof *b);
    duet_status st = reserve_or_drop(device, bytes);
    if (st == DUET_OK) pool_trim(device, class, bytes);
    if (st == DUET_OK && (st = alloc_or_drop(device, bytes, p)) != DUET_OK) unreserve(o, bytes);
    if (st != DUET_OK) {
        free(b);
        return st;
    }
    b->p = *p;
    b->bytes = bytes;
    b->class = class;
    spin_take(&o->lock);
    enter(o, b);
    use_as(o, b, kind);
    spin_give(&o->lock);
    return DUET_OK;
}

/* The queue waits for all others that may use the block. After that, waiting for this queue is enough. */
static duet_status wait_for_others(int device, block *b, int queue)
{
    const uint64_t own = (uint64_t)1 << queue;
    for (uint64_t others = b->queues & ~own; others; others &= others - 1)
        TRY(device_machine(device)->wait(device, queue, device, __builtin_ctzll(others)));
    if (b->queues) b->queues = own;
    return DUET_OK;
}

static void give(pool *o, block *b)
{
    spin_take(&o->lock);
    cache(o, b);
    spin_give(&o->lock);
}

duet_status pool_take_as(enum memory_kind kind, int device, size_t bytes, int queue, void **p)
{
    size_t size;
    if (bytes > PTRDIFF_MAX) return no_memory(device, bytes, "the address space does not have");
    const int class = class_of(bytes, &size);
    const uint64_t own = device == HOST ? ~(uint64_t)0 : (uint64_t)1 << queue;
    block *b = take_cached(&pools[device], class, own, kind);
    if (!b) {
        COUNT(pool_misses);
        return new_block(kind, device, class, size, p);
    }
    COUNT(pool_hits);
    duet_status st = DUET_OK;
    if (device != HOST) st = wait_for_others(device, b, queue);
    if (st != DUET_OK) give(&pools[device], b);
    else *p = b->p;
    return st;
}

duet_status pool_take(int device, size_t bytes, int queue, void **p)
{
    return pool_take_as(MEMORY_SCRATCH, device, bytes, queue, p);
}

void pool_give(int device, void *p, uint64_t queues)
{
    pool *o = &pools[device];
    if (!p) return;
    spin_take(&o->lock);
    block *b = *find(o, p);
    if (b && !b->cached) {
        if (device != HOST) b->queues |= queues;
        cache(o, b);
    }
    spin_give(&o->lock);
}

duet_memory pool_memory(int device)
{
    spin_take(&pools[device].lock);
    const duet_memory m = pools[device].memory;
    spin_give(&pools[device].lock);
    return m;
}

size_t pool_used_as(enum memory_kind kind, int device)
{
    spin_take(&pools[device].lock);
    const size_t bytes = pools[device].used_as[kind];
    spin_give(&pools[device].lock);
    return bytes;
}

static size_t plans;

void pool_count_plans(ptrdiff_t bytes) { __atomic_add_fetch(&plans, (size_t)bytes, __ATOMIC_RELAXED); }

size_t pool_plans(void) { return __atomic_load_n(&plans, __ATOMIC_RELAXED); }

size_t pool_room(int device)
{
    const duet_memory m = pool_memory(device);
    if (m.limit) return m.limit > m.used ? m.limit - m.used : 0;
    const size_t more = device_machine(device)->available(device);
    return more < SIZE_MAX - m.cached ? more + m.cached : SIZE_MAX;
}

/* ---- public functions ---- */

static bool device_at(duet_place place, int *device)
{
    *device = place == DUET_GPU ? thread_get()->gpu : HOST;
    return place == DUET_CPU || place == DUET_GPU;
}

duet_memory duet_memory_of(duet_place place)
{
    int device;
    if (device_at(place, &device)) return pool_memory(device);
    fail(DUET_BAD_ARGUMENT, "duet_memory_of: place (%d) must be DUET_CPU or DUET_GPU", (int)place);
    return (duet_memory){ 0 };
}

duet_status(duet_memory_limit)(duet_place place, size_t bytes)
{
    int device;
    if (!device_at(place, &device))
        return fail(DUET_BAD_ARGUMENT, "duet_memory_limit: place (%d) must be DUET_CPU or DUET_GPU",
                    (int)place);
    spin_take(&pools[device].lock);
    duet_memory *m = &pools[device].memory;
    m->limit = bytes;
    const size_t all = m->used + m->cached, over = bytes && all > bytes ? all - bytes : 0;
    spin_give(&pools[device].lock);
    if (device != HOST) pool_set_pressure(PRESSURE_NONE);
    if (over) pool_drop_alone(device, over);
    return DUET_OK;
}

void duet_memory_trim(void)
{
    stack_end(thread_get());
    for (int d = 0; d < DEVICES_MAX; d++)
        if (device_machine(d)) pool_drop_alone(d, SIZE_MAX);
}
