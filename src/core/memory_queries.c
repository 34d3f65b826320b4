/* memory_queries.c - duet_valid_on and duet_share_memory: questions about the memory of matrices. */
#include "matrix.h"
#include "status.h"

static bool lives(const duet_matrix *m) { return m && __atomic_load_n(&m->serial, __ATOMIC_RELAXED) != 0; }

/* Zeros that were never written have no buffer. */
static bool is_valid_on(const duet_matrix *m, int device)
{
    const unsigned valid = storage_valid(m->storage);
    if (valid) return valid >> device & 1;
    return !matrix_has_lost(m) && !device_absent(device);
}

int duet_valid_on(const duet_matrix *m, duet_place place)
{
    if (!lives(m)) return 0;
    switch (place) {
    case DUET_CPU: return is_valid_on(m, HOST);
    case DUET_GPU: return is_valid_on(m, thread_get()->gpu);
    case DUET_AUTO: return storage_valid(m->storage) || is_valid_on(m, HOST);
    default: return 0;
    }
}

int duet_share_memory(const duet_matrix *a, const duet_matrix *b)
{
    return lives(a) && lives(b) && matrix_overlap(a, b) != APART;
}
