/* runtime.c - the fake CUDA runtime: devices, memory, streams, events, graphs. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "fake.h"
#include <dlfcn.h>
#include <string.h>
#include <time.h>

typedef struct block {
    struct block *next;
    char *p;
    size_t bytes;
    int device;
} block;

/* The contents of a stream, in order: work, work that may have to wait for other ranks, or a wait for a
 * position in another stream. */
typedef struct task {
    struct task *next;
    void (*run)(void *args);
    fake_trying *tries;
    cudaStream_t other;
    uint64_t until;
    size_t bytes;
    _Alignas(16) char args[];
} task;

/* The nodes of a graph, each with a task. A node runs after those that it depends on. */
struct CUgraphNode_st {
    cudaGraphNode_t next;
    task *work;
    cudaGraphNode_t *after;
    size_t count;
    uint64_t launch; /* the last launch that has run it */
};

typedef struct nodes {
    cudaGraphNode_t first, *last;
} nodes;
struct CUgraph_st {
    nodes captured;
};
struct CUgraphExec_st {
    nodes captured;
    uint64_t launches;
};

struct CUstream_st {
    task *first, **last;
    struct CUgraph_st *capturing; /* work is captured into this graph, */
    cudaGraphNode_t *after;       /* and depends on these nodes */
    size_t after_count;
    bool spoilt; /* by a call that a capture does not allow */
    /* joined: by an event, the capture of another stream; unjoined: another stream has joined and
     * not returned */
    bool joined, unjoined;
    uint64_t queued, done;
    int device; /* -1: its context has ended */
    cudaStream_t next;
};

struct CUevent_st {
    cudaStream_t stream;
    /* the graph whose capture records this event; a stream that waits for it joins the capture */
    struct CUgraph_st *within;
    uint64_t at;
    int device; /* -1: its context has ended */
    cudaEvent_t next;
};

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER; /* progress was made, or work was queued */
static uint64_t progress;
fake_counts fake_counted;

static block *blocks;
static cudaStream_t streams;
static cudaEvent_t events;
static size_t capacity = (size_t)1 << 30; /* of each device */
static size_t in_use[FAKE_CARDS];
static int device_count = 1;
static int capability[FAKE_CARDS]; /* times ten; 0: 90 */
static uint64_t left;              /* calls until the scripted failure */
static bool failed, pinned, no_launches, no_reset;
static bool lost[FAKE_CARDS], crashed[FAKE_CARDS]; /* crashed: lost at the next call that waits */
static int ended[FAKE_CARDS];                      /* contexts */
static enum { FAILS, LOSES, CRASHES } script;      /* what the scripted call does */
static int failing = -1; /* only calls for this device count for the scripted failure; -1: all do */

static _Thread_local int device;
static _Thread_local cudaStream_t capturing; /* the stream that this thread captures */
static _Thread_local cudaError_t last_error;

/* ---- the interface for tests ---- */

#define LOCKED(statement)                                                                                    \
    pthread_mutex_lock(&fake_lock);                                                                          \
    statement;                                                                                               \
    pthread_mutex_unlock(&fake_lock)

fake_counts fake_count(void)
{
    LOCKED(fake_counts c = fake_counted);
    return c;
}

static bool is_lost(int of);

static void at_call(uint64_t n, int of, int what)
{
    LOCKED((left = n, failed = false, failing = of, script = what));
}

void fake_fail(uint64_t n) { at_call(n, -1, FAILS); }
void fake_lose_at(uint64_t n) { at_call(n, -1, LOSES); }
void fake_crash_at(uint64_t n) { at_call(n, -1, CRASHES); }

bool fake_is_lost(int of)
{
    LOCKED(const bool is = is_lost(of));
    return is;
}

void fake_no_reset(bool none) { LOCKED(no_reset = none); }

bool fake_failed(void)
{
    LOCKED(bool f = failed);
    return f;
}

void fake_no_launches(bool none) { LOCKED(no_launches = none); }

cudaError_t fake_launches(void)
{
    LOCKED(const bool none = no_launches);
    return fake_error(none ? cudaErrorMemoryAllocation : cudaSuccess);
}

void fake_fail_on(int of, uint64_t n) { at_call(n, of, FAILS); }

