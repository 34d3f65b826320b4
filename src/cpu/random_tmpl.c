/* random_tmpl.c - random numbers from Philox, in chunks. Template.
 *
 * A chunk is computed in one vector loop over Philox blocks; elements whose first attempt is
 * rejected follow one by one. OUT is the element type: T, or int64_t where T is only the type of
 * the formulas. The output may have any layout, and may be a part of a larger array, as on a rank of a
 * group. Threads divide the chunks; the numbers do not depend on them. */
#ifdef __AVX512F__
#define PHILOX_WORD uint64_t
#endif
#include "philox.h"
#include "random_cpu.h"
#include "row_iterator.h"

#ifndef OUT
#define OUT T
#endif

#define CHUNK 1024 /* elements; a chunk does not cross a multiple of 2^32 blocks */

/* Consecutive blocks of one stream. They differ only in the low word of the block index. */
typedef struct block_range {
    const random_params *params;
    uint32_t low, high;
} block_range;

INLINE block_range block_range_at(const random_params *params, int64_t element, int each)
{
    const uint64_t first = (uint64_t)element / (uint64_t)each;
    return (block_range){ params, (uint32_t)first, (uint32_t)(first >> 32) };
}

INLINE philox_block block_at(const block_range *b, uint32_t distribution, int64_t i, uint32_t stream)
{
    return philox_drawn(b->params, distribution, (PHILOX_WORD)b->low + (PHILOX_WORD)i, b->high, stream);
}

/* Writes elements first .. first + n - 1 to d, and up to three more. first is a multiple of `each`. */
typedef void fill_function(OUT *d, int64_t first, int64_t n, const random_params *params);

static void fill_uniform(OUT *d, int64_t first, int64_t n, const random_params *params)
{
    const T low = (T)params->number[0], range = (T)params->number[1], last = (T)params->number[2];
    const block_range b = block_range_at(params, first, PHILOX_EACH);
#pragma omp simd
    for (int64_t i = 0; i < (n + PHILOX_EACH - 1) / PHILOX_EACH; i++) {
        const philox_block c = block_at(&b, DISTRIBUTION_UNIFORM, i, 0);
        for (int j = 0; j < PHILOX_EACH; j++)
            d[PHILOX_EACH * i + j] = (OUT)FN(uniform)(FN(part)(c, j), low, range, last);
    }
}

/* ---- random words of a chunk: separate loops vectorise better ---- */

static void draw_words(BITS *w, uint32_t distribution, uint32_t stream, int64_t first, int64_t n,
                       const random_params *params)
{
    const block_range b = block_range_at(params, first, PHILOX_EACH);
#pragma omp simd
    for (int64_t i = 0; i < (n + PHILOX_EACH - 1) / PHILOX_EACH; i++) {
        const philox_block c = block_at(&b, distribution, i, stream);
        for (int j = 0; j < PHILOX_EACH; j++) w[PHILOX_EACH * i + j] = FN(part)(c, j);
    }
}

/* Standard normal numbers, one for each word. Rounds n up to an even number. */
static void make_normal(T *z, const BITS *w, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < (n + 1) / 2; i++) {
        const TYPED(pair) p = FN(box_muller)(w[2 * i], w[2 * i + 1]);
        z[2 * i] = p.hi;
        z[2 * i + 1] = p.lo;
    }
}

static void fill_normal(OUT *d, int64_t first, int64_t n, const random_params *params)
{
    BITS w[CHUNK];
    T z[CHUNK];
    const T mean = (T)params->number[0], deviation = (T)params->number[1];
    draw_words(w, DISTRIBUTION_NORMAL, 0, first, n, params);
    make_normal(z, w, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) d[i] = (OUT)FMA(z[i], deviation, mean);
}

/* ---- truncated normal ---- */

/* The words and numbers from which an attempt is made. */
typedef struct attempt_buffers {
    BITS w[CHUNK], v[CHUNK];
    T z[CHUNK];
} attempt_buffers;

INLINE void propose_all(int proposal, T *x, const attempt_buffers *t, int64_t n, const random_params *params)
{
    const truncation k = FN(truncation_of)(params);
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        x[i] = FN(propose)(proposal, k, proposal == PROPOSE_NORMAL ? t->z[i] : K(0), t->w[i], t->v[i]);
}

