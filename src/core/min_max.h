/* min_max.h - the smaller and the larger of two integers, and an integer limited to a range. */
#ifndef MIN_MAX_H
#define MIN_MAX_H

#include <stdint.h>

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t clamp(int64_t x, int64_t low, int64_t high) { return smaller(larger(x, low), high); }

#endif
