/* inflate_none.c - the build without zlib: compressed files are an error. */
#include "io.h"

const char inflate_none[] = "built without zlib";

void inflate_info(char *text, size_t size)
{
    snprintf(text, size, "compressed .npz files cannot be read: %s", inflate_none);
}

duet_status inflate_begin(input *in, uint64_t compressed)
{
    return fail(DUET_UNSUPPORTED, "%s(\"%s\"): the array is compressed, and this library is %s", in->who,
                in->path, inflate_none);
}

duet_status inflate_read(input *in, void *to, size_t bytes) { return DUET_UNSUPPORTED; }

void inflate_end(input *in) {}
