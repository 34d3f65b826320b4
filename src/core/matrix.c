/* matrix.c - a matrix and its two homes. The only file that moves bits between them, but for the parts of a streamed
 * statement (plan/stream.c).
 *
 * Order on the device. Between two writes of the device home, a bit in `users` says that its queue goes after the write (it
 * has waited for `writer`, or is it). Who writes waits for all users. Order on the host is the caller's, but for uploads: they
 * read the host home behind the caller's back, and who writes there waits for `uploader`. */
#include "matrix.h"
#include "cost.h"
#include "deferred.h"
#include "dtype.h"
#include "pool.h"
#include "queue_sync.h"
#include "trace.h"
#include <math.h>

static uint64_t bit(int queue) { return (uint64_t)1 << queue; }

static void set_current(storage *b, int sides)
{
    __atomic_store_n(&b->current, (uint8_t)sides, __ATOMIC_RELEASE);
}
static void set_users(storage *b, uint64_t queues) { __atomic_store_n(&b->users, queues, __ATOMIC_RELAXED); }
static void set_writer(storage *b, int queue)
{
    __atomic_store_n(&b->writer, (int8_t)queue, __ATOMIC_RELAXED);
}

bool matrix_fills(const duet_matrix *m)
{
    return (size_t)m->count * dtypes[m->at.type].bytes == m->bits->bytes && !m->repeats;
}

/* ---- the queues; under the lock ---- */

/* The queue alone uses the device home from here on. */
static duet_status claim(storage *b, int queue)
{
    for (uint64_t others = b->users & ~bit(queue); others; others &= others - 1)
        TRY(machines[DEVICE]->wait(queue, __builtin_ctzll(others)));
    return DUET_OK;
}

static void wrote_device(storage *b, int queue) { set_writer(b, queue), set_users(b, bit(queue)); }

/* What comes from the host, or as zeros: how far it came when that fails is not known. */
static void filled_device(storage *b, int queue) { wrote_device(b, queue), storage_stamp_anew(b); }

/* The queue may read what was last written on the device. */
static duet_status follow(storage *b, int queue)
{
    if (b->writer < 0 || b->users & bit(queue)) return DUET_OK;
    TRY(machines[DEVICE]->wait(queue, b->writer));
    set_users(b, b->users | bit(queue));
    return DUET_OK;
}

/* No upload reads the host home from here on. A wait that fails has ended too: it is reported once. */
static duet_status quiet(storage *b)
{
    int queue = b->uploader;
    if (queue < 0) return DUET_OK;
    b->uploader = -1;
    return queue_sync_passed(queue, b->upload)
               ? DUET_OK
               : queue_wait(queue, "an upload still reads what the host will write");
}

/* ---- bits move; under the lock ---- */

static void trace_move(const char *what, const duet_matrix *m, int queue, const char *why)
{
    char text[SHAPE_TEXT];
    trace_line("%s %s, %zu bytes, queue %d: %s", what, shape_text(text, m->at.type, m->at.rank, m->at.size),
               m->bits->bytes, queue, why);
}

/* Copies of pinned memory run at the speed of the link, and beside the host's work. To pin takes about as long as a copy, so it waits for the
 * second one. The caller's own memory is left alone: it may be unmapped while it is wrapped, and copies fail that reach from a pinned range
 * into another. */
#define PIN_LEAST ((size_t)128 << 10) /* bytes: such blocks are whole pages */
#define PIN_AT    2

static void travel(storage *b)
{
    if (b->wrapped || b->bytes < PIN_LEAST || b->travels == PIN_AT) return;
    if (++b->travels == PIN_AT) __atomic_store_n(&b->pinned, pool_pin(b->home[HOST]), __ATOMIC_RELAXED);
}

void matrix_travels(const duet_matrix *m)
{
    pthread_mutex_lock(&m->bits->lock);
    if (m->bits->home[HOST]) travel(m->bits);
    pthread_mutex_unlock(&m->bits->lock);
}

/* Of uploads that fail it is not known how far they came: the queue counts as a user either way. */
static duet_status upload(const duet_matrix *m, int queue)
{
    storage *b = m->bits;
    if (trace_on) trace_move("upload", m, queue, "the host wrote it last");
    travel(b);
    duet_status st = machines[DEVICE]->upload(b->home[DEVICE], b->home[HOST], b->bytes, queue);
    filled_device(b, queue);
    b->uploader = (int8_t)queue, b->upload = queue_sync_mark(queue);
    if (st != DUET_OK) return st;
    COUNT(uploads);
    COUNT_N(upload_bytes, b->bytes);
    return DUET_OK;
}

