/* foreign.h - memory and streams of others: the functions of backend.h. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include "backend.h"

duet_status gpu_foreign_locate(const void *p, int *device);
duet_status gpu_foreign_follow(int device, int index, void *stream);
duet_status gpu_foreign_lead(int device, int index, void *stream);
duet_status gpu_foreign_drain(int device);

#endif
