/* pass.h - one pass over memory, block by block: what programs and fused rows become. A template.
 *
 * A block is some rows, or a part of one, of at most BLOCK elements. For each block, operands that do not lie there one after the
 * other are copied into buffers; then each loop runs over the whole block, from values to a value, in L1; then results that do not
 * belong one after the other are copied out. A value is an index into a table of addresses. */
#ifndef PASS_H
#define PASS_H

#include "table.h"
#include "threads.h"
#include "words.h"

#define BLOCK ((int64_t)(2048 / sizeof(T)))

/* d[i] = a formula in xs[i], ys[i], zs[i] and the numbers, for n elements. d may be xs, ys or zs. An operand that the formula
 * lacks is another one. */
typedef void loop_function(T *d, const T *xs, const T *ys, const T *zs, const T *num, int64_t n);

enum {
    INPUTS,
    NUMBERS = INPUTS + PROGRAM_INPUTS, /* a block of each */
    BUFFERS = NUMBERS + PROGRAM_NUMBERS,
    OUTPUTS = BUFFERS + PROGRAM_SLOTS + 1,
    VALUES = OUTPUTS + PROGRAM_OUTPUTS
};

typedef struct loop {
    loop_function *run;
    uint8_t to, from[3]; /* values */
} loop;

typedef struct pass {
    const step *s;
    const frame *f;
    uint8_t loops, numbers, buffers; /* numbers: how many stand as values, NUMBERS and following */
    uint32_t early;                  /* bit k: input k is read after its memory was written: copy it first */
    double seconds;                  /* of arithmetic, for one element */
    T num[PROGRAM_NUMBERS];
    loop loop[PROGRAM_LENGTH];
} pass;

/* Runs p over the elements of s->out[0]. num and seconds are filled by pass_open. */
void NAME(pass_run)(pass *p);
void NAME(pass_open)(pass *p, const step *s, const frame *f);
#define pass_run  NAME(pass_run)
#define pass_open NAME(pass_open)

#define LOOP_OF(name, formula)                                                                                                   \
    static void loop_##name(T *d, const T *xs, const T *ys, const T *zs, const T *num, int64_t n)                                \
    {                                                                                                                            \
        const T s = num[0], r = num[1];                                                                                          \
        (void)s, (void)r;                                                                                                        \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                                                      \
        {                                                                                                                        \
            const T x = xs[i], y = ys[i], z = zs[i];                                                                             \
            (void)x, (void)y, (void)z;                                                                                           \
            d[i] = formula;                                                                                                      \
        }                                                                                                                        \
    }

#endif
