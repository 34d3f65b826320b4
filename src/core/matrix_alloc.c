/* matrix_alloc.c - creates and frees matrices: their headers, and the storage that these share.
 * Also the accessors for type, rank and sizes. */
#include "deferred.h"
#include "device_use.h"
#include "dtype.h"
#include "matrix.h"
#include "min_max.h"
#include "pool.h"
#include "queue_sync.h"
#include "spin_lock.h"
#include "split.h"
#include "storage_state.h"
#include <stdlib.h>
#include <string.h>

/* Headers are allocated in slabs that are never returned to the system. The header that was freed
 * first is reused first, so that a stale pointer is detected for as long as possible. */
#define SLAB 64
typedef struct slab {
    struct slab *next;
    duet_matrix header[SLAB];
} slab;

static spin_lock lock; /* of all variables below */
static slab *slabs;
static duet_matrix *oldest_free, **newest_free = &oldest_free;
static uint64_t last_serial;

static void header_put(duet_matrix *m)
{
    m->next = NULL;
    *newest_free = m;
    newest_free = &m->next;
}

static bool more_headers(void)
{
    slab *new = calloc(1, sizeof *new);
    if (!new) return false;
    new->next = slabs;
    slabs = new;
    for (int i = 0; i < SLAB; i++) header_put(&new->header[i]);
    return true;
}

static duet_matrix *header_take(uint64_t *serial)
{
    spin_take(&lock);
    duet_matrix *m = oldest_free || more_headers() ? oldest_free : NULL;
    if (m) {
        oldest_free = m->next;
        if (!oldest_free) newest_free = &oldest_free;
        *serial = ++last_serial;
    }
    spin_give(&lock);
    return m;
}

/* Frees a header and returns its storage, whose reference the caller must drop. NULL if the header
 * was free already. */
static storage *header_end(duet_matrix *m)
{
    spin_take(&lock);
    storage *b = m->serial ? m->storage : NULL;
    if (b) {
        __atomic_store_n(&m->serial, 0, __ATOMIC_RELAXED);
        m->storage = NULL;
        header_put(m);
    }
    spin_give(&lock);
    return b;
}

/* A header that is not in use yet, for a part of b that starts at `offset`. The caller sets the layout, and
 * then calls header_begin. */
static duet_matrix *header_for(storage *b, int64_t offset, uint64_t *serial)
{
    duet_matrix *m = header_take(serial);
    if (!m) {
        fail(DUET_NO_MEMORY, "the system could not allocate %zu bytes for matrix headers", sizeof(slab));
        return NULL;
    }
    __atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
    m->offset = offset;
    m->storage = b;
    m->constant = b->constant;
    __atomic_store_n(&m->site, NULL, __ATOMIC_RELAXED);
    return m;
}

static duet_matrix *header_begin(duet_matrix *m, uint64_t serial)
{
    __atomic_store_n(&m->serial, serial, __ATOMIC_RELEASE);
    return m;
}

duet_matrix *matrix_share(storage *b, const layout *at, int64_t offset)
{
    uint64_t serial;
    duet_matrix *m = header_for(b, offset, &serial);
    if (!m) return NULL;
    m->at = *at;
    m->count = layout_count(at);
    m->dense = layout_is_dense(at);
    m->repeats = layout_repeats(at);
    if (!b->id) b->id = serial;
    return header_begin(m, serial);
}

/* ---- lenders ---- */

typedef struct lender {
    struct lender *next; /* in the list of those that are still to be called */
    void (*release)(void *context);
    void *context;
} lender;

static lender *ended_lenders; /* under `lock` */

static void lender_call(lender *l)
{
    if (!l) return;
    l->release(l->context);
    free(l);
}

static void lender_call_later(lender *l)
{
    if (!l) return;
    spin_take(&lock);
    l->next = ended_lenders;
    ended_lenders = l;
    spin_give(&lock);
}

void lenders_call(void)
{
    if (likely(!__atomic_load_n(&ended_lenders, __ATOMIC_RELAXED))) return;
    spin_take(&lock);
    lender *list = ended_lenders;
    ended_lenders = NULL;
    spin_give(&lock);
    for (lender *next; list; list = next) {
        next = list->next;
        lender_call(list);
    }
}

/* ---- storages ---- */

static void launch_users(const storage *b, const buffer_usage *on)
{
    for (uint64_t deferred = deferred_queues_now() & on->users; deferred; deferred &= deferred - 1)
        if (deferred_uses(__builtin_ctzll(deferred), b)) deferred_launch_or_lose(deferred & -deferred);
}

