/* stream.h - runs a statement on a GPU while its operands stay on the host, part of the rows by
 * part. A part is uploaded, computed and downloaded, while the next one is uploaded and the
 * previous one downloaded.
 *
 * Rows are those of the leading axis of the destinations. An operand is either split along that
 * axis, or every part needs all of it, as with weights; then it is copied to the GPU as usual.
 * Each part is a statement over fewer rows, with its own plan. */
#ifndef STREAM_H
#define STREAM_H

#include "partition.h"

/* Errors: NO_MEMORY before anything is written. After any other error the destinations are lost. */
duet_status stream_run(const plan *p, const statement *s);

/* To be called as stream_choose_less. Runs the statement part by part, or with a plan that recomputes values.
 * If neither is possible, returns NO_MEMORY and leaves the error text unchanged. */
duet_status stream_run_less(const statement *s, const plan *p);

/* For tests: parts smaller than this are copied directly, also if they are not pinned. */
void stream_staged_from(size_t bytes);

#endif
