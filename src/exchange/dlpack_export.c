/* dlpack_export.c - gives the memory of matrices to other libraries: duet_to_dlpack. */
#include "deferred.h"
#include "device_use.h"
#include "dlpack_types.h"
#include <stdlib.h>

/* A tensor of either kind, with all that it needs. */
typedef struct exported {
    union {
        struct DLManagedTensorVersioned versioned;
        DLManagedTensor legacy;
    } tensor;
    duet_matrix *kept; /* shares the storage, which it keeps alive */
    int64_t shape[DUET_RANK_MAX], strides[DUET_RANK_MAX];
} exported;

static void end_export(exported *x)
{
    if (!x) return;
    matrix_end_loan(x->kept);
    (duet_free)(&x->kept);
    free(x);
}

static void delete_versioned(struct DLManagedTensorVersioned *t)
{
    if (t) end_export(t->manager_ctx);
}

static void delete_legacy(DLManagedTensor *t)
{
    if (t) end_export(t->manager_ctx);
}

const duet_matrix *dlpack_own(const struct DLManagedTensorVersioned *t)
{
    return t->deleter == delete_versioned ? ((const exported *)t->manager_ctx)->kept : NULL;
}

const duet_matrix *dlpack_own_legacy(const DLManagedTensor *t)
{
    return t->deleter == delete_legacy ? ((const exported *)t->manager_ctx)->kept : NULL;
}

/* ---- the tensor ---- */

static duet_matrix *keep(const duet_matrix *m)
{
    duet_matrix *k = matrix_share(m->storage, &m->at, m->offset);
    if (!k) return NULL;
    k->constant = m->constant;
    duet_created_at(k, __atomic_load_n(&m->site, __ATOMIC_RELAXED));
    return k;
}

/* The numbers of a tensor of x->kept, whose first element is at p. */
static DLTensor describe(exported *x, int device, void *p)
{
    const layout *at = &x->kept->at;
    for (int a = 0; a < at->rank; a++) {
        x->shape[a] = at->size[a];
        x->strides[a] = at->stride[a];
    }
    return (DLTensor){ .data = x->kept->count ? p : NULL,
                       .device = dlpack_device(device),
                       .ndim = at->rank,
                       .dtype = dlpack_type(at->type),
                       .shape = x->shape,
                       .strides = x->strides };
}

static exported *lend(const char *who, duet_matrix *m, int device, enum use use, DLTensor *t)
{
    void *p;
    if (matrix_check(who, m)) return NULL;
    exported *x = malloc(sizeof *x);
    if (!x) fail(DUET_NO_MEMORY, "%s: the system could not allocate %zu bytes for a tensor", who, sizeof *x);
    duet_matrix *kept = x ? keep(m) : NULL;
    if (!kept || matrix_lend_to_others(who, kept, device, use, &p)) {
        (duet_free)(&kept);
        free(x);
        return NULL;
    }
    x->kept = kept;
    *t = describe(x, device, p);
    return x;
}

struct DLManagedTensorVersioned *dlpack_export(const char *who, duet_matrix *m, int device, enum use use,
                                               uint64_t flags)
{
    DLTensor t;
    exported *x = lend(who, m, device, use, &t);
    if (!x) return NULL;
    x->tensor.versioned =
        (struct DLManagedTensorVersioned){ .version = { DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION },
                                           .manager_ctx = x,
                                           .deleter = delete_versioned,
                                           .flags = flags,
                                           .dl_tensor = t };
    return &x->tensor.versioned;
}

static DLManagedTensor *export_legacy(const char *who, duet_matrix *m, int device)
{
    DLTensor t;
    exported *x = lend(who, m, device, UPDATE, &t);
    if (!x) return NULL;
    x->tensor.legacy = (DLManagedTensor){ t, x, delete_legacy };
    return &x->tensor.legacy;
}

/* ---- where ---- */

static int device_of_elements(const duet_matrix *m)
{
    const unsigned valid = storage_valid(m->storage);
    const int own = thread_get()->gpu;
    if (!valid || valid >> HOST & 1) return HOST;
    const int device = valid >> own & 1 ? own : __builtin_ctz(valid);
    return device_absent(device) ? HOST : device;
}

static int device_for(const duet_matrix *m, duet_place place)
{
    if (place == DUET_AUTO) return device_of_elements(m);
    return place == DUET_GPU ? thread_get()->gpu : HOST;
}

