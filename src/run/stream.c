/* stream.c - runs a statement part by part: while this thread's queue computes one part of the
 * rows, two other queues upload the next part and download the previous one.
 *
 * In turn t, part t is uploaded, part t - 1 is computed and part t - 2 is downloaded, at the same
 * time. A turn begins when the one before it is done. So three parts are on the device, in three
 * sets of blocks. The first download comes after two parts were computed: the one with the
 * remainder of the rows, and a full one. By then all memory is allocated and every algorithm is
 * chosen, so that only a device error can stop the statement half-way.
 *
 * Host memory that is not pinned is copied through a pinned staging buffer. Then the host begins a
 * turn when the copies of the previous turn are done. During the turn it copies part t + 1 into
 * the staging buffer, and part t - 3 out of it. */
#include "stream.h"
#include "deferred.h"
#include "device_use.h"
#include "dtype.h"
#include "eviction.h"
#include "execute.h"
#include "matrix.h"
#include "min_max.h"
#include "pool.h"
#include "queue_sync.h"
#include "staging.h"
#include "status.h"
#include "stream_policy.h"
#include "thread.h"
#include "trace.h"
#include "transfers.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SETS  3
#define ALIGN 256

static size_t staged_least = (size_t)64 << 10;
/* Only one statement streams at a time, because all statements share one link to the device. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

void stream_staged_from(size_t bytes) { staged_least = bytes; }

/* An operand: its rows are copied from or to the host, or it is on the device. */
typedef struct carried {
    const duet_matrix *m;
    char *host;   /* the first element, if rows are copied; else NULL */
    char *device; /* the first element, if it is on the device */
    size_t at;    /* offset in a set, if rows are copied */
    size_t step;  /* bytes from row to row; 0: every part uses all of it */
    bool up, down;
    bool staged;           /* copies go through the staging buffer, */
    size_t up_at, down_at; /* with these offsets in a set of it */
} carried;

typedef struct flow {
    buffer_user user; /* the first member: its function casts it back */
    const plan *p;    /* the plan of a full part; that of the remainder is p->stream->remainder */
    const statement *s;
    carried *of; /* destinations, leaves */
    void **data;
    double *num;
    char *block;
    size_t set; /* bytes */
    staging staging;
    int queue;        /* the queue that computes */
    int taken;        /* temporaries of full parts, */
    bool has_taken;   /* are these temporaries allocated? */
    bool has_written; /* part of a result has reached the host */
} flow;

/* ---- parts ---- */

static int64_t first_row(const streaming *w, int64_t part)
{
    const int64_t rest = w->length % w->rows;
    return rest && part ? rest + (part - 1) * w->rows : part * w->rows;
}

static int64_t rows_of(const streaming *w, int64_t part)
{
    const int64_t rest = w->length % w->rows;
    return rest && !part ? rest : w->rows;
}

static const plan *plan_of(const flow *f, int64_t part)
{
    const streaming *w = f->p->stream;
    return w->remainder && !part ? w->remainder : f->p;
}

static int operands(const flow *f) { return f->p->dests + f->p->n_leaves; }

/* ---- where operands are: on the host or on the device ---- */

static duet_status open_host(carried *c, int device, enum use use, int queue)
{
    void *p;
    TRY(matrix_open(c->m, HOST, use, queue, &p));
    matrix_copied(c->m, device);
    c->host = p;
    c->step = row_step(c->m);
    return DUET_OK;
}

static duet_status open_device(carried *c, int device, bool is_split, int queue)
{
    void *p;
    TRY(matrix_open(c->m, device, READ, queue, &p));
    c->device = p;
    c->step = is_split ? row_step(c->m) : 0;
    return DUET_OK;
}

/* The destination that is the same memory, and so uses the same blocks; or -1. */
static int dest_of_leaf(const flow *f, const duet_matrix *m)
{
    for (int k = 0; k < f->p->dests; k++)
        if (f->p->first_write[k] >= 0 && matrix_overlap(f->s->to[k].m, m) == SAME) return k;
    return -1;
}

