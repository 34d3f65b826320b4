/* random_step.h - the parameters of a random step: the distribution and its numbers. philox.h has
 * the formulas, docs/semantics.md the meaning.
 *
 *   uniform            number: low, high - low, the greatest element below high
 *   normal             number: mean, deviation
 *   truncated normal   number: low, high, origin, scale, and c0, c1, c2 of its proposal
 *   bernoulli          integer: floor(p 2^64), as its upper and lower 32 bits. p = 1 is 2^32 - 1
 *                      and 2^32: above every draw
 *   integers           integer: low, range = high - low, and 2^64 mod range
 *   permutation        none
 *   sobol              integer: the number of the first point, and the dimensions. The step has an
 *                      operand: for each dimension a word that its coordinates start with, and the
 *                      direction vectors (src/statement/sobol.c) */
#ifndef RANDOM_STEP_H
#define RANDOM_STEP_H

#include "backend.h"

/* The numbers are part of the counter of the generator: add new distributions at the end. */
enum random_distribution {
    DISTRIBUTION_UNIFORM,
    DISTRIBUTION_NORMAL,
    DISTRIBUTION_TRUNCATED_NORMAL,
    DISTRIBUTION_BERNOULLI,
    DISTRIBUTION_INTEGERS,
    DISTRIBUTION_PERMUTATION,
    DISTRIBUTION_SOBOL,
    DISTRIBUTIONS
};

/* The proposal distribution of a truncated normal. */
enum proposal { PROPOSE_NORMAL, PROPOSE_EXPONENTIAL, PROPOSE_UNIFORM };

/* The most attempts. If all are rejected, the last one is used, or the value that docs/semantics.md
 * gives for the distribution. */
#define RANDOM_ATTEMPTS 128

#define RANDOM_NUMBERS  7
#define RANDOM_INTEGERS 3
/* The numbers of a step. An integer takes two, of 32 bits each, the lower one first. */
#define RANDOM_COUNT (2 + RANDOM_NUMBERS + 2 * RANDOM_INTEGERS)

typedef struct random_params {
    uint32_t key[2]; /* the seed */
    int32_t distribution, proposal;
    double number[RANDOM_NUMBERS];
    uint64_t integer[RANDOM_INTEGERS];
    int64_t first, run, apart; /* the elements of a larger array that are drawn: core/attributes.h */
    const uint64_t *table;     /* the operand, or NULL */
} random_params;

static inline uint64_t random_integer_of(const step *s, const frame *f, int k)
{
    return (uint64_t)f->num[s->num[k]] + ((uint64_t)f->num[s->num[k + 1]] << 32);
}

static inline random_params random_params_of(const step *s, const frame *f)
{
    random_params l;
    const uint64_t seed = random_integer_of(s, f, 0);
    l.distribution = s->attr.random.distribution;
    l.proposal = s->attr.random.proposal;
    l.first = s->attr.random.first;
    l.run = s->attr.random.run;
    l.apart = s->attr.random.apart;
    l.key[0] = (uint32_t)seed;
    l.key[1] = (uint32_t)(seed >> 32);
    for (int k = 0; k < RANDOM_NUMBERS; k++) l.number[k] = f->num[s->num[2 + k]];
    for (int k = 0; k < RANDOM_INTEGERS; k++)
        l.integer[k] = random_integer_of(s, f, 2 + RANDOM_NUMBERS + 2 * k);
    l.table = s->ins ? (const uint64_t *)f->data[s->in[0].slot] : NULL;
    return l;
}

/* NULL, or why no machine supports such a step. */
static inline const char *random_step_unsupported(const step *s)
{
    const layout *out = &s->out[0].at;
    const bool has_table = s->attr.random.distribution == DISTRIBUTION_SOBOL;
    if (s->outs != 1 || s->ins != has_table || s->nums != RANDOM_COUNT || s->attr.random.distribution < 0 ||
        s->attr.random.distribution >= DISTRIBUTIONS)
        return "the random distribution is unknown";
    if (s->attr.random.run && s->attr.random.distribution == DISTRIBUTION_PERMUTATION)
        return "a part of a permutation is not supported";
    if (out->type > DUET_I64) return "the element type is not supported";
    if (out->type == DUET_I64 && (has_table || s->attr.random.distribution < DISTRIBUTION_BERNOULLI))
        return "this distribution does not support integer elements";
    if (s->attr.random.distribution == DISTRIBUTION_PERMUTATION && out->rank != 1)
        return "a permutation must have one axis";
    return NULL;
}

static inline void random_integer_split(uint64_t integer, double num[2])
{
    num[0] = (double)(uint32_t)integer;
    num[1] = (double)(uint32_t)(integer >> 32);
}

/* Fills in a step of distribution l, except for its output, and the numbers to run it with. */
static inline void random_step_make(const random_params *l, step *s, double num[RANDOM_COUNT])
{
    s->kernel = KERNEL_RANDOM;
    s->outs = 1;
    s->ins = l->distribution == DISTRIBUTION_SOBOL;
    s->nums = RANDOM_COUNT;
    s->attr.random.distribution = l->distribution;
    s->attr.random.proposal = l->proposal;
    s->attr.random.first = l->first;
    s->attr.random.run = l->run;
    s->attr.random.apart = l->apart;
    for (int k = 0; k < RANDOM_COUNT; k++) s->num[k] = (uint16_t)k;
    num[0] = l->key[0];
    num[1] = l->key[1];
    for (int k = 0; k < RANDOM_NUMBERS; k++) num[2 + k] = l->number[k];
    for (int k = 0; k < RANDOM_INTEGERS; k++)
        random_integer_split(l->integer[k], &num[2 + RANDOM_NUMBERS + 2 * k]);
}

#endif
