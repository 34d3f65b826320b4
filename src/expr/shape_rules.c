/* shape_rules.c - the shapes of the results of reductions and of operators with a definition, from
 * their rows. */
#include "shape_rules.h"
#include "arena.h"
#include "dtype.h"
#include "einsum.h"
#include "fp_environment.h"
#include "min_max.h"
#include "reduce_order.h"
#include "shape_conditions.h"
#include "status.h"
#include <math.h>
#include <string.h>

duet_status check_size(duet_dtype type, int rank, const int64_t *size)
{
    char text[SHAPE_TEXT];
    if (likely(shape_check("", type, rank, size) == DUET_OK)) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "the size of the result, %s, overflows", shape_text(text, type, rank, size));
}

/* ---- reductions ---- */

static __attribute__((cold)) duet_status nothing_to_reduce(void)
{
    return fail(DUET_BAD_SHAPE, "there must be at least one element to reduce");
}

static duet_status check_count(enum op op, int64_t n)
{
    switch (op) {
#define DUET_FOLD1(name, start, take, join, epilogue, needs, ...)                                            \
    case OP_##name:                                                                                          \
        return (needs) ? DUET_OK : nothing_to_reduce();
#define DUET_FOLD2                            DUET_FOLD1
#define DUET_MOMENT1                          DUET_FOLD1
#define DUET_PLACE1(name, better, needs, ...) DUET_FOLD1(name, 0, 0, 0, 0, needs, 0)
#include <duet/ops.def>
    default: return DUET_OK;
    }
}

/* The axes of a list as bits. */
static duet_status mask_of(const node *x, const int32_t *list, int32_t *mask)
{
    const int count = list[REDUCE_COUNT];
    *mask = 0;
    if (count < 0)
        return fail(DUET_BAD_ARGUMENT, "the list of axes must not be NULL, nor its length negative");
    for (int k = 0; k < count; k++) {
        int axis = list[REDUCE_AXES + k];
        TRY(check_axis(x, &axis));
        if (*mask >> axis & 1) return fail(DUET_BAD_ARGUMENT, "axis %d is named twice", axis);
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
        return fail(DUET_BAD_SHAPE, "x and y must have the same shape");
    if (how != REDUCE_ALL) TRY(mask_of(x, given, &mask));
    const int64_t n = reduce_shape(x, mask, how == REDUCE_KEEP, out);
    for (int i = 0; i < out->rank; i++) outs *= out->size[i];
    if (outs) TRY(check_count(op, n));
    out->attr.reduce = (reduce_attributes){ .axes = mask, .keep = how == REDUCE_KEEP };
    return DUET_OK;
}

/* ---- definitions ---- */

static inline duet_status options_axis(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    o->axis = ((const index_attributes *)attr)->axis;
    return check_axis(x, &o->axis);
}

static __attribute__((cold)) duet_status no_such_type(duet_status s, int type)
{
    return fail(s, "type (%d) is not an element type", type);
}

static duet_status options_type(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    o->type = (duet_dtype)((const cast_attributes *)attr)->type;
    if ((unsigned)o->type >= DUET_DTYPE_COUNT) return no_such_type(DUET_BAD_TYPE, (int)o->type);
    if (dtype_is_complex((duet_dtype)x->type) && !dtype_is_complex(o->type))
        return fail(DUET_BAD_TYPE,
                    "complex elements cannot be cast to %s; use duet_real, duet_imag or duet_abs",
                    dtypes[o->type].name);
    if (!(x->flags & NODE_WEAK)) return DUET_OK;
    return number_fits(x, o->type);
}

static duet_status options_fourier(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    return rule_fourier(op, x, (const duet_fourier *)attr, &o->fourier);
}

static duet_status options_overlap(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    o->part = ((const overlap_attributes *)attr)->part;
    if (o->part >= DUET_OVERLAP_FULL && o->part <= DUET_OVERLAP_VALID) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT,
                "overlap (%d) must be DUET_OVERLAP_FULL, DUET_OVERLAP_SAME or DUET_OVERLAP_VALID", o->part);
}

static duet_status options_classes(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    const one_hot_attributes *given = (const one_hot_attributes *)attr;
    o->n = given->classes;
    o->type = (duet_dtype)given->type;
    if (o->n < 0) return fail(DUET_BAD_ARGUMENT, "n (%d) must not be negative", o->n);
    if ((unsigned)o->type >= DUET_DTYPE_COUNT) return no_such_type(DUET_BAD_ARGUMENT, (int)o->type);
    return DUET_OK;
}

