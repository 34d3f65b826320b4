/* digits.h - declarations shared by the files of the digits example. */
#ifndef DIGITS_H
#define DIGITS_H

#include <duet/duet.h>
#include <stdbool.h>
#include <time.h>

enum { IMAGES = 10000, SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10 };
enum { LEARN = 8000, TEST = IMAGES - LEARN }; /* images for training, then for testing */

/* Returns from the calling function if the call fails. */
#define STEP(call)                                                                                           \
    do {                                                                                                     \
        duet_status status_ = (call);                                                                        \
        if (status_ != DUET_OK) return status_;                                                              \
    } while (0)

/* The images, IMAGES x PIXELS with values in [0, 1], and the digit that each shows. */
typedef struct digits {
    float *image;
    uint8_t *label;
} digits;

bool digits_read(digits *d, const char *folder); /* returns false after printing an error to stderr */
bool digits_make(digits *d);                     /* makes images: the digit is the place of a bright block */
void digits_free(digits *d);

/* Writes the numbers 0 .. LEARN - 1 in random order; each random stream gives another order. */
void digits_order(int order[LEARN], uint32_t stream);

/* Copies images order[0] .. order[count - 1] to the rows of x, and their labels to the rows of y, where
 * the element of the digit is 1 and the others are 0. */
duet_status digits_copy(const digits *d, const int *order, int count, duet_matrix *x, duet_matrix *y);

/* Computes the fraction of test images that the network recognises. p has a row for each test image,
 * with the probability of each digit. */
duet_status digits_share(const digits *d, const duet_matrix *p, double *share);

/* Trains a convolutional network on the training images and prints its accuracy on the test images. */
duet_status train_cnn(const digits *d, int passes);

/* Returns element i of a stream of random bits, the same everywhere; digits_numpy.py has a copy. */
static inline uint32_t noise_bits(uint32_t stream, int64_t i)
{
    uint32_t h = (uint32_t)i * 0x9E3779B1u ^ stream * 0x85EBCA77u;
    h = (h ^ h >> 16) * 0x21F0AAADu;
    h = (h ^ h >> 15) * 0x735A2D97u;
    return h ^ h >> 15;
}

/* Fills a matrix with random numbers in [-scale, scale). */
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
