/* dtype.h - facts about the element types, from the rows of dtype.def. */
#ifndef DTYPE_H
#define DTYPE_H

#include <duet/duet.h>
#include <stdbool.h>

/* In this order, an operand of a lower kind takes the kind of the other one. */
enum type_kind { TYPE_BOOL, TYPE_SIGNED, TYPE_UNSIGNED, TYPE_FLOAT, TYPE_COMPLEX };

typedef struct dtype_info {
    const char *name; /* "f32" */
    size_t bytes;
    double roundoff, tiny;
    enum type_kind kind;
    /* Programs with elements of this type compute in this one: f32, f64, i64 or u64. For complex
     * types, the type of a part. */
    duet_dtype computed;
} dtype_info;

extern const dtype_info dtypes[DUET_DTYPE_COUNT];

/* The real floating-point types in which formulas are computed. */
static inline bool dtype_is_f32_or_f64(duet_dtype t) { return t == DUET_F32 || t == DUET_F64; }

static inline enum type_kind dtype_kind(duet_dtype t) { return dtypes[t].kind; }
static inline int dtype_is_integer(duet_dtype t)
{
    return dtypes[t].kind == TYPE_SIGNED || dtypes[t].kind == TYPE_UNSIGNED;
}
/* How many low bits of an integer an element keeps that it is stored to; other types depend on all 64. */
static inline int dtype_kept_bits(duet_dtype t)
{
    return dtype_is_integer(t) ? 8 * (int)dtypes[t].bytes : 64;
}
static inline int dtype_is_half(duet_dtype t) { return dtypes[t].kind == TYPE_FLOAT && dtypes[t].bytes == 2; }

static inline int dtype_is_complex(duet_dtype t) { return dtypes[t].kind == TYPE_COMPLEX; }
static inline duet_dtype dtype_part(duet_dtype t) { return dtype_is_complex(t) ? dtypes[t].computed : t; }

/* The element types of BLAS, LAPACK and the libraries for Fourier transforms. */
static inline bool dtype_is_blas(duet_dtype t) { return dtype_is_f32_or_f64(t) || dtype_is_complex(t); }

/* Floating-point types of 32 or 64 bits a part. */
static inline duet_dtype dtype_real(bool is_f64) { return is_f64 ? DUET_F64 : DUET_F32; }
static inline duet_dtype dtype_complex(bool is_f64) { return is_f64 ? DUET_C128 : DUET_C64; }

/* Returns the common type of two operands, by the table in docs/semantics.md, or DUET_DTYPE_COUNT if they
 * have none. */
duet_dtype dtype_promote(duet_dtype a, duet_dtype b);

/* Returns the type of a sum of elements. It has 64 bits for integers and bools. */
static inline duet_dtype dtype_of_sums(duet_dtype t)
{
    if (dtypes[t].kind >= TYPE_FLOAT) return t;
    return dtypes[t].kind == TYPE_UNSIGNED ? DUET_U64 : DUET_I64;
}

#endif
