/* group_blocks.h - reductions whose ranks exchange the results of all their blocks (src/group/block_sums.c):
 * compares them with those of ordinary matrices, counts their steps, and checks when they are used. */
#ifndef GROUP_BLOCKS_H
#define GROUP_BLOCKS_H

#include "block_policy.h"
#include "group_along.h"
#include "ranks.h"

enum { BLOCK = 4096, JOINED = 16 }; /* elements of a block; results that one step joins */

ALONG(sum_of_all, duet_sum(x))
ALONG(sum_of_formula, duet_sum_axis(duet_mul(duet_exp(duet_mul(x, 1e-3)), x), axis))
ALONG(dot_of_formulas, duet_dot_axis(duet_add(x, 1), duet_mul(x, 0.7), axis))
ALONG(of_sums, duet_div(duet_sum_keep(duet_mul(x, 1.3), axis), duet_add(duet_mean_keep(x, axis), 2)))

/* Along the last axis, too. */
static duet_expr along_sum_of_last(duet_expr x, int axis)
{
    const int last = duet_expr_rank(x) - 1;
    return axis == last ? duet_sum_axis(x, axis) : duet_sum_axes(x, axis, last);
}

/* A number of blocks near one that fills all steps, or a few blocks. */
static int64_t draw_blocks(rng *r, int ranks)
{
    const int64_t around[] = { JOINED, 2 * JOINED, 3 * JOINED, 5 * JOINED }, how = rng_below(r, 3);
    if (how == 0) return ranks + rng_below(r, 12);
    if (how == 1 && rng_chance(r, 12)) return JOINED * JOINED + rng_below(r, 3) - 1;
    return around[rng_below(r, 4)] + rng_below(r, 3) - 1;
}

static int64_t draw_length(rng *r, int ranks)
{
    const int64_t blocks = draw_blocks(r, ranks), how = rng_below(r, 3);
    if (how == 0) return blocks * BLOCK;
    return blocks * BLOCK + (how == 1 ? rng_below(r, 5) - 2 : rng_below(r, BLOCK));
}

static along blocks_case(rng *r, duet_group *g, const char *name, uint64_t seed, duet_dtype type)
{
    along t = { .name = name, .g = g, .seed = seed, .type = type };
    t.rank = 1 + (int)rng_below(r, 3);
    t.axis = (int)rng_below(r, t.rank);
    for (int a = 0; a < t.rank; a++)
        t.size[a] = a == t.axis ? draw_length(r, duet_group_ranks(g)) : 1 + rng_below(r, 3);
    t.values = (enum along_values)rng_below(r, ALONG_VALUES);
    t.part = rng_chance(r, 20); /* some ranks have no elements */
    if (t.part) t.size[t.axis] *= 2;
    return t;
}

typedef struct block_formula {
    const char *name;
    along_formula *f;
    enum along_values values; /* ALONG_VALUES: any */
    bool real;                /* not of complex numbers */
} block_formula;

static const block_formula block_formulas[] = {
    { "sum", along_sum, ALONG_VALUES, false },
    { "sum of all axes", along_sum_of_all, ALONG_VALUES, false },
    { "sum of two axes", along_sum_of_last, ALONG_VALUES, false },
    { "sum of -0", along_sum, MINUS, false },
    { "sum of a formula", along_sum_of_formula, ALONG_VALUES, true },
    { "prod", along_prod, NEAR, true },
    { "difference to prod", along_less_prod, NEAR, true },
    { "dot", along_dot, ALONG_VALUES, false },
    { "dot of formulas", along_dot_of_formulas, ALONG_VALUES, false },
    { "mean", along_mean, ALONG_VALUES, false },
    { "mean of huge numbers", along_mean, BIG, false },
    { "norm", along_norm, ALONG_VALUES, false },
    { "norm of huge numbers", along_norm, BIG, false },
    { "norm of tiny numbers", along_norm, TINY, false },
    { "sums in a formula", along_of_sums, ALONG_VALUES, false },
};
enum { BLOCK_FORMULAS = sizeof block_formulas / sizeof *block_formulas };

static void run_blocks(duet_group *g, uint64_t seed)
{
    static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_F16, DUET_BF16, DUET_C64, DUET_C128 };
    rng r = rng_new(seed);
    const block_formula *f = &block_formulas[rng_below(&r, BLOCK_FORMULAS)];
    const duet_dtype type = rng_chance(&r, 40) ? DUET_F32 : types[rng_below(&r, 6)];
    const bool is_complex = type == DUET_C64 || type == DUET_C128;
    along t = blocks_case(&r, g, f->name, seed, is_complex && f->real ? DUET_F32 : type);
    if (f->values != ALONG_VALUES) t.values = f->values;
    t.gathers = f->f == along_sum_of_all; /* if the split axis is not the first one */
    *block_sums() = BLOCKS_ALWAYS;
    along_check(&t, f->f, (int)rng_below(&r, 4) - 2);
    *block_sums() = BLOCKS_IF_FASTER;
}

