/* known.h - what the card keeps of the contents of matrices for steps by parts: a second operand packed, and the largest magnitude of a first
 * one. Each is made on first use and anew when the stamp of its storage has moved (core/matrix.h), at the same address, so that
 * graphs may hold it. All of it is a quarter of the card's limit at most, or of its memory where there is none: the least recently used go first, and all when the pool
 * wants their memory. What is in use, or part of a graph, stays. */
#ifndef KNOWN_H
#define KNOWN_H

#include "queue.h"

struct storage;

enum fact { FACT_PACKED, FACT_MAGNITUDE };
static inline int fact_operand(enum fact what) { return what == FACT_PACKED ? 1 : 0; }
static inline size_t fact_bytes(enum fact what, const step *s)
{
    return what == FACT_PACKED ? kernels_packed_bytes(s) : sizeof(float);
}

/* Makes it in a block of the caller's, behind the queue's work or in the graph that is being recorded. */
duet_status fact_make(enum fact what, const step *s, const frame *f, void *block, queue *q);

typedef struct known known;

/* What is known of b's elements in that operand of s, for work of q. The caller gives it back when that is queued. *k is NULL where there
 * is no room to keep it. While q's work is recorded it is only found, and becomes part of the graph. */
duet_status known_use(struct storage *b, enum fact what, const step *s, const frame *f, queue *q, known **k);
const void *known_at(const known *k);
void known_hold(known *k); /* once more */
void known_give(known *k); /* NULL is accepted */

/* For work of q that comes next, and holds k: it is as its storage is now. */
duet_status known_refresh(known *k, queue *q);

/* Those of machine. */
void known_drop(struct storage *b);
size_t known_spare(size_t bytes);

#endif
