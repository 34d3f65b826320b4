/* market.h - words and numbers of Matrix Market files, which its two formats share. */
#ifndef MARKET_H
#define MARKET_H

#include "io.h"

#define MARKET_TOKEN 400 /* characters of a word */

enum market_symmetry { GENERAL, SYMMETRIC, SKEW, HERMITIAN };
extern const char *const market_symmetries[4];

/* Read one word, and the character after it. Errors: BAD_FILE */
duet_status market_word(input *in, char word[MARKET_TOKEN]);
duet_status market_integer(input *in, int64_t *to);
duet_status market_number(input *in, double *to);
void market_skip_comments(FILE *f);
duet_status market_end(const input *in); /* BAD_FILE: there is more than comments */

/* Writes a real number with the fewest digits that restore it, and a character. */
duet_status market_put_number(output *out, duet_dtype type, const void *p, char behind);

#endif
