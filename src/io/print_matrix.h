/* print_matrix.h - the notation of printed elements. Private to src/io. */
#ifndef PRINT_MATRIX_H
#define PRINT_MATRIX_H

#include "io.h"

#define WORD 400 /* no element is longer */

/* The notation of a column of floating-point numbers: fixed-point or scientific (`powers`), and the
 * number of characters before and after the point. */
typedef struct column {
    duet_dtype type;
    bool signs;         /* print + too */
    double least, most; /* magnitudes, without zeros */
    bool powers;
    int left, right, power;       /* characters; power: of the exponent's digits */
    bool infinite, below, finite; /* does it have infinite or NaN elements, -infinity, finite ones? */
    int plain[2],
        scientific
            [3]; /* characters needed; plain: left and right; scientific: left, right, exponent digits */
} column;

/* Call notation_sees for each element to print, then notation_settle, then notation_text for each. */
typedef struct notation {
    duet_dtype type;
    int width;      /* for integers */
    column part[2]; /* complex numbers use both */
} notation;

notation notation_new(duet_dtype type);
void notation_sees(notation *n, const void *element);
void notation_settle(notation *n);
char *notation_text(const notation *n, const void *element, char text[WORD]);

char *alone_text(duet_dtype type, const void *element, char text[WORD]); /* for a matrix of rank 0 */

#endif
