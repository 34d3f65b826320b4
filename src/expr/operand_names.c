/* operand_names.c - the documented names of the operands of each function. */
#include "call_text.h"
#include <string.h>

const char *operand_name(const char *function, int k)
{
    static const struct {
        const char *function, *operand[3];
    } named[] = {
#define DUET_OPERANDS(function, x, y, z) { #function, { x, y, z } },
#include <duet/operands.def>
    };
    static const char *const usual[] = { "x", "y", "z" };
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (!strcmp(named[i].function, function)) return named[i].operand[k];
    return usual[k];
}
