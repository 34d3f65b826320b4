/* cpu.h - the CPU machine, which always exists. */
#ifndef CPU_H
#define CPU_H

#include "cost.h"

extern const machine cpu_machine;

/* The best instruction set that the processor has and DUET_ISA (portable, avx2, avx512) allows.
 * Chosen when first needed, and again when this is called: no step may run meanwhile. Returns its
 * name. Results do not depend on it. */
const char *cpu_choose_isa(void);

const char *cpu_isa(void); /* the one in use */

extern const costs cpu_costs;
double cpu_cost(const step *s);
void cpu_identify(char *text, size_t size);

/* Work that takes one thread less than this time is not divided between threads. */
extern double cpu_serial_seconds;

/* The size of the cache that one thread has for itself. */
extern int64_t cpu_own_bytes;

/* Does BLAS use threads of its own? Then several of Duet's threads must not call it at once. */
extern bool cpu_blas_apart;
bool cpu_blas_awake(void); /* do BLAS's own threads still spin, waiting for work? */
void cpu_blas_used(void);  /* to be called after a product */

/* For libraries that do not survive if memory is refused: maps bytes, to be unmapped by munmap, or returns
 * NULL; and tells whether it could. The answer may be out of date when it is used. */
void *cpu_map(size_t bytes);
bool cpu_has_room(size_t bytes);

#endif
