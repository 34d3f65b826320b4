/* fake_machines.h - devices for the tests of core: the host, two GPUs of one machine, and a device of a third
 * machine, which cannot copy from device to device. Devices run work as late
 * as possible.
 *
 * Work that is queued on a device runs only when the host waits for the queue, or when another queue that
 * must run waits for it. So code that forgets to wait reads old bits, or NaN, which fills all new memory.
 * Each device has separate memory: work that touches another device's memory is an error. A test can make
 * any call fail. */
#ifndef FAKE_MACHINES_H
#define FAKE_MACHINES_H

#include "backend.h"
#include "tap.h"
#include "thread.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum call { HOST_ALLOC, ALLOC, UPLOAD, DOWNLOAD, CLEAR, COPY, SYNC, WAIT, PIN, CALLS };
enum { SECOND_GPU = DEFAULT_GPU + 1, OTHER_DEVICE, FAKE_DEVICES };

static struct fakes {
    int fail_in[CALLS]; /* the n-th call from now fails */
    int fail_any;       /* the n-th call of any kind from now fails */
    bool stubborn;      /* after the next failure, the next call of the same kind fails too */
    bool failed;        /* a call has failed since this was last set to false */
    uint64_t made[CALLS], bytes[CALLS];
    size_t live[FAKE_DEVICES], blocks[FAKE_DEVICES];
    size_t limit[FAKE_DEVICES]; /* the most live bytes of each device; 0: no limit */
    const void *pinned[64];     /* pinned memory of the host; NULL entries are free */
    int pins;                   /* entries of `pinned` in use */
    const char *absent;
    const char *wrong; /* the last error of the library that was detected */
} fakes;

static pthread_mutex_t fake_machines_lock = PTHREAD_MUTEX_INITIALIZER;
static bool inside_fake; /* in a function of the fake: its allocations do not count as the library's */

/* A piece of work: run(arg), a copy from `from`, or zeros. It uses `bytes` bytes at `to`, and at `from`
 * unless that is NULL. */
typedef struct work {
    enum call call;
    void *to;
    const void *from;
    size_t bytes;
    int device, other; /* for WAIT: the queue to wait for, until `upto` items have run */
    size_t upto;
    void (*run)(void *);
    void *arg;
} work;

typedef struct work_line {
    work *item;
    size_t count, done, room;
} work_line;
static work_line lines[FAKE_DEVICES][QUEUES];

static void line_add(int device, int q, work w)
{
    work_line *line = &lines[device][q];
    if (line->count == line->room) {
        line->room = 2 * line->room + 16;
        line->item = realloc(line->item, line->room * sizeof w);
    }
    line->item[line->count++] = w;
}

static void line_run(int device, int q, size_t upto)
{
    work_line *line = &lines[device][q];
    while (line->done < upto) {
        work w = line->item[line->done];
        if (w.call == WAIT) line_run(w.device, w.other, w.upto);
        else if (w.run) w.run(w.arg);
        else if (w.from) memcpy(w.to, w.from, w.bytes);
        else memset(w.to, 0, w.bytes);
        line->done++;
    }
}

/* Work that has not run yet must not touch memory that is given back. */
static void line_spares(const char *p, size_t bytes)
{
    for (int q = 0; q < FAKE_DEVICES * QUEUES; q++) {
        const work_line *line = &lines[q / QUEUES][q % QUEUES];
        for (size_t i = line->done; i < line->count; i++) {
            const work *w = &line->item[i];
            const char *to = w->to, *from = w->from;
            if (w->call == WAIT) continue;
            if (to < p + bytes && p < to + w->bytes)
                fakes.wrong = "memory was freed while a queue wrote there";
            if (from && from < p + bytes && p < from + w->bytes)
                fakes.wrong = "memory was freed while a queue read there";
        }
    }
}

