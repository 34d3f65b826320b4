/* packed_cache.h - operands that the card keeps packed for steps by parts. Each is packed on first use and anew when the stamp of its storage has moved
 * (core/matrix.h), at the same address, so that graphs may hold it. All of it is a quarter of the card's limit at most, or of its memory
 * where there is none: the least recently used go first, and all when the pool wants their memory. What is in use, or part of a graph,
 * stays. */
#ifndef KNOWN_H
#define KNOWN_H

#include "queue.h"

struct storage;

/* Packs operand 1 into a block of the caller's, behind the queue's work or in the graph that is being recorded. */
duet_status gpu_pack(const step *s, const frame *f, void *block, queue *q);

typedef struct known known;

/* Operand 1 of s, which lies in b, packed, for work of q. The caller gives it back when that is queued. *k is NULL where there is no room to
 * keep it. While q's work is recorded it is only found, and becomes part of the graph. */
duet_status known_use(struct storage *b, const step *s, const frame *f, queue *q, known **k);
const void *known_at(const known *k);
void known_hold(known *k); /* once more */
void known_give(known *k); /* NULL is accepted */

/* For work of q that comes next, and holds k: it is as its storage is now. */
duet_status known_refresh(known *k, queue *q);

/* Those of machine. */
void known_drop(int device, struct storage *b);
size_t known_spare(int device, size_t bytes);

#endif
