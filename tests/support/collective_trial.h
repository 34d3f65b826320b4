/* collective_trial.h - random collective steps and the results that they must have. Ranks are threads of the
 * test, each with one GPU. */
#ifndef COLLECTIVE_TRIAL_H
#define COLLECTIVE_TRIAL_H

#include "communicator.h"
#include "gpu.h"
#include "tap.h"
#include "test_rng.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define GPU_ENTRY(n) [DEFAULT_GPU + (n)] = { &gpu_machine, n }
const device_entry devices[DEVICES_MAX] = { GPU_ENTRY(0), GPU_ENTRY(1), GPU_ENTRY(2), GPU_ENTRY(3),
                                            GPU_ENTRY(4), GPU_ENTRY(5), GPU_ENTRY(6), GPU_ENTRY(7) };

enum { RANKS_MOST = 8 };

/* ---- ranks ---- */

typedef struct ranks ranks;
typedef struct rank_thread {
    ranks *all;
    int rank;
    duet_status status;
    char text[600];
    pthread_t thread;
} rank_thread;

struct ranks {
    int count;
    communicator c[RANKS_MOST];
    char name[LINK_NAME];
    double seconds;
    rank_thread of[RANKS_MOST];
    duet_status (*work)(ranks *all, int rank, void *arg);
    void *arg;
};

static void *rank_main(void *arg)
{
    rank_thread *t = arg;
    t->status = t->all->work(t->all, t->rank, t->all->arg);
    snprintf(t->text, sizeof t->text, "%s", t->status == DUET_OK ? "" : duet_error());
    return NULL;
}

/* Runs a function in a thread for each rank. */
static void on_ranks(ranks *all, duet_status work(ranks *all, int rank, void *arg), void *arg)
{
    all->work = work;
    all->arg = arg;
    for (int r = 0; r < all->count; r++) {
        all->of[r].all = all;
        all->of[r].rank = r;
        if (pthread_create(&all->of[r].thread, NULL, rank_main, &all->of[r])) abort();
    }
    for (int r = 0; r < all->count; r++) pthread_join(all->of[r].thread, NULL);
}

static inline bool all_ran(const ranks *all, const char *what)
{
    bool ok = true;
    for (int r = 0; r < all->count; r++)
        ok &= CHECK(all->of[r].status == DUET_OK, "%s, rank %d of %d: %s", what, r, all->count,
                    all->of[r].text);
    return ok;
}

static duet_status connect_rank(ranks *all, int rank, void *arg)
{
    (void)arg;
    return gpu_machine.connect(DEFAULT_GPU + rank, all->name, rank, all->count, all->seconds,
                               &all->c[rank].link);
}

static duet_status disconnect_rank(ranks *all, int rank, void *failed)
{
    gpu_machine.disconnect(all->c[rank].link, failed != NULL);
    all->c[rank].link = NULL;
    return DUET_OK;
}

/* Connects the GPUs of `count` ranks. */
static void connect_ranks(ranks *all, int count, double seconds)
{
    *all = (ranks){ .count = count, .seconds = seconds };
    for (int r = 0; r < count; r++)
        all->c[r] =
            (communicator){ .rank = r, .ranks = count, .device = DEFAULT_GPU + r, .timeout = seconds };
    const duet_status s = gpu_machine.link_name(all->name);
    for (int r = 0; r < count; r++) {
        all->of[r].status = s;
        snprintf(all->of[r].text, sizeof all->of[r].text, "%s", s == DUET_OK ? "" : duet_error());
    }
    if (s == DUET_OK) on_ranks(all, connect_rank, NULL);
}

static void disconnect_ranks(ranks *all, bool failed)
{
    on_ranks(all, disconnect_rank, failed ? all : NULL);
    for (int r = 0; r < all->count; r++) collectives_free(&all->c[r]);
}

/* ---- distributions ---- */

typedef struct spread {
    distribution d;
    int64_t bounds[RANKS_MOST + 1], others[RANKS_MOST + 1]; /* others: of the second axis of a grid */
} spread;

