/* place.c - where a statement runs: forced by the call, the block or the environment, else where it should end first. */
#include "plan.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What it costs to move a byte between the homes, and to begin. Measured rates come with the calibration. */
#define MOVE_START  10e-6
#define MOVE_SECOND 20e9

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

static double to_move(const statement *s, const plan *p)
{
    double seconds = 0;
    for (int k = 0; k < s->count; k++) {
        const duet_matrix *m = s->to[k].m;
        size_t own = matrix_fills(m) ? 0 : matrix_to_move(m, p->machine->side); /* the rest of the storage must be there */
        if (own) seconds += MOVE_START + (double)own / MOVE_SECOND;
    }
    for (int i = 0; i < p->n_leaves; i++) {
        size_t bytes = matrix_to_move(s->f->nodes[p->leaves[i].node].matrix, p->machine->side);
        if (bytes) seconds += MOVE_START + (double)bytes / MOVE_SECOND;
    }
    return seconds;
}

static duet_status cheapest(const statement *s, const plan **p)
{
    const plan *cpu = NULL, *gpu = NULL;
    duet_status there = machines[DEVICE]->absent() ? DUET_NO_DEVICE : on_machine(s, machines[DEVICE], &gpu);
    if (there == DUET_UNSUPPORTED) TRACE("fall back to the cpu: %s", thread_get()->text);
    duet_status here = on_machine(s, machines[HOST], &cpu);
    if (here != DUET_OK && there != DUET_OK) return here;
    if (there != DUET_OK) return *p = cpu, DUET_OK;
    bool on_gpu = here != DUET_OK || gpu->seconds + to_move(s, gpu) <= cpu->seconds + to_move(s, cpu);
    *p = on_gpu ? gpu : cpu;
    return DUET_OK;
}

static duet_status what_is_required(void)
{
    const char *why = __builtin_expect(gpu_required, 0) ? machines[DEVICE]->absent() : NULL;
    return why ? fail(DUET_NO_DEVICE, "DUET_REQUIRE_GPU is set, and the GPU cannot be used: %s", why) : DUET_OK;
}

duet_status plan_place(const statement *s, duet_place place, const plan **p)
{
    TRY(what_is_required());
    if (place == DUET_AUTO) return cheapest(s, p);
    return on_machine(s, machines[place == DUET_GPU ? DEVICE : HOST], p);
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
    const size_t own = matrix_fills(m) ? 0 : matrix_to_move(m, on->side);
    return on->cost(s) + (own ? MOVE_START + (double)own / MOVE_SECOND : 0);
}

duet_status step_place(const duet_matrix *m, const step *s, duet_place place, const machine **on)
{
    const machine *cpu = machines[HOST], *gpu = machines[DEVICE];
    TRY(what_is_required());
    *on = place == DUET_GPU ? gpu : cpu;
    if (place != DUET_AUTO) return step_on(s, *on);
    duet_status there = gpu->absent() ? DUET_NO_DEVICE : step_on(s, gpu);
    if (there == DUET_UNSUPPORTED) TRACE("fall back to the cpu: %s", thread_get()->text);
    if (there == DUET_OK && step_seconds(m, s, gpu) <= step_seconds(m, s, cpu)) *on = gpu;
    return DUET_OK;
}
