/* run_joined.h - see run_joined.c. */
#ifndef RUN_JOINED_H
#define RUN_JOINED_H

#include "backend.h"

bool gpu_joins(const step *s);
duet_status gpu_run_joined(const step *s, const step *then, const frame *f, bool *done);

#endif
