/* placement.c - chooses where a statement runs. The call, the innermost block or the environment
 * may force a device. Otherwise it is the device where the statement is expected to finish first,
 * including the copies of its operands. */
#include "calibrate.h"
#include "compiler.h"
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

static duet_status plan_status(const plan *p)
{
    if (p->status == DUET_OK) return DUET_OK;
    return fail(p->status, "%s", p->why);
}

static duet_status on_device(const statement *s, int device, const plan **p)
{
    const char *why = device_absent(device);
    if (why) return fail(DUET_NO_DEVICE, "the %s cannot be used: %s", device_name(device), why);
    *p = plan_find(s, device);
    if (*p) return plan_status(*p);
    return DUET_NO_MEMORY;
}

/* ---- copies. Results stay where they are computed; a statement that needs them elsewhere pays for
 * the copy ---- */

/* The i-th matrix whose elements must be on the device, or NULL. A destination need not be, unless
 * it is only a part of its storage. */
static const duet_matrix *operand_to_copy(const statement *s, const plan *p, int i)
{
    if (matrices_overwrites(s, i)) return NULL;
    return matrices_at(s, p, i);
}

/* The seconds for copying operand i to the device, or 0. If several operands are views of one
 * storage, the cost is counted for the first one only. */
static double copy_cost(const statement *s, const plan *p, int i)
{
    const duet_matrix *m = operand_to_copy(s, p, i);
    const double seconds = m ? matrix_move_cost(m, p->device) : 0;
    if (!(seconds > 0)) return 0;
    if (matrices_came_before(s, p, i, true)) return 0;
    return seconds;
}

/* ---- when to copy. It pays to copy a matrix if it will be used often, but that is not known in
 * advance. So each statement that would have been faster with the matrix on the other
 * device adds the loss to the matrix's accrued cost. When the accrued cost reaches the cost of the
 * copy, the matrix is copied. This costs at most twice as much as the best decision in hindsight
 * (the ski rental problem). When the user writes the matrix, the accrued cost is reset. ---- */

static void add_copy(const statement *s, const plan *p, int i, cost_estimate *o)
{
    const double move = copy_cost(s, p, i);
    if (!(move > 0)) return;
    const duet_matrix *m = operand_to_copy(s, p, i);
    o->copies += move;
    o->accrued += fmin(move, matrix_accrued_cost(m));
    if (matrix_returns(m, p->device)) o->repeated += move;
}

cost_estimate plan_estimate(const statement *s, const plan *p)
{
    cost_estimate o = { .steps = plan_seconds(p) };
    for (int k = 0; k < s->count && p->device != HOST; k++) o.back += matrix_read_back(s->to[k].m);
    for (int i = 0; i < matrices_count(s, p); i++) add_copy(s, p, i, &o);
    return o;
}

/* The expected time, without the part of the copies that accrued cost has already paid for. */
static double expected_seconds(const cost_estimate *o) { return o->steps + o->back + o->copies - o->accrued; }

static bool is_read(const statement *s, const plan *p, const duet_matrix *m)
{
    for (int i = 0; i < p->n_leaves && i < LOOK_BACK; i++)
        if (operand_to_copy(s, p, s->count + i)->storage == m->storage) return true;
    return false;
}

/* The statement will run on the other device. Distribute its loss over the matrices that would have
 * to be copied, in proportion to the cost of their copies, and at most that cost. Elements that the
 * statement writes without reading them have no accrued cost. */
static void accrue_costs(const statement *s, const plan *other, double loss, double copies)
{
    for (int i = 0; i < matrices_count(s, other) && copies > 0; i++) {
        const double own = copy_cost(s, other, i);
        if (!(own > 0)) continue;
        const duet_matrix *m = operand_to_copy(s, other, i);
        matrix_accrue_cost(m, fmin(loss * own / copies, own - matrix_accrued_cost(m)));
    }
    for (int k = 0; k < s->count; k++) {
        if (matrix_accrued_cost(s->to[k].m) > 0 && !is_read(s, other, s->to[k].m))
            matrix_clear_accrued_cost(s->to[k].m);
        matrix_makes_anew(s->to[k].m);
    }
}

