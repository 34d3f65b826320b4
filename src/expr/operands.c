/* operands.c - operands that need a copy or cannot be used, and failed results. */
#include "operands.h"
#include "call_text.h"
#include "status.h"
#include "thread.h"

node *push_failure(arena *a, int arity, node *const x[], duet_status s, const char *site)
{
    char text[sizeof thread_get()->text];
    memcpy(text, thread_get()->text, sizeof text);
    node *n = arena_push(a, KIND(OP_HOLE, DUET_F32, 0, NODE_FAILED), site);
    if (!n) return NULL;
    a->last_failed = n->serial;
    adopt(a, n, arity, x);
    size_t words = strlen(text) / 4 + 1;
    n->attr.failure = (failure_attributes){ .status = (int32_t)s, .words = (int32_t)words };
    put(a, n->op);
    for (int k = 0; k < 3 && n->back[k]; k++) put(a, n->back[k]);
    memcpy(a->words + a->length, text, strlen(text) + 1);
    a->length += (uint32_t)words;
    return n;
}

duet_status failure_of(const node *n, const uint32_t *words, const char *what)
{
    int k = 0;
    while (k < 3 && n->back[k]) k++;
    const char *text = (const char *)(words + n->word + 1 + k);
    duet_status s = (duet_status)n->attr.failure.status;
    if (n->attr.failure.is_matrix) return fail(s, "%s %s", what, text);
    return fail(s, "%s", text);
}

duet_status operand_failure(const arena *a, enum op op, int k, const node *x)
{
    return failure_of(x, a->words, operand_of_op(op, k));
}

/* A persistent formula is copied to the thread that uses it. */
static duet_status import(arena *a, duet_expr e, enum op op, int k, node **n)
{
    uint32_t root, length;
    const uint32_t *words;
    const bool is_held = e.serial & SERIAL_HELD;
    const node *held = is_held ? held_look(e, &root, &words, &length) : NULL;
    if (held) return arena_copy(a, held, words, root, n);
    const char *name = operand_of_op(op, k);
    if (is_held) return held_missing(e, name);
    return arena_missing(a, e, name);
}

node *operand_slow(arena *a, duet_expr e, enum op op, int k, duet_status *s)
{
    node *n = NULL;
    error_text first;
    if (*s != DUET_OK) error_keep(&first);
    const duet_status own = import(a, e, op, k, &n);
    if (*s != DUET_OK) error_put_back(&first);
    else *s = own;
    return n;
}

duet_expr failed(arena *a, int arity, node *const x[], duet_status s, const char *site)
{
    error_text said;
    if (site) fail_at(s, site);
    error_keep(&said);
    node *n = s == DUET_ARENA_FULL ? NULL : push_failure(a, arity, x, s, site);
    if (n) return handle_of(n);
    error_put_back(&said);
    arena_refuses(a, s);
    for (int k = 0; k < arity; k++)
        if (x[k]) arena_give_up(a, x[k], s, site);
    return no_room(s);
}
