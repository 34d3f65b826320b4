/* test_link.c - links between the cards of the fake CUDA. Ranks fail, are late, never begin, or make other
 * calls. Every rank must get a status in time, and later calls of a link that has failed must fail too. Also
 * counts the bytes that are sent. */
#include "clock.h"
#include "collective_trial.h"
#include "device_use.h"
#include "fake_cuda.h"
#include "pool.h"
#include "quick.h"
#include <cuda_runtime_api.h>

/* How long ranks wait for each other: where one of them fails, and where none does. */
#define SHORT   0.15
#define LONG    60.
#define IN_TIME 10. /* no rank may take longer */

static double connect_seconds = LONG;

/* ---- a scenario: connect, two steps, disconnect ---- */

typedef struct scenario {
    ranks all;
    trial t[2];
    double seconds[RANKS_MOST]; /* that a rank took */
    duet_status again[RANKS_MOST];
    char text[RANKS_MOST][200];
} scenario;

static duet_status run_two(scenario *s, int rank)
{
    for (int i = 0; i < 2; i++) TRY(open_trial(&s->t[i], rank));
    for (int i = 0; i < 2; i++) TRY(run_trial(&s->t[i], rank));
    for (int i = 0; i < 2; i++) TRY(fetch_result(&s->t[i], rank));
    return gpu_machine.link_check(s->all.c[rank].link);
}

static duet_status run_and_time(ranks *all, int rank, void *arg)
{
    scenario *s = arg;
    const double start = clock_now();
    const duet_status r = all->c[rank].link ? run_two(s, rank) : DUET_NO_DEVICE;
    s->seconds[rank] = clock_now() - start;
    return r;
}

/* A step after the others, by a link that may have failed. */
static duet_status run_again(ranks *all, int rank, void *arg)
{
    scenario *s = arg;
    s->again[rank] = all->c[rank].link ? run_trial(&s->t[0], rank) : DUET_NO_DEVICE;
    snprintf(s->text[rank], sizeof s->text[rank], "%s", s->again[rank] == DUET_OK ? "" : duet_error());
    return DUET_OK;
}

static duet_status close_both(ranks *all, int rank, void *arg)
{
    scenario *s = arg;
    (void)all;
    for (int i = 0; i < 2; i++) close_trial(&s->t[i], rank);
    return DUET_OK;
}

static void make_one(trial *t, ranks *all, enum collective_kind kind, int from, int to)
{
    const shape whole = { 2, { 2 * all->count, 3 * all->count } };
    memset(t, 0, sizeof *t);
    t->count = all->count;
    spread_evenly(&t->from, &whole, from, all->count);
    spread_evenly(&t->to, &whole, to, all->count);
    make_trial(t, all, kind, DUET_I64, &whole);
}

/* A sum, then messages. seconds: of steps */
static void open_scenario(scenario *s, int count, double seconds)
{
    memset(s, 0, sizeof *s);
    connect_ranks(&s->all, count, connect_seconds);
    for (int r = 0; r < count; r++) s->all.c[r].timeout = seconds;
    make_one(&s->t[0], &s->all, COLLECTIVE_ADD, -1, -1);
    make_one(&s->t[1], &s->all, COLLECTIVE_MOVE, 0, 1);
}

static bool all_connected(const scenario *s)
{
    for (int r = 0; r < s->all.count; r++)
        if (!s->all.c[r].link) return false;
    return true;
}

static void run_scenario(scenario *s)
{
    on_ranks(&s->all, run_and_time, s);
    for (int r = 0; r < s->all.count; r++)
        CHECK(s->seconds[r] < IN_TIME, "rank %d took %g seconds", r, s->seconds[r]);
}

static void close_scenario(scenario *s)
{
    on_ranks(&s->all, close_both, s);
    disconnect_ranks(&s->all, true);
    for (int i = 0; i < 2; i++) free_trial(&s->t[i]);
}

static bool every_rank_ran(const scenario *s)
{
    for (int r = 0; r < s->all.count; r++)
        if (s->all.of[r].status != DUET_OK) return false;
    return true;
}