/* ---- the choice ---- */

/* The plans for both devices. NULL: only the other device supports it. The second plan is stored in
 * the first, so that a repeated statement finds both at once. */
static duet_status on_both(const statement *s, const plan **cpu, const plan **gpu)
{
    const int device = thread_get()->gpu;
    if (!(*cpu = plan_find(s, HOST))) return DUET_NO_MEMORY;
    *gpu = (*cpu)->gpu_plan;
    if (likely(*gpu && (*gpu)->device == device)) return DUET_OK;
    const duet_status there = on_device(s, device, gpu);
    if (there == DUET_UNSUPPORTED) TRACE("fall back to the CPU: %s", thread_get()->text);
    if (there != DUET_OK) {
        *gpu = NULL;
        return plan_status(*cpu);
    }
    if ((*cpu)->status == DUET_OK) ((plan *)(uintptr_t)*cpu)->gpu_plan = *gpu;
    else *cpu = NULL;
    return DUET_OK;
}

/* p is the faster plan. If all that it needs is on its device, the other plan's copies cannot make
 * that one better. If also no cost has accrued, there is nothing to record. */
static bool is_settled(const statement *s, const plan *p)
{
    const int device = p->device;
    for (int k = 0; k < s->count; k++) {
        const duet_matrix *m = s->to[k].m;
        if (matrix_accrued_cost(m) > 0 || (matrix_to_move(m, device) && !matrix_fills(m))) return false;
        if (device != HOST && matrix_read_back(m) > 0) return false;
    }
    for (int i = 0; i < p->n_leaves; i++) {
        const duet_matrix *m = s->f->nodes[p->leaves[i].node].matrix;
        if (matrix_accrued_cost(m) > 0 || matrix_to_move(m, device)) return false;
    }
    return true;
}

/* The plan that was not chosen, whose loss is to be recorded; NULL: there is none. */
typedef struct alternative {
    const plan *other;
    double loss, copies;
} alternative;

/* A matrix that is written on the other device each time needs a copy each time. Such repeated
 * copies are a running cost, so they are added to the loss. */
static alternative alternative_of(const plan *other, const cost_estimate *chosen, const cost_estimate *of)
{
    const double loss = chosen->steps + chosen->back + chosen->repeated - of->steps - of->back;
    return (alternative){ other, loss, of->copies };
}

/* Choose between two plans, of which the one for the GPU may be streamed. */
static __attribute__((noinline)) duet_status
choose_by_estimate(const statement *s, const plan *cpu, const plan *gpu, const plan **p, alternative *r)
{
    const cost_estimate here = plan_estimate(s, cpu), there = plan_estimate(s, gpu);
    const plan *unsplit = gpu;
    /* without copying the results back, which stream_choose considers, too */
    double seconds = expected_seconds(&there) - there.back;
    TRY(stream_choose(s, &gpu, &seconds));
    const bool streams = gpu != unsplit;
    if (seconds == INFINITY || (streams && seconds <= expected_seconds(&here))) {
        *p = streams ? gpu : cpu;
    } else if (streams) {
        *p = cpu;
        *r = alternative_of(unsplit, &here, &there); /* copying the operands once may be better */
    } else if (expected_seconds(&there) <= expected_seconds(&here)) {
        *p = gpu;
        *r = alternative_of(cpu, &there, &here);
    } else {
        *p = cpu;
        *r = alternative_of(gpu, &here, &there);
    }
    return DUET_OK;
}

/* Choose between the host and the GPU, which exists. Apart from choose, so that statements without a
 * GPU save no registers for it. */
