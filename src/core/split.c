/* split.c - accesses of the host to a matrix on a group: the elements are gathered first. */
#include "split.h"
#include "storage_state.h"

int groups_alive;
duet_status (*groups_synchronize)(void);

/* A matrix that has all elements of the storage. */
static duet_matrix whole_of(storage *b)
{
    duet_matrix m = { .storage = b };
    layout_dense(&m.at, b->split->type, b->split->whole.rank, b->split->whole.size);
    m.count = layout_count(&m.at);
    m.dense = true;
    return m;
}

static duet_status gather(storage *b, int queue)
{
    duet_matrix whole = whole_of(b);
    const duet_status room = matrix_bring_unsplit(&whole, HOST, OVERWRITE, queue);
    TRY(b->split->gather(b->split, room == DUET_OK ? b->buffer[HOST] : NULL, room));
    set_state(b, 1u << HOST);
    return DUET_OK;
}

/* After a read, the buffer counts as empty: statements of the group may change the parts at any time. */
static duet_status bring(const duet_matrix *m, int device, enum use use, int queue)
{
    storage *b = m->storage;
    const bool needs = use != OVERWRITE || !matrix_fills(m);
    if (b->split->valid && needs) TRY(gather(b, queue));
    TRY(matrix_bring_unsplit(m, device, use, queue));
    if (use != READ) b->split->valid = false;
    if (b->split->valid) set_state(b, 0);
    return DUET_OK;
}

duet_status split_bring(const duet_matrix *m, int device, enum use use, int queue)
{
    split *s = m->storage->split;
    pthread_mutex_lock(&s->lock);
    const duet_status st = bring(m, device, use, queue);
    pthread_mutex_unlock(&s->lock);
    return st;
}

static duet_status scatter(storage *b)
{
    split *s = b->split;
    if (s->valid) return DUET_OK;
    const duet_matrix whole = whole_of(b);
    TRY(matrix_bring_unsplit(&whole, HOST, READ, thread_get()->queue));
    TRY(s->scatter(s, b->buffer[HOST]));
    s->valid = true;
    set_state(b, 0);
    return DUET_OK;
}

duet_status split_ready(storage *b)
{
    pthread_mutex_lock(&b->split->lock);
    const duet_status s = scatter(b);
    pthread_mutex_unlock(&b->split->lock);
    return s;
}
