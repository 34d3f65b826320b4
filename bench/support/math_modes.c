/* math_modes.c - selects the math mode of products (strict, split, tf32, bf16). */
#include "bench.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The relative error that the mode may add to a result. A result averages many rounding errors of
 * operands, so this is an upper limit. Split is as accurate as f32. */
static const struct {
    const char *name;
    double error;
} modes[] = { { "strict", 0 }, { "split", 0 }, { "tf32", 0x1p-9 }, { "bf16", 0x1p-6 } };

static int find(const char *name)
{
    for (int i = 0; i < (int)(sizeof modes / sizeof *modes); i++)
        if (!strcmp(modes[i].name, name)) return i;
    return -1;
}

static int now_in_use(void)
{
    const char *name = getenv("DUET_MATH");
    const int i = name ? find(name) : 0;
    if (i < 0) return 0;
    return i;
}

const char *math_name(void) { return modes[now_in_use()].name; }
double math_error(void) { return modes[now_in_use()].error; }

bool math_use(const char *name, char **argv)
{
#ifdef DUET_MATH
    const bool other = true;
#else
    const bool other = false; /* the library supports strict only */
#endif
    const int i = find(name);
    if (i < 0 || (i && !other)) return false;
    if (i == now_in_use()) return true;
    return setenv("DUET_MATH", name, 1) == 0 && execv("/proc/self/exe", argv) == 0;
}