/* Every rank has failed because of another one, and fails again at once. */
static void all_failed(scenario *s)
{
    for (int r = 0; r < s->all.count; r++)
        CHECK(s->all.of[r].status == DUET_RANK_FAILED && s->all.of[r].text[0], "rank %d: status %d, %s", r,
              (int)s->all.of[r].status, s->all.of[r].text);
    printf("# rank 0: %s\n", s->all.of[0].text);
    const double start = clock_now();
    on_ranks(&s->all, run_again, s);
    for (int r = 0; r < s->all.count; r++)
        CHECK(s->again[r] == DUET_RANK_FAILED && s->text[r][0], "rank %d later: status %d, %s", r,
              (int)s->again[r], s->text[r]);
    CHECK(clock_now() - start < IN_TIME, "the later steps took %g seconds", clock_now() - start);
}

static void succeeds(int count)
{
    static scenario s;
    open_scenario(&s, count, LONG);
    if (CHECK(all_connected(&s), "%s", s.all.of[0].text)) {
        run_scenario(&s);
        if (all_ran(&s.all, "without faults"))
            CHECK(results_agree(&s.t[0]) && results_agree(&s.t[1]), "above");
    }
    on_ranks(&s.all, close_both, &s);
    disconnect_ranks(&s.all, false);
    for (int i = 0; i < 2; i++) free_trial(&s.t[i]);
}

/* ---- calls that fail ---- */

/* Every rank that got DUET_OK has the right elements. false: no call failed. */
static bool one_call_fails(int count, uint64_t n, bool by_cuda)
{
    static scenario s;
    if (by_cuda) fake_fail(n);
    else fake_nccl_fail(n);
    open_scenario(&s, count, SHORT);
    const bool connected = all_connected(&s);
    if (connected) run_scenario(&s);
    const bool ran = connected && every_rank_ran(&s);
    const bool failed = by_cuda ? fake_failed() : !ran;
    fake_nccl_fail(0);
    fake_fail(0);
    for (int r = 0; r < count; r++) {
        CHECK(s.all.of[r].status == DUET_OK || s.all.of[r].text[0], "rank %d: no text", r);
        if (s.all.of[r].status == DUET_RANK_FAILED && connected)
            CHECK(gpu_machine.link_check(s.all.c[r].link) == DUET_RANK_FAILED, "rank %d is not broken", r);
    }
    if (ran) CHECK(results_agree(&s.t[0]) && results_agree(&s.t[1]), "call %d", (int)n);
    close_scenario(&s);
    return failed;
}

static void every_call_fails(int count, bool by_cuda)
{
    uint64_t n = 1;
    connect_seconds = SHORT;
    while (!tap_failures && one_call_fails(count, n, by_cuda)) n++;
    connect_seconds = LONG;
    CHECK(n > 10, "only %d calls were made", (int)n);
    printf("# %d calls failed, each once\n", (int)n - 1);
    succeeds(count);
    CHECK(fake_count().handles == 0, "%d communicators are alive", fake_count().handles);
    tap_point(by_cuda ? "every call of CUDA fails once" : "every call of NCCL fails once");
}

/* ---- ranks that fail ---- */

static void silent_from_the_start(int count)
{
    static scenario s;
    fake_nccl_silent(count - 1, true);
    connect_seconds = SHORT;
    const double start = clock_now();
    open_scenario(&s, count, SHORT);
    connect_seconds = LONG;
    CHECK(clock_now() - start < IN_TIME, "connecting took %g seconds", clock_now() - start);
    for (int r = 0; r < count; r++)
        CHECK(s.all.of[r].status == DUET_RANK_FAILED && strstr(s.all.of[r].text, "did not answer"),
              "rank %d: %s", r, s.all.of[r].text);
    printf("# %s\n", s.all.of[0].text);
    fake_nccl_silent(count - 1, false);
    close_scenario(&s);
    succeeds(count);
    tap_point("a rank does not connect");
}

