/* fft.c - Fourier transforms by cuFFT. cuFFT needs dense arrays and transforms up to three
 * neighbouring axes at once. Other transforms are a chain of several passes (fft_passes.c). Each run
 * gives its own workspace to the plan, so a plan needs none between runs. */
#include "dtype.h"
#include "fft_passes.h"
#include "min_max.h"
#include "scratch.h"
#include "step_kinds.h"
#include <stdlib.h>
#include <string.h>

#define PLAN_BYTES ((size_t)32 << 20) /* approximate limit of all cached plans that no step uses */

typedef struct fft_plan {
    cufftHandle handle;
    size_t workspace_bytes;
    bool closed; /* its card was lost; the handle must be made again */
} fft_plan;

/* ---- plans ---- */

/* Held while a plan gets its stream and its workspace and is executed, because threads share plans. */
static pthread_mutex_t calling = PTHREAD_MUTEX_INITIALIZER;

static duet_status describe(const vendor *v, const plan_key *k, fft_plan *p)
{
    plan_key own = *k; /* a copy, because the parameters of cuFFT are not const */
    TRY(FFT(v, cufftSetAutoAllocation, p->handle, 0));
    return FFT(v, cufftMakePlanMany64, p->handle, (int)k->rank, own.n, own.in_sizes, k->in_stride,
               k->in_distance, own.out_sizes, k->out_stride, k->out_distance, (cufftType)k->type, k->batch,
               &p->workspace_bytes);
}

static duet_status make_handle(const plan_key *k, fft_plan *p)
{
    const vendor *v = vendor_open(LIBRARY_cufft);
    TRY(FFT(v, cufftCreate, &p->handle));
    const duet_status s = describe(v, k, p);
    if (s != DUET_OK) (void)v->cufftDestroy(p->handle);
    return s;
}

static duet_status make_plan(const void *key, void **thing, size_t *bytes)
{
    const plan_key *k = key;
    fft_plan *p = calloc(1, sizeof *p);
    if (!p) return fail(DUET_NO_MEMORY, "no host memory for the plan of a Fourier transform");
    const duet_status s = make_handle(k, p);
    if (s != DUET_OK) {
        free(p);
        return s;
    }
    *thing = p;
    *bytes = 1 << 16;
    for (int i = 0; i < k->rank; i++) *bytes += (size_t)k->n[i] * 32;
    COUNT(transforms);
    return DUET_OK;
}

static void end_plan(void *thing)
{
    fft_plan *p = thing;
    if (!p->closed) (void)vendor_open(LIBRARY_cufft)->cufftDestroy(p->handle);
    free(p);
}

static lru_cache plan_cache = {
    .make = make_plan, .end = end_plan, .limit = PLAN_BYTES, .lock = PTHREAD_MUTEX_INITIALIZER
};

void gpu_fourier_trim(void) { lru_clear(&plan_cache); }

static void close_plan(const void *key, void *thing, void *device)
{
    fft_plan *p = thing;
    if (((const plan_key *)key)->device != *(int *)device || p->closed) return;
    (void)vendor_open(LIBRARY_cufft)->cufftDestroy(p->handle);
    p->closed = true;
}

void gpu_fourier_close(int device) { lru_each(&plan_cache, close_plan, &device); }

static duet_status reopen(const plan_key *k, fft_plan *p)
{
    pthread_mutex_lock(&calling);
    duet_status s = DUET_OK;
    if (p->closed) s = make_handle(k, p);
    if (s == DUET_OK) p->closed = false;
    pthread_mutex_unlock(&calling);
    return s;
}

void gpu_fourier_limit(size_t bytes) { plan_cache.limit = bytes; }

/* ---- the plans of a step ---- */

typedef struct step_plans {
    chain chains[2]; /* a convolution has two transforms */
} step_plans;

