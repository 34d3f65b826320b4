/* test_gpu_link.c - collective steps of the GPU machine, between the cards of the fake CUDA or between the
 * GPUs of this machine. Moves and sums of integers must be exact; sums of other numbers here are exact,
 * too. */
#include "collective_trial.h"
#include "quick.h"

#ifdef FAKE_RANKS_ALL
#include "fake_cuda.h"
#endif

enum { STEPS = 3 }; /* one after another, without waiting */

static int usable_ranks(void)
{
    int n = 0;
#ifdef FAKE_RANKS_ALL
    fake_devices(RANKS_MOST);
#endif
    while (n < RANKS_MOST && !device_absent(DEFAULT_GPU + n)) n++;
    return n;
}

/* ---- random steps ---- */

static duet_status run_steps(ranks *all, int rank, void *arg)
{
    trial *t = arg;
    (void)all;
    duet_status s = DUET_OK;
    for (int i = 0; s == DUET_OK && i < STEPS; i++) s = open_trial(&t[i], rank);
    for (int i = 0; s == DUET_OK && i < STEPS; i++) s = run_trial(&t[i], rank);
    const duet_status joined = gpu_machine.join(DEFAULT_GPU + rank, 0);
    if (s == DUET_OK) s = joined;
    for (int i = 0; s == DUET_OK && i < STEPS; i++) s = fetch_result(&t[i], rank);
    for (int i = 0; i < STEPS; i++) close_trial(&t[i], rank);
    return s;
}

static void random_steps(ranks *all, int trials)
{
    static trial t[STEPS];
    for (int i = 0; i < trials && !tap_failures; i++) {
        memset(t, 0, sizeof t);
        for (int k = 0; k < STEPS; k++) {
            random_trial(&t[k], all);
            t[k].overlaps = chance(50);
        }
        on_ranks(all, run_steps, t);
        const bool ran = all_ran(all, trial_text(&t[0]));
        for (int k = 0; k < STEPS; k++) {
            if (ran) results_agree(&t[k]);
            free_trial(&t[k]);
        }
    }
}

/* ---- each way to do a step ---- */

static void one_way(ranks *all, enum collective_kind kind, int from, int to, const char *algorithm)
{
    static trial t[STEPS];
    const shape whole = { 2, { 4 * all->count, 5 * all->count } };
    memset(t, 0, sizeof t);
    for (int k = 0; k < STEPS; k++) {
        spread_evenly(&t[k].from, &whole, from, all->count);
        spread_evenly(&t[k].to, &whole, to, all->count);
        make_trial(&t[k], all, kind, DUET_F32, &whole);
    }
    const step s = step_of(&t[0], 0);
    CHECK(!strcmp(gpu_machine.algorithm(&s), algorithm), "%s, not %s", gpu_machine.algorithm(&s), algorithm);
    CHECK(gpu_machine.cost(&s) > 0, "the cost is %g", gpu_machine.cost(&s));
    on_ranks(all, run_steps, t);
    if (all_ran(all, algorithm)) results_agree(&t[STEPS - 1]);
    for (int k = 0; k < STEPS; k++) free_trial(&t[k]);
}

static void each_way(ranks *all)
{
    one_way(all, COLLECTIVE_MOVE, 0, -1, "NCCL all-gather");
    one_way(all, COLLECTIVE_MOVE, 1, -1, "NCCL send and receive");
    one_way(all, COLLECTIVE_MOVE, 0, 1, "NCCL send and receive");
    one_way(all, COLLECTIVE_MOVE, -1, 1, "NCCL send and receive");
    one_way(all, COLLECTIVE_ADD, -1, -1, "NCCL all-reduce");
    one_way(all, COLLECTIVE_ADD, -1, 0, "NCCL reduce-scatter");
    one_way(all, COLLECTIVE_ADD, -1, 1, "NCCL all-reduce of a copy");
}

/* ---- CUDA graphs ---- */

enum { REPLAYS = 3 };
typedef struct replayed {
    trial t[STEPS];
    void *graph[RANKS_MOST];
} replayed;

