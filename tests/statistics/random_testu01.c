/* random_testu01.c - runs a battery of TestU01 on a stream of random numbers.
 *
 *     random_testu01 BATTERY STREAM [SEED [FIRST [LAST]]]
 *         BATTERY      SmallCrush or Crush
 *         STREAM       a name of stream.h
 *         SEED         of the first block; 1 by default
 *         FIRST, LAST  the numbers of the first and the last test to run; all by default
 * Prints TestU01's reports. For each test it also prints a line that starts with "ok" or "not ok", and for
 * each suspect p-value a line that starts with "suspect".
 *
 * TestU01 gives each statistic a p-value, which is uniform in [0, 1] if the generator is perfect. Its authors
 * call a p-value within 1e-10 of 0 or 1 a clear failure, and one within 1e-3 suspect: the test has to be
 * repeated. This program runs a test with a suspect p-value again, up to twice, with the numbers that follow.
 * A test fails if one of its statistics is suspect in all three runs, or within 1e-10 in any. A perfect
 * generator fails in a statistic with a probability of 8e-9; SmallCrush has 15 statistics, Crush has 144. The
 * exit status is 1 if a test failed.
 *
 * P. L'Ecuyer, R. Simard, TestU01: a C library for empirical testing of random number generators, ACM
 * TOMS 33, 2007. */
#include "stream.h"
#include <TestU01.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUSPECT 1e-3
#define FAILURE 1e-10
enum { ELEMENTS = 1 << 18, RUNS = 3, STATISTICS = 200 };

typedef struct battery {
    const char *name;
    int tests;
    void (*repeat)(unif01_Gen *g, int *times); /* runs test i times[i] times, for i = 1 .. tests */
} battery;

static const battery batteries[] = {
    { "SmallCrush", 10, bbattery_RepeatSmallCrush },
    { "Crush", 96, bbattery_RepeatCrush },
};

/* Global, because TestU01 calls a function without arguments. */
static stream source;
static int64_t next_word = INT64_MAX;

static unsigned int random_word(void)
{
    if (next_word >= source.words) {
        stream_next(&source);
        next_word = 0;
    }
    return source.word[next_word++];
}

static double distance(double p) { return p < 0.5 ? p : 1 - p; }

/* The state of a test: which statistics were suspect in all its runs. */
typedef struct outcome {
    bool suspect[STATISTICS];
    bool is_suspect; /* any of them */
    bool is_failure; /* beyond FAILURE in some run, or no statistic was computed */
    double worst;    /* the p-value nearest to 0 or 1 in the first run */
} outcome;

/* Takes the p-values of a run. TestU01 sets those to -1 that it does not compute. */
static void note_p_values(outcome *o, const char *what, int run)
{
    bool is_computed = false;
    o->is_suspect = false;
    for (int i = 0; i < bbattery_NTests && i < STATISTICS; i++) {
        const double p = bbattery_pVal[i];
        if (p < 0) {
            o->suspect[i] = false;
            continue;
        }
        is_computed = true;
        const bool is_suspect = !(distance(p) >= SUSPECT);
        o->suspect[i] &= is_suspect;
        o->is_suspect |= o->suspect[i];
        o->is_failure |= !(distance(p) >= FAILURE);
        if (run == 1 && !(distance(p) >= distance(o->worst))) o->worst = p;
        if (is_suspect)
            printf("suspect %s (%s), run %d: p = %.3g, 1 - p = %.3g\n", what, bbattery_TestNames[i], run, p,
                   1 - p);
    }
    o->is_failure |= !is_computed;
}

static bool passes(const battery *b, unif01_Gen *g, int test, const char *what)
{
    int *times = calloc((size_t)b->tests + 1, sizeof *times);
    if (!times) {
        fputs("out of memory\n", stderr);
        exit(2);
    }
    times[test] = 1;
    outcome o = { .is_suspect = true, .worst = 0.5 };
    memset(o.suspect, true, sizeof o.suspect);
    for (int run = 1; run <= RUNS && o.is_suspect && !o.is_failure; run++) {
        b->repeat(g, times);
        note_p_values(&o, what, run);
    }
    free(times);
    const bool passed = !o.is_suspect && !o.is_failure;
    printf("%s %s: p = %.6g\n", passed ? "ok" : "not ok", what, o.worst);
    fflush(stdout);
    return passed;
}

static const battery *find_battery(const char *name)
{
    for (size_t i = 0; i < sizeof batteries / sizeof *batteries; i++)
        if (!strcmp(name, batteries[i].name)) return &batteries[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const battery *b = argc >= 3 && argc <= 6 ? find_battery(argv[1]) : NULL;
    if (!b) {
        fprintf(stderr, "usage: random_testu01 SmallCrush|Crush STREAM [SEED [FIRST [LAST]]]\n");
        return 2;
    }
    const uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
    const int first = argc > 4 ? atoi(argv[4]) : 1, last = argc > 5 ? atoi(argv[5]) : b->tests;
    if (!stream_open(&source, argv[2], seed, ELEMENTS)) return 2;
    unif01_Gen *g = unif01_CreateExternGenBits(argv[2], random_word);
    swrite_Basic = FALSE; /* only the summaries */
    int failures = 0;
    for (int test = first; test <= last && test <= b->tests; test++) {
        char what[128];
        snprintf(what, sizeof what, "%s of %s, test %d", b->name, argv[2], test);
        failures += !passes(b, g, test, what);
    }
    unif01_DeleteExternGenBits(g);
    stream_close(&source);
    return failures > 0;
}
