/* matrix.c - copies elements between the buffers of a storage, and keeps the queues in order. Only
 * this file copies between buffers, except for the parts of a streamed statement (run/stream.c).
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
#include "matrix.h"
#include "cost.h"
#include "deferred.h"
#include "device_use.h"
#include "eviction.h"
#include "min_max.h"
#include "pool.h"
#include "queue_sync.h"
#include "trace.h"
#include "transfers.h"
#include <math.h>
#include <stdlib.h>

static uint64_t bit(int queue) { return (uint64_t)1 << queue; }

static void set_state(storage *b, unsigned state)
{
    __atomic_store_n(&b->state, (uint16_t)state, __ATOMIC_RELEASE);
}
static void set_valid(storage *b, unsigned valid)
{
    set_state(b, valid | (b->state & (SOME_LOST | EVICTING | HOST_WRITER)));
}
static void set_flag(storage *b, unsigned flag, bool on)
{
    set_state(b, on ? b->state | flag : b->state & ~flag);
}
static void set_lost(storage *b, bool lost) { set_flag(b, SOME_LOST, lost); }
static void set_users(buffer_usage *on, uint64_t queues)
{
    __atomic_store_n(&on->users, queues, __ATOMIC_RELAXED);
}
static void set_writer(buffer_usage *on, int queue)
{
    __atomic_store_n(&on->writer, (int8_t)queue, __ATOMIC_RELAXED);
}
static void set_uploader(buffer_usage *on, int queue)
{
    __atomic_store_n(&on->uploader, (int8_t)queue, __ATOMIC_RELAXED);
}

bool matrix_fills(const duet_matrix *m)
{
    return (size_t)m->count * dtypes[m->at.type].bytes == m->storage->bytes && !m->repeats;
}

/* ---- the usage of buffers on devices after the default GPU ---- */

#define OTHERS (DEVICES_MAX - DEFAULT_GPU - 1)

static duet_status add_other_usages(storage *b)
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

/* ---- lost elements; under the lock ---- */

/* A matrix whose elements are lost: a copy of its header. */
typedef struct lost_part {
    struct lost_part *next;
    duet_matrix m;
} lost_part;

void matrix_free_lost_parts(lost_part **parts)
{
    for (lost_part *l = *parts; l; l = *parts) {
        *parts = l->next;
        free(l);
    }
}

void storage_forget_lost(storage *b)
{
    matrix_free_lost_parts(&b->lost_parts);
    set_lost(b, false);
}

/* Does m have the element at this offset of its storage? May be false although it does, if axes of m
 * interlock. */
static bool has_offset(const duet_matrix *m, int64_t offset)
{
    int64_t low, high;
    bool walked[DUET_RANK_MAX] = { false };
    layout_span(&m->at, &low, &high);
    int64_t rest = offset - m->offset - low;
    for (int n = 0; n < m->at.rank && rest >= 0; n++) {
        int widest = -1;
        for (int a = 0; a < m->at.rank; a++)
            if (!walked[a] && (widest < 0 || llabs(m->at.stride[a]) > llabs(m->at.stride[widest])))
                widest = a;
        const int64_t stride = llabs(m->at.stride[widest]);
        walked[widest] = true;
        if (stride && m->at.size[widest] > 1) rest -= smaller(rest / stride, m->at.size[widest] - 1) * stride;
    }
    return rest == 0;
}

/* The offset in the storage of element i in row-major order. */
static int64_t offset_of(const duet_matrix *m, int64_t i)
{
    int64_t offset = m->offset;
    for (int a = m->at.rank - 1; a >= 0; i /= m->at.size[a--]) offset += i % m->at.size[a] * m->at.stride[a];
    return offset;
}

static bool covers(const duet_matrix *m, const duet_matrix *part)
{
    int64_t i = 0;
    if (matrix_overlap(m, part) == SAME) return true;
    if (m->count < part->count) return false;
    while (i < part->count && has_offset(m, offset_of(part, i))) i++;
    return i == part->count;
}

static duet_matrix slice_of(const duet_matrix *p, int axis, int64_t from, int64_t end)
{
    duet_matrix s = *p;
    s.offset += from * p->at.stride[axis];
    s.at.size[axis] = end - from;
    s.count = p->count / p->at.size[axis] * (end - from);
    return s;
}

