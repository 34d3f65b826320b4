/* file_errors.c - the error texts of files. */
#include "io.h"
#include <stdarg.h>

duet_status bad_file(const input *in, const char *format, ...)
{
    char why[300];
    va_list ap;
    va_start(ap, format);
    vsnprintf(why, sizeof why, format, ap);
    va_end(ap);
    return fail(DUET_BAD_FILE, "%s(\"%s\"): %s", in->who, in->path, why);
}

duet_status no_memory(const input *in)
{
    return fail_within(DUET_NO_MEMORY, "%s(\"%s\")", in->who, in->path);
}
