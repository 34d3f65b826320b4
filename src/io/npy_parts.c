/* npy_parts.c - .npy files of matrices on a group. The parts of one process are written in the order of the
 * file. Several processes write one file: rank 0 creates it under a temporary name, each rank writes its own
 * part, and rank 0 renames it. */
#include "elements.h"
#include "npy.h"
#include "split.h"
#include <stdlib.h>

static split *split_of(const duet_matrix *m) { return m->storage->split; }

/* ---- all parts are in this process ---- */

bool npy_has_near_parts(const duet_matrix *m)
{
    const split *s = split_of(m);
    return s && m->count && (s->at.axis < 0 || s->comm->ranks == s->parts) && s->has_parts(m);
}

/* A part that is being written. */
typedef struct writing {
    duet_matrix *part;
    part_runs at;
    cursor from;
} writing;

static duet_status writing_open(writing *x, const output *out, const duet_matrix *m, int index)
{
    x->part = split_of(m)->view_part(m, index, &x->at);
    duet_status s = x->part ? DUET_OK : fail(DUET_NO_MEMORY, "no memory");
    if (s == DUET_OK && x->part->count) s = cursor_open(&x->from, x->part);
    return s == DUET_OK ? s : output_fail_within(out, s);
}

static void writing_close(writing *x)
{
    if (x->from.m) cursor_close(&x->from);
    x->from.m = NULL;
    duet_free(&x->part);
}

static duet_status write_next(writing *x, output *out, int64_t runs)
{
    return x->part->count ? cursor_write(&x->from, x->part->count / runs, out) : DUET_OK;
}

/* Every part is a block of the file. */
static duet_status write_blocks(output *out, const duet_matrix *m, int parts)
{
    duet_status s = DUET_OK;
    for (int i = 0; i < parts && s == DUET_OK; i++) {
        writing x = { NULL };
        s = writing_open(&x, out, m, i);
        if (s == DUET_OK) s = write_next(&x, out, 1);
        writing_close(&x);
    }
    return s;
}

/* The file contains a run of each part in turn. */
static duet_status write_in_turns(output *out, const duet_matrix *m, int parts, int64_t runs)
{
    writing *x = calloc((size_t)parts, sizeof *x);
    duet_status s = x ? DUET_OK : fail(DUET_NO_MEMORY, "%s: no memory", out->who);
    for (int i = 0; i < parts && s == DUET_OK; i++) s = writing_open(&x[i], out, m, i);
    for (int64_t r = 0; r < runs && s == DUET_OK; r++)
        for (int i = 0; i < parts && s == DUET_OK; i++) s = write_next(&x[i], out, runs);
    for (int i = 0; i < parts && x; i++) writing_close(&x[i]);
    free(x);
    return s;
}

/* The number of runs of each part. */
static duet_status count_runs(const output *out, const duet_matrix *m, int64_t *runs)
{
    part_runs at;
    duet_matrix *part = split_of(m)->view_part(m, 0, &at);
    if (!part) return fail(DUET_NO_MEMORY, "%s: no memory", out->who);
    *runs = m->count / at.apart;
    duet_free(&part);
    return DUET_OK;
}

duet_status npy_write_parts(output *out, const duet_matrix *m)
{
    split *s = split_of(m);
    const int parts = s->at.axis < 0 ? 1 : s->parts;
    int64_t runs = 1;
    duet_status st = split_ready(m->storage);
    if (st != DUET_OK) return output_fail_within(out, st);
    pthread_mutex_lock(s->busy);
    st = count_runs(out, m, &runs);
    if (st == DUET_OK) st = runs == 1 ? write_blocks(out, m, parts) : write_in_turns(out, m, parts, runs);
    pthread_mutex_unlock(s->busy);
    return st;
}

/* ---- several processes ---- */

#define SLOWEST 10e6 /* bytes a second at which a rank may read or write */

duet_status npy_agree(const npy_call *call, duet_status mine, int turn)
{
    const layout *at = &call->m->at;
    communicator *c = split_of(call->m)->comm;
    const double limit = c->timeout;
    uint64_t word = hash_step(hash_step(0x6e7079, (uint64_t)turn), (uint64_t)at->type);
    for (int a = 0; a < at->rank; a++) word = hash_step(word, (uint64_t)at->size[a]);
    c->timeout += (double)npy_bytes(call->m) / SLOWEST; /* other ranks wait until the last one is done */
    const duet_status s = communicator_agree(c, mine, word);
    c->timeout = limit;
    if (mine != DUET_OK || s == DUET_OK) return s;
    return fail_within(s, "%s(\"%s\")", call->who, call->path);
}