static void silent_later(int count)
{
    static scenario s;
    open_scenario(&s, count, SHORT);
    fake_nccl_silent(count - 1, true);
    run_scenario(&s);
    CHECK(strstr(s.all.of[0].text, "did not answer"), "%s", s.all.of[0].text);
    all_failed(&s);
    fake_nccl_silent(count - 1, false);
    close_scenario(&s);
    succeeds(count);
    tap_point("a rank does not begin its steps");
}

/* The error of one rank; the others find that it does not answer. */
static void asynchronous(int count)
{
    static scenario s;
    open_scenario(&s, count, SHORT);
    fake_nccl_async_error(1);
    CHECK(gpu_machine.link_check(s.all.c[0].link) == DUET_OK, "%s", duet_error());
    CHECK(gpu_machine.link_check(s.all.c[1].link) == DUET_RANK_FAILED, "the error was not noticed");
    CHECK(strstr(duet_error(), "an error of the test"), "%s", duet_error());
    run_scenario(&s);
    CHECK(strstr(s.all.of[1].text, "an error of the test"), "%s", s.all.of[1].text);
    all_failed(&s);
    close_scenario(&s);
    tap_point("an asynchronous error");
}

static void lost_card(int count)
{
    static scenario s;
    open_scenario(&s, count, SHORT);
    fake_lost_card(1);
    run_scenario(&s);
    CHECK(s.all.of[0].status == DUET_RANK_FAILED, "rank 0: %s", s.all.of[0].text);
    CHECK(s.all.of[1].status != DUET_OK && strstr(s.all.of[1].text, "lost"), "rank 1: %s", s.all.of[1].text);
    pool_forget_device(DEFAULT_GPU + 1);
    CHECK(device_recovery_begin() == DUET_OK, "%s", duet_error());
    CHECK(gpu_machine.recover(DEFAULT_GPU + 1) == DUET_OK, "%s", duet_error());
    device_recovery_end();
    CHECK(gpu_machine.link_check(s.all.c[1].link) == DUET_RANK_FAILED, "the link is not broken");
    for (int i = 0; i < 2; i++) memset(s.t[i].device[1], 0, sizeof s.t[i].device[1]);
    close_scenario(&s);
    succeeds(count);
    tap_point("a lost card");
}

/* ---- ranks that make other calls ---- */

/* The last rank adds what the others gather. */
static duet_status run_other(ranks *all, int rank, void *arg)
{
    scenario *s = arg;
    trial *t = &s->t[rank == all->count - 1];
    TRY(open_trial(t, rank));
    TRY(run_trial(t, rank));
    TRY(fetch_result(t, rank));
    return gpu_machine.link_check(all->c[rank].link);
}

static void mismatch(int count, enum collective_kind kind, int from, int to, const char *says)
{
    static scenario s;
    open_scenario(&s, count, LONG);
    for (int i = 0; i < 2; i++) free_trial(&s.t[i]);
    make_one(&s.t[0], &s.all, kind, from, to);
    make_one(&s.t[1], &s.all, COLLECTIVE_ADD, -1, -1);
    on_ranks(&s.all, run_other, &s);
    for (int r = 0; r < count; r++)
        CHECK(s.all.of[r].status == DUET_DEVICE_ERROR && strstr(s.all.of[r].text, says), "rank %d: %s", r,
              s.all.of[r].text);
    printf("# %s\n", s.all.of[0].text);
    close_scenario(&s);
}

static void mismatches(int count)
{
    mismatch(count, COLLECTIVE_MOVE, 0, -1, "calls ncclAllGather of");
    mismatch(count, COLLECTIVE_ADD, -1, 0, "calls ncclReduceScatter of");
    mismatch(count, COLLECTIVE_MOVE, 0, 1, "all ranks wait");
    tap_point("ranks that make other calls");
}

/* ---- delays ---- */

static void delayed(int count, int trials)
{
    for (int i = 0; i < trials && !tap_failures; i++) {
        for (int r = 0; r < count; r++) fake_nccl_delay(r, draw(5000));
        succeeds(count);
    }
    for (int r = 0; r < count; r++) fake_nccl_delay(r, 0);
    tap_point("ranks that are late");
}

