/* step_matmul.c - the layouts of the operands of matrix products: of two matrices, of batches of
 * matrices, and of einsum. */
#include "einsum.h"
#include "step.h"
#include <string.h>

/* Returns a layout as a matrix. A vector has no rows (left operand) or no columns (right operand);
 * the missing axis gets size 1. The result of a product lacks the axes that its operands lack. */
static layout as_matrix(const layout *l, bool rows, bool cols)
{
    layout m = { .type = l->type, .rank = 2, .size = { 1, 1 }, .stride = { 1, 1 } };
    int i = 0;
    if (rows) {
        m.size[0] = l->size[i];
        m.stride[0] = l->stride[i];
        i++;
    }
    if (cols) {
        m.size[1] = l->size[i];
        m.stride[1] = l->stride[i];
    }
    return m;
}

void product_layouts(const lowering *l, const job *j, step *s)
{
    layout A = value_layout(l->g, j->in[0]), B = value_layout(l->g, j->in[1]);
    bool rows = A.rank == 2, cols = B.rank == 2;
    s->in[0].at = as_matrix(&A, rows, true);
    s->in[1].at = as_matrix(&B, true, cols);
    s->out[0].at = as_matrix(&s->out[0].at, rows, cols);
    if (j->ins < 3 || j->epilogue) return;
    layout C = value_layout(l->g, j->in[2]);
    s->in[2].at = as_matrix(&C, rows, cols);
}

/* ---- batches: products of more than two axes, with as few leading axes as possible ---- */

/* Returns operand l as a batch of matrices, whose leading axes are broadcast to `batch`. */
static layout as_batch(const layout *l, const shape *batch, bool rows, bool cols)
{
    const int own = l->rank - rows - cols, missing = batch->rank - own;
    layout last = { .type = l->type, .rank = rows + cols }, m = { .type = l->type, .rank = batch->rank };
    for (int i = 0; i < last.rank; i++) {
        last.size[i] = l->size[own + i];
        last.stride[i] = l->stride[own + i];
    }
    for (int i = 0; i < batch->rank; i++) {
        m.size[i] = batch->size[i];
        m.stride[i] = i < missing || l->size[i - missing] == 1 ? 0 : l->stride[i - missing];
    }
    last = as_matrix(&last, rows, cols);
    axes_append(&m, &last);
    return m;
}

/* Merges leading axes that can be merged in all n operands. */
static void merge_batch(layout *const all[], int n)
{
    layout batch[STEP_OPERANDS], last[STEP_OPERANDS], *batches[STEP_OPERANDS] = { 0 };
    for (int k = 0; k < n; k++) {
        const uint32_t matrix = 3u << (all[k]->rank - 2);
        batch[k] = layout_of_axes(all[k], ~matrix);
        last[k] = layout_of_axes(all[k], matrix);
        batches[k] = &batch[k];
    }
    layout_collapse(batches, n);
    for (int k = 0; k < n; k++) {
        *all[k] = batch[k];
        axes_append(all[k], &last[k]);
    }
}

/* Are the rows of all matrices of a batch evenly spaced? If they are, and all matrices are multiplied
 * by the same right operand, one product can compute the batch. */
static bool rows_follow(const layout *l)
{
    return l->size[1] <= 1 || l->size[0] <= 1 || l->stride[0] == l->size[1] * l->stride[1];
}

static bool is_one_product(const step *s)
{
    if (s->in[0].at.rank != 3) return false;
    if (s->in[0].at.size[0] == 1) return true;
    if (s->in[1].at.stride[0] != 0 || !rows_follow(&s->in[0].at) || !rows_follow(&s->out[0].at)) return false;
    return s->ins < 3 || rows_follow(&s->in[2].at);
}

static void drop_batch(layout *l, bool rows)
{
    if (rows) {
        l->stride[1] = l->size[1] > 1 ? l->stride[1] : l->stride[0];
        l->size[1] *= l->size[0];
    }
    l->rank = 2;
    memmove(l->size, l->size + 1, 2 * sizeof *l->size);
    memmove(l->stride, l->stride + 1, 2 * sizeof *l->stride);
}

/* Merges leading axes. If one product can compute the batch, the step becomes OP_matmul. */
static void settle_batch(step *s)
{
    layout *all[STEP_OPERANDS];
    const int n = step_operands(s, all);
    merge_batch(all, n);
    if (!is_one_product(s)) return;
    s->kernel = OP_matmul;
    for (int k = 0; k < n; k++) drop_batch(all[k], all[k] != &s->in[1].at);
}

