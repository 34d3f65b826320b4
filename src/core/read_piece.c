/* read_piece.c - reads a large matrix on a GPU piece by piece, so that the host needs no buffer for all of
 * it. */
#include "deferred.h"
#include "device_use.h"
#include "dtype.h"
#include "eviction.h"
#include "storage_state.h"
#include "transfers.h"

bool matrix_is_only_on_gpu(const duet_matrix *m)
{
    const unsigned valid = storage_valid(m->storage);
    return !m->storage->split && valid && !(valid >> HOST & 1) &&
           !device_absent(storage_gpu_to_copy_from(valid));
}

typedef struct reading {
    buffer_user user; /* the first member: is_read casts it back */
    const storage *of;
} reading;

static bool is_read(const buffer_user *u, const storage *b) { return ((const reading *)u)->of == b; }

static duet_status download(const duet_matrix *m, int device, int64_t first, int64_t n, void *to)
{
    const size_t each = dtypes[m->at.type].bytes, bytes = (size_t)n * each;
    const int queue = thread_get()->queue;
    void *p;
    TRY(matrix_open(m, device, READ, queue, &p));
    COUNT(synchronisations);
    TRY(device_machine(device)->download(device, to, (const char *)p + (size_t)first * each, bytes, queue));
    COUNT(downloads);
    COUNT_N(download_bytes, bytes);
    return DUET_OK;
}

duet_status matrix_read_piece(const duet_matrix *m, int64_t first, int64_t n, void *to)
{
    thread *t = thread_get();
    reading r = { .of = m->storage };
    const unsigned valid = storage_valid(m->storage);
    const int device = valid >> HOST & 1 ? HOST : storage_gpu_to_copy_from(valid);
    TRY(deferred_flush());
    USE_GPUS;
    buffer_user_begin(t, &r.user, is_read);
    t->accesses = true; /* as duet_read, this may copy */
    const duet_status s = download(m, device, first, n, to);
    t->accesses = false;
    buffer_user_end(t, &r.user);
    return s;
}
