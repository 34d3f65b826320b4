/* dtype.h - the element types, from their rows. */
#ifndef DTYPE_H
#define DTYPE_H

#include <duet/duet.h>

enum type_kind { TYPE_BOOL, TYPE_SIGNED, TYPE_UNSIGNED, TYPE_FLOAT, TYPE_COMPLEX };

typedef struct dtype_info {
    const char *name; /* "f32" */
    size_t bytes;
    double roundoff, tiny;
    enum type_kind kind;
    duet_dtype
        computed; /* what a program that has such elements alone computes in: f32, f64, i64 or u64; of complex types that of a part */
} dtype_info;

/* Types below the first are floating point, below the second also i64: those that formulas are computed in. */
#define FLOAT_TYPES DUET_I64
#define OWN_TYPES   DUET_F16

extern const dtype_info dtypes[DUET_DTYPE_COUNT];

static inline enum type_kind dtype_kind(duet_dtype t) { return dtypes[t].kind; }
static inline int dtype_is_integer(duet_dtype t)
{
    return dtypes[t].kind == TYPE_SIGNED || dtypes[t].kind == TYPE_UNSIGNED;
}
static inline int dtype_is_half(duet_dtype t) { return dtypes[t].kind == TYPE_FLOAT && dtypes[t].bytes == 2; }

static inline int dtype_is_complex(duet_dtype t) { return dtypes[t].kind == TYPE_COMPLEX; }
static inline duet_dtype dtype_part(duet_dtype t) { return dtype_is_complex(t) ? dtypes[t].computed : t; }

/* The type that operands of two types have in common, by the table of docs/semantics.md; DUET_DTYPE_COUNT: none. */
duet_dtype dtype_promote(duet_dtype a, duet_dtype b);

/* What elements of a type add up to: integers and bools to 64 bits. */
static inline duet_dtype dtype_of_sums(duet_dtype t)
{
    if (dtypes[t].kind >= TYPE_FLOAT) return t;
    return dtypes[t].kind == TYPE_UNSIGNED ? DUET_U64 : DUET_I64;
}

#endif