/* A leaf that is valid on the device is read there. */
static duet_status open_leaf(flow *f, int i)
{
    carried *c = &f->of[f->p->dests + i];
    const uint32_t n = f->p->leaves[i].node;
    const bool is_split = f->p->stream->part[n] == PART_SPLIT;
    c->m = f->s->f->nodes[n].matrix;
    const int dest = dest_of_leaf(f, c->m);
    if (dest < 0 && (!is_split || storage_valid_on(c->m->storage, f->p->device)))
        return open_device(c, f->p->device, is_split, f->queue);
    TRY(open_host(c, f->p->device, READ, f->queue));
    TRY(transfer_check(c->m, HOST, f->p->device));
    if (dest < 0) c->up = true;
    else {
        f->of[dest].up = true;
        c->host = NULL;
    }
    return DUET_OK;
}

static duet_status open_all(flow *f)
{
    for (int i = 0; i < f->p->n_leaves; i++) TRY(open_leaf(f, i));
    for (int k = 0; k < f->p->dests; k++) {
        if (f->p->first_write[k] < 0) continue;
        f->of[k].m = f->s->to[k].m;
        f->of[k].down = true;
        TRY(transfer_check(f->of[k].m, f->p->device, HOST));
        TRY(open_host(&f->of[k], f->p->device, OVERWRITE, f->queue));
    }
    return DUET_OK;
}

