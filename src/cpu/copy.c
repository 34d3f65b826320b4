/* copy.c - copies elements between layouts, as a program of one instruction. */
#include "cpu_kernels.h"
#include "dtype.h"
#include <string.h>

#define SMALL_BYTES ((size_t)16 << 10) /* one thread copies this much before a program starts */

duet_status copy_elements(void *to, const layout *to_at, const void *from, const layout *from_at)
{
    static const program copying = { .length = 2,
                                     .inputs = 1,
                                     .outputs = 1,
                                     .code = { { .op = OP_LOAD, .arg = { { FROM_INPUT, 0 } } },
                                               { .op = OP_STORE } } };
    step s = { .kernel = KERNEL_PROGRAM, .outs = 1, .ins = 1, .program = &copying };
    void *const data[2] = { to, (void *)from };
    const frame f = { .data = data };
    layout *const layouts[] = { &s.out[0].at, &s.in[0].at };
    s.out[0] = (operand){ 0, *to_at };
    s.in[0] = (operand){ 1, *from_at };
    layout_order(layouts, 2);
    layout_collapse(layouts, 2);
    const size_t bytes = (size_t)layout_count(layouts[0]) * dtypes[to_at->type].bytes;
    if (bytes <= SMALL_BYTES && layout_is_dense(layouts[0]) && layout_is_dense(layouts[1])) {
        memcpy(to, from, bytes);
        return DUET_OK;
    }
    duet_status r = isa_functions_of(to_at->type)->program(&s, &f);
    program_forget(&s);
    return r;
}

duet_status scratch_copy(const operand *o, const frame *f, void **p)
{
    layout dense;
    layout_dense(&dense, o->at.type, o->at.rank, o->at.size);
    TRY(scratch_take((size_t)layout_count(&dense) * dtypes[dense.type].bytes, f, p));
    return copy_elements(*p, &dense, address(f, o), &o->at);
}
