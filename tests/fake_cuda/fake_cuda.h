/* fake_cuda.h - a pretend CUDA on the host, for tests: what a test may ask of it.
 *
 * Device memory is memory of its own, filled with NaN; a host pointer where a device pointer belongs is an error, and the other way
 * round. What a stream is given waits until somebody needs it: a synchronisation, an event that another stream waits for, a free. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fake_counts {
    uint64_t calls;    /* of everything that can fail */
    uint64_t launches; /* of launch_step */
    uint64_t products, convolutions, searches;
    uint64_t backward;      /* of the convolutions those that go back to images as such */
    uint64_t transforms;    /* by cuFFT */
    uint64_t solutions;     /* calls of cuSOLVER that compute */
    uint64_t rounded;       /* products and convolutions of vendors that round their operands */
    uint64_t splits, packs; /* launches by parts, and of what those need */
    uint64_t uploads, downloads, synchronisations;
    uint64_t graphs; /* launches of graphs, and how many of them live: */
    int graphs_alive;
    int rings;           /* blocks of pinned memory that were allocated */
    int pinned;          /* ranges of host memory that are registered now */
    size_t memory, peak; /* device bytes that live now, and the most that ever did */
    int handles;         /* of vendors, and their descriptors, that live now */
    int algorithm;       /* of the last convolution */
} fake_counts;
fake_counts fake_count(void);

void fake_fail(uint64_t n);          /* the n-th call from now fails, once; 0: none does */
bool fake_failed(void);              /* has it, since fake_fail? */
void fake_lost(void);                /* from now on every call fails: the context is lost */
void fake_memory(size_t bytes);      /* what the device has */
void fake_devices(int count);        /* ask before the GPU machine does */
void fake_capability(int times_ten); /* the same */
void fake_pinned(
    bool
        pinned); /* uploads read host memory when they run, as from pinned memory; else from registered memory alone */
void fake_workspace(
    size_t bytes); /* what cuDNN's second best algorithm asks for; the best one four times that */
void fake_slowly(bool forward,
                 bool back); /* convolutions forward, and back to images, take a while to be called */
void fake_without(const char *library,
                  const char *why); /* "cublasLt", "cudnn" or "cufft" is missing; NULL: there again */

#endif
