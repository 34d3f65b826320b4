/* kernel_code.c - see kernel_code.h. */
#include "kernel_code.h"
#include "code_list.h"
#include "dtype.h"
#include "kernel_text.h"
#include "launch.h"
#include <cudaTypedefs.h>
#include <pthread.h>
#include <stdlib.h>

#define LONGEST          4000 /* operations of a thread; the driver would take too long for more */
#define LONGEST_TEMPLATE 8000 /* the same for templates */

/* ---- the driver ---- */

typedef struct driver {
    PFN_cuModuleLoadDataEx_v2010 load;
    PFN_cuModuleUnload_v2000 unload;
    PFN_cuModuleGetFunction_v2000 function;
    PFN_cuLaunchKernelEx_v11060 launch;
    PFN_cuFuncSetAttribute_v9000 set;
} driver;

static driver functions;
static pthread_once_t searched = PTHREAD_ONCE_INIT;

/* All or none. */
static void search(void)
{
    const driver d = { driver_function("cuModuleLoadDataEx"), driver_function("cuModuleUnload"),
                       driver_function("cuModuleGetFunction"), driver_function("cuLaunchKernelEx"),
                       driver_function("cuFuncSetAttribute") };
    if (d.load && d.unload && d.function && d.launch && d.set) functions = d;
}

static const driver *driver_functions(void)
{
    pthread_once(&searched, search);
    return functions.load ? &functions : NULL;
}

/* ---- making ---- */

static bool load(const driver *d, const char *text, kernel_code *c)
{
    if (d->load(&c->module, text, 0, NULL, NULL) != CUDA_SUCCESS) return false;
    if (d->function(&c->function, c->module, PTX_ENTRY) == CUDA_SUCCESS) return true;
    (void)d->unload(c->module);
    return false;
}

bool kernel_code_exchange_mode(enum cudaStreamCaptureMode *mode)
{
    if (cudaThreadExchangeStreamCaptureMode(mode) == cudaSuccess) return true;
    (void)cudaGetLastError();
    return false;
}

static bool compile(const char *text, kernel_code *c)
{
    const driver *d = driver_functions();
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (!d || !kernel_code_exchange_mode(&mode)) return false;
    const bool done = load(d, text, c);
    (void)kernel_code_exchange_mode(&mode);
    return done;
}

/* Has the kernel too many operations? Templates contain the formula up to 8, 16 or 32 times. */
static bool is_too_long(const ptx_request *r, const code_list *l)
{
    if (r->form == PTX_ELEMENTS) return l->length * r->width > LONGEST;
    const int times = r->form == PTX_COLUMNS ? 8 : r->form == PTX_JOINED ? 32 : 16;
    return l->length * times > LONGEST_TEMPLATE;
}

static bool make_of_list(const ptx_request *form, const program *p, const code_list *l, kernel_code *c)
{
    ptx_text text = { 0 };
    ptx_request r = *form;
    char name[64];
    r.list = l;
    if (is_too_long(&r, l)) return false;
    bool written;
    if (r.form == PTX_ELEMENTS) written = ptx_write(&text, &r);
    else {
        const ptx_template s =
            r.form == PTX_JOINED ? joined_template(&r, name) : compiled_reduce_template(&r, p, name);
        written = s.text && ptx_fill_template(&text, &r, &s);
        kernel_text_free(&s);
    }
    const bool done = written && compile(text.at, c);
    free(text.at);
    return done;
}

/* How many low bits of integers the outputs keep. */
static int kept_bits(const ptx_request *r)
{
    int most = 0;
    for (int k = 0; k < r->outputs; k++) {
        const int kept = dtype_kept_bits((duet_dtype)r->out_type[k]);
        most = kept > most ? kept : most;
    }
    return most;
}

/* Calls of the driver need the device's context, which cudaSetDevice makes current. */
bool kernel_code_make(kernel_code *c, int device, const ptx_request *form, const program *p)
{
    code_list l;
    if (cudaSetDevice(device) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    const duet_dtype type = (duet_dtype)form->type;
    const bool listed = p->reductions ? code_list_make_operands(&l, p, type) : code_list_make(&l, p, type);
    if (listed && dtype_is_integer(type)) code_list_drop_wraps(&l, kept_bits(form));
    const bool done = listed && make_of_list(form, p, &l, c);
    code_list_free(&l);
    return done;
}

bool kernel_code_free(const kernel_code *c) { return !driver_functions()->unload(c->module); }

/* ---- launching ---- */

/* A call of the driver needs a current context, which a call of the runtime makes. Retries in this case. */
static bool needs_context(CUresult r, int device)
{
    if (likely(r != CUDA_ERROR_INVALID_CONTEXT && r != CUDA_ERROR_CONTEXT_IS_DESTROYED)) return false;
    if (cudaSetDevice(device) == cudaSuccess) return true;
    (void)cudaGetLastError();
    return false;
}

static CUresult launch_code(const kernel_code *k, const CUlaunchConfig *c, size_t shared_most, void *a)
{
    const driver *d = driver_functions();
    void *args[] = { a };
    CUresult r = CUDA_SUCCESS;
    if (c->sharedMemBytes > SHARED_ALWAYS)
        r = d->set(k->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared_most);
    return r == CUDA_SUCCESS ? d->launch(c, k->function, args, NULL) : r;
}

bool kernel_code_launch(const kernel_code *k, int device, const compiled_source *s, void *a, cudaStream_t q)
{
    CUlaunchAttribute of[] = { { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION },
                               { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION } };
    of[0].value.programmaticStreamSerializationAllowed = 1;
    of[1].value.clusterDim.x = (unsigned)s->cluster;
    of[1].value.clusterDim.y = of[1].value.clusterDim.z = 1;
    const CUlaunchConfig c = { .gridDimX = (unsigned)s->blocks,
                               .gridDimY = 1,
                               .gridDimZ = 1,
                               .blockDimX = s->form.threads,
                               .blockDimY = 1,
                               .blockDimZ = 1,
                               .sharedMemBytes = (unsigned)s->shared,
                               .hStream = q,
                               .attrs = of,
                               .numAttrs = s->cluster > 1 ? 2 : s->form.waits };
    CUresult r = launch_code(k, &c, s->shared_most, a);
    if (needs_context(r, device)) r = launch_code(k, &c, s->shared_most, a);
    return r == CUDA_SUCCESS;
}
