/* print_matrix.h - the notation of printed elements. Private to src/io. */
#ifndef PRINT_MATRIX_H
#define PRINT_MATRIX_H

#include "io.h"

#define WORD 400 /* no element is longer */

/* Of floating point: whether by powers of ten, and how many characters stand in front of the point
 * and behind it. */
typedef struct column {
    duet_dtype type;
    bool signs;         /* + too */
    double least, most; /* magnitudes, but 0 */
    bool powers;
    int left, right, power;       /* characters; power: of the exponent's digits */
    bool infinite, below, finite; /* has it elements that are not finite, -infinity, or others? */
    int plain[2],
        scientific
            [3]; /* what it would take: of plain ones left and right; of powers left, right and digits */
} column;

/* Shown elements are seen first; then the notation is settled; then each is a text. */
typedef struct notation {
    duet_dtype type;
    int width;      /* of integers */
    column part[2]; /* of complex ones two */
} notation;

notation notation_new(duet_dtype type);
void notation_sees(notation *n, const void *element);
void notation_settle(notation *n);
char *notation_text(const notation *n, const void *element, char text[WORD]);

char *alone_text(duet_dtype type, const void *element, char text[WORD]); /* of a matrix of rank 0 */

#endif
