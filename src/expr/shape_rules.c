/* shape_rules.c - shapes of reductions and of operators with a definition, from the rows. */
#include "shape_rules.h"
#include "arena.h"
#include "dtype.h"
#include "einsum.h"
#include "reduce_order.h"
#include "status.h"
#include <math.h>
#include <string.h>

/* An operand as the rows see it. A vector is a row on the left and a column on the right. */
typedef struct form {
    int rank;
    duet_dtype type;
    bool weak; /* a number */
    const int64_t *size;
    int64_t count, rows, cols, channels, n, c, d, h, w;
} form;

static form form_of(const node *x, bool right)
{
    form f = { .rank = x->rank,
               .type = (duet_dtype)x->type,
               .weak = x->flags & NODE_WEAK,
               .size = x->size,
               .count = 1,
               .rows = 1,
               .cols = 1 };
    for (int i = 0; i < x->rank; i++) f.count *= x->size[i];
    if (x->rank) f.cols = x->size[x->rank - 1], f.rows = 1;
    for (int i = 0; i + 1 < x->rank; i++) f.rows *= x->size[i];
    if (x->rank == 1 && right) f.rows = f.cols, f.cols = 1;
    if (x->rank > 2 && right) f.rows = x->size[x->rank - 2];
    f.channels = x->rank > 2 ? x->size[1] : f.cols;
    if (x->rank > 2) f.n = x->size[0], f.c = x->size[1], f.w = x->size[x->rank - 1];
    if (x->rank > 3) f.h = x->size[x->rank - 2];
    if (x->rank > 4) f.d = x->size[x->rank - 3];
    return f;
}

static __attribute__((cold)) duet_status broken(enum op op, const node *x, const node *y, const node *z,
                                                const char *needs)
{
    const node *const all[3] = { x, y, z };
    char text[3][SHAPE_TEXT] = { "" };
    for (int k = 0; k < 3 && all[k]; k++) shape_text(text[k], all[k]->type, all[k]->rank, all[k]->size);
    return fail(DUET_BAD_SHAPE, "duet_%s(%s%s%s%s%s) needs %s", op_infos[op].name, text[0], y ? ", " : "",
                text[1], z ? ", " : "", text[2], needs);
}

static __attribute__((cold)) duet_status badly_typed(enum op op, node *const x[], const char *needs)
{
    return (void)broken(op, x[0], x[1], x[2], needs), DUET_BAD_TYPE;
}

duet_status check_size(enum op op, duet_dtype type, int rank, const int64_t *size)
{
    char text[SHAPE_TEXT];
    if (__builtin_expect(shape_check(op_infos[op].name, type, rank, size) == DUET_OK, 1)) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "duet_%s would give %s, whose bytes overflow", op_infos[op].name,
                shape_text(text, type, rank, size));
}

/* ---- reductions ---- */

