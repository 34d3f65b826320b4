/* digits_data.c - reads the images and labels, or makes them, copies batches of them in random order, and
 * computes the accuracy of a network. MNIST's IDX format is a magic number and the sizes, big-endian,
 * followed by one byte for each pixel or label. */
#include "digits.h"
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_ZLIB /* zlib reads uncompressed files too */
#include <zlib.h>
typedef gzFile file;
static file file_open(const char *path) { return gzopen(path, "rb"); }
static bool file_read(file f, void *p, size_t n) { return gzread(f, p, (unsigned)n) == (int)n; }
static void file_close(file f) { gzclose(f); }
#else
typedef FILE *file;
static file file_open(const char *path) { return fopen(path, "rb"); }
static bool file_read(file f, void *p, size_t n) { return fread(p, 1, n, f) == n; }
static void file_close(file f) { fclose(f); }
#endif

static bool complain(const char *path, const char *what)
{
    fprintf(stderr, "digits: %s: %s\n", path, what);
    return false;
}

/* Checks the header: a word with the type and the number of dimensions, then each size. */
static bool check_header(file f, const char *path, const uint32_t *want, int words)
{
    uint8_t b[16];
    if (!file_read(f, b, 4 * (size_t)words)) return complain(path, "the file is too short");
    if (b[0] == 0x1f && b[1] == 0x8b)
        return complain(
            path,
            "the file is compressed, but this program was built without zlib: decompress it with gunzip");
    for (int i = 0; i < words; i++) {
        uint32_t got = (uint32_t)b[4 * i] << 24 | (uint32_t)b[4 * i + 1] << 16 | (uint32_t)b[4 * i + 2] << 8 |
                       b[4 * i + 3];
        if (got != want[i])
            return complain(path, "this is not the IDX file of 10000 digits of 28 x 28 pixels");
    }
    return true;
}

/* Opens folder/name, or folder/name.gz. */
static file open_either(const char *folder, const char *name, char *path, size_t size)
{
    file f = NULL;
    for (int gz = 0; gz < 2 && !f; gz++) {
        if (snprintf(path, size, "%s/%s%s", folder, name, gz ? ".gz" : "") >= (int)size) break;
        f = file_open(path);
    }
    return f;
}

static uint8_t *read_bytes(const char *folder, const char *name, const uint32_t *header, int words,
                           size_t bytes)
{
    char path[4096];
    file f = open_either(folder, name, path, sizeof path);
    uint8_t *b = f ? malloc(bytes) : NULL;
    if (!f) {
        complain(path, "cannot open this file, nor the one without .gz");
        return NULL;
    }
    bool ok = b && check_header(f, path, header, words) &&
              (file_read(f, b, bytes) || complain(path, "the file is too short"));
    file_close(f);
    if (ok) return b;
    free(b);
    return NULL;
}

bool digits_read(digits *d, const char *folder)
{
    const uint32_t images[] = { 0x803, IMAGES, SIDE, SIDE }, labels[] = { 0x801, IMAGES };
    uint8_t *pixel = read_bytes(folder, "t10k-images-idx3-ubyte", images, 4, (size_t)IMAGES * PIXELS);
    if (pixel) d->label = read_bytes(folder, "t10k-labels-idx1-ubyte", labels, 2, IMAGES);
    else d->label = NULL;
    if (d->label) d->image = malloc(sizeof(float) * IMAGES * PIXELS);
    else d->image = NULL;
    for (int i = 0; d->image && i < IMAGES * PIXELS; i++) d->image[i] = (float)pixel[i] / 255;
    for (int i = 0; d->label && i < IMAGES; i++) d->label[i] %= CLASSES;
    free(pixel);
    return d->image;
}

bool digits_make(digits *d)
{
    enum { BLOCK = 7, ACROSS = SIDE / BLOCK }; /* digit k is block k, in row-major order */
    d->label = malloc(IMAGES);
    d->image = malloc(sizeof(float) * IMAGES * PIXELS);
    if (!d->label || !d->image) {
        digits_free(d);
        return complain("images", "no memory");
    }
    for (int i = 0; i < IMAGES; i++) d->label[i] = (uint8_t)(noise_bits(200, i) % CLASSES);
    for (int i = 0; i < IMAGES * PIXELS; i++) {
        const int x = i % SIDE / BLOCK, y = i % PIXELS / SIDE / BLOCK;
        const float noise = (float)(noise_bits(201, i) >> 8) * 0x1p-24f;
        d->image[i] = d->label[i / PIXELS] == y * ACROSS + x ? 0.3f + 0.7f * noise : 0.7f * noise;
    }
    return true;
}

void digits_free(digits *d)
{
    free(d->image);
    free(d->label);
    *d = (digits){ 0 };
}

/* ---- batches and accuracy ---- */

void digits_order(int order[LEARN], uint32_t stream)
{
    for (int i = 0; i < LEARN; i++) order[i] = i;
    for (int i = LEARN - 1; i > 0; i--) {
        const int j = (int)(noise_bits(stream, i) % (uint32_t)(i + 1)), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

duet_status digits_copy(const digits *d, const int *order, int count, duet_matrix *x, duet_matrix *y)
{
    float *image = duet_overwrite(x), *digit = duet_overwrite(y);
    if (!image || !digit) return DUET_NO_MEMORY;
    memset(digit, 0, sizeof *digit * (size_t)count * CLASSES);
    for (int i = 0; i < count; i++) {
        memcpy(image + i * PIXELS, d->image + order[i] * PIXELS, sizeof *image * PIXELS);
        digit[i * CLASSES + d->label[order[i]]] = 1;
    }
    return DUET_OK;
}

duet_status digits_share(const digits *d, const duet_matrix *p, double *share)
{
    const float *of = duet_read(p);
    int right = 0;
    if (!of) return DUET_DEVICE_ERROR;
    for (int i = 0; i < TEST; i++, of += CLASSES) {
        int best = 0;
        for (int k = 1; k < CLASSES; k++) best = of[k] > of[best] ? k : best;
        right += best == d->label[LEARN + i];
    }
    *share = (double)right / TEST;
    return DUET_OK;
}
