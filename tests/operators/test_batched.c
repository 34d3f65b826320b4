/* test_batched.c - products with more than two axes against the oracle: leading axes that
 * broadcast, operands that are views, numbers and addends fused in, NaN times 0, an empty inner
 * axis. Operands that broadcast are not copied. */
#include "common.h"
#include "plan.h"
#include <math.h>

static duet_place place[2];
static int places;
static rng gen;

typedef struct trial {
    duet_dtype type;
    int64_t m, k, n;
    duet_matrix *a, *b, *c, *whole[3];
} trial;

static enum view some_view(void)
{
    static const enum view of[] = { VIEW_NONE, VIEW_NONE, VIEW_SLICE, VIEW_TRANSPOSED };
    return of[rng_below(&gen, 4)];
}

static int64_t some_size(void)
{
    if (rng_chance(&gen, 8)) return 0;
    return 1 + rng_below(&gen, rng_chance(&gen, 15) ? 40 : 6);
}

/* With some of the leading axes, some of which have one index. */
static duet_matrix *new_operand(const trial *t, int leading, const int64_t *batch, bool broadcasts,
                                int64_t rows, int64_t cols, duet_matrix **whole)
{
    int64_t size[DUET_RANK_MAX];
    const int drop = broadcasts ? (int)rng_below(&gen, leading + 1) : 0, rank = leading - drop + 2;
    for (int d = 0; d < leading - drop; d++)
        size[d] = broadcasts && rng_chance(&gen, 30) ? 1 : batch[drop + d];
    size[rank - 2] = rows;
    size[rank - 1] = cols;
    duet_matrix *m = random_view(&gen, some_view(), t->type, rank, size, -1, 1, whole);
    if (m) return m;
    *whole = random_matrix(&gen, t->type, rank, size, -1, 1);
    return *whole;
}

static void spoil(duet_matrix *m)
{
    if (!duet_count(m) || duet_stride(m, 0) < 0 || !rng_chance(&gen, 20)) return;
    void *p = duet_update(m);
    if (duet_type(m) == DUET_F32) *(float *)p = NAN;
    else *(double *)p = INFINITY;
}

static duet_expr formula_of_trial(const trial *t, int form)
{
    switch (form) {
    case 0: return duet_matmul(t->a, t->b);
    case 1: return duet_mul(0.5, duet_matmul(t->a, t->b));
    case 2: return duet_add(duet_matmul(t->a, t->b), t->c);
    case 3: return duet_add(duet_mul(-2, duet_matmul(t->a, t->b)), duet_mul(3, t->c));
    case 4: return duet_mul(0, duet_matmul(t->a, t->b));
    case 5: return duet_add(duet_matmul(t->a, t->b), duet_mul(0, t->c));
    default: return duet_tanh(duet_matmul(duet_add(t->a, 1), t->b));
    }
}

static void compare(trial *t, int form, duet_place where)
{
    const duet_expr e = formula_of_trial(t, form);
    table want = oracle(e, t->type);
    const char *text = text_of(e);
    const duet_status s = duet_set_on(where, t->c, e);
    CHECK(s == DUET_OK, "%s on the %s: %s", text, place_name(where), duet_error());
    const char *differs = s == DUET_OK ? oracle_differs(&want, t->c) : NULL;
    CHECK(!differs, "%s, %lld x %lld x %lld on the %s: %s", text, (long long)t->m, (long long)t->k,
          (long long)t->n, place_name(where), differs);
    table_free(&want);
}

static void random_trial(duet_dtype type)
{
    trial t = { .type = type, .m = some_size(), .k = some_size(), .n = some_size() };
    const int leading = 1 + (int)rng_below(&gen, 3);
    int64_t batch[3];
    for (int d = 0; d < leading; d++)
        batch[d] = rng_chance(&gen, 10) ? rng_below(&gen, 2) : 1 + rng_below(&gen, 4);
    const bool first = rng_chance(&gen, 50);
    t.a = new_operand(&t, leading, batch, !first, t.m, t.k, &t.whole[0]);
    t.b = new_operand(&t, leading, batch, first, t.k, t.n, &t.whole[1]);
    for (int p = 0; p < places; p++) {
        t.c = new_operand(&t, leading, batch, false, t.m, t.n, &t.whole[2]);
        spoil(t.a);
        compare(&t, (int)rng_below(&gen, 7), place[p]);
        if (t.whole[2] != t.c) duet_free(&t.whole[2]);
        duet_free(&t.c);
    }
    if (t.whole[0] != t.a) duet_free(&t.whole[0]);
    if (t.whole[1] != t.b) duet_free(&t.whole[1]);
    duet_free(&t.a);
    duet_free(&t.b);
}

