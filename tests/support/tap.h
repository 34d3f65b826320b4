/* tap.h - reports the results of a test program in TAP: CHECK counts a condition, tap_end ends a test
 * point. */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int tap_checks, tap_failures, tap_points; /* several threads change the first two */

/* One condition of many in a test point: prints only when it fails. */
#define CHECK(ok, ...) tap_check((ok), __FILE__, __LINE__, __VA_ARGS__)
__attribute__((format(printf, 4, 5), unused)) static bool tap_check(bool ok, const char *file, int line,
                                                                    const char *format, ...)
{
    __atomic_fetch_add(&tap_checks, 1, __ATOMIC_RELAXED);
    if (ok) return true;
    if (__atomic_fetch_add(&tap_failures, 1, __ATOMIC_RELAXED) > 20) return false;
    va_list ap;
    va_start(ap, format);
    printf("# %s:%d: ", file, line);
    vprintf(format, ap);
    puts("");
    va_end(ap);
    return false;
}

/* Ends a test point: ok if no CHECK has failed since the last one. */
__attribute__((unused)) static void tap_point(const char *name)
{
    printf("%sok %d - %s (%d checks)\n", tap_failures || !tap_checks ? "not " : "", tap_points + 1, name,
           tap_checks);
    fflush(stdout);
    tap_points++;
    tap_failures = tap_checks = 0;
}

__attribute__((unused)) static int tap_end(void)
{
    printf("1..%d\n", tap_points);
    return 0;
}

#endif
