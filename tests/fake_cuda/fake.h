/* fake.h - between the parts of the pretend CUDA. */
#ifndef FAKE_H
#define FAKE_H

#include "backend.h"
#include "fake_cuda.h"
#include <cuda_runtime_api.h>
#include <pthread.h>

extern pthread_mutex_t fake_lock; /* of all state; work runs under it too */
extern fake_counts fake_counted;

/* Each call that can fail passes here: scripted is what it answers when its turn has come. */
cudaError_t fake_enter(cudaError_t scripted);
#define ENTER(scripted)                                                                                      \
    do {                                                                                                     \
        cudaError_t entered_ = fake_enter(scripted);                                                         \
        if (entered_ != cudaSuccess) return entered_;                                                        \
    } while (0)
cudaError_t fake_outside_graphs(void); /* an error, and the graph is spoilt, while this thread records one */
#define OUTSIDE_GRAPHS()                                                                                     \
    do {                                                                                                     \
        const cudaError_t outside_ = fake_outside_graphs();                                                  \
        if (outside_ != cudaSuccess) return outside_;                                                        \
    } while (0)
bool fake_vendor_fails(void);          /* the same for a vendor's call, which leaves no CUDA error behind */
void fake_handles(int n);              /* so many more of them live */
cudaError_t fake_error(cudaError_t e); /* remembers it as the last error; returns it */

/* Zeros, aligned to 256, from the system past whatever a test has put in the place of malloc: it is not the library that asks. */
void *fake_alloc(size_t bytes);
void fake_free(void *p);

/* Is [p, p + bytes) within one block of device memory of the current device? */
bool fake_owns(const void *p, size_t bytes);

/* Queues work with a copy of its arguments. The stream must be one of the current device. */
cudaError_t fake_queue(cudaStream_t stream, void (*run)(void *args), const void *args, size_t bytes);
void fake_drain(cudaStream_t stream); /* runs all that it holds */
void fake_drain_all(void);

/* Is memory of the host either all in one registered range, or in none? *pinned: in one. */
bool fake_is_whole(const void *p, size_t bytes, bool *pinned);

/* One launch, with all that it needs copied. */
typedef struct job {
    step s;
    program p;
    void *out[STEP_OUTPUTS], *scratch;
    void *in[STEP_INPUTS];
    double num[STEP_NUMBERS];
    size_t scratch_bytes;
    uint32_t *counters;
    bool by_parts;
    const void *packed; /* then: operand 1, of a step that needs it so */
    struct job *part
        [3]; /* while it runs by parts: its products of high by high, high by low, low by high parts, or NULL */
    double unscale;
} job;
void fake_run_f32(const job *j);
void fake_run_order(const job *j); /* index.c */
void fake_program_i64(const job *j);
void fake_program_u64(const job *j);
void fake_move(const job *j); /* a program that only moves, of any type */

/* Elements of real types, by definition: what the element at p is worth, exactly; that as the nearest of another type; and it put at p. */
long double fake_value(duet_dtype t, const void *p);
long double fake_converted(duet_dtype from, duet_dtype to, long double x);
void fake_put(duet_dtype t, void *p, long double x);
void fake_run_split(job *j); /* emulated.c */
struct workspace;
bool fake_split_fits(const step *s, const struct workspace *w);
double fake_rounded(double x, int bits, int least); /* to so many bits, of exponents from `least` on */
void fake_run_f64(const job *j);

#endif
