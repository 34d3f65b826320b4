/* x86_kernel.h - machine code for x86-64 from a list of operations (codegen/code_list.h). */
#ifndef X86_KERNEL_H
#define X86_KERNEL_H

#include "code_list.h"
#include "x86_encode.h"

/* Where a kernel finds its operands in the table of addresses that it gets, and what it may call. */
typedef struct kernel_request {
    const code_list *list;
    bool wide;                         /* AVX-512, else AVX2 */
    duet_dtype type;                   /* f32, f64, i64 or u64 */
    uint32_t scalars;                  /* bit k: input k is one element for the whole run */
    uint32_t streams;                  /* bit k: output k is written with streaming stores */
    int inputs, numbers, outputs, row; /* places of the first input, number, output, and of the row */
    int part;                          /* elements between the parts of a state */
    void (*const *functions)(
        void); /* interp_functions: pairs, of which CODE_CALL and CODE_GUARD call `tail` */
} kernel_request;

/* Writes a kernel:
 *     void kernel(void *const *value, int64_t n, int64_t rows, const int64_t *row_step)
 * It computes n elements of one row. If the list has reductions, it computes `rows` rows of n
 * elements, as interp_run does. If n is at least the elements of a register, addresses of outputs
 * with streaming stores must be multiples of its size. The caller frees *x, also after an error.
 * Errors    false if there is no memory, if the list needs more registers, or an instruction that
 *           AVX2 does not have */
bool x86_kernel(x86_code *x, const kernel_request *r);

#endif
