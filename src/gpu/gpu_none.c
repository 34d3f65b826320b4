/* gpu_none.c - the GPU machine of a library built without CUDA: it is never there. */
#include "cost.h"
#include "gpu.h"

static const char reason[] = "built without CUDA";

static duet_status none(void) { return fail(DUET_NO_DEVICE, "there is no GPU machine: %s", reason); }

static const char *none_absent(void) { return reason; }
static void none_info(FILE *out) { fprintf(out, "gpu      none: %s\n", reason); }
static void none_identify(char *text, size_t size) { snprintf(text, size, "none"); }
static duet_status none_pin(void *host, size_t bytes) { return none(); }
static void none_unpin(void *host) {}
static duet_status none_alloc(size_t bytes, void **p) { return *p = NULL, none(); }
static void none_free(void *p) {}
static duet_status none_clear(void *p, size_t bytes, int queue) { return none(); }
static duet_status none_upload(void *own, const void *host, size_t bytes, int queue) { return none(); }
static duet_status none_download(void *host, const void *own, size_t bytes, int queue) { return none(); }
static size_t none_room(void) { return 0; }
static const char *none_refuses(const step *s) { return reason; }
static const char *none_way(const step *s) { return NULL; }
static const costs none_costs = { 0 };
static double none_cost(const step *s) { return 1e9; }
static duet_status none_run(const step *s, const frame *f) { return none(); }
static void none_forget(step *s) {}
static duet_status none_sync(int queue) { return none(); }
static duet_status none_wait(int queue, int other) { return none(); }
static void *none_stream(int queue) { return none(), NULL; }
static void none_drop(struct storage *b) {}
static size_t none_spare(size_t bytes) { return 0; }
static duet_status none_prepare(const step *s, const frame *f) { return none(); }
static duet_status none_record(int queue) { return none(); }
static duet_status none_recorded(int queue, void **graph) { return *graph = NULL, none(); }
static duet_status none_replay(void *graph, int queue) { return none(); }
static void none_discard(void *graph) {}

const machine gpu_machine = {
    .name = "gpu",
    .place = DUET_GPU,
    .side = DEVICE,
    .absent = none_absent,
    .info = none_info,
    .identify = none_identify,
    .costs = &none_costs,
    .alloc = none_alloc,
    .free = none_free,
    .clear = none_clear,
    .room = none_room,
    .upload = none_upload,
    .download = none_download,
    .fetch = none_download,
    .pin = none_pin,
    .unpin = none_unpin,
    .refuses = none_refuses,
    .way = none_way,
    .cost = none_cost,
    .run = none_run,
    .forget = none_forget,
    .sync = none_sync,
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
