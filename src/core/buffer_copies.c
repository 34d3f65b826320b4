/* buffer_copies.c - copies elements between the buffers of a storage, and keeps the queues in order. Only
 * this file copies between buffers, except for the parts of a streamed statement (run/stream.c), and
 * free_buffers.c, which saves the elements of a buffer that it frees.
 *
 * Order on a device. Between two writes of a buffer, a bit in `users` says that its queue runs
 * after the write: it has waited for `writer`, or is that queue. A writer waits for all users.
 *
 * Order on the host. The caller ensures it, except for uploads. These read the host's buffer while
 * the caller continues, so a writer on the host waits for each device's `uploader`.
 *
 * A copy from one device to another runs on the second one's queue. Afterwards the queue of the
 * same number on the first device waits for it. That queue then represents the copy among the users
 * of the first buffer. */
#include "device_use.h"
#include "pool.h"
#include "queue_sync.h"
#include "storage_state.h"
#include "trace.h"
#include "transfers.h"
#include <stdlib.h>

/* ---- the usage of buffers on devices after the default GPU ---- */

#define OTHERS (DEVICES_MAX - DEFAULT_GPU - 1)

duet_status storage_add_other_usages(storage *b)
{
    buffer_usage *others = malloc(OTHERS * sizeof *others);
    if (!others)
        return fail(DUET_NO_MEMORY, "the system could not allocate memory for the buffers of a matrix");
    for (int i = 0; i < OTHERS; i++) others[i] = buffer_unused;
    __atomic_store_n(&b->others, others, __ATOMIC_RELEASE);
    return DUET_OK;
}

bool storage_is_uploading_to_others(const storage *b)
{
    for (int d = DEFAULT_GPU + 1; d < DEVICES_MAX; d++)
        if (__atomic_load_n(&storage_usage(b, d)->uploader, __ATOMIC_RELAXED) >= 0) return true;
    return false;
}

/* ---- the queues; under the lock ---- */

/* From now on only this queue uses the buffer. */
static duet_status claim(const storage *b, int device, int queue)
{
    for (uint64_t others = storage_usage(b, device)->users & ~bit(queue); others; others &= others - 1)
        TRY(device_machine(device)->wait(device, queue, device, __builtin_ctzll(others)));
    return DUET_OK;
}

void buffer_wrote(buffer_usage *on, int queue)
{
    set_writer(on, queue);
    set_users(on, bit(queue));
}

/* Records that a copy or zeros were queued. Call it even if that failed: a part may have been written. */
static void filled_buffer(storage *b, int device, int queue)
{
    buffer_usage *on = storage_usage(b, device);
    buffer_wrote(on, queue);
    buffer_stamp_anew(on);
}

/* The queue may read what was last written to the buffer. */
duet_status buffer_follow(const storage *b, int device, int queue)
{
    buffer_usage *on = storage_usage(b, device);
    if (on->writer < 0 || on->users & bit(queue)) return DUET_OK;
    TRY(device_machine(device)->wait(device, queue, device, on->writer));
    set_users(on, on->users | bit(queue));
    return DUET_OK;
}

/* Waits until this device's upload no longer reads the host's buffer. A wait that fails also ends the
 * upload, so the failure is reported only once. */
static duet_status end_upload(const storage *b, int device)
{
    buffer_usage *on = storage_usage(b, device);
    const int queue = on->uploader;
    if (queue < 0) return DUET_OK;
    set_uploader(on, -1);
    if (queue_sync_passed(device, queue, on->upload)) return DUET_OK;
    return queue_wait(device, queue, "an upload still reads what the host will write");
}

/* Calls end_upload for all devices except one, then returns the first failure. */
duet_status storage_end_uploads(const storage *b, int except)
{
    duet_status first = DUET_OK;
    const int end = b->others ? DEVICES_MAX : DEFAULT_GPU + 1;
    for (int d = DEFAULT_GPU; d < end; d++) {
        duet_status s = DUET_OK;
        if (d != except) s = end_upload(b, d);
        if (first == DUET_OK) first = s;
    }
    return first;
}

/* ---- copies; under the lock ---- */

