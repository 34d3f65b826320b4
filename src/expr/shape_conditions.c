/* shape_conditions.c - the conditions that rows of ops.def set on their operands, each with its
 * error message. See shape_conditions.h. */
#include "shape_conditions.h"
#include "call_text.h"
#include "dtype.h"
#include "einsum.h"
#include "min_max.h"
#include "status.h"
#include <string.h>

form form_of(enum op op, int index, const node *x, bool right)
{
    form f = { .op = op,
               .index = index,
               .rank = x->rank,
               .type = (duet_dtype)x->type,
               .weak = x->flags & NODE_WEAK,
               .size = x->size,
               .count = 1,
               .rows = 1,
               .cols = 1 };
    for (int i = 0; i < x->rank; i++) f.count *= x->size[i];
    if (x->rank) f.cols = x->size[x->rank - 1];
    for (int i = 0; i + 1 < x->rank; i++) f.rows *= x->size[i];
    if (x->rank == 1 && right) {
        f.rows = f.cols;
        f.cols = 1;
    }
    if (x->rank > 2 && right) f.rows = x->size[x->rank - 2];
    f.height = x->rank > 1 ? x->size[x->rank - 2] : f.rows;
    f.channels = x->rank > 2 ? x->size[1] : f.cols;
    if (x->rank > 2) {
        f.n = x->size[0];
        f.c = x->size[1];
        f.w = x->size[x->rank - 1];
    }
    if (x->rank > 3) f.h = x->size[x->rank - 2];
    if (x->rank > 4) f.d = x->size[x->rank - 3];
    return f;
}

static const char *name(const form *A) { return operand_of_op(A->op, A->index); }

typedef long long number; /* for printf's %lld */

/* ---- sizes ---- */

int64_t window_count(const op_options *o, int64_t in, int64_t reach, int k)
{
    const int64_t steps = in + 2 * o->pad[k] + o->more[k] - reach;
    return steps < 0 ? 0 : steps / o->stride[k] + 1;
}

int64_t window_reach(const op_options *o, int64_t size, int k) { return (size - 1) * o->dilation[k] + 1; }

int64_t least_image(const op_options *o, int64_t results, int64_t size, int k)
{
    return (results - 1) * o->stride[k] + window_reach(o, size, k) - 2 * o->pad[k] - o->more[k];
}

int64_t image_size(const op_options *o, int64_t results, int64_t size, int k)
{
    if (o->size[k]) return o->size[k];
    const int64_t least = least_image(o, results, size, k);
    return larger(least, 0);
}

int64_t filter_size(const op_options *o, int64_t in, int64_t results, int k)
{
    if (o->size[k]) return o->size[k];
    return (in + 2 * o->pad[k] + o->more[k] - 1 - (results - 1) * o->stride[k]) / o->dilation[k] + 1;
}

static int64_t padded(const form *A, const op_options *o, int k)
{
    return A->size[k + 2] + 2 * o->pad[k] + o->more[k];
}

shape leading_axes(const form *A)
{
    shape s = { .rank = A->rank > 2 ? A->rank - 2 : 0 };
    memcpy(s.size, A->size, sizeof s.size[0] * (size_t)s.rank);
    return s;
}

bool forms_broadcast(const form *A, const form *B, shape *s)
{
    shape b = { .rank = B->rank };
    s->rank = A->rank;
    memcpy(s->size, A->size, sizeof s->size[0] * (size_t)A->rank);
    memcpy(b.size, B->size, sizeof b.size[0] * (size_t)B->rank);
    return shape_broadcast(s, &b, s);
}

duet_dtype complex_type_of(const form *A, const form *B)
{
    const bool real = dtype_kind(A->type) == TYPE_FLOAT && dtype_kind(B->type) == TYPE_FLOAT;
    duet_dtype t = dtype_promote(A->type, B->type);
    if (B->weak) t = A->type;
    if (A->weak) t = B->type;
    if (!real) return DUET_DTYPE_COUNT;
    return dtype_promote(t, DUET_C64);
}