static duet_status check_count(enum op op, const node *x, int64_t n)
{
    switch (op) {
#define DUET_FOLD1(name, start, take, join, epilogue, needs, ...)                                            \
    case OP_##name:                                                                                          \
        return (needs) ? DUET_OK : broken(op, x, NULL, NULL, #needs " elements");
#define DUET_FOLD2                                           DUET_FOLD1
#define DUET_MOMENT1(name, take, join, epilogue, needs, ...) DUET_FOLD1(name, 0, 0, 0, 0, needs, 0)
#define DUET_PLACE1(name, better, needs, ...)                DUET_FOLD1(name, 0, 0, 0, 0, needs, 0)
#include <duet/ops.def>
    default: return DUET_OK;
    }
}

static duet_status check_axis(enum op op, const node *x, int *axis)
{
    int given = *axis;
    if (given < 0) *axis += x->rank;
    if (0 <= *axis && *axis < x->rank) return DUET_OK;
    char text[SHAPE_TEXT];
    return fail(DUET_BAD_SHAPE, "duet_%s along axis %d of %s: there is no such axis", op_infos[op].name,
                given, shape_text(text, x->type, x->rank, x->size));
}

/* The axes of a list as bits. */
static duet_status mask_of(enum op op, const node *x, const int32_t *list, int32_t *mask)
{
    char text[SHAPE_TEXT];
    const int count = list[REDUCE_COUNT];
    *mask = 0;
    if (count < 0) return fail(DUET_BAD_ARGUMENT, "duet_%s_axes: no list of axes", op_infos[op].name);
    for (int k = 0; k < count; k++) {
        int axis = list[REDUCE_AXES + k];
        TRY(check_axis(op, x, &axis));
        if (*mask >> axis & 1)
            return fail(DUET_BAD_ARGUMENT, "duet_%s along axes of %s: axis %d is named twice",
                        op_infos[op].name, shape_text(text, x->type, x->rank, x->size), axis);
        *mask |= 1 << axis;
    }
    return DUET_OK;
}

/* How many elements are reduced to one. */
static int64_t reduce_shape(const node *x, int32_t mask, bool keep, node *out)
{
    int64_t n = 1;
    for (int i = 0; i < x->rank; i++) {
        const bool goes = mask >> i & 1;
        if (goes) n *= x->size[i];
        if (!goes || keep) out->size[out->rank++] = goes ? 1 : x->size[i];
    }
    return n;
}

duet_status rule_reduce(enum op op, const node *x, const node *y, const int32_t *given, node *out)
{
    const enum reduce_how how = (enum reduce_how)given[REDUCE_HOW];
    int32_t mask = REDUCE_ALL_AXES;
    int64_t outs = 1;
    if (y && (x->rank != y->rank || memcmp(x->size, y->size, sizeof x->size[0] * x->rank)))
        return broken(op, x, y, NULL, "operands of one shape");
    if (how != REDUCE_ALL) TRY(mask_of(op, x, given, &mask));
    const int64_t n = reduce_shape(x, mask, how == REDUCE_KEEP, out);
    for (int i = 0; i < out->rank; i++) outs *= out->size[i];
    if (outs) TRY(check_count(op, x, n));
    out->attr.reduce = (reduce_attributes){ .axes = mask, .keep = how == REDUCE_KEEP };
    return DUET_OK;
}

/* ---- definitions ---- */

static inline duet_status options_axis(enum op op, const node *x, const int32_t *attr, steps *o)
{
    o->axis = ((const index_attributes *)attr)->axis;
    return check_axis(op, x, &o->axis);
}

static duet_status options_type(enum op op, const node *x, const int32_t *attr, steps *o)
{
    char text[SHAPE_TEXT];
    o->type = (duet_dtype)((const cast_attributes *)attr)->type;
    if ((unsigned)o->type >= DUET_DTYPE_COUNT)
        return fail(DUET_BAD_TYPE, "duet_%s: there is no element type %d", op_infos[op].name, (int)o->type);
    if (dtype_is_complex((duet_dtype)x->type) && !dtype_is_complex(o->type))
        return fail(DUET_BAD_TYPE,
                    "duet_%s(%s, %s): complex numbers are cast to no real type: duet_real takes a part",
                    op_infos[op].name, shape_text(text, (duet_dtype)x->type, x->rank, x->size),
                    dtypes[o->type].name);
    return x->flags & NODE_WEAK ? number_fits("duet_cast", x, o->type) : DUET_OK;
}

static duet_status options_fourier(enum op op, const node *x, const int32_t *attr, steps *o)
{
    return rule_fourier(op, x, (const duet_fourier *)attr, &o->fourier);
}

static duet_status options_overlap(enum op op, const node *x, const int32_t *attr, steps *o)
{
    (void)x;
    o->part = ((const overlap_attributes *)attr)->part;
    if (o->part >= DUET_OVERLAP_FULL && o->part <= DUET_OVERLAP_VALID) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "duet_%s: there is no part %d of a convolution", op_infos[op].name,
                o->part);
}

static duet_status options_classes(enum op op, const node *x, const int32_t *attr, steps *o)
{
    (void)x;
    const one_hot_attributes *given = (const one_hot_attributes *)attr;
    o->n = given->classes, o->type = (duet_dtype)given->type;
    if (o->n < 0)
        return fail(DUET_BAD_ARGUMENT, "duet_%s: n is %d, and must not be negative", op_infos[op].name, o->n);
    if ((unsigned)o->type >= DUET_DTYPE_COUNT)
        return fail(DUET_BAD_ARGUMENT, "duet_%s: there is no element type %d", op_infos[op].name,
                    (int)o->type);
    return DUET_OK;
}

