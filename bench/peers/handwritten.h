/* handwritten.h - GPU code that a CUDA programmer would write by hand, to compare Duet with:
 * kernels, copies, direct calls of cuBLASLt, launches of empty kernels, CUDA graphs. All of it runs
 * on one stream. It is implemented by handwritten.cu and handwritten_gemm.c, or, in a build without
 * CUDA, by handwritten_none.c. Functions that return a text return NULL on success, else the reason
 * of the failure. */
#ifndef HANDWRITTEN_H
#define HANDWRITTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the stream; call it before the other functions. With NULL it creates a stream of its own:
 * Duet launches work less aggressively on a stream that it has given to the user. */
const char *handwritten_open(void *stream);
void *handwritten_stream(void);
const char *handwritten_wait(void);

/* Copies n floats in GPU memory. */
const char *handwritten_copy(float *to, const float *from, int64_t n);

/* Measures copies between pinned host memory and GPU memory: *seconds is the time of a copy of
 * `bytes` bytes to the GPU (up), from it (down), or of two copies at the same time. */
const char *handwritten_link(size_t bytes, bool up, bool down, double *seconds);

/* Launches an empty kernel with `bytes` bytes of parameters: 64, 1024, 2048 or 4000. */
const char *handwritten_launch(size_t bytes);
/* Launches one with 128 or 256 bytes, which may start before the preceding kernel ends, as Duet's
 * kernels do. */
const char *handwritten_launch_early(size_t bytes);

/* Fused element-wise kernels over n elements, which load and store four elements at a time. */
const char *handwritten_add(float *d, const float *x, const float *y, int64_t n); /* d = x + y */
const char *handwritten_axpby(float *d, float s, const float *x, float r, const float *y,
                              int64_t n); /* d = s x + r y */
const char *handwritten_wiemann(float *d, const float *x, const float *y,
                                int64_t n);                           /* Wiemann's third test */
const char *handwritten_sigmoid(float *d, const float *x, int64_t n); /* by expf */
const char *handwritten_black_scholes(float *call, float *put, const float *s, const float *k, const float *t,
                                      int64_t n); /* put may be NULL */
const char *handwritten_program(int length, float *d, const float *x, const float *y, const float *z,
                                int64_t n); /* length: 2 8 16 20 24 28 32 40 48 64 */

/* A product C = A B of row-major matrices m x k and k x n in GPU memory, in strict f32, by the
 * fastest of cuBLASLt's algorithms. */
typedef struct handwritten_gemm handwritten_gemm;
const char *handwritten_gemm_make(handwritten_gemm **made, int m, int n, int k, const float *a,
                                  const float *b, float *c);
const char *handwritten_gemm_run(handwritten_gemm *p);
void handwritten_gemm_free(handwritten_gemm **made);

/* Returns the operations per second of fused multiply-adds, each of which counts as two. */
double handwritten_peak(void);

/* A CUDA graph of what `count` calls of `record` launch on the stream. */
typedef struct handwritten_graph handwritten_graph;
const char *handwritten_graph_make(handwritten_graph **g, int count, bool (*record)(void *state),
                                   void *state);
const char *handwritten_graph_run(handwritten_graph *g);
void handwritten_graph_free(handwritten_graph **g);

#ifdef __cplusplus
}
#endif
#endif
