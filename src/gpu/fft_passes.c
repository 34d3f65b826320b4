/* fft_passes.c - divides a transform into passes: which axes each pass transforms, and the strides
 * and loops of its cuFFT plan. */
#include "fft_passes.h"
#include "min_max.h"
#include <string.h>

#define LOOPS 16 /* if a pass takes more calls than this, copies before and after it are faster */

/* Measured on an H200. If a pass has several GB, a strided plan of cuFFT takes five times as long as
 * contiguous transforms. From about 1 GiB on, copies before and after contiguous transforms take less time
 * than that. Smaller slabs would stay in the L2 cache, but need so many launches that they are slower.
 * Copies of elements of 16 bytes are too slow. */
static const fourier_slabs usual = {
    .pass_bytes = (size_t)1 << 30, .slab_bytes = (size_t)256 << 20, .columns = 32, .length = 64, .element = 8
};
static const fourier_slabs *slabs = &usual;

void gpu_fourier_slabs(const fourier_slabs *s) { slabs = s ? s : &usual; }

/* The sizes of a transform without axes of one element. Neighbouring axes that are not transformed
 * are merged. */
typedef struct grid {
    int rank, last; /* last: the axis that a real transform halves, or -1 if it has one element */
    bool along[DUET_RANK_MAX];
    int64_t in[DUET_RANK_MAX], out[DUET_RANK_MAX];
} grid;

static bool halves(const transform *t) { return t->kind == FOURIER_REAL || t->kind == FOURIER_REAL_INVERSE; }

static grid grid_of(const transform *t)
{
    grid g = { .last = -1 };
    for (int a = 0; a < t->rank; a++) {
        const bool along = t->axes >> a & 1, halved = halves(t) && a == t->last;
        if (t->in[a] == 1 && t->out[a] == 1) continue;
        if (g.rank && !along && !g.along[g.rank - 1]) {
            g.in[g.rank - 1] *= t->in[a];
            g.out[g.rank - 1] *= t->out[a];
            continue;
        }
        if (halved) g.last = g.rank;
        g.along[g.rank] = along;
        g.in[g.rank] = t->in[a];
        g.out[g.rank] = t->out[a];
        g.rank++;
    }
    return g;
}

static int64_t product(const int64_t *size, int from, int to)
{
    int64_t n = 1;
    for (int a = from; a < to; a++) n *= size[a];
    return n;
}

static cufftType type_of(enum fourier_kind kind, bool f64)
{
    if (kind == FOURIER_REAL) return f64 ? CUFFT_D2Z : CUFFT_R2C;
    if (kind == FOURIER_REAL_INVERSE) return f64 ? CUFFT_Z2D : CUFFT_C2R;
    return f64 ? CUFFT_Z2Z : CUFFT_C2C;
}

size_t fft_element_bytes(const pass *p, bool out)
{
    const cufftType t = (cufftType)p->key.type;
    const size_t each = t == CUFFT_Z2Z || t == CUFFT_D2Z || t == CUFFT_Z2D ? 8 : 4;
    const bool real = out ? t == CUFFT_C2R || t == CUFFT_Z2D : t == CUFFT_R2C || t == CUFFT_D2Z;
    return real ? each : 2 * each;
}

bool fft_is_complex(const pass *p) { return p->key.type == CUFFT_C2C || p->key.type == CUFFT_Z2Z; }

/* cuFFT needs addresses that are aligned to complex elements. Are they in every iteration of a loop
 * over a real array? */
static bool loops_are_aligned(const pass *p)
{
    const cufftType t = (cufftType)p->key.type;
    if (p->outer == 1 || fft_is_complex(p)) return true;
    return p->inner * (t == CUFFT_R2C || t == CUFFT_D2Z ? p->in_group : p->out_group) % 2 == 0;
}

static int64_t group_bytes(const pass *p, bool out)
{
    return (out ? p->out_group : p->in_group) * (int64_t)fft_element_bytes(p, out);
}

/* The choice depends on the shape alone, so that results are the same in every run. */
static bool is_strided(const pass *p)
{
    const int64_t bytes = p->outer * p->inner * (group_bytes(p, false) + group_bytes(p, true));
    if (p->inner == 1 || p->outer > LOOPS || !loops_are_aligned(p)) return false;
    return (size_t)bytes < slabs->pass_bytes || p->inner < slabs->columns ||
           larger(p->in_group, p->out_group) < slabs->length ||
           fft_element_bytes(p, false) > slabs->element || fft_element_bytes(p, true) > slabs->element;
}

