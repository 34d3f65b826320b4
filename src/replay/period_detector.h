/* period_detector.h - what a thread has said last, and whether it repeats itself. Private to src/plan. */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#define PERIOD_MAX 128
#define HISTORY    (2 * PERIOD_MAX)

/* Tokens, each with a detail that repeats or does not, and how many on end have been what stood a period before them. All zeros at first. */
typedef struct history {
    uint64_t token[HISTORY], detail[HISTORY], count; /* the latest; how many there ever were */
    uint64_t latest[HISTORY];                        /* by a token's hash, one past where it stood last */
    int period, run;                                 /* 0: nothing repeats */
} history;

uint64_t history_last(const history *h); /* 0: there is none */
bool history_expects(const history *h, uint64_t token);
void history_add(history *h, uint64_t token, uint64_t detail);
bool history_was_same(const history *h); /* a period before the last one: its detail */

/* A name for the period, the same wherever in it one begins; and whether a token is in it. */
uint64_t history_name(const history *h);
bool history_has(const history *h, uint64_t token);
bool history_varies(const history *h); /* in a detail */

#endif
