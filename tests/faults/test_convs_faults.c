/* test_convs_faults.c - failures of convolutions and pooling of volumes, of plain arrays and of
 * windows of images on the fake CUDA: every allocation and every call of CUDA and cuDNN fails once.
 * All elements are 1, so every result is exact. */
#include "fault_scenario.h"

typedef struct scene {
    duet_matrix *volume, *filters, *plane, *turned, *image, *rows, *sum;
} scene;

static bool becomes(const duet_matrix *m, duet_status st, float before, float after)
{
    const bool well = went(st);
    holds(m, well, before, after);
    return well;
}

/* Checks the sum of the elements of e. */
static void sums_to(const scene *s, duet_expr e, float after)
{
    if (fill(s->sum, 9)) becomes(s->sum, duet_set(s->sum, duet_sum(e)), 9, after);
    else (void)duet_drop(e);
}

static bool make(scene *s)
{
    const bool there =
        (s->volume = duet_new(DUET_F32, 1, 2, 2, 2, 2)) && (s->filters = duet_new(DUET_F32, 2, 2, 2, 2, 2)) &&
        (s->plane = duet_new(DUET_F32, 2, 2)) && (s->turned = duet_permuted(s->filters, 1, 0, 2, 4, 3)) &&
        (s->image = duet_new(DUET_F32, 1, 1, 2, 2)) && (s->rows = duet_new(DUET_F32, 1, 4, 9)) &&
        (s->sum = duet_new(DUET_F32));
    if (!there) {
        met.refused++;
        return false;
    }
    return fill(s->volume, 1) && fill(s->filters, 1) && fill(s->plane, 1) && fill(s->image, 1) &&
           fill(s->rows, 9);
}

static void turn(const scene *s)
{
    static const duet_overlap same = DUET_OVERLAP_SAME;
    sums_to(s, duet_conv3d(s->volume, s->filters, .pad = { 1, 0, 0 }), 2 * (8 + 16 + 8));
    sums_to(s, duet_conv3d_input_grad(duet_conv3d(s->volume, s->filters), s->filters), 16 * 2 * 16);
    sums_to(s, duet_conv3d_filter_grad(s->volume, duet_conv3d(s->volume, s->turned)), 2 * 16 * 16);
    sums_to(s, duet_conv3d(s->volume, s->filters, .more = { 0, 1, 0 }), 2 * (16 + 8));
    sums_to(s,
            duet_conv3d_input_grad(duet_conv3d(s->volume, s->filters), s->filters, .size = { 2, 1, 2 },
                                   .more = { 0, 1, 0 }),
            16 * 2 * 8);
    sums_to(s, duet_convolve(s->plane, s->plane, same), 9);
    sums_to(s, duet_correlate_multi(s->plane, s->turned, same), 8 * 9);
    sums_to(s,
            duet_max_pool3d_grad(s->turned, duet_max_pool3d(s->turned, .window = { 2, 2, 2 }),
                                 .window = { 2, 2, 2 }),
            4);
    sums_to(s, duet_upsample3d(duet_avg_pool3d(s->volume, .window = { 2, 1, 2 }), 1, 2, 1), 8);
    sums_to(s, duet_p_max_pool_p(duet_sub(s->image, 1001), 2, 2), 0);
    if (becomes(s->image,
                duet_set(s->image, duet_upsample2d(duet_max_pool2d(s->image, .window = { 2, 2 }), 2, 2)), 1,
                1) &&
        went(duet_set(s->rows, duet_im2col(s->image, .window = { 2, 2 }, .pad = { 1, 1 }))))
        sums_to(s, duet_mul(s->rows, 1), 16);
}

static void *play(void *arg)
{
    scene s = { 0 };
    if (make(&s)) DUET_ON(place) turn(&s);
    fault_scenario_over();
    duet_matrix **all[] = { &s.volume, &s.filters, &s.plane, &s.turned, &s.image, &s.rows, &s.sum };
    for (int i = 0; i < 7; i++) duet_free(all[i]);
    return NULL;
}

static uint64_t convolved(void) { return fake_count().convolutions; }

int main(void) { return mishaps_of(play, convolved, 5); }
