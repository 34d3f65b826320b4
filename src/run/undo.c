/* undo.c - saves the elements of destinations, and restores them. Both are copies by a plan of one step. */
#include "undo.h"
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

typedef struct saved {
    struct saved *before;
    const duet_matrix *m;
    duet_matrix *copy; /* NULL: the elements of m were lost already */
    copying back;
} saved;

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

/* Copies m to x->copy, and plans the copy back. */
static duet_status copy_elements(saved *x, const duet_matrix *m, int device)
{
    copying there;
    duet_status s = plan_copy(&there, x->copy, m, device);
    if (s == DUET_OK) s = plan_copy(&x->back, m, x->copy, device);
    if (s == DUET_OK) s = plan_run(there.p, &there.s);
    plan_free(there.p);
    return s;
}

static void free_entry(saved *x)
{
    plan_free(x->back.p);
    duet_free(&x->copy);
    free(x);
}

/* The elements are saved on a device that has them. */
static int device_of_copy(const duet_matrix *m, int device)
{
    const unsigned valid = storage_valid(m->storage);
    return !valid || valid >> device & 1 ? device : __builtin_ctz(valid);
}

duet_status undo_save(undo_log *u, const duet_matrix *m, int device)
{
    error_text before;
    if (!m->count) return DUET_OK;
    saved *x = calloc(1, sizeof *x);
    if (!x) return fail(DUET_NO_MEMORY, "no host memory to save the elements of a destination");
    error_keep(&before);
    x->m = m;
    x->copy = matrix_new("duet_set_all", m->at.type, m->at.rank, m->at.size);
    duet_status s = x->copy ? copy_elements(x, m, device_of_copy(m, device)) : DUET_NO_MEMORY;
    if (s != DUET_OK && s != DUET_UNKNOWN) {
        free_entry(x);
        return s;
    }
    if (s == DUET_UNKNOWN) {
        error_put_back(&before);
        duet_free(&x->copy);
    }
    x->before = u->last;
    u->last = x;
    return DUET_OK;
}

/* Elements that were lost before are lost again. */
static bool restore(const saved *x)
{
    const bool restored = x->copy && plan_run(x->back.p, &x->back.s) == DUET_OK;
    if (!restored) matrix_lost(x->m);
    return restored || !x->copy;
}

duet_status undo_all(undo_log *u, duet_status s)
{
    error_text before;
    error_keep(&before);
    if (u->last) TRACE("restore the destinations of statements that ran before one failed");
    for (const saved *x = u->last; x; x = x->before)
        if (!restore(x)) s = DUET_DEVICE_ERROR;
    error_put_back(&before);
    undo_forget(u);
    return s;
}

void undo_forget(undo_log *u)
{
    for (saved *x = u->last; x; x = u->last) {
        u->last = x->before;
        free_entry(x);
    }
}