static duet_status download(const duet_matrix *m, int queue)
{
    storage *b = m->bits;
    if (trace_on) trace_move("download", m, queue, "the device wrote it last");
    TRY(follow(b, queue));
    travel(b);
    uint64_t ticket = queue_sync_begin(queue);
    COUNT(synchronisations);
    TRY(machines[DEVICE]->download(b->home[HOST], b->home[DEVICE], b->bytes, queue));
    queue_sync_end(queue, ticket);
    set_writer(b, -1), b->uploader = -1; /* the writer came after the upload, and is done */
    COUNT(downloads);
    COUNT_N(download_bytes, b->bytes);
    return DUET_OK;
}

static duet_status clear_device(storage *b, int queue)
{
    duet_status st = machines[DEVICE]->clear(b->home[DEVICE], b->bytes, queue);
    filled_device(b, queue);
    return st;
}

/* Memory on side s, made on first use; its contents are not yet meaningful. The pool has the queue wait for earlier users. */
static duet_status home(storage *b, enum side s, int queue)
{
    void *p;
    if (b->home[s]) return DUET_OK;
    TRY(pool_take(s, b->bytes, queue, &p));
    __atomic_store_n(&b->home[s], p, __ATOMIC_RELAXED);
    return DUET_OK;
}

/* Brings the elements to side s: from the other side, or as the zeros that they are. No upload can be reading a host home that
 * is not current: the device wrote since, and that write and all that follows it come after the upload. */
static duet_status bring(const duet_matrix *m, enum side s, int queue)
{
    storage *b = m->bits;
    if (b->bytes == 0) return DUET_OK;
    if (s == HOST)
        return b->current ? download(m, queue) : machines[HOST]->clear(b->home[HOST], b->bytes, queue);
    TRY(claim(b, queue));
    return b->current ? upload(m, queue) : clear_device(b, queue);
}

static duet_status open_locked(const duet_matrix *m, enum side s, enum use use, int queue)
{
    storage *b = m->bits;
    char text[SHAPE_TEXT];
    if (use == OVERWRITE && !matrix_fills(m)) use = UPDATE;
    if (b->lost && use != OVERWRITE)
        return fail(DUET_UNKNOWN,
                    "the elements of %s were lost to an earlier failure: write all of the matrix first",
                    shape_text(text, m->at.type, m->at.rank, m->at.size));
    TRY(home(b, s, queue));
    if (use != OVERWRITE && !(b->current & 1 << s)) {
        TRY(bring(m, s, queue));
        __atomic_store_n(&b->came, b->came | 1 << s, __ATOMIC_RELAXED);
        matrix_miss_nothing(m);
    }
    if (use != READ) TRY(s == DEVICE ? claim(b, queue) : quiet(b));
    else if (s == DEVICE) TRY(follow(b, queue));
    if (s == DEVICE) set_users(b, b->users | bit(queue));
    if (use == READ) set_current(b, b->current | 1 << s);
    return DUET_OK;
}

/* ---- what goes before; without the lock ---- */

/* The queues whose work must be launched first, if they hold it back. Of this one, what an upload or a copy of zeros would overtake. */
static uint64_t before(const storage *b, enum side s, enum use use, int queue, bool moves)
{
    const uint64_t users = __atomic_load_n(&b->users, __ATOMIC_RELAXED), own = bit(queue);
    const int writer = __atomic_load_n(&b->writer, __ATOMIC_RELAXED);
    const uint64_t written = writer < 0 ? 0 : bit(writer);
    if (s == HOST) return moves ? written : 0;
    if (moves) return deferred_uses(queue, b) ? users | own : users & ~own;
    return use == READ ? (users & own ? 0 : written) : users & ~own;
}

/* A download waits for the queue: it ends what is held back there, whatever that uses. */
static duet_status launch_before(const duet_matrix *m, enum side s, enum use use, int queue)
{
    storage *b = m->bits;
    const int sides = storage_current(b);
    const bool moves = !(use == OVERWRITE && matrix_fills(m)) && !(sides & 1 << s);
    if (s == HOST && moves && sides) TRY(deferred_flush());
    return __builtin_expect(deferred_queues_now() != 0, 0) ? deferred_launch(before(b, s, use, queue, moves))
                                                           : DUET_OK;
}

