/* matmul_tmpl.c - matrix products and batched matrix products, by CBLAS or oneDNN. Template, for
 * f32 and f64.
 *
 * Computes alpha op(A) op(B) + beta C, possibly with an epilogue. Operands in layouts that CBLAS
 * does not support are copied; the result is dense. The libraries use all threads for one product.
 * The matrices of a batch are divided among the threads if they are small. If an operand is declared
 * triangular, trmm multiplies. */
#include "blas.h"
#include "epilogue.h"
#include "gemm.h"
#include "min_max.h"
#include "structure.h"
#include "threads.h"
#include <limits.h>
#include <math.h>

/* A matrix for CBLAS, or its transpose: rows are `ld` elements apart. */
typedef struct blas_matrix {
    const T *p;
    int rows, cols, ld;
    bool transposed;
    bool lower, upper; /* is it known to be triangular? */
    void *copy;
} blas_matrix;

typedef struct product {
    blas_matrix a, b;
    int m, n, k;
    T alpha, beta;
    bool small; /* gemm_is_small() of the product of which this is a part */
    T *out;
    const operand *addend; /* NULL if there is none */
} product;

/* Can CBLAS read rows of `length` elements with this stride, `distance` apart? Sets the leading
 * dimension. */
static bool rows_have_ld(int64_t rows, int64_t length, int64_t distance, int64_t stride, int *ld)
{
    int64_t d = rows <= 1 ? length : distance;
    if (d < 1) d = 1;
    if ((length > 1 && stride != 1) || (rows > 1 && distance < (length > 1 ? length : 1)) || d > INT_MAX)
        return false;
    *ld = (int)d;
    return true;
}

static bool find_ld(blas_matrix *r, const layout *l)
{
    if (rows_have_ld(l->size[0], l->size[1], l->stride[0], l->stride[1], &r->ld)) return true;
    return r->transposed = rows_have_ld(l->size[1], l->size[0], l->stride[1], l->stride[0], &r->ld);
}

static duet_status blas_matrix_open(blas_matrix *r, const operand *o, const frame *f)
{
    *r = (blas_matrix){ .p = address(f, o), .rows = (int)o->at.size[0], .cols = (int)o->at.size[1] };
    if (find_ld(r, &o->at)) return DUET_OK;
    TRY(scratch_copy(o, f, &r->copy));
    r->p = r->copy;
    r->ld = r->cols;
    return DUET_OK;
}

/* trmm takes 0.55 to 0.65 of the time of gemm for 128 to 1024 rows, but is not faster for few columns, and
 * slower for 64 rows. */
enum { TRIANGLE_MIN = 128 };

/* Sets lower or upper if the operand is declared triangular. */
static void find_triangle(blas_matrix *r, const operand *o, const frame *f)
{
    if (r->copy || o->at.size[0] < TRIANGLE_MIN) return;
    const unsigned p = operand_properties(owned_by(f, o->slot), &o->at);
    r->lower = p & ZERO_ABOVE;
    r->upper = p & ZERO_BELOW;
}

/* alpha (k = 0) or beta (k = 1), which are 1 if the step does not have them. */
static T factor_of(const step *s, const frame *f, int k) { return s->nums > k ? (T)f->num[s->num[k]] : 1; }

/* y = alpha op(a) x + beta y, where op(a) is a or its transpose. OpenBLAS starts threads for 9216 elements
 * and more. If these threads do not spin, starting them takes longer than short products take. */
static void matrix_vector(const blas_matrix *a, bool transposed, T alpha, const T *x, int x_stride, T beta,
                          T *y)
{
    int rows = a->transposed ? a->cols : a->rows, cols = a->transposed ? a->rows : a->cols;
    bool trans = transposed != a->transposed;
    const double seconds = (double)rows * cols * sizeof(T) * SECONDS_PER_CACHED;
    const int threads = threads_alone(threads_for(seconds) == 1);
    if (beta == 0) memset(y, 0, (size_t)(trans ? cols : rows) * sizeof(T));
    BLAS(gemv)
    (CblasRowMajor, blas_op(trans), rows, cols, alpha, a->p, a->ld, x, x_stride, beta, y, 1);
    threads_again(threads);
}

/* The stride of a matrix that has one row or one column. */
static int vector_stride(const blas_matrix *v)
{
    bool row = v->rows == 1;
    return row == v->transposed ? v->ld : 1;
}

