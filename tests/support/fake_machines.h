/* fake_machines.h - two machines for the unit tests of core: host memory, and a device that
 * executes work as late as possible.
 *
 * Work queued on the device runs only when the host waits for its queue, or when another queue that
 * must proceed waits for it. Code that forgets to wait finds old data, or NaN, with which new
 * memory is filled. Any call can be made to fail. */
#ifndef FAKE_MACHINES_H
#define FAKE_MACHINES_H

#include "backend.h"
#include "tap.h"
#include "thread.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum call { HOST_ALLOC, ALLOC, UPLOAD, DOWNLOAD, CLEAR, SYNC, WAIT, PIN, CALLS };

static struct fakes {
    int fail_in[CALLS]; /* the n-th call from now fails */
    int fail_any;       /* the same for calls of any kind */
    bool stubborn;      /* after the next failure, the next call of the same kind fails too */
    bool failed;        /* a call has failed since this was last set to false */
    uint64_t made[CALLS], bytes[CALLS];
    size_t live[SIDES], blocks[SIDES];
    size_t limit[SIDES];    /* limit of the live bytes; 0: none */
    const void *pinned[64]; /* pinned host memory; unused entries are NULL */
    int pins;               /* number of pinned blocks */
    const char *absent;
    const char *wrong; /* description of the last error in the use of the machine */
} fakes;

static pthread_mutex_t fake_machines_lock = PTHREAD_MUTEX_INITIALIZER;
static bool inside_fake; /* inside a machine, whose own allocations are not those of the library */

/* A piece of work: run(arg), a copy from `from`, or zeros. It uses `bytes` bytes at `to`, and at
 * `from` unless that is NULL. */
typedef struct work {
    enum call call;
    void *to;
    const void *from;
    size_t bytes;
    int other; /* for WAIT: the other queue, and the position that it must reach */
    size_t upto;
    void (*run)(void *);
    void *arg;
} work;

static struct {
    work *item;
    size_t count, done, room;
} line[QUEUES];

static void line_add(int q, work w)
{
    if (line[q].count == line[q].room) {
        line[q].room = 2 * line[q].room + 16;
        line[q].item = realloc(line[q].item, line[q].room * sizeof w);
    }
    line[q].item[line[q].count++] = w;
}

static void line_run(int q, size_t upto)
{
    while (line[q].done < upto) {
        work w = line[q].item[line[q].done];
        if (w.call == WAIT) line_run(w.other, w.upto);
        else if (w.run) w.run(w.arg);
        else if (w.from) memcpy(w.to, w.from, w.bytes);
        else memset(w.to, 0, w.bytes);
        line[q].done++;
    }
}

/* Checks that queued work does not touch memory that is released. */
static void line_spares(const char *p, size_t bytes)
{
    for (int q = 0; q < QUEUES; q++)
        for (size_t i = line[q].done; i < line[q].count; i++) {
            const work *w = &line[q].item[i];
            const char *to = w->to, *from = w->from;
            if (w->call == WAIT) continue;
            if (to < p + bytes && p < to + w->bytes)
                fakes.wrong = "memory was freed while a queue wrote there";
            if (from && from < p + bytes && p < from + w->bytes)
                fakes.wrong = "memory was freed while a queue read there";
        }
}

/* Counts a call and decides whether it fails. Locks; pretend_end unlocks. */
static duet_status fake_call_begin(enum call c, size_t bytes)
{
    pthread_mutex_lock(&fake_machines_lock);
    inside_fake = true;
    bool fails = fakes.fail_in[c] > 0 && --fakes.fail_in[c] == 0;
    fails |= fakes.fail_any > 0 && --fakes.fail_any == 0;
    if (fails && fakes.stubborn) fakes.fail_in[c] = 1, fakes.stubborn = false;
    fakes.failed |= fails;
    fakes.made[c] += !fails, fakes.bytes[c] += fails ? 0 : bytes;
    if (!fails) return DUET_OK;
    return fail(c <= ALLOC ? DUET_NO_MEMORY : DUET_DEVICE_ERROR, "the pretend machine fails at call %d",
                (int)c);
}

static duet_status fake_call_end(duet_status s)
{
    inside_fake = false;
    pthread_mutex_unlock(&fake_machines_lock);
    return s;
}

static const void **find_pinned(const void *p)
{
    for (int i = 0; i < 64; i++)
        if (fakes.pinned[i] == p) return &fakes.pinned[i];
    return NULL;
}

/* The size of a block is stored before it. */
#define FRONT 64
static duet_status block_new(enum side s, size_t bytes, void **p)
{
    duet_status st = fake_call_begin(s == HOST ? HOST_ALLOC : ALLOC, bytes);
    char *b =
        st == DUET_OK && bytes < (size_t)1 << 40 ? aligned_alloc(64, (bytes + FRONT + 63) / 64 * 64) : NULL;
    if (!b) return fake_call_end(st != DUET_OK ? st : DUET_NO_MEMORY);
    memcpy(b, &bytes, sizeof bytes);
    *p = memset(b + FRONT, 0xff, bytes);
    fakes.live[s] += bytes, fakes.blocks[s]++;
    if (fakes.limit[s] && fakes.live[s] > fakes.limit[s]) fakes.wrong = "the limit was passed";
    return fake_call_end(DUET_OK);
}

