/* stream_policy.c - whether a statement is streamed, and in parts of how many rows: by what fits on the device, and by what copies and steps
 * are expected to take. */
#include "stream_policy.h"
#include "clock.h"
#include "cost.h"
#include "deferred.h"
#include "dtype.h"
#include "plan_operands.h"
#include "pool.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <math.h>

#define SETS 3 /* parts that are on the device at once */
#define FREE_ROOM                                                                                            \
    ((size_t)64                                                                                              \
     << 20) /* who needs less beside what the pool keeps does not ask the machine how much it has */
#define TURN                                                                                                 \
    20e-6 /* seconds that a turn takes beside its copies and steps: three waits, and what is idle meanwhile */
static size_t least = (size_t)1 << 20;

void stream_from(size_t bytes) { least = bytes; }

/* ---- what fits ---- */

static size_t bytes_missing(const statement *s, const plan *p, int i)
{
    const storage *b = matrices_at(s, p, i)->bits;
    return storage_has_home(b, DEVICE) || matrices_came_before(s, p, i, false) ? 0 : b->bytes;
}

static bool fits(const statement *s, const plan *p, size_t *room)
{
    size_t need = 0;
    for (int i = 0; i < matrices_count(s, p); i++) need += bytes_missing(s, p, i);
    for (int i = 0; i < p->temps; i++) need += p->temp[i];
    *room = SIZE_MAX;
    if (!need) return true;
    const duet_memory m = duet_memory_of(DUET_GPU);
    if (!m.limit && need <= m.cached + FREE_ROOM) return true;
    *room = pool_room(DEVICE);
    return need <= *room;
}

/* ---- parts of how many rows ---- */

/* What goes to and fro: in all, and of it what lies in pinned memory. */
typedef struct load {
    size_t up, down, up_pinned, down_pinned;
    size_t whole;          /* what must be on the device as a whole, and is not */
    size_t temps;          /* of all rows */
    double seconds, start; /* of all steps; of as many that do hardly anything */
} load;

static bool is_pinned(const duet_matrix *m) { return __atomic_load_n(&m->bits->pinned, __ATOMIC_RELAXED); }

static void add_leaf(load *l, const statement *s, const plan *p, int i)
{
    const duet_matrix *m = matrices_at(s, p, i);
    const bool there = storage_current(m->bits) & 1 << DEVICE;
    if (p->cut->part[p->leaves[i - s->count].node] != PART_CUT) l->whole += bytes_missing(s, p, i);
    else if (!there) *(is_pinned(m) ? &l->up_pinned : &l->up) += rows_bytes(m, p->cut->length);
}

static load load_of(const statement *s, const plan *p)
{
    load l = { .seconds = plan_seconds(p), .start = p->count * cost_at(costs_now(DEVICE), COST_pass, 0) };
    for (int i = 0; i < p->temps; i++) l.temps += p->temp[i];
    for (int k = 0; k < s->count; k++)
        *(is_pinned(s->to[k].m) ? &l.down_pinned : &l.down) += rows_bytes(s->to[k].m, p->cut->length);
    for (int i = s->count; i < matrices_count(s, p); i++) add_leaf(&l, s, p, i);
    return l;
}

/* In 1 / parts of the rows. */
static size_t bytes_of(const load *l, int64_t parts)
{
    const size_t each = SETS * (l->up + l->down + l->up_pinned + l->down_pinned) + l->temps;
    return each / (size_t)parts + l->whole;
}

/* Beside them steps need workspaces, and blocks are rounded up. */
static bool has_room(const load *l, int64_t parts, size_t room)
{
    return bytes_of(l, parts) <= room - room / 4;
}

static double seconds_of(const load *l, int64_t parts)
{
    const size_t n = (size_t)parts;
    const double up = cost_of_move(l->up / n, DEVICE, false) + cost_of_move(l->up_pinned / n, DEVICE, true);
    const double down = cost_of_move(l->down / n, HOST, false) + cost_of_move(l->down_pinned / n, HOST, true);
    const double work = fmax(l->seconds / (double)parts, l->start);
    const double turns = (double)(parts - 1) * fmax(up, fmax(work, down)) + (double)(parts + 2) * TURN;
    return up + work + down + turns + cost_of_move(l->whole, DEVICE, false);
}

/* Powers of two of parts: the best of those that fit; 0: none does. */
static int64_t best_parts(const load *l, int64_t length, size_t room)
{
    int64_t best = 0;
    for (int64_t parts = 2; parts <= length; parts *= 2)
        if (has_room(l, parts, room) && (!best || seconds_of(l, parts) < seconds_of(l, best))) best = parts;
    return best || !has_room(l, length, room) ? best : length;
}