/* A matrix times its own transpose is symmetric. syrk computes half of it. */
enum { GRAM_MIN = 48, TILE = 32 };

static bool is_gram(const product *p)
{
    return p->m >= GRAM_MIN && p->m == p->n && p->a.p == p->b.p && p->a.ld == p->b.ld &&
           p->a.transposed != p->b.transposed;
}

static void mirror_lower(T *out, int64_t n)
{
    for (int64_t i = 0; i < n; i += TILE)
        for (int64_t j = 0; j <= i; j += TILE)
            for (int64_t r = i; r < SMALLER(i + TILE, n); r++)
                for (int64_t c = j; c < SMALLER(j + TILE, r); c++) out[c * n + r] = out[r * n + c];
}

static void multiply_gram(const product *p, T alpha, T *out)
{
    memset(out, 0, (size_t)p->m * (size_t)p->m * sizeof(T));
    BLAS(syrk)
    (CblasRowMajor, CblasLower, blas_op(p->a.transposed), p->m, p->k, alpha, p->a.p, p->a.ld, 0, out, p->m);
    mirror_lower(out, p->m);
}

/* ---- triangles ---- */

#ifdef T_f32
#define OWN_TYPE DUET_F32
#else
#define OWN_TYPE DUET_F64
#endif

static layout layout_of(const blas_matrix *m)
{
    layout l = { .type = OWN_TYPE, .rank = 2, .size = { m->rows, m->cols }, .stride = { m->ld, 1 } };
    if (m->transposed) {
        l.stride[0] = 1;
        l.stride[1] = m->ld;
    }
    return l;
}

/* Is every element finite? In a product, a zero of the triangle times infinity is NaN, but trmm does not
 * multiply by these zeros. */
static bool is_finite(const blas_matrix *m)
{
    const int lines = m->transposed ? m->cols : m->rows, length = m->transposed ? m->rows : m->cols;
    bool finite = true;
    for (int i = 0; i < lines && finite; i++)
        for (int j = 0; j < length; j++) finite &= (bool)isfinite(m->p[(int64_t)i * m->ld + j]);
    return finite;
}

static bool is_triangular(const blas_matrix *m) { return m->lower || m->upper; }

/* Multiplies a copy of the other operand in `out`. */
static duet_status multiply_triangle(const product *p, bool left, T alpha, T *out)
{
    const blas_matrix *t = left ? &p->a : &p->b, *other = left ? &p->b : &p->a;
    const layout from = layout_of(other),
                 to = layout_of(&(blas_matrix){ .rows = p->m, .cols = p->n, .ld = p->n });
    TRY(blas_prepare());
    TRY(copy_elements(out, &to, other->p, &from));
    BLAS(trmm)
    (CblasRowMajor, left ? CblasLeft : CblasRight, t->lower != t->transposed ? CblasLower : CblasUpper,
     blas_op(t->transposed), CblasNonUnit, p->m, p->n, alpha, t->p, t->ld, out, p->n);
    cpu_blas_used();
    return DUET_OK;
}

/* Does trmm compute the product? Sets *left: the triangle is p->a. */
static bool uses_trmm(const product *p, T beta, bool *left)
{
    *left = is_triangular(&p->a);
    if (beta != 0 || p->m < TRIANGLE_MIN || p->n < TRIANGLE_MIN) return false;
    return is_finite(&p->a) && is_finite(&p->b);
}

static void multiply_any(const product *p, T alpha, T beta, T *out)
{
    if (p->n == 1) matrix_vector(&p->a, false, alpha, p->b.p, vector_stride(&p->b), beta, out);
    else if (p->m == 1) matrix_vector(&p->b, true, alpha, p->a.p, vector_stride(&p->a), beta, out);
    else BLAS(gemm)
    (CblasRowMajor, blas_op(p->a.transposed), blas_op(p->b.transposed), p->m, p->n, p->k, alpha, p->a.p,
     p->a.ld, p->b.p, p->b.ld, beta, out, p->n);
}

static duet_status multiply_by_blas(const product *p, T alpha, T beta, T *out)
{
    TRY(blas_prepare());
    if (beta == 0 && is_gram(p)) multiply_gram(p, alpha, out);
    else multiply_any(p, alpha, beta, out);
    cpu_blas_used();
    return DUET_OK;
}

