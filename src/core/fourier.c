/* fourier.c - describes the Fourier transforms of a step, and does the work around the vendors'
 * transforms. */
#include "fourier.h"
#include "dtype.h"
#include "min_max.h"
#include <math.h>
#include <string.h>

static bool is_complex(duet_dtype t) { return t == DUET_C64 || t == DUET_C128; }
static bool is_wide(duet_dtype t) { return t == DUET_F64 || t == DUET_C128; }

transform transform_of(const step *s)
{
    const layout *x = &s->in[0].at, *y = &s->out[0].at;
    transform t = { .kind = (enum fourier_kind)s->attr.fourier.kind,
                    .f64 = is_wide(y->type),
                    .rank = x->rank,
                    .last = s->attr.fourier.last,
                    .axes = (uint32_t)s->attr.fourier.axes,
                    .scale = 1 };
    for (int a = 0; a < x->rank; a++) {
        const int64_t n = t.axes >> a & 1 ? s->attr.fourier.length[a] : x->size[a];
        t.in[a] = n;
        t.out[a] = y->size[a];
        if (t.axes >> a & 1 && (t.kind == FOURIER_INVERSE || t.kind == FOURIER_REAL_INVERSE))
            t.scale /= (double)n;
    }
    if (t.kind == FOURIER_REAL_INVERSE) t.in[t.last] = t.in[t.last] / 2 + 1;
    return t;
}

duet_dtype transform_reads(const transform *t)
{
    if (t->kind == FOURIER_REAL) return dtype_real(t->f64);
    return dtype_complex(t->f64);
}

duet_dtype transform_writes(const transform *t)
{
    if (t->kind == FOURIER_REAL_INVERSE) return dtype_real(t->f64);
    return dtype_complex(t->f64);
}

static int64_t product(const int64_t *size, int rank)
{
    int64_t n = 1;
    for (int a = 0; a < rank; a++) n *= size[a];
    return n;
}

size_t transform_bytes(const transform *t, bool out)
{
    const duet_dtype type = out ? transform_writes(t) : transform_reads(t);
    return (size_t)product(out ? t->out : t->in, t->rank) * dtypes[type].bytes;
}

/* The usual count: 5 n log2 n for n complex numbers, and half of that for real ones. */
double transform_flops(const transform *t)
{
    const bool real = t->kind == FOURIER_REAL || t->kind == FOURIER_REAL_INVERSE;
    const int64_t *size = t->kind == FOURIER_REAL ? t->in : t->out;
    double length = 1;
    for (int a = 0; a < t->rank; a++)
        if (t->axes >> a & 1) length *= (double)size[a];
    return (real ? 2.5 : 5) * (double)product(size, t->rank) * log2(length);
}

double fourier_flops(const step *s)
{
    transform transforms[2];
    if (s->kernel == OP_fftshift) return 0;
    if (s->kernel == OP_fftn) {
        transforms[0] = transform_of(s);
        return transform_flops(&transforms[0]);
    }
    fourier_convolve_transforms(s, transforms);
    return 2 * transform_flops(&transforms[0]) + transform_flops(&transforms[1]);
}

/* ---- programs of one operator ---- */

static duet_status run(const fourier_ops *b, step *s, void *const data[], const double *num)
{
    layout *all[3] = { &s->out[0].at };
    for (int k = 0; k < s->ins; k++) all[1 + k] = &s->in[k].at;
    layout_collapse(all, 1 + s->ins);
    if (!layout_count(&s->out[0].at)) return DUET_OK;
    return b->run(s, &(frame){ .data = data, .num = num }, b->with);
}

/* to = from, or from * factor */
static duet_status apply(const fourier_ops *b, int op, void *to, const layout *to_at, const void *from,
                         const layout *from_at, double factor)
{
    const uint8_t type = (uint8_t)to_at->type;
    const program p = { .length = 2,
                        .inputs = 1,
                        .numbers = op != OP_LOAD,
                        .outputs = 1,
                        .code = { { (uint8_t)op, type, { { FROM_INPUT, 0 }, { FROM_NUMBER, 0 } } },
                                  { OP_STORE, type, { { 0 } } } } };
    step s = { .kernel = KERNEL_PROGRAM, .outs = 1, .ins = 1, .nums = p.numbers, .program = &p };
    s.out[0] = (operand){ 0, *to_at };
    s.in[0] = (operand){ 1, *from_at };
    return run(b, &s, (void *const[]){ to, (void *)from }, &factor);
}

