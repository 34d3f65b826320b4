/* fft_passes.h - a Fourier transform as a chain of passes, because cuFFT transforms at most three
 * neighbouring axes at once. */
#ifndef FFT_PASSES_H
#define FFT_PASSES_H

#include "fourier.h"
#include "lru_cache.h"
#include "step_kinds.h"

#define ALONG 3 /* axes of a plan, at most */

/* Everything on which a cuFFT plan depends. Keys are compared byte by byte. */
typedef struct plan_key {
    int64_t device, type, rank, batch;
    long long n[ALONG], in_sizes[ALONG], out_sizes[ALONG], in_stride, in_distance, out_stride, out_distance;
} plan_key;

/* A pass transforms groups of in_group elements into groups of out_group elements. There are `outer`
 * groups before the transformed axes and `inner` ones after them. in_step and out_step are the
 * distances, in elements, between neighbours among the `outer` groups.
 *
 * If in_slabs is false, the plan is called `loops` times, with addresses in_step and out_step elements
 * further each time. Otherwise slabs of slab_outer x slab_inner groups are copied to be contiguous, the
 * plan transforms one slab, and the results are copied to the output. */
typedef struct pass {
    plan_key key;
    bool in_slabs;
    int64_t outer, inner, in_group, out_group;
    int64_t loops, in_step, out_step;
    int64_t slab_outer, slab_inner;
    lru_item *plan;
} pass;

typedef struct chain {
    transform t;
    bool single; /* the axis that a real transform halves has one element; a copy replaces its pass */
    int count;
    pass pass[DUET_RANK_MAX];
} chain;

void fft_chain_make(chain *c, const transform *t);

size_t fft_element_bytes(const pass *p, bool out);
bool fft_is_complex(const pass *p); /* the input and the output; only then the plan may run in place */

#endif
