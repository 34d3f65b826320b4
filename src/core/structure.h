/* structure.h - what is known of the elements of a square matrix: bits, of which each is a property. The
 * bits of a storage describe its elements as an n x n matrix in row-major order. */
#ifndef STRUCTURE_H
#define STRUCTURE_H

#include "matrix.h"

enum {
    ZERO_ABOVE = 1, /* the elements above the diagonal are zero */
    ZERO_BELOW = 2,
    ZERO_DIAGONAL = 4,
    ONE_DIAGONAL = 8,
    SYMMETRIC = 16,
    HERMITIAN = 32,
    ALL_PROPERTIES = 63
};

unsigned structure_properties(duet_structure s); /* 0: GENERAL, or not a structure */
duet_structure structure_named(unsigned properties);
const char *structure_name(duet_structure s); /* "lower triangular" */

unsigned properties_transposed(unsigned p);
/* With the properties that follow from those of p. */
unsigned properties_completed(unsigned p, bool is_complex);

/* The properties of m. 0: none are declared, or m is a part of a matrix. */
unsigned matrix_properties_slow(const duet_matrix *m);
static inline unsigned matrix_properties(const duet_matrix *m)
{
    return likely(!storage_properties(m->storage)) ? 0 : matrix_properties_slow(m);
}

/* The properties of an operand of a step, which has this layout in storage b. 0: it is a part of the storage,
 * or b is NULL. */
unsigned operand_properties(const storage *b, const layout *l);

/* Of a matrix that structure_fits: is it the transpose of its storage in row-major order? */
static inline bool matrix_is_turned(const duet_matrix *m)
{
    return m->at.size[0] > 1 && m->at.stride[0] == 1;
}

/* Does m have the shape and the layout that a structure needs? Errors: BAD_SHAPE, BAD_ARGUMENT */
duet_status structure_fits(const char *who, const duet_matrix *m);

/* The first element, in row-major order, that breaks a property. p: the elements of m on the host. */
typedef struct broken_element {
    int64_t row, column;
    unsigned property; /* 0: there is none */
} broken_element;
/* The element, or its real part; part: both parts of a complex one. */
double number_value_of(duet_dtype type, const void *p, double part[2]);
broken_element structure_broken(const duet_matrix *m, const void *p, unsigned properties);

#endif