static duet_status options_top(enum op op, const node *x, const int32_t *attr, steps *o)
{
    const index_attributes *given = (const index_attributes *)attr;
    o->axis = given->axis, o->k = given->k;
    if (o->k < 0)
        return fail(DUET_BAD_ARGUMENT, "duet_%s: k is %d, and must not be negative", op_infos[op].name,
                    given->k);
    return check_axis(op, x, &o->axis);
}

static duet_status options_bins(enum op op, const node *x, const int32_t *attr, steps *o)
{
    (void)x;
    const histogram_words *given = (const histogram_words *)attr;
    memcpy(&o->low, given->low, sizeof o->low), memcpy(&o->high, given->high, sizeof o->high);
    o->n = given->bins;
    const double width = (o->high - o->low) / o->n;
    if (o->n > 0 && o->low < o->high && width > 0 && width < INFINITY && o->low + width > o->low &&
        o->high - width < o->high)
        return DUET_OK;
    return fail(DUET_BAD_ARGUMENT,
                "duet_%s needs n > 0 and low < high, both finite and bins that are not empty: low is %.17g, "
                "high %.17g, n %d",
                op_infos[op].name, o->low, o->high, o->n);
}

static duet_status options_plain(enum op op, const node *x, const int32_t *attr, steps *o)
{
    return (void)op, (void)x, (void)attr, (void)o, DUET_OK;
}

/* Any number but 0 means yes. */
static duet_status options_triangle(enum op op, const node *x, const int32_t *attr, steps *o)
{
    (void)op, (void)x;
    const triangle_attributes *given = (const triangle_attributes *)attr;
    o->triangle = (triangle_attributes){ given->lower != 0, given->unit != 0, given->transposed != 0 };
    return DUET_OK;
}

static duet_status options_solver(enum op op, const node *x, const int32_t *attr, steps *o)
{
    (void)x;
    o->refine = ((const solver_attributes *)attr)->refine;
    if (o->refine >= 0 && o->refine <= DUET_REFINE_F16) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "duet_%s: there is no way %d to refine", op_infos[op].name, o->refine);
}

static duet_status options_indices(enum op op, const node *x, const int32_t *attr, steps *o)
{
    (void)x;
    o->einsum = *(const einsum_attributes *)attr;
    if (o->einsum.letters[0] != EINSUM_INVALID) return DUET_OK;
    return fail(
        DUET_BAD_ARGUMENT,
        "duet_%s needs letters as in \"ij,jk->ik\": none twice in one place, each in two of the three",
        op_infos[op].name);
}

static void attrs_plain(const steps *o, node *out) { (void)o, (void)out; }
static void attrs_type(const steps *o, node *out) { out->attr.cast.type = (int32_t)o->type; }
static inline void attrs_axis(const steps *o, node *out) { out->attr.index.axis = o->axis; }
static void attrs_fourier(const steps *o, node *out) { out->attr.fourier = o->fourier.attr; }
static void attrs_overlap(const steps *o, node *out) { out->attr.overlap.part = o->part; }

static void attrs_classes(const steps *o, node *out)
{
    out->attr.one_hot = (one_hot_attributes){ o->n, (int32_t)o->type };
}

static void attrs_top(const steps *o, node *out)
{
    out->attr.index = (index_attributes){ o->axis, (int32_t)o->k };
}

static void attrs_bins(const steps *o, node *out)
{
    histogram_words *words = &out->attr.histogram;
    memcpy(words->low, &o->low, sizeof o->low), memcpy(words->high, &o->high, sizeof o->high);
    words->bins = o->n;
}

/* Of the integers, bool not being one. */
static inline bool is_index(duet_dtype t) { return t == DUET_I64 || (t >= DUET_I8 && t < DUET_BOOL); }
static void attrs_solver(const steps *o, node *out) { out->attr.solver.refine = o->refine; }
static void attrs_triangle(const steps *o, node *out) { out->attr.triangle = o->triangle; }
static void attrs_indices(const steps *o, node *out) { out->attr.einsum = o->einsum; }

