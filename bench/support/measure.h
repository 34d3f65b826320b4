/* measure.h - how long things take: contenders in turns, block by block, and medians. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#define ROUNDS 9

/* Whoever's time is taken. block runs so many calls, waits for the last, and returns the seconds that they took, or NAN when one
 * failed. At most `most` calls make a block; 0: any number. */
typedef struct contender {
    const char *name;
    double (*block)(void *state, int64_t calls);
    void *state;
    int64_t most, calls;
    double us[ROUNDS]; /* of a call, by round */
    int rounds;
} contender;

typedef struct effort {
    double warm, target; /* seconds: of warming up at least, and of a block */
    int rounds;
} effort;
extern const effort effort_full, effort_quick;

/* Warms each contender up, then takes their times in turns. false: one failed. */
bool measure(contender *c, int count, effort e);

double median_us(const contender *c);
double median_ratio(const contender *c, const contender *to); /* of the rounds' ratios */
double median(double *v, int n);                              /* orders v */

/* Geometric mean and greatest of some numbers; those that are not finite are left out, and 0 stands for none. */
double geomean(const double *v, int n);
double greatest(const double *v, int n);

double now(void); /* seconds */

/* 1 << 20 as "1M", 4096 as "4K". */
const char *short_count(char text[24], int64_t n);
#endif