/* A thread that waits for its stream runs what the others have queued. */
static duet_status run_and_leave(ranks *all, int rank, void *arg)
{
    trial *t = arg;
    (void)all;
    TRY(open_trial(t, rank));
    return run_trial(t, rank);
}

static void one_waits(int count)
{
    static scenario s;
    open_scenario(&s, count, LONG);
    on_ranks(&s.all, run_and_leave, &s.t[1]);
    all_ran(&s.all, "queued");
    CHECK(fetch_result(&s.t[1], 0) == DUET_OK, "%s", duet_error());
    for (int r = 1; r < count; r++) CHECK(fetch_result(&s.t[1], r) == DUET_OK, "%s", duet_error());
    results_agree(&s.t[1]);
    close_scenario(&s);
    tap_point("one thread waits for its rank, then for the others");
}

static duet_status run_and_free(ranks *all, int rank, void *arg)
{
    trial *t = arg;
    TRY(open_trial(t, rank));
    if (rank) return DUET_OK;
    TRY(run_trial(t, rank));
    const double start = clock_now();
    close_trial(t, rank);
    CHECK(clock_now() - start < IN_TIME, "it took %g seconds", clock_now() - start);
    return gpu_machine.link_check(all->c[rank].link);
}

/* CUDA waits for all work of the card before it frees memory. */
static void frees_meanwhile(int count)
{
    static scenario s;
    open_scenario(&s, count, SHORT);
    on_ranks(&s.all, run_and_free, &s.t[0]);
    CHECK(s.all.of[0].status == DUET_RANK_FAILED, "%s", s.all.of[0].text);
    close_scenario(&s);
    tap_point("memory is freed while a call waits for other ranks");
}

/* The elements arrive in the order of another queue, which waits for the first. */
static duet_status fetch_elsewhere(ranks *all, int rank, void *arg)
{
    trial *t = arg;
    const int device = DEFAULT_GPU + rank;
    (void)all;
    TRY(open_trial(t, rank));
    TRY(run_trial(t, rank));
    TRY(gpu_machine.wait(device, 1, device, 0));
    return gpu_machine.download(device, t->got[rank], t->device[rank][0], bytes_of(t, &t->of[rank]->out), 1);
}

static void another_queue(int count)
{
    static scenario s;
    open_scenario(&s, count, LONG);
    on_ranks(&s.all, fetch_elsewhere, &s.t[1]);
    if (all_ran(&s.all, "another queue")) results_agree(&s.t[1]);
    close_scenario(&s);
    tap_point("another queue waits for a call");
}

/* A blocking call of CUDA, which the library does not make, ends after a while. */
static duet_status run_and_drain(ranks *all, int rank, void *arg)
{
    TRY(open_trial(arg, rank));
    if (rank) return DUET_OK;
    TRY(run_trial(arg, rank));
    if (cudaSetDevice(rank) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess)
        return fail(DUET_DEVICE_ERROR, "no synchronisation");
    return gpu_machine.link_check(all->c[rank].link);
}

static void impatient(int count)
{
    static scenario s;
    open_scenario(&s, count, LONG);
    fake_nccl_wait(0.1);
    on_ranks(&s.all, run_and_drain, &s.t[0]);
    fake_nccl_wait(10);
    CHECK(s.all.of[0].status == DUET_RANK_FAILED && strstr(s.all.of[0].text, "ranks do not answer"), "%s",
          s.all.of[0].text);
    close_scenario(&s);
    tap_point("a thread of the fake CUDA waits for other ranks");
}

/* ---- bytes ---- */