/* The axes in front of those of a matrix, or of a vector. */
static shape leading(const form *A)
{
    shape s = { .rank = A->rank > 2 ? A->rank - 2 : 0 };
    memcpy(s.size, A->size, sizeof s.size[0] * (size_t)s.rank);
    return s;
}

static bool leading_broadcast(const form *A, const form *B)
{
    shape a = leading(A), b = leading(B);
    return shape_broadcast(&a, &b, &a);
}

static void product_shape(const form *A, const form *B, node *out)
{
    shape a = leading(A), b = leading(B);
    (void)shape_broadcast(&a, &b, &a);
    memcpy(out->size, a.size, sizeof a.size[0] * (size_t)a.rank), out->rank = (uint8_t)a.rank;
    if (A->rank >= 2) out->size[out->rank++] = A->size[A->rank - 2];
    if (B->rank >= 2) out->size[out->rank++] = B->cols;
}

/* Have the operands as many axes as letters, and axes of one letter one size? */
static bool indices_fit(const form *A, const form *B, const einsum_attributes *e)
{
    if (A->rank != einsum_rank(e, EINSUM_A) || B->rank != einsum_rank(e, EINSUM_B)) return false;
    for (int i = 0; i < A->rank; i++) {
        const int j = einsum_axis(e, EINSUM_B, einsum_letter(e, EINSUM_A, i));
        if (j >= 0 && A->size[i] != B->size[j]) return false;
    }
    return true;
}

static void indexed_shape(const form *A, const form *B, const einsum_attributes *e, node *out)
{
    for (int i = 0, letter; (letter = einsum_letter(e, EINSUM_OUT, i)); i++) {
        const int a = einsum_axis(e, EINSUM_A, letter), b = einsum_axis(e, EINSUM_B, letter);
        out->size[out->rank++] = a >= 0 ? A->size[a] : B->size[b];
    }
}

static int64_t size_from_end(const form *A, int axis)
{
    return axis < A->rank ? A->size[A->rank - 1 - axis] : 1;
}

/* check_size refuses what overflows. */
static void kronecker_shape(const form *A, const form *B, node *out)
{
    out->rank = (uint8_t)(A->rank > B->rank ? A->rank : B->rank);
    for (int k = 0; k < out->rank; k++) {
        int64_t *size = &out->size[out->rank - 1 - k];
        if (__builtin_mul_overflow(size_from_end(A, k), size_from_end(B, k), size)) *size = INT64_MAX;
    }
}

static void like(const form *A, node *out)
{
    out->rank = (uint8_t)A->rank;
    memcpy(out->size, A->size, sizeof A->size[0] * (size_t)A->rank);
}

static bool broadcast(const form *A, const form *B, shape *s)
{
    shape b = { .rank = B->rank };
    s->rank = A->rank;
    memcpy(s->size, A->size, sizeof s->size[0] * (size_t)A->rank),
        memcpy(b.size, B->size, sizeof b.size[0] * (size_t)B->rank);
    return shape_broadcast(s, &b, s);
}

static void together(const form *A, const form *B, node *out)
{
    shape s;
    (void)broadcast(A, B, &s);
    out->rank = (uint8_t)s.rank;
    memcpy(out->size, s.size, sizeof s.size[0] * (size_t)s.rank);
}

/* Complex elements with parts of these types; DUET_DTYPE_COUNT: there are none. Numbers take what they meet. */
static duet_dtype complex_type(const form *A, const form *B)
{
    const duet_dtype t = A->weak ? B->type : B->weak ? A->type : dtype_promote(A->type, B->type);
    const bool real = dtype_kind(A->type) == TYPE_FLOAT && dtype_kind(B->type) == TYPE_FLOAT;
    return real ? dtype_promote(t, DUET_C64) : DUET_DTYPE_COUNT;
}

static void reversed(const form *A, node *out)
{
    out->rank = (uint8_t)A->rank;
    for (int i = 0; i < A->rank; i++) out->size[i] = A->size[A->rank - 1 - i];
}

static void spectrum(const steps *o, const form *A, node *out)
{
    like(A, out);
    memcpy(out->size, o->fourier.size, sizeof out->size[0] * out->rank), out->type = (uint8_t)o->fourier.type;
}

