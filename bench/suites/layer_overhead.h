/* layer_overhead.h - of duet-calls, what needs a GPU and a network: a layer beside the bare calls that it makes, automatic replay beside the recorded. */
#ifndef LAYERS_H
#define LAYERS_H

#include "json.h"
#include "measure.h"

/* Dense and CNN forward at batch 1: as written, automatically replayed, recorded. Before anyone has Duet's stream. */
bool layers_networks(json *j, effort how);

/* One dense layer, batch 1 to 1000: the host's time of it and of the bare calls. After hand_open, on Duet's stream. */
bool layers_dense(json *j, effort how);

/* overhead.c: a line of the report with what the figure should not pass: nanoseconds, or a ratio, whose limit is below 10. */
void report_figure(json *j, const char *machine, const char *what, double figure, double limit);
void report_contenders(json *j, const char *machine, contender *c, int count);
#endif