static duet_status options_top(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    const index_attributes *given = (const index_attributes *)attr;
    o->axis = given->axis;
    o->k = given->k;
    if (o->k < 0) return fail(DUET_BAD_ARGUMENT, "k (%d) must not be negative", given->k);
    return check_axis(x, &o->axis);
}

static duet_status options_bins(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    IN_DEFAULT_FP_ENVIRONMENT;
    const histogram_words *given = (const histogram_words *)attr;
    memcpy(&o->low, given->low, sizeof o->low);
    memcpy(&o->high, given->high, sizeof o->high);
    o->n = given->bins;
    const double width = (o->high - o->low) / o->n;
    if (o->n <= 0) return fail(DUET_BAD_ARGUMENT, "n (%d) must be positive", o->n);
    if (!(o->low < o->high && width < INFINITY))
        return fail(DUET_BAD_ARGUMENT,
                    "low (%.17g) must be less than high (%.17g), and their difference must be finite", o->low,
                    o->high);
    if (width > 0 && o->low + width > o->low && o->high - width < o->high) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "n (%d) is so large that bins from low (%.17g) to high (%.17g) are empty",
                o->n, o->low, o->high);
}

static duet_status options_plain(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    return DUET_OK;
}

/* Options of solve_triangular: any number but 0 means true. */
static duet_status options_triangle(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    const triangle_attributes *given = (const triangle_attributes *)attr;
    o->triangle = (triangle_attributes){ given->lower != 0, given->unit != 0, given->transposed != 0 };
    return DUET_OK;
}

static duet_status options_solver(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    o->refine = ((const solver_attributes *)attr)->refine;
    if (o->refine >= 0 && o->refine <= DUET_REFINE_F16) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "refine (%d) must be 0, DUET_REFINE_F32 or DUET_REFINE_F16", o->refine);
}

static duet_status options_indices(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    o->einsum = *(const einsum_attributes *)attr;
    if (o->einsum.letters[0] != EINSUM_INVALID) return DUET_OK;
    return fail(
        DUET_BAD_ARGUMENT,
        "the indices must have the form \"ij,jk->ik\": a letter must occur in at least two of the three "
        "groups, and only once in a group");
}

/* Any number but 0 means transposed. */
static duet_status options_csr(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    const csr_words *given = (const csr_words *)attr;
    memcpy(&o->csr.columns, given->columns, sizeof o->csr.columns);
    o->csr.transposed = given->transposed != 0;
    if (o->csr.columns >= 0) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "columns (%lld) must not be negative", (long long)o->csr.columns);
}

static duet_status options_turned(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    o->csr.transposed = *attr != 0;
    return DUET_OK;
}

static void attrs_plain(const op_options *o, node *out) {}
static void attrs_type(const op_options *o, node *out) { out->attr.cast.type = (int32_t)o->type; }
static inline void attrs_axis(const op_options *o, node *out) { out->attr.index.axis = o->axis; }
static void attrs_fourier(const op_options *o, node *out) { out->attr.fourier = o->fourier.attr; }
static void attrs_overlap(const op_options *o, node *out) { out->attr.overlap.part = o->part; }
static void attrs_solver(const op_options *o, node *out) { out->attr.solver.refine = o->refine; }
static void attrs_triangle(const op_options *o, node *out) { out->attr.triangle = o->triangle; }
static void attrs_indices(const op_options *o, node *out) { out->attr.einsum = o->einsum; }

static void attrs_turned(const op_options *o, node *out) { out->attr.turned = o->csr.transposed; }

static void attrs_csr(const op_options *o, node *out)
{
    memcpy(out->attr.csr.columns, &o->csr.columns, sizeof o->csr.columns);
    out->attr.csr.transposed = o->csr.transposed;
}

static void attrs_classes(const op_options *o, node *out)
{
    out->attr.one_hot = (one_hot_attributes){ o->n, (int32_t)o->type };
}

static void attrs_top(const op_options *o, node *out)
{
    out->attr.index = (index_attributes){ o->axis, (int32_t)o->k };
}

