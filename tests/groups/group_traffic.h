/* group_traffic.h - checks that statements on a group send no more bytes than necessary. */
#ifndef GROUP_TRAFFIC_H
#define GROUP_TRAFFIC_H

#include "tap.h"
#include <duet/duet.h>

/* Matrices of this test. Rows can be divided among up to 8 ranks, in whole blocks of 4096. */
enum { ROWS = 8 * 4096, COLUMNS = 8, OUT = 4 };

/* Runs a statement, and checks the bytes that all ranks of this process sent. */
#define SENDS(what, m, e, bytes) check_bytes(what, duet_set(m, e), before_bytes(), bytes)
static uint64_t bytes_before;
static uint64_t before_bytes(void) { return bytes_before; }

static void check_bytes(const char *what, duet_status s, uint64_t before, double bytes)
{
    const uint64_t now = duet_stats().exchange_bytes;
    CHECK(s == DUET_OK, "%s: %s", what, duet_error());
    CHECK((double)(now - before) == bytes, "%s: %.0f bytes sent, not %.0f", what, (double)(now - before),
          bytes);
    bytes_before = now;
}

static duet_matrix *some(duet_group *g, int axis, int64_t rows, int64_t columns)
{
    duet_matrix *m = axis < 0 ? duet_new_replicated(g, DUET_F32, rows, columns)
                              : duet_new_split(g, DUET_F32, axis, rows, columns);
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < rows * columns; i++) p[i] = (float)(i % 7) - 3;
    return m;
}

/* P ranks; an all-gather of n bytes sends n (P - 1) in all, an all-to-all n (P - 1) / P, an all-reduce
 * 2 n (P - 1), a reduce-scatter n (P - 1). */
static void traffic_of(duet_group *g)
{
    const double ranks = duet_group_ranks(g), others = ranks - 1, each = sizeof(float);
    const double all = ROWS * (double)COLUMNS * each;
    duet_matrix *x = some(g, 0, ROWS, COLUMNS), *y = some(g, 0, ROWS, COLUMNS),
                *c = some(g, 1, ROWS, COLUMNS), *r = some(g, -1, ROWS, COLUMNS),
                *w = some(g, -1, COLUMNS, OUT), *p = some(g, 0, ROWS, OUT),
                *d = some(g, -1, COLUMNS, COLUMNS), *ds = some(g, 0, COLUMNS, COLUMNS),
                *s = duet_new_replicated(g, DUET_F32, COLUMNS);
    bytes_before = duet_stats().exchange_bytes;
    SENDS("element by element", y, duet_add(duet_mul(x, 2), duet_exp(y)), 0);
    SENDS("from replicated", y, duet_add(x, r), 0);
    SENDS("softmax", y, duet_softmax(x), 0);
    SENDS("rows normalised", y, duet_sub(x, duet_mean_keep(x, 1)), 0);
    SENDS("rows times replicated", p, duet_matmul(x, w), 0);
    SENDS("gather", r, x, all * others);
    if (COLUMNS % (int)ranks == 0) SENDS("other axis", c, x, all * others / ranks);
    SENDS("contraction", d, duet_matmul(duet_transpose(x), y), 2 * COLUMNS * COLUMNS * each * others);
    SENDS("einsum, rows", p, duet_einsum(x, w, "ij,jk->ik"), 0);
    SENDS("einsum, contraction", d, duet_einsum(x, y, "ki,kj->ij"), 2 * COLUMNS * COLUMNS * each * others);
    SENDS("rows of a table", d, duet_take(x, duet_iota(DUET_I64, COLUMNS), 0),
          2 * COLUMNS * COLUMNS * each * others);
    if ((int)ranks <= COLUMNS && COLUMNS % (int)ranks == 0)
        SENDS("contraction to parts", ds, duet_matmul(duet_transpose(x), y),
              COLUMNS * COLUMNS * each * others);
    if (ROWS / 4096 % (int)ranks == 0 && ((int)ranks & ((int)ranks - 1)) == 0)
        SENDS("sum of whole subtrees", s, duet_sum_axis(x, 0), COLUMNS * each * ranks * others);
    duet_free(&x, &y, &c, &r, &w, &p, &d, &ds, &s);
}

/* A vector whose parts are all of the same size. */
static void traffic_of_vectors(duet_group *g)
{
    const double ranks = duet_group_ranks(g), others = ranks - 1;
    const int64_t n = 9600 * (int64_t)(ranks * ranks); /* more than 65536 if there are several ranks */
    const double moved = (double)n * others / ranks;
    duet_matrix *x = duet_new_split(g, DUET_F32, 0, n), *i = duet_new_split(g, DUET_I64, 0, n),
                *k = duet_new_split(g, DUET_I32, 0, n);
    CHECK(duet_set(x, duet_sin(duet_iota(DUET_F32, n))) == DUET_OK, "%s", duet_error());
    bytes_before = duet_stats().exchange_bytes;
    SENDS("sort", x, duet_sort(x, 0), n <= 65536 ? 4 * n * others : moved * (2 * 8 + 0.5 * 8 + 0.5 * 4));
    SENDS("sort of integers", k, duet_sort(k, 0), n <= 65536 ? 4 * n * others : moved * (3 * 4));
    SENDS("argsort", i, duet_argsort(x, 0),
          n <= 65536 ? 4 * n * others : moved * (2 * 8 + 0.5 * 8 + 0.5 * 4));
    duet_matrix *v = duet_new_split(g, DUET_F32, 0, ROWS);
    if (ROWS / 4096 % (int)ranks == 0) SENDS("cumsum", v, duet_cumsum(v, 0), ROWS / 4096 * 4 * others);
    duet_matrix *m = duet_new_replicated_shape(g, DUET_F32, 0, (int64_t[]){ 0 });
    duet_matrix *large = duet_new_split(g, DUET_F32, 0, 4096 * 256);
    if (8 % (int)ranks == 0) SENDS("var", m, duet_var(large), 6 * 4 * ranks * others);
    duet_free(&x, &i, &k, &v, &m, &large);
}

/* Gradients are added while those of other weights are computed, also if they need much memory: all exchanges
 * come before the weights change. The matrices have no elements. */
static void order_of_sums(duet_group *g)
{
    enum { WEIGHTS = 4, SIZE = 12288 };
    duet_matrix *x[WEIGHTS], *d[WEIGHTS], *w[WEIGHTS];
    duet_assignment a[WEIGHTS];
    char text[20000] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    for (int k = 0; k < WEIGHTS; k++) {
        x[k] = duet_new_split(g, DUET_F32, 0, 65536, SIZE);
        d[k] = duet_new_split(g, DUET_F32, 0, 65536, SIZE + k);
        w[k] = duet_new_replicated(g, DUET_F32, SIZE, SIZE + k);
        a[k] = (duet_assignment){ w[k], duet_sub(w[k], duet_matmul(duet_transpose(x[k]), d[k])) };
    }
    CHECK(duet_explain_all(out, a, WEIGHTS) == DUET_OK, "%s", duet_error());
    fclose(out);
    const char *change = strstr(text, "program");
    for (int k = 0; k < WEIGHTS; k++) {
        CHECK(change && !strstr(change, "all-reduce"), "a weight changes before the last sum");
        duet_free(&x[k], &d[k], &w[k]);
    }
}

#endif
