/* structure.c - the properties of structured matrices: their algebra, and which element breaks one. */
#include "structure.h"
#include "convert.h"
#include "dtype.h"
#include "shape.h"
#include "status.h"
#include <math.h>
#include <string.h>

static const struct {
    unsigned properties;
    const char *name;
} structures[] = {
    [DUET_GENERAL] = { 0, "general" },
    [DUET_SYMMETRIC] = { SYMMETRIC, "symmetric" },
    [DUET_HERMITIAN] = { HERMITIAN, "Hermitian" },
    [DUET_DIAGONAL] = { ZERO_ABOVE | ZERO_BELOW, "diagonal" },
    [DUET_LOWER] = { ZERO_ABOVE, "lower triangular" },
    [DUET_UPPER] = { ZERO_BELOW, "upper triangular" },
    [DUET_STRICTLY_LOWER] = { ZERO_ABOVE | ZERO_DIAGONAL, "strictly lower triangular" },
    [DUET_STRICTLY_UPPER] = { ZERO_BELOW | ZERO_DIAGONAL, "strictly upper triangular" },
    [DUET_UNIT_LOWER] = { ZERO_ABOVE | ONE_DIAGONAL, "unit lower triangular" },
    [DUET_UNIT_UPPER] = { ZERO_BELOW | ONE_DIAGONAL, "unit upper triangular" },
};
enum { STRUCTURES = sizeof structures / sizeof *structures };

unsigned structure_properties(duet_structure s)
{
    return (unsigned)s < STRUCTURES ? structures[s].properties : 0;
}

const char *structure_name(duet_structure s) { return structures[s].name; }

/* The structure that says most: its properties are among p, and no other such structure has more. */
duet_structure structure_named(unsigned p)
{
    static const duet_structure by_strength[] = { DUET_DIAGONAL,   DUET_STRICTLY_LOWER, DUET_STRICTLY_UPPER,
                                                  DUET_UNIT_LOWER, DUET_UNIT_UPPER,     DUET_LOWER,
                                                  DUET_UPPER,      DUET_HERMITIAN,      DUET_SYMMETRIC };
    for (size_t i = 0; i < sizeof by_strength / sizeof *by_strength; i++) {
        const unsigned needed = structures[by_strength[i]].properties;
        if ((p & needed) == needed) return by_strength[i];
    }
    return DUET_GENERAL;
}

unsigned properties_transposed(unsigned p)
{
    const unsigned above = p & ZERO_BELOW ? ZERO_ABOVE : 0, below = p & ZERO_ABOVE ? ZERO_BELOW : 0;
    return (p & ~(unsigned)(ZERO_ABOVE | ZERO_BELOW)) | above | below;
}

unsigned properties_completed(unsigned p, bool is_complex)
{
    if ((p & ZERO_ABOVE) && (p & ZERO_BELOW)) p |= SYMMETRIC;
    if (!is_complex && (p & (SYMMETRIC | HERMITIAN))) p |= SYMMETRIC | HERMITIAN;
    if ((p & (SYMMETRIC | HERMITIAN)) && (p & (ZERO_ABOVE | ZERO_BELOW))) p |= ZERO_ABOVE | ZERO_BELOW;
    return p;
}

unsigned operand_properties(const storage *b, const layout *l)
{
    const unsigned p = b ? storage_properties(b) : 0;
    const int64_t n = l->size[0];
    if (!p || l->rank != 2 || n < 2 || n != l->size[1] || b->bytes != (size_t)(n * n) * dtypes[l->type].bytes)
        return 0;
    if (l->stride[0] == n && l->stride[1] == 1) return p;
    return l->stride[0] == 1 && l->stride[1] == n ? properties_transposed(p) : 0;
}

/* ---- matrices ---- */

/* Are the elements of m those of its storage, as an n x n matrix or its transpose? */
static bool is_whole(const duet_matrix *m)
{
    const int64_t n = m->at.size[0], *stride = m->at.stride;
    if (m->at.rank != 2 || n != m->at.size[1] || !matrix_fills(m)) return false;
    return n <= 1 || (stride[0] == n && stride[1] == 1) || (stride[0] == 1 && stride[1] == n);
}

unsigned matrix_properties_slow(const duet_matrix *m)
{
    const unsigned p = storage_properties(m->storage);
    if (!is_whole(m)) return 0;
    return matrix_is_turned(m) ? properties_transposed(p) : p;
}

