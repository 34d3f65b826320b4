/* sobol.c - the table of a Sobol sequence: row 0 has what each coordinate starts with, row 1 + b its
 * direction vector for bit b of the Gray code of a point's number. */
#include "sobol.h"
#include "sobol_table.h"
#include <string.h>

enum { BITS = 64 };

int64_t sobol_dimensions(void) { return SOBOL_DIMENSIONS; }

/* A step of SplitMix64: G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators, 2014. */
static uint64_t mixed(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The recurrence of Bratley and Fox, from the first `degree` direction numbers. */
static void directions(uint64_t v[BITS], const uint16_t *first, unsigned polynomial, int degree)
{
    uint64_t m[BITS];
    for (int k = 0; k < BITS; k++) {
        if (k < degree) m[k] = first[k];
        else {
            m[k] = m[k - degree] ^ m[k - degree] << degree;
            for (int j = 1; j < degree; j++)
                if (polynomial >> (degree - j) & 1) m[k] ^= m[k - j] << j;
        }
        v[k] = m[k] << (BITS - 1 - k);
    }
}

/* The first dimension is the van der Corput sequence. */
static void first_dimension(uint64_t v[BITS])
{
    for (int k = 0; k < BITS; k++) v[k] = 1ull << (BITS - 1 - k);
}

void sobol_table(uint64_t *table, int64_t dimensions, int bits, uint64_t seed)
{
    const uint16_t *next = sobol_numbers;
    for (int64_t d = 0; d < dimensions; d++) {
        uint64_t v[BITS];
        if (!d) first_dimension(v);
        else {
            const unsigned polynomial = *next++;
            const int degree = 31 - __builtin_clz(polynomial);
            directions(v, next, polynomial, degree);
            next += degree;
        }
        table[d] = seed ? mixed(seed, (uint64_t)d) : 0;
        for (int b = 0; b < bits; b++) table[(b + 1) * dimensions + d] = v[b];
    }
}
