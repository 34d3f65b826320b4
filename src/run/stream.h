/* stream.h - statements on the device whose operands stay on the host: part of the rows after part goes up, is computed, and comes down,
 * while the next one goes up and the last one comes down. Private to src/plan.
 *
 * Rows are those of the leading axis of the destinations. Operands either are cut along with it, or are wanted whole by each part, as
 * weights are, and then are brought to the device as ever. A part is a statement of its own, over fewer rows, with a plan of its own. */
#ifndef STREAM_H
#define STREAM_H

#include "partition.h"

/* stream.c. Errors: NO_MEMORY before anything is written; else destinations are lost. */
duet_status stream_run(const plan *p, const statement *s);

/* There was no memory for p, whatever was expected: others have taken it. NO_MEMORY, with the text as it was: it cannot be cut. */
duet_status stream_instead(const statement *s, const plan *p);

void stream_staged_from(
    size_t bytes); /* for tests: smaller parts are copied from where they are, pinned or not */

#endif
