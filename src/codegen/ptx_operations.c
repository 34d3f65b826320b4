/* ptx_operations.c - writes operations and formulas as PTX (ptx_writer.h). */
#include "ptx_writer.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) void ptx_put(writer *w, const char *format, ...)
{
    ptx_text *t = w->t;
    for (int again = 0; again < 2 && !t->full; again++) {
        va_list a;
        va_start(a, format);
        const size_t left = t->capacity - t->length;
        const int n = vsnprintf(t->at ? t->at + t->length : NULL, left, format, a);
        va_end(a);
        if (n >= 0 && (size_t)n < left) {
            t->length += (size_t)n;
            return;
        }
        const size_t capacity = 2 * t->capacity + (size_t)(n > 0 ? n : 0) + 8192;
        char *more = realloc(t->at, capacity);
        if (!more) t->full = true;
        else {
            t->at = more;
            t->capacity = capacity;
        }
    }
}

/* ---- operations ---- */

void ptx_constant(writer *w, int to, uint64_t value)
{
    if (bits(w) == 64) put(w, "mov.b64 %%v%d, 0x%016llx;\n", to, (unsigned long long)value);
    else put(w, "mov.b32 %%v%d, 0x%08x;\n", to, (unsigned)value);
}

static int constant_of(writer *w, uint64_t value)
{
    const int to = fresh(w);
    ptx_constant(w, to, value);
    return to;
}

static uint64_t one_of(const writer *w) { return is_f64(w) ? 0x3ff0000000000000u : 0x3f800000u; }

static int two(writer *w, const char *name, const char *suffix, int a, int b)
{
    const int to = fresh(w);
    put(w, "%s.%s %%v%d, %%v%d, %%v%d;\n", name, suffix, to, a, b);
    return to;
}

static int one(writer *w, const char *name, const char *suffix, int a)
{
    const int to = fresh(w);
    put(w, "%s.%s %%v%d, %%v%d;\n", name, suffix, to, a);
    return to;
}

/* The least or greatest, by the formula of scalar_ops.h; f32 and integers have an instruction for it. */
static int extreme(writer *w, bool least, int a, int b)
{
    if (is_integer(w)) return two(w, least ? "min" : "max", type(w), a, b);
    if (!is_f64(w)) return two(w, least ? "min" : "max", "NaN.f32", a, b);
    const int c = w->conditions;
    w->conditions += 3;
    const int better = fresh(w), ends = fresh(w), equal = fresh(w), to = fresh(w);
    put(w, "setp.%s.f64 %%c%d, %%v%d, %%v%d;\nselp.b64 %%v%d, %%v%d, %%v%d, %%c%d;\n", least ? "lt" : "gt", c,
        a, b, better, a, b, c);
    put(w, "setp.neu.f64 %%c%d, %%v%d, %%v%d;\nselp.b64 %%v%d, %%v%d, %%v%d, %%c%d;\n", c + 1, a, a, ends, a,
        better, c + 1);
    put(w, "%s.b64 %%v%d, %%v%d, %%v%d;\n", least ? "or" : "and", equal, a, b);
    put(w, "setp.eq.f64 %%c%d, %%v%d, %%v%d;\nselp.b64 %%v%d, %%v%d, %%v%d, %%c%d;\n", c + 2, a, b, to, equal,
        ends, c + 2);
    return to;
}

/* 1 / x as FN(inverse) of scalar_ops.h computes it. */
static int inverse(writer *w, int x)
{
    const int unit = constant_of(w, one_of(w));
    if (is_f64(w)) return two(w, "div.rn", "f64", unit, x);
    const int y = one(w, "rcp.approx.ftz", "f32", x), minus = one(w, "neg", "f32", x), e = fresh(w),
              to = fresh(w);
    put(w, "fma.rn.f32 %%v%d, %%v%d, %%v%d, %%v%d;\n", e, minus, y, unit);
    put(w, "fma.rn.f32 %%v%d, %%v%d, %%v%d, %%v%d;\n", to, y, e, y);
    return to;
}

/* PTX takes shift counts of 32 bits, so counts of 64 bits are limited to 64 first. */
static int shift_by(writer *w, bool left, int a, int by)
{
    const int to = fresh(w);
    const char *name = left ? "shl.b" : "shr.u";
    if (bits(w) == 64)
        put(w,
            "min.u64 %%address, %%v%d, 64;\ncvt.u32.u64 %%count, %%address;\n%s64 %%v%d, %%v%d, %%count;\n",
            by, name, to, a);
    else put(w, "%s32 %%v%d, %%v%d, %%v%d;\n", name, to, a, by);
    return to;
}

