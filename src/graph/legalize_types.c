/* legalize_types.c - backends have some operators only for some types. For other types, the
 * operands are converted before the operator and the result after it. Neighbouring passes do these
 * conversions as they load and store.
 * Operators that move elements accept every type, but need values of halves rounded to memory
 * first. */
#include "canonicalize.h"
#include "dtype.h"
#include <string.h>

/* EXACT_TERMS: sums of up to this many products of integers of at most 16 bits are exact in f64.
 * NEAR_TERMS: convolutions may use an inexact algorithm of a vendor library; up to this many
 * products, rounding the result gives the exact sum. */
#define EXACT_TERMS (1 << 21)
#define NEAR_TERMS  (1 << 14)

/* An upper bound of the number of products in a sum. */
static int64_t terms_of(const graph *g, const value *v)
{
    const value *x = value_at(g, v->arg[v->op == OP_conv2d]);
    int64_t n = 1;
    if (v->op == OP_matmul) return x->size[x->rank - 1];
    for (int i = v->op == OP_conv2d; i < x->rank; i++) n *= x->size[i];
    return n;
}

static bool is_exact_in_f64(const graph *g, const value *v)
{
    const size_t bytes = dtypes[v->type].bytes;
    return bytes == 1 || (bytes == 2 && terms_of(g, v) <= (v->op == OP_conv2d ? NEAR_TERMS : EXACT_TERMS));
}

/* The type in which backends have v's operator. Integer sums need the result modulo 2^n. */
static duet_dtype kernel_type(const graph *g, const value *v)
{
    const duet_dtype t = (duet_dtype)v->type;
    const size_t bytes = dtypes[t].bytes;
    if (dtype_is_half(t)) return DUET_F32;
    if (dtype_kind(t) >= TYPE_FLOAT) return t;
    if (op_infos[v->op].flags & OP_COMPUTES) return DUET_I64;
    /* only moved, as elements of the same size */
    if (v->op == OP_upsample2d) return bytes <= 2 ? DUET_F32 : t;
    if (v->op == OP_max_pool2d) return bytes <= 2 ? DUET_F32 : DUET_F64;
    if (dtype_kind(t) == TYPE_BOOL) return DUET_F32;
    if (is_exact_in_f64(g, v)) return DUET_F64;
    return DUET_I64;
}

/* The type and shape of a conversion of x. It is no piece of a concatenation, even if x is one. */
static value as_type(const value *x, duet_dtype t)
{
    value like = *x;
    like.type = (uint8_t)t;
    like.join = 0;
    memset(like.start, 0, sizeof like.start);
    return like;
}

static int operand_as(graph *g, int v, duet_dtype t)
{
    const value x = copy_of(g, v), like = as_type(&x, t);
    return x.mem == t ? v : make_cast(g, &like, v);
}

/* x ^ 2^63 maps u64 to i64 and keeps the order. */
static int sign_bit_flipped(graph *g, int v)
{
    const value x = copy_of(g, v);
    value f = value_init(OP_bitwise_xor, &x);
    f.args = 2;
    f.arg[0] = constant_number(g, -0x1p63);
    f.arg[1] = v;
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
    value r = value_init(OP_round, &x);
    r.args = 1;
    r.arg[0] = v;
    return intern(g, &r);
}

static bool needs_sign_flip(const value *v) { return v->op == OP_scatter_max && v->type == DUET_U64; }

/* Sums wrap. The results of other operators are elements of the operand, so they are in the type's
 * range, or they are its least value. */
static int result_of(graph *g, int made, const value *v, duet_dtype in)
{
    const bool sums = v->op != OP_max_pool2d && v->op != OP_upsample2d;
    if (needs_sign_flip(v)) made = sign_bit_flipped(g, made);
    if (v->op == OP_conv2d) made = rounded(g, made);
    if (sums && in == DUET_F64) made = to_type(g, made, DUET_I64);
    return to_type(g, made, (duet_dtype)v->type);
}

static bool is_index(const value *v, int k) { return k == 1 && op_infos[v->op].flags & OP_COMPUTES; }

/* Is the type of operand k independent of the result's type? */
static bool has_own_type(const graph *g, const value *v, int k)
{
    const duet_dtype type = (duet_dtype)value_at(g, v->arg[k])->type;
    if (op_complex[v->op] == COMPLEX_MADE) return true;
    return is_index(v, k) || (dtype_is_complex(type) && op_complex[v->op] == COMPLEX_PART);
}

bool value_needs_legalizing(const graph *g, const value *v)
{
    const bool defined = v->op < OPS && op_infos[v->op].kind == KIND_DEF, moves = value_moves_elements(v);
    if (!defined || v->op == OP_bias_add) return false;
    bool differs = !moves && kernel_type(g, v) != (duet_dtype)v->type;
    for (int k = 0; k < v->args; k++) {
        const value *x = value_at(g, v->arg[k]);
        differs |= x->mem != (moves || has_own_type(g, v, k) ? x->type : v->type);
    }
    return differs;
}

int make_legalized(graph *g, const value *v)
{
    value wide = *v;
    for (int k = 0; k < v->args && value_moves_elements(v); k++) wide.arg[k] = make_stored(g, v->arg[k]);
    if (value_moves_elements(v)) return intern(g, &wide);
    const duet_dtype in = kernel_type(g, v);
    for (int k = 0; k < v->args; k++) {
        if (is_index(v, k)) continue;
        wide.arg[k] = operand_as(g, v->arg[k], in);
        if (needs_sign_flip(v)) wide.arg[k] = sign_bit_flipped(g, wide.arg[k]);
    }
    if (dtype_kind((duet_dtype)v->type) >= TYPE_FLOAT)
        return intern(g, &wide); /* halves: the result in memory is f32 */
    wide.type = (uint8_t)in;
    wide.comp = wide.mem = COMP_UNSET;
    const int made = intern(g, &wide);
    if (in == (duet_dtype)v->type) return made;
    return result_of(g, made, v, in);
}
