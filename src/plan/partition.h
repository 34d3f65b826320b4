/* partition.h - splitting a statement along the leading axis of its destinations, so that its parts
 * can be streamed through a device. */
#ifndef PARTITION_H
#define PARTITION_H

#include "plan.h"

/* How a part of the statement needs a node: it cannot be split; all rows; the part's own rows. */
enum { PART_NONE, PART_REPLICATED, PART_SPLIT };

/* How the statement of a plan can be split. */
typedef struct partition {
    int64_t length; /* the number of rows; 0: the statement cannot be split */
    uint8_t *part;  /* for each node of the formula, PART_ */
    plan *plans;    /* of parts, each with another number of rows: a list by their `next` */
    plan *chosen;   /* the one of them that was chosen last, or NULL */
} partition;

/* Belongs to the plan of a part: how all parts are streamed. */
typedef struct streaming {
    int64_t length, rows; /* rows of the statement, and of a part */
    plan *remainder;      /* the plan of the first part if it has fewer rows, else NULL */
    uint8_t *part;
} streaming;

static inline int64_t stream_parts(const streaming *w) { return (w->length + w->rows - 1) / w->rows; }

/* How s, whose plan for a GPU is `unsplit`, can be split. NULL: out of memory. */
const partition *partition_of(const plan *unsplit, const statement *s);
void partition_free(partition *c);

/* The plan for parts of this many rows. NULL: out of memory, or unsupported by the device. */
plan *stream_plan(const statement *s, int device, int64_t length, int64_t rows, const uint8_t *part);
void stream_free(streaming *w);

/* The bytes from the first element of m to the end of the given number of rows. */
size_t rows_bytes(const duet_matrix *m, int64_t rows);
size_t row_step(const duet_matrix *m); /* the bytes from a row to the next one */

#endif
