/* execute.c - runs a plan: binds matrices and numbers, allocates temporaries, and gives the steps
 * to the machine. */
#include "execute.h"
#include "dtype.h"
#include "eviction.h"
#include "history.h"
#include "matrix.h"
#include "scratch.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <stdlib.h>
#include <string.h>

typedef struct run {
    buffer_user user; /* the first member: its function casts it back */
    const plan *p;
    const statement *s;
    void **data; /* destinations, leaves, temporaries */
    double *num;
    int taken; /* temporaries allocated so far */
    int queue;
} run;

static void **temporaries(const plan *p, void **data) { return data + p->dests + p->n_leaves; }

/* The value of an integer: its bits for an integer program, else the integer as a double, perhaps
 * rounded. */
static __attribute__((noinline)) double integer_number(const bound *b, const formula *f)
{
    const node *n = b->node < 0 ? NULL : &f->nodes[b->node];
    double x;
    if (!b->integer) return node_number(n);
    const int64_t i = n ? node_integer(n, b->integer == DUET_U64) : (int64_t)b->constant;
    memcpy(&x, &i, sizeof x);
    return x;
}

static double bound_number(const bound *b, const formula *f)
{
    double x;
    if (unlikely(b->integer | b->wide)) x = integer_number(b, f);
    else x = b->node < 0 ? b->constant : f->nodes[b->node].number;
    if (!(b->inverted | b->negated)) return x;
    if (b->inverted) x = 1 / x;
    return b->negated ? -x : x;
}

void plan_numbers(const plan *p, const formula *f, double *num)
{
    for (int i = 0; i < p->n_numbers; i++) num[i] = bound_number(&p->numbers[i], f);
}

bool plan_has_numbers(const plan *p, const formula *f, const double *num)
{
    for (int i = 0; i < p->n_numbers; i++) {
        const double x = bound_number(&p->numbers[i], f);
        if (memcmp(&x, &num[i], sizeof x)) return false;
    }
    return true;
}

/* ---- which of several statements failed ---- */

static __attribute__((cold)) duet_status dest_failed(const statement *of, int k, duet_status s)
{
    if (of->failed_dest) *of->failed_dest = k;
    return s;
}

static __attribute__((cold)) duet_status leaf_failed(const statement *of, const leaf *l, duet_status s)
{
    int k = 0;
    while (k + 1 < of->count && of->to[k].node < (uint32_t)l->node) k++;
    return dest_failed(of, k, s);
}

/* depends: for each slot, whether its present contents depend on a step that failed. The real and
 * imaginary halves of complex elements may be written by separate steps. */
static bool reads_any(const plan *p, const step *s, const bool *depends)
{
    for (int i = 0; i < s->ins; i++)
        if (depends[plan_base_slot(p, s->in[i].slot)]) return true;
    return false;
}

static void note_writes(const plan *p, const step *s, bool does, bool *depends)
{
    for (int i = 0; i < s->outs; i++) {
        const int slot = s->out[i].slot, base = plan_base_slot(p, slot);
        depends[base] = does || (slot != base && depends[base]);
    }
}

/* The first destination that depends on a step; -1 if there is none, or no memory. */
static __attribute__((cold)) int dest_of(const plan *p, int failed)
{
    bool *depends = calloc((size_t)plan_operands(p), sizeof *depends);
    int k = 0;
    for (int i = failed; i < p->count && depends; i++)
        note_writes(p, &p->steps[i], i == failed || reads_any(p, &p->steps[i], depends), depends);
    while (depends && k < p->dests && !depends[k]) k++;
    free(depends);
    return k < p->dests ? k : -1;
}

/* ---- operands ---- */

static duet_status open_leaves(run *r)
{
    const plan *p = r->p;
    const node *nodes = r->s->f->nodes;
    const int device = p->device;
    void **to = r->data + p->dests;
    for (int i = 0; i < p->n_leaves; i++) {
        const leaf *l = &p->leaves[i];
        const duet_status s = matrix_open(nodes[l->node].matrix, device, READ, r->queue, to++);
        if (unlikely(s != DUET_OK)) return leaf_failed(r->s, l, s);
    }
    return DUET_OK;
}

