/* algo_key.h - hash tables of algorithm choices, whose keys are structs without padding; used by
 * cublaslt.c and cudnn_algo.c. */
#ifndef ALGO_KEY_H
#define ALGO_KEY_H

#include <stddef.h>
#include <stdint.h>

#define KEY_BUCKETS 256

/* FNV-1a of the bytes of the key. */
static inline unsigned key_bucket(const void *key, size_t bytes)
{
    uint32_t h = 2166136261u;
    for (const unsigned char *b = key, *end = b + bytes; b < end; b++) h = (h ^ *b) * 16777619u;
    return h % KEY_BUCKETS;
}

#endif
