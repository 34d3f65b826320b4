/* stream_policy.c - decides whether a statement is streamed, and how many rows a part has. It considers
 * the free memory of the device, and the expected times of copies and steps. */
#include "stream_policy.h"
#include "clock.h"
#include "cost.h"
#include "deferred.h"
#include "dtype.h"
#include "eviction.h"
#include "plan_operands.h"
#include "pool.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <math.h>

#define PARTS_IN_FLIGHT 3 /* parts that are on the device at once */

/* A statement that needs less than this, besides the pool's cached blocks, does not query the free
 * memory. */
#define SPARE_BYTES ((size_t)64 << 20)

/* Seconds per part, besides its copies and steps: three waits, and idle time between them. */
#define PART_OVERHEAD 20e-6

/* Smaller statements are not streamed. */
static size_t min_bytes = (size_t)1 << 20;

void stream_from(size_t bytes) { min_bytes = bytes; }

/* ---- the free memory of the device ---- */

static size_t bytes_missing(const statement *s, const plan *p, int i)
{
    const storage *b = matrices_at(s, p, i)->storage;
    if (storage_has_buffer(b, p->device) || matrices_came_before(s, p, i, false)) return 0;
    return b->bytes;
}

/* The memory of other matrices. */
static size_t evictable(const statement *s, const plan *p)
{
    const size_t all = memory_evictable(p->device);
    size_t own = 0;
    for (int i = 0; i < matrices_count(s, p) && own < all; i++) {
        const storage *b = matrices_at(s, p, i)->storage;
        if (storage_has_buffer(b, p->device) && !matrices_came_before(s, p, i, false)) own += b->bytes;
    }
    return own < all ? all - own : 0;
}

/* The memory that is left, and that of other matrices. */
static size_t room_without_others(const statement *s, const plan *p)
{
    const size_t room = pool_room(p->device), others = evictable(s, p);
    return others < SIZE_MAX - room ? room + others : SIZE_MAX;
}

static bool fits(const statement *s, const plan *p, size_t *available)
{
    size_t need = 0;
    for (int i = 0; i < matrices_count(s, p); i++) need += bytes_missing(s, p, i);
    for (int i = 0; i < p->temps; i++) need += p->temp[i];
    *available = SIZE_MAX;
    if (!need) return true;
    const duet_memory m = pool_memory(p->device);
    if (!m.limit && need <= m.cached + SPARE_BYTES) return true;
    *available = pool_room(p->device);
    if (need <= *available) return true;
    *available = room_without_others(s, p);
    return need <= *available;
}

/* ---- the number of rows of a part ---- */

/* Bytes to copy: up from pageable and from pinned memory, and down. */
typedef struct traffic {
    size_t up, down, up_pinned, down_pinned;
    size_t replicated;     /* operands that are needed completely, and are not on the device */
    size_t temps;          /* bytes of temporaries of all rows */
    double seconds, start; /* of all steps; and the same number of steps that do almost nothing */
    int device;
} traffic;

static bool is_pinned(const duet_matrix *m) { return storage_is_pinned(m->storage); }

static void add_leaf(traffic *l, const statement *s, const plan *p, int i)
{
    const duet_matrix *m = matrices_at(s, p, i);
    const bool there = storage_valid_on(m->storage, p->device);
    if (p->partition->part[p->leaves[i - s->count].node] != PART_SPLIT)
        l->replicated += bytes_missing(s, p, i);
    else if (!there) *(is_pinned(m) ? &l->up_pinned : &l->up) += rows_bytes(m, p->partition->length);
}

static traffic traffic_of(const statement *s, const plan *p)
{
    traffic l = { .device = p->device,
                  .seconds = plan_seconds(p),
                  .start = p->count * cost_at(costs_now(p->device), COST_pass, 0) };
    for (int i = 0; i < p->temps; i++) l.temps += p->temp[i];
    for (int k = 0; k < s->count; k++)
        *(is_pinned(s->to[k].m) ? &l.down_pinned : &l.down) += rows_bytes(s->to[k].m, p->partition->length);
    for (int i = s->count; i < matrices_count(s, p); i++) add_leaf(&l, s, p, i);
    return l;
}

