/* collective.c - runs collective steps in host memory: boxes with gaps are packed, exchanged and unpacked. */
#include "communicator.h"
#include "cpu_kernels.h"
#include "dtype.h"
#include "thread.h"
#include "threads.h"
#include <stdlib.h>
#include <string.h>

/* One run of a collective of this rank. */
typedef struct collective_run {
    const collective *x;
    const frame *f;
    layout in_at, out_at;
    char *in, *out;
    size_t size;                  /* of an element */
    duet_message *send, *receive; /* x->sends and x->receives of them */
    void *messages, *packed;
    char *packs, *unpacks; /* in `packed` */
} collective_run;

static bool adds(const collective_run *r) { return r->x->kind == COLLECTIVE_ADD; }

static duet_status take_memory(collective_run *r)
{
    const collective *x = r->x;
    const size_t count = (size_t)x->sends + (size_t)x->receives;
    r->messages = malloc((count + 1) * sizeof *r->send);
    if (!r->messages) return fail(DUET_NO_MEMORY, "no memory for %zu messages", count);
    r->send = r->messages;
    r->receive = r->send + x->sends;
    TRY(scratch_take(((size_t)(x->send_count + x->receive_count) + 1) * r->size, r->f, &r->packed));
    r->packs = r->packed;
    r->unpacks = r->packs + (size_t)x->send_count * r->size;
    return DUET_OK;
}

static void give_memory(collective_run *r)
{
    free(r->messages);
    scratch_give(r->packed);
}

static layout dense_box(const collective_run *r, const collective_box *b)
{
    layout l;
    layout_dense(&l, r->x->type, r->x->whole.rank, b->size);
    return l;
}

static duet_status pack(collective_run *r)
{
    char *to = r->packs;
    for (int k = 0; k < r->x->sends; k++) {
        const collective_box *b = &r->x->send[k];
        layout at, dense = dense_box(r, b);
        int64_t offset;
        const bool is_dense = collective_box_at(b, &r->in_at, &at, &offset);
        char *from = r->in + offset * (int64_t)r->size;
        r->send[k] = (duet_message){ b->peer, is_dense ? from : to, (size_t)b->count * r->size };
        if (!is_dense) TRY(copy_elements(to, &dense, from, &at));
        to += (size_t)b->count * r->size;
    }
    return DUET_OK;
}

/* Partial sums are received in scratch memory, since they are added in the order of the ranks. */
static void place_receives(collective_run *r)
{
    char *to = r->unpacks;
    for (int k = 0; k < r->x->receives; k++) {
        const collective_box *b = &r->x->receive[k];
        layout at;
        int64_t offset;
        const bool is_dense = collective_box_at(b, &r->out_at, &at, &offset);
        char *place = is_dense && !adds(r) ? r->out + offset * (int64_t)r->size : to;
        r->receive[k] = (duet_message){ b->peer, place, (size_t)b->count * r->size };
        to += (size_t)b->count * r->size;
    }
}

static duet_status unpack(const collective_run *r)
{
    for (int k = 0; k < r->x->receives; k++) {
        const collective_box *b = &r->x->receive[k];
        layout at, dense = dense_box(r, b);
        int64_t offset;
        if (collective_box_at(b, &r->out_at, &at, &offset)) continue;
        TRY(copy_elements(r->out + offset * (int64_t)r->size, &at, r->receive[k].data, &dense));
    }
    return DUET_OK;
}

static duet_status keep(const collective_run *r)
{
    layout from, to;
    int64_t from_offset, to_offset;
    if (!r->x->kept_in.count) return DUET_OK;
    collective_box_at(&r->x->kept_in, &r->in_at, &from, &from_offset);
    collective_box_at(&r->x->kept_out, &r->out_at, &to, &to_offset);
    return copy_elements(r->out + to_offset * (int64_t)r->size, &to, r->in + from_offset * (int64_t)r->size,
                         &from);
}

/* ---- sums ---- */

typedef struct sum_work {
    void *to;
    const void *x;
    int64_t count;
} sum_work;

#define ADD_ELEMENTS(type, T)                                                                                \
    static void add_##type(const void *work, int t, int threads)                                             \
    {                                                                                                        \
        const sum_work *w = work;                                                                            \
        T *to = w->to;                                                                                       \
        const T *x = w->x;                                                                                   \
        for (int64_t i = part_of(w->count, t, threads); i < part_of(w->count, t + 1, threads); i++)          \
            to[i] += x[i];                                                                                   \
    }
ADD_ELEMENTS(f32, float)
ADD_ELEMENTS(f64, double)
ADD_ELEMENTS(u32, uint32_t) /* integers modulo 2^32 or 2^64 */
ADD_ELEMENTS(u64, uint64_t)

/* The function that adds elements, and the number of additions for each element. */
static share_function *adder_of(duet_dtype type, int *each)
{
    *each = 1 + dtype_is_complex(type);
    switch (type) {
    case DUET_F32:
    case DUET_C64: return add_f32;
    case DUET_F64:
    case DUET_C128: return add_f64;
    case DUET_I32:
    case DUET_U32: return add_u32;
    case DUET_I64:
    case DUET_U64: return add_u64;
    default: return NULL;
    }
}

