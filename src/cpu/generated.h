/* generated.h - machine code for element-wise programs that run often. It is the interpreter's
 * second tier: the same results, without a dispatch for each instruction.
 *
 * Code is made when a step has spent a certain time in the interpreter, so that making it, which
 * takes microseconds, is never a large part of a program's time. It is shared by all steps with the
 * same program, and kept for later ones. If the system refuses memory for it, the interpreter goes
 * on. DUET_JIT=0 turns it off; DUET_JIT=1 makes code at the first run. */
#ifndef GENERATED_H
#define GENERATED_H

#include "generated_mode.h"
#include "lru_cache.h"
#include "program.h"

/* Runs code; value and row_step as for interp_run. Without reductions, one row. */
typedef void generated_kernel(void *const *value, int64_t n, int64_t rows, const int64_t *row_step);

/* What a step knows about its code. Zero for a step that did not run yet. */
typedef struct generated_use {
    double spent; /* expected time in the interpreter so far, in seconds */
    lru_item *item;
    bool refused; /* there is no code for it */
} generated_use;

/* What code is made for, besides the program. Without padding, which would differ in equal keys. */
typedef struct generated_form {
    uint32_t scalars, streams;                   /* as for interp_compile */
    uint8_t type;                                /* f32, f64, i64 or u64 */
    uint8_t wide;                                /* 1: AVX-512, 0: AVX2 */
    uint8_t inputs, numbers, outputs, row, part; /* as of kernel_request */
    uint8_t bits;                                /* as for code_list_drop_wraps */
    const void *functions; /* interp_functions: pairs of which the second one is called */
} generated_form;
_Static_assert(sizeof(generated_form) == 16 + sizeof(void *), "no padding");

/* The code of a step that is about to run for `seconds`, or NULL. */
generated_kernel *generated_for(generated_use *u, const program *p, const generated_form *form,
                                double seconds);
void generated_forget(generated_use *u);

void generated_clear(void); /* frees code that no step uses, for tests */

/* Is there code for a program of this element type? */
bool generated_exists(const program *p, duet_dtype type);

#endif
