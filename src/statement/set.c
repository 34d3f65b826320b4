/* set.c - duet_set and the statements like it: they check a formula, find its plan, and run, record
 * or explain it. */
#include "auto_replay.h"
#include "clock.h"
#include "compiler.h"
#include "deferred.h"
#include "device_use.h"
#include "dtype.h"
#include "eviction.h"
#include "matrix.h"
#include "ready.h"
#include "statement.h"
#include "status.h"
#include "stream.h"
#include "thread.h"
#include "trace.h"
#include "undo.h"
#include <string.h>

/* Is the type of e that of m, or one that promotes to it? */
static bool takes_type(const duet_matrix *m, const node *e)
{
    if (e->flags & NODE_WEAK) return dtype_is_complex(m->at.type) || !dtype_is_complex((duet_dtype)e->type);
    return dtype_promote((duet_dtype)e->type, m->at.type) == m->at.type;
}

/* The documented names of the destination and of the assigned formula. */
typedef struct parameter_names {
    const char *function, *to, *value;
} parameter_names;

static const parameter_names *names_of(const char *who)
{
    static const parameter_names others[] = {
        { "duet_convmtx", "to", "e" },         { "duet_noise", "to", "e" },
        { "duet_shuffle", "to", "e" },         { "duet_set_all", "to", "value" },
        { "duet_explain_all", "to", "value" },
    };
    static const parameter_names most = { "", "m", "e" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strncmp(who, others[i].function, strlen(others[i].function))) return &others[i];
    return &most;
}

static __attribute__((cold)) duet_status does_not_fit(const char *who, const duet_matrix *m, const node *e)
{
    char to[SHAPE_TEXT], from[SHAPE_TEXT];
    shape_text(to, m->at.type, m->at.rank, m->at.size);
    shape_text(from, (duet_dtype)e->type, e->rank, e->size);
    const parameter_names *name = names_of(who);
    if (!takes_type(m, e))
        return fail(DUET_BAD_TYPE,
                    "%s(%s: %s, %s: %s): %s elements cannot be assigned to %s without loss; convert %s with "
                    "duet_cast",
                    who, name->to, to, name->value, from, dtypes[e->type].name, dtypes[m->at.type].name,
                    name->value);
    return fail(DUET_BAD_SHAPE, "%s(%s: %s, %s: %s): the shape of %s does not broadcast to that of %s", who,
                name->to, to, name->value, from, name->value, name->to);
}

static bool broadcasts_to(const node *e, const layout *to)
{
    int off = to->rank - e->rank;
    if (off < 0) return false;
    for (int i = 0; i < e->rank; i++)
        if (e->size[i] != to->size[off + i] && e->size[i] != 1) return false;
    return true;
}

/* Puts the statement in front of the error text. */
static __attribute__((noinline, cold)) duet_status name_statement(duet_status s, const char *who,
                                                                  const duet_matrix *m)
{
    char to[SHAPE_TEXT];
    return fail_within(s, "%s(%s: %s)", who, names_of(who)->to,
                       shape_text(to, m->at.type, m->at.rank, m->at.size));
}

static duet_status bad_matrix(const char *who, const duet_matrix *m)
{
    const char *name = names_of(who)->to;
    if (m) return fail(DUET_FREED, "%s: %s is a matrix that was freed", who, name);
    return fail(DUET_BAD_ARGUMENT, "%s: %s must not be NULL", who, name);
}

/* All checks before a plan is looked up. e: the node of the right-hand side. */
static duet_status check(const char *who, const duet_matrix *m, const node *e)
{
    if (unlikely(!m || !m->serial)) return bad_matrix(who, m);
    const bool same = e->type == m->at.type && !(e->flags & NODE_WEAK);
    if (unlikely(!broadcasts_to(e, &m->at) || !(same || takes_type(m, e)))) return does_not_fit(who, m, e);
    TRY(matrix_check_writable(who, m));
    if (same) return DUET_OK;
    const duet_status s = number_fits(e, m->at.type);
    if (likely(s == DUET_OK)) return s;
    return name_statement(s, who, m);
}

