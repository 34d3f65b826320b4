/* random_bytes.c - writes a stream of random bytes to standard output, for test batteries that read them.
 *
 *     random_bytes --list    prints the names of the streams
 *     random_bytes STREAM [SEED [BYTES]]
 *         STREAM   a name of stream.h
 *         SEED     of the first block; 1 by default
 *         BYTES    how many to write, rounded up to whole blocks; without end by default */
#include "stream.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ELEMENTS = 1 << 22 };

/* Returns false if nobody reads any more. */
static bool write_block(const stream *s)
{
    const char *from = (const char *)s->word;
    for (size_t left = (size_t)s->words * sizeof *s->word; left > 0;) {
        const ssize_t n = write(STDOUT_FILENO, from, left);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        from += n;
        left -= (size_t)n;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--list")) return puts(stream_names()) < 0;
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: random_bytes STREAM [SEED [BYTES]]; the streams are: %s\n", stream_names());
        return 2;
    }
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    const uint64_t bytes = argc > 3 ? strtoull(argv[3], NULL, 0) : UINT64_MAX;
    stream s;
    if (!stream_open(&s, argv[1], seed, ELEMENTS)) return 2;
    uint64_t written = 0;
    do {
        stream_next(&s);
        written += (uint64_t)s.words * sizeof *s.word;
    } while (write_block(&s) && written < bytes);
    stream_close(&s);
    return 0;
}
