/* formula.c - finds, queries, spends, holds and drops the formula of a handle. */
#include "operands.h"
#include "status.h"

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
    arena *a = arena_here;
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
static bool stand_alone(const arena *a, const duet_expr e[], int count, uint32_t root[])
{
    if (a->roots != (uint32_t)count || a->mixed) return false;
    uint32_t next = 0;
    for (int i = 0; i < count; i++) {
        const node *n = arena_look(a, e[i].serial);
        if (!n || !(n->flags & NODE_ROOT) || n->flags & NODE_FAILED || n->first != next) return false;
        root[i] = (uint32_t)(n - a->nodes);
        next = root[i] + 1;
    }
    return next == a->count;
}

/* Appends the formula of e to those in b. */
static duet_status append(arena *a, arena *b, duet_expr e, const char *who, uint32_t *root)
{
    const node *n, *nodes;
    const uint32_t *words;
    uint32_t from, length;
    char what[64];
    node *copy;
    TRY(found(e, who, a, &n, &from, &nodes, &words, &length));
    snprintf(what, sizeof what, "%s: e", who);
    if (n->flags & NODE_FAILED) return failure_of(n, words, what);
    TRY(arena_copy(b, nodes, words, from, &copy));
    *root = (uint32_t)(copy - b->nodes);
    return DUET_OK;
}

duet_status formulas_of(const duet_expr e[], int count, const char *who, formula *f, uint32_t root[],
                        int *failed)
{
    arena *a = arena_mine(), *b = a;
    if (!a) return DUET_NO_MEMORY;
    *failed = 0;
    if (!stand_alone(a, e, count, root)) {
        b = arena_scratch(a);
        if (!b) return DUET_NO_MEMORY;
        for (*failed = 0; *failed < count; ++*failed) TRY(append(a, b, e[*failed], who, &root[*failed]));
    }
    *f = (formula){ b->nodes, b->count, b->words, b->length };
    return DUET_OK;
}

void formula_spend(duet_expr e, const char *site)
{
    arena *a = arena_here;
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
    return fail(DUET_FREED, "%s: the formula names a matrix (%s) that was freed", who, text);
}

duet_status formula_lives(const char *who, const formula *f)
{
    const node *freed = NULL;
    for (const node *n = leaf_last(f); n; n = leaf_before(f, n))
        if (unlikely(!matrix_alive(n->matrix, n->matrix_serial))) freed = n;
    return unlikely(freed != NULL) ? was_freed(who, freed) : DUET_OK;
}
