/* period_detector.c - detects whether the end of a sequence of tokens repeats with some period. */
#include "period_detector.h"

static uint64_t at(const period_detector *d, uint64_t n) { return d->token[n % HISTORY_LENGTH]; }
static uint64_t *latest(period_detector *d, uint64_t token)
{
    return &d->latest[(token >> 2) % HISTORY_LENGTH];
}

uint64_t period_last_token(const period_detector *d) { return d->count ? at(d, d->count - 1) : 0; }

bool period_expects(const period_detector *d, uint64_t token)
{
    return d->period && at(d, d->count - (uint64_t)d->period) == token;
}

/* The distance to the token's last occurrence; 0: more than PERIOD_MAX, or none. */
static int distance(period_detector *d, uint64_t token)
{
    const uint64_t before = *latest(d, token), far = d->count + 1 - before;
    if (before && far <= PERIOD_MAX && at(d, before - 1) == token) return (int)far;
    return 0;
}

/* A token that breaks the period may begin another one: the distance to its last occurrence. */
void period_add(period_detector *d, uint64_t token, uint64_t detail)
{
    if (period_expects(d, token)) d->run++;
    else {
        d->period = distance(d, token);
        d->run = d->period > 0;
    }
    d->token[d->count % HISTORY_LENGTH] = token;
    d->detail[d->count % HISTORY_LENGTH] = detail;
    d->count++;
    *latest(d, token) = d->count;
}

static bool same_detail(const period_detector *d, uint64_t n)
{
    return d->detail[n % HISTORY_LENGTH] == d->detail[(n - (uint64_t)d->period) % HISTORY_LENGTH];
}

bool period_detail_repeats(const period_detector *d) { return same_detail(d, d->count - 1); }

bool period_details_vary(const period_detector *d)
{
    for (int i = 1; i <= d->period; i++)
        if (!same_detail(d, d->count - (uint64_t)i)) return true;
    return false;
}

uint64_t period_hash(const period_detector *d)
{
    uint64_t sum = 0;
    for (int i = 1; i <= d->period; i++) sum += at(d, d->count - (uint64_t)i);
    return sum;
}

bool period_contains(const period_detector *d, uint64_t token)
{
    for (int i = 1; i <= d->period; i++)
        if (at(d, d->count - (uint64_t)i) == token) return true;
    return false;
}
