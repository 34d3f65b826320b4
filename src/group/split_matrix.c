/* split_matrix.c - matrices on a group: makes them, and copies their elements to and from the host. */
#include "split_matrix.h"
#include "dtype.h"
#include <stdlib.h>
#include <string.h>

/* ---- elements ---- */

/* The elements of a part are `runs` runs of the whole array. Each has `run` bytes; they begin `apart` bytes
 * apart. */
typedef struct part_place {
    size_t first, run, apart;
    int64_t runs;
} part_place;

static part_place place_of(const split *s, int rank)
{
    const size_t size = dtypes[s->type].bytes;
    part_place p = { .runs = 1, .run = size };
    const int a = s->at.axis;
    for (int d = 0; d < s->whole.rank; d++) {
        if (d < a) p.runs *= s->whole.size[d];
        else if (d > a) p.run *= (size_t)s->whole.size[d];
    }
    if (a < 0) return p;
    p.first = (size_t)s->at.bounds[rank] * p.run;
    p.apart = (size_t)s->whole.size[a] * p.run;
    p.run *= (size_t)(s->at.bounds[rank + 1] - s->at.bounds[rank]);
    return p;
}

static duet_status gather_near(split *s, void *to)
{
    const int queue = thread_get()->queue;
    for (int i = 0; i < (s->at.axis < 0 ? 1 : s->parts); i++) {
        const part_place at = place_of(s, s->group->first + i);
        void *from;
        TRY(matrix_open(s->part[i], HOST, READ, queue, &from));
        for (int64_t r = 0; r < at.runs && at.run; r++)
            memcpy((char *)to + at.first + (size_t)r * at.apart, (char *)from + (size_t)r * at.run, at.run);
    }
    return DUET_OK;
}

/* Parts of other processes are needed, too. */
static duet_status gather_far(split *s, void *to, duet_status room)
{
    communicator *c = &s->group->comm[0];
    const distribution all = replicated();
    void *from = NULL;
    step move = { .kernel = KERNEL_COLLECTIVE, .outs = 1, .ins = 1 };
    duet_status st = room;
    if (st == DUET_OK) st = matrix_open(s->part[0], HOST, READ, thread_get()->queue, &from);
    const collective *x = collective_new(c, COLLECTIVE_MOVE, s->type, &s->whole, &s->at, &all);
    if (st == DUET_OK && !x) st = fail(DUET_NO_MEMORY, "no memory to gather a matrix");
    if (st != DUET_OK) return communicator_agree(c, st, 0);
    move.attr.collective = (collective_attributes){ x->id, -1 };
    layout_dense(&move.in[0].at, s->type, x->in.rank, x->in.size);
    layout_dense(&move.out[0].at, s->type, x->out.rank, x->out.size);
    move.in[0].slot = 1;
    return device_machine(HOST)->run(&move, &(frame){ .data = (void *[]){ to, from } });
}

static duet_status gather(split *s, void *to, duet_status room)
{
    const bool is_near = s->at.axis < 0 || s->group->near == s->group->ranks;
    pthread_mutex_lock(&s->group->lock);
    duet_status st = room;
    if (!is_near) st = gather_far(s, to, room);
    else if (room == DUET_OK) st = gather_near(s, to);
    pthread_mutex_unlock(&s->group->lock);
    return st;
}

static duet_status scatter(split *s, const void *from)
{
    const int queue = thread_get()->queue;
    for (int i = 0; i < s->parts; i++) {
        const part_place at = place_of(s, s->group->first + i);
        void *to;
        TRY(matrix_open(s->part[i], HOST, OVERWRITE, queue, &to));
        for (int64_t r = 0; r < at.runs && at.run; r++)
            memcpy((char *)to + (size_t)r * at.run, (const char *)from + at.first + (size_t)r * at.apart,
                   at.run);
        matrix_wrote(s->part[i], HOST, queue);
    }
    return DUET_OK;
}

/* ---- new matrices ---- */

static void split_end(split *s)
{
    for (int i = 0; i < s->parts && s->part; i++) duet_free(&s->part[i]);
    pthread_mutex_destroy(&s->lock);
    if (s->group) group_release(s->group);
    free(s->part);
    free(s->at.bounds);
    free(s);
}

static bool make_parts(split *s)
{
    for (int i = 0; i < s->parts; i++) {
        shape start, size;
        distribution_part(&s->at, &s->whole, s->group->first + i, &start, &size);
        s->part[i] = duet_new_shape(s->type, size.rank, size.size);
        if (!s->part[i]) return false;
    }
    return true;
}