/* The first attempt of all elements of a chunk. */
INLINE void propose_first(int proposal, T *x, attempt_buffers *t, int64_t first, int64_t n,
                          const random_params *params)
{
    draw_words(t->w, DISTRIBUTION_TRUNCATED_NORMAL, 0, first, n, params);
    if (proposal == PROPOSE_NORMAL) make_normal(t->z, t->w, n);
    else draw_words(t->v, DISTRIBUTION_TRUNCATED_NORMAL, 1, first, n, params);
    propose_all(proposal, x, t, n, params);
}

/* The words of elements first + (at[0] ^ flip), first + (at[1] ^ flip), ... */
static void draw_words_at(BITS *w, const int32_t *at, int flip, uint32_t stream, int64_t first, int64_t n,
                          const random_params *params)
{
    const block_range b = block_range_at(params, first, PHILOX_EACH);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const int32_t e = at[i] ^ flip;
        const philox_block c = block_at(&b, DISTRIBUTION_TRUNCATED_NORMAL, e / PHILOX_EACH, stream);
        w[i] = FN(part_at)(c, e % PHILOX_EACH);
    }
}

/* Number at[i] from its own word and the other one of its Box-Muller pair. */
static void make_normal_at(T *z, const int32_t *at, const BITS *own, const BITS *other, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const bool second = at[i] & 1;
        const TYPED(pair) p = FN(box_muller)(SEL(second, other[i], own[i]), SEL(second, own[i], other[i]));
        z[i] = SEL(second, p.lo, p.hi);
    }
}

/* Another attempt for elements first + at[0], first + at[1], ... */
INLINE void propose_again(int proposal, T *x, attempt_buffers *t, const int32_t *at, uint32_t attempt,
                          int64_t first, int64_t n, const random_params *params)
{
    draw_words_at(t->w, at, 0, 2 * attempt, first, n, params);
    draw_words_at(t->v, at, proposal == PROPOSE_NORMAL,
                  proposal == PROPOSE_NORMAL ? 2 * attempt : 2 * attempt + 1, first, n, params);
    if (proposal == PROPOSE_NORMAL) make_normal_at(t->z, at, t->w, t->v, n);
    propose_all(proposal, x, t, n, params);
}

INLINE void fill_truncated(int proposal, T *d, int64_t first, int64_t n, const random_params *params)
{
    attempt_buffers t;
    int32_t at[CHUNK];
    T again[CHUNK];
    int64_t left = 0;
    propose_first(proposal, d, &t, first, n, params);
    for (int64_t i = 0; i < n; i++) {
        at[left] = (int32_t)i;
        left += d[i] != d[i];
    }
    for (uint32_t attempt = 1; left && attempt < RANDOM_ATTEMPTS; attempt++) {
        const int64_t tried = left;
        propose_again(proposal, again, &t, at, attempt, first, tried, params);
        left = 0;
        for (int64_t i = 0; i < tried; i++) {
            d[at[i]] = again[i];
            at[left] = at[i];
            left += again[i] != again[i];
        }
    }
    for (int64_t i = 0; i < left; i++) d[at[i]] = FN(truncation_last)(FN(truncation_of)(params));
}

static void fill_truncated_normal(OUT *d, int64_t first, int64_t n, const random_params *params)
{
    T *x = (T *)d;
    if (params->proposal == PROPOSE_NORMAL) fill_truncated(PROPOSE_NORMAL, x, first, n, params);
    else if (params->proposal == PROPOSE_EXPONENTIAL)
        fill_truncated(PROPOSE_EXPONENTIAL, x, first, n, params);
    else fill_truncated(PROPOSE_UNIFORM, x, first, n, params);
}

/* ---- integers: the first attempt in a vector loop, the rejected elements one by one ---- */

