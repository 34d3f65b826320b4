/* fft.c - Fourier transforms by FFTW. A plan is made once for strides, sizes and threads, by estimate: measuring would take long, and write. */
#include "fft.h"
#include "dtype.h"
#include "fftw.h"
#include "fourier_ops.h"
#include "lru_cache.h"
#include "threads.h"
#include <stdlib.h>
#include <string.h>

#define PLAN_BYTES       ((size_t)32 << 20) /* of plans that no step keeps */
#define SECONDS_PER_TERM 6e-11              /* of the operations that everybody counts */

/* All that a plan depends on; compared by its bytes. */
typedef struct plan_key {
    int32_t kind, f64, aligned, spoils, in_place, threads, dims, loops;
    fftw_iodim64 dim[DUET_RANK_MAX], loop[DUET_RANK_MAX];
} plan_key;

/* A library may know but one loop: then the others are ours. */
typedef struct fft_plan {
    const fftw *by;
    void *plan;
    int32_t kind, loops;
    size_t each_in, each_out;
    fftw_iodim64 loop[DUET_RANK_MAX];
} fft_plan;

/* ---- plans ---- */

static void *plan_with(const fftw *l, const plan_key *k, int first_loop)
{
    static _Alignas(64) char nowhere[2][64]; /* planning by estimate looks at addresses alone */
    const unsigned flags = FFTW_ESTIMATE | (k->aligned ? 0 : FFTW_UNALIGNED) |
                           (k->spoils ? FFTW_DESTROY_INPUT : FFTW_PRESERVE_INPUT);
    const int loops = k->loops - first_loop;
    const fftw_iodim64 *loop = k->loop + first_loop;
    char *in = nowhere[0], *out = nowhere[!k->in_place];
    if (k->kind == FOURIER_REAL) return l->plan_guru64_dft_r2c(k->dims, k->dim, loops, loop, in, out, flags);
    if (k->kind == FOURIER_REAL_INVERSE)
        return l->plan_guru64_dft_c2r(k->dims, k->dim, loops, loop, in, out, flags);
    return l->plan_guru64_dft(k->dims, k->dim, loops, loop, in, out,
                              k->kind == FOURIER_FORWARD ? FFTW_FORWARD : FFTW_BACKWARD, flags);
}

/* The number of threads is the whole process's: it is put back. */
static void *plan_threaded(const fftw *l, const plan_key *k, int first_loop)
{
    const int before = l->planner_nthreads ? l->planner_nthreads() : 1;
    if (l->plan_with_nthreads) l->plan_with_nthreads(k->threads);
    void *plan = plan_with(l, k, first_loop);
    if (l->plan_with_nthreads) l->plan_with_nthreads(before);
    return plan;
}

/* Nobody says how many bytes a plan has: about so many are its factors. */
static size_t plan_bytes(const plan_key *k)
{
    size_t bytes = 4096;
    for (int i = 0; i < k->dims; i++) bytes += (size_t)k->dim[i].n * (k->f64 ? 32 : 16);
    return bytes;
}

static duet_status make_plan(const void *key, void **thing, size_t *bytes)
{
    const plan_key *k = key;
    fft_plan *p = calloc(1, sizeof *p);
    if (!p) return fail(DUET_NO_MEMORY, "no memory for a transform's plan");
    p->by = fftw_open(k->f64), p->kind = k->kind;
    p->each_in = (k->f64 ? 8 : 4) << (k->kind != FOURIER_REAL),
    p->each_out = (k->f64 ? 8 : 4) << (k->kind != FOURIER_REAL_INVERSE);
    while (!(p->plan = plan_threaded(p->by, k, p->loops)) && p->loops < k->loops) {
        p->loop[p->loops] = k->loop[p->loops];
        p->loops++;
    }
    *thing = p, *bytes = plan_bytes(k);
    if (p->plan) return DUET_OK;
    free(p);
    return fail(DUET_NO_MEMORY, "the FFT library makes no plan for such a transform");
}

static void end_plan(void *thing)
{
    fft_plan *p = thing;
    p->by->destroy_plan(p->plan);
    free(p);
}

static lru_cache plans = {
    .make = make_plan, .end = end_plan, .limit = PLAN_BYTES, .lock = PTHREAD_MUTEX_INITIALIZER
};

void fft_limit(size_t bytes) { plans.limit = bytes; }

static void execute(const fft_plan *p, int loop, char *in, char *out)
{
    if (loop == p->loops) {
        (p->kind == FOURIER_REAL           ? p->by->execute_dft_r2c
         : p->kind == FOURIER_REAL_INVERSE ? p->by->execute_dft_c2r
                                           : p->by->execute_dft)(p->plan, in, out);
        return;
    }
    const fftw_iodim64 *d = &p->loop[loop];
    for (ptrdiff_t i = 0; i < d->n; i++)
        execute(p, loop + 1, in + i * d->is * (ptrdiff_t)p->each_in,
                out + i * d->os * (ptrdiff_t)p->each_out);
}

/* ---- a step's plans: those of its last run ---- */

enum { WAYS = 2 };
typedef struct kept {
    plan_key key[WAYS];
    lru_item *item[WAYS];
} kept;

void fourier_forget(step *s)
{
    kept *k = s->kept;
    if (!k) return;
    for (int i = 0; i < WAYS; i++) lru_release(&plans, k->item[i]);
    free(k);
    s->kept = NULL;
}

static duet_status kept_of(const step *s, kept **k)
{
    if (!s->kept)
        ((step *)s)->kept =
            calloc(1, sizeof **k); /* steps are the plan's, which lets their machine keep things */
    *k = s->kept;
    return *k ? DUET_OK : fail(DUET_NO_MEMORY, "no memory for a transform's plans");
}

