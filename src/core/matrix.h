/* matrix.h - matrices, their storage and its two homes. matrix.c moves bits between them. */
#ifndef MATRIX_H
#define MATRIX_H

#include "backend.h"
#include "dtype.h"
#include "thread.h"
#include <pthread.h>

enum use { READ, UPDATE, OVERWRITE };

/* What a matrix and its views share. `current` says which homes hold the elements: bits HOST and DEVICE. Neither: they are all
 * zero, and there is no home yet, or `lost` is set and they are unknown. */
typedef struct storage {
    pthread_mutex_t lock;
    int refs;
    size_t bytes;
    void *home[SIDES];
    uint8_t current;    /* 1 << HOST | 1 << DEVICE */
    bool lost, wrapped; /* wrapped: the host home is the caller's */
    int8_t
        writer; /* the queue that last wrote on the device, or -1. This and users are read without the lock, too */
    uint64_t users;  /* bit q: queue q may still be reading or writing the device home */
    int8_t uploader; /* the queue that may still be reading the host home, or -1 */
    uint64_t upload; /* its queue_sync_mark */
    bool pinned;     /* the host home is */
    uint8_t travels; /* moves between the homes, up to the one at which it is pinned */
    bool seen;       /* the user has had a pointer to the host home since matrix_unseen */
    uint8_t came;    /* 1 << side: elements have been brought there */
    bool asked; /* the host has asked for the elements since a statement made them: see matrix_read_back */
    uint64_t
        stamp; /* of the elements in the device home: new whenever anything writes there, or may; in the order of the queues */
    void *
        known; /* what the device keeps of the elements, under their stamp; NULL: nothing. Its own: machine.drop */
    double missed; /* seconds that statements would have saved on the side where it is not: see matrix_miss */
} storage;

/* `current` is read without the lock by those who find all they need there. */
static inline int storage_current(const storage *b) { return __atomic_load_n(&b->current, __ATOMIC_ACQUIRE); }

/* Whoever writes there comes alone, or under the lock; who reads comes after. */
static inline uint64_t storage_stamp(const storage *b)
{
    return __atomic_load_n(&b->stamp, __ATOMIC_RELAXED);
}
static inline void storage_stamp_anew(storage *b)
{
    __atomic_store_n(&b->stamp, b->stamp + 1, __ATOMIC_RELAXED);
}

static inline bool storage_has_home(const storage *b, enum side s)
{
    return __atomic_load_n(&b->home[s], __ATOMIC_RELAXED);
}

/* Is there nothing to do? Without the lock: only others' reads may go on now, and these change nothing here that would make it wrong. */
static inline bool storage_at_hand(const storage *b, enum side s, enum use use, int queue)
{
    const int sides = storage_current(b);
    if (s == HOST) return use == READ ? (sides & 1 << HOST) != 0 : sides == 1 << HOST && b->uploader < 0;
    const uint64_t users = __atomic_load_n(&b->users, __ATOMIC_RELAXED), own = 1ull << queue;
    return sides & 1 << DEVICE && (use == READ ? (users & own) != 0 : users == own);
}

/* Has this queue been the last to write on the device, and is that known? */
static inline bool storage_written(const storage *b, int queue)
{
    return storage_current(b) == 1 << DEVICE &&
           __atomic_load_n(&b->users, __ATOMIC_RELAXED) == 1ull << queue &&
           __atomic_load_n(&b->writer, __ATOMIC_RELAXED) == queue;
}

struct duet_matrix {
    uint64_t serial; /* of this matrix, never used again; 0 when freed */
    layout at;
    int64_t offset; /* of the first element, in elements */
    int64_t count;
    bool dense, repeats; /* repeats: the same element at several places; to be read, not to be written */
    storage *bits;
    struct duet_matrix *next; /* of those that are freed, or that a recording keeps */
};

/* Memory for `use` on side s, with the elements there when use is not OVERWRITE; p points to the first element. Whoever writes calls
 * matrix_wrote when the work is queued, or matrix_lost when it failed half-way; until then the homes keep their state.
 * Nothing moves when the side is current. A matrix that does not fill its storage is not overwritten but updated. */
