/* test_select_faults.c - failures of masked, nonzero, unique and unique_axis on the fake CUDA: every allocation
 * and every call of CUDA fails once. */
#include "fault_scenario.h"

enum { N = 6 };

/* Either a result or an error. */
static bool came(const duet_matrix *m)
{
    if (m) return true;
    if (!*duet_error()) wrong("a refusal without a text");
    met.refused++;
    return false;
}

static void result_is(duet_matrix *m, int64_t count, double value)
{
    if (!came(m)) return;
    const void *p = duet_read(m);
    if (!p) met.refused++;
    else if (duet_count(m) != count) wrong("a size");
    else if ((duet_type(m) == DUET_F32 ? *(const float *)p : (double)*(const int64_t *)p) != value)
        wrong("a value");
    duet_free(&m);
}

static void turn(duet_matrix *x)
{
    duet_matrix *counts, *inverse;
    if (!went(duet_set(x, duet_add(x, 1)))) return;
    result_is(duet_masked(duet_mul(x, 2), duet_greater(x, 1)), N, 6);
    result_is(duet_nonzero(x), N, 0);
    duet_matrix *values = duet_unique(x, &counts, &inverse);
    if (!values && (counts || inverse)) wrong("results of a failure");
    result_is(values, 1, 3);
    if (counts) result_is(counts, 1, N);
    if (inverse) result_is(inverse, N, 0);
    values = duet_unique_axis(duet_reshape(x, 3, 2), 0, &counts, &inverse);
    if (!values && (counts || inverse)) wrong("results of a failure");
    result_is(values, 2, 3);
    if (counts) result_is(counts, 1, 3);
    if (inverse) result_is(inverse, 3, 0);
}

static void *play(void *arg)
{
    duet_matrix *x = duet_new(DUET_F32, N);
    if (!x) met.refused++;
    else if (fill(x, 2)) DUET_ON(place) turn(x);
    fault_scenario_over();
    duet_free(&x);
    return NULL;
}

int main(void) { return mishaps_of(play, nothing_special, 0); }
