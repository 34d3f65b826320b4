/* fft.c - the fake cuFFT: sums by definition, in double. It overwrites its workspace and, like the
 * real one, the input of a transform to real numbers. It also uses the imaginary parts at both ends
 * of the axis there. */
#include "fake.h"
#include <complex.h>
#include <cufft.h>
#include <math.h>
#include <string.h>

#define PLANS 4096
#define ROOM  4096 /* workspace of every plan */

typedef struct fft_plan {
    bool lives, made, manual;
    int context;
    int rank;
    long long n[3], in_sizes[3], out_sizes[3], in_stride, in_distance, out_stride, out_distance, batch;
    cufftType type;
    cudaStream_t stream;
    void *area;
} fft_plan;

static fft_plan plans[PLANS];

#define FFT_ENTER(status)                                                                                    \
    if (fake_vendor_fails()) return status

static fft_plan *plan_at(cufftHandle h) { return h > 0 && h < PLANS && plans[h].lives ? &plans[h] : NULL; }

cufftResult cufftGetVersion(int *version)
{
    *version = 12000;
    return CUFFT_SUCCESS;
}

cufftResult cufftCreate(cufftHandle *handle)
{
    FFT_ENTER(CUFFT_ALLOC_FAILED);
    int h = 1;
    const int context = fake_context();
    pthread_mutex_lock(&fake_lock);
    while (h < PLANS && plans[h].lives) h++;
    if (h < PLANS) plans[h] = (fft_plan){ .lives = true, .context = context };
    pthread_mutex_unlock(&fake_lock);
    if (h == PLANS) return CUFFT_ALLOC_FAILED;
    *handle = h;
    fake_handles(1);
    return CUFFT_SUCCESS;
}

cufftResult cufftDestroy(cufftHandle h)
{
    fft_plan *p = plan_at(h);
    if (!p) return CUFFT_INVALID_PLAN;
    pthread_mutex_lock(&fake_lock);
    p->lives = false;
    pthread_mutex_unlock(&fake_lock);
    fake_handles(-1);
    return CUFFT_SUCCESS;
}

cufftResult cufftSetAutoAllocation(cufftHandle h, int automatic)
{
    FFT_ENTER(CUFFT_INVALID_VALUE);
    plan_at(h)->manual = !automatic;
    return CUFFT_SUCCESS;
}

cufftResult cufftSetStream(cufftHandle h, cudaStream_t stream)
{
    FFT_ENTER(CUFFT_INVALID_VALUE);
    plan_at(h)->stream = stream;
    return CUFFT_SUCCESS;
}

cufftResult cufftSetWorkArea(cufftHandle h, void *area)
{
    FFT_ENTER(CUFFT_INVALID_VALUE);
    if (!fake_owns(area, ROOM)) return CUFFT_INVALID_VALUE;
    plan_at(h)->area = area;
    return CUFFT_SUCCESS;
}

cufftResult cufftMakePlanMany64(cufftHandle h, int rank, long long int *n, long long int *inembed,
                                long long int istride, long long int idist, long long int *onembed,
                                long long int ostride, long long int odist, cufftType type,
                                long long int batch, size_t *bytes)
{
    FFT_ENTER(CUFFT_ALLOC_FAILED);
    fft_plan *p = plan_at(h);
    if (!p || p->made || !p->manual || rank < 1 || rank > 3 || batch < 1) return CUFFT_INVALID_VALUE;
    if (fake_outside_graphs() != cudaSuccess) return CUFFT_INVALID_VALUE; /* it allocates device memory */
    p->made = true;
    p->rank = rank;
    p->type = type;
    p->batch = batch;
    p->in_stride = istride;
    p->in_distance = idist;
    p->out_stride = ostride;
    p->out_distance = odist;
    for (int a = 0; a < rank; a++) {
        if (n[a] < 1) return CUFFT_INVALID_SIZE;
        p->n[a] = n[a];
        p->in_sizes[a] = inembed[a];
        p->out_sizes[a] = onembed[a];
    }
    *bytes = ROOM;
    return CUFFT_SUCCESS;
}

