/* buckets.c - small arrays share a collective step: see buckets.h. The arrays become one array of one axis:
 * this rank's parts one after another. */
#include "buckets.h"
#include "dtype.h"
#include "operator_again.h"
#include "status.h"
#include <stdlib.h>

/* A collective step takes some 30 us on GPUs, and some 10 us on the CPU. An array that shares a step is
 * copied, which should take less time. */
static bucket_limits limits = { { 64 << 10, 4 << 20 }, { 256 << 10, 4 << 20 } };

#define TOGETHER 12  /* most arrays in one step: one concatenation has this many operands */
#define MOST     240 /* when this many arrays wait, they are sent */

bucket_limits *bucket_limits_now(void) { return &limits; }

bool bucket_takes(const planner *p, double bytes)
{
    return p->g->ranks > 1 && bytes <= limits.array[p->g->place == DUET_GPU];
}

waiting *bucket_begin(builder *b, uint32_t i)
{
    waiting *w = calloc(1, sizeof *w);
    if (!w) {
        b->value[i] = formula_failed(fail(DUET_NO_MEMORY, "no memory for a formula"));
        return NULL;
    }
    w->node = i;
    w->site = b->site;
    return w;
}

static double array_bytes(const shared_array *p)
{
    return (double)shape_count(&p->whole) * (double)dtypes[p->type].bytes;
}

void bucket_end(builder *b, waiting *w)
{
    *(b->waiting ? &b->last_waiting->next : &b->waiting) = w;
    b->last_waiting = w;
    b->waiting_count += w->count;
    for (int k = 0; k < w->count; k++) b->waiting_bytes += array_bytes(&w->of[k]);
    if (b->waiting_count >= MOST || b->waiting_bytes >= limits.all[b->p->g->place == DUET_GPU])
        buckets_send(b);
}

void buckets_free(builder *b)
{
    for (waiting *w = b->waiting; w; w = b->waiting) {
        b->waiting = w->next;
        for (int k = 0; k < w->count; k++) free(w->of[k].parts);
        free(w->with);
        free(w);
    }
    b->last_waiting = NULL;
    b->waiting_count = 0;
    b->waiting_bytes = 0;
}

/* ---- arrays that go together ---- */

typedef struct bucket {
    shared_array *of[TOGETHER];
    int count;
} bucket;

/* Takes the first array that was not sent, and later ones of the same kind and type. */
static bucket next_bucket(const builder *b)
{
    bucket k = { .count = 0 };
    for (waiting *w = b->waiting; w; w = w->next)
        for (shared_array *p = w->of; p < w->of + w->count && k.count < TOGETHER; p++) {
            if (p->is_sent || (k.count && (p->kind != k.of[0]->kind || p->type != k.of[0]->type))) continue;
            k.of[k.count++] = p;
            p->is_sent = true;
        }
    return k;
}

/* The elements for each index of the first axis. */
static int64_t row_count(const shared_array *p)
{
    int64_t n = 1;
    for (int a = 1; a < p->whole.rank; a++) n *= p->whole.size[a];
    return n;
}

/* The number of elements of an array that a rank has. */
static int64_t part_count(const shared_array *p, int rank)
{
    if (p->kind == COLLECTIVE_ADD) return shape_count(&p->whole);
    return (p->counts[rank + 1] - p->counts[rank]) * row_count(p);
}

static duet_expr flat(const builder *b, duet_expr e, int64_t count)
{
    return duet_reshape_at(e, 1, &count, b->site);
}

static duet_expr whole_shape(const builder *b, duet_expr e, const shared_array *p)
{
    return duet_reshape_at(e, p->whole.rank, p->whole.size, b->site);
}

/* What this rank has of all arrays, one after another. */
static duet_expr own_parts(const builder *b, const bucket *k)
{
    duet_expr all = { 0 };
    for (int i = 0; i < k->count; i++) {
        const duet_expr e = flat(b, k->of[i]->own, part_count(k->of[i], b->c->rank));
        all = i ? duet_append_at(all, e, 0, b->site) : e;
    }
    return all;
}

/* ---- sums ---- */

