/* test_destinations.c - what a failed statement leaves behind. Random statements and lists of statements
 * write views of matrices and of wrapped memory, some of which overlap. Every allocation fails once, or all
 * fail from one on. Some lists end with an index out of bounds or a singular matrix. After a failure, all
 * bytes of all matrices are as before. With the fake CUDA also every call fails once: then the destinations
 * may be lost, but no other element.
 *
 *     test_destinations [how many] [seed of the first]
 * -DFAKE_CUDA: with the fake CUDA. */
#include "failing_alloc.h"
#include "in_thread.h"
#include "modes.h"
#include "quick.h"
#include "tap.h"
#include <duet/duet.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef FAKE_CUDA
#include "fake_cuda.h"
#include "prefer_gpu.h"
#else
static void fake_fail(uint64_t n) {}
static bool fake_failed(void) { return false; }
#endif

/* ---- matrices ---- */

enum {
    ROWS = 6,
    NARROW = 8,
    WIDE = 150
}; /* all operands and destinations are ROWS x NARROW or ROWS x WIDE */
enum { BASES = 5, BASE_ROWS = 14, GAP = 8, VIEWS = 12, LIST = 4 };
enum { ELEMENTS = (BASE_ROWS + 1) * (WIDE + 4 + GAP) }; /* of a base, with gaps and a guard behind it */
enum { WRAPPED = 2, WITH_GAPS, WHOLE };                 /* these bases differ from the others */

/* What the statements read and write: parts of the bases, in memory row by row. */
static const struct part {
    int base, i, j;
    bool turned; /* transposed; columns x ROWS elements in memory */
} parts[VIEWS] = {
    { 0, 0, 0 },       { 0, 2, 3 }, { 0, 8, 0 }, { 0, 2, 3 }, { 1, 1, 2 }, { 1, 7, 1 },
    { 1, 4, 4, true }, { 2, 3, 1 }, { 2, 8, 4 }, { 3, 0, 0 }, { 3, 6, 4 }, { WHOLE, 0, 0 },
};

typedef struct scene {
    int64_t columns, width; /* of the views; of the bases but WHOLE */
    duet_matrix *base[BASES], *view[VIEWS];
    duet_matrix *square, *right, *index, *bad; /* operands; bad has an index out of bounds */
    float *memory;                             /* of the two wrapped bases */
    bool there;
} scene;

/* The memory of all bases. unknown: elements that cannot be read. */
typedef struct contents {
    float of[BASES][ELEMENTS];
    bool unknown[BASES][ELEMENTS];
} contents;

typedef struct trial {
    uint64_t seed;
    duet_place place;
    int count, columns, fusion;
    bool together;            /* a list of one statement */
    bool replayed;            /* the list is recorded, and replayed when the failure occurs */
    bool bad_index, singular; /* the last statement has no result */
    bool warm, for_good;
    bool calls;      /* a call fails instead of an allocation */
    int64_t fail_at; /* -1: none */

    bool hit, unreadable;
    duet_status status;
    bool is_destination[VIEWS];
    contents before, after;
} trial;

static uint64_t state;
static int draw(int n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)((state >> 11) % (uint64_t)n);
}

static void set_seed(uint64_t seed)
{
    state = (seed + 1) * 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 4; i++) draw(2);
}

static bool fill(duet_matrix *m, int start)
{
    float *p = m ? duet_overwrite(m) : NULL;
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = (float)((start + i * 7) % 23 - 11) / 8;
    return p;
}

static int64_t stride_of(const scene *s, int base)
{
    if (base == WHOLE) return s->columns;
    return base == WITH_GAPS ? s->width + GAP : s->width;
}

static duet_matrix *wrapped(const scene *s, int base)
{
    const int64_t size[] = { BASE_ROWS, s->width }, stride[] = { stride_of(s, base), 1 };
    return duet_wrap_strided(s->memory + (base - WRAPPED) * ELEMENTS, DUET_F32, 2, size, stride);
}

static duet_matrix *view_of(const scene *s, const struct part *p)
{
    duet_matrix *m = s->base[p->base];
    if (!p->turned) return duet_submatrix(m, p->i, p->j, ROWS, s->columns);
    duet_matrix *tall = duet_submatrix(m, p->i, p->j, s->columns, ROWS), *turned = duet_transposed(tall);
    duet_free(&tall);
    return turned;
}

/* The transposed view has more rows than the base if the others are wide. */
static const struct part *part_of_view(const scene *s, int k)
{
    return parts[k].turned && s->columns > NARROW ? &parts[0] : &parts[k];
}