static duet_status plan_of(const step *s, int which, const plan_key *key, const fft_plan **p)
{
    kept *k;
    TRY(kept_of(s, &k));
    if (!k->item[which] || memcmp(&k->key[which], key, sizeof *key)) {
        lru_release(&plans, k->item[which]);
        k->key[which] = *key;
        TRY(lru_acquire(&plans, key, sizeof *key, &k->item[which]));
    }
    *p = k->item[which]->thing;
    return DUET_OK;
}

/* ---- a transform ---- */

static bool is_aligned(const void *p) { return (uintptr_t)p % 64 == 0; }

static void add_dim(fftw_iodim64 *d, int32_t *count, int64_t n, int64_t is, int64_t os)
{
    d[(*count)++] = (fftw_iodim64){ n, is, os };
}

/* Of x as it lies, and a result without gaps; x may be spoilt only if it is ours. */
static plan_key key_of(const transform *t, const layout *x, const void *in, const void *out, bool spoils)
{
    plan_key k;
    layout y;
    memset(&k, 0, sizeof k);
    layout_dense(&y, transform_writes(t), t->rank, t->out);
    k.kind = (int32_t)t->kind, k.f64 = t->f64, k.aligned = is_aligned(in) && is_aligned(out),
    k.spoils = spoils;
    k.in_place = in == out, k.spoils |= k.in_place;
    k.threads = threads_for(transform_flops(t) * SECONDS_PER_TERM);
    for (int a = 0; a < t->rank; a++) {
        const int64_t n = t->kind == FOURIER_REAL ? t->in[a] : t->out[a];
        const bool along = t->axes >> a & 1;
        if (along && a != t->last) add_dim(k.dim, &k.dims, n, x->stride[a], y.stride[a]);
        if (!along && n > 1) add_dim(k.loop, &k.loops, n, x->stride[a], y.stride[a]);
    }
    const int a = t->last;
    add_dim(k.dim, &k.dims, t->kind == FOURIER_REAL ? t->in[a] : t->out[a], x->stride[a], y.stride[a]);
    return k;
}

typedef struct running {
    const step *s;
    const frame *f;
} running;

static duet_status transform_from(const running *r, const transform *t, int which, const layout *x, void *in,
                                  void *out, bool spoils)
{
    const plan_key k = key_of(t, x, in, out, spoils);
    const fft_plan *p;
    TRY(plan_of(r->s, which, &k, &p));
    execute(p, 0, in, out);
    return DUET_OK;
}

static duet_status transform_here(const transform *t, int which, void *in, void *out, void *with)
{
    layout x;
    layout_dense(&x, transform_reads(t), t->rank, t->in);
    return transform_from(with, t, which, &x, in, out, true);
}

static duet_status take(size_t bytes, void *with, void **p)
{
    return scratch_take(bytes, ((running *)with)->f, p);
}

/* FFTW reads operands as they lie, unless it has to walk backwards, or would spoil them: it does so going back to real numbers along several
 * axes. */
static bool reads_directly(const transform *t, const layout *x)
{
    if (x->type != transform_reads(t)) return false;
    if (t->kind == FOURIER_REAL_INVERSE && t->axes & (t->axes - 1)) return false;
    for (int a = 0; a < t->rank; a++)
        if (x->size[a] < t->in[a] || (t->in[a] > 1 && x->stride[a] <= 0)) return false;
    return true;
}

static duet_status brought(const fourier_ops *b, const transform *t, const step *s, const frame *f)
{
    void *in;
    TRY(b->take(transform_bytes(t, false), b->with, &in));
    duet_status r = fourier_copy_in(b, t, in, address(f, &s->in[0]), &s->in[0].at);
    if (r == DUET_OK) r = transform_here(t, 0, in, address(f, &s->out[0]), b->with);
    b->give(in, b->with);
    return r;
}

static duet_status run_transform(const fourier_ops *b, const step *s, const frame *f)
{
    const transform t = transform_of(s);
    void *out = address(f, &s->out[0]);
    const layout *x = &s->in[0].at;
    const running r = { s, f };
    if (reads_directly(&t, x)) TRY(transform_from(&r, &t, 0, x, address(f, &s->in[0]), out, false));
    else TRY(brought(b, &t, s, f));
    return fourier_scale(b, &t, out);
}

duet_status run_fourier(const step *s, const frame *f)
{
    running r = { s, f };
    const fourier_ops b = { cpu_program, cpu_clear, take, cpu_give, transform_here, &r };
    if (layout_count(&s->out[0].at) == 0) return DUET_OK;
    if (s->kernel == OP_fftshift) return run_shift(s, f);
    return s->kernel == OP_fftconvolve ? fourier_convolve(&b, s, f) : run_transform(&b, s, f);
}

/* ---- what there is ---- */

const char *fft_absent(void) { return NULL; }

const char *fft_refuses(const step *s)
{
    const char *why = fourier_refuses(s);
    if (why || s->kernel == OP_fftshift) return why;
    return fftw_open(s->out[0].at.type == DUET_F64 || s->out[0].at.type == DUET_C128)->missing;
}

void fft_info(FILE *out)
{
    for (int f64 = 0; f64 < 2; f64++) {
        const fftw *l = fftw_open(f64);
        if (l->missing) fprintf(out, "         FFT of %s missing: %s\n", f64 ? "f64" : "f32", l->missing);
        else
            fprintf(out, "         FFT of %s by %s (%s)%s; FFTW is under the GPL\n", f64 ? "f64" : "f32",
                    l->version ? l->version : "a library with FFTW's interface",
                    l->place ? l->place : "unknown", l->plan_with_nthreads ? "" : ", without threads");
    }
}
