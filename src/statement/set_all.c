/* set_all.c - duet_set_all: statements that are planned and run together. If one fails, all are undone. */
#include "compiler.h"
#include "deferred.h"
#include "device_use.h"
#include "eviction.h"
#include "group_statement.h"
#include "matrix.h"
#include "run_statement.h"
#include "statement.h"
#include "status.h"
#include "structured_set.h"
#include "thread.h"
#include "undo.h"
#include <string.h>

typedef struct statements {
    const duet_assignment *a;
    int count;
    const char *who,
        *noun; /* noun: what the user calls one of them. NULL: there is only one, and the caller names it */
    formula f;
    target to[STATEMENTS];
} statements;

static __attribute__((cold)) duet_status name_number(duet_status s, const statements *all, int k)
{
    if (!all->noun) return s;
    if (!strncmp(duet_error(), all->who, strlen(all->who))) return fail_within(s, "%s %d", all->noun, k + 1);
    return fail_within(s, "%s %d of %s", all->noun, k + 1, all->who);
}

static duet_status check_all(statements *all)
{
    for (int k = 0; k < all->count; k++) {
        const uint32_t first = k ? all->to[k - 1].node + 1 : 0;
        const formula own = { all->f.nodes + first, all->to[k].node + 1 - first, NULL, 0 };
        duet_status s = statement_check(all->who, all->to[k].m, &all->f.nodes[all->to[k].node]);
        if (s == DUET_OK) s = formula_lives(all->who, &own);
        if (s == DUET_OK && unlikely(storage_properties(all->to[k].m->storage)))
            s = structure_must_be_kept(all->who, all->to[k].m, &all->f.nodes[all->to[k].node]);
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
    TRY(statement_prepare(all->who));
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

/* Saved elements may occupy the memory that the group needs. They move from the GPU to the host; on the host,
 * a plan that needs less memory may fit. */
static __attribute__((noinline)) duet_status run_saved(progress *w, const plan *p, const statement *s)
{
    const unsigned failures = deferred_failures();
    const duet_place place = place_now(DUET_AUTO);
    const duet_status st = statement_run(p, s, place);
    const plan *other = p;
    if (likely(st != DUET_NO_MEMORY) || failures != deferred_failures()) return st;
    if (undo_move_to_host(&w->undo)) return statement_run(p, s, place);
    error_text first;
    error_keep(&first);
    if (plan_preview(s, place, &other) == DUET_OK && other != p && other->device == p->device)
        return statement_run(other, s, place);
    error_put_back(&first);
    return st;
}

/* From the last group that may fail on, groups run on the device for which the later ones are ready, even if
 * another one would be faster by now. A group that is ready has its plan. */
static duet_status run_group(const statement *s, const plan *p, void *context)
{
    progress *w = context;
    if (likely(!w->seen)) return statement_run(p, s, place_now(DUET_AUTO)); /* the only group */
    const plan *planned = w->plans[w->begun];
    const bool is_planned = w->begun > w->to_save || w->all_ready;
    if (is_planned || (w->begun == w->to_save && p->device != planned->device)) p = planned;
    use_gpus(w, p);
    if (w->held.count && is_planned) release_held(&w->held);
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

static __attribute__((noinline, cold)) duet_status evaluate_on_group(const statements *all)
{
    const thread *t = thread_get();
    const duet_status s =
        group_statement(all->who, all->to, all->count, &all->f, t->explaining, t->site, statement_list);
    if (s == DUET_OK || strstr(duet_error(), all->who)) return s;
    return fail_within(s, "%s", all->who);
}

/* While memory of the GPU is scarce, or while the list is recorded, no group is ready. If memory becomes
 * scarce during a list of several groups, the list runs again, and may free buffers of its own matrices. */
static duet_status evaluate_all(statements *all)
{
    TRY(read_all(all));
    if (any_groups() && group_concerns(all->to, all->count, &all->f)) return evaluate_on_group(all);
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

duet_status statement_list(const char *who, const duet_assignment *a, int count, const char *site)
{
    statements all = { .a = a, .count = count, .who = who, .noun = count > 1 ? "statement" : NULL };
    IN_DEFAULT_FP_ENVIRONMENT;
    const duet_status s = evaluate_all(&all);
    for (int k = 0; k < count; k++) formula_spend(a[k].value, site);
    return s;
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
    if (any_groups() && group_concerns(all.to, count, &all.f))
        return group_statement(all.who, all.to, count, &all.f, out, NULL, statement_list);
    return each_group(&all, false, NULL, print_group, out);
}