void fake_lost_card(int of) { LOCKED((fake_run_all(), lost[of] = true)); }
void fake_lost(void)
{
    for (int d = 0; d < FAKE_CARDS; d++) fake_lost_card(d);
}
void fake_memory(size_t bytes) { LOCKED(capacity = bytes); }
void fake_devices(int count) { LOCKED(device_count = count); }
void fake_capability(int of, int times_ten) { LOCKED(capability[of] = times_ten); }
void fake_pinned(bool is) { LOCKED(pinned = is); }

/* ---- memory of the fake itself ---- */

static int (*system_alloc)(void **p, size_t alignment, size_t bytes);
static void (*system_free)(void *p);

static void find_system(void)
{
    *(void **)&system_alloc = dlsym(RTLD_DEFAULT, "posix_memalign");
    *(void **)&system_free = dlsym(RTLD_DEFAULT, "free");
}

void *fake_alloc(size_t bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    void *p = NULL;
    pthread_once(&once, find_system);
    if (system_alloc(&p, 256, bytes)) return NULL;
    return memset(p, 0, bytes);
}

void fake_free(void *p)
{
    if (p) system_free(p);
}

/* ---- errors ---- */

cudaError_t fake_error(cudaError_t e)
{
    if (e != cudaSuccess) last_error = e;
    return e;
}

/* No thread may wait for a stream under capture. */
static cudaError_t not_recorded(cudaStream_t s)
{
    if (!s || !s->capturing) return cudaSuccess;
    s->spoilt = true;
    return fake_error(cudaErrorStreamCaptureUnsupported);
}

cudaError_t fake_outside_graphs(void)
{
    if (!capturing) return cudaSuccess;
    capturing->spoilt = true;
    return fake_error(cudaErrorStreamCaptureUnsupported);
}

/* Work that was queued before a card is lost, or before a kernel goes wrong, has run. */
static cudaError_t entering(cudaError_t scripted)
{
    fake_counted.calls++;
    if (lost[device]) return cudaErrorIllegalAddress;
    if (!left || (failing >= 0 && failing != device) || --left) return cudaSuccess;
    failed = true;
    if (script == FAILS) return scripted;
    fake_run_all();
    (script == LOSES ? lost : crashed)[device] = true;
    return script == LOSES ? cudaErrorIllegalAddress : cudaSuccess;
}

/* A call that waits for a card notices that a kernel has gone wrong. */
static void notice_crash(int of)
{
    if (of >= 0 && crashed[of]) lost[of] = true;
}

/* While this card was waited for, it may have gone wrong. */
static cudaError_t after_wait(void)
{
    LOCKED(notice_crash(device); const bool is = lost[device]);
    return is ? fake_error(cudaErrorIllegalAddress) : cudaSuccess;
}

static cudaError_t enter_wait(cudaError_t scripted)
{
    LOCKED((notice_crash(device)));
    return fake_enter(scripted);
}

cudaError_t fake_enter(cudaError_t scripted)
{
    LOCKED(cudaError_t e = entering(scripted));
    return fake_error(e);
}

bool fake_vendor_fails(void)
{
    LOCKED(cudaError_t e = entering(cudaErrorUnknown));
    return e != cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

static bool is_lost_here(void)
{
    LOCKED(const bool is = lost[device]);
    return is;
}

cudaError_t cudaPeekAtLastError(void) { return is_lost_here() ? cudaErrorIllegalAddress : last_error; }

const char *cudaGetErrorName(cudaError_t e)
{
    switch ((int)e) {
#define NAMED(name)                                                                                          \
    case name: return #name;
        NAMED(cudaSuccess)
        NAMED(cudaErrorInvalidValue)
        NAMED(cudaErrorMemoryAllocation)
        NAMED(cudaErrorNoDevice)
        NAMED(cudaErrorInvalidDevice)
        NAMED(cudaErrorInvalidResourceHandle)
        NAMED(cudaErrorIllegalAddress)
        NAMED(cudaErrorUnknown)
    default: return "cudaErrorOther";
    }
}

const char *cudaGetErrorString(cudaError_t e)
{
    if (e == cudaErrorMemoryAllocation) return "out of fake memory";
    return "a fake error";
}

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    ENTER(cudaErrorUnknown);
    LOCKED(*count = device_count);
    return *count ? cudaSuccess : fake_error(cudaErrorNoDevice);
}

/* Functions that get or set the current device work on a lost device too. */
static cudaError_t enter_any(void)
{
    LOCKED(const cudaError_t e = entering(cudaErrorUnknown));
    return is_lost_here() ? cudaSuccess : fake_error(e);
}