DLDevice duet_dlpack_device(const duet_matrix *m)
{
    error_text before;
    error_keep(&before);
    const bool exists = matrix_check("duet_dlpack_device", m) == DUET_OK;
    if (!exists) error_put_back(&before);
    return dlpack_device(exists ? device_of_elements(m) : HOST);
}

/* ---- a copy ---- */

static duet_status copy_to(duet_matrix *to, duet_matrix *m, int device)
{
    const duet_place place = device == HOST ? DUET_CPU : DUET_GPU;
    return (duet_set_on)(place, to, duet_of_matrix(m));
}

/* The copy is no statement of the user: it is neither recorded nor explained, and may cross devices. */
static duet_matrix *copy_of(const char *who, duet_matrix *m, int device)
{
    thread *t = thread_get();
    struct duet_recording *recording = t->recording;
    FILE *explaining = t->explaining;
    duet_matrix *to = matrix_new(who, m->at.type, m->at.rank, m->at.size);
    if (!to) return NULL;
    t->recording = NULL;
    t->explaining = NULL;
    const duet_transfers transfers = t->transfers;
    t->transfers = DUET_TRANSFERS_ALLOWED;
    const duet_status st = copy_to(to, m, device);
    t->transfers = transfers;
    t->recording = recording;
    t->explaining = explaining;
    if (st == DUET_OK) return to;
    fail_within(st, "%s", who);
    (duet_free)(&to);
    return NULL;
}

/* ---- the functions ---- */

static const duet_dlpack_options no_options = { DUET_AUTO, 0, 0, DUET_DLPACK_LEGACY };

static duet_status check(const char *who, const duet_matrix *m, const duet_dlpack_options *o)
{
    TRY(matrix_check(who, m));
    if ((unsigned)o->place > DUET_GPU)
        return fail(DUET_BAD_ARGUMENT, "%s: place (%d) must be DUET_AUTO, DUET_CPU or DUET_GPU", who,
                    (int)o->place);
    if ((unsigned)o->writable > 1 || (unsigned)o->copy > 1)
        return fail(DUET_BAD_ARGUMENT, "%s: writable (%d) and copy (%d) must be 0 or 1", who, o->writable,
                    o->copy);
    return DUET_OK;
}

/* The consumer's stream continues after the work of this thread. */
static duet_status lead(const char *who, int device, intptr_t stream)
{
    if (device == HOST || !dlpack_is_stream(stream)) return DUET_OK;
    const duet_status st = device_machine(device)->lead(device, thread_get()->queue, dlpack_stream(stream));
    return fail_at(st, who);
}

/* The matrix to export: m itself or a copy. */
static duet_matrix *source_of(const char *who, duet_matrix *m, const duet_dlpack_options *o, int device)
{
    return o->copy ? copy_of(who, m, device) : m;
}

static struct DLManagedTensorVersioned *export_versioned(const char *who, duet_matrix *m,
                                                         const duet_dlpack_options *o)
{
    const int device = device_for(m, o->place);
    duet_matrix *from = source_of(who, m, o, device);
    const bool writable = o->writable || o->copy;
    uint64_t flags = writable ? 0 : DLPACK_FLAG_BITMASK_READ_ONLY;
    if (o->copy) flags |= DLPACK_FLAG_BITMASK_IS_COPIED;
    struct DLManagedTensorVersioned *t =
        from ? dlpack_export(who, from, device, writable ? UPDATE : READ, flags) : NULL;
    if (from != m) (duet_free)(&from);
    if (!t || lead(who, device, o->stream) == DUET_OK) return t;
    t->deleter(t);
    return NULL;
}

struct DLManagedTensorVersioned *(duet_to_dlpack)(duet_matrix *m, const duet_dlpack_options *options)
{
    const char *who = "duet_to_dlpack";
    const duet_dlpack_options *o = options ? options : &no_options;
    USE_GPUS;
    return check(who, m, o) == DUET_OK ? export_versioned(who, m, o) : NULL;
}

DLManagedTensor *(duet_to_dlpack_legacy)(duet_matrix *m, const duet_dlpack_options *options)
{
    const char *who = "duet_to_dlpack_legacy";
    const duet_dlpack_options *o = options ? options : &no_options;
    USE_GPUS;
    if (check(who, m, o) != DUET_OK) return NULL;
    const int device = device_for(m, o->place);
    duet_matrix *from = source_of(who, m, o, device);
    DLManagedTensor *t = from ? export_legacy(who, from, device) : NULL;
    if (from != m) (duet_free)(&from);
    if (!t || lead(who, device, o->stream) == DUET_OK) return t;
    t->deleter(t);
    return NULL;
}
