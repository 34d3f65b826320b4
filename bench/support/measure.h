/* measure.h - measures how long calls take. Several contenders run in turns, block of calls by
 * block, and the result is the median over the rounds. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#define ROUNDS 9

/* One of the implementations that are compared. block runs `calls` calls, waits until the last one
 * is done, and returns the seconds that they took, or NAN on failure. A block has at most max_calls
 * calls; 0: no limit. */
typedef struct contender {
    const char *name;
    double (*block)(void *state, int64_t calls);
    void *state;
    int64_t max_calls, calls;
    double us[ROUNDS]; /* time of a call in each round */
    int rounds;
} contender;

typedef struct effort {
    double warm, target; /* seconds: least time of the warm-up, time of a block */
    int rounds;
} effort;
extern const effort effort_full, effort_quick;

/* Warms up each contender, then measures all in turns. Returns false if one fails. */
bool measure(contender *c, int count, effort e);

double median_us(const contender *c);
double median_ratio(const contender *c, const contender *to); /* median of the ratios of the rounds */
double median(double *v, int n);                              /* sorts v */

/* Return the geometric mean and the maximum of the finite numbers in v; 0 if there are none. */
double geomean(const double *v, int n);
double greatest(const double *v, int n);

double now(void); /* seconds */

/* Writes 1 << 20 as "1M" and 4096 as "4K". */
const char *short_count(char text[24], int64_t n);
#endif