/* Work of others may still use a buffer that they had, on streams that are not known here. Work of this
 * library may still use a buffer of others. Both are waited for. */
static __attribute__((cold, noinline)) void foreign_uses_end(const storage *b, int device, uint64_t users)
{
    error_text before;
    error_keep(&before);
    const bool drains = b->exported >> device & 1 && device_machine(device)->drain;
    duet_status st = DUET_OK;
    if (drains) st = device_machine(device)->drain(device);
    if (!drains || st != DUET_OK)
        for (; users; users &= users - 1)
            (void)queue_wait(device, __builtin_ctzll(users), "memory of others is no longer used");
    error_put_back(&before);
}

/* Ends the uses of the buffer on a GPU, and its upload, which may still read the host's buffer. If the buffer
 * was freed for others, the upload and cached data may be left. */
static void buffer_end(storage *b, int device)
{
    const buffer_usage *on = storage_usage(b, device);
    const bool packed = buffer_has_packed(on);
    if (!b->buffer[device] && on->uploader < 0 && !packed) return;
    launch_users(b, on);
    if (packed) device_machine(device)->drop(device, b);
    if (on->uploader >= 0 && !queue_sync_passed(device, on->uploader, on->upload))
        (void)queue_wait(device, on->uploader, "a matrix is freed");
    if (unlikely((b->wrapped | b->exported) >> device & 1)) foreign_uses_end(b, device, on->users);
    if (!storage_is_wrapped(b, device)) pool_give(device, b->buffer[device], on->users);
}

/* Frees all but the lender, and returns it. */
static lender *storage_end(storage *b)
{
    lender *l = b->lender;
    const int end = b->others ? DEVICES_MAX : DEFAULT_GPU + 1;
    for (int d = DEFAULT_GPU; d < end; d++) buffer_end(b, d);
    if (!storage_is_wrapped(b, HOST)) pool_give(HOST, b->buffer[HOST], 0);
    pthread_mutex_destroy(&b->lock);
    free(b->others);
    if (unlikely(b->lost_parts != NULL)) storage_forget_lost(b);
    free(b);
    return l;
}

/* host: the caller's memory, from the element with the lowest address; or NULL. */
static storage *storage_new(size_t bytes, void *host)
{
    storage *b = malloc(sizeof *b); /* not calloc: glibc's does not use the cache of the thread */
    if (!b) {
        fail(DUET_NO_MEMORY, "the system could not allocate %zu bytes for a matrix header", sizeof *b);
        return NULL;
    }
    /* member by member: compilers fill a large struct with an instruction that takes 10 ns to start */
    b->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    b->refs = 0;
    b->bytes = bytes;
    b->state = host ? 1 << HOST : 0;
    b->came = 0;
    b->pinned = b->seen = b->lent = b->asked = false;
    b->properties = 0;
    b->csr_rows = b->csr_columns = -1;
    b->lost_parts = NULL;
    b->wrapped = host ? 1 << HOST : 0;
    b->exported = 0;
    b->constant = false;
    b->loans = 0;
    b->lender = NULL;
    b->split = NULL;
    b->site = NULL;
    b->copies = 0;
    b->accrued_cost = 0;
    b->id = b->last_use = b->tried = 0;
    memset(b->buffer, 0, sizeof b->buffer);
    b->buffer[HOST] = host;
    b->first = buffer_unused;
    b->others = NULL;
    return b;
}

/* NULL: nothing to call. *made: no memory. */
static lender *lender_new(const foreign_memory *f, bool *made)
{
    lender *l = f->release ? malloc(sizeof *l) : NULL;
    *made = l || !f->release;
    if (l) *l = (lender){ NULL, f->release, f->context };
    if (!*made)
        fail(DUET_NO_MEMORY, "the system could not allocate %zu bytes for a matrix header", sizeof *l);
    return l;
}

/* Takes the buffer. This thread's queue counts as its writer, so that work of other queues runs after what
 * this queue waits for. */
static duet_status take_buffer(storage *b, int device, void *first)
{
    if (device > DEFAULT_GPU) TRY(storage_add_other_usages(b));
    b->buffer[device] = first;
    b->wrapped = (uint16_t)(1u << device);
    b->state = (uint16_t)(1u << device);
    if (device != HOST) buffer_wrote(storage_usage(b, device), thread_get()->queue);
    return DUET_OK;
}

