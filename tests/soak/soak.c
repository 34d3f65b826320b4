/* soak.c - random programs over the whole interface, for as long as you wish. It calls the operators and
 * statements of every_call.h on random matrices and views. Most calls are valid, many are not. It also makes
 * lists of statements, recordings, blocks and files, and frees matrices at any time. Nothing may crash. A
 * result must be OK or an error with a text; a failed statement must leave its destination as it was. Memory,
 * matrices, files and mappings must not grow.
 *
 *     soak [--seconds N] [--calls N] [--seed N] [--threads N]
 *
 * A line for each period says what the process has. With SOAK_FAULTS, in the program soak_faults, an
 * allocation of the library or a call of the fake CUDA fails during many calls. */
#ifdef SOAK_FAULTS
#include "failing_alloc.h"
#include "fake_cuda.h"
#endif
#include "by_sanitizer.h"
#include "clock.h"
#include "every_guess.h"
#include "missing.h"
#include "random_matrix.h"
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HELD = 16, CALLS = 512, THREADS_MAX = 16, LISTED = 4 };

/* Formulas of more elements are not nested further. A convolution takes minutes if the numbers of elements of
 * its operands have a product above CONVOLVED_MOST. */
#ifdef SOAK_FAULTS
enum { HAS_LARGE = false, NESTED_MOST = 10000 };
#else
enum { HAS_LARGE = true, NESTED_MOST = 10000000 };
#endif

#define CONVOLVED_MOST 1e9

typedef struct known_call {
    const call *c;
    guess g;
    duet_dtype type;
    bool is_known; /* are there operands that it accepts? */
} known_call;

static known_call known[CALLS];
static int n_known;
static uint64_t calls_made, results_ok, failures; /* atomic */

typedef struct worker {
    rng gen;
    duet_matrix *held[HELD];
    duet_recording *recording;
    int number;
} worker;

static void __attribute__((format(printf, 1, 2))) failed(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("FAILED: ");
    vprintf(format, list);
    printf("\n");
    va_end(list);
    fflush(stdout);
    __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
}

/* Counts a call. A failure needs a text. */
static void made(const char *name, duet_status s)
{
    __atomic_add_fetch(&calls_made, 1, __ATOMIC_RELAXED);
    if (s == DUET_OK) __atomic_add_fetch(&results_ok, 1, __ATOMIC_RELAXED);
    else if ((unsigned)s >= DUET_STATUS_COUNT) failed("%s: status %d", name, (int)s);
    else if (!*duet_error()) failed("%s: status %d without a text", name, (int)s);
}

/* ---- faults ---- */

static uint64_t faults;

#ifdef SOAK_FAULTS
/* Does not include the shared state of threads for which there was no memory. */
static void begin_fault(worker *w)
{
    const int kind = (int)rng_below(&w->gen, 4);
    if (kind == 0) fail_in = rng_below(&w->gen, 60);
    if (kind == 1) fake_fail(1 + (uint64_t)rng_below(&w->gen, 60));
    faults += kind < 2;
}
static void end_fault(void)
{
    fail_in = -1;
    fake_fail(0);
}
#else
static void begin_fault(worker *w) {}
static void end_fault(void) {}
#endif

/* The elements of a destination before a statement. */
typedef struct snapshot {
    const duet_matrix *m;
    void *bytes;
    size_t size;
} snapshot;

static snapshot snapshot_of(duet_matrix *m)
{
    snapshot s = { NULL, NULL, 0 };
    const bool is_plain = m && duet_count(m) > 0 && duet_count(m) < 5000;
    duet_matrix *copy = NULL;
    if (is_plain) DUET_TRANSFERS(DUET_TRANSFERS_ALLOWED) copy = (duet_copy)(m);
    const void *p = copy ? (duet_read)(copy) : NULL;
    if (p) {
        s.size = (size_t)duet_count(copy) * dtypes[duet_type(copy)].bytes;
        s.bytes = malloc(s.size);
        if (s.bytes) memcpy(s.bytes, p, s.size);
        s.m = m;
    }
    duet_free(&copy);
    return s;
}

