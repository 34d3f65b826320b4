/* fft_passes.h - a transform as passes: cuFFT transforms up to three neighbouring axes at once. */
#ifndef FFT_PASSES_H
#define FFT_PASSES_H

#include "fourier.h"
#include "lru_cache.h"
#include "step_kinds.h"

#define ALONG 3 /* axes of a plan */

/* What a plan depends on; compared as bytes. */
typedef struct plan_key {
    int64_t device, type, rank, batch;
    long long n[ALONG], in_sizes[ALONG], out_sizes[ALONG], in_stride, in_distance, out_stride, out_distance;
} plan_key;

typedef struct pass {
    plan_key key;
    /* untransformed axes are on both sides of the transformed ones; a copy brings them together */
    bool apart;
    int64_t outer, inner, in_group, out_group;
    int64_t loops, in_step, out_step;
    lru_item *plan;
} pass;

typedef struct chain {
    transform t;
    bool single; /* the axis that a real transform halves has one element: only a copy is needed */
    int count;
    pass pass[DUET_RANK_MAX];
} chain;

void fft_chain_make(chain *c, const transform *t);

#endif