duet_matrix *matrix_of_memory(const layout *at, const foreign_memory *f)
{
    int64_t low, high;
    bool made;
    layout_span(at, &low, &high);
    const int64_t each = (int64_t)dtypes[at->type].bytes;
    lender *l = lender_new(f, &made);
    storage *b = made ? storage_new((size_t)((high - low) * each), NULL) : NULL;
    duet_matrix *m = NULL;
    if (b) {
        b->constant = f->constant;
        if (high == low || take_buffer(b, f->device, (char *)f->first + low * each) == DUET_OK)
            m = matrix_share(b, at, -low);
    }
    if (m) b->lender = l;
    else {
        if (b) (void)storage_end(b);
        free(l);
    }
    return m;
}

/* The layout is written to the header at once: copying it would take as long as all the rest. */
static duet_matrix *dense_matrix(duet_dtype type, int rank, const int64_t *size, void *host)
{
    uint64_t serial;
    storage *b = storage_new(0, host);
    duet_matrix *m = b ? header_for(b, 0, &serial) : NULL;
    if (!m) {
        if (b) storage_end(b);
        return NULL;
    }
    layout_dense(&m->at, type, rank, size);
    m->count = layout_count(&m->at);
    m->dense = true;
    m->repeats = false;
    b->bytes = (size_t)m->count * dtypes[type].bytes;
    b->id = serial;
    return header_begin(m, serial);
}

duet_matrix *matrix_new(const char *who, duet_dtype type, int rank, const int64_t *size)
{
    if (shape_check(who, type, rank, size) != DUET_OK) return NULL;
    return dense_matrix(type, rank, size, NULL);
}

static void end_split(void *context)
{
    split *s = context;
    s->end(s);
}

duet_matrix *matrix_of_split(split *s)
{
    lender *l = malloc(sizeof *l);
    duet_matrix *m = l ? matrix_new("duet_new_split", s->type, s->whole.rank, s->whole.size) : NULL;
    if (!m) {
        free(l);
        return NULL;
    }
    *l = (lender){ NULL, end_split, s };
    m->storage->split = s;
    m->storage->lender = l;
    return m;
}

duet_matrix *(duet_new_shape)(duet_dtype type, int rank, const int64_t *size)
{
    return matrix_new("duet_new", type, rank, size);
}

void matrix_exchange(duet_matrix *m, duet_matrix *other)
{
    spin_take(&lock);
    duet_matrix before = *m;
    m->at = other->at;
    m->offset = other->offset;
    m->count = other->count;
    m->dense = other->dense;
    m->repeats = other->repeats;
    m->constant = other->constant;
    m->storage = other->storage;
    other->at = before.at;
    other->offset = before.offset;
    other->count = before.count;
    other->dense = before.dense;
    other->repeats = before.repeats;
    other->constant = before.constant;
    other->storage = before.storage;
    __atomic_store_n(&m->serial, ++last_serial, __ATOMIC_RELEASE);
    spin_give(&lock);
}

duet_matrix *matrix_wrap_dense(void *host, duet_dtype type, int rank, const int64_t *size)
{
    return dense_matrix(type, rank, size, host);
}

/* ---- the usage of buffers on devices after the default GPU ---- */

const buffer_usage buffer_unused = { .stamp = 1, .writer = -1, .uploader = -1 };

buffer_usage *storage_other_usage(const storage *b, int device)
{
    buffer_usage *others = __atomic_load_n(&b->others, __ATOMIC_ACQUIRE);
    return others ? &others[device - DEFAULT_GPU - 1] : (buffer_usage *)&buffer_unused;
}

/* ---- free ---- */

/* Does it have a buffer on a GPU, or what is left of one that was freed for others? */
static bool is_on_gpu(const storage *b)
{
    return b && (storage_has_buffer(b, DEFAULT_GPU) || __atomic_load_n(&b->others, __ATOMIC_ACQUIRE) ||
                 __atomic_load_n(&b->first.uploader, __ATOMIC_ACQUIRE) >= 0 || buffer_has_packed(&b->first));
}

static lender *drop_reference(storage *b)
{
    return __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) == 0 ? storage_end(b) : NULL;
}

/* The caller may hold locks, so the lender is called later. */
void storage_release(storage *b) { lender_call_later(drop_reference(b)); }

