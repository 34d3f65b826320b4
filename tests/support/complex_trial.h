/* complex_trial.h - functions that the tests of complex operators share: the two types, views of matrices,
 * and comparisons relative to |z|. */
#ifndef COMPLEX_TRIAL_H
#define COMPLEX_TRIAL_H

#include "fourier_arrays.h"
#include "modes.h"
#include "plan.h"
#include <complex.h>

static const struct kind {
    duet_dtype whole, part;
    real u, tiny, huge_part;
    int exponents; /* parts are drawn from 2^-exponents to 2^exponents */
} kinds[] = { { DUET_C64, DUET_F32, 0x1p-24L, 0x1p-149L, 0x1.fffffep127L, 126 },
              { DUET_C128, DUET_F64, 0x1p-53L, 0x1p-1074L, 0x1.fffffffffffffp1023L, 1022 } };

/* ---- matrices ---- */

/* The matrix itself; a view with reversed axes; every second element of the last axis, backwards; a
 * part of a larger matrix whose first axis is repeated. */
enum { PLAIN, TURNED, BACK, SPREAD, SIGHTS };

static inline duet_matrix *view(duet_matrix **all, duet_dtype type, const sizes *s, int sight)
{
    sizes w = *s;
    for (int a = 0; a < s->rank && sight == TURNED; a++) w.size[a] = s->size[s->rank - 1 - a];
    if (s->rank && sight == BACK) w.size[s->rank - 1] = 2 * s->size[s->rank - 1];
    if (s->rank && sight == SPREAD) w.size[0] = 1;
    *all = duet_new_shape(type, w.rank, w.size);
    if (sight == TURNED) return duet_transposed(*all);
    if (s->rank && sight == BACK) return duet_stepped(*all, -1, DUET_OPEN, DUET_OPEN, -2);
    if (s->rank && sight == SPREAD) return duet_broadcast_to_shape(*all, s->rank, s->size);
    return duet_reshaped_shape(*all, s->rank, s->size);
}

enum { MILD, WIDE, UNIT };

static inline real draw_part(const struct kind *k, int range)
{
    const int choice = (int)rng_below(&gen, 12);
    const real x = rng_real(&gen, -1, 1);
    if (choice == 0) return 0;
    if (range == WIDE) return ldexpl(x, (int)rng_below(&gen, 2 * k->exponents) - k->exponents);
    if (range == UNIT) return x;
    return x * (choice == 1 ? 60 : 4);
}

static inline void fill_range(duet_matrix *m, const struct kind *k, int range)
{
    void *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++)
        put(p, duet_type(m), i, draw_part(k, range) + I * draw_part(k, range));
}

/* ---- one result ---- */

static inline bool fits(const struct kind *k, number z)
{
    return fabsl(creall(z)) <= k->huge_part && fabsl(cimagl(z)) <= k->huge_part;
}

/* Compares got[i] with want[i]. Elements that no type can represent are skipped. */
static inline void near(const char *name, const struct kind *k, const duet_matrix *m, const array *want,
                        real in_u)
{
    array got = array_of(m);
    CHECK(got.count == want->count, "%s: %d elements", name, (int)got.count);
    for (int64_t i = 0; i < got.count && i < want->count; i++) {
        const number z = got.v[i], w = want->v[i];
        const real error = cabsl(z - w), most = in_u * k->u * cabsl(w) + 4 * k->tiny;
        if (isnan(creall(w)) || isnan(cimagl(w)) || !fits(k, w * (1 + in_u * k->u))) continue;
        CHECK(error <= most, "%s of %s: element %d is %.9Lg%+.9Lgi, not %.9Lg%+.9Lgi: %.3Lg u, at most %.3Lg",
              name, dtypes[k->whole].name, (int)i, creall(z), cimagl(z), creall(w), cimagl(w),
              error / (k->u * cabsl(w)), in_u);
    }
    array_free(&got);
}

static inline void evaluate(duet_place p, duet_matrix *to, duet_expr e, const char *name)
{
    CHECK(duet_set_on(p, to, e) == DUET_OK, "%s: %s", name, duet_error());
}

/* Formulas that cannot be built: checks the status and words of the error text. */
#define REFUSED(e, status, ...) refused(e, status, #e, (const char *const[]){ __VA_ARGS__, NULL })
static inline void refused(duet_expr e, duet_status want, const char *name, const char *const *words)
{
    CHECK(duet_expr_status(e) == want, "%s: %s", name, duet_status_text(duet_expr_status(e)));
    for (; *words; words++)
        CHECK(strstr(duet_error(), *words), "%s: no '%s' in '%s'", name, *words, duet_error());
    forget(e);
}

/* ---- all tests, on each machine and in each fusion mode ---- */

static inline void each_mode(void (*tests)(duet_place p, int mode))
{
    duet_place place[2];
    const int places = list_places(place);
    for (int i = 0; i < places; i++)
        for (int mode = MODE_MACHINE; mode <= MODE_NONE; mode++) {
            printf("# on the %s, fusion mode %s\n", place_name(place[i]), mode_names[mode]);
            plan_fusion(mode);
            tests(place[i], mode);
        }
}

#endif
