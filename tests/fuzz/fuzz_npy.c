/* fuzz_npy.c - the fuzz target of duet_load_npy. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    check_loaded(duet_load_npy(file_of(bytes, size)), size);
    return 0;
}
