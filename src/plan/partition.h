/* partition.h - a statement cut along the leading axis of its destinations, and the plan of one part. */
#ifndef PARTITION_H
#define PARTITION_H

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

/* partition.c: NULL: no memory. The plan's statement is s, and its machine the device. */
const cut *cut_of(const plan *whole, const statement *s);
void cut_free(cut *c);

/* The plan for so many rows at a time; NULL: no memory, or the machine refuses. */
plan *stream_plan(const statement *s, const machine *on, int64_t length, int64_t rows, const uint8_t *part);
void stream_free(streaming *w);

/* The bytes from the first element to the last one of some rows of m, or between the first elements of two. */
size_t rows_bytes(const duet_matrix *m, int64_t rows);
size_t row_step(const duet_matrix *m);

#endif
