/* distributed.h - declarations shared by the files of duet-distributed and duet-distributed-mpi: a case, and
 * a trial of it on one group. */
#ifndef DISTRIBUTED_H
#define DISTRIBUTED_H

#include <duet/duet.h>
#include <stdbool.h>

#define STEP(call)                                                                                           \
    do {                                                                                                     \
        duet_status status_ = (call);                                                                        \
        if (status_ != DUET_OK) return status_;                                                              \
    } while (0)

enum { MATRICES = 32, WHOLE = -1 }; /* most matrices of a case; the axis of a matrix that is not split */

/* What the sizes are for: comparing results, a run on the CPU, a quick run on GPUs, a full run on GPUs. */
enum level { LEVEL_CHECK, LEVEL_CPU, LEVEL_GPU_QUICK, LEVEL_GPU, LEVELS };

enum mode { STRONG, WEAK, COLLECTIVE, OVERHEAD };
extern const char *const mode_names[];

typedef struct trial trial;

/* One case: a row of the table in distributed_cases.c.
 *   mode       STRONG and COLLECTIVE: the total size is the same on any number of ranks. WEAK: the size is
 *              that of each rank
 *   tolerance  relative error allowed between results on different numbers of ranks, in the Frobenius norm;
 *              0: the bits are equal
 *   outputs    the matrices whose elements are compared, as a bit mask
 *   unit       of the rate: work(t) units in the time of a call. A work of 0 means that no rate is reported
 *   open       makes the matrices; false: see duet_error()
 *   size       by level; what it counts depends on the case */
typedef struct test {
    const char *name;
    enum mode mode;
    double tolerance;
    uint32_t outputs;
    const char *unit;
    double (*work)(const trial *t);
    bool (*open)(trial *t);
    duet_status (*run)(const trial *t);
    int64_t size[LEVELS];
} test;
extern const test tests[];
extern const int test_count;

/* A case on one group. */
struct trial {
    const test *of;
    duet_group *g;   /* NULL: ordinary matrices */
    int64_t parts;   /* ranks of the group; 1 for ordinary matrices */
    int64_t base, n; /* the size by the table; the total size */
    duet_matrix *m[MATRICES];
    int axis[MATRICES]; /* along which each matrix is split on a group, or WHOLE */
    int count;
    duet_matrix *fence; /* one element for each rank */
    duet_recording *recording;
};

/* ---- distributed_trial.c ---- */

bool trial_open(trial *t, const test *of, duet_group *g, int64_t base, int64_t parts);
void trial_close(trial *t);
duet_status trial_wait(const trial *t); /* waits until the work of all ranks is done */

/* Adds a matrix to the trial: split along an axis, or WHOLE: replicated. NULL: see duet_error(). */
duet_matrix *add_shape(trial *t, duet_dtype type, int axis, int rank, const int64_t *size);
#define ADD(t, type, axis, ...)                                                                              \
    add_shape(t, type, axis, (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)),                    \
              (int64_t[]){ __VA_ARGS__ })

/* Fills m with pseudo-random numbers in [low, high), which do not depend on the group. */
bool fill(const trial *t, duet_matrix *m, uint32_t seed, double low, double high);

/* Compares the outputs of two trials. why: what differs, or what failed. */
bool same_results(const trial *got, const trial *want, char why[200]);

/* Runs the case on `parts` ranks and on one, with the sizes of LEVEL_CHECK, and compares. */
bool check_small(const test *of, duet_group *g, duet_group *one, char why[200]);

/* Is a replay of a recording on the group the same as the statements, also with other inputs? */
bool check_recording(const test *of, duet_group *g, char why[200]);

duet_recording *record(const trial *t); /* NULL: see duet_error() */

/* ---- distributed_networks.c: see the table of cases ---- */

bool dense_open(trial *t);
bool dense_train_open(trial *t);
bool cnn_train_open(trial *t);
duet_status dense_run(const trial *t);
duet_status train_run(const trial *t);
enum { LOSS = 2 }; /* the matrix with the loss of a training */
#endif
