/* matmul_tmpl.c - products: one call of CBLAS, after operands that it cannot walk were copied. */
#include "blas.h"
#include "epilogue.h"
#include "gemm.h"
#include "threads.h"
#include <limits.h>

/* A matrix as CBLAS takes it: rows `ld` apart, of the matrix or of its transpose. */
typedef struct factor {
    const T *p;
    int rows, cols, ld;
    bool turned;
    void *copy;
} factor;

typedef struct product {
    factor a, b;
    int m, n, k;
    T alpha, beta;
    T *out;
    const operand *addend; /* NULL: none */
} product;

/* Can `lines` lines of `length` elements be walked with unit stride in the line? */
static bool lines_walk(int64_t lines, int64_t length, int64_t apart, int64_t unit, int *ld)
{
    int64_t d = lines <= 1 ? length : apart;
    if (d < 1) d = 1;
    if ((length > 1 && unit != 1) || (lines > 1 && apart < (length > 1 ? length : 1)) || d > INT_MAX)
        return false;
    *ld = (int)d;
    return true;
}

static bool walks(factor *r, const layout *l)
{
    if (lines_walk(l->size[0], l->size[1], l->stride[0], l->stride[1], &r->ld)) return true;
    return r->turned = lines_walk(l->size[1], l->size[0], l->stride[1], l->stride[0], &r->ld);
}

static duet_status factor_open(factor *r, const operand *o, const frame *f)
{
    *r = (factor){ .p = address(f, o), .rows = (int)o->at.size[0], .cols = (int)o->at.size[1] };
    if (walks(r, &o->at)) return DUET_OK;
    TRY(scratch_copy(o, f, &r->copy));
    r->p = r->copy, r->ld = r->cols;
    return DUET_OK;
}

/* y = alpha op(a) x + beta y, where op(a) is a or its transpose. */
static void matrix_vector(const factor *a, bool transposed, T alpha, const T *x, int x_apart, T beta, T *y)
{
    int rows = a->turned ? a->cols : a->rows, cols = a->turned ? a->rows : a->cols;
    bool trans = transposed != a->turned;
    if (beta == 0) memset(y, 0, (size_t)(trans ? cols : rows) * sizeof(T));
    BLAS(gemv)
    (CblasRowMajor, trans ? CblasTrans : CblasNoTrans, rows, cols, alpha, a->p, a->ld, x, x_apart, beta, y,
     1);
}

/* A matrix of one row or column is a vector: how far its elements stand apart. */
static int apart(const factor *v)
{
    bool row = v->rows == 1;
    return row == v->turned ? v->ld : 1;
}

/* A matrix times its own transpose is symmetric: half of it is computed. */
enum { LEAST_SQUARE = 48, MIRRORED = 32 };

static bool is_square(const product *p)
{
    return p->m >= LEAST_SQUARE && p->m == p->n && p->a.p == p->b.p && p->a.ld == p->b.ld &&
           p->a.turned != p->b.turned;
}

static void mirror(T *out, int64_t n)
{
    for (int64_t i = 0; i < n; i += MIRRORED)
        for (int64_t j = 0; j <= i; j += MIRRORED)
            for (int64_t r = i; r < SMALLER(i + MIRRORED, n); r++)
                for (int64_t c = j; c < SMALLER(j + MIRRORED, r); c++) out[c * n + r] = out[r * n + c];
}

static void multiply_by_itself(const product *p, T alpha, T *out)
{
    memset(out, 0, (size_t)p->m * (size_t)p->m * sizeof(T));
    BLAS(syrk)
    (CblasRowMajor, CblasLower, p->a.turned ? CblasTrans : CblasNoTrans, p->m, p->k, alpha, p->a.p, p->a.ld,
     0, out, p->m);
    mirror(out, p->m);
}

static void multiply_by_blas(const product *p, T alpha, T beta, T *out)
{
    if (beta == 0 && is_square(p)) multiply_by_itself(p, alpha, out);
    else if (p->n == 1) matrix_vector(&p->a, false, alpha, p->b.p, apart(&p->b), beta, out);
    else if (p->m == 1) matrix_vector(&p->b, true, alpha, p->a.p, apart(&p->a), beta, out);
    else BLAS(gemm)
    (CblasRowMajor, p->a.turned ? CblasTrans : CblasNoTrans, p->b.turned ? CblasTrans : CblasNoTrans, p->m,
     p->n, p->k, alpha, p->a.p, p->a.ld, p->b.p, p->b.ld, beta, out, p->n);
    cpu_blas_used();
}

#ifdef T_f32
static gemm gemm_of(const product *p)
{
    return (gemm){ p->a.turned, p->b.turned, p->m, p->n, p->k, p->a.ld, p->b.ld, p->n };
}

static bool by_onednn(const product *p)
{
    const gemm g = gemm_of(p);
    return onednn_takes(&g);
}

