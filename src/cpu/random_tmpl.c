/* random_tmpl.c - random numbers, a chunk at a time: blocks of Philox in one loop, then one by one what the law rejected. OUT is the
 * element type: T, or int64_t where T is that of the formulas alone. */
#ifdef __AVX512F__
#define PHILOX_WORD uint64_t
#endif
#include "philox.h"
#include "random_cpu.h"
#include "row_iterator.h"

#ifndef OUT
#define OUT T
#endif

#define CHUNK 1024 /* elements; no chunk's blocks cross a multiple of 2^32 */

/* The first of some blocks of a law's streams, which differ in the lower word of their index alone. */
typedef struct blocks {
    const random_params *l;
    uint32_t low, high;
} blocks;

INLINE blocks blocks_of(const random_params *l, int64_t element, int each)
{
    const uint64_t first = (uint64_t)element / (uint64_t)each;
    return (blocks){ l, (uint32_t)first, (uint32_t)(first >> 32) };
}

INLINE philox_block block_at(const blocks *b, uint32_t law, int64_t i, uint32_t stream)
{
    return philox_drawn(b->l, law, (PHILOX_WORD)b->low + (PHILOX_WORD)i, b->high, stream);
}

/* Fills d with elements first .. first + n - 1, and up to three more. */
typedef void fill_function(OUT *d, int64_t first, int64_t n, const random_params *l);

static void fill_uniform(OUT *d, int64_t first, int64_t n, const random_params *l)
{
    const T low = (T)l->number[0], range = (T)l->number[1], last = (T)l->number[2];
    const blocks b = blocks_of(l, first, PHILOX_EACH);
#pragma omp simd
    for (int64_t i = 0; i < (n + PHILOX_EACH - 1) / PHILOX_EACH; i++) {
        const philox_block c = block_at(&b, LAW_UNIFORM, i, 0);
        for (int j = 0; j < PHILOX_EACH; j++)
            d[PHILOX_EACH * i + j] = (OUT)FN(uniform)(FN(part)(c, j), low, range, last);
    }
}

/* ---- words of a chunk: what they come to is easier to vectorise in loops of its own ---- */

static void draw_words(BITS *w, uint32_t law, uint32_t stream, int64_t first, int64_t n,
                       const random_params *l)
{
    const blocks b = blocks_of(l, first, PHILOX_EACH);
#pragma omp simd
    for (int64_t i = 0; i < (n + PHILOX_EACH - 1) / PHILOX_EACH; i++) {
        const philox_block c = block_at(&b, law, i, stream);
        for (int j = 0; j < PHILOX_EACH; j++) w[PHILOX_EACH * i + j] = FN(part)(c, j);
    }
}

/* Numbers of deviation 1, from a word each; an even number of them. */
static void make_normal(T *z, const BITS *w, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < (n + 1) / 2; i++) {
        const TYPED(pair) p = FN(box_muller)(w[2 * i], w[2 * i + 1]);
        z[2 * i] = p.hi, z[2 * i + 1] = p.lo;
    }
}

static void fill_normal(OUT *d, int64_t first, int64_t n, const random_params *l)
{
    BITS w[CHUNK];
    T z[CHUNK];
    const T mean = (T)l->number[0], deviation = (T)l->number[1];
    draw_words(w, LAW_NORMAL, 0, first, n, l);
    make_normal(z, w, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) d[i] = (OUT)FMA(z[i], deviation, mean);
}

/* ---- truncated normal ---- */

/* What an attempt is made from. */
typedef struct tries {
    BITS w[CHUNK], v[CHUNK];
    T z[CHUNK];
} tries;

INLINE void propose_all(int how, T *x, const tries *t, int64_t n, const random_params *l)
{
    const truncation k = FN(truncation_of)(l);
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        x[i] = FN(propose)(how, k, how == PROPOSE_NORMAL ? t->z[i] : K(0), t->w[i], t->v[i]);
}

