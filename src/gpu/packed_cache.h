/* packed_cache.h - the cache of operands packed for DUET_MATH_SPLIT. An operand is packed on first
 * use and again when its storage has changed. The least recently used entries are evicted first,
 * and all when the pool needs their memory. Entries in use, or part of a graph, stay; those of a graph also
 * if the buffer of their storage is freed for others. */
#ifndef PACKED_CACHE_H
#define PACKED_CACHE_H

#include "queue.h"

struct storage;

/* Packs operand 1 into a block of the caller, behind the work of the queue or in the graph under
 * capture. */
duet_status gpu_pack(const step *s, const frame *f, void *block, queue *q);

typedef struct packed_operand packed_operand;

/* Returns operand 1 of s, which is in b, packed, for work of q. The caller releases it after
 * queueing that work. *k is NULL if there is no memory for it. During a capture it is only looked
 * up, and becomes part of the graph. */
duet_status packed_use(struct storage *b, const step *s, const frame *f, queue *q, packed_operand **k);
const void *packed_at(const packed_operand *k);
void packed_hold(packed_operand *k);    /* adds a user to the entry */
void packed_release(packed_operand *k); /* NULL is accepted */

/* Called before q runs work that uses k: packs again if the storage has changed. */
duet_status packed_refresh(packed_operand *k, queue *q);

/* Functions of struct machine. packed_drop: the buffer, or the storage, ends. */
void packed_drop(int device, struct storage *b);
size_t packed_spare(int device, size_t bytes);

#endif