static void add(builder *b, const bucket *k)
{
    const distribution all = replicated();
    shape whole = { .rank = 1 };
    for (int i = 0; i < k->count; i++) whole.size[0] += shape_count(&k->of[i]->whole);
    const duet_expr sums =
        build_collective(b, COLLECTIVE_ADD, own_parts(b, k), k->of[0]->type, &whole, &all, &all);
    int64_t at = 0;
    for (int i = 0; i < k->count; i++) {
        const int64_t n = shape_count(&k->of[i]->whole);
        k->of[i]->all = whole_shape(b, build_range(b, sums, 0, at, at + n), k->of[i]);
        at += n;
    }
}

/* ---- arrays that are gathered ---- */

/* Sets the parts of each rank. bounds: where the elements of each rank begin in `gathered` */
static void take_parts(const builder *b, const bucket *k, duet_expr gathered, const int64_t *bounds)
{
    const int ranks = b->c->ranks;
    int64_t at[TOGETHER + 1]; /* where the arrays of a rank begin */
    for (int r = 0; r < ranks; r++) {
        at[0] = bounds[r];
        for (int i = 0; i < k->count; i++) {
            shared_array *p = k->of[i];
            shape own = p->whole;
            at[i + 1] = at[i] + part_count(p, r);
            own.size[0] = p->counts[r + 1] - p->counts[r];
            if (!own.size[0]) continue; /* rank r has no part of this array */
            const duet_expr e = build_range(b, gathered, 0, at[i], at[i + 1]);
            p->parts[r] = duet_reshape_at(e, own.rank, own.size, b->site);
        }
    }
}

/* false: no memory */
static bool allocate_parts(const builder *b, const bucket *k)
{
    bool ok = true;
    for (int i = 0; i < k->count; i++) {
        k->of[i]->parts = calloc((size_t)b->c->ranks, sizeof *k->of[i]->parts);
        ok &= k->of[i]->parts != NULL;
    }
    return ok;
}

static void all_failed(const bucket *k)
{
    const duet_expr failed = formula_failed(fail(DUET_NO_MEMORY, "no memory for a formula"));
    for (int i = 0; i < k->count; i++) {
        free(k->of[i]->parts);
        k->of[i]->parts = NULL;
        k->of[i]->all = failed;
    }
}

static void gather(builder *b, const bucket *k)
{
    const int ranks = b->c->ranks;
    distribution from = { 0, bounds_new(&b->own) }, to = replicated();
    if (!allocate_parts(b, k) || !from.bounds) {
        all_failed(k);
        return;
    }
    from.bounds[0] = 0;
    for (int r = 0; r < ranks; r++) {
        from.bounds[r + 1] = from.bounds[r];
        for (int i = 0; i < k->count; i++) from.bounds[r + 1] += part_count(k->of[i], r);
    }
    const shape whole = { .rank = 1, .size = { from.bounds[ranks] } };
    const duet_expr all =
        build_collective(b, COLLECTIVE_MOVE, own_parts(b, k), k->of[0]->type, &whole, &from, &to);
    take_parts(b, k, all, from.bounds);
}

duet_expr shared_array_whole(const builder *b, const shared_array *p)
{
    if (!p->parts) return p->all;
    duet_expr all = { 0 };
    for (int r = 0; r < b->c->ranks; r++) {
        if (p->counts[r] == p->counts[r + 1]) continue;
        all = all.serial ? duet_append_at(all, p->parts[r], 0, b->site) : p->parts[r];
    }
    return all;
}

duet_expr shared_array_index(const builder *b, const shared_array *p, int rank, int64_t k)
{
    if (p->parts) return build_range(b, p->parts[rank], 0, k - p->counts[rank], k - p->counts[rank] + 1);
    return build_range(b, p->all, 0, k, k + 1);
}

/* ---- sending ---- */

static void send_alone(builder *b, shared_array *p)
{
    const distribution all = replicated(), parts = { 0, (int64_t *)p->counts };
    const distribution *from = p->kind == COLLECTIVE_ADD ? &all : &parts;
    p->all = build_collective(b, p->kind, p->own, p->type, &p->whole, from, &all);
}

static void send(builder *b, const bucket *k)
{
    if (k->count == 1) send_alone(b, k->of[0]);
    else if (k->of[0]->kind == COLLECTIVE_ADD) add(b, k);
    else gather(b, k);
}

void buckets_send(builder *b)
{
    const char *site = b->site;
    for (bucket k = next_bucket(b); k.count; k = next_bucket(b)) send(b, &k);
    for (const waiting *w = b->waiting; w; w = w->next) {
        b->site = w->site;
        b->value[w->node] = w->finish(b, w);
    }
    b->site = site;
    buckets_free(b);
}
