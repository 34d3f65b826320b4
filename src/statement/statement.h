/* statement.h - functions that all statements share: they run an assignment as a part of a statement,
 * and end a statement. */
#ifndef STATEMENT_H
#define STATEMENT_H

#include "compiler.h"
#include "record.h"
#include "status.h"
#include "thread.h"

/* Ends a statement with status s. Puts the position of the call in front of the error text, if
 * there is one. Returns s. */
static inline duet_status statement_ends(duet_status s, const char *site)
{
    thread *t = thread_get();
    t->site = NULL;
    if (unlikely(t->recording != NULL)) record_next(s);
    if (likely(s == DUET_OK) || !site) return s;
    return fail_at(s, site);
}

/* set.c: assigns e to m as a part of the statement `who`, which calls statement_ends later. Spends e */
duet_status statement_part(const char *who, duet_matrix *m, duet_expr e);

/* set.c: what duet_set_at does, as the function `who`. */
duet_status statement_set(const char *who, duet_matrix *m, duet_expr e, const char *site);

#endif
