/* recover.h - implements `abandon` and `recover` of core/backend.h. */
#ifndef RECOVER_H
#define RECOVER_H

#include "status.h"

void gpu_abandon(int device);
duet_status gpu_recover(int device);

#endif
