/* c_locale.c - switches this thread to the C locale and back. */
#define _GNU_SOURCE
#include "c_locale.h"
#include <locale.h>
#include <stdio.h>

plain_numbers plain_numbers_begin(void)
{
    plain_numbers p = { .plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0) };
    if (p.plain) p.before = uselocale((locale_t)p.plain);
    return p;
}

void plain_numbers_end(plain_numbers p)
{
    if (!p.plain) return;
    uselocale((locale_t)p.before);
    freelocale((locale_t)p.plain);
}

void print_plainly(char *text, size_t size, const char *format, va_list ap)
{
    const plain_numbers plain = plain_numbers_begin();
    vsnprintf(text, size, format, ap);
    plain_numbers_end(plain);
}
