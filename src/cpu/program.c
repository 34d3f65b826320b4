/* program.c - the entry of element-wise programs. */
#include "cpu_kernels.h"
#include "dtype.h"
#include "move_program.h"
#include <stdlib.h>

static bool gives_index(const step *s, int output)
{
    bool index = false;
    for (int k = 0; k < s->program->length; k++) {
        const instruction *i = &s->program->code[k];
        index |= op_infos[i->op].flags & OP_GIVES_INDEX && i->arg[2].index == output;
    }
    return index;
}

/* Does the interpreter of this type have the instruction? */
static bool has_instruction(const instruction *i, duet_dtype type)
{
    const bool integers = dtype_is_integer(type);
    if (op_infos[i->op].kind == KIND_MAP || op_infos[i->op].kind == KIND_REDUCE)
        return (op_infos[i->op].flags & (integers ? OP_INTEGERS : OP_FLOATS)) != 0;
    if (i->op == OP_WRAP)
        return integers && (dtype_is_integer(i->arg[1].index) || i->arg[1].index == DUET_BOOL);
    return i->op == OP_LOAD || i->op == OP_SAVE || i->op == OP_STORE;
}

static bool has_real_operands(const step *s)
{
    bool real = true;
    for (int k = 0; k < s->outs; k++) real &= !dtype_is_complex(s->out[k].at.type);
    for (int k = 0; k < s->ins; k++) real &= !dtype_is_complex(s->in[k].at.type);
    return real;
}

static const char *program_unsupported(const step *s)
{
    const duet_dtype type = step_computes_in(s);
    const bool computes = type == DUET_F32 || type == DUET_F64 || type == DUET_I64 || type == DUET_U64;
    if (!computes)
        return is_move_program(s) && s->out[0].at.type == type
                   ? NULL
                   : "arithmetic on this element type is not implemented";
    if (!has_real_operands(s)) return "element-wise programs have no complex elements";
    for (const instruction *i = s->program->code; i < s->program->code + s->program->length; i++) {
        if (i->type != type) return "all instructions must have one element type";
        if (!has_instruction(i, type))
            return dtype_is_integer(type) ? "the operator is not defined for integers"
                                          : "the operator is defined for integers only";
    }
    for (int k = 0; k < s->outs; k++)
        if (gives_index(s, k) && s->out[k].at.type != DUET_I64) return "indices must be i64";
    return NULL;
}

void program_forget(step *s)
{
    program_cache *c = s->cached;
    if (c) generated_forget(&c->generated);
    free(c);
    s->cached = NULL;
}

static duet_status run_program(const step *s, const frame *f)
{
    const isa_functions *k = isa_functions_of(step_computes_in(s));
    return (s->program->reductions ? k->reduction : k->program)(s, f);
}

static size_t program_scratch(const step *s)
{
    return s->program->reductions ? isa_functions_of(step_computes_in(s))->reduction_scratch(s) : 0;
}

static const char *program_algorithm(const step *s)
{
    return generated_exists(s->program, step_computes_in(s)) ? "machine code" : NULL;
}

const cpu_kernel cpu_kernel_program = { program_unsupported,       run_program,
                                        cost_of_program,           program_algorithm,
                                        .forget = program_forget,  .is_sure = always_sure,
                                        .scratch = program_scratch };
