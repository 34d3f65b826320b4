/* nccl.c - the fake NCCL: communicators between threads of this process. Calls are queued on a stream. A call
 * runs when the streams of the other ranks have reached theirs. Calls that do not match are an error on all
 * ranks. */
#include "fake_nccl.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

double fake_nccl_patience = 10;

/* All of this is protected by fake_lock. Communicators are never freed, because streams and graphs have their
 * addresses. */
static clique *cliques;
static uint64_t left, made;
int fake_nccl_delays[FAKE_RANKS];
bool fake_nccl_silence[FAKE_RANKS];
fake_nccl_counts fake_nccl_counted[FAKE_RANKS];

#define LOCKED(statement)                                                                                    \
    pthread_mutex_lock(&fake_lock);                                                                          \
    statement;                                                                                               \
    pthread_mutex_unlock(&fake_lock)

double fake_nccl_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the interface for tests ---- */

void fake_nccl_fail(uint64_t n) { LOCKED(left = n); }
void fake_nccl_delay(int rank, int microseconds) { LOCKED(fake_nccl_delays[rank] = microseconds); }
void fake_nccl_silent(int rank, bool is) { LOCKED(fake_nccl_silence[rank] = is); }
void fake_nccl_wait(double seconds) { LOCKED(fake_nccl_patience = seconds); }

fake_nccl_counts fake_nccl_count(int rank)
{
    LOCKED(const fake_nccl_counts c = fake_nccl_counted[rank]);
    return c;
}

/* ---- errors ---- */

void fake_nccl_break(ncclComm_t c, ncclResult_t error, const char *format, ...)
{
    va_list ap;
    if (c->ended || c->state != ncclSuccess) return;
    va_start(ap, format);
    vsnprintf(c->error, sizeof c->error, format, ap);
    va_end(ap);
    c->state = error;
    fake_progress();
}

#define EACH_COMM(c)                                                                                         \
    for (clique *of_ = cliques; of_; of_ = of_->next)                                                        \
        for (int r_ = 0; r_ < of_->ranks; r_++)                                                              \
            for (ncclComm_t c = of_->comm[r_]; c; c = NULL)

void fake_nccl_async_error(int rank)
{
    LOCKED({
        EACH_COMM(c) if (c->rank == rank) fake_nccl_break(c, ncclRemoteError, "an error of the test");
    });
}

static bool is_waiting(const struct ncclComm *c) { return c->begun || c->queued > c->run; }

void fake_nccl_give_up(void)
{
    EACH_COMM(c) if (is_waiting(c)) fake_nccl_break(c, ncclRemoteError, "the other ranks do not answer");
}

void fake_nccl_end(int card)
{
    EACH_COMM(c)
    if (c->device == card) fake_nccl_break(c, ncclUnhandledCudaError, "the context was destroyed");
}

/* ---- calls ---- */

static ncclResult_t enter(void)
{
    if (fake_vendor_fails()) return ncclUnhandledCudaError;
    LOCKED(const bool fails = left && --left == 0);
    return fails ? ncclSystemError : ncclSuccess;
}

static bool is_in_progress(ncclComm_t c)
{
    if (c->polls > 0) return c->polls--;
    return c->of->joined < c->of->ranks || fake_nccl_now() < c->ready || (c->finalized && c->queued > c->run);
}

static ncclResult_t enter_comm(ncclComm_t c)
{
    const ncclResult_t e = enter();
    if (e != ncclSuccess) return e;
    LOCKED(const bool ended = c->ended; const ncclResult_t state = c->state; const bool busy = c->polls > 0);
    if (ended) return ncclInvalidArgument;
    return busy ? ncclInvalidUsage : state;
}

typedef struct pending {
    ncclComm_t comm;
    cudaStream_t stream;
    call call;
} pending;
enum { PENDING = 4096 };
static _Thread_local pending *group; /* PENDING of them, or NULL */
static _Thread_local int depth, pending_count;
static _Thread_local ncclResult_t group_error;

ncclResult_t ncclGroupStart(void)
{
    if (depth++ == 0) {
        group = fake_alloc(PENDING * sizeof *group);
        pending_count = 0;
        group_error = ncclSuccess;
    }
    return ncclSuccess;
}

/* Queues the calls of the group for the communicator of its call i. */
static ncclResult_t queue_unit(int i)
{
    ncclComm_t c = group[i].comm;
    unit *u = fake_alloc(sizeof *u + (size_t)pending_count * sizeof *u->call);
    u->comm = c;
    u->counted = !fake_captures(group[i].stream);
    for (int k = i; k < pending_count; k++)
        if (group[k].comm == c) u->call[u->count++] = group[k].call;
    const cudaError_t e =
        fake_queue_trying(group[i].stream, fake_nccl_try, u, sizeof *u + (size_t)u->count * sizeof *u->call);
    LOCKED((c->queued += u->counted && e == cudaSuccess, c->polls = 2));
    fake_free(u);
    return e == cudaSuccess ? ncclInProgress : ncclUnhandledCudaError;
}

static bool is_first(int i)
{
    for (int k = 0; k < i; k++)
        if (group[k].comm == group[i].comm) return false;
    return true;
}

