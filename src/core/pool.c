/* pool.c - allocates all memory of all devices. Blocks come in size classes. A block that is given
 * back is cached in its class, to be used again.
 *
 * The header of a block is stored apart from it, in a hash table by address, for as long as the block
 * exists. No function of a machine is called under the lock. While a machine allocates or frees
 * memory, this memory stays accounted. */
#include "pool.h"
#include "compiler.h"
#include "memory_report.h"
#include "min_max.h"
#include "queue_sync.h"
#include "spin_lock.h"
#include "stack.h"
#include "thread.h"
#include "trace.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLASSES 440
#define BUCKETS 1024 /* at first */
#define LOOKED  8    /* cached blocks to look at for one that needs no wait */

/* When a block is allocated, cached blocks of at least LEAST_TRIMMED bytes are freed, those first that have
 * not been used for longest, until at most CACHED_SHARE times the bytes are cached that were in use at the
 * same time. PERIOD: allocations after which an earlier maximum is forgotten. */
#define LEAST_TRIMMED ((size_t)64 << 10)
#define CACHED_SHARE  2
#define PERIOD        64

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

static pool pools[DEVICES_MAX] = { [0 ... DEVICES_MAX - 1] = { .dropping = PTHREAD_MUTEX_INITIALIZER,
                                                               .buckets = BUCKETS } };

/* Classes are 64 bytes apart up to 512 bytes, then there are eight to each power of two: at most
 * an eighth is wasted. */
static int class_of(size_t bytes, size_t *size)
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

static block **buckets_of(pool *o) { return unlikely(o->more_buckets != NULL) ? o->more_buckets : o->bucket; }

static block **bucket_of(pool *o, const void *p)
{
    const uint64_t hash = ((uintptr_t)p >> 6) * 0x9e3779b97f4a7c15u;
    return &buckets_of(o)[(hash >> 32) & (o->buckets - 1)];
}

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

