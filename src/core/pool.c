/* pool.c - all memory of all machines. Blocks come in classes of size, and are kept by class when given back.
 *
 * A header stands for each block outside of it, from its birth to its death, in a hash table by address. No function of a
 * machine is called under the lock; what is being made or unmade is accounted meanwhile. */
#include "pool.h"
#include "queue_sync.h"
#include "thread.h"
#include "trace.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLASSES 440
#define BUCKETS 1024 /* at first */
#define LOOKED  8    /* cached blocks looked at for one that needs no wait */

typedef struct block {
    struct block *next;          /* in its bucket */
    struct block *older, *newer; /* of its class, when cached */
    void *p;
    size_t bytes;
    uint64_t queues; /* that may still have work on it */
    int class;
    bool cached, pinned;
} block;

typedef struct pool {
    pthread_mutex_t lock;
    pthread_mutex_t dropping; /* one thread at a time gives memory back for want of it */
    block **bucket;
    size_t buckets, blocks; /* buckets: a power of two */
    block *first_bucket[BUCKETS];
    struct {
        block *newest, *oldest;
    } cache[CLASSES];
    duet_memory memory;
} pool;

#define POOL(s)                                                                                              \
    {                                                                                                        \
        .lock = PTHREAD_MUTEX_INITIALIZER, .dropping = PTHREAD_MUTEX_INITIALIZER, .buckets = BUCKETS,        \
        .bucket = pools[s].first_bucket                                                                      \
    }
static pool pools[SIDES] = { [HOST] = POOL(HOST), [DEVICE] = POOL(DEVICE) };

/* Steps of 64 bytes up to 512, then eight steps to a doubling, so that at most an eighth is lost. */
static int class_of(size_t bytes, size_t *size)
{
    size_t last = bytes ? bytes - 1 : 0;
    if (last < 512) return *size = last / 64 * 64 + 64, (int)(last / 64);
    int log = 63 - __builtin_clzll(last);
    size_t unit = (size_t)1 << (log - 3), n = last / unit + 1; /* 9 .. 16 */
    *size = n * unit;
    return 8 * (log - 9) + (int)(n - 9) + 8;
}

/* ---- the table of blocks ---- */

static block **bucket_of(const pool *o, const void *p)
{
    uint64_t hash = ((uintptr_t)p >> 6) * 0x9e3779b97f4a7c15u;
    return &o->bucket[(hash >> 32) & (o->buckets - 1)];
}

/* Twice the buckets, if there is memory for them; without, the chains grow longer. */
static void grow(pool *o)
{
    block **old = o->bucket, **new = calloc(2 * o->buckets, sizeof *new);
    size_t n = o->buckets;
    if (!new) return;
    o->bucket = new, o->buckets = 2 * n;
    for (size_t i = 0; i < n; i++)
        for (block *b = old[i], *next; b; b = next) {
            block **to = bucket_of(o, b->p);
            next = b->next, b->next = *to, *to = b;
        }
    if (old != o->first_bucket) free(old);
}

static void enter(pool *o, block *b)
{
    if (++o->blocks > o->buckets) grow(o);
    block **to = bucket_of(o, b->p);
    b->next = *to, *to = b;
}

static block **find(const pool *o, const void *p)
{
    block **b = bucket_of(o, p);
    while (*b && (*b)->p != p) b = &(*b)->next;
    return b;
}

/* ---- cached blocks; under the lock ---- */

static void note_peak(duet_memory *m)
{
    if (m->used + m->cached > m->peak) m->peak = m->used + m->cached;
}

static void cache(pool *o, block *b)
{
    b->cached = true, b->newer = NULL, b->older = o->cache[b->class].newest;
    *(b->older ? &b->older->newer : &o->cache[b->class].oldest) = b;
    o->cache[b->class].newest = b;
    o->memory.used -= b->bytes, o->memory.cached += b->bytes;
}

static void uncache(pool *o, block *b)
{
    *(b->newer ? &b->newer->older : &o->cache[b->class].newest) = b->older;
    *(b->older ? &b->older->newer : &o->cache[b->class].oldest) = b->newer;
    b->cached = false;
}

/* Of the newest ones the first that no other queue may use; else the oldest, whose work most likely is done. */
static block *pick(const pool *o, int class, uint64_t own)
{
    block *b = o->cache[class].newest;
    for (int i = 0; b && i < LOOKED; i++, b = b->older)
        if (!(b->queues & ~own)) return b;
    return o->cache[class].oldest;
}

static block *take_cached(pool *o, int class, uint64_t own)
{
    pthread_mutex_lock(&o->lock);
    block *b = pick(o, class, own);
    if (b) {
        uncache(o, b);
        o->memory.cached -= b->bytes, o->memory.used += b->bytes;
    }
    pthread_mutex_unlock(&o->lock);
    return b;
}

/* ---- giving memory back to the system ---- */

