/* nccl_match.c - matches the calls of the fake NCCL that the streams of all ranks have reached, and runs
 * them. */
#include "fake_nccl.h"
#include <stdio.h>
#include <string.h>

static const struct {
    size_t bytes;
    duet_dtype type;
} types[] = {
    [ncclInt8] = { 1, DUET_I8 },       [ncclUint8] = { 1, DUET_U8 },    [ncclInt32] = { 4, DUET_I32 },
    [ncclUint32] = { 4, DUET_U32 },    [ncclInt64] = { 8, DUET_I64 },   [ncclUint64] = { 8, DUET_U64 },
    [ncclFloat16] = { 2, DUET_F16 },   [ncclFloat32] = { 4, DUET_F32 }, [ncclFloat64] = { 8, DUET_F64 },
    [ncclBfloat16] = { 2, DUET_BF16 },
};

static void break_all(const clique *of, const char *text)
{
    for (int r = 0; r < of->ranks; r++)
        if (of->comm[r]) fake_nccl_break(of->comm[r], ncclInvalidUsage, "%s", text);
}

/* ---- matching calls ---- */

static const char *const names[] = { [SEND] = "ncclSend",
                                     [RECEIVE] = "ncclRecv",
                                     [GATHER] = "ncclAllGather",
                                     [REDUCE] = "ncclAllReduce",
                                     [SCATTER] = "ncclReduceScatter" };

static bool is_message(const call *c) { return c->kind == SEND || c->kind == RECEIVE; }
size_t fake_nccl_bytes(const call *c) { return c->count * types[c->type].bytes; }

/* The first call of a rank that is not done: of this kind and peer, or, if peer is negative, of all ranks. */
static call *first_call(const struct ncclComm *c, enum kind kind, int peer)
{
    if (!c || !c->begun || c->ended || c->state != ncclSuccess) return NULL;
    for (call *k = c->begun->call; k < c->begun->call + c->begun->count; k++) {
        if (k->done) continue;
        if (peer < 0 ? !is_message(k) : k->kind == kind && k->peer == peer) return k;
    }
    return NULL;
}

static bool deliver(const clique *of, int from, int to)
{
    char text[200];
    call *send = first_call(of->comm[from], SEND, to), *receive = first_call(of->comm[to], RECEIVE, from);
    if (!send || !receive) return false;
    if (fake_nccl_bytes(send) != fake_nccl_bytes(receive) || send->type != receive->type) {
        snprintf(text, sizeof text, "rank %d sends %zu bytes of type %d, and rank %d receives %zu of type %d",
                 from, fake_nccl_bytes(send), send->type, to, fake_nccl_bytes(receive), receive->type);
        break_all(of, text);
        return false;
    }
    memmove(receive->to, send->from, fake_nccl_bytes(send));
    fake_nccl_counted[from].bytes += fake_nccl_bytes(send);
    fake_nccl_counted[from].messages++;
    return send->done = receive->done = true;
}

static void add_to(ncclDataType_t type, char *sum, const char *x)
{
    const duet_dtype t = types[type].type;
    switch (types[type].bytes) {
    case 1: *sum = (char)(*(uint8_t *)sum + *(const uint8_t *)x); return;
    case 2: fake_put(t, sum, fake_value(t, sum) + fake_value(t, x)); return;
    case 4:
        if (type == ncclFloat32) *(float *)sum += *(const float *)x;
        else *(uint32_t *)sum += *(const uint32_t *)x;
        return;
    default:
        if (type == ncclFloat64) *(double *)sum += *(const double *)x;
        else *(uint64_t *)sum += *(const uint64_t *)x;
    }
}

/* The result of all ranks together: the sum, or the parts in the order of the ranks. */
static char *combine(call *const all[], int ranks, size_t bytes)
{
    const call *first = all[0];
    const size_t each = types[first->type].bytes, part = fake_nccl_bytes(first);
    char *result = fake_alloc(bytes + 1);
    for (int r = 0; first->kind == GATHER && r < ranks; r++)
        memcpy(result + (size_t)r * part, all[r]->from, part);
    if (first->kind == GATHER) return result;
    memcpy(result, first->from, bytes);
    for (int r = 1; r < ranks; r++)
        for (size_t i = 0; i < bytes; i += each) add_to(first->type, result + i, all[r]->from + i);
    return result;
}

