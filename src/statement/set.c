/* set.c - duet_set and the statements like it: they check a formula, find its plan, and run, record
 * or explain it. set_all.c has lists of statements. */
#include "auto_replay.h"
#include "clock.h"
#include "compiler.h"
#include "deferred.h"
#include "dtype.h"
#include "group_statement.h"
#include "matrix.h"
#include "run_statement.h"
#include "statement.h"
#include "status.h"
#include "stream.h"
#include "structured_set.h"
#include "thread.h"
#include "trace.h"
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
duet_status statement_check(const char *who, const duet_matrix *m, const node *e)
{
    if (unlikely(!m || !m->serial)) return bad_matrix(who, m);
    const bool same = e->type == m->at.type && !(e->flags & NODE_WEAK);
    if (unlikely(!broadcasts_to(e, &m->at) || !(same || takes_type(m, e)))) return does_not_fit(who, m, e);
    if (unlikely(m->repeats | m->constant)) return matrix_not_writable(who, m);
    if (same) return DUET_OK;
    const duet_status s = number_fits(e, m->at.type);
    if (likely(s == DUET_OK)) return s;
    return name_statement(s, who, m);
}

/* Makes the patterns, which are formulas too, before a formula is read: growing the arena may move
 * nodes. */
duet_status statement_prepare(const char *who)
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
    return stream_run_less(s, p);
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
duet_status statement_run(const plan *p, const statement *s, duet_place place)
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
    TRY(statement_prepare(who));
    TRY(formula_of(e, who, f));
    TRY(statement_check(who, m, &f->nodes[f->count - 1]));
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

/* Assigns the formula f of e, which has been checked, whatever the structure of m. */
static duet_status assign(const char *who, duet_place place, duet_matrix *m, const formula *f)
{
    const plan *p;
    if (unlikely(place > DUET_GPU))
        return fail(DUET_BAD_ARGUMENT, "%s: place (%d) must be DUET_AUTO, DUET_CPU or DUET_GPU", who,
                    (int)place);
    const target to = { m, f->count - 1 };
    statement s = { &to, 1, f, fusion_now(), math_now() };
    plans_reserve(1);
    place = place_now(place);
    if (unlikely(thread_get()->explaining != NULL)) return explain(&s, place);
    duet_status done = plan_place(&s, place, &p);
    if (likely(done == DUET_OK)) done = statement_run(p, &s, place);
    if (likely(done == DUET_OK)) return done;
    return name_statement(done, who, m);
}

duet_status statement_assign(const char *who, duet_place place, duet_matrix *m, duet_expr e)
{
    formula f;
    TRY(read_one(who, m, e, &f));
    return assign(who, place, m, &f);
}

/* Is m, or a matrix of the formula, on a group? */
static bool is_on_group(const duet_matrix *m, const formula *f)
{
    return any_groups() && group_concerns(&(target){ m, f->count - 1 }, 1, f);
}

static __attribute__((noinline, cold)) duet_status assign_on_group(const char *who, const duet_matrix *m,
                                                                   const formula *f, FILE *explain)
{
    const target to = { m, f->count - 1 };
    const duet_status s = group_statement(who, &to, 1, f, explain, thread_get()->site, statement_list);
    return s == DUET_OK ? s : name_statement(s, who, m);
}

static duet_status evaluate(const char *who, duet_place place, duet_matrix *m, duet_expr e)
{
    formula f;
    TRY(read_one(who, m, e, &f));
    if (unlikely(is_on_group(m, &f))) return assign_on_group(who, m, &f, thread_get()->explaining);
    if (unlikely(storage_properties(m->storage)) && !structure_is_kept(m, &f.nodes[f.count - 1]))
        return structured_assign(who, place, m, e);
    return assign(who, place, m, &f);
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
    if (is_on_group(m, &f)) return assign_on_group("duet_explain", m, &f, out);
    const target to = { m, f.count - 1 };
    statement s = { &to, 1, &f, fusion_now(), math_now() };
    plans_reserve(1);
    TRY(plan_preview(&s, place_now(DUET_AUTO), &p));
    plan_print(out, p, &s);
    if (storage_properties(m->storage) && !structure_is_kept(m, &f.nodes[f.count - 1]))
        structure_explain(out, m, e);
    return DUET_OK;
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
