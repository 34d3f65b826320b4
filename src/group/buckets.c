/* buckets.c - small arrays share a collective step: see buckets.h. The arrays become one array of one axis:
 * this rank's parts one after another. */
#include "buckets.h"
#include "dtype.h"
#include "operator_again.h"
#include "status.h"
#include <stdlib.h>

/* A collective step takes some 20 us on GPUs, and some 10 us on the CPU. Putting an array into the bucket is
 * a copy of it, which should take less. */
static bucket_limits limits = { { 64 << 10, 4 << 20 }, { 256 << 10, 4 << 20 } };

#define TOGETHER 12 /* arrays in one step: what a rank has of them is one concatenation */

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

static double parcel_bytes(const parcel *p)
{
    return (double)shape_count(&p->whole) * (double)dtypes[p->type].bytes;
}

void bucket_end(builder *b, waiting *w)
{
    waiting **end = &b->waiting;
    while (*end) end = &(*end)->next;
    *end = w;
    for (int k = 0; k < w->count; k++) b->waiting_bytes += parcel_bytes(&w->of[k]);
    if (b->waiting_bytes >= limits.all[b->p->g->place == DUET_GPU]) buckets_send(b);
}

void buckets_free(builder *b)
{
    for (waiting *w = b->waiting; w; w = b->waiting) {
        b->waiting = w->next;
        for (int k = 0; k < w->count; k++) free(w->of[k].parts);
        free(w->with);
        free(w);
    }
    b->waiting_bytes = 0;
}

/* ---- arrays that go together ---- */

typedef struct bucket {
    parcel *of[TOGETHER];
    int count;
} bucket;

/* The first array that was not sent, and those that can go with it. */
static bucket next_bucket(const builder *b)
{
    bucket k = { .count = 0 };
    for (waiting *w = b->waiting; w; w = w->next)
        for (parcel *p = w->of; p < w->of + w->count && k.count < TOGETHER; p++) {
            if (p->is_sent || (k.count && (p->kind != k.of[0]->kind || p->type != k.of[0]->type))) continue;
            k.of[k.count++] = p;
            p->is_sent = true;
        }
    return k;
}

/* The elements for each index of the first axis. */
static int64_t row_count(const parcel *p)
{
    int64_t n = 1;
    for (int a = 1; a < p->whole.rank; a++) n *= p->whole.size[a];
    return n;
}

/* The elements of an array that this rank has. */
static int64_t part_count(const parcel *p, int rank)
{
    if (p->kind == COLLECTIVE_ADD) return shape_count(&p->whole);
    return (p->counts[rank + 1] - p->counts[rank]) * row_count(p);
}

static duet_expr flat(const builder *b, duet_expr e, int64_t count)
{
    return duet_reshape_at(e, 1, &count, b->site);
}

static duet_expr whole_shape(const builder *b, duet_expr e, const parcel *p)
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

static void add_alone(builder *b, parcel *p)
{
    const distribution all = replicated();
    p->all = build_collective(b, COLLECTIVE_ADD, p->own, p->type, &p->whole, &all, &all);
}

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

static void gather_alone(builder *b, parcel *p)
{
    const distribution from = { 0, (int64_t *)p->counts }, to = replicated();
    p->all = build_collective(b, COLLECTIVE_MOVE, p->own, p->type, &p->whole, &from, &to);
}

/* The elements of all arrays that the ranks before this one have. */
static int64_t bound(const bucket *k, int rank)
{
    int64_t n = 0;
    for (int r = 0; r < rank; r++)
        for (int i = 0; i < k->count; i++) n += part_count(k->of[i], r);
    return n;
}

/* Sets what each rank had of array i. */
static void take_parts(const builder *b, const bucket *k, int i, duet_expr gathered)
{
    parcel *p = k->of[i];
    shape own = p->whole;
    p->parts = calloc((size_t)b->c->ranks, sizeof *p->parts);
    if (!p->parts) {
        p->all = formula_failed(fail(DUET_NO_MEMORY, "no memory for a formula"));
        return;
    }
    for (int r = 0; r < b->c->ranks; r++) {
        int64_t at = bound(k, r);
        for (int before = 0; before < i; before++) at += part_count(k->of[before], r);
        own.size[0] = p->counts[r + 1] - p->counts[r];
        const duet_expr e = build_range(b, gathered, 0, at, at + part_count(p, r));
        p->parts[r] = duet_reshape_at(e, own.rank, own.size, b->site);
    }
}

static void gather(builder *b, const bucket *k)
{
    const parcel *first = k->of[0];
    distribution from = { 0, bounds_new(&b->own) }, to = replicated();
    duet_expr all;
    if (from.bounds) {
        for (int r = 0; r <= b->c->ranks; r++) from.bounds[r] = bound(k, r);
        const shape whole = { .rank = 1, .size = { from.bounds[b->c->ranks] } };
        all = build_collective(b, COLLECTIVE_MOVE, own_parts(b, k), first->type, &whole, &from, &to);
    } else {
        all = formula_failed(fail(DUET_NO_MEMORY, "no memory for a formula"));
    }
    for (int i = 0; i < k->count; i++) take_parts(b, k, i, all);
}

duet_expr parcel_whole(const builder *b, const parcel *p)
{
    if (!p->parts) return p->all;
    duet_expr all = p->parts[0];
    for (int r = 1; r < b->c->ranks; r++) all = duet_append_at(all, p->parts[r], 0, b->site);
    return all;
}

duet_expr parcel_index(const builder *b, const parcel *p, int64_t k)
{
    int r = 0;
    if (!p->parts) return build_range(b, p->all, 0, k, k + 1);
    while (p->counts[r + 1] <= k) r++;
    k -= p->counts[r];
    return build_range(b, p->parts[r], 0, k, k + 1);
}

/* ---- sending ---- */

void buckets_send(builder *b)
{
    const char *site = b->site;
    for (bucket k = next_bucket(b); k.count; k = next_bucket(b)) {
        const bool adds = k.of[0]->kind == COLLECTIVE_ADD;
        if (k.count > 1) (adds ? add : gather)(b, &k);
        else (adds ? add_alone : gather_alone)(b, k.of[0]);
    }
    for (const waiting *w = b->waiting; w; w = w->next) {
        b->site = w->site;
        b->value[w->node] = w->finish(b, w);
    }
    b->site = site;
    buckets_free(b);
}