/* Whole tiles of products, where there are many of them. */
#define TILE 128
static int64_t rows_in(int64_t length, int64_t parts)
{
    const int64_t rows = (length + parts - 1) / parts;
    return rows < 8 * TILE ? rows : rows / TILE * TILE;
}

/* Without it the statement goes its way as a whole: that is no error yet. */
static plan *plan_quietly(const statement *s, const plan *whole, int64_t rows)
{
    error_text before;
    error_keep(&before);
    plan *p = stream_plan(s, whole->machine, whole->cut->length, rows, whole->cut->part);
    if (!p) error_put_back(&before);
    return p;
}

/* *p and *seconds of the parts, where there is a way: the plan that was made for the last ones, if it does as well. */
static void choose_rows(const statement *s, const plan **p, const load *l, size_t room, double *seconds)
{
    cut *c = (*p)->cut;
    const int64_t parts = best_parts(l, c->length, room),
                  last = c->chosen ? stream_parts(c->chosen->stream) : 0;
    if (!parts) return;
    if (!last || !has_room(l, last, room) || seconds_of(l, last) > 1.1 * seconds_of(l, parts)) {
        plan_free(c->chosen);
        c->chosen = plan_quietly(s, *p, rows_in(c->length, parts));
    }
    if (c->chosen) {
        *seconds = seconds_of(l, parts);
        *p = c->chosen;
    }
}

/* ---- whether ---- */

/* Does the host want every result? It looked at the last ones, and what is pinned has gone to and fro before. Then their way down is to be thought
 * of as well. */
static bool all_come_down(const statement *s)
{
    for (int k = 0; k < s->count; k++)
        if (!is_pinned(s->to[k].m) || !matrix_seen(s->to[k].m)) return false;
    return true;
}

static bool is_sooner(const statement *s, const load *l, size_t room, double whole, int64_t length)
{
    if (reproducible() || l->up + l->up_pinned == 0 || !all_come_down(s)) return false;
    const int64_t parts = best_parts(l, length, room);
    return parts && seconds_of(l, parts) < whole + cost_of_move(l->down_pinned, HOST, true);
}

/* What fits stays whole, unless whole, the seconds that this would take, is longer; INFINITY is not asked. */
static duet_status weigh(const statement *s, const plan **p, double whole, double *seconds)
{
    size_t room;
    const bool goes = fits(s, *p, &room);
    if (goes && (whole == INFINITY || !all_come_down(s))) return DUET_OK;
    if (!cut_of(*p, s)) return fail(DUET_NO_MEMORY, "no memory to cut a formula of %u parts", s->f->count);
    const int64_t length = (*p)->cut->length;
    if (!goes) *seconds = INFINITY;
    if (!length) return DUET_OK;
    const load l = load_of(s, *p);
    if (goes && !is_sooner(s, &l, room, whole, length)) return DUET_OK;
    choose_rows(s, p, &l, room, seconds);
    return DUET_OK;
}

duet_status stream_weigh(const statement *s, const plan **p, double *seconds)
{
    return (*p)->bytes < least ? DUET_OK : weigh(s, p, *seconds, seconds);
}

/* What its elements took to go up has been missed, up to what the move of all that it shares takes; unless that does not fit. */
static void miss_rows(const duet_matrix *m)
{
    const double move = matrix_move_cost(m, DEVICE), left = move - matrix_missed(m);
    const double share =
        (double)layout_count(&m->at) * (double)dtypes[m->at.type].bytes / ((double)m->bits->bytes + 1);
    if (left > 0 && m->bits->bytes <= pool_room(DEVICE)) matrix_miss(m, fmin(left, move * fmin(share, 1)));
}

void stream_learn(const statement *s, const plan *p)
{
    for (int k = 0; k < s->count && (p->stream || p->bytes >= least); k++) matrix_unseen(s->to[k].m);
    for (int i = s->count; i < matrices_count(s, p) && p->stream; i++)
        if (p->stream->part[p->leaves[i - s->count].node] == PART_CUT) miss_rows(matrices_at(s, p, i));
}

const plan *stream_alternative(const statement *s, const plan *p)
{
    double seconds = 0;
    const plan *part = p;
    if (p->bytes < least || p->stream || !s->f->words) return NULL;
    if (!cut_of(p, s) || !p->cut->length) return NULL;
    const load l = load_of(s, p);
    choose_rows(s, &part, &l, pool_room(DEVICE), &seconds);
    return part->stream ? part : NULL;
}
