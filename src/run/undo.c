/* undo.c - saves the elements of destinations, and restores them. On the host they are copied to a
 * dense array, on a GPU by a plan of one step. */
#include "undo.h"
#include "deferred.h"
#include "dtype.h"
#include "execute.h"
#include "matrix.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <stdlib.h>
#include <string.h>

/* A statement that copies a matrix. The statement points to other members, so the struct must not be
 * moved. */
typedef struct copying {
    node leaf;
    formula f;
    target to;
    statement s;
    plan *p;
} copying;

/* Elements on a GPU. */
typedef struct gpu_copy {
    duet_matrix *m;
    copying back;
} gpu_copy;

typedef struct saved {
    struct saved *before;
    const duet_matrix *m;
    struct lost_part *lost; /* parts that overlap m */
    bool all_lost;          /* there was nothing to save */
    bool row_major;         /* the elements follow in this order; otherwise in that of the memory of m */
    gpu_copy *gpu;          /* NULL: the elements follow */
    char elements[];
} saved;

/* ---- on the host ---- */

enum direction { TO_ARRAY, TO_MATRIX };

static char *copy_run(char *array, char *matrix, size_t bytes, enum direction way)
{
    if (way == TO_ARRAY) memcpy(array, matrix, bytes);
    else memcpy(matrix, array, bytes);
    return array + bytes;
}

static char *copy_one_by_one(char *array, char *matrix, int64_t count, int64_t stride, size_t bytes,
                             enum direction way)
{
    for (int64_t i = 0; i < count; i++) array = copy_run(array, matrix + i * stride, bytes, way);
    return array;
}

/* Copies the elements of the axes from `axis` on. Returns the end of the array. */
static char *copy_axes(char *array, char *matrix, const layout *at, int axis, enum direction way)
{
    const size_t bytes = dtypes[at->type].bytes;
    if (axis == at->rank) return copy_run(array, matrix, bytes, way);
    const int64_t count = at->size[axis], stride = at->stride[axis] * (int64_t)bytes;
    if (axis + 1 < at->rank) {
        for (int64_t i = 0; i < count; i++) array = copy_axes(array, matrix + i * stride, at, axis + 1, way);
        return array;
    }
    if (at->stride[axis] == 1) return copy_run(array, matrix, (size_t)count * bytes, way);
    return copy_one_by_one(array, matrix, count, stride, bytes, way);
}

static void copy_on_host(saved *x, char *matrix, enum direction way)
{
    layout at = x->m->at;
    layout *const one[] = { &at };
    if (!x->row_major) layout_order(one, 1);
    layout_collapse(one, 1);
    (void)copy_axes(x->elements, matrix, &at, 0, way);
}

static duet_status open_on_host(const duet_matrix *m, enum use use, char **p)
{
    const int queue = thread_get()->queue;
    if (!storage_at_hand(m->storage, HOST, use, queue)) TRY(matrix_bring_lost(m, HOST, use, queue));
    *p = matrix_address(m, HOST);
    return DUET_OK;
}

static duet_status save_on_host(saved *x)
{
    char *p;
    TRY(open_on_host(x->m, READ, &p));
    copy_on_host(x, p, TO_ARRAY);
    return DUET_OK;
}

/* This is no transfer that the user could have avoided. */
static duet_status restore_on_host(saved *x)
{
    thread *t = thread_get();
    char *p;
    t->accesses = true;
    const duet_status s = open_on_host(x->m, OVERWRITE, &p);
    t->accesses = false;
    if (s != DUET_OK) return s;
    copy_on_host(x, p, TO_MATRIX);
    matrix_wrote(x->m, HOST, t->queue);
    return DUET_OK;
}

/* ---- on a GPU ---- */

/* Plans need no key unless they are cached. The words of a leaf say that it is the first one. */
static duet_status plan_copy(copying *c, const duet_matrix *to, const duet_matrix *from, int device)
{
    static const uint32_t words[2];
    *c = (copying){ .leaf = { .kind = KIND(OP_LEAF, from->at.type, from->at.rank, 0),
                              .matrix = from,
                              .matrix_serial = from->serial } };
    memcpy(c->leaf.size, from->at.size, sizeof from->at.size[0] * (size_t)from->at.rank);
    c->f = (formula){ .nodes = &c->leaf, .count = 1, .words = words, .length = 2 };
    c->to = (target){ to, 0 };
    c->s = (statement){ &c->to, 1, &c->f, fusion_now(), DUET_MATH_STRICT, NULL };
    c->p = plan_make(&c->s, device);
    if (!c->p) return DUET_NO_MEMORY;
    return c->p->status == DUET_OK ? DUET_OK : fail(c->p->status, "%s", c->p->why);
}

/* Also plans the copy back, so that restoring needs no memory of the host. */
static duet_status copy_on_gpu(gpu_copy *c, const duet_matrix *m, int device)
{
    copying there;
    duet_status s = plan_copy(&there, c->m, m, device);
    if (s == DUET_OK) s = plan_copy(&c->back, m, c->m, device);
    if (s == DUET_OK) s = plan_run(there.p, &there.s);
    plan_free(there.p);
    return s;
}

static duet_status save_on_gpu(saved *x, int device)
{
    const duet_matrix *m = x->m;
    x->gpu = calloc(1, sizeof *x->gpu);
    if (!x->gpu) return fail(DUET_NO_MEMORY, "no host memory to save the elements of a destination");
    x->gpu->m = matrix_new("duet_set_all", m->at.type, m->at.rank, m->at.size);
    return x->gpu->m ? copy_on_gpu(x->gpu, m, device) : DUET_NO_MEMORY;
}

