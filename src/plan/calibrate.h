/* calibrate.h - costs of work on this machine (core/cost.h), measured once and stored in a file in the
 * user's cache folder. */
#ifndef CALIBRATE_H
#define CALIBRATE_H

#include "cost.h"

/* Call this before choosing between two devices. The first call reads the stored costs, or measures
 * them, which takes at most two seconds. No failure is an error: the built-in costs are
 * used instead. DUET_CALIBRATE=0 and DUET_REPRODUCIBLE=1: use the built-in costs. DUET_CALIBRATE=1:
 * measure again. */
void costs_prepare(void);

/* Measure as many curves as possible in this time; the others are the built-in ones. *busy: other
 * processes used the machine. The curves after that are the built-in ones, and the costs should not
 * be stored. Errors: those of a device, NO_MEMORY. */
duet_status costs_measure(costs measured[COSTED], double seconds, bool *busy);

#define CALIBRATION_PATH 600 /* characters */

/* calibration_file.c: the path of the file for these devices. False: there is no cache folder. */
bool calibration_path(char path[CALIBRATION_PATH]);

/* False: there is no valid file of this user for these devices and this version. */
bool calibration_read(const char *path, costs to[COSTED]);

/* Returns NULL, or why the costs could not be stored. */
const char *calibration_write(const char *path, const costs from[COSTED]);

#endif
