/* bench.h - what the files of duet-bench share: a problem, its peers, its times and its report. */
#ifndef BENCH_H
#define BENCH_H

#include "data.h"
#include "environment.h"
#include <duet/duet.h>
#include <stdbool.h>

#define TENSORS 13 /* matrices a benchmark has at most */
#define SIZES   16

/* A matrix of a benchmark. A size N is the problem's own; a size 0 ends the shape.
 * Inputs hold noise times sqrt(3 / fan), so that a sum of `fan` products of them stays near 1; fan 0: noise as it is. */
enum role { END, IN, OUT };
enum { N = -1 };
typedef struct tensor {
    enum role role;
    int fan;
    int64_t size[4];
} tensor;

typedef struct problem problem;

/* The vendor's own calls on one machine: what a benchmark is held against. They are asynchronous where the machine is. */
typedef struct engine {
    const char *gemm_name, *axpy_name; /* NULL: not there */
    double axpy_share;                 /* the bytes of axpy's stand-in over those of axpy */
    bool (*gemm)(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                 float *c); /* C = A B, row-major */
    bool (*axpy)(int64_t n, float s, const float *x, float *y);
    bool (*sync)(void);
} engine;
const engine *engine_cpu(void);
const engine *engine_gpu(void);

#define VECTOR_ROW 4096 /* vectors are checked in rows of so many */

/* One benchmark: a row of the table in problems.c.
 *   work     bytes or operations of one call: work * n^power
 *   terms    numbers that a result sums, terms[0] + terms[1] * n: scales the error allowed
 *   row      the results of one row in double, from the noise alone; returns how many. scratch holds SCRATCH + n numbers
 *   bare     the same with an engine, as far as it goes; `at` are addresses on its machine */
#define SCRATCH 65536
typedef struct bench {
    const char *name, *unit;
    const tensor *tensors;
    int output;
    double work;
    int power;
    double terms[2];
    duet_status (*run)(const problem *p);
    bool (*bare)(const problem *p, const engine *e, float *const at[]);
    int64_t (*row)(const problem *p, int64_t row, double *want, double *scratch);
    int64_t (*rows)(const problem *p);
    int64_t sizes[SIZES], quick[SIZES];
} bench;
extern const bench benches[];
extern const int bench_count;

/* Is it a benchmark of vectors, held against a loop or a copy, not of matrices, held against GEMM? */
static inline bool of_vectors(const bench *b) { return !b->tensors[0].size[1]; }

struct problem {
    const bench *bench;
    int64_t n;
    uint32_t seed;
    duet_place place;
    duet_matrix *m[TENSORS];
    duet_matrix *flat; /* cnn: the pooled images as rows */
};

int64_t tensor_size(const problem *p, int t, int axis); /* 0 past the last axis */
float tensor_scale(const problem *p, int t);
bool problem_open(problem *p); /* makes and fills the matrices; false: duet_error() */
void problem_close(problem *p);
bool gpu_is_there(void); /* false: duet_error(). Unlike duet_stream it leaves automatic replay as it is */

static inline uint32_t stream_of(const problem *p, int t) { return p->seed * 64 + (uint32_t)t; }

/* The result of one call from fresh data, against the reference. norm and probe (the product with noise of stream 0) are over
 * all elements; peers must find the same. */
typedef struct linalg_failed {
    bool ran, ok;
    double error, bound, norm, probe; /* error: relative, Frobenius, over the rows that were looked at */
} linalg_failed;
linalg_failed check(const problem *p);

/* math_modes.c: how products may round, by their names: strict, split, tf32, bf16. The mode is given to the library by its environment, before it is
 * loaded: math_use begins this program anew where that needs another. false: there is no such mode, or the library has it not. */
bool math_use(const char *name, char **argv);
const char *math_name(void);
double math_error(void); /* relative, that a result may have beside strict's; 0 for strict */

/* How long a call takes, in microseconds: the median of blocks, those of the others in between. */
typedef struct timing {
    bool ok;
    double us, replay_us, auto_us; /* as written; of duet_replay; as written, with automatic replay */
    double peer_us,
        ratio; /* ratio: us over the peer's time for as many bytes or operations; 0 without a peer */
    double floor_us, floor_ratio;
    const char *peer, *floor; /* NULL: there is none */
} timing;
timing time_problem(const problem *p, bool quick);

/* lower_bound.c: what a problem can hardly be faster than, as a block of calls. false: nothing of the kind is known, or here; close it all the same. */
typedef struct floor_work {
    const problem *p;
    const char *name;
    double (*block)(void *state, int64_t calls);
    double scale; /* of the time of a call */
    int64_t most; /* calls of a block */
    float *at[5], *own;
    duet_matrix *room[5];
    struct hand_product *product[2];
} floor_work;
bool floor_open(const problem *p, floor_work *w);
void floor_close(floor_work *w);

/* ---- the report ---- */
typedef struct result {
    const bench *bench;
    int64_t n;
    duet_place place;
    linalg_failed linalg_failed;
    timing timing;
} result;
void report_head(void);
void report_line(const result *r);
double result_rate(const result *r); /* giga-units a second */
bool report_json(const char *path, const result *r, int count, uint32_t seed);
bool report_csv(const char *path, const result *r, int count);

static inline const char *place_name(duet_place p) { return p == DUET_GPU ? "gpu" : "cpu"; }
#endif
