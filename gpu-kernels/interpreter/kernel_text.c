/* kernel_text.c - reads templates; decompresses them with zlib if the build has it. */
#include "kernel_text.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAS_ZLIB
#include <zlib.h>

/* A file of gzip ends with the length of its contents. */
static size_t length_of(const char *end)
{
    const unsigned char *at = (const unsigned char *)end - 4;
    return at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

static bool inflate_all(char *to, size_t length, const char *from, const char *end)
{
    z_stream z = { .next_in = (Bytef *)(uintptr_t)from,
                   .avail_in = (uInt)(end - from),
                   .next_out = (Bytef *)to,
                   .avail_out = (uInt)length };
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) return false;
    const bool done = inflate(&z, Z_FINISH) == Z_STREAM_END && z.total_out == length;
    inflateEnd(&z);
    return done;
}
#else
static size_t length_of(const char *end)
{
    (void)end;
    return 0;
}

static bool inflate_all(char *to, size_t length, const char *from, const char *end)
{
    (void)to, (void)length, (void)from, (void)end;
    return false;
}
#endif

/* Does the text start with the magic bytes of gzip? */
static bool is_compressed(const char *at) { return !memcmp(at, "\x1f\x8b", 2); }

void kernel_text_open(ptx_template *s, const char *packed, const char *end)
{
    const bool compressed = is_compressed(packed);
    s->text = NULL;
    s->length = compressed ? length_of(end) : (size_t)(end - packed);
    char *to = malloc(s->length + 1);
    if (!to) return;
    bool done = true;
    if (compressed) done = inflate_all(to, s->length, packed, end);
    else memcpy(to, packed, s->length);
    if (done) s->text = to;
    else free(to);
}

void kernel_text_free(const ptx_template *s) { free((void *)(uintptr_t)s->text); }
