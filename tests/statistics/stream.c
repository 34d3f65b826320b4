/* stream.c - the random numbers of Duet as a stream of bits. stream.h documents it. */
#include "stream.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 256 }; /* in a block of the stream `seeds` */

/* ---- draw: fill the matrix ---- */

/* Every int64_t except INT64_MAX, so all 64 bits are random. */
static duet_status draw_integers(stream *s)
{
    return duet_random_integers(s->m, s->seed++, INT64_MIN, INT64_MAX);
}

/* Element 0 of each of SEEDS consecutive seeds, then element 1 of each, and so on. */
static duet_status draw_seeds(stream *s)
{
    duet_matrix *table = duet_reshaped(s->m, -1, SEEDS);
    duet_status status = table ? DUET_OK : DUET_NO_MEMORY;
    for (int64_t j = 0; j < SEEDS && status == DUET_OK; j++) {
        duet_matrix *column = duet_column(table, j);
        status = column ? duet_random_integers(column, s->seed++, INT64_MIN, INT64_MAX) : DUET_NO_MEMORY;
        duet_free(&column);
    }
    duet_free(&table);
    return status;
}

static duet_status draw_uniform(stream *s) { return duet_random_uniform(s->m, s->seed++, 0, 1); }

static duet_status draw_bernoulli(stream *s) { return duet_random_bernoulli(s->m, s->seed++, 0.5); }

/* The distribution function makes normal numbers uniform. Its error, a few 2^-53, is far below the bits that
 * are used. */
static duet_status draw_normal(stream *s)
{
    const duet_status status = duet_random_normal(s->m, s->seed++, 0, 1);
    return status == DUET_OK ? duet_set(s->m, duet_ncdf(s->m)) : status;
}

/* Numbers of f32 have coarser steps. An interval of width 2^-12 contains enough of them. */
static duet_status draw_normal_f32(stream *s)
{
    duet_matrix *x = duet_new(DUET_F32, duet_count(s->m));
    duet_status status = x ? duet_random_normal(x, s->seed++, 0, 1) : DUET_NO_MEMORY;
    if (status == DUET_OK) status = duet_set(s->m, duet_ncdf(duet_cast(x, DUET_F64)));
    duet_free(&x);
    return status;
}

static double tail(double x) { return 0.5 * erfc(x * sqrt(0.5)); }

/* Numbers above low are computed from their tail, which is more accurate than the distribution function. */
static duet_status draw_truncated(stream *s, double low, double high)
{
    const double size = tail(low) - tail(high);
    const duet_status status = duet_random_truncated_normal(s->m, s->seed++, 0, 1, low, high);
    if (status != DUET_OK) return status;
    return duet_set(s->m, duet_mul(duet_sub(duet_ncdf(duet_neg(s->m)), tail(high)), 1 / size));
}

/* The three methods of truncated normal numbers. Each rejects some proposals. */
static duet_status draw_truncated_normal(stream *s) { return draw_truncated(s, -1, 2); }
static duet_status draw_truncated_exponential(stream *s) { return draw_truncated(s, 1, INFINITY); }
static duet_status draw_truncated_uniform(stream *s) { return draw_truncated(s, -0.25, 0.5); }

/* ---- bits: the lowest bits of an integer, or the first bits of the fraction of a number in [0, 1) ---- */

static uint64_t first_bits(double x, int bits)
{
    const uint64_t one = (uint64_t)1 << bits;
    return (uint64_t)(x * (double)one) & (one - 1);
}

static uint64_t bits_i64(const void *m, int64_t i, int bits)
{
    return (uint64_t)((const int64_t *)m)[i] & UINT64_MAX >> (64 - bits);
}
static uint64_t bits_high(const void *m, int64_t i, int bits) { return bits_i64(m, i, 64) >> (64 - bits); }
static uint64_t bits_u8(const void *m, int64_t i, int bits) { return (void)bits, ((const uint8_t *)m)[i]; }
static uint64_t bits_f32(const void *m, int64_t i, int bits)
{
    return first_bits(((const float *)m)[i], bits);
}
static uint64_t bits_f64(const void *m, int64_t i, int bits)
{
    return first_bits(((const double *)m)[i], bits);
}

