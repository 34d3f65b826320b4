/* test_stream.c - statements that exceed device memory, on the fake CUDA: two sets of the same
 * matrices, one with enough memory and one with memory for some of the rows. All bits must be
 * equal; products use small integers. Then random formulas without products, on the CPU and in
 * parts.
 *
 *     test_stream [rounds] [seed] */
#include "eviction.h"
#include "random_formula.h"
#include "stream.h"
#include "stream_policy.h"
#include "streams.h"

static matrix_set_sizes some_sizes(void)
{
    return (matrix_set_sizes){ 500 + below(900), 1 + below(9), 1 + below(9), 1 + below(9), 1 + below(4) };
}

static int done[KINDS], refused[KINDS];

/* Leaves b about a third of the memory that the statement needs. */
static void one_round(int round)
{
    const matrix_set_sizes s = some_sizes();
    matrix_set a = new_matrix_set(&s), b = new_matrix_set(&s);
    fill_all(&a, &b);
    for (int i = 0; i < 12; i++) {
        const int k = below(KINDS);
        const bool staged =
            below(2); /* otherwise copies access buffers when they run, as if these were pinned */
        stream_staged_from(staged ? 0 : SIZE_MAX);
        fake_pinned(!staged);
        const uint64_t before = streams();
        const duet_status want = on(below(2) ? DUET_GPU : DUET_CPU, kinds[k].run, &a);
        leave((size_t)(9000 + below(6 * (int)(s.n * s.c))));
        const duet_status got = on(DUET_GPU, kinds[k].run, &b);
        leave_all();
        CHECK(want == DUET_OK && (got == DUET_OK || got == DUET_NO_MEMORY), "round %d, %s: %s", round,
              kinds[k].name, duet_error());
        if (got != DUET_OK)
            CHECK(on(DUET_GPU, kinds[k].run, &b) == DUET_OK,
                  "round %d, %s: a failed statement changed an operand: %s", round, kinds[k].name,
                  duet_error());
        done[k] += streams() > before;
        refused[k] += got != DUET_OK;
        if (!compare(&a, &b, kinds[k].name)) break;
        for (int m = X; m <= T; m++) fill(&a, &b, m); /* restores the operands of products */
    }
    free_matrix_set(&a);
    free_matrix_set(&b);
}

static void test_rounds(int count)
{
    for (int i = 0; i < count; i++) one_round(i);
    for (int k = 0; k < KINDS; k++)
        CHECK(done[k] > refused[k], "%s was streamed %d times and failed %d times", kinds[k].name, done[k],
              refused[k]);
    tap_point("streamed statements give the same bits as unstreamed ones");
}

/* ---- and little memory ---- */

static duet_status columns(const matrix_set *w) { return duet_set(M(ROW), duet_mean_axis(M(X), 0)); }
static duet_status whole_norm(const matrix_set *w) { return duet_set(M(Z), duet_div(M(X), duet_norm(M(X)))); }
static duet_status turned(const matrix_set *w) { return duet_set(w->columns, duet_mul(2, w->columns)); }
static duet_status from_turned(const matrix_set *w) { return duet_set(M(Z), duet_transpose(w->columns)); }
static const kind others[] = { CASE(columns), CASE(whole_norm), CASE(turned), CASE(from_turned) };

/* ---- statements that cannot be cut ---- */

static void test_others(void)
{
    for (int k = 0; k < (int)(sizeof others / sizeof *others); k++) {
        const matrix_set_sizes s = { 200, 8, 8, 8, 2 };
        matrix_set a = new_matrix_set(&s), b = new_matrix_set(&s);
        fill_all(&a, &b);
        const uint64_t before = streams();
        leave(3000);
        const duet_status got = on(DUET_GPU, others[k].run, &b);
        leave_all();
        CHECK(got == DUET_NO_MEMORY && streams() == before, "%s: status %d", others[k].name, (int)got);
        compare(&a, &b, others[k].name);
        CHECK(on(DUET_GPU, others[k].run, &a) == DUET_OK && on(DUET_GPU, others[k].run, &b) == DUET_OK, "%s",
              duet_error());
        compare(&a, &b, others[k].name);
        leave(3000);
        CHECK(on(DUET_AUTO, others[k].run, &b) == DUET_OK, "%s: %s", others[k].name, duet_error());
        leave_all();
        CHECK(on(DUET_AUTO, others[k].run, &a) == DUET_OK, "%s: %s", others[k].name, duet_error());
        compare(&a, &b, others[k].name);
        free_matrix_set(&a);
        free_matrix_set(&b);
    }
    tap_point("statements that cannot be partitioned fail or run on the CPU, and change nothing");
}

