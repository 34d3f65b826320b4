/* lapack.h - linear algebra by LAPACKE, where the build found it. */
#ifndef LINEAR_H
#define LINEAR_H

#include "backend.h"

const char *linear_version(void);          /* for duet_info */
const char *linear_refuses(const step *s); /* of steps that kernel_may_fail knows */

#endif
