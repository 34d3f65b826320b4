/* header.c - matrices come and go: their headers, the storage that these share, and what a matrix says of itself. */
#include "drain.h"
#include "dtype.h"
#include "held.h"
#include "matrix.h"
#include "pool.h"
#include <stdlib.h>

/* Headers live in slabs that are never returned. The one freed first is used again first: a stale pointer is found out for as
 * long as can be. */
#define SLAB 64
typedef struct slab {
    struct slab *next;
    duet_matrix header[SLAB];
} slab;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static slab *slabs;
static duet_matrix *oldest_free, **newest_free = &oldest_free;
static uint64_t last_serial;

static void header_put(duet_matrix *m)
{
    m->next_free = NULL;
    *newest_free = m;
    newest_free = &m->next_free;
}

static bool more_headers(void)
{
    slab *new = calloc(1, sizeof *new);
    if (!new) return false;
    new->next = slabs, slabs = new;
    for (int i = 0; i < SLAB; i++) header_put(&new->header[i]);
    return true;
}

static duet_matrix *header_take(uint64_t *serial)
{
    pthread_mutex_lock(&lock);
    duet_matrix *m = oldest_free || more_headers() ? oldest_free : NULL;
    if (m) {
        oldest_free = m->next_free;
        if (!oldest_free) newest_free = &oldest_free;
        *serial = ++last_serial;
    }
    pthread_mutex_unlock(&lock);
    return m;
}

/* Ends a header's life; NULL when it had none. Its storage is then the caller's to release. */
static storage *header_end(duet_matrix *m)
{
    pthread_mutex_lock(&lock);
    storage *b = m->serial ? m->bits : NULL;
    if (b) {
        __atomic_store_n(&m->serial, 0, __ATOMIC_RELAXED);
        m->bits = NULL;
        header_put(m);
    }
    pthread_mutex_unlock(&lock);
    return b;
}

duet_matrix *matrix_share(storage *b, const layout *at, int64_t offset)
{
    uint64_t serial;
    duet_matrix *m = header_take(&serial);
    if (!m) return fail(DUET_NO_MEMORY, "the system refuses %zu bytes for headers of matrices", sizeof(slab)), NULL;
    __atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
    m->at = *at, m->offset = offset, m->bits = b;
    m->count = layout_count(at), m->dense = layout_is_dense(at);
    __atomic_store_n(&m->serial, serial, __ATOMIC_RELEASE);
    return m;
}

static void launch_users(const storage *b)
{
    for (uint64_t held = held_now() & b->users; held; held &= held - 1)
        if (held_uses(__builtin_ctzll(held), b)) (void)held_launch(held & -held);
}

/* An upload may still be reading the host home: that one is waited for. */
static void storage_end(storage *b)
{
    launch_users(b);
    if (b->known) machines[DEVICE]->drop(b);
    if (b->uploader >= 0 && !drain_passed(b->uploader, b->upload)) (void)drain_queue(b->uploader, "a matrix is freed");
    if (!b->wrapped) pool_give(HOST, b->home[HOST], 0);
    pool_give(DEVICE, b->home[DEVICE], b->users);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

static duet_matrix *new_matrix(duet_dtype type, int rank, const int64_t *size, void *host)
{
    layout at;
    layout_dense(&at, type, rank, size);
    storage *b = calloc(1, sizeof *b);
    if (!b) return fail(DUET_NO_MEMORY, "the system refuses %zu bytes for a matrix", sizeof *b), NULL;
    pthread_mutex_init(&b->lock, NULL);
    b->bytes = (size_t)layout_count(&at) * dtypes[type].bytes;
    b->writer = b->uploader = -1, b->stamp = 1;
    b->wrapped = host != NULL, b->home[HOST] = host, b->current = host ? 1 << HOST : 0;
    duet_matrix *m = matrix_share(b, &at, 0);
    if (!m) storage_end(b);
    return m;
}

duet_matrix *duet_new_shape(duet_dtype type, int rank, const int64_t *size)
{
    if (shape_check("duet_new", type, rank, size) != DUET_OK) return NULL;
    return new_matrix(type, rank, size, NULL);
}

duet_matrix *duet_wrap_shape(void *host, duet_dtype type, int rank, const int64_t *size)
{
    if (shape_check("duet_wrap", type, rank, size) != DUET_OK) return NULL;
    if (!host) return fail(DUET_BAD_ARGUMENT, "duet_wrap: the memory is null"), NULL;
    if ((uintptr_t)host % dtypes[type].bytes)
        return fail(DUET_BAD_ARGUMENT, "duet_wrap: %p is not aligned to an element of %s", host, dtypes[type].name), NULL;
    return new_matrix(type, rank, size, host);
}

void duet_free(duet_matrix **m)
{
    if (!m || !*m) return;
    storage *b = header_end(*m);
    if (!b) fail(DUET_BAD_ARGUMENT, "duet_free: the matrix was freed before");
    else if (__atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) == 0) storage_end(b);
    *m = NULL;
}

/* ---- what a matrix says of itself ---- */

static bool lives(const duet_matrix *m) { return m && matrix_alive(m, m->serial); }

duet_status matrix_check(const char *who, const duet_matrix *m)
{
    return lives(m) ? DUET_OK : fail(DUET_BAD_ARGUMENT, "%s: the matrix %s", who, m ? "was freed" : "is null");
}

duet_dtype duet_type(const duet_matrix *m) { return lives(m) ? m->at.type : (duet_dtype)0; }

int duet_rank(const duet_matrix *m) { return lives(m) ? m->at.rank : 0; }

int64_t duet_size(const duet_matrix *m, int axis) { return lives(m) && axis >= 0 && axis < m->at.rank ? m->at.size[axis] : 0; }

int64_t duet_stride(const duet_matrix *m, int axis)
{
    return lives(m) && axis >= 0 && axis < m->at.rank ? m->at.stride[axis] : 0;
}

int64_t duet_count(const duet_matrix *m) { return lives(m) ? m->count : 0; }