/* A device error, and it alone, may lose the elements. */
static void check_unchanged(const char *name, const snapshot *s, duet_status status)
{
    if (s->bytes && status != DUET_OK && status != DUET_DEVICE_ERROR) {
        duet_matrix *copy = NULL;
        DUET_TRANSFERS(DUET_TRANSFERS_ALLOWED) copy = (duet_copy)(s->m);
        const void *p = copy ? (duet_read)(copy) : NULL;
        if (!p) failed("%s: after status %d the destination is lost: %s", name, (int)status, duet_error());
        else if (memcmp(p, s->bytes, s->size))
            failed("%s: status %d changed the destination", name, (int)status);
        duet_free(&copy);
    }
    free(s->bytes);
}

/* ---- what the calls accept ---- */

static void learn(const call *rows, int count)
{
    for (int i = 0; i < count; i++) {
        known_call *k = &known[n_known++];
        *k = (known_call){ .c = &rows[i] };
        for (guess g = { 0 }; !k->is_known && g.indices < 1u << (rows[i].operands + rows[i].results);
             g.indices += 2) {
            k->g = g;
            k->is_known = guess_sizes(&k->g, &rows[i], &k->type);
        }
        if (!k->is_known && !is_missing(rows[i].name)) failed("no operands for %s", rows[i].name);
    }
}

static void learn_all(void)
{
    learn(maps, LENGTH(maps));
    learn(reductions, LENGTH(reductions));
    learn(defs, LENGTH(defs));
    learn(composed, LENGTH(composed));
    learn(networks, LENGTH(networks));
    learn(factors, LENGTH(factors));
    learn(statements, LENGTH(statements));
}

/* ---- random matrices ---- */

static int below(worker *w, int n) { return (int)rng_below(&w->gen, n); }

static duet_dtype any_type(worker *w)
{
    const int often = below(w, 10);
    return often < 4 ? DUET_F32 : often < 6 ? DUET_F64 : (duet_dtype)below(w, DUET_DTYPE_COUNT);
}

/* Integers must be small to be indices now and then. */
static void fill(worker *w, duet_matrix *m)
{
    if (!m || !duet_count(m)) return;
    const bool is_float = duet_type(m) >= DUET_F16 || below(w, 2);
    random_fill(&w->gen, m, is_float ? -3 : 0, 4);
}

static duet_matrix *any_matrix(worker *w)
{
    int64_t size[DUET_RANK_MAX];
    const int rank = below(w, 20) ? below(w, 5) : below(w, DUET_RANK_MAX + 1);
    for (int a = 0; a < rank; a++) {
        const int kind = below(w, 20);
        size[a] = !kind ? 0 : kind < 12 ? 1 + below(w, 5) : rank > 3 ? 1 + below(w, 3) : 1 + below(w, 70);
    }
    duet_matrix *m = duet_new_shape(any_type(w), rank, size);
    if (below(w, 3)) fill(w, m);
    return m;
}

static duet_matrix *any_view(worker *w, duet_matrix *m)
{
    if (!m) return NULL;
    const int rank = duet_rank(m);
    const int64_t n = rank ? duet_size(m, 0) : 0;
    switch (below(w, 6)) {
    case 0: return duet_transposed(m);
    case 1: return duet_row(m, below(w, 6));
    case 2: return duet_slice(m, below(w, 4), n > 4 ? n / 2 : n);
    case 3: return duet_diagonal(m, below(w, 3) - 1);
    case 4: return duet_column(m, below(w, 6));
    default: return duet_submatrix(m, 0, 0, 1 + below(w, 4), 1 + below(w, 4));
    }
}

/* A held matrix, now and then none. */
static duet_matrix **slot(worker *w) { return &w->held[below(w, HELD)]; }

static void replace(duet_matrix **at, duet_matrix *m)
{
    duet_free(at);
    *at = m;
}

/* ---- statements ---- */

static bool convolves(const known_call *k) { return strstr(k->c->name, "conv") != NULL; }

/* Operands and results for a call: mostly ones that it accepts. own: which of them are new. */
static void operands(worker *w, const known_call *k, duet_matrix **m, uint32_t *own)
{
    const int count = k->c->operands + k->c->results;
    const bool fits = k->is_known && below(w, 4), is_large = HAS_LARGE && !below(w, 500) && !convolves(k);
    const duet_dtype t = below(w, 3) ? k->type : any_type(w);
    *own = 0;
    for (int i = 0; i < count; i++) {
        if (!fits || !below(w, 6)) {
            m[i] = *slot(w);
            continue;
        }
        const int shape = is_large && !k->g.shape[i] ? LARGE : k->g.shape[i];
        m[i] = duet_new_shape(guess_type(&k->g, k->c, i, t), shapes[shape].rank, shapes[shape].size);
        if (i < k->c->operands) fill(w, m[i]);
        *own |= 1u << i;
    }
}