duet_status matrix_bring(const duet_matrix *m, enum side s, enum use use, int queue)
{
    TRY(launch_before(m, s, use, queue));
    pthread_mutex_lock(&m->bits->lock);
    duet_status st = open_locked(m, s, use, queue);
    pthread_mutex_unlock(&m->bits->lock);
    return st;
}

void matrix_has_written(const duet_matrix *m, enum side s, int queue)
{
    storage *b = m->bits;
    pthread_mutex_lock(&b->lock);
    if (s == DEVICE) wrote_device(b, queue);
    b->lost = false;
    set_current(b, 1 << s);
    pthread_mutex_unlock(&b->lock);
}

void matrix_lost(const duet_matrix *m)
{
    storage *b = m->bits;
    pthread_mutex_lock(&b->lock);
    b->lost = true;
    set_current(b, 0), storage_stamp_anew(b);
    pthread_mutex_unlock(&b->lock);
}

void storage_unwritten(storage *b)
{
    pthread_mutex_lock(&b->lock);
    if (b->current == 1 << DEVICE) b->lost = true, set_current(b, 0), storage_stamp_anew(b);
    pthread_mutex_unlock(&b->lock);
}

/* ---- what it costs that a matrix is where it is. Threads that share it may lose each other's additions: these are estimates ---- */

double matrix_move_cost(const duet_matrix *m, enum side s)
{
    return cost_of_move(matrix_to_move(m, s), s, __atomic_load_n(&m->bits->pinned, __ATOMIC_RELAXED));
}

void matrix_miss(const duet_matrix *m, double seconds)
{
    const double before = matrix_missed(m);
    double missed = before + seconds > 0 ? before + seconds : 0;
    if (missed != before) __atomic_store(&m->bits->missed, &missed, __ATOMIC_RELAXED);
}

bool matrix_returns(const duet_matrix *m, enum side s)
{
    return __atomic_load_n(&m->bits->came, __ATOMIC_RELAXED) & 1 << s;
}

double matrix_read_back(const duet_matrix *m)
{
    const storage *b = m->bits;
    const bool asked = __atomic_load_n(&b->asked, __ATOMIC_RELAXED);
    return asked ? cost_of_move(b->bytes, HOST, __atomic_load_n(&b->pinned, __ATOMIC_RELAXED)) : 0;
}

void matrix_makes_anew(const duet_matrix *m) { __atomic_store_n(&m->bits->asked, false, __ATOMIC_RELAXED); }

void matrix_miss_nothing(const duet_matrix *m) { matrix_miss(m, -INFINITY); }

/* ---- pointers for the user ---- */

static void *pointer(const char *who, const duet_matrix *m, enum side s, enum use use)
{
    void *p;
    int queue = thread_get()->queue;
    const char *why = s == DEVICE ? machines[DEVICE]->absent() : NULL;
    if (matrix_check(who, m) != DUET_OK || (use != READ && matrix_check_writable(who, m) != DUET_OK))
        return NULL;
    if (why) return fail(DUET_NO_DEVICE, "%s: %s", who, why), NULL;
    duet_status st = s == DEVICE ? deferred_flush() : DUET_OK; /* what the caller queues goes behind */
    if (st == DUET_OK) st = matrix_open(m, s, use, queue, &p);
    if (st != DUET_OK) return fail_at(st, who), NULL;
    if (s == HOST && !matrix_seen(m)) __atomic_store_n(&m->bits->seen, true, __ATOMIC_RELAXED);
    if (use != READ) matrix_wrote(m, s, queue), matrix_miss_nothing(m);
    if (s == HOST && use != OVERWRITE) __atomic_store_n(&m->bits->asked, true, __ATOMIC_RELAXED);
    return p;
}

const void *duet_read(const duet_matrix *m) { return pointer("duet_read", m, HOST, READ); }

void *duet_update(duet_matrix *m) { return pointer("duet_update", m, HOST, UPDATE); }

void *duet_overwrite(duet_matrix *m) { return pointer("duet_overwrite", m, HOST, OVERWRITE); }

const void *duet_device_read(const duet_matrix *m) { return pointer("duet_device_read", m, DEVICE, READ); }

void *duet_device_update(duet_matrix *m) { return pointer("duet_device_update", m, DEVICE, UPDATE); }

void *duet_device_overwrite(duet_matrix *m) { return pointer("duet_device_overwrite", m, DEVICE, OVERWRITE); }
