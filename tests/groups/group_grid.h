/* group_grid.h - products on a grid of ranks: compares them with those of ordinary matrices, and counts the
 * bytes that the ranks send. Tests make the library use grids for small matrices, too. */
#ifndef GROUP_GRID_H
#define GROUP_GRID_H

#include "element.h"
#include "grid_policy.h"
#include "group_cases.h"

/* A product of x and y, each of which may be stored transposed. */
typedef struct grid_trial {
    unsigned long long seed;
    duet_dtype type;
    int64_t m, k, n;
    bool turned[2];
    pair p[2], result;
} grid_trial;

static duet_matrix *grid_matrix(const pair *p, bool grouped)
{
    return grouped ? used(p->grouped, p->grouped_view) : used(p->plain, p->plain_view);
}

static duet_expr grid_operand(const grid_trial *t, int i, bool grouped)
{
    duet_matrix *m = grid_matrix(&t->p[i], grouped);
    return t->turned[i] ? duet_transpose(m) : duet_of_matrix(m);
}

static duet_expr grid_formula(const grid_trial *t, bool grouped)
{
    const duet_expr x = grid_operand(t, 0, grouped), y = grid_operand(t, 1, grouped);
    const duet_expr product = duet_matmul(x, y);
    return t->seed % 5 == 4 ? duet_sub(product, duet_mul(product, product)) : product;
}

/* The sum of |x| |y|, of which the error of an element is a small part. */
static duet_matrix *sizes_of_sums(const grid_trial *t)
{
    const duet_expr x = duet_abs(grid_operand(t, 0, false)), y = duet_abs(grid_operand(t, 1, false));
    return duet_eval(duet_cast(duet_matmul(duet_cast(x, DUET_F64), duet_cast(y, DUET_F64)), DUET_F64));
}

/* got and wanted are sums of at most k + 2 rounded terms. */
static bool sums_agree(const grid_trial *t, const void *got, const void *wanted, const double *size)
{
    const duet_dtype part = dtype_part(t->type);
    const int each = dtype_is_complex(t->type) ? 2 : 1;
    const double eps = 4 * (double)(t->k + 2) * dtypes[part].roundoff;
    for (int64_t i = 0; i < t->m * t->n * each; i++) {
        const double a = (double)element_value(part, got, i), b = (double)element_value(part, wanted, i),
                     s = size[i / each];
        if (!(fabs(a - b) <= (is_floating(part) ? eps * (s + (t->seed % 5 == 4 ? 3 * s * s : 0)) : 0)))
            return false;
    }
    return true;
}

static void compare_products(const grid_trial *t, duet_matrix *got, duet_matrix *wanted, const char *how)
{
    duet_matrix *size = sizes_of_sums(t);
    const void *a = duet_read(got), *b = duet_read(wanted);
    const double *s = duet_read(size);
    if (CHECK(a && b && s, "seed %llu: %s", t->seed, duet_error()))
        CHECK(sums_agree(t, a, b, s), "seed %llu, %s: %s %lld x %lld x %lld differs", t->seed, how,
              dtypes[t->type].name, (long long)t->m, (long long)t->k, (long long)t->n);
    duet_free(&size);
}

static duet_matrix *spread_matrix(rng *r, duet_group *g, duet_dtype type, int64_t rows, int64_t columns)
{
    const int64_t size[] = { rows, columns };
    const int how = (int)rng_below(r, 10);
    if (how == 0) return duet_new_shape(type, 2, size);
    if (how == 1) return duet_new_replicated_shape(g, type, 2, size);
    return duet_new_split_shape(g, type, how % 2, 2, size);
}

/* A range of the rows of a larger matrix: its parts differ in size. */
static duet_matrix *rows_of(duet_matrix *all, int64_t rows)
{
    const int64_t before = duet_size(all, 0) - rows;
    return before ? duet_stepped(all, 0, before, before + rows, 1) : NULL;
}