static int multiply_add(writer *w, int operation, int a, int b, int c)
{
    if (operation == CODE_FNMA || operation == CODE_FNMS) a = one(w, "neg", type(w), a);
    if (operation == CODE_FMS || operation == CODE_FNMS) c = one(w, "neg", type(w), c);
    const int to = fresh(w);
    put(w, "fma.rn.%s %%v%d, %%v%d, %%v%d, %%v%d;\n", type(w), to, a, b, c);
    return to;
}

static int condition(writer *w, const char *how, const char *suffix, int a, int b)
{
    const int c = w->conditions++;
    put(w, "setp.%s.%s %%c%d, %%v%d, %%v%d;\n", how, suffix, c, a, b);
    return c;
}

/* Writes one operation of registers a, b, c; returns the register of its result. */
static int operation(writer *w, int operation, int index, int a, int b, int c)
{
    const char *t = type(w), *unsigned_type = bits(w) == 64 ? "u64" : "u32",
               *raw = bits(w) == 64 ? "b64" : "b32";
    switch (operation) {
    case FORMULA_ADD: return two(w, is_integer(w) ? "add" : "add.rn", t, a, b);
    case FORMULA_SUB: return two(w, is_integer(w) ? "sub" : "sub.rn", t, a, b);
    case FORMULA_MUL: return two(w, is_integer(w) ? "mul.lo" : "mul.rn", t, a, b);
    case FORMULA_DIV: return two(w, "div.rn", t, a, b);
    case FORMULA_FMA:
    case CODE_FMS:
    case CODE_FNMA:
    case CODE_FNMS: return multiply_add(w, operation, a, b, c);
    case FORMULA_SQRT: return one(w, "sqrt.rn", t, a);
    case FORMULA_INVERSE: return inverse(w, a);
    case FORMULA_NEG: return one(w, "neg", is_integer(w) ? "s64" : t, a);
    case FORMULA_ABS: return one(w, "abs", t, a);
    case FORMULA_MIN: return extreme(w, true, a, b);
    case FORMULA_MAX: return extreme(w, false, a, b);
    case FORMULA_RINT: return one(w, is_f64(w) ? "cvt.rni.f64" : "cvt.rni.f32", t, a);
    case FORMULA_FLOOR: return one(w, is_f64(w) ? "cvt.rmi.f64" : "cvt.rmi.f32", t, a);
    case FORMULA_LT: return condition(w, "lt", t, a, b);
    case FORMULA_LE: return condition(w, "le", t, a, b);
    case FORMULA_EQ: return condition(w, "eq", t, a, b);
    case FORMULA_NE: return condition(w, is_integer(w) ? "ne" : "neu", t, a, b);
    case FORMULA_GT: return condition(w, "gt", t, a, b);
    case FORMULA_GE: return condition(w, "ge", t, a, b);
    case FORMULA_BIT_EQ: return condition(w, "eq", raw, a, b);
    case FORMULA_BIT_NE: return condition(w, "ne", raw, a, b);
    case FORMULA_BOTH:
    case FORMULA_EITHER: {
        const int to = w->conditions++;
        put(w, "%s.pred %%c%d, %%c%d, %%c%d;\n", operation == FORMULA_BOTH ? "and" : "or", to, a, b);
        return to;
    }
    case FORMULA_SELECT: {
        const int to = fresh(w);
        put(w, "selp.%s %%v%d, %%v%d, %%v%d, %%c%d;\n", raw, to, b, c, a);
        return to;
    }
    case FORMULA_BIT_AND: return two(w, "and", raw, a, b);
    case FORMULA_BIT_OR: return two(w, "or", raw, a, b);
    case FORMULA_BIT_XOR: return two(w, "xor", raw, a, b);
    case FORMULA_BIT_NOT: return one(w, "not", raw, a);
    case FORMULA_BIT_ADD: return two(w, "add", unsigned_type, a, b);
    case FORMULA_BIT_SUB: return two(w, "sub", unsigned_type, a, b);
    case FORMULA_BIT_MUL: return two(w, "mul.lo", unsigned_type, a, b);
    case FORMULA_LEFT:
    case FORMULA_RIGHT: {
        const int to = fresh(w);
        put(w, "%s%d %%v%d, %%v%d, %d;\n", operation == FORMULA_LEFT ? "shl.b" : "shr.u", bits(w), to, a,
            index);
        return to;
    }
    case FORMULA_LEFT_BY: return shift_by(w, true, a, b);
    case FORMULA_RIGHT_BY: return shift_by(w, false, a, b);
    default: w->failed = true; return 0;
    }
}

