/* test_arrange.c - concat, stack, tile, repeat, pad, roll and magic, against loops over the
 * indices of the result that find the source of each element. Sources and destinations are views,
 * some of which overlap. */
#include "common.h"
#include "indices.h"
#include "modes.h"

static duet_place place[2];
static int places;
static rng gen;

enum { MOST = 5000 };

typedef struct block {
    duet_matrix *m;
    int rank;
    int64_t size[DUET_RANK_MAX];
} block;

static int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)(rng_next(&gen) % (uint64_t)(high - low + 1));
}

static double number_at(duet_dtype type, const void *p, int64_t i)
{
    if (type == DUET_F32) return (double)((const float *)p)[i];
    if (type == DUET_F64) return ((const double *)p)[i];
    return (double)((const int64_t *)p)[i];
}

static void set_number(duet_dtype type, void *p, int64_t i, double x)
{
    if (type == DUET_F32) ((float *)p)[i] = (float)x;
    else if (type == DUET_F64) ((double *)p)[i] = x;
    else ((int64_t *)p)[i] = (int64_t)x;
}

/* Element i of m, by its pointer and strides. */
static double element_of(const duet_matrix *m, const int64_t *i)
{
    int64_t at = 0;
    for (int a = 0; a < duet_rank(m); a++) at += i[a] * duet_stride(m, a);
    return number_at(duet_type(m), duet_read(m), at);
}

/* A view of that shape in a larger matrix, with axes permuted, flipped and strided. */
static duet_matrix *view_of(duet_dtype type, int rank, const int64_t *size)
{
    int64_t wide[DUET_RANK_MAX];
    const bool turned = between(0, 1), flips = between(0, 2) == 0;
    const int64_t by = between(1, 2), off = between(0, 1);
    for (int a = 0; a < rank; a++) wide[turned ? rank - 1 - a : a] = size[a] * by + off;
    duet_matrix *all = duet_new_shape(type, rank, wide),
                *m = turned ? duet_transposed(all)
                            : duet_permuted_axes(all, rank, (int[]){ 0, 1, 2, 3, 4, 5, 6, 7 });
    void *p = duet_overwrite(all);
    for (int64_t i = 0; i < duet_count(all); i++) set_number(type, p, i, (double)between(-99, 99));
    for (int a = 0; a < rank; a++) {
        duet_matrix *next = duet_stepped(m, a, off, size[a] * by + off, by);
        duet_free(&m);
        m = next;
        if (!flips) continue;
        next = duet_flipped(m, a);
        duet_free(&m);
        m = next;
    }
    duet_free(&all);
    return m;
}

/* The expected result: at each index an element of a source, or a number. */
typedef double meant(const int64_t *i, const void *with);

static double *expect(int rank, const int64_t *size, meant *of, const void *with)
{
    int64_t i[DUET_RANK_MAX] = { 0 }, n = 1;
    for (int a = 0; a < rank; a++) n *= size[a];
    double *x = malloc((size_t)(n + 1) * sizeof *x);
    for (int64_t k = 0; k < n; k++, step_on(rank, size, i)) x[k] = of(i, with);
    return x;
}

static void check(const duet_matrix *to, double *want, duet_status s, const char *what)
{
    int64_t i[DUET_RANK_MAX] = { 0 }, size[DUET_RANK_MAX];
    CHECK(s == DUET_OK, "%s: %s", what, duet_error());
    for (int a = 0; a < duet_rank(to); a++) size[a] = duet_size(to, a);
    for (int64_t k = 0; k < duet_count(to) && s == DUET_OK; k++, step_on(duet_rank(to), size, i))
        if (!CHECK(element_of(to, i) == want[k], "%s, rank %d: element %d is %g, not %g", what, duet_rank(to),
                   (int)k, element_of(to, i), want[k]))
            break;
    free(want);
}

/* ---- each operation ---- */

typedef struct given {
    duet_matrix *from[5];
    int count, axis, rank;
    int64_t by, before[DUET_RANK_MAX];
    duet_pad_mode mode;
} given;

