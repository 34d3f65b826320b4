/* oracle_types.c - the element types, by their definitions in docs/semantics.md. */
#include "oracle_types.h"
#include "element.h"
#include "int128_reference.h"
#include <math.h>
#include <string.h>

/* ---- promotion: rows and columns in the order of the type names ---- */

#define TYPES 15
static const char *const named[TYPES] = { "bool", "i8",  "i16", "i32",  "i64", "u8",  "u16", "u32",
                                          "u64",  "f16", "f32", "bf16", "f64", "c64", "c128" };
static const char *const common[TYPES] = {
    "bool i8   i16  i32  i64  u8   u16  u32  u64  f16  f32  bf16 f64  c64  c128",
    "i8   i8   i16  i32  i64  i16  i32  i64  -    -    -    -    -    -    -   ",
    "i16  i16  i16  i32  i64  i16  i32  i64  -    -    -    -    -    -    -   ",
    "i32  i32  i32  i32  i64  i32  i32  i64  -    -    -    -    -    -    -   ",
    "i64  i64  i64  i64  i64  i64  i64  i64  -    -    -    -    -    -    -   ",
    "u8   i16  i16  i32  i64  u8   u16  u32  u64  -    -    -    -    -    -   ",
    "u16  i32  i32  i32  i64  u16  u16  u32  u64  -    -    -    -    -    -   ",
    "u32  i64  i64  i64  i64  u32  u32  u32  u64  -    -    -    -    -    -   ",
    "u64  -    -    -    -    u64  u64  u64  u64  -    -    -    -    -    -   ",
    "f16  -    -    -    -    -    -    -    -    f16  f32  f32  f64  c64  c128",
    "f32  -    -    -    -    -    -    -    -    f32  f32  f32  f64  c64  c128",
    "bf16 -    -    -    -    -    -    -    -    f32  f32  bf16 f64  c64  c128",
    "f64  -    -    -    -    -    -    -    -    f64  f64  f64  f64  c128 c128",
    "c64  -    -    -    -    -    -    -    -    c64  c64  c64  c128 c64  c128",
    "c128 -    -    -    -    -    -    -    -    c128 c128 c128 c128 c128 c128",
};

static int name_index(const char *name)
{
    int i = 0;
    while (i < TYPES && strcmp(named[i], name)) i++;
    return i;
}

static duet_dtype type_of_name(const char *text)
{
    char name[6] = "";
    sscanf(text, "%5s", name);
    for (duet_dtype t = 0; t < DUET_DTYPE_COUNT; t++)
        if (!strcmp(dtypes[t].name, name)) return t;
    return DUET_DTYPE_COUNT;
}

duet_dtype promoted(duet_dtype a, duet_dtype b)
{
    return type_of_name(common[name_index(dtypes[a].name)] + 5 * name_index(dtypes[b].name));
}

duet_dtype computed_type(duet_dtype t)
{
    if (t == DUET_F64 || t == DUET_U64) return t;
    if (is_floating(t) || t == DUET_BOOL) return DUET_F32;
    return DUET_I64;
}

/* ---- casts ---- */

static bool exact(bounds b) { return !b.wild && (b.lo == b.hi || b.v != b.v); }

static bounds truth(bounds b)
{
    const bool is = b.v != 0, open = b.wild || (!exact(b) && b.lo <= 0 && b.hi >= 0);
    if (open) return (bounds){ is, 0, 1, false };
    return (bounds){ is, is, is, false };
}

/* A bound has fewer digits than a quad; rounds outwards. */
static long double outside(quad x, bool is_exact, int up)
{
    const long double near = (long double)x;
    if (is_exact || near == x) return near;
    return nextafterl(near, up ? INFINITY : -INFINITY);
}

bounds cast_bounds(duet_dtype from, duet_dtype to, bounds b)
{
    if (to == DUET_BOOL) return truth(b);
    if (b.wild) return b;
    const bool is_exact = exact(b);
    if (!is_floating(from) && !is_floating(to) && !is_exact) {
        b.wild = true;
        return b;
    }
    if (b.v != b.v) b.lo = b.hi = b.v;
    return (bounds){ converted(from, to, (long double)b.v), converted(from, to, outside(b.lo, is_exact, 0)),
                     converted(from, to, outside(b.hi, is_exact, 1)), false };
}

