/* generated_mode.c - reads DUET_JIT. */
#include "generated_mode.h"
#include "compiler.h"
#include <stdlib.h>
#include <string.h>

int generated_mode = -1;

int generated_when(void)
{
    int now = __atomic_load_n(&generated_mode, __ATOMIC_RELAXED);
    if (likely(now >= 0)) return now;
    const char *text = getenv("DUET_JIT");
    now = GENERATED_WHEN_HOT;
    if (text && !strcmp(text, "0")) now = GENERATED_NEVER;
    if (text && !strcmp(text, "1")) now = GENERATED_AT_ONCE;
    __atomic_store_n(&generated_mode, now, __ATOMIC_RELAXED);
    return now;
}