static void part_of(const shape *whole, const spread *s, int rank, int64_t *first, int64_t *size)
{
    const int part = s->d.parts ? rank / s->d.step % s->d.parts : rank;
    for (int a = 0; a < whole->rank; a++) {
        first[a] = a == s->d.axis ? s->bounds[part] : 0;
        size[a] = a == s->d.axis ? s->bounds[part + 1] - s->bounds[part] : whole->size[a];
        if (!s->d.second.parts || a != s->d.second.axis) continue;
        const int other = rank / s->d.second.step % s->d.second.parts;
        first[a] = s->others[other];
        size[a] = s->others[other + 1] - s->others[other];
    }
}

static void spread_evenly(spread *s, const shape *whole, int axis, int count)
{
    s->d = (distribution){ axis, axis < 0 ? NULL : s->bounds };
    for (int r = 0; axis >= 0 && r <= count; r++) s->bounds[r] = whole->size[axis] * r / count;
}

/* Some of these have empty parts. */
static void spread_randomly(spread *s, const shape *whole, int axis, int count)
{
    spread_evenly(s, whole, axis, count);
    if (axis < 0 || chance(40)) return;
    for (int r = 1; r < count; r++) {
        const int64_t left = whole->size[axis] - s->bounds[r - 1];
        s->bounds[r] = s->bounds[r - 1] + (left && chance(80) ? draw((int)left + 1) : 0);
    }
}

static void random_bounds(int64_t *bounds, int parts, int64_t n)
{
    for (int k = 0; k <= parts; k++) bounds[k] = n * k / parts;
    if (chance(40)) return;
    for (int k = 1; k < parts; k++) bounds[k] = bounds[k - 1] + draw((int)(n - bounds[k - 1]) + 1);
}

/* Blocks of a grid of ranks: of two axes, or of one if ranks may have the same elements. Without enough axes
 * or ranks, s is unchanged. */
static void spread_on_grid(spread *s, const shape *whole, int count, bool may_repeat)
{
    const int rows = 2 + draw(count), columns = count / rows, axis = draw(whole->rank);
    const bool two = !may_repeat || chance(50);
    if (columns < 2 || count % rows || (two && whole->rank < 2)) return;
    const bool down = chance(50);
    s->d = (distribution){ axis, s->bounds, down ? 1 : columns, rows };
    random_bounds(s->bounds, rows, whole->size[axis]);
    if (!two) return;
    const int other = (axis + 1 + draw(whole->rank - 1)) % whole->rank;
    s->d.second = (struct second_axis){ other, s->others, down ? rows : 1, columns };
    random_bounds(s->others, columns, whole->size[other]);
}

/* ---- trials ---- */

typedef struct trial {
    const collective *of[RANKS_MOST];
    spread from, to;
    shape whole;
    int ids[RANKS_MOST], count;
    size_t each;
    char *in[RANKS_MOST], *want[RANKS_MOST], *got[RANKS_MOST]; /* local arrays on the host */
    void *device[RANKS_MOST][3];                               /* out, in, scratch */
    bool scratch;                                              /* the step gets its scratch memory */
    bool overlaps; /* step.overlaps. Join the queue after the last step */
} trial;

/* Sums of these numbers are exact; sums of integers may wrap. */
static void random_element(char *p, duet_dtype t, size_t each)
{
    const int x = draw(2001) - 1000;
    switch (t) {
    case DUET_F32: memcpy(p, &(float){ (float)x }, 4); return;
    case DUET_F64: memcpy(p, &(double){ x }, 8); return;
    case DUET_C64: memcpy(p, (float[]){ (float)x, (float)-x }, 8); return;
    case DUET_C128: memcpy(p, (double[]){ x, 2. * x }, 16); return;
    case DUET_BOOL: *p = x & 1; return;
    case DUET_F16:
    case DUET_BF16: memcpy(p, &(uint16_t){ (uint16_t)(0x3c00 + draw(0x400)) }, 2); return;
    default:
        for (size_t i = 0; i < each; i++) p[i] = (char)draw(256);
    }
}

