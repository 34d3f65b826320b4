/* x86_decode.h - checks machine code that is generated for a program, without running it: it consists of
 * whole instructions of its instruction set, jumps lead to instructions, constants are in the pool,
 * operands of the stack are in its frame, and it returns once. */
#ifndef X86_DECODE_H
#define X86_DECODE_H

#include "program.h"

/* What code is generated for, besides the program (x86_kernel.h; bits: code_list_drop_wraps). */
typedef struct machine_code_choice {
    uint32_t scalars, streams;
    int bits;
} machine_code_choice;

/* Returns what is wrong with the code for AVX-512 (wide) or AVX2; NULL if it is right, or if there is
 * none. */
const char *machine_code_fault(const program *p, duet_dtype type, bool wide, machine_code_choice c);

#endif
