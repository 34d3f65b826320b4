/* recover.c - duet_recover: restarts GPUs after errors that have ended their contexts. All that
 * the library keeps there is dropped, from the statements that wait to the blocks of the pool. */
#include "backend.h"
#include "deferred.h"
#include "device_use.h"
#include "matrix.h"
#include "pool.h"
#include "record.h"
#include "status.h"
#include "trace.h"

static bool is_lost(int device)
{
    const machine *on = device_machine(device);
    return on && on->lost && on->lost(device);
}

/* A bit mask. */
static unsigned lost_devices(void)
{
    unsigned which = 0;
    for (int d = DEFAULT_GPU; d < DEVICES_MAX; d++)
        if (is_lost(d)) which |= 1u << d;
    return which;
}

/* Statements that wait for a GPU that was lost fail, and their destinations are lost. Graphs are ended
 * before the operands that they hold, and these before the pool forgets their blocks. */
static void drop_all(unsigned which)
{
    deferred_launch_or_lose(~(uint64_t)0);
    for (int d = DEFAULT_GPU; d < DEVICES_MAX; d++)
        if (which >> d & 1) device_machine(d)->abandon(d);
    recordings_drop_devices(which);
    matrices_drop_devices(which);
    for (int d = DEFAULT_GPU; d < DEVICES_MAX; d++)
        if (which >> d & 1) pool_forget_device(d);
}

/* Returns the first failure. Pinned memory is unpinned when the old context no longer exists. */
static duet_status restart_all(unsigned which)
{
    duet_status first = DUET_OK;
    error_text text;
    for (int d = DEFAULT_GPU; d < DEVICES_MAX; d++) {
        if (!(which >> d & 1)) continue;
        TRACE("device %d was lost: %s", d, device_machine(d)->lost(d));
        const duet_status s = device_machine(d)->recover(d);
        if (s != DUET_OK)
            fail_within(s, "duet_recover: this process cannot use the GPU again, but a new one may");
        if (s != DUET_OK && first == DUET_OK) error_keep(&text);
        if (first == DUET_OK) first = s;
        pool_unpin_device(d);
    }
    if (first != DUET_OK) error_put_back(&text);
    return first;
}

static duet_status recover(void)
{
    error_text before;
    TRY(device_recovery_begin());
    const unsigned which = lost_devices();
    error_keep(&before);
    drop_all(which);
    error_put_back(&before);
    return restart_all(which);
}

duet_status(duet_recover)(void)
{
    if (likely(!lost_devices())) return DUET_OK;
    const duet_status s = recover();
    device_recovery_end();
    lenders_call();
    return s;
}