static pair spread_pair(rng *r, duet_group *g, duet_dtype type, int64_t rows, int64_t columns)
{
    const double most = is_floating(dtype_part(type)) ? 2 : 20;
    const bool is_view = rows && columns && rng_chance(r, 20);
    const int64_t size[] = { rows + (is_view ? 1 + rng_below(r, 30) : 0), columns };
    pair p = { spread_matrix(r, g, type, size[0], columns), duet_new_shape(type, 2, size), NULL, NULL };
    rng same = *r;
    if (!CHECK(p.grouped && p.plain, "%s", duet_error())) return p;
    random_fill(r, p.grouped, -most, most);
    random_fill(&same, p.plain, -most, most);
    p.grouped_view = rows_of(p.grouped, rows);
    p.plain_view = rows_of(p.plain, rows);
    return p;
}

static int64_t draw_size(rng *r)
{
    if (rng_chance(r, 2)) return 0;
    return 1 + rng_below(r, rng_chance(r, 30) ? 6 : 40);
}

static grid_trial open_trial(rng *r, duet_group *g, uint64_t seed)
{
    static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_I32,  DUET_I64, DUET_C64, DUET_C128,
                                        DUET_F32, DUET_F16, DUET_BF16, DUET_U8,  DUET_F32 };
    const int64_t ranks = duet_group_ranks(g);
    grid_trial t = { .seed = seed, .type = types[rng_below(r, 11)] };
    t.m = draw_size(r), t.k = draw_size(r), t.n = draw_size(r);
    if (rng_chance(r, 30)) t.k = ranks * (1 + rng_below(r, 4)); /* all ranks have equal parts of it */
    for (int i = 0; i < 2; i++) {
        const int64_t rows = i ? t.k : t.m, columns = i ? t.n : t.k;
        t.turned[i] = rng_chance(r, 30);
        t.p[i] = spread_pair(r, g, t.type, t.turned[i] ? columns : rows, t.turned[i] ? rows : columns);
    }
    return t;
}

/* Numbers of rows of which the ranks can form a grid. */
static int draw_rows(rng *r, int ranks)
{
    const int rows = 1 + (int)rng_below(r, ranks);
    return ranks % rows ? 0 : rows;
}

static void replay_product(rng *r, const grid_trial *t, duet_matrix *got, duet_matrix *wanted)
{
    duet_status s = duet_record_begin();
    if (s == DUET_OK) s = duet_set(got, grid_formula(t, true));
    duet_recording *all = duet_record_end();
    if (!CHECK(all && s == DUET_OK, "seed %llu: %s", t->seed, duet_error())) return;
    for (int turn = 0; turn < 2 && s == DUET_OK; turn++) {
        for (int i = 0; i < 2; i++) fill_both(r, (pair *)&t->p[i]);
        s = duet_replay(all);
        if (s == DUET_OK) s = duet_set(wanted, grid_formula(t, false));
        if (CHECK(s == DUET_OK, "seed %llu: %s", t->seed, duet_error()))
            compare_products(t, got, wanted, "replayed");
    }
    duet_recording_free(&all);
}

static void check_product(rng *r, const grid_trial *t, duet_matrix *got, duet_matrix *wanted)
{
    if (!CHECK(got && wanted, "seed %llu: %s", t->seed, duet_error())) return;
    compare_products(t, got, wanted, "set");
    if (rng_chance(r, 30)) replay_product(r, t, got, wanted);
}

static void run_grid(duet_group *g, uint64_t seed)
{
    rng r = rng_new(seed);
    grid_trial t = open_trial(&r, g, seed);
    const grid_policy before = *grid_products();
    grid_products()->forced = rng_chance(&r, 80);
    grid_products()->gathered = 1;
    grid_products()->rows = draw_rows(&r, duet_group_ranks(g));
    if (rng_chance(&r, 40)) grid_products()->panel_bytes = 4 + (double)rng_below(&r, 2000);
    duet_matrix *wanted = duet_eval(grid_formula(&t, false)), *value = NULL;
    t.result = spread_pair(&r, g, t.type, t.m, t.n);
    duet_matrix *got = grid_matrix(&t.result, true);
    if (rng_chance(&r, 30)) got = value = duet_eval(grid_formula(&t, true));
    else CHECK(duet_set(got, grid_formula(&t, true)) == DUET_OK, "seed %llu: %s", t.seed, duet_error());
    check_product(&r, &t, got, wanted);
    *grid_products() = before;
    duet_free(&value, &wanted);
    for (int i = 0; i < 2; i++) free_pair(&t.p[i]);
    free_pair(&t.result);
}

#endif
