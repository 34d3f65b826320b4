/* auto_replay.h - automatic replay of statements that repeat. */
#ifndef AUTO_REPLAY_H
#define AUTO_REPLAY_H

#include "plan.h"

/* Run a statement on the GPU: at once, or, if it is part of a sequence that repeats, deferred until
 * the sequence is complete. *own: a failure is this statement's, not that of a deferred one. */
duet_status auto_replay_run(const plan *p, const statement *s, bool *own);

/* For tests: the longest time that the statements of a sequence may take to arrive, per launch. */
void auto_replay_set_max_seconds(double seconds);

#endif