void taken_shape(const form *A, const form *B, int axis, node *out)
{
    out->rank = 0;
    for (int i = 0; i < axis; i++) out->size[out->rank++] = A->size[i];
    for (int i = 0; i < B->rank; i++) out->size[out->rank++] = B->size[i];
    for (int i = axis + 1; i < A->rank; i++) out->size[out->rank++] = A->size[i];
}

int64_t plane_elements(const form *A)
{
    return A->rank < 2 ? 0 : A->size[A->rank - 2] * A->size[A->rank - 1];
}

/* ---- types ---- */

duet_status must_be_floating(const form *A)
{
    if (dtype_kind(A->type) >= TYPE_FLOAT) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s must be floating point or complex; convert it with duet_cast", name(A));
}

duet_status must_be_real(const form *A)
{
    if (dtype_is_complex(A->type)) return fail(DUET_BAD_TYPE, "%s must be real, not complex", name(A));
    return DUET_OK;
}

duet_status must_be_numeric(const form *A)
{
    if (!dtype_is_complex(A->type) && A->type != DUET_BOOL) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s must be an integer or floating-point matrix, not %s", name(A),
                dtypes[A->type].name);
}

duet_status must_be_indices(const form *A)
{

    if (dtype_is_integer(A->type) && !A->weak) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s must be an integer matrix", name(A));
}

duet_status must_have_type_of(const form *A, const form *B)
{
    if (A->type == B->type) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s and %s must have the same element type; convert one with duet_cast",
                name(A), name(B));
}

duet_status must_be_parts(const form *A, const form *B)
{
    if (complex_type_of(A, B) != DUET_DTYPE_COUNT) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s and %s must be real and floating point", name(A), name(B));
}

/* ---- shapes ---- */

duet_status must_have_axes(const form *A, int least, int most)
{
    if (least <= A->rank && A->rank <= most) return DUET_OK;
    const char *s = axes_word(most);
    if (least == most) return fail(DUET_BAD_SHAPE, "%s must have %d %s, not %d", name(A), least, s, A->rank);
    if (most == DUET_RANK_MAX)
        return fail(DUET_BAD_SHAPE, "%s must have at least %d %s, not %d", name(A), least, axes_word(least),
                    A->rank);
    return fail(DUET_BAD_SHAPE, "%s must have %d to %d axes, not %d", name(A), least, most, A->rank);
}

duet_status must_have_axes_of(const form *A, const form *B)
{
    if (A->rank == B->rank) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s and %s must have the same number of axes, not %d and %d", name(A),
                name(B), A->rank, B->rank);
}

duet_status must_have_elements(const form *A)
{
    if (A->count <= 0) return fail(DUET_BAD_SHAPE, "%s must not be empty", name(A));
    return DUET_OK;
}

duet_status must_have_plane(const form *A)
{
    if (plane_elements(A) > 0) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "the last two axes of %s must not be empty", name(A));
}

duet_status must_be_countable(const form *A, int64_t count)
{
    if (count <= INT32_MAX) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s must have at most %d elements to sum over, not %lld", name(A), INT32_MAX,
                (number)count);
}

duet_status must_broadcast(const form *A, const form *B)
{
    shape s;
    if (forms_broadcast(A, B, &s)) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "the shapes of the operands do not broadcast");
}

duet_status must_be_square(const form *A)
{
    if (A->height == A->cols) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s must be square, not %lld x %lld", name(A), (number)A->height,
                (number)A->cols);
}

duet_status must_have_equal_sizes(const form *A, int a, const form *B, int b)
{
    if (A->size[a] == B->size[b]) return DUET_OK;
    return fail(DUET_BAD_SHAPE,
                "axis %d of %s (size %lld) and axis %d of %s (size %lld) must have the same size", a, name(A),
                (number)A->size[a], b, name(B), (number)B->size[b]);
}

