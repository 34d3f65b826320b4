/* environment.h - what the times were taken on. */
#ifndef FACTS_H
#define FACTS_H

#include <stdbool.h>

/* What the times were taken on. Texts are cut to fit. */
typedef struct facts {
    char cpu[128], gpu[128], driver[32], blas[128], commit[64], date[32], system[160];
    int cores, threads;
} facts;
void facts_find(facts *f);
bool gpu_facts(char name[128], char version[32]); /* of the driver, without the library */
bool has_gpu(void);                               /* else duet_error() says why */
#endif
