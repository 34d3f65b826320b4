/* memory_report.h - who uses the memory of a device, as text. */
#ifndef MEMORY_REPORT_H
#define MEMORY_REPORT_H

#include "status.h"

/* Adds to this thread's error text the matrices with the largest buffers on a device, as many as fit.
 * Returns s. */
duet_status name_owners(duet_status s, int device) __attribute__((cold));

#endif
