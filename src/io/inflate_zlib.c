/* inflate_zlib.c - decompresses parts of files with zlib. */
#include "io.h"
#include <stdlib.h>
#include <zlib.h>

const char inflate_none[] = "";

void inflate_info(char *text, size_t size)
{
    snprintf(text, size, "zlib %s reads deflated .npz", zlibVersion());
}

struct inflater {
    z_stream z;
    uint64_t compressed; /* bytes that have not come from the file yet */
    unsigned char bytes[1 << 16];
};

duet_status inflate_begin(input *in, uint64_t compressed)
{
    struct inflater *i = calloc(1, sizeof *i);
    const int begun = i ? inflateInit2(&i->z, -MAX_WBITS) : Z_MEM_ERROR;
    if (begun != Z_OK) {
        free(i);
        return fail(begun == Z_MEM_ERROR ? DUET_NO_MEMORY : DUET_UNSUPPORTED,
                    "%s(\"%s\"): zlib %s cannot be initialised", in->who, in->path, zlibVersion());
    }
    i->compressed = compressed;
    in->inflater = i;
    return DUET_OK;
}

static duet_status refill(input *in)
{
    struct inflater *i = in->inflater;
    const size_t n = i->compressed < sizeof i->bytes ? (size_t)i->compressed : sizeof i->bytes;
    if (!n || fread(i->bytes, 1, n, in->f) != n) return bad_file(in, "the compressed data is truncated");
    i->compressed -= n;
    i->z.next_in = i->bytes;
    i->z.avail_in = (uInt)n;
    return DUET_OK;
}

duet_status inflate_read(input *in, void *to, size_t bytes)
{
    z_stream *z = &in->inflater->z;
    for (unsigned char *next = to; bytes > 0;) {
        const uInt some = bytes < 1u << 30 ? (uInt)bytes : 1u << 30;
        z->next_out = next;
        z->avail_out = some;
        const int r = inflate(z, Z_NO_FLUSH);
        const size_t came = some - z->avail_out;
        next += came;
        bytes -= came;
        if (r == Z_BUF_ERROR && !z->avail_in) {
            TRY(refill(in));
            continue;
        }
        if (r == Z_MEM_ERROR)
            return fail(DUET_NO_MEMORY, "%s(\"%s\"): out of memory for decompression", in->who, in->path);
        if (r != Z_OK && !(r == Z_STREAM_END && !bytes))
            return bad_file(in, "the compressed data is damaged");
    }
    return DUET_OK;
}

void inflate_end(input *in)
{
    inflateEnd(&in->inflater->z);
    free(in->inflater);
    in->inflater = NULL;
}
