/* place.c - where a statement runs: forced by the call, the block or the environment, else where it should end first, by what its steps cost there
 * and what must move. */
#include "matrix.h"
#include "measure.h"
#include "status.h"
#include "stream.h"
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

static duet_status on_machine(const statement *s, const machine *on, const plan **p)
{
    const char *why = on->absent();
    if (why) return fail(DUET_NO_DEVICE, "the %s cannot be used: %s", on->name, why);
    *p = plan_find(s, on);
    if (!*p) return DUET_NO_MEMORY;
    return (*p)->status == DUET_OK ? DUET_OK : fail((*p)->status, "%s", (*p)->why);
}

/* ---- what must move. Results stay where they are made; they are charged to whoever wants them elsewhere ---- */

/* The i-th matrix whose elements must be there, or NULL: destinations are overwritten, unless they are less than their storage. */
static const duet_matrix *wanted(const statement *s, const plan *p, int i)
{
    if (i >= s->count) return s->f->nodes[p->leaves[i - s->count].node].matrix;
    return matrix_fills(s->to[i].m) ? NULL : s->to[i].m;
}

static int count_wanted(const statement *s, const plan *p) { return s->count + p->n_leaves; }

/* Views share what moves: the first counts. Long formulas are not looked through for each of their matrices. */
#define LOOKED_BACK 16
static bool came_before(const statement *s, const plan *p, int i)
{
    const storage *b = wanted(s, p, i)->bits;
    for (int e = i > LOOKED_BACK ? i - LOOKED_BACK : 0; e < i; e++) {
        const duet_matrix *m = wanted(s, p, e);
        if (m && m->bits == b) return true;
    }
    return false;
}

/* The seconds to bring it, if it has to be brought. */
static double move_of(const statement *s, const plan *p, int i)
{
    const duet_matrix *m = wanted(s, p, i);
    const double seconds = m ? matrix_move_cost(m, p->machine->side) : 0;
    return seconds > 0 && !came_before(s, p, i) ? seconds : 0;
}

double plan_moves(const statement *s, const plan *p)
{
    double seconds = 0;
    for (int i = 0; i < count_wanted(s, p); i++) seconds += move_of(s, p, i);
    return seconds;
}

/* ---- what was missed by not moving. A matrix that is used again and again is to be moved once, but nobody knows how often it will be used:
 * so it stays until statements have missed by it what the move takes, and then moves. That takes at most twice the time of knowing (one
 * rents skis until the rent has come to their price). Of a matrix that the user writes anew, nothing missed before counts. ---- */

double plan_missed(const statement *s, const plan *p)
{
    double seconds = 0;
    for (int i = 0; i < count_wanted(s, p); i++) {
        const double move = move_of(s, p, i);
        if (move > 0) seconds += fmin(move, matrix_missed(wanted(s, p, i)));
    }
    return seconds;
}

/* With the moves that are not yet paid for. */
static double expected(const statement *s, const plan *p)
{
    const double moves = plan_moves(s, p);
    return plan_seconds(p) + moves - (moves > 0 ? plan_missed(s, p) : 0);
}

static bool is_read(const statement *s, const plan *p, const duet_matrix *m)
{
    for (int i = 0; i < p->n_leaves && i < LOOKED_BACK; i++)
        if (wanted(s, p, s->count + i)->bits == m->bits) return true;
    return false;
}

/* The statement will run by one plan; all that keeps it from the other one shares in what it missed, by what the move would take. Elements that
 * it makes without reading what was there have missed nothing yet. */
static void learn(const statement *s, const plan *chosen, const plan *other)
{
    const double missed = plan_seconds(chosen) - plan_seconds(other), moves = plan_moves(s, other);
    for (int i = 0; i < count_wanted(s, other) && moves > 0; i++) {
        const double own = move_of(s, other, i);
        if (own > 0) matrix_miss(wanted(s, other, i), missed * own / moves);
    }
    for (int k = 0; k < s->count; k++)
        if (matrix_missed(s->to[k].m) > 0 && !is_read(s, chosen, s->to[k].m)) matrix_miss_nothing(s->to[k].m);
}

