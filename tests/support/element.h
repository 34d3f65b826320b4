/* element.h - the value of an element of a real type, and its conversion to another type, by the
 * definitions of docs/semantics.md alone. core/convert.h is tested against it. Values are long
 * double, which represents all of them exactly. */
#ifndef ELEMENT_H
#define ELEMENT_H

#include "dtype.h"
#include <float.h>
#include <stdbool.h>

_Static_assert(LDBL_MANT_DIG >= 64, "a long double holds integers of 64 bits");

bool is_floating(duet_dtype t); /* real types only */

/* For a complex element the value is x if both parts are. */
long double element_value(duet_dtype t, const void *p, int64_t i);
void element_put(duet_dtype t, void *p, int64_t i,
                 long double x); /* x: a value of the type; all NaNs are one value */

/* Converts x, a value of type `from`, to type `to`. */
long double converted(duet_dtype from, duet_dtype to, long double x);

bool same_value(long double a, long double b); /* NaN equals NaN; +0 differs from -0 */

#endif
