/* lapack.h - linear algebra by LAPACKE: what it supports. */
#ifndef LAPACK_H
#define LAPACK_H

#include "backend.h"

const char *linear_version(void);              /* for duet_info() */
const char *linear_unsupported(const step *s); /* NULL, or the reason */

#endif
