/* emulated.c - products and convolutions in DUET_MATH_SPLIT: finds their packed operands in the
 * cache, or packs them for the step. */
#include "packed_cache.h"
#include "scratch.h"
#include "step_kinds.h"

/* Operand 1 after packing. */
typedef struct packing {
    packed_operand *packed; /* NULL: the operand is not in the cache */
    void *block;            /* memory for this step alone */
} packing;

static duet_status packing_get(const step *s, const frame *f, queue *q, packing *p)
{
    struct storage *b = owned_by(f, s->in[1].slot);
    *p = (packing){ 0 };
    if (b) TRY(packed_use(b, s, f, q, &p->packed));
    if (p->packed) return DUET_OK;
    TRY(scratch_acquire(q->device, kernels_packed_bytes(s), q->index, &p->block));
    const duet_status r = gpu_pack(s, f, p->block, q);
    if (r != DUET_OK) gpu_give(p->block, q);
    return r;
}

duet_status gpu_split(const step *s, const frame *f, queue *q)
{
    packing p = { 0 };
    if (kernels_packs(s)) TRY(packing_get(s, f, q, &p));
    const duet_status r = gpu_launch_with(s, f, q, p.packed ? packed_at(p.packed) : p.block);
    packed_release(p.packed);
    gpu_give(p.block, q);
    return r;
}

/* Launches only if operand 1 is in the cache of packed operands. Otherwise it might be packed twice: here,
 * and for the step alone if the joined kernel is not ready. */
duet_status gpu_split_joined(const step *s, const step *then, const frame *f, queue *q, bool *done)
{
    struct storage *b = owned_by(f, s->in[1].slot);
    packed_operand *packed = NULL;
    if (!kernels_splits_here(s, f)) return DUET_OK;
    if (!kernels_packs(s)) return gpu_launch_joined(s, then, f, q, NULL, done);
    if (!b) return DUET_OK;
    TRY(packed_use(b, s, f, q, &packed));
    const duet_status r = packed ? gpu_launch_joined(s, then, f, q, packed_at(packed), done) : DUET_OK;
    packed_release(packed);
    return r;
}

/* ---- before capture ---- */

/* Called before a capture. An operand that is not in the cache will be packed by the graph itself;
 * the memory for it must be allocated now. */
duet_status gpu_split_prepare(const step *s, const frame *f, queue *q)
{
    struct storage *b = owned_by(f, s->in[1].slot);
    packed_operand *k = NULL;
    void *block;
    if (!kernels_packs(s)) return DUET_OK;
    if (b) TRY(packed_use(b, s, f, q, &k));
    if (k) {
        packed_release(k);
        return DUET_OK;
    }
    TRY(scratch_acquire(q->device, kernels_packed_bytes(s), q->index, &block));
    scratch_release(q->device, block, q->index);
    return DUET_OK;
}
