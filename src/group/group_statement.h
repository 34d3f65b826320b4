/* group_statement.h - statements with matrices on a group. */
#ifndef GROUP_STATEMENT_H
#define GROUP_STATEMENT_H

#include "plan.h"
#include "record.h"
#include "split.h"

/* Runs assignments of one rank, which are ordinary ones. Spends their formulas. */
typedef duet_status local_statements(const char *who, const duet_assignment *a, int count, const char *site);

/* Is a matrix of the statements on a group? */
bool group_concerns(const target *to, int count, const formula *f);

/* Runs the statements, which have been checked, on all ranks. If explain is not NULL, nothing runs: it prints
 * the plan of the first rank of this process.
 * Errors    BAD_ARGUMENT: matrices of two groups; FORBIDDEN: operands would be gathered; RANK_FAILED; as the
 *           statements of one rank */
duet_status group_statement(const char *who, const target *to, int count, const formula *f, FILE *explain,
                            const char *site, local_statements *run);

/* A new matrix for the value of a formula, with its distribution. NULL: failed, as the text says */
duet_matrix *group_result(const char *who, const formula *f);

#endif