static void make(scene *s, int columns)
{
    static const int64_t good[] = { 3, 0, -1, 5, 2, 2 }, bad[] = { 3, 0, ROWS, 5, 2, 2 };
    *s = (scene){ .columns = columns, .width = columns + 4, .memory = calloc(2 * ELEMENTS, sizeof(float)) };
    for (int i = 0; i < 2; i++) s->base[i] = duet_new(DUET_F32, BASE_ROWS, s->width);
    for (int64_t i = 0; i < 2 * ELEMENTS; i++) s->memory[i] = (float)(i % 17) / 4;
    for (int i = WRAPPED; i < WHOLE; i++) s->base[i] = wrapped(s, i);
    s->base[WHOLE] = duet_new(DUET_F32, ROWS, columns);
    s->square = duet_new(DUET_F32, columns, columns);
    s->right = duet_new(DUET_F32, ROWS, ROWS);
    s->index = duet_from_array(good, DUET_I64, ROWS);
    s->bad = duet_from_array(bad, DUET_I64, ROWS);
    for (int k = 0; k < VIEWS; k++) s->view[k] = view_of(s, part_of_view(s, k));
    s->there = fill(s->square, 2) && fill(s->right, 1) && fill(s->base[0], 0) && fill(s->base[1], 5) &&
               fill(s->base[WHOLE], 8);
    float *r = duet_update(s->right); /* regular */
    for (int i = 0; r && i < ROWS; i++) r[i * ROWS + i] += 8;
    s->there &= r != NULL;
}

static void clear(scene *s)
{
    duet_matrix **all[] = { &s->square, &s->right, &s->index, &s->bad };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) duet_free(all[i]);
    for (int k = 0; k < VIEWS; k++) duet_free(&s->view[k]);
    for (int i = 0; i < BASES; i++) duet_free(&s->base[i]);
    free(s->memory);
}

/* A base with lost elements, element by element. */
static void look_at_each(const scene *s, int base, contents *c)
{
    duet_matrix *m = s->base[base];
    for (int64_t i = 0; i < duet_size(m, 0); i++)
        for (int64_t j = 0; j < duet_size(m, 1); j++) {
            duet_matrix *one = duet_submatrix(m, i, j, 1, 1);
            const float *p = duet_read(one);
            const int64_t at = i * stride_of(s, base) + j;
            c->unknown[base][at] = !p;
            c->of[base][at] = p ? *p : 0;
            duet_free(&one);
        }
}

/* Of wrapped memory also the gaps and what is behind the end. Returns whether all elements can be
 * read. */
static bool look(const scene *s, contents *c)
{
    bool all = true;
    memset(c, 0, sizeof *c);
    for (int i = 0; i < BASES; i++) {
        const float *p = duet_read(s->base[i]);
        all &= p != NULL;
        if (i == WRAPPED || i == WITH_GAPS)
            memcpy(c->of[i], s->memory + (i - WRAPPED) * ELEMENTS, sizeof c->of[i]);
        else if (p) memcpy(c->of[i], p, (size_t)duet_count(s->base[i]) * sizeof *p);
        if (!p) look_at_each(s, i, c);
    }
    return all;
}

/* ---- statements ---- */

static duet_expr operand_of(const scene *s, int depth)
{
    const duet_expr x = DUET(s->view[draw(VIEWS)]);
    if (!depth) return x;
    switch (draw(4)) {
    case 0: return duet_mul(x, 0.5);
    case 1: return duet_sub(x, s->view[draw(VIEWS)]);
    case 2: return duet_mul(x, duet_max_keep(s->view[draw(VIEWS)], 0));
    default: return x;
    }
}

enum { SOLVE = 10, KINDS = 16, BAD_INDEX = KINDS, SINGULAR };

static duet_expr right_of(const scene *s, int kind)
{
    const duet_expr x = operand_of(s, 1);
    switch (kind) {
    case 0: return duet_roll(x, draw(7) - 3, draw(2));
    case 1:
        return duet_pad(duet_range(x, 0, 0, ROWS - 2, 1), .before = { 1 }, .after = { 1 },
                        .mode = (duet_pad_mode)draw(3));
    case 2:
        return duet_concat(1, duet_range(x, 1, 0, 3, 1),
                           duet_range(operand_of(s, 1), 1, 0, s->columns - 3, 1));
    case 3: return duet_matmul(x, s->square);
    case 4: return duet_take(x, s->index, 0);
    case 5: return duet_sort(x, draw(2));
    case 6: return duet_cumsum(x, draw(2));
    case 7: return duet_sub(x, duet_mean_keep(x, draw(2)));
    case 8: return duet_add(duet_mul(x, 0.25), operand_of(s, 1));
    case 9: return duet_scatter_add(x, s->index, operand_of(s, 0), 0);
    case SOLVE: return duet_solve(s->right, x);
    case 11:
        return duet_roll(duet_pad(duet_range(x, 1, 0, s->columns - 3, 1), .before = { 0, 2 },
                                  .after = { 0, 1 }),
                         2, 1);
    case 12: return duet_softmax(x);
    case 13:
        return duet_concat(0, duet_range(duet_matmul(x, s->square), 0, 0, 2, 1),
                           duet_range(duet_sort(operand_of(s, 0), 1), 0, 0, ROWS - 2, 1));
    case 14: return duet_add(duet_matmul(s->right, x), duet_sum(operand_of(s, 0)));
    case 15: return duet_mul(x, 2);
    case BAD_INDEX: return duet_take(x, s->bad, 0);
    default: return duet_solve(duet_sub(s->right, s->right), x);
    }
}