cudaError_t cudaGetDevice(int *current)
{
    const cudaError_t e = enter_any();
    if (e == cudaSuccess) *current = device;
    return e;
}

cudaError_t cudaSetDevice(int to)
{
    const cudaError_t e = enter_any();
    if (e != cudaSuccess) return e;
    if (to < 0 || to >= device_count) return fake_error(cudaErrorInvalidDevice);
    device = to;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int of)
{
    ENTER(cudaErrorUnknown);
    if (of < 0 || of >= device_count) return fake_error(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    strcpy(p->name, "Pretended GPU");
    p->totalGlobalMem = capacity;
    p->major = 9;
    p->multiProcessorCount = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int of)
{
    ENTER(cudaErrorUnknown);
    if (of < 0 || of >= device_count) return fake_error(cudaErrorInvalidDevice);
    const int times_ten = capability[of] ? capability[of] : 90;
    if (attribute == cudaDevAttrMultiProcessorCount) *value = 1;
    else *value = attribute == cudaDevAttrComputeCapabilityMajor ? times_ten / 10 : times_ten % 10;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int of, int peer)
{
    ENTER(cudaErrorUnknown);
    *can = of != peer && of >= 0 && peer >= 0;
    return of < device_count && peer < device_count ? cudaSuccess : fake_error(cudaErrorInvalidDevice);
}

static cudaError_t version(int *v)
{
    ENTER(cudaErrorUnknown);
    *v = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *v) { return version(v); }
cudaError_t cudaRuntimeGetVersion(int *v) { return version(v); }

/* ---- memory ---- */

static block **find(const void *p, size_t bytes)
{
    block **b = &blocks;
    for (; *b; b = &(*b)->next)
        if ((const char *)p >= (*b)->p && (const char *)p - (*b)->p <= (ptrdiff_t)(*b)->bytes &&
            bytes <= (size_t)((*b)->p + (*b)->bytes - (const char *)p))
            break;
    return b;
}

static bool owns(int of, const void *p, size_t bytes)
{
    LOCKED(const block *b = *find(p, bytes); bool own = b && b->device == of);
    return own;
}

bool fake_owns(const void *p, size_t bytes) { return owns(device, p, bytes); }
int fake_device(void) { return device; }

int fake_context(void)
{
    LOCKED(const int context = ended[device] * FAKE_CARDS + device);
    return context;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p)
{
    ENTER(cudaErrorUnknown);
    LOCKED(const block *b = *find(p, 1); const int on = b ? b->device : -1);
    *a = (struct cudaPointerAttributes){ .type = on < 0 ? cudaMemoryTypeUnregistered : cudaMemoryTypeDevice,
                                         .device = on,
                                         .devicePointer = on < 0 ? NULL : (void *)p };
    return cudaSuccess;
}

static cudaError_t take(void **p, size_t bytes)
{
    block *b = NULL;
    *p = NULL;
    if (bytes <= capacity && in_use[device] <= capacity - bytes) b = fake_alloc(sizeof *b);
    if (!b || !(*p = fake_alloc(bytes))) {
        fake_free(b);
        return cudaErrorMemoryAllocation;
    }
    memset(*p, 0xff, bytes);
    *b = (block){ blocks, *p, bytes, device };
    blocks = b;
    in_use[device] += bytes;
    fake_counted.memory += bytes;
    if (fake_counted.memory > fake_counted.peak) fake_counted.peak = fake_counted.memory;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    ENTER(cudaErrorMemoryAllocation);
    OUTSIDE_GRAPHS();
    if (!bytes) {
        *p = NULL;
        return cudaSuccess;
    }
    LOCKED(cudaError_t e = take(p, bytes));
    return fake_error(e);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    ENTER(cudaErrorUnknown);
    OUTSIDE_GRAPHS();
    LOCKED((*total = capacity, *free = capacity > in_use[device] ? capacity - in_use[device] : 0));
    return cudaSuccess;
}

static void run_until(cudaStream_t s, uint64_t until);

/* Runs all work, and waits for that of one card. */
static void run_device(int of)
{
    fake_run_all();
    for (cudaStream_t s = streams; s; s = s->next)
        if (s->device == of) run_until(s, s->queued);
}

void fake_drain_all(void) { LOCKED(run_device(device)); }

/* While it waits for other ranks, the list of blocks may change. */
static cudaError_t release(void *p)
{
    const block *found = *find(p, 0);
    if (!found || found->p != p) return cudaErrorInvalidValue;
    run_device(found->device);
    block **at = find(p, 0), *b = *at;
    in_use[b->device] -= b->bytes;
    fake_counted.memory -= b->bytes;
    *at = b->next;
    fake_free(b->p);
    fake_free(b);
    return cudaSuccess;
}

/* Waits for the device like the real function. A scripted failure reports an error of earlier work
 * and still frees. */
cudaError_t cudaFree(void *p)
{
    cudaError_t e = enter_wait(cudaErrorUnknown);
    OUTSIDE_GRAPHS();
    if (!p || (e && is_lost_here())) return e;
    LOCKED(cudaError_t r = release(p));
    if (e) return e;
    return fake_error(r);
}

/* ---- streams ---- */

static bool is_lost(int of) { return of >= 0 && (lost[of] || crashed[of]); }

/* A card that waits for work of a lost one goes wrong too. */
static bool advance(cudaStream_t s, uint64_t until);
static bool has_waited(cudaStream_t s, const task *t)
{
    if (!advance(t->other, t->until)) return false;
    if (s->device >= 0 && is_lost(t->other->device)) crashed[s->device] = true;
    return true;
}

static bool try_task(cudaStream_t s, task *t)
{
    const bool is_alive = s->device >= 0 && !is_lost(s->device);
    if (t->other) return has_waited(s, t);
    if (t->tries) return t->tries(t->args, !is_alive);
    if (is_alive) t->run(t->args);
    return true;
}

/* Runs the stream up to a position. false: before that, it has to wait for other ranks. The lock is held all
 * the time, so that the first task stays the same until it has run. */
static bool advance(cudaStream_t s, uint64_t until)
{
    while (s->done < until) {
        task *t = s->first;
        if (!try_task(s, t)) return false;
        if (!(s->first = t->next)) s->last = &s->first;
        s->done++;
        fake_free(t);
        fake_progress();
    }
    return true;
}

void fake_progress(void)
{
    progress++;
    pthread_cond_broadcast(&news);
}

void fake_run_all(void)
{
    uint64_t before;
    do {
        before = progress;
        for (cudaStream_t s = streams; s; s = s->next) (void)advance(s, s->queued);
    } while (progress != before);
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Releases the lock for at most a millisecond, so that delays are noticed, too. */
static void wait_for_news(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += 1000000;
    if (t.tv_nsec >= 1000000000) t = (struct timespec){ t.tv_sec + 1, t.tv_nsec - 1000000000 };
    pthread_cond_timedwait(&news, &fake_lock, &t);
}

/* The streams of other ranks run here up to their calls, too, if these are queued. Otherwise their threads
 * will queue them. */
static void run_until(cudaStream_t s, uint64_t until)
{
    double since = seconds_now();
    while (!advance(s, until)) {
        const uint64_t before = progress;
        fake_run_all();
        if (progress == before) wait_for_news();
        if (progress != before) since = seconds_now();
        else if (seconds_now() - since > fake_nccl_patience) fake_nccl_give_up();
    }
}

void fake_drain(cudaStream_t s)
{
    LOCKED({
        run_until(s, s->queued);
        notice_crash(s->device);
    });
}

static task *new_task(const task *head, const void *args, size_t bytes)
{
    task *t = fake_alloc(sizeof *t + bytes);
    if (!t) return NULL;
    *t = *head;
    t->next = NULL;
    t->bytes = bytes;
    if (bytes) memcpy(t->args, args, bytes);
    return t;
}

static bool set_after(cudaStream_t s, const cudaGraphNode_t *after, size_t count)
{
    cudaGraphNode_t *own = fake_alloc((count + 1) * sizeof(cudaGraphNode_t));
    if (!own) return false;
    if (count) memcpy(own, after, count * sizeof(cudaGraphNode_t));
    fake_free(s->after);
    s->after = own;
    s->after_count = count;
    return true;
}

static void free_node(cudaGraphNode_t n)
{
    fake_free(n->work);
    fake_free(n->after);
    fake_free(n);
}

/* The node depends on what the stream depends on, and then the stream depends on the node. */
static cudaError_t capture(cudaStream_t s, task *t)
{
    nodes *to = &s->capturing->captured;
    cudaGraphNode_t n = fake_alloc(sizeof *n);
    if (!n) return fake_free(t), cudaErrorMemoryAllocation;
    *n = (struct CUgraphNode_st){ .work = t, .after = s->after, .count = s->after_count };
    s->after = NULL;
    s->after_count = 0;
    if (!set_after(s, &n, 1)) return free_node(n), cudaErrorMemoryAllocation;
    *to->last = n;
    to->last = &n->next;
    return cudaSuccess;
}

static cudaError_t append(cudaStream_t s, const task *head, const void *args, size_t bytes)
{
    task *t = new_task(head, args, bytes);
    if (!t) return cudaErrorMemoryAllocation;
    if (s->capturing) return capture(s, t);
    *s->last = t;
    s->last = &t->next;
    s->queued++;
    fake_progress();
    return cudaSuccess;
}

static cudaStream_t stream_of(cudaStream_t s);

static cudaError_t queue_task(cudaStream_t s, const task *head, const void *args, size_t bytes)
{
    s = stream_of(s);
    if (!s || s->device != device) return fake_error(cudaErrorInvalidResourceHandle);
    LOCKED(cudaError_t e = append(s, head, args, bytes));
    return fake_error(e);
}

cudaError_t fake_queue(cudaStream_t s, void (*run)(void *), const void *args, size_t bytes)
{
    return queue_task(s, &(task){ .run = run }, args, bytes);
}

bool fake_captures(cudaStream_t s)
{
    LOCKED(const bool does = s->capturing != NULL);
    return does;
}

cudaError_t fake_queue_trying(cudaStream_t s, fake_trying *tries, const void *args, size_t bytes)
{
    return queue_task(s, &(task){ .tries = tries }, args, bytes);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    ENTER(cudaErrorUnknown);
    cudaStream_t s = fake_alloc(sizeof *s);
    if (!s) return fake_error(cudaErrorMemoryAllocation);
    s->device = device;
    s->last = &s->first;
    LOCKED((s->next = streams, streams = s));
    *stream = s;
    return flags == cudaStreamNonBlocking ? cudaSuccess : fake_error(cudaErrorInvalidValue);
}

enum { GREATEST_PRIORITY = -5 };
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    return priority == GREATEST_PRIORITY ? cudaStreamCreateWithFlags(stream, flags)
                                         : fake_error(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER(cudaErrorUnknown);
    *least = 0;
    *greatest = GREATEST_PRIORITY;
    return cudaSuccess;
}

/* Other streams may still wait for its work, so the structure stays. */
cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    ENTER(cudaErrorUnknown);
    if (!s || s->device != device) return fake_error(cudaErrorInvalidResourceHandle);
    LOCKED((fake_run_all(), s->device = s->done == s->queued ? -1 : s->device));
    return cudaSuccess;
}

static cudaStream_t default_streams[FAKE_CARDS]
                                   [2]; /* the legacy one, and the one per thread: of one thread */

/* The stream that one of CUDA's constants means. */
static cudaStream_t stream_of(cudaStream_t s)
{
    if (s != cudaStreamLegacy && s != cudaStreamPerThread) return s;
    cudaStream_t *of = &default_streams[device][s == cudaStreamPerThread];
    LOCKED(const bool exists = *of && (*of)->device == device);
    if (!exists && cudaStreamCreateWithFlags(of, cudaStreamNonBlocking) != cudaSuccess) return NULL;
    return *of;
}

/* A scripted failure reports an error of earlier work; the function has waited all the same. */
cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    cudaError_t e = enter_wait(cudaErrorUnknown);
    OUTSIDE_GRAPHS();
    s = stream_of(s);
    if (!s || s->device < 0) return fake_error(cudaErrorInvalidResourceHandle);
    LOCKED(const cudaError_t recorded = not_recorded(s));
    if (recorded != cudaSuccess) return recorded;
    fake_drain(s);
    LOCKED(fake_counted.synchronisations++);
    return e ? e : after_wait();
}

