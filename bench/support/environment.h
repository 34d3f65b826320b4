/* environment.h - describes where a benchmark ran: processor, GPU, versions, commit, date. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <stdbool.h>

/* Texts that are too long are truncated. */
typedef struct environment {
    char cpu[128], gpu[128], driver[32], blas[128], commit[64], date[32], system[160];
    int cores, threads;
} environment;
void environment_find(environment *f);
bool gpu_describe(char name[128], char version[32]); /* queries the CUDA driver, not Duet */
bool has_gpu(void);                                  /* if false, duet_error() says why */
#endif
