/* filled.h - matrices filled with one number, for tests of buffers. */
#ifndef FILLED_H
#define FILLED_H

#include "tap.h"
#include <duet/duet.h>

static inline duet_matrix *new_filled(int64_t n, float number)
{
    duet_matrix *m = duet_new(DUET_F32, n);
    float *p = m ? duet_overwrite(m) : NULL;
    for (int64_t i = 0; p && i < n; i++) p[i] = number;
    CHECK(p != NULL, "%s", duet_error());
    return m;
}

static inline void refill(duet_matrix *m, float number)
{
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = number;
    CHECK(p != NULL, "%s", duet_error());
}

static inline void holds(const duet_matrix *m, float want, const char *what)
{
    const float *p = duet_read(m);
    int64_t wrong = 0;
    for (int64_t i = 0; p && i < duet_count(m); i++) wrong += !(p[i] == want);
    CHECK(p && !wrong, "%s: %d elements are not %g: %s", what, (int)wrong, (double)want, duet_error());
}

static inline void free_all(duet_matrix **a, duet_matrix **b, duet_matrix **c)
{
    duet_free(a);
    duet_free(b);
    duet_free(c);
}

#endif