static int64_t divided_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* Divides n into as few parts of at most `most` as possible. Returns the size of the largest, rounded up to a
 * multiple of `unit`, but at most n. */
static int64_t part_of(int64_t n, int64_t most, int64_t unit)
{
    const int64_t least = divided_up(n, larger(1, divided_up(n, most)));
    return smaller(n, divided_up(least, unit) * unit);
}

/* A slab has several of the outer indices, or only columns of one of them. The last slab may be
 * incomplete. The plan then transforms what an earlier slab left in the rest of the memory, too. */
static void lay_out_slabs(pass *p)
{
    const int64_t bytes = group_bytes(p, false) + (fft_is_complex(p) ? 0 : group_bytes(p, true)),
                  most = larger(1, (int64_t)slabs->slab_bytes / bytes), unit = slabs->columns;
    p->slab_outer = 1;
    p->slab_inner = p->inner;
    if (most >= p->inner) p->slab_outer = part_of(p->outer, most / p->inner, 1);
    else p->slab_inner = part_of(p->inner, larger(1, most / unit) * unit, unit);
}

static void lay_out(pass *p)
{
    plan_key *k = &p->key;
    const bool strided = is_strided(p);
    p->in_slabs = p->inner > 1 && !strided;
    p->in_step = p->in_group * p->inner;
    p->out_step = p->out_group * p->inner;
    if (strided) {
        p->loops = p->outer;
        k->batch = p->inner;
        k->in_stride = k->out_stride = p->inner;
        k->in_distance = k->out_distance = 1;
        return;
    }
    p->loops = 1;
    k->batch = p->outer * p->inner;
    k->in_stride = k->out_stride = 1;
    k->in_distance = p->in_group;
    k->out_distance = p->out_group;
    if (!p->in_slabs) return;
    lay_out_slabs(p);
    k->batch = p->slab_outer * p->slab_inner;
}

/* Adds a pass that transforms axes first .. end - 1. The array has sizes in[], the result out[]. */
static void add_pass(chain *c, enum fourier_kind kind, int rank, const int64_t *in, const int64_t *out,
                     int first, int end)
{
    pass *p = &c->pass[c->count++];
    memset(p, 0, sizeof *p);
    p->key.type = type_of(kind, c->t.f64);
    p->key.rank = end - first;
    for (int a = first; a < end; a++) {
        p->key.n[a - first] = larger(in[a], out[a]);
        p->key.in_sizes[a - first] = in[a];
        p->key.out_sizes[a - first] = out[a];
    }
    p->outer = product(in, 0, first);
    p->inner = product(in, end, rank);
    p->in_group = product(in, first, end);
    p->out_group = product(out, first, end);
    lay_out(p);
}

/* Adds passes for the transformed axes of a complex array, except those in the bit mask `without`.
 * It starts with the last axis. Up to ALONG neighbouring axes share a pass. */
static void add_complex(chain *c, const grid *g, const int64_t *size, uint32_t without)
{
    const enum fourier_kind kind = c->t.kind == FOURIER_REAL_INVERSE ? FOURIER_INVERSE : FOURIER_FORWARD;
    for (int end = g->rank; end > 0;) {
        int first = end;
        while (first > 0 && end - first < ALONG && g->along[first - 1] && !(without >> (first - 1) & 1))
            first--;
        if (first < end) {
            add_pass(c, kind, g->rank, size, size, first, end);
            end = first;
        } else end--;
    }
}

/* A forward real transform starts with the halved axis, together with its neighbours. An inverse one
 * ends with this axis alone, because imaginary parts are cleared before its last pass. */
void fft_chain_make(chain *c, const transform *t)
{
    const grid g = grid_of(t);
    *c = (chain){ .t = *t, .single = halves(t) && g.last < 0 };
    const bool real = t->kind == FOURIER_REAL && g.last >= 0,
               back = t->kind == FOURIER_REAL_INVERSE && g.last >= 0;
    uint32_t done = back ? 1u << g.last : 0;
    int first = g.last;
    while (real && first > 0 && g.last + 1 - first < ALONG && g.along[first - 1]) first--;
    for (int a = first; real && a <= g.last; a++) done |= 1u << a;
    if (real) add_pass(c, FOURIER_REAL, g.rank, g.in, g.out, first, g.last + 1);
    add_complex(c, &g, t->kind == FOURIER_REAL ? g.out : g.in, done);
    if (back) add_pass(c, FOURIER_REAL_INVERSE, g.rank, g.in, g.out, g.last, g.last + 1);
}