/* Adds the partial sums in the order of the ranks. The first one is copied to `out`. */
static duet_status add_parts(const collective_run *r)
{
    int each, k = 0;
    share_function *const add = adder_of(r->x->type, &each);
    const layout dense = dense_box(r, &r->x->kept_out);
    const int64_t count = r->x->kept_out.count;
    bool first = true;
    layout at;
    int64_t offset;
    char *own = r->packs; /* its messages have been sent */
    if (!count) return DUET_OK;
    collective_box_at(&r->x->kept_in, &r->in_at, &at, &offset);
    TRY(scratch_take((size_t)count * r->size, r->f, (void **)&own));
    duet_status s = copy_elements(own, &dense, r->in + offset * (int64_t)r->size, &at);
    for (int rank = 0; rank < r->x->c->ranks && s == DUET_OK; rank++) {
        const void *part = rank == r->x->c->rank ? own : r->receive[k++].data;
        if (first) memcpy(r->out, part, (size_t)count * r->size);
        else
            by_threads(threads_for((double)count * each * SECONDS_PER_ROUNDED), add,
                       &(sum_work){ r->out, part, count * each });
        first = false;
    }
    scratch_give(own);
    return s;
}

/* ---- the step ---- */

static duet_status exchange_boxes(collective_run *r, uint64_t word)
{
    duet_status s = take_memory(r);
    if (s == DUET_OK) s = pack(r);
    TRY(communicator_agree(r->x->c, s, word));
    place_receives(r);
    TRY(communicator_exchange(r->x->c, r->send, r->x->sends, r->receive, r->x->receives));
    COUNT_N(exchange_bytes, r->x->send_count * (int64_t)r->size);
    if (adds(r)) return add_parts(r);
    TRY(unpack(r));
    return keep(r);
}

static duet_status run_one(const collective *x, const frame *f, const layout *in_at, void *in, void *out,
                           uint64_t word)
{
    collective_run r = { .x = x, .f = f, .in_at = *in_at, .in = in, .out = out };
    layout_dense(&r.out_at, x->type, x->out.rank, x->out.size);
    r.size = dtypes[x->type].bytes;
    const duet_status s = exchange_boxes(&r, word);
    give_memory(&r);
    return s;
}

/* Computes this rank's part of the sum, then gathers the parts of all ranks. */
static duet_status run_add_to_all(const collective *x, const frame *f, const layout *in_at, void *in,
                                  void *out, uint64_t word)
{
    layout flat, dense;
    void *all = in, *part = NULL;
    duet_status s = DUET_OK;
    layout_dense(&flat, x->type, 1, x->scatter->whole.size);
    layout_dense(&dense, x->type, x->in.rank, x->in.size);
    const size_t size = dtypes[x->type].bytes;
    if (!layout_is_dense(in_at)) {
        s = scratch_take((size_t)flat.size[0] * size + 1, f, &all);
        if (s == DUET_OK) s = copy_elements(all, &dense, in, in_at);
    }
    if (s == DUET_OK) s = scratch_take((size_t)x->scatter->out.size[0] * size + 1, f, &part);
    if (s != DUET_OK) s = communicator_agree(x->c, s, word);
    else s = run_one(x->scatter, f, &flat, all, part, word);
    if (s == DUET_OK) {
        layout_dense(&flat, x->type, 1, x->scatter->out.size);
        s = run_one(x->gather, f, &flat, part, out, word);
    }
    scratch_give(part);
    if (all != in) scratch_give(all);
    return s;
}

static duet_status run_collective(const step *s, const frame *f)
{
    const collective *x = collective_of(s->attr.collective.id);
    const uint64_t word = hash_step(x->signature, (uint64_t)s->attr.collective.sequence);
    void *in = address(f, &s->in[0]), *out = address(f, &s->out[0]);
    const duet_status st = (x->scatter ? run_add_to_all : run_one)(x, f, &s->in[0].at, in, out, word);
    if (st == DUET_OK) COUNT(exchanges);
    return st;
}

static const char *unsupported(const step *s)
{
    int each;
    const collective *x = collective_of(s->attr.collective.id);
    if (x->kind == COLLECTIVE_ADD && !adder_of(x->type, &each))
        return "collective steps cannot add elements of this type";
    return NULL;
}

static double cost(const step *s, const costs *c)
{
    const collective *x = collective_of(s->attr.collective.id);
    return 20e-6 + (double)collective_bytes(x) * 2 * SECONDS_PER_BYTE;
}

static const char *algorithm(const step *s)
{
    const collective *x = collective_of(s->attr.collective.id);
    if (x->kind == COLLECTIVE_ADD) return x->to.axis < 0 ? "all-reduce" : "reduce-scatter";
    if (x->to.axis < 0) return "all-gather";
    if (x->to.parts) return "gather in a grid";
    return "all-to-all";
}

const cpu_kernel cpu_kernel_collective = { unsupported, run_collective, cost, algorithm };
