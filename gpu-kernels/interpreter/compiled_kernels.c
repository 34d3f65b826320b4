/* compiled_kernels.c - makes kernels in a thread of its own, and keeps them (compiled_kernels.h). */
#define _GNU_SOURCE
#include "compiled_kernels.h"
#include "generated_mode.h"
#include "kernel_code.h"
#include "thread.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* So many kernels are kept; beyond it, those are freed that no graph has and that did not run recently. */
#define KERNELS_MOST 1024
#define TABLE        4096   /* slots: a power of two */
#define HEATS        8192   /* counters: a power of two */
#define COOLING      65536  /* launches of programs without a kernel, after which counters are halved */
#define REFUSALS     64     /* programs that get no kernel before kernels are freed again */
#define HOT          100    /* launches after which a kernel is made ... */
#define HOT_BYTES    2.56e8 /* ... where one that moves this counts as 10 */

enum state { COLD, WAITING, READY, FAILED };

/* What a kernel is made for, without padding. */
typedef struct key {
    ptx_request form;
    uint64_t device;
    program program;
} key;

struct compiled_kernel {
    enum state state;
    bool counted;  /* in the statistics */
    bool recent;   /* it ran since free_some */
    int graphs;    /* that contain it, or will */
    int launching; /* threads that are about to launch it */
    kernel_code code;
    compiled_kernel *next; /* of those that wait */
    uint64_t hash;
    size_t length; /* bytes of the key that are compared */
    key key;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static compiled_kernel *table[TABLE];
static int count;
static uint16_t heat[HEATS];

/* The thread that makes kernels, and its work. */
static struct worker {
    bool started, stops;
    pid_t process; /* that it belongs to */
    int device;    /* of the kernel that it makes, or -1 */
    compiled_kernel *first, *last;
    pthread_t thread;
    pthread_cond_t work, idle;
} worker = { .device = -1, .work = PTHREAD_COND_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER };

static unsigned made; /* kernels that became ready, or failed */

static bool make(const key *k, kernel_code *c)
{
    return kernel_code_make(c, (int)k->device, &k->form, &k->program);
}

/* ---- the thread; finish, make_first, start_thread and hand_over are called with the lock held ---- */

static void finish(compiled_kernel *k, bool done, const kernel_code *c)
{
    k->code = *c;
    k->state = done ? READY : FAILED;
    __atomic_fetch_add(&made, 1, __ATOMIC_RELEASE);
}

static void make_first(void)
{
    compiled_kernel *k = worker.first;
    kernel_code c = { NULL };
    worker.first = k->next;
    worker.device = (int)k->key.device;
    pthread_mutex_unlock(&lock);
    const bool done = make(&k->key, &c);
    pthread_mutex_lock(&lock);
    finish(k, done, &c);
    worker.device = -1;
    pthread_cond_broadcast(&worker.idle);
}

/* Waits for the thread at exit: the driver must not be unloaded while it compiles. After fork() the child
 * does not have this thread. */
static void stop(void)
{
    if (worker.process != getpid()) return;
    pthread_mutex_lock(&lock);
    const bool running = worker.started && !worker.stops;
    worker.stops = true;
    pthread_cond_signal(&worker.work);
    pthread_mutex_unlock(&lock);
    if (running) pthread_join(worker.thread, NULL);
}

/* At exit, the destructors of a library run before functions that were registered with atexit before the
 * library was loaded. So this loads the driver's compiler, and then registers `stop` again. */
static bool prepare_exit(void)
{
    (void)dlopen("libnvidia-ptxjitcompiler.so.1", RTLD_NOW | RTLD_LOCAL);
    return !atexit(stop);
}

static void *run(void *none)
{
    const bool prepared = prepare_exit();
    pthread_mutex_lock(&lock);
    worker.stops |= !prepared;
    while (!worker.stops) {
        if (worker.first) make_first();
        else pthread_cond_wait(&worker.work, &lock);
    }
    pthread_mutex_unlock(&lock);
    return none;
}

/* The thread blocks all signals, so that the program's own threads receive them. If starting fails, it is
 * not tried again. */
static bool start_thread(void)
{
    sigset_t all, before;
    if (worker.started || worker.stops) return worker.started && !worker.stops;
    sigfillset(&all);
    worker.process = getpid();
    if (!pthread_sigmask(SIG_SETMASK, &all, &before)) {
        worker.started = !atexit(stop) && !pthread_create(&worker.thread, NULL, run, NULL);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    worker.stops = !worker.started;
    return worker.started;
}

static void hand_over(compiled_kernel *k)
{
    if (!start_thread()) {
        k->state = FAILED;
        return;
    }
    k->state = WAITING;
    k->next = NULL;
    if (worker.first) worker.last->next = k;
    else worker.first = k;
    worker.last = k;
    pthread_cond_signal(&worker.work);
}

/* ---- what a graph keeps ---- */

typedef struct kernel_use {
    compiled_kernel *kernel;
    bool waited; /* it was not ready when the graph was captured, which contains the interpreter's instead */
} kernel_use;

struct kernels_used {
    unsigned seen; /* `made` at the last look */
    int count, capacity;
    int waited; /* how many uses */
    kernel_use *list;
};

/* Keeps a kernel as long as the graph. The lock is held. */
static bool use(kernels_used *u, compiled_kernel *k)
{
    if (u->count == u->capacity) {
        const int capacity = u->capacity ? 2 * u->capacity : 4;
        kernel_use *more = realloc(u->list, (size_t)capacity * sizeof *more);
        if (!more) return false;
        u->list = more;
        u->capacity = capacity;
    }
    u->list[u->count++] = (kernel_use){ k, k->state == WAITING };
    u->waited += k->state == WAITING;
    k->graphs++;
    return true;
}

/* ---- finding; the lock is held ---- */

/* Four chains, because each multiplication waits for the one before it. */
static uint64_t hash_of(const key *k, size_t length)
{
    uint64_t h[4] = { length, 1, 2, 3 };
    for (size_t at = 0; at < length; at += 32) {
        uint64_t word[4] = { 0 };
        memcpy(word, (const char *)k + at, length - at < 32 ? length - at : 32);
        for (int i = 0; i < 4; i++) {
            h[i] = (h[i] ^ word[i]) * 0x9e3779b97f4a7c15u;
            h[i] ^= h[i] >> 29;
        }
    }
    for (int i = 1; i < 4; i++) h[0] = (h[0] ^ h[i]) * 0x9e3779b97f4a7c15u;
    return h[0] ^ h[0] >> 29;
}

/* The slot of a key: it may be empty. */
static compiled_kernel **slot_of(const key *k, size_t length, uint64_t hash)
{
    uint64_t at = hash & (TABLE - 1);
    for (;; at = (at + 1) & (TABLE - 1)) {
        const compiled_kernel *here = table[at];
        if (!here || (here->hash == hash && here->length == length && !memcmp(&here->key, k, length))) break;
    }
    return &table[at];
}

/* Has a program run often? Programs that share a counter seem to run more often; so counters are halved
 * from time to time. */
static bool is_hot(uint64_t hash, double bytes)
{
    static unsigned launches;
    uint16_t *h = &heat[hash >> 32 & (HEATS - 1)];
    const double more = 1 + 9 * bytes / HOT_BYTES;
    const unsigned now = *h + (unsigned)(more < HOT ? more : HOT);
    for (int i = 0; i < HEATS && launches == COOLING; i++) heat[i] /= 2;
    launches = launches == COOLING ? 0 : launches + 1;
    *h = (uint16_t)(now < HOT ? now : 0);
    return now >= HOT;
}

/* Frees a kernel unless it is in use or waits for the compiler. A kernel of another device is freed only if
 * it has no code. */
static bool free_kernel(compiled_kernel *k, int device)
{
    if (k->graphs || __atomic_load_n(&k->launching, __ATOMIC_ACQUIRE) || k->state == WAITING) return false;
    if (k->state == READY && ((int)k->key.device != device || !kernel_code_free(&k->code))) return false;
    free(k);
    return true;
}

static void keep_others(int device)
{
    compiled_kernel *left[KERNELS_MOST];
    int n = 0;
    for (int i = 0; i < TABLE; i++) {
        compiled_kernel *k = table[i];
        table[i] = NULL;
        if (!k || (!k->recent && free_kernel(k, device))) continue;
        k->recent = false;
        left[n++] = k;
    }
    for (int i = 0; i < n; i++) *slot_of(&left[i]->key, left[i]->length, left[i]->hash) = left[i];
    count = n;
}

/* Frees kernels that did not run since the last call, when nothing runs. */
static void free_some(int device)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (!kernel_code_exchange_mode(&mode)) return;
    if (cudaDeviceSynchronize() == cudaSuccess) keep_others(device);
    else (void)cudaGetLastError();
    (void)kernel_code_exchange_mode(&mode);
}

/* Is there room for a kernel? free_some() keeps kernels that ran recently, so it may free nothing. It is
 * slow, so it runs only after some programs were refused, and not during a capture. */
static bool make_room(int device, bool captured)
{
    static unsigned refused = REFUSALS;
    if (count < KERNELS_MOST) return true;
    if (captured || refused++ < REFUSALS) return false;
    refused = 0;
    free_some(device);
    return count < KERNELS_MOST;
}

static compiled_kernel *enter(const key *k, size_t length, uint64_t hash, bool captured)
{
    if (!make_room((int)k->device, captured)) return NULL;
    compiled_kernel *new = calloc(1, sizeof *new);
    if (!new) return NULL;
    new->hash = hash;
    new->length = length;
    memcpy(&new->key, k, length);
    *slot_of(k, length, hash) = new;
    count++;
    return new;
}

/* Made by this thread, which holds the lock meanwhile: for tests. */
static void make_now(compiled_kernel *k)
{
    kernel_code c = { NULL };
    const bool done = make(&k->key, &c);
    finish(k, done, &c);
}

static compiled_kernel *find(const key *k, size_t length, double bytes, bool captured)
{
    const uint64_t hash = hash_of(k, length);
    compiled_kernel *found = *slot_of(k, length, hash);
    const bool at_once = generated_when() == GENERATED_AT_ONCE;
    if (likely(found && found->state != COLD)) return found;
    if (!at_once && !captured && !is_hot(hash, bytes)) return NULL;
    if (!found) found = enter(k, length, hash, captured);
    if (found && at_once) make_now(found);
    else if (found) hand_over(found);
    return found;
}

compiled_kernel *compiled_kernel_for(const compiled_source *s, kernels_used *graph, bool *ready)
{
    key k;
    int device;
    const size_t length = offsetof(key, program) + program_bytes(s->program);
    *ready = false;
    if (generated_when() == GENERATED_NEVER || cudaGetDevice(&device) != cudaSuccess) return NULL;
    k.form = s->form;
    k.form.list = NULL;
    k.device = (uint64_t)device;
    memcpy(&k.program, s->program, program_bytes(s->program));
    pthread_mutex_lock(&lock);
    compiled_kernel *found = find(&k, length, s->bytes, graph);
    if (found && (found->state == FAILED || (graph && !use(graph, found)))) found = NULL;
    if (found) found->recent = true;
    if (found && found->state == READY) {
        *ready = true;
        __atomic_fetch_add(&found->launching, 1, __ATOMIC_RELAXED);
        if (!found->counted) COUNT(generated);
        found->counted = true;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* ---- launching ---- */

void compiled_kernel_release(compiled_kernel *k) { __atomic_fetch_sub(&k->launching, 1, __ATOMIC_RELEASE); }

bool compiled_kernel_launch(compiled_kernel *k, const compiled_source *s, void *args, cudaStream_t q)
{
    const bool done = kernel_code_launch(&k->code, (int)k->key.device, s, args, q);
    compiled_kernel_release(k);
    return done;
}

/* ---- for src/gpu ---- */

kernels_used *kernels_used_new(void) { return calloc(1, sizeof(kernels_used)); }

void kernels_used_free(kernels_used *u)
{
    if (!u) return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < u->count; i++) u->list[i].kernel->graphs--;
    pthread_mutex_unlock(&lock);
    free(u->list);
    free(u);
}

/* Are all kernels made for which the capture did not wait, and is any of them ready? */
static bool is_outdated(kernels_used *u)
{
    bool ready = false;
    for (int i = 0; i < u->count; i++) {
        if (!u->list[i].waited) continue;
        if (u->list[i].kernel->state == WAITING) return false;
        ready |= u->list[i].kernel->state == READY;
    }
    u->waited = 0;
    return ready;
}

bool kernels_used_outdated(kernels_used *u)
{
    const unsigned now = __atomic_load_n(&made, __ATOMIC_ACQUIRE);
    if (likely(!u->waited || now == u->seen)) return false;
    u->seen = now;
    pthread_mutex_lock(&lock);
    const bool outdated = is_outdated(u);
    pthread_mutex_unlock(&lock);
    return outdated;
}

/* Kernels end with the context of a device. */
void kernels_forget(int device)
{
    compiled_kernel **at = &worker.first;
    pthread_mutex_lock(&lock);
    while (*at)
        if ((int)(*at)->key.device == device) *at = (*at)->next;
        else {
            worker.last = *at;
            at = &(*at)->next;
        }
    while (worker.device == device) pthread_cond_wait(&worker.idle, &lock);
    for (int i = 0; i < TABLE; i++)
        if (table[i] && (int)table[i]->key.device == device) table[i]->state = COLD;
    pthread_mutex_unlock(&lock);
}

/* The lock is held. */
static bool is_ready(const program *p)
{
    bool found = false;
    for (int i = 0; i < TABLE && !found; i++) {
        const compiled_kernel *k = table[i];
        found = k && k->state == READY && k->key.program.length == p->length &&
                !memcmp(&k->key.program, p, program_bytes(p));
    }
    return found;
}

/* A program of several reductions has one kernel for each output. */
bool kernels_generated(const program *p)
{
    const int kernels = p->reductions ? p->outputs : 1;
    bool ready = kernels <= COMPILED_REDUCE_OUTPUTS;
    pthread_mutex_lock(&lock);
    for (int k = 0; k < kernels && ready; k++) {
        program alone = *p;
        if (p->reductions) compiled_reduce_alone(p, k, &alone);
        ready = is_ready(&alone);
    }
    pthread_mutex_unlock(&lock);
    return ready;
}
