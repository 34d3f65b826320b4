/* formula.c - finds, queries, spends, holds and drops the formula of a handle. */
#include "operands.h"
#include "operator_again.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

static __attribute__((cold)) duet_status missing(duet_expr e, const char *who, const arena *a)
{
    char what[64];
    snprintf(what, sizeof what, "%s: e", who);
    if (e.serial & SERIAL_HELD) return held_missing(e, what);
    return arena_missing(a, e, what);
}

static duet_status found(duet_expr e, const char *who, arena *a, const node **n, uint32_t *root,
                         const node **nodes, const uint32_t **words, uint32_t *length)
{
    const bool held = e.serial & SERIAL_HELD;
    if (held) {
        *nodes = held_look(e, root, words, length);
        *n = *nodes ? *nodes + *root : NULL;
    } else {
        *n = arena_look(a, e.serial);
        *nodes = a->nodes;
        *words = a->words;
        *root = *n ? (uint32_t)(*n - a->nodes) : 0;
    }
    if (likely(*n && !((*n)->flags & NODE_SPENT))) return DUET_OK;
    *n = NULL;
    return missing(e, who, a);
}

static duet_status copied(arena *a, const node *nodes, const uint32_t *words, uint32_t root, formula *f)
{
    arena *b = arena_scratch(a);
    if (!b) return DUET_NO_MEMORY;
    node *copy;
    TRY(arena_copy(b, nodes, words, root, &copy));
    *f = (formula){ b->nodes, b->count, b->words, b->length };
    return DUET_OK;
}

static __attribute__((noinline)) duet_status formula_slow(duet_expr e, const char *who, formula *f)
{
    arena *a = arena_mine();
    if (!a) return DUET_NO_MEMORY;
    const node *n, *nodes;
    const uint32_t *words;
    uint32_t root, length;
    TRY(found(e, who, a, &n, &root, &nodes, &words, &length));
    if (n->flags & NODE_FAILED) {
        char what[64];
        snprintf(what, sizeof what, "%s: e", who);
        return failure_of(n, words, what);
    }
    if (!(e.serial & SERIAL_HELD)) return copied(a, nodes, words, root, f);
    *f = (formula){ nodes, root + 1, words, length };
    return DUET_OK;
}

duet_status formula_of(duet_expr e, const char *who, formula *f)
{
    arena *a = arena_here();
    if (likely(a && a->roots == 1 && !a->mixed && a->count)) {
        const node *n = &a->nodes[a->count - 1];
        if (n->serial == e.serial && n->flags & NODE_ROOT && !(n->flags & NODE_FAILED)) {
            *f = (formula){ a->nodes, a->count, a->words, a->length, a->last_leaf };
            return DUET_OK;
        }
    }
    return formula_slow(e, who, f);
}

/* Are the formulas stored in the arena one after the other, with nothing else in it? */
static bool stand_alone(const arena *a, const duet_assignment *statements, int count, uint32_t root[])
{
    if (a->roots != (uint32_t)count || a->mixed) return false;
    uint32_t next = 0;
    for (int i = 0; i < count; i++) {
        const node *n = arena_look(a, statements[i].value.serial);
        if (!n || !(n->flags & NODE_ROOT) || n->flags & NODE_FAILED || n->first != next) return false;
        root[i] = (uint32_t)(n - a->nodes);
        next = root[i] + 1;
    }
    return next == a->count;
}

/* Formulas of statements that are copied one after the other. Nodes that they share are copied once. A
 * statement that overlaps what one before has written shares no node with those before: its nodes read new
 * elements. */
typedef struct copying {
    arena *a, *to;
    const duet_assignment *statements;
    uint32_t *moved; /* for each node of a: arena_copy_more */
    bool *needed;
} copying;

static bool overlaps(const duet_matrix *m, const duet_matrix *n)
{
    return m && n && m->serial && n->serial && matrix_overlap(m, n) != APART;
}

/* Does one of the statements before write what statement k reads, or a part of what it writes? */
static bool is_overwritten(const copying *c, int k, uint32_t first, uint32_t root)
{
    const node *nodes = c->a->nodes;
    for (int e = 0; e < k; e++) {
        const duet_matrix *to = c->statements[e].to;
        if (overlaps(to, c->statements[k].to)) return true;
        for (uint32_t i = first; i <= root; i++)
            if (c->needed[i] && nodes[i].op == OP_LEAF && overlaps(to, nodes[i].matrix)) return true;
    }
    return false;
}

static duet_status append_shared(copying *c, int k, const node *n, node **copy)
{
    arena *a = c->a;
    const uint32_t root = (uint32_t)(n - a->nodes);
    memset(c->needed, 0, (root + 1) * sizeof *c->needed);
    arena_mark(a->nodes, 0, root, c->needed);
    if (is_overwritten(c, k, n->first, root)) memset(c->moved, 0, a->count * sizeof *c->moved);
    return arena_copy_more(c->to, a->nodes, a->words, 0, root, c->needed, c->moved, copy);
}

/* Appends the formula of statement k to those of c->to. */
static duet_status append(copying *c, int k, const char *who, uint32_t *at)
{
    const duet_expr e = c->statements[k].value;
    const node *n, *nodes;
    const uint32_t *words;
    uint32_t root, length;
    char what[64];
    node *copy;
    TRY(found(e, who, c->a, &n, &root, &nodes, &words, &length));
    snprintf(what, sizeof what, "%s: e", who);
    if (n->flags & NODE_FAILED) return failure_of(n, words, what);
    if (nodes == c->a->nodes) TRY(append_shared(c, k, n, &copy));
    else TRY(arena_copy(c->to, nodes, words, root, &copy));
    *at = (uint32_t)(copy - c->to->nodes);
    return DUET_OK;
}