static duet_status multiply_general(const product *p, T alpha, T beta, T *out);

static duet_status multiply(const product *p, T alpha, T beta, T *out)
{
    bool left;
    if (unlikely(is_triangular(&p->a) || is_triangular(&p->b)) && !is_gram(p) && uses_trmm(p, beta, &left))
        return multiply_triangle(p, left, alpha, out);
    return multiply_general(p, alpha, beta, out);
}

#ifdef T_f32
static gemm gemm_of(const product *p)
{
    return (gemm){ p->a.transposed, p->b.transposed, p->m, p->n, p->k, p->a.ld, p->b.ld, p->n };
}

static bool is_small(const product *p)
{
    const gemm g = gemm_of(p);
    return gemm_is_small(&g);
}

static bool uses_onednn(const product *p)
{
    const gemm g = gemm_of(p);
    return !p->small && onednn_gemm_supported(&g);
}

/* Does not use syrk, because it is slower for small matrices. */
static duet_status multiply_small(const product *p, T alpha, T beta, T *out)
{
    TRY(blas_prepare());
    multiply_any(p, alpha, beta, out);
    return DUET_OK;
}

static duet_status multiply_general(const product *p, T alpha, T beta, T *out)
{
    const gemm g = gemm_of(p);
    if (p->small) return multiply_small(p, alpha, beta, out);
    if (!onednn_gemm_supported(&g)) return multiply_by_blas(p, alpha, beta, out);
    const duet_status r = onednn_gemm(&g, alpha, p->a.p, p->b.p, beta, out);
    error_text before;
    if (likely(r == DUET_OK) || beta != 0) return r;
    error_keep(&before); /* OpenBLAS may have memory of earlier products */
    if (multiply_by_blas(p, alpha, beta, out) == DUET_OK) return DUET_OK;
    error_put_back(&before);
    return r;
}
#else
static bool is_small(const product *p) { return false; }
static bool uses_onednn(const product *p) { return false; }

static duet_status multiply_general(const product *p, T alpha, T beta, T *out)
{
    return multiply_by_blas(p, alpha, beta, out);
}
#endif

/* BLAS skips products with alpha or beta 0. Here they must propagate NaN and infinity. */
static bool needs_separate_scaling(const product *p)
{
    return p->k == 0 || p->alpha == 0 || (p->addend && p->beta == 0);
}

static duet_status multiply_then_scale(const product *p, const frame *f)
{
    const size_t bytes = (size_t)p->m * (size_t)p->n * sizeof(T);
    void *buffer;
    TRY(scratch_take(bytes, f, &buffer));
    T *ab = buffer;
    duet_status r = DUET_OK;
    if (p->k > 0) r = multiply(p, 1, 0, ab);
    else memset(ab, 0, bytes);
    const layout *l = p->addend ? &p->addend->at : NULL;
    const T *c = p->addend ? address(f, p->addend) : NULL;
    for (int64_t i = 0; i < p->m && r == DUET_OK; i++)
        for (int64_t j = 0; j < p->n; j++) {
            T x = p->alpha * ab[i * p->n + j];
            p->out[i * p->n + j] = c ? x + p->beta * c[i * l->stride[0] + j * l->stride[1]] : x;
        }
    scratch_give(buffer);
    return r;
}

static duet_status multiply_add(const product *p, const step *s, const frame *f)
{
    if (needs_separate_scaling(p)) return multiply_then_scale(p, f);
    if (p->addend && !(address(f, p->addend) == p->out && layout_is_dense(&p->addend->at)))
        TRY(copy_elements(p->out, &s->out[0].at, address(f, p->addend), &p->addend->at));
    return multiply(p, p->alpha, p->addend ? p->beta : 0, p->out);
}

/* ---- with an epilogue: some rows at a time, while they are in the caches of the cores ---- */

/* Rows that fill half of the caches of all cores. Fewer rows make the product slower. With OpenBLAS
 * any division makes it slower. */
enum { BLOCK_ROWS_MIN = 128 };

static int block_rows(const product *p)
{
    const int64_t fit = cpu_own_bytes / 2 * omp_get_max_threads() / (p->n * (int64_t)sizeof(T));
    const int64_t rows = larger(fit, BLOCK_ROWS_MIN), blocks = (p->m + rows - 1) / rows;
    return needs_separate_scaling(p) || !uses_onednn(p) ? p->m : (int)((p->m + blocks - 1) / blocks);
}