duet_status must_have_equal_leading(const form *A, const form *B)
{
    const size_t leading = A->rank > 2 ? (size_t)A->rank - 2 : 0;
    if (A->rank == B->rank && !memcmp(A->size, B->size, sizeof A->size[0] * leading)) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s and %s must have the same sizes along all axes but the last two", name(A),
                name(B));
}

duet_status must_have_broadcast_leading(const form *A, const form *B)
{
    if (likely(A->rank <= 2 || B->rank <= 2)) return DUET_OK;
    shape a = leading_axes(A), b = leading_axes(B);
    if (shape_broadcast(&a, &b, &a)) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "the axes of %s and %s before the last two do not broadcast", name(A),
                name(B));
}

duet_status must_have_rank_sum(int rank)
{
    if (rank <= DUET_RANK_MAX) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "the result would have %d axes, more than %d", rank, DUET_RANK_MAX);
}

duet_status must_match_columns(const form *A, const form *B)
{
    if (A->cols == B->rows) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "the columns of %s (%lld) must match the rows of %s (%lld)", name(A),
                (number)A->cols, name(B), (number)B->rows);
}

/* ---- sparse matrices: A has the values, or the rows; B is the pattern ---- */

duet_status must_be_solvable(const form *A)
{
    const bool real = A->type == DUET_F32 || A->type == DUET_F64;
    if (!A->weak && (real || dtype_is_complex(A->type))) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s must be f32, f64, c64 or c128; convert it with duet_cast", name(A));
}

duet_status must_be_pattern(const form *A)
{
    if (A->weak || (A->type != DUET_I32 && A->type != DUET_I64))
        return fail(DUET_BAD_TYPE, "%s must be i32 or i64, not %s", name(A), dtypes[A->type].name);
    TRY(must_have_axes(A, 1, 1));
    if (A->count) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s must have at least one element", name(A));
}

duet_status must_fit_pattern(const form *A, const form *B)
{
    if (A->count < B->count) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s must have rows + 1 + n elements for n %s, so more than %lld, not %lld",
                name(B), name(A), (number)A->count, (number)B->count);
}

duet_status must_have_rows_of_pattern(const form *A, const form *B)
{
    if (A->size[0] < B->count) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s of %lld rows must have more than %lld elements, not %lld", name(B),
                (number)A->size[0], (number)A->size[0], (number)B->count);
}

duet_status must_have_columns_of(const form *A, const form *B)
{
    if (A->rank < 2 || A->size[1] == B->size[1]) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s and %s must have the same number of columns, not %lld and %lld", name(A),
                name(B), (number)A->size[1], (number)B->size[1]);
}

duet_status must_match_csr(const form *A, const form *B, const form *C, const op_options *o)
{
    const int64_t rows = B->count - 1 - A->count, wanted = o->csr.transposed ? rows : o->csr.columns;
    if (C->size[0] == wanted) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s must have %lld rows, as the %lld x %lld matrix%s has %s, not %lld",
                name(C), (number)wanted, (number)rows, (number)o->csr.columns,
                o->csr.transposed ? ", which is transposed," : "", o->csr.transposed ? "rows" : "columns",
                (number)C->size[0]);
}

duet_status must_be_square_pattern(const form *A, const form *B, const form *C)
{
    const int64_t rows = B->count - 1 - A->count;
    if (C->size[0] == rows) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s must have %lld rows, as the matrix has, not %lld", name(C), (number)rows,
                (number)C->size[0]);
}

duet_status must_match_rows(const form *A, const form *B)
{
    if (A->height == B->rows) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "the rows of %s (%lld) must match the rows of %s (%lld)", name(A),
                (number)A->height, name(B), (number)B->rows);
}

duet_status must_be_bias_of(const form *A, const form *B)
{
    if (B->count == A->channels) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s must have one element for each of the %lld %s of %s, not %lld", name(B),
                (number)A->channels, A->rank > 2 ? "channels (axis 1)" : "columns", name(A),
                (number)B->count);
}

