/* set.c - statements: duet_set and its sisters. */
#include "dtype.h"
#include "plan.h"
#include "status.h"
#include "thread.h"
#include <string.h>

static __attribute__((cold)) duet_status does_not_fit(const char *who, const duet_matrix *m, const node *e)
{
    char to[SHAPE_TEXT], from[SHAPE_TEXT];
    shape_text(to, m->at.type, m->at.rank, m->at.size), shape_text(from, (duet_dtype)e->type, e->rank, e->size);
    if (!(e->flags & NODE_WEAK) && e->type != m->at.type)
        return fail(DUET_BAD_TYPE, "%s(%s, %s) needs one element type", who, to, from);
    return fail(DUET_BAD_SHAPE, "%s(%s, %s): the formula's shape does not broadcast to the matrix's", who, to, from);
}

static bool broadcasts_to(const node *e, const layout *to)
{
    int off = to->rank - e->rank;
    if (off < 0) return false;
    for (int i = 0; i < e->rank; i++)
        if (e->size[i] != to->size[off + i] && e->size[i] != 1) return false;
    return true;
}

static duet_status leaves_live(const char *who, const formula *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const node *n = &f->nodes[i];
        if (n->op == OP_LEAF && __builtin_expect(!matrix_alive(n->matrix, n->matrix_serial), 0)) {
            char text[SHAPE_TEXT];
            shape_text(text, (duet_dtype)n->type, n->rank, n->size);
            return fail(DUET_FREED, "%s: the formula names a matrix %s that was freed since", who, text);
        }
    }
    return DUET_OK;
}

duet_status statement_check(const char *who, const duet_matrix *m, const formula *f)
{
    const node *e = &f->nodes[f->count - 1];
    if (!broadcasts_to(e, &m->at) || (!(e->flags & NODE_WEAK) && e->type != m->at.type)) return does_not_fit(who, m, e);
    return leaves_live(who, f);
}

static duet_status bad_matrix(const char *who, const duet_matrix *m)
{
    return m ? fail(DUET_FREED, "%s: the matrix was freed", who) : fail(DUET_BAD_ARGUMENT, "%s: the matrix is null", who);
}

/* The formula of a statement. Patterns are formulas too: they are made first, since a formula that is being read may lie where the next
 * one is copied to. */
static duet_status read_formula(const char *who, duet_expr e, formula *f)
{
    if (match_prepare() != DUET_OK) return fail(DUET_NO_MEMORY, "%s: no memory to make the patterns of fused rows", who);
    return formula_of(e, who, f);
}

/* Puts the statement in front of what a machine, the pool or a matrix said. */
static __attribute__((cold)) duet_status name_statement(duet_status s, const char *who, const duet_matrix *m)
{
    char before[sizeof thread_get()->text], to[SHAPE_TEXT];
    memcpy(before, thread_get()->text, sizeof before);
    return fail(s, "%s(%s): %s", who, shape_text(to, m->at.type, m->at.rank, m->at.size), before);
}

static duet_status evaluate(const char *who, duet_place place, duet_matrix *m, duet_expr e)
{
    formula f;
    const plan *p;
    TRY(read_formula(who, e, &f));
    if (__builtin_expect(!m || !m->serial, 0)) return bad_matrix(who, m);
    if (place > DUET_GPU) return fail(DUET_BAD_ARGUMENT, "%s: there is no place %d", who, (int)place);
    TRY(statement_check(who, m, &f));
    statement s = { m, &f, fusion_now() };
    duet_status done = plan_place(&s, place_now(place), &p);
    if (__builtin_expect(done == DUET_OK, 1)) done = plan_run(p, &s);
    return __builtin_expect(done == DUET_OK, 1) ? done : name_statement(done, who, m);
}

static duet_status set(const char *who, duet_place place, duet_matrix *m, duet_expr e, const char *site)
{
    thread_get()->site = site;
    duet_status s = evaluate(who, place, m, e);
    formula_spend(e, site);
    thread_get()->site = NULL;
    return __builtin_expect(s == DUET_OK, 1) || !site ? s : fail_at(s, site);
}

duet_status duet_set_at(duet_matrix *m, duet_expr e, const char *site) { return set("duet_set", DUET_AUTO, m, e, site); }
duet_status(duet_set)(duet_matrix *m, duet_expr e) { return set("duet_set", DUET_AUTO, m, e, NULL); }

duet_status duet_set_on_at(duet_place place, duet_matrix *m, duet_expr e, const char *site)
{
    return set("duet_set_on", place, m, e, site);
}
duet_status(duet_set_on)(duet_place place, duet_matrix *m, duet_expr e) { return set("duet_set_on", place, m, e, NULL); }

#define IN_PLACE(name, op)                                                                                                       \
    duet_status duet_##name##_at(duet_matrix *m, duet_expr e, const char *site)                                                  \
    {                                                                                                                            \
        return set("duet_" #name, DUET_AUTO, m, duet_##op##_at(duet_of_matrix(m), e, site), site);                               \
    }                                                                                                                            \
    duet_status(duet_##name)(duet_matrix * m, duet_expr e) { return duet_##name##_at(m, e, NULL); }
IN_PLACE(iadd, add)
IN_PLACE(isub, sub)
IN_PLACE(imul, mul)
IN_PLACE(idiv, div)

duet_status duet_explain(FILE *out, duet_matrix *m, duet_expr e)
{
    formula f;
    const plan *p;
    if (!out) return fail(DUET_BAD_ARGUMENT, "duet_explain: no file");
    TRY(read_formula("duet_explain", e, &f));
    if (!m || !m->serial) return bad_matrix("duet_explain", m);
    TRY(statement_check("duet_explain", m, &f));
    statement s = { m, &f, fusion_now() };
    TRY(plan_place(&s, place_now(DUET_AUTO), &p));
    plan_print(out, p, &s);
    return DUET_OK;
}
