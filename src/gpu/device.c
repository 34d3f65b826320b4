/* device.c - the CUDA devices ("cards"): finds them, and detects CUDA errors after which one is
 * lost. */
#include "device.h"
#include "kernels.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

/* A card, as an entry of devices[]. */
typedef struct card {
    int ordinal;    /* CUDA's number of the card */
    int capability; /* its compute capability times ten */
    int multiprocessors;
    bool checked;
    const char *reason; /* why it cannot be used; NULL while it can */
    char text[256];     /* the text of reason if the card could never be used */
    char lost[2][256];  /* texts if the card was lost; one is in use, and is never changed */
    unsigned losses;    /* how often a text was written */
    size_t bytes;       /* of its memory; 0: not queried yet */
} card;

static card cards[DEVICES_MAX];
static int found;  /* number of cards that CUDA has */
static int chosen; /* the ordinal of the default card */
static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;
static int reviving = HOST; /* the lost card that a thread restarts; HOST: none */

static void refuse(card *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void refuse(card *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(c->text, sizeof c->text, format, ap);
    va_end(ap);
    c->reason = c->text;
}

static cudaError_t query(card *c)
{
    int major, minor;
    cudaError_t e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, c->ordinal);
    if (e == cudaSuccess) e = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, c->ordinal);
    if (e == cudaSuccess) c->capability = 10 * major + minor;
    return e;
}

/* Were kernels compiled for this card? */
static void check_capability(card *c)
{
    const cudaError_t e = query(c);
    if (e != cudaSuccess) {
        (void)cudaGetLastError();
        refuse(c, "device %d: cudaDeviceGetAttribute: %s", c->ordinal, cudaGetErrorString(e));
    } else if (c->capability < kernels_oldest()) {
        refuse(c, "device %d is of compute capability %d.%d; kernels were compiled for %d.%d and later",
               c->ordinal, c->capability / 10, c->capability % 10, kernels_oldest() / 10,
               kernels_oldest() % 10);
    }
}

static void choose(card *c, int count)
{
    const char *text = getenv("DUET_DEVICE");
    char *end;
    const bool given = text && *text;
    const long n = given ? strtol(text, &end, 10) : 0;
    if (given && (*end || n < 0 || n >= count)) {
        refuse(c, "DUET_DEVICE=%s is not the number of one of the %d devices", text, count);
        return;
    }
    found = count;
    chosen = c->ordinal = (int)n;
    check_capability(c);
}

