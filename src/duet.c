/* duet.c - the only file that names all machines: the table of devices, and public functions about them. */
#include "backend.h"
#include "c_locale.h"
#include "clock.h"
#include "cost.h"
#include "cpu.h"
#include "deferred.h"
#include "device_use.h"
#include "gpu.h"
#include "host_work.h"
#include "io.h"
#include "queue_sync.h"
#include "split.h"
#include "status.h"
#include "thread.h"

/* An entry may be a GPU that does not exist; its machine then reports it as absent. */
#define GPU(n) [DEFAULT_GPU + (n)] = { &gpu_machine, n }
const device_entry devices[DEVICES_MAX] = {
    [HOST] = { &cpu_machine, 0 }, GPU(0), GPU(1), GPU(2), GPU(3), GPU(4), GPU(5), GPU(6), GPU(7),
};

const struct host_threads host_threads = { cpu_threads, cpu_share };

void duet_info(FILE *out)
{
    char files[100];
    if (!out) return;
    const plain_numbers plain = plain_numbers_begin();
    fprintf(out, "duet %s\n", DUET_VERSION);
    for (int d = 0; d < DEVICES_MAX; d++)
        if (devices[d].machine && devices[d].unit == 0) devices[d].machine->info(out);
    inflate_info(files, sizeof files);
    fprintf(out, "costs    %s\n", costs_origin());
    fprintf(out, "files    %s\n", files);
    plain_numbers_end(plain);
}

const char *duet_version(void) { return DUET_VERSION; }

duet_status(duet_set_threads)(int threads)
{
    if (threads < 0)
        return fail(DUET_BAD_ARGUMENT, "duet_set_threads: threads (%d) must not be negative", threads);
    thread_get()->threads = threads;
    return DUET_OK;
}

/* The caller may queue work on the stream at any time, so nothing is deferred from now on. */
void *(duet_stream)(void)
{
    thread *t = thread_get();
    USE_GPUS;
    const char *why = device_absent(t->gpu);
    if (why) {
        fail(DUET_NO_DEVICE, "duet_stream: the GPU cannot be used: %s", why);
        return NULL;
    }
    if (t->deferring == DEFERS) t->deferring = DEFERS_NOT;
    if (deferred_flush() != DUET_OK) return NULL;
    return device_machine(t->gpu)->stream(t->gpu, t->queue);
}

duet_status(duet_synchronize)(void)
{
    const thread *t = thread_get();
    if (unlikely(any_groups())) TRY(groups_synchronize());
    USE_GPUS;
    if (device_absent(t->gpu)) return DUET_OK;
    TRY(deferred_flush());
    TRY(queue_wait(t->gpu, t->queue, "duet_synchronize"));
    return device_machine(t->gpu)->report(t->gpu, t->queue);
}

/* ---- time of a block ---- */

duet_timing duet_timing_open(double *seconds)
{
    duet_timing t = { .on = seconds != NULL, .seconds = seconds };
    if (!t.on) fail(DUET_BAD_ARGUMENT, "DUET_TIMED: seconds must not be NULL");
    if (t.on && (duet_synchronize)() != DUET_OK) t.on = 0;
    t.start = clock_now();
    return t;
}

void duet_timing_close(duet_timing *t)
{
    if (!t->seconds) return;
    const duet_status done = (duet_synchronize)(); /* its error is that of a statement of the block */
    (void)done;
    *t->seconds = clock_now() - t->start;
}
