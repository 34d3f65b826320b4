/* emulated.c - the fake kernels of DUET_MATH_SPLIT: an operand, scaled by a power of two, is the
 * sum of two numbers of 11 bits. The low one is stored 2^11 times as large. Three products of parts
 * make one product. */
#include "dtype.h"
#include "fake.h"
#include "kernels.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOW         2048.0
#define TOP         14 /* scaled magnitudes are below 2^15; twice that is still a half-precision number */
#define LEAST       -14
#define PACKED      0x5041434b
#define FEW_COLUMNS 4 /* with so few columns the tensor cores are not used */
#define FEW_ROWS    4 /* with fewer rows nothing is packed */

/* A packed operand: high parts and low parts, row-major. */
typedef struct packed {
    uint32_t is, count; /* PACKED */
    double scale;
    float part[];
} packed;

double fake_rounded(double x, int bits, int least)
{
    int exponent;
    if (!isfinite(x) || x == 0) return x;
    (void)frexp(x, &exponent);
    if (exponent - 1 < least) exponent = least + 1;
    return ldexp(rint(ldexp(x, bits - exponent)), exponent - bits);
}

static double half(double x)
{
    const double r = fake_rounded(x, 11, LEAST);
    if (fabs(r) > 65504) return copysign(INFINITY, r);
    return r;
}

/* The power of two that scales `most` to the top of the range. */
static double scale_for(double most) { return most > 0 ? ldexp(1, TOP - ilogb(most)) : 1; }

static double element(const void *p, const layout *l, int64_t i)
{
    int64_t at = 0;
    for (int axis = l->rank; axis-- > 0; i /= l->size[axis]) at += i % l->size[axis] * l->stride[axis];
    return (double)((const float *)p)[at];
}

/* The largest magnitude of elements first .. end. */
static double largest(const void *p, const layout *l, int64_t first, int64_t end)
{
    double most = 0;
    for (int64_t i = first; i < end; i++)
        if (isfinite(element(p, l, i))) most = fmax(most, fabs(element(p, l, i)));
    return most;
}

/* Splits scaled elements into parts, `back` times as large. */
static void split(const void *p, const layout *l, int64_t first, int64_t end, double scale, double back,
                  float *high, float *low)
{
    for (int64_t i = first; i < end; i++) {
        const double x = element(p, l, i) * scale, h = half(x);
        high[i] = (float)(h * back);
        low[i] = (float)(half((x - h) * LOW) * back);
    }
}

/* Scales each row of operand 0 of a product by its own largest element, images by the largest of
 * all; then `size` times their own size. */
static void split_first(const job *j, double size, float *high, float *low)
{
    const layout *l = &j->s.in[0].at;
    const int64_t n = layout_count(l), each = j->s.kernel == OP_matmul ? l->size[1] : n;
    for (int64_t i = 0; i < n; i += each) {
        const double scale = scale_for(largest(j->in[0], l, i, i + each));
        split(j->in[0], l, i, i + each, scale, size / scale, high, low);
    }
}

/* ---- supported steps ---- */

static bool is_product(const step *s)
{
    const int act = epilogue_infos[s->epilogue].act;
    return s->kernel == OP_matmul && (s->ins == 2 || s->epilogue) && act != OP_softmax &&
           s->out[0].at.size[0] >= 2 && s->in[1].at.size[0] > 0 && s->in[1].at.size[1] > FEW_COLUMNS;
}

static bool is_convolution(const step *s)
{
    return s->kernel == OP_conv2d && conv_is_plain(s) && layout_count(&s->in[0].at) &&
           layout_count(&s->in[1].at);
}

bool kernels_splits(const step *s)
{
    return s->math == DUET_MATH_SPLIT && s->out[0].at.type == DUET_F32 &&
           (is_product(s) || is_convolution(s));
}

bool kernels_splits_here(const step *s, const frame *f)
{
    (void)s;
    return true;
}
bool kernels_packs(const step *s) { return s->kernel != OP_matmul || s->out[0].at.size[0] >= FEW_ROWS; }

