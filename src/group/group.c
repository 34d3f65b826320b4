/* group.c - makes and frees groups. */
#include "backend.h"
#include "c_locale.h"
#include "deferred.h"
#include "queue_sync.h"
#include "ranks.h"
#include <stdlib.h>
#include <string.h>

#define TIMEOUT 60 /* seconds */

static double timeout_given(void)
{
    const char *text = getenv("DUET_GROUP_TIMEOUT");
    char *end;
    const plain_numbers plain = plain_numbers_begin();
    const double seconds = text ? strtod(text, &end) : TIMEOUT;
    plain_numbers_end(plain);
    return text && (end == text || !(seconds > 0)) ? TIMEOUT : seconds;
}

/* ---- all groups ---- */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static duet_group *newest;

static void leave_list(const duet_group *g)
{
    pthread_mutex_lock(&list_lock);
    duet_group **at = &newest;
    while (*at && *at != g) at = &(*at)->next;
    if (*at) *at = g->next;
    pthread_mutex_unlock(&list_lock);
}

static duet_status synchronize_rank(void *context, int index)
{
    const thread *t = thread_get();
    const duet_group *g = context;
    const int device = g->comm[index].device;
    TRY(deferred_flush());
    TRY(queue_wait(device, t->queue, "duet_synchronize"));
    return device_machine(device)->report(device, t->queue);
}

/* Groups whose ranks are threads; the rank of another group is the thread of the caller. */
static duet_status synchronize_all(void)
{
    int failed;
    duet_status s = DUET_OK;
    pthread_mutex_lock(&list_lock);
    for (duet_group *g = newest; g && s == DUET_OK; g = g->next)
        if (g->crew && g->place == DUET_GPU) s = group_run(g, synchronize_rank, g, &failed);
    pthread_mutex_unlock(&list_lock);
    return s;
}

static void enter_list(duet_group *g)
{
    pthread_mutex_lock(&list_lock);
    groups_synchronize = synchronize_all;
    g->next = newest;
    newest = g;
    pthread_mutex_unlock(&list_lock);
    __atomic_add_fetch(&groups_alive, 1, __ATOMIC_RELEASE);
}

/* ---- the end ---- */

static void end_rank(communicator *c, bool failed)
{
    const machine *m = c->device == HOST ? NULL : device_machine(c->device);
    if (c->link) m->disconnect(c->link, failed);
    if (c->host.close) c->host.close(c->host.context, failed);
    collectives_free(c);
}

static duet_status end_link(void *context, int index)
{
    duet_group *g = context;
    end_rank(&g->comm[index], g->comm[index].broken != DUET_OK);
    return DUET_OK;
}

static void group_free(duet_group *g)
{
    int failed;
    leave_list(g);
    if (g->crew) (void)crew_run(g->crew, end_link, g, &failed);
    else (void)end_link(g, 0);
    crew_free(g->crew);
    hub_free(g->hub);
    pthread_mutex_destroy(&g->lock);
    free(g->comm);
    free(g);
    __atomic_sub_fetch(&groups_alive, 1, __ATOMIC_RELAXED);
}

void group_release(duet_group *g)
{
    if (__atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL) == 0) group_free(g);
}

void duet_group_free(duet_group **g)
{
    if (!g || !*g) return;
    group_release(*g);
    *g = NULL;
}

/* ---- connections between GPUs ---- */

typedef struct linking {
    duet_group *g;
    char name[LINK_NAME];
} linking;

static duet_status link_rank(void *context, int index)
{
    linking *l = context;
    communicator *c = &l->g->comm[index];
    const machine *m = device_machine(c->device);
    return m->connect(c->device, l->name, c->rank, c->ranks, c->timeout, &c->link);
}

/* Rank 0 makes the name and sends it to all others. */
static duet_status share_name(duet_group *g, char name[LINK_NAME])
{
    communicator *c = &g->comm[0];
    duet_status s = DUET_OK;
    if (c->rank == 0) s = device_machine(c->device)->link_name(name);
    TRY(communicator_agree(c, s, 0));
    if (c->rank) return communicator_exchange(c, NULL, 0, &(duet_message){ 0, name, LINK_NAME }, 1);
    for (int r = 1; r < c->ranks; r++)
        TRY(communicator_exchange(c, &(duet_message){ r, name, LINK_NAME }, 1, NULL, 0));
    return DUET_OK;
}

static duet_status link_all(duet_group *g)
{
    int failed;
    linking l = { .g = g };
    const machine *m = device_machine(g->comm[0].device);
    if (!m->connect) return DUET_OK;
    if (g->crew || g->ranks == 1) TRY(m->link_name(l.name));
    else TRY(share_name(g, l.name));
    return group_run(g, link_rank, &l, &failed);
}

/* ---- new groups ---- */

