/* placement.c - where a statement runs: forced by the call, the block or the environment, else where it should end first, by what its steps cost there
 * and what must move. */
#include "calibrate.h"
#include "plan_operands.h"
#include "status.h"
#include "stream_policy.h"
#include "thread.h"
#include "trace.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum fusion fusion_given = FUSION_MACHINE;
static int fusion_set = -1;
static bool gpu_required;

static __attribute__((constructor)) void read_environment(void)
{
    const char *f = getenv("DUET_FUSION"), *r = getenv("DUET_REQUIRE_GPU");
    if (f && !strcmp(f, "rows")) fusion_given = FUSION_ROWS;
    if (f && !strcmp(f, "none")) fusion_given = FUSION_NONE;
    gpu_required = r && *r && strcmp(r, "0");
}

enum fusion fusion_now(void) { return fusion_set < 0 ? fusion_given : (enum fusion)fusion_set; }
void plan_fusion(int mode) { fusion_set = mode; }

duet_place place_now(duet_place call) { return call != DUET_AUTO ? call : thread_get()->place; }

static duet_status can(const plan *p)
{
    return p->status == DUET_OK ? DUET_OK : fail(p->status, "%s", p->why);
}

static duet_status on_machine(const statement *s, const machine *on, const plan **p)
{
    const char *why = on->absent();
    if (why) return fail(DUET_NO_DEVICE, "the %s cannot be used: %s", on->name, why);
    *p = plan_find(s, on);
    return *p ? can(*p) : DUET_NO_MEMORY;
}

/* ---- what must move. Results stay where they are made; they are charged to whoever wants them elsewhere ---- */

/* The i-th matrix whose elements must be there, or NULL: destinations are overwritten, unless they are less than their storage. */
static const duet_matrix *wanted(const statement *s, const plan *p, int i)
{
    return matrices_overwrites(s, i) ? NULL : matrices_at(s, p, i);
}

/* The seconds to bring it, if it has to be brought. */
static double move_of(const statement *s, const plan *p, int i)
{
    const duet_matrix *m = wanted(s, p, i);
    const double seconds = m ? matrix_move_cost(m, p->machine->side) : 0;
    return seconds > 0 && !matrices_came_before(s, p, i, true)
               ? seconds
               : 0; /* views share what moves: the first counts */
}

/* ---- what was missed by not moving. A matrix that is used again and again is to be moved once, but nobody knows how often it will be used:
 * so it stays until statements have missed by it what the move takes, and then moves. That takes at most twice the time of knowing (one
 * rents skis until the rent has come to their price). Of a matrix that the user writes anew, nothing missed before counts. ---- */

static void look_at_move(const statement *s, const plan *p, int i, outlook *o)
{
    const double move = move_of(s, p, i);
    if (!(move > 0)) return;
    const duet_matrix *m = wanted(s, p, i);
    o->moves += move;
    o->missed += fmin(move, matrix_missed(m));
    if (matrix_returns(m, p->machine->side)) o->rent += move;
}

outlook plan_outlook(const statement *s, const plan *p)
{
    outlook o = { .steps = plan_seconds(p) };
    for (int k = 0; k < s->count && p->machine->side == DEVICE; k++) o.back += matrix_read_back(s->to[k].m);
    for (int i = 0; i < matrices_count(s, p); i++) look_at_move(s, p, i, &o);
    return o;
}

/* With the moves that are not yet paid for. */
static double expected(const outlook *o) { return o->steps + o->back + o->moves - o->missed; }

static bool is_read(const statement *s, const plan *p, const duet_matrix *m)
{
    for (int i = 0; i < p->n_leaves && i < LOOKED_BACK; i++)
        if (wanted(s, p, s->count + i)->bits == m->bits) return true;
    return false;
}

/* The statement will run otherwise; all that keeps it from this plan shares in what it missed, by what the move would take, and up to that.
 * Elements that it makes without reading what was there have missed nothing yet. */
static void learn(const statement *s, const plan *other, double missed, double moves)
{
    for (int i = 0; i < matrices_count(s, other) && moves > 0; i++) {
        const double own = move_of(s, other, i);
        if (own > 0)
            matrix_miss(wanted(s, other, i),
                        fmin(missed * own / moves, own - matrix_missed(wanted(s, other, i))));
    }
    for (int k = 0; k < s->count; k++) {
        if (matrix_missed(s->to[k].m) > 0 && !is_read(s, other, s->to[k].m)) matrix_miss_nothing(s->to[k].m);
        matrix_makes_anew(s->to[k].m);
    }
}

/* ---- the choice ---- */

/* For both machines; NULL for one that refuses, where the other does not. A statement that comes again finds one plan by the other. */
static duet_status on_both(const statement *s, const plan **cpu, const plan **gpu)
{
    if (!(*cpu = plan_find(s, machines[HOST]))) return DUET_NO_MEMORY;
    if (__builtin_expect((*gpu = (*cpu)->twin) != NULL, 1)) return DUET_OK;
    const duet_status there = on_machine(s, machines[DEVICE], gpu);
    if (there == DUET_UNSUPPORTED) TRACE("fall back to the cpu: %s", thread_get()->text);
    if (there != DUET_OK) {
        *gpu = NULL;
        return can(*cpu);
    }
    if ((*cpu)->status == DUET_OK) ((plan *)(uintptr_t)*cpu)->twin = *gpu;
    else *cpu = NULL;
    return DUET_OK;
}

