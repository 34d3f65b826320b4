/* trace.c - prints lines on stderr. Only this file prints without a call by the user, and only
 * with DUET_TRACE=1. */
#include "trace.h"
#include "c_locale.h"
#include "thread.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool trace_on;

__attribute__((constructor)) static void trace_ask(void)
{
    const char *ask = getenv("DUET_TRACE");
    trace_on = ask && *ask && strcmp(ask, "0") != 0;
}

/* One call of fputs, so that lines of several threads do not mix. */
void trace_line(const char *format, ...)
{
    char line[1024] = "duet: ";
    size_t head = strlen(line), space = sizeof line - head - 1; /* -1: for a newline */
    va_list ap;
    va_start(ap, format);
    print_plainly(line + head, space, format, ap);
    va_end(ap);
    const char *site = thread_mine ? thread_mine->site : NULL; /* NULL before the thread has state */
    head = strlen(line);
    space = sizeof line - head - 1;
    if (site) snprintf(line + head, space, "; for %s", site);
    fputs(strcat(line, "\n"), stderr);
}