/* Takes cached blocks of `bytes` in all out of the tables, the largest first; they stay accounted as cached. */
static block *detach(pool *o, size_t bytes)
{
    block *list = NULL, *b;
    size_t got = 0;
    for (int c = CLASSES; c-- > 0;)
        while (got < bytes && (b = o->cache[c].oldest)) {
            uncache(o, b);
            *find(o, b->p) = b->next;
            o->blocks--;
            got += b->bytes, b->next = list, list = b;
        }
    return list;
}

/* What the machine keeps for speed alone becomes cached blocks, if those that there are will not do. */
static void spare(enum side s, size_t bytes)
{
    pthread_mutex_lock(&pools[s].lock);
    const size_t cached = pools[s].memory.cached;
    pthread_mutex_unlock(&pools[s].lock);
    if (cached < bytes) (void)machines[s]->spare(bytes - cached);
}

/* Frees cached blocks of `bytes` in all, or all there are. Returns how much was freed. Under `dropping`: who finds nothing
 * to drop may rely on it that nobody else is about to give back. */
static size_t drop(enum side s, size_t bytes)
{
    pool *o = &pools[s];
    size_t freed = 0, unpinned = 0;
    uint64_t queues = 0;
    spare(s, bytes);
    pthread_mutex_lock(&o->lock);
    block *list = detach(o, bytes);
    pthread_mutex_unlock(&o->lock);

    for (const block *b = list; b; b = b->next) queues |= b->queues;
    for (int q = 0; q < QUEUES && s == DEVICE; q++)
        if (queues >> q & 1)
            (void)queue_wait(q, "memory is given back"); /* of a lost device nothing is waited for */
    for (block *b = list, *next; b; b = next) {
        next = b->next, freed += b->bytes;
        if (b->pinned) machines[DEVICE]->unpin(b->p), unpinned += b->bytes;
        machines[s]->free(b->p);
        free(b);
    }
    pthread_mutex_lock(&o->lock);
    o->memory.cached -= freed, o->memory.pinned -= unpinned;
    pthread_mutex_unlock(&o->lock);
    return freed;
}

static void drop_alone(enum side s, size_t bytes)
{
    pthread_mutex_lock(&pools[s].dropping);
    drop(s, bytes);
    pthread_mutex_unlock(&pools[s].dropping);
}

static duet_status no_memory(enum side s, size_t asked, const char *who)
{
    pthread_mutex_lock(&pools[s].lock);
    duet_memory m = pools[s].memory;
    pthread_mutex_unlock(&pools[s].lock);
    return fail(DUET_NO_MEMORY, "%s refuses %zu bytes on the %s: used %zu, cached %zu, limit %zu%s", who,
                asked, machines[s]->name, m.used, m.cached, m.limit, m.limit ? "" : " (none)");
}

/* ---- new blocks ---- */

/* Accounts for a block to come; false when it would pass the limit, by *over bytes. */
static bool reserve(pool *o, size_t bytes, size_t *over)
{
    pthread_mutex_lock(&o->lock);
    duet_memory *m = &o->memory;
    size_t all = m->used + m->cached;
    bool fits = m->limit == 0 || (all <= m->limit && bytes <= m->limit - all);
    *over = fits ? 0 : all + bytes - m->limit;
    if (fits) m->used += bytes, note_peak(m);
    pthread_mutex_unlock(&o->lock);
    return fits;
}

static void unreserve(pool *o, size_t bytes)
{
    pthread_mutex_lock(&o->lock);
    o->memory.used -= bytes;
    pthread_mutex_unlock(&o->lock);
}

static duet_status reserve_or_drop(enum side s, size_t bytes)
{
    pool *o = &pools[s];
    size_t over;
    if (reserve(o, bytes, &over)) return DUET_OK;
    pthread_mutex_lock(&o->dropping);
    bool fits = reserve(o, bytes, &over);
    while (!fits && drop(s, over) > 0) fits = reserve(o, bytes, &over);
    pthread_mutex_unlock(&o->dropping);
    return fits ? DUET_OK : no_memory(s, bytes, "the limit");
}

static duet_status alloc_or_drop(enum side s, size_t bytes, void **p)
{
    duet_status st = machines[s]->alloc(bytes, p);
    if (st != DUET_NO_MEMORY) return st;
    pthread_mutex_lock(&pools[s].dropping);
    drop(s, SIZE_MAX);
    st = machines[s]->alloc(bytes, p);
    pthread_mutex_unlock(&pools[s].dropping);
    return st == DUET_NO_MEMORY ? no_memory(s, bytes, "the system") : st;
}

static duet_status new_block(enum side s, int class, size_t bytes, void **p)
{
    block *b = calloc(1, sizeof *b);
    if (!b) return fail(DUET_NO_MEMORY, "the system refuses %zu bytes for the header of a block", sizeof *b);
    duet_status st = reserve_or_drop(s, bytes);
    if (st == DUET_OK && (st = alloc_or_drop(s, bytes, p)) != DUET_OK) unreserve(&pools[s], bytes);
    if (st != DUET_OK) return free(b), st;

    b->p = *p, b->bytes = bytes, b->class = class;
    pthread_mutex_lock(&pools[s].lock);
    enter(&pools[s], b);
    pthread_mutex_unlock(&pools[s].lock);
    return DUET_OK;
}

