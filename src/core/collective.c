/* collective.c - which parts of an array each rank sends when its distribution changes. */
#include "communicator.h"
#include "dtype.h"
#include "spin_lock.h"
#include <stdlib.h>
#include <string.h>

/* ---- the table of collectives ---- */

#define TABLE_MAX (1 << 20)
static spin_lock lock; /* of the table */
static const collective **table;
static int table_count, table_capacity, first_free = -1;
static int *next_free;

static bool table_grow(void)
{
    const int capacity = table_capacity ? 2 * table_capacity : 64;
    const collective **more = realloc(table, (size_t)capacity * sizeof *more);
    if (more) table = more;
    int *links = realloc(next_free, (size_t)capacity * sizeof *links);
    if (links) next_free = links;
    if (!more || !links || capacity > TABLE_MAX) return false;
    table_capacity = capacity;
    return true;
}

static int table_add(const collective *x)
{
    int id = -1;
    spin_take(&lock);
    if (first_free >= 0) {
        id = first_free;
        first_free = next_free[id];
    } else if (table_count < table_capacity || table_grow()) {
        id = table_count++;
    }
    if (id >= 0) table[id] = x;
    spin_give(&lock);
    return id;
}

const collective *collective_of(int id)
{
    spin_take(&lock);
    const collective *x = table[id];
    spin_give(&lock);
    return x;
}

/* ---- boxes ---- */

void distribution_part(const distribution *d, const shape *whole, int rank, shape *start, shape *size)
{
    *size = *whole;
    start->rank = whole->rank;
    memset(start->size, 0, sizeof start->size);
    if (d->axis < 0) return;
    const int part = d->parts ? rank / d->step % d->parts : rank;
    start->size[d->axis] = d->bounds[part];
    size->size[d->axis] = d->bounds[part + 1] - d->bounds[part];
    if (!d->second.parts) return;
    const struct second_axis *s = &d->second;
    const int other = rank / s->step % s->parts;
    start->size[s->axis] = s->bounds[other];
    size->size[s->axis] = s->bounds[other + 1] - s->bounds[other];
}

collective_box common_box(const shape *start, const shape *size, const shape *other_start,
                          const shape *other_size, int peer)
{
    collective_box b = { .peer = peer, .count = 1 };
    for (int a = 0; a < start->rank; a++) {
        const int64_t begin = start->size[a], end = begin + size->size[a];
        const int64_t from = other_start->size[a], upto = from + other_size->size[a];
        const int64_t first = begin > from ? begin : from, last = end < upto ? end : upto;
        b.start[a] = first - begin;
        b.size[a] = last > first ? last - first : 0;
        b.count *= b.size[a];
    }
    return b;
}

bool collective_box_at(const collective_box *b, const layout *local, layout *at, int64_t *offset)
{
    *at = *local;
    *offset = 0;
    for (int a = 0; a < local->rank; a++) {
        at->size[a] = b->size[a];
        *offset += b->start[a] * local->stride[a];
    }
    return layout_is_dense(at);
}

/* ---- one collective ---- */

typedef struct rank_part {
    shape start, size;
} rank_part;

static rank_part part_of_rank(const collective *x, const distribution *d, int rank)
{
    rank_part p;
    distribution_part(d, &x->whole, rank, &p.start, &p.size);
    return p;
}

static void find_boxes(collective *x)
{
    const int me = x->c->rank, ranks = x->c->ranks;
    const rank_part in = part_of_rank(x, &x->from, me), out = part_of_rank(x, &x->to, me);
    x->in = in.size;
    x->out = out.size;
    x->kept_in = common_box(&in.start, &in.size, &out.start, &out.size, me);
    x->kept_out = common_box(&out.start, &out.size, &in.start, &in.size, me);
    const bool has_all = x->kind == COLLECTIVE_MOVE && x->from.axis < 0;
    for (int r = 0; r < ranks && !has_all; r++) {
        const rank_part wants = part_of_rank(x, &x->to, r), has = part_of_rank(x, &x->from, r);
        if (r == me) continue;
        x->send[x->sends] = common_box(&in.start, &in.size, &wants.start, &wants.size, r);
        x->receive[x->receives] = common_box(&out.start, &out.size, &has.start, &has.size, r);
        x->send_count += x->send[x->sends].count;
        x->receive_count += x->receive[x->receives].count;
        x->sends += x->send[x->sends].count > 0;
        x->receives += x->receive[x->receives].count > 0;
    }
}

/* The number of bounds of the first axis. */
static size_t bound_count(const distribution *d, int ranks)
{
    return d->axis < 0 ? 0 : (size_t)(d->parts ? d->parts : ranks) + 1;
}

static size_t second_count(const distribution *d)
{
    return d->second.parts ? (size_t)d->second.parts + 1 : 0;
}

/* Replaces bounds by a copy. */
static bool copy_bounds(int64_t **bounds, size_t count)
{
    int64_t *own = count ? malloc(count * sizeof *own) : NULL;
    if (own) memcpy(own, *bounds, count * sizeof *own);
    *bounds = own;
    return own || !count;
}

static bool copy_distribution(distribution *d, int ranks)
{
    const bool first = copy_bounds(&d->bounds, bound_count(d, ranks)),
               second = copy_bounds(&d->second.bounds, second_count(d));
    return first && second;
}