/* ---- random formulas ----------------------------------------------------------------------------------- */

static uint64_t cut_trees;

/* The value in a new matrix, or NULL: no memory. */
static void *value_of(random_formula *g, duet_place place, int64_t *count)
{
    void *got = NULL;
    DUET_ON(place)
    {
        const duet_expr e = build_formula(g);
        const sizes s = sizes_of_expr(e);
        if (duet_expr_status(e) == DUET_OK) {
            duet_matrix *m =
                duet_new_shape(duet_expr_type(e) == DUET_I64 ? DUET_I64 : g->type, s.rank, s.size);
            const duet_status st = duet_set(m, e);
            CHECK(st == DUET_OK || (st == DUET_NO_MEMORY && place == DUET_GPU), "seed %llu: %s",
                  (unsigned long long)g->seed, duet_error());
            if (st == DUET_OK) {
                got = elements(m);
                *count = duet_count(m);
                g->result = duet_type(m);
            }
            duet_free(&m);
        }
        clear(g);
    }
    return got;
}

static void one_tree(uint64_t seed)
{
    random_formula g = { .seed = seed, .bits = true, .large = true };
    int64_t count = 0;
    make_leaves(&g);
    void *want = value_of(&g, DUET_CPU, &count);
    const uint64_t before = streams();
    leave(20000);
    void *got = value_of(&g, DUET_GPU, &count);
    leave_all();
    cut_trees += streams() - before;
    CHECK(!got || (want && same_bits(g.result, want, got, count)),
          "seed %llu: the bits of the streamed statement differ", (unsigned long long)seed);
    free(want);
    free(got);
    free_leaves(&g);
}

/* Runs `count` formulas, and continues until one in twenty has been streamed. */
static void test_trees(int count, uint64_t seed)
{
    int i = 0;
    for (; i < count || (cut_trees <= (uint64_t)count / 20 && i < 20 * count); i++)
        one_tree(seed * 100000 + (uint64_t)i);
    CHECK(cut_trees > (uint64_t)count / 20, "%d formulas were streamed", (int)cut_trees);
    printf("# of %d random formulas %d were streamed\n", i, (int)cut_trees);
    tap_point("random formulas give the same bits when streamed");
}

/* ---- texts ---- */

static void test_words(void)
{
    matrix_set a, b;
    new_pair(&a, &b);
    leave(9000);
    DUET_ON(DUET_GPU)
    {
        const duet_expr e = duet_add(duet_mul(0.5, a.m[X]), a.m[Y]);
        const char *text = plan_of(a.m[Y], e);
        CHECK(strstr(text, "streamed in ") && strstr(text, " chunks of ") && strstr(text, " rows"), "%s",
              text);
        CHECK(duet_drop(e) == DUET_OK, "%s", duet_error());
    }
    leave_all();
    free_matrix_set(&a);
    free_matrix_set(&b);
    tap_point("duet_explain shows streamed statements");
}

int main(int argc, char **argv)
{
    const int count = trial_count(argc, argv, 20, 100);
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    gen = rng_new(seed);
    stream_from(0);
    evict_matrices(false); /* otherwise nothing is streamed that fits alone */
    test_rounds(count);
    stream_staged_from(0);
    fake_pinned(false);
    test_others();
    test_trees(5 * count, seed);
    test_words();
    return tap_end();
}
