/* overhead_report.h - the output of duet-calls: one line on the screen and one JSON object for each
 * figure. */
#ifndef OVERHEAD_REPORT_H
#define OVERHEAD_REPORT_H

#include "json.h"
#include "measure.h"

/* Reports one figure and its limit. A limit below 10 means that the figure is a ratio; otherwise it
 * is in nanoseconds. */
void report_figure(json *j, const char *device, const char *what, double figure, double limit);

/* Reports the median time of a call of each contender, and the number of instructions where the
 * system allows counting. */
void report_contenders(json *j, const char *device, contender *c, int count);
#endif