static void discard(void *made)
{
    step_plans *plans = made;
    for (int w = 0; w < 2; w++)
        for (int i = 0; i < plans->chains[w].count; i++)
            lru_release(&plan_cache, plans->chains[w].pass[i].plan);
    free(plans);
}

void gpu_fourier_forget(step *s)
{
    if (s->cached) discard(s->cached);
    s->cached = NULL;
}

static duet_status find_plans(chain *c, int device)
{
    for (int i = 0; i < c->count; i++) {
        c->pass[i].key.device = device;
        TRY(lru_acquire(&plan_cache, &c->pass[i].key, sizeof c->pass[i].key, &c->pass[i].plan));
    }
    return DUET_OK;
}

static duet_status make_step_plans(const step *s, const queue *q, void **made)
{
    transform transforms[2];
    step_plans *p = *made = calloc(1, sizeof *p);
    if (!p) return fail(DUET_NO_MEMORY, "no host memory for the plans of a Fourier transform");
    const int transform_count = s->kernel == OP_fftconvolve ? 2 : 1;
    if (transform_count == 2) fourier_convolve_transforms(s, transforms);
    else transforms[0] = transform_of(s);
    duet_status r = DUET_OK;
    for (int w = 0; w < transform_count && r == DUET_OK; w++) {
        fft_chain_make(&p->chains[w], &transforms[w]);
        r = find_plans(&p->chains[w], q->device);
    }
    if (r != DUET_OK) discard(p);
    return r;
}

/* ---- execution ---- */

typedef struct running {
    queue *q;
    step_plans *plans;
    const char *out, *end; /* address range of the output of the step */
    bool wrote;            /* may the output have been written? */
} running;

static bool is_result(const running *r, const void *p)
{
    return (const char *)p >= r->out && (const char *)p < r->end;
}

static duet_status run_program(const step *s, const frame *f, void *with)
{
    running *r = with;
    TRY(gpu_launch(s, f, r->q));
    r->wrote |= is_result(r, f->data[0]);
    return DUET_OK;
}

static duet_status clear(void *p, size_t bytes, void *with)
{
    running *r = with;
    r->wrote |= is_result(r, p);
    gpu_queue_wrote_anything(r->q);
    return CUDA(cudaMemsetAsync, p, 0, bytes, gpu_queue_cuda_stream(r->q));
}

static duet_status take(size_t bytes, void *with, void **p)
{
    return scratch_acquire(((running *)with)->q->device, bytes, ((running *)with)->q->index, p);
}
static void give(void *p, void *with) { gpu_give(p, ((running *)with)->q); }

static duet_status call(const vendor *v, const pass *p, bool inverse, char *in, char *out)
{
    const cufftHandle h = ((const fft_plan *)p->plan->thing)->handle;
    const int direction = inverse ? CUFFT_INVERSE : CUFFT_FORWARD;
    switch ((cufftType)p->key.type) {
    case CUFFT_C2C: return FFT(v, cufftExecC2C, h, (cufftComplex *)in, (cufftComplex *)out, direction);
    case CUFFT_Z2Z:
        return FFT(v, cufftExecZ2Z, h, (cufftDoubleComplex *)in, (cufftDoubleComplex *)out, direction);
    case CUFFT_R2C: return FFT(v, cufftExecR2C, h, (cufftReal *)in, (cufftComplex *)out);
    case CUFFT_D2Z: return FFT(v, cufftExecD2Z, h, (cufftDoubleReal *)in, (cufftDoubleComplex *)out);
    case CUFFT_C2R: return FFT(v, cufftExecC2R, h, (cufftComplex *)in, (cufftReal *)out);
    default: return FFT(v, cufftExecZ2D, h, (cufftDoubleComplex *)in, (cufftDoubleReal *)out);
    }
}

