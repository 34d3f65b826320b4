/* fuzz_market.c - the fuzz target of duet_load_market. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    check_loaded(duet_load_market(file_of(bytes, size)), 2 * size + 2);
    return 0;
}
