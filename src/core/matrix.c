/* matrix.c - gives a device access to the elements of a matrix, and records what was written. */
#include "deferred.h"
#include "device_use.h"
#include "eviction.h"
#include "pool.h"
#include "storage_state.h"

bool matrix_fills(const duet_matrix *m)
{
    return (size_t)m->count * dtypes[m->at.type].bytes == m->storage->bytes && !m->repeats;
}

/* ---- opening; under the lock ---- */

/* If the elements would have to come from a GPU that was lost, they are lost. Returns what has
 * happened to that GPU, or NULL. */
static const char *lose_if_unreachable(const duet_matrix *m, int device)
{
    const unsigned valid = storage_valid(m->storage);
    if (likely(!valid || valid & (1u << HOST | 1u << device))) return NULL;
    const char *why = device_absent(storage_gpu_to_copy_from(valid));
    if (likely(!why)) return NULL;
    const duet_matrix all = storage_elements(m);
    lost_add(&all);
    return why;
}

/* also_lost: even if elements that are read are lost. block: as for allocate. */
static duet_status open_locked(const duet_matrix *m, int device, enum use use, int queue, bool also_lost,
                               void **block)
{
    storage *b = m->storage;
    const bool fills = matrix_fills(m);
    const char *why = fills && use == OVERWRITE ? NULL : lose_if_unreachable(m, device);
    const bool overwrites = use == OVERWRITE && (fills || b->lost_parts);
    if (unlikely(storage_lost(b)) && !overwrites && !also_lost && lost_overlaps(m)) return lost_error(m, why);
    if (use == OVERWRITE && !fills) use = UPDATE;
    TRY(storage_allocate(b, device, queue, block));
    if (use != OVERWRITE) TRY(storage_bring(m, device, queue));
    TRY(storage_join_users(b, device, use, queue));
    if (use == READ) set_valid(b, storage_valid(b) | 1u << device);
    else if (device == HOST && storage_valid(b) & ~(1u << HOST)) set_flag(b, HOST_WRITER, true);
    return DUET_OK;
}

/* ---- deferred work that must be launched before an access; without the lock ---- */

static uint64_t writers(const storage *b, unsigned valid)
{
    uint64_t queues = 0;
    for (valid &= ~(1u << HOST); valid; valid &= valid - 1) {
        const int writer = buffer_writer(storage_usage(b, __builtin_ctz(valid)));
        if (writer >= 0) queues |= bit(writer);
    }
    return queues;
}

/* The queues whose deferred work must be launched first. For this queue, that is work which an
 * upload, a copy or zeros would overtake although it uses the buffer. */
static uint64_t before(const storage *b, int device, enum use use, int queue, bool moves)
{
    const unsigned valid = storage_valid(b);
    if (device == HOST) return moves ? writers(b, valid) : 0;
    const uint64_t users = buffer_users(storage_usage(b, device)), own = bit(queue);
    if (moves) return (deferred_uses(queue, b) ? users | own : users & ~own) | writers(b, valid);
    if (use != READ) return users & ~own;
    if (users & own) return 0;
    return writers(b, 1u << device);
}

/* A download blocks the host until the queue is empty. So all work deferred for
 * this queue is launched first, whether or not it uses the buffer. */
static duet_status launch_before(const duet_matrix *m, int device, enum use use, int queue)
{
    const storage *b = m->storage;
    const unsigned valid = storage_valid(b);
    const bool moves = !(use == OVERWRITE && matrix_fills(m)) && !(valid >> device & 1);
    if (moves && valid && (device == HOST || !(valid >> HOST & 1))) TRY(deferred_flush());
    if (likely(deferred_queues_now() == 0)) return DUET_OK;
    return deferred_launch(before(b, device, use, queue, moves));
}

/* Does no GPU use the storage? A writer on the host then needs no lock, because it is the only one to use
 * the storage. */
static bool is_of_host(const storage *b)
{
    return !__atomic_load_n(&b->buffer[DEFAULT_GPU], __ATOMIC_ACQUIRE) &&
           __atomic_load_n(&b->first.uploader, __ATOMIC_ACQUIRE) < 0 &&
           !__atomic_load_n(&b->others, __ATOMIC_ACQUIRE);
}

/* Memory is allocated before the lock is taken, since this may free buffers of other matrices. If another
 * thread frees the buffer of m in between, that is repeated. */
