/* roofline.h - what this processor can do: a copy and fused multiply-adds, on as many threads as OpenMP has. */
#ifndef PEAK_H
#define PEAK_H

#include <stdint.h>

/* The system's own copy. */
void copy_on_host(float *to, const float *from, int64_t n);

/* The operations a second of fused multiply-adds in f32 alone, counting two each. */
double peak_of_host(void);
#endif
