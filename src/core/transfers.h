/* transfers.h - DUET_TRANSFERS: may statements of this thread copy matrices between devices? */
#ifndef TRANSFERS_H
#define TRANSFERS_H

#include "matrix.h"
#include "thread.h"

/* Errors: FORBIDDEN. transfer_refused also prints the line of a transfer that is only reported. */
duet_status transfer_refused(const duet_matrix *m, int from, int to) __attribute__((cold));

/* Called before the elements of m, or of its storage, are copied. A call that asked for them is no statement. */
static inline duet_status transfer_check(const duet_matrix *m, int from, int to)
{
    const thread *t = thread_get();
    if (likely(t->transfers == DUET_TRANSFERS_ALLOWED) || t->accesses) return DUET_OK;
    return transfer_refused(m, from, to);
}

#endif
