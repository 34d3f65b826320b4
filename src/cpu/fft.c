/* fft.c - Fourier transforms by FFTW.
 *
 * A plan belongs to strides, sizes and number of threads. It is made by FFTW_ESTIMATE, because
 * measuring takes long and writes to the arrays. Plans are shared in a cache; each step also holds
 * those of its last run. */
#include "fft.h"
#include "cpu.h"
#include "dtype.h"
#include "fftw.h"
#include "fourier_ops.h"
#include "lru_cache.h"
#include "thread.h"
#include "threads.h"
#include <stdlib.h>
#include <string.h>

#define PLAN_BYTES       ((size_t)32 << 20) /* of plans that no step holds */
#define SECONDS_PER_TERM 6e-11              /* for the usual count of 5 n log2(n) operations */

/* Everything a plan depends on. Keys are compared by their bytes. */
typedef struct plan_key {
    int32_t kind, f64, aligned, may_overwrite, in_place, threads, dims, loops;
    fftw_iodim64 dim[DUET_RANK_MAX], loop[DUET_RANK_MAX];
} plan_key;

/* Some libraries support only one loop over transforms. The remaining ones are run here. */
typedef struct fft_plan {
    const fftw *by;
    void *plan;
    int32_t kind, loops;
    size_t in_bytes, out_bytes;
    fftw_iodim64 loop[DUET_RANK_MAX];
} fft_plan;

/* ---- plans ---- */

static void *plan_with(const fftw *l, const plan_key *k, int first_loop)
{
    static _Alignas(64) char dummy[2][64]; /* FFTW_ESTIMATE uses only the alignment of the addresses */
    unsigned flags = FFTW_ESTIMATE | (k->may_overwrite ? FFTW_DESTROY_INPUT : FFTW_PRESERVE_INPUT);
    if (!k->aligned) flags |= FFTW_UNALIGNED;
    const int loops = k->loops - first_loop;
    const fftw_iodim64 *loop = k->loop + first_loop;
    char *in = dummy[0], *out = dummy[!k->in_place];
    if (k->kind == FOURIER_REAL) return l->plan_guru64_dft_r2c(k->dims, k->dim, loops, loop, in, out, flags);
    if (k->kind == FOURIER_REAL_INVERSE)
        return l->plan_guru64_dft_c2r(k->dims, k->dim, loops, loop, in, out, flags);
    return l->plan_guru64_dft(k->dims, k->dim, loops, loop, in, out,
                              k->kind == FOURIER_FORWARD ? FFTW_FORWARD : FFTW_BACKWARD, flags);
}

/* FFTW's number of threads is global, so it is restored. */
static void *plan_threaded(const fftw *l, const plan_key *k, int first_loop)
{
    const int before = l->planner_nthreads ? l->planner_nthreads() : 1;
    if (l->plan_with_nthreads) l->plan_with_nthreads(k->threads);
    void *plan = plan_with(l, k, first_loop);
    if (l->plan_with_nthreads) l->plan_with_nthreads(before);
    return plan;
}

/* The size of a plan, estimated by its twiddle factors. FFTW does not report it. */
static size_t plan_bytes(const plan_key *k)
{
    size_t bytes = 4096;
    for (int i = 0; i < k->dims; i++) bytes += (size_t)k->dim[i].n * (k->f64 ? 32 : 16);
    return bytes;
}

/* FFTW ends the process if memory is refused while it makes a plan. It needs less than this and the size of
 * the plan. */
#define PLANNER_ROOM ((size_t)16 << 20)

static duet_status make_plan(const void *key, void **thing, size_t *bytes)
{
    const plan_key *k = key;
    fft_plan *p = cpu_has_room(PLANNER_ROOM + plan_bytes(k)) ? calloc(1, sizeof *p) : NULL;
    if (!p) return fail(DUET_NO_MEMORY, "no host memory for the plan of a Fourier transform");
    p->by = fftw_open(k->f64);
    p->kind = k->kind;
    p->in_bytes = (k->f64 ? 8 : 4) << (k->kind != FOURIER_REAL);
    p->out_bytes = (k->f64 ? 8 : 4) << (k->kind != FOURIER_REAL_INVERSE);
    while (!(p->plan = plan_threaded(p->by, k, p->loops)) && p->loops < k->loops) {
        p->loop[p->loops] = k->loop[p->loops];
        p->loops++;
    }
    *thing = p;
    *bytes = plan_bytes(k);
    if (p->plan) {
        COUNT(transforms);
        return DUET_OK;
    }
    free(p);
    return fail(DUET_NO_MEMORY, "the FFT library makes no plan for such a transform");
}

