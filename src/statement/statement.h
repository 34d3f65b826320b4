/* statement.h - what all statements share: parts of a statement and its end. */
#ifndef STATEMENT_H
#define STATEMENT_H

#include "record.h"
#include "status.h"
#include "thread.h"

/* The end of every statement, whose status is s: what failed says where the call stands, if that is known. Returns s */
static inline duet_status statement_ends(duet_status s, const char *site)
{
    thread *t = thread_get();
    t->site = NULL;
    if (__builtin_expect(t->recording != NULL, 0)) record_next(s);
    return __builtin_expect(s == DUET_OK, 1) || !site ? s : fail_at(s, site);
}

/* set.c: m = e as a part of the statement `who`, which calls statement_ends at its end. Spends e */
duet_status statement_part(const char *who, duet_matrix *m, duet_expr e);

#endif
