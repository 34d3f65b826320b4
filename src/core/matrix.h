/* matrix.h - matrices, the storage that they share with their views, and its buffers on the devices.
 *
 * A storage has at most one buffer on each device. A bit mask says which of them are valid, that
 * is, hold the elements now.
 * buffer_copies.c copies between them when a device needs elements that are valid elsewhere only. */
#ifndef MATRIX_H
#define MATRIX_H

#include "backend.h"
#include "compiler.h"
#include "dtype.h"
#include "thread.h"
#include <pthread.h>

/* What an access does: it reads the elements, reads and writes them, or writes all without reading. */
enum use { READ, UPDATE, OVERWRITE };

/* Who uses the buffer of a storage on one GPU. */
typedef struct buffer_usage {
    /* Bit q: queue q of the device runs after the last write, and may still use the buffer. This
     * and writer are also read without the lock. */
    uint64_t users;
    /* Data that the machine derives from the elements and caches, valid for one stamp. The machine frees
     * it: machine.drop. */
    void *packed;
    uint64_t
        stamp; /* changes whenever this buffer is written, or may have been, in the order of the queues */
    uint64_t upload; /* the queue_sync_mark of uploader */
    int8_t writer;   /* the queue that last wrote here, or -1 */
    int8_t uploader; /* the queue of this device that may still be reading the host's buffer, or -1 */
} buffer_usage;

typedef struct storage {
    pthread_mutex_t lock;
    int refs;
    size_t bytes;
    /* Bit d: the buffer on device d holds the elements. No such bit: all elements are zero and no
     * buffer is allocated, or all elements are lost. And the flags below. */
    uint16_t state;
    uint16_t came;      /* bit d: elements have been copied there before */
    uint16_t wrapped;   /* bit d: the buffer on device d is memory of others: never freed, never replaced */
    uint16_t exported;  /* bit d: others had the buffer on device d by matrix_lend_to_others */
    bool constant;      /* the memory of others must not be written */
    bool pinned;        /* the host's buffer is pinned */
    uint8_t copies;     /* between host and devices, counted until PIN_AT, when the host's buffer is pinned */
    bool seen;          /* the user has had a pointer to the host's buffer since matrix_unseen */
    bool lent;          /* the user may have a pointer to a buffer on a GPU, which must not be freed */
    bool asked;         /* the host has read the elements since a statement wrote them: matrix_read_back */
    uint8_t properties; /* that the elements keep: structure.h. They do not change once they are set */
    int64_t csr_rows, csr_columns; /* of the checked pattern that the elements are (csr.h); -1: none */
    int loans;                     /* others have so many pointers to buffers, which must not be freed */
    double accrued_cost; /* seconds that statements would have saved on another device: matrix_accrue_cost */
    uint64_t id;         /* the serial of its first matrix, never used again */
    uint64_t last_use, tried;  /* core/history.c; core/eviction.c, under its lock */
    void *buffer[DEVICES_MAX]; /* NULL: not allocated */
    buffer_usage first;        /* on the default GPU */
    buffer_usage *others;      /* on the devices after it; NULL until one of them has a buffer */
    struct lost_part *lost_parts;
    struct split *split;   /* of a matrix on a group: split.h; or NULL */
    struct lender *lender; /* what to call when the memory of others is no longer used; or NULL */
    const char *site;      /* of a constant storage: the source line that created its first matrix; or NULL */
} storage;

extern const buffer_usage buffer_unused; /* the usage of a buffer that does not exist yet */

/* The usage of the buffer on a GPU; never NULL. It is constant as long as there is no buffer. */
buffer_usage *storage_other_usage(const storage *b, int device);
static inline buffer_usage *storage_usage(const storage *b, int device)
{
    if (likely(device == DEFAULT_GPU)) return (buffer_usage *)&b->first;
    return storage_other_usage(b, device);
}

/* Flags of storage.state. They share a word with the bits of the devices, because each access tests both.
 * SOME_LOST    the elements of lost_parts are lost, or all elements if there are no parts
 * EVICTING     a thread that holds the lock may be freeing a buffer on a GPU: no buffer is at hand
 * HOST_WRITER  the host's buffer was opened for writing while one on a GPU was valid, and that write has not
 *              ended. Until then no buffer is freed for others: its elements would be copied to the host's
 *              buffer, and if the write fails, only the buffer on the GPU has them */
