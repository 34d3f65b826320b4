/* duet.c - the roof: the only file that knows all machines. */
#include "backend.h"
#include "cost.h"
#include "cpu.h"
#include "deferred.h"
#include "gpu.h"
#include "io.h"
#include "queue_sync.h"
#include "status.h"
#include "thread.h"

const machine *const machines[SIDES] = { [HOST] = &cpu_machine, [DEVICE] = &gpu_machine };

void duet_info(FILE *out)
{
    char files[100];
    if (!out) return;
    fprintf(out, "duet %s\n", DUET_VERSION);
    for (int side = 0; side < SIDES; side++) machines[side]->info(out);
    inflate_info(files, sizeof files);
    fprintf(out, "costs    %s\n", costs_origin());
    fprintf(out, "files    %s\n", files);
}

void *duet_stream(void)
{
    const machine *gpu = machines[DEVICE];
    const char *why = gpu->absent();
    if (why) return fail(DUET_NO_DEVICE, "duet_stream: the gpu cannot be used: %s", why), NULL;
    thread *t = thread_get();
    if (t->holding == HOLDS)
        t->holding =
            HOLDS_NOT; /* work may come to the stream at any time, and none of ours be missing there */
    return deferred_flush() == DUET_OK ? gpu->stream(t->queue) : NULL;
}

duet_status duet_synchronize(void)
{
    const machine *gpu = machines[DEVICE];
    if (gpu->absent()) return DUET_OK;
    TRY(deferred_flush());
    return queue_wait(thread_get()->queue, "duet_synchronize");
}
