/* environment.c - reads environment variables that could do harm in a process with raised rights. */
#define _GNU_SOURCE /* for secure_getenv */
#include "environment.h"
#include <stdlib.h>
#include <unistd.h>

const char *environment_trusted(const char *name)
{
#ifdef HAVE_SECURE_GETENV
    return secure_getenv(name);
#else
    if (getuid() != geteuid() || getgid() != getegid()) return NULL;
    return getenv(name);
#endif
}
