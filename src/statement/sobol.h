/* sobol.h - Sobol sequences. Private to src/statement. */
#ifndef SOBOL_H
#define SOBOL_H

#include <stdint.h>

/* The most dimensions of a sequence. */
int64_t sobol_dimensions(void);

/* Writes (1 + bits) x dimensions words: see sobol.c. A seed other than 0 shifts each coordinate at random. */
void sobol_table(uint64_t *table, int64_t dimensions, int bits, uint64_t seed);

#endif
