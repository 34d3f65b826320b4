/* history.h - which matrices the statements of a thread used on a GPU, to predict when they are used next.
 *
 * The prediction: what follows now is what followed when the same statements came last. A matrix that was
 * created anew since then takes the place of the one that the same operand was at that time. The history is
 * kept only while memory of a GPU is scarce: pool_is_watched. */
#ifndef HISTORY_H
#define HISTORY_H

#include "matrix.h"

typedef struct history history;

/* A statement of this thread begins; history_add adds the storages that it uses, in the order of its
 * operands. plan: a number that equal statements have in common. reads: it needs the elements. NULL: there
 * is no memory for it. */
history *history_statement(uint64_t plan);
void history_add(history *h, storage *b, bool reads);

/* Expectation of this thread for a storage, after history_predict. distance: in statements, at least 1;
 * larger than any that is known, if no use is expected. */
typedef struct next_use {
    double distance;
    bool reads;
} next_use;
void history_predict(void);
next_use history_next(const storage *b);

#endif
