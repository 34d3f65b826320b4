/* modes.h - the fusion modes, for tests that compare them. */
#ifndef MODES_H
#define MODES_H

#include "plan.h"

enum { MODE_MACHINE, MODE_ROWS, MODE_NONE, MODES };
static const char *const mode_names[MODES] = { "machine", "rows", "none" };

#endif
