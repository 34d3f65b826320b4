/* link.c - connects GPUs with NCCL, and detects that another rank has failed.
 *
 * Communicators do not block, so every call returns in time, even if another rank never makes its call. For
 * each such call NCCL starts a thread, and the call is polled until it has ended, which takes up to 60 us.
 * Replays of CUDA graphs do not need that. A kernel of NCCL waits on the GPU without limit. So the host does
 * not block on a stream: it polls the stream, and aborts the communicator after the time limit. This ends
 * the kernel. */
#include "link.h"
#include "clock.h"
#include "link_watch.h"
#include <stdlib.h>
#include <string.h>

static gpu_link *links;
static int links_alive;
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER; /* taken before the lock of a link */

static const vendor *nccl(void) { return vendor_open(LIBRARY_nccl); }

/* ---- errors ---- */

static duet_status broken(const gpu_link *l) { return fail(DUET_RANK_FAILED, "%s", l->why); }

/* The text of the thread's error becomes the reason. An abort also ends the kernels that wait for others. */
static duet_status break_link(gpu_link *l, duet_status s)
{
    if (!l->broken) snprintf(l->why, sizeof l->why, "%s", duet_error());
    l->broken = true;
    if (l->comm) (void)nccl()->ncclCommAbort(l->comm);
    l->comm = NULL;
    return s;
}

static duet_status timed_out(gpu_link *l, const char *call, double seconds)
{
    return break_link(l, fail(DUET_RANK_FAILED,
                              "%s: the GPUs of the other ranks did not answer rank %d within %g seconds",
                              call, l->rank, seconds));
}

/* System errors are errors of connections. In most cases another process has ended. */
static duet_status nccl_failed(gpu_link *l, const char *call, ncclResult_t r)
{
    const vendor *v = nccl();
    const char *more = v->ncclGetLastError(l->comm);
    if (r == ncclUnhandledCudaError && gpu_device_was_lost(call)) return break_link(l, DUET_DEVICE_ERROR);
    return break_link(l, fail(r == ncclRemoteError || r == ncclSystemError ? DUET_RANK_FAILED
                                                                           : DUET_DEVICE_ERROR,
                              "%s: rank %d: %s%s%s", call, l->rank, v->ncclGetErrorString(r),
                              more && *more ? ": " : "", more ? more : ""));
}

static ncclResult_t state_of(const gpu_link *l)
{
    ncclResult_t state = ncclSuccess;
    const ncclResult_t r = nccl()->ncclCommGetAsyncError(l->comm, &state);
    return r == ncclSuccess ? state : r;
}

static duet_status wait_ready(gpu_link *l, const char *call, double seconds)
{
    const double end = clock_now() + seconds;
    ncclResult_t r;
    for (unsigned round = 0; (r = state_of(l)) == ncclInProgress; round++) {
        if (clock_now() > end) return timed_out(l, call, seconds);
        watch_pause(round);
    }
    return r == ncclSuccess ? DUET_OK : nccl_failed(l, call, r);
}

duet_status gpu_link_called(gpu_link *l, const char *call, ncclResult_t r)
{
    if (r == ncclInProgress) return wait_ready(l, call, l->seconds);
    return likely(r == ncclSuccess) ? DUET_OK : nccl_failed(l, call, r);
}

static duet_status check(gpu_link *l)
{
    if (l->broken) return broken(l);
    const ncclResult_t r = state_of(l);
    return likely(r == ncclSuccess || r == ncclInProgress) ? DUET_OK : nccl_failed(l, "NCCL", r);
}

/* The card may be lost, so an error of gpu_device_enter is ignored. */
duet_status gpu_link_check(void *link)
{
    gpu_link *l = link;
    device_scope scope;
    (void)gpu_device_enter(l->device, &scope);
    pthread_mutex_lock(&l->lock);
    const duet_status s = check(l);
    pthread_mutex_unlock(&l->lock);
    gpu_device_leave(&scope);
    return s;
}

/* ---- connecting ---- */

static duet_status is_missing(void)
{
    const vendor *v = nccl();
    if (!v->missing[LIBRARY_nccl]) return DUET_OK;
    return fail(DUET_NO_DEVICE, "NCCL, which connects GPUs, is missing: %s", v->missing[LIBRARY_nccl]);
}

duet_status gpu_link_name(char name[LINK_NAME])
{
    ncclUniqueId id;
    static_assert(sizeof id == LINK_NAME, "names of links are those of NCCL");
    TRY(is_missing());
    const ncclResult_t r = nccl()->ncclGetUniqueId(&id);
    if (r != ncclSuccess)
        return fail(DUET_DEVICE_ERROR, "ncclGetUniqueId: %s", nccl()->ncclGetErrorString(r));
    memcpy(name, &id, sizeof id);
    return DUET_OK;
}