static duet_status multiply(const product *p, T alpha, T beta, T *out)
{
    const gemm g = gemm_of(p);
    if (onednn_takes(&g)) return onednn_gemm(&g, alpha, p->a.p, p->b.p, beta, out);
    return multiply_by_blas(p, alpha, beta, out), DUET_OK;
}
#else
static bool by_onednn(const product *p) { return (void)p, false; }

static duet_status multiply(const product *p, T alpha, T beta, T *out)
{
    return multiply_by_blas(p, alpha, beta, out), DUET_OK;
}
#endif

/* BLAS skips what is multiplied by 0; here NaN and infinity show. */
static bool is_plain(const product *p) { return p->k == 0 || p->alpha == 0 || (p->addend && p->beta == 0); }

static duet_status multiply_plainly(const product *p, const frame *f)
{
    const size_t bytes = (size_t)p->m * (size_t)p->n * sizeof(T);
    void *room;
    TRY(scratch_take(bytes, f, &room));
    T *ab = room;
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
    scratch_give(room);
    return r;
}

static duet_status multiply_onto(const product *p, const step *s, const frame *f)
{
    if (is_plain(p)) return multiply_plainly(p, f);
    if (p->addend && !(address(f, p->addend) == p->out && layout_is_dense(&p->addend->at)))
        TRY(copy_elements(p->out, &s->out[0].at, address(f, p->addend), &p->addend->at));
    return multiply(p, p->alpha, p->addend ? p->beta : 0, p->out);
}

/* ---- finished products: some rows at a time, which are then still in the threads' own caches ---- */

/* As many as fill half of the threads' own caches; fewer rows slow the product down. OpenBLAS is slowed down by any cut. */
enum { LEAST_ROWS = 128 };

static int rows_at_once(const product *p)
{
    const int64_t fit = cpu_own_bytes / 2 * omp_get_max_threads() / (p->n * (int64_t)sizeof(T));
    const int64_t rows = fit < LEAST_ROWS ? LEAST_ROWS : fit, blocks = (p->m + rows - 1) / rows;
    return is_plain(p) || !by_onednn(p) ? p->m : (int)((p->m + blocks - 1) / blocks);
}

static product some_rows(const product *p, int first, int rows)
{
    product some = *p;
    some.m = some.a.rows = rows;
    some.a.p += (int64_t)first * (p->a.turned ? 1 : p->a.ld);
    some.out += (int64_t)first * p->n;
    return some;
}

static duet_status multiply_finished(const product *p, const step *s, const frame *f)
{
    const int rows = rows_at_once(p);
    finished *k;
    TRY(finished_keep(s, rows, &k));
    for (int first = 0; first < p->m; first += rows) {
        const product some = some_rows(p, first, SMALLER(rows, p->m - first));
        TRY(multiply_onto(&some, s, f));
        TRY(finishing_run(some.m == rows ? &k->whole : &k->rest, s, f, some.out, some.out));
    }
    return DUET_OK;
}

duet_status TYPED(run_matmul)(const step *s, const frame *f)
{
    product p = { .m = (int)s->out[0].at.size[0],
                  .n = (int)s->out[0].at.size[1],
                  .k = (int)s->in[0].at.size[1],
                  .alpha = s->nums > 0 ? (T)f->num[s->num[0]] : 1,
                  .beta = s->nums > 1 ? (T)f->num[s->num[1]] : 1,
                  .out = address(f, &s->out[0]),
                  .addend = s->ins > 2 && !s->epilogue ? &s->in[2] : NULL };
    if (p.m == 0 || p.n == 0) return DUET_OK;
    duet_status r = factor_open(&p.a, &s->in[0], f);
    if (r == DUET_OK) r = factor_open(&p.b, &s->in[1], f);
    if (r == DUET_OK) r = s->epilogue ? multiply_finished(&p, s, f) : multiply_onto(&p, s, f);
    scratch_give(p.a.copy), scratch_give(p.b.copy);
    return r;
}

/* ---- batched products: one matrix of each operand after the other, each thread with its own, or all on one ---- */

/* A factor, and how far its matrices are apart along the leading axes. */
typedef struct pile {
    factor first;
    layout batch;
} pile;

/* The leading axes, or the last two. */
static layout axes_from(const layout *l, int first, int end)
{
    layout r = { .type = l->type, .rank = end - first };
    for (int i = 0; i < r.rank; i++) r.size[i] = l->size[first + i], r.stride[i] = l->stride[first + i];
    return r;
}

/* A dense copy, in which what repeats stands once. */
static duet_status pile_copy(pile *p, const operand *o, const frame *f)
{
    operand once = *o;
    layout dense;
    for (int i = 0; i < p->batch.rank; i++)
        if (!o->at.stride[i]) once.at.size[i] = 1;
    layout_dense(&dense, o->at.type, once.at.rank, once.at.size);
    TRY(scratch_copy(&once, f, &p->first.copy));
    for (int i = 0; i < p->batch.rank; i++) p->batch.stride[i] = o->at.stride[i] ? dense.stride[i] : 0;
    p->first.p = p->first.copy, p->first.ld = p->first.cols;
    return DUET_OK;
}