/* The device memory needed if the rows are split into this many parts. */
static size_t bytes_of(const traffic *l, int64_t parts)
{
    const size_t each = PARTS_IN_FLIGHT * (l->up + l->down + l->up_pinned + l->down_pinned) + l->temps;
    return each / (size_t)parts + l->replicated;
}

/* A quarter is left for workspaces and for rounding up the blocks. */
static bool fits_in_parts(const traffic *l, int64_t parts, size_t available)
{
    return bytes_of(l, parts) <= available - available / 4;
}

static double seconds_of(const traffic *l, int64_t parts)
{
    const size_t n = (size_t)parts;
    const double up =
        cost_of_move(l->up / n, l->device, false) + cost_of_move(l->up_pinned / n, l->device, true);
    const double down = cost_of_move(l->down / n, HOST, false) + cost_of_move(l->down_pinned / n, HOST, true);
    const double work = fmax(l->seconds / (double)parts, l->start);
    const double rounds =
        (double)(parts - 1) * fmax(up, fmax(work, down)) + (double)(parts + 2) * PART_OVERHEAD;
    return up + work + down + rounds + cost_of_move(l->replicated, l->device, false);
}

/* The best power of two of parts among those that fit; 0: none fits. */
static int64_t best_parts(const traffic *l, int64_t length, size_t available)
{
    int64_t best = 0;
    for (int64_t parts = 2; parts <= length; parts *= 2)
        if (fits_in_parts(l, parts, available) && (!best || seconds_of(l, parts) < seconds_of(l, best)))
            best = parts;
    if (best || !fits_in_parts(l, length, available)) return best;
    return length;
}

/* If a part has many rows, a multiple of the tile size of products. */
#define TILE 128
static int64_t rows_in(int64_t length, int64_t parts)
{
    const int64_t rows = (length + parts - 1) / parts;
    if (rows < 8 * TILE) return rows;
    return rows / TILE * TILE;
}

/* The plan for parts of this many rows. A failure is not an error: the statement can then run unsplit. Plans
 * of a list of statements may still be in use, so none is freed before the unsplit plan is. */
static plan *plan_of_parts(const statement *s, const plan *unsplit, int64_t rows)
{
    partition *c = unsplit->partition;
    error_text before;
    for (plan *p = c->plans; p; p = p->next)
        if (p->stream->rows == rows) return p;
    error_keep(&before);
    plan *p = stream_plan(s, unsplit->device, c->length, rows, c->part);
    if (!p) {
        error_put_back(&before);
        return NULL;
    }
    plan_enter(p);
    p->next = c->plans;
    return c->plans = p;
}

/* Set *p and *seconds to a streamed plan, if there is one. The plan that was chosen last is kept if
 * it is about as good. */
static void choose_rows(const statement *s, const plan **p, const traffic *l, size_t available,
                        double *seconds)
{
    partition *c = (*p)->partition;
    const int64_t parts = best_parts(l, c->length, available),
                  last = c->chosen ? stream_parts(c->chosen->stream) : 0;
    if (!parts) return;
    if (!last || !fits_in_parts(l, last, available) || seconds_of(l, last) > 1.1 * seconds_of(l, parts))
        c->chosen = plan_of_parts(s, *p, rows_in(c->length, parts));
    if (c->chosen) {
        *seconds = seconds_of(l, parts);
        *p = c->chosen;
    }
}

/* ---- the decision ---- */

/* Does the host need all results? It has read the previous ones, and they are in pinned memory, so
 * they have been copied before. Then the copies of the results count, too. */
static bool all_come_down(const statement *s)
{
    for (int k = 0; k < s->count; k++)
        if (!is_pinned(s->to[k].m) || !matrix_seen(s->to[k].m)) return false;
    return true;
}