static void count_call(const call *c, int rank, int ranks)
{
    const size_t each = fake_nccl_bytes(c), others = (size_t)ranks - 1;
    fake_nccl_counted[rank].bytes += c->kind == REDUCE ? 2 * others * each / (size_t)ranks : others * each;
    fake_nccl_counted[rank].gathers += c->kind == GATHER;
    fake_nccl_counted[rank].reductions += c->kind == REDUCE;
    fake_nccl_counted[rank].scatters += c->kind == SCATTER;
}

/* Results are written when all operands were read, because a call may work in place. */
static void perform(call *const all[], int ranks)
{
    const size_t part = fake_nccl_bytes(all[0]), bytes = all[0]->kind == REDUCE ? part : part * (size_t)ranks;
    char *result = combine(all, ranks, bytes);
    for (int r = 0; r < ranks; r++) {
        const char *from = all[r]->kind == SCATTER ? result + (size_t)r * part : result;
        memcpy(all[r]->to, from, all[r]->kind == SCATTER ? part : bytes);
        all[r]->done = true;
        count_call(all[r], r, ranks);
    }
    fake_free(result);
}

static bool run_together(const clique *of)
{
    call *all[FAKE_RANKS] = { NULL };
    char text[200];
    for (int r = 0; r < of->ranks; r++)
        if (!(all[r] = first_call(of->comm[r], GATHER, -1))) return false;
    for (int r = 1; r < of->ranks; r++) {
        const call *a = all[0], *b = all[r];
        if (a->kind == b->kind && a->count == b->count && a->type == b->type) continue;
        snprintf(text, sizeof text, "rank 0 calls %s of %zu, type %d; rank %d calls %s of %zu, type %d",
                 names[a->kind], a->count, a->type, r, names[b->kind], b->count, b->type);
        break_all(of, text);
        return false;
    }
    perform(all, of->ranks);
    return true;
}

static const call *first_waiting(const struct ncclComm *c)
{
    if (!c || !c->begun) return NULL;
    for (const call *k = c->begun->call; k < c->begun->call + c->begun->count; k++)
        if (!k->done) return k;
    return NULL;
}

/* Do all ranks wait for each other? */
static void notice_deadlock(const clique *of)
{
    char text[200];
    int length = snprintf(text, sizeof text, "all ranks wait");
    for (int r = 0; r < of->ranks; r++)
        if (!first_waiting(of->comm[r])) return;
    for (int r = 0; r < of->ranks && length < 150; r++) {
        const call *c = first_waiting(of->comm[r]);
        length += snprintf(text + length, sizeof text - (size_t)length, ", rank %d in %s", r, names[c->kind]);
    }
    break_all(of, text);
}

static void match(const clique *of)
{
    bool more = true;
    while (more) {
        more = run_together(of);
        for (int r = 0; r < of->ranks; r++)
            for (int p = 0; p < of->ranks; p++) more |= deliver(of, r, p);
    }
    notice_deadlock(of);
    fake_progress();
}

/* ---- the work of a stream ---- */

size_t fake_nccl_written(const call *c, int ranks)
{
    if (c->kind == SEND) return 0;
    return fake_nccl_bytes(c) * (c->kind == GATHER ? (size_t)ranks : 1);
}

/* The results of calls that fail are NaN. */
static bool end_unit(unit *u, bool lost)
{
    ncclComm_t c = u->comm;
    for (call *k = u->call; k < u->call + u->count; k++)
        if (!k->done && !lost && k->to) memset(k->to, 0xff, fake_nccl_written(k, c->of->ranks));
    if (c->begun == u) c->begun = NULL;
    c->run += u->counted;
    return true;
}

static bool may_begin(unit *u)
{
    const int rank = u->comm->rank;
    if (u->comm->begun || fake_nccl_silence[rank]) return false;
    if (u->ready <= 0) u->ready = fake_nccl_now() + 1e-6 * fake_nccl_delays[rank];
    return fake_nccl_now() >= u->ready;
}

bool fake_nccl_try(void *args, bool lost)
{
    unit *u = args;
    ncclComm_t c = u->comm;
    if (lost) fake_nccl_break(c, ncclUnhandledCudaError, "the card of rank %d is lost", c->rank);
    if (c->ended || c->state != ncclSuccess) return end_unit(u, lost);
    if (!u->begun) {
        if (!may_begin(u)) return false;
        u->begun = true;
        c->begun = u;
        match(c->of);
    }
    if (c->state == ncclSuccess && first_waiting(c)) return false;
    return end_unit(u, false);
}