/* Makes the patterns, which are formulas too, before a formula is read: growing the arena may move
 * nodes. */
static duet_status prepare(const char *who)
{
    if (match_prepare() == DUET_OK) return DUET_OK;
    return fail(DUET_NO_MEMORY, "%s: out of memory for the patterns of fused operators", who);
}

static __attribute__((noinline, cold)) duet_status run_apart(const plan *p, const statement *s, bool *own)
{
    *own = false;
    TRY(deferred_flush());
    *own = true;
    return plan_run(p, s);
}

/* own: whether a failure is this statement's, not that of deferred work. failures: deferred_failures
 * before the statement. */
static duet_status run_there(const plan *p, const statement *s, unsigned failures, bool *own)
{
    *own = true;
    if (unlikely(thread_get()->recording != NULL)) return record_run(p, s);
    if (p->device == HOST) return plan_run(p, s);
    if (unlikely(plan_runs_alone(p))) return run_apart(p, s, own);
    const duet_status st = auto_replay_run(p, s, own);
    if (likely(st != DUET_NO_MEMORY) || !*own || failures != deferred_failures()) return st;
    return stream_instead(s, p);
}

/* Runs on the CPU a statement for which the GPU has no memory, or that found the GPU lost. If the CPU does
 * not support the statement, or has no memory either, the GPU's error is reported. */
static __attribute__((noinline, cold)) duet_status run_on_cpu(const statement *s)
{
    bool own;
    error_text before;
    error_keep(&before);
    TRACE("run on the CPU instead: %s", before.text);
    const plan *p = plan_find(s, HOST);
    duet_status st = DUET_NO_MEMORY;
    if (p && p->status == DUET_OK) st = run_there(p, s, deferred_failures(), &own);
    if (st == DUET_OK || st == DUET_DEVICE_ERROR) return st;
    error_put_back(&before);
    return before.status;
}

/* With the place AUTO, the CPU runs statements for which the GPU has no memory, unless results must be
 * reproducible. It also runs those that found the GPU lost. A failure of deferred statements is
 * reported, whichever thread deferred them. */
static duet_status run(const plan *p, const statement *s, duet_place place)
{
    bool own;
    const unsigned failures = deferred_failures();
    const duet_status st = run_there(p, s, failures, &own);
    if (likely(st == DUET_OK) || (st != DUET_NO_MEMORY && st != DUET_NO_DEVICE)) return st;
    if (!own || failures != deferred_failures() || place != DUET_AUTO || p->device == HOST) return st;
    if (st == DUET_NO_MEMORY && reproducible()) return st;
    return run_on_cpu(s);
}

/* ---- one statement ---- */

static duet_status read_one(const char *who, const duet_matrix *m, duet_expr e, formula *f)
{
    TRY(prepare(who));
    TRY(formula_of(e, who, f));
    TRY(check(who, m, &f->nodes[f->count - 1]));
    return formula_lives(who, f);
}

/* Prints the plan instead of running it. */
static __attribute__((noinline, cold)) duet_status explain(const statement *s, duet_place place)
{
    const plan *p;
    TRY(plan_preview(s, place, &p));
    plan_print(thread_get()->explaining, p, s);
    return DUET_OK;
}

static duet_status evaluate(const char *who, duet_place place, duet_matrix *m, duet_expr e)
{
    formula f;
    const plan *p;
    TRY(read_one(who, m, e, &f));
    if (unlikely(place > DUET_GPU))
        return fail(DUET_BAD_ARGUMENT, "%s: place (%d) must be DUET_AUTO, DUET_CPU or DUET_GPU", who,
                    (int)place);
    const target to = { m, f.count - 1 };
    statement s = { &to, 1, &f, fusion_now(), math_now() };
    plans_reserve(1);
    place = place_now(place);
    if (unlikely(thread_get()->explaining != NULL)) return explain(&s, place);
    duet_status done = plan_place(&s, place, &p);
    if (likely(done == DUET_OK)) done = run(p, &s, place);
    if (likely(done == DUET_OK)) return done;
    return name_statement(done, who, m);
}

