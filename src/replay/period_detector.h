/* period_detector.h - remembers the latest tokens of a thread and detects whether they repeat. */
#ifndef PERIOD_DETECTOR_H
#define PERIOD_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

#define PERIOD_MAX     128
#define HISTORY_LENGTH (2 * PERIOD_MAX)

/* Each token has a detail, which may vary from period to period. All zeros is the initial state. */
typedef struct period_detector {
    uint64_t token[HISTORY_LENGTH], detail[HISTORY_LENGTH]; /* ring buffers of the latest */
    uint64_t count;                                         /* of all tokens ever added */
    uint64_t latest[HISTORY_LENGTH]; /* by a hash of the token: the index of its last occurrence, plus 1 */
    int period;                      /* 0: nothing repeats */
    int run;                         /* the number of latest tokens that equal the token one period before */
} period_detector;

uint64_t period_last_token(const period_detector *d); /* 0: there is none */
bool period_expects(const period_detector *d, uint64_t token);
void period_add(period_detector *d, uint64_t token, uint64_t detail);

/* Has the last token the same detail as one period before? */
bool period_detail_repeats(const period_detector *d);

uint64_t period_hash(const period_detector *d); /* independent of where in the period one begins */
bool period_contains(const period_detector *d, uint64_t token);
bool period_details_vary(const period_detector *d);

#endif