static bool solves; /* whether there is LAPACK */

static void make_statements(trial *t, const scene *s, duet_assignment *a)
{
    set_seed(t->seed);
    for (int i = 0; i < t->count; i++) {
        const int to = draw(VIEWS);
        int kind = draw(KINDS);
        if (kind == SOLVE && !solves) kind++;
        if (i == t->count - 1 && t->bad_index) kind = BAD_INDEX;
        if (i == t->count - 1 && t->singular) kind = SINGULAR;
        t->is_destination[to] = true;
        a[i].to = s->view[to];
        a[i].value = right_of(s, kind);
    }
}

static duet_status run_list(trial *t, const scene *s)
{
    duet_assignment a[LIST];
    duet_status st = DUET_OK;
    make_statements(t, s, a);
    DUET_ON(t->place)
    {
        if (t->together || t->count > 1) st = (duet_set_all)(a, t->count);
        else st = (duet_set)(a[0].to, a[0].value);
    }
    return st;
}

static duet_recording *record(trial *t, const scene *s)
{
    if (duet_record_begin() != DUET_OK || run_list(t, s) != DUET_OK) return NULL;
    return duet_record_end();
}

/* The failure happens while the list runs. */
static void run_and_look(trial *t, const scene *s)
{
    duet_recording *r = t->replayed ? record(t, s) : NULL;
    CHECK(!t->replayed || r, "the list was not recorded: %s", duet_error());
    CHECK(look(s, &t->before), "%s", duet_error());
    duet_memory_trim();
    fail_for_good = t->for_good && !t->calls && t->fail_at >= 0;
    if (t->calls) fake_fail((uint64_t)t->fail_at + 1);
    else fail_in = t->fail_at;
    t->status = r ? duet_replay(r) : run_list(t, s);
    if (t->calls && t->place != DUET_CPU && t->status == DUET_OK) t->status = duet_synchronize();
    t->hit = t->calls ? fake_failed() : t->fail_at >= 0 && fail_in < 0;
    fail_in = -1;
    fake_fail(0);
    fail_for_good = false;
    t->unreadable = !look(s, &t->after);
    duet_recording_free(&r);
}

static void *play(void *arg)
{
    trial *t = arg;
    scene s, other = { 0 };
    make(&s, t->columns);
    if (t->warm) {
        make(&other, t->columns);
        (void)!run_list(t, &other);
        clear(&other);
    }
    if (CHECK(s.there, "%s", duet_error())) run_and_look(t, &s);
    clear(&s);
    return NULL;
}

static void describe(const trial *t)
{
    printf("# seed %d, %d statements of %d columns%s%s%s%s%s, fusion %s, place %d, %s %d: status %d\n",
           (int)t->seed, t->count, t->columns, t->together ? ", together" : "",
           t->replayed ? ", replayed" : "",
           t->bad_index  ? ", a bad index"
           : t->singular ? ", singular"
                         : "",
           t->warm ? ", warm" : "", t->for_good ? ", for good" : "", mode_names[t->fusion], (int)t->place,
           t->calls ? "call" : "allocation", (int)t->fail_at, (int)t->status);
}

/* ---- what may have changed ---- */

static bool same(const contents *a, const contents *b)
{
    return !memcmp(a->of, b->of, sizeof a->of) && !memcmp(a->unknown, b->unknown, sizeof a->unknown);
}

/* Marks the elements of the destinations as equal and known. */
static void forgive(const trial *t, contents *a, contents *b)
{
    const scene s = { .columns = t->columns, .width = t->columns + 4 };
    for (int k = 0; k < VIEWS; k++) {
        const struct part *p = part_of_view(&s, k);
        const int64_t rows = p->turned ? s.columns : ROWS, columns = p->turned ? ROWS : s.columns;
        for (int64_t i = 0; t->is_destination[k] && i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                const int64_t at = (p->i + i) * stride_of(&s, p->base) + p->j + j;
                a->of[p->base][at] = b->of[p->base][at] = 0;
                a->unknown[p->base][at] = b->unknown[p->base][at] = false;
            }
    }
}