/* The queue waits for all others on the block; from then on, to wait for it is to wait for them. */
static duet_status wait_for_others(block *b, int queue)
{
    uint64_t own = (uint64_t)1 << queue;
    for (int q = 0; q < QUEUES; q++)
        if ((b->queues & ~own) >> q & 1) TRY(machines[DEVICE]->wait(queue, q));
    if (b->queues) b->queues = own;
    return DUET_OK;
}

static void give(pool *o, block *b)
{
    pthread_mutex_lock(&o->lock);
    cache(o, b);
    pthread_mutex_unlock(&o->lock);
}

duet_status pool_take(enum side s, size_t bytes, int queue, void **p)
{
    if (bytes > PTRDIFF_MAX) return no_memory(s, bytes, "the address space");
    size_t size;
    int class = class_of(bytes, &size);
    block *b = take_cached(&pools[s], class, s == HOST ? ~(uint64_t)0 : (uint64_t)1 << queue);
    if (!b) {
        COUNT(pool_misses);
        return new_block(s, class, size, p);
    }
    COUNT(pool_hits);
    duet_status st = s == HOST ? DUET_OK : wait_for_others(b, queue);
    if (st != DUET_OK) give(&pools[s], b);
    else *p = b->p;
    return st;
}

void pool_give(enum side s, void *p, uint64_t queues)
{
    pool *o = &pools[s];
    if (!p) return;
    pthread_mutex_lock(&o->lock);
    block *b = *find(o, p);
    if (b && !b->cached) {
        b->queues |= s == HOST ? 0 : queues;
        cache(o, b);
    }
    pthread_mutex_unlock(&o->lock);
}

size_t pool_room(enum side s)
{
    pthread_mutex_lock(&pools[s].lock);
    const duet_memory m = pools[s].memory;
    pthread_mutex_unlock(&pools[s].lock);
    if (m.limit) return m.limit > m.used ? m.limit - m.used : 0;
    const size_t more = machines[s]->room();
    return more < SIZE_MAX - m.cached ? more + m.cached : SIZE_MAX;
}

/* ---- pinned memory ---- */

/* The system needs memory that it can move. */
static size_t most_pinned(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (size_t)pages / 4 * (size_t)bytes : 0;
}

/* The block, accounted as pinned; or NULL: it is so already, is not lent, or would be too much. */
static block *reserve_pinned(pool *o, const void *p)
{
    pthread_mutex_lock(&o->lock);
    block *b = *find(o, p);
    if (b && (b->cached || b->pinned || o->memory.pinned + b->bytes > most_pinned())) b = NULL;
    if (b) o->memory.pinned += b->bytes, b->pinned = true;
    pthread_mutex_unlock(&o->lock);
    return b;
}

static void unreserve_pinned(pool *o, block *b)
{
    pthread_mutex_lock(&o->lock);
    o->memory.pinned -= b->bytes, b->pinned = false;
    pthread_mutex_unlock(&o->lock);
}

static bool is_pinned(pool *o, const void *p)
{
    pthread_mutex_lock(&o->lock);
    const block *b = *find(o, p);
    const bool is = b && b->pinned;
    pthread_mutex_unlock(&o->lock);
    return is;
}

/* Copies go their way without it. */
bool pool_pin(void *p)
{
    block *b = reserve_pinned(&pools[HOST], p);
    error_text before;
    if (!b) return is_pinned(&pools[HOST], p);
    error_keep(&before);
    const bool done = machines[DEVICE]->pin(p, b->bytes) == DUET_OK;
    if (done) return true;
    TRACE("%zu bytes are not pinned: %s", b->bytes, thread_get()->text);
    error_put_back(&before);
    return unreserve_pinned(&pools[HOST], b), false;
}

/* ---- what the user asks of it ---- */

static bool side_of(duet_place place, enum side *s)
{
    *s = place == DUET_GPU ? DEVICE : HOST;
    return place == DUET_CPU || place == DUET_GPU;
}

duet_memory duet_memory_of(duet_place place)
{
    enum side s;
    if (!side_of(place, &s)) return (duet_memory){ 0 };
    pthread_mutex_lock(&pools[s].lock);
    duet_memory m = pools[s].memory;
    pthread_mutex_unlock(&pools[s].lock);
    return m;
}

duet_status duet_memory_limit(duet_place place, size_t bytes)
{
    enum side s;
    if (!side_of(place, &s))
        return fail(DUET_BAD_ARGUMENT, "duet_memory_limit needs DUET_CPU or DUET_GPU, not %d", (int)place);
    pthread_mutex_lock(&pools[s].lock);
    duet_memory *m = &pools[s].memory;
    m->limit = bytes;
    size_t all = m->used + m->cached, over = bytes && all > bytes ? all - bytes : 0;
    pthread_mutex_unlock(&pools[s].lock);
    if (over) drop_alone(s, over);
    return DUET_OK;
}

void duet_memory_trim(void)
{
    for (enum side s = 0; s < SIDES; s++) drop_alone(s, SIZE_MAX);
}