static duet_group *group_new(int ranks, int first, int near, duet_place place)
{
    duet_group *g = calloc(1, sizeof *g);
    communicator *comm = calloc((size_t)near, sizeof *comm);
    if (!g || !comm) {
        free(g);
        free(comm);
        return NULL;
    }
    *g = (duet_group){ .ranks = ranks,
                       .first = first,
                       .near = near,
                       .on_machine = near,
                       .place = place,
                       .comm = comm,
                       .refs = 1 };
    pthread_mutex_init(&g->lock, NULL);
    for (int i = 0; i < near; i++)
        comm[i] = (communicator){ .rank = first + i,
                                  .ranks = ranks,
                                  .device = place == DUET_GPU ? DEFAULT_GPU + i : HOST,
                                  .timeout = timeout_given() };
    enter_list(g);
    return g;
}

static int usable_gpus(void)
{
    int n = 0;
    while (DEFAULT_GPU + n < DEVICES_MAX && !device_absent(DEFAULT_GPU + n)) n++;
    return n;
}

static duet_status too_few_gpus(int ranks, int gpus)
{
    if (!gpus)
        return fail(DUET_NO_DEVICE, "duet_group_local(%d): the GPU cannot be used: %s", ranks,
                    device_absent(DEFAULT_GPU));
    return fail(
        DUET_NO_DEVICE,
        "duet_group_local(%d): this process can use %d GPU%s. Inside DUET_ON(DUET_CPU) ranks are parts "
        "of the CPU",
        ranks, gpus, gpus == 1 ? "" : "s");
}

/* Threads, messages between them, and connections between their GPUs. */
static duet_status start_local(duet_group *g)
{
    g->crew = crew_new(g->near, g->place);
    if (!g->crew) return DUET_NO_MEMORY;
    g->hub = hub_new(g->near);
    if (!g->hub) return fail(DUET_NO_MEMORY, "no memory");
    for (int i = 0; i < g->near; i++) g->comm[i].host = hub_transport(g->hub, i);
    if (g->place == DUET_GPU) return link_all(g);
    return DUET_OK;
}

static duet_group *local_group(int ranks, duet_place place)
{
    duet_group *g = group_new(ranks, 0, ranks, place);
    if (!g) {
        fail(DUET_NO_MEMORY, "duet_group_local(%d): no memory", ranks);
        return NULL;
    }
    const duet_status s = start_local(g);
    if (s == DUET_OK) return g;
    fail_within(s, "duet_group_local(%d)", ranks);
    error_text why;
    error_keep(&why);
    group_free(g);
    error_put_back(&why);
    return NULL;
}

duet_group *duet_group_local(int ranks)
{
    if (ranks < 0 || ranks > RANKS_MAX) {
        fail(DUET_BAD_ARGUMENT, "duet_group_local: ranks (%d) must be from 0 to %d", ranks, RANKS_MAX);
        return NULL;
    }
    const duet_place place = thread_get()->place;
    const int gpus = place == DUET_CPU ? 0 : usable_gpus();
    if (!gpus && place != DUET_GPU) return local_group(ranks ? ranks : 1, DUET_CPU);
    if (ranks <= gpus && gpus) return local_group(ranks ? ranks : gpus, DUET_GPU);
    too_few_gpus(ranks, gpus);
    return NULL;
}

/* ---- groups of several processes ---- */

/* What each process reports: its place on its machine, and the GPUs that it can use. */
typedef struct offer {
    int32_t near_ranks, near_rank, gpus;
} offer;

static duet_status exchange_offers(communicator *c, offer *all)
{
    const size_t n = (size_t)c->ranks;
    duet_message *m = malloc(2 * n * sizeof *m);
    int k = 0;
    TRY(communicator_agree(c, m ? DUET_OK : fail(DUET_NO_MEMORY, "no memory"), 1));
    for (int r = 0; r < c->ranks; r++) {
        if (r == c->rank) continue;
        m[k] = (duet_message){ r, &all[c->rank], sizeof *all };
        m[n + (size_t)k++] = (duet_message){ r, &all[r], sizeof *all };
    }
    const duet_status s = communicator_exchange(c, m, k, m + n, k);
    free(m);
    return s;
}

/* Has every rank a GPU of its own, or none? */
static duet_status choose_place(const duet_group *g, const offer *all, duet_place *place)
{
    bool any = false;
    int lacks = -1;
    for (int r = 0; r < g->ranks; r++) {
        any |= all[r].gpus > 0;
        if (lacks < 0 && all[r].near_rank >= all[r].gpus) lacks = r;
    }
    if (*place == DUET_AUTO) *place = any ? DUET_GPU : DUET_CPU;
    if (*place == DUET_CPU || lacks < 0) return DUET_OK;
    const offer *o = &all[lacks];
    if (!o->gpus) return fail(DUET_NO_DEVICE, "rank %d has no GPU; pass DUET_CPU to use none", lacks);
    return fail(
        DUET_NO_DEVICE,
        "%d ranks run on the machine of rank %d, which has %d GPU%s: each rank needs its own. Start fewer "
        "ranks on it, or pass DUET_CPU",
        o->near_ranks, lacks, o->gpus, o->gpus == 1 ? "" : "s");
}