duet_status must_be_like_take(const form *A, const form *B, const form *C, int axis)
{
    char text[SHAPE_TEXT];
    node taken = { 0 };
    TRY(must_have_rank_sum(A->rank + B->rank - 1));
    taken_shape(A, B, axis, &taken);
    if (C->rank == taken.rank && !memcmp(C->size, taken.size, sizeof taken.size[0] * taken.rank))
        return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s must be %s, the shape of duet_take(%s, %s, %d)", name(C),
                shape_text(text, A->type, taken.rank, taken.size), name(A), name(B), axis);
}

duet_status must_be_like_but_axis(const form *A, const form *B, int axis)
{
    bool same = A->rank == B->rank;
    for (int i = 0; i < A->rank && same; i++) same = i == axis || A->size[i] == B->size[i];
    if (same) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s must have the shape of %s except along axis %d", name(B), name(A), axis);
}

duet_status must_hold_k(const form *A, const op_options *o)
{
    if (o->k <= A->size[o->axis]) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "k (%lld) must be at most the size of axis %d of %s (%lld)", (number)o->k,
                o->axis, name(A), (number)A->size[o->axis]);
}

static duet_status must_have_letters(const form *A, const einsum_attributes *e, int part)
{
    const int rank = einsum_rank(e, part);
    if (A->rank == rank) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "the indices name %d %s of %s, which has %d", rank, axes_word(rank), name(A),
                A->rank);
}

duet_status must_match_letters(const form *A, const form *B, const einsum_attributes *e)
{
    TRY(must_have_letters(A, e, EINSUM_A));
    TRY(must_have_letters(B, e, EINSUM_B));
    for (int i = 0; i < A->rank; i++) {
        const int letter = einsum_letter(e, EINSUM_A, i), j = einsum_axis(e, EINSUM_B, letter);
        if (j >= 0 && A->size[i] != B->size[j])
            return fail(DUET_BAD_SHAPE, "index %c has size %lld in %s and size %lld in %s", 'a' + letter - 1,
                        (number)A->size[i], name(A), (number)B->size[j], name(B));
    }
    return DUET_OK;
}

/* ---- images ---- */

duet_status must_have_image(const form *A)
{
    for (int axis = 2; axis < A->rank; axis++)
        if (!A->size[axis]) return fail(DUET_BAD_SHAPE, "axis %d of %s must not be empty", axis, name(A));
    return DUET_OK;
}

duet_status must_hold_window(const form *A, const op_options *o)
{
    for (int k = 0; k + 2 < A->rank; k++)
        if (padded(A, o, k) < o->window[k])
            return fail(DUET_BAD_SHAPE,
                        "along axis %d the window (%lld) must not be larger than %s with its padding (%lld)",
                        k + 2, (number)o->window[k], name(A), (number)padded(A, o, k));
    return DUET_OK;
}

duet_status must_hold_filters(const form *A, const form *B, const op_options *o)
{
    for (int k = 0; k + 2 < A->rank; k++) {
        const int64_t reach = window_reach(o, B->size[k + 2], k);
        if (padded(A, o, k) < reach)
            return fail(DUET_BAD_SHAPE,
                        "along axis %d %s (extent %lld) must not be larger than %s with its padding (%lld)",
                        k + 2, name(B), (number)reach, name(A), (number)padded(A, o, k));
    }
    return DUET_OK;
}

duet_status must_match_groups(const form *A, const form *B, const op_options *o)
{
    if (A->c == B->c * o->groups) return DUET_OK;
    return fail(DUET_BAD_SHAPE,
                "the channels of %s (%lld) must be the channels of %s (%lld) times the groups (%lld)",
                name(A), (number)A->c, name(B), (number)B->c, (number)o->groups);
}