static bool takes_minutes(const known_call *k, duet_matrix *const *m)
{
    return convolves(k) && k->c->operands > 1 && m[0] && m[1] &&
           (double)duet_count(m[0]) * (double)duet_count(m[1]) > CONVOLVED_MOST;
}

static void release(duet_matrix **m, uint32_t own)
{
    for (int i = 0; i < MATRICES; i++)
        if (own >> i & 1) duet_free(&m[i]);
}

/* A destination that fits, or any held matrix. */
static duet_matrix *destination(worker *w, const call *c, duet_matrix **m, bool *is_new)
{
    *is_new = below(w, 3) != 0;
    if (!*is_new) return *slot(w);
    duet_matrix *to = call_destination(c, m);
    made(c->name, to ? DUET_OK : duet_error_status());
    return to;
}

static void run_one(worker *w)
{
    const known_call *k = &known[below(w, n_known)];
    duet_matrix *m[MATRICES] = { 0 };
    uint32_t own;
    operands(w, k, m, &own);
    if (takes_minutes(k, m)) {
        release(m, own);
        return;
    }
    if (k->c->state) {
        const snapshot before = snapshot_of(m[k->c->operands]);
        begin_fault(w);
        const duet_status s = k->c->state(m + k->c->operands, m);
        end_fault();
        made(k->c->name, s);
        check_unchanged(k->c->name, &before, s);
    } else {
        bool is_new;
        duet_matrix *to = destination(w, k->c, m, &is_new);
        const snapshot before = snapshot_of(to);
        begin_fault(w);
        const duet_status s = (duet_set)(to, call_formula(k->c, m));
        end_fault();
        made(k->c->name, s);
        check_unchanged(k->c->name, &before, s);
        if (is_new && below(w, 2)) replace(slot(w), to);
        else if (is_new) duet_free(&to);
    }
    release(m, own);
}

static int64_t elements(duet_expr e)
{
    int64_t n = 1;
    for (int a = 0; a < duet_expr_rank(e); a++) n *= duet_expr_size(e, a);
    return n;
}

static bool is_slow(const known_call *k, const duet_expr *x)
{
    return convolves(k) && k->c->operands > 1 &&
           (double)elements(x[0]) * (double)elements(x[1]) > CONVOLVED_MOST;
}

/* A formula of formulas, evaluated, dropped or explained. */
static void run_nested(worker *w)
{
    duet_expr e = duet_of_matrix(*slot(w));
    duet_matrix *result;
    for (int depth = 1 + below(w, 5); depth > 0 && elements(e) <= NESTED_MOST; depth--) {
        const known_call *k = &known[below(w, n_known)];
        if (!k->c->make) continue;
        duet_expr x[OPERANDS];
        x[0] = e;
        for (int i = 1; i < OPERANDS; i++) x[i] = i < k->c->operands ? duet_of_matrix(*slot(w)) : e;
        if (is_slow(k, x)) {
            for (int i = 1; i < k->c->operands; i++) made("duet_drop", duet_drop(x[i]));
            break;
        }
        e = k->c->operands ? k->c->make(x) : e;
    }
    switch (elements(e) <= NESTED_MOST ? below(w, 4) : 0) {
    case 0: made("duet_drop", duet_drop(e)); break;
    case 1: made("duet_set", (duet_set)(*slot(w), e)); break;
    default:
        result = (duet_eval)(e);
        made("duet_eval", result ? DUET_OK : duet_error_status());
        if (result) replace(slot(w), result);
    }
}

static void run_list(worker *w)
{
    duet_assignment list[LISTED];
    duet_matrix *m[LISTED][MATRICES] = { { 0 } };
    uint32_t own[LISTED];
    const int count = 1 + below(w, LISTED);
    for (int i = 0; i < count; i++) {
        const known_call *k;
        do k = &known[below(w, n_known)];
        while (!k->c->make || convolves(k));
        operands(w, k, m[i], &own[i]);
        list[i] = (duet_assignment){ *slot(w), call_formula(k->c, m[i]) };
        if (below(w, 2)) { /* a list that is likely to run */
            made("duet_drop", duet_drop(list[i].value));
            const duet_expr x = duet_of_matrix(list[i].to);
            list[i].value = below(w, 2) ? (duet_exp)(x) : (duet_cumsum)(x, 0);
        }
    }
    snapshot before[LISTED];
    for (int i = 0; i < count; i++) before[i] = snapshot_of(list[i].to);
    begin_fault(w);
    const duet_status s = (duet_set_all)(list, count);
    end_fault();
    made("duet_set_all", s);
    for (int i = 0; i < count; i++) check_unchanged("duet_set_all", &before[i], s);
    for (int i = 0; i < count; i++) release(m[i], own[i]);
}

