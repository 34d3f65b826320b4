/* algo_key.h - where choices are kept by what they depend on, a struct without gaps: cublaslt.c, cudnn_algo.c. */
#ifndef KEY_H
#define KEY_H

#include <stddef.h>
#include <stdint.h>

#define KEY_BUCKETS 256

/* FNV-1a of its bytes. */
static inline unsigned key_bucket(const void *key, size_t bytes)
{
    uint32_t h = 2166136261u;
    for (const unsigned char *b = key, *end = b + bytes; b < end; b++) h = (h ^ *b) * 16777619u;
    return h % KEY_BUCKETS;
}

#endif