static void fill_bernoulli(OUT *d, int64_t first, int64_t n, const random_params *params)
{
    const uint32_t p = (uint32_t)params->integer[0];
    const block_range b = block_range_at(params, first, 4);
    uint32_t undecided = 0;
#pragma omp simd reduction(| : undecided)
    for (int64_t i = 0; i < (n + 3) / 4; i++) {
        const philox_block c = block_at(&b, DISTRIBUTION_BERNOULLI, i, 0);
        for (int j = 0; j < 4; j++) {
            const uint32_t w = (uint32_t)c.w[j];
            d[4 * i + j] = (OUT)(w < p ? 1 : 0);
            undecided |= w == p;
        }
    }
    for (int64_t i = 0; undecided && i < n; i++) d[i] = (OUT)philox_coin(params, (uint64_t)(first + i));
}

static void fill_integers(OUT *d, int64_t first, int64_t n, const random_params *params)
{
    const block_range b = block_range_at(params, first, 2);
    uint64_t rejected = 0;
#pragma omp simd reduction(| : rejected)
    for (int64_t i = 0; i < (n + 1) / 2; i++) {
        const philox_block c = block_at(&b, DISTRIBUTION_INTEGERS, i, 0);
        for (int j = 0; j < 2; j++) {
            uint64_t lower;
            d[2 * i + j] = (OUT)philox_scaled(params, philox_half(c, j), &lower);
            rejected |= lower < params->integer[2];
        }
    }
    for (int64_t i = 0; rejected && i < n; i++) d[i] = (OUT)philox_integer(params, (uint64_t)(first + i));
}

/* ---- Sobol sequences: points follow each other by one direction vector ---- */

/* Coordinates from `dim` on of a point. */
static void sobol_point(uint64_t *x, uint64_t point, int64_t dim, int64_t count, const random_params *params)
{
    const int64_t dims = (int64_t)params->integer[1];
    const uint64_t *row = params->table + dim;
    memcpy(x, row, (size_t)count * sizeof *x);
    for (uint64_t gray = point ^ point >> 1; gray; gray >>= 1) {
        row += dims;
        for (int64_t j = 0; (gray & 1) && j < count; j++) x[j] ^= row[j];
    }
}

static void fill_sobol(OUT *d, int64_t first, int64_t n, const random_params *params)
{
    uint64_t x[CHUNK];
    const int64_t dims = (int64_t)params->integer[1];
    uint64_t point = params->integer[0] + (uint64_t)(first / dims);
    int64_t dim = first % dims;
    const bool few = dims <= CHUNK && dim + n > dims; /* the next point is computed from all coordinates */
    if (few) sobol_point(x, point, 0, dims, params);
    while (n > 0) {
        const int64_t count = SMALLER(dims - dim, n), from = few ? dim : 0;
        if (!few) sobol_point(x, point, dim, count, params);
        for (int64_t j = 0; j < count; j++) d[j] = (OUT)FN(sobol_number)(x[from + j]);
        d += count;
        n -= count;
        dim = 0;
        point++;
        if (few && n > 0) {
            const uint64_t *v = params->table + (1 + __builtin_ctzll(point)) * dims;
            for (int64_t j = 0; j < dims; j++) x[j] ^= v[j];
        }
    }
}

/* ---- all chunks ---- */

static const struct distribution_row {
    fill_function *fill;
    double seconds; /* estimated time of one element */
    int each;       /* elements that are computed together */
} distributions[DISTRIBUTIONS] = {
    [DISTRIBUTION_UNIFORM] = { fill_uniform, 2e-10 * sizeof(T), 4 },
    [DISTRIBUTION_NORMAL] = { fill_normal, 6e-10 * sizeof(T), 4 },
    [DISTRIBUTION_TRUNCATED_NORMAL] = { fill_truncated_normal, 3e-9 * sizeof(T), 4 },
    [DISTRIBUTION_BERNOULLI] = { fill_bernoulli, 8e-10, 4 },
    [DISTRIBUTION_INTEGERS] = { fill_integers, 2e-9, 4 },
    [DISTRIBUTION_SOBOL] = { fill_sobol, 1e-9, 1 },
};

#define CALL_SECONDS 5e-8 /* estimated time of a call of a fill function, without elements */