static void add_element(char *sum, const char *x, duet_dtype t)
{
    const size_t parts = dtype_is_complex(t) ? 2 : 1;
    const duet_dtype part = dtype_part(t);
    for (size_t i = 0; i < parts; i++) {
        if (part == DUET_F32) ((float *)sum)[i] += ((const float *)x)[i];
        else if (part == DUET_F64) ((double *)sum)[i] += ((const double *)x)[i];
        else if (dtypes[t].bytes == 8) *(uint64_t *)sum += *(const uint64_t *)x;
        else if (dtypes[t].bytes == 4) *(uint32_t *)sum += *(const uint32_t *)x;
        else *(uint8_t *)sum = (uint8_t)(*(uint8_t *)sum + *(const uint8_t *)x);
    }
}

/* Copies a part of the whole array to a local one. */
static void extract(const trial *t, char *local, const char *whole, const spread *s, int rank)
{
    int64_t first[DUET_RANK_MAX], size[DUET_RANK_MAX], at[DUET_RANK_MAX] = { 0 };
    layout dense, part;
    part_of(&t->whole, s, rank, first, size);
    layout_dense(&part, DUET_F32, t->whole.rank, size);
    layout_dense(&dense, DUET_F32, t->whole.rank, t->whole.size);
    for (int64_t i = 0, n = layout_count(&part); i < n; i++) {
        int64_t place = 0;
        for (int a = 0; a < part.rank; a++) place += (first[a] + at[a]) * dense.stride[a];
        memcpy(local + (size_t)i * t->each, whole + (size_t)place * t->each, t->each);
        for (int a = part.rank - 1; a >= 0 && ++at[a] == size[a]; a--) at[a] = 0;
    }
}

static char *some_memory(int64_t count, size_t each)
{
    char *p = calloc((size_t)count + 1, each);
    if (!p) abort();
    return p;
}

/* Sets the operands, and what the results must be. */
static void fill(trial *t)
{
    const int64_t n = shape_count(&t->whole);
    const collective *c = t->of[0];
    char *whole = some_memory(n, t->each), *sum = some_memory(n, t->each);
    for (int r = 0; r < t->count; r++) {
        for (int64_t i = 0; (r == 0 || c->kind == COLLECTIVE_ADD) && i < n; i++)
            random_element(whole + (size_t)i * t->each, c->type, t->each);
        extract(t, t->in[r], whole, &t->from, r);
        for (int64_t i = 0; i < n; i++)
            if (r == 0) memcpy(sum + (size_t)i * t->each, whole + (size_t)i * t->each, t->each);
            else if (c->kind == COLLECTIVE_ADD)
                add_element(sum + (size_t)i * t->each, whole + (size_t)i * t->each, c->type);
    }
    for (int r = 0; r < t->count; r++) extract(t, t->want[r], sum, &t->to, r);
    free(whole);
    free(sum);
}

/* from and to of *t are set. */
static void make_trial(trial *t, ranks *all, enum collective_kind kind, duet_dtype type, const shape *whole)
{
    t->whole = *whole;
    t->count = all->count;
    t->each = dtypes[type].bytes;
    t->scratch = chance(50);
    for (int r = 0; r < all->count; r++) {
        const collective *c = collective_new(&all->c[r], kind, type, whole, &t->from.d, &t->to.d);
        if (!c) abort();
        t->of[r] = c;
        t->in[r] = some_memory(shape_count(&c->in), t->each);
        t->want[r] = some_memory(shape_count(&c->out), t->each);
        t->got[r] = some_memory(shape_count(&c->out), t->each);
    }
    fill(t);
}

static void free_trial(trial *t)
{
    for (int r = 0; r < t->count; r++) {
        free(t->in[r]);
        free(t->want[r]);
        free(t->got[r]);
    }
}

static const duet_dtype added_types[] = { DUET_F32, DUET_F64, DUET_C64, DUET_C128,
                                          DUET_I64, DUET_I32, DUET_U8,  DUET_U64 };

static inline void random_trial(trial *t, ranks *all)
{
    const enum collective_kind kind = chance(30) ? COLLECTIVE_ADD : COLLECTIVE_MOVE;
    shape whole = { .rank = 1 + draw(3) };
    for (int a = 0; a < whole.rank; a++) whole.size[a] = chance(10) ? draw(3) : 1 + draw(12);
    if (chance(40)) whole.size[draw(whole.rank)] = all->count * (1 + draw(3));
    spread_randomly(&t->from, &whole, kind == COLLECTIVE_ADD ? -1 : draw(whole.rank + 1) - 1, all->count);
    spread_randomly(&t->to, &whole, draw(whole.rank + 1) - 1, all->count);
    if (kind == COLLECTIVE_MOVE && chance(30)) spread_on_grid(&t->from, &whole, all->count, false);
    if (kind == COLLECTIVE_MOVE && chance(30)) spread_on_grid(&t->to, &whole, all->count, true);
    make_trial(t, all, kind,
               kind == COLLECTIVE_ADD ? added_types[draw(8)] : (duet_dtype)draw(DUET_DTYPE_COUNT), &whole);
}