static double meant_concatenated(const int64_t *i, const void *with)
{
    const given *g = with;
    int64_t at[DUET_RANK_MAX];
    int k = 0;
    memcpy(at, i, sizeof at);
    for (; at[g->axis] >= duet_size(g->from[k], g->axis); k++) at[g->axis] -= duet_size(g->from[k], g->axis);
    return element_of(g->from[k], at);
}

static double meant_stacked(const int64_t *i, const void *with)
{
    const given *g = with;
    int64_t at[DUET_RANK_MAX];
    for (int a = 0, b = 0; a <= g->rank; a++)
        if (a != g->axis) at[b++] = i[a];
    return element_of(g->from[i[g->axis]], at);
}

static double meant_tiled(const int64_t *i, const void *with)
{
    const given *g = with;
    int64_t at[DUET_RANK_MAX];
    for (int a = 0; a < duet_rank(g->from[0]); a++) at[a] = i[a + g->axis] % duet_size(g->from[0], a);
    return element_of(g->from[0], at);
}

static double meant_repeated(const int64_t *i, const void *with)
{
    const given *g = with;
    int64_t at[DUET_RANK_MAX];
    memcpy(at, i, sizeof at);
    at[g->axis] /= g->by;
    return element_of(g->from[0], at);
}

static double meant_rolled(const int64_t *i, const void *with)
{
    const given *g = with;
    int64_t at[DUET_RANK_MAX], n = duet_size(g->from[0], g->axis);
    memcpy(at, i, sizeof at);
    at[g->axis] = ((at[g->axis] - g->by) % n + n) % n;
    return element_of(g->from[0], at);
}

static double meant_padded(const int64_t *i, const void *with)
{
    const given *g = with;
    int64_t at[DUET_RANK_MAX];
    for (int a = 0; a < g->rank; a++) {
        const int64_t n = duet_size(g->from[0], a);
        at[a] = i[a] - g->before[a];
        if (g->mode == DUET_PAD_CONSTANT && (at[a] < 0 || at[a] >= n)) return -7;
        if (g->mode == DUET_PAD_EDGE && at[a] < 0) at[a] = 0;
        else if (g->mode == DUET_PAD_EDGE && at[a] >= n) at[a] = n - 1;
        while (g->mode == DUET_PAD_REFLECT && (at[a] < 0 || at[a] >= n))
            if (n == 1) at[a] = 0;
            else if (at[a] < 0) at[a] = -at[a];
            else at[a] = 2 * (n - 1) - at[a];
    }
    return element_of(g->from[0], at);
}

static void random_sizes(int rank, int64_t *size, int64_t least)
{
    for (int a = 0; a < rank; a++) size[a] = between(least, rank > 4 ? 2 : 5);
}

static void free_given(given *g)
{
    for (int k = 0; k < 5; k++) duet_free(&g->from[k]);
}

static void try_join(duet_dtype type, bool stacked)
{
    given g = { .count = (int)between(1, 4), .rank = (int)between(!stacked, 5) };
    int64_t size[DUET_RANK_MAX], all[DUET_RANK_MAX], sum = 0;
    random_sizes(g.rank, size, between(0, 4) > 0);
    g.axis = (int)between(0, g.rank - !stacked);
    for (int k = 0; k < g.count; k++) {
        if (!stacked) size[g.axis] = between(0, 3);
        g.from[k] = view_of(type, g.rank, size);
        if (!stacked) sum += size[g.axis];
    }
    for (int a = 0, b = 0; a < g.rank + stacked; a++) {
        if (a == g.axis) all[a] = (stacked ? b--, g.count : sum);
        else all[a] = size[b];
        b++;
    }
    duet_matrix *to = view_of(type, g.rank + stacked, all);
    duet_expr parts[5];
    for (int k = 0; k < g.count; k++) parts[k] = DUET(g.from[k]);
    double *want = expect(g.rank + stacked, all, stacked ? meant_stacked : meant_concatenated, &g);
    const int axis = g.axis - (int)between(0, 1) * (g.rank + stacked);
    check(to, want,
          duet_set(to, stacked ? (duet_stack)(axis, g.count, parts) : (duet_concat)(axis, g.count, parts)),
          stacked ? "stack" : "concatenate");
    duet_free(&to);
    free_given(&g);
}