static duet_status copied_all(arena *a, const duet_assignment *statements, int count, const char *who,
                              uint32_t root[], int *failed)
{
    copying c = { .a = a, .to = arena_scratch(a), .statements = statements };
    duet_status s = DUET_OK;
    if (!c.to) return DUET_NO_MEMORY;
    c.moved = calloc((size_t)a->count + 1, sizeof *c.moved + sizeof *c.needed);
    if (!c.moved) return fail(DUET_NO_MEMORY, "out of memory to copy a formula of %u nodes", a->count);
    c.needed = (bool *)(c.moved + a->count);
    for (int k = 0; k < count && s == DUET_OK; k++) s = append(&c, *failed = k, who, &root[k]);
    free(c.moved);
    return s;
}

duet_status formulas_of(const duet_assignment *statements, int count, const char *who, formula *f,
                        uint32_t root[], int *failed)
{
    arena *a = arena_mine(), *b = a;
    if (!a) return DUET_NO_MEMORY;
    *failed = 0;
    if (!stand_alone(a, statements, count, root)) {
        TRY(copied_all(a, statements, count, who, root, failed));
        b = a->scratch;
    }
    *f = (formula){ b->nodes, b->count, b->words, b->length };
    return DUET_OK;
}

void formula_spend(duet_expr e, const char *site)
{
    arena *a = arena_here();
    if (!a || e.serial & SERIAL_HELD) return;
    node *n = arena_look(a, e.serial);
    if (n && !(n->flags & NODE_SPENT)) arena_spend(a, n, site);
}

duet_expr duet_hold_at(duet_expr e, const char *site)
{
    formula f;
    duet_expr held;
    duet_status s = formula_of(e, "duet_hold", &f);
    if (s == DUET_OK) s = held_store(&f, &held);
    if (!(e.serial & SERIAL_HELD)) formula_spend(e, site);
    if (s == DUET_OK) return held;
    arena *a = arena_mine();
    if (a) return failed(a, 0, NULL, s, site);
    return no_room(s);
}

duet_expr(duet_hold)(duet_expr e) { return duet_hold_at(e, NULL); }

duet_status duet_drop_at(duet_expr e, const char *site)
{
    if (e.serial & SERIAL_HELD) return held_drop(e, site);
    if (0 < e.serial && e.serial < SERIAL_FIRST) return DUET_OK; /* a failure without a node */
    arena *a = arena_mine();
    if (!a) return DUET_NO_MEMORY;
    node *n = arena_look(a, e.serial);
    if (unlikely(!n || n->flags & NODE_SPENT)) return arena_missing(a, e, "duet_drop: e");
    arena_spend(a, n, site);
    return DUET_OK;
}

duet_status(duet_drop)(duet_expr e) { return duet_drop_at(e, NULL); }

uint64_t formulas_mark(void)
{
    const arena *a = arena_here();
    return a ? a->next : 0;
}

/* Spending a formula may remove nodes from the end. */
void formulas_drop_from(uint64_t mark)
{
    arena *a = arena_here();
    uint32_t i = a ? a->count : 0;
    while (i > 0 && a->nodes[i - 1].serial >= mark) {
        node *n = &a->nodes[--i];
        if ((n->flags & (NODE_ROOT | NODE_SPENT)) == NODE_ROOT) arena_spend(a, n, NULL);
        if (i > a->count) i = a->count;
    }
}

/* ---- queries ---- */

static const node *ask(duet_expr e, duet_status *s)
{
    arena *a = arena_mine();
    const node *n = NULL, *nodes;
    const uint32_t *words;
    uint32_t root, length;
    *s = a ? found(e, "duet_expr_status", a, &n, &root, &nodes, &words, &length) : DUET_NO_MEMORY;
    if (n && n->flags & NODE_FAILED) *s = failure_of(n, words, "duet_expr_status: e");
    return n;
}

duet_status duet_expr_status(duet_expr e)
{
    duet_status s;
    ask(e, &s);
    return s;
}

duet_dtype duet_expr_type(duet_expr e)
{
    duet_status s;
    const node *n = ask(e, &s);
    return s == DUET_OK ? (duet_dtype)n->type : DUET_F32;
}

int duet_expr_rank(duet_expr e)
{
    duet_status s;
    const node *n = ask(e, &s);
    return s == DUET_OK ? n->rank : 0;
}

int64_t duet_expr_size(duet_expr e, int axis)
{
    duet_status s;
    const node *n = ask(e, &s);
    return s == DUET_OK && 0 <= axis && axis < n->rank ? n->size[axis] : 0;
}

static __attribute__((noinline, cold)) duet_status was_freed(const char *who, const node *n)
{
    char text[SHAPE_TEXT];
    shape_text(text, (duet_dtype)n->type, n->rank, n->size);
    return fail(DUET_FREED, "%s: the formula names a matrix (%s) that was freed or resized", who, text);
}

duet_status formula_lives(const char *who, const formula *f)
{
    const node *freed = NULL;
    for (const node *n = leaf_last(f); n; n = leaf_before(f, n))
        if (unlikely(!matrix_alive(n->matrix, n->matrix_serial))) freed = n;
    return unlikely(freed != NULL) ? was_freed(who, freed) : DUET_OK;
}