/* A scripted failure reports an error of earlier work; the function has waited. */
cudaError_t cudaDeviceSynchronize(void)
{
    const cudaError_t e = enter_wait(cudaErrorUnknown);
    OUTSIDE_GRAPHS();
    LOCKED({
        run_device(device);
        fake_counted.synchronisations++;
    });
    return e ? e : after_wait();
}

/* Runs the stream up to a position if it does not have to wait for other ranks. */
static cudaError_t query(cudaStream_t s, uint64_t until)
{
    LOCKED(fake_run_all(); const bool done = s->done >= until);
    return done ? after_wait() : fake_error(cudaErrorNotReady);
}

/* The default stream has no work here. */
cudaError_t cudaStreamQuery(cudaStream_t s)
{
    const cudaError_t e = enter_wait(cudaErrorUnknown);
    if (e != cudaSuccess || !s) return e;
    s = stream_of(s);
    if (!s || s->device < 0) return fake_error(cudaErrorInvalidResourceHandle);
    LOCKED(const uint64_t queued = s->queued);
    return query(s, queued);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    const cudaError_t e = enter_wait(cudaErrorUnknown);
    if (e != cudaSuccess) return e;
    if (!event || event->device < 0) return fake_error(cudaErrorInvalidResourceHandle);
    LOCKED(const cudaStream_t s = event->stream; const uint64_t at = event->at);
    return s ? query(s, at) : cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    ENTER(cudaErrorUnknown);
    *event = fake_alloc(sizeof **event);
    if (!*event) return fake_error(cudaErrorMemoryAllocation);
    (*event)->device = device;
    LOCKED(((*event)->next = events, events = *event));
    return flags & cudaEventDisableTiming ? cudaSuccess : fake_error(cudaErrorInvalidValue);
}