static void try_tile(duet_dtype type)
{
    given g = { .rank = (int)between(0, between(0, 5) ? 4 : 8) };
    int64_t size[DUET_RANK_MAX], all[DUET_RANK_MAX], times[DUET_RANK_MAX];
    random_sizes(g.rank, size, between(0, 4) > 0);
    g.axis = (int)between(0, g.rank > 4 ? 8 - g.rank : 2);
    for (int a = 0; a < g.rank + g.axis; a++) {
        times[a] = between(0, g.rank > 4 ? 2 : 3);
        all[a] = times[a] * (a < g.axis ? 1 : size[a - g.axis]);
    }
    g.from[0] = view_of(type, g.rank, size);
    duet_matrix *to = view_of(type, g.rank + g.axis, all);
    double *want = expect(g.rank + g.axis, all, meant_tiled, &g);
    check(to, want, duet_set(to, (duet_tile)(DUET(g.from[0]), g.rank + g.axis, times)), "tile");
    duet_free(&to);
    free_given(&g);
}

static void try_repeat(duet_dtype type)
{
    given g = { .rank = (int)between(1, between(0, 5) ? 4 : 8), .by = between(1, 3) };
    int64_t size[DUET_RANK_MAX];
    random_sizes(g.rank, size, between(0, 4) > 0);
    g.axis = (int)between(0, g.rank - 1);
    g.from[0] = view_of(type, g.rank, size);
    size[g.axis] *= g.by;
    duet_matrix *to = view_of(type, g.rank, size);
    double *want = expect(g.rank, size, meant_repeated, &g);
    check(to, want, duet_set(to, duet_repeat(g.from[0], g.by, g.axis - g.rank)), "repeat");
    duet_free(&to);
    free_given(&g);
}

/* Also in place. */
static void try_roll(duet_dtype type)
{
    given g = { .rank = (int)between(1, 4) };
    if (between(0, 5)) g.by = between(-7, 7);
    else g.by = between(0, 1) ? INT64_MIN : INT64_MAX;
    int64_t size[DUET_RANK_MAX];
    random_sizes(g.rank, size, between(0, 4) > 0);
    g.axis = (int)between(0, g.rank - 1);
    g.from[0] = view_of(type, g.rank, size);
    duet_matrix *to = between(0, 2) ? view_of(type, g.rank, size) : duet_expanded(g.from[0], 0);
    const bool in_place = duet_rank(to) > g.rank;
    if (g.by == INT64_MIN && size[g.axis]) g.by = INT64_MIN % size[g.axis];
    if (g.by == INT64_MAX && size[g.axis]) g.by = INT64_MAX % size[g.axis];
    double *want = expect(g.rank, size, meant_rolled, &g);
    if (in_place) {
        duet_free(&to);
        to = duet_permuted_axes(g.from[0], g.rank, (int[]){ 0, 1, 2, 3 });
    }
    check(to, want, duet_set(to, duet_roll(g.from[0], g.by, g.axis)), in_place ? "roll in place" : "roll");
    duet_free(&to);
    free_given(&g);
}

