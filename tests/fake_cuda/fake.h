/* fake.h - declarations that the parts of the fake CUDA share. */
#ifndef FAKE_H
#define FAKE_H

#include "backend.h"
#include "fake_cuda.h"
#include <cuda_runtime_api.h>
#include <pthread.h>

extern pthread_mutex_t fake_lock; /* protects all state; held while work runs */
extern fake_counts fake_counted;

/* Every call that can fail starts here. It returns `scripted` when the scripted failure is due. */
cudaError_t fake_enter(cudaError_t scripted);
#define ENTER(scripted)                                                                                      \
    do {                                                                                                     \
        cudaError_t entered_ = fake_enter(scripted);                                                         \
        if (entered_ != cudaSuccess) return entered_;                                                        \
    } while (0)
void fake_at(enum fake_point point); /* runs the hook of fake_before if it is due */
cudaError_t fake_launches(void);     /* the error of fake_no_launches, or cudaSuccess */
/* returns an error, and invalidates the graph, while this thread captures one */
cudaError_t fake_outside_graphs(void);
#define OUTSIDE_GRAPHS()                                                                                     \
    do {                                                                                                     \
        const cudaError_t outside_ = fake_outside_graphs();                                                  \
        if (outside_ != cudaSuccess) return outside_;                                                        \
    } while (0)
/* the same for a call of a vendor library, which leaves no CUDA error */
bool fake_vendor_fails(void);
void fake_handles(int n);              /* counts live handles */
cudaError_t fake_error(cudaError_t e); /* records it as the last error; returns it */

/* Zeroed memory aligned to 256, from the system allocator and not from the wrappers of a test,
 * because the library does not request it. */
void *fake_alloc(size_t bytes);
void fake_free(void *p);

/* Is [p, p + bytes) within one block of memory of the current device? */
bool fake_owns(const void *p, size_t bytes);
int fake_device(void);  /* the current card */
int fake_context(void); /* its context: another number after each reset */

/* Queues work with a copy of its arguments. The stream must belong to the current device. */
cudaError_t fake_queue(cudaStream_t stream, void (*run)(void *args), const void *args, size_t bytes);
void fake_drain(cudaStream_t stream); /* runs all queued work */
void fake_drain_all(void);            /* of all streams, but waits only for those of the current device */

/* Work that may have to wait for other ranks: tries(args, lost) is called, with fake_lock held, until it
 * returns true. lost: the card is lost. Meanwhile later work of the stream waits, and other streams run. Call
 * fake_progress after a change for which others may wait. */
typedef bool fake_trying(void *args, bool lost);
cudaError_t fake_queue_trying(cudaStream_t stream, fake_trying *tries, const void *args, size_t bytes);
void fake_progress(void);
bool fake_captures(cudaStream_t stream); /* is work of the stream captured? */
void fake_run_all(void);                 /* runs what does not have to wait; fake_lock is held */

/* nccl.c, with fake_lock held: calls for which a thread has waited too long fail; so do those of a card whose
 * context ends */
void fake_nccl_give_up(void);
void fake_nccl_end(int card);
extern double fake_nccl_patience; /* seconds */

/* The context of a card ends: its pinned memory is freed or unregistered. */
void fake_forget_pinned(int card);

/* Is host memory entirely inside one registered range, or entirely outside all? *pinned: inside
 * one. */
bool fake_is_whole(const void *p, size_t bytes, bool *pinned);

/* One launch with copies of all that it needs. */
typedef struct job {
    step s;
    program p;
    void *out[STEP_OUTPUTS], *scratch;
    void *in[STEP_INPUTS];
    double num[STEP_NUMBERS];
    size_t scratch_bytes;
    uint32_t *counters;
    struct bad_index *bad_index; /* index_report of kernels.h */
    uint32_t *claimed;
    bool by_parts;
    const void *packed; /* then: packed operand 1, for steps that need it */
    /* in DUET_MATH_SPLIT: the products of high by high, high by low and low by high parts, or
     * NULL */
    struct job *part[3];
    double unscale;
} job;
void fake_run_f32(const job *j);
void fake_run_order(const job *j); /* index.c */
void fake_run_csr(const job *j);   /* csr.c */
void fake_program_i64(const job *j);
void fake_program_u64(const job *j);
void fake_move(const job *j); /* a program that only moves elements, of any type */

/* Elements of real types by definition: the exact value of the element at p; the nearest value of
 * another type; storing it at p. */
long double fake_value(duet_dtype t, const void *p);
long double fake_converted(duet_dtype from, duet_dtype to, long double x);
void fake_put(duet_dtype t, void *p, long double x);
void fake_run_split(job *j); /* emulated.c */
struct workspace;
bool fake_split_fits(const step *s, const struct workspace *w);
double fake_rounded(double x, int bits, int least); /* rounds to `bits` bits with exponents from `least` on */
void fake_run_f64(const job *j);

#endif