ncclResult_t ncclGroupEnd(void)
{
    if (depth == 0) return ncclInvalidUsage;
    if (--depth) return ncclSuccess;
    ncclResult_t r = group_error == ncclSuccess ? enter() : group_error;
    const bool fails = r != ncclSuccess;
    for (int i = 0; !fails && i < pending_count; i++)
        if (is_first(i) && (r == ncclSuccess || r == ncclInProgress)) r = queue_unit(i);
    fake_free(group);
    group = NULL;
    return r;
}

static ncclResult_t check_call(ncclComm_t c, cudaStream_t stream, const call *k)
{
    const ncclResult_t r = enter_comm(c);
    const size_t ranks = (size_t)c->of->ranks, bytes = fake_nccl_bytes(k);
    if (r != ncclSuccess) return r;
    if (fake_device() != c->device || !stream || k->peer >= c->of->ranks || pending_count == PENDING)
        return ncclInvalidArgument;
    if (k->kind != RECEIVE && !fake_owns(k->from, bytes * (k->kind == SCATTER ? ranks : 1)))
        return ncclInvalidArgument;
    return k->kind == SEND || fake_owns(k->to, fake_nccl_written(k, c->of->ranks)) ? ncclSuccess
                                                                                   : ncclInvalidArgument;
}

static ncclResult_t queue_call(ncclComm_t c, cudaStream_t stream, const call *k)
{
    (void)ncclGroupStart();
    const ncclResult_t r = check_call(c, stream, k);
    if (r == ncclSuccess) group[pending_count++] = (pending){ c, stream, *k };
    else group_error = r;
    const ncclResult_t ended = ncclGroupEnd();
    return r == ncclSuccess ? ended : r;
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return queue_call(comm, stream, &(call){ SEND, from, NULL, count, type, peer, false });
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return queue_call(comm, stream, &(call){ RECEIVE, NULL, to, count, type, peer, false });
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    return queue_call(comm, stream, &(call){ GATHER, from, to, count, type, 0, false });
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream)
{
    if (operation != ncclSum) return ncclInvalidArgument;
    return queue_call(comm, stream, &(call){ REDUCE, from, to, count, type, 0, false });
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream)
{
    if (operation != ncclSum) return ncclInvalidArgument;
    return queue_call(comm, stream, &(call){ SCATTER, from, to, count, type, 0, false });
}

/* ---- communicators ---- */

ncclResult_t ncclGetVersion(int *version)
{
    *version = 22809;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {
#define TEXT(name, value) [value] = #name,
        NCCL_RESULTS(TEXT)
    };
    return texts[result];
}

const char *ncclGetLastError(ncclComm_t comm) { return comm ? comm->error : ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    const ncclResult_t r = enter();
    LOCKED(const uint64_t n = ++made);
    memset(id, 0, sizeof *id);
    memcpy(id->internal, &n, sizeof n);
    return r;
}

static clique *clique_of(const ncclUniqueId *id, int ranks)
{
    clique *of = cliques;
    while (of && memcmp(&of->id, id, sizeof *id)) of = of->next;
    if (of) return of;
    of = fake_alloc(sizeof *of);
    *of = (clique){ cliques, *id, ranks, 0, { NULL } };
    return cliques = of;
}

static ncclComm_t join(const ncclUniqueId *id, int ranks, int rank)
{
    clique *of = clique_of(id, ranks);
    if (of->ranks != ranks || of->comm[rank]) return NULL;
    ncclComm_t c = of->comm[rank] = fake_alloc(sizeof *c);
    c->of = of;
    c->rank = rank;
    c->device = fake_device();
    c->polls = 2;
    c->ready = fake_nccl_now() + 1e-6 * fake_nccl_delays[rank];
    of->joined += !fake_nccl_silence[rank];
    return c;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *configured)
{
    const nccl_config *config = (const nccl_config *)configured;
    const ncclResult_t r = enter();
    *comm = NULL;
    if (r != ncclSuccess) return r;
    if (config->magic != NCCL_CONFIG_MAGIC || config->blocking || rank < 0 || rank >= ranks ||
        ranks > FAKE_RANKS)
        return ncclInvalidArgument;
    LOCKED(*comm = join(&id, ranks, rank));
    if (!*comm) return ncclInvalidArgument;
    fake_handles(1);
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    LOCKED({
        if (comm->finalized) fake_run_all();
        *error = comm->state;
        if (*error == ncclSuccess && is_in_progress(comm)) *error = ncclInProgress;
    } const bool ended = comm->ended);
    return ended ? ncclInvalidArgument : ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    const ncclResult_t r = enter_comm(comm);
    if (r != ncclSuccess) return r;
    LOCKED((comm->finalized = true, comm->polls = 2));
    return ncclInProgress;
}

static ncclResult_t end(ncclComm_t comm)
{
    LOCKED(const bool was_ended = comm->ended; comm->ended = true; fake_progress());
    if (was_ended) return ncclInvalidArgument;
    fake_handles(-1);
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) { return comm->finalized ? end(comm) : ncclInvalidUsage; }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return end(comm); }
