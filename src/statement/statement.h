/* statement.h - what all statements share: parts of a statement and its end. */
#ifndef STATEMENT_H
#define STATEMENT_H

#include "compiler.h"
#include "record.h"
#include "status.h"
#include "thread.h"

/* The end of every statement, whose status is s: what failed says where the call stands, if that is
 * known. Returns s */
static inline duet_status statement_ends(duet_status s, const char *site)
{
    thread *t = thread_get();
    t->site = NULL;
    if (unlikely(t->recording != NULL)) record_next(s);
    return likely(s == DUET_OK) || !site ? s : fail_at(s, site);
}

/* set.c: m = e as a part of the statement `who`, which calls statement_ends at its end. Spends e */
duet_status statement_part(const char *who, duet_matrix *m, duet_expr e);

#endif