static void run_recorded(worker *w)
{
    if (!w->recording && below(w, 2)) {
        const duet_status s = duet_record_begin();
        made("duet_record_begin", s);
        if (s != DUET_OK) return;
        for (int i = 1 + below(w, 4); i > 0; i--) {
            duet_matrix *x = *slot(w);
            made("duet_set", (duet_set)(x, (duet_tanh)(duet_of_matrix(x))));
        }
        w->recording = duet_record_end();
        made("duet_record_end", w->recording ? DUET_OK : duet_error_status());
        return;
    }
    made("duet_replay", (duet_replay)(w->recording));
    if (!below(w, 4)) duet_recording_free(&w->recording);
}

static void run_file(worker *w)
{
    char name[100];
    duet_matrix *m = *slot(w);
    snprintf(name, sizeof name, "/tmp/duet-soak-%d-%d.npy", (int)getpid(), w->number);
    const duet_status s = (duet_save_npy)(name, m);
    made("duet_save_npy", s);
    if (s != DUET_OK) return;
    duet_matrix *got = (duet_load_npy)(name);
    made("duet_load_npy", got ? DUET_OK : duet_error_status());
    if (got) replace(slot(w), got);
    unlink(name);
}

static void run_access(worker *w)
{
    duet_matrix *m = *slot(w);
    double x;
    switch (below(w, 4)) {
    case 0: made("duet_read", (duet_read)(m) || !m || !duet_count(m) ? DUET_OK : duet_error_status()); break;
    case 1: fill(w, m); break;
    case 2: made("duet_item", (duet_item)(duet_of_matrix(m), DUET_F64, &x)); break;
    default: made("duet_synchronize", duet_synchronize());
    }
}

static void run_action(worker *w)
{
    const int kind = below(w, 100);
    duet_matrix **at = slot(w);
    if (kind < 55) run_one(w);
    else if (kind < 68) run_nested(w);
    else if (kind < 74) run_list(w);
    else if (kind < 80) replace(at, any_matrix(w));
    else if (kind < 84) replace(at, any_view(w, *slot(w)));
    else if (kind < 86) duet_free(at);
    else if (kind < 93) run_access(w);
    else if (kind < 97) run_recorded(w);
    else if (kind < 98) run_file(w);
    else fill(w, *at);
}

/* In a block now and then. Under DUET_EXPLAIN statements only write their plans. */
static void run_in_block(worker *w, FILE *nowhere)
{
    const int block = below(w, 40);
    if (block < 10) DUET_ON(DUET_GPU) run_action(w);
    else if (block < 14) DUET_ON(DUET_CPU) run_action(w);
    else if (block == 14) DUET_MATH((duet_math_mode)below(w, 4)) run_action(w);
    else if (block == 15) DUET_FORBID_TRANSFERS run_action(w);
    else if (block == 16 && !w->recording) DUET_EXPLAIN(nowhere) run_one(w);
    else run_action(w);
}

/* ---- what the process has ---- */

typedef struct usage {
    long kilobytes, mappings, files;
} usage;

static long count_lines(const char *path)
{
    long n = 0;
    FILE *in = fopen(path, "r");
    for (int c; in && (c = getc(in)) != EOF;) n += c == '\n';
    if (in) fclose(in);
    return n;
}

static usage look(void)
{
    usage u = { 0 };
    long pages = 0, resident = 0;
    FILE *in = fopen("/proc/self/statm", "r");
    if (in && fscanf(in, "%ld %ld", &pages, &resident) == 2)
        u.kilobytes = resident * (sysconf(_SC_PAGESIZE) / 1024);
    if (in) fclose(in);
    u.mappings = count_lines("/proc/self/maps");
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) u.files++;
    if (d) closedir(d);
    return u;
}

