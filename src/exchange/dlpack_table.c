/* dlpack_table.c - the exchange table of DLPack 1.3. */
#include "deferred.h"
#include "device_use.h"
#include "dlpack_types.h"

#define ALLOCATOR "the allocator of duet_dlpack_exchange"

/* The exception of Python for a status. */
static const char *exception_of(duet_status s)
{
    switch (s) {
    case DUET_NO_MEMORY: return "MemoryError";
    case DUET_BAD_ARGUMENT:
    case DUET_BAD_SHAPE:
    case DUET_BAD_TYPE: return "ValueError";
    case DUET_UNSUPPORTED:
    case DUET_NO_DEVICE: return "BufferError";
    default: return "RuntimeError";
    }
}

static duet_status read_device(DLDevice on, int *device)
{
    *device = HOST;
    if (on.device_type == kDLCPU) return DUET_OK;
    if (on.device_type == kDLCUDA) return dlpack_read_gpu(ALLOCATOR, on.device_id, device);
    return fail(DUET_UNSUPPORTED, ALLOCATOR ": Duet has no memory of the kind %s (DLPack's device type %d)",
                dlpack_device_name(on.device_type), (int)on.device_type);
}

static struct DLManagedTensorVersioned *allocate(const DLTensor *prototype)
{
    int device;
    duet_dtype type;
    USE_GPUS;
    if (read_device(prototype->device, &device) || dlpack_read_type(ALLOCATOR, prototype->dtype, &type))
        return NULL;
    duet_matrix *m = matrix_new(ALLOCATOR, type, prototype->ndim, prototype->shape);
    struct DLManagedTensorVersioned *t = m ? dlpack_export(ALLOCATOR, m, device, OVERWRITE, 0) : NULL;
    (duet_free)(&m);
    return t;
}

static int allocator(DLTensor *prototype, struct DLManagedTensorVersioned **out, void *error_ctx,
                     void (*set_error)(void *error_ctx, const char *kind, const char *message))
{
    *out = allocate(prototype);
    if (*out) return 0;
    if (set_error) set_error(error_ctx, exception_of(duet_error_status()), duet_error());
    return -1;
}

static int current_work_stream(DLDeviceType type, int32_t id, void **out)
{
    int device;
    *out = NULL;
    if (type != kDLCUDA && type != kDLCUDAManaged) return 0;
    USE_GPUS;
    if (dlpack_read_gpu("the current stream of duet_dlpack_exchange", id, &device)) return -1;
    if (deferred_flush() != DUET_OK) return -1;
    *out = device_machine(device)->stream(device, thread_get()->queue);
    return *out ? 0 : -1;
}

static const DLPackExchangeAPI table = {
    .header = { .version = { DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION } },
    .managed_tensor_allocator = allocator,
    .current_work_stream = current_work_stream,
};

const struct DLPackExchangeAPI *duet_dlpack_exchange(void) { return &table; }