static void find(card *c)
{
    int count = 0, driver = 0;
    const cudaError_t e = cudaGetDeviceCount(&count);
    if (e == cudaSuccess && count > 0) return choose(c, count);
    (void)cudaGetLastError();
    if (e == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
        refuse(c, "no NVIDIA driver");
    else if (e == cudaErrorInsufficientDriver)
        refuse(c, "the NVIDIA driver is for CUDA %d.%d, too old for %d.%d", driver / 1000, driver % 1000 / 10,
               CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    else if (e == cudaSuccess || e == cudaErrorNoDevice) refuse(c, "no device");
    else refuse(c, "cudaGetDeviceCount: %s", cudaGetErrorString(e));
}

static cudaError_t count_multiprocessors(card *c)
{
    return cudaDeviceGetAttribute(&c->multiprocessors, cudaDevAttrMultiProcessorCount, c->ordinal);
}

/* Steps are planned for the default card, so other cards must be of the same kind. `unit` counts
 * the cards without the default one. */
static void check_other(card *c, int unit)
{
    card *first = &cards[DEFAULT_GPU];
    c->ordinal = unit > chosen ? unit : unit - 1;
    if (unit >= found) return refuse(c, "no such device");
    check_capability(c);
    if (c->reason) return;
    cudaError_t e = count_multiprocessors(c);
    if (e == cudaSuccess) e = count_multiprocessors(first);
    if (e != cudaSuccess) {
        (void)cudaGetLastError();
        refuse(c, "device %d: cudaDeviceGetAttribute: %s", c->ordinal, cudaGetErrorString(e));
    } else if (c->capability != first->capability || c->multiprocessors != first->multiprocessors) {
        refuse(c, "device %d is of another kind than device %d", c->ordinal, first->ordinal);
    }
}

static void check(int device)
{
    card *c = &cards[device];
    if (device == DEFAULT_GPU) find(c);
    else check_other(c, devices[device].unit);
    __atomic_store_n(&c->checked, true, __ATOMIC_RELEASE);
}

static __attribute__((cold, noinline)) void check_once(int device)
{
    pthread_mutex_lock(&checking);
    if (!cards[DEFAULT_GPU].checked) check(DEFAULT_GPU);
    if (!cards[device].checked) check(device);
    pthread_mutex_unlock(&checking);
}

const char *gpu_device_absent(int device)
{
    const card *c = &cards[device];
    if (unlikely(!__atomic_load_n(&c->checked, __ATOMIC_ACQUIRE))) check_once(device);
    return __atomic_load_n(&c->reason, __ATOMIC_ACQUIRE);
}

const char *gpu_device_lost(int device)
{
    const card *c = &cards[device];
    const char *why = gpu_device_absent(device);
    return why == c->lost[0] || why == c->lost[1] ? why : NULL;
}

const char *gpu_device_all_absent(void)
{
    const char *why = gpu_device_absent(DEFAULT_GPU);
    for (int d = DEFAULT_GPU; why && d < DEVICES_MAX; d++)
        if (!gpu_device_absent(d) || gpu_device_lost(d)) return NULL;
    return why;
}

/* Errors after which every call for the card fails, until its context is destroyed. */
static bool is_lost(cudaError_t e)
{
    switch ((int)e) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorDevicesUnavailable:
    case 226: /* Contained, and three that not every toolkit names: TensorMemoryLeak, */
    case 721:
    case 810: /* MpsClientTerminated, */
    case 911: /* ExternalDevice */ return true;
    default: return false;
    }
}

#define RECOVER "call duet_recover() to restart it; CUDA may refuse"

/* Writes a new text, which becomes the reason. */
static void say_lost(card *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say_lost(card *c, const char *format, ...)
{
    char *text = c->lost[c->losses++ % 2];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof c->lost[0], format, ap);
    va_end(ap);
    __atomic_store_n(&c->reason, text, __ATOMIC_RELEASE);
}

static void lose(card *c, const char *call, cudaError_t e)
{
    pthread_mutex_lock(&checking);
    if (c->checked && !c->reason)
        say_lost(c, "the GPU was lost: %s: %s; " RECOVER, call, cudaGetErrorString(e));
    pthread_mutex_unlock(&checking);
}

/* The card that is current was lost. If CUDA cannot say which one that is, all were. */
static __attribute__((cold)) void lose_current(const char *call, cudaError_t e)
{
    int current;
    const bool known = cudaGetDevice(&current) == cudaSuccess;
    if (!known) (void)cudaGetLastError();
    for (int d = DEFAULT_GPU; d < DEVICES_MAX; d++)
        if (!known || cards[d].ordinal == current) lose(&cards[d], call, e);
}

/* Clears CUDA's last error, so that no later call of this library or the caller sees it. */
duet_status cuda_failed(const char *call, cudaError_t e)
{
    (void)cudaGetLastError();
    if (is_lost(e)) lose_current(call, e);
    if (is_lost(e) && !device_recovery_is_mine())
        return fail(DUET_DEVICE_ERROR, "%s: %s (%s): the GPU was lost; " RECOVER, call, cudaGetErrorString(e),
                    cudaGetErrorName(e));
    duet_status s = DUET_DEVICE_ERROR;
    if (e == cudaErrorMemoryAllocation) s = DUET_NO_MEMORY;
    if (e == cudaErrorNoDevice) s = DUET_NO_DEVICE;
    return fail(s, "%s: %s (%s)", call, cudaGetErrorString(e), cudaGetErrorName(e));
}

/* Vendor libraries have a CUDA runtime of their own, whose last error is not that of this one. A query
 * of a stream returns the error of the context, and does not wait. */
bool gpu_device_was_lost(const char *call)
{
    const cudaError_t e = cudaStreamQuery(NULL);
    (void)cudaGetLastError();
    if (is_lost(e)) (void)cuda_failed(call, e);
    return is_lost(e);
}

void gpu_device_revive(int device) { __atomic_store_n(&reviving, device, __ATOMIC_RELAXED); }

void gpu_device_revived(int device, const char *why)
{
    card *c = &cards[device];
    pthread_mutex_lock(&checking);
    __atomic_store_n(&reviving, HOST, __ATOMIC_RELAXED);
    if (why) say_lost(c, "the GPU was lost, and CUDA cannot restart it in this process: %s", why);
    else __atomic_store_n(&c->reason, NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&checking);
}

static bool may_enter(int device)
{
    return __atomic_load_n(&reviving, __ATOMIC_RELAXED) == device && device_recovery_is_mine();
}

/* A thread that recovers cards waits for this one to leave, or finds that it has not passed the test. */
duet_status gpu_device_enter(int device, device_scope *s)
{
    *s = (device_scope){ -1, device_use_enter() };
    const char *why = gpu_device_absent(device);
    const int ordinal = cards[device].ordinal;
    if (unlikely(why != NULL) && !may_enter(device))
        return fail(DUET_NO_DEVICE, "there is no usable GPU: %s", why);
    int current;
    TRY(CUDA(cudaGetDevice, &current));
    if (current == ordinal) return DUET_OK;
    TRY(CUDA(cudaSetDevice, ordinal));
    s->before = current;
    return DUET_OK;
}

void gpu_device_leave(const device_scope *s)
{
    if (s->before >= 0 && cudaSetDevice(s->before) != cudaSuccess) (void)cudaGetLastError();
    device_use_end(s->user);
}

duet_status gpu_alloc(int device, size_t bytes, void **p)
{
    *p = NULL;
    ON_DEVICE(device);
    return CUDA(cudaMalloc, p, bytes ? bytes : 1);
}

/* The blocks of a lost card are gone with it. cudaFree fails only then, or with the error of
 * earlier work, which others report. It needs no current card, but would create a context on the
 * first card if there is none. */
void gpu_free(int device, void *p)
{
    device_scope s;
    error_text told;
    if (!p || gpu_device_absent(device)) return;
    error_keep(&told);
    if (gpu_device_enter(device, &s) != DUET_OK) error_put_back(&told);
    gpu_queues_settle(device);
    if (cudaFree(p) != cudaSuccess) (void)cudaGetLastError();
    gpu_device_leave(&s);
}

static duet_status query_room(int device, size_t *bytes)
{
    size_t all;
    ON_DEVICE(device);
    return CUDA(cudaMemGetInfo, bytes, &all);
}

/* A failure is not an error for the caller, so the error text of the thread is restored. */
size_t gpu_available(int device)
{
    size_t bytes;
    error_text before;
    error_keep(&before);
    if (query_room(device, &bytes) == DUET_OK) return bytes;
    error_put_back(&before);
    return SIZE_MAX;
}

duet_status gpu_pin(int device, void *host, size_t bytes)
{
    ON_DEVICE(device);
    return CUDA(cudaHostRegister, host, bytes, cudaHostRegisterPortable);
}

/* If the device is lost, another one may still have a context that unregisters the memory. */
void gpu_unpin(int device, void *host)
{
    device_scope s;
    error_text kept;
    error_keep(&kept);
    (void)gpu_device_enter(device, &s);
    gpu_queues_settle(device);
    if (cudaHostUnregister(host) != cudaSuccess) (void)cudaGetLastError();
    gpu_device_leave(&s);
    error_put_back(&kept);
}

int gpu_device_major(int device) { return cards[device].capability / 10; }

int gpu_device_ordinal(int device) { return cards[device].ordinal; }

/* The call takes long, so it is made once. */
size_t gpu_device_bytes(int device)
{
    card *c = &cards[device];
    struct cudaDeviceProp p;
    size_t bytes = __atomic_load_n(&c->bytes, __ATOMIC_RELAXED);
    if (bytes) return bytes;
    if (cudaGetDeviceProperties(&p, c->ordinal) == cudaSuccess) bytes = p.totalGlobalMem;
    else (void)cudaGetLastError();
    __atomic_store_n(&c->bytes, bytes, __ATOMIC_RELAXED);
    return bytes ? bytes : SIZE_MAX;
}

void gpu_device_name(char *text, size_t size)
{
    int driver = 0, runtime = 0;
    struct cudaDeviceProp p;
    *text = '\0';
    if (cudaGetDeviceProperties(&p, chosen) == cudaSuccess && cudaDriverGetVersion(&driver) == cudaSuccess &&
        cudaRuntimeGetVersion(&runtime) == cudaSuccess)
        snprintf(text, size, "%s, %d multiprocessors, driver %d, runtime %d", p.name, p.multiProcessorCount,
                 driver, runtime);
    else (void)cudaGetLastError();
}

void gpu_device_info(FILE *out)
{
    int driver = 0, runtime = 0;
    struct cudaDeviceProp p;
    cudaError_t e = cudaGetDeviceProperties(&p, chosen);
    if (e != cudaSuccess || cudaDriverGetVersion(&driver) != cudaSuccess ||
        cudaRuntimeGetVersion(&runtime) != cudaSuccess) {
        fprintf(out, "gpu      device %d does not answer: %s\n", chosen,
                cudaGetErrorString(e ? e : cudaGetLastError()));
        return;
    }
    fprintf(out, "gpu      device %d: %s, %.1f GiB, compute capability %d.%d, %d multiprocessors\n", chosen,
            p.name, (double)p.totalGlobalMem / (1 << 30), p.major, p.minor, p.multiProcessorCount);
    fprintf(out, "         driver for CUDA %d.%d, runtime %d.%d\n", driver / 1000, driver % 1000 / 10,
            runtime / 1000, runtime % 1000 / 10);
}