static product row_block(const product *p, int first, int rows)
{
    product block = *p;
    block.m = block.a.rows = rows;
    if (rows != p->m) block.a.lower = block.a.upper = false;
    block.a.p += (int64_t)first * (p->a.transposed ? 1 : p->a.ld);
    block.out += (int64_t)first * p->n;
    return block;
}

static duet_status multiply_with_epilogue(const product *p, const step *s, const frame *f)
{
    const int rows = block_rows(p);
    epilogue_cache *k;
    TRY(epilogue_cache_get(s, rows, &k));
    for (int first = 0; first < p->m; first += rows) {
        const product block = row_block(p, first, SMALLER(rows, p->m - first));
        TRY(multiply_add(&block, s, f));
        TRY(epilogue_run(block.m == rows ? &k->full : &k->remainder, s, f, block.out, block.out));
    }
    return DUET_OK;
}

duet_status TYPED(run_matmul)(const step *s, const frame *f)
{
    product p = { .m = (int)s->out[0].at.size[0],
                  .n = (int)s->out[0].at.size[1],
                  .k = (int)s->in[0].at.size[1],
                  .alpha = factor_of(s, f, 0),
                  .beta = factor_of(s, f, 1),
                  .out = address(f, &s->out[0]),
                  .addend = s->ins > 2 && !s->epilogue ? &s->in[2] : NULL };
    if (p.m == 0 || p.n == 0) return DUET_OK;
    duet_status r = blas_matrix_open(&p.a, &s->in[0], f);
    if (r == DUET_OK) r = blas_matrix_open(&p.b, &s->in[1], f);
    find_triangle(&p.a, &s->in[0], f);
    find_triangle(&p.b, &s->in[1], f);
    p.small = is_small(&p);
    if (r == DUET_OK) r = s->epilogue ? multiply_with_epilogue(&p, s, f) : multiply_add(&p, s, f);
    scratch_give(p.a.copy);
    scratch_give(p.b.copy);
    return r;
}

/* ---- batched products ---- */

/* The first matrix of a batch, and the strides of the batch axes. */
typedef struct batched_matrix {
    blas_matrix first;
    layout batch;
} batched_matrix;

/* The layout of axes first .. end - 1. */
static layout axes_from(const layout *l, int first, int end)
{
    layout r = { .type = l->type, .rank = end - first };
    for (int i = 0; i < r.rank; i++) {
        r.size[i] = l->size[first + i];
        r.stride[i] = l->stride[first + i];
    }
    return r;
}

/* A dense copy. Matrices that are repeated along the batch axes are copied once. */
static duet_status batched_matrix_copy(batched_matrix *p, const operand *o, const frame *f)
{
    operand distinct = *o;
    layout dense;
    for (int i = 0; i < p->batch.rank; i++)
        if (!o->at.stride[i]) distinct.at.size[i] = 1;
    layout_dense(&dense, o->at.type, distinct.at.rank, distinct.at.size);
    TRY(scratch_copy(&distinct, f, &p->first.copy));
    for (int i = 0; i < p->batch.rank; i++) p->batch.stride[i] = o->at.stride[i] ? dense.stride[i] : 0;
    p->first.p = p->first.copy;
    p->first.ld = p->first.cols;
    return DUET_OK;
}

static duet_status batched_matrix_open(batched_matrix *p, const operand *o, const frame *f)
{
    const int batch_axes = o->at.rank - 2;
    const layout last = axes_from(&o->at, batch_axes, o->at.rank);
    *p = (batched_matrix){
        .first = { .p = address(f, o), .rows = (int)last.size[0], .cols = (int)last.size[1] },
        .batch = axes_from(&o->at, 0, batch_axes)
    };
    if (find_ld(&p->first, &last)) return DUET_OK;
    return batched_matrix_copy(p, o, f);
}

static int64_t batch_offset(const layout *batch, int64_t i)
{
    int64_t at = 0;
    for (int a = batch->rank; a-- > 0;) {
        at += i % batch->size[a] * batch->stride[a];
        i /= batch->size[a];
    }
    return at;
}

