/* singular_values.c - see singular_values.h. */
#include "columns.h" /* before step_kinds.h, which has a type `part` */

#include "singular_values.h"

/* With fewer columns, cuSOLVER's QR iteration takes less time (measured on an H200). */
#define GRAM_COLUMNS 64

static bool gram_suits(const columns *a)
{
    return dtype_part(a->type) == DUET_F32 && a->cols >= GRAM_COLUMNS;
}

/* w = the square roots of the values, in the opposite order. Rounding can make a value of 0 negative, so
 * negative values become 0 first. */
static duet_status roots_write(const solver_workspace *b, const columns *values, const columns *w)
{
    const int64_t n = values->rows;
    const layout at = { .type = values->type, .rank = 1, .size = { n }, .stride = { 1 } },
                 to = { .type = w->type, .rank = 1, .size = { n }, .stride = { 1 } };
    layout back = at;
    back.stride[0] = -1;
    const part x[] = { { .p = values->p, .at = &at }, { .number = 0 } };
    TRY(gpu_apply(OP_maximum, values->p, &at, x, 2, b->q));
    TRY(gpu_apply(OP_sqrt, values->p, &at, x, 1, b->q));
    return columns_convert(b, w->p, &to, (const double *)values->p + n - 1, &back);
}

static duet_status by_gram(solver_workspace *b, const columns *a, const columns *w)
{
    columns wide, gram, values;
    TRY(wide_take(b, a->rows, a->cols, &wide));
    TRY(wide_take(b, a->cols, a->cols, &gram));
    const layout from = columns_layout(a), to = columns_layout(&wide);
    TRY(columns_convert(b, wide.p, &to, a->p, &from));
    TRY(solver_gram(b, &wide, &gram));
    TRY(doubles_take(b, a->cols, &values));
    TRY(solver_eigen(b, &gram, false, &values));
    return roots_write(b, &values, w);
}

duet_status singular_values(solver_workspace *b, const columns *a, const columns *w)
{
    if (gram_suits(a)) {
        const int before[2] = { b->blocks[ON_HOST], b->blocks[ON_CARD] };
        error_text text;
        error_keep(&text);
        const duet_status r = by_gram(b, a, w);
        if (r != DUET_NO_MEMORY) return r;
        error_put_back(&text);
        gpu_workspace_keep(b, before);
    }
    return solver_svd(b, a, w, SVD_VALUES, NULL, NULL);
}
