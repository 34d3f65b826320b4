/* handwritten_none.c - see handwritten.h: built without CUDA. */
#include "handwritten.h"

static const char none[] = "the benchmarks were built without CUDA";

const char *hand_open(void *stream) { return none; }
void *hand_stream(void) { return NULL; }
const char *hand_wait(void) { return none; }
const char *hand_copy(float *to, const float *from, int64_t n) { return none; }
const char *hand_link(size_t bytes, bool up, bool down, double *seconds) { return none; }
const char *hand_launch(size_t bytes) { return none; }
const char *hand_launch_early(size_t bytes) { return none; }
const char *hand_add(float *d, const float *x, const float *y, int64_t n) { return none; }
const char *hand_axpby(float *d, float s, const float *x, float r, const float *y, int64_t n) { return none; }
const char *hand_wiemann(float *d, const float *x, const float *y, int64_t n) { return none; }
const char *hand_sigmoid(float *d, const float *x, int64_t n) { return none; }
const char *hand_black_scholes(float *call, float *put, const float *s, const float *k, const float *t,
                               int64_t n)
{
    return none;
}
const char *hand_program(int length, float *d, const float *x, const float *y, const float *z, int64_t n)
{
    return none;
}
const char *hand_product_make(hand_product **made, int m, int n, int k, const float *a, const float *b,
                              float *c)
{
    return none;
}
const char *hand_product_run(hand_product *p) { return none; }
void hand_product_free(hand_product **made) {}
double hand_peak(void) { return 0; }
const char *hand_graph_make(hand_graph **g, int count, bool (*record)(void *state), void *state)
{
    return none;
}
const char *hand_graph_run(hand_graph *g) { return none; }
void hand_graph_free(hand_graph **g) {}
