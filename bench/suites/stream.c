/* stream.c - duet-stream: measures streaming, the execution in parts of statements whose operands
 * stay in host memory, through a limited part of GPU memory.
 *
 * saxpy: y = 3.3 x + y on vectors of 1 GiB. dense: the network 784-1000-1000-10 at batch 262144 as
 * one formula, with its weights in GPU memory. The time is compared with a lower bound, the larger
 * of two times. The first is that of copying the operands over the link: both directions at once as
 * long as both have data, then one direction. The rates of the link are measured by copies of 64
 * MiB of pinned memory. The second is that of the arithmetic, measured by the same formula on a
 * batch that is in GPU memory.
 *
 * "first" is the first call of the process, from memory that is not pinned. The third call is the
 * first one whose memory is all pinned. */
#include "data.h"
#include "environment.h"
#include "handwritten.h"
#include "json.h"
#include "measure.h"
#include <duet/duet.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "duet-stream [--quick] [--cap MIB] [--explain] [--json FILE]\n";

#define LINK_BYTES ((size_t)64 << 20)

typedef struct options {
    bool quick, explain;
    size_t cap;
} options;

/* Rates in GB/s: in one direction, and in each direction when both are in use. */
typedef struct link_rates {
    double up, down, both;
} link_rates;

static bool fill(duet_matrix *m, uint32_t stream, float scale)
{
    float *p = duet_overwrite(m);
    const int64_t n = duet_count(m);
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++) p[i] = noise(stream, i) * scale;
    return p;
}

/* ---- saxpy ---- */

#define S 3.3f

typedef struct saxpy {
    int64_t n;
    duet_matrix *x, *y;
} saxpy;

static duet_status saxpy_run(void *state)
{
    const saxpy *p = state;
    return duet_set(p->y, duet_add(duet_mul(S, p->x), p->y));
}

static void saxpy_explain(void *state)
{
    const saxpy *p = state;
    const duet_expr e = duet_add(duet_mul(S, p->x), p->y);
    duet_explain(stdout, p->y, e);
    (void)!duet_drop(e);
}

static bool saxpy_fill(void *state)
{
    const saxpy *p = state;
    return fill(p->x, 1, 1) && fill(p->y, 2, 1);
}

/* Compares every element exactly. */
static bool saxpy_check(void *state)
{
    const saxpy *p = state;
    const float *y = duet_read(p->y);
    int64_t wrong = y ? 0 : p->n;
#pragma omp parallel for reduction(+ : wrong)
    for (int64_t i = 0; i < p->n; i++)
        if (y) wrong += y[i] != fmaf(S, noise(1, i), noise(2, i));
    if (wrong)
        fprintf(stderr, "duet-stream: saxpy: %lld elements are wrong: %s\n", (long long)wrong, duet_error());
    return !wrong;
}

/* ---- dense ---- */

enum { IN = 784, HIDDEN = 1000, OUT = 10, LAYERS = 3, CHECKED = 100 };
static const int widths[LAYERS + 1] = { IN, HIDDEN, HIDDEN, OUT };

typedef struct dense {
    int64_t n;
    duet_matrix *in, *w[LAYERS], *b[LAYERS], *out;
} dense;

static duet_expr dense_formula(const dense *p)
{
    duet_expr h = duet_of_matrix(p->in);
    for (int l = 0; l < LAYERS; l++) h = duet_sigmoid(duet_bias_add(duet_matmul(h, p->w[l]), p->b[l]));
    return h;
}

static duet_status dense_run(void *state)
{
    const dense *p = state;
    return duet_set(p->out, dense_formula(p));
}

static void dense_explain(void *state)
{
    const dense *p = state;
    const duet_expr e = dense_formula(p);
    duet_explain(stdout, p->out, e);
    (void)!duet_drop(e);
}

static float scale_of(int l) { return sqrtf(3.0f / (float)widths[l]); }

static bool dense_fill(void *state)
{
    const dense *p = state;
    bool ok = fill(p->in, 1, 1);
    for (int l = 0; l < LAYERS; l++)
        ok &= fill(p->w[l], 10 + (uint32_t)l, scale_of(l)) && fill(p->b[l], 20 + (uint32_t)l, 0.1f);
    return ok;
}

static void reference_layer(int l, const double *x, double *y)
{
    for (int j = 0; j < widths[l + 1]; j++) y[j] = (double)(noise(20 + (uint32_t)l, j) * 0.1f);
    for (int i = 0; i < widths[l]; i++)
        for (int j = 0; j < widths[l + 1]; j++)
            y[j] += x[i] * (double)(noise(10 + (uint32_t)l, (int64_t)i * widths[l + 1] + j) * scale_of(l));
    for (int j = 0; j < widths[l + 1]; j++) y[j] = 1 / (1 + exp(-y[j]));
}