static __attribute__((noinline)) duet_status choose_fastest(const statement *s, const plan **p,
                                                            alternative *r)
{
    const plan *cpu, *gpu;
    TRY(on_both(s, &cpu, &gpu));
    if (!cpu || !gpu) {
        *p = cpu ? cpu : gpu;
        return DUET_OK;
    }
    costs_prepare();
    *p = plan_seconds(gpu) <= plan_seconds(cpu) ? gpu : cpu;
    if (is_settled(s, *p)) return DUET_OK;
    return choose_by_estimate(s, cpu, gpu, p, r);
}

static duet_status check_required_gpu(void)
{
    if (likely(!gpu_required)) return DUET_OK;
    const char *why = device_absent(thread_get()->gpu);
    if (!why) return DUET_OK;
    return fail(DUET_NO_DEVICE, "DUET_REQUIRE_GPU is set, and the GPU cannot be used: %s", why);
}

static duet_status choose(const statement *s, duet_place place, const plan **p, alternative *r)
{
    const int gpu = thread_get()->gpu;
    TRY(check_required_gpu());
    if (place == DUET_AUTO && !device_absent(gpu)) return choose_fastest(s, p, r);
    if (place != DUET_GPU) return on_device(s, HOST, p);
    TRY(on_device(s, gpu, p));
    double seconds = INFINITY;
    return stream_choose(s, p, &seconds);
}

/* The plan for the device that is chosen, which fits if there is one. */
static duet_status choose_fitting(const statement *s, duet_place place, const plan **p, alternative *r)
{
    TRY(choose(s, place, p, r));
    return (*p)->device == HOST ? stream_fit_host(s, p) : DUET_OK;
}

duet_status plan_preview(const statement *s, duet_place place, const plan **p)
{
    alternative none = { 0 };
    return choose_fitting(s, place, p, &none);
}

duet_status plan_place(const statement *s, duet_place place, const plan **p)
{
    alternative r = { 0 };
    TRY(choose_fitting(s, place, p, &r));
    if (r.other) accrue_costs(s, r.other, r.loss, r.copies);
    if (place == DUET_AUTO && (*p)->device != HOST) stream_learn(s, *p);
    return DUET_OK;
}

/* ---- a statement of one step ---- */

static duet_status step_on(const step *s, int device)
{
    const machine *on = device_machine(device);
    const char *absent = device_absent(device), *why = absent ? NULL : on->unsupported_reason(s);
    if (absent) return fail(DUET_NO_DEVICE, "the %s cannot be used: %s", device_name(device), absent);
    if (why) return fail(DUET_UNSUPPORTED, "the %s does not support this operator: %s", on->name, why);
    return DUET_OK;
}

static double step_seconds(const statement *s, const plan *p, int device)
{
    double seconds = device_machine(device)->cost(p->steps);
    for (int i = 0; i < matrices_count(s, p); i++) {
        const duet_matrix *m = operand_to_copy(s, p, i);
        if (m && !matrices_came_before(s, p, i, true)) seconds += matrix_move_cost(m, device);
    }
    return seconds;
}

duet_status step_place(const statement *s, const plan *p, duet_place place, int *device)
{
    const int gpu = thread_get()->gpu;
    TRY(check_required_gpu());
    *device = place == DUET_GPU ? gpu : HOST;
    if (place != DUET_AUTO) return step_on(p->steps, *device);
    const duet_status there = device_absent(gpu) ? DUET_NO_DEVICE : step_on(p->steps, gpu);
    if (there == DUET_UNSUPPORTED) TRACE("fall back to the CPU: %s", thread_get()->text);
    if (there != DUET_OK) return step_on(p->steps, HOST);
    costs_prepare();
    const bool cpu_unsupported = device_machine(HOST)->unsupported_reason(p->steps) != NULL;
    if (cpu_unsupported || step_seconds(s, p, gpu) <= step_seconds(s, p, HOST)) *device = gpu;
    return DUET_OK;
}
