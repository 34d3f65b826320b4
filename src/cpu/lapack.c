/* lapack.c - decides which linear algebra steps LAPACKE supports. */
#include "lapack.h"
#include "cpu_kernels.h"
#include "dtype.h"
#include "linalg_batch.h"
#include "min_max.h"
#include <limits.h>

const char *linear_version(void) { return "found"; }

/* As SVD_MAX, for eigenvalues. */
enum { EIGH_MAX = 32000 };

static int64_t smaller_size(const step *s) { return smaller(linalg_rows(s), linalg_cols(s)); }

static const char *sizes_unsupported(const step *s)
{
    const int svd_max = dtype_is_complex(s->in[0].at.type) ? COMPLEX_SVD_MAX : SVD_MAX;
    for (int k = 0; k < s->ins; k++)
        for (int i = s->in[k].at.rank; i-- > 0 && i + 2 >= s->in[k].at.rank;)
            if (s->in[k].at.size[i] > INT_MAX) return "LAPACK takes sizes below 2^31";
    if ((s->kernel == OP_eigvalsh || s->kernel == KERNEL_eigh) && linalg_rows(s) > EIGH_MAX)
        return "the workspace has 2^31 or more elements, more than LAPACK can index";
    if ((s->kernel == OP_svdvals || s->kernel == KERNEL_svd || s->kernel == KERNEL_svd_full) &&
        smaller_size(s) > svd_max)
        return "the workspace has 2^31 or more elements, more than LAPACK can index";
    return NULL;
}

const char *linear_unsupported(const step *s)
{
    const duet_dtype type = s->in[0].at.type;
    if (!dtype_is_blas(type)) return "the elements must be f32, f64, c64 or c128";
    if (s->ins > 1 && s->in[1].at.type != type) return "the operands must have the same element type";
    if (s->kernel == OP_solve && s->attr.solver.refine && type != DUET_F64 && type != DUET_C128)
        return "refinement is implemented for f64 and c128 only";
    return sizes_unsupported(s);
}