/* Streams that wait for it hold a position, not the event. */
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    const cudaError_t e = fake_enter(cudaErrorUnknown);
    if (!event) return fake_error(cudaErrorInvalidResourceHandle);
    LOCKED({
        cudaEvent_t *at = &events;
        while (*at != event) at = &(*at)->next;
        *at = event->next;
    });
    fake_free(event);
    return e;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    ENTER(cudaErrorUnknown);
    OUTSIDE_GRAPHS();
    s = stream_of(s);
    if (!s || s->device != e->device) return fake_error(cudaErrorInvalidResourceHandle);
    LOCKED((e->stream = s, e->at = s->queued, e->within = s->capturing));
    return cudaSuccess;
}

/* A scripted failure reports an error of earlier work; the function has waited. */
cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    const cudaError_t e = enter_wait(cudaErrorUnknown);
    OUTSIDE_GRAPHS();
    if (!event || event->device < 0) return fake_error(cudaErrorInvalidResourceHandle);
    LOCKED(if (event->stream) run_until(event->stream, event->at));
    return e ? e : after_wait();
}

/* A stream that waits for an event of a capture joins the capture. */
static bool join(cudaStream_t s, cudaEvent_t e)
{
    if (!e->within || e->stream->capturing != e->within || s->capturing) return false;
    s->capturing = e->within;
    return s->joined = e->stream->unjoined = true;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned int flags)
{
    fake_at(FAKE_WAIT);
    ENTER(cudaErrorUnknown);
    OUTSIDE_GRAPHS();
    s = stream_of(s);
    if (!s || s->device < 0 || e->device < 0 || flags) return fake_error(cudaErrorInvalidValue);
    LOCKED(const bool nothing = !e->stream || e->stream == s);
    if (nothing) return cudaSuccess;
    LOCKED(const bool joins = join(s, e));
    if (joins) return cudaSuccess;
    LOCKED(cudaError_t r = append(s, &(task){ .other = e->stream, .until = e->at }, NULL, 0));
    return fake_error(r);
}