duet_status matrix_bring(const duet_matrix *m, enum side s, enum use use, int queue);
static inline void *matrix_address(const duet_matrix *m, enum side s) /* where it is, if it is there */
{
    return (char *)m->bits->home[s] + m->offset * (int64_t)dtypes[m->at.type].bytes;
}
static inline duet_status matrix_open(const duet_matrix *m, enum side s, enum use use, int queue, void **p)
{
    storage *b = m->bits;
    if (__builtin_expect(!storage_at_hand(b, s, use, queue), 0)) TRY(matrix_bring(m, s, use, queue));
    *p = matrix_address(m, s);
    return DUET_OK;
}

void matrix_has_written(const duet_matrix *m, enum side s, int queue);
static inline void matrix_wrote(const duet_matrix *m, enum side s,
                                int queue) /* side s alone is current now */
{
    const bool known = s == HOST ? storage_current(m->bits) == 1 << HOST
                                 : storage_written(m->bits, queue); /* and not lost */
    if (s == DEVICE) storage_stamp_anew(m->bits);
    if (!known) matrix_has_written(m, s, queue);
}

void matrix_lost(const duet_matrix *m);
void storage_unwritten(
    storage *b); /* what the device was to write there never was: lost, unless the host has written since */

/* Parts of the host home are copied to the device or back by somebody else: that counts as a journey of all of it, at the second of which it is
 * pinned. */
void matrix_travels(const duet_matrix *m);

static inline bool matrix_seen(const duet_matrix *m)
{
    return __atomic_load_n(&m->bits->seen, __ATOMIC_RELAXED);
}
static inline void matrix_unseen(const duet_matrix *m)
{
    __atomic_store_n(&m->bits->seen, false, __ATOMIC_RELAXED);
}

/* Is m all of its storage? */
bool matrix_fills(const duet_matrix *m);

/* The bytes that matrix_open(m, s, READ) would move now. */
static inline size_t matrix_to_move(const duet_matrix *m, enum side s)
{
    const int sides = storage_current(m->bits);
    return sides && !(sides & 1 << s) ? m->bits->bytes : 0;
}

/* The seconds that this would take, and what has been missed so far by its not being there. A statement that ran where m is, though it would
 * have run faster on the other side, adds what it missed; one that was faster where it is takes away. It ends when m moves, or when
 * the user writes it. */
double matrix_move_cost(const duet_matrix *m, enum side s);
static inline double matrix_missed(const duet_matrix *m)
{
    double missed;
    return __atomic_load(&m->bits->missed, &missed, __ATOMIC_RELAXED), missed;
}
void matrix_miss(const duet_matrix *m, double seconds);
bool matrix_returns(const duet_matrix *m, enum side s); /* has it been moved there before? */

/* The seconds of a download that making it on the device will entail, going by whether the user has read what was made last. */
double matrix_read_back(const duet_matrix *m);
void matrix_makes_anew(const duet_matrix *m); /* who reads it from here on reads what is made now */
void matrix_miss_nothing(const duet_matrix *m);

/* Is this a matrix that lives? Headers are never returned to the system, so that asking is always safe for what was once one. */
static inline bool matrix_alive(const duet_matrix *m, uint64_t serial)
{
    return m->serial == serial && serial != 0;
}

/* BAD_ARGUMENT of what is no matrix: NULL, or freed. */
duet_status matrix_check(const char *who, const duet_matrix *m);

/* BAD_ARGUMENT of one that repeats its elements. */
duet_status matrix_repeats(const char *who, const duet_matrix *m);
static inline duet_status matrix_check_writable(const char *who, const duet_matrix *m)
{
    return __builtin_expect(m->repeats, 0) ? matrix_repeats(who, m) : DUET_OK;
}

/* A new header over b, which it takes a share of. Errors: NULL: NO_MEMORY, and b is as it was. */
duet_matrix *matrix_share(storage *b, const layout *at, int64_t offset);

/* How a writes into b's elements would meet reads of b: by the same layout from the same element, not at all, or otherwise. */
enum overlap { APART, SAME, TANGLED };
enum overlap matrix_overlap(const duet_matrix *a, const duet_matrix *b);

#endif
