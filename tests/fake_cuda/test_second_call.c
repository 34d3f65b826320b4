/* test_second_call.c - repeats every call of every_call.h. The second call makes no plan, allocates
 * no memory of the system, makes no handle, descriptor or vendor plan, and transfers nothing. The
 * first call transfers what duet_explain has announced. On the CPU and on the fake CUDA. */
#include "every_guess.h"
#include "fake_cuda.h"
#include "tap.h"

static const duet_place places[] = { DUET_CPU, DUET_GPU };
static const char *const names[] = { "on the CPU", "on the GPU" };

static const int64_t pattern[] = { 0, 1, 2, 3, 4, 0, 1, 2, 3 }; /* of a diagonal matrix */

/* Contents that suit all calls: symmetric, positive definite, well conditioned; indices below 4. */
static void fill(duet_matrix *m)
{
    const int64_t n = duet_count(m), columns = duet_rank(m) ? duet_size(m, duet_rank(m) - 1) : 1;
    void *p = duet_overwrite(m);
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = i / columns, column = i % columns;
        const double v = row == column ? 4 : 0.1 * (double)((row + column) % 5);
        if (duet_type(m) == DUET_F32) ((float *)p)[i] = (float)v;
        else if (duet_type(m) == DUET_I64) ((int64_t *)p)[i] = duet_count(m) == 9 ? pattern[i] : i % 4;
        else memset((char *)p + 8 * i, 0, 8); /* c64 */
    }
}

/* "  copy A to the GPU: 64 bytes" */
static uint64_t bytes_moved(const char *plan)
{
    uint64_t all = 0;
    for (const char *p = plan; (p = strstr(p, "  copy ")); p++)
        all += strtoull(strstr(p, ": ") + 2, NULL, 10);
    return all;
}

static duet_status run(const call *c, duet_matrix *to, duet_matrix *const *m)
{
    if (c->state) return c->state(m + c->operands, m);
    return (duet_set)(to, call_formula(c, m));
}

static uint64_t announced(const call *c, duet_matrix *to, duet_matrix *const *m)
{
    char *plan;
    size_t bytes;
    FILE *out = open_memstream(&plan, &bytes);
    DUET_EXPLAIN(out) CHECK(run(c, to, m) == DUET_OK, "%s: %s", c->name, duet_error());
    fclose(out);
    const uint64_t all = bytes_moved(plan);
    free(plan);
    return all;
}

static uint64_t moved(const duet_counts *a) { return a->upload_bytes + a->download_bytes; }

static void same(const call *c, const char *what, uint64_t before, uint64_t after)
{
    CHECK(before == after, "%s: %s: %llu, then %llu", c->name, what, (unsigned long long)before,
          (unsigned long long)after);
}

/* Each call makes direction vectors for its points, which a GPU gets by a copy. */
static bool has_table(const call *c) { return !strcmp(c->name, "random_sobol"); }

/* says: the bytes that duet_explain announced for the first call. */
static void compare(const call *c, uint64_t says, const duet_counts *before, const duet_counts *after)
{
    same(c, "plans", before->plan_misses, after->plan_misses);
    same(c, "blocks from the system", before->pool_misses, after->pool_misses);
    same(c, "plans of transforms", before->transforms, after->transforms);
    same(c, "bytes moved", moved(before) + (has_table(c) ? says : 0), moved(after));
}

/* For a statement of several passes, explain describes each pass as if it were alone. */
static void check_moved(const call *c, uint64_t says, uint64_t moves)
{
    CHECK(c->state ? moves <= says : moves == says, "%s: duet_explain says %llu bytes, but %llu were copied",
          c->name, (unsigned long long)says, (unsigned long long)moves);
}

/* The operands are on the host. */
static void again(const call *c, duet_place p, duet_matrix *to, duet_matrix *const *m)
{
    const uint64_t says = announced(c, to, m);
    CHECK((says > 0) == (p == DUET_GPU && (c->operands || has_table(c))),
          "%s: duet_explain says %llu bytes to copy", c->name, (unsigned long long)says);
    const duet_counts start = duet_stats();
    CHECK(run(c, to, m) == DUET_OK, "%s: %s", c->name, duet_error());
    const duet_counts first = duet_stats();
    check_moved(c, says, moved(&first) - moved(&start));
    CHECK(run(c, to, m) == DUET_OK, "%s: %s", c->name, duet_error());
    const duet_counts before = duet_stats();
    const fake_counts made = fake_count();
    CHECK(run(c, to, m) == DUET_OK, "%s: %s", c->name, duet_error());
    const duet_counts after = duet_stats();
    compare(c, says, &before, &after);
    same(c, "handles and descriptors", (uint64_t)made.handles, (uint64_t)fake_count().handles);
}

/* Marks operands as indices if the call accepts them only so. */
static bool guessed(const call *c, guess *g, duet_dtype *t)
{
    for (*g = (guess){ 0 }; g->indices < 1u << (c->operands + c->results); g->indices += 2)
        if (guess_sizes(g, c, t)) return true;
    return CHECK(false, "%s was never run", c->name);
}

static void test_call(const call *c, duet_place p)
{
    guess g;
    duet_dtype t;
    duet_matrix *m[MATRICES] = { 0 }, *to = NULL;
    if (!guessed(c, &g, &t) || !CHECK(guess_take(m, c, &g, t), "%s", duet_error())) return;
    for (int k = 0; k < c->operands; k++) fill(m[k]);
    if (c->make) to = call_destination(c, m);
    DUET_ON(p) again(c, p, to, m);
    duet_free(&to);
    guess_give(m);
}

static void test_all(const call *rows, int count, const char *what)
{
    for (int p = 0; p < LENGTH(places); p++) {
        char text[100];
        for (int i = 0; i < count; i++) {
            const bool on_cpu = !strncmp(rows[i].name, "csr_solve", 9); /* GPUs have no such steps */
            if (!on_cpu || places[p] == DUET_CPU) test_call(&rows[i], places[p]);
        }
        snprintf(text, sizeof text, "%s, %s", what, names[p]);
        tap_point(text);
    }
}

int main(void)
{
    CHECK(duet_auto_replay(0) == DUET_OK, "%s", duet_error()); /* graphs are made after some turns */
    test_all(maps, LENGTH(maps), "element by element");
    test_all(composed, LENGTH(composed), "composed");
    test_all(reductions, LENGTH(reductions), "reductions");
    test_all(defs, LENGTH(defs), "shapes, products, images, transforms, order, linear algebra");
    test_all(networks, LENGTH(networks), "networks");
    test_all(factors, LENGTH(factors), "factorisations");
    test_all(statements, LENGTH(statements), "statements");
    return tap_end();
}
