/* fake_cuda.h - a fake CUDA on the host, for tests: the interface for tests.
 *
 * Each card has separate memory, filled with NaN. A host pointer in place of a device pointer is
 * an error, and the reverse. Work on a stream runs as late as possible: at a synchronisation, at
 * an event that another stream waits for, or when memory is freed. A call of NCCL runs when the streams of
 * all ranks have reached theirs, and the thread that waits for one of them runs those of the others. The
 * nodes of a graph run in a random order that their dependencies allow, another one at each launch. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_CARDS 8 /* at most */

typedef struct fake_counts {
    uint64_t calls;    /* of all functions that can fail */
    uint64_t launches; /* of launch_step and launch_joined */
    uint64_t joins;    /* of launch_joined */
    uint64_t products, convolutions, searches;
    uint64_t backward;      /* convolutions that compute gradients of images */
    uint64_t transforms;    /* by cuFFT */
    uint64_t solutions;     /* calls of cuSOLVER that compute */
    uint64_t rounded;       /* vendor products and convolutions with rounded operands */
    uint64_t splits, packs; /* launches in DUET_MATH_SPLIT, and launches that pack their operands */
    uint64_t uploads, downloads, synchronisations;
    uint64_t copies;  /* between cards */
    uint64_t resets;  /* of cards */
    uint64_t choices; /* how often several nodes of a launched graph could run next */
    uint64_t graphs;  /* launches of graphs, and the number of live graphs: */
    int graphs_alive;
    int rings;           /* allocated blocks of pinned memory */
    int pinned;          /* registered ranges of host memory */
    size_t memory, peak; /* live bytes of device memory, and their maximum */
    int handles;         /* live handles and descriptors of vendor libraries */
    int algorithm;       /* of the last convolution */
} fake_counts;
fake_counts fake_count(void);

void fake_fail(uint64_t n);              /* the n-th call from now fails, once; 0: none */
bool fake_failed(void);                  /* has the scripted failure happened since fake_fail? */
void fake_outdate(void);                 /* graphs captured so far would be faster if captured again */
void fake_no_launches(bool none);        /* while true, there is no memory for launches */
void fake_fail_on(int card, uint64_t n); /* as fake_fail, for calls while this card is current */
/* A lost card: every call for it fails until cudaDeviceReset, and work queued from then on does not run. */
void fake_lost(void);          /* all cards are lost */
void fake_lost_card(int card); /* one card is lost */
void fake_lose_at(uint64_t n); /* the n-th call from now finds its card lost; 0: none */
/* the n-th call starts a kernel that goes wrong: the card is lost at the next call that waits for it */
void fake_crash_at(uint64_t n);
bool fake_is_lost(int card);                 /* also after a kernel has gone wrong */
void fake_no_reset(bool none);               /* while true, cudaDeviceReset fails */
void fake_memory(size_t bytes);              /* sets the memory size of each card */
void fake_devices(int count);                /* call it before the GPU machine queries the number */
void fake_capability(int of, int times_ten); /* likewise; 90 if not called */
void fake_pinned(
    /* true: uploads read host memory when they run, as for pinned memory; false: only for
     * registered memory */
    bool pinned);
void fake_workspace(
    size_t bytes); /* workspace of cuDNN's second fastest algorithm; the fastest needs four times that */
void fake_slowly(bool forward,
                 bool back);  /* convolutions, forward and for image gradients, take a while to launch */
void fake_diverge(int calls); /* so many iterations of cuSOLVER from now on do not converge */
/* Just before the n-th call of this kind from now, in any thread, hook(arg) runs once. FETCH: a copy to the
 * host. WAIT: a stream will wait for an event, which was recorded. LAUNCH: a kernel. */
enum fake_point { FAKE_FETCH, FAKE_WAIT, FAKE_LAUNCH, FAKE_POINTS };
void fake_before(enum fake_point point, uint64_t n, void (*hook)(void *), void *arg);
/* The fake NCCL. Ranks are those of each communicator. Pass 0 or false to reset.
 *     fake_nccl_fail          the n-th call of NCCL from now, by any rank, fails
 *     fake_nccl_async_error   communicators of the rank have an asynchronous error
 *     fake_nccl_delay         delays the rank by this time when it connects, and at each call
 *     fake_nccl_silent        the rank never connects, and its calls do not begin
 *     fake_nccl_wait          how long a thread waits for other ranks before their calls fail; at first 10 s
 *     fake_nccl_count         what a rank has done in all communicators. bytes: those sent to others, in a
 *                             ring for calls of all ranks */
#define FAKE_RANKS 64
typedef struct fake_nccl_counts {
    uint64_t bytes, messages, gathers, reductions, scatters;
} fake_nccl_counts;
void fake_nccl_fail(uint64_t n);
void fake_nccl_async_error(int rank);
void fake_nccl_delay(int rank, int microseconds);
void fake_nccl_silent(int rank, bool is);
void fake_nccl_wait(double seconds);
fake_nccl_counts fake_nccl_count(int rank);

/* makes "cublasLt", "cudnn" or "cufft" unavailable; NULL: available again */
void fake_without(const char *library, const char *why);

#endif
