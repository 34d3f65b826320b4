/* elements.c - reads and writes elements of a matrix in row-major order. */
#include "elements.h"
#include "min_max.h"
#include <stdlib.h>
#include <string.h>

static size_t bytes_each(const cursor *c) { return dtypes[c->m->at.type].bytes; }

void cursor_begin(cursor *c, const duet_matrix *m, void *p) { *c = (cursor){ .m = m, .p = p }; }

/* The elements of a dense matrix on a GPU are not copied to the host as a whole. */
duet_status cursor_open(cursor *c, const duet_matrix *m)
{
    void *p = NULL;
    cursor_begin(c, m, NULL);
    if (!m->dense || !matrix_is_only_on_gpu(m)) {
        TRY(open_elements(m, READ, &p));
        c->p = p;
        return DUET_OK;
    }
    c->piece = malloc(smaller(PIECE, (size_t)m->count * bytes_each(c)));
    return c->piece ? DUET_OK : fail(DUET_NO_MEMORY, "no memory for a buffer");
}

void cursor_close(cursor *c)
{
    free(c->piece);
    c->piece = NULL;
}

static void move_on(cursor *c)
{
    const layout *l = &c->m->at;
    for (int a = l->rank; a-- > 0;) {
        c->at += l->stride[a];
        if (++c->index[a] < l->size[a]) break;
        c->at -= c->index[a] * l->stride[a];
        c->index[a] = 0;
    }
}

static duet_status fill_piece(cursor *c, const output *out)
{
    const int64_t most = (int64_t)(PIECE / bytes_each(c)), left = c->m->count - c->next;
    c->piece_from = c->next;
    c->piece_end = c->next + (left < most ? left : most);
    const duet_status s = matrix_read_piece(c->m, c->piece_from, c->piece_end - c->piece_from, c->piece);
    return s == DUET_OK ? s : output_fail_within(out, s);
}

static duet_status write_from_gpu(cursor *c, int64_t n, output *out)
{
    const size_t each = bytes_each(c);
    while (n > 0) {
        if (c->next == c->piece_end) TRY(fill_piece(c, out));
        const int64_t there = c->piece_end - c->next, some = there < n ? there : n;
        TRY(output_write(out, c->piece + (size_t)(c->next - c->piece_from) * each, (size_t)some * each));
        c->next += some;
        n -= some;
    }
    return DUET_OK;
}

static duet_status write_strided(cursor *c, int64_t n, output *out)
{
    const size_t each = bytes_each(c);
    char some[1 << 14];
    size_t held = 0;
    for (; n > 0; n--) {
        memcpy(some + held, c->p + c->at * (int64_t)each, each);
        held += each;
        if (held + each > sizeof some || n == 1) {
            TRY(output_write(out, some, held));
            held = 0;
        }
        move_on(c);
    }
    return DUET_OK;
}

duet_status cursor_write(cursor *c, int64_t n, output *out)
{
    if (!n) return DUET_OK;
    if (!c->p) return write_from_gpu(c, n, out);
    if (!c->m->dense) return write_strided(c, n, out);
    const char *from = c->p + (size_t)c->next * bytes_each(c);
    c->next += n;
    return output_write(out, from, (size_t)n * bytes_each(c));
}

void cursor_put(cursor *c, int64_t n, const char *from)
{
    const size_t each = bytes_each(c);
    if (c->m->dense) {
        memcpy(c->p + (size_t)c->next * each, from, (size_t)n * each);
        c->next += n;
        return;
    }
    for (; n > 0; n--, from += each) {
        memcpy(c->p + c->at * (int64_t)each, from, each);
        move_on(c);
    }
}