#define SOME_LOST   (1u << 15)
#define EVICTING    (1u << 14)
#define HOST_WRITER (1u << 13)
static_assert(DEVICES_MAX <= 13, "bits 13 to 15 of storage.state are flags");

/* These may be called without the lock by a reader that finds the bit of its device set. */
static inline unsigned storage_state(const storage *b)
{
    return __atomic_load_n(&b->state, __ATOMIC_ACQUIRE);
}
static inline unsigned storage_valid(const storage *b)
{
    return storage_state(b) & ((1u << DEVICES_MAX) - 1);
}
static inline bool storage_valid_on(const storage *b, int device) { return storage_valid(b) >> device & 1; }

/* A writer has the lock, or is the only one to use the storage; readers come later in program order. */
static inline uint64_t buffer_stamp(const buffer_usage *on)
{
    return __atomic_load_n(&on->stamp, __ATOMIC_RELAXED);
}
static inline void buffer_stamp_anew(buffer_usage *on)
{
    __atomic_store_n(&on->stamp, on->stamp + 1, __ATOMIC_RELAXED);
}

static inline bool storage_lost(const storage *b) { return storage_state(b) & SOME_LOST; }

/* Acquire: without a buffer, what matrix_drop_devices changed before is visible. */
static inline bool storage_has_buffer(const storage *b, int device)
{
    return __atomic_load_n(&b->buffer[device], __ATOMIC_ACQUIRE);
}

/* May the user, or another library, have a pointer to a buffer on a GPU? */
static inline bool storage_is_lent(const storage *b)
{
    return __atomic_load_n(&b->lent, __ATOMIC_RELAXED) || __atomic_load_n(&b->loans, __ATOMIC_RELAXED) > 0;
}

/* Is the buffer on this device memory of others? */
static inline bool storage_is_wrapped(const storage *b, int device)
{
    return __atomic_load_n(&b->wrapped, __ATOMIC_RELAXED) >> device & 1;
}

static inline bool storage_is_pinned(const storage *b)
{
    return __atomic_load_n(&b->pinned, __ATOMIC_RELAXED);
}

static inline uint64_t buffer_users(const buffer_usage *on)
{
    return __atomic_load_n(&on->users, __ATOMIC_RELAXED);
}
static inline bool buffer_has_packed(const buffer_usage *on)
{
    return __atomic_load_n(&on->packed, __ATOMIC_ACQUIRE);
}
static inline int buffer_writer(const buffer_usage *on)
{
    return __atomic_load_n(&on->writer, __ATOMIC_RELAXED);
}

static inline unsigned storage_properties(const storage *b)
{
    return __atomic_load_n(&b->properties, __ATOMIC_RELAXED);
}

bool storage_is_uploading_to_others(const storage *b);
static inline bool storage_is_uploading(const storage *b)
{
    if (__atomic_load_n(&b->first.uploader, __ATOMIC_RELAXED) >= 0) return true;
    return unlikely(__atomic_load_n(&b->others, __ATOMIC_ACQUIRE) != NULL) &&
           storage_is_uploading_to_others(b);
}

/* Can the buffer be used as it is? Called without the lock: only reads by others can run at the
 * same time, and these change nothing that would make the answer wrong. */
static inline bool storage_at_hand(const storage *b, int device, enum use use, int queue)
{
    const unsigned state = storage_state(b);
    if ((state & (1u << device | SOME_LOST | EVICTING)) != 1u << device) return false;
    if (device == HOST) return use == READ || (state == 1u << HOST && !storage_is_uploading(b));
    const uint64_t users = buffer_users(storage_usage(b, device)), own = 1ull << queue;
    return use == READ ? (users & own) != 0 : users == own;
}

/* Is this buffer the only valid one, and is no element lost? Is this queue its only user and its last
 * writer? */