duet_status fourier_zero(const fourier_ops *b, void *p, const layout *at)
{
    const uint8_t type = (uint8_t)at->type;
    const program zero = { .length = 2,
                           .numbers = 1,
                           .outputs = 1,
                           .code = { { OP_LOAD, type, { { FROM_NUMBER, 0 } } },
                                     { OP_STORE, type, { { 0 } } } } };
    step s = { .kernel = KERNEL_PROGRAM, .outs = 1, .nums = 1, .program = &zero, .out = { { 0, *at } } };
    return run(b, &s, &p, &(double){ 0 });
}

/* ---- copies ---- */

/* The real parts of complex elements. */
static layout real_parts(const layout *l)
{
    layout r = *l;
    if (!is_complex(l->type)) return r;
    r.type = dtype_real(is_wide(l->type));
    for (int a = 0; a < r.rank; a++) r.stride[a] *= 2;
    return r;
}

/* Elements as words of 8 bytes. A c128 element is two words, along an additional axis. */
static layout in_eights(const layout *l)
{
    layout r = *l;
    r.type = DUET_F64;
    if (l->type == DUET_C64) return r;
    r = real_parts(l);
    r.size[r.rank] = 2;
    r.stride[r.rank++] = 1;
    return r;
}

static duet_status move_pairs(const fourier_ops *b, void *to, layout to_at, const void *from, layout from_at)
{
    layout_collapse((layout *[]){ &to_at, &from_at }, 2);
    if (to_at.type == DUET_C64 || to_at.rank < DUET_RANK_MAX) {
        const layout t = in_eights(&to_at), f = in_eights(&from_at);
        return apply(b, OP_LOAD, to, &t, from, &f, 0);
    }
    const layout t = real_parts(&to_at), f = real_parts(&from_at);
    duet_status r = apply(b, OP_LOAD, to, &t, from, &f, 0);
    if (r != DUET_OK) return r;
    return apply(b, OP_LOAD, (double *)to + 1, &t, (const double *)from + 1, &f, 0);
}

/* The type to copy elements of type t as, if programs do not compute in t. */
static duet_dtype carrier(duet_dtype t)
{
    if (is_complex(t)) return t;
    if (dtypes[t].bytes == 8) return DUET_F64;
    return dtypes[t].bytes == 4 ? DUET_F32 : t;
}

duet_status fourier_move(const fourier_ops *b, void *to, const layout *to_at, const void *from,
                         const layout *from_at)
{
    layout t = *to_at, f = *from_at;
    if (is_complex(t.type) && is_complex(f.type)) return move_pairs(b, to, t, from, f);
    t = real_parts(&t);
    f = real_parts(&f);
    t.type = carrier(t.type);
    f.type = carrier(f.type);
    return apply(b, OP_LOAD, to, &t, from, &f, 0);
}

/* ---- before and after a transform ---- */

bool fourier_is_brought(const transform *t, const layout *at)
{
    for (int a = 0; a < t->rank; a++)
        if (t->in[a] != at->size[a]) return false;
    return t->scale == 1 && at->type == transform_reads(t) && layout_is_dense(at);
}

/* The same as fourier_move, with each part multiplied by a factor. */
static duet_status move_scaled(const fourier_ops *b, void *to, const layout *to_at, const void *from,
                               const layout *from_at, double factor)
{
    layout t = real_parts(to_at), f = real_parts(from_at);
    const bool both = is_complex(from_at->type), at_once = both && t.rank < DUET_RANK_MAX;
    const size_t each = dtypes[t.type].bytes;
    if (at_once) {
        f.size[f.rank] = t.size[t.rank] = 2;
        f.stride[f.rank++] = t.stride[t.rank++] = 1;
        layout_collapse((layout *[]){ &t, &f }, 2);
    }
    TRY(apply(b, OP_mul, to, &t, from, &f, factor));
    if (at_once || !both) return DUET_OK;
    return apply(b, OP_mul, (char *)to + each, &t, (const char *)from + each, &f, factor);
}

