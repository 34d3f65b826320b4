/* npy_into.c - duet_load_npy_into: loads a .npy file into an existing matrix. Each rank of a group reads
 * its own part, and short gaps in it. */
#include "elements.h"
#include "min_max.h"
#include "npy.h"
#include "split.h"
#include <stdlib.h>

typedef struct loading {
    input in;
    npy_header h;
    uint64_t begin;  /* where the elements are */
    duet_matrix *to; /* of the caller */
    duet_matrix m;   /* a header of it for which the file is in row-major order */
    unsigned char *piece;
    int64_t most;     /* elements of a piece */
    bool only_checks; /* m is not written */
} loading;

/* ---- checks ---- */

static duet_status check_shape(const loading *l)
{
    char to[SHAPE_TEXT], from[SHAPE_TEXT];
    const layout *at = &l->to->at;
    const npy_header *h = &l->h;
    bool is_equal = at->rank == h->rank;
    for (int a = 0; a < at->rank && is_equal; a++) is_equal = at->size[a] == h->size[a];
    if (is_equal && at->type == h->type) return DUET_OK;
    shape_text(to, at->type, at->rank, at->size);
    shape_text(from, h->type, h->rank, h->size);
    return fail(is_equal ? DUET_BAD_TYPE : DUET_BAD_SHAPE,
                "%s(\"%s\", m: %s): the array of the file is %s; m must have the same %s", l->in.who,
                l->in.path, to, from, is_equal ? "element type" : "shape");
}

static duet_status begin(loading *l, const char *path)
{
    uint64_t bytes;
    TRY(input_open(&l->in, "duet_load_npy_into", path));
    TRY(npy_read_header(&l->in, &l->h));
    TRY(npy_check_size(&l->in, &l->h, &bytes));
    TRY(check_shape(l));
    l->begin = l->in.size - l->in.left;
    l->m = l->h.fortran ? npy_reversed(l->to) : *l->to;
    l->most = (int64_t)(PIECE / dtypes[l->h.type].bytes);
    l->piece = malloc(smaller((int64_t)PIECE, bytes ? (int64_t)bytes : 1));
    return l->piece ? DUET_OK : input_failed(&l->in, DUET_NO_MEMORY, "no memory for a buffer");
}

static void end(loading *l)
{
    input_close(&l->in);
    free(l->piece);
}

/* ---- one matrix, or one part ---- */

static duet_status read_piece(const loading *l, int64_t first, int64_t n)
{
    const size_t each = dtypes[l->h.type].bytes;
    return input_read_at(&l->in, l->begin + (uint64_t)first * each, l->piece, (size_t)n * each);
}

/* Takes elements `at` .. at + n - 1 of the piece. */
static duet_status take(const loading *l, cursor *c, int64_t at, int64_t n, bool *wrote)
{
    const size_t each = dtypes[l->h.type].bytes;
    unsigned char *p = l->piece + (size_t)at * each;
    TRY(npy_convert(&l->in, &l->h, p, (size_t)n * each));
    if (l->only_checks) return DUET_OK;
    *wrote = true;
    cursor_put(c, n, (const char *)p);
    return DUET_OK;
}

static duet_status read_run(const loading *l, cursor *c, int64_t first, int64_t n, bool *wrote)
{
    for (int64_t i = 0; i < n; i += l->most) {
        const int64_t some = smaller(l->most, n - i);
        TRY(read_piece(l, first + i, some));
        TRY(take(l, c, 0, some, wrote));
    }
    return DUET_OK;
}

#define SHORT_GAP (1 << 16) /* bytes that take less time to read than another call */

/* Runs with short gaps between them are read with the gaps, as many as fit into a piece. */
static duet_status read_runs(const loading *l, cursor *c, const part_runs *at, bool *wrote)
{
    const int64_t runs = l->m.count / at->apart, n = c->m->count / runs;
    const bool is_short = (at->apart - n) * (int64_t)dtypes[l->h.type].bytes <= SHORT_GAP;
    const int64_t fit = is_short ? l->most / at->apart : 1;
    for (int64_t r = 0; r < runs && fit < 2; r++) TRY(read_run(l, c, at->first + r * at->apart, n, wrote));
    for (int64_t r = 0; r < runs && fit > 1; r += fit) {
        const int64_t some = smaller(fit, runs - r);
        TRY(read_piece(l, at->first + r * at->apart, (some - 1) * at->apart + n));
        for (int64_t k = 0; k < some; k++) TRY(take(l, c, k * at->apart, n, wrote));
    }
    return DUET_OK;
}

