/* run_statement.h - what set.c and set_all.c share. Private to src/statement. */
#ifndef RUN_STATEMENT_H
#define RUN_STATEMENT_H

#include "matrix.h"
#include "ready.h"
#include "statement.h"

/* Makes the patterns, before a formula is read. */
duet_status statement_prepare(const char *who);

/* All checks before a plan is looked up. e: the node of the right-hand side. */
duet_status statement_check(const char *who, const duet_matrix *m, const node *e);

/* Runs or records a statement, on the CPU if the GPU cannot and `place` allows it. */
duet_status statement_run(const plan *p, const statement *s, duet_place place);

#endif
