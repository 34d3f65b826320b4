/* roofline.h - the peak rates of this CPU, with all threads of OpenMP: memory bandwidth by a copy,
 * arithmetic by fused multiply-adds. */
#ifndef ROOFLINE_H
#define ROOFLINE_H

#include <stdint.h>

/* Copies n floats with memcpy. */
void copy_on_host(float *to, const float *from, int64_t n);

/* Returns the operations per second of f32 fused multiply-adds, each of which counts as two. */
double host_peak(void);
#endif