/* Sums of integers do not depend on the order, and results of many axes cannot get another axis. */
static void other_reductions(duet_group *g, uint64_t seed)
{
    const along t = { "sum of integers", g, seed, DUET_I32, 1, 0, { 70000 }, ANY, false, false };
    const int64_t size[] = { 4 * 70000, 1, 1, 2, 1, 1, 1, 1 };
    duet_matrix *x = duet_new_split_shape(g, DUET_F32, 0, 8, size), *y = duet_new_shape(DUET_F32, 8, size);
    rng r = rng_new(seed), same = r;
    random_fill(&r, x, -2, 2);
    random_fill(&same, y, -2, 2);
    *block_sums() = BLOCKS_ALWAYS;
    along_check(&t, along_sum, -1);
    duet_matrix *got = duet_eval(duet_sum_axis(x, 0)), *wanted = duet_eval(duet_sum_axis(y, 0));
    CHECK(got && wanted && along_same(got, wanted), "sum of 8 axes: %s", duet_error());
    *block_sums() = BLOCKS_IF_FASTER;
    duet_free(&x, &y, &got, &wanted);
}

/* ---- steps ---- */

/* The steps of the first rank of this process for a sum along the rows. The matrix has no elements yet, so it
 * may be large. */
static int explained_steps(duet_group *g, duet_dtype type, int64_t rows, int64_t columns,
                           enum block_policy how)
{
    static char text[100000];
    FILE *out = fmemopen(text, sizeof text, "w");
    duet_matrix *x = duet_new_split(g, type, 0, rows, columns), *y = duet_new_replicated(g, type, columns);
    *block_sums() = how;
    const duet_expr e = duet_sum_axis(x, 0);
    CHECK(duet_explain(out, y, e) == DUET_OK && duet_drop(e) == DUET_OK, "%s", duet_error());
    *block_sums() = BLOCKS_IF_FASTER;
    fclose(out);
    duet_free(&x, &y);
    const char *at = strstr(text, "PU: ");
    int steps = 0;
    CHECK(at && sscanf(at, "PU: %d steps", &steps) == 1, "%s", text);
    return steps;
}

/* Steps: two for the padding, and one that copies the results of the blocks beside it. */
enum { PADDING = 3 };

/* A reduction, a gather and joins. 10^9 elements have 244141 blocks, which five steps join. */
static void check_steps(duet_group *g)
{
    const int64_t size = 1000 * 1000 * 1000;
    const int rest = g->first == g->ranks - 1; /* this rank has the incomplete block */
    const int blocks = explained_steps(g, DUET_F32, size, 1, BLOCKS_ALWAYS),
              complex = explained_steps(g, DUET_C64, size, 1, BLOCKS_ALWAYS),
              subtrees = explained_steps(g, DUET_F32, size, 1, BLOCKS_NEVER);
    CHECK(blocks <= 1 + rest + 1 + PADDING + 5, "%d ranks: %d steps", duet_group_ranks(g), blocks);
    CHECK(complex <= 2 + 2 * rest + 1 + PADDING + 2 * 5, "%d ranks, complex: %d steps", duet_group_ranks(g),
          complex);
    CHECK(duet_group_ranks(g) != 2 || subtrees > blocks + 5, "by subtrees: %d steps", subtrees);
}

/* The steps of all ranks. The last one needs one more for an incomplete block. */
static void check_counts(duet_group *g)
{
    const int ranks = duet_group_ranks(g);
    const int64_t blocks = 64 * ranks + 40; /* so many that the parts of the matrix divide no block */
    const int joins = blocks < JOINED * JOINED ? 2 : 3, most = ranks * (1 + 1 + PADDING + joins) + 1;
    duet_matrix *x = duet_new_split(g, DUET_F32, 0, blocks * BLOCK + 100),
                *y = duet_new_replicated_shape(g, DUET_F32, 0, NULL);
    CHECK(x && y && duet_set(x, 1) == DUET_OK, "%s", duet_error());
    const uint64_t before = duet_stats().steps;
    *block_sums() = BLOCKS_ALWAYS;
    CHECK(duet_set(y, duet_sum(x)) == DUET_OK, "%s", duet_error());
    *block_sums() = BLOCKS_IF_FASTER;
    const int steps = (int)(duet_stats().steps - before);
    CHECK(steps <= most, "%d ranks: %d steps, not %d", ranks, steps, most);
    duet_free(&x, &y);
}

static bool uses_blocks(duet_group *g, int64_t rows, int64_t columns)
{
    return explained_steps(g, DUET_F32, rows, columns, BLOCKS_IF_FASTER) ==
           explained_steps(g, DUET_F32, rows, columns, BLOCKS_ALWAYS);
}

/* GPUs exchange the results of blocks if a rank has many subtrees, and the results are few. */
static void check_use(duet_group *g, bool is_gpu)
{
    const int64_t many = 1000 * 1000 * 1000;
    CHECK(uses_blocks(g, many, 1) == is_gpu, "10^9 elements");
    CHECK(!uses_blocks(g, many / 10, 1000), "10^9 elements in 1000 columns");
    CHECK(!uses_blocks(g, (int64_t)BLOCK << 10, 1), "a subtree on each rank");
}

static void all_blocks(duet_group *g, int64_t count, uint64_t seed, bool is_gpu)
{
    for (int64_t i = 0; i < count; i++) run_blocks(g, seed + (uint64_t)i);
    other_reductions(g, seed);
    check_steps(g);
    check_counts(g);
    if (duet_group_ranks(g) == 2) check_use(g, is_gpu);
}

#endif