static bool is_apart(const duet_matrix *p, int axis, int64_t from, int64_t end, const duet_matrix *m)
{
    const duet_matrix s = slice_of(p, axis, from, end);
    return matrix_overlap(&s, m) == APART;
}

/* The number of slices of p that do not overlap m, from one end of the axis. */
static int64_t slices_apart(const duet_matrix *p, int axis, const duet_matrix *m, bool from_end)
{
    const int64_t n = p->at.size[axis];
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const int64_t k = low + (high - low + 1) / 2;
        if (is_apart(p, axis, from_end ? n - k : 0, from_end ? n : k, m)) low = k;
        else high = k - 1;
    }
    return low;
}

static int longest_axis(const duet_matrix *p)
{
    int axis = 0;
    for (int a = 1; a < p->at.rank; a++)
        if (p->at.size[a] > p->at.size[axis]) axis = a;
    return axis;
}

/* Where to cut p in two: around m, or else in the middle. Returns the axis. */
static int find_cut(const duet_matrix *p, const duet_matrix *m, int64_t *at)
{
    for (int a = 0; a < p->at.rank; a++) {
        if (p->at.size[a] < 2) continue;
        *at = slices_apart(p, a, m, false);
        if (!*at) *at = p->at.size[a] - slices_apart(p, a, m, true);
        if (*at < p->at.size[a]) return a;
    }
    const int a = longest_axis(p);
    *at = p->at.size[a] / 2;
    return a;
}

#define PIECES_MAX 1000 /* of one lost part */

typedef struct pieces {
    lost_part *list;
    int count;
} pieces;

static bool add_piece(pieces *to, const duet_matrix *p)
{
    lost_part *l = to->count < PIECES_MAX ? malloc(sizeof *l) : NULL;
    if (!l) return false;
    *l = (lost_part){ to->list, *p };
    to->list = l;
    to->count++;
    return true;
}

/* Adds the elements of p that m does not have. Returns false if these are too many pieces, or if
 * there is no memory. */
static bool add_rest(pieces *to, const duet_matrix *p, const duet_matrix *m)
{
    int64_t at;
    if (matrix_overlap(p, m) == APART) return add_piece(to, p);
    if (covers(m, p)) return true;
    if (p->count == 1) return add_piece(to, p);
    const int axis = find_cut(p, m, &at);
    const duet_matrix low = slice_of(p, axis, 0, at), high = slice_of(p, axis, at, p->at.size[axis]);
    return add_rest(to, &low, m) && add_rest(to, &high, m);
}

/* Puts the rest of *at in its place. If that is not possible, all of it still counts as lost.
 * Returns where the next part is. */
static lost_part **keep_rest(lost_part **at, const duet_matrix *m)
{
    lost_part *l = *at;
    pieces rest = { NULL };
    if (matrix_overlap(&l->m, m) == APART) return &l->next;
    if (!add_rest(&rest, &l->m, m)) {
        matrix_free_lost_parts(&rest.list);
        return &l->next;
    }
    *at = rest.list;
    while (*at) at = &(*at)->next;
    *at = l->next;
    free(l);
    return at;
}

/* The elements of m were written. */
static __attribute__((noinline, cold)) void remove_written_parts(storage *b, const duet_matrix *m)
{
    if (matrix_fills(m)) storage_forget_lost(b);
    for (lost_part **at = &b->lost_parts; *at;) at = keep_rest(at, m);
    if (!b->lost_parts) set_lost(b, false);
}

static bool has_lost(const duet_matrix *m)
{
    const storage *b = m->storage;
    const lost_part *l = b->lost_parts;
    if (!storage_lost(b)) return false;
    if (!l) return m->count > 0;
    while (l && matrix_overlap(m, &l->m) == APART) l = l->next;
    return l != NULL;
}

bool matrix_has_lost(const duet_matrix *m)
{
    if (likely(!storage_lost(m->storage))) return false;
    pthread_mutex_lock(&m->storage->lock);
    const bool has = has_lost(m);
    pthread_mutex_unlock(&m->storage->lock);
    return has;
}

/* ---- the queues; under the lock ---- */

/* From now on only this queue uses the buffer. */
static duet_status claim(const storage *b, int device, int queue)
{
    for (uint64_t others = storage_usage(b, device)->users & ~bit(queue); others; others &= others - 1)
        TRY(device_machine(device)->wait(device, queue, device, __builtin_ctzll(others)));
    return DUET_OK;
}

