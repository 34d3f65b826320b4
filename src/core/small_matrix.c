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
                       .count = b->count,
                       .lanes = 1 };
    switch (s->kernel) {
    case OP_inv: a->what = SMALL_INV; break;
    case OP_solve: a->what = SMALL_SOLVE; break;
    case OP_det: a->what = SMALL_DET; break;
    case OP_logdet: a->what = SMALL_LOGDET; break;
    case KERNEL_slogdet: a->what = SMALL_SLOGDET; break;
    case OP_cholesky: a->what = SMALL_CHOLESKY; break;
    case OP_solve_triangular: a->what = SMALL_TRIANGULAR; break;
    case KERNEL_qr:
    case KERNEL_qr_complete: a->what = SMALL_QR; break;
    case OP_eigvalsh: a->what = SMALL_EIGVALSH; break;
    case KERNEL_eigh: a->what = SMALL_EIGH; break;
    case OP_svdvals: a->what = SMALL_SVDVALS; break;
    case KERNEL_svd:
    case KERNEL_svd_full: a->what = SMALL_SVD; break;
    default: return false;
    }
    if (a->what == SMALL_SOLVE) a->growth = SOLVE_GROWTH_LIMIT;
    if (a->what == SMALL_SOLVE && s->attr.solver.refine) return false;
    const int64_t m = linalg_rows(s), n = linalg_cols(s), sides = linalg_sides(s);
    if (m > INT16_MAX || n > INT16_MAX || sides > INT16_MAX) return false;
    if (s->kernel == KERNEL_svd_full && m != n) return false;
    a->m = (int)m;
    a->n = (int)n;
    a->sides = (int)sides;
    if (a->what == SMALL_QR) a->sides = (int)(s->kernel == KERNEL_qr ? smaller(m, n) : m);
    a->lower = a->what == SMALL_TRIANGULAR && s->attr.triangle.lower;
    a->unit = a->what == SMALL_TRIANGULAR && s->attr.triangle.unit;
    a->transposed = a->what == SMALL_TRIANGULAR && s->attr.triangle.transposed;
    return true;
}