static bool is_faster(const statement *s, const traffic *l, size_t available, double unsplit, int64_t length)
{
    if (reproducible() || l->up + l->up_pinned == 0 || !all_come_down(s)) return false;
    const int64_t parts = best_parts(l, length, available);
    return parts && seconds_of(l, parts) < unsplit + cost_of_move(l->down_pinned, HOST, true);
}

/* A statement that does not fit and cannot be streamed may compute values again. */
static duet_status compute_again(const statement *s, const plan **p, size_t available)
{
    size_t operands = 0;
    for (int i = 0; i < matrices_count(s, *p); i++) operands += bytes_missing(s, *p, i);
    return operands < available ? plan_with_less(s, p, available - operands) : DUET_OK;
}

static duet_status choose_less(const statement *s, const plan **p, size_t available, double unsplit,
                               double *seconds)
{
    const plan *whole = *p;
    TRY(compute_again(s, p, available));
    if (*p != whole) *seconds = unsplit + plan_seconds(*p) - plan_seconds(whole);
    return DUET_OK;
}

/* A statement that fits is streamed only if that is faster than `unsplit` seconds. INFINITY: do not
 * compare. */
static duet_status choose(const statement *s, const plan **p, double unsplit, double *seconds)
{
    size_t available;
    const bool goes = fits(s, *p, &available);
    if (goes && (unsplit == INFINITY || !all_come_down(s))) return DUET_OK;
    if (!partition_of(*p, s))
        return fail(DUET_NO_MEMORY, "no host memory to partition a formula of %u nodes", s->f->count);
    const int64_t length = (*p)->partition->length;
    if (!goes) *seconds = INFINITY;
    if (length) {
        const traffic l = traffic_of(s, *p);
        if (goes && !is_faster(s, &l, available, unsplit, length)) return DUET_OK;
        choose_rows(s, p, &l, available, seconds);
    }
    return goes || (*p)->stream ? DUET_OK : choose_less(s, p, available, unsplit, seconds);
}

duet_status stream_choose(const statement *s, const plan **p, double *seconds)
{
    if ((*p)->bytes < min_bytes) return DUET_OK;
    return choose(s, p, *seconds, seconds);
}

duet_status stream_fit_host(const statement *s, const plan **p)
{
    if ((*p)->temp_bytes < min_bytes || !pool_memory(HOST).limit) return DUET_OK;
    return compute_again(s, p, pool_room(HOST));
}

/* Adds the cost of uploading the rows of one statement to the accrued cost of the matrix, up to the
 * cost of copying its complete storage. Does nothing if the storage does not fit in GPU memory. */
static void accrue_rows(const duet_matrix *m, int device)
{
    const double move = matrix_move_cost(m, device), left = move - matrix_accrued_cost(m);
    const double share =
        (double)layout_count(&m->at) * (double)dtypes[m->at.type].bytes / ((double)m->storage->bytes + 1);
    if (left > 0 && m->storage->bytes <= pool_room(device))
        matrix_accrue_cost(m, fmin(left, move * fmin(share, 1)));
}

void stream_learn(const statement *s, const plan *p)
{
    for (int k = 0; k < s->count && (p->stream || p->bytes >= min_bytes); k++) matrix_unseen(s->to[k].m);
    for (int i = s->count; i < matrices_count(s, p) && p->stream; i++)
        if (p->stream->part[p->leaves[i - s->count].node] == PART_SPLIT)
            accrue_rows(matrices_at(s, p, i), p->device);
}

const plan *stream_choose_less(const statement *s, const plan *p)
{
    double seconds = 0;
    const plan *other = p;
    if (p->bytes < min_bytes || p->stream || !s->f->words || !partition_of(p, s)) return NULL;
    const size_t available = room_without_others(s, p);
    if (p->partition->length) {
        const traffic l = traffic_of(s, p);
        choose_rows(s, &other, &l, available, &seconds);
    }
    if (!other->stream && compute_again(s, &other, available) != DUET_OK) return NULL;
    return other == p ? NULL : other;
}