/* The plan takes less than the other. If besides all that it needs is there, no moves of the other's make that better; and if nothing was missed
 * before, there is nothing to learn. */
static bool is_settled(const statement *s, const plan *p)
{
    const enum side side = p->machine->side;
    for (int k = 0; k < s->count; k++) {
        const duet_matrix *m = s->to[k].m;
        if (matrix_missed(m) > 0 || (matrix_to_move(m, side) && !matrix_fills(m))) return false;
        if (side == DEVICE && matrix_read_back(m) > 0) return false;
    }
    for (int i = 0; i < p->n_leaves; i++) {
        const duet_matrix *m = s->f->nodes[p->leaves[i].node].matrix;
        if (matrix_missed(m) > 0 || matrix_to_move(m, side)) return false;
    }
    return true;
}

/* What was not chosen, to learn from; other is NULL where there is nothing to learn. */
typedef struct regret {
    const plan *other;
    double missed, moves;
} regret;

/* A move that was made before and comes again, of what is made on the other side each time, is no purchase but a rent. */
static regret regret_of(const plan *other, const outlook *chosen, const outlook *of)
{
    return (regret){ other, chosen->steps + chosen->back + chosen->rent - of->steps - of->back, of->moves };
}

static duet_status cheapest(const statement *s, const plan **p, regret *r)
{
    const plan *cpu, *gpu;
    if (machines[DEVICE]->absent()) return on_machine(s, machines[HOST], p);
    TRY(on_both(s, &cpu, &gpu));
    if (!cpu || !gpu) {
        *p = cpu ? cpu : gpu;
        return DUET_OK;
    }
    costs_prepare();
    *p = plan_seconds(gpu) <= plan_seconds(cpu) ? gpu : cpu;
    if (is_settled(s, *p)) return DUET_OK;
    const outlook here = plan_outlook(s, cpu), there = plan_outlook(s, gpu);
    const plan *whole = gpu;
    double seconds = expected(&there) - there.back; /* the way back is thought of there, too */
    TRY(stream_weigh(s, &gpu, &seconds));
    const bool streams = gpu != whole;
    if (seconds == INFINITY || (streams && seconds <= expected(&here))) {
        *p = streams ? gpu : cpu;
        return DUET_OK;
    }
    if (streams) {
        *p = cpu;
        *r = regret_of(whole, &here, &there);
        return DUET_OK;
    } /* which moving once may be better than */
    const bool on_gpu = expected(&there) <= expected(&here);
    *p = on_gpu ? gpu : cpu;
    *r = on_gpu ? regret_of(cpu, &there, &here) : regret_of(gpu, &here, &there);
    return DUET_OK;
}

static duet_status what_is_required(void)
{
    const char *why = __builtin_expect(gpu_required, 0) ? machines[DEVICE]->absent() : NULL;
    return why ? fail(DUET_NO_DEVICE, "DUET_REQUIRE_GPU is set, and the GPU cannot be used: %s", why)
               : DUET_OK;
}

static duet_status choose(const statement *s, duet_place place, const plan **p, regret *r)
{
    TRY(what_is_required());
    if (place == DUET_AUTO) return cheapest(s, p, r);
    TRY(on_machine(s, machines[place == DUET_GPU ? DEVICE : HOST], p));
    double seconds = INFINITY;
    return place == DUET_GPU ? stream_weigh(s, p, &seconds) : DUET_OK;
}

duet_status plan_look(const statement *s, duet_place place, const plan **p)
{
    regret none = { 0 };
    return choose(s, place, p, &none);
}

duet_status plan_place(const statement *s, duet_place place, const plan **p)
{
    regret r = { 0 };
    TRY(choose(s, place, p, &r));
    if (r.other) learn(s, r.other, r.missed, r.moves);
    if (place == DUET_AUTO && (*p)->machine->side == DEVICE) stream_learn(s, *p);
    return DUET_OK;
}

/* ---- a statement of one step ---- */

static duet_status step_on(const step *s, const machine *on)
{
    const char *absent = on->absent(), *why = absent ? NULL : on->refuses(s);
    if (absent) return fail(DUET_NO_DEVICE, "the %s cannot be used: %s", on->name, absent);
    return why ? fail(DUET_UNSUPPORTED, "the %s refuses: %s", on->name, why) : DUET_OK;
}

static double step_seconds(const statement *s, const plan *p, const machine *on)
{
    double seconds = on->cost(p->steps);
    for (int i = 0; i < matrices_count(s, p); i++) {
        const duet_matrix *m = wanted(s, p, i);
        if (m && !matrices_came_before(s, p, i, true)) seconds += matrix_move_cost(m, on->side);
    }
    return seconds;
}

duet_status step_place(const statement *s, const plan *p, duet_place place, const machine **on)
{
    const machine *cpu = machines[HOST], *gpu = machines[DEVICE];
    TRY(what_is_required());
    *on = place == DUET_GPU ? gpu : cpu;
    if (place != DUET_AUTO) return step_on(p->steps, *on);
    const duet_status there = gpu->absent() ? DUET_NO_DEVICE : step_on(p->steps, gpu);
    if (there == DUET_UNSUPPORTED) TRACE("fall back to the cpu: %s", thread_get()->text);
    if (there != DUET_OK) return step_on(p->steps, cpu);
    costs_prepare();
    if (cpu->refuses(p->steps) || step_seconds(s, p, gpu) <= step_seconds(s, p, cpu)) *on = gpu;
    return DUET_OK;
}
