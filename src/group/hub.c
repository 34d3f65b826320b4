/* hub.c - messages between the ranks of one process, which are threads: the receiver copies from the memory
 * of the sender. Every rank calls exchange the same number of times. */
#include "clock.h"
#include "ranks.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SPINS 2000 /* before a thread sleeps */

/* The messages that a rank sends now. `number` is written last. */
typedef struct post {
    uint64_t number; /* of its exchange */
    const duet_message *send;
    int sends, taken; /* taken: how many of them have been copied */
} post;

struct hub {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ranks, sleeping;
    bool failed; /* an exchange has failed */
    char why[200];
    post *of; /* by rank */
    struct seat {
        hub *h;
        int rank;
    } * seat;
};

hub *hub_new(int ranks)
{
    hub *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, &attr);
    pthread_condattr_destroy(&attr);
    h->ranks = ranks;
    h->of = calloc((size_t)ranks, sizeof *h->of);
    h->seat = calloc((size_t)ranks, sizeof *h->seat);
    for (int r = 0; r < ranks && h->seat; r++) h->seat[r] = (struct seat){ h, r };
    if (h->of && h->seat) return h;
    hub_free(h);
    return NULL;
}

void hub_free(hub *h)
{
    if (!h) return;
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->changed);
    free(h->of);
    free(h->seat);
    free(h);
}

/* ---- waiting ---- */

static void wake(hub *h)
{
    if (!__atomic_load_n(&h->sleeping, __ATOMIC_SEQ_CST)) return;
    pthread_mutex_lock(&h->lock);
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

typedef bool condition(hub *h, const void *of);

/* false: the time limit has passed, or an exchange of another rank has failed. */
static bool sleep_until(hub *h, condition *holds, const void *of, double end)
{
    bool is = false;
    pthread_mutex_lock(&h->lock);
    __atomic_add_fetch(&h->sleeping, 1, __ATOMIC_SEQ_CST);
    while (!(is = holds(h, of)) && !h->failed && clock_now() < end) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        const double left = end - clock_now(), nap = left < 0.1 ? left : 0.1;
        until.tv_nsec += (long)(nap * 1e9);
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&h->changed, &h->lock, &until);
    }
    __atomic_sub_fetch(&h->sleeping, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&h->lock);
    return is;
}

static bool wait_until(hub *h, condition *holds, const void *of, double seconds)
{
    for (int i = 0; i < SPINS; i++) {
        if (holds(h, of)) return true;
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
    }
    return sleep_until(h, holds, of, clock_now() + seconds);
}

/* ---- one exchange ---- */

typedef struct awaited {
    int rank;
    uint64_t number;
} awaited;

static bool has_posted(hub *h, const void *of)
{
    const awaited *a = of;
    return __atomic_load_n(&h->of[a->rank].number, __ATOMIC_SEQ_CST) >= a->number;
}

static bool is_taken(hub *h, const void *of)
{
    const awaited *a = of;
    const post *p = &h->of[a->rank];
    return __atomic_load_n(&p->taken, __ATOMIC_SEQ_CST) == p->sends;
}

static bool give_up(hub *h, int rank, const char *what, double seconds, duet_transport_error *error)
{
    pthread_mutex_lock(&h->lock);
    if (!h->failed && seconds > 0)
        snprintf(h->why, sizeof h->why, "rank %d %s within %g seconds", rank, what, seconds);
    else if (!h->failed) snprintf(h->why, sizeof h->why, "rank %d %s", rank, what);
    h->failed = true;
    error->rank = rank;
    snprintf(error->text, sizeof error->text, "%s", h->why);
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return false;
}

/* The k-th message of a list that goes to this peer. */
static const duet_message *find(const duet_message *list, int count, int peer, int k)
{
    for (int i = 0; i < count; i++)
        if (list[i].peer == peer && list[i].bytes && k-- == 0) return &list[i];
    return NULL;
}

static int earlier(const duet_message *list, int upto)
{
    int n = 0;
    for (int i = 0; i < upto; i++) n += list[i].peer == list[upto].peer && list[i].bytes;
    return n;
}

static int count_real(const duet_message *list, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++) n += list[i].bytes > 0;
    return n;
}

static void publish(hub *h, int rank, const duet_message *send, int sends)
{
    post *p = &h->of[rank];
    p->send = send;
    p->sends = count_real(send, sends);
    __atomic_store_n(&p->taken, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&p->number, 1, __ATOMIC_SEQ_CST);
    wake(h);
}

static bool take(hub *h, int rank, uint64_t number, const duet_message *receive, int at, double seconds,
                 duet_transport_error *error)
{
    const duet_message *to = &receive[at];
    post *p = &h->of[to->peer];
    if (!wait_until(h, has_posted, &(awaited){ to->peer, number }, seconds))
        return give_up(h, to->peer, "did not answer", seconds, error);
    const duet_message *from = find(p->send, 1 << 30, rank, earlier(receive, at));
    if (!from || from->bytes != to->bytes)
        return give_up(h, to->peer, "sent a message of another size than expected", 0, error);
    memcpy(to->data, from->data, to->bytes);
    __atomic_add_fetch(&p->taken, 1, __ATOMIC_SEQ_CST);
    wake(h);
    return true;
}

static bool exchange(void *context, const duet_message *send, int sends, const duet_message *receive,
                     int receives, double seconds, duet_transport_error *error)
{
    const struct seat *seat = context;
    hub *h = seat->h;
    const uint64_t number = h->of[seat->rank].number + 1;
    publish(h, seat->rank, send, sends);
    for (int k = 0; k < receives; k++)
        if (receive[k].bytes && !take(h, seat->rank, number, receive, k, seconds, error)) return false;
    if (wait_until(h, is_taken, &(awaited){ seat->rank, number }, seconds)) return true;
    return give_up(h, seat->rank, "sent messages that no rank received", seconds, error);
}

duet_transport hub_transport(hub *h, int rank)
{
    return (duet_transport){ .size = sizeof(duet_transport),
                             .name = "threads",
                             .ranks = h->ranks,
                             .rank = rank,
                             .near_ranks = h->ranks,
                             .near_rank = rank,
                             .context = &h->seat[rank],
                             .exchange = exchange };
}