/* ---- periods ---- */

static struct {
    double seconds, until;
    uint64_t calls, seed;
    int threads;
} asked = { .calls = UINT64_MAX, .seed = 1, .threads = 1 };

static void *run_period(void *arg)
{
    worker *w = arg;
    FILE *nowhere = fopen("/dev/null", "w");
    for (int i = 0; nowhere && i < 20000; i++) {
        if (i % 64 == 0 && (clock_now() >= asked.until || calls_made >= asked.calls)) break;
        run_in_block(w, nowhere);
    }
    if (w->recording) duet_recording_free(&w->recording);
    for (int i = 0; i < HELD; i++) duet_free(&w->held[i]);
    if (nowhere) fclose(nowhere);
    return NULL;
}

/* About half of it is free for a thread's function; this program needs up to 30 KiB itself. Sanitizers need
 * more. */
enum { STACK = 192 << 10 };

static bool start_period(pthread_t *t, worker *w)
{
    pthread_attr_t how;
    pthread_attr_init(&how);
    if (!by_sanitizer) pthread_attr_setstacksize(&how, STACK);
    const bool is_started = !pthread_create(t, &how, run_period, w);
    pthread_attr_destroy(&how);
    return is_started;
}

static void check_released(const duet_memory *first)
{
    const duet_memory cpu = duet_memory_of(DUET_CPU);
    if (duet_live(NULL) != 0) failed("%d matrices are alive", (int)duet_live(NULL));
    if (cpu.used > first->used + (8u << 20))
        failed("%zu bytes are in use, %zu at first", cpu.used, first->used);
}

static void run_periods(void)
{
    static worker w[THREADS_MAX];
    usage start = { 0 }, u;
    duet_memory first = { 0 };
    const double began = clock_now();
    asked.until = asked.seconds > 0 ? began + asked.seconds : INFINITY;
    for (int period = 0; clock_now() < asked.until && calls_made < asked.calls && failures < 20; period++) {
        pthread_t started[THREADS_MAX];
        const uint64_t before = calls_made;
        const double from = clock_now();
        int count = 0;
        for (int t = 0; t < asked.threads; t++) {
            w[t].gen = rng_new(asked.seed + (uint64_t)period * THREADS_MAX + (uint64_t)t);
            w[t].number = t;
            if (!start_period(&started[t], &w[t])) break;
            count++;
        }
        if (count < asked.threads) failed("only %d threads could be made", count);
        for (int t = 0; t < count; t++) pthread_join(started[t], NULL);
        duet_memory_trim();
        u = look();
        if (period == 3) start = u, first = duet_memory_of(DUET_CPU);
        if (period > 3) check_released(&first);
        printf("%.0f s, %llu calls, %.0f %% OK, %.0f calls/s; %ld MB, %ld mappings, %ld files\n",
               clock_now() - began, (unsigned long long)calls_made,
               100.0 * (double)results_ok / (double)calls_made,
               (double)(calls_made - before) / (clock_now() - from), u.kilobytes / 1024, u.mappings, u.files);
        fflush(stdout);
        if (period > 3 && u.files > start.files + 4)
            failed("%ld files are open, %ld at first", u.files, start.files);
    }
}

static bool read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 >= argc) return false;
        const double x = atof(argv[i + 1]);
        if (!strcmp(argv[i], "--seconds")) asked.seconds = x;
        else if (!strcmp(argv[i], "--calls")) asked.calls = (uint64_t)x;
        else if (!strcmp(argv[i], "--seed")) asked.seed = (uint64_t)x;
        else if (!strcmp(argv[i], "--threads"))
            asked.threads = x < 1 ? 1 : x > THREADS_MAX ? THREADS_MAX : (int)x;
        else return false;
    }
#ifdef SOAK_FAULTS
    if (asked.threads > 1) return false; /* a fault would meet the checks of another thread */
#endif
    return asked.seconds > 0 || asked.calls < UINT64_MAX;
}

int main(int argc, char **argv)
{
    if (!read_options(argc, argv)) {
        fputs("usage: soak --seconds N | --calls N [--seed N] [--threads N]\n", stderr);
        return 2;
    }
    learn_all();
    run_periods();
    printf("%llu calls, %llu faults, %llu failures\n", (unsigned long long)calls_made,
           (unsigned long long)faults, (unsigned long long)failures);
    return failures > 0;
}
