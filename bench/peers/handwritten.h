/* handwritten.h - on the GPU, what a CUDA programmer would write by hand: kernels to compare with, copies, products by bare cuBLASLt, a bare launch, a
 * graph. All run on one stream. handwritten.cu and handwritten_gemm.c, or handwritten_none.c where there is no CUDA; functions that can fail return 0 or what went wrong as a text. */
#ifndef HAND_H
#define HAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes the stream to work on; NULL: one of its own, since Duet launches more cautiously on one that it has given away. Why not, or NULL. Before
 * the others. */
const char *hand_open(void *stream);
void *hand_stream(void);
const char *hand_wait(void);

/* From device to device; n floats. */
const char *hand_copy(float *to, const float *from, int64_t n);

/* Between pinned memory of the host and the card: the seconds of a copy of so many bytes up, down, or one each way at once. */
const char *hand_link(size_t bytes, bool up, bool down, double *seconds);

/* An empty kernel of `bytes` bytes of parameters: 64, 1024, 2048 or 4000. */
const char *hand_launch(size_t bytes);
/* One of 128 or 256 bytes that may begin before the work in front of it ends, as Duet's kernels do. */
const char *hand_launch_early(size_t bytes);

/* Kernels over n elements, fused, four at a time. */
const char *hand_add(float *d, const float *x, const float *y, int64_t n); /* d = x + y */
const char *hand_axpby(float *d, float s, const float *x, float r, const float *y,
                       int64_t n);                                             /* d = s x + r y */
const char *hand_wiemann(float *d, const float *x, const float *y, int64_t n); /* Wiemann's third test */
const char *hand_sigmoid(float *d, const float *x, int64_t n);                 /* by expf */
const char *hand_black_scholes(float *call, float *put, const float *s, const float *k, const float *t,
                               int64_t n); /* put may be NULL */
const char *hand_program(int length, float *d, const float *x, const float *y, const float *z,
                         int64_t n); /* 2 8 16 20 24 28 32 40 48 64 */

/* C = A B, row-major, m x k by k x n, on the device: strict f32, the fastest of cuBLASLt's algorithms. */
typedef struct hand_product hand_product;
const char *hand_product_make(hand_product **made, int m, int n, int k, const float *a, const float *b,
                              float *c);
const char *hand_product_run(hand_product *p);
void hand_product_free(hand_product **made);

/* The operations a second of fused multiply-adds alone, counting two each. */
double hand_peak(void);

/* A graph of `count` calls of what `record` does on the stream. Replays it; frees it. */
typedef struct hand_graph hand_graph;
const char *hand_graph_make(hand_graph **g, int count, bool (*record)(void *state), void *state);
const char *hand_graph_run(hand_graph *g);
void hand_graph_free(hand_graph **g);

#ifdef __cplusplus
}
#endif
#endif