static void enter_list(gpu_link *l)
{
    pthread_mutex_lock(&listing);
    l->next = links;
    links = l;
    __atomic_fetch_add(&links_alive, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&listing);
}

/* A link that was never connected is not in the list. */
static void leave_list(gpu_link *l)
{
    pthread_mutex_lock(&listing);
    gpu_link **at = &links;
    while (*at && *at != l) at = &(*at)->next;
    if (*at) {
        *at = l->next;
        __atomic_fetch_sub(&links_alive, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&listing);
}

static duet_status start(gpu_link *l, const char name[LINK_NAME])
{
    nccl_config config = { sizeof config, NCCL_CONFIG_MAGIC, NCCL_CONFIG_VERSION, 0, NCCL_UNSET };
    ncclUniqueId id;
    static const char call[] = "ncclCommInitRankConfig";
    memcpy(&id, name, sizeof id);
    const ncclResult_t r =
        nccl()->ncclCommInitRankConfig(&l->comm, l->ranks, id, l->rank, (ncclConfig_t *)&config);
    if (r != ncclSuccess && r != ncclInProgress) {
        l->comm = NULL;
        return nccl_failed(l, call, r);
    }
    TRY(wait_ready(l, call, l->seconds));
    const duet_status s = watch_open(l);
    return s == DUET_OK ? DUET_OK : break_link(l, s);
}

duet_status gpu_connect(int device, const char name[LINK_NAME], int rank, int ranks, double seconds,
                        void **link)
{
    *link = NULL;
    TRY(is_missing());
    ON_DEVICE(device);
    gpu_link *l = calloc(1, sizeof *l);
    if (!l) return fail(DUET_NO_MEMORY, "no host memory for a connection of GPUs");
    *l = (gpu_link){ .references = 1, .device = device, .rank = rank, .ranks = ranks, .seconds = seconds };
    pthread_mutex_init(&l->lock, NULL);
    const duet_status s = start(l, name);
    if (s != DUET_OK) {
        gpu_link_release(l);
        return s;
    }
    enter_list(l);
    *link = l;
    return DUET_OK;
}

/* ---- the end ---- */

/* NCCL finalizes without waiting for other ranks, but it waits for the work of this one, and until no graph
 * contains a call of the communicator: without limit, also after an abort. */
static void finish(gpu_link *l)
{
    const ncclResult_t r = nccl()->ncclCommFinalize(l->comm);
    if (gpu_link_called(l, "ncclCommFinalize", r) != DUET_OK) return;
    (void)nccl()->ncclCommDestroy(l->comm);
    l->comm = NULL;
}

/* Does not change the error text of the thread. */
static void end_link(gpu_link *l)
{
    device_scope scope;
    error_text before;
    error_keep(&before);
    leave_list(l);
    (void)gpu_device_enter(l->device, &scope);
    if (l->comm) finish(l);
    watch_close(l);
    gpu_device_leave(&scope);
    error_put_back(&before);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

void gpu_link_hold(gpu_link *l) { __atomic_fetch_add(&l->references, 1, __ATOMIC_RELAXED); }

void gpu_link_release(gpu_link *l)
{
    if (l && __atomic_sub_fetch(&l->references, 1, __ATOMIC_ACQ_REL) == 0) end_link(l);
}

static void close_link(gpu_link *l, bool failed)
{
    (void)fail(DUET_RANK_FAILED, "the connection of the GPUs was closed");
    if (failed) (void)break_link(l, DUET_RANK_FAILED);
    else if (!l->broken) snprintf(l->why, sizeof l->why, "%s", duet_error());
    l->broken = true;
}

/* Graphs keep the communicator, but they cannot be launched any more. */
void gpu_disconnect(void *link, bool failed)
{
    gpu_link *l = link;
    device_scope scope;
    error_text before;
    if (!l) return;
    error_keep(&before);
    (void)gpu_device_enter(l->device, &scope);
    pthread_mutex_lock(&l->lock);
    close_link(l, failed);
    pthread_mutex_unlock(&l->lock);
    gpu_device_leave(&scope);
    gpu_link_release(l);
    error_put_back(&before);
}

void gpu_links_lost(int device)
{
    pthread_mutex_lock(&listing);
    for (gpu_link *l = links; l; l = l->next) {
        if (l->device != device) continue;
        pthread_mutex_lock(&l->lock);
        if (!l->broken) (void)fail(DUET_RANK_FAILED, "the GPU of rank %d was lost", l->rank);
        (void)break_link(l, DUET_RANK_FAILED);
        watch_forget(l);
        pthread_mutex_unlock(&l->lock);
    }
    pthread_mutex_unlock(&listing);
}

/* ---- calls ---- */

duet_status gpu_link_lock(gpu_link *l)
{
    pthread_mutex_lock(&l->lock);
    const duet_status s = check(l);
    if (unlikely(s != DUET_OK)) pthread_mutex_unlock(&l->lock);
    return s;
}

void gpu_link_unlock(gpu_link *l) { pthread_mutex_unlock(&l->lock); }

/* Waits while too many calls are unfinished. */
static duet_status wait_first(gpu_link *l)
{
    for (unsigned round = 0; watch_is_full(l); round++) {
        TRY(check(l));
        if (watch_expired(l)) return timed_out(l, "NCCL", l->seconds);
        watch_pause(round);
    }
    return DUET_OK;
}

duet_status gpu_link_begin(gpu_link *l, cudaStream_t stream, double seconds)
{
    TRY(gpu_link_lock(l));
    if (seconds > 0) l->seconds = seconds;
    duet_status s = wait_first(l);
    if (s == DUET_OK) s = watch_begin(l, stream);
    if (s != DUET_OK) pthread_mutex_unlock(&l->lock);
    return s;
}

duet_status gpu_link_end(gpu_link *l, cudaStream_t stream)
{
    const duet_status s = l->broken ? DUET_OK : watch_end(l, stream);
    pthread_mutex_unlock(&l->lock);
    return s;
}

/* ---- waiting for a stream ---- */

static duet_status check_running(gpu_link *l)
{
    pthread_mutex_lock(&l->lock);
    duet_status s = check(l);
    if (s == DUET_OK && watch_expired(l)) s = timed_out(l, "NCCL", l->seconds);
    pthread_mutex_unlock(&l->lock);
    return s;
}

static duet_status check_all(int device)
{
    duet_status s = DUET_OK;
    pthread_mutex_lock(&listing);
    for (gpu_link *l = links; l && s == DUET_OK; l = l->next)
        if (l->device == device && !l->broken) s = check_running(l);
    pthread_mutex_unlock(&listing);
    return s;
}

/* After an error the stream soon ends, since its exchange was aborted. */
static duet_status wait_watching(int device, cudaStream_t stream)
{
    duet_status failed = DUET_OK;
    error_text text;
    cudaError_t e;
    for (unsigned round = 0; (e = cudaStreamQuery(stream)) == cudaErrorNotReady; round++) {
        (void)cudaGetLastError();
        const duet_status s = check_all(device);
        if (s != DUET_OK && failed == DUET_OK) {
            failed = s;
            error_keep(&text);
        }
        watch_pause(round);
    }
    const duet_status s = failed == DUET_OK && e == cudaSuccess ? check_all(device) : DUET_OK;
    if (e != cudaSuccess) return cuda_status("cudaStreamQuery", e);
    if (failed == DUET_OK) return s;
    error_put_back(&text);
    return failed;
}

bool gpu_links_exist(void) { return __atomic_load_n(&links_alive, __ATOMIC_RELAXED) > 0; }

duet_status gpu_links_wait(int device, cudaStream_t stream)
{
    if (likely(!gpu_links_exist())) return DUET_OK;
    return wait_watching(device, stream);
}

duet_status gpu_stream_wait(int device, cudaStream_t stream)
{
    TRY(gpu_links_wait(device, stream));
    return CUDA(cudaStreamSynchronize, stream);
}

/* ---- description ---- */

static bool all_access(const int device[], int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++) {
            int can = 1;
            if (i != k && cudaDeviceCanAccessPeer(&can, gpu_device_ordinal(device[i]),
                                                  gpu_device_ordinal(device[k])) != cudaSuccess)
                (void)cudaGetLastError();
            if (!can) return false;
        }
    return true;
}

void gpu_link_info(FILE *out, const int device[], int count)
{
    const vendor *v = nccl();
    int n = 0;
    if (v->missing[LIBRARY_nccl]) {
        fprintf(out, "nccl     missing: %s\n", v->missing[LIBRARY_nccl]);
        return;
    }
    (void)v->ncclGetVersion(&n);
    const char *access =
        all_access(device, count) ? "access each other's memory" : "exchange through the host";
    fprintf(out, "nccl     %d.%d.%d (%s), %d %s", n / 10000, n / 100 % 100, n % 100, v->place[LIBRARY_nccl],
            count, count == 1 ? "GPU in this process\n" : "GPUs in this process, which ");
    if (count != 1) fprintf(out, "%s\n", access);
}
