/* view_base.h - random matrices of small integers, for tests of views and of formulas with views. */
#ifndef VIEW_BASE_H
#define VIEW_BASE_H

#include "view_model.h"

typedef struct base {
    duet_dtype type;
    duet_matrix *m;
    int64_t n;
    double of[MOST];
} base;

static double number_at(duet_dtype type, const void *p, int64_t i)
{
    if (type == DUET_F32) return (double)((const float *)p)[i];
    if (type == DUET_F64) return ((const double *)p)[i];
    return (double)((const int64_t *)p)[i];
}

static void put(duet_dtype type, void *p, int64_t i, double x)
{
    if (type == DUET_F32) ((float *)p)[i] = (float)x;
    else if (type == DUET_F64) ((double *)p)[i] = x;
    else ((int64_t *)p)[i] = (int64_t)x;
}

static duet_matrix *matrix_of(duet_dtype type, int rank, const int64_t *size, const double *x)
{
    duet_matrix *m = duet_new_shape(type, rank, size);
    void *p = duet_overwrite(m);
    for (int64_t i = 0; i < duet_count(m); i++) put(type, p, i, x[i]);
    return m;
}

static base base_new(duet_dtype type, shown *v)
{
    base b = { .type = type };
    *v = (shown){ .rank = (int)between(1, 4) };
    do {
        for (int a = 0; a < v->rank; a++) v->size[a] = below(12) ? between(1, 6) : 0;
        v->n = count_of(v->rank, v->size);
    } while (v->n > MOST);
    for (b.n = 0; b.n < v->n; b.n++) {
        b.of[b.n] = (double)between(-8, 8);
        v->at[b.n] = b.n;
    }
    b.m = matrix_of(type, v->rank, v->size, b.of);
    v->m = duet_reshaped_shape(b.m, v->rank, v->size);
    for (int a = 0; a < v->rank; a++)
        snprintf(v->made + strlen(v->made), 20, a ? ",%d" : "[%d", (int)v->size[a]);
    strcat(v->made, "]");
    return b;
}

static void derive(shown *v, int most)
{
    for (int64_t left = between(0, most); left > 0; left--)
        operations[below(sizeof operations / sizeof *operations)](v);
}

static void check_matrix(duet_dtype type, duet_matrix *m, const double *want, const char *what,
                         const shown *v, duet_place on)
{
    const void *p = duet_read(m);
    for (int64_t k = 0; k < duet_count(m); k++)
        if (!CHECK(number_at(type, p, k) == want[k], "%s on place %d, %s: element %d is %g, not %g", v->made,
                   (int)on, what, (int)k, number_at(type, p, k), want[k]))
            return;
}

#endif