static duet_status pile_open(pile *p, const operand *o, const frame *f)
{
    const int leading = o->at.rank - 2;
    const layout last = axes_from(&o->at, leading, o->at.rank);
    *p = (pile){ .first = { .p = address(f, o), .rows = (int)last.size[0], .cols = (int)last.size[1] },
                 .batch = axes_from(&o->at, 0, leading) };
    return walks(&p->first, &last) ? DUET_OK : pile_copy(p, o, f);
}

static int64_t offset_of(const layout *batch, int64_t i)
{
    int64_t at = 0;
    for (int a = batch->rank; a-- > 0;) at += i % batch->size[a] * batch->stride[a], i /= batch->size[a];
    return at;
}

static product one_of(const product *p, const pile *a, const pile *b, int64_t i)
{
    product one = *p;
    one.a.p += offset_of(&a->batch, i), one.b.p += offset_of(&b->batch, i), one.out += i * p->m * p->n;
    return one;
}

/* Matrices in which BLAS would not see a NaN, one by one. */
static duet_status multiply_pile_plainly(const product *p, const pile *a, const pile *b, int64_t count,
                                         const step *s, const frame *f)
{
    operand addend = s->in[2];
    const int axes = p->addend ? addend.at.rank - 2 : 0;
    const layout leading = axes_from(&addend.at, 0, axes), last = axes_from(&addend.at, axes, addend.at.rank);
    for (int64_t i = 0; i < count; i++) {
        void *const moved[1] = { p->addend ? (T *)address(f, &s->in[2]) + offset_of(&leading, i) : NULL };
        const frame own = { .data = moved, .num = f->num, .queue = f->queue };
        product one = one_of(p, a, b, i);
        addend = (operand){ 0, last };
        one.addend = p->addend ? &addend : NULL;
        TRY(multiply_plainly(&one, &own));
    }
    return DUET_OK;
}

typedef struct piles {
    const product *first;
    const pile *a, *b;
    int64_t count;
    int *failed;
} piles;

static void multiply_some(const void *work, int t, int threads)
{
    const piles *all = work;
    const product *p = all->first;
    for (int64_t i = part_of(all->count, t, threads); i < part_of(all->count, t + 1, threads); i++) {
        const product one = one_of(p, all->a, all->b, i);
        const duet_status r = multiply(&one, p->alpha, p->addend ? p->beta : 0, one.out);
        if (r != DUET_OK) __atomic_store_n(all->failed, (int)r, __ATOMIC_RELAXED);
    }
}

/* Large ones one after the other, each by all threads. */
static duet_status multiply_pile(const product *p, const pile *a, const pile *b, int64_t count)
{
    const double seconds = 2.0 * p->m * p->n * p->k * SECONDS_PER_FLOP;
    const int threads = seconds > 50 * cpu_serial_seconds ? 1 : threads_for(seconds * (double)count);
    int failed = DUET_OK;
    by_threads(threads, multiply_some, &(piles){ p, a, b, count, &failed });
    return failed == DUET_OK ? DUET_OK
                             : fail((duet_status)failed, "a product among %lld failed", (long long)count);
}

static duet_status multiply_all(const product *p, const pile *a, const pile *b, int64_t count, const step *s,
                                const frame *f)
{
    if (is_plain(p)) return multiply_pile_plainly(p, a, b, count, s, f);
    if (p->addend && !(address(f, p->addend) == p->out && layout_is_dense(&p->addend->at)))
        TRY(copy_elements(p->out, &s->out[0].at, address(f, p->addend), &p->addend->at));
    return multiply_pile(p, a, b, count);
}

duet_status TYPED(run_batched)(const step *s, const frame *f)
{
    pile a, b = { 0 };
    const int last = s->out[0].at.rank - 1;
    const int64_t matrix = s->out[0].at.size[last - 1] * s->out[0].at.size[last];
    product p = { .m = (int)s->out[0].at.size[last - 1],
                  .n = (int)s->out[0].at.size[last],
                  .k = (int)s->in[0].at.size[last],
                  .alpha = s->nums > 0 ? (T)f->num[s->num[0]] : 1,
                  .beta = s->nums > 1 ? (T)f->num[s->num[1]] : 1,
                  .out = address(f, &s->out[0]),
                  .addend = s->ins > 2 ? &s->in[2] : NULL };
    if (!layout_count(&s->out[0].at)) return DUET_OK;
    duet_status r = pile_open(&a, &s->in[0], f);
    if (r == DUET_OK) r = pile_open(&b, &s->in[1], f);
    p.a = a.first, p.b = b.first;
    if (r == DUET_OK) r = multiply_all(&p, &a, &b, layout_count(&s->out[0].at) / matrix, s, f);
    scratch_give(a.first.copy), scratch_give(b.first.copy);
    return r;
}