/* ---- transforms ---- */

typedef struct fft_call {
    fft_plan p;
    const void *in;
    void *out;
    double sign;
    bool f64;
} fft_call;

static bool is_forward_real(cufftType t) { return t == CUFFT_R2C || t == CUFFT_D2Z; }
static bool is_back_real(cufftType t) { return t == CUFFT_C2R || t == CUFFT_Z2D; }

static double part(const fft_call *c, const void *p, int64_t i)
{
    if (c->f64) return ((const double *)p)[i];
    return (double)((const float *)p)[i];
}

static void put_part(const fft_call *c, int64_t i, double x)
{
    if (c->f64) ((double *)c->out)[i] = x;
    else ((float *)c->out)[i] = (float)x;
}

static int64_t place(const fft_plan *p, const long long *sizes, const long long *at, bool out)
{
    int64_t i = at[0];
    for (int a = 1; a < p->rank; a++) i = i * sizes[a] + at[a];
    return i * (out ? p->out_stride : p->in_stride);
}

static double complex get(const fft_call *c, int64_t i)
{
    if (is_forward_real(c->p.type)) return part(c, c->in, i);
    return part(c, c->in, 2 * i) + I * part(c, c->in, 2 * i + 1);
}

/* Transforms one line of length n with the given stride. */
static void line(double complex *x, int64_t n, int64_t stride, double sign, double complex *room)
{
    for (int64_t k = 0; k < n; k++) {
        room[k] = 0;
        for (int64_t j = 0; j < n; j++)
            room[k] += x[j * stride] * cexp(sign * 2 * M_PI * I * (double)(j * k % n) / (double)n);
    }
    for (int64_t k = 0; k < n; k++) x[k * stride] = room[k];
}

static void all_lines(const fft_call *c, double complex *x, int64_t count, double complex *room)
{
    int64_t stride = 1;
    for (int a = c->p.rank; a-- > 0; stride *= c->p.n[a])
        for (int64_t i = 0; i < count; i++)
            if (i / stride % c->p.n[a] == 0) line(x + i, c->p.n[a], stride, c->sign, room);
}

static void where(const fft_plan *p, int64_t i, long long *at)
{
    for (int a = p->rank; a-- > 0; i /= p->n[a]) at[a] = i % p->n[a];
}

/* The other half of the spectrum mirrors the stored half. */
static double complex element(const fft_call *c, int64_t base, const long long *at, double *ends)
{
    const fft_plan *p = &c->p;
    long long to[3] = { at[0], at[1], at[2] };
    const int last = p->rank - 1;
    const bool mirrored = is_back_real(p->type) && at[last] > p->n[last] / 2;
    if (mirrored)
        for (int a = 0; a < p->rank; a++) to[a] = (p->n[a] - at[a]) % p->n[a];
    const double complex x = get(c, base + place(p, p->in_sizes, to, false));
    if (is_back_real(p->type) && 2 * at[last] % p->n[last] == 0 && p->rank == 1) *ends += cimag(x);
    if (mirrored) return conj(x);
    return x;
}

static void put(const fft_call *c, int64_t base, const long long *at, double complex x)
{
    const fft_plan *p = &c->p;
    if (is_forward_real(p->type) && at[p->rank - 1] > p->n[p->rank - 1] / 2) return;
    const int64_t i = base + place(p, p->out_sizes, at, true);
    if (is_back_real(p->type)) put_part(c, i, creal(x));
    else {
        put_part(c, 2 * i, creal(x));
        put_part(c, 2 * i + 1, cimag(x));
    }
}

static void run_batch(const fft_call *c, int64_t b, int64_t count, double complex *x)
{
    long long at[3] = { 0 };
    double ends = 0;
    for (int64_t i = 0; i < count; i++) {
        where(&c->p, i, at);
        x[i] = element(c, b * c->p.in_distance, at, &ends);
    }
    all_lines(c, x, count, x + count);
    for (int64_t i = 0; i < count; i++) {
        where(&c->p, i, at);
        put(c, b * c->p.out_distance, at, x[i] + ends);
    }
}

