/* superlu.h - solves sparse systems with SuperLU. */
#ifndef CPU_SUPERLU_H
#define CPU_SUPERLU_H

#include <stdbool.h>

/* A square matrix in compressed rows. The arrays are only read. */
typedef struct superlu_system {
    int n, count, sides;
    const int *offset, *column;
    const void *values;
    bool transposed; /* solve with the transpose */
    void *x;         /* right-hand sides as columns, which are replaced by the solutions */
    int *work;       /* 5 n numbers */
} superlu_system;

enum { SUPERLU_SOLVED = 0, SUPERLU_NO_MEMORY = -1 };
/* 0; a positive number: the pivot, from 1, that is 0; SUPERLU_NO_MEMORY */
typedef int superlu_function(const superlu_system *s);
superlu_function superlu_f32, superlu_f64, superlu_c64, superlu_c128;

#endif