duet_status fourier_copy_in(const fourier_ops *b, const transform *t, void *to, const void *x,
                            const layout *at)
{
    layout dense, from = *at;
    layout_dense(&dense, transform_reads(t), t->rank, t->in);
    bool fills = is_complex(dense.type) == is_complex(at->type);
    for (int a = 0; a < t->rank; a++) {
        fills &= at->size[a] >= t->in[a];
        from.size[a] = dense.size[a] = smaller(at->size[a], t->in[a]);
    }
    if (!fills) TRY(b->clear(to, transform_bytes(t, false), b->with));
    if (t->scale != 1) return move_scaled(b, to, &dense, x, &from, t->scale);
    return fourier_move(b, to, &dense, x, &from);
}

/* ---- shifts ---- */

/* Moves the first n - k elements of each shifted axis to index k, and the last k to the front.
 * `which` has one bit for each axis: 1 selects the last k elements. */
duet_status fourier_shift(const fourier_ops *b, const step *s, const frame *f)
{
    const layout *x = &s->in[0].at, *y = &s->out[0].at;
    const uint32_t axes = (uint32_t)s->attr.fourier.axes;
    const size_t each = dtypes[x->type].bytes;
    for (uint32_t which = 0; which < 1u << x->rank; which++) {
        layout from = *x, to = *y;
        char *p = f->data[s->in[0].slot], *q = f->data[s->out[0].slot];
        if (which & ~axes) continue;
        for (int a = 0; a < x->rank; a++) {
            const int64_t n = x->size[a], half = s->attr.fourier.kind ? n - n / 2 : n / 2;
            const int64_t k = axes >> a & 1 ? half : 0;
            if (which >> a & 1) {
                from.size[a] = to.size[a] = k;
                p += (n - k) * x->stride[a] * (int64_t)each;
            } else {
                from.size[a] = to.size[a] = n - k;
                q += k * y->stride[a] * (int64_t)each;
            }
        }
        TRY(fourier_move(b, q, &to, p, &from));
    }
    return DUET_OK;
}

/* ---- convolution ---- */

/* The smallest number >= n without a prime factor above 7. */
static int64_t smooth_from(int64_t n)
{
    int64_t best = INT64_MAX;
    for (int64_t a = 1; a < 2 * n; a *= 7)
        for (int64_t b = a; b < 2 * n; b *= 5)
            for (int64_t c = b; c < 2 * n; c *= 3) {
                int64_t d = c;
                while (d < n) d *= 2;
                if (d < best) best = d;
            }
    return best;
}

void fourier_convolve_transforms(const step *s, transform transforms[2])
{
    const layout *x = &s->in[0].at, *y = &s->in[1].at;
    transform t = { .kind = FOURIER_REAL,
                    .f64 = is_wide(x->type),
                    .rank = x->rank,
                    .last = x->rank - 1,
                    .axes = (1u << x->rank) - 1,
                    .scale = 1 };
    for (int a = 0; a < t.rank; a++) {
        t.in[a] = t.out[a] = smooth_from(x->size[a] + y->size[a] - 1);
        t.scale /= (double)t.in[a];
    }
    t.out[t.last] = t.in[t.last] / 2 + 1;
    transforms[0] = transforms[1] = t;
    transforms[1].kind = FOURIER_REAL_INVERSE;
    memcpy(transforms[1].in, t.out, sizeof t.out);
    memcpy(transforms[1].out, t.in, sizeof t.in);
    transforms[0].scale = 1;
}

/* a = a * b, for n complex numbers. */
static duet_status multiply(const fourier_ops *b, bool f64, int64_t n, void *x, const void *y)
{
    const uint8_t type = (uint8_t)dtype_real(f64);
    enum { AR, AI, BR, BI };
#define IN(k)                                                                                                \
    {                                                                                                        \
        FROM_INPUT, k                                                                                        \
    }
    const program p = { .length = 9,
                        .inputs = 4,
                        .outputs = 2,
                        .slots = 2,
                        .code = { { OP_mul, type, { IN(AI), IN(BI) } },
                                  { OP_SAVE, type, { { 0, 0 } } },
                                  { OP_mul, type, { IN(AR), IN(BR) } },
                                  { OP_sub, type, { { FROM_ACC, 0 }, { FROM_SLOT, 0 } } },
                                  { OP_SAVE, type, { { 0, 1 } } },
                                  { OP_mul, type, { IN(AR), IN(BI) } },
                                  { OP_fma, type, { IN(AI), IN(BR), { FROM_ACC, 0 } } },
                                  { OP_STORE, type, { { 0, 1 } } },
                                  { OP_LOAD, type, { { FROM_SLOT, 1 } } } } };
#undef IN
    program q = p;
    q.code[q.length++] = (instruction){ OP_STORE, type, { { 0, 0 } } };
    step s = { .kernel = KERNEL_PROGRAM, .outs = 2, .ins = 4, .program = &q };
    const layout part = { .type = (duet_dtype)type, .rank = 1, .size = { n }, .stride = { 2 } };
    const size_t each = dtypes[type].bytes;
    for (int k = 0; k < 4; k++) s.in[k] = (operand){ k, part };
    for (int k = 0; k < 2; k++) s.out[k] = (operand){ k, part };
    void *const data[] = { x, (char *)x + each, (void *)y, (char *)(uintptr_t)y + each };
    return b->run(&s, &(frame){ .data = data }, b->with);
}

