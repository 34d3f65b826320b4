/* calibrate.h - the costs of core/cost.h, as they are on this very machine: measured once, and kept in the user's cache folder. */
#ifndef MEASURE_H
#define MEASURE_H

#include "cost.h"

/* To be called before a choice between two machines that are both there. The first call reads what was kept, or measures, in two seconds at
 * most; nothing that goes wrong is a failure: costs are then as shipped. DUET_CALIBRATE=0: as shipped in any case, as with
 * DUET_REPRODUCIBLE=1, where no choice is by timing. DUET_CALIBRATE=1: measured anew. */
void costs_prepare(void);

/* Measures what can be in so many seconds; the rest is as shipped. *busy: others used the machine; from
 * there on all is as shipped, and nothing should be kept. An error is that of a machine, or NO_MEMORY. */
duet_status costs_measure(costs measured[SIDES], double seconds, bool *busy);

/* calibration_file.c. path: where costs of these machines belong; false: there is no such folder. read: false when there are none, or none that are sound,
 * of these machines, this version and this user. write: NULL, or why they could not be kept. */
#define KEPT_PATH 600
bool kept_path(char path[KEPT_PATH]);
bool kept_read(const char *path, costs to[SIDES]);
const char *kept_write(const char *path, const costs from[SIDES]);

#endif
