/* small_matrix.c - which steps of linear algebra small_matrix_ops.h computes. */
#include "small_matrix.h"
#include "dtype.h"
#include "linalg_status.h"

bool small_matrix_work(const step *s, const linalg_batch *b, small_args *a)
{
    const duet_dtype type = s->in[0].at.type;
    *a = (small_args){ .wide = dtype_part(type) == DUET_F64,
                       .pairs = dtype_is_complex(type),
                       .growth = GROWTH_LIMIT,
                       .count = b->count };
    switch (s->kernel) {
    case OP_inv: a->what = SMALL_INV; break;
    case OP_solve: a->what = SMALL_SOLVE; break;
    case OP_det: a->what = SMALL_DET; break;
    case OP_logdet: a->what = SMALL_LOGDET; break;
    case KERNEL_slogdet: a->what = SMALL_SLOGDET; break;
    case OP_cholesky: a->what = SMALL_CHOLESKY; break;
    case OP_solve_triangular: a->what = SMALL_TRIANGULAR; break;
    default: return false;
    }
    if (a->what == SMALL_SOLVE) a->growth = SOLVE_GROWTH_LIMIT;
    if (a->what == SMALL_SOLVE && s->attr.solver.refine) return false;
    if (linalg_cols(s) > INT16_MAX || linalg_sides(s) > INT16_MAX) return false;
    a->n = (int)linalg_cols(s);
    a->sides = (int)linalg_sides(s);
    a->lower = a->what == SMALL_TRIANGULAR && s->attr.triangle.lower;
    a->unit = a->what == SMALL_TRIANGULAR && s->attr.triangle.unit;
    a->transposed = a->what == SMALL_TRIANGULAR && s->attr.triangle.transposed;
    return true;
}
