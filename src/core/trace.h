/* trace.h - DUET_TRACE=1: one line on stderr for each upload, download, wait, run, step and fall-back, with the statement it is for. */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>

extern bool trace_on; /* read from the environment once, when the library is loaded */
void trace_line(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

#define TRACE(...) (__builtin_expect(trace_on, 0) ? trace_line(__VA_ARGS__) : (void)0)

#endif
