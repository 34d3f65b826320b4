/* buckets.h - small arrays share a collective step. A rank computes its parts of several arrays, and they are
 * exchanged together when the value of one of them is needed, or when they are large enough. */
#ifndef BUCKETS_H
#define BUCKETS_H

#include "bucket_policy.h"
#include "build.h"

/* The most arrays of one node that wait at the same time. */
#define PARCELS 3

/* An array that is to be added up, or gathered along its first axis, for all ranks. */
typedef struct parcel {
    enum collective_kind kind;
    duet_dtype type;
    shape whole;           /* of the result */
    const int64_t *counts; /* MOVE: rank r has the indices counts[r] to counts[r + 1] - 1 of the first axis */
    duet_expr own;         /* what this rank has */
    bool is_sent;
    duet_expr all;    /* the result, once it is there; or, if parts is not NULL, */
    duet_expr *parts; /* what each rank had */
} parcel;

/* The result of an array that was gathered: as a whole, or the index k of the first axis, which stays. rank: the
 * one that had it. */
duet_expr parcel_whole(const builder *b, const parcel *p);
duet_expr parcel_index(const builder *b, const parcel *p, int rank, int64_t k);

/* A node whose value is computed from arrays that wait. */
typedef struct waiting {
    struct waiting *next;
    uint32_t node;
    const char *site;
    int count;
    parcel of[PARCELS];
    void *with;                                               /* allocated, or NULL */
    duet_expr (*finish)(builder *b, const struct waiting *w); /* its value */
} waiting;

/* May arrays of so many bytes wait? The same on all ranks. */
bool bucket_takes(const planner *p, double bytes);

/* Starts an exchange for node i, whose value then waits. NULL: no host memory; the value has failed */
waiting *bucket_begin(builder *b, uint32_t i);
/* Call it when the arrays of w are set. */
void bucket_end(builder *b, waiting *w);

/* Exchanges all arrays that wait. */
void buckets_send(builder *b);

void buckets_free(builder *b);

#endif