/* One matrix on the left for all: it is not repeated in memory, and no machine allocates more than
 * the result. */
static void test_not_copied(void)
{
    enum { BATCH = 400, N = 16 };
    duet_matrix *a = random_matrix(&gen, DUET_F32, 2, (int64_t[]){ N, N }, -1, 1);
    duet_matrix *b = random_matrix(&gen, DUET_F32, 3, (int64_t[]){ BATCH, N, N }, -1, 1),
                *c = duet_new(DUET_F32, BATCH, N, N);
    for (int p = 0; p < places; p++) {
        for (int turn = 0; turn < 2; turn++)
            CHECK(duet_set_on(place[p], c, duet_matmul(a, b)) == DUET_OK, "%s", duet_error());
        const duet_counts before = duet_stats();
        const size_t used = duet_memory_of(place[p]).used;
        CHECK(duet_set_on(place[p], c, duet_matmul(a, b)) == DUET_OK, "%s", duet_error());
        CHECK(duet_stats().pool_hits == before.pool_hits && duet_stats().pool_misses == before.pool_misses,
              "the product allocated memory");
        CHECK(duet_memory_of(place[p]).used == used, "the product did not release its memory");
    }
    duet_free(&a);
    duet_free(&b);
    duet_free(&c);
    tap_point("broadcast operands of batched products are not copied");
}

/* One matrix on the right of all gives one product of all their rows. */
static void test_one_product(void)
{
    char text[2000] = "";
    duet_matrix *a = duet_new(DUET_F32, 6, 5, 4), *b = duet_new(DUET_F32, 4, 3),
                *c = duet_new(DUET_F32, 6, 5, 3), *d = duet_new(DUET_F32, 6, 4, 3);
    FILE *out = fmemopen(text, sizeof text - 1, "w");
    duet_expr e = duet_matmul(a, b);
    CHECK(duet_explain(out, c, e) == DUET_OK, "%s", duet_error());
    fclose(out);
    CHECK(strstr(text, "f32[30,4]") && !strstr(text, "batched"), "%s", text);
    forget(e);
    out = fmemopen(text, sizeof text - 1, "w");
    e = duet_matmul(a, d);
    CHECK(duet_explain(out, c, e) == DUET_OK, "%s", duet_error());
    fclose(out);
    CHECK(strstr(text, "batched matmul"), "%s", text);
    forget(e);
    duet_free(&a);
    duet_free(&b);
    duet_free(&c);
    duet_free(&d);
    tap_point("batches that form the rows of one product");
}

/* ---- einsum, against loops over all letters ---- */

typedef struct sum {
    const char *text;
    const char *part[3];
    int64_t size[26];
} sum;

static sum read_sum(const char *text, char room[64])
{
    sum s = { .text = text, .part = { room } };
    strcpy(room, text);
    for (int c = 0; c < 26; c++) s.size[c] = rng_chance(&gen, 5) ? 0 : 1 + rng_below(&gen, 6);
    char *comma = strchr(room, ','), *arrow = strstr(room, "->");
    *comma = *arrow = 0;
    s.part[1] = comma + 1;
    s.part[2] = arrow + 2;
    return s;
}

static int64_t element_offset(const sum *s, int part, const int64_t *at)
{
    int64_t found = 0;
    for (const char *p = s->part[part]; *p; p++) found = found * s->size[*p - 'a'] + at[*p - 'a'];
    return found;
}

