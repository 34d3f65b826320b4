/* collective.c - exchanges elements with the GPUs of the other ranks, by NCCL. Boxes with gaps are packed
 * before they are sent, and unpacked when they have arrived. */
#include "communicator.h"
#include "cuda_graph.h"
#include "dtype.h"
#include "graph_order.h"
#include "link.h"
#include "overlap.h"
#include "scratch.h"
#include "step_kinds.h"
#include "thread.h"

/* How a step is done: by messages between pairs of ranks (EXCHANGE), or by one call of NCCL. */
enum form { EXCHANGE, GATHER, REDUCE, SCATTER, REDUCE_AND_COPY };

/* A step while it runs. */
typedef struct exchange {
    const collective *c;
    gpu_link *link;
    const vendor *v;
    queue *q;
    const char *in;
    char *out, *scratch;
    size_t each; /* bytes of an element */
    link_uses uses;
    bool overlaps; /* the queue does other work during the call: gpu/overlap.h */
} exchange;

/* ---- what a step does ---- */

static const collective *collective_at(const step *s) { return collective_of(s->attr.collective.id); }

/* Has each rank the same number of elements, which follow those of the previous rank in memory? */
static bool is_even(const collective *c, const distribution *d)
{
    const int ranks = c->c->ranks;
    if (d->axis < 0 || d->parts) return false;
    for (int a = 0; a < d->axis; a++)
        if (c->whole.size[a] != 1) return false;
    for (int r = 1; r < ranks; r++)
        if (d->bounds[r + 1] - d->bounds[r] != d->bounds[1] - d->bounds[0]) return false;
    return d->bounds[0] == 0 && d->bounds[ranks] == c->whole.size[d->axis];
}

/* The same on every rank. */
static enum form form_of(const collective *c)
{
    if (c->kind == COLLECTIVE_MOVE) return c->to.axis < 0 && is_even(c, &c->from) ? GATHER : EXCHANGE;
    if (c->to.axis < 0) return REDUCE;
    return is_even(c, &c->to) ? SCATTER : REDUCE_AND_COPY;
}

/* The type of the numbers that NCCL adds; false: it cannot add them. */
static bool added_type(duet_dtype t, ncclDataType_t *type)
{
    static const struct {
        bool is_there;
        ncclDataType_t type;
    } types[DUET_DTYPE_COUNT] = {
        [DUET_F32] = { true, ncclFloat32 }, [DUET_F64] = { true, ncclFloat64 },
        [DUET_F16] = { true, ncclFloat16 }, [DUET_BF16] = { true, ncclBfloat16 },
        [DUET_I8] = { true, ncclInt8 },     [DUET_U8] = { true, ncclUint8 },
        [DUET_I32] = { true, ncclInt32 },   [DUET_U32] = { true, ncclUint32 },
        [DUET_I64] = { true, ncclInt64 },   [DUET_U64] = { true, ncclUint64 },
    };
    const duet_dtype real = dtype_part(t);
    *type = types[real].type;
    return types[real].is_there;
}

const char *gpu_collective_unsupported(const step *s)
{
    const collective *c = collective_at(s);
    ncclDataType_t type;
    if (!c->c->link) return "the GPUs of the group are not connected by NCCL";
    if (c->kind == COLLECTIVE_ADD && !added_type(c->type, &type))
        return "NCCL cannot add elements of this type";
    return NULL;
}

const char *gpu_collective_algorithm(const step *s)
{
    static const char *const texts[] = { [EXCHANGE] = "NCCL send and receive",
                                         [GATHER] = "NCCL all-gather",
                                         [REDUCE] = "NCCL all-reduce",
                                         [SCATTER] = "NCCL reduce-scatter",
                                         [REDUCE_AND_COPY] = "NCCL all-reduce of a copy" };
    return texts[form_of(collective_at(s))];
}

/* Estimates for GPUs that NVLink connects. */
#define LINK_SECONDS 20e-6
#define LINK_RATE    150e9 /* bytes a second in each direction */

double gpu_collective_cost(const step *s, const costs *c)
{
    const collective *k = collective_at(s);
    const double each = (double)dtypes[k->type].bytes, ranks = k->c->ranks,
                 all = (double)shape_count(&k->whole) * each * (ranks - 1) / ranks,
                 sent = (double)k->send_count * each, received = (double)k->receive_count * each;
    const enum form form = form_of(k);
    double bytes = form == REDUCE || form == REDUCE_AND_COPY ? 2 * all : all;
    if (form == EXCHANGE) bytes = sent > received ? sent : received;
    return LINK_SECONDS + bytes / LINK_RATE + cost_at(c, COST_pass, s->bytes);
}