duet_matrix *split_new(duet_group *g, duet_dtype type, const shape *whole, const distribution *at)
{
    const size_t bounds = ((size_t)g->ranks + 1) * sizeof *at->bounds;
    split *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (split){ .whole = *whole, .type = type, .parts = g->near, .valid = true };
    s->gather = gather;
    s->scatter = scatter;
    s->end = split_end;
    s->has_parts = split_has_parts;
    s->view_part = split_part;
    s->busy = &g->lock;
    s->comm = g->comm;
    pthread_mutex_init(&s->lock, NULL);
    s->part = calloc((size_t)g->near, sizeof(duet_matrix *));
    s->at = (distribution){ at->axis, at->axis < 0 ? NULL : malloc(bounds) };
    s->group = g;
    __atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED);
    if (s->at.bounds) memcpy(s->at.bounds, at->bounds, bounds);
    duet_matrix *m = NULL;
    if (s->part && (s->at.bounds || at->axis < 0) && make_parts(s)) m = matrix_of_split(s);
    if (!m) split_end(s);
    return m;
}

static duet_matrix *new_matrix(const char *who, duet_group *g, duet_dtype type, int axis, int rank,
                               const int64_t *size)
{
    int64_t bounds[RANKS_MAX + 1], *at = bounds;
    if (group_check(who, g) != DUET_OK || shape_check(who, type, rank, size) != DUET_OK) return NULL;
    if (axis >= rank || axis < -1) {
        fail(DUET_BAD_ARGUMENT, "%s: axis (%d) must be from 0 to %d", who, axis, rank - 1);
        return NULL;
    }
    if (g->ranks > RANKS_MAX) at = malloc(((size_t)g->ranks + 1) * sizeof *at);
    shape whole = { .rank = rank };
    if (rank) memcpy(whole.size, size, (size_t)rank * sizeof *size);
    for (int r = 0; r <= g->ranks && at && axis >= 0; r++) at[r] = matrix_part_first(size[axis], g->ranks, r);
    duet_matrix *m = at ? split_new(g, type, &whole, &(distribution){ axis, at }) : NULL;
    if (!m) fail(DUET_NO_MEMORY, "%s: no memory", who);
    if (at != bounds) free(at);
    return m;
}

duet_matrix *(duet_new_split_shape)(duet_group *g, duet_dtype type, int axis, int rank, const int64_t *size)
{
    if (axis >= 0) return new_matrix("duet_new_split", g, type, axis, rank, size);
    fail(DUET_BAD_ARGUMENT, "duet_new_split: axis (%d) must not be negative", axis);
    return NULL;
}

duet_matrix *(duet_new_replicated_shape)(duet_group *g, duet_dtype type, int rank, const int64_t *size)
{
    return new_matrix("duet_new_replicated", g, type, -1, rank, size);
}

/* ---- facts ---- */

duet_group *duet_group_of(const duet_matrix *m)
{
    return matrix_lives(m) && m->storage->split ? m->storage->split->group : NULL;
}

int duet_split_axis(const duet_matrix *m)
{
    const duet_group *g = duet_group_of(m);
    if (!g) return -1;
    distribution at = { -1, malloc(((size_t)g->ranks + 1) * sizeof *at.bounds) };
    int64_t *bounds = at.bounds;
    const bool is = bounds && split_distribution(m, &at);
    free(bounds);
    return is ? at.axis : -1;
}

duet_status duet_split_part(const duet_matrix *m, int rank, int64_t *first, int64_t *count)
{
    const duet_group *g = duet_group_of(m);
    if (!g || !first || !count)
        return fail(DUET_BAD_ARGUMENT,
                    "duet_split_part: m must be a matrix on a group, and first and count not NULL");
    if (rank < 0 || rank >= g->ranks)
        return fail(DUET_BAD_ARGUMENT, "duet_split_part: rank (%d) must be from 0 to %d", rank, g->ranks - 1);
    distribution at = { -1, malloc(((size_t)g->ranks + 1) * sizeof *at.bounds) };
    if (!at.bounds) return fail(DUET_NO_MEMORY, "duet_split_part: no memory");
    int64_t *bounds = at.bounds;
    const bool is = split_distribution(m, &at);
    *first = is && at.axis >= 0 ? bounds[rank] : 0;
    *count = is && at.axis >= 0 ? bounds[rank + 1] - bounds[rank] : m->count;
    free(bounds);
    if (is) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "duet_split_part: the elements of this view are not split along one axis");
}
