/* test_sparse_faults.c - failures of products with sparse matrices, and of systems, on the fake CUDA: every
 * allocation and every call of CUDA, cuSPARSE and cuDSS fails once. */
#include "fault_scenario.h"

typedef struct scene {
    duet_matrix *d, *x, *y, *v, *w, *b;
    duet_sparse *s, *t;
} scene;

/* s is 3 x 3 with 9 elements, all 2, and t with 2 on its diagonal; x and w are ones. */
static bool make(scene *s)
{
    const bool there = (s->d = duet_new(DUET_F32, 3, 3)) && (s->x = duet_new(DUET_F32, 3, 2)) &&
                       (s->y = duet_new(DUET_F32, 3, 2)) && (s->v = duet_new(DUET_F32, 3)) &&
                       (s->w = duet_new(DUET_F32, 3)) && (s->b = duet_new(DUET_F32, 9));
    if (!there) {
        met.refused++;
        return false;
    }
    if (!fill(s->d, 2) || !fill(s->x, 1) || !fill(s->w, 1)) return false;
    s->s = duet_sparse_from_dense(s->d);
    if (!s->s) return met.refused++, false;
    if (!went(duet_set(s->d, duet_cast(duet_diag(duet_mul(s->w, 2), 0), DUET_F32)))) return false;
    s->t = duet_sparse_from_dense(s->d);
    return s->t || (met.refused++, false);
}

static void solve(const scene *s)
{
    if (!fill(s->v, 9) || !fill(s->y, 9)) return;
    bool well = went(duet_set(s->v, duet_sparse_solve(s->t, s->w)));
    holds(s->v, well, 9, 0.5);
    well = went(duet_set(s->y, duet_sparse_solve_triangular(s->t, s->x, .lower = 1)));
    holds(s->y, well, 9, 0.5);
}

/* Products with a matrix, also one in another layout, and with a vector; the transpose; a sampled product;
 * the dense matrix. */
static void turn(const scene *s)
{
    if (!fill(s->y, 9) || !fill(s->v, 9) || !fill(s->b, 9)) return;
    bool well = went(duet_set(s->y, duet_sparse_matmul(s->s, s->x)));
    holds(s->y, well, 9, 6);
    if (!fill(s->y, 9)) return;
    well = went(duet_set(s->y, duet_sparse_transposed_matmul(s->s, duet_add(s->x, 1))));
    holds(s->y, well, 9, 12);
    well = went(duet_set(s->v, duet_sparse_matmul(s->s, s->w)));
    holds(s->v, well, 9, 6);
    well = went(duet_set(s->b, duet_sparse_sddmm(s->s, s->x, duet_transpose(s->x))));
    holds(s->b, well, 9, 2);
    if (!fill(s->d, 9)) return;
    well = went(duet_set(s->d, duet_sparse_to_dense(s->s)));
    holds(s->d, well, 9, 2);
    holds(s->x, true, 1, 1);
}

static void *play(void *arg)
{
    scene s = { 0 };
    if (make(&s)) DUET_ON(place)
        {
            turn(&s);
            solve(&s);
        }
    fault_scenario_over();
    duet_sparse_free(&s.s);
    duet_sparse_free(&s.t);
    duet_matrix **all[] = { &s.d, &s.x, &s.y, &s.v, &s.w, &s.b };
    for (int i = 0; i < 6; i++) duet_free(all[i]);
    return NULL;
}

static uint64_t made(void) { return duet_stats().launches; }

static void test(bool allocation, const char *what) { each_once(play, allocation, what, made, 5); }

int main(void)
{
    test(false, "calls of CUDA and cuSPARSE and cuDSS");
    test(true, "allocations");
    leave_the_choice();
    test(false, "calls of CUDA and cuSPARSE and cuDSS, where the place is free");
    place = DUET_CPU;
    each_once(play, true, "allocations on the CPU", nothing_special, 0);
    return tap_end();
}
