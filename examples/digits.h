/* digits.h - what the files of the digits example share. */
#ifndef DIGITS_H
#define DIGITS_H

#include <duet/duet.h>
#include <stdbool.h>
#include <time.h>

enum { IMAGES = 10000, SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10 };
enum { LEARN = 8000, TEST = IMAGES - LEARN }; /* the first images are learnt, the others are the test */

/* Hands on a failure. */
#define STEP(call)                                                                                           \
    do {                                                                                                     \
        duet_status status_ = (call);                                                                        \
        if (status_ != DUET_OK) return status_;                                                              \
    } while (0)

/* The images, IMAGES x PIXELS in [0, 1], and what they show. */
typedef struct digits {
    float *image;
    uint8_t *label;
} digits;

bool digits_read(digits *d, const char *folder); /* false: it has said on stderr why */
void digits_free(digits *d);

/* A shuffle: the images from 0 to LEARN - 1 in random order, another one for each stream of noise. */
void digits_order(int order[LEARN], uint32_t stream);

/* Images order[0] .. order[count - 1] into the rows of x, and into those of y which digit each is: 1 there, 0 elsewhere. */
duet_status digits_copy(const digits *d, const int *order, int count, duet_matrix *x, duet_matrix *y);

/* The share of the test that is told right. p: for each of its images how probable each digit is. */
duet_status digits_share(const digits *d, const duet_matrix *p, double *share);

/* Trains a convolutional network on what is to be learnt; prints what share of the test it tells right. */
duet_status train_cnn(const digits *d, int passes);

/* Element i of a stream of noise, the same on every machine; digits_numpy.py has it too. */
static inline uint32_t noise_bits(uint32_t stream, int64_t i)
{
    uint32_t h = (uint32_t)i * 0x9E3779B1u ^ stream * 0x85EBCA77u;
    h = (h ^ h >> 16) * 0x21F0AAADu;
    h = (h ^ h >> 15) * 0x735A2D97u;
    return h ^ h >> 15;
}

/* Fills a matrix with noise in [-scale, scale). */
static inline bool fill_noise(duet_matrix *m, uint32_t stream, float scale)
{
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++)
        p[i] = ((float)(noise_bits(stream, i) >> 8) * 0x1p-23f - 1) * scale;
    return p;
}

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
