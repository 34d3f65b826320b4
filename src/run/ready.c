/* ready.c - finds plans that will not fail, and allocates what they need. */
#include "ready.h"
#include "execute.h"
#include "matrix.h"
#include "pool.h"
#include "scratch.h"
#include "status.h"
#include "thread.h"

static bool is_one_of(const storage *b, const duet_matrix *const *written, int count)
{
    for (int i = 0; i < count; i++)
        if (written[i]->storage == b) return true;
    return false;
}

/* An upload needs no memory if there is a buffer. */
static bool is_operand_ready(const duet_matrix *m, int device, bool is_read)
{
    const storage *b = m->storage;
    const unsigned valid = storage_valid(b), from = 1u << device | (device == HOST ? 0 : 1u << HOST);
    if (storage_lost(b) || !storage_has_buffer(b, device)) return false;
    if (valid >> device & 1 || (!is_read && matrix_fills(m))) return true;
    return (valid & from) && thread_get()->transfers == DUET_TRANSFERS_ALLOWED;
}

/* An operand that is only overwritten is not copied to the device. */
static bool opens(const duet_matrix *m, int device, bool is_read)
{
    void *p;
    const bool reads = is_read || !matrix_fills(m) || storage_valid_on(m->storage, device);
    return matrix_open(m, device, reads ? READ : OVERWRITE, thread_get()->queue, &p) == DUET_OK;
}

typedef bool operand_test(const duet_matrix *m, int device, bool is_read);

/* Does the test hold for every operand that no earlier statement writes? */
static bool hold_all(operand_test *holds, const plan *p, const statement *s,
                     const duet_matrix *const *written, int count)
{
    for (int i = 0; i < p->n_leaves; i++) {
        const duet_matrix *m = s->f->nodes[p->leaves[i].node].matrix;
        if (!is_one_of(m->storage, written, count) && !holds(m, p->device, true)) return false;
    }
    for (int k = 0; k < p->dests; k++) {
        const duet_matrix *m = s->to[k].m;
        if (p->first_write[k] < 0 || is_one_of(m->storage, written, count)) continue;
        if (!holds(m, p->device, false)) return false;
    }
    return true;
}

bool plan_open_operands(const plan *p, const statement *s, const duet_matrix *const *written, int count)
{
    error_text before;
    error_keep(&before);
    if (hold_all(opens, p, s, written, count)) return true;
    error_put_back(&before);
    return false;
}

static int find_held(const held_memory *h, size_t bytes, unsigned taken)
{
    int i = 0;
    while (i < h->count && (h->block[i].bytes != bytes || taken >> i & 1)) i++;
    return i;
}

static duet_status hold(held_memory *h, size_t bytes)
{
    void *p;
    if (h->count == HELD) return fail(DUET_NO_MEMORY, "too many temporaries");
    TRY(scratch_acquire(h->device, bytes, thread_get()->queue, &p));
    h->block[h->count].p = p;
    h->block[h->count++].bytes = bytes;
    return DUET_OK;
}

/* Blocks that are held for other plans are used again. */
static duet_status hold_temporaries(const plan *p, held_memory *h)
{
    unsigned taken = 0;
    if (!h->count) h->device = p->device;
    if (p->temps && h->device != p->device) return fail(DUET_NO_MEMORY, "temporaries of several devices");
    for (int i = 0; i < p->temps; i++) {
        const int k = find_held(h, p->temp[i], taken);
        if (k == h->count) TRY(hold(h, p->temp[i]));
        taken |= 1u << k;
    }
    return DUET_OK;
}

static duet_status make_ready(const plan *p, held_memory *h)
{
    for (int i = 0; i < p->count; i++) TRY(p->machine->make_sure(&p->steps[i], p->device));
    return h && p->temps ? hold_temporaries(p, h) : DUET_OK;
}

bool plan_is_ready(const plan *p, const statement *s, const duet_matrix *const *written, int count,
                   held_memory *h)
{
    error_text before;
    if ((p->device != HOST && pool_is_tight()) || !p->is_sure || plan_runs_alone(p) || plan_slots(p) > FEW ||
        p->n_numbers > FEW || !hold_all(is_operand_ready, p, s, written, count))
        return false;
    error_keep(&before);
    if (make_ready(p, h) == DUET_OK) return true;
    error_put_back(&before);
    return false;
}

void release_held(held_memory *h)
{
    for (int i = 0; i < h->count; i++) scratch_release(h->device, h->block[i].p, thread_get()->queue);
    h->count = 0;
}
