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

/* A loop eight times: bit k of the index says that operand k is one element for all. Those that a formula lacks change nothing. */
typedef loop_function *const loop_choice[8];

enum {
    INPUTS,
    NUMBERS = INPUTS + PROGRAM_INPUTS,
    BUFFERS = NUMBERS + PROGRAM_NUMBERS,
    OUTPUTS = BUFFERS + PROGRAM_SLOTS + 1,
    VALUES = OUTPUTS + PROGRAM_OUTPUTS
};

typedef struct loop {
    loop_function *const *choice;
    loop_function *run;
    uint8_t to, from[3]; /* values */
} loop;

typedef struct pass {
    const step *s;
    const frame *f;
    uint8_t loops, buffers;
    uint32_t early; /* bit k: input k is read after its memory was written: copy it first */
    double seconds; /* of arithmetic, for one element */
    T num[PROGRAM_NUMBERS];
    loop loop[PROGRAM_LENGTH];
} pass;

/* Runs p over the elements of s->out[0]. num and seconds are filled by pass_open. */
void NAME(pass_run)(pass *p);
void NAME(pass_open)(pass *p, const step *s, const frame *f);
#define pass_run  NAME(pass_run)
#define pass_open NAME(pass_open)

#define LOOP_OF(name, singles, formula)                                                                                          \
    static void loop_##name##singles(T *d, const T *xs, const T *ys, const T *zs, const T *num, int64_t n)                       \
    {                                                                                                                            \
        const T s = num[0], r = num[1], x0 = *xs, y0 = *ys, z0 = *zs;                                                            \
        (void)s, (void)r;                                                                                                        \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                                                      \
        {                                                                                                                        \
            const T x = singles & 1 ? x0 : xs[i], y = singles & 2 ? y0 : ys[i], z = singles & 4 ? z0 : zs[i];                    \
            (void)x, (void)y, (void)z;                                                                                           \
            d[i] = formula;                                                                                                      \
        }                                                                                                                        \
    }

/* The loops of a formula in x, in x and y, and in x, y and z; then the eight of them. */
#define LOOPS1(name, formula) LOOP_OF(name, 0, formula) LOOP_OF(name, 1, formula)
#define LOOPS2(name, formula) LOOPS1(name, formula) LOOP_OF(name, 2, formula) LOOP_OF(name, 3, formula)
#define LOOPS3(name, formula)                                                                                                    \
    LOOPS2(name, formula)                                                                                                        \
    LOOP_OF(name, 4, formula) LOOP_OF(name, 5, formula) LOOP_OF(name, 6, formula) LOOP_OF(name, 7, formula)
#define PICK_(name, a, b, c, d, e, f, g, h)                                                                                      \
    {                                                                                                                            \
        loop_##name##a, loop_##name##b, loop_##name##c, loop_##name##d, loop_##name##e, loop_##name##f, loop_##name##g,          \
            loop_##name##h                                                                                                       \
    }
#define PICK1(name) PICK_(name, 0, 1, 0, 1, 0, 1, 0, 1)
#define PICK2(name) PICK_(name, 0, 1, 2, 3, 0, 1, 2, 3)
#define PICK3(name) PICK_(name, 0, 1, 2, 3, 4, 5, 6, 7)

#endif
