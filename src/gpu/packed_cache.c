/* packed_cache.c - the cache of operands packed for DUET_MATH_SPLIT (packed_cache.h). */
#include "matrix.h" /* first, because the arguments in it have the names of types of other headers */

#include "cuda_graph.h"
#include "packed_cache.h"
#include "scratch.h"
#include "step_kinds.h"
#include <stdlib.h>
#include <string.h>

struct packed_operand {
    packed_operand *next;          /* of the same storage */
    packed_operand *older, *newer; /* in the order of use */
    storage *storage;              /* NULL: the storage was freed */
    int device;                    /* of the buffer from which it was packed, and of the block */
    step as;                       /* a step for which it was packed; slot 0 is the operand */
    int64_t offset;                /* bytes from the start of the buffer to the operand's first element */
    void *block;
    size_t bytes;
    uint64_t stamp; /* stamp of the elements that were packed; 0: none */
    int writer;     /* the queue that packed it; */
    uint64_t users; /* bit q: queue q waits for the packing and may use the block */
    int pins;       /* number of users */
};

/* Never held while memory is allocated, because the pool calls packed_spare, which takes it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
typedef struct order {
    packed_operand *newest, *oldest;
    size_t bytes;
} order;
static order orders[DEVICES_MAX]; /* by last use */

/* ---- packing ---- */

static duet_status pack(const step *s, const frame *f, void *block, void *scratch, queue *q)
{
    const workspace w = { .scratch = scratch, .counters = q->counters, .written = gpu_queue_written(q) };
    TRY(gpu_queue_count(q));
    const duet_status r = CUDA(kernels_pack, s, f, block, &w, gpu_queue_cuda_stream(q));
    if (scratch) gpu_queue_wrote_anything(q);
    else gpu_queue_wrote(q, (span){ block, (const char *)block + kernels_packed_bytes(s) });
    if (r == DUET_OK) COUNT(launches);
    else gpu_queue_recount(q);
    return r;
}

duet_status gpu_pack(const step *s, const frame *f, void *block, queue *q)
{
    const size_t bytes = kernels_scratch(s);
    void *scratch = NULL;
    if (bytes) TRY(scratch_acquire(q->device, bytes, q->index, &scratch));
    const duet_status r = pack(s, f, block, scratch, q);
    gpu_give(scratch, q);
    return r;
}

/* ---- functions that need the lock ---- */

static uint64_t bit(int index) { return (uint64_t)1 << index; }

static void to_newest(packed_operand *k)
{
    order *o = &orders[k->device];
    k->older = o->newest;
    k->newer = NULL;
    if (o->newest) o->newest->newer = k;
    else o->oldest = k;
    o->newest = k;
}

static void out_of_order(packed_operand *k)
{
    order *o = &orders[k->device];
    if (k->newer) k->newer->older = k->older;
    else o->newest = k->older;
    if (k->older) k->older->newer = k->newer;
    else o->oldest = k->newer;
}

static void enter(packed_operand *k)
{
    buffer_usage *on = storage_usage(k->storage, k->device);
    k->next = on->packed;
    __atomic_store_n(&on->packed, k, __ATOMIC_RELEASE);
    to_newest(k);
    orders[k->device].bytes += k->bytes;
}

/* Removes the entry from the lists: it is no longer found. A thread that ends the storage and sees no entry
 * takes no lock, so the store is the last access to the storage. */
static void leave(packed_operand *k)
{
    packed_operand **p = (packed_operand **)&storage_usage(k->storage, k->device)->packed;
    while (*p != k) p = &(*p)->next;
    __atomic_store_n(p, k->next, __ATOMIC_RELEASE);
    k->storage = NULL;
    out_of_order(k);
    orders[k->device].bytes -= k->bytes;
}

static void discard(packed_operand *k)
{
    pool_give(k->device, k->block, k->users);
    free(k);
}