static uint64_t hash_axis(uint64_t hash, int axis, int step, int parts, const int64_t *bounds, size_t count)
{
    hash = hash_step(hash, (uint64_t)(int64_t)axis);
    hash = hash_step(hash, (uint64_t)step << 32 | (uint64_t)parts);
    for (size_t k = 0; k < count; k++) hash = hash_step(hash, (uint64_t)bounds[k]);
    return hash;
}

static uint64_t hash_distribution(uint64_t hash, const distribution *d, int ranks)
{
    const struct second_axis *s = &d->second;
    hash = hash_axis(hash, d->axis, d->step, d->parts, d->bounds, bound_count(d, ranks));
    return hash_axis(hash, s->axis, s->step, s->parts, s->bounds, second_count(d));
}

static uint64_t signature_of(const collective *x)
{
    uint64_t hash = hash_step((uint64_t)x->kind, (uint64_t)x->type);
    hash = hash_step(hash, (uint64_t)x->whole.rank);
    for (int a = 0; a < x->whole.rank; a++) hash = hash_step(hash, (uint64_t)x->whole.size[a]);
    hash = hash_distribution(hash, &x->from, x->c->ranks);
    return hash_distribution(hash, &x->to, x->c->ranks);
}

bool distribution_equal(const distribution *a, const distribution *b, int ranks)
{
    const struct second_axis *s = &a->second, *t = &b->second;
    if (a->axis != b->axis) return false;
    if (a->axis < 0) return true;
    if (a->step != b->step || a->parts != b->parts || s->parts != t->parts) return false;
    if (memcmp(a->bounds, b->bounds, bound_count(a, ranks) * sizeof *a->bounds)) return false;
    return !s->parts || (s->axis == t->axis && s->step == t->step &&
                         !memcmp(s->bounds, t->bounds, second_count(a) * sizeof *s->bounds));
}

static void distribution_free(distribution *d)
{
    free(d->bounds);
    free(d->second.bounds);
}

static void collective_free(collective *x)
{
    distribution_free(&x->from);
    distribution_free(&x->to);
    free(x->send);
    free(x->receive);
    free(x);
}

void collectives_free(communicator *c)
{
    for (collective *x = c->collectives; x; x = c->collectives) {
        c->collectives = x->next;
        spin_take(&lock);
        table[x->id] = NULL;
        next_free[x->id] = first_free;
        first_free = x->id;
        spin_give(&lock);
        collective_free(x);
    }
}

/* ADD to all ranks: the array is used as a 1-d array. Each rank adds one part of it, and sends the sums to
 * all. */
static bool add_in_parts(collective *x)
{
    int64_t *bounds = malloc(((size_t)x->c->ranks + 1) * sizeof *bounds);
    if (!bounds) return false;
    const shape flat = { 1, { shape_count(&x->whole) } };
    const distribution parts = { 0, bounds }, all = replicated();
    for (int r = 0; r <= x->c->ranks; r++) bounds[r] = part_first(flat.size[0], x->c->ranks, r);
    x->scatter = collective_new(x->c, COLLECTIVE_ADD, x->type, &flat, &all, &parts);
    x->gather = collective_new(x->c, COLLECTIVE_MOVE, x->type, &flat, &parts, &all);
    free(bounds);
    return x->scatter && x->gather;
}

static bool fill(collective *x)
{
    const size_t ranks = (size_t)x->c->ranks;
    const bool has_from = copy_distribution(&x->from, x->c->ranks),
               has_to = copy_distribution(&x->to, x->c->ranks);
    x->send = calloc(ranks, sizeof *x->send);
    x->receive = calloc(ranks, sizeof *x->receive);
    if (!has_from || !has_to || !x->send || !x->receive) return false;
    x->signature = signature_of(x);
    if (x->kind == COLLECTIVE_ADD && x->to.axis < 0) {
        x->in = x->out = x->whole;
        if (!add_in_parts(x)) return false;
    } else {
        find_boxes(x);
    }
    return (x->id = table_add(x)) >= 0;
}

static const collective *find_equal(const collective *like)
{
    for (const collective *x = like->c->collectives; x; x = x->next)
        if (x->kind == like->kind && x->type == like->type && shape_equal(&x->whole, &like->whole) &&
            distribution_equal(&x->from, &like->from, like->c->ranks) &&
            distribution_equal(&x->to, &like->to, like->c->ranks))
            return x;
    return NULL;
}

const collective *collective_new(communicator *c, enum collective_kind kind, duet_dtype type,
                                 const shape *whole, const distribution *from, const distribution *to)
{
    const collective like = { .kind = kind, .c = c, .type = type, .whole = *whole, .from = *from, .to = *to };
    const collective *equal = find_equal(&like);
    if (equal) return equal;
    collective *x = malloc(sizeof *x);
    if (!x) return NULL;
    *x = like;
    if (!fill(x)) {
        collective_free(x);
        return NULL;
    }
    x->next = c->collectives;
    c->collectives = x;
    return x;
}

int64_t collective_bytes(const collective *x)
{
    if (x->scatter) return collective_bytes(x->scatter) + collective_bytes(x->gather);
    return x->send_count * (int64_t)dtypes[x->type].bytes;
}