size_t kernels_packed_bytes(const step *s)
{
    return sizeof(packed) + 2 * sizeof(float) * (size_t)layout_count(&s->in[1].at);
}

bool fake_split_fits(const step *s, const workspace *w)
{
    if (!kernels_packs(s)) return kernels_splits(s) && !w->packed;
    return kernels_splits(s) && (uintptr_t)w->packed % 256 == 0 &&
           fake_owns(w->packed, kernels_packed_bytes(s));
}

/* ---- what they need ---- */

typedef struct look {
    layout at;
    const void *from;
    void *to, *scratch;
    size_t scratch_bytes;
} look;

static void use_scratch(const look *l) { memset(l->scratch, 0xff, l->scratch_bytes); }

static void pack(packed *p, const void *from, const layout *at)
{
    const int64_t n = layout_count(at);
    *p = (packed){ PACKED, (uint32_t)n, scale_for(largest(from, at, 0, n)) };
    split(from, at, 0, n, p->scale, 1, p->part, p->part + n);
}

static void run_pack(void *args)
{
    const look *l = args;
    use_scratch(l);
    pack(l->to, l->from, &l->at);
}

cudaError_t kernels_pack(const step *s, const frame *f, void *to, const workspace *w, cudaStream_t q)
{
    ENTER(cudaErrorUnknown);
    int64_t low, high;
    const look l = { s->in[1].at, f->data[s->in[1].slot], to, w->scratch, kernels_scratch(s) };
    layout_span(&l.at, &low, &high);
    const bool there = fake_owns((const float *)l.from + low, (size_t)(high - low) * sizeof(float)) &&
                       fake_owns(to, kernels_packed_bytes(s)) && fake_owns(l.scratch, l.scratch_bytes) &&
                       fake_owns(w->counters, KERNELS_COUNTERS * sizeof *w->counters);
    if (!kernels_splits(s) || !there) return fake_error(cudaErrorInvalidValue);
    pthread_mutex_lock(&fake_lock);
    fake_counted.packs++;
    pthread_mutex_unlock(&fake_lock);
    return fake_queue(q, run_pack, &l, sizeof l);
}

/* ---- execution ---- */

/* Checks that the packed data belong to this operand. A library that reuses stale data would not
 * notice otherwise. */
static void check(const job *j, const packed *p)
{
    if (p->is != PACKED || p->count != layout_count(&j->s.in[1].at)) abort();
}

static void make_parts(job *j, job part[3], float *a, const packed *p)
{
    const int64_t n = layout_count(&j->s.in[0].at), m = p->count;
    const void *in[3][2] = { { a, p->part }, { a, p->part + m }, { a + n, p->part } };
    for (int k = 0; k < 3; k++) {
        part[k] = *j;
        part[k].in[0] = (void *)in[k][0];
        part[k].in[1] = (void *)in[k][1];
        for (int i = 0; i < 2; i++)
            layout_dense(&part[k].s.in[i].at, DUET_F32, j->s.in[i].at.rank, j->s.in[i].at.size);
    }
    for (int k = 0; k < 3; k++) j->part[k] = &part[k];
}

static void run_parts(job *j, const packed *p)
{
    const int64_t n = layout_count(&j->s.in[0].at);
    float *a = fake_alloc(2 * (size_t)n * sizeof *a);
    job part[3];
    check(j, p);
    const double size = largest(j->in[0], &j->s.in[0].at, 0, n) > 0x1p80
                            ? 0x1p-60
                            : 1; /* sums of large numbers are scaled down */
    split_first(j, size, a, a + n);
    make_parts(j, part, a, p);
    j->unscale = 1 / size / p->scale;
    fake_run_f32(j);
    memset(j->part, 0, sizeof j->part); /* a graph runs the step again */
    fake_free(a);
}

void fake_run_split(job *j)
{
    if (j->packed) return run_parts(j, j->packed);
    packed *own = fake_alloc(kernels_packed_bytes(&j->s));
    pack(own, j->in[1], &j->s.in[1].at);
    run_parts(j, own);
    fake_free(own);
}