/* ---- scratch memory ---- */

#define ALIGNMENT 256
static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* A box in the dense local array of this rank: `of` are its sizes. */
typedef struct place {
    layout at;
    int64_t offset;
    bool contiguous;
} place;

static place place_of(const collective *c, const collective_box *b, const shape *of)
{
    place p;
    layout local;
    layout_dense(&local, c->type, of->rank, of->size);
    p.contiguous = collective_box_at(b, &local, &p.at, &p.offset);
    return p;
}

/* The bytes of scratch memory for a box. */
static size_t box_bytes(const collective *c, const collective_box *b, const shape *of)
{
    if (place_of(c, b, of).contiguous) return 0;
    return aligned((size_t)b->count * dtypes[c->type].bytes);
}

static size_t boxes_bytes(const collective *c, const collective_box *b, int count, const shape *of)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += box_bytes(c, &b[i], of);
    return bytes;
}

/* An operand with gaps is copied to the start of the scratch memory. */
static size_t operand_bytes(const step *s)
{
    if (layout_is_dense(&s->in[0].at)) return 0;
    return aligned((size_t)layout_count(&s->in[0].at) * dtypes[s->in[0].at.type].bytes);
}

size_t gpu_collective_scratch(const step *s)
{
    const collective *c = collective_at(s);
    const size_t bytes = operand_bytes(s);
    switch (form_of(c)) {
    case EXCHANGE:
        return bytes + boxes_bytes(c, c->send, c->sends, &c->in) +
               boxes_bytes(c, c->receive, c->receives, &c->out);
    case REDUCE_AND_COPY: return bytes + (size_t)shape_count(&c->whole) * dtypes[c->type].bytes;
    default: return bytes;
    }
}

/* ---- copies on this GPU ---- */

static duet_status copy(const exchange *x, char *to, const layout *to_at, const char *from,
                        const layout *from_at)
{
    if (!layout_count(to_at)) return DUET_OK;
    return gpu_apply(OP_LOAD, to, to_at, &(part){ .p = from, .at = from_at }, 1, x->q);
}

/* The layout of a packed box. */
static layout packed(const collective *c, const collective_box *b)
{
    layout dense;
    layout_dense(&dense, c->type, c->whole.rank, b->size);
    return dense;
}

static duet_status copy_kept(const exchange *x)
{
    const collective *c = x->c;
    if (!c->kept_in.count) return DUET_OK;
    const place from = place_of(c, &c->kept_in, &c->in), to = place_of(c, &c->kept_out, &c->out);
    return copy(x, x->out + (size_t)to.offset * x->each, &to.at, x->in + (size_t)from.offset * x->each,
                &from.at);
}

/* Copies this rank's part of the sum from the scratch memory. */
static duet_status copy_sum(const exchange *x)
{
    const collective *c = x->c;
    layout from, to;
    layout_dense(&from, c->type, c->whole.rank, c->whole.size);
    layout_dense(&to, c->type, c->out.rank, c->out.size);
    const int64_t offset = c->to.bounds[c->c->rank] * from.stride[c->to.axis];
    from.size[c->to.axis] = c->out.size[c->to.axis];
    return copy(x, x->out, &to, x->scratch + (size_t)offset * x->each, &from);
}

/* ---- messages ---- */

static duet_status pack(const exchange *x)
{
    char *to = x->scratch;
    for (const collective_box *b = x->c->send; b < x->c->send + x->c->sends; b++) {
        const place from = place_of(x->c, b, &x->c->in);
        if (from.contiguous) continue;
        const layout dense = packed(x->c, b);
        TRY(copy(x, to, &dense, x->in + (size_t)from.offset * x->each, &from.at));
        to += box_bytes(x->c, b, &x->c->in);
    }
    return DUET_OK;
}

static duet_status unpack(const exchange *x)
{
    const char *from = x->scratch + boxes_bytes(x->c, x->c->send, x->c->sends, &x->c->in);
    for (const collective_box *b = x->c->receive; b < x->c->receive + x->c->receives; b++) {
        const place to = place_of(x->c, b, &x->c->out);
        if (to.contiguous) continue;
        const layout dense = packed(x->c, b);
        TRY(copy(x, x->out + (size_t)to.offset * x->each, &to.at, from, &dense));
        from += box_bytes(x->c, b, &x->c->out);
    }
    return DUET_OK;
}

