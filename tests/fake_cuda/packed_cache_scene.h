/* packed_cache_scene.h - for tests of the cache of packed operands: a product of two square matrices,
 * each filled with one number. One of them is written in every possible way. */
#ifndef PACKED_CACHE_SCENE_H
#define PACKED_CACHE_SCENE_H

#include "filled.h"
#include <stdlib.h>

enum { N = 8, TURNS = 24 };

static inline void ok(duet_status s) { CHECK(s == DUET_OK, "status %d: %s", (int)s, duet_error()); }

static inline duet_matrix *square(float v)
{
    duet_matrix *m = duet_new(DUET_F32, N, N);
    refill(m, v);
    return m;
}

typedef struct scene {
    duet_matrix *x, *w, *y;
    duet_matrix *half[2], *turned, *other; /* views of the written matrix; another matrix with v */
    float *own;                            /* the memory of a wrapped matrix */
    duet_recording *writes;                /* written = other */
} scene;

static inline scene new_scene(bool weight, bool wrapped)
{
    scene s = { .x = square(1), .y = square(0), .other = square(1) };
    if (wrapped) {
        s.own = aligned_alloc(64, N * N * sizeof *s.own);
        s.w = duet_wrap(s.own, DUET_F32, N, N);
        refill(s.w, 1);
    } else s.w = square(1);
    duet_matrix *written = weight ? s.w : s.x;
    for (int i = 0; i < 2; i++) s.half[i] = duet_slice(written, i * N / 2, N / 2);
    s.turned = duet_transposed(written);
    DUET_ON(DUET_GPU)
    {
        ok(duet_record_begin());
        ok(duet_set(written, duet_mul(s.other, 1)));
        s.writes = duet_record_end();
    }
    return s;
}

static inline void free_scene(scene *s)
{
    duet_recording_free(&s->writes);
    duet_matrix **all[] = { &s->x, &s->w, &s->y, &s->half[0], &s->half[1], &s->turned, &s->other };
    for (int i = 0; i < 7; i++) duet_free(all[i]);
    free(s->own);
}

static inline duet_status multiply(scene *s)
{
    return duet_set_math(DUET_MATH_SPLIT, s->y, duet_matmul(s->x, s->w));
}

static inline duet_recording *record_product(scene *s)
{
    ok(duet_record_begin());
    ok(multiply(s));
    return duet_record_end();
}

#endif