static void free_gpu_copy(gpu_copy *c)
{
    if (!c) return;
    plan_free(c->back.p);
    duet_free(&c->m);
    free(c);
}

/* ---- the log ---- */

static void free_entry(saved *x)
{
    free_gpu_copy(x->gpu);
    matrix_free_lost_parts(&x->lost);
    free(x);
}

/* device: HOST if the elements will be in the entry. */
static duet_status new_entry(const duet_matrix *m, int device, saved **x)
{
    const size_t bytes = device == HOST ? (size_t)m->count * dtypes[m->at.type].bytes : 0;
    *x = malloc(sizeof **x + bytes);
    if (!*x) return fail(DUET_NO_MEMORY, "no host memory to save the elements of a destination");
    **x = (saved){ .m = m };
    const duet_status s = matrix_lost_parts(m, &(*x)->lost);
    if (s != DUET_OK) free_entry(*x);
    else (*x)->all_lost = !(*x)->lost && matrix_has_lost(m);
    return s;
}

static duet_status save_on(undo_log *u, const duet_matrix *m, int device)
{
    saved *x;
    TRY(new_entry(m, device, &x));
    duet_status s = DUET_OK;
    if (!x->all_lost) s = device == HOST ? save_on_host(x) : save_on_gpu(x, device);
    if (s != DUET_OK) {
        free_entry(x);
        return s;
    }
    x->before = u->last;
    u->last = x;
    return DUET_OK;
}

/* Replaces an entry whose elements are on a GPU. */
static bool move_to_host(saved **at)
{
    saved *x = *at;
    const size_t bytes = (size_t)x->m->count * dtypes[x->m->at.type].bytes;
    saved *new = malloc(sizeof *new + bytes);
    const void *p = new ? (duet_read)(x->gpu->m) : NULL;
    if (!p) {
        free(new);
        return false;
    }
    *new = *x;
    new->row_major = true;
    new->gpu = NULL;
    memcpy(new->elements, p, bytes);
    *at = new;
    x->lost = NULL;
    free_entry(x);
    return true;
}

bool undo_move_to_host(undo_log *u)
{
    error_text before;
    bool moved = false;
    if (!u->last) return false;
    error_keep(&before);
    for (saved **at = &u->last; *at; at = &(*at)->before)
        if ((*at)->gpu) moved |= move_to_host(at);
    error_put_back(&before);
    if (moved) TRACE("elements saved on the GPU were moved to the host, to free memory");
    return moved;
}

/* Elements that are lost cannot be copied by a plan. */
static int device_of_copy(const duet_matrix *m, int device)
{
    const unsigned valid = storage_valid(m->storage);
    if (storage_lost(m->storage)) return HOST;
    return !valid || valid >> device & 1 ? device : __builtin_ctz(valid);
}

duet_status undo_save(undo_log *u, const duet_matrix *m, int device)
{
    error_text before;
    const unsigned failures = deferred_failures();
    if (!m->count) return DUET_OK;
    device = device_of_copy(m, device);
    if (device == HOST) return save_on(u, m, HOST);
    error_keep(&before);
    const duet_status s = save_on(u, m, device);
    if (likely(s != DUET_NO_MEMORY) || failures != deferred_failures()) return s;
    TRACE("the elements of a destination are saved on the host: %s", thread_get()->text);
    TRY(save_on(u, m, HOST));
    error_put_back(&before);
    return DUET_OK;
}

void undo_lose(undo_log *u, const duet_matrix *m)
{
    int i = 0;
    while (i < u->unsaved && u->lost[i] != m) i++;
    if (i == u->unsaved) u->lost[u->unsaved++] = m;
}

/* If buffers were freed for others since, the GPU may have no memory for it, or a copy may be forbidden
 * here. Then the host restores the elements. */
static duet_status restore_from_gpu(saved **at)
{
    const duet_status s = plan_run((*at)->gpu->back.p, &(*at)->gpu->back.s);
    if (likely(s == DUET_OK)) return s;
    return move_to_host(at) ? restore_on_host(*at) : s;
}

static bool restore(saved **at)
{
    duet_status s = DUET_OK;
    if ((*at)->gpu) s = restore_from_gpu(at);
    else if (!(*at)->all_lost) s = restore_on_host(*at);
    if (s != DUET_OK || (*at)->all_lost) matrix_lost((*at)->m);
    matrix_lost_again((*at)->m, (*at)->lost);
    return s == DUET_OK;
}

/* Deferred statements come first: some of them may be those that are undone. If they cannot be
 * launched, their results are lost, because the status that is returned is that of another one. */
static duet_status restore_all(undo_log *u, duet_status s)
{
    deferred_launch_or_lose(1ull << thread_get()->queue);
    for (int i = 0; i < u->unsaved; i++) matrix_lost(u->lost[i]);
    if (u->unsaved) s = DUET_DEVICE_ERROR;
    for (saved **at = &u->last; *at; at = &(*at)->before)
        if (!restore(at)) s = DUET_DEVICE_ERROR;
    return s;
}

duet_status undo_all(undo_log *u, duet_status s)
{
    error_text before;
    if (!u->last && !u->unsaved) return s;
    error_keep(&before);
    TRACE("undo statements that ran before one failed");
    s = restore_all(u, s);
    error_put_back(&before);
    undo_forget(u);
    return error_becomes(s);
}

void undo_forget(undo_log *u)
{
    u->unsaved = 0;
    for (saved *x = u->last; x; x = u->last) {
        u->last = x->before;
        free_entry(x);
    }
}
