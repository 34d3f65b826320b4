/* device.c - the card. */
#include "device.h"
#include "kernels.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

static int card;
static int capability;     /* its compute capability, times ten */
static const char *reason; /* why it cannot be used; NULL while it can */
static char found[256];    /* the text of a card never found */
static char broken[256];   /* and of one that was lost */

static void absent(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void absent(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(found, sizeof found, format, ap);
    va_end(ap);
    reason = found;
}

/* Is there a kernel for it? */
static void check_card(void)
{
    int major, minor;
    cudaError_t e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, card);
    if (e == cudaSuccess) e = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, card);
    if (e != cudaSuccess) {
        (void)cudaGetLastError();
        absent("device %d does not say what it is: %s", card, cudaGetErrorString(e));
        return;
    }
    capability = 10 * major + minor;
    if (capability < kernels_oldest())
        absent("device %d is of compute capability %d.%d; kernels were compiled for %d.%d and later", card,
               major, minor, kernels_oldest() / 10, kernels_oldest() % 10);
}

static void choose(int count)
{
    const char *text = getenv("DUET_DEVICE");
    char *end;
    long n = text && *text ? strtol(text, &end, 10) : 0;
    if (text && *text && (*end || n < 0 || n >= count))
        absent("DUET_DEVICE=%s names none of the %d devices", text, count);
    else card = (int)n, check_card();
}

static void find(void)
{
    int count = 0, driver = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e == cudaSuccess && count > 0) return choose(count);
    (void)cudaGetLastError();
    if (e == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
        absent("no NVIDIA driver");
    else if (e == cudaErrorInsufficientDriver)
        absent("the NVIDIA driver is for CUDA %d.%d, too old for %d.%d", driver / 1000, driver % 1000 / 10,
               CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    else if (e == cudaSuccess || e == cudaErrorNoDevice) absent("no device");
    else absent("cudaGetDeviceCount: %s", cudaGetErrorString(e));
}

const char *gpu_device_absent(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
    return __atomic_load_n(&reason, __ATOMIC_ACQUIRE);
}

/* Errors after which every call in this process fails alike. */
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
    case 226: /* Contained, and three more that not every toolkit names: TensorMemoryLeak, */
    case 721:
    case 810: /* MpsClientTerminated, */
    case 911: /* ExternalDevice */ return true;
    default: return false;
    }
}

static void lose(const char *call, cudaError_t e)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!reason) {
        snprintf(broken, sizeof broken, "the GPU was lost: %s: %s", call, cudaGetErrorString(e));
        __atomic_store_n(&reason, broken, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

/* The error is reported here, so that no later call of ours or the caller's meets it again as its own. */
duet_status cuda_failed(const char *call, cudaError_t e)
{
    (void)cudaGetLastError();
    if (is_lost(e)) lose(call, e);
    duet_status s = e == cudaErrorMemoryAllocation ? DUET_NO_MEMORY
                    : e == cudaErrorNoDevice       ? DUET_NO_DEVICE
                                                   : DUET_DEVICE_ERROR;
    return fail(s, "%s: %s (%s)", call, cudaGetErrorString(e), cudaGetErrorName(e));
}

duet_status gpu_device_enter(int *before)
{
    const char *why = gpu_device_absent();
    if (why) return fail(DUET_NO_DEVICE, "there is no usable GPU: %s", why);
    int current;
    TRY(CUDA(cudaGetDevice, &current));
    if (current == card) return DUET_OK;
    TRY(CUDA(cudaSetDevice, card));
    *before = current;
    return DUET_OK;
}

void gpu_device_leave(const int *before)
{
    if (*before >= 0 && cudaSetDevice(*before) != cudaSuccess) (void)cudaGetLastError();
}

duet_status gpu_alloc(size_t bytes, void **p)
{
    *p = NULL;
    ON_DEVICE();
    return CUDA(cudaMalloc, p, bytes ? bytes : 1);
}

/* A block of a lost card went with it. cudaFree fails only then, or for the error of earlier work, which others report. It needs no current
 * card, but without one makes a context on the first. */
void gpu_free(void *p)
{
    int before = -1;
    error_text told;
    if (!p || gpu_device_absent()) return;
    error_keep(&told);
    if (gpu_device_enter(&before) != DUET_OK) error_put_back(&told);
    if (cudaFree(p) != cudaSuccess) (void)cudaGetLastError();
    gpu_device_leave(&before);
}

static duet_status ask_room(size_t *bytes)
{
    size_t all;
    ON_DEVICE();
    return CUDA(cudaMemGetInfo, bytes, &all);
}

/* Whoever asks has another way. */
size_t gpu_room(void)
{
    size_t bytes;
    error_text before;
    error_keep(&before);
    if (ask_room(&bytes) == DUET_OK) return bytes;
    error_put_back(&before);
    return SIZE_MAX;
}

duet_status gpu_pin(void *host, size_t bytes)
{
    ON_DEVICE();
    return CUDA(cudaHostRegister, host, bytes, cudaHostRegisterPortable);
}

void gpu_unpin(void *host)
{
    int before = -1;
    if (gpu_device_absent() || gpu_device_enter(&before) != DUET_OK) return;
    if (cudaHostUnregister(host) != cudaSuccess) (void)cudaGetLastError();
    gpu_device_leave(&before);
}

int gpu_device_major(void) { return capability / 10; }

size_t gpu_device_bytes(void)
{
    static size_t known; /* it takes the driver a while to say all that it is asked with this */
    struct cudaDeviceProp p;
    size_t bytes = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (bytes) return bytes;
    if (cudaGetDeviceProperties(&p, card) == cudaSuccess) bytes = p.totalGlobalMem;
    else (void)cudaGetLastError();
    __atomic_store_n(&known, bytes, __ATOMIC_RELAXED);
    return bytes ? bytes : SIZE_MAX;
}

void gpu_device_name(char *text, size_t size)
{
    int driver = 0, runtime = 0;
    struct cudaDeviceProp p;
    *text = '\0';
    if (cudaGetDeviceProperties(&p, card) == cudaSuccess && cudaDriverGetVersion(&driver) == cudaSuccess &&
        cudaRuntimeGetVersion(&runtime) == cudaSuccess)
        snprintf(text, size, "%s, %d multiprocessors, driver %d, runtime %d", p.name, p.multiProcessorCount,
                 driver, runtime);
    else (void)cudaGetLastError();
}

void gpu_device_info(FILE *out)
{
    int driver = 0, runtime = 0;
    struct cudaDeviceProp p;
    cudaError_t e = cudaGetDeviceProperties(&p, card);
    if (e != cudaSuccess || cudaDriverGetVersion(&driver) != cudaSuccess ||
        cudaRuntimeGetVersion(&runtime) != cudaSuccess) {
        fprintf(out, "gpu      device %d does not answer: %s\n", card,
                cudaGetErrorString(e ? e : cudaGetLastError()));
        return;
    }
    fprintf(out, "gpu      device %d: %s, %.1f GiB, compute capability %d.%d, %d multiprocessors\n", card,
            p.name, (double)p.totalGlobalMem / (1 << 30), p.major, p.minor, p.multiProcessorCount);
    fprintf(out, "         driver for CUDA %d.%d, runtime %d.%d\n", driver / 1000, driver % 1000 / 10,
            runtime / 1000, runtime % 1000 / 10);
}
