/* test_mpi_transport.c [failures] - messages between MPI processes. tests/mpi/run.sh starts it with 1 to 4 of
 * them. Tests of failures are run apart from the others, because they leave messages for which MPI_Finalize
 * may wait. */
#include "clock.h"
#include "mpi_transport.h"
#include "random_messages.h"
#include "tap.h"
#include <unistd.h>

static duet_transport_error error;

/* Ends a test point of all ranks; rank 0 prints it. */
static void point(const char *name)
{
    int rank, mine[2] = { tap_checks, tap_failures }, all[2];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    tap_checks = all[0], tap_failures = all[1];
    if (rank == 0) tap_point(name);
    tap_checks = tap_failures = 0;
}

static duet_transport opened_on(MPI_Comm comm, int piece)
{
    duet_transport t = { 0 };
    error.text[0] = 0;
    CHECK(duet_mpi_transport(comm, piece, 20, &t, &error) == DUET_OK, "%s", error.text);
    return t;
}
static duet_transport opened(int piece) { return opened_on(MPI_COMM_WORLD, piece); }

static bool exchange_set(duet_transport *t, const message_set *s, double seconds)
{
    return t->exchange(t->context, s->send, s->sends, s->receive, s->receives, seconds, &error);
}

static void test_random(const char *name, int piece, size_t most, int rounds)
{
    duet_transport t = opened(piece);
    uint64_t state = 5;
    for (int round = 0; round < rounds; round++) {
        message_set s = draw_messages(&state, t.rank, t.ranks, (size_t)piece, most);
        const bool ok = exchange_set(&t, &s, 20);
        CHECK(ok, "round %d: %s", round, error.text);
        CHECK(messages_are_right(&s), "round %d: wrong bytes", round);
        free_messages(&s);
        if (!ok) break;
    }
    t.close(t.context, false);
    point(name);
}

/* Messages of the program on the same communicator are not mistaken for those of the transport. */
static void test_apart(void)
{
    duet_transport t = opened(100);
    const int next = (t.rank + 1) % t.ranks, before = (t.rank + t.ranks - 1) % t.ranks;
    int mine = 7, got = 0, sent = t.rank, received = -1;
    MPI_Request requests[2];
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&mine, 1, MPI_INT, next, 0, MPI_COMM_WORLD, &requests[1]);
    CHECK(t.exchange(t.context, &(duet_message){ next, &sent, sizeof sent }, 1,
                     &(duet_message){ before, &received, sizeof received }, 1, 20, &error),
          "%s", error.text);
    for (int i = 0; i < 2; i++) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    CHECK(got == 7 && received == before, "got %d and %d", got, received);
    t.close(t.context, false);
    point("messages of the program are apart");
}

static void test_members(void)
{
    duet_transport t = opened(100);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(t.size == sizeof t && !strcmp(t.name, "MPI"), "%zu %s", t.size, t.name);
    CHECK(t.rank == rank && t.ranks == ranks, "rank %d of %d", t.rank, t.ranks);
    CHECK(t.near_rank == rank && t.near_ranks == ranks, "near: rank %d of %d", t.near_rank, t.near_ranks);
    t.close(t.context, false);

    MPI_Comm half; /* in the opposite order */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    t = opened_on(half, 100);
    CHECK(t.ranks == (ranks + 1 - rank % 2) / 2 && t.rank == t.ranks - 1 - rank / 2, "%d of %d", t.rank,
          t.ranks);
    MPI_Comm_free(&half);
    uint64_t state = 9 + (uint64_t)(rank % 2);
    message_set s = draw_messages(&state, t.rank, t.ranks, 100, 1000);
    CHECK(exchange_set(&t, &s, 20) && messages_are_right(&s), "%s", error.text);
    free_messages(&s);
    t.close(t.context, false);
    point("ranks, near ranks and a communicator of some processes");
}

static void test_arguments(void)
{
    duet_transport t = { 0 };
    MPI_Comm none = MPI_COMM_NULL;
    CHECK(duet_mpi_transport(none, 100, 1, &t, &error) == DUET_BAD_ARGUMENT &&
              strstr(error.text, "COMM_NULL"),
          "%s", error.text);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > 1) {
        MPI_Comm half, inter;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !(rank % 2), 1, &inter);
        CHECK(duet_mpi_transport(inter, 100, 1, &t, &error) == DUET_BAD_ARGUMENT &&
                  strstr(error.text, "intercommunicator"),
              "%s", error.text);
        MPI_Comm_free(&inter), MPI_Comm_free(&half);
    }
    point("wrong communicators are refused");
}

/* A process that does not make the transport. */
static void test_absent(void)
{
    duet_transport t = { 0 };
    int rank;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm); /* not freed: a rank still duplicates it */
    MPI_Comm_rank(comm, &rank);
    if (rank == 0) {
        const duet_status s = duet_mpi_transport(comm, 100, 0.2, &t, &error);
        CHECK(s == DUET_RANK_FAILED && strstr(error.text, "within 0.2 seconds"), "%d: %s", s, error.text);
    }
    point("a process that does not make the transport");
}

