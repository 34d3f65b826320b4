/* free_buffers.c - frees the buffers of a storage on GPUs: because a GPU was lost, or because its memory is
 * needed for others. */
#include "device_use.h"
#include "eviction.h"
#include "pool.h"
#include "queue_sync.h"
#include "storage_state.h"
#include "trace.h"
#include "transfers.h"

/* ---- after the loss of GPUs ---- */

static void drop_buffer(storage *b, int device)
{
    buffer_usage *on = storage_usage(b, device);
    if (on->packed) device_machine(device)->drop(device, b);
    set_users(on, 0);
    set_writer(on, -1);
    buffer_stamp_anew(on);
}

/* The pool forgets the memory. Foreign memory was lost with the GPU. Even without a buffer there may be an
 * upload, to a buffer that was freed for another matrix. If a host writer finds neither, it takes no lock. */
static void forget_buffer(storage *b, int device)
{
    buffer_usage *on = storage_usage(b, device);
    if (on->uploader >= 0) __atomic_store_n(&on->uploader, -1, __ATOMIC_RELEASE);
    __atomic_store_n(&b->wrapped, (uint16_t)(b->wrapped & ~(1u << device)), __ATOMIC_RELAXED);
    __atomic_store_n(&b->buffer[device], NULL, __ATOMIC_RELEASE);
}

/* Pointers that the user has to buffers on other GPUs stay valid. */
static void end_loans(storage *b, unsigned which)
{
    bool lent = false;
    for (int d = DEFAULT_GPU; d < DEVICES_MAX && b->lent; d++)
        lent |= !(which >> d & 1) && storage_has_buffer(b, d);
    __atomic_store_n(&b->lent, lent, __ATOMIC_RELAXED);
}

/* What a writer on the host may look at without the lock goes last. */
void matrix_drop_devices(const duet_matrix *m, unsigned which)
{
    storage *b = m->storage;
    const duet_matrix all = storage_elements(m);
    pthread_mutex_lock(&b->lock);
    const unsigned valid = storage_valid(b);
    if (valid && !(valid & ~which)) lost_add(&all);
    else set_valid(b, valid & ~which);
    for (int d = DEFAULT_GPU; d < DEVICES_MAX; d++)
        if (which >> d & 1 && storage_has_buffer(b, d)) drop_buffer(b, d);
    __atomic_store_n(&b->came, (uint16_t)(b->came & ~which), __ATOMIC_RELAXED);
    if (b->pinned && which >> pool_pinned_for(b->buffer[HOST]) & 1) {
        __atomic_store_n(&b->pinned, false, __ATOMIC_RELAXED);
        b->copies = 0;
    }
    end_loans(b, which);
    for (int d = DEFAULT_GPU; d < DEVICES_MAX; d++)
        if (which >> d & 1) forget_buffer(b, d);
    pthread_mutex_unlock(&b->lock);
}

/* ---- freeing a buffer on a GPU to use its memory for others ---- */

/* Can the elements be had without the buffer on this device? Those on a GPU that was lost cannot. */
static bool is_valid_elsewhere(const storage *b, int device)
{
    const unsigned others = storage_valid(b) & ~(1u << device);
    return others & 1u << HOST || (others && !device_absent(storage_gpu_to_copy_from(others)));
}

/* Copies the elements to the host, if no other buffer holds them: then *valid has its bit. If that fails,
 * also because the GPU was lost, the buffer stays as it was. An index out of bounds that the GPU has
 * found is not reported here, but by the next call that waits. */
static duet_status save_elements(const duet_matrix *m, int device, int queue, unsigned *valid)
{
    storage *b = m->storage;
    buffer_usage *on = storage_usage(b, device);
    if (!storage_valid_on(b, device) || is_valid_elsewhere(b, device)) return DUET_OK;
    TRY(transfer_check(m, device, HOST));
    TRY(storage_allocate(b, HOST, queue, NULL));
    if (trace_on) storage_trace_move("download", m, device, queue, "its memory on the device is needed");
    TRY(buffer_follow(b, device, queue));
    TRY(storage_end_uploads(b, device));
    storage_count_copy(b, device);
    TRY(device_machine(device)->fetch(device, b->buffer[HOST], b->buffer[device], b->bytes, queue));
    TRY(queue_wait(device, queue, "the elements of a matrix are needed on the host, to free their buffer"));
    set_uploader(on, -1);
    COUNT(downloads);
    COUNT_N(download_bytes, b->bytes);
    *valid |= 1u << HOST;
    return DUET_OK;
}

static void free_buffer(storage *b, int device)
{
    buffer_usage *on = storage_usage(b, device);
    void *block = b->buffer[device];
    if (on->packed) device_machine(device)->drop(device, b);
    buffer_stamp_anew(on);
    pool_give(device, block, on->users);
    set_users(on, 0);
    set_writer(on, -1);
    __atomic_store_n(&b->buffer[device], NULL, __ATOMIC_RELEASE); /* last: is_of_host */
    COUNT(evictions);
    COUNT_N(evicted_bytes, b->bytes);
}

/* EVICTING is set before other threads are asked whether they use the buffer, and before its elements are
 * saved: meanwhile no thread can write it, or give its address to the user. */
static duet_status evict_locked(const duet_matrix *m, int device, int queue, bool *freed)
{
    storage *b = m->storage;
    duet_status st = DUET_OK;
    unsigned valid = storage_valid(b);
    if (!b->buffer[device] || storage_is_wrapped(b, device) || storage_state(b) & (SOME_LOST | HOST_WRITER) ||
        thread_any_uses_buffers(buffer_users(storage_usage(b, device))))
        return DUET_OK;
    set_flag(b, EVICTING, true);
    const bool may_free = !buffer_in_use(b, device) && !storage_is_lent(b);
    if (may_free) st = save_elements(m, device, queue, &valid);
    *freed = may_free && st == DUET_OK;
    if (*freed) set_valid(b, valid & ~(1u << device));
    set_flag(b, EVICTING, false); /* before free_buffer: is_of_host */
    if (*freed) free_buffer(b, device);
    return st;
}

duet_status matrix_evict(const duet_matrix *m, int device, int queue, bool *freed)
{
    *freed = false;
    if (pthread_mutex_trylock(&m->storage->lock)) return DUET_OK;
    const duet_status st = evict_locked(m, device, queue, freed);
    pthread_mutex_unlock(&m->storage->lock);
    return st;
}
