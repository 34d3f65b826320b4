/* test_noise_faults.c - failures of random numbers, noise, shuffles, sequences and products of
 * types other than f32 on the fake CUDA: every allocation and every call of CUDA and the vendor
 * libraries fails once. */
#include "fault_scenario.h"

enum { N = 4, MATRICES = 6 };

typedef struct scene {
    duet_matrix *x, *y, *h, *i, *l, *b;
    duet_recording *r;
} scene;

/* After success the element is `after`. After a failure nothing has changed; or, after a device
 * error, the contents are undefined. */
static bool ends(const duet_matrix *m, duet_status st, float before, float after)
{
    const bool well = went(st);
    const float *p = duet_read(m);
    if (p) all_are(p, m, well ? after : before);
    else met.refused += well && !met.hit;
    return well;
}

static bool make(scene *s)
{
    static const duet_dtype type[] = { DUET_F32, DUET_F32, DUET_F16, DUET_I16, DUET_I64, DUET_BOOL };
    duet_matrix **all[] = { &s->x, &s->y, &s->h, &s->i, &s->l, &s->b };
    for (int k = 0; k < MATRICES; k++)
        if (!(*all[k] = duet_new(type[k], N, N))) {
            met.refused++;
            return false;
        }
    return fill(s->x, 1) && fill(s->y, 9);
}

/* All elements of x are 1; y is the result. */
static void turn(const scene *s)
{
    duet_matrix *y = s->y;
    if (!ends(y, duet_noise_bernoulli(y, s->x, 3), 9, 1) || !fill(y, 9)) return;
    if (!ends(y, duet_noise_ranged(y, duet_mul(s->x, s->x), 3, 1), 9, 1) || !fill(y, 9)) return;
    if (!ends(y, duet_shuffle(y, s->x, 0, 3), 9, 1)) return;
    if (!ends(y, duet_shuffle(y, y, 1, 3), 1, 1)) return;
    if (!ends(y, duet_sequence(y, 5, 0), 1, 5)) return;
    if (!went(duet_random_uniform(s->h, 3, 1, 1 + 0x1p-10)) ||
        !ends(y, duet_set(y, duet_matmul(s->h, s->h)), 5, N))
        return;
    if (!went(duet_random_integers(s->i, 3, 2, 3)) || !went(duet_set(s->i, duet_matmul(s->i, s->i)))) return;
    if (!ends(y, duet_set(y, duet_cast(s->i, DUET_F32)), N, 4 * N)) return;
    if (!went(duet_set(s->l, duet_matmul(s->i, duet_cast(s->i, DUET_I64))))) return;
    if (!ends(y, duet_set(y, duet_cast(s->l, DUET_F32)), 4 * N, 16 * N * N * N)) return;
    if (!went(duet_random_bernoulli(s->b, 3, 1)) || !went(duet_set(s->b, duet_matmul(s->b, s->b)))) return;
    ends(y, duet_set(y, duet_add(s->b, s->x)), 16 * N * N * N, 2);
}

/* A recording keeps the matrices that the library made. Keeping them cannot fail after the
 * statements have run. */
static void recorded(scene *s)
{
    duet_matrix *y = s->y;
    if (!fill(y, 9) || !went(duet_record_begin())) return;
    const bool good = ends(y, duet_shuffle(y, s->x, 0, 3), 9, 1) && ends(y, duet_sequence(y, 5, 0), 1, 5);
    s->r = duet_record_end();
    met.refused += good && !s->r;
    if (s->r) (void)went(duet_replay(s->r));
}

static void *play(void *arg)
{
    scene s = { 0 };
    if (make(&s)) DUET_ON(place)
        {
            turn(&s);
            recorded(&s);
        }
    fault_scenario_over();
    duet_recording_free(&s.r);
    duet_matrix **all[] = { &s.x, &s.y, &s.h, &s.i, &s.l, &s.b };
    for (int k = 0; k < MATRICES; k++) duet_free(all[k]);
    return NULL;
}

int main(void) { return mishaps_of(play, nothing_special, 0); }