/* If another thread recovers GPUs, it must find either the header or no buffer. */
static lender *free_matrix(duet_matrix *m)
{
    USE_GPUS_IF(is_on_gpu(m->storage));
    storage *b = header_end(m);
    if (b) return drop_reference(b);
    fail(DUET_BAD_ARGUMENT, "duet_free: the matrix was already freed");
    return NULL;
}

void(duet_free)(duet_matrix **m)
{
    if (!m || !*m) return;
    lender_call(free_matrix(*m));
    *m = NULL;
    lenders_call();
}

/* ---- after the loss of GPUs ---- */

/* Storages with neither a buffer on a GPU nor pinned memory are not affected. */
static bool is_affected(const duet_matrix *m)
{
    return __atomic_load_n(&m->serial, __ATOMIC_ACQUIRE) &&
           (is_on_gpu(m->storage) || storage_is_pinned(m->storage));
}

/* Copies the header, with a reference to its storage. */
static bool copy_affected(const duet_matrix *m, duet_matrix *copy)
{
    spin_take(&lock);
    const bool is = is_affected(m);
    if (is) {
        __atomic_add_fetch(&m->storage->refs, 1, __ATOMIC_RELAXED);
        *copy = *m;
    }
    spin_give(&lock);
    return is;
}

void matrices_drop_devices(unsigned which)
{
    duet_matrix m;
    spin_take(&lock);
    const slab *first = slabs;
    spin_give(&lock);
    for (const slab *s = first; s; s = s->next)
        for (int i = 0; i < SLAB; i++) {
            if (!copy_affected(&s->header[i], &m)) continue;
            matrix_drop_devices(&m, which);
            storage_release(m.storage);
        }
}

/* ---- accessors ---- */

duet_status matrix_check(const char *who, const duet_matrix *m)
{
    if (matrix_lives(m)) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "%s: the matrix %s", who, m ? "was freed" : "must not be NULL");
}

char *matrix_constant_text(const duet_matrix *m, char text[CONSTANT_TEXT])
{
    const char *of_storage = m->storage->site, *own = __atomic_load_n(&m->site, __ATOMIC_RELAXED),
               *site = of_storage ? of_storage : own;
    snprintf(text, CONSTANT_TEXT,
             "the memory of the matrix that was created at %s must not be written (duet_wrap_const, a "
             "read-only DLPack tensor, or the pattern of a sparse matrix)",
             site ? site : "an unknown place");
    return text;
}

duet_status matrix_not_writable(const char *who, const duet_matrix *m)
{
    char text[SHAPE_TEXT], why[CONSTANT_TEXT];
    shape_text(text, m->at.type, m->at.rank, m->at.size);
    if (m->constant) return fail(DUET_BAD_ARGUMENT, "%s(%s): %s", who, text, matrix_constant_text(m, why));
    return fail(DUET_BAD_ARGUMENT,
                "%s(%s): a matrix that repeats elements (stride 0 or axes that overlap, as in a broadcast "
                "view) must not be written",
                who, text);
}

duet_dtype duet_type(const duet_matrix *m) { return matrix_lives(m) ? m->at.type : (duet_dtype)0; }

int duet_rank(const duet_matrix *m) { return matrix_lives(m) ? m->at.rank : 0; }

int64_t duet_size(const duet_matrix *m, int axis)
{
    return matrix_lives(m) && axis >= 0 && axis < m->at.rank ? m->at.size[axis] : 0;
}

int64_t duet_stride(const duet_matrix *m, int axis)
{
    return matrix_lives(m) && axis >= 0 && axis < m->at.rank ? m->at.stride[axis] : 0;
}

int64_t duet_count(const duet_matrix *m) { return matrix_lives(m) ? m->count : 0; }

/* ---- live matrices ---- */

void duet_created_at(duet_matrix *m, const char *site)
{
    if (!matrix_lives(m)) return;
    __atomic_store_n(&m->site, site, __ATOMIC_RELAXED);
    if (unlikely(m->storage->constant) && m->storage->id == m->serial) m->storage->site = site;
}

/* What is printed of a matrix, copied while `lock` is held. */
typedef struct live_entry {
    uint64_t serial;
    layout at;
    const char *site;
    const storage *storage;
    size_t bytes;
    int refs;
} live_entry;

