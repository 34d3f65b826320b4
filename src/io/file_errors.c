/* file_errors.c - the error texts of files and streams. */
#include "io.h"
#include <stdarg.h>

static duet_status failed(const input *in, duet_status s, const char *format, va_list ap)
{
    char why[400];
    vsnprintf(why, sizeof why, format, ap);
    if (!in->path) return fail(s, "%s: %s", in->who, why);
    return fail(s, "%s(\"%s\"): %s", in->who, in->path, why);
}

duet_status input_failed(const input *in, duet_status s, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    s = failed(in, s, format, ap);
    va_end(ap);
    return s;
}

duet_status bad_file(const input *in, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const duet_status s = failed(in, DUET_BAD_FILE, format, ap);
    va_end(ap);
    return s;
}

duet_status no_memory(const input *in)
{
    if (!in->path) return fail_within(DUET_NO_MEMORY, "%s", in->who);
    return fail_within(DUET_NO_MEMORY, "%s(\"%s\")", in->who, in->path);
}