static void attrs_bins(const op_options *o, node *out)
{
    histogram_words *words = &out->attr.histogram;
    memcpy(words->low, &o->low, sizeof o->low);
    memcpy(words->high, &o->high, sizeof o->high);
    words->bins = o->n;
}

/* ---- shapes ---- */

/* The axes of A and B before their last two, which broadcast. */
static void broadcast_leading(const form *A, const form *B, node *out)
{
    out->rank = 0;
    if (likely(A->rank <= 2 && B->rank <= 2)) return;
    shape a = leading_axes(A), b = leading_axes(B);
    (void)shape_broadcast(&a, &b, &a);
    memcpy(out->size, a.size, sizeof a.size[0] * (size_t)a.rank);
    out->rank = (uint8_t)a.rank;
}

static void product_shape(const form *A, const form *B, node *out)
{
    broadcast_leading(A, B, out);
    if (A->rank >= 2) out->size[out->rank++] = A->size[A->rank - 2];
    if (B->rank >= 2) out->size[out->rank++] = B->cols;
}

/* The axes of A before its last two, then others. */
static void stacked_shape(const form *A, int rank, const int64_t *size, node *out)
{
    const shape lead = leading_axes(A);
    memcpy(out->size, lead.size, sizeof lead.size[0] * (size_t)lead.rank);
    memcpy(out->size + lead.rank, size, sizeof *size * (size_t)rank);
    out->rank = (uint8_t)(lead.rank + rank);
}