/* The caller holds `calling`. */
static duet_status call_all(const pass *p, bool inverse, char *in, char *out, void *work, queue *q)
{
    const vendor *v = vendor_open(LIBRARY_cufft);
    const fft_plan *plan = p->plan->thing;
    TRY(FFT(v, cufftSetStream, plan->handle, gpu_queue_cuda_stream(q)));
    if (plan->workspace_bytes) TRY(FFT(v, cufftSetWorkArea, plan->handle, work));
    for (int64_t i = 0; i < p->loops; i++) {
        TRY(call(v, p, inverse, in + (size_t)(i * p->in_step) * fft_element_bytes(p, false),
                 out + (size_t)(i * p->out_step) * fft_element_bytes(p, true)));
        COUNT(launches);
    }
    return DUET_OK;
}

/* Sets *work to scratch memory for the plan of a pass; NULL: the plan needs none. Reopens the plan if its
 * device was lost. */
static duet_status take_workspace(const pass *p, running *r, void **work)
{
    fft_plan *plan = p->plan->thing;
    *work = NULL;
    if (unlikely(plan->closed)) TRY(reopen(&p->key, plan));
    const size_t bytes = plan->workspace_bytes;
    if (!bytes) return DUET_OK;
    return scratch_acquire(r->q->device, bytes, r->q->index, work);
}

static duet_status execute(const pass *p, bool inverse, void *in, void *out, void *work, running *r)
{
    r->wrote |= is_result(r, out);
    pthread_mutex_lock(&calling);
    const duet_status s = call_all(p, inverse, in, out, work, r->q);
    pthread_mutex_unlock(&calling);
    gpu_queue_wrote_anything(r->q);
    return s;
}

static duet_status run_directly(const pass *p, bool inverse, void *in, void *out, running *r)
{
    void *work;
    TRY(take_workspace(p, r, &work));
    const duet_status s = execute(p, inverse, in, out, work, r);
    gpu_give(work, r->q);
    return s;
}

/* ---- passes in slabs ---- */

/* A slab has the groups of `outer` outer and `inner` inner indices, from first_outer and first_inner on. */
typedef struct slab {
    int64_t first_outer, first_inner, outer, inner;
} slab;

/* The scratch memory of all slabs of a pass. */
typedef struct slab_memory {
    char *in, *out; /* equal if the plan runs in place */
    void *work;
} slab_memory;

/* Sets *array to the layout of a slab in the input or output of a pass, and *dense to its layout in
 * scratch memory. Returns the slab's offset in the array, in bytes. */
static size_t slab_layouts(const pass *p, const slab *s, bool out, layout *array, layout *dense)
{
    const int64_t group = out ? p->out_group : p->in_group, size[3] = { s->outer, s->inner, group };
    const duet_dtype types[] = { [4] = DUET_F32, [8] = DUET_C64, [16] = DUET_C128 };
    const size_t each = fft_element_bytes(p, out);
    const cufftType t = (cufftType)p->key.type;
    duet_dtype type = types[each];
    if (each == 8 && (out ? t == CUFFT_Z2D : t == CUFFT_D2Z)) type = DUET_F64;
    layout_dense(dense, type, 3, size);
    *array = *dense;
    array->stride[0] = out ? p->out_step : p->in_step;
    array->stride[1] = 1;
    array->stride[2] = p->inner;
    return (size_t)(s->first_outer * array->stride[0] + s->first_inner) * each;
}

static duet_status run_slab(const fourier_ops *b, const pass *p, const slab *s, bool inverse, char *in,
                            char *out, const slab_memory *m)
{
    layout array, dense;
    size_t offset = slab_layouts(p, s, false, &array, &dense);
    TRY(fourier_move(b, m->in, &dense, in + offset, &array));
    TRY(execute(p, inverse, m->in, m->out, m->work, b->with));
    offset = slab_layouts(p, s, true, &array, &dense);
    return fourier_move(b, out + offset, &array, m->out, &dense);
}