static duet_status record(ranks *all, int rank, void *arg)
{
    replayed *p = arg;
    const int device = DEFAULT_GPU + rank;
    (void)all;
    for (int i = 0; i < STEPS; i++) TRY(open_trial(&p->t[i], rank));
    for (int i = 0; i < STEPS; i++) TRY(run_trial(&p->t[i], rank));
    TRY(gpu_machine.sync(device, 0));
    TRY(gpu_machine.record(device, 0));
    duet_status s = DUET_OK;
    for (int i = 0; s == DUET_OK && i < STEPS; i++) s = run_trial(&p->t[i], rank);
    const duet_status ended = gpu_machine.recorded(device, 0, &p->graph[rank]);
    return s == DUET_OK ? ended : s;
}

static duet_status replay(ranks *all, int rank, void *arg)
{
    replayed *p = arg;
    (void)all;
    for (int i = 0; i < STEPS; i++) TRY(upload_operand(&p->t[i], rank));
    TRY(gpu_machine.replay(DEFAULT_GPU + rank, p->graph[rank], 0));
    for (int i = 0; i < STEPS; i++) TRY(fetch_result(&p->t[i], rank));
    return DUET_OK;
}

static duet_status discard(ranks *all, int rank, void *arg)
{
    replayed *p = arg;
    (void)all;
    gpu_machine.discard(DEFAULT_GPU + rank, p->graph[rank]);
    for (int i = 0; i < STEPS; i++) close_trial(&p->t[i], rank);
    return DUET_OK;
}

/* Steps of their own memory, each in the graph of each rank. */
static void record_trials(replayed *p, ranks *all)
{
    memset(p, 0, sizeof *p);
    for (int k = 0; k < STEPS; k++) {
        random_trial(&p->t[k], all);
        p->t[k].scratch = true;
    }
    on_ranks(all, record, p);
}

static void one_graph(ranks *all)
{
    static replayed p;
    record_trials(&p, all);
    bool ran = all_ran(all, "recording");
    for (int i = 0; ran && i < REPLAYS; i++) {
        for (int k = 0; k < STEPS; k++) fill(&p.t[k]);
        on_ranks(all, replay, &p);
        ran = all_ran(all, "replay");
        for (int k = 0; ran && k < STEPS; k++) results_agree(&p.t[k]);
    }
    on_ranks(all, discard, &p);
    for (int k = 0; k < STEPS; k++) free_trial(&p.t[k]);
}

static void graphs(ranks *all, int trials)
{
    for (int i = 0; i < trials && !tap_failures; i++) one_graph(all);
}

static duet_status replay_closed(ranks *all, int rank, void *arg)
{
    replayed *p = arg;
    (void)all;
    const duet_status s = gpu_machine.replay(DEFAULT_GPU + rank, p->graph[rank], 0);
    CHECK(s == DUET_RANK_FAILED && strstr(duet_error(), "closed"), "%s", duet_error());
    return DUET_OK;
}

/* A graph may end after its link was closed. */
static void close_before_graph(ranks *all)
{
    static replayed p;
    record_trials(&p, all);
    const bool ran = all_ran(all, "recording");
    disconnect_ranks(all, false);
    if (ran) on_ranks(all, replay_closed, &p);
    on_ranks(all, discard, &p);
    for (int k = 0; k < STEPS; k++) free_trial(&p.t[k]);
}

/* ---- all ---- */

static void with_ranks(int count, int trials)
{
    static ranks all;
    char name[80];
    connect_ranks(&all, count, 20);
    if (all_ran(&all, "connect")) {
        each_way(&all);
        random_steps(&all, trials);
        graphs(&all, trials / 8);
        for (int r = 0; r < count; r++)
            CHECK(gpu_machine.link_check(all.c[r].link) == DUET_OK, "%s", duet_error());
        close_before_graph(&all);
    }
    snprintf(name, sizeof name, "collective steps of %d ranks, and their graphs", count);
    tap_point(name);
}

/* A missing library is no failure of the machine. */
static bool is_there(void)
{
    char name[LINK_NAME];
    if (gpu_machine.link_name(name) == DUET_OK) return true;
    printf("# %s\n", duet_error());
    return false;
}

int main(int argc, char **argv)
{
    static const int counts[] = { 1, 2, 3, 4, 8 };
    const int usable = usable_ranks(), trials = trial_count(argc, argv, 16, 80);
    const int list[] = { DEFAULT_GPU, DEFAULT_GPU + 1 };
    if (!usable || !is_there()) {
        printf("1..0 # SKIP no GPU, or no NCCL\n");
        return 0;
    }
    printf("# ");
    gpu_machine.link_info(stdout, list, usable > 1 ? 2 : 1);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i] <= usable) with_ranks(counts[i], trials);
    return tap_end();
}
