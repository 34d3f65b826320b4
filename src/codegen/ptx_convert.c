/* ptx_convert.c - conversions of elements that are not of the program's type, as convert.h makes them
 * (ptx_writer.h). */
#include "ptx_writer.h"
#include <stdio.h>

/* Elements of the program's type need no conversion. */
static bool is_own(const writer *w, int type) { return type == w->r->type; }

char ptx_kind(const writer *w, int type)
{
    if (is_own(w, type)) return 'v';
    return bytes_of(type) == 8 ? 'd' : 'w';
}

int ptx_fresh_raw(writer *w, int type)
{
    const char kind = ptx_kind(w, type);
    return kind == 'v' ? fresh(w) : kind == 'd' ? w->doubles++ : w->words++;
}

/* ---- from the type in memory ---- */

/* 1 and 0 in the program's type. */
static const char *one_and_zero(const writer *w)
{
    if (is_integer(w)) return "1, 0";
    return is_f64(w) ? "0d3ff0000000000000, 0d0000000000000000" : "0f3f800000, 0f00000000";
}

static int truth(writer *w, int raw)
{
    const int c = w->conditions++, to = fresh(w);
    put(w, "setp.ne.u32 %%c%d, %%w%d, 0;\nselp.%s %%v%d, %s, %%c%d;\n", c, raw, type(w), to, one_and_zero(w),
        c);
    return to;
}

/* Converts a floating-point register to the program's integer type: rounds toward zero and clamps, as the
 * instruction does. NaN becomes 0. */
static int to_own_integer(writer *w, const char *from, const char *reg)
{
    const int c = w->conditions++, to = fresh(w);
    put(w, "setp.num.%s %%c%d, %s, %s;\ncvt.rzi.%s.%s %%v%d, %s;\nselp.b64 %%v%d, %%v%d, 0, %%c%d;\n", from,
        c, reg, reg, type(w), from, to, reg, to, to, c);
    return to;
}

/* Converts an f16, or a bf16 if `brain`, in the low 16 bits of %w to the program's type. */
static int from_half(writer *w, int raw, bool brain)
{
    if (brain) put(w, "shl.b32 %%word, %%w%d, 16;\n", raw);
    else put(w, "cvt.u16.u32 %%half, %%w%d;\ncvt.f32.f16 %%word, %%half;\n", raw);
    if (is_integer(w)) return to_own_integer(w, "f32", "%word");
    const int to = fresh(w);
    put(w, is_f64(w) ? "cvt.f64.f32 %%v%d, %%word;\n" : "mov.b32 %%v%d, %%word;\n", to);
    return to;
}

/* Converts an f32 or f64 that is not of the program's type. */
static int from_float(writer *w, int from, int raw)
{
    char reg[16];
    snprintf(reg, sizeof reg, "%%%c%d", ptx_kind(w, from), raw);
    if (is_integer(w)) return to_own_integer(w, from == DUET_F64 ? "f64" : "f32", reg);
    const int to = fresh(w);
    put(w, from == DUET_F64 ? "cvt.rn.f32.f64 %%v%d, %s;\n" : "cvt.f64.f32 %%v%d, %s;\n", to, reg);
    return to;
}

/* Converts an integer to the program's type. */
static int from_integer(writer *w, int from, int raw)
{
    const char *sign = dtypes[from].kind == TYPE_SIGNED ? "s" : "u";
    const int to = fresh(w);
    if (is_integer(w) && bytes_of(from) == 8) put(w, "mov.b64 %%v%d, %%d%d;\n", to, raw);
    else if (is_integer(w)) put(w, "cvt.%s64.%s32 %%v%d, %%w%d;\n", sign, sign, to, raw);
    else if (bytes_of(from) == 8) put(w, "cvt.rn.%s.%s64 %%v%d, %%d%d;\n", type(w), sign, to, raw);
    else put(w, "cvt.rn.%s.%s32 %%v%d, %%w%d;\n", type(w), sign, to, raw);
    return to;
}