/* Computes the sum, and its error bound, over all values of the letters from `letter` on. */
static void add_all(const sum *s, int letter, int64_t *at, duet_dtype t, const void *a, const void *b,
                    long double *sums, long double *size)
{
    if (letter == 26) {
        const double x = element(t, a, element_offset(s, 0, at)) * element(t, b, element_offset(s, 1, at));
        sums[element_offset(s, 2, at)] += x;
        size[element_offset(s, 2, at)] += fabs(x);
        return;
    }
    const bool used = strchr(s->part[0], 'a' + letter) || strchr(s->part[1], 'a' + letter);
    for (at[letter] = 0; at[letter] < (used ? s->size[letter] : 1); at[letter]++)
        add_all(s, letter + 1, at, t, a, b, sums, size);
}

static duet_matrix *lettered(const sum *s, int part, duet_dtype t, bool views, duet_matrix **whole)
{
    int64_t size[8];
    const int rank = (int)strlen(s->part[part]);
    for (int i = 0; i < rank; i++) size[i] = s->size[s->part[part][i] - 'a'];
    duet_matrix *m = views ? random_view(&gen, some_view(), t, rank, size, -1, 1, whole) : NULL;
    if (m) return m;
    *whole = random_matrix(&gen, t, rank, size, -1, 1);
    return *whole;
}

static void try_sum(const char *text, duet_dtype t, bool views, duet_place where)
{
    char room[64];
    const sum s = read_sum(text, room);
    duet_matrix *whole[3], *a = lettered(&s, 0, t, views, &whole[0]),
                           *b = lettered(&s, 1, t, views, &whole[1]),
                           *c = lettered(&s, 2, t, false, &whole[2]);
    const int64_t n = duet_count(c);
    long double *sums = calloc((size_t)n + 1, sizeof *sums), *size = calloc((size_t)n + 1, sizeof *size);
    int64_t at[26];
    void *x = elements(a), *y = elements(b), *got;
    add_all(&s, 0, at, t, x, y, sums, size);
    CHECK(duet_set_on(where, c, duet_einsum(a, b, text)) == DUET_OK, "%s on the %s: %s", text,
          place_name(where), duet_error());
    got = elements(c);
    for (int64_t i = 0; i < n; i++) {
        const long double off = fabsl(element(t, got, i) - sums[i]);
        CHECK(off <= 300 * size[i] * (t == DUET_F32 ? 0x1p-24L : 0x1p-53L),
              "%s on the %s: [%d] is %g, not %Lg", text, place_name(where), (int)i, element(t, got, i),
              sums[i]);
    }
    free(x);
    free(y);
    free(got);
    free(sums);
    free(size);
    duet_matrix **all[] = { &a, &b, &c };
    for (int k = 0; k < 3; k++) {
        if (whole[k] != *all[k]) duet_free(&whole[k]);
        duet_free(all[k]);
    }
}