static void try_pad(duet_dtype type)
{
    given g = { .rank = (int)between(0, 4), .mode = (duet_pad_mode)between(0, 2) };
    int64_t size[DUET_RANK_MAX], all[DUET_RANK_MAX];
    duet_padding p = { .mode = g.mode, .value = -7 };
    random_sizes(g.rank, size, g.mode || between(0, 4));
    for (int a = 0; a < g.rank; a++) {
        const int64_t most = g.rank < 3 && !between(0, 4) ? 20 : 3;
        g.before[a] = p.before[a] = between(0, most);
        p.after[a] = between(0, most);
        all[a] = p.before[a] + size[a] + p.after[a];
    }
    g.from[0] = view_of(type, g.rank, size);
    duet_matrix *to = view_of(type, g.rank, all);
    double *want = expect(g.rank, all, meant_padded, &g);
    const char *what = "pad";
    if (g.mode == DUET_PAD_REFLECT) what = "pad by reflection";
    else if (g.mode) what = "pad by the edge";
    check(to, want, duet_set(to, (duet_pad)(DUET(g.from[0]), &p)), what);
    duet_free(&to);
    free_given(&g);
}

static void test_each(int n)
{
    const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_I64 };
    for (int p = 0; p < places; p++) {
        DUET_ON(place[p])
        {
            for (int k = 0; k < n; k++) {
                const duet_dtype type = types[k % 3];
                gen = rng_new((uint64_t)k + 1);
                try_join(type, false);
                try_join(type, true);
                try_tile(type);
                try_repeat(type);
                try_roll(type);
                try_pad(type);
            }
        }
        CHECK(duet_arena_limit((size_t)64 << 20) == DUET_OK, "a formula leaked: %s", duet_error());
        tap_point(place[p] == DUET_GPU ? "results equal reference loops, on the GPU"
                                       : "results equal reference loops, on the CPU");
    }
}

/* ---- sources inside the destination ---- */

static void test_within(void)
{
    for (int p = 0; p < places; p++) DUET_ON(place[p])
        {
            duet_matrix *m = duet_new(DUET_F32, 6), *half[2], *tail;
            float *x = duet_overwrite(m);
            for (int i = 0; i < 6; i++) x[i] = (float)i;
            CHECK(duet_split(m, 0, 2, half) == DUET_OK, "%s", duet_error());
            CHECK(duet_set(m, duet_concat(0, half[1], half[0])) == DUET_OK, "%s",
                  duet_error()); /* the halves are exchanged */
            const float *r = duet_read(m);
            for (int i = 0; i < 6; i++) CHECK((int)r[i] == (i + 3) % 6, "%d: %g", i, (double)r[i]);
            CHECK(duet_set(m, duet_tile(half[1], 2)) == DUET_OK, "%s", duet_error());
            r = duet_read(m);
            for (int i = 0; i < 6; i++) CHECK((int)r[i] == i % 3, "%d: %g", i, (double)r[i]);
            tail = duet_slice(m, 1, 3);
            CHECK(duet_set(m, duet_repeat(tail, 2, 0)) == DUET_OK, "%s", duet_error());
            r = duet_read(m);
            for (int i = 0; i < 6; i++) CHECK((int)r[i] == (1 + i / 2) % 3, "%d: %g", i, (double)r[i]);
            CHECK(duet_set(m, duet_pad(tail, .before = { 2 }, .after = { 1 }, .mode = DUET_PAD_REFLECT)) ==
                      DUET_OK,
                  "%s", duet_error());
            r = duet_read(m);
            const int mirrored[] = { 2, 2, 1, 2, 2, 2 };
            for (int i = 0; i < 6; i++) CHECK((int)r[i] == mirrored[i], "%d: %g", i, (double)r[i]);
            duet_free(&half[0]);
            duet_free(&half[1]);
            duet_free(&tail);
            duet_free(&m);
        }
    tap_point("sources that overlap the destination");
}

/* Results without elements, of which some sizes are large. */
static void test_nothing(void)
{
    const int64_t narrow[] = { 0, 1, 1, 1, 1, 1, 1, 1 }, wide[] = { 0, (int64_t)1 << 40, 1, 1, 1, 1, 1, 1 };
    duet_matrix *from = duet_new_shape(DUET_U8, 8, narrow), *to = duet_new_shape(DUET_U8, 8, wide);
    CHECK(duet_set(to, duet_repeat(from, (int64_t)1 << 40, 1)) == DUET_OK, "%s", duet_error());
    CHECK(duet_set(to, duet_tile(from, (int64_t)1 << 40, 1, 1, 1, 1, 1, 1)) == DUET_OK, "%s", duet_error());
    CHECK(duet_set(to, duet_roll(to, 3, 1)) == DUET_OK, "%s", duet_error());
    duet_free(&from);
    duet_free(&to);
    tap_point("empty destinations");
}

