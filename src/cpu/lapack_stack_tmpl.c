/* lapack_stack_tmpl.c - runs a step of linear algebra: of one matrix, or of each matrix of a stack. Template.
 *
 * Threads divide the matrices of a stack, and each call of LAPACK uses one thread. Few large matrices are
 * computed one after the other instead, each by all threads of BLAS. The threads set no error text and take
 * no memory from the pool. What they could not compute, the calling thread computes again: its status is
 * that of the step. Results are computed in scratch memory, since none may be written if a later matrix
 * has no result. */
#include "dtype.h"
#include "lapack_workspace.h"
#include "linalg_batch.h"
#include "small_matrix.h"

/* ---- matrices so small that the calls of LAPACK would take most of the time ---- */

#undef NAME
#define QUALIFIERS static inline
#define E          element
#define R          T
#define NAME(f)    f
#define LANE       0
#define LANES      1
#define SYNC()     ((void)0)
#define LARGEST    LARGE_EXPONENT
#define LEAST      SMALL_EXPONENT
static inline element element_of(T re, T im)
{
    element x = 0;
    const T part[] = { re, im };
    memcpy(&x, part, sizeof x);
    return x;
}
static inline T imaginary_part(element x) { return PARTS > 1 ? ((const T *)&x)[PARTS - 1] : 0; }
#define RE(x)   real_part(x)
#define IM(x)   imaginary_part(x)
#define SIZE(x) ((T)(fabs((double)RE(x)) + fabs((double)IM(x))))
#define MAKE    element_of
#define CONJ(x) element_of(RE(x), -IM(x))
#include "small_matrix_ops.h"

/* LAPACK computes a Cholesky factor faster from a smaller size on. */
enum { TINY_SIZE = 8, TINY_CHOLESKY = 4, TINY_SIDES = 16 };

/* Copies matrix or vectors, as rows without gaps. */
static void copy_tiny(const layout *l, const element *from, element *to)
{
    const int64_t rows = l->size[0], cols = l->rank > 1 ? l->size[1] : 1;
    const int64_t row = l->stride[0], col = l->rank > 1 ? l->stride[1] : 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) to[i * cols + j] = from[i * row + j * col];
}

/* Computes one matrix into results without gaps. False: it needs more care. */
static bool run_tiny(const small_args *work, const step *one, void *const *own)
{
    element a[TINY_SIZE * TINY_SIZE], b[TINY_SIZE * TINY_SIDES];
    _Alignas(64) char memory[(TINY_SIZE * (TINY_SIZE + 1) + 2 * TINY_SIZE) * sizeof(element)];
    small_args how = *work;
    int left = 0;
    copy_tiny(&one->in[0].at, own[one->outs], a);
    if (one->ins > 1) copy_tiny(&one->in[1].at, own[one->outs + 1], b);
    how.a = a;
    how.b = b;
    how.out = own[0];
    how.more = one->outs > 1 ? own[1] : NULL;
    how.left = &left;
    small_matrix(&how, 0, memory);
    return !left;
}

/* ---- stacks ---- */

/* Matrices up to this size are not divided among the threads of BLAS. */
enum { SMALL_SIZE = 128 };
#define ARENA_MOST        ((size_t)32 << 20)  /* of a thread */
#define ARENAS_MOST       ((size_t)256 << 20) /* of all threads */
#define SECONDS_PER_CALLS 1e-6                /* of the calls for one matrix, however small */

typedef struct stack {
    const step *s; /* with results in scratch memory */
    const linalg_batch *b;
    const frame *f;
    step one;
    char *arenas;
    size_t arena_bytes; /* of a thread */
    bool *done;         /* by matrix */
    bool is_tiny;
    small_args tiny;
} stack;

static duet_status run_one(const stack *k, int64_t matrix, arena a)
{
    void *own[LINALG_OPERANDS];
    frame f = *k->f;
    linalg_batch_data(k->s, k->b, matrix, k->f->data, own);
    if (k->is_tiny && run_tiny(&k->tiny, &k->one, own)) return DUET_OK;
    f.data = own;
    workspace d = { .s = &k->one, .f = &f, .arena = a };
    const duet_status r = LINEAR(run_matrix)(&d);
    workspace_clear(&d);
    return r;
}

