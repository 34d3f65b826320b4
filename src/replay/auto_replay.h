/* auto_replay.h - automatic replay of statements that repeat. */
#ifndef AUTO_REPLAY_H
#define AUTO_REPLAY_H

#include "plan.h"

/* auto_replay.c: plan_run on the GPU, at once or, where statements repeat, with those that follow. own: a failure is this statement's, not of what
 * was held back. */
duet_status auto_replay_run(const plan *p, const statement *s, bool *own);
void auto_replay_patience(double seconds); /* for tests, which may be slow: see there */

#endif
