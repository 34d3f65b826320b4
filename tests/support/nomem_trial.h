/* nomem_trial.h - plays a scene in which allocation n fails, and counts the calls that failed. */
#ifndef NOMEM_TRIAL_H
#define NOMEM_TRIAL_H

#include "failing_alloc.h"
#include "in_thread.h"
#include <duet/duet.h>

static int refused; /* calls that failed */
static bool wrong;  /* did one fail without an error text, or with a result? */

static bool went(bool ok)
{
    if (ok) return true;
    refused++;
    if (!*duet_error()) wrong = true;
    return false;
}

/* Plays the scene in a thread of its own. n < 0: no allocation fails. Returns whether one failed. */
static bool hit(void *play(void *), int n)
{
    refused = 0;
    wrong = false;
    fail_in = n;
    run_in_thread(play, NULL);
    const bool was = fail_in < 0;
    fail_in = -1;
    duet_memory_trim();
    return was;
}

#endif
