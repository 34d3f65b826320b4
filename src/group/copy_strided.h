/* copy_strided.h - copies elements between layouts of equal sizes on the host. */
#ifndef COPY_STRIDED_H
#define COPY_STRIDED_H

#include "shape.h"

void copy_strided(void *to, const layout *to_at, const void *from, const layout *from_at);

#endif