/* A valid part is of no size where y is larger than x. */
static void overlap_shape(const steps *o, const form *A, const form *B, node *out)
{
    like(A, out);
    for (int i = 0; i < A->rank && o->part != DUET_OVERLAP_SAME; i++)
        out->size[i] += o->part == DUET_OVERLAP_FULL ? B->size[i] - 1 : 1 - B->size[i];
    for (int i = 0; i < A->rank; i++)
        if (out->size[i] < 0) out->size[i] = 0;
}

/* Of the last two axes a part of a convolution, of `lead` the others. */
static void plane_shape(const steps *o, const form *A, const form *B, const form *lead, node *out)
{
    form a = { .rank = 2, .size = A->size + A->rank - 2 }, b = { .rank = 2, .size = B->size + B->rank - 2 };
    node plane = { 0 };
    overlap_shape(o, &a, &b, &plane);
    for (int i = 0; i < A->rank - 2; i++) out->size[out->rank++] = A->size[i];
    for (int i = 0; lead && i < lead->rank - 2; i++) out->size[out->rank++] = lead->size[i];
    for (int i = 0; i < 2; i++) out->size[out->rank++] = plane.size[i];
}

static int64_t plane_count(const form *A)
{
    return A->rank < 2 ? 0 : A->size[A->rank - 2] * A->size[A->rank - 1];
}

static bool leading_equal(const form *A, const form *B)
{
    return A->rank >= 2 && A->rank == B->rank &&
           !memcmp(A->size, B->size, sizeof A->size[0] * (size_t)(A->rank - 2));
}

/* ---- shapes around an axis ---- */

static void taken(const form *A, const form *B, int axis, node *out)
{
    out->rank = 0;
    for (int i = 0; i < axis; i++) out->size[out->rank++] = A->size[i];
    for (int i = 0; i < B->rank; i++) out->size[out->rank++] = B->size[i];
    for (int i = axis + 1; i < A->rank; i++) out->size[out->rank++] = A->size[i];
}

static void resized(const form *A, int axis, int64_t n, node *out) { like(A, out), out->size[axis] = n; }
static void extended(const form *A, int64_t n, node *out) { like(A, out), out->size[out->rank++] = n; }

static bool is_taken(const form *A, const form *B, const form *C, int axis)
{
    node like = { 0 };
    if (A->rank + B->rank - 1 > DUET_RANK_MAX) return false;
    taken(A, B, axis, &like);
    return C->rank == like.rank && !memcmp(C->size, like.size, sizeof like.size[0] * like.rank);
}

static bool like_but_axis(const form *A, const form *B, int axis)
{
    bool same = A->rank == B->rank;
    for (int i = 0; i < A->rank && same; i++) same = i == axis || A->size[i] == B->size[i];
    return same;
}

/* How many windows there are where they have so much room to move. */
static int64_t windows(int64_t room, int64_t stride) { return room < 0 ? 0 : room / stride + 1; }
static int64_t or_nothing(int64_t size) { return size > 0 ? size : 0; }

