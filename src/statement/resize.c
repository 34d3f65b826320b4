/* resize.c - duet_resize: gives a matrix another shape. A statement copies its elements to a new matrix, and
 * then the two exchange their contents. */
#include "deferred.h"
#include "expr.h"
#include "matrix.h"
#include "min_max.h"
#include "statement.h"
#include "status.h"
#include "structure.h"
#include "view.h"

static const char who[] = "duet_resize";

static duet_status check(const duet_matrix *m, int rank, const int64_t *size)
{
    const thread *t = thread_get();
    char text[SHAPE_TEXT];
    TRY(matrix_check(who, m));
    view_text(m, text);
    TRY(shape_check(who, m->at.type, rank, size));
    if (m->storage->split)
        return fail(DUET_UNSUPPORTED, "%s(m: %s): m is on a group, so it cannot be resized", who, text);
    if (m->storage->wrapped)
        return fail(DUET_BAD_ARGUMENT, "%s(m: %s): m uses memory of the caller, which cannot be resized", who,
                    text);
    if (__atomic_load_n(&m->storage->refs, __ATOMIC_ACQUIRE) > 1)
        return fail(DUET_BAD_ARGUMENT,
                    "%s(m: %s): m shares its memory with another matrix, as views do; free that first", who,
                    text);
    if (!m->dense || !matrix_fills(m))
        return fail(DUET_BAD_ARGUMENT, "%s(m: %s): m is a view, which cannot be resized", who, text);
    if (storage_properties(m->storage))
        return fail(DUET_BAD_ARGUMENT,
                    "%s(m: %s): m is declared %s, so it cannot be resized; use a copy of m", who, text,
                    structure_name(structure_named(storage_properties(m->storage))));
    if (t->recording || t->explaining)
        return fail(DUET_UNSUPPORTED, "%s(m: %s): this cannot be %s", who, text,
                    t->recording ? "recorded" : "explained");
    return DUET_OK;
}

/* The first `count` elements of m, which is dense. */
static duet_matrix *first_of(duet_matrix *m, int64_t count)
{
    duet_matrix *flat = (duet_reshaped_shape)(m, 1, (const int64_t[]){ -1 });
    duet_matrix *first = flat ? (duet_slice)(flat, 0, count) : NULL;
    duet_free(&flat);
    return first;
}

/* On a device where m is valid. */
static duet_status copy_first(duet_matrix *to, duet_matrix *m, int64_t count)
{
    duet_matrix *from = first_of(m, count), *first = first_of(to, count);
    duet_status s = DUET_NO_MEMORY;
    if (from && first) {
        duet_scope block = duet_scope_open(storage_valid_on(m->storage, HOST) ? DUET_CPU : DUET_AUTO);
        s = statement_set(who, first, duet_of_matrix(from), NULL);
        duet_scope_close(&block);
    }
    duet_free(&from);
    duet_free(&first);
    return s;
}

static duet_status resize(duet_matrix *m, int rank, const int64_t *size)
{
    TRY(check(m, rank, size));
    duet_matrix *to = matrix_new(who, m->at.type, rank, size);
    if (!to) return DUET_NO_MEMORY;
    const int64_t count = smaller(m->count, to->count);
    const bool is_zero = !storage_valid(m->storage) && !matrix_has_lost(m);
    duet_status s = count && !is_zero ? copy_first(to, m, count) : DUET_OK;
    if (s == DUET_OK) s = deferred_flush(); /* the copy may be deferred, and knows m by its serial */
    if (s == DUET_OK) matrix_exchange(m, to);
    duet_free(&to);
    return s;
}

duet_status(duet_resize_shape)(duet_matrix *m, int rank, const int64_t *size)
{
    return statement_ends(resize(m, rank, size), NULL);
}
