/* view_memo.c - a hash table from a value and a change of a view to a result. */
#include "view_memo.h"
#include <stdlib.h>

static bool same_change(const view_change *a, const view_change *b)
{
    return a->kind == b->kind && shape_equal(&a->to, &b->to) && a->axis == b->axis && a->start == b->start &&
           a->step == b->step && a->start_axis == b->start_axis && a->in_memory == b->in_memory &&
           !memcmp(a->order, b->order, sizeof a->order);
}

static int find_change(const view_memo *m, const view_change *c)
{
    for (int i = 0; i < m->n_changes; i++)
        if (same_change(&m->changes[i], c)) return i;
    return -1;
}

/* The entry of x and this change, or the free one where it belongs. */
static view_memo_entry *entry_of(const view_memo *m, int x, int change)
{
    const unsigned mask = (unsigned)m->capacity - 1;
    unsigned i = ((unsigned)x + 31u * (unsigned)change) * 2654435769u >> 7 & mask;
    while (m->entries[i].value && (m->entries[i].value != x + 1 || m->entries[i].change != change))
        i = (i + 1) & mask;
    return &m->entries[i];
}

int view_memo_find(const view_memo *m, int x, const view_change *c)
{
    const int change = m->count ? find_change(m, c) : -1;
    const view_memo_entry *e = change < 0 ? NULL : entry_of(m, x, change);
    return e && e->value ? e->result : -1;
}

static bool grow(view_memo *m)
{
    const view_memo old = *m;
    m->capacity = old.capacity ? 2 * old.capacity : 32;
    m->entries = calloc((size_t)m->capacity, sizeof *m->entries);
    if (!m->entries) {
        *m = old;
        return false;
    }
    for (int i = 0; i < old.capacity; i++)
        if (old.entries[i].value)
            *entry_of(m, old.entries[i].value - 1, old.entries[i].change) = old.entries[i];
    free(old.entries);
    return true;
}

static int add_change(view_memo *m, const view_change *c)
{
    view_change *more = realloc(m->changes, (size_t)(m->n_changes + 1) * sizeof *more);
    if (!more) return -1;
    m->changes = more;
    m->changes[m->n_changes] = *c;
    return m->n_changes++;
}

bool view_memo_add(view_memo *m, int x, const view_change *c, int result)
{
    int change = find_change(m, c);
    if (2 * m->count >= m->capacity && !grow(m)) return false;
    if (change < 0) change = add_change(m, c);
    if (change < 0) return false;
    view_memo_entry *e = entry_of(m, x, change);
    m->count += !e->value;
    *e = (view_memo_entry){ x + 1, change, result };
    return true;
}

void view_memo_free(view_memo *m)
{
    free(m->entries);
    free(m->changes);
}
