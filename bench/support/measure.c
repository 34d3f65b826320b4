/* measure.c - measures the time of calls; see measure.h. */
#include "measure.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const effort effort_full = { 0.06, 0.02, ROUNDS }, effort_quick = { 0.01, 0.005, 5 };

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs calls to warm up, and determines the number of calls in a block. */
static bool calibrate(contender *c, effort e)
{
    const double start = now();
    double took;
    for (c->calls = 1;; c->calls *= took < e.target / 2 ? 2 : 1) {
        if (c->max_calls && c->calls > c->max_calls) c->calls = c->max_calls;
        took = c->block(c->state, c->calls);
        if (!isfinite(took)) return false;
        if ((took >= e.target / 2 || c->calls == c->max_calls) && now() - start >= e.warm) break;
    }
    double calls = ceil((double)c->calls * e.target / fmax(took, 1e-9));
    if (c->max_calls && calls > (double)c->max_calls) c->calls = c->max_calls;
    else c->calls = (int64_t)calls;
    return true;
}

static bool one_round(contender *c)
{
    double took = c->block(c->state, c->calls);
    c->us[c->rounds++] = 1e6 * took / (double)c->calls;
    return isfinite(took);
}

bool measure(contender *c, int count, effort e)
{
    for (int i = 0; i < count; i++) {
        c[i].rounds = 0;
        if (!calibrate(&c[i], e)) return false;
    }
    for (int round = 0; round < e.rounds; round++)
        for (int i = 0; i < count; i++)
            if (!one_round(&c[i])) return false;
    return true;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
}

double median_us(const contender *c)
{
    double us[ROUNDS];
    memcpy(us, c->us, sizeof us);
    if (c->rounds) return median(us, c->rounds);
    return NAN;
}

double median_ratio(const contender *c, const contender *to)
{
    double ratio[ROUNDS];
    for (int i = 0; i < c->rounds; i++) ratio[i] = c->us[i] / to->us[i];
    if (c->rounds) return median(ratio, c->rounds);
    return NAN;
}

double geomean(const double *v, int n)
{
    double sum = 0;
    int found = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(v[i])) {
            sum += log(v[i]);
            found++;
        }
    if (found) return exp(sum / found);
    return 0;
}

double greatest(const double *v, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(v[i])) most = fmax(most, v[i]);
    return most;
}

const char *short_count(char text[24], int64_t n)
{
    if (n >= 1 << 20 && n % (1 << 20) == 0) snprintf(text, 24, "%lldM", (long long)(n >> 20));
    else if (n >= 1 << 10 && n % (1 << 10) == 0) snprintf(text, 24, "%lldK", (long long)(n >> 10));
    else if (n >= 10000) snprintf(text, 24, "%.3g", (double)n);
    else snprintf(text, 24, "%lld", (long long)n);
    return text;
}