static int64_t copy_live(live_entry *to, int64_t capacity)
{
    int64_t n = 0;
    spin_take(&lock);
    for (const slab *s = slabs; s; s = s->next)
        for (int i = 0; i < SLAB; i++) {
            const duet_matrix *m = &s->header[i];
            if (!__atomic_load_n(&m->serial, __ATOMIC_ACQUIRE)) continue;
            if (n < capacity)
                to[n] = (live_entry){ m->serial,
                                      m->at,
                                      __atomic_load_n(&m->site, __ATOMIC_RELAXED),
                                      m->storage,
                                      m->storage->bytes,
                                      __atomic_load_n(&m->storage->refs, __ATOMIC_RELAXED) };
            n++;
        }
    spin_give(&lock);
    return n;
}

static bool is_larger(const matrix_owner *a, const matrix_owner *b)
{
    return a->total != b->total ? a->total > b->total : a->serial < b->serial;
}

/* Puts an owner among the `count` largest ones. Of several matrices that share a storage, it keeps the
 * first. Returns their number. */
static int add_owner(matrix_owner *list, int count, const matrix_owner *o)
{
    int i = 0, end = count < OWNERS ? count : OWNERS - 1;
    while (i < count && list[i].storage != o->storage) i++;
    if (i < count) {
        if (list[i].serial > o->serial) list[i] = *o;
        return count;
    }
    if (count == OWNERS && !is_larger(o, &list[end])) return count;
    for (; end > 0 && is_larger(o, &list[end - 1]); end--) list[end] = list[end - 1];
    list[end] = *o;
    return count < OWNERS ? count + 1 : OWNERS;
}

/* device: -1 for all. */
static matrix_owner owner_of(const duet_matrix *m, int device)
{
    matrix_owner o = { m->serial,
                       m->at,
                       __atomic_load_n(&m->site, __ATOMIC_RELAXED),
                       m->storage,
                       __atomic_load_n(&m->storage->refs, __ATOMIC_RELAXED),
                       { 0 },
                       0 };
    for (int d = 0; d < DEVICES_MAX; d++)
        if ((device < 0 || d == device) && storage_has_buffer(m->storage, d) &&
            !storage_is_wrapped(m->storage, d))
            o.total += o.bytes[d] = m->storage->bytes;
    return o;
}

int matrix_owners(int device, matrix_owner list[OWNERS])
{
    int count = 0;
    spin_take(&lock);
    for (const slab *s = slabs; s; s = s->next)
        for (int i = 0; i < SLAB; i++) {
            if (!__atomic_load_n(&s->header[i].serial, __ATOMIC_ACQUIRE)) continue;
            const matrix_owner o = owner_of(&s->header[i], device);
            if (o.total) count = add_owner(list, count, &o);
        }
    spin_give(&lock);
    return count;
}

bool matrix_find_best(matrix_score *score, int device, duet_matrix *best)
{
    double most = 0;
    const duet_matrix *found = NULL;
    spin_take(&lock);
    for (const slab *s = slabs; s; s = s->next)
        for (int i = 0; i < SLAB; i++) {
            const duet_matrix *m = &s->header[i];
            if (!__atomic_load_n(&m->serial, __ATOMIC_ACQUIRE) || !m->storage) continue;
            const double x = storage_has_buffer(m->storage, device) ? score(m->storage, device) : 0;
            if (!(x > most)) continue;
            most = x;
            found = m;
        }
    if (found) {
        *best = *found;
        __atomic_add_fetch(&found->storage->refs, 1, __ATOMIC_RELAXED);
    }
    spin_give(&lock);
    return found != NULL;
}

static int by_age(const void *a, const void *b)
{
    const uint64_t x = ((const live_entry *)a)->serial, y = ((const live_entry *)b)->serial;
    return (x > y) - (x < y);
}

static void print_live(FILE *out, const live_entry *e)
{
    char text[SHAPE_TEXT];
    shape_text(text, e->at.type, e->at.rank, e->at.size);
    fprintf(out, "%s: %s, ", e->site ? e->site : "unknown place", text);
    if (e->refs > 1) fprintf(out, "one of %d matrices that share %zu bytes\n", e->refs, e->bytes);
    else fprintf(out, "%zu bytes\n", e->bytes);
}

int64_t duet_live(FILE *out)
{
    int64_t n = copy_live(NULL, 0), capacity = n + SLAB;
    if (!out) return n;
    live_entry *list = malloc((size_t)capacity * sizeof *list);
    if (!list) return n;
    n = copy_live(list, capacity);
    const int64_t listed = smaller(n, capacity);
    qsort(list, (size_t)listed, sizeof *list, by_age);
    for (int64_t i = 0; i < listed; i++) print_live(out, &list[i]);
    free(list);
    return n;
}
