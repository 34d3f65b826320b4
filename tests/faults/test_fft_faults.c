/* test_fft_faults.c - failures of Fourier transforms on the fake CUDA: every allocation and every
 * call of CUDA and cuFFT fails once. No plan outlives its step, so each is made in every turn.
 * Results are rounded to integers. */
#include "fault_scenario.h"
#include "fft.h"
#include "step_kinds.h"
#include <math.h>

typedef struct scene {
    duet_matrix *x, *z, *k, *t, *v, *y, *c;
} scene;

static bool make(scene *s)
{
    const bool there = (s->x = duet_new(DUET_F32, 4, 6)) && (s->z = duet_new(DUET_F32, 4, 6)) &&
                       (s->k = duet_new(DUET_F32, 1, 1)) && (s->t = duet_new(DUET_F32, 20, 3, 4)) &&
                       (s->v = duet_new(DUET_F32, 20, 3, 4)) && (s->y = duet_new(DUET_C64, 4, 4)) &&
                       (s->c = duet_new(DUET_C64, 4, 6));
    if (!there) {
        met.refused++;
        return false;
    }
    return fill(s->x, 1) && fill(s->z, 9) && fill(s->k, 2) && fill(s->t, 3) && fill(s->v, 9);
}

/* An inverse transform of ones is 1, 0, 0, ...; along the first axis alone, this is each of the six
 * columns. Before, all parts are 9. */
static void invert(const scene *s, bool columns)
{
    float *p = duet_overwrite(s->c);
    for (int i = 0; p && i < 48; i++) p[i] = 9;
    if (!p && ++met.refused) return;
    const duet_expr x = duet_cast(s->x, DUET_C64);
    const bool well = went(duet_set(s->c, columns ? duet_ifft(x, 0, 0) : duet_ifftn(x)));
    const float *q = duet_read(s->c);
    if (!q && met.allocation && strstr(duet_error(), "lost")) wrong("elements are lost for lack of memory");
    for (int i = 0; q && i < 48; i++) {
        const bool is_one = i % 2 == 0 && i < (columns ? 12 : 1);
        const float want = !well ? 9 : is_one;
        if (!(fabsf(q[i] - want) <= 1e-6F)) wrong("an element of an inverse transform");
    }
}

/* Forward and inverse transforms of a matrix, along the middle axis of three, with a complex
 * operand, along the first axis; a convolution with a number; a shift. */
static void turn(const scene *s)
{
    bool well = went(duet_set(s->z, duet_round(duet_irfftn(duet_rfftn(s->x)))));
    holds(s->z, well, 9, 1);
    well = went(duet_set(s->v, duet_round(duet_irfft(duet_rfft(s->t, 0, 1), 3, 1))));
    holds(s->v, well, 9, 3);
    if (!fill(s->z, 9)) return;
    if (went(duet_set(s->y, duet_rfft2(s->x)))) {
        well = went(duet_set(s->z, duet_round(duet_irfft2(s->y))));
        holds(s->z, well, 9, 1);
    }
    if (!fill(s->z, 9)) return;
    well = went(duet_set(s->z, duet_round(duet_fftconvolve(s->x, s->k, DUET_OVERLAP_SAME))));
    holds(s->z, well, 9, 2);
    if (!fill(s->z, 9)) return;
    well = went(duet_set(s->z, duet_fftshift(s->x)));
    holds(s->z, well, 9, 1);
    holds(s->x, true, 1, 1);
    invert(s, false);
    invert(s, true);
}

static void *play(void *arg)
{
    scene s = { 0 };
    if (make(&s)) DUET_ON(place) turn(&s);
    fault_scenario_over();
    duet_matrix **all[] = { &s.x, &s.z, &s.k, &s.t, &s.v, &s.y, &s.c };
    for (int i = 0; i < 7; i++) duet_free(all[i]);
    return NULL;
}

static uint64_t made(void) { return duet_stats().transforms; }

static void test(bool allocation, const char *what) { each_once(play, allocation, what, made, 5); }

int main(void)
{
    setenv("DUET_REPRODUCIBLE", "1", 1);
    gpu_fourier_limit(0);
    fft_limit(0);
    test(false, "calls of CUDA and cuFFT");
    test(true, "allocations");
    const fourier_slabs small = { .slab_bytes = 128, .columns = 2, .element = 16 };
    gpu_fourier_slabs(&small);
    test(false, "calls of CUDA and cuFFT, for slabs");
    test(true, "allocations, for slabs");
    gpu_fourier_slabs(NULL);
    leave_the_choice();
    test(false, "calls of CUDA and cuFFT, where the place is free");
    place = DUET_CPU;
    if (!fft_absent()) test(true, "allocations on the CPU");
    return tap_end();
}
