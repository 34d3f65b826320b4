/* scan_sort_trial.h - runs one operator on every machine with several numbers of threads and
 * compares with the expected elements. */
#ifndef SCAN_SORT_TRIAL_H
#define SCAN_SORT_TRIAL_H

#include "cpu.h"
#include "element_list.h"
#include <omp.h>

static duet_place places[2];
static int n_places;
static bool quick;

#define LENGTH_OF(a) (int)(sizeof(a) / sizeof *(a))

typedef duet_expr asked(const void *of); /* builds the formula again */

/* Evaluates into a destination whose elements are all wrong before. */
static void compare(asked *make, const void *of, duet_place place, const list *want, const char *what)
{
    duet_matrix *to = duet_new_shape(want->type, want->rank, want->size);
    char text[200];
    char *p = duet_overwrite(to);
    if (p) memset(p, 0x5a, (size_t)want->count * list_each(want));
    const duet_status st = duet_set_on(place, to, make(of));
    snprintf(text, sizeof text, "%s on the %s, %d threads", what, place_name(place), omp_get_max_threads());
    if (CHECK(st == DUET_OK, "%s: %s", text, duet_error())) {
        list got = list_of(to);
        list_same(&got, want, text);
        list_free(&got);
    }
    duet_free(&to);
}

/* Frees want. */
static void everywhere(asked *make, const void *of, list want, const char *what)
{
    const int most = omp_get_max_threads();
    const double serial = cpu_serial_seconds;
    for (int k = 0; k < n_places; k++) compare(make, of, places[k], &want, what);
    cpu_serial_seconds = 0;
    for (int threads = 1; threads <= 5; threads += 2) {
        omp_set_num_threads(threads);
        compare(make, of, DUET_CPU, &want, what);
    }
    cpu_serial_seconds = serial;
    omp_set_num_threads(most);
    list_free(&want);
}

#define FAILS(call, code, words)                                                                             \
    do {                                                                                                     \
        const duet_status got_ = (call);                                                                     \
        CHECK(got_ == (code) && strstr(duet_error(), words), #call ": status %d: %s", (int)got_,             \
              duet_error());                                                                                 \
    } while (0)

#endif
