/* handwritten_none.c - the functions of handwritten.h in a build without CUDA: each returns an
 * error. */
#include "handwritten.h"

static const char none[] = "the benchmarks were built without CUDA";

const char *handwritten_open(void *stream) { return none; }
void *handwritten_stream(void) { return NULL; }
const char *handwritten_wait(void) { return none; }
const char *handwritten_copy(float *to, const float *from, int64_t n) { return none; }
const char *handwritten_link(size_t bytes, bool up, bool down, double *seconds) { return none; }
const char *handwritten_launch(size_t bytes) { return none; }
const char *handwritten_launch_early(size_t bytes) { return none; }
const char *handwritten_add(float *d, const float *x, const float *y, int64_t n) { return none; }
const char *handwritten_axpby(float *d, float s, const float *x, float r, const float *y, int64_t n)
{
    return none;
}
const char *handwritten_wiemann(float *d, const float *x, const float *y, int64_t n) { return none; }
const char *handwritten_sigmoid(float *d, const float *x, int64_t n) { return none; }
const char *handwritten_black_scholes(float *call, float *put, const float *s, const float *k, const float *t,
                                      int64_t n)
{
    return none;
}
const char *handwritten_program(int length, float *d, const float *x, const float *y, const float *z,
                                int64_t n)
{
    return none;
}
const char *handwritten_gemm_make(handwritten_gemm **made, int m, int n, int k, const float *a,
                                  const float *b, float *c)
{
    return none;
}
const char *handwritten_gemm_run(handwritten_gemm *p) { return none; }
void handwritten_gemm_free(handwritten_gemm **made) {}
double handwritten_peak(void) { return 0; }
const char *handwritten_graph_make(handwritten_graph **g, int count, bool (*record)(void *state), void *state)
{
    return none;
}
const char *handwritten_graph_run(handwritten_graph *g) { return none; }
void handwritten_graph_free(handwritten_graph **g) {}