static double square(double x) { return x * x; }

/* Adds the squared error and the squared norm of one row. */
static void check_row(const float *got, int64_t row, double *off, double *size)
{
    double x[2][HIDDEN];
    for (int i = 0; i < IN; i++) x[0][i] = noise(1, row * IN + i);
    for (int l = 0; l < LAYERS; l++) reference_layer(l, x[l % 2], x[(l + 1) % 2]);
    for (int j = 0; j < OUT; j++) {
        *off += square(got[j] - x[LAYERS % 2][j]);
        *size += square(x[LAYERS % 2][j]);
    }
}

/* Compares CHECKED rows with a reference in double: the relative error in the Frobenius norm. */
static bool dense_check(void *state)
{
    const dense *p = state;
    const float *got = duet_read(p->out);
    double off = 0, size = 0;
#pragma omp parallel for reduction(+ : off, size)
    for (int k = 0; k < CHECKED; k++) {
        const int64_t row = (p->n - 1) * k / (CHECKED - 1);
        if (got) check_row(got + row * OUT, row, &off, &size);
    }
    const double error = sqrt(off / size);
    if (!(got && error <= 1e-6))
        fprintf(stderr, "duet-stream: dense: the relative error is %g: %s\n", error, duet_error());
    return got && error <= 1e-6;
}

/* ---- a case ---- */

typedef struct stream_case {
    const char *name;
    double up, down; /* bytes */
    duet_status (*run)(void *state);
    void (*explain)(void *state);
    bool (*fill)(void *state), (*check)(void *state);
    void *state;
    double compute; /* seconds with data in GPU memory */
} stream_case;

static double run_once(const stream_case *c)
{
    duet_status s = DUET_OK;
    const double start = now();
    DUET_ON(DUET_GPU) s = c->run(c->state);
    if (s == DUET_OK) s = duet_synchronize();
    if (s == DUET_OK) return now() - start;
    return NAN;
}

/* Returns the seconds of copying in both directions at once, then the remainder in one direction. */
static double link_seconds(const stream_case *c, const link_rates *l)
{
    const double together = fmin(c->up, c->down), up = c->up - together, down = c->down - together;
    return (together / l->both + up / l->up + down / l->down) / 1e9;
}

static void report(json *j, const stream_case *c, const link_rates *l, double first, double seconds)
{
    const double link = link_seconds(c, l), bound_seconds = fmax(link, c->compute);
    printf("%-6s first %8.1f ms, then %8.2f ms; link %8.2f ms, compute %8.2f ms; lower bound / time %.3f, "
           "%.1f GB/s in both directions\n",
           c->name, 1e3 * first, 1e3 * seconds, 1e3 * link, 1e3 * c->compute, bound_seconds / seconds,
           (c->up + c->down) / seconds / 1e9);
    json_begin(j, NULL, '{');
    json_text(j, "bench", "stream");
    json_text(j, "case", c->name);
    json_number(j, "bytes_up", c->up);
    json_number(j, "bytes_down", c->down);
    json_number(j, "first_ms", 1e3 * first);
    json_number(j, "ms", 1e3 * seconds);
    json_number(j, "link_ms", 1e3 * link);
    json_number(j, "compute_ms", 1e3 * c->compute);
    json_number(j, "ratio", bound_seconds / seconds);
    json_end(j, '}');
}

/* Checks the results of the first call, from memory that was never used, and of the third, from
 * pinned memory; then measures. */
static bool run_case(const options *o, json *j, const stream_case *c, const link_rates *l)
{
    double took[ROUNDS], first = 0;
    const uint64_t before = duet_stats().streams;
    for (int i = 0; i < 3; i++) {
        if (!c->fill(c->state)) return false;
        const double seconds = run_once(c);
        if (!isfinite(seconds) || (i != 1 && !c->check(c->state))) return false;
        if (!i) first = seconds;
    }
    if (duet_stats().streams == before) printf("%-6s was not streamed\n", c->name);
    if (o->explain) DUET_ON(DUET_GPU) c->explain(c->state);
    if (!c->fill(c->state)) return false;
    for (int i = 0; i < ROUNDS; i++)
        if (!isfinite(took[i] = run_once(c))) return false;
    report(j, c, l, first, median(took, ROUNDS));
    return true;
}

static bool run_saxpy(const options *o, json *j, const link_rates *l)
{
    saxpy p = { .n = (int64_t)(o->quick ? 1 << 26 : 1 << 28) };
    p.x = duet_new(DUET_F32, p.n);
    p.y = duet_new(DUET_F32, p.n);
    const double bytes = 4.0 * (double)p.n;
    const stream_case c = { "saxpy",    2 * bytes,   bytes, saxpy_run, saxpy_explain,
                            saxpy_fill, saxpy_check, &p,    0 };
    const bool ok = p.x && p.y && run_case(o, j, &c, l);
    duet_free(&p.x);
    duet_free(&p.y);
    duet_memory_trim();
    return ok;
}