duet_status statement_part(const char *who, duet_matrix *m, duet_expr e)
{
    duet_status s = evaluate(who, DUET_AUTO, m, e);
    formula_spend(e, thread_get()->site);
    return s;
}

static duet_status set(const char *who, duet_place place, duet_matrix *m, duet_expr e, const char *site)
{
    thread_get()->site = site;
    IN_DEFAULT_FP_ENVIRONMENT;
    duet_status s = evaluate(who, place, m, e);
    formula_spend(e, site);
    return statement_ends(s, site);
}

duet_status statement_set(const char *who, duet_matrix *m, duet_expr e, const char *site)
{
    return set(who, DUET_AUTO, m, e, site);
}

duet_status duet_set_at(duet_matrix *m, duet_expr e, const char *site)
{
    return set("duet_set", DUET_AUTO, m, e, site);
}
duet_status(duet_set)(duet_matrix *m, duet_expr e) { return set("duet_set", DUET_AUTO, m, e, NULL); }

duet_status duet_set_on_at(duet_place place, duet_matrix *m, duet_expr e, const char *site)
{
    return set("duet_set_on", place, m, e, site);
}
duet_status(duet_set_on)(duet_place place, duet_matrix *m, duet_expr e)
{
    return set("duet_set_on", place, m, e, NULL);
}

/* Fails because of an invalid math mode. Like any statement, it spends e and makes a recording fail. */
static __attribute__((cold)) duet_status no_such_mode(duet_math_mode math, duet_expr e, const char *site)
{
    const duet_status s = fail(DUET_BAD_ARGUMENT, "duet_set_math: math (%d) is not a math mode", (int)math);
    formula_spend(e, site);
    return statement_ends(s, site);
}

duet_status duet_set_math_at(duet_math_mode math, duet_matrix *m, duet_expr e, const char *site)
{
    if ((unsigned)math > DUET_MATH_BF16) return no_such_mode(math, e, site);
    duet_scope block = duet_math_open(math);
    const duet_status s = set("duet_set_math", DUET_AUTO, m, e, site);
    duet_math_close(&block);
    return s;
}
duet_status(duet_set_math)(duet_math_mode math, duet_matrix *m, duet_expr e)
{
    return duet_set_math_at(math, m, e, NULL);
}

