/* lost_elements.c - which elements of a storage were lost when a statement or a GPU failed: a list of
 * matrices. What is written later is removed from it. */
#include "min_max.h"
#include "storage_state.h"
#include <stdlib.h>

/* ---- lost elements; under the lock ---- */

/* A matrix whose elements are lost: a copy of its header. */
typedef struct lost_part {
    struct lost_part *next;
    duet_matrix m;
} lost_part;

void matrix_free_lost_parts(lost_part **parts)
{
    for (lost_part *l = *parts; l; l = *parts) {
        *parts = l->next;
        free(l);
    }
}

void storage_forget_lost(storage *b)
{
    matrix_free_lost_parts(&b->lost_parts);
    set_lost(b, false);
}

/* Does m have the element at this offset of its storage? May be false although it does, if axes of m
 * interlock. */
static bool has_offset(const duet_matrix *m, int64_t offset)
{
    int64_t low, high;
    bool walked[DUET_RANK_MAX] = { false };
    layout_span(&m->at, &low, &high);
    int64_t rest = offset - m->offset - low;
    for (int n = 0; n < m->at.rank && rest >= 0; n++) {
        int widest = -1;
        for (int a = 0; a < m->at.rank; a++)
            if (!walked[a] && (widest < 0 || llabs(m->at.stride[a]) > llabs(m->at.stride[widest])))
                widest = a;
        const int64_t stride = llabs(m->at.stride[widest]);
        walked[widest] = true;
        if (stride && m->at.size[widest] > 1) rest -= smaller(rest / stride, m->at.size[widest] - 1) * stride;
    }
    return rest == 0;
}

/* The offset in the storage of element i in row-major order. */
static int64_t offset_of(const duet_matrix *m, int64_t i)
{
    int64_t offset = m->offset;
    for (int a = m->at.rank - 1; a >= 0; i /= m->at.size[a--]) offset += i % m->at.size[a] * m->at.stride[a];
    return offset;
}

static bool covers(const duet_matrix *m, const duet_matrix *part)
{
    int64_t i = 0;
    if (matrix_overlap(m, part) == SAME) return true;
    if (m->count < part->count) return false;
    while (i < part->count && has_offset(m, offset_of(part, i))) i++;
    return i == part->count;
}

static duet_matrix slice_of(const duet_matrix *p, int axis, int64_t from, int64_t end)
{
    duet_matrix s = *p;
    s.offset += from * p->at.stride[axis];
    s.at.size[axis] = end - from;
    s.count = p->count / p->at.size[axis] * (end - from);
    return s;
}

static bool is_apart(const duet_matrix *p, int axis, int64_t from, int64_t end, const duet_matrix *m)
{
    const duet_matrix s = slice_of(p, axis, from, end);
    return matrix_overlap(&s, m) == APART;
}

/* The number of slices of p that do not overlap m, from one end of the axis. */
static int64_t slices_apart(const duet_matrix *p, int axis, const duet_matrix *m, bool from_end)
{
    const int64_t n = p->at.size[axis];
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const int64_t k = low + (high - low + 1) / 2;
        if (is_apart(p, axis, from_end ? n - k : 0, from_end ? n : k, m)) low = k;
        else high = k - 1;
    }
    return low;
}

static int longest_axis(const duet_matrix *p)
{
    int axis = 0;
    for (int a = 1; a < p->at.rank; a++)
        if (p->at.size[a] > p->at.size[axis]) axis = a;
    return axis;
}

/* Where to cut p in two: around m, or else in the middle. Returns the axis. */
static int find_cut(const duet_matrix *p, const duet_matrix *m, int64_t *at)
{
    for (int a = 0; a < p->at.rank; a++) {
        if (p->at.size[a] < 2) continue;
        *at = slices_apart(p, a, m, false);
        if (!*at) *at = p->at.size[a] - slices_apart(p, a, m, true);
        if (*at < p->at.size[a]) return a;
    }
    const int a = longest_axis(p);
    *at = p->at.size[a] / 2;
    return a;
}

#define PIECES_MAX 1000 /* of one lost part */

typedef struct pieces {
    lost_part *list;
    int count;
} pieces;

static bool add_piece(pieces *to, const duet_matrix *p)
{
    lost_part *l = to->count < PIECES_MAX ? malloc(sizeof *l) : NULL;
    if (!l) return false;
    *l = (lost_part){ to->list, *p };
    to->list = l;
    to->count++;
    return true;
}

/* Adds the elements of p that m does not have. Returns false if these are too many pieces, or if
 * there is no memory. */
static bool add_rest(pieces *to, const duet_matrix *p, const duet_matrix *m)
{
    int64_t at;
    if (matrix_overlap(p, m) == APART) return add_piece(to, p);
    if (covers(m, p)) return true;
    if (p->count == 1) return add_piece(to, p);
    const int axis = find_cut(p, m, &at);
    const duet_matrix low = slice_of(p, axis, 0, at), high = slice_of(p, axis, at, p->at.size[axis]);
    return add_rest(to, &low, m) && add_rest(to, &high, m);
}

/* Puts the rest of *at in its place. If that is not possible, all of it still counts as lost.
 * Returns where the next part is. */
