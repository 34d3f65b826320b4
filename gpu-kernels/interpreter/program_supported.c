/* program_supported.c - which programs the interpreter supports, and facts about them that need no CUDA. */
#include "dtype.h"
#include "interpreter.h"
#include "supported.h"

duet_dtype reduce_type(int op, duet_dtype type)
{
    return op_infos[op].flags & OP_GIVES_INDEX ? DUET_I64 : type;
}

static bool is_integer(duet_dtype type) { return type == DUET_I64 || type == DUET_U64; }

static bool is_move(const instruction *c)
{
    return c->op == OP_STORE || (c->op == OP_LOAD && c->arg[0].kind == FROM_INPUT);
}

bool program_moves(const step *s)
{
    const duet_dtype type = step_type(s);
    for (const instruction *c = s->program->code; c < s->program->code + s->program->length; c++)
        if (!is_move(c)) return false;
    for (int k = 0; k < s->outs + s->ins; k++)
        if ((k < s->outs ? &s->out[k] : &s->in[k - s->outs])->at.type != type) return false;
    return true;
}

/* The type of the value that is written to output i, before conversion. */
static duet_dtype given_type(const program *p, int i, duet_dtype type)
{
    for (const instruction *c = p->code; c < p->code + p->length; c++)
        if (op_infos[c->op].kind == KIND_REDUCE && c->arg[2].index == i) return reduce_type(c->op, type);
    return type;
}

bool program_converts(const step *s)
{
    const duet_dtype type = step_type(s);
    bool other = !dtype_is_f32_or_f64(type);
    for (int k = 0; k < s->ins; k++) other |= s->in[k].at.type != type;
    for (int k = 0; k < s->outs; k++) other |= s->out[k].at.type != given_type(s->program, k, type);
    return other && !program_moves(s);
}

static const char *instruction_unsupported(const step *s, const instruction *c, duet_dtype type)
{
    const program *p = s->program;
    const bool wraps = c->op == OP_WRAP;
    REJECT(c->type != type, "all instructions must have one element type");
    REJECT(c->op < OPS && !(op_infos[c->op].flags & (is_integer(type) ? OP_INTEGERS : OP_FLOATS)),
           "the operator is not defined for the element type");
    REJECT(wraps && !(is_integer(type) && op_wraps_to(c->arg[1].index)),
           "only integers can wrap to an integer type");
    REJECT(p->reductions ? c->op == OP_STORE : op_infos[c->op].kind == KIND_REDUCE,
           "a program must either store or reduce its results");
    REJECT(op_infos[c->op].flags & OP_GIVES_INDEX && s->out[c->arg[2].index].at.type != DUET_I64,
           "indices must be i64");
    return NULL;
}

/* Programs that only move elements may be of any type. */
static const char *types_unsupported(const step *s)
{
    const duet_dtype type = step_type(s);
    if (program_moves(s)) return NULL;
    REJECT(!dtype_is_f32_or_f64(type) && !is_integer(type), "programs compute in f32, f64, i64 or u64");
    for (int k = 0; k < s->ins; k++)
        REJECT(dtype_kind(s->in[k].at.type) == TYPE_COMPLEX,
               "element-wise programs have no complex elements");
    for (int k = 0; k < s->outs; k++)
        REJECT(dtype_kind(s->out[k].at.type) == TYPE_COMPLEX,
               "element-wise programs have no complex elements");
    return NULL;
}

const char *program_unsupported(const step *s)
{
    const program *p = s->program;
    interp_program m;
    REJECT(!p || p->length == 0, "the step has no program");
    const duet_dtype type = step_type(s);
    REJECT(p->reductions ? s->inner == 0 || s->inner > s->out[0].at.rank : s->inner > 0,
           "a program with reductions must have reduced axes, and others must not");
    const char *why = types_unsupported(s);
    for (const instruction *c = p->code; c < p->code + p->length && !why; c++)
        why = instruction_unsupported(s, c, type);
    return why ? why : interp_encode(&m, p, NULL);
}
