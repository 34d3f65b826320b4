/* kron.c - the Kronecker product: every element of x times every element of y. A row
 * lies along the last axis. Each row of the result is made of one row of x and one row of y. */
#include "cpu_kernels.h"
#include "dtype.h"
#include "min_max.h"
#include "threads.h"

typedef struct kron {
    layout x, y, out; /* all of one rank, at least 1 */
    const void *x_at, *y_at;
    void *out_at;
    int64_t rows;
} kron;

/* Inserts axes of one element in front until the layout has the rank of the result. */
static layout with_rank(const layout *l, int rank)
{
    layout r = *l;
    while (r.rank < rank) layout_insert(&r, 0, 1, 1);
    return r;
}

/* The offsets of the rows of x and y that make row r of the result. */
static void find_rows(const kron *k, int64_t r, int64_t *x, int64_t *y)
{
    *x = *y = 0;
    for (int a = k->out.rank - 1; a-- > 0; r /= k->out.size[a]) {
        const int64_t i = r % k->out.size[a];
        *x += i / k->y.size[a] * k->x.stride[a];
        *y += i % k->y.size[a] * k->y.stride[a];
    }
}

#define KRON_ROWS(type, T)                                                                                   \
    static void rows_##type(const void *work, int t, int threads)                                            \
    {                                                                                                        \
        const kron *k = work;                                                                                \
        const int last = k->out.rank - 1;                                                                    \
        const int64_t n = k->x.size[last], m = k->y.size[last];                                              \
        for (int64_t r = part_of(k->rows, t, threads); r < part_of(k->rows, t + 1, threads); r++) {          \
            int64_t x, y;                                                                                    \
            find_rows(k, r, &x, &y);                                                                         \
            const T *u = (const T *)k->x_at + x, *v = (const T *)k->y_at + y;                                \
            T *out = (T *)k->out_at + r * n * m;                                                             \
            for (int64_t i = 0; i < n; i++)                                                                  \
                for (int64_t j = 0; j < m; j++)                                                              \
                    out[i * m + j] = u[i * k->x.stride[last]] * v[j * k->y.stride[last]];                    \
        }                                                                                                    \
    }
KRON_ROWS(f32, float)
KRON_ROWS(f64, double)
KRON_ROWS(i64, uint64_t) /* modulo 2^64 */

static duet_status run(const step *s, const frame *f)
{
    static share_function *const rows[] = {
        [DUET_F32] = rows_f32, [DUET_F64] = rows_f64, [DUET_I64] = rows_i64
    };
    const layout *out = &s->out[0].at;
    const int64_t count = layout_count(out);
    const int rank = (int)larger(out->rank, 1);
    if (!count) return DUET_OK;
    kron k = { .x_at = address(f, &s->in[0]),
               .y_at = address(f, &s->in[1]),
               .out_at = address(f, &s->out[0]) };
    k.x = with_rank(&s->in[0].at, rank);
    k.y = with_rank(&s->in[1].at, rank);
    k.out = with_rank(out, rank);
    k.rows = count / k.out.size[rank - 1];
    by_threads(threads_for((double)count * 4 * SECONDS_PER_ROUNDED), rows[out->type], &k);
    return DUET_OK;
}

static const char *unsupported(const step *s)
{
    const duet_dtype type = s->out[0].at.type;
    if (type != DUET_F32 && type != DUET_F64 && type != DUET_I64) return "the element type is not supported";
    return s->in[0].at.type == type && s->in[1].at.type == type
               ? NULL
               : "the operands must have the same element type";
}

const cpu_kernel cpu_kernel_kron = { unsupported, run, cost_of_pass };