static bool new_dense(dense *p)
{
    p->in = duet_new(DUET_F32, p->n, IN);
    p->out = duet_new(DUET_F32, p->n, OUT);
    bool ok = p->in && p->out;
    for (int l = 0; l < LAYERS; l++) {
        p->w[l] = duet_new(DUET_F32, widths[l], widths[l + 1]);
        p->b[l] = duet_new(DUET_F32, widths[l + 1]);
        ok &= p->w[l] && p->b[l];
    }
    return ok;
}

static void free_dense(dense *p)
{
    duet_free(&p->in);
    duet_free(&p->out);
    for (int l = 0; l < LAYERS; l++) {
        duet_free(&p->w[l]);
        duet_free(&p->b[l]);
    }
}

#define RESIDENT 16384 /* rows that fit in GPU memory with all intermediate results */

/* Returns the seconds per row with data in GPU memory. */
static double dense_compute(void)
{
    dense p = { .n = RESIDENT };
    double took[ROUNDS];
    const stream_case c = { .run = dense_run, .state = &p };
    bool ok = new_dense(&p) && dense_fill(&p) && isfinite(run_once(&c)) && isfinite(run_once(&c));
    for (int i = 0; i < ROUNDS && ok; i++) ok = isfinite(took[i] = run_once(&c));
    free_dense(&p);
    duet_memory_trim();
    if (ok) return median(took, ROUNDS) / RESIDENT;
    return NAN;
}

static bool run_dense(const options *o, json *j, const link_rates *l)
{
    dense p = { .n = o->quick ? 32768 : 262144 };
    const double each = dense_compute(), rows = (double)p.n;
    const stream_case c = { "dense",       4 * IN * rows, 4 * OUT * rows, dense_run,
                            dense_explain, dense_fill,    dense_check,    &p,
                            each * rows };
    const bool ok = isfinite(each) && duet_memory_limit(DUET_GPU, o->cap) == DUET_OK && new_dense(&p) &&
                    run_case(o, j, &c, l);
    free_dense(&p);
    return ok;
}

static const char *measure_link(json *j, link_rates *l)
{
    double up = 0, down = 0, both = 0;
    const char *wrong = handwritten_open(NULL);
    if (!wrong) wrong = handwritten_link(LINK_BYTES, true, false, &up);
    if (!wrong) wrong = handwritten_link(LINK_BYTES, false, true, &down);
    if (!wrong) wrong = handwritten_link(LINK_BYTES, true, true, &both);
    if (wrong) return wrong;
    const double gb = (double)LINK_BYTES / 1e9;
    *l = (link_rates){ gb / up, gb / down, gb / both };
    printf("link: %.1f GB/s up, %.1f GB/s down, %.1f GB/s each way at once\n", l->up, l->down, l->both);
    json_begin(j, "link", '{');
    json_number(j, "up_gb_s", l->up);
    json_number(j, "down_gb_s", l->down);
    json_number(j, "both_gb_s", l->both);
    json_end(j, '}');
    return NULL;
}

static bool run_all(const options *o, json *j)
{
    link_rates l = { 0 };
    const char *wrong = measure_link(j, &l);
    if (wrong) {
        fprintf(stderr, "duet-stream: %s\n", wrong);
        return false;
    }
    json_number(j, "cap_mib", (double)o->cap / (1 << 20));
    json_begin(j, "results", '[');
    const bool ok =
        run_dense(o, j, &l) && duet_memory_limit(DUET_GPU, o->cap) == DUET_OK && run_saxpy(o, j, &l);
    json_end(j, ']');
    return ok;
}

int main(int argc, char **argv)
{
    options o = { .cap = (size_t)256 << 20 };
    const char *path = NULL;
    json j;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick")) o.quick = true;
        else if (!strcmp(argv[i], "--explain")) o.explain = true;
        else if (!strcmp(argv[i], "--cap") && i + 1 < argc)
            o.cap = (size_t)strtoull(argv[++i], NULL, 0) << 20;
        else if (!strcmp(argv[i], "--json") && i + 1 < argc) {
            path = argv[++i];
        } else {
            fputs(usage, stderr);
            return 2;
        }
    if (!has_gpu()) {
        fprintf(stderr, "duet-stream: not measured: %s\n", duet_error());
        return 0;
    }
    if (!json_open(&j, path)) return 1;
    const bool ok = run_all(&o, &j);
    if (!ok) fprintf(stderr, "duet-stream: %s\n", duet_error());
    if (json_close(&j) && ok) return 0;
    return 1;
}