bool npy_is_spread(const duet_matrix *m)
{
    const split *s = split_of(m);
    return s && m->count && s->at.axis >= 0 && s->comm->ranks > s->parts;
}

static duet_status tell_name(communicator *c, shared_file *f)
{
    if (c->rank) return communicator_exchange(c, NULL, 0, &(duet_message){ 0, f, sizeof *f }, 1);
    for (int r = 1; r < c->ranks; r++)
        TRY(communicator_exchange(c, &(duet_message){ r, f, sizeof *f }, 1, NULL, 0));
    return DUET_OK;
}

/* Writes the part of this process at its places in the file. */
static duet_status write_own(output *out, const duet_matrix *m, uint64_t begin)
{
    writing x = { NULL };
    const size_t each = dtypes[m->at.type].bytes;
    duet_status s = writing_open(&x, out, m, 0);
    const int64_t runs = m->count / x.at.apart;
    for (int64_t r = 0; r < runs && s == DUET_OK && x.part->count; r++) {
        s = output_move(out, begin + (uint64_t)(x.at.first + r * x.at.apart) * each);
        if (s == DUET_OK) s = write_next(&x, out, runs);
    }
    writing_close(&x);
    return s;
}

/* Rank 0 renames the file after all others have closed it. An error of close is an error of writing. */
static duet_status write_shared(const npy_call *call, const shared_file *f, output *out)
{
    unsigned char front[NPY_FRONT_MOST];
    const duet_matrix as_stored = npy_as_stored(call->m);
    const size_t begin = npy_front(call->m, front);
    const bool first = split_of(call->m)->comm->rank == 0;
    duet_status s = first ? DUET_OK : output_join(out, call->who, call->path, f);
    const bool opened = s == DUET_OK;
    if (s == DUET_OK) s = output_move(out, 0);
    if (s == DUET_OK && first) s = output_write(out, front, begin);
    if (s == DUET_OK) s = write_own(out, &as_stored, begin);
    if (opened && !first) s = output_close(out, s);
    if (s == DUET_OK && first) s = output_flush(out);
    s = npy_agree(call, s, 2);
    return first ? output_close(out, s) : s;
}

/* For a pipe, and a view whose elements are not in such parts: rank 0 writes all elements. */
static duet_status write_gathered(const npy_call *call)
{
    output out;
    const void *p;
    split *of = split_of(call->m);
    duet_status s = elements_of(call->m, &p);
    if (s == DUET_OK) s = path_check(call->who, call->path);
    pthread_mutex_lock(of->busy);
    s = npy_agree(call, s, 5);
    if (s == DUET_OK) {
        if (of->comm->rank == 0) {
            s = output_open(&out, call->who, call->path);
            if (s == DUET_OK) s = output_close(&out, npy_write_from(&out, call->m, p));
        }
        s = npy_agree(call, s, 4);
    }
    pthread_mutex_unlock(of->busy);
    return s;
}

static duet_status open_first(const npy_call *call, output *out, shared_file *f)
{
    TRY(path_check(call->who, call->path));
    const duet_status s = split_ready(call->m->storage);
    if (s != DUET_OK) return fail_within(s, "%s(\"%s\")", call->who, call->path);
    if (split_of(call->m)->comm->rank) return s;
    return output_open_shared(out, call->who, call->path, npy_bytes(call->m), f);
}

duet_status npy_save_together(const char *path, const duet_matrix *m)
{
    split *s = split_of(m);
    const npy_call call = { "duet_save_npy", path, m };
    const duet_matrix as_stored = npy_as_stored(m);
    output out;
    shared_file f = { .is_regular = false };
    if (!s->has_parts(&as_stored)) return write_gathered(&call);
    duet_status st = open_first(&call, &out, &f);
    pthread_mutex_lock(s->busy);
    const bool opened = st == DUET_OK && f.is_regular;
    st = npy_agree(&call, st, 1);
    if (st == DUET_OK) st = tell_name(s->comm, &f);
    if (st == DUET_OK && f.is_regular) st = write_shared(&call, &f, &out);
    else if (opened) st = output_close(&out, st); /* of rank 0 */
    st = npy_agree(&call, st,
                   3); /* when any process returns, the temporary file has been renamed or removed */
    pthread_mutex_unlock(s->busy);
    return st == DUET_OK && !f.is_regular ? write_gathered(&call) : st;
}
