/* roofline.c - measures the peak rates of the CPU; see roofline.h. It is compiled for the processor
 * of this machine, and the compiler may contract products and sums. */
#include "roofline.h"
#include "measure.h"
#include <omp.h>
#include <string.h>

#define CHAINS 12
#define LINKS  2000000

typedef float lanes __attribute__((vector_size(64)));

void copy_on_host(float *to, const float *from, int64_t n)
{
    const int parts = n < 65536 ? 1 : omp_get_max_threads();
#pragma omp parallel for num_threads(parts) if (parts > 1)
    for (int k = 0; k < parts; k++) {
        const int64_t first = n * k / parts, after = n * (k + 1) / parts;
        memcpy(to + first, from + first, (size_t)(after - first) * sizeof *to);
    }
}

/* Computes independent chains of fused multiply-adds. The result is used, so that the compiler
 * keeps the loop. */
static float chains(float factor)
{
    lanes a[CHAINS], s = factor - (lanes){ 0 }, sum = { 0 };
    for (int c = 0; c < CHAINS; c++) a[c] = (float)c - (lanes){ 0 };
    for (int i = 0; i < LINKS; i++)
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++) a[c] = a[c] * s + s;
    for (int c = 0; c < CHAINS; c++) sum += a[c];
    return sum[0];
}

double host_peak(void)
{
    double best = 0;
    const double work = 2.0 * CHAINS * LINKS * (double)(sizeof(lanes) / sizeof(float));
    for (int i = 0; i < 5; i++) {
        float used = 0;
        const double start = now();
#pragma omp parallel reduction(+ : used)
        used += chains(0.5f);
        const double rate = work * omp_get_max_threads() / (now() - start);
        if (used > 0 && rate > best) best = rate;
    }
    return best;
}