static lost_part **keep_rest(lost_part **at, const duet_matrix *m)
{
    lost_part *l = *at;
    pieces rest = { NULL };
    if (matrix_overlap(&l->m, m) == APART) return &l->next;
    if (!add_rest(&rest, &l->m, m)) {
        matrix_free_lost_parts(&rest.list);
        return &l->next;
    }
    *at = rest.list;
    while (*at) at = &(*at)->next;
    *at = l->next;
    free(l);
    return at;
}

/* The elements of m were written. */
void lost_remove_written(storage *b, const duet_matrix *m)
{
    if (matrix_fills(m)) storage_forget_lost(b);
    for (lost_part **at = &b->lost_parts; *at;) at = keep_rest(at, m);
    if (!b->lost_parts) set_lost(b, false);
}

bool lost_overlaps(const duet_matrix *m)
{
    const storage *b = m->storage;
    const lost_part *l = b->lost_parts;
    if (!storage_lost(b)) return false;
    if (!l) return m->count > 0;
    while (l && matrix_overlap(m, &l->m) == APART) l = l->next;
    return l != NULL;
}

bool matrix_has_lost(const duet_matrix *m)
{
    if (likely(!storage_lost(m->storage))) return false;
    pthread_mutex_lock(&m->storage->lock);
    const bool has = lost_overlaps(m);
    pthread_mutex_unlock(&m->storage->lock);
    return has;
}

/* why: what has happened to the GPU that held the elements, or NULL if they were lost earlier. */
duet_status lost_error(const duet_matrix *m, const char *why)
{
    char text[SHAPE_TEXT];
    shape_text(text, m->at.type, m->at.rank, m->at.size);
    if (why)
        return fail(DUET_UNKNOWN, "elements of %s were only on a GPU that was lost; write them first (%s)",
                    text, why);
    if (m->storage->lost_parts)
        return fail(DUET_UNKNOWN, "elements of %s were lost in an earlier failure; write them first", text);
    return fail(DUET_UNKNOWN,
                "all elements of the matrix %s were lost in an earlier failure; write all of them first, "
                "not a view",
                text);
}

/* All elements of the storage, as a matrix of the type of m. */
duet_matrix storage_elements(const duet_matrix *m)
{
    const int64_t count = (int64_t)(m->storage->bytes / dtypes[m->at.type].bytes);
    return (duet_matrix){ .serial = m->serial,
                          .at = { .type = m->at.type, .rank = 1, .size = { count }, .stride = { 1 } },
                          .count = count,
                          .dense = true,
                          .storage = m->storage };
}

void storage_stamp_all(storage *b)
{
    for (int d = DEFAULT_GPU; d < DEVICES_MAX; d++)
        if (storage_has_buffer(b, d)) buffer_stamp_anew(storage_usage(b, d));
}

static void lose_all(storage *b)
{
    storage_forget_lost(b);
    set_lost(b, true);
    set_valid(b, 0);
}

/* Removes the parts that m covers. Returns whether one of the others covers m. */
static bool is_lost_already(storage *b, const duet_matrix *m)
{
    bool is_lost = false;
    for (lost_part **at = &b->lost_parts, *l; (l = *at);) {
        if (matrix_overlap(&l->m, m) == APART) {
            at = &l->next;
        } else if (!is_lost && covers(&l->m, m)) {
            is_lost = true;
            at = &l->next;
        } else if (covers(m, &l->m)) {
            *at = l->next;
            free(l);
        } else {
            at = &l->next;
        }
    }
    return is_lost;
}

/* If there is no memory to describe the part, all elements of the storage are lost. */
static void lose_part(const duet_matrix *m)
{
    storage *b = m->storage;
    if ((storage_lost(b) && !b->lost_parts) || is_lost_already(b, m)) return;
    lost_part *l = malloc(sizeof *l);
    if (!l) {
        lose_all(b);
        return;
    }
    *l = (lost_part){ b->lost_parts, *m };
    b->lost_parts = l;
    set_lost(b, true);
}

/* If all elements are lost, no buffer has any that counts. Parts of them can then be written one by
 * one. */
void lost_add(const duet_matrix *m)
{
    storage *b = m->storage;
    if (!m->count) return;
    if (matrix_fills(m)) {
        storage_forget_lost(b);
        set_valid(b, 0);
    }
    lose_part(m);
    storage_stamp_all(b);
}

void matrix_lost(const duet_matrix *m)
{
    pthread_mutex_lock(&m->storage->lock);
    lost_add(m);
    pthread_mutex_unlock(&m->storage->lock);
}

duet_status matrix_lost_parts(const duet_matrix *m, lost_part **parts)
{
    pieces copies = { NULL };
    bool ok = true;
    *parts = NULL;
    if (likely(!storage_lost(m->storage))) return DUET_OK;
    pthread_mutex_lock(&m->storage->lock);
    for (const lost_part *l = m->storage->lost_parts; l && ok; l = l->next) {
        if (matrix_overlap(&l->m, m) != APART) ok = add_piece(&copies, &l->m);
        copies.count = 0;
    }
    pthread_mutex_unlock(&m->storage->lock);
    *parts = copies.list;
    if (ok) return DUET_OK;
    matrix_free_lost_parts(parts);
    return fail(DUET_NO_MEMORY, "no host memory for the list of lost elements");
}

void matrix_lost_again(const duet_matrix *m, const lost_part *parts)
{
    pthread_mutex_lock(&m->storage->lock);
    for (const lost_part *l = parts; l; l = l->next) lose_part(&l->m);
    if (parts) storage_stamp_all(m->storage);
    pthread_mutex_unlock(&m->storage->lock);
}