/* ---- graphs: work captured from a stream, executed at each launch in a random order ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode)
{
    ENTER(cudaErrorUnknown);
    if (!s || s->device < 0 || s->capturing || capturing || mode != cudaStreamCaptureModeThreadLocal)
        return fake_error(cudaErrorInvalidValue);
    cudaGraph_t g = fake_alloc(sizeof *g);
    if (!g) return fake_error(cudaErrorMemoryAllocation);
    g->captured.last = &g->captured.first;
    LOCKED((s->capturing = g, s->spoilt = false, capturing = s));
    return cudaSuccess;
}

static void free_nodes(nodes *list)
{
    for (cudaGraphNode_t n = list->first, next; n; n = next) {
        next = n->next;
        free_node(n);
    }
}

static cudaError_t enter_capture(cudaStream_t s)
{
    ENTER(cudaErrorUnknown);
    return s && s->capturing ? cudaSuccess : fake_error(cudaErrorInvalidValue);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
                                     size_t *count)
{
    const cudaError_t e = enter_capture(s);
    if (e != cudaSuccess) return e;
    *status = s->spoilt ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
    *dependencies = s->after;
    *count = s->after_count;
    return cudaSuccess;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t *dependencies,
                                                const cudaGraphEdgeData *edges, size_t count,
                                                unsigned int flags)
{
    const cudaError_t e = enter_capture(s);
    if (e != cudaSuccess) return e;
    const size_t before = flags == cudaStreamSetCaptureDependencies ? 0 : s->after_count;
    cudaGraphNode_t *all = fake_alloc((before + count + 1) * sizeof(cudaGraphNode_t));
    if (!all) return fake_error(cudaErrorMemoryAllocation);
    if (before) memcpy(all, s->after, before * sizeof(cudaGraphNode_t));
    if (count) memcpy(all + before, dependencies, count * sizeof(cudaGraphNode_t));
    LOCKED(const bool done = set_after(s, all, before + count));
    fake_free(all);
    return done ? cudaSuccess : fake_error(cudaErrorMemoryAllocation);
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    if (g) free_nodes(&g->captured);
    fake_free(g);
    return cudaSuccess;
}

/* Ends the capture of streams that joined. Their captured work is lost with the graph. */
static void leave_graph(cudaStream_t s, cudaGraph_t g)
{
    for (cudaStream_t o = streams; o; o = o->next)
        if (o->joined && o->capturing == g) {
            o->capturing = NULL;
            o->joined = false;
        }
    s->spoilt |= s->unjoined;
    s->unjoined = false;
    s->capturing = NULL;
    fake_free(s->after);
    s->after = NULL;
    s->after_count = 0;
}

