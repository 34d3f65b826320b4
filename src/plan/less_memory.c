/* less_memory.c - the plan of a statement whose temporaries do not fit: one that computes values again. */
#include "plan.h"
#include "status.h"
#include "trace.h"

/* A plan that was made for less memory is used again, unless much more has become free. */
#define ROOM 2

static bool serves(const plan *p, size_t bytes) { return p && p->limit <= bytes && p->limit >= bytes / ROOM; }

duet_status plan_with_less(const statement *s, const plan **p, size_t bytes)
{
    plan *own = (plan *)(uintptr_t)*p;
    if (own->temp_bytes <= bytes || own->stream) return DUET_OK;
    if (!serves(own->smaller, bytes)) {
        plan *made = plan_make_within(s, own->device, bytes);
        if (!made) return DUET_NO_MEMORY;
        made->number = plan_number();
        plan_free(own->smaller);
        own->smaller = made;
    }
    if (own->smaller->temp_bytes > bytes) return DUET_OK;
    TRACE("compute values again: %zu instead of %zu bytes of temporaries", own->smaller->temp_bytes,
          own->temp_bytes);
    *p = own->smaller;
    return DUET_OK;
}