/* ---- magic ---- */

static void test_magic(void)
{
    for (int64_t n = 0; n < 40; n++) {
        if (n == 2) continue;
        duet_matrix *m = duet_new(DUET_I64, n, n), *t = duet_transposed(m);
        char seen[1600] = { 0 };
        const int64_t sum = n * (n * n + 1) / 2;
        int64_t down = 0, up = 0;
        CHECK(duet_magic(t) == DUET_OK, "%s", duet_error());
        const int64_t *p = duet_read(m);
        for (int64_t i = 0; i < n; i++) {
            int64_t row = 0, column = 0;
            for (int64_t j = 0; j < n; j++) {
                const int64_t v = p[i * n + j];
                row += v;
                column += p[j * n + i];
                if (CHECK(v >= 1 && v <= n * n && !seen[v - 1], "%d: element %d is %d", (int)n,
                          (int)(i * n + j), (int)v))
                    seen[v - 1] = 1;
            }
            CHECK(row == sum && column == sum, "size %d: row and column %d have the sums %d and %d, not %d",
                  (int)n, (int)i, (int)row, (int)column, (int)sum);
            down += p[i * n + i];
            up += p[i * n + n - 1 - i];
        }
        CHECK(down == sum && up == sum, "size %d: the diagonals have the sums %d and %d, not %d", (int)n,
              (int)down, (int)up, (int)sum);
        duet_free(&m);
        duet_free(&t);
    }
    duet_matrix *two = duet_new(DUET_I8, 2, 2); /* as MATLAB's, which is not magic */
    CHECK(duet_magic(two) == DUET_OK && !memcmp(duet_read(two), (int8_t[]){ 1, 3, 4, 2 }, 4), "%s",
          duet_error());
    duet_free(&two);
    static const struct {
        duet_dtype type;
        int64_t holds, not ;
    } rows[] = {
        { DUET_U8, 15, 16 }, { DUET_I8, 11, 12 },      { DUET_F16, 45, 46 },   { DUET_BF16, 16, 17 },
        { DUET_BOOL, 1, 2 }, { DUET_F32, 4096, 4097 }, { DUET_I16, 181, 182 }, { DUET_C64, 5, 4097 }
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        duet_matrix *m = duet_new(rows[k].type, rows[k].holds, rows[k].holds),
                    *wide = duet_new(rows[k].type, rows[k].not, rows[k].not );
        CHECK(duet_magic(m) == DUET_OK && duet_magic(wide) == DUET_BAD_TYPE, "type %d: %s", (int)rows[k].type,
              duet_error());
        duet_free(&m);
        duet_free(&wide);
    }
    duet_matrix *half = duet_new(DUET_F16, 3, 3), *brain = duet_new(DUET_BF16, 3, 3);
    CHECK(duet_magic(half) == DUET_OK && duet_magic(brain) == DUET_OK, "%s", duet_error());
    const uint16_t *h = duet_read(half), *b = duet_read(brain);
    static const uint16_t halves[] = { 0x4800, 0x3c00, 0x4600 },
                          brains[] = { 0x4100, 0x3f80, 0x40c0 }; /* 8, 1, 6 */
    for (int i = 0; i < 3; i++)
        CHECK(h[i] == halves[i] && b[i] == brains[i], "element %d is %x and %x", i, h[i], b[i]);
    duet_free(&half);
    duet_free(&brain);
    tap_point("magic squares");
}

/* ---- errors, recordings, plans ---- */

