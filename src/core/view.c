/* view.c - matrices that share the elements of others, and how two of them overlap. */
#include "matrix.h"
#include "status.h"
#include <string.h>

/* A view of m whose first element lies `ahead` elements after that of m. Without elements it lies nowhere. */
static duet_matrix *view(const duet_matrix *m, const layout *at, int64_t ahead)
{
    return matrix_share(m->bits, at, m->offset + (layout_count(at) ? ahead : 0));
}

static duet_status check_rank(const char *who, const duet_matrix *m, int least, int most)
{
    char text[SHAPE_TEXT];
    TRY(matrix_check(who, m));
    if (m->at.rank >= least && m->at.rank <= most) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s(%s) needs a rank of %d%s", who, shape_text(text, m->at.type, m->at.rank, m->at.size), least,
                most > least ? " or more" : "");
}

static duet_status check_range(const char *who, const duet_matrix *m, int axis, int64_t first, int64_t count)
{
    char text[SHAPE_TEXT];
    int64_t size = m->at.size[axis];
    if (first >= 0 && count >= 0 && first <= size && count <= size - first) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "%s(%s): %lld elements from %lld are not within the %lld of axis %d", who,
                shape_text(text, m->at.type, m->at.rank, m->at.size), (long long)count, (long long)first, (long long)size, axis);
}

duet_matrix *duet_slice(duet_matrix *m, int64_t first, int64_t count)
{
    if (check_rank("duet_slice", m, 1, DUET_RANK_MAX) || check_range("duet_slice", m, 0, first, count)) return NULL;
    layout at = m->at;
    at.size[0] = count;
    return view(m, &at, first * at.stride[0]);
}

duet_matrix *duet_row(duet_matrix *m, int64_t i)
{
    if (check_rank("duet_row", m, 1, DUET_RANK_MAX) || check_range("duet_row", m, 0, i, 1)) return NULL;
    layout at = { .type = m->at.type, .rank = m->at.rank - 1 };
    memcpy(at.size, m->at.size + 1, (size_t)at.rank * sizeof *at.size);
    memcpy(at.stride, m->at.stride + 1, (size_t)at.rank * sizeof *at.stride);
    return view(m, &at, i * m->at.stride[0]);
}

duet_matrix *duet_column(duet_matrix *m, int64_t j)
{
    if (check_rank("duet_column", m, 2, 2) || check_range("duet_column", m, 1, j, 1)) return NULL;
    layout at = { .type = m->at.type, .rank = 1, .size = { m->at.size[0] }, .stride = { m->at.stride[0] } };
    return view(m, &at, j * m->at.stride[1]);
}

duet_matrix *duet_submatrix(duet_matrix *m, int64_t i, int64_t j, int64_t rows, int64_t cols)
{
    const char *who = "duet_submatrix";
    if (check_rank(who, m, 2, 2) || check_range(who, m, 0, i, rows) || check_range(who, m, 1, j, cols)) return NULL;
    layout at = m->at;
    at.size[0] = rows, at.size[1] = cols;
    return view(m, &at, i * at.stride[0] + j * at.stride[1]);
}

duet_matrix *duet_transposed(duet_matrix *m)
{
    if (matrix_check("duet_transposed", m)) return NULL;
    layout at = m->at;
    for (int a = 0; a < at.rank; a++) {
        at.size[a] = m->at.size[at.rank - 1 - a];
        at.stride[a] = m->at.stride[at.rank - 1 - a];
    }
    return view(m, &at, 0);
}

duet_matrix *duet_reshaped_shape(duet_matrix *m, int rank, const int64_t *size)
{
    char from[SHAPE_TEXT], to[SHAPE_TEXT];
    layout at;
    const char *who = "duet_reshaped", *needs = NULL;
    if (matrix_check(who, m) || shape_check(who, m->at.type, rank, size)) return NULL;
    layout_dense(&at, m->at.type, rank, size);
    if (layout_count(&at) != m->count) needs = "as many elements";
    else if (!m->dense) needs = "a matrix without gaps";
    if (!needs) return view(m, &at, 0);
    fail(DUET_BAD_SHAPE, "%s(%s) to %s needs %s", who, shape_text(from, m->at.type, m->at.rank, m->at.size),
         shape_text(to, m->at.type, rank, size), needs);
    return NULL;
}

/* ---- overlap ---- */

static bool same_walk(const duet_matrix *a, const duet_matrix *b)
{
    if (a->offset != b->offset || a->at.rank != b->at.rank) return false;
    for (int i = 0; i < a->at.rank; i++)
        if (a->at.size[i] != b->at.size[i] || (a->at.size[i] != 1 && a->at.stride[i] != b->at.stride[i])) return false;
    return true;
}

/* The elements of m, counted modulo a stride, when they lie within one run of it: as columns of a matrix do. */
static bool within(const duet_matrix *m, int64_t modulus, int64_t *low, int64_t *high)
{
    layout rest = m->at;
    for (int a = 0; a < rest.rank; a++)
        if (rest.stride[a] % modulus == 0) rest.size[a] = 1;
    layout_span(&rest, low, high);
    int64_t first = (m->offset + *low) % modulus;
    *high += first - *low, *low = first;
    return *high <= modulus;
}

static bool apart(const duet_matrix *a, const duet_matrix *b, int64_t modulus)
{
    int64_t low[2], high[2];
    return within(a, modulus, &low[0], &high[0]) && within(b, modulus, &low[1], &high[1]) &&
           (high[0] <= low[1] || high[1] <= low[0]);
}

enum overlap matrix_overlap(const duet_matrix *a, const duet_matrix *b)
{
    if (a->bits != b->bits || a->count == 0 || b->count == 0) return APART;
    if (same_walk(a, b)) return SAME;
    if (apart(a, b, INT64_MAX)) return APART;
    for (int i = 0; i < a->at.rank; i++)
        if (a->at.size[i] > 1 && apart(a, b, a->at.stride[i])) return APART;
    for (int i = 0; i < b->at.rank; i++)
        if (b->at.size[i] > 1 && apart(a, b, b->at.stride[i])) return APART;
    return TANGLED;
}