static int64_t reach(const fft_plan *p, bool out)
{
    const long long *sizes = out ? p->out_sizes : p->in_sizes;
    int64_t last = 1;
    for (int a = 0; a < p->rank; a++) last *= sizes[a];
    return (last - 1) * (out ? p->out_stride : p->in_stride) +
           (p->batch - 1) * (out ? p->out_distance : p->in_distance) + 1;
}

static size_t bytes_of(const fft_call *c, bool out)
{
    const bool real = out ? is_back_real(c->p.type) : is_forward_real(c->p.type);
    return (size_t)reach(&c->p, out) * (c->f64 ? 8 : 4) * (real ? 1 : 2);
}

static void run_call(void *args)
{
    const fft_call *c = args;
    int64_t count = 1;
    for (int a = 0; a < c->p.rank; a++) count *= c->p.n[a];
    double complex *x = fake_alloc(2 * (size_t)count * sizeof *x);
    memset(c->p.area, 0xff, ROOM);
    for (int64_t b = 0; b < c->p.batch; b++) run_batch(c, b, count, x);
    if (is_back_real(c->p.type)) memset((void *)(uintptr_t)c->in, 0xff, bytes_of(c, false));
    fake_free(x);
}

static cufftResult exec(cufftHandle h, cufftType type, const void *in, void *out, int direction, bool f64)
{
    FFT_ENTER(CUFFT_EXEC_FAILED);
    const fft_plan *p = plan_at(h);
    if (!p || !p->made || p->type != type || p->context != fake_context()) return CUFFT_INVALID_PLAN;
    fft_call c = { *p, in, out, direction == CUFFT_INVERSE ? 1 : -1, f64 };
    const bool complex_both = type == CUFFT_C2C || type == CUFFT_Z2Z;
    if (!fake_owns(in, bytes_of(&c, false)) || !fake_owns(out, bytes_of(&c, true)) ||
        !fake_owns(p->area, ROOM))
        return CUFFT_INVALID_VALUE;
    if (((uintptr_t)in | (uintptr_t)out) % (f64 ? 16 : 8) || (in == out && !complex_both))
        return CUFFT_INVALID_VALUE;
    pthread_mutex_lock(&fake_lock);
    fake_counted.transforms++;
    pthread_mutex_unlock(&fake_lock);
    if (fake_queue(p->stream, run_call, &c, sizeof c)) return CUFFT_EXEC_FAILED;
    return CUFFT_SUCCESS;
}

cufftResult cufftExecC2C(cufftHandle h, cufftComplex *in, cufftComplex *out, int direction)
{
    return exec(h, CUFFT_C2C, in, out, direction, false);
}
cufftResult cufftExecZ2Z(cufftHandle h, cufftDoubleComplex *in, cufftDoubleComplex *out, int direction)
{
    return exec(h, CUFFT_Z2Z, in, out, direction, true);
}
cufftResult cufftExecR2C(cufftHandle h, cufftReal *in, cufftComplex *out)
{
    return exec(h, CUFFT_R2C, in, out, CUFFT_FORWARD, false);
}
cufftResult cufftExecD2Z(cufftHandle h, cufftDoubleReal *in, cufftDoubleComplex *out)
{
    return exec(h, CUFFT_D2Z, in, out, CUFFT_FORWARD, true);
}
cufftResult cufftExecC2R(cufftHandle h, cufftComplex *in, cufftReal *out)
{
    return exec(h, CUFFT_C2R, in, out, CUFFT_INVERSE, false);
}
cufftResult cufftExecZ2D(cufftHandle h, cufftDoubleComplex *in, cufftDoubleReal *out)
{
    return exec(h, CUFFT_Z2D, in, out, CUFFT_INVERSE, true);
}
