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

static void launch_users(const storage *b, const buffer_usage *on)
{
    for (uint64_t deferred = deferred_queues_now() & on->users; deferred; deferred &= deferred - 1)
        if (deferred_uses(__builtin_ctzll(deferred), b)) deferred_launch_or_lose(deferred & -deferred);
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
    pool_give(device, b->buffer[device], on->users);
}

static void storage_end(storage *b)
{
    const int end = b->others ? DEVICES_MAX : DEFAULT_GPU + 1;
    for (int d = DEFAULT_GPU; d < end; d++) buffer_end(b, d);
    if (!b->wrapped) pool_give(HOST, b->buffer[HOST], 0);
    pthread_mutex_destroy(&b->lock);
    free(b->others);
    if (unlikely(b->lost_parts != NULL)) storage_forget_lost(b);
    free(b);
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
    b->lost_parts = NULL;
    b->wrapped = host != NULL;
    b->copies = 0;
    b->accrued_cost = 0;
    b->id = b->last_use = b->tried = 0;
    memset(b->buffer, 0, sizeof b->buffer);
    b->buffer[HOST] = host;
    b->first = buffer_unused;
    b->others = NULL;
    return b;
}

static duet_matrix *strided_matrix(const layout *at, void *host)
{
    int64_t low, high;
    layout_span(at, &low, &high);
    storage *b = storage_new((size_t)(high - low) * dtypes[at->type].bytes, host);
    duet_matrix *m = b ? matrix_share(b, at, -low) : NULL;
    if (b && !m) storage_end(b);
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

duet_matrix *(duet_new_shape)(duet_dtype type, int rank, const int64_t *size)
{
    return matrix_new("duet_new", type, rank, size);
}

/* ---- the caller's memory ---- */

static duet_status check_memory(const char *who, const void *host, duet_dtype type)
{
    if (!host) return fail(DUET_BAD_ARGUMENT, "%s: the pointer must not be NULL", who);
    if ((uintptr_t)host % dtypes[dtype_part(type)].bytes == 0) return DUET_OK; /* as C aligns them */
    return fail(DUET_BAD_ARGUMENT, "%s: the pointer (%p) must be aligned to %s elements", who, host,
                dtypes[type].name);
}

duet_matrix *matrix_wrap(const char *who, void *host, duet_dtype type, int rank, const int64_t *size)
{
    if (shape_check(who, type, rank, size) || check_memory(who, host, type)) return NULL;
    return dense_matrix(type, rank, size, host);
}

duet_matrix *(duet_wrap_shape)(void *host, duet_dtype type, int rank, const int64_t *size)
{
    return matrix_wrap("duet_wrap", host, type, rank, size);
}

/* The axes with more than one element, by ascending size of stride. */
static int axes_by_stride(const layout *l, int axis[DUET_RANK_MAX])
{
    int n = 0;
    for (int a = 0; a < l->rank; a++) {
        int i = n;
        if (l->size[a] <= 1 || l->stride[a] == 0) continue;
        for (; i > 0 && llabs(l->stride[axis[i - 1]]) > llabs(l->stride[a]); i--) axis[i] = axis[i - 1];
        axis[i] = a;
        n++;
    }
    return n;
}

/* The size in bytes must not overflow. Axes may overlap. */
static duet_status check_strides(const char *who, const layout *l)
{
    int axis[DUET_RANK_MAX];
    char text[SHAPE_TEXT];
    int64_t reach = 0, along;
    const int64_t most = PTRDIFF_MAX / 2 / (int64_t)dtypes[l->type].bytes;
    for (int a = 0; a < l->rank; a++)
        if (l->stride[a] > most || l->stride[a] < -most)
            return fail(DUET_BAD_SHAPE, "%s: the stride of axis %d overflows", who, a);
    const int n = layout_count(l) ? axes_by_stride(l, axis) : 0;
    for (int i = 0; i < n; i++) {
        const int64_t stride = llabs(l->stride[axis[i]]);
        if (__builtin_mul_overflow(l->size[axis[i]] - 1, stride, &along) || along > most - 1 - reach)
            return fail(DUET_BAD_SHAPE, "%s(%s): the number of bytes overflows", who,
                        shape_text(text, l->type, l->rank, l->size));
        reach += along;
    }
    return DUET_OK;
}

static duet_matrix *wrap(const char *who, void *first, duet_dtype type, int rank, const int64_t *size,
                         const int64_t *stride)
{
    layout at = { .type = type, .rank = rank };
    int64_t low, high;
    if (shape_check(who, type, rank, size) || check_memory(who, first, type)) return NULL;
    if (rank && !stride) {
        fail(DUET_BAD_ARGUMENT, "%s: stride must not be NULL", who);
        return NULL;
    }
    for (int a = 0; a < rank; a++) {
        at.size[a] = size[a];
        at.stride[a] = stride[a];
    }
    if (check_strides(who, &at)) return NULL;
    layout_span(&at, &low, &high);
    return strided_matrix(&at, (char *)first + low * (int64_t)dtypes[type].bytes);
}

duet_matrix *(duet_wrap_strided)(void *first, duet_dtype type, int rank, const int64_t *size,
                                 const int64_t *stride)
{
    return wrap("duet_wrap_strided", first, type, rank, size, stride);
}

duet_matrix *(duet_wrap_columns_shape)(void *host, duet_dtype type, int rank, const int64_t *size)
{
    int64_t stride[DUET_RANK_MAX], next = 1;
    if (shape_check("duet_wrap_columns", type, rank, size)) return NULL;
    for (int a = 0; a < rank; a++) {
        stride[a] = next;
        next *= larger(size[a], 1);
    }
    return wrap("duet_wrap_columns", host, type, rank, size, stride);
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

void storage_release(storage *b)
{
    if (__atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) == 0) storage_end(b);
}

/* If another thread recovers GPUs, it must find either the header or no buffer. */
void(duet_free)(duet_matrix **m)
{
    if (!m || !*m) return;
    USE_GPUS_IF(is_on_gpu((*m)->storage));
    storage *b = header_end(*m);
    if (!b) fail(DUET_BAD_ARGUMENT, "duet_free: the matrix was already freed");
    else storage_release(b);
    *m = NULL;
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

static bool lives(const duet_matrix *m) { return m && __atomic_load_n(&m->serial, __ATOMIC_RELAXED) != 0; }

duet_status matrix_check(const char *who, const duet_matrix *m)
{
    if (lives(m)) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "%s: the matrix %s", who, m ? "was freed" : "must not be NULL");
}

duet_status matrix_repeats(const char *who, const duet_matrix *m)
{
    char text[SHAPE_TEXT];
    return fail(DUET_BAD_ARGUMENT,
                "%s(%s): a matrix that repeats elements (stride 0 or axes that overlap, as in a broadcast "
                "view) must not be written",
                who, shape_text(text, m->at.type, m->at.rank, m->at.size));
}

duet_dtype duet_type(const duet_matrix *m) { return lives(m) ? m->at.type : (duet_dtype)0; }

int duet_rank(const duet_matrix *m) { return lives(m) ? m->at.rank : 0; }

int64_t duet_size(const duet_matrix *m, int axis)
{
    return lives(m) && axis >= 0 && axis < m->at.rank ? m->at.size[axis] : 0;
}

int64_t duet_stride(const duet_matrix *m, int axis)
{
    return lives(m) && axis >= 0 && axis < m->at.rank ? m->at.stride[axis] : 0;
}

int64_t duet_count(const duet_matrix *m) { return lives(m) ? m->count : 0; }

/* ---- live matrices ---- */

void duet_created_at(duet_matrix *m, const char *site)
{
    if (lives(m)) __atomic_store_n(&m->site, site, __ATOMIC_RELAXED);
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
            !(d == HOST && m->storage->wrapped))
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
