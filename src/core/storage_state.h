/* storage_state.h - the state of a storage, and what the files that change it share: matrix.c,
 * buffer_copies.c, lost_elements.c and free_buffers.c. Private to src/core. */
#ifndef STORAGE_STATE_H
#define STORAGE_STATE_H

#include "matrix.h"

static inline uint64_t bit(int queue) { return (uint64_t)1 << queue; }

static inline void set_state(storage *b, unsigned state)
{
    __atomic_store_n(&b->state, (uint16_t)state, __ATOMIC_RELEASE);
}
static inline void set_valid(storage *b, unsigned valid)
{
    set_state(b, valid | (b->state & (SOME_LOST | EVICTING | HOST_WRITER)));
}
static inline void set_flag(storage *b, unsigned flag, bool on)
{
    set_state(b, on ? b->state | flag : b->state & ~flag);
}
static inline void set_lost(storage *b, bool lost) { set_flag(b, SOME_LOST, lost); }
static inline void set_users(buffer_usage *on, uint64_t queues)
{
    __atomic_store_n(&on->users, queues, __ATOMIC_RELAXED);
}
static inline void set_writer(buffer_usage *on, int queue)
{
    __atomic_store_n(&on->writer, (int8_t)queue, __ATOMIC_RELAXED);
}
static inline void set_uploader(buffer_usage *on, int queue)
{
    __atomic_store_n(&on->uploader, (int8_t)queue, __ATOMIC_RELAXED);
}

/* buffer_copies.c. Under the lock. */
void buffer_wrote(buffer_usage *on, int queue);
duet_status buffer_follow(const storage *b, int device, int queue); /* the queue may read the last write */
duet_status storage_end_uploads(const storage *b, int except);      /* of all devices except one */
void storage_count_copy(storage *b, int device);                    /* pins the host's buffer if needed */
void storage_trace_move(const char *what, const duet_matrix *m, int device, int queue, const char *why);
duet_status storage_allocate(storage *b, int device, int queue, void **block);
duet_status storage_bring(const duet_matrix *m, int device, int queue); /* if the buffer is not valid */
duet_status storage_join_users(storage *b, int device, enum use use, int queue);
int storage_gpu_to_copy_from(unsigned valid);
duet_status storage_add_other_usages(storage *b); /* for a buffer on a device after the default GPU */

/* lost_elements.c. Under the lock. */
bool lost_overlaps(const duet_matrix *m); /* are elements of m lost? */
void lost_add(const duet_matrix *m);      /* the elements of m are lost */
void lost_remove_written(storage *b, const duet_matrix *m) __attribute__((cold));
duet_status lost_error(const duet_matrix *m, const char *why) __attribute__((cold));
void storage_stamp_all(storage *b);
duet_matrix storage_elements(const duet_matrix *m); /* all of the storage, in the type of m */

#endif
