/* period_detector.c - does a sequence of tokens repeat itself? */
#include "period_detector.h"

static uint64_t at(const history *h, uint64_t n) { return h->token[n % HISTORY]; }
static uint64_t *latest(history *h, uint64_t token) { return &h->latest[(token >> 2) % HISTORY]; }

uint64_t history_last(const history *h) { return h->count ? at(h, h->count - 1) : 0; }

bool history_expects(const history *h, uint64_t token)
{
    return h->period && at(h, h->count - (uint64_t)h->period) == token;
}

/* How far back it stood last; 0: too far, or nowhere. */
static int distance(history *h, uint64_t token)
{
    const uint64_t before = *latest(h, token), far = h->count + 1 - before;
    return before && far <= PERIOD_MAX && at(h, before - 1) == token ? (int)far : 0;
}

/* A token that breaks a period may continue another: the one since it stood last. */
void history_add(history *h, uint64_t token, uint64_t detail)
{
    if (history_expects(h, token)) h->run++;
    else {
        h->period = distance(h, token);
        h->run = h->period > 0;
    }
    h->token[h->count % HISTORY] = token;
    h->detail[h->count % HISTORY] = detail;
    h->count++;
    *latest(h, token) = h->count;
}

static bool same_detail(const history *h, uint64_t n)
{
    return h->detail[n % HISTORY] == h->detail[(n - (uint64_t)h->period) % HISTORY];
}

bool history_was_same(const history *h) { return same_detail(h, h->count - 1); }

bool history_varies(const history *h)
{
    for (int i = 1; i <= h->period; i++)
        if (!same_detail(h, h->count - (uint64_t)i)) return true;
    return false;
}

uint64_t history_name(const history *h)
{
    uint64_t sum = 0;
    for (int i = 1; i <= h->period; i++) sum += at(h, h->count - (uint64_t)i);
    return sum;
}

bool history_has(const history *h, uint64_t token)
{
    for (int i = 1; i <= h->period; i++)
        if (at(h, h->count - (uint64_t)i) == token) return true;
    return false;
}