/* ---- trials ---- */

static int failures, losses, refusals;

/* Devices round differently. */
static bool equal(const contents *a, const contents *b)
{
    for (int i = 0; i < BASES; i++)
        for (int k = 0; k < ELEMENTS; k++)
            if (a->unknown[i][k] != b->unknown[i][k] ||
                !(fabsf(a->of[i][k] - b->of[i][k]) <= 1e-4f * (1 + fabsf(b->of[i][k]))))
                return false;
    return true;
}

/* A device error may leave the destinations undefined. Any other failure changes nothing. */
static bool is_right(trial *now, const trial *calm)
{
    const bool device = now->calls && now->hit;
    failures += now->status != DUET_OK;
    losses += now->unreadable;
    if (now->status == DUET_OK) return equal(&now->after, &calm->after) || (device && now->unreadable);
    if (device) forgive(now, &now->before, &now->after);
    else if (now->unreadable) return false;
    return same(&now->before, &now->after);
}

static bool is_promised(const trial *now, duet_status want)
{
    if (now->status == want || now->status == DUET_NO_MEMORY) return true;
    return now->calls && now->status != DUET_BAD_ARGUMENT;
}

static void each_failure(trial *t)
{
    trial *calm = malloc(sizeof *calm), *now = malloc(sizeof *now);
    const duet_status want = t->bad_index ? DUET_BAD_ARGUMENT : t->singular ? DUET_SINGULAR : DUET_OK;
    bool hit = calm && now;
    t->fail_at = -1;
    if (hit) {
        *calm = *t;
        calm->calls = false;
        run_in_thread(play, calm);
        if (!CHECK(calm->status == want && is_right(calm, calm), "without a failure: %s", duet_error()))
            describe(calm);
    }
    for (t->fail_at = 0; hit && t->fail_at < 3000; t->fail_at++) {
        *now = *t;
        run_in_thread(play, now);
        hit = now->hit;
        refusals += hit;
        if (!CHECK(is_right(now, calm), "matrices have changed or are lost")) describe(now);
        if (!CHECK(is_promised(now, want), "status %d", (int)now->status)) describe(now);
    }
    free(calm);
    free(now);
}

static void choose(trial *t, bool calls)
{
    set_seed(t->seed + 7777);
    t->calls = calls;
    t->count = draw(3) ? 1 + draw(LIST) : 1;
    t->columns = draw(8) ? NARROW : WIDE;
    t->fusion = draw(3) ? MODE_MACHINE : draw(MODES);
    t->together = draw(4) == 0;
    t->replayed = draw(4) == 0;
    t->bad_index = !calls && !t->replayed && draw(3) == 0 && t->place == DUET_CPU;
    t->singular = !t->replayed && !t->bad_index && solves && draw(5) == 0;
    t->warm = draw(2);
    t->for_good = draw(2);
}

static bool can_solve(void)
{
    duet_matrix *one = duet_ones(DUET_F32, 1, 1);
    const bool can = duet_set_on(DUET_CPU, one, duet_solve(one, one)) == DUET_OK;
    duet_free(&one);
    return can;
}

static void trials(duet_place place, int count, uint64_t first, bool calls, const char *name)
{
    char text[160];
    failures = losses = refusals = 0;
    for (int i = 0; i < count; i++) {
        trial *t = calloc(1, sizeof *t);
        if (!CHECK(t != NULL, "no memory")) continue;
        t->seed = first + (uint64_t)i;
        t->place = place;
        choose(t, calls);
        plan_fusion(t->fusion);
        each_failure(t);
        free(t);
    }
    snprintf(text, sizeof text, "%s: %d %s failed, %d lists failed, %d lost elements", name, refusals,
             calls ? "calls" : "allocations", failures, losses);
    tap_point(text);
}

int main(int argc, char **argv)
{
    const int count = trial_count(argc, argv, 12, 120);
    const uint64_t first = argc > 2 ? (uint64_t)atoi(argv[2]) : 1;
    solves = can_solve();
    trials(DUET_CPU, count, first, false, "on the CPU");
#ifdef FAKE_CUDA
    trials(DUET_GPU, count, first, false, "on the GPU");
    trials(DUET_GPU, count, first, true, "on the GPU");
    prefer_gpu();
    trials(DUET_AUTO, count, first, false, "where the place is free");
    trials(DUET_AUTO, count / 2, first, true, "where the place is free");
    printf("# %d graphs were launched\n", (int)duet_stats().graphs);
#endif
    return tap_end();
}