static void wrote_buffer(buffer_usage *on, int queue)
{
    set_writer(on, queue);
    set_users(on, bit(queue));
}

/* Records that a copy or zeros were queued. Call it even if that failed: a part may have been written. */
static void filled_buffer(storage *b, int device, int queue)
{
    buffer_usage *on = storage_usage(b, device);
    wrote_buffer(on, queue);
    buffer_stamp_anew(on);
}

/* The queue may read what was last written to the buffer. */
static duet_status follow(const storage *b, int device, int queue)
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
static duet_status end_uploads(const storage *b, int except)
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

static void trace_move(const char *what, const duet_matrix *m, int device, int queue, const char *why)
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

static void count_copy(storage *b, int device)
{
    if (b->wrapped || b->bytes < PIN_LEAST || b->copies == PIN_AT) return;
    if (++b->copies < PIN_AT) return;
    __atomic_store_n(&b->pinned, pool_pin(b->buffer[HOST], device), __ATOMIC_RELAXED);
}

void matrix_copied(const duet_matrix *m, int device)
{
    storage *b = m->storage;
    pthread_mutex_lock(&b->lock);
    if (b->buffer[HOST]) count_copy(b, device);
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
    if (trace_on) trace_move("upload", m, device, queue, "the host wrote it last");
    TRY(follow_uploader(b, device, queue));
    count_copy(b, device);
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
    if (trace_on) trace_move("download", m, device, queue, "the device wrote it last");
    TRY(follow(b, device, queue));
    TRY(end_uploads(b, device));
    count_copy(b, device);
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
static duet_status allocate(storage *b, int device, int queue, void **block)
{
    void *p = block ? *block : NULL;
    if (b->buffer[device]) return DUET_OK;
    if (device > DEFAULT_GPU && !b->others) TRY(add_other_usages(b));
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
    if (trace_on) trace_move("copy between devices", m, device, queue, "another device wrote it last");
    TRY(follow(b, from, queue));
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
    TRY(allocate(b, HOST, queue, NULL));
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
static int gpu_to_copy_from(unsigned valid)
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
    const int from = gpu_to_copy_from(valid);
    if (b->bytes == 0) return DUET_OK;
    if (valid) TRY(transfer_check(m, device != HOST && valid >> HOST & 1 ? HOST : from, device));
    if (device != HOST) TRY(claim(b, device, queue));
    if (!valid) return clear_buffer(b, device, queue);
    if (device == HOST) return download(m, from, queue);
    if (valid >> HOST & 1) return upload(m, device, queue);
    return copy_between(m, from, device, queue);
}

static duet_status bring_if_invalid(const duet_matrix *m, int device, int queue)
{
    storage *b = m->storage;
    if (storage_valid(b) >> device & 1) return DUET_OK;
    TRY(bring(m, device, queue));
    __atomic_store_n(&b->came, (uint16_t)(b->came | 1u << device), __ATOMIC_RELAXED);
    matrix_clear_accrued_cost(m);
    return DUET_OK;
}

/* Makes the queue wait for the uses of the buffer that it must not overtake. */
static duet_status join_users(storage *b, int device, enum use use, int queue)
{
    if (device == HOST) return use == READ ? DUET_OK : end_uploads(b, HOST);
    buffer_usage *on = storage_usage(b, device);
    TRY(use == READ ? follow(b, device, queue) : claim(b, device, queue));
    set_users(on, on->users | bit(queue));
    return DUET_OK;
}

/* why: what has happened to the GPU that held the elements, or NULL if they were lost earlier. */
static __attribute__((cold)) duet_status lost_error(const duet_matrix *m, const char *why)
{
    char text[SHAPE_TEXT];
    shape_text(text, m->at.type, m->at.rank, m->at.size);
    if (why)
        return fail(DUET_UNKNOWN, "elements of %s were only on a GPU that was lost; write them first (%s)",
                    text, why);
    if (m->storage->lost_parts)
        return fail(DUET_UNKNOWN, "elements of %s were lost in an earlier failure; write them first", text);
    return fail(DUET_UNKNOWN,
                "all elements of the matrix %s were lost in an earlier failure; write all of them first, "
                "not a view",
                text);
}

static void lose(const duet_matrix *m);

/* All elements of the storage, as a matrix of the type of m. */
static duet_matrix all_elements(const duet_matrix *m)
{
    const int64_t count = (int64_t)(m->storage->bytes / dtypes[m->at.type].bytes);
    return (duet_matrix){ .serial = m->serial,
                          .at = { .type = m->at.type, .rank = 1, .size = { count }, .stride = { 1 } },
                          .count = count,
                          .dense = true,
                          .storage = m->storage };
}

/* If the elements would have to come from a GPU that was lost, they are lost. Returns what has
 * happened to that GPU, or NULL. */
static const char *lose_if_unreachable(const duet_matrix *m, int device)
{
    const unsigned valid = storage_valid(m->storage);
    if (likely(!valid || valid & (1u << HOST | 1u << device))) return NULL;
    const char *why = device_absent(gpu_to_copy_from(valid));
    if (likely(!why)) return NULL;
    const duet_matrix all = all_elements(m);
    lose(&all);
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
    if (unlikely(storage_lost(b)) && !overwrites && !also_lost && has_lost(m)) return lost_error(m, why);
    if (use == OVERWRITE && !fills) use = UPDATE;
    TRY(allocate(b, device, queue, block));
    if (use != OVERWRITE) TRY(bring_if_invalid(m, device, queue));
    TRY(join_users(b, device, use, queue));
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
        return allocate(m->storage, HOST, queue, NULL);
    USE_GPUS;
    TRY(launch_before(m, device, use, queue));
    if (device != HOST) return open_on_gpu(m, device, use, queue, also_lost);
    pthread_mutex_lock(&m->storage->lock);
    const duet_status st = open_locked(m, device, use, queue, also_lost, NULL);
    pthread_mutex_unlock(&m->storage->lock);
    return st;
}

duet_status matrix_bring(const duet_matrix *m, int device, enum use use, int queue)
{
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
    if (unlikely(storage_lost(b))) remove_written_parts(b, m);
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
    if (device != HOST) wrote_buffer(storage_usage(b, device), queue);
    wrote_elements(m, device);
    pthread_mutex_unlock(&b->lock);
}

static void stamp_all(storage *b)
{
    for (int d = DEFAULT_GPU; d < DEVICES_MAX; d++)
        if (storage_has_buffer(b, d)) buffer_stamp_anew(storage_usage(b, d));
}

static void lose_all(storage *b)
{
    storage_forget_lost(b);
    set_lost(b, true);
    set_valid(b, 0);
}

/* Removes the parts that m covers. Returns whether one of the others covers m. */
static bool is_lost_already(storage *b, const duet_matrix *m)
{
    bool is_lost = false;
    for (lost_part **at = &b->lost_parts, *l; (l = *at);) {
        if (matrix_overlap(&l->m, m) == APART) {
            at = &l->next;
        } else if (!is_lost && covers(&l->m, m)) {
            is_lost = true;
            at = &l->next;
        } else if (covers(m, &l->m)) {
            *at = l->next;
            free(l);
        } else {
            at = &l->next;
        }
    }
    return is_lost;
}

/* If there is no memory to describe the part, all elements of the storage are lost. */
static void lose_part(const duet_matrix *m)
{
    storage *b = m->storage;
    if ((storage_lost(b) && !b->lost_parts) || is_lost_already(b, m)) return;
    lost_part *l = malloc(sizeof *l);
    if (!l) {
        lose_all(b);
        return;
    }
    *l = (lost_part){ b->lost_parts, *m };
    b->lost_parts = l;
    set_lost(b, true);
}

/* If all elements are lost, no buffer has any that counts. Parts of them can then be written one by
 * one. */
static void lose(const duet_matrix *m)
{
    storage *b = m->storage;
    if (!m->count) return;
    if (matrix_fills(m)) {
        storage_forget_lost(b);
        set_valid(b, 0);
    }
    lose_part(m);
    stamp_all(b);
}

void matrix_lost(const duet_matrix *m)
{
    pthread_mutex_lock(&m->storage->lock);
    lose(m);
    pthread_mutex_unlock(&m->storage->lock);
}

duet_status matrix_lost_parts(const duet_matrix *m, lost_part **parts)
{
    pieces copies = { NULL };
    bool ok = true;
    *parts = NULL;
    if (likely(!storage_lost(m->storage))) return DUET_OK;
    pthread_mutex_lock(&m->storage->lock);
    for (const lost_part *l = m->storage->lost_parts; l && ok; l = l->next) {
        if (matrix_overlap(&l->m, m) != APART) ok = add_piece(&copies, &l->m);
        copies.count = 0;
    }
    pthread_mutex_unlock(&m->storage->lock);
    *parts = copies.list;
    if (ok) return DUET_OK;
    matrix_free_lost_parts(parts);
    return fail(DUET_NO_MEMORY, "no host memory for the list of lost elements");
}

void matrix_lost_again(const duet_matrix *m, const lost_part *parts)
{
    pthread_mutex_lock(&m->storage->lock);
    for (const lost_part *l = parts; l; l = l->next) lose_part(&l->m);
    if (parts) stamp_all(m->storage);
    pthread_mutex_unlock(&m->storage->lock);
}

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
    stamp_all(b);
}