#define IN_PLACE(name, op)                                                                                   \
    duet_status duet_##name##_at(duet_matrix *m, duet_expr e, const char *site)                              \
    {                                                                                                        \
        const duet_expr x = duet_of_matrix(m);                                                               \
        const duet_expr made = duet_##op##_at(x, e, site);                                                   \
        return set("duet_" #name, DUET_AUTO, m, formula_called(#name, 2, (duet_expr[]){ x, e }, made, site), \
                   site);                                                                                    \
    }                                                                                                        \
    duet_status(duet_##name)(duet_matrix * m, duet_expr e) { return duet_##name##_at(m, e, NULL); }
IN_PLACE(iadd, add)
IN_PLACE(isub, sub)
IN_PLACE(imul, mul)
IN_PLACE(idiv, div)

duet_status(duet_explain)(FILE *out, duet_matrix *m, duet_expr e)
{
    formula f;
    const plan *p;
    if (!out) return fail(DUET_BAD_ARGUMENT, "duet_explain: out must not be NULL");
    IN_DEFAULT_FP_ENVIRONMENT;
    TRY(read_one("duet_explain", m, e, &f));
    const target to = { m, f.count - 1 };
    statement s = { &to, 1, &f, fusion_now(), math_now() };
    plans_reserve(1);
    TRY(plan_preview(&s, place_now(DUET_AUTO), &p));
    plan_print(out, p, &s);
    return DUET_OK;
}

/* ---- several statements ---- */

typedef struct statements {
    const duet_assignment *a;
    int count;
    const char *who, *noun; /* noun: what the user calls one of them */
    formula f;
    target to[STATEMENTS];
} statements;

static __attribute__((cold)) duet_status name_number(duet_status s, const statements *all, int k)
{
    if (!strncmp(duet_error(), all->who, strlen(all->who))) return fail_within(s, "%s %d", all->noun, k + 1);
    return fail_within(s, "%s %d of %s", all->noun, k + 1, all->who);
}

static duet_status check_all(statements *all)
{
    for (int k = 0; k < all->count; k++) {
        const uint32_t first = k ? all->to[k - 1].node + 1 : 0;
        const formula own = { all->f.nodes + first, all->to[k].node + 1 - first, NULL, 0 };
        duet_status s = check(all->who, all->to[k].m, &all->f.nodes[all->to[k].node]);
        if (s == DUET_OK) s = formula_lives(all->who, &own);
        if (s != DUET_OK) return name_number(s, all, k);
    }
    return DUET_OK;
}

static duet_status read_all(statements *all)
{
    uint32_t root[STATEMENTS];
    int failed;
    if (!all->a) return fail(DUET_BAD_ARGUMENT, "%s: the list of statements must not be NULL", all->who);
    if (all->count < 1 || all->count > STATEMENTS)
        return fail(DUET_BAD_ARGUMENT, "%s: the number of statements (%d) must be from 1 to %d", all->who,
                    all->count, STATEMENTS);
    TRY(prepare(all->who));
    duet_status s = formulas_of(all->a, all->count, all->who, &all->f, root, &failed);
    if (s != DUET_OK) return name_number(s, all, failed);
    for (int k = 0; k < all->count; k++) all->to[k] = (target){ all->a[k].to, root[k] };
    return check_all(all);
}

/* May statement k be planned together with those from `first` on? */
static bool goes_with(const statements *all, int first, int k)
{
    for (int e = first; e < k; e++) {
        const duet_matrix *to = all->to[e].m;
        if (matrix_overlap(to, all->to[k].m) == TANGLED) return false;
        for (uint32_t i = all->to[k - 1].node + 1; i <= all->to[k].node; i++)
            if (all->f.nodes[i].op == OP_LEAF && matrix_overlap(to, all->f.nodes[i].matrix) == TANGLED)
                return false;
    }
    return true;
}

/* Statements that are planned together. */
typedef struct group {
    formula f;
    target to[STATEMENTS];
    int count;
} group;

static void take_group(const statements *all, int first, group *g)
{
    const uint32_t from = first ? all->to[first - 1].node + 1 : 0;
    const node *nodes = all->f.nodes;
    for (g->count = 1; first + g->count < all->count && goes_with(all, first, first + g->count);) g->count++;
    const uint32_t upto = all->to[first + g->count - 1].node + 1, base = nodes[0].word;
    const uint32_t end = upto < all->f.count ? nodes[upto].word - base : all->f.length,
                   begin = nodes[from].word - base;
    g->f = (formula){ nodes + from, upto - from, all->f.words + begin, end - begin };
    for (int k = 0; k < g->count; k++)
        g->to[k] = (target){ all->to[first + k].m, all->to[first + k].node - from };
}

typedef duet_status on_group(const statement *s, const plan *p, void *context);

/* dest: the statement of the group that failed, -1 if unknown. */
static __attribute__((cold)) duet_status name_failed(duet_status s, const statements *all, int first,
                                                     const group *g, int dest)
{
    if (g->count == 1) dest = 0;
    if (dest >= 0) return name_number(s, all, first + dest);
    return fail_within(s, "%ss %d to %d of %s", all->noun, first + 1, first + g->count, all->who);
}

/* Plans and runs the groups in order. All groups are checked for support before the first runs, and
 * `before` is called for each, unless it is NULL. The device of a group is chosen just before it
 * runs. */
static duet_status each_group(const statements *all, bool runs, on_group *before, on_group *act,
                              void *context)
{
    group g;
    const plan *p;
    duet_status s = DUET_OK;
    plans_reserve(all->count);
    for (int turn = 0; turn < 2; turn++)
        for (int first = 0; first < all->count && s == DUET_OK; first += g.count) {
            take_group(all, first, &g);
            int failed = -1;
            const statement one = { g.to, g.count, &g.f, fusion_now(), math_now(), &failed };
            if (!turn && g.count == all->count) break; /* the only group */
            s = (turn && runs ? plan_place : plan_preview)(&one, place_now(DUET_AUTO), &p);
            if (s == DUET_OK && (turn ? act : before)) s = (turn ? act : before)(&one, p, context);
            if (s != DUET_OK) name_failed(s, all, first, &g, failed);
        }
    return s;
}

/* The groups of a list, and how to undo those that have run. A group that fails has changed
 * nothing, so the destinations of the last one are never saved. */
typedef struct progress {
    buffer_user
        user;    /* the first member: its function casts it back. Buffers of ready groups are not freed */
    bool guards; /* does `user` count? */
    const statements *all;
    thread *gpu_user; /* device_use.h: from the first group on a GPU to the end of the list; or NULL */
    int statements;
    int begun;   /* statements of the groups that have begun */
    int to_save; /* statements before the last group that may fail without a device error */
    int seen;    /* statements of the groups that were looked at */
    bool all_ready;
    const duet_matrix *to[STATEMENTS]; /* the destinations of these */
    const plan *plans[STATEMENTS];     /* at the first statement of each of these groups */
    held_memory held;
    undo_log undo;
} progress;

/* Memory is held on the GPU, and elements are saved there, from one group to the next. */
static __attribute__((noinline)) void use_gpus(progress *w, const plan *p)
{
    if (p->device != HOST && !w->gpu_user) w->gpu_user = device_use_begin();
}

/* Of other threads, w->user guards only buffers that a queue of this thread may use. */
static bool is_guarded(const progress *w, const statement *s, const plan *p)
{
    return p->device == HOST || (w->guards && plan_open_operands(p, s, w->to, w->seen));
}

/* A plan that is recorded is made again. If the GPU has no memory for a group that may run
 * anywhere, its results will be on the host. */
static bool is_ready(progress *w, const statement *s, const plan *p)
{
    const bool may_move = p->device != HOST && place_now(DUET_AUTO) == DUET_AUTO;
    return !thread_get()->recording && (!w->seen || p->device == w->plans[0]->device) &&
           (!may_move || w->all_ready) && plan_is_ready(p, s, w->to, w->seen, &w->held) &&
           is_guarded(w, s, p);
}

/* Before the first group runs. */
static duet_status look_at_group(const statement *s, const plan *p, void *context)
{
    progress *w = context;
    use_gpus(w, p);
    const bool ready = is_ready(w, s, p);
    if (!ready) {
        w->to_save = w->seen;
        release_held(&w->held); /* if one of the groups before has no memory, it is undone */
    }
    w->all_ready &= ready;
    w->plans[w->seen] = p;
    for (int k = 0; k < s->count; k++) w->to[w->seen++] = s->to[k].m;
    return DUET_OK;
}

/* What is saved on the GPU may be in the way. */
static __attribute__((noinline)) duet_status run_saved(progress *w, const plan *p, const statement *s)
{
    const unsigned failures = deferred_failures();
    const duet_status st = run(p, s, place_now(DUET_AUTO));
    if (likely(st != DUET_NO_MEMORY) || failures != deferred_failures() || !undo_move_to_host(&w->undo))
        return st;
    return run(p, s, place_now(DUET_AUTO));
}

/* After the last group that may fail, groups run where they are ready, even if another device would be
 * faster by now. */
static duet_status run_group(const statement *s, const plan *p, void *context)
{
    progress *w = context;
    if (likely(!w->seen)) return run(p, s, place_now(DUET_AUTO)); /* the only group */
    if (w->begun >= w->to_save) p = w->plans[w->begun];
    use_gpus(w, p);
    if (w->held.count && (w->begun > w->to_save || w->all_ready)) release_held(&w->held);
    w->begun += s->count;
    for (int k = 0; k < s->count && w->begun <= w->to_save; k++)
        TRY(undo_save(&w->undo, s->to[k].m, p->device));
    TRY(run_saved(w, p, s));
    for (int k = 0; k < s->count && w->begun > w->to_save && w->begun < w->statements; k++)
        undo_lose(&w->undo, s->to[k].m);
    return DUET_OK;
}

static duet_status print_group(const statement *s, const plan *p, void *context)
{
    plan_print(context, p, s);
    return DUET_OK;
}

static bool list_uses(const buffer_user *u, const storage *b)
{
    const progress *w = (const progress *)u;
    for (int k = 0; k < w->all->count; k++)
        if (w->all->to[k].m->storage == b) return true;
    for (uint32_t i = 0; i < w->all->f.count; i++)
        if (w->all->f.nodes[i].op == OP_LEAF && w->all->f.nodes[i].matrix->storage == b) return true;
    return false;
}

/* All groups have run, or one has failed. */
static __attribute__((noinline)) duet_status finish(progress *w, duet_status s)
{
    release_held(&w->held);
    if (unlikely(s != DUET_OK)) s = undo_all(&w->undo, s);
    else undo_forget(&w->undo);
    device_use_leave(&w->gpu_user);
    return s;
}

/* guards: no buffer of a matrix of the list is freed for others, so groups may be ready. */
static duet_status run_all(statements *all, bool guards, bool *several)
{
    thread *t = thread_get();
    progress w; /* not all of its members are used */
    w.statements = all->count;
    w.begun = w.to_save = w.seen = 0;
    w.all_ready = true;
    w.undo.last = NULL;
    w.undo.unsaved = 0;
    w.held.count = 0;
    w.all = all;
    w.gpu_user = NULL;
    w.guards = guards;
    if (guards) buffer_user_begin(t, &w.user, list_uses);
    const duet_status s = each_group(all, true, look_at_group, run_group, &w);
    if (guards) buffer_user_end(t, &w.user);
    *several = w.seen > 0;
    return likely(!w.seen) ? s : finish(&w, s);
}

/* While memory of the GPU is scarce, or while the list is recorded, no group is ready. If memory becomes
 * scarce during a list of several groups, the list runs again, and may free buffers of its own matrices. */
static duet_status evaluate_all(statements *all)
{
    TRY(read_all(all));
    if (thread_get()->explaining) return each_group(all, false, NULL, print_group, thread_get()->explaining);
    const unsigned failures = deferred_failures();
    const bool guards = !pool_is_tight() && !thread_get()->recording;
    bool several;
    const duet_status s = run_all(all, guards, &several);
    if (likely(s != DUET_NO_MEMORY) || !guards || !several || failures != deferred_failures() ||
        !memory_evictable(thread_get()->gpu))
        return s;
    pool_note_pressure();
    return run_all(all, false, &several);
}

duet_status statement_set_all(const char *who, const char *noun, const duet_assignment *a, int count,
                              const char *site)
{
    statements all = { .a = a, .count = count, .who = who, .noun = noun };
    thread_get()->site = site;
    IN_DEFAULT_FP_ENVIRONMENT;
    duet_status s = evaluate_all(&all);
    for (int k = 0; k < count && a; k++) formula_spend(a[k].value, site);
    return statement_ends(s, site);
}
duet_status duet_set_all_at(const duet_assignment *a, int count, const char *site)
{
    return statement_set_all("duet_set_all", "statement", a, count, site);
}
duet_status(duet_set_all)(const duet_assignment *a, int count) { return duet_set_all_at(a, count, NULL); }

duet_status(duet_explain_all)(FILE *out, const duet_assignment *a, int count)
{
    statements all = { .a = a, .count = count, .who = "duet_explain_all", .noun = "statement" };
    if (!out) return fail(DUET_BAD_ARGUMENT, "duet_explain_all: out must not be NULL");
    IN_DEFAULT_FP_ENVIRONMENT;
    TRY(read_all(&all));
    return each_group(&all, false, NULL, print_group, out);
}

duet_explaining duet_explain_open(FILE *out)
{
    thread *t = thread_get();
    const duet_explaining e = { out != NULL, t->explaining };
    if (out) t->explaining = out;
    else fail(DUET_BAD_ARGUMENT, "DUET_EXPLAIN: out must not be NULL");
    return e;
}

void duet_explain_close(duet_explaining *e)
{
    if (e) thread_get()->explaining = e->before;
}