static void block_free(enum side s, void *p)
{
    pthread_mutex_lock(&fake_machines_lock);
    inside_fake = true;
    char *b = (char *)p - FRONT;
    size_t bytes;
    memcpy(&bytes, b, sizeof bytes);
    line_spares(p, bytes);
    if (find_pinned(p)) fakes.wrong = "memory was freed while it was pinned";
    fakes.live[s] -= bytes, fakes.blocks[s]--;
    free(b);
    fake_call_end(DUET_OK);
}

static duet_status host_alloc(size_t bytes, void **p) { return block_new(HOST, bytes, p); }
static void host_free(void *p) { block_free(HOST, p); }
static duet_status host_clear(void *p, size_t bytes, int queue)
{
    (void)queue;
    return memset(p, 0, bytes), DUET_OK;
}
static duet_status device_alloc(size_t bytes, void **p) { return block_new(DEVICE, bytes, p); }
static void device_free(void *p) { block_free(DEVICE, p); }

static duet_status queue_work(int queue, work w)
{
    duet_status st = fake_call_begin(w.call, w.bytes);
    w.upto = line[w.other].count;
    if (w.call == WAIT && w.other == queue) fakes.wrong = "a queue was told to wait for itself";
    if (st == DUET_OK) line_add(queue, w);
    return fake_call_end(st);
}

static duet_status device_clear(void *p, size_t bytes, int queue)
{
    return queue_work(queue, (work){ .call = CLEAR, .to = p, .bytes = bytes });
}
static duet_status device_upload(void *own, const void *host, size_t bytes, int queue)
{
    return queue_work(queue, (work){ .call = UPLOAD, .to = own, .from = host, .bytes = bytes });
}
static duet_status device_wait(int queue, int other)
{
    return queue_work(queue, (work){ .call = WAIT, .other = other });
}

static duet_status device_download(void *host, const void *own, size_t bytes, int queue)
{
    duet_status st = fake_call_begin(DOWNLOAD, bytes);
    if (st == DUET_OK) {
        line_run(queue, line[queue].count);
        memcpy(host, own, bytes);
    }
    return fake_call_end(st);
}

/* A wait that fails discards the work too, as a lost device does. */
static duet_status device_sync(int queue)
{
    duet_status st = fake_call_begin(SYNC, 0);
    line_run(queue, line[queue].count);
    return fake_call_end(st);
}

static duet_status device_pin(void *host, size_t bytes)
{
    duet_status st = fake_call_begin(PIN, bytes);
    const void **free_place = find_pinned(NULL);
    if (find_pinned(host)) fakes.wrong = "memory was pinned twice";
    if (st == DUET_OK && free_place) *free_place = host, fakes.pins++;
    return fake_call_end(st);
}

static void device_unpin(void *host)
{
    pthread_mutex_lock(&fake_machines_lock);
    const void **place = find_pinned(host);
    if (!place) fakes.wrong = "memory was unpinned that was not pinned";
    else *place = NULL, fakes.pins--;
    pthread_mutex_unlock(&fake_machines_lock);
}

static const char *host_there(void) { return NULL; }
static const char *device_absent(void) { return fakes.absent; }

static size_t keeps_nothing(size_t bytes) { return (void)bytes, 0; }

static const machine fake_host = { .name = "cpu",
                                   .place = DUET_CPU,
                                   .side = HOST,
                                   .absent = host_there,
                                   .alloc = host_alloc,
                                   .free = host_free,
                                   .clear = host_clear,
                                   .spare = keeps_nothing };
static const machine fake_device = { .name = "gpu",
                                     .place = DUET_GPU,
                                     .side = DEVICE,
                                     .absent = device_absent,
                                     .alloc = device_alloc,
                                     .free = device_free,
                                     .clear = device_clear,
                                     .upload = device_upload,
                                     .download = device_download,
                                     .pin = device_pin,
                                     .unpin = device_unpin,
                                     .sync = device_sync,
                                     .wait = device_wait,
                                     .spare = keeps_nothing };
const machine *const machines[SIDES] = { &fake_host, &fake_device };

__attribute__((unused)) static void fake_machines_finish(void)
{
    for (int q = 0; q < QUEUES; q++) {
        line_run(q, line[q].count);
        free(line[q].item);
        memset(&line[q], 0, sizeof line[q]);
    }
}

/* When linked with -Wl,--wrap=malloc,--wrap=calloc, an allocation of the library can be refused. */
extern void *__real_malloc(size_t) __attribute__((weak));
extern void *__real_calloc(size_t, size_t) __attribute__((weak));
static int refuse_in; /* the n-th allocation of the library from now fails */
static bool refused(void) { return refuse_in > 0 && !inside_fake && --refuse_in == 0; }
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n) { return refused() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t each);
void *__wrap_calloc(size_t n, size_t each) { return refused() ? NULL : __real_calloc(n, each); }
__attribute__((unused)) static bool can_refuse(void) { return __real_malloc != NULL; }

#endif
