/* dlpack_import.c - matrices of memory that other libraries own: duet_from_dlpack. */
#include "device_use.h"
#include "dlpack_types.h"
#include "dtype.h"
#include "view.h"

/* A tensor of either kind. */
typedef struct imported {
    const char *who;
    const DLTensor *tensor;
    bool constant;
    intptr_t stream;
    const duet_matrix *own; /* the matrix that was exported, or NULL */
    void (*release)(void *managed);
    void *managed;
} imported;

/* ---- checks ---- */

static duet_status check_shape(const char *who, const DLTensor *t, duet_dtype type)
{
    if (t->ndim < 0 || t->ndim > DUET_RANK_MAX)
        return fail(DUET_BAD_SHAPE, "%s: the tensor has %d axes; Duet has 0 to %d", who, (int)t->ndim,
                    DUET_RANK_MAX);
    if (t->ndim && !t->shape)
        return fail(DUET_BAD_ARGUMENT, "%s: the shape of a tensor with %d axes must not be NULL", who,
                    (int)t->ndim);
    return shape_check(who, type, t->ndim, t->shape);
}

/* Strides of axes with one element, and of tensors without elements, have no meaning. */
static duet_status read_layout(const char *who, const DLTensor *t, layout *at)
{
    duet_dtype type;
    TRY(dlpack_read_type(who, t->dtype, &type));
    TRY(check_shape(who, t, type));
    layout_dense(at, type, t->ndim, t->shape);
    const bool given = t->strides && layout_count(at);
    for (int a = 0; a < t->ndim && given; a++)
        if (at->size[a] > 1) at->stride[a] = t->strides[a];
    return DUET_OK;
}

static duet_status read_address(const char *who, const DLTensor *t, void **p)
{
    uintptr_t at;
    if (!t->data)
        return fail(DUET_BAD_ARGUMENT, "%s: the data of a tensor with elements must not be NULL", who);
    if (__builtin_add_overflow((uintptr_t)t->data, t->byte_offset, &at))
        return fail(DUET_BAD_ARGUMENT, "%s: data (%p) and byte_offset (%llu) overflow", who, t->data,
                    (unsigned long long)t->byte_offset);
    *p = (void *)at;
    return DUET_OK;
}

static bool is_on_gpu(DLDeviceType type) { return type == kDLCUDA || type == kDLCUDAManaged; }

/* The memory must be where the tensor says: a kernel that reads something else ends the context of CUDA.
 * Managed memory belongs to no device in DLPack. */
static duet_status locate(const char *who, const DLTensor *t, foreign_memory *f)
{
    int said = DEFAULT_GPU;
    const char *why = device_absent(DEFAULT_GPU);
    if (t->device.device_type == kDLCUDA) TRY(dlpack_read_gpu(who, t->device.device_id, &said));
    else if (why) return fail(DUET_NO_DEVICE, "%s: %s", who, why);
    TRY(fail_at(device_machine(said)->locate(f->first, &f->device), who));
    if (t->device.device_type != kDLCUDA || f->device == said) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "%s: the data of the tensor is on CUDA's device %d, not on %d", who,
                dlpack_device(f->device).device_id, (int)t->device.device_id);
}

static duet_status check_device(const char *who, DLDeviceType type)
{
    if (type == kDLCPU || type == kDLCUDAHost || is_on_gpu(type)) return DUET_OK;
    return fail(DUET_UNSUPPORTED,
                "%s: the tensor is on a device of another kind (%s, DLPack's device type %d)", who,
                dlpack_device_name(type), (int)type);
}

static duet_status read_memory(const imported *x, const layout *at, foreign_memory *f)
{
    const DLTensor *t = x->tensor;
    *f = (foreign_memory){
        .device = HOST, .constant = x->constant, .release = x->release, .context = x->managed
    };
    TRY(check_device(x->who, t->device.device_type));
    if (!layout_count(at)) return DUET_OK;
    TRY(read_address(x->who, t, &f->first));
    return is_on_gpu(t->device.device_type) ? locate(x->who, t, f) : DUET_OK;
}

/* ---- the matrix ---- */

/* This thread's queue continues after the producer's stream. */
static duet_status follow(const imported *x, int device)
{
    if (device == HOST || !dlpack_is_stream(x->stream)) return DUET_OK;
    const duet_status st =
        device_machine(device)->follow(device, thread_get()->queue, dlpack_stream(x->stream));
    return fail_at(st, x->who);
}

static duet_matrix *import_others(const imported *x)
{
    layout at;
    foreign_memory f;
    if (read_layout(x->who, x->tensor, &at) || read_memory(x, &at, &f) || follow(x, f.device)) return NULL;
    return matrix_of_foreign(x->who, &at, &f);
}

/* The consumer may have written the exported buffer, if it is still valid. */
static duet_status note_writes(const imported *x, duet_matrix *m, int device)
{
    void *p;
    if (m->constant || m->repeats || !storage_valid_on(m->storage, device)) return DUET_OK;
    TRY(matrix_lend_to_others(x->who, m, device, UPDATE, &p));
    matrix_end_loan(m);
    return DUET_OK;
}

static duet_matrix *import_own(const imported *x)
{
    int device = HOST;
    const DLDevice on = x->tensor->device;
    if (on.device_type == kDLCUDA && dlpack_read_gpu(x->who, on.device_id, &device)) return NULL;
    if (follow(x, device)) return NULL;
    duet_matrix *m = view_of(x->own, &x->own->at, 0);
    if (!m) return NULL;
    m->constant |= x->constant;
    if (note_writes(x, m, device)) (duet_free)(&m);
    if (m) x->release(x->managed);
    return m;
}

static duet_matrix *import_tensor(const imported *x)
{
    lenders_call();
    USE_GPUS;
    return x->own ? import_own(x) : import_others(x);
}

/* ---- the functions ---- */

static void release_versioned(void *managed)
{
    struct DLManagedTensorVersioned *t = managed;
    t->deleter(t);
}

static void release_legacy(void *managed)
{
    DLManagedTensor *t = managed;
    t->deleter(t);
}

duet_matrix *(duet_from_dlpack)(struct DLManagedTensorVersioned *tensor, intptr_t stream)
{
    const char *who = "duet_from_dlpack";
    if (!tensor) {
        fail(DUET_BAD_ARGUMENT, "%s: the tensor must not be NULL", who);
        return NULL;
    }
    if (tensor->version.major != DLPACK_MAJOR_VERSION) {
        fail(DUET_UNSUPPORTED, "%s: the tensor is of DLPack %u.%u; Duet knows version %d; call its deleter",
             who, (unsigned)tensor->version.major, (unsigned)tensor->version.minor, DLPACK_MAJOR_VERSION);
        return NULL;
    }
    return import_tensor(&(imported){ .who = who,
                                      .tensor = &tensor->dl_tensor,
                                      .constant = tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY,
                                      .stream = stream,
                                      .own = dlpack_own(tensor),
                                      .release = tensor->deleter ? release_versioned : NULL,
                                      .managed = tensor });
}

duet_matrix *(duet_from_dlpack_legacy)(DLManagedTensor *tensor, intptr_t stream)
{
    const char *who = "duet_from_dlpack_legacy";
    if (!tensor) {
        fail(DUET_BAD_ARGUMENT, "%s: the tensor must not be NULL", who);
        return NULL;
    }
    return import_tensor(&(imported){ .who = who,
                                      .tensor = &tensor->dl_tensor,
                                      .stream = stream,
                                      .own = dlpack_own_legacy(tensor),
                                      .release = tensor->deleter ? release_legacy : NULL,
                                      .managed = tensor });
}