/* Packed boxes of x->c->send come first in the scratch memory, then those of x->c->receive. */
static ncclResult_t queue_messages(const exchange *x, cudaStream_t stream)
{
    const collective *c = x->c;
    char *at = x->scratch;
    ncclResult_t r = ncclSuccess;
    for (int i = 0; r == ncclSuccess && i < c->sends + c->receives; i++) {
        const bool sends = i < c->sends;
        const collective_box *b = sends ? &c->send[i] : &c->receive[i - c->sends];
        const shape *of = sends ? &c->in : &c->out;
        const place p = place_of(c, b, of);
        const size_t bytes = (size_t)b->count * x->each, offset = (size_t)p.offset * x->each;
        const char *from = p.contiguous ? x->in + offset : at;
        char *to = p.contiguous ? x->out + offset : at;
        r = sends ? x->v->ncclSend(from, bytes, ncclUint8, b->peer, x->link->comm, stream)
                  : x->v->ncclRecv(to, bytes, ncclUint8, b->peer, x->link->comm, stream);
        if (r == ncclInProgress) r = ncclSuccess; /* of the group */
        at += box_bytes(c, b, of);
    }
    return r;
}

/* The group ends also after an error. */
static duet_status send_and_receive(const exchange *x, cudaStream_t stream)
{
    TRY(gpu_link_called(x->link, "ncclGroupStart", x->v->ncclGroupStart()));
    const ncclResult_t queued = queue_messages(x, stream), ended = x->v->ncclGroupEnd();
    TRY(gpu_link_called(x->link, "ncclSend or ncclRecv", queued));
    return gpu_link_called(x->link, "ncclGroupEnd", ended);
}

/* ---- calls of NCCL ---- */

static duet_status gather(const exchange *x, cudaStream_t stream)
{
    const size_t bytes = (size_t)shape_count(&x->c->in) * x->each;
    if (!bytes) return DUET_OK;
    return gpu_link_called(x->link, "ncclAllGather",
                           x->v->ncclAllGather(x->in, x->out, bytes, ncclUint8, x->link->comm, stream));
}

static duet_status reduce(const exchange *x, char *to, cudaStream_t stream)
{
    ncclDataType_t type;
    (void)added_type(x->c->type, &type);
    const size_t count = (size_t)shape_count(&x->c->in) * (dtype_is_complex(x->c->type) ? 2 : 1);
    if (!count) return DUET_OK;
    return gpu_link_called(x->link, "ncclAllReduce",
                           x->v->ncclAllReduce(x->in, to, count, type, ncclSum, x->link->comm, stream));
}

static duet_status scatter(const exchange *x, cudaStream_t stream)
{
    ncclDataType_t type;
    (void)added_type(x->c->type, &type);
    const size_t count = (size_t)shape_count(&x->c->out) * (dtype_is_complex(x->c->type) ? 2 : 1);
    if (!count) return DUET_OK;
    return gpu_link_called(x->link, "ncclReduceScatter",
                           x->v->ncclReduceScatter(x->in, x->out, count, type, ncclSum, x->link->comm,
                                                   stream));
}

static duet_status call(const exchange *x, cudaStream_t stream)
{
    switch (form_of(x->c)) {
    case GATHER: return gather(x, stream);
    case REDUCE: return reduce(x, x->out, stream);
    case SCATTER: return scatter(x, stream);
    case REDUCE_AND_COPY: return reduce(x, x->scratch, stream);
    default: return send_and_receive(x, stream);
    }
}

/* ---- running ---- */

static duet_status call_captured(const exchange *x)
{
    TRY(gpu_graph_links(x->q, x->link));
    TRY(gpu_link_lock(x->link));
    const duet_status s = call(x, x->q->capture_stream);
    gpu_link_unlock(x->link);
    return s;
}

/* After the call was made, an error must not be NO_MEMORY, since the step would then run again. */
static duet_status call_locked(const exchange *x)
{
    duet_status s = DUET_OK;
    if (gpu_queue_captures(x->q)) return call_captured(x);
    TRY(gpu_link_begin(x->link, x->q->stream, x->c->c->timeout));
    cudaStream_t stream = x->overlaps ? x->link->stream : x->q->stream;
    if (x->overlaps) s = gpu_overlap_begin(x->q, x->link, &x->uses);
    if (s == DUET_OK) s = call(x, stream);
    const duet_status ended = gpu_link_end(x->link, stream);
    return s == DUET_OK ? half_written(ended) : s;
}