int ptx_converted(writer *w, int from, int raw)
{
    if (is_own(w, from)) return raw;
    if (from == DUET_BOOL) return truth(w, raw);
    if (from == DUET_F16 || from == DUET_BF16) return from_half(w, raw, from == DUET_BF16);
    if (from == DUET_F32 || from == DUET_F64) return from_float(w, from, raw);
    return from_integer(w, from, raw);
}

/* ---- to the type in memory ---- */

/* To an integer of at most 32 bits: rounds toward zero, clamps to the range of the type; NaN becomes 0. */
static int to_narrow_integer(writer *w, int to, int x)
{
    const bool is_signed = dtypes[to].kind == TYPE_SIGNED;
    const int c = w->conditions++, raw = w->words++, size = 8 * bytes_of(to);
    put(w,
        "setp.num.%s %%c%d, %%v%d, %%v%d;\ncvt.rzi.%s32.%s %%w%d, %%v%d;\nselp.b32 %%w%d, %%w%d, 0, %%c%d;\n",
        type(w), c, x, x, is_signed ? "s" : "u", type(w), raw, x, raw, raw, c);
    if (size == 32) return raw;
    if (is_signed)
        put(w, "min.s32 %%w%d, %%w%d, %d;\nmax.s32 %%w%d, %%w%d, %d;\n", raw, raw, (1 << (size - 1)) - 1, raw,
            raw, -(1 << (size - 1)));
    else put(w, "min.u32 %%w%d, %%w%d, %d;\n", raw, raw, (1 << size) - 1);
    return raw;
}

/* Returns a register with the low bits of an integer of the program. */
static int low_bits(writer *w, int to, int x)
{
    const int raw = ptx_fresh_raw(w, to);
    if (bytes_of(to) == 8) put(w, "mov.b64 %%d%d, %%v%d;\n", raw, x);
    else put(w, "cvt.u32.u64 %%w%d, %%v%d;\n", raw, x);
    return raw;
}

static int to_bool(writer *w, int x)
{
    const int raw = ptx_fresh_raw(w, DUET_BOOL), c = w->conditions++;
    put(w, "setp.%s.%s %%c%d, %%v%d, %s;\nselp.b32 %%w%d, 1, 0, %%c%d;\n", is_integer(w) ? "ne" : "neu",
        type(w), c, x,
        is_integer(w) ? "0"
        : is_f64(w)   ? "0d0000000000000000"
                      : "0f00000000",
        raw, c);
    return raw;
}

/* Converts by way of f32. This would round f64 twice, and integers to bf16 too. Every integer that f32 rounds
 * is out of the range of f16. */
static int to_half(writer *w, int to, int x)
{
    const int raw = ptx_fresh_raw(w, to);
    w->failed |= is_f64(w) || (is_integer(w) && to == DUET_BF16);
    if (is_integer(w)) put(w, "cvt.rn.f32.%s %%word, %%v%d;\n", type(w), x);
    else put(w, "mov.b32 %%word, %%v%d;\n", x);
    put(w, "cvt.rn.%s.f32 %%half, %%word;\ncvt.u32.u16 %%w%d, %%half;\n", to == DUET_F16 ? "f16" : "bf16",
        raw);
    return raw;
}

static int to_float(writer *w, int to, int x)
{
    const int raw = ptx_fresh_raw(w, to);
    const char *name = to == DUET_F64 ? "f64" : "f32", kind = ptx_kind(w, to);
    put(w, "cvt%s.%s.%s %%%c%d, %%v%d;\n", to == DUET_F64 && !is_integer(w) ? "" : ".rn", name, type(w), kind,
        raw, x);
    return raw;
}

int ptx_stored(writer *w, int to, int x)
{
    if (is_own(w, to)) return x;
    if (to == DUET_BOOL) return to_bool(w, x);
    if (to == DUET_F16 || to == DUET_BF16) return to_half(w, to, x);
    if (to == DUET_F32 || to == DUET_F64) return to_float(w, to, x);
    if (is_integer(w)) return low_bits(w, to, x);
    if (bytes_of(to) < 8) return to_narrow_integer(w, to, x);
    w->failed = true;
    return x;
}