/* Ends the capture whatever it returns. */
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph)
{
    const cudaError_t e = fake_enter(cudaErrorUnknown);
    *graph = NULL;
    if (!s || s != capturing) return fake_error(cudaErrorInvalidValue);
    cudaGraph_t g = s->capturing;
    LOCKED(leave_graph(s, g));
    capturing = NULL;
    if (!e && !s->spoilt) {
        *graph = g;
        return cudaSuccess;
    }
    (void)cudaGraphDestroy(g);
    if (e) return e;
    return fake_error(cudaErrorStreamCaptureInvalidated);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    ENTER(cudaErrorMemoryAllocation);
    if (!graph || flags) return fake_error(cudaErrorInvalidValue);
    cudaGraphExec_t x = *exec = fake_alloc(sizeof *x);
    if (!x) return fake_error(cudaErrorMemoryAllocation);
    x->captured = graph->captured;
    graph->captured = (nodes){ 0 };
    LOCKED((fake_counted.graphs_alive++));
    return cudaSuccess;
}

/* Can it run now, in this launch? */
static bool is_ready(const struct CUgraphNode_st *n, uint64_t launch)
{
    bool ready = n->launch != launch;
    for (size_t i = 0; i < n->count; i++) ready &= n->after[i]->launch == launch;
    return ready;
}

/* One of the nodes that can run now, or NULL. */
static cudaGraphNode_t any_ready(const nodes *all, uint64_t launch)
{
    static uint32_t state = 1;
    cudaGraphNode_t chosen = NULL;
    uint32_t ready = 0;
    for (cudaGraphNode_t n = all->first; n; n = n->next) {
        if (!is_ready(n, launch)) continue;
        state = state * 1664525 + 1013904223;
        if ((state >> 8) % ++ready == 0) chosen = n;
    }
    fake_counted.choices += ready > 1;
    return chosen;
}

static cudaError_t append_all(cudaGraphExec_t exec, cudaStream_t s)
{
    cudaError_t e = cudaSuccess;
    const uint64_t launch = ++exec->launches;
    for (cudaGraphNode_t n; !e && (n = any_ready(&exec->captured, launch));) {
        e = append(s, n->work, n->work->args, n->work->bytes);
        n->launch = launch;
    }
    return e;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s)
{
    cudaError_t e = cudaSuccess;
    ENTER(cudaErrorUnknown);
    if ((e = fake_launches())) return e;
    OUTSIDE_GRAPHS();
    if (!exec || !s || s->device != device) return fake_error(cudaErrorInvalidResourceHandle);
    LOCKED({
        e = append_all(exec, s);
        fake_counted.graphs++;
    });
    return fake_error(e);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    const cudaError_t e = fake_enter(cudaErrorUnknown);
    if (!exec) return fake_error(cudaErrorInvalidResourceHandle);
    free_nodes(&exec->captured);
    fake_free(exec);
    LOCKED((fake_counted.graphs_alive--));
    return e;
}