static void free_plan(void *thing)
{
    fft_plan *p = thing;
    p->by->destroy_plan(p->plan);
    free(p);
}

static lru_cache plans = {
    .make = make_plan, .end = free_plan, .limit = PLAN_BYTES, .lock = PTHREAD_MUTEX_INITIALIZER
};

void fft_limit(size_t bytes) { plans.limit = bytes; }

static void execute(const fft_plan *p, int loop, char *in, char *out)
{
    if (loop == p->loops) {
        switch (p->kind) {
        case FOURIER_REAL: p->by->execute_dft_r2c(p->plan, in, out); return;
        case FOURIER_REAL_INVERSE: p->by->execute_dft_c2r(p->plan, in, out); return;
        default: p->by->execute_dft(p->plan, in, out); return;
        }
    }
    const fftw_iodim64 *d = &p->loop[loop];
    for (ptrdiff_t i = 0; i < d->n; i++)
        execute(p, loop + 1, in + i * d->is * (ptrdiff_t)p->in_bytes,
                out + i * d->os * (ptrdiff_t)p->out_bytes);
}

/* ---- the plans of a step's last run ---- */

enum { PLANS = 2 };
typedef struct step_plans {
    plan_key key[PLANS];
    lru_item *item[PLANS];
} step_plans;

void fourier_forget(step *s)
{
    step_plans *k = s->cached;
    if (!k) return;
    for (int i = 0; i < PLANS; i++) lru_release(&plans, k->item[i]);
    free(k);
    s->cached = NULL;
}

static duet_status step_plans_of(const step *s, step_plans **k)
{
    /* The field is for the backend, although the step is const. */
    if (!s->cached) ((step *)s)->cached = calloc(1, sizeof **k);
    *k = s->cached;
    if (!(*k)) return fail(DUET_NO_MEMORY, "no host memory for the plans of a Fourier transform");
    return DUET_OK;
}

static duet_status cached_plan(const step *s, int slot, const plan_key *key, const fft_plan **p)
{
    step_plans *k;
    TRY(step_plans_of(s, &k));
    if (!k->item[slot] || memcmp(&k->key[slot], key, sizeof *key)) {
        lru_release(&plans, k->item[slot]);
        k->key[slot] = *key;
        TRY(lru_acquire(&plans, key, sizeof *key, &k->item[slot]));
    }
    *p = k->item[slot]->thing;
    return DUET_OK;
}

/* ---- a transform ---- */

static bool is_aligned(const void *p) { return (uintptr_t)p % 64 == 0; }

static void add_dim(fftw_iodim64 *d, int32_t *count, int64_t n, int64_t is, int64_t os)
{
    d[(*count)++] = (fftw_iodim64){ n, is, os };
}

/* The key for x in its layout and a dense result. FFTW may overwrite x only if it is a copy. */
static plan_key key_of(const transform *t, const layout *x, const void *in, const void *out,
                       bool may_overwrite)
{
    plan_key k;
    layout y;
    memset(&k, 0, sizeof k);
    layout_dense(&y, transform_writes(t), t->rank, t->out);
    k.kind = (int32_t)t->kind;
    k.f64 = t->f64;
    k.aligned = is_aligned(in) && is_aligned(out);
    k.may_overwrite = may_overwrite;
    k.in_place = in == out;
    k.may_overwrite |= k.in_place;
    k.threads = threads_for(transform_flops(t) * SECONDS_PER_TERM);
    for (int a = 0; a < t->rank; a++) {
        const int64_t n = t->kind == FOURIER_REAL ? t->in[a] : t->out[a];
        const bool is_transformed = t->axes >> a & 1;
        if (is_transformed && a != t->last) add_dim(k.dim, &k.dims, n, x->stride[a], y.stride[a]);
        if (!is_transformed && n > 1) add_dim(k.loop, &k.loops, n, x->stride[a], y.stride[a]);
    }
    const int a = t->last;
    add_dim(k.dim, &k.dims, t->kind == FOURIER_REAL ? t->in[a] : t->out[a], x->stride[a], y.stride[a]);
    return k;
}

