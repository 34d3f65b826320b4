/* test_sparse_nomem.c - every allocation of functions and formulas with sparse matrices fails once: a
 * status and a text, no leak, no partial file, and the next call works. */
#include "nomem_trial.h"
#include <duet/duet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char file[] = "sparse.mtx";

/* The result of a function that makes a sparse matrix. */
static void made(duet_sparse *s)
{
    went(s);
    duet_sparse_free(&s);
}

static void try_lists(const duet_sparse *s)
{
    duet_matrix *row = NULL, *column = NULL, *values = NULL, *offsets = NULL;
    if (went(duet_sparse_to_coo(s, &row, &column, &values) == DUET_OK))
        made(duet_sparse_from_coo(4, 3, row, column, values, DUET_DUPLICATES_SUM));
    else if (row || column || values) wrong = true;
    duet_free(&row, &column, &values);
    if (went(duet_sparse_to_csr(s, &offsets, &column, &values) == DUET_OK))
        made(duet_sparse_from_csr(4, 3, offsets, column, values));
    duet_free(&offsets, &column, &values);
    if (went(duet_sparse_save_market(file, s) == DUET_OK)) made(duet_sparse_load_market(file));
    (void)unlink(file);
}

/* Patterns that differ, and a product whose elements are counted first. */
static void try_with_ones(const duet_sparse *s)
{
    duet_matrix *ones = duet_full(DUET_F64, 1, 4, 3), *many = duet_full(DUET_F64, 1, 20, 20);
    duet_sparse *a = went(ones) ? duet_sparse_from_dense(ones) : NULL,
                *b = went(many) ? duet_sparse_from_dense(many) : NULL;
    if (ones && went(a)) {
        made(duet_sparse_add(s, a));
        made(duet_sparse_multiply(s, a));
    }
    if (many && went(b)) made(duet_sparse_product(b, b));
    duet_sparse_free(&a);
    duet_sparse_free(&b);
    duet_free(&ones, &many);
}

static void try_combined(const duet_sparse *s)
{
    duet_sparse *turned = duet_sparse_transposed(s);
    if (went(turned)) made(duet_sparse_product(s, turned));
    duet_sparse_free(&turned);
    try_with_ones(s);
    made(duet_sparse_copy(s));
    made(duet_sparse_add(s, s));
    made(duet_sparse_multiply(s, s));
    made(duet_sparse_slice(s, 1, 3));
    made(duet_sparse_with_values(s, duet_exp(duet_sparse_values(s))));
}

/* A failed statement leaves its destination as it was. */
static void try_set(duet_matrix *m, duet_expr e)
{
    const double *p = NULL;
    if (went(duet_set(m, e) == DUET_OK)) return;
    p = duet_read(m);
    if (p && p[0] != 5) wrong = true;
}

static void try_formulas(const duet_sparse *s, const duet_matrix *m)
{
    duet_matrix *four = duet_full(DUET_F64, 5, 4, 2), *x = duet_full(DUET_F64, 1, 2, 3),
                *to = duet_full(DUET_F64, 5, 5), *also = duet_full(DUET_F64, 5, 5),
                *dense = duet_full(DUET_F64, 5, 4, 3), *square = duet_full(DUET_F64, 2, 3, 3),
                *b = duet_full(DUET_F64, 5, 3, 2);
    duet_matrix *const all[] = { four, x, to, also, dense, square, b };
    bool whole = true;
    for (int k = 0; k < 7; k++) whole &= went(all[k]);
    duet_sparse *system = whole ? duet_sparse_from_dense(square) : NULL;
    if (whole && went(system)) {
        try_set(four, duet_sparse_matmul(s, duet_transpose(x)));
        try_set(to, duet_sparse_sddmm(s, four, x));
        try_set(dense, duet_sparse_to_dense(s));
        try_set(also, duet_sparse_take(s, m));
        try_set(b, duet_sparse_solve_triangular(system, duet_transpose(x)));
        went(duet_set(b, duet_sparse_solve(system, duet_transpose(x))) != DUET_NO_MEMORY);
    }
    duet_sparse_free(&system);
    duet_free(&four, &x, &to, &also, &dense, &square, &b);
}

static void *play(void *arg)
{
    duet_matrix *m = duet_new(DUET_F64, 4, 3);
    double *p = m ? duet_overwrite(m) : NULL;
    if (went(p)) {
        memcpy(p, (const double[]){ 1, 0, 2, 0, 0, 0, 3, 4, 0, 0, 0, 5 }, 12 * sizeof *p);
        duet_sparse *s = duet_sparse_from_dense(m);
        if (went(s)) {
            try_lists(s);
            try_combined(s);
            try_formulas(s, m);
        }
        duet_sparse_free(&s);
    }
    duet_free(&m);
    return NULL;
}

int main(void)
{
    int n = 0;
    char folder[] = "/tmp/duet-nomem-XXXXXX";
    CHECK(mkdtemp(folder) && !chdir(folder), "the folder could not be made");
    hit(play, -1);
    hit(play, -1);
    CHECK(!refused, "%s", duet_error());
    const int64_t living = live;
    for (bool more = true; more && n < 4000; n++) {
        more = hit(play, n);
        CHECK(!wrong, "%d: a failure without an error text, or with a result", n);
        CHECK(more || !refused, "%d: no allocation failed, but %d calls failed", n, refused);
        CHECK(thread_state_missing || live == living, "%d: %d blocks leaked", n, (int)(live - living));
        hit(play, -1);
        CHECK(!refused, "%d: the next call fails: %s", n, duet_error());
    }
    CHECK(n > 40 && n < 4000, "%d failures", n);
    tap_point("every allocation fails once");
    CHECK(!chdir("/") && !rmdir(folder), "a file is left in %s", folder);
    return tap_end();
}
