/* isas.h - the instruction sets of the CPU, for tests that compare them. */
#ifndef ISAS_H
#define ISAS_H

#include "cpu.h"
#include <stdlib.h>

enum { ISAS = 3 };
static const char *const isa_names[ISAS] = { "portable", "avx2", "avx512" };

/* Selects an instruction set, or the next lower one that the processor has; returns its name. */
static inline const char *use_isa(int isa)
{
    setenv("DUET_ISA", isa_names[isa], 1);
    return cpu_choose_isa();
}

#endif