duet_status structure_fits(const char *who, const duet_matrix *m)
{
    char text[SHAPE_TEXT];
    shape_text(text, m->at.type, m->at.rank, m->at.size);
    if (m->at.rank != 2 || m->at.size[0] != m->at.size[1])
        return fail(DUET_BAD_SHAPE, "%s(m: %s): m must have 2 axes of equal size", who, text);
    if (is_whole(m)) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT,
                "%s(m: %s): m must be an entire matrix without gaps between its elements, or its transpose, "
                "not a view of a part of one; declare the matrix, or copy m",
                who, text);
}

duet_status matrix_refuses(const char *who, const duet_matrix *m)
{
    char text[SHAPE_TEXT];
    if (m->repeats || m->constant) return matrix_not_writable(who, m);
    return fail(DUET_BAD_ARGUMENT,
                "%s(%s): the matrix is declared %s; only duet_set and statements that assign a formula can "
                "write it, because they check the elements; write another matrix, then assign that",
                who, shape_text(text, m->at.type, m->at.rank, m->at.size),
                structure_name(structure_named(storage_properties(m->storage))));
}

/* ---- elements ---- */

/* A real number, or a part of a complex one, as a double. Large integers are rounded. */
static double part_of(duet_dtype type, const void *p)
{
    switch (type) {
    case DUET_F16: return (double)f32_of_f16(*(const uint16_t *)p);
    case DUET_BF16: return (double)f32_of_bf16(*(const uint16_t *)p);
#define PART(NAME, ctype)                                                                                    \
    case DUET_##NAME:                                                                                        \
        return (double)*(const ctype *)p;
#define DUET_DTYPE(NAME, name, ctype, bits, roundoff, tiny) PART(NAME, ctype)
#define DUET_INTEGER(NAME, name, ctype)                     PART(NAME, ctype)
#define DUET_NARROW(NAME, name, ctype)                      PART(NAME, ctype)
#include <duet/dtype.def>
    default: return NAN;
    }
}

double number_value_of(duet_dtype type, const void *p, double part[2])
{
    const duet_dtype t = dtype_part(type);
    part[0] = part_of(t, p);
    part[1] = dtype_is_complex(type) ? part_of(t, (const char *)p + dtypes[t].bytes) : 0;
    return part[0];
}

/* Is the element x, which has no imaginary part? */
static bool is_number(duet_dtype type, const char *p, double x)
{
    const duet_dtype part = dtype_part(type);
    if (part_of(part, p) != x) return false;
    return !dtype_is_complex(type) || part_of(part, p + dtypes[part].bytes) == 0;
}

/* Are two parts equal numbers, or both NaN? `negated`: is a equal to -b? */
static bool same_part(duet_dtype type, const char *a, const char *b, bool negated)
{
    const size_t bytes = dtypes[type].bytes;
    if (dtypes[type].roundoff > 0) {
        const double x = part_of(type, a), y = part_of(type, b);
        return x == (negated ? -y : y) || (x != x && y != y);
    }
    return !memcmp(a, b, bytes) || (type != DUET_BOOL && is_number(type, a, 0) && is_number(type, b, 0));
}

static bool same_element(duet_dtype type, const char *a, const char *b, bool conjugated)
{
    const duet_dtype part = dtype_part(type);
    if (!same_part(part, a, b, false)) return false;
    return !dtype_is_complex(type) ||
           same_part(part, a + dtypes[part].bytes, b + dtypes[part].bytes, conjugated);
}

/* The property, among p, that element (i, j) at `here` breaks; across: element (j, i). */
static unsigned broken_property(duet_dtype type, unsigned p, int64_t i, int64_t j, const char *here,
                                const char *across)
{
    if ((p & ZERO_ABOVE) && j > i && !is_number(type, here, 0)) return ZERO_ABOVE;
    if ((p & ZERO_BELOW) && j < i && !is_number(type, here, 0)) return ZERO_BELOW;
    if ((p & ZERO_DIAGONAL) && i == j && !is_number(type, here, 0)) return ZERO_DIAGONAL;
    if ((p & ONE_DIAGONAL) && i == j && !is_number(type, here, 1)) return ONE_DIAGONAL;
    if ((p & SYMMETRIC) && j > i && !same_element(type, here, across, false)) return SYMMETRIC;
    if ((p & HERMITIAN) && j >= i && !same_element(type, here, across, true)) return HERMITIAN;
    return 0;
}

broken_element structure_broken(const duet_matrix *m, const void *p, unsigned properties)
{
    const int64_t n = m->at.size[0], *stride = m->at.stride, each = (int64_t)dtypes[m->at.type].bytes;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const char *here = (const char *)p + (i * stride[0] + j * stride[1]) * each,
                       *across = (const char *)p + (j * stride[0] + i * stride[1]) * each;
            const unsigned broken = broken_property(m->at.type, properties, i, j, here, across);
            if (broken) return (broken_element){ i, j, broken };
        }
    return (broken_element){ .property = 0 };
}