static int ranks_on_machine(const duet_group *g, const offer *all)
{
    const int n = all[0].near_ranks;
    for (int r = 0; r < g->ranks; r++)
        if (all[r].near_ranks != n || all[r].near_rank != r % n) return 1;
    return g->ranks % n ? 1 : n;
}

static duet_status connect_group(duet_group *g, duet_place place)
{
    communicator *c = &g->comm[0];
    offer *all = calloc((size_t)g->ranks, sizeof *all);
    duet_status s = all ? DUET_OK : fail(DUET_NO_MEMORY, "no memory for %d ranks", g->ranks);
    if (all)
        all[c->rank] =
            (offer){ c->host.near_ranks, c->host.near_rank, place == DUET_CPU ? 0 : usable_gpus() };
    s = communicator_agree(c, s, 0);
    if (s == DUET_OK) s = exchange_offers(c, all);
    if (s == DUET_OK) s = choose_place(g, all, &place);
    if (s == DUET_OK) g->on_machine = ranks_on_machine(g, all);
    free(all);
    TRY(s);
    g->place = place;
    if (place == DUET_CPU) return DUET_OK;
    c->device = DEFAULT_GPU + c->host.near_rank;
    TRY(communicator_agree(c, thread_use_gpu(c->device), 2));
    return link_all(g);
}

static duet_status check_transport(const duet_transport *t, duet_place place)
{
    if (!t || !t->exchange || t->size != sizeof *t)
        return fail(DUET_BAD_ARGUMENT,
                    "duet_group_connect: the transport is NULL, or of another version of Duet");
    if (t->ranks < 1 || t->rank < 0 || t->rank >= t->ranks || t->near_rank < 0 ||
        t->near_rank >= t->near_ranks)
        return fail(DUET_BAD_ARGUMENT, "duet_group_connect: rank %d of %d, and %d of %d on this machine",
                    t->rank, t->ranks, t->near_rank, t->near_ranks);
    if ((unsigned)place > DUET_GPU)
        return fail(DUET_BAD_ARGUMENT,
                    "duet_group_connect: place (%d) must be DUET_AUTO, DUET_CPU or DUET_GPU", (int)place);
    return DUET_OK;
}

duet_group *duet_group_connect(const duet_transport *t, duet_place place)
{
    if (check_transport(t, place) != DUET_OK) return NULL;
    duet_group *g = group_new(t->ranks, t->rank, 1, DUET_CPU);
    if (!g) {
        fail(DUET_NO_MEMORY, "duet_group_connect: no memory");
        return NULL;
    }
    g->comm[0].host = *t;
    const duet_status s = connect_group(g, place);
    if (s == DUET_OK) return g;
    fail_within(s, "duet_group_connect");
    error_text why;
    error_keep(&why);
    g->comm[0].host.close = NULL; /* the caller keeps the transport */
    group_free(g);
    error_put_back(&why);
    return NULL;
}

/* ---- facts ---- */

duet_status group_check(const char *who, const duet_group *g)
{
    if (!g) return fail(DUET_BAD_ARGUMENT, "%s: the group must not be NULL", who);
    for (int i = 0; i < g->near; i++)
        if (g->comm[i].broken != DUET_OK)
            return fail(DUET_RANK_FAILED, "%s%san earlier statement failed: %s", who ? who : "",
                        who ? ": " : "", g->comm[i].why);
    return DUET_OK;
}

int duet_group_ranks(const duet_group *g) { return g ? g->ranks : 0; }
int duet_group_rank(const duet_group *g) { return g ? g->first : 0; }
int duet_group_near(const duet_group *g) { return g ? g->near : 0; }

duet_status duet_group_timeout(duet_group *g, double seconds)
{
    if (!g) return fail(DUET_BAD_ARGUMENT, "duet_group_timeout: the group must not be NULL");
    if (!(seconds > 0))
        return fail(DUET_BAD_ARGUMENT, "duet_group_timeout: seconds (%g) must be positive", seconds);
    for (int i = 0; i < g->near; i++) g->comm[i].timeout = seconds;
    return DUET_OK;
}

void duet_group_info(FILE *out, const duet_group *g)
{
    int device[RANKS_MAX];
    if (!out || !g) return;
    const plain_numbers plain = plain_numbers_begin();
    fprintf(out, "group    %d rank%s, %d in this process from %d on, timeout %g s\n", g->ranks,
            g->ranks == 1 ? "" : "s", g->near, g->first, g->comm[0].timeout);
    for (int i = 0; i < g->near; i++) {
        device[i] = g->comm[i].device;
        fprintf(out, "rank %-3d %s", g->first + i, device_name(device[i]));
        if (device[i] == HOST) fprintf(out, "\n");
        else fprintf(out, " %d\n", devices[device[i]].unit);
    }
    fprintf(out, "messages %s\n", g->comm[0].host.name ? g->comm[0].host.name : "none");
    if (g->place == DUET_GPU && device_machine(device[0])->link_info)
        device_machine(device[0])->link_info(out, device, g->near);
    plain_numbers_end(plain);
}
