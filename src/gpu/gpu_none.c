/* gpu_none.c - the GPU machine of a library built without CUDA: it is absent and supports no step. */
#include "cost.h"
#include "gpu.h"

static const char reason[] = "built without CUDA";

static duet_status none(void) { return fail(DUET_NO_DEVICE, "there is no GPU machine: %s", reason); }

static const char *none_absent(int device) { return reason; }
static void none_info(FILE *out) { fprintf(out, "gpu      none: %s\n", reason); }
static void none_identify(char *text, size_t size) { snprintf(text, size, "none"); }
static duet_status none_pin(int device, void *host, size_t bytes) { return none(); }
static void none_unpin(int device, void *host) {}
static duet_status none_alloc(int device, size_t bytes, void **p)
{
    *p = NULL;
    return none();
}
static void none_free(int device, void *p) {}
static duet_status none_clear(int device, void *p, size_t bytes, int queue) { return none(); }
static duet_status none_upload(int device, void *own, const void *host, size_t bytes, int queue)
{
    return none();
}
static duet_status none_download(int device, void *host, const void *own, size_t bytes, int queue)
{
    return none();
}
static size_t none_available(int device) { return 0; }
static const char *none_unsupported_reason(const step *s) { return reason; }
static bool none_is_sure(const step *s) { return false; }
static duet_status none_make_sure(const step *s, int device) { return DUET_OK; }
static const char *none_algorithm(const step *s) { return NULL; }
static const costs none_costs = { 0 };
static double none_cost(const step *s) { return 1e9; }
static duet_status none_run(const step *s, const frame *f) { return none(); }
static void none_forget(step *s) {}
static duet_status none_sync(int device, int queue) { return none(); }
static duet_status none_wait(int device, int queue, int from, int other) { return none(); }
static void *none_stream(int device, int queue)
{
    none();
    return NULL;
}
static void none_drop(int device, struct storage *b) {}
static size_t none_spare(int device, size_t bytes) { return 0; }
static duet_status none_prepare(const step *s, const frame *f) { return none(); }
static duet_status none_record(int device, int queue) { return none(); }
static duet_status none_recorded(int device, int queue, void **graph)
{
    *graph = NULL;
    return none();
}
static duet_status none_replay(int device, void *graph, int queue) { return none(); }
static void none_discard(int device, void *graph) {}

const machine gpu_machine = {
    .name = "GPU",
    .place = DUET_GPU,
    .absent = none_absent,
    .info = none_info,
    .identify = none_identify,
    .costs = &none_costs,
    .alloc = none_alloc,
    .free = none_free,
    .clear = none_clear,
    .available = none_available,
    .upload = none_upload,
    .download = none_download,
    .fetch = none_download,
    .pin = none_pin,
    .unpin = none_unpin,
    .unsupported_reason = none_unsupported_reason,
    .is_sure = none_is_sure,
    .make_sure = none_make_sure,
    .algorithm = none_algorithm,
    .cost = none_cost,
    .run = none_run,
    .forget = none_forget,
    .sync = none_sync,
    .report = none_sync,
    .wait = none_wait,
    .stream = none_stream,
    .drop = none_drop,
    .spare = none_spare,
    .prepare = none_prepare,
    .record = none_record,
    .recorded = none_recorded,
    .replay = none_replay,
    .discard = none_discard,
};