/* ---- steps; these run in the thread of a rank ---- */

static step step_of(const trial *t, int rank)
{
    const collective *c = t->of[rank];
    step s = { .kernel = KERNEL_COLLECTIVE,
               .outs = 1,
               .ins = 1,
               .out = { { .slot = 0 } },
               .in = { { .slot = 1 } },
               .attr.collective = { c->id, c->id },
               .overlaps = t->overlaps,
               .scratch = t->scratch ? 3 : 0 };
    layout_dense(&s.out[0].at, c->type, c->out.rank, c->out.size);
    layout_dense(&s.in[0].at, c->type, c->in.rank, c->in.size);
    return s;
}

static size_t bytes_of(const trial *t, const shape *l) { return (size_t)shape_count(l) * t->each; }

static duet_status upload_operand(trial *t, int rank)
{
    return gpu_machine.upload(DEFAULT_GPU + rank, t->device[rank][1], t->in[rank],
                              bytes_of(t, &t->of[rank]->in), 0);
}

static duet_status open_trial(trial *t, int rank)
{
    const collective *c = t->of[rank];
    const step s = step_of(t, rank);
    void **p = t->device[rank];
    TRY(gpu_machine.alloc(DEFAULT_GPU + rank, bytes_of(t, &c->out), &p[0]));
    TRY(gpu_machine.alloc(DEFAULT_GPU + rank, bytes_of(t, &c->in), &p[1]));
    TRY(gpu_machine.alloc(DEFAULT_GPU + rank, gpu_machine.scratch(&s), &p[2]));
    return upload_operand(t, rank);
}

static duet_status run_trial(trial *t, int rank)
{
    const step s = step_of(t, rank);
    const char *why = gpu_machine.unsupported_reason(&s);
    if (why) return fail(DUET_UNSUPPORTED, "%s", why);
    return gpu_machine.run(&s, &(frame){ t->device[rank], NULL, 0, DEFAULT_GPU + rank, NULL });
}

static duet_status fetch_result(trial *t, int rank)
{
    return gpu_machine.download(DEFAULT_GPU + rank, t->got[rank], t->device[rank][0],
                                bytes_of(t, &t->of[rank]->out), 0);
}

static void close_trial(trial *t, int rank)
{
    for (int i = 0; i < 3; i++) {
        gpu_machine.free(DEFAULT_GPU + rank, t->device[rank][i]);
        t->device[rank][i] = NULL;
    }
}

/* ---- comparing; in the main thread ---- */

static const char *trial_text(const trial *t)
{
    static char text[400];
    static const char *const kinds[] = { "move", "add" };
    const step s = step_of(t, 0);
    char whole[SHAPE_TEXT];
    int n = snprintf(text, sizeof text, "%s %s on %d ranks, axis %d to %d (%s)", kinds[t->of[0]->kind],
                     shape_text(whole, t->of[0]->type, t->whole.rank, t->whole.size), t->count,
                     t->from.d.axis, t->to.d.axis, gpu_machine.algorithm(&s));
    const spread *both[] = { &t->from, &t->to };
    for (int i = 0; i < 2; i++)
        for (int r = 0; both[i]->d.axis >= 0 && r <= t->count && n < 350; r++)
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%d", r ? " " : "; bounds ",
                          (int)both[i]->bounds[r]);
    return text;
}

static bool results_agree(const trial *t)
{
    bool ok = true;
    for (int r = 0; r < t->count; r++)
        ok &= CHECK(!memcmp(t->got[r], t->want[r], bytes_of(t, &t->of[r]->out)),
                    "%s: rank %d has other elements", trial_text(t), r);
    return ok;
}

#endif
