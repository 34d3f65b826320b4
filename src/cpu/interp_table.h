/* interp_table.h - the handlers of the expression machine, by row, form and end. A template. */
#ifndef TILE_TABLE_H
#define TILE_TABLE_H

#include "interp.h"

typedef struct handlers {
    void (*tile)(void), (*tail)(void);
} handlers;

/* How a handler ends: in the next one; having stored the accumulator; having stored it, and for good. */
enum { NEXT_END, SAVE_END, LAST_END, ENDS };
typedef const handlers ends[ENDS];

/* Where an operand comes from: the accumulator, a bank (simd_registers.h), memory, or one element. */
enum { CLASS_A, CLASS_B, CLASS_C, CLASS_M, CLASS_S, CLASS_N = 0, CLASSES = 5, BANKS = 2 };
#define FORM(x, y, z) ((x) + CLASSES * (y) + CLASSES * CLASSES * (z))
#define FUSED_FORMS   (FORM(CLASS_S, CLASS_S, CLASS_S) + 1)

/* A row: its forms, of which some have no handlers. Those of reductions and functions have one end, and of rows that commute the first two operands are in
 * the order of the classes. */
typedef struct tile_row {
    ends *form;
    int forms;
    double seconds; /* rough, of one element */
} tile_row;

typedef struct tile_table {
    tile_row row[OPS_ALL];
    ends *move;                          /* LOAD, SAVE and STORE, by class */
    ends stream;                         /* STORE past the caches */
    ends wrap[DUET_DTYPE_COUNT];         /* WRAP of the accumulator, by type: of integers */
    handlers stop, keep[BANKS][CLASSES]; /* the end; into a bank, by class */
    handlers fused[KERNELS - KERNEL_PROGRAM][FUSED_FORMS];
    bool banked; /* there are banks */
} tile_table;

extern const tile_table NAME(tile_table);

#endif