#define NEEDS(condition)                                                                                     \
    if (!(condition)) return broken(op, x[0], x[1], x[2], #condition);
#define OUT(in, window, k) windows((in) + 2 * o.pad[k] + o.more[k] - (window), o.stride[k])
#define REACH(size, k)     (((size)-1) * o.dilation[k] + 1)
#define LEAST_IMAGE(results, size, k)                                                                        \
    (((results)-1) * o.stride[k] + REACH(size, k) - 2 * o.pad[k] - o.more[k])
#define IMAGE(results, size_, k) (o.size[k] ? o.size[k] : or_nothing(LEAST_IMAGE(results, size_, k)))
#define FILTER(in, results, k)                                                                               \
    (o.size[k] ? o.size[k]                                                                                   \
               : ((in) + 2 * o.pad[k] + o.more[k] - 1 - ((results)-1) * o.stride[k]) / o.dilation[k] + 1)
#define SHAPE(rank_, ...)                                                                                    \
    (memcpy(out->size, (int64_t[]){ __VA_ARGS__ }, sizeof(int64_t) * (rank_)), (void)(out->rank = (rank_)))
#define LIKE(A)                  like(&A, out)
#define REVERSED(A)              reversed(&A, out)
#define PRODUCT(A, B)            product_shape(&A, &B, out)
#define SPECTRUM(A)              spectrum(&o, &A, out)
#define OVERLAP(A, B)            overlap_shape(&o, &A, &B, out)
#define OVERLAP_ALL(A, B)        plane_shape(&o, &A, &B, &B, out)
#define OVERLAP_EACH(A, B)       plane_shape(&o, &A, &B, NULL, out)
#define PLANE(A)                 plane_count(&A)
#define LEADING_AXES_EQUAL(A, B) leading_equal(&A, &B)
#define TYPE(A)                  A.type
#define IS_INDEX(A)              (is_index(A.type) && !A.weak)
#define GIVES(type_)             out->type = (uint8_t)(type_)
#define NEEDS_TYPE(condition)                                                                                \
    if (!(condition)) return badly_typed(op, x, #condition);
#define ALONG(A)                     A.size[o.axis]
#define TAKEN(A, B)                  taken(&A, &B, o.axis, out)
#define IS_TAKEN(A, B, C)            is_taken(&A, &B, &C, o.axis)
#define LIKE_BUT_AXIS(A, B)          like_but_axis(&A, &B, o.axis)
#define RESIZED(A, n)                resized(&A, o.axis, n, out)
#define EXTENDED(A, n)               extended(&A, n, out)
#define IS_COMPLEX(A)                dtype_is_complex(A.type)
#define IS_ORDERED(A)                (A.type < DUET_C64)
#define IS_NUMBER(A)                 (IS_ORDERED(A) && A.type != DUET_BOOL)
#define SUM_TYPE(A)                  dtype_of_sums(A.type)
#define IS_FLOATING(A)               (dtype_kind(A.type) >= TYPE_FLOAT)
#define PART_TYPE(A)                 dtype_part(A.type)
#define COMPLEX_TYPE(A, B)           complex_type(&A, &B)
#define ARE_PARTS(A, B)              (complex_type(&A, &B) != DUET_DTYPE_COUNT)
#define BROADCAST(A, B)              broadcast(&A, &B, &(shape){ 0 })
#define TOGETHER(A, B)               together(&A, &B, out)
#define INDICES_FIT(A, B)            indices_fit(&A, &B, &o.einsum)
#define INDEXED(A, B)                indexed_shape(&A, &B, &o.einsum, out)
#define KRONECKER(A, B)              kronecker_shape(&A, &B, out)
#define LEADING_AXES_BROADCAST(A, B) leading_broadcast(&A, &B)

#define DUET_DEF1(name, options, needs, shape, ...)                                                          \
    static duet_status rule_##name(enum op op, node *const x[], const int32_t *attr, node *out)              \
    {                                                                                                        \
        form A = form_of(x[0], false), B = form_of(x[1] ? x[1] : x[0], true),                                \
             C = form_of(x[2] ? x[2] : x[0], true);                                                          \
        steps o = { 0 };                                                                                     \
        (void)B, (void)C;                                                                                    \
        TRY(options_##options(op, x[0], attr, &o));                                                          \
        needs shape;                                                                                         \
        attrs_##options(&o, out);                                                                            \
        return DUET_OK;                                                                                      \
    }
#define DUET_DEF2                                           DUET_DEF1
#define DUET_CALL1(name, options, types, needs, shape, doc) DUET_DEF1(name, options, needs, shape, doc)
#define DUET_CALL2                                          DUET_CALL1
#define DUET_CALL3                                          DUET_CALL1
#include <duet/ops.def>

duet_status rule_def(enum op op, node *const x[], const int32_t *attr, node *out)
{
    duet_status s = DUET_OK;
    out->type = x[0]->type;
    switch (op) {
#define DUET_DEF1(name, ...)                                                                                 \
    case OP_##name:                                                                                          \
        s = rule_##name(op, x, attr, out);                                                                   \
        break;
#define DUET_DEF2  DUET_DEF1
#define DUET_CALL1 DUET_DEF1
#define DUET_CALL2 DUET_DEF1
#define DUET_CALL3 DUET_DEF1
#include <duet/ops.def>
    default: s = fail(DUET_UNSUPPORTED, "operator %d", (int)op);
    }
    return s == DUET_OK ? check_size(op, (duet_dtype)out->type, out->rank, out->size) : s;
}
