/* split.c - products and convolutions by parts: what they need beside their operands, known or made for the step. */
#include "clock.h"
#include "known.h"
#include "lend.h"
#include "steps.h"

/* Something that a step needs made of an operand. */
typedef struct aid {
    known *known; /* NULL: it is */
    void *block;  /* made for this step alone */
} aid;

static const void *aid_at(const aid *a) { return a->known ? known_at(a->known) : a->block; }

static void aid_end(const aid *a, const queue *q) { known_give(a->known), gpu_give(a->block, q); }

static duet_status aid_get(enum fact what, const step *s, const frame *f, queue *q, aid *a)
{
    struct storage *b = owned_by(f, s->in[fact_operand(what)].slot).bits;
    *a = (aid){ 0 };
    if (b) TRY(known_use(b, what, s, f, q, &a->known));
    if (a->known) return DUET_OK;
    TRY(lend(DEVICE, fact_bytes(what, s), q->index, &a->block));
    const duet_status r = fact_make(what, s, f, a->block, q);
    if (r != DUET_OK) gpu_give(a->block, q);
    return r;
}

/* What a run knows may be more than what a recording knows: with that bound the last bits may be others. */
static float bound_of(const step *s, const frame *f)
{
    return s->bound > 0 || reproducible() ? s->bound : owned_by(f, s->in[0].slot).bound;
}

/* With in[1] packed, or NULL where that is not needed. A bound that only this run knows goes with a copy of the step. */
static duet_status multiply(const step *s, const frame *f, const void *packed, queue *q)
{
    aid most = { 0 };
    step bounded;
    const float bound = bound_of(s, f);
    if (bound > 0 && s->bound <= 0) bounded = *s, bounded.bound = bound, s = &bounded;
    if (bound <= 0 && kernels_measures(s)) TRY(aid_get(FACT_MAGNITUDE, s, f, q, &most));
    const duet_status r = gpu_launch_with(s, f, q, packed, aid_at(&most));
    aid_end(&most, q);
    return r;
}

duet_status gpu_split(const step *s, const frame *f, queue *q)
{
    aid packed = { 0 };
    if (kernels_packs(s)) TRY(aid_get(FACT_PACKED, s, f, q, &packed));
    const duet_status r = multiply(s, f, aid_at(&packed), q);
    aid_end(&packed, q);
    return r;
}

/* ---- before it is recorded ---- */

/* What is not kept is made in the graph, in memory that has to be there. */
static duet_status aid_prepare(enum fact what, const step *s, const frame *f, queue *q)
{
    struct storage *b = owned_by(f, s->in[fact_operand(what)].slot).bits;
    known *k = NULL;
    void *block;
    if (b) TRY(known_use(b, what, s, f, q, &k));
    if (k) return known_give(k), DUET_OK;
    TRY(lend(DEVICE, fact_bytes(what, s), q->index, &block));
    lend_back(DEVICE, block, q->index);
    return DUET_OK;
}

duet_status gpu_split_prepare(const step *s, const frame *f, queue *q)
{
    if (kernels_packs(s)) TRY(aid_prepare(FACT_PACKED, s, f, q));
    return bound_of(s, f) > 0 || !kernels_measures(s) ? DUET_OK : aid_prepare(FACT_MAGNITUDE, s, f, q);
}