void batched_layouts(const lowering *l, const job *j, step *s)
{
    const layout A = value_layout(l->g, j->in[0]), B = value_layout(l->g, j->in[1]), out = s->out[0].at;
    const bool rows = A.rank >= 2, cols = B.rank >= 2;
    shape batch = { .rank = out.rank - rows - cols };
    memcpy(batch.size, out.size, sizeof batch.size[0] * (size_t)batch.rank);
    s->in[0].at = as_batch(&A, &batch, rows, true);
    s->in[1].at = as_batch(&B, &batch, true, cols);
    s->out[0].at = as_batch(&out, &batch, rows, cols);
    for (int k = 2; k < j->ins; k++) {
        const layout C = value_layout(l->g, j->in[k]);
        s->in[k].at = as_batch(&C, &batch, rows, cols);
    }
    settle_batch(s);
}

/* ---- einsum: the last two letters of the result are rows and columns, the others leading axes ---- */

enum { RESULT, LEFT, RIGHT, ROLES };

typedef struct letters {
    const einsum_attributes *of;
    int part[ROLES];
    layout at[ROLES];
} letters;

/* The layouts of the result and the operands along some letters. */
typedef struct axes {
    layout of[ROLES];
} axes;

/* Appends the axis of a letter; letter 0 is an axis of one element. */
static void go_along(const letters *w, int letter, axes *a)
{
    int64_t size = 1;
    for (int k = RESULT; k < ROLES; k++) {
        const int axis = einsum_axis(w->of, w->part[k], letter);
        a->of[k].stride[a->of[k].rank] = axis < 0 ? 0 : w->at[k].stride[axis];
        if (axis >= 0) size = w->at[k].size[axis];
    }
    for (int k = RESULT; k < ROLES; k++) a->of[k].size[a->of[k].rank++] = size;
}

static bool has(const letters *w, int k, int letter) { return einsum_axis(w->of, w->part[k], letter) >= 0; }

/* Finds the letters of rows and columns, or 0 if there is none. The last letter of the result is that
 * of the columns if only the right operand has it. The letter before it is that of the rows if only
 * the left operand has it. Returns the number of the other letters, which are leading axes. */
static int matrix_letters(const letters *w, int *row, int *column)
{
    int rank = einsum_rank(w->of, EINSUM_OUT);
    *row = *column = 0;
    int last = rank ? einsum_letter(w->of, EINSUM_OUT, rank - 1) : 0;
    if (last && !has(w, LEFT, last)) {
        *column = last;
        rank--;
    }
    last = rank ? einsum_letter(w->of, EINSUM_OUT, rank - 1) : 0;
    if (*column && last && !has(w, RIGHT, last)) {
        *row = last;
        rank--;
    }
    return rank;
}

/* Merges the axes over which the product sums. Returns false if the strides do not allow that. */
static bool inner_axis(const letters *w, axes *inner)
{
    for (int i = 0, letter; (letter = einsum_letter(w->of, w->part[LEFT], i)); i++)
        if (einsum_axis(w->of, EINSUM_OUT, letter) < 0) go_along(w, letter, inner);
    layout_collapse((layout *[]){ &inner->of[LEFT], &inner->of[RIGHT] }, 2);
    return inner->of[LEFT].rank == 1;
}

static axes leading_axes(const letters *w, int leading)
{
    axes a = { 0 };
    for (int k = RESULT; k < ROLES; k++) a.of[k].type = w->at[RESULT].type;
    for (int i = 0; i < leading; i++) go_along(w, einsum_letter(w->of, EINSUM_OUT, i), &a);
    if (!leading) go_along(w, 0, &a);
    return a;
}

/* Returns a batch of matrices: leading axes, then the axis of the rows, then that of the columns. */
static layout matrix_behind(const layout *leading, const layout *down, const layout *across)
{
    layout m = *leading;
    axes_append(&m, down);
    axes_append(&m, across);
    return m;
}

void lettered_layouts(const lowering *l, const job *j, step *s)
{
    const int right = einsum_right(&j->attr.einsum);
    const letters w = { &j->attr.einsum,
                        { EINSUM_OUT, 1 - right, right },
                        { s->out[0].at, value_layout(l->g, j->in[0]), value_layout(l->g, j->in[1]) } };
    axes inner = { 0 }, row = { 0 }, column = { 0 };
    int row_letter, column_letter;
    const int leading = matrix_letters(&w, &row_letter, &column_letter);
    s->in[0].at = w.at[LEFT];
    s->in[1].at = w.at[RIGHT];
    if (leading + 2 > DUET_RANK_MAX || !inner_axis(&w, &inner)) {
        s->kernel = OP_einsum;
        return;
    }
    const axes lead = leading_axes(&w, leading);
    go_along(&w, row_letter, &row);
    go_along(&w, column_letter, &column);
    s->out[0].at = matrix_behind(&lead.of[RESULT], &row.of[RESULT], &column.of[RESULT]);
    s->in[0].at = matrix_behind(&lead.of[LEFT], &row.of[LEFT], &inner.of[LEFT]);
    s->in[1].at = matrix_behind(&lead.of[RIGHT], &inner.of[RIGHT], &column.of[RIGHT]);
    settle_batch(s);
}