static bool same_layout(const layout *a, const layout *b)
{
    const size_t axes = (size_t)a->rank * sizeof *a->size;
    return a->type == b->type && a->rank == b->rank && !memcmp(a->size, b->size, axes) &&
           !memcmp(a->stride, b->stride, axes);
}

static bool is_it(const packed_operand *k, const step *s, int64_t offset)
{
    return k->offset == offset && same_layout(&k->as.in[1].at, &s->in[1].at) && k->as.kernel == s->kernel &&
           k->bytes == kernels_packed_bytes(s) && !memcmp(&k->as.attr, &s->attr, sizeof s->attr);
}

static packed_operand *find(const storage *b, int device, const step *s, int64_t offset)
{
    packed_operand *k = storage_usage(b, device)->packed;
    while (k && !is_it(k, s, offset)) k = k->next;
    return k;
}

/* Evicts entries, least recently used first, until `bytes` are free or no more can be evicted. */
static size_t let_go(int device, size_t bytes)
{
    size_t gone = 0;
    for (packed_operand *k = orders[device].oldest, *newer; k && gone < bytes; k = newer) {
        newer = k->newer;
        if (k->pins) continue;
        gone += k->bytes;
        leave(k);
        discard(k);
    }
    return gone;
}

static duet_status follow_writer(packed_operand *k, const queue *q)
{
    if (k->users & bit(q->index)) return DUET_OK;
    TRY(gpu_queue_wait(k->device, q->index, k->device, k->writer));
    k->users |= bit(q->index);
    return DUET_OK;
}

/* Usually earlier uses of the block have finished: they came before the last write to the buffer,
 * and q runs after that write. Not so if the buffer was freed since, or if a write failed. */
static duet_status follow_users(const packed_operand *k, const queue *q)
{
    for (uint64_t others = k->users & ~bit(q->index); others; others &= others - 1)
        TRY(gpu_queue_wait(k->device, q->index, k->device, __builtin_ctzll(others)));
    return DUET_OK;
}

static duet_status pack_again(packed_operand *k, void *scratch, queue *q)
{
    void *const data[] = { (char *)k->storage->buffer[k->device] + k->offset };
    const uint64_t stamp = buffer_stamp(storage_usage(k->storage, k->device));
    TRY(follow_users(k, q));
    k->stamp = 0;
    k->writer = q->index;
    k->users |= bit(q->index);
    TRY(pack(&k->as, &(frame){ .data = data, .queue = q->index, .device = q->device }, k->block, scratch, q));
    k->stamp = stamp;
    k->users = bit(q->index);
    return DUET_OK;
}

static bool is_current(const packed_operand *k)
{
    return !k->storage || k->stamp == buffer_stamp(storage_usage(k->storage, k->device));
}

/* ---- functions without the lock ---- */

/* If several threads find the entry stale, the first one packs it again. Scratch memory comes from
 * the pool, because q may belong to another thread that is capturing a graph. */
duet_status packed_refresh(packed_operand *k, queue *q)
{
    const size_t bytes = kernels_scratch(&k->as);
    void *scratch = NULL;
    pthread_mutex_lock(&lock);
    bool current = is_current(k);
    pthread_mutex_unlock(&lock);
    if (!current && bytes) TRY(pool_take(q->device, bytes, q->index, &scratch));
    pthread_mutex_lock(&lock);
    current |= is_current(k);
    const duet_status r = current ? follow_writer(k, q) : pack_again(k, scratch, q);
    pthread_mutex_unlock(&lock);
    pool_give(q->device, scratch, bit(q->index));
    return r;
}

static size_t most_bytes(int device)
{
    const size_t limit = pool_memory(device).limit;
    return (limit ? limit : gpu_device_bytes(device)) / 4;
}

static packed_operand *find_pinned(storage *b, int device, const step *s, int64_t offset)
{
    pthread_mutex_lock(&lock);
    packed_operand *k = find(b, device, s, offset);
    if (k) {
        k->pins++;
        out_of_order(k);
        to_newest(k);
    }
    pthread_mutex_unlock(&lock);
    return k;
}