typedef struct fft_run {
    const step *s;
    const frame *f;
} fft_run;

static duet_status transform_strided(const fft_run *r, const transform *t, int slot, const layout *x,
                                     void *in, void *out, bool may_overwrite)
{
    const plan_key k = key_of(t, x, in, out, may_overwrite);
    const fft_plan *p;
    TRY(cached_plan(r->s, slot, &k, &p));
    execute(p, 0, in, out);
    return DUET_OK;
}

static duet_status transform_dense(const transform *t, int slot, void *in, void *out, void *with)
{
    layout x;
    layout_dense(&x, transform_reads(t), t->rank, t->in);
    return transform_strided(with, t, slot, &x, in, out, true);
}

static duet_status take(size_t bytes, void *with, void **p)
{
    return scratch_take(bytes, ((fft_run *)with)->f, p);
}

/* Can FFTW read the operand in its layout? Not with negative strides, not if it must be scaled, and not if
 * FFTW would overwrite it. Inverse transforms to real numbers along several axes overwrite their input. */
static bool reads_directly(const transform *t, const layout *x)
{
    if (x->type != transform_reads(t) || t->scale != 1) return false;
    if (t->kind == FOURIER_REAL_INVERSE && t->axes & (t->axes - 1)) return false;
    for (int a = 0; a < t->rank; a++)
        if (x->size[a] < t->in[a] || (t->in[a] > 1 && x->stride[a] <= 0)) return false;
    return true;
}

/* The plan is made first: a step whose memory is refused must not have written its output. */
static duet_status transform_copied(const fourier_ops *b, const transform *t, const step *s, const frame *f)
{
    void *out = address(f, &s->out[0]), *in = out, *scratch = NULL;
    const bool in_place = t->kind == FOURIER_INVERSE;
    const fft_plan *p;
    layout dense;
    if (!in_place) TRY(b->take(transform_bytes(t, false), b->with, &scratch));
    if (!in_place) in = scratch;
    layout_dense(&dense, transform_reads(t), t->rank, t->in);
    const plan_key k = key_of(t, &dense, in, out, true);
    duet_status r = cached_plan(s, 0, &k, &p);
    if (r == DUET_OK) r = fourier_copy_in(b, t, in, address(f, &s->in[0]), &s->in[0].at);
    if (r == DUET_OK) execute(p, 0, in, out);
    b->give(scratch, b->with);
    return r;
}

static duet_status run_transform(const fourier_ops *b, const step *s, const frame *f)
{
    const transform t = transform_of(s);
    void *out = address(f, &s->out[0]);
    const layout *x = &s->in[0].at;
    const fft_run r = { s, f };
    if (reads_directly(&t, x)) return transform_strided(&r, &t, 0, x, address(f, &s->in[0]), out, false);
    return transform_copied(b, &t, s, f);
}

duet_status run_fourier(const step *s, const frame *f)
{
    fft_run r = { s, f };
    const fourier_ops b = { cpu_program, cpu_clear, take, cpu_give, transform_dense, &r };
    if (layout_count(&s->out[0].at) == 0) return DUET_OK;
    if (s->kernel == OP_fftconvolve) return fourier_convolve(&b, s, f);
    return run_transform(&b, s, f);
}

/* ---- information ---- */

const char *fft_absent(void) { return NULL; }

const char *fft_unsupported(const step *s)
{
    const char *why = fourier_unsupported(s);
    if (why) return why;
    return fftw_open(s->out[0].at.type == DUET_F64 || s->out[0].at.type == DUET_C128)->missing;
}

void fft_info(FILE *out)
{
    for (int f64 = 0; f64 < 2; f64++) {
        const fftw *l = fftw_open(f64);
        const char *type = dtypes[dtype_real(f64)].name;
        if (l->missing) fprintf(out, "         FFT of %s missing: %s\n", type, l->missing);
        else
            fprintf(out, "         FFT of %s by %s (%s)%s; FFTW is under the GPL\n", type,
                    l->version ? l->version : "a library with the interface of FFTW",
                    l->path ? l->path : "unknown", l->plan_with_nthreads ? "" : ", without threads");
    }
}
