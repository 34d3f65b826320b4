/* dtype.c - facts about the element types, from the rows of dtype.def, and type promotion. */
#include "dtype.h"

#define KIND_OF(type) ((type)-1 < (type)1 ? TYPE_SIGNED : TYPE_UNSIGNED)
#define WITHIN(NAME, type)                                                                                   \
    (DUET_##NAME == DUET_BOOL                                            ? DUET_F32                          \
     : KIND_OF(type) == TYPE_UNSIGNED && sizeof(type) == sizeof(int64_t) ? DUET_U64                          \
                                                                         : DUET_I64)

const dtype_info dtypes[DUET_DTYPE_COUNT] = {
#define DUET_DTYPE(NAME, name, type, bits, roundoff, tiny)                                                   \
    { #name, sizeof(type), roundoff, tiny, TYPE_FLOAT, DUET_##NAME },
#define DUET_INTEGER(NAME, name, type)        { #name, sizeof(type), 0, 0, TYPE_SIGNED, DUET_##NAME },
#define DUET_HALF(NAME, name, roundoff, tiny) { #name, 2, roundoff, tiny, TYPE_FLOAT, DUET_F32 },
#define DUET_NARROW(NAME, name, type)                                                                        \
    { #name, sizeof(type), 0, 0, DUET_##NAME == DUET_BOOL ? TYPE_BOOL : KIND_OF(type), WITHIN(NAME, type) },
#define DUET_COMPLEX(NAME, name, part) { #name, 2 * sizeof(PART_##part), 0, 0, TYPE_COMPLEX, DUET_##part },
#define PART_F32                       float
#define PART_F64                       double
#include <duet/dtype.def>
};

/* The smallest type of a kind with at least `bytes` bytes. If several are that small, the first one. */
static duet_dtype of_kind(enum type_kind kind, size_t bytes)
{
    duet_dtype best = DUET_DTYPE_COUNT;
    for (duet_dtype t = 0; t < DUET_DTYPE_COUNT; t++)
        if (dtypes[t].kind == kind && dtypes[t].bytes >= bytes &&
            (best == DUET_DTYPE_COUNT || dtypes[t].bytes < dtypes[best].bytes))
            best = t;
    return best;
}

duet_dtype dtype_promote(duet_dtype a, duet_dtype b)
{
    const dtype_info *x = &dtypes[a], *y = &dtypes[b];
    if (a == b) return a;
    if (x->kind > y->kind) return dtype_promote(b, a);
    if (x->kind == TYPE_BOOL) return b;
    if (x->kind == y->kind && x->bytes == y->bytes) return of_kind(x->kind, 2 * x->bytes); /* f16 and bf16 */
    if (x->kind == y->kind) return x->bytes > y->bytes ? a : b;
    if (x->kind == TYPE_SIGNED && y->kind == TYPE_UNSIGNED)
        return of_kind(TYPE_SIGNED, x->bytes > y->bytes ? x->bytes : 2 * y->bytes);
    if (x->kind == TYPE_FLOAT) return 2 * x->bytes > y->bytes ? of_kind(TYPE_COMPLEX, 2 * x->bytes) : b;
    return DUET_DTYPE_COUNT;
}
