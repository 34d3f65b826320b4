/* group_random.h - random numbers in matrices on a group. The bits must be those of ordinary matrices, and
 * each rank makes its own part. */
#ifndef GROUP_RANDOM_H
#define GROUP_RANDOM_H

#include "group_cases.h"

enum { RANDOM_LAWS = 7, NOISES = 5 };

static duet_status random_law(duet_matrix *m, int law, uint64_t seed)
{
    switch (law) {
    case 0: return duet_random_uniform(m, seed, -1, 3);
    case 1: return duet_random_normal(m, seed, 0.5, 2);
    case 2: return duet_random_truncated_normal(m, seed, 0, 1, -0.5, 3);
    case 3: return duet_random_truncated_normal(m, seed, 0, 1, 2, 9);
    case 4: return duet_random_bernoulli(m, seed, 0.3);
    case 5: return duet_random_integers(m, seed, 0, 2);
    default: return duet_random_sobol(m, seed, 5);
    }
}

static duet_status random_noise(duet_matrix *to, duet_expr x, int noise, uint64_t seed)
{
    switch (noise) {
    case 0: return duet_noise_uniform(to, x, seed);
    case 1: return duet_noise_normal(to, x, seed);
    case 2: return duet_noise_logistic(to, x, seed);
    case 3: return duet_noise_ranged(to, x, seed, 2);
    default: return duet_noise_bernoulli(to, duet_sigmoid(x), seed);
    }
}

static void same_pair(const pair *p, const char *what, int which, uint64_t seed)
{
    const void *a = duet_read(p->grouped), *b = duet_read(p->plain);
    const size_t bytes = (size_t)duet_count(p->plain) * element_bytes(duet_type(p->plain));
    if (bytes && CHECK(a && b, "%s", duet_error()))
        CHECK(!memcmp(a, b, bytes), "%s %d, seed %llu, type %d: differs", what, which,
              (unsigned long long)seed, (int)duet_type(p->plain));
}

/* Zeros, both on the group and elsewhere. */
static pair zeros(rng *r, duet_group *g, duet_dtype type, int rank, const int64_t *size)
{
    pair p = { new_on_group(r, g, type, rank, size), duet_new_shape(type, rank, size), NULL, NULL };
    CHECK(p.grouped && p.plain, "new: %s", duet_error());
    if (rng_chance(r, 40)) view_both(r, &p);
    return p;
}

/* Not every type has every distribution: then both fail. */
static void random_case(duet_group *g, uint64_t seed, bool large)
{
    rng r = rng_new(seed);
    int64_t size[3];
    const int law = (int)rng_below(&r, RANDOM_LAWS), rank = (int)rng_below(&r, law < 6 ? 4 : 3);
    const duet_dtype type = rng_chance(&r, 50) ? (duet_dtype)rng_below(&r, DUET_DTYPE_COUNT)
                                               : (duet_dtype)(rng_chance(&r, 50) ? DUET_F32 : DUET_F64);
    for (int a = 0; a < rank; a++) size[a] = rng_chance(&r, 5) ? 0 : 1 + rng_below(&r, 13);
    if (large && rank) size[rng_below(&r, rank)] = 1000 + rng_below(&r, 5000);
    if (law == 6 && rank > 1 && size[1] > 1024) size[1] = 1024;
    pair p = zeros(&r, g, type, rank, size);
    duet_matrix *to = used(p.grouped, p.grouped_view), *plain = used(p.plain, p.plain_view);
    const duet_status wanted = random_law(plain, law, seed), got = random_law(to, law, seed);
    if (CHECK(got == wanted, "distribution %d, seed %llu: status %d, not %d: %s", law,
              (unsigned long long)seed, got, wanted, duet_error()))
        same_pair(&p, "distribution", law, seed);
    free_pair(&p);
}

