/* linalg_stack.c - see linalg_stack.h. */
#include "linalg.h" /* before step_kinds.h, which has a type `part` */

#include "linalg_small.h"
#include "linalg_stack.h"
#include "scratch.h"

/* Results in scratch memory, and the addresses of all operands. */
typedef struct stack {
    step s;
    void *data[LINALG_OPERANDS];
    int taken; /* results that have memory */
} stack;

static duet_status stack_open(stack *k, const step *s, const frame *f, const queue *q)
{
    *k = (stack){ .s = *s };
    for (int i = 0; i < s->ins; i++) {
        k->data[s->outs + i] = f->data[s->in[i].slot];
        k->s.in[i].slot = s->outs + i;
    }
    for (int i = 0; i < s->outs; i++) {
        const layout *at = &s->out[i].at;
        const size_t bytes = (size_t)layout_count(at) * dtypes[at->type].bytes;
        layout_dense(&k->s.out[i].at, at->type, at->rank, at->size);
        k->s.out[i].slot = i;
        TRY(scratch_acquire_workspace(q->device, bytes ? bytes : 1, q->index, &k->data[i]));
        k->taken++;
    }
    return DUET_OK;
}

static void stack_close(stack *k, const queue *q)
{
    while (k->taken > 0) scratch_release(q->device, k->data[--k->taken], q->index);
}

static duet_status stack_write(const stack *k, const step *s, const frame *f, queue *q)
{
    for (int i = 0; i < s->outs; i++) {
        const part x = { .p = k->data[i], .at = &k->s.out[i].at };
        if (!layout_count(x.at)) continue;
        const duet_status r = gpu_apply(OP_LOAD, f->data[s->out[i].slot], &s->out[i].at, &x, 1, q);
        if (r != DUET_OK) return i ? half_written(r) : r;
    }
    return DUET_OK;
}

/* ---- small matrices: a thread block for each ---- */

/* Is the step among those of core/small_matrix.h, with matrices small enough for a thread block? */
static bool small_work(const step *s, const linalg_batch *b, small_args *a)
{
    if (!small_matrix_work(s, b, a) || a->m > SMALL_MOST || a->n > SMALL_MOST) return false;
    a->lanes = small_lanes(a);
    return a->sides <= SMALL_SIDES_MOST && b->count <= INT32_MAX && small_bytes_apart(a) <= SMALL_BYTES_MOST;
}

/* Memory for small matrices: dense copies of operands, and which matrices are left. */
typedef struct small_memory {
    void *in[2]; /* NULL: the operand is read in place */
    int *left;
    int *left_host; /* by matrix; host memory */
} small_memory;

static duet_status small_take(const queue *q, int device, size_t bytes, void *p)
{
    void **to = p;
    return scratch_acquire_workspace(device, bytes ? bytes : 1, q->index, to);
}

static void small_close(small_memory *m, const queue *q)
{
    for (int k = 0; k < 2; k++)
        if (m->in[k]) scratch_release(q->device, m->in[k], q->index);
    if (m->left) scratch_release(q->device, m->left, q->index);
    if (m->left_host) scratch_release(HOST, m->left_host, q->index);
}

static bool same_places(const layout *x, const layout *y)
{
    for (int a = 0; a < x->rank; a++)
        if (x->size[a] > 1 && x->stride[a] != y->stride[a]) return false;
    return true;
}

/* Operand i without gaps, broadcast to the leading axes: itself, or a copy. */
static duet_status dense_operand(const stack *k, int i, const linalg_batch *b, queue *q, small_memory *m,
                                 const void **p)
{
    void *const from_here = k->data[k->s.outs + i];
    const layout *l = &k->s.in[i].at;
    const int own = l->rank < 2 ? l->rank : 2;
    shape all = b->lead;
    layout to;
    for (int a = 0; a < own; a++) all.size[all.rank++] = l->size[l->rank - own + a];
    const layout from = layout_broadcast(l, &all);
    layout_dense(&to, l->type, all.rank, all.size);
    *p = from_here;
    if (same_places(&from, &to)) return DUET_OK;
    TRY(small_take(q, q->device, (size_t)layout_count(&to) * dtypes[l->type].bytes, &m->in[i]));
    *p = m->in[i];
    if (!layout_count(&to)) return DUET_OK;
    return gpu_apply(OP_LOAD, m->in[i], &to, &(part){ .p = from_here, .at = &from }, 1, q);
}

