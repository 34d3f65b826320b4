/* bench.h - declarations shared by the files of duet-bench, duet-place, duet-threads and
 * duet-calls: a problem with its matrices, its check against a reference, its times, and the
 * report. */
#ifndef BENCH_H
#define BENCH_H

#include "data.h"
#include "environment.h"
#include <duet/duet.h>
#include <stdbool.h>

#define TENSORS 13 /* most matrices of a benchmark */
#define SIZES   16

/* A matrix of a benchmark. A size N stands for the size of the problem; a size of 0 ends the shape.
 * An input contains noise in [-1, 1), scaled by sqrt(3 / fan), so that a sum of `fan` products of
 * elements stays near 1. With fan = 0 the noise is not scaled. */
enum role { END, IN, OUT };
enum { N = -1 };
typedef struct tensor {
    enum role role;
    int fan;
    int64_t size[4];
} tensor;

typedef struct problem problem;

/* The vendor's functions on one device, called directly; benchmarks are compared with them. On the
 * GPU they are asynchronous. */
typedef struct engine {
    const char *gemm_name, *axpy_name; /* NULL: not available */
    double axpy_share; /* bytes moved by the function that stands in for axpy, divided by those of axpy */
    bool (*gemm)(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                 float *c); /* C = A B, row-major */
    bool (*axpy)(int64_t n, float s, const float *x, float *y);
    bool (*sync)(void);
} engine;
const engine *engine_cpu(void);
const engine *engine_gpu(void);

#define VECTOR_ROW 4096 /* vectors are checked in pieces of this many elements */

/* One benchmark: a row of the table in problems.c.
 *   work     bytes or operations of one call: work * n^power
 *   terms    a result sums terms[0] + terms[1] * n numbers; this determines the allowed error
 *   row      computes one row of the result in double, from the noise; returns the number of
 *            elements. scratch has room for SCRATCH + n numbers
 *   rows     number of rows of the result
 *   bare     the vendor's calls for the same work, or for its matrix products only; `at` has the
 *            addresses of the matrices on the device */
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

/* Whether this is a benchmark of vectors, which is compared with a loop or a copy. The others are
 * benchmarks of matrices, which are compared with GEMM. */
static inline bool of_vectors(const bench *b) { return !b->tensors[0].size[1]; }

struct problem {
    const bench *bench;
    int64_t n;
    uint32_t seed;
    duet_place place;
    duet_matrix *m[TENSORS];
    duet_matrix *flat; /* cnn: a view of the pooled images as rows */
};

int64_t tensor_size(const problem *p, int t, int axis); /* 0 after the last axis */
float tensor_scale(const problem *p, int t);
bool problem_open(problem *p); /* creates and fills the matrices; on failure see duet_error() */
void problem_close(problem *p);
bool gpu_is_available(
    void); /* on failure see duet_error(). Unlike duet_stream it does not turn automatic replay off */

static inline uint32_t stream_of(const problem *p, int t) { return p->seed * 64 + (uint32_t)t; }

/* The comparison of one call's result with the reference. norm and probe (the dot product with the
 * noise of stream 0) are computed over all elements. Peers must get the same values. */
typedef struct check_result {
    bool ran, ok;
    double error, bound, norm, probe; /* error: relative, in the Frobenius norm, over the checked rows */
} check_result;
check_result check(const problem *p);

/* math_modes.c: the math mode of products: strict, split, tf32 or bf16. The library reads it from
 * the environment when it is loaded. If the mode has to change, math_use restarts this program. It
 * returns false if the mode does not exist or the library does not support it. */
bool math_use(const char *name, char **argv);
const char *math_name(void);
double math_error(void); /* relative error allowed in addition to that of strict; 0 for strict */

/* The times of one call in microseconds: medians over blocks of calls. Blocks of Duet and of its
 * peers alternate. */
typedef struct timing {
    bool ok;
    double us, replay_us, auto_us; /* without replay; by duet_replay; with automatic replay */
    double peer_us;
    double ratio; /* us / the peer's time for the same number of bytes or operations; 0: no peer */
    double lower_bound_us, lower_bound_ratio;
    const char *peer, *lower_bound; /* names; NULL: there is none */
} timing;
timing time_problem(const problem *p, bool quick);

/* lower_bound.c: a lower bound of a problem's time, measured as blocks of calls. lower_bound_open
 * returns false if none is defined for this problem and device; call lower_bound_close in any
 * case. */
typedef struct lower_bound {
    const problem *p;
    const char *name;
    double (*block)(void *state, int64_t calls);
    double scale;      /* factor for the time of a call */
    int64_t max_calls; /* most calls of a block */
    float *at[5], *own;
    duet_matrix *matrix[5];
    struct handwritten_gemm *product[2];
} lower_bound;
bool lower_bound_open(const problem *p, lower_bound *w);
void lower_bound_close(lower_bound *w);

/* ---- the report ---- */
typedef struct result {
    const bench *bench;
    int64_t n;
    duet_place place;
    check_result checked;
    timing timing;
} result;
void report_head(void);
void report_line(const result *r);
double result_rate(const result *r); /* 10^9 units per second */
bool report_json(const char *path, const result *r, int count, uint32_t seed);
bool report_csv(const char *path, const result *r, int count);

static inline const char *place_name(duet_place p) { return p == DUET_GPU ? "gpu" : "cpu"; }
#endif