/* Reverses all axes: changes the layout and returns the address of the new first element. */
static const void *reverse_axes(layout *l, const char *p)
{
    for (int a = 0; a < l->rank; a++) {
        p += (l->size[a] - 1) * l->stride[a] * (int64_t)dtypes[l->type].bytes;
        l->stride[a] = -l->stride[a];
    }
    return p;
}

/* Copies the requested part of the convolution to out, and scales it. */
/* The first result of the part along an axis where the filter has `reach` elements besides the first. */
static int64_t first_of_part(int part, int64_t reach)
{
    if (part == DUET_OVERLAP_FULL) return 0;
    return part == DUET_OVERLAP_SAME ? reach / 2 : reach;
}

static duet_status cut_out(const fourier_ops *b, const step *s, const transform *back, const char *all,
                           void *out)
{
    layout from;
    layout_dense(&from, transform_writes(back), back->rank, back->out);
    for (int a = 0; a < from.rank; a++) {
        const int64_t first = first_of_part(s->attr.overlap.part, s->in[1].at.size[a] - 1);
        all += first * from.stride[a] * (int64_t)dtypes[from.type].bytes;
        from.size[a] = s->out[0].at.size[a];
    }
    return apply(b, OP_mul, out, &s->out[0].at, all, &from, back->scale);
}

/* Computes in the buffers real, spectrum[0] and spectrum[1]. */
static duet_status convolve(const fourier_ops *b, const step *s, const frame *f,
                            const transform transforms[2], void *real, void *const spectrum[2])
{
    layout y = s->in[1].at;
    const void *at = f->data[s->in[1].slot];
    if (s->attr.overlap.reverse) at = reverse_axes(&y, at);
    TRY(fourier_copy_in(b, &transforms[0], real, f->data[s->in[0].slot], &s->in[0].at));
    TRY(b->transform(&transforms[0], 0, real, spectrum[0], b->with));
    TRY(fourier_copy_in(b, &transforms[0], real, at, &y));
    TRY(b->transform(&transforms[0], 0, real, spectrum[1], b->with));
    const int64_t n =
        (int64_t)(transform_bytes(&transforms[0], true) / dtypes[transform_writes(&transforms[0])].bytes);
    TRY(multiply(b, transforms[0].f64, n, spectrum[0], spectrum[1]));
    TRY(b->transform(&transforms[1], 1, spectrum[0], real, b->with));
    return cut_out(b, s, &transforms[1], real, f->data[s->out[0].slot]);
}

duet_status fourier_convolve(const fourier_ops *b, const step *s, const frame *f)
{
    transform transforms[2];
    fourier_convolve_transforms(s, transforms);
    const size_t line = 511, bytes[2] = { (transform_bytes(transforms, false) + line) & ~line,
                                          (transform_bytes(transforms, true) + line) & ~line };
    char *p;
    TRY(b->take(bytes[0] + 2 * bytes[1], b->with, (void **)&p));
    void *const spectrum[2] = { p + bytes[0], p + bytes[0] + bytes[1] };
    const duet_status r = convolve(b, s, f, transforms, p, spectrum);
    b->give(p, b->with);
    return r;
}

/* ---- unsupported steps ---- */

const char *fourier_unsupported(const step *s)
{
    if (s->kernel == OP_fftshift) return NULL;
    const duet_dtype x = s->in[0].at.type, y = s->out[0].at.type;
    if (!(is_complex(y) || y == DUET_F32 || y == DUET_F64))
        return "the elements must be floating point or complex";
    if (is_wide(x) != is_wide(y)) return "the operands must have the same precision";
    return NULL;
}
