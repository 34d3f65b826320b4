/* numbers_of.h - the elements of a matrix of any type as complex numbers. */
#ifndef NUMBERS_OF_H
#define NUMBERS_OF_H

#include "tap.h"
#include <complex.h>
#include <duet/duet.h>
#include <stdlib.h>
#include <string.h>

/* The caller frees them. */
static double _Complex *numbers_of(const duet_matrix *m)
{
    const int64_t n = duet_count(m);
    double _Complex *e = malloc((size_t)(n + 1) * sizeof *e);
    duet_matrix *d = duet_eval(duet_cast(m, DUET_C128));
    CHECK(d != NULL, "%s", duet_error());
    const void *p = d ? duet_read(d) : NULL;
    if (p) memcpy(e, p, (size_t)n * sizeof *e);
    duet_free(&d);
    return e;
}

#endif
