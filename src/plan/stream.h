/* stream.h - statements on the device whose operands stay on the host: part of the rows after part goes up, is computed, and comes down,
 * while the next one goes up and the last one comes down. Private to src/plan.
 *
 * Rows are those of the leading axis of the destinations. Operands either are cut along with it, or are wanted whole by each part, as
 * weights are, and then are brought to the device as ever. A part is a statement of its own, over fewer rows, with a plan of its own. */
#ifndef STREAM_H
#define STREAM_H

#include "plan.h"

/* How a value goes along with the rows. */
enum { PART_NONE, PART_WHOLE, PART_CUT };

/* Of a plan of all rows. */
typedef struct cut {
    int64_t length; /* rows; 0: the statement cannot be cut */
    uint8_t *part;  /* of each node of the formula: PART_ */
    plan *chosen;   /* that of a part, as it was last chosen; or NULL */
} cut;

/* Of the plan of a part. */
typedef struct streaming {
    int64_t length, rows;
    plan *rest; /* of the rows that are left over, which go first; NULL: none are */
    uint8_t *part;
} streaming;

static inline int64_t stream_parts(const streaming *w) { return (w->length + w->rows - 1) / w->rows; }

/* cut.c: NULL: no memory. The plan's statement is s, and its machine the device. */
const cut *cut_of(const plan *whole, const statement *s);
void cut_free(cut *c);

/* The plan for so many rows at a time; NULL: no memory, or the machine refuses. */
plan *stream_plan(const statement *s, const machine *on, int64_t length, int64_t rows, const uint8_t *part);
void stream_free(streaming *w);

/* The bytes from the first element to the last one of some rows of m, or between the first elements of two. */
size_t rows_bytes(const duet_matrix *m, int64_t rows);
size_t row_step(const duet_matrix *m);

/* stream.c. Errors: NO_MEMORY before anything is written; else destinations are lost. */
duet_status stream_run(const plan *p, const statement *s);

/* stream_when.c: what to do with a statement whose plan on the device is *p, of which *seconds are expected. When it does not fit there, or
 * ends sooner in parts, *p becomes their plan, and *seconds what that takes; INFINITY where it neither fits nor can be cut. With INFINITY
 * before, it is cut only if it does not fit. */
duet_status stream_weigh(const statement *s, const plan **p, double *seconds);

/* It will run so. What then goes up only to be forgotten would not have to, were it there. */
void stream_learn(const statement *s, const plan *p);

/* There was no memory for p, whatever was expected: others have taken it. NO_MEMORY, with the text as it was: it cannot be cut. */
duet_status stream_instead(const statement *s, const plan *p);

void stream_from(size_t bytes);        /* for tests: smaller statements are not looked at */
void stream_staged_from(size_t bytes); /* the same: smaller parts are copied from where they are, pinned or not */

#endif
