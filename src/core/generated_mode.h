/* generated_mode.h - when Duet generates machine code; set by DUET_JIT. */
#ifndef GENERATED_MODE_H
#define GENERATED_MODE_H

enum { GENERATED_NEVER, GENERATED_WHEN_HOT, GENERATED_AT_ONCE };
extern int generated_mode; /* -1: not set yet. Set at the first use; tests change it */

int generated_when(void);

#endif
