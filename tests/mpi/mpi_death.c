/* mpi_death.c SEED SECONDS - a rank dies at a random point of random exchanges. Every other rank must then
 * fail within SECONDS after the last message that it can receive, and name a rank. Each prints
 * "survivor RANK: ok ..." or "survivor RANK: not ok ..."; tests/mpi/run.sh counts the lines. */
#include "clock.h"
#include "mpi_transport.h"
#include "random_messages.h"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static uint64_t draw_rank_state; /* how the dying rank chooses its moment */

/* The rank dies between the messages that it sends, in the exchange, or before it. */
static void *die_later(void *unused)
{
    (void)unused;
    usleep((useconds_t)(draw(&draw_rank_state) % 200000));
    raise(SIGKILL);
    return NULL;
}

static void report(int rank, int ranks, double waited, double seconds, const duet_transport_error *e)
{
    const bool ok = e->rank >= 0 && e->rank < ranks && e->rank != rank && e->text[0] && waited < seconds + 3;
    char line[400];
    const int n = snprintf(line, sizeof line, "survivor %d: %s after %.2f s: %s\n", rank,
                           ok ? "ok" : "not ok", waited, e->text);
    if (write(STDOUT_FILENO, line, (size_t)n) != n) _exit(1);
    _exit(!ok); /* MPI_Finalize would wait for the dead rank */
}

int main(int argc, char **argv)
{
    uint64_t seed = strtoull(argv[1], NULL, 10), state = seed;
    const double seconds = strtod(argv[2], NULL);
    MPI_Init(&argc, &argv);
    duet_transport t;
    duet_transport_error e;
    if (duet_mpi_transport(MPI_COMM_WORLD, 1 << 16, 60, &t, &e) != DUET_OK) return puts(e.text), 1;
    const int victim = (int)(draw(&state) % (unsigned)t.ranks);
    const int rounds = (int)(draw(&state) % 50);
    draw_rank_state = state;
    for (int round = 0;; round++) {
        message_set s = draw_messages(&state, t.rank, t.ranks, 1 << 16, 1 << 20);
        if (t.rank == victim && round == rounds) {
            if (draw(&draw_rank_state) % 2) raise(SIGKILL);
            pthread_t thread;
            pthread_create(&thread, NULL, die_later, NULL);
        }
        const double start = clock_now();
        if (!t.exchange(t.context, s.send, s.sends, s.receive, s.receives, seconds, &e))
            report(t.rank, t.ranks, clock_now() - start, seconds, &e);
        free_messages(&s);
    }
}