static block **find(pool *o, const void *p)
{
    block **b = bucket_of(o, p);
    while (*b && (*b)->p != p) b = &(*b)->next;
    return b;
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

static void uncache(pool *o, block *b)
{
    block_list *list = &o->cache[b->class];
    if (b->newer) b->newer->older = b->older;
    else list->newest = b->older;
    if (b->older) b->older->newer = b->newer;
    else list->oldest = b->newer;
    b->cached = false;
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

/* ---- freeing cached blocks ---- */

/* Removes a cached block from the tables and puts it before `list`. It stays accounted as cached. */
static block *detach(pool *o, block *b, block *list)
{
    uncache(o, b);
    *find(o, b->p) = b->next;
    o->blocks--;
    b->next = list;
    return b;
}

/* At least `bytes` bytes in total, the largest first. */
static block *detach_largest(pool *o, size_t bytes)
{
    block *list = NULL, *b;
    size_t got = 0;
    for (int c = CLASSES; c-- > 0;)
        while (got < bytes && (b = o->cache[c].oldest)) {
            got += b->bytes;
            list = detach(o, b, list);
        }
    return list;
}

static block *oldest_block(const pool *o)
{
    block *found = NULL;
    size_t size;
    for (int c = class_of(LEAST_TRIMMED, &size); c < CLASSES; c++) {
        block *b = o->cache[c].oldest;
        if (b && (!found || b->since < found->since)) found = b;
    }
    return found;
}

/* At least `bytes` bytes in total, those first that have not been used for longest. */
static block *detach_oldest(pool *o, size_t bytes)
{
    block *list = NULL, *b;
    size_t got = 0;
    while (got < bytes && (b = oldest_block(o))) {
        if (o->trimmed[b->class] < UINT16_MAX) o->trimmed[b->class]++;
        got += b->bytes;
        list = detach(o, b, list);
    }
    o->missed -= o->missed < got / 8 ? o->missed : got / 8;
    return list;
}

/* If too few bytes are cached here, the machine gives back data that it caches itself. */
static void spare(int device, size_t bytes)
{
    spin_take(&pools[device].lock);
    const size_t cached = pools[device].memory.cached;
    spin_give(&pools[device].lock);
    if (cached < bytes) (void)device_machine(device)->spare(device, bytes - cached);
}

/* Work on a lost device counts as done. */
static void wait_for_blocks(int device, const block *list)
{
    uint64_t queues = 0;
    for (const block *b = list; b; b = b->next) queues |= b->queues;
    for (int q = 0; q < QUEUES && device != HOST; q++)
        if (queues >> q & 1) (void)queue_wait(device, q, "memory is given back");
}

/* Frees detached blocks. Returns their bytes. */
static size_t free_blocks(int device, block *list)
{
    pool *o = &pools[device];
    size_t freed = 0, unpinned = 0;
    wait_for_blocks(device, list);
    for (block *b = list, *next; b; b = next) {
        next = b->next;
        freed += b->bytes;
        if (b->pinned_for) {
            device_machine(b->pinned_for)->unpin(b->pinned_for, b->p);
            unpinned += b->bytes;
        }
        device_machine(device)->free(device, b->p);
        free(b);
    }
    spin_take(&o->lock);
    o->memory.cached -= freed;
    o->memory.pinned -= unpinned;
    spin_give(&o->lock);
    return freed;
}

/* Frees cached blocks of at least `bytes` in total, or all of them. Returns how much was freed. The
 * caller holds `dropping`: if this finds nothing to free, no other thread is freeing anything. */
static size_t drop(int device, size_t bytes)
{
    pool *o = &pools[device];
    spare(device, bytes);
    spin_take(&o->lock);
    block *list = detach_largest(o, bytes);
    spin_give(&o->lock);
    return free_blocks(device, list);
}

static void drop_alone(int device, size_t bytes)
{
    pthread_mutex_lock(&pools[device].dropping);
    drop(device, bytes);
    pthread_mutex_unlock(&pools[device].dropping);
}

/* So much may always be cached. Allocations on a GPU are slow, and each waits for all its work. */
static size_t cached_freely(int device) { return (size_t)(device == HOST ? 32 : 256) << 20; }

/* Begins a period if the last one is over. Returns how many cached bytes are too many. */
static size_t excess(pool *o, int device, int class, size_t bytes)
{
    if (o->trimmed[class]) {
        o->trimmed[class]--;
        o->missed += bytes;
    }
    if (++o->allocations > PERIOD) {
        o->allocations = 0;
        o->most_before = o->most;
        o->most = o->memory.used;
    }
    const size_t most = larger(o->most, o->most_before),
                 keep = larger(CACHED_SHARE * most + o->missed, cached_freely(device));
    return o->memory.cached > keep ? o->memory.cached - keep : 0;
}

/* Before a new block is allocated; it is already accounted. If another thread frees memory, there is nothing
 * to do. */
static void trim(int device, int class, size_t bytes)
{
    pool *o = &pools[device];
    block *list = NULL;
    if (pthread_mutex_trylock(&o->dropping)) return;
    spin_take(&o->lock);
    const size_t over = excess(o, device, class, bytes);
    if (over) list = detach_oldest(o, over);
    spin_give(&o->lock);
    if (list) free_blocks(device, list);
    pthread_mutex_unlock(&o->dropping);
}

static duet_status no_memory(int device, size_t asked, const char *why)
{
    spin_take(&pools[device].lock);
    duet_memory m = pools[device].memory;
    spin_give(&pools[device].lock);
    fail(DUET_NO_MEMORY, "%s %zu bytes on the %s: used %zu, cached %zu, limit %zu%s", why, asked,
         device_name(device), m.used, m.cached, m.limit, m.limit ? "" : " (none)");
    return device == HOST ? name_owners(DUET_NO_MEMORY, HOST) : DUET_NO_MEMORY;
}

/* ---- new blocks ---- */

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

static void set_pressure(enum pressure to)
{
    __atomic_store_n(&calm_reviews, 0, __ATOMIC_RELAXED);
    if (pool_pressure != to) __atomic_store_n(&pool_pressure, (uint8_t)to, __ATOMIC_RELAXED);
}

void pool_note_pressure(void) { set_pressure(PRESSURE_TIGHT); }

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
    set_pressure(any ? PRESSURE_WATCHED : PRESSURE_NONE);
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
        if (device != HOST && !pool_is_watched() && uses_half(device)) set_pressure(PRESSURE_WATCHED);
        return DUET_OK;
    }
    pthread_mutex_lock(&o->dropping);
    bool fits = reserve(o, bytes, &over);
    while (!fits && drop(device, over) > 0) fits = reserve(o, bytes, &over);
    pthread_mutex_unlock(&o->dropping);
    if (!fits) return no_memory(device, bytes, "the memory limit does not allow");
    return DUET_OK;
}

static duet_status alloc_or_drop(int device, size_t bytes, void **p)
{
    duet_status st = device_machine(device)->alloc(device, bytes, p);
    if (st != DUET_NO_MEMORY) return st;
    pthread_mutex_lock(&pools[device].dropping);
    drop(device, SIZE_MAX);
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
    if (st == DUET_OK) trim(device, class, bytes);
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

/* ---- pinned memory ---- */

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

/* ---- after the loss of a GPU ---- */

/* Removes all blocks. The pool's lock is held. */
static block *detach_all(pool *o)
{
    block *list = NULL;
    for (size_t i = 0; i < o->buckets; i++)
        for (block **at = &buckets_of(o)[i], *b; (b = *at);) {
            *at = b->next;
            b->next = list;
            list = b;
        }
    memset(o->cache, 0, sizeof o->cache);
    memset(o->used_as, 0, sizeof o->used_as);
    o->blocks = 0;
    o->memory.used = o->memory.cached = o->most = o->most_before = 0;
    return list;
}

void pool_forget_device(int device)
{
    pool *o = &pools[device];
    pthread_mutex_lock(&o->dropping);
    spin_take(&o->lock);
    block *list = detach_all(o);
    spin_give(&o->lock);
    for (block *b = list, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    pthread_mutex_unlock(&o->dropping);
    set_pressure(PRESSURE_NONE);
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
    if (device != HOST) set_pressure(PRESSURE_NONE);
    if (over) drop_alone(device, over);
    return DUET_OK;
}

void duet_memory_trim(void)
{
    stack_end(thread_get());
    for (int d = 0; d < DEVICES_MAX; d++)
        if (device_machine(d)) drop_alone(d, SIZE_MAX);
}