duet_status must_divide_by_groups(const form *A, int axis, const op_options *o)
{
    if (A->size[axis] % o->groups == 0) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "axis %d of %s (size %lld) must be a multiple of the groups (%lld)", axis,
                name(A), (number)A->size[axis], (number)o->groups);
}

/* B has `size` elements along an image's axis where `results` are needed. */
static duet_status wrong_results(const form *B, int axis, int64_t results, const char *of, int64_t size)
{
    return fail(DUET_BAD_SHAPE,
                "axis %d of %s must have size %lld, not %lld: %s of size %lld give results of size %lld",
                axis, name(B), (number)results, (number)B->size[axis], of, (number)size, (number)results);
}

duet_status must_have_a_result_per_window(const form *A, const form *B, const op_options *o)
{
    for (int k = 0; k + 2 < A->rank; k++) {
        const int64_t results = window_count(o, A->size[k + 2], o->window[k], k);
        if (B->size[k + 2] != results) return wrong_results(B, k + 2, results, "windows", o->window[k]);
    }
    return DUET_OK;
}

duet_status must_come_from_pooling(const form *A, const op_options *o)
{
    for (int k = 0; k + 2 < A->rank; k++) {
        const int64_t image = image_size(o, A->size[k + 2], o->window[k], k);
        const int64_t results = window_count(o, image, o->window[k], k);
        if (A->size[k + 2] != results) return wrong_results(A, k + 2, results, "images", image);
    }
    return DUET_OK;
}

duet_status must_come_from_images(const form *A, const form *B, const op_options *o)
{
    for (int k = 0; k + 2 < A->rank; k++) {
        const int64_t image = image_size(o, A->size[k + 2], B->size[k + 2], k);
        const int64_t results = window_count(o, image, window_reach(o, B->size[k + 2], k), k);
        if (A->size[k + 2] != results) return wrong_results(A, k + 2, results, "images", image);
    }
    return DUET_OK;
}

duet_status must_come_from_filters(const form *A, const form *B, const op_options *o)
{
    for (int k = 0; k + 2 < A->rank; k++)
        if (filter_size(o, A->size[k + 2], B->size[k + 2], k) <= 0)
            return fail(DUET_BAD_SHAPE,
                        "along axis %d %s (size %lld) is too large: no filter gives so many results", k + 2,
                        name(B), (number)B->size[k + 2]);
    for (int k = 0; k + 2 < A->rank; k++) {
        const int64_t filter = filter_size(o, A->size[k + 2], B->size[k + 2], k);
        const int64_t results = window_count(o, A->size[k + 2], window_reach(o, filter, k), k);
        if (B->size[k + 2] != results) return wrong_results(B, k + 2, results, "filters", filter);
    }
    return DUET_OK;
}

duet_status must_pad_below_stride(const form *A, const op_options *o)
{
    for (int k = 0; k + 2 < A->rank; k++)
        if (o->size[k] >= o->stride[k])
            return fail(DUET_BAD_SHAPE, "along axis %d output_pad (%lld) must be less than the stride (%lld)",
                        k + 2, (number)o->size[k], (number)o->stride[k]);
    return DUET_OK;
}

duet_status must_give_an_image(const form *A, const form *B, const op_options *o)
{
    for (int k = 0; k + 2 < A->rank; k++)
        if (least_image(o, A->size[k + 2], B->size[k + 2], k) < 0)
            return fail(
                DUET_BAD_SHAPE,
                "along axis %d the padding (%lld) is too large: the result would have a negative size", k + 2,
                (number)o->pad[k]);
    return DUET_OK;
}

duet_status must_be_scalable(const form *A, const op_options *o)
{
    for (int k = 0; k + 2 < A->rank; k++)
        if (A->size[k + 2] > INT64_MAX / o->window[k])
            return fail(DUET_BAD_SHAPE, "the size of axis %d of %s times the scale (%lld) overflows", k + 2,
                        name(A), (number)o->window[k]);
    return DUET_OK;
}