static duet_status run(const exchange *x)
{
    const enum form form = form_of(x->c);
    if (form == EXCHANGE) TRY(pack(x));
    const duet_status s = call_locked(x);
    gpu_queue_wrote_anything(x->q);
    TRY(s);
    if (form == REDUCE_AND_COPY) return half_written(copy_sum(x));
    if (form != EXCHANGE) return DUET_OK;
    TRY(half_written(unpack(x)));
    return half_written(copy_kept(x));
}

/* Copies an operand with gaps to the scratch memory. */
static duet_status take_operand(exchange *x, const step *s)
{
    layout dense;
    const size_t bytes = operand_bytes(s);
    if (!bytes) return DUET_OK;
    layout_dense(&dense, x->c->type, s->in[0].at.rank, s->in[0].at.size);
    TRY(copy(x, x->scratch, &dense, x->in, &s->in[0].at));
    x->in = x->scratch;
    x->scratch += bytes;
    return DUET_OK;
}

/* Waits until all ranks have reached the step, and checks that none has failed. During a capture nothing
 * runs. */
static duet_status all_ready(const exchange *x, const step *s, duet_status own)
{
    if (gpu_queue_captures(x->q) || x->c->c->quiet) return own;
    return communicator_agree(x->c->c, own,
                              hash_step(x->c->signature, (uint64_t)s->attr.collective.sequence));
}

/* Only the call itself runs on the stream of the link. What follows it in this step would have to wait, and
 * so would scratch memory that is released after the step. */
static bool may_overlap(const exchange *x, const step *s, size_t scratch)
{
    const enum form form = form_of(x->c);
    if (!s->overlaps || gpu_queue_captures(x->q) || (scratch && !s->scratch)) return false;
    if (form == EXCHANGE) return !boxes_bytes(x->c, x->c->receive, x->c->receives, &x->c->out);
    return form != REDUCE_AND_COPY;
}

/* Waits for earlier calls: for all of them before a call on the queue, and if they are of another group.
 * Otherwise only before work of the queue for this step. */
static duet_status wait_for_calls(exchange *x, const step *s, const frame *f, size_t scratch)
{
    const char *p = x->scratch;
    x->overlaps = may_overlap(x, s, scratch);
    x->uses = (link_uses){ .read = gpu_span_of(&s->in[0], f),
                           .written = gpu_span_of_result(s, 0, f),
                           .scratch = { p, p ? p + scratch : NULL } };
    if (!x->q->exchanges) return DUET_OK;
    if (!x->overlaps || x->q->exchanges != x->link) return gpu_overlap_end(x->q);
    return form_of(x->c) == EXCHANGE || operand_bytes(s) ? gpu_overlap_wait(x->q, s, f) : DUET_OK;
}

static void count(const collective *c)
{
    COUNT(exchanges);
    COUNT_N(exchange_bytes, collective_bytes(c));
}

duet_status gpu_collective(const step *s, const frame *f, queue *q)
{
    const collective *c = collective_at(s);
    const size_t bytes = gpu_collective_scratch(s);
    exchange x = { c,
                   c->c->link,
                   vendor_open(LIBRARY_nccl),
                   q,
                   f->data[s->in[0].slot],
                   f->data[s->out[0].slot],
                   NULL,
                   dtypes[c->type].bytes,
                   { { NULL, NULL } },
                   false };
    void *taken = NULL;
    duet_status r = DUET_OK;
    if (!x.link) return fail(DUET_UNSUPPORTED, "%s", gpu_collective_unsupported(s));
    if (s->scratch) x.scratch = f->data[s->scratch - 1];
    else if (bytes) r = scratch_acquire(q->device, bytes, q->index, &taken);
    if (taken) x.scratch = taken;
    if (r == DUET_OK) r = wait_for_calls(&x, s, f, bytes);
    if (r == DUET_OK) r = gpu_order_uses(q, x.scratch, bytes);
    if (r == DUET_OK) r = gpu_order_uses(q, x.link, 1); /* calls have the same order on all ranks */
    if (r == DUET_OK) r = take_operand(&x, s);
    r = all_ready(&x, s, r);
    if (r == DUET_OK) r = run(&x);
    if (r == DUET_OK) count(c);
    gpu_give(taken, q);
    return r;
}
