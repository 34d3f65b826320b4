/* trace.h - with DUET_TRACE=1, prints one line on stderr for each copy, wait, run, step and
 * fallback, with its statement. */
#ifndef TRACE_H
#define TRACE_H

#include "compiler.h"
#include <stdbool.h>

extern bool trace_on; /* read from the environment once, when the library is loaded */
void trace_line(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

#define TRACE(...) (unlikely(trace_on) ? trace_line(__VA_ARGS__) : (void)0)

#endif
