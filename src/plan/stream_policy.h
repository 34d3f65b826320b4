/* stream_policy.h - decides whether a statement is streamed through the GPU, and how many rows a part
 * has. */
#ifndef STREAM_POLICY_H
#define STREAM_POLICY_H

#include "partition.h"

/* Decide for a statement whose plan for the GPU is *p, and whose expected time is *seconds. If it does
 * not fit on the device, or is faster in parts, *p becomes the plan of a part and *seconds its time. If it
 * does not fit and cannot be split, *p becomes a plan that computes values again, if such a plan fits; else
 * *seconds becomes INFINITY. If *seconds is INFINITY, the statement is split only if it does not fit. */
duet_status stream_choose(const statement *s, const plan **p, double *seconds);

/* The plan for the host is *p. If its temporaries do not fit within the limit of the host's memory, *p
 * becomes a plan that computes values again. */
duet_status stream_fit_host(const statement *s, const plan **p);

/* The statement will run with this plan. If it is streamed, accrue the cost of copying operands that
 * would not have to be copied if they stayed on the device. */
void stream_learn(const statement *s, const plan *p);

/* To be called when plan p ran out of memory although it was expected to fit, or when memory was freed since.
 * Returns a plan that needs less memory: it is streamed, or recomputes values. NULL: there is none. */
const plan *stream_choose_less(const statement *s, const plan *p);

void stream_from(size_t bytes); /* for tests: do not stream smaller statements */

#endif