static size_t take(size_t *from, size_t bytes)
{
    const size_t at = *from;
    *from += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

static void take_staging(flow *f, carried *c, size_t bytes)
{
    c->staged = bytes >= staged_least && !storage_is_pinned(c->m->storage);
    if (c->staged && c->up) c->up_at = take(&f->staging.set, bytes);
    if (c->staged && c->down) c->down_at = take(&f->staging.set, bytes);
}

static duet_status take_sets(flow *f)
{
    for (carried *c = f->of; c < f->of + operands(f); c++) {
        if (!c->host) continue;
        const size_t bytes = rows_bytes(c->m, f->p->stream->rows);
        c->at = take(&f->set, bytes);
        take_staging(f, c, bytes);
    }
    staging_open(&f->staging, f->p->device);
    void *block;
    TRY(memory_take(MEMORY_SCRATCH, f->p->device, SETS * f->set, f->queue, &block));
    f->block = block;
    return DUET_OK;
}

/* ---- upload, compute and download a part ---- */

static char *in_set(const flow *f, const carried *c, int64_t part)
{
    return f->block + (size_t)(part % SETS) * f->set + c->at;
}

static char *on_host(const flow *f, const carried *c, int64_t part)
{
    return c->host + (size_t)first_row(f->p->stream, part) * c->step;
}

static size_t part_bytes(const flow *f, const carried *c, int64_t part)
{
    return rows_bytes(c->m, rows_of(f->p->stream, part));
}

static bool is_staged(const flow *f, const carried *c) { return c->staged && f->staging.block; }

static duet_status to_staging(const flow *f, int64_t part)
{
    for (const carried *c = f->of; c < f->of + operands(f); c++)
        if (c->up && is_staged(f, c))
            TRY(staging_copy(staging_at(&f->staging, part, c->up_at), on_host(f, c, part),
                             part_bytes(f, c, part)));
    return DUET_OK;
}

static duet_status from_staging(flow *f, int64_t part)
{
    for (const carried *c = f->of; c < f->of + f->p->dests; c++) {
        if (!c->down || !is_staged(f, c)) continue;
        f->has_written = true;
        TRY(staging_copy(on_host(f, c, part), staging_at(&f->staging, part, c->down_at),
                         part_bytes(f, c, part)));
    }
    return DUET_OK;
}

static duet_status upload_part(flow *f, int64_t part)
{
    for (const carried *c = f->of; c < f->of + operands(f); c++) {
        if (!c->up) continue;
        const size_t bytes = part_bytes(f, c, part);
        const char *from = is_staged(f, c) ? staging_at(&f->staging, part, c->up_at) : on_host(f, c, part);
        TRY(f->p->machine->upload(f->p->device, in_set(f, c, part), from, bytes, QUEUE_UP));
        COUNT(uploads);
        COUNT_N(upload_bytes, bytes);
    }
    return DUET_OK;
}

static duet_status download_part(flow *f, int64_t part)
{
    for (const carried *c = f->of; c < f->of + f->p->dests; c++) {
        if (!c->down) continue;
        const size_t bytes = part_bytes(f, c, part);
        char *to = is_staged(f, c) ? staging_at(&f->staging, part, c->down_at) : on_host(f, c, part);
        f->has_written |= !is_staged(f, c);
        TRY(f->p->machine->fetch(f->p->device, to, in_set(f, c, part), bytes, QUEUE_DOWN));
        COUNT(downloads);
        COUNT_N(download_bytes, bytes);
    }
    return DUET_OK;
}

static void bind(const flow *f, int64_t part)
{
    const size_t first = (size_t)first_row(f->p->stream, part);
    for (int i = 0; i < operands(f); i++) {
        const carried *c = &f->of[i];
        if (c->host) f->data[i] = in_set(f, c, part);
        else f->data[i] = c->device ? c->device + first * c->step : NULL;
    }
}

/* Temporaries of full parts are allocated before the first one, so that no later part can fail for
 * lack of them. Those of the remainder, which comes first, are released at once. */
static duet_status take_temporaries(flow *f, const plan *p, int *taken)
{
    *taken = 0;
    if (p != f->p) return plan_take_temporaries(p, f->data, f->queue, taken);
    if (f->has_taken) return DUET_OK;
    f->has_taken = true;
    return plan_take_temporaries(p, f->data, f->queue, &f->taken);
}

static duet_status compute(flow *f, int64_t part)
{
    const plan *p = plan_of(f, part);
    int taken, done;
    bind(f, part);
    plan_numbers(p, f->s->f, f->num);
    duet_status s = take_temporaries(f, p, &taken);
    plan_bind_derived(p, f->data);
    if (s == DUET_OK) s = plan_steps(p, &(frame){ f->data, f->num, f->queue, p->device }, &done);
    plan_release_temporaries(p, f->data, f->queue, taken);
    if (s == DUET_OK) COUNT_N(steps, p->count);
    return s;
}

static duet_status wait_for(const flow *f, int queue, int other)
{
    const int device = f->p->device;
    return f->p->machine->wait(device, queue, device, other);
}

/* Each stage waits for the stage before it in the previous turn. The upload overwrites what was
 * downloaded, so it waits too. */
static duet_status begin_turn(const flow *f)
{
    TRY(wait_for(f, QUEUE_DOWN, f->queue));
    TRY(wait_for(f, f->queue, QUEUE_UP));
    return wait_for(f, QUEUE_UP, QUEUE_DOWN);
}

static duet_status run_turn(flow *f, int64_t t)
{
    const int64_t parts = stream_parts(f->p->stream);
    TRY(begin_turn(f));
    if (t > 0 && t <= parts) TRY(compute(f, t - 1));
    if (t < parts) TRY(upload_part(f, t));
    if (t <= 1) return DUET_OK;
    return download_part(f, t - 2);
}

static duet_status wait_for_copies(const flow *f)
{
    TRY(queue_wait(f->p->device, QUEUE_UP, "what is staged for a streamed statement has gone up"));
    return queue_wait(f->p->device, QUEUE_DOWN, "a part of the results of a streamed statement");
}

/* Copies to and from the staging buffer, during turn t. */
static duet_status copy_on_host(flow *f, int64_t t)
{
    if (t > 2) TRY(from_staging(f, t - 3));
    if (t + 1 >= stream_parts(f->p->stream)) return DUET_OK;
    return to_staging(f, t + 1);
}

static duet_status run_turns(flow *f)
{
    const int64_t parts = stream_parts(f->p->stream);
    const bool stages = f->staging.block != NULL;
    TRY(wait_for(f, QUEUE_UP, f->queue)); /* work of this queue may still use the memory of the sets */
    if (stages) TRY(to_staging(f, 0));
    for (int64_t t = 0; t < parts + 2; t++) {
        if (stages) TRY(wait_for_copies(f));
        TRY(run_turn(f, t));
        if (stages) TRY(copy_on_host(f, t));
    }
    TRY(queue_wait(f->p->device, QUEUE_DOWN, "the results of a streamed statement"));
    if (!stages) return DUET_OK;
    return from_staging(f, parts - 1);
}

/* ---- all parts ---- */

/* Waits for all queues: memory that is given back must not be in use. */
static void stop(const flow *f)
{
    const int queues[] = { QUEUE_UP, f->queue, QUEUE_DOWN };
    error_text before;
    error_keep(&before);
    for (int i = 0; i < 3; i++) (void)queue_wait(f->p->device, queues[i], "a streamed statement failed");
    error_put_back(&before);
}

static void end(flow *f, duet_status s)
{
    for (int k = 0; k < f->p->dests; k++) {
        if (!f->of[k].down) continue;
        if (s == DUET_OK) matrix_wrote(f->s->to[k].m, HOST, f->queue);
        else if (f->has_written) matrix_write_failed(f->s->to[k].m, HOST);
    }
}

static void end_writes(const flow *f)
{
    for (int k = 0; k < f->p->dests; k++)
        if (f->p->first_write[k] >= 0) matrix_end_write(f->s->to[k].m);
}

static duet_status run_in_turns(flow *f)
{
    const streaming *w = f->p->stream;
    TRY(open_all(f));
    const duet_status taken = take_sets(f);
    if (taken != DUET_OK) {
        staging_close(&f->staging);
        return taken;
    }
    TRACE("stream through the %s in %lld parts of %lld rows, %zu bytes each", f->p->machine->name,
          (long long)stream_parts(w), (long long)w->rows, f->set);
    duet_status s = run_turns(f);
    if (s != DUET_OK) stop(f);
    if (s != DUET_OK && f->has_written)
        s = DUET_DEVICE_ERROR; /* other errors promise that nothing was written */
    plan_release_temporaries(f->p, f->data, f->queue, f->taken);
    pool_give(f->p->device, f->block, 1ull << f->queue);
    staging_close(&f->staging);
    end(f, s);
    if (s == DUET_OK) COUNT(streams);
    return s;
}

static bool flow_uses(const buffer_user *u, const storage *b)
{
    const flow *f = (const flow *)u;
    return plan_uses(f->p, f->s, b);
}

/* The larger of two plans' tables. */
static size_t slots_of(const plan *p, const plan *rest)
{
    const int own = plan_slots(p), other = rest ? plan_slots(rest) : 0;
    return (size_t)larger(other, own);
}

static duet_status run_once(const plan *p, const statement *s, bool *has_written)
{
    thread *t = thread_get();
    flow f = { .p = p, .s = s, .queue = t->queue };
    const size_t slots = slots_of(p, p->stream->remainder);
    f.of = calloc(slots + 1, sizeof *f.of);
    f.data = calloc(slots + 1, sizeof *f.data);
    f.num = calloc((size_t)p->n_numbers + 1, sizeof *f.num);
    duet_status st = DUET_NO_MEMORY;
    buffer_user_begin(t, &f.user, flow_uses);
    if (f.of && f.data && f.num) st = run_in_turns(&f);
    else fail(st, "no host memory to stream %zu operands", slots);
    buffer_user_end(t, &f.user);
    if (st != DUET_OK) end_writes(&f);
    free(f.of);
    free(f.data);
    free(f.num);
    *has_written = f.has_written;
    return st;
}

/* The memory that steps need besides their operands is not known in advance. If there is not enough,
 * runs the statement again in parts of fewer rows. */
static duet_status run_smaller(const plan *p, const statement *s, duet_status st)
{
    bool has_written = false;
    for (int64_t rows = p->stream->rows / 2; rows && st == DUET_NO_MEMORY && !has_written && s->f->words;
         rows /= 2) {
        plan *own = stream_plan(s, p->device, p->stream->length, rows, p->stream->part);
        if (!own) return fail(st, "no host memory to plan a part of %lld rows", (long long)rows);
        st = run_once(own, s, &has_written);
        plan_free(own);
    }
    return st;
}

duet_status stream_run(const plan *p, const statement *s)
{
    bool has_written;
    USE_GPUS;
    pthread_mutex_lock(&one_at_a_time);
    duet_status st = run_once(p, s, &has_written);
    if (st == DUET_NO_MEMORY && !has_written) st = run_smaller(p, s, st);
    pthread_mutex_unlock(&one_at_a_time);
    return st;
}

duet_status stream_run_less(const statement *s, const plan *p)
{
    error_text before;
    error_keep(&before);
    const plan *other = stream_choose_less(s, p);
    if (!other) {
        error_put_back(&before);
        return DUET_NO_MEMORY;
    }
    TRACE("%s after all: %s", other->stream ? "streamed" : "values are computed again", before.text);
    TRY(deferred_flush());
    const duet_status st = plan_run(other, s);
    if (st != DUET_UNKNOWN) return st;
    error_put_back(&before); /* the first run has already overwritten an operand */
    return DUET_NO_MEMORY;
}
