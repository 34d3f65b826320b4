/* legalize_types.c - operators that machines have in some types alone: their operands are converted before, their results after. Passes around them
 * do that on their way, where there are any. What moves elements by data has them as they are: formulas of halves are rounded before. */
#include "canonicalize.h"
#include "dtype.h"
#include "index_ops.h"

/* Sums of so many products of integers of up to 16 bits are exact in f64; or, of convolutions, whose algorithm is the vendor's, so near that
 * rounding makes them so. */
#define EXACT_TERMS (1 << 21)
#define NEAR_TERMS  (1 << 14)

/* How many products a sum is of, or more. */
static int64_t terms_of(const graph *g, const value *v)
{
    const value *x = value_at(g, v->arg[v->op == OP_conv2d]);
    int64_t n = 1;
    if (v->op == OP_matmul) return x->size[x->rank - 1];
    for (int i = v->op == OP_conv2d; i < x->rank; i++) n *= x->size[i];
    return n;
}

static bool is_near(const graph *g, const value *v)
{
    const size_t bytes = dtypes[v->type].bytes;
    return bytes == 1 || (bytes == 2 && terms_of(g, v) <= (v->op == OP_conv2d ? NEAR_TERMS : EXACT_TERMS));
}

/* The type that machines have v's operator in. Of integers sums are to be had modulo 2^n. */
static duet_dtype runs_in(const graph *g, const value *v)
{
    const duet_dtype t = (duet_dtype)v->type;
    const size_t bytes = dtypes[t].bytes;
    if (dtype_is_half(t)) return DUET_F32;
    if (dtype_kind(t) >= TYPE_FLOAT) return t;
    if (order_computes(v->op)) return DUET_I64;
    if (v->op == OP_upsample2d) return bytes <= 2 ? DUET_F32 : t; /* is moved by size */
    if (v->op == OP_max_pool2d) return bytes <= 2 ? DUET_F32 : DUET_F64;
    if (dtype_kind(t) == TYPE_BOOL) return DUET_F32;
    return is_near(g, v) ? DUET_F64 : DUET_I64;
}

static value as_type(const value *x, duet_dtype t)
{
    value like = *x;
    like.type = (uint8_t)t;
    return like;
}

/* Transposes stay: machines read them as they lie. */
static int operand_in(graph *g, int v, duet_dtype t)
{
    value x = copy_of(g, v);
    if (x.mem == t) return v;
    if (x.op != OP_transpose) {
        const value like = as_type(&x, t);
        return make_cast(g, &like, v);
    }
    x.arg[0] = operand_in(g, x.arg[0], t);
    x.type = (uint8_t)t, x.comp = x.mem = COMP_UNSET;
    return intern(g, &x);
}

/* The greatest of u64 are those of i64 half of their range below. */
static int flipped(graph *g, int v)
{
    const value x = copy_of(g, v);
    value f = blank(OP_bitwise_xor, &x);
    f.args = 2, f.arg[0] = constant_number(g, -0x1p63), f.arg[1] = v;
    return make_unfused(g, &f);
}

static int to_type(graph *g, int v, duet_dtype t)
{
    const value x = copy_of(g, v), like = as_type(&x, t);
    return make_cast(g, &like, v);
}

static int rounded(graph *g, int v)
{
    const value x = copy_of(g, v);
    value r = blank(OP_round, &x);
    r.args = 1, r.arg[0] = v;
    return intern(g, &r);
}

static bool is_flipped(const value *v) { return v->op == OP_scatter_max && v->type == DUET_U64; }

/* Sums wrap; what is among its operands is in the type's range, or the least there is. */
static int result_of(graph *g, int made, const value *v, duet_dtype in)
{
    const bool sums = v->op != OP_max_pool2d && v->op != OP_upsample2d;
    if (is_flipped(v)) made = flipped(g, made);
    if (v->op == OP_conv2d) made = rounded(g, made);
    if (sums && in == DUET_F64) made = to_type(g, made, DUET_I64);
    return to_type(g, made, (duet_dtype)v->type);
}

static bool is_index(const value *v, int k) { return k == 1 && order_family(v->op) == ORDER_SCATTER; }

/* Is operand k of its own type, whatever the result's is? */
static bool is_apart(const graph *g, const value *v, int k)
{
    const duet_dtype type = (duet_dtype)value_at(g, v->arg[k])->type;
    return is_index(v, k) || (dtype_is_complex(type) && op_complex[v->op] == COMPLEX_PART);
}

bool value_widens(const graph *g, const value *v)
{
    const bool defined = v->op < OPS && op_infos[v->op].kind == KIND_DEF, moves = value_moves(v);
    if (!defined || v->op == OP_transpose || v->op == OP_bias_add) return false;
    bool differs = !moves && runs_in(g, v) != (duet_dtype)v->type;
    for (int k = 0; k < v->args; k++) {
        const value *x = value_at(g, v->arg[k]);
        differs |= x->mem != (moves || is_apart(g, v, k) ? x->type : v->type);
    }
    return differs;
}

int make_wide(graph *g, const value *v)
{
    value wide = *v;
    for (int k = 0; k < v->args && value_moves(v); k++) wide.arg[k] = make_stored(g, v->arg[k]);
    if (value_moves(v)) return intern(g, &wide);
    const duet_dtype in = runs_in(g, v);
    for (int k = 0; k < v->args; k++) {
        if (is_index(v, k)) continue;
        wide.arg[k] = operand_in(g, v->arg[k], in);
        if (is_flipped(v)) wide.arg[k] = flipped(g, wide.arg[k]);
    }
    if (dtype_kind((duet_dtype)v->type) >= TYPE_FLOAT)
        return intern(g, &wide); /* of halves it is f32 in memory */
    wide.type = (uint8_t)in, wide.comp = wide.mem = COMP_UNSET;
    const int made = intern(g, &wide);
    return in == (duet_dtype)v->type ? made : result_of(g, made, v, in);
}