/* ---- the choice ---- */

static duet_status cheapest(const statement *s, const plan **p, const plan **other)
{
    const plan *cpu = NULL, *gpu = NULL;
    duet_status there = machines[DEVICE]->absent() ? DUET_NO_DEVICE : on_machine(s, machines[DEVICE], &gpu);
    if (there == DUET_UNSUPPORTED) TRACE("fall back to the cpu: %s", thread_get()->text);
    duet_status here = on_machine(s, machines[HOST], &cpu);
    if (here != DUET_OK && there != DUET_OK) return here;
    if (there != DUET_OK) return *p = cpu, DUET_OK;
    if (here != DUET_OK) return *p = gpu, DUET_OK;
    costs_prepare();
    double seconds = expected(s, gpu);
    const plan *whole = gpu;
    TRY(stream_weigh(s, &gpu, &seconds));
    const bool on_gpu = seconds <= expected(s, cpu);
    *p = on_gpu ? gpu : cpu, *other = gpu != whole || seconds == INFINITY ? NULL : on_gpu ? cpu : gpu;
    return DUET_OK;
}

static duet_status what_is_required(void)
{
    const char *why = __builtin_expect(gpu_required, 0) ? machines[DEVICE]->absent() : NULL;
    return why ? fail(DUET_NO_DEVICE, "DUET_REQUIRE_GPU is set, and the GPU cannot be used: %s", why) : DUET_OK;
}

static duet_status choose(const statement *s, duet_place place, const plan **p, const plan **other)
{
    TRY(what_is_required());
    if (place == DUET_AUTO) return cheapest(s, p, other);
    TRY(on_machine(s, machines[place == DUET_GPU ? DEVICE : HOST], p));
    double seconds = INFINITY;
    return place == DUET_GPU ? stream_weigh(s, p, &seconds) : DUET_OK;
}

duet_status plan_look(const statement *s, duet_place place, const plan **p)
{
    const plan *other = NULL;
    return choose(s, place, p, &other);
}

duet_status plan_place(const statement *s, duet_place place, const plan **p)
{
    const plan *other = NULL;
    TRY(choose(s, place, p, &other));
    if (other) learn(s, *p, other);
    if (place == DUET_AUTO && (*p)->machine->side == DEVICE) stream_learn(s, *p);
    return DUET_OK;
}

/* ---- a statement of one step, without operands ---- */

static duet_status step_on(const step *s, const machine *on)
{
    const char *absent = on->absent(), *why = absent ? NULL : on->refuses(s);
    if (absent) return fail(DUET_NO_DEVICE, "the %s cannot be used: %s", on->name, absent);
    return why ? fail(DUET_UNSUPPORTED, "the %s refuses: %s", on->name, why) : DUET_OK;
}

static double step_seconds(const duet_matrix *m, const step *s, const machine *on)
{
    return on->cost(s) + (matrix_fills(m) ? 0 : matrix_move_cost(m, on->side));
}

duet_status step_place(const duet_matrix *m, const step *s, duet_place place, const machine **on)
{
    const machine *cpu = machines[HOST], *gpu = machines[DEVICE];
    TRY(what_is_required());
    *on = place == DUET_GPU ? gpu : cpu;
    if (place != DUET_AUTO) return step_on(s, *on);
    duet_status there = gpu->absent() ? DUET_NO_DEVICE : step_on(s, gpu);
    if (there == DUET_UNSUPPORTED) TRACE("fall back to the cpu: %s", thread_get()->text);
    if (there != DUET_OK) return DUET_OK;
    costs_prepare();
    if (step_seconds(m, s, gpu) <= step_seconds(m, s, cpu)) *on = gpu;
    return DUET_OK;
}
