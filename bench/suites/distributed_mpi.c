/* distributed_mpi.c - duet-distributed-mpi: measures the training of the dense network on a group of two
 * MPI processes, beside one of them alone. bench/distributed.sh starts each process with half of the
 * cores, so the second process can at best double the speed. The losses of both are compared.
 *
 *     mpirun -n 2 duet-distributed-mpi [--batch N] [--quick] [--json FILE]
 *
 * The batch is the total one. Process 0 alone uses ordinary matrices; the other process sleeps meanwhile. */
#include "distributed.h"
#include "json.h"
#include "measure.h"
#include <duet/mpi.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = "mpirun -n 2 duet-distributed-mpi [--batch N] [--quick] [--json FILE]\n";

enum { MOST_ROUNDS = 9, CHECKED_STEPS = 3 };
static const double tolerance = 1e-4; /* relative, of the losses */

static const test dense_training = {
    .name = "dense_train_mpi", .mode = STRONG, .open = dense_train_open, .run = train_run
};

/* A failure of one process must end the others, which wait for it. */
static void check(duet_status s)
{
    if (s == DUET_OK) return;
    fprintf(stderr, "duet-distributed-mpi: %s: %s\n", duet_status_text(s), duet_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Waits for all processes without using the processor, which another one may need. */
static void meet(void)
{
    MPI_Request all;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    while (MPI_Test(&all, &done, MPI_STATUS_IGNORE), !done) usleep(200);
}

static double steps(const trial *t, int count)
{
    check(trial_wait(t));
    const double start = now();
    for (int i = 0; i < count; i++) check(t->of->run(t));
    check(trial_wait(t));
    return now() - start;
}

static double loss_of(const trial *t)
{
    const float *loss = duet_read(t->m[LOSS]);
    if (!loss) check(duet_error_status());
    return loss ? *loss : NAN;
}

typedef struct times {
    double alone, together, sent;
    int rounds;
} times;

/* Both take turns. A round has the same number of steps in all processes. */
static times measure_both(const trial *alone, const trial *together, bool quick)
{
    times t = { .rounds = quick ? 3 : MOST_ROUNDS };
    double a[MOST_ROUNDS], b[MOST_ROUNDS];
    int count = alone ? (int)fmax(2, (quick ? 0.1 : 0.5) / steps(alone, 1)) : 0;
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    const uint64_t before = duet_stats().exchange_bytes;
    check(together->of->run(together));
    const double sent = (double)(duet_stats().exchange_bytes - before);
    MPI_Allreduce(&sent, &t.sent, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < t.rounds; i++) {
        meet();
        a[i] = alone ? steps(alone, count) / count : NAN;
        meet();
        b[i] = steps(together, count) / count;
    }
    t.alone = median(a, t.rounds);
    t.together = median(b, t.rounds);
    return t;
}

static void put_row(json *j, int64_t batch, int ranks, double seconds, const times *t)
{
    const double factor = t->alone / seconds;
    json_begin(j, NULL, '{');
    json_text(j, "case", dense_training.name);
    json_text(j, "mode", mode_names[STRONG]);
    json_integer(j, "ranks", ranks);
    json_truth(j, "recorded", false);
    json_integer(j, "size", batch);
    json_number(j, "seconds", seconds);
    json_number(j, "bytes_sent", ranks ? t->sent : 0);
    json_number(j, "rate", (double)batch / seconds);
    json_text(j, "unit", "items/s");
    json_number(j, "speedup", factor);
    json_number(j, "efficiency", factor / (ranks ? ranks : 1));
    json_truth(j, "checked", true);
    json_end(j, '}');
}

static bool report(const char *path, int64_t batch, int ranks, const times *t, const double loss[2])
{
    json j;
    printf("dense_train batch %lld: one process %.3f ms, %d processes %.3f ms: %.2f times as fast; losses "
           "%.6f %.6f\n",
           (long long)batch, 1e3 * t->alone, ranks, 1e3 * t->together, t->alone / t->together, loss[0],
           loss[1]);
    if (!json_open(&j, path)) return false;
    json_text(&j, "place", "cpu");
    json_begin(&j, "results", '[');
    put_row(&j, batch, 0, t->alone, t);
    put_row(&j, batch, ranks, t->together, t);
    json_end(&j, ']');
    json_begin(&j, "losses", '[');
    json_number(&j, NULL, loss[0]);
    json_number(&j, NULL, loss[1]);
    json_end(&j, ']');
    return json_close(&j);
}

/* The losses after some steps from the same weights. */
static bool agree(const trial *alone, const trial *together, double loss[2])
{
    (void)steps(together, CHECKED_STEPS);
    loss[1] = loss_of(together);
    if (!alone) return true;
    (void)steps(alone, CHECKED_STEPS);
    loss[0] = loss_of(alone);
    if (fabs(loss[0] - loss[1]) <= tolerance * fabs(loss[0])) return true;
    fprintf(stderr, "duet-distributed-mpi: the losses differ: %.9g alone, %.9g together\n", loss[0], loss[1]);
    return false;
}

static bool run(duet_group *g, int64_t batch, bool quick, const char *path)
{
    trial alone = { 0 }, together = { 0 };
    double loss[2] = { NAN, NAN };
    const bool first = duet_group_rank(g) == 0;
    if (!trial_open(&together, &dense_training, g, batch, duet_group_ranks(g))) check(duet_error_status());
    if (first && !trial_open(&alone, &dense_training, NULL, batch, 1)) check(duet_error_status());
    int ok = agree(first ? &alone : NULL, &together, loss);
    MPI_Bcast(&ok, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (ok) {
        const times t = measure_both(first ? &alone : NULL, &together, quick);
        if (first) ok = report(path, batch, duet_group_ranks(g), &t, loss);
    }
    trial_close(&alone);
    trial_close(&together);
    return ok;
}

int main(int argc, char **argv)
{
    int64_t batch = 4096;
    bool quick = false, ok = false;
    const char *path = NULL;
    MPI_Init(&argc, &argv);
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick")) quick = true;
        else if (!strcmp(argv[i], "--batch") && i + 1 < argc) batch = atoll(argv[++i]);
        else if (!strcmp(argv[i], "--json") && i + 1 < argc) path = argv[++i];
        else batch = 0;
    if (batch < 1) {
        fputs(usage, stderr);
        MPI_Finalize();
        return 2;
    }
    DUET_ON(DUET_CPU)
    {
        duet_group *g = duet_group_mpi(MPI_COMM_WORLD, DUET_CPU);
        if (!g) check(duet_error_status());
        ok = g && run(g, batch, quick, path);
        duet_group_free(&g);
    }
    MPI_Finalize();
    return !ok;
}