static void noise_case(duet_group *g, uint64_t seed)
{
    rng r = rng_new(seed);
    const int noise = (int)rng_below(&r, NOISES), rank = 1 + (int)rng_below(&r, 3);
    int64_t size[3];
    for (int a = 0; a < rank; a++) size[a] = 1 + rng_below(&r, 20);
    const duet_dtype type = rng_chance(&r, 50) ? DUET_F32 : DUET_F16;
    pair x = new_pair(&r, g, DUET_F32, rank, size, false), p = zeros(&r, g, type, rank, size);
    duet_matrix *to = used(p.grouped, p.grouped_view), *plain = used(p.plain, p.plain_view);
    const bool fits = to == p.grouped;
    const duet_expr of_group = fits ? duet_of_matrix(x.grouped) : duet_of_number(1.5),
                    of_plain = fits ? duet_of_matrix(x.plain) : duet_of_number(1.5);
    const duet_status got = random_noise(to, duet_cast(of_group, type), noise, seed),
                      wanted = random_noise(plain, duet_cast(of_plain, type), noise, seed);
    if (CHECK(got == wanted, "noise %d, seed %llu: status %d, not %d: %s", noise, (unsigned long long)seed,
              got, wanted, duet_error()))
        same_pair(&p, "noise", noise, seed);
    free_pair(&p);
    free_pair(&x);
}

/* Random numbers and noise in a recording, which then runs again after the elements were overwritten. */
static void random_replay(duet_group *g, uint64_t seed)
{
    rng r = rng_new(seed);
    const int64_t size[] = { 1 + rng_below(&r, 30), 1 + rng_below(&r, 30) };
    pair p = { new_on_group(&r, g, DUET_F32, 2, size), duet_new_shape(DUET_F32, 2, size), NULL, NULL };
    pair h = { new_on_group(&r, g, DUET_F16, 2, size), duet_new_shape(DUET_F16, 2, size), NULL, NULL };
    duet_status s = duet_record_begin();
    if (s == DUET_OK) s = duet_random_normal(p.grouped, seed, 0, 1);
    if (s == DUET_OK) s = duet_noise_uniform(p.grouped, duet_mul(p.grouped, 2), seed);
    if (s == DUET_OK) s = duet_random_uniform(h.grouped, seed, 0, 1);
    duet_recording *all = duet_record_end();
    CHECK(s == DUET_OK && all, "%s", duet_error());
    s = duet_random_normal(p.plain, seed, 0, 1);
    if (s == DUET_OK) s = duet_noise_uniform(p.plain, duet_mul(p.plain, 2), seed);
    if (s == DUET_OK) s = duet_random_uniform(h.plain, seed, 0, 1);
    CHECK(s == DUET_OK, "%s", duet_error());
    for (int turn = 0; turn < 3; turn++) {
        same_pair(&p, "replay", turn, seed);
        same_pair(&h, "replay of f16", turn, seed);
        CHECK(duet_set(p.grouped, turn) == DUET_OK && duet_set(h.grouped, turn) == DUET_OK, "%s",
              duet_error());
        if (all) CHECK(duet_replay(all) == DUET_OK, "%s", duet_error());
    }
    duet_recording_free(&all);
    free_pair(&p);
    free_pair(&h);
}

/* No rank has more than its part, and nothing is copied between the host and GPUs. */
static __attribute__((unused)) void random_locality(duet_group *g)
{
    const int64_t n = 120000, bytes = 4 * n;
    for (int axis = 0; axis < 2; axis++) {
        duet_matrix *m =
            axis ? duet_new_split(g, DUET_F32, 1, n / 60, 60) : duet_new_split(g, DUET_F32, 0, n);
        const duet_counts before = duet_stats();
        const size_t used_before = duet_memory_of(DUET_CPU).used;
        CHECK(duet_random_uniform(m, 1, 0, 1) == DUET_OK, "%s", duet_error());
        CHECK(duet_noise_normal(m, m, 2) == DUET_OK, "%s", duet_error());
        const duet_counts after = duet_stats();
        const size_t grown = duet_memory_of(DUET_CPU).used - used_before;
        CHECK(after.uploads == before.uploads && after.downloads == before.downloads &&
                  after.exchanges == before.exchanges && after.copies == before.copies,
              "axis %d: elements were copied", axis);
        CHECK(grown < (size_t)bytes * 3 / 2, "axis %d: %zu bytes more are used, of %lld", axis, grown,
              (long long)bytes);
        duet_free(&m);
    }
}

static void all_random(duet_group *g, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < 4 * count; i++) random_case(g, seed + (uint64_t)i, i % 8 == 7);
    for (int64_t i = 0; i < count; i++) noise_case(g, seed + (uint64_t)i);
    for (int64_t i = 0; i < count / 10 + 1; i++) random_replay(g, seed + (uint64_t)i);
}

#endif