static void refused(duet_status s, duet_status want, const char *text)
{
    CHECK(s == want && strstr(duet_error(), text), "status %d, not %d with \"%s\": %s", (int)s, (int)want,
          text, duet_error());
}

static void test_refusals(void)
{
    duet_matrix *m = duet_new(DUET_F32, 2, 3), *n = duet_new(DUET_F32, 4, 3), *v = duet_new(DUET_F32, 3),
                *d = duet_new(DUET_F64, 2, 3), *wide = duet_broadcast_to(v, 4, 3),
                *none = duet_new(DUET_F32, 0, 3), *absent = NULL;
    CHECK(duet_set(n, 5) == DUET_OK, "%s", duet_error());
    refused(duet_set(n, duet_concat(0, m, d)), DUET_BAD_TYPE, "type");
    refused(duet_set(n, duet_concat(0, m, m, m)), DUET_BAD_SHAPE, "does not broadcast");
    refused(duet_set(n, duet_concat(0, m, v)), DUET_BAD_SHAPE,
            "y must have the shape of x except along axis 0");
    refused(duet_set(n, duet_concat(1, m, n)), DUET_BAD_SHAPE, "duet_concat(x: f32[2,3], y: f32[4,3])");
    refused(duet_set(n, duet_concat(2, m, m)), DUET_BAD_SHAPE, "axis 2 does not exist");
    refused(duet_set(n, duet_concat(0, m, absent)), DUET_BAD_ARGUMENT, "y must not be NULL");
    refused(duet_set(n, (duet_concat)(0, 0, NULL)), DUET_BAD_ARGUMENT, "at least one operand");
    refused(duet_set(wide, duet_concat(0, m, m)), DUET_BAD_ARGUMENT, "repeats elements");
    refused(duet_set(n, duet_stack(0, v, m)), DUET_BAD_SHAPE, "duet_stack");
    refused(duet_set(n, duet_stack(3, v, v)), DUET_BAD_SHAPE, "axis 3 does not exist");
    refused(duet_set(n, duet_tile(m, -1, 2)), DUET_BAD_ARGUMENT, "duet_tile(x: f32[2,3]): times (-1)");
    refused(duet_set(n, duet_tile(m, INT64_MAX, 2)), DUET_BAD_SHAPE, "overflows");
    refused(duet_set(n, (duet_tile)(DUET(m), 9, NULL)), DUET_BAD_ARGUMENT, "0 to 8 numbers, not 9");
    refused(duet_set(n, duet_repeat(m, 2, 2)), DUET_BAD_SHAPE, "axis 2 does not exist");
    refused(duet_set(n, duet_repeat(m, -2, 0)), DUET_BAD_ARGUMENT, "times (-2)");
    refused(duet_set(n, duet_roll(n, 1, 5)), DUET_BAD_SHAPE, "axis 5 does not exist");
    refused(duet_set(n, duet_pad(m, .before = { -1 })), DUET_BAD_ARGUMENT, "the padding of axis 0 (-1, 0)");
    refused(duet_set(n, duet_pad(m, .before = { 0, 0, 1 })), DUET_BAD_SHAPE, "axis 2 does not exist");
    refused(duet_set(n, duet_pad(m, .after = { INT64_MAX })), DUET_BAD_SHAPE, "overflows");
    refused(duet_set(n, duet_pad(m, .mode = (duet_pad_mode)7)), DUET_BAD_ARGUMENT, "mode (7)");
    refused(duet_set(n, duet_pad(none, .before = { 1 }, .mode = DUET_PAD_EDGE)), DUET_BAD_SHAPE,
            "axis 0 has no element to pad with");
    refused(duet_magic(m), DUET_BAD_SHAPE, "square");
    refused(duet_set(n, duet_roll(absent, 1, 0)), DUET_BAD_ARGUMENT, "NULL");
    CHECK(strstr(duet_error(), "test_arrange.c"), "the error text has no source line: %s", duet_error());
    const float *p = duet_read(n);
    for (int i = 0; i < 12; i++) CHECK((int)p[i] == 5, "a failed statement has changed its destination");
    duet_free(&m);
    duet_free(&n);
    duet_free(&v);
    duet_free(&d);
    duet_free(&wide);
    duet_free(&none);
    tap_point("failed statements leave the destination unchanged");
}