static inline bool storage_written(const storage *b, int device, int queue)
{
    const buffer_usage *on = storage_usage(b, device);
    return storage_state(b) == 1u << device && buffer_users(on) == 1ull << queue &&
           buffer_writer(on) == queue;
}

struct duet_matrix {
    uint64_t serial; /* unique to this matrix, never used again; 0 when freed */
    layout at;
    int64_t offset; /* of the first element, in elements */
    int64_t count;
    bool dense;
    bool repeats;  /* some element has several indices; such a matrix can only be read */
    bool constant; /* its memory must not be written, as that of duet_wrap_const */
    storage *storage;
    const char *site;         /* "file:line" of the call that created it, or NULL */
    struct duet_matrix *next; /* in the list of freed matrices, or of those that a recording keeps */
};

/* Makes the buffer on a device ready for `use` by a queue. Unless use is OVERWRITE it then holds
 * the elements. *p points to the first element of m. Nothing is copied if the buffer is valid. An
 * OVERWRITE of a matrix that is less than its storage is treated as UPDATE.
 *
 * A writer calls matrix_wrote once the work is queued, or matrix_write_failed if it failed halfway.
 * Until then the valid buffers stay as they were. A writer on the host that fails calls matrix_end_write. */
duet_status matrix_bring(const duet_matrix *m, int device, enum use use, int queue);
/* matrix_bring_unsplit: the same, for the buffers of the storage only. split_bring (split.c): the same, for a
 * storage with parts on a group. */
duet_status matrix_bring_unsplit(const duet_matrix *m, int device, enum use use, int queue);
duet_status split_bring(const duet_matrix *m, int device, enum use use, int queue);
/* The same for elements of which some may be lost: their values are arbitrary. */
duet_status matrix_bring_lost(const duet_matrix *m, int device, enum use use, int queue);
/* Meaningful only if there is a buffer. */
static inline void *matrix_address(const duet_matrix *m, int device)
{
    return (char *)m->storage->buffer[device] + m->offset * (int64_t)dtypes[m->at.type].bytes;
}
static inline duet_status matrix_open(const duet_matrix *m, int device, enum use use, int queue, void **p)
{
    if (unlikely(!storage_at_hand(m->storage, device, use, queue))) TRY(matrix_bring(m, device, use, queue));
    *p = matrix_address(m, device);
    return DUET_OK;
}

/* Are the elements of m only in a buffer on a GPU? */
bool matrix_is_only_on_gpu(const duet_matrix *m);
/* Copies elements first .. first + n - 1 of m, which is dense, from the device that has them to host memory.
 * The storage needs no buffer on the host. Errors: as matrix_open */
duet_status matrix_read_piece(const duet_matrix *m, int64_t first, int64_t n, void *to);

void matrix_has_written(const duet_matrix *m, int device, int queue);
/* From now on only the buffer on this device is valid. */
static inline void matrix_wrote(const duet_matrix *m, int device, int queue)
{
    storage *b = m->storage;
    const bool is_so = device == HOST ? storage_state(b) == 1u << HOST : storage_written(b, device, queue);
    if (device != HOST) buffer_stamp_anew(storage_usage(b, device));
    if (!is_so) matrix_has_written(m, device, queue);
}

/* The elements of m are lost: reading them fails until they are written again. The others of its
 * storage are not affected. */
void matrix_lost(const duet_matrix *m);
/* Are elements of m lost? */
bool matrix_has_lost(const duet_matrix *m);

/* A writer of m failed, and may have changed the buffer on this device. If another buffer still holds
 * the elements, m is as before. Otherwise the elements of m are lost. */
void matrix_write_failed(const duet_matrix *m, int device);

/* A writer of m on the host has failed. Call it after matrix_write_failed, for every destination, whether or
 * not it was opened. */
void matrix_end_write(const duet_matrix *m);

/* Deferred work that counted as having written m to the buffer on this device failed. NOT_REPORTED:
 * its user will not see the status, so he must not find the old elements. */
enum deferred_failure { DID_NOT_RUN, MAY_HAVE_RUN, NOT_REPORTED };
/* before: the storage_valid of m before the work counted as done; then no element of m was lost. If
 * a buffer still holds the elements that m had then, m has them again. Otherwise they are lost.
 * Does nothing if m was written since. m may be a copy of a matrix that was freed. */