static void run_share(const void *work, int t, int threads)
{
    const stack *k = work;
    const int64_t from = part_of(k->b->count, t, threads), to = part_of(k->b->count, t + 1, threads);
    const arena mine = { k->arenas + (size_t)t * k->arena_bytes, k->arena_bytes, 0 };
    const bool was_quiet = linalg_quiet;
    linalg_quiet = true;
    for (int64_t i = from; i < to; i++) k->done[i] = run_one(k, i, mine) == DUET_OK;
    linalg_quiet = was_quiet;
}

/* What one matrix may need: copies of the operands, vectors, and the workspace of LAPACK. */
static size_t arena_bytes_of(const step *s)
{
    enum { COPIES = 24, MORE = 128 << 10, LINE = 64 };
    const double m = (double)linalg_rows(s), n = (double)linalg_cols(s), sides = (double)linalg_sides(s);
    const double bytes = COPIES * (m * n + fmax(m, n) * (sides + 1)) * sizeof(element) + MORE;
    return bytes > (double)ARENA_MOST ? 0 : (size_t)bytes / LINE * LINE;
}

/* The number of threads that divide the matrices; 0: none, since BLAS divides each matrix. */
static int threads_of(const stack *k)
{
    const int64_t n = larger(linalg_rows(k->s), linalg_cols(k->s));
    const size_t all = (size_t)threads_here() * k->arena_bytes;
    if (!all || all > ARENAS_MOST || (n > SMALL_SIZE && (cpu_blas_apart || k->b->count < threads_here())))
        return 0;
    const int threads = threads_for(k->s->flops * SECONDS_PER_FLOP + (double)k->b->count * SECONDS_PER_CALLS);
    return (int)smaller(threads, k->b->count) > 1 ? threads : 1;
}

static duet_status run_all(workspace *d, stack *k)
{
    const int threads = threads_of(k);
    TRY(workspace_take(d, k->b->count, sizeof *k->done, &k->done));
    memset(k->done, 0, (size_t)k->b->count * sizeof *k->done);
    if (threads) {
        TRY(workspace_take(d, threads, k->arena_bytes, &k->arenas));
        by_threads(threads, run_share, k);
    }
    for (int64_t i = 0; i < k->b->count; i++) {
        if (k->done[i]) continue;
        const duet_status r = run_one(k, i, (arena){ 0 });
        if (r != DUET_OK) return linalg_batch_failed(k->b, i, r);
    }
    return DUET_OK;
}

/* Gives s dense results in scratch memory. */
static duet_status results_take(workspace *d, step *s, void *data[LINALG_OPERANDS])
{
    for (int k = 0; k < s->ins; k++) {
        data[s->outs + k] = d->f->data[s->in[k].slot];
        s->in[k].slot = s->outs + k;
    }
    for (int k = 0; k < s->outs; k++) {
        const layout at = s->out[k].at;
        s->out[k].slot = k;
        layout_dense(&s->out[k].at, at.type, at.rank, at.size);
        TRY(workspace_take(d, layout_count(&at), dtypes[at.type].bytes, &data[k]));
    }
    return DUET_OK;
}

static duet_status run_stack(workspace *d, const linalg_batch *b)
{
    step s = *d->s;
    void *data[LINALG_OPERANDS];
    frame f = *d->f;
    TRY(results_take(d, &s, data));
    f.data = data;
    stack k = {
        .s = &s, .b = b, .f = &f, .one = linalg_batch_step(&s, b), .arena_bytes = arena_bytes_of(&s)
    };
    k.is_tiny = small_matrix_work(&s, b, &k.tiny) && k.tiny.sides <= TINY_SIDES &&
                k.tiny.n <= (k.tiny.what == SMALL_CHOLESKY ? TINY_CHOLESKY : TINY_SIZE);
    TRY(run_all(d, &k));
    for (int i = 0; i < s.outs; i++)
        if (layout_count(&s.out[i].at))
            TRY(copy_elements(address(d->f, &d->s->out[i]), &d->s->out[i].at, data[i], &s.out[i].at));
    return DUET_OK;
}

duet_status LINEAR(run_linear)(const step *s, const frame *f)
{
    const linalg_batch b = linalg_batch_of(s);
    workspace d = { .s = s, .f = f };
    TRY(blas_prepare());
    const duet_status r = b.lead.rank ? run_stack(&d, &b) : LINEAR(run_matrix)(&d);
    workspace_clear(&d);
    cpu_blas_used();
    return r;
}