/* Stores elements first .. first + n - 1, in row-major order, in the output's layout. */
static void store_elements(OUT *to, const layout *at, const OUT *from, int64_t first, int64_t n)
{
    const int64_t length = row_length(at), stride = row_stride(at);
    int64_t column = first % length;
    row_iterator w = row_iterator_at(at, first / length);
    while (n > 0) {
        const int64_t count = SMALLER(length - column, n);
        OUT *row = to + w.offset + column * stride;
        for (int64_t i = 0; i < count; i++) row[i * stride] = from[i];
        from += count;
        n -= count;
        column = 0;
        row_iterator_next(&w, at);
    }
}

/* A span is a run of elements. If the gaps between runs are short, all runs and gaps are one span. A span is
 * divided at multiples of CHUNK, into at most `pieces` pieces. */
typedef struct random_work {
    const random_params *params;
    const struct distribution_row *distribution;
    const layout *at;
    OUT *out;
    bool dense;
    int64_t first, run, apart; /* of the runs */
    int64_t spans, length, pieces;
} random_work;

static random_work work_of(const step *s, const frame *f, const random_params *params)
{
    const layout *at = &s->out[0].at;
    const int64_t n = layout_count(at), run = params->run ? params->run : n, runs = n / run;
    random_work d = { params,
                      &distributions[params->distribution],
                      at,
                      address(f, &s->out[0]),
                      at->rank == 1 && row_stride(at) == 1,
                      params->first,
                      run,
                      params->run ? params->apart : n,
                      runs,
                      run,
                      0 };
    if ((double)(d.apart - run) * d.distribution->seconds < CALL_SECONDS) {
        d.spans = 1;
        d.length = (runs - 1) * d.apart + run;
    }
    const int64_t before = d.spans > 1 ? CHUNK - 1 : d.first % CHUNK;
    d.pieces = (before + d.length + CHUNK - 1) / CHUNK;
    return d;
}

/* Stores elements from .. upto - 1 of the array, without those in gaps. */
static void store_runs(const random_work *d, const OUT *x, int64_t from, int64_t upto)
{
    for (int64_t i = from, n; i < upto; i += n) {
        const int64_t r = (i - d->first) / d->apart, within = (i - d->first) % d->apart;
        n = SMALLER(d->apart - within, upto - i);
        if (within >= d->run) continue;
        n = SMALLER(d->run - within, n);
        const int64_t own = r * d->run + within;
        if (d->dense) memcpy(d->out + own, x + (i - from), (size_t)n * sizeof *x);
        else store_elements(d->out, d->at, x + (i - from), own, n);
    }
}

static void draw_piece(const random_work *d, int64_t from, int64_t upto)
{
    OUT chunk[CHUNK] __attribute__((aligned(64)));
    const int64_t start = from - from % d->distribution->each, own = from - d->first;
    if (d->dense && upto - from == CHUNK && d->length == d->run) {
        const int64_t r = own / d->apart;
        d->distribution->fill(d->out + own - r * (d->apart - d->run), from, CHUNK, d->params);
        return;
    }
    d->distribution->fill(chunk, start, upto - start, d->params);
    store_runs(d, chunk + (from - start), from, upto);
}

static void random_part(const void *work, int t, int threads)
{
    const random_work *d = work;
    const int64_t all = d->spans * d->pieces;
    for (int64_t i = part_of(all, t, threads); i < part_of(all, t + 1, threads); i++) {
        const int64_t first = d->first + i / d->pieces * d->apart, last = first + d->length;
        const int64_t chunk = (first / CHUNK + i % d->pieces) * CHUNK;
        const int64_t from = chunk < first ? first : chunk, upto = SMALLER(chunk + CHUNK, last);
        if (from < upto) draw_piece(d, from, upto);
    }
}

duet_status NAME(run_random)(const step *s, const frame *f)
{
    const random_params params = random_params_of(s, f);
    const int64_t n = layout_count(&s->out[0].at);
    if (n == 0) return DUET_OK;
    if (params.distribution == DISTRIBUTION_PERMUTATION) return run_permutation(s, f, &params);
    const random_work d = work_of(s, f, &params);
    by_threads(threads_for((double)n * d.distribution->seconds), random_part, &d);
    return DUET_OK;
}