static duet_status open_destinations(run *r)
{
    const plan *p = r->p;
    const int device = p->device;
    for (int k = 0, dests = p->dests; k < dests; k++) {
        if (p->first_write[k] < 0) continue;
        const duet_status s = matrix_open(r->s->to[k].m, device, OVERWRITE, r->queue, &r->data[k]);
        if (unlikely(s != DUET_OK)) return dest_failed(r->s, k, s);
    }
    return DUET_OK;
}

duet_status plan_take_temporaries(const plan *p, void **data, int queue, int *taken)
{
    for (*taken = 0; *taken < p->temps; ++*taken)
        TRY(scratch_acquire(p->device, p->temp[*taken], queue, &temporaries(p, data)[*taken]));
    return DUET_OK;
}

void plan_release_temporaries(const plan *p, void **data, int queue, int taken)
{
    for (int i = 0; i < taken; i++) scratch_release(p->device, temporaries(p, data)[i], queue);
}

void plan_wrote(const plan *p, const statement *s, int queue)
{
    COUNT_N(steps, p->count);
    for (int k = 0; k < p->dests; k++)
        if (p->first_write[k] >= 0) matrix_wrote(s->to[k].m, p->device, queue);
}

bool plan_wrote_before(const plan *p, int at)
{
    bool wrote = false;
    for (int k = 0; k < p->dests; k++) wrote |= p->first_write[k] >= 0 && p->first_write[k] < at;
    return wrote;
}

/* The storages to which the slots of a running plan belong. */
typedef struct plan_owners {
    owners of;
    const plan *p;
    const statement *s;
} plan_owners;

/* A leaf keeps its elements until the plan is done and its destinations count as written: memory that
 * overlaps a leaf is written only after the leaf was read. A leaf that is a destination has the
 * destination's slot. */
static storage *plan_owner(const owners *o, int slot)
{
    const plan_owners *w = (const plan_owners *)o;
    const int i = slot - w->p->dests;
    return i >= 0 && i < w->p->n_leaves ? w->s->f->nodes[w->p->leaves[i].node].matrix->storage : NULL;
}

/* A step that fails without DEVICE_ERROR has written nothing. Writing a destination failed if that
 * step, or an earlier one, wrote there. Steps after the first such write are sure
 * (machine.is_sure), so whatever the machine says, it is the device that failed. Returns the status
 * of the statement. */
static __attribute__((cold)) duet_status fail_writes(const run *r, int failed, duet_status s)
{
    (void)dest_failed(r->s, dest_of(r->p, failed), s);
    for (int k = 0; k < r->p->dests; k++) {
        const int first = r->p->first_write[k];
        if (first >= 0 && (failed > first || (failed == first && s == DUET_DEVICE_ERROR)))
            matrix_write_failed(r->s->to[k].m, r->p->device);
    }
    return plan_wrote_before(r->p, failed) ? error_becomes(DUET_DEVICE_ERROR) : s;
}

void plan_bind_derived(const plan *p, void **data)
{
    void **derived = data + plan_operands(p);
    for (int i = 0; i < p->n_derived; i++) {
        char *base = data[p->derived[i].base];
        derived[i] = base ? base + p->derived[i].bytes : NULL;
    }
}

duet_status plan_step(const plan *p, const frame *f, int *done)
{
    const step *s = &p->steps[*done];
    bool joined = false;
    if (s->joins) TRY(p->machine->run_joined(s, s + 1, f, &joined));
    if (!joined) TRY(p->machine->run(s, f));
    *done += 1 + joined;
    return DUET_OK;
}

duet_status plan_join(const plan *p, const frame *f, duet_status s)
{
    error_text before;
    if (likely(!p->collects) || !p->machine->join) return s;
    if (s == DUET_OK) return p->machine->join(f->device, f->queue);
    error_keep(&before);
    (void)p->machine->join(f->device, f->queue);
    error_put_back(&before);
    return s;
}

static duet_status run_all(const plan *p, const frame *f, int *done)
{
    *done = 0;
    for (int i = p->first_sure; i < p->count; i++) TRY(p->machine->make_sure(&p->steps[i], p->device));
    while (*done < p->count) {
        const step *s = &p->steps[*done];
        TRACE("step %d of %d on the %s: %s", *done + 1, p->count, p->machine->name,
              kernel_name(s->kernel, s->epilogue));
        TRY(plan_step(p, f, done));
    }
    return DUET_OK;
}