/* ---- integers ---- */

static const bounds anything = { 0, 0, 0, true };

static whole within(duet_dtype t, whole x)
{
    const int bits = 8 * (int)dtypes[t].bytes;
    const whole all = (whole)1 << bits, rest = x & (all - 1);
    if ((t == DUET_I8 || t == DUET_I16 || t == DUET_I32 || t == DUET_I64) && rest >= all / 2)
        return rest - all;
    return rest;
}

static bounds bounds_of(duet_dtype t, whole x)
{
    const quad q = (quad)within(t, x);
    return (bounds){ q, q, q, false };
}

bounds whole_bounds(duet_dtype t, quad v)
{
    if (v != v || v - v != 0) return cast_bounds(DUET_F64, t, (bounds){ v, v, v, false });
    return bounds_of(t, (whole)v);
}

WRAPS static bool mapped(int op, whole x, whole y, whole *r)
{
    switch (op) {
    case OP_neg: *r = -x; return true;
    case OP_abs: *r = x < 0 ? -x : x; return true;
    case OP_add: *r = x + y; return true;
    case OP_sub: *r = x - y; return true;
    case OP_mul: *r = x * y; return true;
#define DUET_INT1(name, formula, oracle, ...)                                                                \
    case OP_##name:                                                                                          \
        return *r = oracle, true;
#define DUET_INT2 DUET_INT1
#include <duet/ops.def>
    case OP_floor_divide: *r = Q(floor_div)(x, y); return true;
    case OP_remainder: *r = Q(modulo)(x, y); return true;
    case OP_fmod: *r = Q(fmod)(x, y); return true;
    case OP_pow: *r = Q(pow)(x, y); return true;
    default: return false;
    }
}

static bool whole_map(const node *n, const table *in, table *out)
{
    whole r;
    if (!mapped(n->op, 0, 0, &r)) return false;
    const table *y = op_infos[n->op].arity > 1 ? &in[1] : &in[0];
    for (int64_t e = 0; e < out->count; e++) {
        const bounds a = in[0].at[table_source(&in[0], out, e)], b = y->at[table_source(y, out, e)];
        out->at[e] = anything;
        if (exact(a) && exact(b) && mapped(n->op, (whole)a.v, (whole)b.v, &r))
            out->at[e] = bounds_of((duet_dtype)n->type, r);
    }
    return true;
}

WRAPS static void take(const node *n, bounds x, bounds y, bounds *a)
{
    if (n->op == OP_sum && !a->wild && !x.wild && !(exact(x) && exact(*a))) {
        a->v += x.v;
        a->lo += x.lo;
        a->hi += x.hi; /* some bools may be either value */
        return;
    }
    if (!exact(x) || !exact(y) || !exact(*a)) {
        a->wild = true;
        return;
    }
    const whole term = n->op == OP_dot ? (whole)x.v * (whole)y.v : (whole)x.v, before = (whole)a->v;
    *a = bounds_of((duet_dtype)n->type, n->op == OP_prod ? before * term : before + term);
}

static bool whole_reduce(const node *n, const table *in, table *out)
{
    if (n->op != OP_sum && n->op != OP_prod && n->op != OP_dot) return false;
    const int axes = n->attr.reduce.axes;
    const int64_t count = folded_count(&in[0], axes);
    for (int64_t e = 0; e < out->count; e++) {
        bounds a = bounds_of((duet_dtype)n->type, n->op == OP_prod);
        for (int64_t k = 0; k < count; k++) {
            const int64_t at = folded(&in[0], axes, e, k);
            take(n, in[0].at[at], n->op == OP_dot ? in[1].at[at] : in[0].at[at], &a);
        }
        out->at[e] = a;
    }
    return true;
}

bool whole_meaning(const node *n, const table *in, table *out)
{
    return whole_map(n, in, out) || whole_reduce(n, in, out);
}

int op_of_bools(int op)
{
    switch (op) {
    case OP_bitwise_not: return OP_logical_not;
    case OP_bitwise_and: return OP_logical_and;
    case OP_bitwise_or: return OP_logical_or;
    case OP_bitwise_xor: return OP_logical_xor;
    default: return op;
    }
}