static void test_einsum(void)
{
    static const char *const texts[] = { "ij,jk->ik",     "ij,jk->ki",    "ij,kj->ik",  "ji,jk->ki",
                                         "i,j->ij",       "i,j->ji",      "bi,bj->bij", "bij,bjk->bik",
                                         "bij,bjk->ikb",  "ijb,bjk->bik", "i,i->",      "ib,ib->b",
                                         "ij,ij->ij",     "ijk,j->ik",    "ij,k->jik",  "abij,acjk->abcik",
                                         "aij,bjk->abik", "ij,->ij",      ",->",        "abc,cd->abd",
                                         "b,bj->bj",      "ij,jk->i",     "ij,kl->ij",  "ii,ij->ij" };
    for (int p = 0; p < places; p++)
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            for (int n = 0; n < 6; n++) try_sum(texts[i], n % 2 ? DUET_F64 : DUET_F32, n > 2, place[p]);
    for (int p = 0; p < places; p++) {
        try_sum("abc,bcd->ad", DUET_F32, false, place[p]);
        try_sum("ij,ij->", DUET_F64, false, place[p]);
    }
    tap_point("einsum");
    static const char *const bad[] = { "ij,jk->ii",    "ij,jk->il", "",        "ij->ij",
                                       "ij,jk,kl->il", "i1,1k->ik", "ij,jk>ik" };
    duet_matrix *a = duet_new(DUET_F32, 3, 3), *c = duet_new(DUET_F32, 3, 3);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(duet_set(c, duet_einsum(a, a, bad[i])) == DUET_BAD_ARGUMENT, "einsum accepted the bad text %s",
              bad[i]);
    CHECK(duet_set(c, duet_einsum(a, a, NULL)) == DUET_BAD_ARGUMENT, "einsum accepted NULL");
    CHECK(duet_set(c, duet_einsum(a, a, "ijk,jk->i")) == DUET_BAD_SHAPE,
          "einsum accepted more letters than axes");
    CHECK(duet_set(c, duet_einsum(a, a, "abcdefghi,a->bcdefghi")) == DUET_BAD_SHAPE,
          "einsum accepted more letters than a matrix can have axes");
    char text[200] = "";
    FILE *out = fmemopen(text, sizeof text - 1, "w");
    duet_expr e = duet_einsum(a, a, "ij, kj -> ik");
    CHECK(duet_print_expr(out, e) == DUET_OK, "%s", duet_error());
    fclose(out);
    CHECK(!strcmp(text, "duet_einsum(A, A, \"ij,kj->ik\")"), "%s", text);
    forget(e);
    duet_matrix *x = random_matrix(&gen, DUET_F64, 1, (int64_t[]){ 5 }, -1, 1),
                *y = random_matrix(&gen, DUET_F64, 1, (int64_t[]){ 4 }, -1, 1), *o = duet_new(DUET_F64, 5, 4);
    CHECK(duet_set(o, duet_outer(x, y)) == DUET_OK, "%s", duet_error());
    const double *p = duet_read(o), *u = duet_read(x), *v = duet_read(y);
    for (int i = 0; p && u && v && i < 20; i++)
        CHECK(p[i] == u[i / 4] * v[i % 4], "duet_outer has wrong elements");
    duet_free(&a);
    duet_free(&c);
    duet_free(&x);
    duet_free(&y);
    duet_free(&o);
    tap_point("invalid einsum specifications; outer products");
}

/* A matrix times its own transpose: exactly symmetric, and within the bound. */
static void test_squares(void)
{
    for (int i = 0; i < 24; i++) {
        const duet_dtype t = i % 2 ? DUET_F64 : DUET_F32;
        const int64_t n = (int64_t[]){ 3, 47, 48, 65, 100, 131 }[i / 4], k = 1 + rng_below(&gen, 90);
        duet_matrix *a = random_matrix(&gen, t, 2, (int64_t[]){ i & 2 ? k : n, i & 2 ? n : k }, -1, 1),
                    *c = duet_new(t, n, n);
        if (i % 5 == 4) spoil(a);
        for (int p = 0; p < places; p++) {
            const duet_expr e =
                i & 2 ? duet_matmul(duet_transpose(a), a) : duet_mul(0.5, duet_matmul(a, duet_transpose(a)));
            table want = oracle(e, t);
            CHECK(duet_set_on(place[p], c, e) == DUET_OK, "%s", duet_error());
            const char *differs = oracle_differs(&want, c);
            CHECK(!differs, "product of a %d x %d matrix with its transpose on the %s: %s", (int)n, (int)k,
                  place_name(place[p]), differs);
            table_free(&want);
        }
        duet_free(&a);
        duet_free(&c);
    }
    tap_point("square matrices");
}

static void test_bad(void)
{
    duet_matrix *a = duet_new(DUET_F32, 2, 3, 4), *b = duet_new(DUET_F32, 3, 4, 5), *n = duet_new(DUET_F32);
    duet_expr e = duet_matmul(a, b);
    CHECK(duet_expr_status(e) == DUET_BAD_SHAPE && strstr(duet_error(), "do not broadcast"), "%s",
          duet_error());
    forget(e);
    e = duet_matmul(a, n);
    CHECK(duet_expr_status(e) == DUET_BAD_SHAPE, "%s", duet_error());
    forget(e);
    duet_free(&a);
    duet_free(&b);
    duet_free(&n);
    tap_point("shapes that do not match");
}

int main(int argc, char **argv)
{
    const int trials = is_quick(argc, argv) ? 60 : 600;
    places = list_places(place);
    gen = rng_new(31415);
    for (int i = 0; i < trials; i++) random_trial(i % 2 ? DUET_F64 : DUET_F32);
    tap_point("random products");
    test_not_copied();
    test_one_product();
    test_squares();
    test_einsum();
    test_bad();
    return tap_end();
}
