/* digits.h - what the files of the digits example share. */
#ifndef DIGITS_H
#define DIGITS_H

#include <duet/duet.h>
#include <stdbool.h>
#include <time.h>

enum { IMAGES = 10000, SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10 };

/* The images, IMAGES x PIXELS in [0, 1], and what they show. */
typedef struct digits {
    float *image;
    uint8_t *label;
} digits;

bool digits_read(digits *d, const char *folder); /* false: it has said on stderr why */
void digits_free(digits *d);

/* Trains a convolutional network on the first 8000 images; prints what share of the last 2000 it tells right. */
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
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = ((float)(noise_bits(stream, i) >> 8) * 0x1p-23f - 1) * scale;
    return p;
}

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