static void sends(int count, enum collective_kind kind, int from, int to, uint64_t bytes)
{
    static scenario s;
    fake_nccl_counts before[RANKS_MOST];
    open_scenario(&s, count, LONG);
    for (int i = 0; i < 2; i++) free_trial(&s.t[i]);
    make_one(&s.t[0], &s.all, kind, from, to);
    make_one(&s.t[1], &s.all, COLLECTIVE_MOVE, -1, -1);
    for (int r = 0; r < count; r++) before[r] = fake_nccl_count(r);
    run_scenario(&s);
    all_ran(&s.all, "counted");
    for (int r = 0; r < count; r++) {
        const uint64_t sent = fake_nccl_count(r).bytes - before[r].bytes;
        CHECK(sent == bytes, "%s: rank %d sent %d bytes, not %d", trial_text(&s.t[0]), r, (int)sent,
              (int)bytes);
    }
    close_scenario(&s);
}

/* Arrays have 2 n x 3 n elements of 8 bytes. */
static void bytes_sent(int count)
{
    const uint64_t n = (uint64_t)count, all = 8 * 6 * n * n;
    sends(count, COLLECTIVE_MOVE, 0, -1, (n - 1) * all / n);
    sends(count, COLLECTIVE_MOVE, 1, -1, (n - 1) * all / n);
    sends(count, COLLECTIVE_MOVE, 0, 1, (n - 1) * all / n / n);
    sends(count, COLLECTIVE_MOVE, -1, 1, 0);
    sends(count, COLLECTIVE_MOVE, 1, 1, 0);
    sends(count, COLLECTIVE_ADD, -1, -1, 2 * (n - 1) * all / n);
    sends(count, COLLECTIVE_ADD, -1, 0, (n - 1) * all / n);
    sends(count, COLLECTIVE_ADD, -1, 1, 2 * (n - 1) * all / n);
    tap_point("the bytes that ranks send");
}

/* ---- without NCCL ---- */

static void missing(void)
{
    char name[LINK_NAME];
    trial t = { .count = 1 };
    ranks all = { .count = 1, .c = { { .ranks = 1 } } };
    make_one(&t, &all, COLLECTIVE_MOVE, 0, 0);
    const step s = step_of(&t, 0);
    CHECK(strstr(gpu_machine.unsupported_reason(&s), "not connected"), "a step without a link is supported");
    free_trial(&t);
    fake_without("nccl", "no NCCL");
    CHECK(gpu_machine.link_name(name) == DUET_NO_DEVICE && strstr(duet_error(), "no NCCL"), "%s",
          duet_error());
    CHECK(gpu_machine.connect(DEFAULT_GPU, name, 0, 1, 1, &all.c[0].link) == DUET_NO_DEVICE, "connected");
    fake_without("nccl", NULL);
    tap_point("without NCCL");
}

/* NCCL has no 16-bit integers and no bools. */
static void not_added(void)
{
    static const duet_dtype types[] = { DUET_I16, DUET_U16, DUET_BOOL };
    static ranks all;
    const shape whole = { 1, { 4 } };
    connect_ranks(&all, 1, LONG);
    for (int i = 0; i < 3; i++) {
        trial t = { .count = 1 };
        spread_evenly(&t.from, &whole, -1, 1);
        spread_evenly(&t.to, &whole, -1, 1);
        make_trial(&t, &all, COLLECTIVE_ADD, types[i], &whole);
        const step s = step_of(&t, 0);
        CHECK(gpu_machine.unsupported_reason(&s), "%s are added", dtypes[types[i]].name);
        free_trial(&t);
    }
    disconnect_ranks(&all, false);
    tap_point("types that NCCL does not add");
}

int main(int argc, char **argv)
{
    const int trials = trial_count(argc, argv, 3, 12);
    fake_devices(RANKS_MOST);
    missing();
    not_added();
    succeeds(3);
    bytes_sent(2);
    bytes_sent(4);
    one_waits(3);
    another_queue(3);
    frees_meanwhile(2);
    impatient(2);
    delayed(4, trials);
    mismatches(2);
    mismatches(4);
    silent_from_the_start(3);
    silent_later(3);
    asynchronous(2);
    every_call_fails(2, false);
    every_call_fails(2, true);
    lost_card(2);
    return tap_end();
}