/* The first attempt, for all of a chunk. */
INLINE void propose_first(int how, T *x, tries *t, int64_t first, int64_t n, const random_params *l)
{
    draw_words(t->w, LAW_TRUNCATED_NORMAL, 0, first, n, l);
    if (how == PROPOSE_NORMAL) make_normal(t->z, t->w, n);
    else draw_words(t->v, LAW_TRUNCATED_NORMAL, 1, first, n, l);
    propose_all(how, x, t, n, l);
}

/* The words of elements first + (at[0] ^ flip), first + (at[1] ^ flip), ... */
static void draw_words_at(BITS *w, const int32_t *at, int flip, uint32_t stream, int64_t first, int64_t n,
                          const random_params *l)
{
    const blocks b = blocks_of(l, first, PHILOX_EACH);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const int32_t e = at[i] ^ flip;
        const philox_block c = block_at(&b, LAW_TRUNCATED_NORMAL, e / PHILOX_EACH, stream);
        w[i] = FN(part_at)(c, e % PHILOX_EACH);
    }
}

/* Number i from its own word and that of the other in its pair. */
static void make_normal_at(T *z, const int32_t *at, const BITS *own, const BITS *other, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const bool second = at[i] & 1;
        const TYPED(pair) p = FN(box_muller)(SEL(second, other[i], own[i]), SEL(second, own[i], other[i]));
        z[i] = SEL(second, p.lo, p.hi);
    }
}

/* Another attempt for the elements first + at[0], first + at[1], ... */
INLINE void propose_again(int how, T *x, tries *t, const int32_t *at, uint32_t attempt, int64_t first,
                          int64_t n, const random_params *l)
{
    draw_words_at(t->w, at, 0, 2 * attempt, first, n, l);
    draw_words_at(t->v, at, how == PROPOSE_NORMAL, how == PROPOSE_NORMAL ? 2 * attempt : 2 * attempt + 1,
                  first, n, l);
    if (how == PROPOSE_NORMAL) make_normal_at(t->z, at, t->w, t->v, n);
    propose_all(how, x, t, n, l);
}

INLINE void fill_truncated(int how, T *d, int64_t first, int64_t n, const random_params *l)
{
    tries t;
    int32_t at[CHUNK];
    T again[CHUNK];
    int64_t left = 0;
    propose_first(how, d, &t, first, n, l);
    for (int64_t i = 0; i < n; i++) at[left] = (int32_t)i, left += d[i] != d[i];
    for (uint32_t attempt = 1; left && attempt < RANDOM_ATTEMPTS; attempt++) {
        const int64_t tried = left;
        propose_again(how, again, &t, at, attempt, first, tried, l);
        left = 0;
        for (int64_t i = 0; i < tried; i++)
            d[at[i]] = again[i], at[left] = at[i], left += again[i] != again[i];
    }
    for (int64_t i = 0; i < left; i++) d[at[i]] = FN(truncation_last)(FN(truncation_of)(l));
}

static void fill_truncated_normal(OUT *d, int64_t first, int64_t n, const random_params *l)
{
    T *x = (T *)d;
    if (l->proposal == PROPOSE_NORMAL) fill_truncated(PROPOSE_NORMAL, x, first, n, l);
    else if (l->proposal == PROPOSE_EXPONENTIAL) fill_truncated(PROPOSE_EXPONENTIAL, x, first, n, l);
    else fill_truncated(PROPOSE_UNIFORM, x, first, n, l);
}

/* ---- whole numbers: by the first attempt, and where that does not do, once more element by element ---- */

