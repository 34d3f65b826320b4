/* stream.h - the random numbers of Duet as a stream of bits, for test batteries of random number generators.
 *
 * A stream consists of blocks. A block is a matrix that a function of duet/random.h fills; the next block has
 * the next seed. Each element contributes those of its bits that docs/semantics.md says are random. They
 * follow each other without gaps, the lowest bit first. */
#ifndef STREAM_H
#define STREAM_H

#include <duet/duet.h>
#include <stdbool.h>

typedef struct stream {
    const struct stream_kind *kind;
    uint64_t seed;  /* of the next block */
    duet_matrix *m; /* the elements of this block */
    uint32_t *word; /* their bits */
    int64_t words;
} stream;

/* The names of all streams, separated by blanks. Not among them is `control`, a stream of uniform f32 numbers
 * of which 8 of 32 bits are always 0: a battery that works must reject it. */
const char *stream_names(void);

/* Prepares the stream of this name; its blocks have this number of elements, which is a multiple of 256.
 * On failure prints why and returns false. */
bool stream_open(stream *s, const char *name, uint64_t seed, int64_t elements);

/* Draws the next block. On failure prints why and ends the process. */
void stream_next(stream *s);

void stream_close(stream *s);

#endif
