/* buckets.h - lets small arrays share a collective step. A rank computes its parts of several arrays. These
 * wait, and are exchanged as one array when a value is needed or when they have enough bytes. */
#ifndef BUCKETS_H
#define BUCKETS_H

#include "bucket_policy.h"
#include "build.h"

/* The largest number of arrays of one node: norm has three sums. */
#define NODE_ARRAYS 3

/* An array that is to be added up, or gathered along its first axis, for all ranks. */
typedef struct shared_array {
    enum collective_kind kind;
    duet_dtype type;
    shape whole;           /* of the result */
    const int64_t *counts; /* MOVE: rank r has the indices counts[r] to counts[r + 1] - 1 of the first axis */
    duet_expr own;         /* this rank's part */
    bool is_sent;
    duet_expr all;    /* the result after the exchange, if parts is NULL */
    duet_expr *parts; /* after a gather with other arrays: the part of each rank; else NULL */
} shared_array;

/* The complete result of a gathered array. */
duet_expr shared_array_whole(const builder *b, const shared_array *p);
/* Index k of the first axis of a gathered array, as an axis of one element. Rank `rank` had it. */
duet_expr shared_array_index(const builder *b, const shared_array *p, int rank, int64_t k);

/* A node whose value is computed from arrays that wait. */
typedef struct waiting {
    struct waiting *next;
    uint32_t node;
    const char *site;
    int count;
    shared_array of[NODE_ARRAYS];
    void *with; /* allocated data for finish, or NULL */
    /* computes the value after the exchange */
    duet_expr (*finish)(builder *b, const struct waiting *w);
} waiting;

/* May an array of this size wait? All ranks get the same answer. */
bool bucket_takes(const planner *p, double bytes);

/* Creates the record of node i, whose value will wait for a shared exchange. The caller sets the arrays, then
 * calls bucket_end. NULL: out of memory, and b->value[i] is a failed formula */
waiting *bucket_begin(builder *b, uint32_t i);
void bucket_end(builder *b, waiting *w);

/* Exchanges all arrays that wait. */
void buckets_send(builder *b);

void buckets_free(builder *b);

#endif