static void test_recorded(void)
{
    for (int p = 0; p < places; p++) DUET_ON(place[p])
        {
            duet_matrix *a = duet_new(DUET_F32, 3), *b = duet_new(DUET_F32, 7), *c = duet_new(DUET_F32, 14);
            duet_recording *r = NULL;
            CHECK(duet_record_begin() == DUET_OK &&
                      duet_set(b, duet_pad(a, .before = { 2 }, .after = { 2 }, .mode = DUET_PAD_EDGE)) ==
                          DUET_OK &&
                      duet_set(b, duet_roll(b, 1, 0)) == DUET_OK &&
                      duet_set(c, duet_concat(0, b, b)) == DUET_OK,
                  "%s", duet_error());
            CHECK((r = duet_record_end()), "%s", duet_error());
            for (int turn = 0; turn < 3; turn++) {
                float *x = duet_overwrite(a);
                for (int i = 0; i < 3; i++) x[i] = (float)(10 * turn + i);
                CHECK(duet_replay(r) == DUET_OK, "%s", duet_error());
                const float *y = duet_read(c);
                static const int want[] = { 2, 0, 0, 0, 1, 2, 2 };
                for (int i = 0; i < 14; i++)
                    CHECK((int)y[i] == 10 * turn + want[i % 7], "turn %d, %d: %g", turn, i, (double)y[i]);
            }
            duet_recording_free(&r);
            duet_free(&a);
            duet_free(&b);
            duet_free(&c);
        }
    tap_point("recording and replay");
}

static void test_explained(void)
{
    char text[8000] = "";
    FILE *f = tmpfile();
    duet_matrix *a = duet_new(DUET_F32, 3), *b = duet_new(DUET_F32, 7);
    CHECK(duet_set(b, 4) == DUET_OK, "%s", duet_error());
    const duet_counts before = duet_stats();
    DUET_EXPLAIN(f)
    {
        CHECK(duet_set(b, duet_pad(a, .before = { 2 }, .after = { 2 }, .mode = DUET_PAD_EDGE)) == DUET_OK &&
                  duet_iadd(b, 1) == DUET_OK,
              "%s", duet_error());
        CHECK(duet_set_all({ b, DUET(1) }, { a, DUET(2) }) == DUET_OK, "%s", duet_error());
        CHECK(duet_random_uniform(b, 1, 0, 1) == DUET_OK, "%s", duet_error());
        CHECK(duet_set(b, duet_roll(a, 1, 0)) == DUET_BAD_SHAPE,
              "a bad statement did not fail in a DUET_EXPLAIN block");
    }
    CHECK(duet_stats().steps == before.steps, "a step ran in a DUET_EXPLAIN block");
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    CHECK(strstr(text, "strided") && strstr(text, "duet_random_uniform(f32[7])"), "the plans are: %s", text);
    const float *p = duet_read(b);
    for (int i = 0; i < 7; i++) CHECK((int)p[i] == 4, "an explained statement has changed its destination");
    CHECK(duet_set(b, duet_pad(a, .before = { 2 }, .after = { 2 }, .mode = DUET_PAD_EDGE)) == DUET_OK &&
              duet_stats().steps == before.steps + 3,
          "duet_pad took %d steps", (int)(duet_stats().steps - before.steps));
    duet_free(&a);
    duet_free(&b);
    tap_point("duet_explain and duet_stats");
}

int main(int argc, char **argv)
{
    places = list_places(place);
    test_each(is_quick(argc, argv) ? 150 : 1500);
    test_within();
    test_nothing();
    test_magic();
    test_refusals();
    test_recorded();
    test_explained();
    return tap_end();
}