static const struct stream_kind {
    const char *name;
    duet_dtype type;
    int bits; /* of an element */
    duet_status (*draw)(stream *s);
    uint64_t (*bits_of)(const void *m, int64_t i, int bits);
} kinds[] = {
    { "integers", DUET_I64, 64, draw_integers, bits_i64 },
    { "integers_high", DUET_I64, 32, draw_integers, bits_high },
    { "integers_low", DUET_I64, 32, draw_integers, bits_i64 },
    { "seeds", DUET_I64, 64, draw_seeds, bits_i64 },
    { "uniform_f32", DUET_F32, 24, draw_uniform, bits_f32 },
    { "uniform_f64", DUET_F64, 53, draw_uniform, bits_f64 },
    { "normal_f32", DUET_F64, 12, draw_normal_f32, bits_f64 },
    { "normal_f64", DUET_F64, 32, draw_normal, bits_f64 },
    { "truncated_normal", DUET_F64, 32, draw_truncated_normal, bits_f64 },
    { "truncated_exponential", DUET_F64, 32, draw_truncated_exponential, bits_f64 },
    { "truncated_uniform", DUET_F64, 32, draw_truncated_uniform, bits_f64 },
    { "bernoulli", DUET_U8, 1, draw_bernoulli, bits_u8 },
    { "control", DUET_F32, 32, draw_uniform, bits_f32 }, /* a bad one, which batteries must reject; last */
};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *stream_names(void)
{
    static char names[256];
    if (*names) return names;
    for (int k = 0; k < KINDS - 1; k++) {
        if (k > 0) strcat(names, " ");
        strcat(names, kinds[k].name);
    }
    return names;
}

static const struct stream_kind *find_kind(const char *name)
{
    for (int k = 0; k < KINDS; k++)
        if (!strcmp(name, kinds[k].name)) return &kinds[k];
    return NULL;
}

bool stream_open(stream *s, const char *name, uint64_t seed, int64_t elements)
{
    *s = (stream){ .kind = find_kind(name), .seed = seed };
    if (!s->kind) {
        fprintf(stderr, "unknown stream %s; the streams are: %s\n", name, stream_names());
        return false;
    }
    s->words = elements / 32 * s->kind->bits;
    s->word = malloc((size_t)s->words * sizeof *s->word);
    s->m = duet_new(s->kind->type, elements);
    if (s->word && s->m) return true;
    fprintf(stderr, "%s\n", s->m ? "out of memory" : duet_error());
    stream_close(s);
    return false;
}

/* Copies the bits of all elements of m to the words. */
static void pack(stream *s, const void *m)
{
    unsigned __int128 rest = 0;
    int bits = 0; /* in rest */
    uint32_t *to = s->word, *end = s->word + s->words;
    for (int64_t i = 0; to < end; i++) {
        rest |= (unsigned __int128)s->kind->bits_of(m, i, s->kind->bits) << bits;
        for (bits += s->kind->bits; bits >= 32; bits -= 32) {
            *to++ = (uint32_t)rest;
            rest >>= 32;
        }
    }
}

void stream_next(stream *s)
{
    const duet_status status = s->kind->draw(s);
    const void *m = status == DUET_OK ? duet_read(s->m) : NULL;
    if (!m) {
        fprintf(stderr, "%s\n", duet_error());
        exit(2);
    }
    if (s->kind->bits == 64) memcpy(s->word, m, (size_t)s->words * sizeof *s->word);
    else pack(s, m);
}

void stream_close(stream *s)
{
    free(s->word);
    s->word = NULL;
    duet_free(&s->m);
}