duet_status plan_steps(const plan *p, const frame *f, int *done)
{
    return plan_join(p, f, run_all(p, f, done));
}

static duet_status run_steps(run *r)
{
    const plan_owners whose = { { plan_owner }, r->p, r->s };
    int done;
    duet_status s = plan_steps(r->p, &(frame){ r->data, r->num, r->queue, r->p->device, &whose.of }, &done);
    if (likely(s == DUET_OK)) plan_wrote(r->p, r->s, r->queue);
    else s = fail_writes(r, done, s);
    return s;
}

static duet_status run_bound(run *r)
{
    const plan *p = r->p;
    TRY(open_leaves(r));
    if (p->temps) TRY(plan_take_temporaries(p, r->data, r->queue, &r->taken));
    TRY(open_destinations(r));
    plan_bind_derived(p, r->data);
    plan_numbers(p, r->s->f, r->num);
    return run_steps(r);
}

/* ---- which matrices a statement uses ---- */

bool plan_uses(const plan *p, const statement *s, const storage *b)
{
    for (int k = 0; k < p->dests; k++)
        if (s->to[k].m->storage == b) return true;
    for (int i = 0; i < p->n_leaves; i++)
        if (s->f->nodes[p->leaves[i].node].matrix->storage == b) return true;
    return false;
}

/* A storage that is read and written counts as read, because leaves come first. */
void plan_note_uses(const plan *p, const statement *s)
{
    history *h = history_statement(p->number);
    for (int i = 0; i < p->n_leaves && h; i++)
        history_add(h, s->f->nodes[p->leaves[i].node].matrix->storage, true);
    for (int k = 0; k < p->dests && h; k++)
        if (p->first_write[k] >= 0) history_add(h, s->to[k].m->storage, !matrix_fills(s->to[k].m));
}

static bool run_uses(const buffer_user *u, const storage *b)
{
    const run *r = (const run *)u;
    return plan_uses(r->p, r->s, b);
}

static duet_status run_on_gpu(run *r)
{
    thread *t = thread_get();
    if (unlikely(pool_is_watched())) plan_note_uses(r->p, r->s);
    buffer_user_begin(t, &r->user, run_uses);
    const duet_status status = run_bound(r);
    buffer_user_end(t, &r->user);
    return status;
}

static __attribute__((cold)) void end_writes_on_host(const plan *p, const statement *s)
{
    for (int k = 0; k < p->dests; k++)
        if (p->first_write[k] >= 0) matrix_end_write(s->to[k].m);
}

static duet_status run_in(const plan *p, const statement *s, void **data, double *num)
{
    run r; /* run_on_gpu sets the other members */
    r.p = p;
    r.s = s;
    r.data = data;
    r.num = num;
    r.taken = 0;
    r.queue = thread_get()->queue;
    TRACE("run on the %s: %d steps, %d temporaries, expected %.1f us", p->machine->name, p->count, p->temps,
          plan_seconds(p) * 1e6);
    const duet_status status = p->device == HOST ? run_bound(&r) : run_on_gpu(&r);
    if (unlikely(status != DUET_OK) && p->device == HOST) end_writes_on_host(p, s);
    if (!p->temps) return status;
    COUNT_N(temporaries, r.taken);
    plan_release_temporaries(p, data, r.queue, r.taken);
    return status;
}

static __attribute__((noinline)) duet_status run_many(const plan *p, const statement *s, size_t slots)
{
    void **data = malloc(slots * sizeof *data + (size_t)p->n_numbers * sizeof(double));
    if (!data) return fail(DUET_NO_MEMORY, "no host memory for the addresses of %zu operands", slots);
    duet_status status = run_in(p, s, data, (double *)(data + slots));
    free(data);
    return status;
}

static __attribute__((noinline)) duet_status run_few(const plan *p, const statement *s)
{
    void *data[FEW];
    double num[FEW];
    return run_in(p, s, data, num);
}

duet_status plan_run_once(const plan *p, const statement *s)
{
    const int slots = plan_slots(p);
    if (likely(slots <= FEW && p->n_numbers <= FEW)) return run_few(p, s);
    return run_many(p, s, (size_t)slots);
}