/* Counts a call, and decides whether it fails. Locks; fake_call_end unlocks. */
static duet_status fake_call_begin(enum call c, size_t bytes)
{
    pthread_mutex_lock(&fake_machines_lock);
    inside_fake = true;
    bool fails = fakes.fail_in[c] > 0 && --fakes.fail_in[c] == 0;
    fails |= fakes.fail_any > 0 && --fakes.fail_any == 0;
    if (fails && fakes.stubborn) {
        fakes.fail_in[c] = 1;
        fakes.stubborn = false;
    }
    fakes.failed |= fails;
    fakes.made[c] += !fails;
    if (!fails) {
        fakes.bytes[c] += bytes;
        return DUET_OK;
    }
    return fail(c <= ALLOC ? DUET_NO_MEMORY : DUET_DEVICE_ERROR, "the fake machine fails at call %d", (int)c);
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

/* Each block carries its size and its device in front. */
#define FRONT 64
typedef struct front {
    size_t bytes;
    int device;
} front;

static duet_status block_new(int device, size_t bytes, void **p)
{
    duet_status st = fake_call_begin(device == HOST ? HOST_ALLOC : ALLOC, bytes);
    char *b =
        st == DUET_OK && bytes < (size_t)1 << 40 ? aligned_alloc(64, (bytes + FRONT + 63) / 64 * 64) : NULL;
    if (!b) return fake_call_end(st != DUET_OK ? st : DUET_NO_MEMORY);
    *(front *)b = (front){ bytes, device };
    *p = memset(b + FRONT, 0xff, bytes);
    fakes.live[device] += bytes;
    fakes.blocks[device]++;
    if (fakes.limit[device] && fakes.live[device] > fakes.limit[device]) fakes.wrong = "the limit was passed";
    return fake_call_end(DUET_OK);
}

/* p must be the start of a block. */
static void check_owner(int device, const void *p)
{
    if (((const front *)((const char *)p - FRONT))->device != device)
        fakes.wrong = "a device was given another one's memory";
}

static void block_free(int device, void *p)
{
    pthread_mutex_lock(&fake_machines_lock);
    inside_fake = true;
    const size_t bytes = ((front *)((char *)p - FRONT))->bytes;
    check_owner(device, p);
    line_spares(p, bytes);
    if (find_pinned(p)) fakes.wrong = "memory was freed while it was pinned";
    fakes.live[device] -= bytes;
    fakes.blocks[device]--;
    free((char *)p - FRONT);
    fake_call_end(DUET_OK);
}

static duet_status host_clear(int device, void *p, size_t bytes, int queue)
{
    memset(p, 0, bytes);
    return DUET_OK;
}

static duet_status queue_work(int device, int queue, work w)
{
    duet_status st = fake_call_begin(w.call, w.bytes);
    w.upto = lines[w.device][w.other].count;
    if (w.call == WAIT && w.device == device && w.other == queue)
        fakes.wrong = "a queue was told to wait for itself";
    if (w.call != WAIT) check_owner(device, w.to);
    if (st == DUET_OK) line_add(device, queue, w);
    return fake_call_end(st);
}

static duet_status device_clear(int device, void *p, size_t bytes, int queue)
{
    return queue_work(device, queue, (work){ .call = CLEAR, .to = p, .bytes = bytes });
}
static duet_status device_upload(int device, void *own, const void *host, size_t bytes, int queue)
{
    return queue_work(device, queue, (work){ .call = UPLOAD, .to = own, .from = host, .bytes = bytes });
}
static duet_status device_copy(int device, void *own, int from, const void *other, size_t bytes, int queue)
{
    check_owner(from, other);
    if (from == device) fakes.wrong = "a device was told to copy from itself";
    return queue_work(device, queue, (work){ .call = COPY, .to = own, .from = other, .bytes = bytes });
}
static duet_status device_wait(int device, int queue, int from, int other)
{
    if (devices[device].machine != devices[from].machine) fakes.wrong = "a wait for another machine";
    return queue_work(device, queue, (work){ .call = WAIT, .device = from, .other = other });
}

static duet_status device_download(int device, void *host, const void *own, size_t bytes, int queue)
{
    duet_status st = fake_call_begin(DOWNLOAD, bytes);
    check_owner(device, own);
    if (st == DUET_OK) {
        line_run(device, queue, lines[device][queue].count);
        memcpy(host, own, bytes);
    }
    return fake_call_end(st);
}

/* A failed wait ends the work too, as on a lost device. */
static duet_status device_sync(int device, int queue)
{
    duet_status st = fake_call_begin(SYNC, 0);
    line_run(device, queue, lines[device][queue].count);
    return fake_call_end(st);
}

static duet_status device_pin(int device, void *host, size_t bytes)
{
    duet_status st = fake_call_begin(PIN, bytes);
    const void **free_place = find_pinned(NULL);
    if (find_pinned(host)) fakes.wrong = "memory was pinned twice";
    if (st == DUET_OK && free_place) {
        *free_place = host;
        fakes.pins++;
    }
    return fake_call_end(st);
}

static void device_unpin(int device, void *host)
{
    pthread_mutex_lock(&fake_machines_lock);
    const void **place = find_pinned(host);
    if (!place) fakes.wrong = "memory was unpinned that was not pinned";
    else {
        *place = NULL;
        fakes.pins--;
    }
    pthread_mutex_unlock(&fake_machines_lock);
}

static const char *host_there(int device) { return NULL; }
static const char *gpu_absent(int device) { return fakes.absent; }

static size_t keeps_nothing(int device, size_t bytes) { return 0; }

static const machine fake_host = { .name = "CPU",
                                   .place = DUET_CPU,
                                   .absent = host_there,
                                   .alloc = block_new,
                                   .free = block_free,
                                   .clear = host_clear,
                                   .spare = keeps_nothing };
#define FAKE_DEVICE(its_name, its_copy)                                                                      \
    {                                                                                                        \
        .name = its_name, .place = DUET_GPU, .absent = gpu_absent, .alloc = block_new, .free = block_free,   \
        .clear = device_clear, .upload = device_upload, .download = device_download, .copy = its_copy,       \
        .pin = device_pin, .unpin = device_unpin, .sync = device_sync, .wait = device_wait,                  \
        .spare = keeps_nothing                                                                               \
    }
static const machine fake_gpu = FAKE_DEVICE("GPU", device_copy);
static const machine fake_other = FAKE_DEVICE("other", NULL);
const device_entry devices[DEVICES_MAX] = { [HOST] = { &fake_host, 0 },
                                            [DEFAULT_GPU] = { &fake_gpu, 0 },
                                            [SECOND_GPU] = { &fake_gpu, 1 },
                                            [OTHER_DEVICE] = { &fake_other, 0 } };

__attribute__((unused)) static void fake_machines_finish(void)
{
    for (int d = 0; d < FAKE_DEVICES; d++)
        for (int q = 0; q < QUEUES; q++) {
            line_run(d, q, lines[d][q].count);
            free(lines[d][q].item);
            memset(&lines[d][q], 0, sizeof lines[d][q]);
        }
}

/* If the test is linked with -Wl,--wrap=malloc,--wrap=calloc, it can make an allocation of the library
 * fail. */
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