/* Slabs have no element in common, so `out` may equal `in`. */
static duet_status run_slabs(const fourier_ops *b, const pass *p, bool inverse, char *in, char *out,
                             const slab_memory *m)
{
    slab s;
    for (s.first_outer = 0; s.first_outer < p->outer; s.first_outer += p->slab_outer) {
        s.outer = smaller(p->slab_outer, p->outer - s.first_outer);
        for (s.first_inner = 0; s.first_inner < p->inner; s.first_inner += p->slab_inner) {
            s.inner = smaller(p->slab_inner, p->inner - s.first_inner);
            TRY(run_slab(b, p, &s, inverse, in, out, m));
        }
    }
    return DUET_OK;
}

/* All scratch memory is taken before the first write to the output. */
static duet_status run_in_slabs(const fourier_ops *b, const pass *p, bool inverse, void *in, void *out,
                                running *r)
{
    const size_t groups = (size_t)p->key.batch, line = 511;
    const size_t before = (groups * (size_t)p->in_group * fft_element_bytes(p, false) + line) & ~line;
    const size_t after = fft_is_complex(p) ? 0 : groups * (size_t)p->out_group * fft_element_bytes(p, true);
    void *block;
    TRY(scratch_acquire(r->q->device, before + after, r->q->index, &block));
    slab_memory m = { .in = block, .out = (char *)block + (after ? before : 0) };
    duet_status s = take_workspace(p, r, &m.work);
    if (s == DUET_OK) {
        s = run_slabs(b, p, inverse, in, out, &m);
        gpu_give(m.work, r->q);
    }
    gpu_give(block, r->q);
    return s;
}

static duet_status run_pass(const fourier_ops *b, const chain *c, int i, void *in, void *out)
{
    const pass *p = &c->pass[i];
    const bool inverse = c->t.kind == FOURIER_INVERSE || c->t.kind == FOURIER_REAL_INVERSE;
    if (p->in_slabs) return run_in_slabs(b, p, inverse, in, out, b->with);
    return run_directly(p, inverse, in, out, b->with);
}

static duet_status copy(const fourier_ops *b, const transform *t, void *to, const void *from)
{
    layout to_at, from_at;
    layout_dense(&to_at, transform_writes(t), t->rank, t->out);
    layout_dense(&from_at, transform_reads(t), t->rank, t->in);
    return fourier_move(b, to, &to_at, from, &from_at);
}

/* Clears the imaginary parts at both ends of the last axis, which count as 0 (docs/semantics.md).
 * cuFFT does not document what it computes if they are not 0. */
static duet_status clear_ends(const fourier_ops *b, const transform *t, void *in)
{
    layout at;
    layout_dense(&at, dtype_real(t->f64), t->rank, t->in);
    const int64_t n = t->out[t->last], stride = at.stride[t->last];
    const size_t each = dtypes[at.type].bytes;
    for (int a = 0; a < at.rank; a++) at.stride[a] *= 2;
    at.size[t->last] = 1;
    TRY(fourier_zero(b, (char *)in + each, &at));
    if (n % 2) return DUET_OK;
    return fourier_zero(b, (char *)in + each + (size_t)(n / 2 * stride) * 2 * each, &at);
}

static duet_status run_back(const fourier_ops *b, const chain *c, void *in, void *out)
{
    const int last = c->count - !c->single;
    for (int i = 0; i < last; i++) TRY(run_pass(b, c, i, in, in));
    if (c->single) return copy(b, &c->t, out, in);
    TRY(clear_ends(b, &c->t, in));
    return run_pass(b, c, last, in, out);
}

/* An inverse real transform overwrites `in`. For other transforms `out` may equal `in`. */
static duet_status run_chain(const fourier_ops *b, const chain *c, void *in, void *out)
{
    if (c->t.kind == FOURIER_REAL_INVERSE) return run_back(b, c, in, out);
    const bool copies = c->single || !c->count;
    if (c->single) TRY(b->clear(out, transform_bytes(&c->t, true), b->with)); /* for the imaginary parts */
    if (copies && in != out) TRY(copy(b, &c->t, out, in));
    for (int i = 0; i < c->count; i++) TRY(run_pass(b, c, i, i || copies ? out : in, out));
    return DUET_OK;
}