/* Computes the matrices that need no further care. *any: m->left_host says which do. */
static duet_status run_small(const stack *k, const linalg_batch *b, small_args *a, queue *q, small_memory *m,
                             bool *any)
{
    const size_t bytes = (size_t)b->count * sizeof *m->left;
    int *some_left;
    const void *in[2] = { 0 };
    for (int i = 0; i < k->s.ins; i++) TRY(dense_operand(k, i, b, q, m, &in[i]));
    TRY(small_take(q, q->device, bytes + sizeof *m->left, &m->left));
    TRY(small_take(q, HOST, bytes + sizeof *m->left, &m->left_host));
    a->a = in[0];
    a->b = in[1];
    for (int i = 0; i < k->s.outs; i++) a->out[i] = k->data[i];
    a->left = m->left;
    a->some_left = m->left + b->count;
    some_left = m->left_host + b->count;
    TRY(CUDA(cudaMemsetAsync, a->some_left, 0, sizeof *some_left, q->stream));
    gpu_queue_wrote_anything(q);
    COUNT(launches);
    TRY(CUDA(small_launch, a, q->stream));
    TRY(CUDA(cudaMemcpyAsync, some_left, a->some_left, sizeof *some_left, cudaMemcpyDeviceToHost, q->stream));
    TRY(gpu_stream_wait(q->device, q->stream));
    COUNT(synchronisations);
    *any = *some_left != 0;
    if (!*any) return DUET_OK;
    TRY(CUDA(cudaMemcpyAsync, m->left_host, m->left, bytes, cudaMemcpyDeviceToHost, q->stream));
    TRY(gpu_stream_wait(q->device, q->stream));
    COUNT(synchronisations);
    return DUET_OK;
}

int gpu_single_most = 32;

/* The largest single matrix for which the kernel of stacks is faster than cuSOLVER (measured on an H200). */
static int single_most(const small_args *a)
{
    const bool iterates = a->what == SMALL_EIGVALSH || a->what == SMALL_EIGH || a->what == SMALL_SVDVALS;
    const int most = iterates ? a->wide ? 8 : 12 : 32;
    return most < gpu_single_most ? most : gpu_single_most;
}

bool gpu_linear_is_small(const step *s)
{
    small_args a;
    const linalg_batch b = linalg_batch_of(s);
    if (!small_work(s, &b, &a)) return false;
    const int most = single_most(&a);
    return b.lead.rank || (a.m && a.n && a.m <= most && a.n <= most && a.sides <= most);
}

/* ---- stacks ---- */

static duet_status run_one(const stack *k, const linalg_batch *b, int64_t matrix, const frame *f, queue *q,
                           duet_status one(const step *s, const frame *f, queue *q))
{
    const step of = linalg_batch_step(&k->s, b);
    void *own[LINALG_OPERANDS];
    frame g = *f;
    linalg_batch_data(&k->s, b, matrix, k->data, own);
    g.data = own;
    const duet_status r = one(&of, &g, q);
    if (!b->lead.rank) return r;
    const bool no_result = r == DUET_SINGULAR || r == DUET_NOT_FINITE || r == DUET_NO_CONVERGENCE;
    return no_result ? linalg_batch_failed(b, matrix, r) : r;
}

duet_status gpu_linear_stack(const step *s, const frame *f, queue *q, const linalg_batch *b,
                             duet_status one(const step *s, const frame *f, queue *q))
{
    stack k;
    small_args a;
    small_memory m = { 0 };
    duet_status r = stack_open(&k, s, f, q);
    const bool is_small = small_work(s, b, &a);
    bool any = true;
    if (r == DUET_OK && is_small) r = run_small(&k, b, &a, q, &m, &any);
    for (int64_t i = 0; any && i < b->count && r == DUET_OK; i++)
        if (!is_small || m.left_host[i]) r = run_one(&k, b, i, f, q, one);
    if (r == DUET_OK) r = stack_write(&k, s, f, q);
    small_close(&m, q);
    stack_close(&k, q);
    return r;
}
