/* rank_statement.h - what the ranks share while they run a statement, and what each of them does. */
#ifndef RANK_STATEMENT_H
#define RANK_STATEMENT_H

#include "distribute.h"
#include "group_record.h"
#include "group_statement.h"

/* A statement, which all ranks share while they run it. */
typedef struct group_run_of {
    duet_group *g;
    const char *who, *site;
    const target *to;
    int count;
    planner p;
    node *nodes;
    uint32_t *order;        /* of the nodes: build_order */
    duet_matrix **gathered; /* by node: a copy of a view whose elements had to be gathered; or NULL */
    distribution *dest;     /* of each destination */
    duet_matrix **result;   /* the copy of destination k for rank `index`, at [k * near + index]; or NULL */
    uint64_t word;          /* equal on all ranks that run the same statement */
    FILE *explain;
    local_statements *run;
    bool ran;         /* the ranks have begun */
    group_call *call; /* of the recording to which the statement is added; or NULL */
} group_run_of;

static inline split *split_of(const duet_matrix *m) { return m->storage->split; }

/* The distribution that destination k needs of the value of its formula, which may broadcast. */
distribution destination_needs(const group_run_of *r, int k);

/* A rank_work: builds the statements of one rank, and evaluates or explains them. context: a group_run_of */
duet_status rank_statement(void *context, int index);

#endif
