/* less_memory.c - the plan of a statement whose temporaries do not fit: one that recomputes values. */
#include "plan.h"
#include "status.h"
#include "trace.h"

/* A plan is made for this part of the available bytes, so that it still fits if a little less is free later.
 * If all plans were made for less than 1 / WASTE of the available bytes, another one is made, because it may
 * be faster. */
#define PART(bytes) ((bytes) / 8 * 7)
#define WASTE       2
#define PLANS_MOST  32 /* of one statement */

/* The plan in the list with the most temporaries that still fit in `bytes`; NULL: none fits. *known: there is
 * no need to make another one. */
static plan *best_of(plan *list, size_t bytes, bool *known)
{
    plan *best = NULL;
    int count = 0;
    *known = false;
    for (plan *p = list; p; p = p->next, count++) {
        if (p->temp_bytes <= bytes && (!best || p->temp_bytes > best->temp_bytes)) best = p;
        *known |= p->temp_bytes > p->limit && bytes <= p->limit; /* it could not meet a larger limit */
    }
    *known |= count >= PLANS_MOST || (best && best->limit >= bytes / WASTE);
    return best;
}

static plan *add(const statement *s, plan *own, size_t limit)
{
    plan *made = plan_make_within(s, own->device, limit);
    if (!made) return NULL;
    plan_enter(made);
    made->next = own->smaller;
    return own->smaller = made;
}

/* Plans of a list of statements may still be in use, so none is freed before the first plan is. */
duet_status plan_with_less(const statement *s, const plan **p, size_t bytes)
{
    plan *own = (plan *)(uintptr_t)*p;
    bool known, failed = false;
    error_text before;
    if (own->temp_bytes <= bytes || own->stream) return DUET_OK;
    error_keep(&before);
    (void)best_of(own->smaller, bytes, &known);
    if (!known) failed = !add(s, own, PART(bytes));
    if (!known && !failed && own->smaller->temp_bytes > bytes) failed = !add(s, own, bytes);
    const plan *best = best_of(own->smaller, bytes, &known);
    if (!best) return failed ? DUET_NO_MEMORY : DUET_OK;
    if (failed) error_put_back(&before); /* a plan that was made before fits */
    TRACE("compute values again: %zu instead of %zu bytes of temporaries", best->temp_bytes, own->temp_bytes);
    *p = best;
    return DUET_OK;
}