/* Makes space for `bytes` more; returns false if the limit is too small. */
static bool make_room(int device, size_t bytes)
{
    const size_t most = most_bytes(device), *held = &orders[device].bytes;
    pthread_mutex_lock(&lock);
    if (bytes <= most && *held + bytes > most) (void)let_go(device, *held + bytes - most);
    const bool fits = bytes <= most && *held + bytes <= most;
    pthread_mutex_unlock(&lock);
    return fits;
}

/* If another thread has added the same entry meanwhile, that one is used. */
static packed_operand *enter_pinned(packed_operand *mine)
{
    pthread_mutex_lock(&lock);
    packed_operand *there = find(mine->storage, mine->device, &mine->as, mine->offset),
                   *k = there ? there : mine;
    k->pins++;
    if (!there) enter(mine);
    pthread_mutex_unlock(&lock);
    if (there) discard(mine);
    return k;
}

static duet_status take_packed(int device, size_t bytes, int index, void **p)
{
    return pool_take_as(MEMORY_PACKED, device, bytes, index, p);
}

/* If there is no memory, no entry is made, which is not an error. */
static duet_status new_pinned(storage *b, const step *s, int64_t offset, queue *q, packed_operand **made)
{
    const size_t bytes = kernels_packed_bytes(s);
    packed_operand *k = make_room(q->device, bytes) ? calloc(1, sizeof *k) : NULL;
    *made = NULL;
    if (!k) return DUET_OK;
    *k = (packed_operand){
        .storage = b, .device = q->device, .as = *s, .offset = offset, .bytes = bytes, .writer = q->index
    };
    k->as.cached = NULL;
    k->as.in[1].slot = 0;
    const duet_status r = gpu_take_quietly(take_packed, bytes, q, &k->block);
    if (r != DUET_OK) {
        free(k);
        return r == DUET_NO_MEMORY ? DUET_OK : r;
    }
    k->users = bit(q->index);
    *made = enter_pinned(k);
    return DUET_OK;
}

duet_status packed_use(storage *b, const step *s, const frame *f, queue *q, packed_operand **k)
{
    const char *at = f->data[s->in[1].slot];
    const int64_t offset = at - (const char *)b->buffer[q->device];
    const bool captures = gpu_queue_cuda_stream(q) != q->stream;
    duet_status r = DUET_OK;
    *k = find_pinned(b, q->device, s, offset);
    if (!*k && !captures) TRY(new_pinned(b, s, offset, q, k));
    if (*k) r = captures ? gpu_graph_uses(q, *k) : packed_refresh(*k, q);
    if (r != DUET_OK) {
        packed_release(*k);
        *k = NULL;
    }
    return r;
}

const void *packed_at(const packed_operand *k) { return k->block; }

void packed_hold(packed_operand *k)
{
    pthread_mutex_lock(&lock);
    k->pins++;
    pthread_mutex_unlock(&lock);
}

void packed_release(packed_operand *k)
{
    if (!k) return;
    pthread_mutex_lock(&lock);
    const bool last = --k->pins == 0 && !k->storage;
    pthread_mutex_unlock(&lock);
    if (last) discard(k);
}

/* If the storage lives on, it may have a buffer again at the same address, with another stamp. A graph that
 * uses an entry then stays valid, so the entry stays, too. */
void packed_drop(int device, storage *b)
{
    const bool ends = !__atomic_load_n(&b->refs, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    for (packed_operand *k = storage_usage(b, device)->packed, *next; k; k = next) {
        next = k->next;
        if (k->pins && !ends) continue;
        leave(k);
        if (!k->pins) discard(k);
    }
    pthread_mutex_unlock(&lock);
}

size_t packed_spare(int device, size_t bytes)
{
    pthread_mutex_lock(&lock);
    const size_t gone = let_go(device, bytes);
    pthread_mutex_unlock(&lock);
    return gone;
}