void matrix_deferred_write_failed(const duet_matrix *m, int device, unsigned before,
                                  enum deferred_failure how);

/* The GPUs of the bit mask `which` were lost: drops the buffers that the storage of m has there.
 * Elements that are valid nowhere else are lost. No other thread uses these GPUs (device_use.h). */
void matrix_drop_devices(const duet_matrix *m, unsigned which);
/* The same for all matrices. */
void matrices_drop_devices(unsigned which);

/* Copies of the lost parts that overlap m: *parts is a list, or NULL. matrix_lost_again declares them
 * lost again. Errors: NO_MEMORY */
duet_status matrix_lost_parts(const duet_matrix *m, struct lost_part **parts);
void matrix_lost_again(const duet_matrix *m, const struct lost_part *parts);
void matrix_free_lost_parts(struct lost_part **parts);

/* From now on no element counts as lost. */
void storage_forget_lost(storage *b);

/* Another file copies parts of the host's buffer to or from a device. That counts as one copy of the
 * entire buffer. */
void matrix_copied(const duet_matrix *m, int device);

static inline bool matrix_seen(const duet_matrix *m)
{
    return __atomic_load_n(&m->storage->seen, __ATOMIC_RELAXED);
}
static inline void matrix_unseen(const duet_matrix *m)
{
    __atomic_store_n(&m->storage->seen, false, __ATOMIC_RELAXED);
}

/* Does m have every element of its storage exactly once? */
bool matrix_fills(const duet_matrix *m);

/* The bytes that matrix_open(m, device, READ) would copy now. */
static inline size_t matrix_to_move(const duet_matrix *m, int device)
{
    const unsigned valid = storage_valid(m->storage);
    return valid && !(valid >> device & 1) ? m->storage->bytes : 0;
}

/* The seconds that this copy is expected to take. */
double matrix_move_cost(const duet_matrix *m, int device);

/* Seconds that statements have lost so far because m was not on another device, where they would have
 * run faster. A statement that runs where m is adds what it loses, or subtracts what it gains. The sum
 * is cleared when m moves, or when the user writes m. */
static inline double matrix_accrued_cost(const duet_matrix *m)
{
    double accrued_cost;
    __atomic_load(&m->storage->accrued_cost, &accrued_cost, __ATOMIC_RELAXED);
    return accrued_cost;
}
void matrix_accrue_cost(const duet_matrix *m, double seconds);
void matrix_clear_accrued_cost(const duet_matrix *m);
bool matrix_returns(const duet_matrix *m, int device); /* has it been copied there before? */

/* If the user has read what statements wrote to m last: the seconds of the download that a result
 * on a GPU will need. */
double matrix_read_back(const duet_matrix *m);
void matrix_makes_anew(const duet_matrix *m); /* a statement writes m, which has not been read since */

/* Does this matrix exist? Headers are never returned to the system, so this is safe for any
 * pointer that was once a matrix. */
static inline bool matrix_alive(const duet_matrix *m, uint64_t serial)
{
    return __atomic_load_n(&m->serial, __ATOMIC_RELAXED) == serial && serial != 0;
}

/* Is m a matrix that was not freed? */
static inline bool matrix_lives(const duet_matrix *m)
{
    return m && __atomic_load_n(&m->serial, __ATOMIC_RELAXED) != 0;
}

/* BAD_ARGUMENT for NULL or a freed matrix. */
duet_status matrix_check(const char *who, const duet_matrix *m);

/* io/print_matrix.c: what duet_print does, but without the end of the last line. who: for error texts */
duet_status matrix_print(const char *who, FILE *out, const duet_matrix *m);

/* BAD_ARGUMENT: m repeats its elements, or its memory must not be written. */
duet_status matrix_not_writable(const char *who, const duet_matrix *m);
/* For functions that do not keep a structure. BAD_ARGUMENT: the same, or m has a structure. */
duet_status matrix_refuses(const char *who, const duet_matrix *m);
static inline duet_status matrix_check_writable(const char *who, const duet_matrix *m)
{
    const bool refuses = m->repeats | m->constant | (storage_properties(m->storage) != 0);
    return unlikely(refuses) ? matrix_refuses(who, m) : DUET_OK;
}
/* For other texts: why the memory of m must not be written, and the source line that created m. */
#define CONSTANT_TEXT 300
char *matrix_constant_text(const duet_matrix *m, char text[CONSTANT_TEXT]);