/* ---- copies ---- */

typedef struct copying {
    void *to;
    const void *from; /* or NULL: the bytes follow */
    size_t bytes;
} copying;

static void run_copy(void *args)
{
    const copying *c = args;
    memcpy(c->to, c->from ? c->from : c + 1, c->bytes);
}

/* Host memory may start directly after a block. */
static bool is_device(const void *p)
{
    LOCKED(const bool is = *find(p, 1) != NULL);
    return is;
}

static cudaError_t upload(void *to, const void *from, size_t bytes, cudaStream_t s)
{
    bool is_pinned;
    if (!fake_owns(to, bytes) || is_device(from) || !fake_is_whole(from, bytes, &is_pinned))
        return fake_error(cudaErrorInvalidValue);
    LOCKED((fake_counted.uploads++));
    if (pinned || is_pinned) return fake_queue(s, run_copy, &(copying){ to, from, bytes }, sizeof(copying));
    copying *c = fake_alloc(sizeof *c + bytes);
    if (!c) return fake_error(cudaErrorMemoryAllocation);
    *c = (copying){ to, NULL, bytes };
    memcpy(c + 1, from, bytes);
    cudaError_t e = fake_queue(s, run_copy, c, sizeof *c + bytes);
    fake_free(c);
    return e;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s)
{
    if (kind == cudaMemcpyDeviceToHost) fake_at(FAKE_FETCH);
    ENTER(cudaErrorUnknown);
    OUTSIDE_GRAPHS();
    if (kind == cudaMemcpyHostToDevice) return upload(to, from, bytes, s);
    bool to_host = kind == cudaMemcpyDeviceToHost;
    bool is_pinned;
    if (!fake_owns(from, bytes) ||
        (to_host ? is_device(to) || !fake_is_whole(to, bytes, &is_pinned) : !fake_owns(to, bytes)))
        return fake_error(cudaErrorInvalidValue);
    LOCKED((fake_counted.downloads += to_host));
    return fake_queue(s, run_copy, &(copying){ to, from, bytes }, sizeof(copying));
}

/* Copies between two devices, on a stream of the current one. */
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t s)
{
    ENTER(cudaErrorUnknown);
    OUTSIDE_GRAPHS();
    if (!owns(to_device, to, bytes) || !owns(from_device, from, bytes) || to_device == from_device)
        return fake_error(cudaErrorInvalidValue);
    LOCKED((fake_counted.copies++));
    return fake_queue(s, run_copy, &(copying){ to, from, bytes }, sizeof(copying));
}

typedef struct setting {
    void *p;
    int value;
    size_t bytes;
} setting;

static void run_set(void *args)
{
    const setting *m = args;
    memset(m->p, m->value, m->bytes);
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s)
{
    ENTER(cudaErrorUnknown);
    if (!fake_owns(p, bytes)) return fake_error(cudaErrorInvalidValue);
    return fake_queue(s, run_set, &(setting){ p, value, bytes }, sizeof(setting));
}

/* ---- the end of a context ---- */

static void free_blocks_of(int of)
{
    for (block **at = &blocks, *b; (b = *at);) {
        if (b->device != of) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        fake_counted.memory -= b->bytes;
        fake_free(b->p);
        fake_free(b);
    }
    in_use[of] = 0;
}

/* Streams and events are kept, so that calls with them can be refused. */
static void end_context(int of)
{
    fake_run_all(); /* other cards may copy from this one */
    fake_nccl_end(of);
    for (cudaStream_t s = streams; s; s = s->next)
        if (s->device == of) s->device = -1;
    for (cudaEvent_t e = events; e; e = e->next)
        if (e->device == of) e->device = -1;
    free_blocks_of(of);
    fake_counted.resets++;
    ended[of]++;
    lost[of] = crashed[of] = false;
}

/* Works for a lost card, too. A scripted failure changes nothing. */
cudaError_t cudaDeviceReset(void)
{
    pthread_mutex_lock(&fake_lock);
    const bool was_lost = lost[device];
    lost[device] = false;
    const cudaError_t e = no_reset ? cudaErrorIllegalAddress : entering(cudaErrorUnknown);
    lost[device] |= was_lost;
    if (e == cudaSuccess) end_context(device);
    pthread_mutex_unlock(&fake_lock);
    if (e == cudaSuccess) fake_forget_pinned(device);
    return fake_error(e);
}
