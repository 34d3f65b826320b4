/* stream_policy.h - whether a statement is streamed through the device in parts, and in parts of how many rows. */
#ifndef STREAM_POLICY_H
#define STREAM_POLICY_H

#include "partition.h"

/* stream_policy.c: what to do with a statement whose plan on the device is *p, of which *seconds are expected. When it does not fit there, or
 * ends sooner in parts, *p becomes their plan, and *seconds what that takes; INFINITY where it neither fits nor can be cut. With INFINITY
 * before, it is cut only if it does not fit. */
duet_status stream_weigh(const statement *s, const plan **p, double *seconds);

/* It will run so. What then goes up only to be forgotten would not have to, were it there. */
void stream_learn(const statement *s, const plan *p);

/* A plan in parts for a statement for whose plan p there was no memory; NULL: it cannot be cut. */
const plan *stream_alternative(const statement *s, const plan *p);

void stream_from(size_t bytes); /* for tests: smaller statements are not looked at */

#endif