/* What duet_new_shape and duet_wrap_shape do, as the function `who`. */
duet_matrix *matrix_new(const char *who, duet_dtype type, int rank, const int64_t *size);
duet_matrix *matrix_wrap(const char *who, void *host, duet_dtype type, int rank, const int64_t *size);
duet_matrix *matrix_wrap_dense(void *host, duet_dtype type, int rank, const int64_t *size); /* unchecked */

/* Memory of others: of the caller, or of another library. */
typedef struct foreign_memory {
    void *first;   /* the element whose indices are all 0; ignored if there are no elements */
    int device;    /* where it is */
    bool constant; /* it must not be written */
    /* Called once when no matrix uses the memory any more, and no work on a device. It may run in any thread,
     * and may call this library. NULL: nothing to call */
    void (*release)(void *context);
    void *context;
} foreign_memory;

/* A matrix of that memory, as the function `who`. Strides may be negative, or 0.
 * Errors    NULL, and nothing is released: as duet_wrap_strided, NO_MEMORY */
duet_matrix *matrix_of_foreign(const char *who, const layout *at, const foreign_memory *f);
/* The same without checks. Errors: NO_MEMORY */
duet_matrix *matrix_of_memory(const layout *at, const foreign_memory *f);
/* Calls the functions `release` of storages that storage_release has ended. The caller holds no lock. */
void lenders_call(void);

/* Gives a pointer to the first element to another library, which may keep it until matrix_end_loan: the
 * buffer on this device is neither freed nor replaced until then. In other respects it is duet_read,
 * duet_update or duet_overwrite, or the same on a device.
 * Errors    as those */
duet_status matrix_lend_to_others(const char *who, const duet_matrix *m, int device, enum use use, void **p);
void matrix_end_loan(const duet_matrix *m);

/* Exchanges the elements and shapes of m and other, which have the same type. m is then another matrix for
 * those who know its serial: formulas and recordings. No other thread uses either. */
void matrix_exchange(duet_matrix *m, duet_matrix *other);

/* A new header over b, which gets one more reference. NULL: no memory, and b is unchanged. */
duet_matrix *matrix_share(storage *b, const layout *at, int64_t offset);

/* How a and b share elements: none, each element at the same index in both, or in any other way. */
enum overlap { APART, SAME, TANGLED };
enum overlap matrix_overlap(const duet_matrix *a, const duet_matrix *b);

/* Among the matrices with a buffer on this device, finds the storage with the highest positive score. *best
 * is a copy of the header of one of its matrices; call storage_release for its storage. score is called
 * under a spin lock. Returns false if there is none. */
typedef double matrix_score(const storage *b, int device);
bool matrix_find_best(matrix_score *score, int device, duet_matrix *best);
void storage_release(storage *b);

/* Frees the buffer of m on a GPU if no thread uses it, or returns without doing so: *freed says which. If
 * no other buffer is valid, the elements are copied to the host first. May be called for a matrix whose
 * lock another thread holds; then it does nothing.
 * Errors    NO_MEMORY (of the host), DEVICE_ERROR; nothing has changed then */
duet_status matrix_evict(const duet_matrix *m, int device, int queue, bool *freed);

/* A matrix that occupies memory of the pools. */
#define OWNERS 10
typedef struct matrix_owner {
    uint64_t serial;
    layout at;
    const char *site;
    const storage *storage;    /* only to compare */
    int refs;                  /* the number of matrices that share it */
    size_t bytes[DEVICES_MAX]; /* of its buffer on each device that was asked for */
    size_t total;
} matrix_owner;

/* The matrices with the largest buffers on a device, or, for -1, on all of them. Returns their number. It
 * allocates nothing. */
int matrix_owners(int device, matrix_owner list[OWNERS]);

#endif
