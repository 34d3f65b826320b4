/* move_cost.c - what it costs to move a matrix to another device. */
#include "cost.h"
#include "matrix.h"
#include <math.h>

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
