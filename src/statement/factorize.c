/* factorize.c - factorisations: statements whose results are several matrices. */
#include "linalg_batch.h"
#include "matrix.h"
#include "single_step.h"
#include "status.h"
#include "thread.h"
#include <string.h>

/* ---- conditions on the matrices ---- */

static duet_status check_matrices(const direct *d)
{
    for (int k = 0; k < d->s.outs; k++) {
        TRY(matrix_check(d->who, d->out[k]));
        TRY(matrix_check_writable(d->who, d->out[k]));
    }
    return matrix_check(d->who, d->in[0]);
}

static duet_status wrong(const direct *d, duet_status st, const char *rule)
{
    char text[SINGLE_STEP_TEXT];
    return fail(st, "%s(%s): %s", d->who, single_step_text(d, text), rule);
}

static duet_status check_operand(const direct *d, bool fits)
{
    const layout *a = &d->in[0]->at;
    if (!dtype_is_blas(a->type))
        return wrong(d, DUET_BAD_TYPE,
                     "the elements of a must be f32, f64, c64 or c128; convert a with duet_cast");
    if (a->rank < 2) return wrong(d, DUET_BAD_SHAPE, "a must have at least 2 axes");
    if (!fits) return wrong(d, DUET_BAD_SHAPE, "a must be square");
    return DUET_OK;
}

/* Result k must have exactly this type, the leading axes of the operand and these sizes, and must not overlap
 * earlier results. */
static duet_status check_result(const direct *d, int k, duet_dtype type, int rank, const int64_t *size)
{
    char rule[SHAPE_TEXT + 40], text[SHAPE_TEXT];
    const layout *at = &d->out[k]->at, *a = &d->in[0]->at;
    shape to = { .rank = a->rank - 2 + rank };
    memcpy(to.size, a->size, (size_t)(a->rank - 2) * sizeof *size);
    memcpy(to.size + a->rank - 2, size, (size_t)rank * sizeof *size);
    const shape own = shape_of_layout(at);
    snprintf(rule, sizeof rule, "%s must be %s", d->name[k], shape_text(text, type, to.rank, to.size));
    if (at->type != type) return wrong(d, DUET_BAD_TYPE, rule);
    if (!shape_equal(&own, &to)) return wrong(d, DUET_BAD_SHAPE, rule);
    for (int e = 0; e < k; e++)
        if (matrix_overlap(d->out[e], d->out[k]) != APART)
            return wrong(d, DUET_BAD_ARGUMENT, "the results must not overlap");
    return DUET_OK;
}

/* ---- operations: a multiple of the cube of the size; four times as many for complex numbers ---- */

static double flops_of(const direct *d)
{
    static const double cubes[KERNELS_ALL] = {
        [KERNEL_lu] = 1,      [KERNEL_qr] = 4,          [KERNEL_svd] = 20,      [KERNEL_eigh] = 9,
        [KERNEL_slogdet] = 1, [KERNEL_qr_complete] = 4, [KERNEL_svd_full] = 20, [KERNEL_eig] = 25
    };
    const layout *a = &d->in[0]->at;
    const double m = (double)linalg_rows(&d->s), n = (double)linalg_cols(&d->s),
                 count = (double)linalg_batch_of(&d->s).count;
    return count * cubes[d->s.kernel] * m * n * (m < n ? m : n) * (dtype_is_complex(a->type) ? 4 : 1);
}

static duet_status run(direct *d)
{
    single_step_layouts(d);
    for (int k = 0; k < d->s.outs; k++)
        d->s.bytes += (double)d->out[k]->count * (double)dtypes[d->out[k]->at.type].bytes;
    d->s.bytes += (double)d->in[0]->count * (double)dtypes[d->in[0]->at.type].bytes;
    d->s.flops = flops_of(d);
    return single_step_run(d);
}

/* ---- the rows ---- */

#define SIZES(...)                                                                                           \
    (const int64_t[]) { __VA_ARGS__ }
#define LIKE_IT(rank, ...) TRY(check_result(&d, at++, type, rank, SIZES(__VA_ARGS__)));
#define OF_PART(rank, ...) TRY(check_result(&d, at++, dtype_part(type), rank, SIZES(__VA_ARGS__)));
#define COMPLEX(rank, ...)                                                                                   \
    TRY(check_result(&d, at++, dtype_promote(type, DUET_C64), rank, SIZES(__VA_ARGS__)));
#define INDICES(rank, ...) TRY(check_result(&d, at++, DUET_I64, rank, SIZES(__VA_ARGS__)));

#define FACTOR(name_, outs_, needs, shapes, ...)                                                             \
    static duet_status factor_##name_(duet_matrix *const out[], const duet_matrix *a)                        \
    {                                                                                                        \
        direct d = { .who = "duet_" #name_,                                                                  \
                     .name = { __VA_ARGS__, "a" },                                                           \
                     .in = { a },                                                                            \
                     .s = { .kernel = KERNEL_##name_, .outs = (outs_), .ins = 1 } };                         \
        for (int k = 0; k < (outs_); k++) d.out[k] = out[k];                                                 \
        TRY(check_matrices(&d));                                                                             \
        const duet_dtype type = a->at.type;                                                                  \
        const bool is_matrix = a->at.rank > 1;                                                               \
        const int64_t m = is_matrix ? a->at.size[a->at.rank - 2] : 0,                                        \
                      n = is_matrix ? a->at.size[a->at.rank - 1] : 0, k = m < n ? m : n;                     \
        int at = 0;                                                                                          \
        (void)k;                                                                                             \
        TRY(check_operand(&d, needs));                                                                       \
        shapes return run(&d);                                                                               \
    }
#define DUET_FACTOR2(name, x, y, needs, shapes, doc)                                                         \
    FACTOR(name, 2, needs, shapes, #x, #y)                                                                   \
    duet_status duet_##name##_at(duet_matrix *x, duet_matrix *y, const duet_matrix *a, const char *site)     \
    {                                                                                                        \
        thread_get()->site = site;                                                                           \
        IN_DEFAULT_FP_ENVIRONMENT;                                                                           \
        return statement_ends(factor_##name((duet_matrix *const[]){ x, y }, a), site);                       \
    }                                                                                                        \
    duet_status(duet_##name)(duet_matrix * x, duet_matrix * y, const duet_matrix *a)                         \
    {                                                                                                        \
        return duet_##name##_at(x, y, a, NULL);                                                              \
    }
#define DUET_FACTOR3(name, x, y, z, needs, shapes, doc)                                                      \
    FACTOR(name, 3, needs, shapes, #x, #y, #z)                                                               \
    duet_status duet_##name##_at(duet_matrix *x, duet_matrix *y, duet_matrix *z, const duet_matrix *a,       \
                                 const char *site)                                                           \
    {                                                                                                        \
        thread_get()->site = site;                                                                           \
        IN_DEFAULT_FP_ENVIRONMENT;                                                                           \
        return statement_ends(factor_##name((duet_matrix *const[]){ x, y, z }, a), site);                    \
    }                                                                                                        \
    duet_status(duet_##name)(duet_matrix * x, duet_matrix * y, duet_matrix * z, const duet_matrix *a)        \
    {                                                                                                        \
        return duet_##name##_at(x, y, z, a, NULL);                                                           \
    }
#include <duet/factor.def>