static duet_status transform_here(const transform *t, int which, void *in, void *out, void *with);

static fourier_ops fourier_ops_of(running *r)
{
    return (fourier_ops){ run_program, clear, take, give, transform_here, r };
}

static duet_status transform_here(const transform *t, int which, void *in, void *out, void *with)
{
    const fourier_ops b = fourier_ops_of(with);
    return run_chain(&b, &((running *)with)->plans->chains[which], in, out);
}

/* ---- steps ---- */

static bool is_aligned(const void *p) { return (uintptr_t)p % 16 == 0; }

static duet_status bring_and_run(const fourier_ops *b, const chain *c, const step *s, const frame *f,
                                 void *out)
{
    const operand *x = &s->in[0];
    void *in = f->data[x->slot], *block = NULL;
    const bool in_place = c->t.kind == FOURIER_FORWARD || c->t.kind == FOURIER_INVERSE;
    if (c->t.kind != FOURIER_REAL_INVERSE && fourier_is_brought(&c->t, &x->at) && is_aligned(in))
        return run_chain(b, c, in, out);
    if (!in_place) TRY(b->take(transform_bytes(&c->t, false), b->with, &block));
    in = in_place ? out : block;
    duet_status r = fourier_copy_in(b, &c->t, in, f->data[x->slot], &x->at);
    if (r == DUET_OK) r = run_chain(b, c, in, out);
    b->give(block, b->with);
    return r;
}

/* If the output is not aligned as cuFFT needs it, the result is computed in scratch memory and
 * copied. */
static duet_status run_transform(const fourier_ops *b, const chain *c, const step *s, const frame *f)
{
    void *out = f->data[s->out[0].slot], *block = NULL, *to = out;
    if (!is_aligned(out)) {
        TRY(b->take(transform_bytes(&c->t, true), b->with, &block));
        to = block;
    }
    duet_status r = bring_and_run(b, c, s, f, to);
    layout at;
    layout_dense(&at, transform_writes(&c->t), c->t.rank, c->t.out);
    if (r == DUET_OK && block) r = fourier_move(b, out, &at, block, &at);
    b->give(block, b->with);
    return r;
}

/* `wrote` distinguishes a failure after the first write to the output from an earlier one. */
static running running_of(const step *s, const frame *f, queue *q)
{
    const char *out = f->data[s->out[0].slot];
    const size_t bytes = (size_t)layout_count(&s->out[0].at) * dtypes[s->out[0].at.type].bytes;
    return (running){ .q = q, .out = out, .end = out + bytes };
}

duet_status gpu_fourier_shift(const step *s, const frame *f, queue *q)
{
    running r = running_of(s, f, q);
    const fourier_ops b = fourier_ops_of(&r);
    const duet_status status = fourier_shift(&b, s, f);
    return r.wrote ? half_written(status) : status;
}

duet_status gpu_fourier(const step *s, const frame *f, queue *q)
{
    running r = running_of(s, f, q);
    const fourier_ops b = fourier_ops_of(&r);
    void *made = NULL;
    TRY(step_cached(s, q, make_step_plans, discard, &made));
    r.plans = made;
    duet_status status;
    if (s->kernel == OP_fftconvolve) status = fourier_convolve(&b, s, f);
    else status = run_transform(&b, &r.plans->chains[0], s, f);
    if (!r.wrote) return status;
    return half_written(status);
}

const char *gpu_fourier_unsupported(const step *s)
{
    const char *why = fourier_unsupported(s);
    if (why) return why;
    return vendor_open(LIBRARY_cufft)->missing[LIBRARY_cufft];
}
