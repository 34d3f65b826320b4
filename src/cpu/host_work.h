/* host_work.h - work of the host in OpenMP's threads: see core/host_threads.h. */
#ifndef HOST_WORK_H
#define HOST_WORK_H

#include "host_threads.h"

int cpu_threads(double seconds);
void cpu_share(int threads, share_function *f, const void *work);

#endif