static duet_status open_on_gpu(const duet_matrix *m, int device, enum use use, int queue, bool also_lost)
{
    storage *b = m->storage;
    duet_status st = DUET_OK;
    bool again;
    do {
        void *block = NULL;
        const bool takes = !storage_has_buffer(b, device);
        if (takes) TRY(memory_take(MEMORY_MATRIX, device, b->bytes, queue, &block));
        pthread_mutex_lock(&b->lock);
        again = !takes && !b->buffer[device];
        if (!again) st = open_locked(m, device, use, queue, also_lost, &block);
        pthread_mutex_unlock(&b->lock);
        pool_give(device, block, bit(queue));
    } while (again);
    return st;
}

static inline duet_status bring_matrix(const duet_matrix *m, int device, enum use use, int queue,
                                       bool also_lost)
{
    if (device == HOST && use == OVERWRITE && is_of_host(m->storage) && matrix_fills(m))
        return storage_allocate(m->storage, HOST, queue, NULL);
    USE_GPUS;
    TRY(launch_before(m, device, use, queue));
    if (device != HOST) return open_on_gpu(m, device, use, queue, also_lost);
    pthread_mutex_lock(&m->storage->lock);
    const duet_status st = open_locked(m, device, use, queue, also_lost, NULL);
    pthread_mutex_unlock(&m->storage->lock);
    return st;
}

duet_status matrix_bring_unsplit(const duet_matrix *m, int device, enum use use, int queue)
{
    return bring_matrix(m, device, use, queue, false);
}

duet_status matrix_bring(const duet_matrix *m, int device, enum use use, int queue)
{
    if (unlikely(m->storage->split != NULL)) return split_bring(m, device, use, queue);
    return bring_matrix(m, device, use, queue, false);
}

duet_status matrix_bring_lost(const duet_matrix *m, int device, enum use use, int queue)
{
    return bring_matrix(m, device, use, queue, true);
}

/* Also ends the write on the host, if it is one. */
static void wrote_elements(const duet_matrix *m, int device)
{
    storage *b = m->storage;
    if (unlikely(storage_lost(b))) lost_remove_written(b, m);
    set_state(b, 1u << device | (b->state & SOME_LOST));
}

void matrix_has_written(const duet_matrix *m, int device, int queue)
{
    storage *b = m->storage;
    if (device == HOST && is_of_host(b)) {
        wrote_elements(m, HOST);
        return;
    }
    pthread_mutex_lock(&b->lock);
    if (device != HOST) buffer_wrote(storage_usage(b, device), queue);
    wrote_elements(m, device);
    pthread_mutex_unlock(&b->lock);
}

/* ---- writes that failed ---- */

/* Those buffers of `valid` that were not freed since. */
static unsigned buffers_left(const storage *b, unsigned valid)
{
    for (int d = HOST; d < DEVICES_MAX; d++)
        if (!storage_has_buffer(b, d)) valid &= ~(1u << d);
    return valid;
}

/* From now on the buffers of `valid` that are left hold the elements. */
static void go_back_to(storage *b, unsigned valid)
{
    set_valid(b, buffers_left(b, valid));
    storage_stamp_all(b);
}

void matrix_write_failed(const duet_matrix *m, int device)
{
    storage *b = m->storage;
    const unsigned here = 1u << device;
    pthread_mutex_lock(&b->lock);
    if (storage_valid(b) == here) lost_add(m);
    else go_back_to(b, storage_valid(b) & ~here);
    pthread_mutex_unlock(&b->lock);
}

void matrix_end_write(const duet_matrix *m)
{
    storage *b = m->storage;
    if (!(storage_state(b) & HOST_WRITER)) return;
    pthread_mutex_lock(&b->lock);
    set_flag(b, HOST_WRITER, false);
    pthread_mutex_unlock(&b->lock);
}

/* Were there elements, in buffers that are all freed by now? */
static bool all_were_freed(const storage *b, unsigned valid) { return valid && !buffers_left(b, valid); }

/* Buffers on other devices have not changed since. If there was none, all elements were zero. */
void matrix_deferred_write_failed(const duet_matrix *m, int device, unsigned before,
                                  enum deferred_failure how)
{
    storage *b = m->storage;
    const unsigned here = 1u << device;
    pthread_mutex_lock(&b->lock);
    if (storage_valid(b) == here) {
        if (how == NOT_REPORTED || (how == MAY_HAVE_RUN && before == here) || all_were_freed(b, before))
            lost_add(m);
        else go_back_to(b, how == MAY_HAVE_RUN ? before & ~here : before);
    }
    pthread_mutex_unlock(&b->lock);
}