void matrix_write_failed(const duet_matrix *m, int device)
{
    storage *b = m->storage;
    const unsigned here = 1u << device;
    pthread_mutex_lock(&b->lock);
    if (storage_valid(b) == here) lose(m);
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
            lose(m);
        else go_back_to(b, how == MAY_HAVE_RUN ? before & ~here : before);
    }
    pthread_mutex_unlock(&b->lock);
}

/* ---- after the loss of GPUs ---- */

static void drop_buffer(storage *b, int device)
{
    buffer_usage *on = storage_usage(b, device);
    if (on->packed) device_machine(device)->drop(device, b);
    set_users(on, 0);
    set_writer(on, -1);
    buffer_stamp_anew(on);
}

/* The pool forgets the memory. Without a buffer there may still be an upload, to one that was freed for
 * others. A writer on the host that finds neither takes no lock. */
static void forget_buffer(storage *b, int device)
{
    buffer_usage *on = storage_usage(b, device);
    if (on->uploader >= 0) __atomic_store_n(&on->uploader, -1, __ATOMIC_RELEASE);
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
    const duet_matrix all = all_elements(m);
    pthread_mutex_lock(&b->lock);
    const unsigned valid = storage_valid(b);
    if (valid && !(valid & ~which)) lose(&all);
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
    return others & 1u << HOST || (others && !device_absent(gpu_to_copy_from(others)));
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
    TRY(allocate(b, HOST, queue, NULL));
    if (trace_on) trace_move("download", m, device, queue, "its memory on the device is needed");
    TRY(follow(b, device, queue));
    TRY(end_uploads(b, device));
    count_copy(b, device);
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
    if (!b->buffer[device] || storage_state(b) & (SOME_LOST | HOST_WRITER) ||
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

/* ---- the cost of the device that a matrix is on. These are estimates: threads that share a matrix
 * may overwrite each other's sums ---- */

/* A copy from another GPU is counted as a copy through the host. */
double matrix_move_cost(const duet_matrix *m, int device)
{
    const storage *b = m->storage;
    const size_t bytes = matrix_to_move(m, device);
    const bool pinned = storage_is_pinned(b), through_host = device != HOST && !storage_valid_on(b, HOST);
    const double seconds = cost_of_move(bytes, device, pinned);
    if (!through_host) return seconds;
    return seconds + cost_of_move(bytes, HOST, pinned);
}

void matrix_accrue_cost(const duet_matrix *m, double seconds)
{
    const double before = matrix_accrued_cost(m);
    double accrued_cost = before + seconds > 0 ? before + seconds : 0;
    if (accrued_cost != before) __atomic_store(&m->storage->accrued_cost, &accrued_cost, __ATOMIC_RELAXED);
}

void matrix_clear_accrued_cost(const duet_matrix *m) { matrix_accrue_cost(m, -INFINITY); }

bool matrix_returns(const duet_matrix *m, int device)
{
    return __atomic_load_n(&m->storage->came, __ATOMIC_RELAXED) >> device & 1;
}

double matrix_read_back(const duet_matrix *m)
{
    const storage *b = m->storage;
    const bool asked = __atomic_load_n(&b->asked, __ATOMIC_RELAXED);
    if (!asked) return 0;
    return cost_of_move(b->bytes, HOST, storage_is_pinned(b));
}

void matrix_makes_anew(const duet_matrix *m)
{
    __atomic_store_n(&m->storage->asked, false, __ATOMIC_RELAXED);
}

/* ---- pointers for the user ---- */

static void note_host_pointer(const duet_matrix *m, enum use use)
{
    if (!matrix_seen(m)) __atomic_store_n(&m->storage->seen, true, __ATOMIC_RELAXED);
    if (use != OVERWRITE) __atomic_store_n(&m->storage->asked, true, __ATOMIC_RELAXED);
}

static duet_status check_pointer(const char *who, const duet_matrix *m, int device, enum use use)
{
    const char *why = device_absent(device);
    TRY(matrix_check(who, m));
    if (use != READ) TRY(matrix_check_writable(who, m));
    if (why) return fail(DUET_NO_DEVICE, "%s: %s", who, why);
    return DUET_OK;
}

typedef struct access {
    buffer_user user;
    const storage *of;
} access;

static bool is_accessed(const buffer_user *u, const storage *b) { return ((const access *)u)->of == b; }

/* The user may keep the pointer until a statement uses m. */
static duet_status lend(const duet_matrix *m, int device, enum use use, void **p)
{
    thread *t = thread_get();
    access a = { .of = m->storage };
    buffer_user_begin(t, &a.user, is_accessed);
    const duet_status s = matrix_open(m, device, use, t->queue, p);
    if (s == DUET_OK) __atomic_store_n(&m->storage->lent, true, __ATOMIC_RELAXED);
    buffer_user_end(t, &a.user);
    return s;
}

static duet_status access_elements(const duet_matrix *m, int device, enum use use, void **p)
{
    thread *t = thread_get();
    t->accesses = true;
    const duet_status s = device == HOST ? matrix_open(m, device, use, t->queue, p) : lend(m, device, use, p);
    t->accesses = false;
    return s;
}

/* Flushes deferred work first: the caller may queue work of its own on the device. */
static void *pointer(const char *who, const duet_matrix *m, int device, enum use use)
{
    void *p;
    const int queue = thread_get()->queue;
    USE_GPUS_IF(device != HOST);
    if (check_pointer(who, m, device, use) != DUET_OK) return NULL;
    duet_status st = DUET_OK;
    if (device != HOST) st = deferred_flush();
    if (st == DUET_OK) st = access_elements(m, device, use, &p);
    if (st != DUET_OK) {
        fail_at(st, who);
        return NULL;
    }
    if (device == HOST) note_host_pointer(m, use);
    if (use != READ) {
        matrix_wrote(m, device, queue);
        matrix_clear_accrued_cost(m);
    }
    return p;
}

static void *device_pointer(const char *who, const duet_matrix *m, enum use use)
{
    return pointer(who, m, thread_get()->gpu, use);
}

const void *(duet_read)(const duet_matrix *m) { return pointer("duet_read", m, HOST, READ); }

void *(duet_update)(duet_matrix *m) { return pointer("duet_update", m, HOST, UPDATE); }

void *(duet_overwrite)(duet_matrix *m) { return pointer("duet_overwrite", m, HOST, OVERWRITE); }

/* Errors: BAD_ARGUMENT, BAD_TYPE */
static bool has_type(const char *who, const duet_matrix *m, duet_dtype type)
{
    char text[SHAPE_TEXT];
    if (matrix_check(who, m) != DUET_OK) return false;
    if (m->at.type == type) return true;
    shape_text(text, m->at.type, m->at.rank, m->at.size);
    if ((unsigned)type < DUET_DTYPE_COUNT)
        fail(DUET_BAD_TYPE, "%s(m: %s): the element type of m must be %s", who, text, dtypes[type].name);
    else fail(DUET_BAD_TYPE, "%s(m: %s): type (%d) is not an element type", who, text, (int)type);
    return false;
}

const void *duet_read_as(const duet_matrix *m, duet_dtype type)
{
    return has_type("duet_read", m, type) ? pointer("duet_read", m, HOST, READ) : NULL;
}

void *duet_update_as(duet_matrix *m, duet_dtype type)
{
    return has_type("duet_update", m, type) ? pointer("duet_update", m, HOST, UPDATE) : NULL;
}

void *duet_overwrite_as(duet_matrix *m, duet_dtype type)
{
    return has_type("duet_overwrite", m, type) ? pointer("duet_overwrite", m, HOST, OVERWRITE) : NULL;
}

const void *(duet_device_read)(const duet_matrix *m) { return device_pointer("duet_device_read", m, READ); }

void *(duet_device_update)(duet_matrix *m) { return device_pointer("duet_device_update", m, UPDATE); }

void *(duet_device_overwrite)(duet_matrix *m)
{
    return device_pointer("duet_device_overwrite", m, OVERWRITE);
}