static product batch_item(const product *p, const batched_matrix *a, const batched_matrix *b, int64_t i)
{
    product item = *p;
    item.a.p += batch_offset(&a->batch, i);
    item.b.p += batch_offset(&b->batch, i);
    item.out += i * p->m * p->n;
    return item;
}

/* The matrices one by one, if BLAS would not propagate NaN. */
static duet_status multiply_batch_then_scale(const product *p, const batched_matrix *a,
                                             const batched_matrix *b, int64_t count, const step *s,
                                             const frame *f)
{
    operand addend = s->in[2];
    const int axes = p->addend ? addend.at.rank - 2 : 0;
    const layout batch_axes = axes_from(&addend.at, 0, axes),
                 last = axes_from(&addend.at, axes, addend.at.rank);
    for (int64_t i = 0; i < count; i++) {
        void *const addend_data[1] = { p->addend ? (T *)address(f, &s->in[2]) + batch_offset(&batch_axes, i)
                                                 : NULL };
        const frame own = { .data = addend_data, .num = f->num, .queue = f->queue };
        product item = batch_item(p, a, b, i);
        addend = (operand){ 0, last };
        item.addend = p->addend ? &addend : NULL;
        TRY(multiply_then_scale(&item, &own));
    }
    return DUET_OK;
}

typedef struct batch_work {
    const product *first;
    const batched_matrix *a, *b;
    int64_t count;
    int *failed;
} batch_work;

static void multiply_part(const void *work, int t, int threads)
{
    const batch_work *all = work;
    const product *p = all->first;
    for (int64_t i = part_of(all->count, t, threads); i < part_of(all->count, t + 1, threads); i++) {
        const product item = batch_item(p, all->a, all->b, i);
        const duet_status r = multiply(&item, p->alpha, p->addend ? p->beta : 0, item.out);
        if (r != DUET_OK) __atomic_store_n(all->failed, (int)r, __ATOMIC_RELAXED);
    }
}

/* Large matrices are computed one by one with all threads, small ones in different threads. */
static duet_status multiply_batch(const product *p, const batched_matrix *a, const batched_matrix *b,
                                  int64_t count)
{
    const double seconds = 2.0 * p->m * p->n * p->k * SECONDS_PER_FLOP;
    const int threads = seconds > 50 * cpu_serial_seconds ? 1 : threads_for(seconds * (double)count);
    int failed = DUET_OK;
    by_threads(threads, multiply_part, &(batch_work){ p, a, b, count, &failed });
    if (failed != DUET_OK) return fail((duet_status)failed, "a product among %lld failed", (long long)count);
    return DUET_OK;
}

static duet_status multiply_all(const product *p, const batched_matrix *a, const batched_matrix *b,
                                int64_t count, const step *s, const frame *f)
{
    if (needs_separate_scaling(p)) return multiply_batch_then_scale(p, a, b, count, s, f);
    if (p->addend && !(address(f, p->addend) == p->out && layout_is_dense(&p->addend->at)))
        TRY(copy_elements(p->out, &s->out[0].at, address(f, p->addend), &p->addend->at));
    return multiply_batch(p, a, b, count);
}

duet_status TYPED(run_batched)(const step *s, const frame *f)
{
    batched_matrix a, b = { 0 };
    const int last = s->out[0].at.rank - 1;
    const int64_t matrix = s->out[0].at.size[last - 1] * s->out[0].at.size[last];
    product p = { .m = (int)s->out[0].at.size[last - 1],
                  .n = (int)s->out[0].at.size[last],
                  .k = (int)s->in[0].at.size[last],
                  .alpha = factor_of(s, f, 0),
                  .beta = factor_of(s, f, 1),
                  .out = address(f, &s->out[0]),
                  .addend = s->ins > 2 ? &s->in[2] : NULL };
    if (!layout_count(&s->out[0].at)) return DUET_OK;
    duet_status r = batched_matrix_open(&a, &s->in[0], f);
    if (r == DUET_OK) r = batched_matrix_open(&b, &s->in[1], f);
    p.a = a.first;
    p.b = b.first;
    p.small = is_small(&p);
    if (r == DUET_OK) r = multiply_all(&p, &a, &b, layout_count(&s->out[0].at) / matrix, s, f);
    scratch_give(a.first.copy);
    scratch_give(b.first.copy);
    return r;
}