void storage_trace_move(const char *what, const duet_matrix *m, int device, int queue, const char *why)
{
    char text[SHAPE_TEXT];
    if (device > DEFAULT_GPU)
        trace_line("%s %s, %zu bytes, device %d, queue %d: %s", what,
                   shape_text(text, m->at.type, m->at.rank, m->at.size), m->storage->bytes, device, queue,
                   why);
    else
        trace_line("%s %s, %zu bytes, queue %d: %s", what,
                   shape_text(text, m->at.type, m->at.rank, m->at.size), m->storage->bytes, queue, why);
}

/* Copies from pinned memory run at the speed of the link, while the host continues. Pinning takes
 * about as long as a copy, so it is done at the second copy. Memory of the caller is never pinned:
 * it may be unmapped while it is wrapped, and CUDA fails copies of ranges that are pinned only in
 * part. */
#define PIN_LEAST ((size_t)128 << 10) /* bytes; the pool returns full pages for such blocks */
#define PIN_AT    2

void storage_count_copy(storage *b, int device)
{
    if (storage_is_wrapped(b, HOST) || b->bytes < PIN_LEAST || b->copies == PIN_AT) return;
    if (++b->copies < PIN_AT) return;
    __atomic_store_n(&b->pinned, pool_pin(b->buffer[HOST], device), __ATOMIC_RELAXED);
}

void matrix_copied(const duet_matrix *m, int device)
{
    storage *b = m->storage;
    pthread_mutex_lock(&b->lock);
    if (b->buffer[HOST]) storage_count_copy(b, device);
    pthread_mutex_unlock(&b->lock);
}

/* If the buffer on the device was freed since an upload by another queue, that upload may still read the
 * host's buffer. Then this queue runs after it, so that waiting for this queue is enough. */
static duet_status follow_uploader(const storage *b, int device, int queue)
{
    const int before = storage_usage(b, device)->uploader;
    if (before < 0 || before == queue) return DUET_OK;
    return device_machine(device)->wait(device, queue, device, before);
}

/* A failed upload may have written a part, so the queue counts as a user even then. */
static duet_status upload(const duet_matrix *m, int device, int queue)
{
    storage *b = m->storage;
    buffer_usage *on = storage_usage(b, device);
    if (trace_on) storage_trace_move("upload", m, device, queue, "the host wrote it last");
    TRY(follow_uploader(b, device, queue));
    storage_count_copy(b, device);
    const duet_status st =
        device_machine(device)->upload(device, b->buffer[device], b->buffer[HOST], b->bytes, queue);
    filled_buffer(b, device, queue);
    set_uploader(on, queue);
    on->upload = queue_sync_mark(device, queue);
    if (st != DUET_OK) return st;
    COUNT(uploads);
    COUNT_N(upload_bytes, b->bytes);
    return DUET_OK;
}

/* The device's own upload ends before its later write, and so before this download. Uploads to
 * other devices may still read the host's buffer. */
static duet_status download(const duet_matrix *m, int device, int queue)
{
    storage *b = m->storage;
    buffer_usage *on = storage_usage(b, device);
    if (trace_on) storage_trace_move("download", m, device, queue, "the device wrote it last");
    TRY(buffer_follow(b, device, queue));
    TRY(storage_end_uploads(b, device));
    storage_count_copy(b, device);
    const uint64_t ticket = queue_sync_begin(device, queue);
    COUNT(synchronisations);
    TRY(device_machine(device)->download(device, b->buffer[HOST], b->buffer[device], b->bytes, queue));
    queue_sync_end(device, queue, ticket);
    set_writer(on, -1);
    set_uploader(on, -1);
    COUNT(downloads);
    COUNT_N(download_bytes, b->bytes);
    return DUET_OK;
}

static duet_status clear_buffer(storage *b, int device, int queue)
{
    void *p = b->buffer[device];
    if (device == HOST) return device_machine(HOST)->clear(HOST, p, b->bytes, queue);
    const duet_status st = device_machine(device)->clear(device, p, b->bytes, queue);
    filled_buffer(b, device, queue);
    return st;
}

/* Allocates the buffer on a device if there is none; its contents are undefined. *block, if it is not
 * NULL, is used for it, and becomes NULL. The pool makes the queue wait for earlier users of the memory. */