static void solution_shape(const form *A, const form *B, node *out)
{
    broadcast_leading(A, B, out);
    out->size[out->rank++] = A->cols;
    if (B->rank >= 2) out->size[out->rank++] = B->cols;
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

/* check_size fails on overflow. */
static void kronecker_shape(const form *A, const form *B, node *out)
{
    out->rank = (uint8_t)larger(A->rank, B->rank);
    for (int k = 0; k < out->rank; k++) {
        int64_t *size = &out->size[out->rank - 1 - k];
        if (__builtin_mul_overflow(size_from_end(A, k), size_from_end(B, k), size)) *size = INT64_MAX;
    }
}

#define KRONECKER(A, B) kronecker_shape(&A, &B, out)

static void like(const form *A, node *out)
{
    out->rank = (uint8_t)A->rank;
    memcpy(out->size, A->size, sizeof A->size[0] * (size_t)A->rank);
}

static void together(const form *A, const form *B, node *out)
{
    shape s;
    (void)forms_broadcast(A, B, &s);
    out->rank = (uint8_t)s.rank;
    memcpy(out->size, s.size, sizeof s.size[0] * (size_t)s.rank);
}

static void reversed(const form *A, node *out)
{
    out->rank = (uint8_t)A->rank;
    for (int i = 0; i < A->rank; i++) out->size[i] = A->size[A->rank - 1 - i];
}

static void spectrum(const op_options *o, const form *A, node *out)
{
    like(A, out);
    memcpy(out->size, o->fourier.size, sizeof out->size[0] * out->rank);
    out->type = (uint8_t)o->fourier.type;
}

/* If y is larger than x along an axis, the valid part has no elements. */
static void overlap_shape(const op_options *o, const form *A, const form *B, node *out)
{
    like(A, out);
    for (int i = 0; i < A->rank && o->part != DUET_OVERLAP_SAME; i++)
        out->size[i] += o->part == DUET_OVERLAP_FULL ? B->size[i] - 1 : 1 - B->size[i];
    for (int i = 0; i < A->rank; i++)
        if (out->size[i] < 0) out->size[i] = 0;
}

/* The last two axes are a part of a convolution. The leading axes are those of A, then those of `lead`. */
static void plane_shape(const op_options *o, const form *A, const form *B, const form *lead, node *out)
{
    form a = { .rank = 2, .size = A->size + A->rank - 2 }, b = { .rank = 2, .size = B->size + B->rank - 2 };
    node plane = { 0 };
    overlap_shape(o, &a, &b, &plane);
    for (int i = 0; i < A->rank - 2; i++) out->size[out->rank++] = A->size[i];
    for (int i = 0; lead && i < lead->rank - 2; i++) out->size[out->rank++] = lead->size[i];
    for (int i = 0; i < 2; i++) out->size[out->rank++] = plane.size[i];
}

/* ---- shapes of sparse matrices: A has the values, B is the pattern ---- */

static int64_t csr_rows(const form *A, const form *B) { return B->count - 1 - A->count; }

static void csr_product(const op_options *o, const form *A, const form *B, const form *C, node *out)
{
    like(C, out);
    out->size[0] = o->csr.transposed ? o->csr.columns : csr_rows(A, B);
}

static void csr_dense(const op_options *o, const form *A, const form *B, node *out)
{
    const int64_t rows = csr_rows(A, B);
    out->rank = 2;
    out->size[0] = o->csr.transposed ? o->csr.columns : rows;
    out->size[1] = o->csr.transposed ? rows : o->csr.columns;
}

/* The number of elements of the pattern B of a matrix with as many rows as A. */
static int64_t csr_elements(const form *A, const form *B) { return B->count - 1 - A->size[0]; }

/* ---- shapes around an axis ---- */

static void resized(const form *A, int axis, int64_t n, node *out)
{
    like(A, out);
    out->size[axis] = n;
}

static void extended(const form *A, int64_t n, node *out)
{
    like(A, out);
    out->size[out->rank++] = n;
}

/* ---- shapes, as rows write them ---- */

#define OUT(in, reach, k)             window_count(&o, in, reach, k)
#define REACH(size, k)                window_reach(&o, size, k)
#define LEAST_IMAGE(results, size, k) least_image(&o, results, size, k)
#define IMAGE(results, size, k)       image_size(&o, results, size, k)
#define FILTER(in, results, k)        filter_size(&o, in, results, k)
#define SHAPE(rank, ...)              set_shape(out, rank, (const int64_t[]){ __VA_ARGS__ })
#define LIKE(A)                       like(&A, out)
#define REVERSED(A)                   reversed(&A, out)
#define PRODUCT(A, B)                 product_shape(&A, &B, out)
#define STACKED(A, rank, ...)         stacked_shape(&A, rank, (const int64_t[]){ __VA_ARGS__ }, out)
#define SOLUTION(A, B)                solution_shape(&A, &B, out)
#define SIZED                         set_shape(out, o.rank, o.sizes)
#define SPECTRUM(A)                   spectrum(&o, &A, out)
#define OVERLAP(A, B)                 overlap_shape(&o, &A, &B, out)
#define OVERLAP_ALL(A, B)             plane_shape(&o, &A, &B, &B, out)
#define OVERLAP_EACH(A, B)            plane_shape(&o, &A, &B, NULL, out)
#define GIVES(type_)                  out->type = (uint8_t)(type_)
#define ALONG(A)                      A.size[o.axis]
#define TAKEN(A, B)                   taken_shape(&A, &B, o.axis, out)
#define RESIZED(A, n)                 resized(&A, o.axis, n, out)
#define EXTENDED(A, n)                extended(&A, n, out)
#define SUM_TYPE(A)                   dtype_of_sums(A.type)
#define PART_TYPE(A)                  dtype_part(A.type)
#define COMPLEX_TYPE(A, B)            complex_type_of(&A, &B)
#define TOGETHER(A, B)                together(&A, &B, out)
#define CSR_PRODUCT(A, B, C)          csr_product(&o, &A, &B, &C, out)
#define CSR_DENSE(A, B)               csr_dense(&o, &A, &B, out)
#define CSR_ELEMENTS(A, B)            csr_elements(&A, &B)
#define INDEXED(A, B)                 indexed_shape(&A, &B, &o.einsum, out)

static void set_shape(node *out, int rank, const int64_t *size)
{
    out->rank = (uint8_t)rank;
    memcpy(out->size, size, sizeof *size * (size_t)rank);
}

#define DUET_DEF1(name, options, needs, shape, ...)                                                          \
    static duet_status rule_##name(enum op op, node *const x[], const int32_t *attr, node *out)              \
    {                                                                                                        \
        const form A = form_of(op, 0, x[0], false), B = form_of(op, 1, x[1] ? x[1] : x[0], true),            \
                   C = form_of(op, 2, x[2] ? x[2] : x[0], true);                                             \
        op_options o = { 0 };                                                                                \
        (void)A, (void)B, (void)C;                                                                           \
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
    default: s = fail(DUET_UNSUPPORTED, "operator %d has no shape rule", (int)op);
    }
    if (s != DUET_OK) return s;
    return check_size((duet_dtype)out->type, out->rank, out->size);
}