static void check_timeout(double waited, double seconds, int late)
{
    char want[100];
    snprintf(want, sizeof want, "rank %d did not answer within %g seconds", late, seconds);
    CHECK(waited >= seconds && waited < seconds + 2, "failed after %g s", waited);
    CHECK(error.rank == late && !strcmp(error.text, want), "rank %d: %s", error.rank, error.text);
}

/* Rank 1 sends to all others, and receives from them, too late or never. Nothing is written to the buffers of
 * the others after they have failed. */
static void test_late(const char *name, int piece, size_t bytes, bool never)
{
    const double seconds = 0.2;
    duet_transport t = opened(piece);
    unsigned char *in = malloc(bytes), *out = calloc(1, bytes), *copy = malloc(bytes);
    duet_message send[4], receive[4];
    int n = 0;
    for (int r = 0; r < t.ranks; r++)
        if (t.rank == 1 ? r != 1 : r == 1) {
            send[n] = (duet_message){ r, out, bytes };
            receive[n++] = (duet_message){ r, in, bytes };
        }
    if (t.rank != 1) {
        const double start = clock_now();
        CHECK(!t.exchange(t.context, send, n, receive, n, seconds, &error), "rank 1 has answered");
        check_timeout(clock_now() - start, seconds, 1);
        CHECK(!t.exchange(t.context, send, n, receive, n, 60, &error), "works after a failure");
        check_timeout(seconds, seconds, 1);
        t.close(t.context, true);
        memset(out, 0x11, bytes), memset(in, 0x22, bytes), memset(copy, 0x22, bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    bool ok = false;
    if (t.rank == 1) {
        if (!never) ok = t.exchange(t.context, send, n, receive, n, seconds, &error);
        memset(copy, 0, bytes);
        CHECK(!ok || !memcmp(in, copy, bytes), "changed after the other rank had failed");
        t.close(t.context, true);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(t.rank == 1 || !memcmp(in, copy, bytes), "written after the failure");
    free(in), free(out), free(copy);
    point(name);
}

/* Both ranks must name messages of the same sizes. */
static void test_sizes(size_t sent, size_t expected, const char *want)
{
    duet_transport t = opened(100);
    unsigned char bytes[1000] = { 0 };
    const duet_message m = { !t.rank, bytes, t.rank ? sent : expected };
    if (t.rank == 0) {
        CHECK(!t.exchange(t.context, NULL, 0, &m, 1, 0.2, &error), "%zu of %zu bytes", sent, expected);
        CHECK(error.rank == 1 && strstr(error.text, want), "rank %d: %s", error.rank, error.text);
        CHECK(!bytes[expected], "written out of bounds");
    } else if (t.rank == 1) t.exchange(t.context, &m, 1, NULL, 0, 0.2, &error);
    t.close(t.context, true);
}

static void test_wrong_sizes(void)
{
    test_sizes(10, 20, "rank 1 sent 10 bytes, and rank 0 expects 20");
    test_sizes(100, 250, "rank 1 did not answer");
    test_sizes(20, 10, "rank 1");
    point("messages of other sizes than expected");
}

/* Transports that are closed after MPI_Finalize. */
static void test_finalized(int rank)
{
    duet_transport t = opened(100), unused = { 0 };
    MPI_Finalize();
    CHECK(!t.exchange(t.context, NULL, 0, NULL, 0, 1, &error) && strstr(error.text, "finalised"), "%s",
          error.text);
    t.close(t.context, false);
    CHECK(duet_mpi_transport(MPI_COMM_WORLD, 100, 1, &unused, &error) == DUET_BAD_ARGUMENT &&
              strstr(error.text, "finalised"),
          "%s", error.text);
    if (rank == 0) tap_point("after MPI_Finalize");
}

static int test_failures(int rank)
{
    test_wrong_sizes();
    test_late("a late rank, small messages", 100, 1000, false);
    test_late("a late rank, large messages", 1 << 18, 1 << 21, false);
    test_late("a silent rank", 1 << 18, 1 << 21, true);
    test_absent();
    if (rank == 0) tap_end();
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(0);
}

int main(int argc, char **argv)
{
    duet_transport t;
    CHECK(duet_mpi_transport(MPI_COMM_WORLD, 100, 1, &t, &error) == DUET_BAD_ARGUMENT &&
              strstr(error.text, "MPI_Init"),
          "%s", error.text);
    MPI_Init(&argc, &argv);
    point("before MPI_Init");
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1) return test_failures(rank);
    test_members();
    test_arguments();
    test_apart();
    test_random("small pieces", 64, 1000, 300);
    test_random("pieces of 4 kB", 1 << 12, 1 << 15, 100);
    test_random("whole pieces", MPI_TRANSPORT_PIECE, 5 << 20, 3);
    test_finalized(rank);
    return rank == 0 ? tap_end() : 0;
}