static void fill_bernoulli(OUT *d, int64_t first, int64_t n, const random_params *l)
{
    const uint32_t p = (uint32_t)l->whole[0];
    const blocks b = blocks_of(l, first, 4);
    uint32_t undecided = 0;
#pragma omp simd reduction(| : undecided)
    for (int64_t i = 0; i < (n + 3) / 4; i++) {
        const philox_block c = block_at(&b, LAW_BERNOULLI, i, 0);
        for (int j = 0; j < 4; j++) {
            const uint32_t w = (uint32_t)c.w[j];
            d[4 * i + j] = (OUT)(w < p ? 1 : 0);
            undecided |= w == p;
        }
    }
    for (int64_t i = 0; undecided && i < n; i++) d[i] = (OUT)philox_coin(l, (uint64_t)(first + i));
}

static void fill_integers(OUT *d, int64_t first, int64_t n, const random_params *l)
{
    const blocks b = blocks_of(l, first, 2);
    uint64_t rejected = 0;
#pragma omp simd reduction(| : rejected)
    for (int64_t i = 0; i < (n + 1) / 2; i++) {
        const philox_block c = block_at(&b, LAW_INTEGERS, i, 0);
        for (int j = 0; j < 2; j++) {
            uint64_t lower;
            d[2 * i + j] = (OUT)philox_scaled(l, philox_half(c, j), &lower);
            rejected |= lower < l->whole[2];
        }
    }
    for (int64_t i = 0; rejected && i < n; i++) d[i] = (OUT)philox_integer(l, (uint64_t)(first + i));
}

/* ---- all of a matrix ---- */

static const struct row {
    fill_function *fill;
    double seconds; /* an element, about */
} rows[LAWS] = {
    [LAW_UNIFORM] = { fill_uniform, 2e-10 * sizeof(T) },
    [LAW_NORMAL] = { fill_normal, 6e-10 * sizeof(T) },
    [LAW_TRUNCATED_NORMAL] = { fill_truncated_normal, 3e-9 * sizeof(T) },
    [LAW_BERNOULLI] = { fill_bernoulli, 8e-10 },
    [LAW_INTEGERS] = { fill_integers, 2e-9 },
};

/* Elements `first` to first + n - 1 in row-major order, to where they belong. */
static void scatter(OUT *to, const layout *at, const OUT *from, int64_t first, int64_t n)
{
    const int64_t length = row_length(at), stride = row_stride(at);
    int64_t column = first % length;
    row_iterator w = row_iterator_at(at, first / length);
    while (n > 0) {
        const int64_t some = SMALLER(length - column, n);
        OUT *row = to + w.offset + column * stride;
        for (int64_t i = 0; i < some; i++) row[i * stride] = from[i];
        from += some, n -= some, column = 0;
        row_iterator_next(&w, at);
    }
}

typedef struct drawing {
    const random_params *l;
    const struct row *row;
    const layout *at;
    OUT *out;
    int64_t n;
} drawing;

static void draw_some(const void *work, int t, int threads)
{
    const drawing *d = work;
    const bool dense = d->at->rank == 1 && row_stride(d->at) == 1;
    const int64_t chunks = (d->n + CHUNK - 1) / CHUNK;
    for (int64_t i = part_of(chunks, t, threads); i < part_of(chunks, t + 1, threads); i++) {
        OUT chunk[CHUNK] __attribute__((aligned(64)));
        const int64_t first = i * CHUNK, some = SMALLER(CHUNK, d->n - first);
        const bool direct = dense && some == CHUNK;
        d->row->fill(direct ? d->out + first : chunk, first, some, d->l);
        if (!direct) scatter(d->out, d->at, chunk, first, some);
    }
}

duet_status NAME(run_random)(const step *s, const frame *f)
{
    const random_params l = random_params_of(s, f);
    const layout *at = &s->out[0].at;
    const drawing d = { &l, &rows[l.law], at, address(f, &s->out[0]), layout_count(at) };
    if (d.n == 0) return DUET_OK;
    if (l.law == LAW_PERMUTATION) return run_permutation(s, f, &l);
    by_threads(threads_for((double)d.n * d.row->seconds), draw_some, &d);
    return DUET_OK;
}
