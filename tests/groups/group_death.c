/* group_death.c SEED SECONDS [gpu] - a process of a group dies at a random point of random statements. In
 * every other process, a statement must then fail with RANK_FAILED in time, and so must all later ones.
 * Matrices can still be freed. Each prints "survivor RANK: ok ..." or "survivor RANK: not ok ...";
 * tests/mpi/run.sh counts the lines. With `gpu`, each rank has a GPU, and NCCL connects them. */
#include "clock.h"
#include "group_cases.h"
#include <duet/mpi.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static void *die_later(void *after)
{
    usleep(*(useconds_t *)after);
    raise(SIGKILL);
    return NULL;
}

static void report(int rank, bool ok, double waited, const char *text)
{
    char line[600];
    const int n = snprintf(line, sizeof line, "survivor %d: %s after %.2f s: %s\n", rank,
                           ok ? "ok" : "not ok", waited, text);
    if (write(STDOUT_FILENO, line, (size_t)n) != n) _exit(1);
    _exit(!ok); /* MPI_Finalize would wait for the dead process */
}

/* A training step: products, sums and gradients of all ranks. */
enum { FORMS = 3 };
static duet_status statement(int form, duet_matrix *x, duet_matrix *w, duet_matrix *loss)
{
    duet_expr e = duet_mean(duet_square(duet_matmul(x, w)));
    switch (form) {
    case 0: return duet_set_all({ loss, e }, { w, duet_sub(w, duet_mul(duet_grad(e, w), 0.001)) });
    case 1: duet_drop(e); return duet_set(w, duet_matmul(duet_transpose(x), x));
    default: duet_drop(e); return duet_set(loss, duet_sum(duet_exp(x)));
    }
}

/* The first statement of each form loads kernels and libraries, which may take longer than the time limit. */
static bool warm_up(duet_matrix *x, duet_matrix *w, duet_matrix *loss)
{
    for (int form = 0; form < FORMS; form++)
        if (statement(form, x, w, loss) != DUET_OK) return false;
    return duet_synchronize() == DUET_OK;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const double seconds = argc > 2 ? strtod(argv[2], NULL) : 0.5;
    const bool on_gpu = argc > 3 && !strcmp(argv[3], "gpu");
    rng r = rng_new(seed);
    duet_group *g = duet_group_mpi(MPI_COMM_WORLD, on_gpu ? DUET_GPU : DUET_CPU);
    if (!g) report(rank, false, 0, duet_error());
    duet_matrix *x = duet_new_split(g, DUET_F32, 0, 5000, 16), *w = duet_new_replicated(g, DUET_F32, 16, 16),
                *loss = duet_new(DUET_F32);
    rng same = rng_new(1);
    random_fill(&same, x, -1, 1);
    random_fill(&same, w, -1, 1);
    if (!warm_up(x, w, loss) || duet_group_timeout(g, seconds) != DUET_OK)
        report(rank, false, 0, duet_error());
    const int victim = (int)rng_below(&r, ranks);
    static useconds_t after;
    after = (useconds_t)rng_below(&r, 200000);
    pthread_t thread;
    if (rank == victim) pthread_create(&thread, NULL, die_later, &after);
    for (;;) {
        const double start = clock_now();
        const duet_status s = statement((int)rng_below(&r, FORMS), x, w, loss);
        if (s == DUET_OK) continue;
        const double waited = clock_now() - start;
        char first[300];
        snprintf(first, sizeof first, "%s", duet_error());
        const duet_status next = duet_set(x, duet_add(x, 1));
        /* A rank that waits for the dead one does not answer either. */
        const bool in_time = waited < seconds + 3,
                   named = strstr(first, "rank ") && strstr(first, "duet_set");
        duet_free(&x, &w, &loss);
        duet_group_free(&g);
        report(rank, s == DUET_RANK_FAILED && next == DUET_RANK_FAILED && in_time && named, waited, first);
    }
}
