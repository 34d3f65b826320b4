/* c_locale.h - numbers as C writes them, with a point, whatever the locale. */
#ifndef PLAIN_H
#define PLAIN_H

/* Within: numbers are read and written as in C. Without memory they are as the locale has them. */
typedef struct plain_numbers {
    void *before, *plain;
} plain_numbers;
plain_numbers plain_numbers_begin(void);
void plain_numbers_end(plain_numbers p);

#endif