duet_status storage_allocate(storage *b, int device, int queue, void **block)
{
    void *p = block ? *block : NULL;
    if (b->buffer[device]) return DUET_OK;
    if (device > DEFAULT_GPU && !b->others) TRY(storage_add_other_usages(b));
    if (!p) TRY(pool_take_as(MEMORY_MATRIX, device, b->bytes, queue, &p));
    else *block = NULL;
    __atomic_store_n(&b->buffer[device], p, __ATOMIC_RELAXED);
    return DUET_OK;
}

/* Queue `queue` of device `from` continues after the copy by the same queue of `device`. If that
 * cannot be queued, the host waits, because the copy's source must not be overwritten. */
static duet_status hold_source(int from, int device, int queue)
{
    const duet_status st = device_machine(from)->wait(from, queue, device, queue);
    if (st != DUET_OK) (void)queue_wait(device, queue, "a copy between devices");
    return st;
}

static duet_status copy_directly(const duet_matrix *m, int from, int device, int queue)
{
    storage *b = m->storage;
    const machine *on = device_machine(device);
    if (trace_on)
        storage_trace_move("copy between devices", m, device, queue, "another device wrote it last");
    TRY(buffer_follow(b, from, queue));
    TRY(on->wait(device, queue, from, queue));
    buffer_usage *there = storage_usage(b, from);
    set_users(there, there->users | bit(queue));
    const duet_status st = on->copy(device, b->buffer[device], from, b->buffer[from], b->bytes, queue);
    filled_buffer(b, device, queue);
    const duet_status held = hold_source(from, device, queue);
    if (st != DUET_OK) return st;
    COUNT(copies);
    COUNT_N(copy_bytes, b->bytes);
    return held;
}

static duet_status copy_through_host(const duet_matrix *m, int from, int device, int queue)
{
    storage *b = m->storage;
    TRY(storage_allocate(b, HOST, queue, NULL));
    TRY(download(m, from, queue));
    set_valid(b, storage_valid(b) | 1u << HOST);
    return upload(m, device, queue);
}

static duet_status copy_between(const duet_matrix *m, int from, int device, int queue)
{
    const machine *on = device_machine(device);
    const bool directly = on == device_machine(from) && on->copy;
    if (directly) return copy_directly(m, from, device, queue);
    return copy_through_host(m, from, device, queue);
}

/* The GPU from which elements are copied: one whose buffer is valid, if possible one that can be used. HOST
 * if there is none. */
int storage_gpu_to_copy_from(unsigned valid)
{
    int lost = HOST;
    for (int d = DEFAULT_GPU; d < DEVICES_MAX; d++) {
        if (!(valid >> d & 1)) continue;
        if (!device_absent(d)) return d;
        lost = d;
    }
    return lost;
}

/* Makes the buffer on a device valid: copies the elements, or writes zeros if all elements are zero. */
static duet_status bring(const duet_matrix *m, int device, int queue)
{
    storage *b = m->storage;
    const unsigned valid = storage_valid(b);
    const int from = storage_gpu_to_copy_from(valid);
    if (b->bytes == 0) return DUET_OK;
    if (valid) TRY(transfer_check(m, device != HOST && valid >> HOST & 1 ? HOST : from, device));
    if (device != HOST) TRY(claim(b, device, queue));
    if (!valid) return clear_buffer(b, device, queue);
    if (device == HOST) return download(m, from, queue);
    if (valid >> HOST & 1) return upload(m, device, queue);
    return copy_between(m, from, device, queue);
}

duet_status storage_bring(const duet_matrix *m, int device, int queue)
{
    storage *b = m->storage;
    if (storage_valid(b) >> device & 1) return DUET_OK;
    TRY(bring(m, device, queue));
    __atomic_store_n(&b->came, (uint16_t)(b->came | 1u << device), __ATOMIC_RELAXED);
    matrix_clear_accrued_cost(m);
    return DUET_OK;
}

/* Makes the queue wait for the uses of the buffer that it must not overtake. */
duet_status storage_join_users(storage *b, int device, enum use use, int queue)
{
    if (device == HOST) return use == READ ? DUET_OK : storage_end_uploads(b, HOST);
    buffer_usage *on = storage_usage(b, device);
    TRY(use == READ ? buffer_follow(b, device, queue) : claim(b, device, queue));
    set_users(on, on->users | bit(queue));
    return DUET_OK;
}
