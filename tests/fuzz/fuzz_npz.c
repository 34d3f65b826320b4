/* fuzz_npz.c - the fuzz target of duet_names_npz and duet_load_npz. */
#include "fuzz.h"

#define ARRAYS 8    /* at most so many are loaded */
#define RATIO  1100 /* more than deflate reaches */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *path = file_of(bytes, size);
    char **names = duet_names_npz(path);
    expect(names || *duet_error(), "a failure without an error text");
    for (int k = 0; names && names[k] && k < ARRAYS; k++)
        check_loaded(duet_load_npz(path, names[k]), RATIO * size);
    free(names);
    return 0;
}
