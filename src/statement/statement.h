/* statement.h - functions that all statements share: they run an assignment as a part of a statement,
 * and end a statement. */
#ifndef STATEMENT_H
#define STATEMENT_H

#include "compiler.h"
#include "fp_environment.h"
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

/* set.c: assigns e to m as a part of the statement `who`, whatever the structure of m. Does not spend e */
duet_status statement_assign(const char *who, duet_place place, duet_matrix *m, duet_expr e);

/* set.c: what duet_set_at does, as the function `who`. */
duet_status statement_set(const char *who, duet_matrix *m, duet_expr e, const char *site);

/* set_all.c: what duet_set_all_at does, as the function `who`, whose documentation calls a statement
 * `noun`. */
duet_status statement_set_all(const char *who, const char *noun, const duet_assignment *a, int count,
                              const char *site);

/* set_all.c: the same, as a part of a statement that calls statement_ends later. */
duet_status statement_list(const char *who, const duet_assignment *a, int count, const char *site);

/* create.c: a new matrix for the result of e, as the function `who`. NULL: e or the allocation failed, as the
 * thread's text says. Does not spend e. */
duet_matrix *statement_result(const char *who, duet_expr e);

/* Functions that use temporary matrices, and those that return a value, run once: they are not recorded.
 * Pass to the second function what the first one returned. */
static inline duet_recording *recording_pause(void)
{
    thread *t = thread_get();
    duet_recording *r = t->recording;
    t->recording = NULL;
    return r;
}
static inline void recording_resume(duet_recording *r) { thread_get()->recording = r; }

#endif