/* Writes a formula of operands in registers. */
static int formula_of(writer *w, const formula *f, const uint64_t *constants, const int *argument)
{
    int at[512];
    if (f->length > 512 || !f->length) {
        w->failed = true;
        return 0;
    }
    for (int i = 0; i < f->length; i++) {
        const formula_node *n = &f->node[i];
        if (n->operation == FORMULA_ARGUMENT) at[i] = argument[n->arg[0]];
        else if (n->operation == FORMULA_CONSTANT) at[i] = constant_of(w, constants[n->arg[0]]);
        else {
            /* arguments that an operation does not have are 0, the first node */
            const bool shifts = n->operation == FORMULA_LEFT || n->operation == FORMULA_RIGHT;
            at[i] = operation(w, n->operation, shifts ? n->arg[1] : 0, at[n->arg[0]],
                              shifts ? 0 : at[n->arg[1]], at[n->arg[2]]);
        }
    }
    return at[f->result[0]];
}

/* The moderate formula's result y, replaced where x is not moderate. */
static int guard(writer *w, int op, int x, int y)
{
    const formula_table *t = is_f64(w) ? &formulas_f64 : &formulas_f32;
    const float narrow = (float)t->reach[op];
    uint64_t most = 0;
    if (is_f64(w)) memcpy(&most, &t->reach[op], 8);
    else memcpy(&most, &narrow, 4);
    const int c = w->conditions++, label = w->labels++, a = one(w, "abs", type(w), x),
              limit = constant_of(w, most);
    const int to = fresh(w);
    put(w, "setp.le.%s %%c%d, %%v%d, %%v%d;\nmov.b%d %%v%d, %%v%d;\n@%%c%d bra moderate%d;\n", type(w), c, a,
        limit, bits(w), to, y, c, label);
    const int whole = formula_of(w, &t->of[op], t->constants, &x);
    put(w, "mov.b%d %%v%d, %%v%d;\nmoderate%d:\n", bits(w), to, whole, label);
    return to;
}

/* Keeps the low bits that the integer type has, and extends their sign or zeros. */
static int wrapped(writer *w, int integer, int a)
{
    const int to = fresh(w);
    put(w, "bfe.%s64 %%v%d, %%v%d, 0, %d;\n", dtypes[integer].kind == TYPE_SIGNED ? "s" : "u", to, a,
        8 * (int)dtypes[integer].bytes);
    return to;
}

void ptx_element(writer *w, const int in[], int out[])
{
    for (int i = 0; i < w->l->length && !w->failed; i++) {
        const code_node *n = &w->l->node[i];
        const int a = n->arity > 0 ? w->reg[n->arg[0]] : 0, b = n->arity > 1 ? w->reg[n->arg[1]] : 0,
                  c = n->arity > 2 ? w->reg[n->arg[2]] : 0;
        switch (n->operation) {
        case CODE_INPUT: w->reg[i] = in[n->index]; break;
        case CODE_NUMBER: break; /* loaded before */
        case FORMULA_CONSTANT: w->reg[i] = constant_of(w, n->bits); break;
        case CODE_READ: w->reg[i] = a; break;
        case CODE_STORE: out[n->index] = a; break;
        case CODE_WRAP: w->reg[i] = wrapped(w, n->index, a); break;
        case CODE_GUARD: w->reg[i] = guard(w, n->index, a, b); break;
        default: w->reg[i] = operation(w, n->operation, n->index, a, b, c);
        }
    }
}

void ptx_elements(writer *w, vector *x)
{
    for (int u = 0; u < w->r->width && !w->failed; u++) {
        int in[PROGRAM_INPUTS];
        for (int k = 0; k < w->r->inputs; k++) in[k] = x->in[k][u];
        ptx_element(w, in, x->out[u]);
    }
}