static duet_status read_into(const loading *l, const duet_matrix *m, const part_runs *at)
{
    cursor c;
    void *p = NULL;
    bool wrote = false;
    const int queue = thread_get()->queue;
    if (!m->count) return DUET_OK;
    duet_status s = l->only_checks ? DUET_OK : open_elements(m, OVERWRITE, &p);
    if (s != DUET_OK) return fail_within(s, "%s(\"%s\")", l->in.who, l->in.path);
    cursor_begin(&c, m, p);
    s = read_runs(l, &c, at, &wrote);
    if (l->only_checks) return s;
    if (s == DUET_OK) {
        matrix_wrote(m, HOST, queue);
        matrix_clear_accrued_cost(m);
        return s;
    }
    if (wrote) matrix_write_failed(m, HOST);
    matrix_end_write(m);
    return s;
}

/* ---- parts of a group ---- */

static duet_status read_part(const loading *l, int index)
{
    part_runs at;
    duet_matrix *part = l->m.storage->split->view_part(&l->m, index, &at);
    const duet_status s = part ? read_into(l, part, &at) : no_memory(&l->in);
    duet_free(&part);
    return s;
}

/* Marks parts as lost after another part failed. Otherwise the matrix would have old and new elements. */
static void lose_parts(const loading *l, int count)
{
    part_runs at;
    error_text why;
    const split *s = l->m.storage->split;
    error_keep(&why);
    const bool has_parts = s->has_parts(&l->m);
    if (!has_parts) matrix_lost(&l->m);
    for (int i = 0; i < count && has_parts; i++) {
        duet_matrix *part = s->view_part(&l->m, i, &at);
        if (!part || part->count) matrix_lost(part ? part : s->part[i]);
        duet_free(&part);
    }
    error_put_back(&why);
}

static duet_status read_parts(const loading *l)
{
    split *s = l->m.storage->split;
    duet_status st = l->only_checks ? DUET_OK : split_ready(l->m.storage);
    if (st != DUET_OK) return fail_within(st, "%s(\"%s\")", l->in.who, l->in.path);
    pthread_mutex_lock(s->busy);
    for (int i = 0; i < s->parts && st == DUET_OK; i++) {
        st = read_part(l, i);
        if (st != DUET_OK && !l->only_checks) lose_parts(l, i);
    }
    pthread_mutex_unlock(s->busy);
    return st;
}

static duet_status read_all(const loading *l)
{
    const split *s = l->m.storage->split;
    const part_runs all = { 0, l->m.count, l->m.count };
    if (s && l->m.count && s->has_parts(&l->m)) return read_parts(l);
    return read_into(l, &l->m, &all);
}

/* ---- all processes ---- */

static bool is_spread(const loading *l)
{
    const split *s = l->to->storage->split;
    return s && s->comm->ranks > s->parts;
}

/* If another process failed after this one wrote its part, the elements of this part are lost. */
static duet_status agree(const loading *l, duet_status mine, int turn, bool wrote)
{
    if (!is_spread(l)) return mine;
    split *s = l->to->storage->split;
    pthread_mutex_lock(s->busy);
    const duet_status all = npy_agree(&(npy_call){ l->in.who, l->in.path, l->to }, mine, turn);
    if (wrote && mine == DUET_OK && all != DUET_OK) lose_parts(l, s->parts);
    pthread_mutex_unlock(s->busy);
    return all;
}

/* Bytes of numbers are always valid. Those of bool are checked before any is written. */
static duet_status check_elements(loading *l)
{
    if (l->h.type != DUET_BOOL) return DUET_OK;
    l->only_checks = true;
    const duet_status s = agree(l, read_all(l), 6, false);
    l->only_checks = false;
    return s;
}

static duet_status load(loading *l, const char *path)
{
    TRY(agree(l, begin(l, path), 5, false));
    TRY(check_elements(l));
    return agree(l, read_all(l), 7, true);
}

duet_status(duet_load_npy_into)(const char *path, duet_matrix *m)
{
    loading l = { .to = m };
    TRY(matrix_check("duet_load_npy_into", m));
    TRY(matrix_check_writable("duet_load_npy_into", m));
    const duet_status s = load(&l, path);
    end(&l);
    return s;
}
