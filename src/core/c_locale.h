/* c_locale.h - reads and writes numbers in the C locale, with a decimal point. */
#ifndef C_LOCALE_H
#define C_LOCALE_H

#include <stdarg.h>
#include <stddef.h>

/* Between begin and end, this thread uses the C locale for numbers. If memory is
 * exhausted, the locale stays as it is. */
typedef struct plain_numbers {
    void *before, *plain;
} plain_numbers;
plain_numbers plain_numbers_begin(void);
void plain_numbers_end(plain_numbers p);

/* vsnprintf in the C locale. */
void print_plainly(char *text, size_t size, const char *format, va_list ap)
    __attribute__((format(printf, 3, 0)));

#endif
