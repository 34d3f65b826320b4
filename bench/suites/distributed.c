/* distributed.c - duet-distributed: measures statements with matrices on groups of 1, 2, 4, ... ranks of
 * one process, beside ordinary matrices. The groups take turns. Results are compared with those of one
 * rank before they are timed.
 *
 * Members of a row of the results:
 *     ranks       of the group; 0: ordinary matrices
 *     recorded    false: statements; true: duet_replay
 *     size        the size that the case has in distributed_cases.c: in total, or of each rank if the mode
 *                 is weak
 *     seconds     the median time of a call
 *     bytes_sent  what all ranks together sent to others in a call
 *     rate        in `unit`; null: a call has no work to count
 *     efficiency  the rate of each GPU, divided by that of the group with one rank. On the CPU the ranks
 *                 share the same cores, so it is the rate divided by that of the group with one rank
 * "notes" say which cases could not be measured. */
#include "distributed.h"
#include "environment.h"
#include "json.h"
#include "measure.h"
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = "duet-distributed [--ranks N] [--quick] [--backend cpu|gpu] [--only CASE[,CASE]] "
                            "[--seconds N] [--json FILE]\n";

enum { GROUPS = 8, CONTENDERS = 2 * (GROUPS + 1), NOTES = 200 };
static const double last_start = 0.8; /* of the time limit: no case starts after it */

typedef struct options {
    bool quick;
    duet_place place;
    int ranks; /* the most; 0: all GPUs, or two parts of the CPU */
    double seconds;
    const char *only;
} options;

/* What the rows and notes are written to. The lock is held for writing, because the watchdog may end the
 * file. */
typedef struct report {
    pthread_mutex_t lock;
    json j;
    char *note[NOTES];
    int notes;
    bool failed;
    double start;
    char *group_info; /* of the largest group, or NULL */
    const char *now_running;
} report;

static report out = { .lock = PTHREAD_MUTEX_INITIALIZER };
static options o = { .place = DUET_AUTO, .seconds = 1e6 };

/* group[0] is NULL: ordinary matrices. */
static duet_group *group[GROUPS + 1];
static int ranks[GROUPS + 1], groups;

/* One contender: a trial, as statements or as a recording. */
typedef struct runner {
    trial *t;
    bool recorded;
    double sent;
} runner;

/* ---- the report ---- */

static __attribute__((format(printf, 2, 3))) void note(bool is_failure, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("  note: %s\n", text);
    fflush(stdout);
    pthread_mutex_lock(&out.lock);
    if (out.notes < NOTES) out.note[out.notes++] = strdup(text);
    out.failed |= is_failure;
    pthread_mutex_unlock(&out.lock);
}

static bool end_report(void)
{
    json_end(&out.j, ']');
    json_begin(&out.j, "notes", '[');
    for (int i = 0; i < out.notes; i++) json_text(&out.j, NULL, out.note[i]);
    json_end(&out.j, ']');
    if (out.group_info) json_text(&out.j, "duet_group_info", out.group_info);
    return json_close(&out.j);
}

/* A statement may wait for another rank without end. Then what was measured so far is kept. */
static void *watch(void *unused)
{
    (void)unused;
    while (now() - out.start < o.seconds) usleep(200000);
    note(true, "%s: did not end within the time limit", out.now_running ? out.now_running : "start");
    pthread_mutex_lock(&out.lock);
    (void)end_report();
    fprintf(stderr, "duet-distributed: the time limit was exceeded\n");
    _exit(3);
}

static void keep_group_info(const duet_group *g)
{
    size_t size;
    FILE *in = open_memstream(&out.group_info, &size);
    if (!in) return;
    duet_group_info(in, g);
    fclose(in);
    if (out.group_info) fputs(out.group_info, stdout);
}

static void put_row(const runner *r, double seconds, double efficiency)
{
    const trial *t = r->t;
    const double work = t->of->work(t), rate = work > 0 ? work / seconds : NAN;
    printf("%-18s %-10s %2d ranks %-10s %12.3f us  sent %10.4g MB  %10.4g %-8s  efficiency %.3f\n",
           t->of->name, mode_names[t->of->mode], t->g ? (int)t->parts : 0,
           r->recorded ? "replay" : "statements", 1e6 * seconds, 1e-6 * r->sent, rate, t->of->unit,
           efficiency);
    fflush(stdout);
    pthread_mutex_lock(&out.lock);
    json *j = &out.j;
    json_begin(j, NULL, '{');
    json_text(j, "case", t->of->name);
    json_text(j, "mode", mode_names[t->of->mode]);
    json_integer(j, "ranks", t->g ? t->parts : 0);
    json_truth(j, "recorded", r->recorded);
    json_integer(j, "size", t->base);
    json_number(j, "seconds", seconds);
    json_number(j, "bytes_sent", r->sent);
    json_number(j, "rate", rate);
    json_text(j, "unit", t->of->unit);
    json_number(j, "efficiency", efficiency);
    json_truth(j, "checked", true);
    json_end(j, '}');
    if (j->out) fflush(j->out);
    pthread_mutex_unlock(&out.lock);
}

/* ---- groups ---- */

static void close_groups(void)
{
    for (int i = 1; i < groups; i++) duet_group_free(&group[i]);
    groups = 0;
}

static void add_group(int count)
{
    duet_group *g = duet_group_local(count);
    if (!g) {
        note(true, "no group of %d ranks: %s", count, duet_error());
        return;
    }
    group[groups] = g;
    ranks[groups++] = count;
}

static bool open_groups(void)
{
    groups = 1;
    for (int n = 1; n < o.ranks && groups < GROUPS; n *= 2) add_group(n);
    add_group(o.ranks);
    return groups > 1 && ranks[1] == 1;
}

/* After a rank has failed, its group cannot be used any more. */
static bool reopen_if_broken(void)
{
    bool broken = false;
    for (int i = 1; i < groups; i++) {
        const int64_t n = ranks[i];
        duet_matrix *m = duet_new_split_shape(group[i], DUET_F32, 0, 1, &n);
        broken |= !m || duet_set(m, duet_add(m, 1)) != DUET_OK;
        duet_free(&m);
    }
    if (!broken) return true;
    close_groups();
    return open_groups();
}

/* ---- measuring ---- */

static double run_block(void *state, int64_t calls)
{
    const runner *r = state;
    duet_status s = trial_wait(r->t);
    const double start = now();
    for (int64_t i = 0; i < calls && s == DUET_OK; i++)
        s = r->recorded ? duet_replay(r->t->recording) : r->t->of->run(r->t);
    if (s == DUET_OK) s = trial_wait(r->t);
    if (s == DUET_OK) return now() - start;
    return NAN;
}

/* Rounds are fewer if a call takes long. */
static effort effort_of(runner *all, int count)
{
    double seconds = 0;
    effort e = o.quick ? effort_quick : effort_full;
    for (int i = 0; i < count; i++) seconds += run_block(&all[i], 1);
    if (seconds > 1) e.rounds = 5;
    if (seconds > 4 || (o.quick && seconds > 1)) e.rounds = 3;
    return e;
}

static bool counts_bytes(runner *r)
{
    const uint64_t before = duet_stats().exchange_bytes;
    const duet_status s = r->recorded ? duet_replay(r->t->recording) : r->t->of->run(r->t);
    if (s != DUET_OK || duet_synchronize() != DUET_OK) return false;
    r->sent = (double)(duet_stats().exchange_bytes - before);
    return true;
}

static double rate_of(const runner *r, const contender *c)
{
    const double work = r->t->of->work(r->t);
    return (work > 0 ? work : NAN) / median_us(c);
}

static void report_all(const runner *r, const contender *c, int count)
{
    for (int i = 0; i < count; i++) {
        double efficiency = NAN;
        const enum mode mode = r[i].t->of->mode;
        for (int k = 0; k < count; k++)
            if ((mode == STRONG || mode == WEAK) && r[k].t->g && r[k].t->parts == 1 &&
                r[k].recorded == r[i].recorded)
                efficiency = rate_of(&r[i], &c[i]) / rate_of(&r[k], &c[k]);
        if (o.place == DUET_GPU) efficiency /= (double)r[i].t->parts;
        put_row(&r[i], 1e-6 * median_us(&c[i]), efficiency);
    }
}

static void measure_all(const test *of, runner *r, int count)
{
    contender c[CONTENDERS];
    for (int i = 0; i < count; i++) {
        c[i] = (contender){ .name = of->name, .block = run_block, .state = &r[i] };
        if (counts_bytes(&r[i])) continue;
        note(true, "%s, %s: %s", of->name, mode_names[of->mode], duet_error());
        return;
    }
    if (measure(c, count, effort_of(r, count))) report_all(r, c, count);
    else note(true, "%s, %s: %s", of->name, mode_names[of->mode], duet_error());
}

/* ---- one case ---- */

static enum level level_of(void)
{
    if (o.place == DUET_CPU) return o.quick ? LEVEL_CHECK : LEVEL_CPU;
    return o.quick ? LEVEL_GPU_QUICK : LEVEL_GPU;
}

/* Opens the case on group i and runs it once. A matrix that does not fit in memory is no failure. */
static bool open_on(trial *t, const test *of, int i)
{
    const duet_group *g = group[i];
    if (trial_open(t, of, group[i], of->size[level_of()], g ? ranks[i] : 1) && of->run(t) == DUET_OK &&
        trial_wait(t) == DUET_OK)
        return true;
    note(duet_error_status() != DUET_NO_MEMORY, "%s, %s, %d ranks: %s: %s", of->name, mode_names[of->mode],
         g ? ranks[i] : 0, duet_status_text(duet_error_status()), duet_error());
    trial_close(t);
    return false;
}

/* Compares with one rank: `one` has run with the same total size, unless the size is that of each rank. */
static bool is_right(const trial *t, const trial *first, int i)
{
    char why[200];
    const bool whole = t->of->mode == STRONG || t->of->mode == OVERHEAD;
    if (whole ? same_results(t, first, why) : check_small(t->of, group[i], group[1], why)) return true;
    note(true, "%s, %s, %d ranks: differs from one rank: %s", t->of->name, mode_names[t->of->mode],
         group[i] ? ranks[i] : 0, why);
    return false;
}

/* Adds the recording of a trial, if recordings of the case work on such a group. */
static bool add_recording(trial *t, int i)
{
    char why[200];
    const char *name = t->of->name, *mode = mode_names[t->of->mode];
    const int count = group[i] ? ranks[i] : 0;
    if (!check_recording(t->of, group[i], why)) {
        note(false, "%s, %s, %d ranks or more: not recorded: a replay differs from the statements: %s", name,
             mode, count, why);
        return false;
    }
    t->recording = record(t);
    if (!t->recording)
        note(false, "%s, %s, %d ranks or more: not recorded: %s", name, mode, count, duet_error());
    return t->recording;
}

/* The group of one rank comes first, since the others are compared with it. */
static int open_all(const test *of, trial *all, runner *r)
{
    int count = 0;
    bool opened[GROUPS + 1] = { 0 };
    for (int k = 0; k < groups; k++) {
        const int i = k == 0 ? 1 : k == 1 ? 0 : k;
        opened[i] = open_on(&all[i], of, i);
        if (opened[i] && opened[1] && !is_right(&all[i], &all[1], i)) {
            trial_close(&all[i]);
            opened[i] = false;
        }
        if (!opened[1]) break;
    }
    for (int i = 0; i < groups; i++)
        if (opened[i]) r[count++] = (runner){ .t = &all[i] };
    bool records = true;
    for (int i = 0; i < groups && records; i++)
        if (opened[i] && (records = add_recording(&all[i], i)))
            r[count++] = (runner){ .t = &all[i], .recorded = true };
    return count;
}

static void run_test(const test *of)
{
    trial all[GROUPS + 1] = { 0 };
    runner r[CONTENDERS];
    out.now_running = of->name;
    if (now() - out.start > last_start * o.seconds) {
        note(false, "%s, %s: not measured: no time left", of->name, mode_names[of->mode]);
        return;
    }
    const int count = open_all(of, all, r);
    if (count) measure_all(of, r, count);
    for (int i = 0; i <= GROUPS; i++) trial_close(&all[i]);
    duet_memory_trim();
}

static bool is_chosen(const char *name)
{
    if (!o.only) return true;
    const size_t n = strlen(name);
    for (const char *at = o.only; (at = strstr(at, name)); at += n)
        if ((at == o.only || at[-1] == ',') && (at[n] == ',' || !at[n])) return true;
    return false;
}

static void run_all(void)
{
    for (int i = 0; i < test_count; i++) {
        if (!is_chosen(tests[i].name)) continue;
        run_test(&tests[i]);
        if (reopen_if_broken()) continue;
        note(true, "the groups cannot be made again: %s", duet_error());
        return;
    }
}

/* ---- main ---- */

static bool parse(int argc, char **argv, const char **path)
{
    for (int i = 1; i < argc; i++) {
        const bool has_value = i + 1 < argc;
        if (!strcmp(argv[i], "--quick")) o.quick = true;
        else if (!has_value) return false;
        else if (!strcmp(argv[i], "--ranks")) o.ranks = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--seconds")) o.seconds = atof(argv[++i]);
        else if (!strcmp(argv[i], "--only")) o.only = argv[++i];
        else if (!strcmp(argv[i], "--json")) *path = argv[++i];
        else if (!strcmp(argv[i], "--backend")) o.place = strcmp(argv[++i], "cpu") ? DUET_GPU : DUET_CPU;
        else return false;
    }
    return o.ranks >= 0 && o.ranks <= 64 && o.seconds > 0;
}

/* Without --backend: GPUs, if there are any. Without --ranks: all GPUs, or two parts of the CPU. */
static void choose_place(void)
{
    if (o.place == DUET_AUTO) o.place = has_gpu() ? DUET_GPU : DUET_CPU;
    if (o.ranks) return;
    o.ranks = 2;
    DUET_ON(o.place)
    if (o.place == DUET_GPU) {
        duet_group *g = duet_group_local(0);
        o.ranks = g ? duet_group_ranks(g) : 1;
        duet_group_free(&g);
    }
}

static void run_in_place(void)
{
    if (open_groups()) {
        keep_group_info(group[groups - 1]);
        run_all();
    } else {
        note(true, "no group of one rank: %s", duet_error());
    }
    close_groups();
}

int main(int argc, char **argv)
{
    const char *path = NULL;
    pthread_t watchdog;
    out.start = now();
    if (!parse(argc, argv, &path)) {
        fputs(usage, stderr);
        return 2;
    }
    choose_place();
    if (!json_open(&out.j, path)) return 1;
    json_text(&out.j, "place", o.place == DUET_GPU ? "gpu" : "cpu");
    json_truth(&out.j, "quick", o.quick);
    json_begin(&out.j, "results", '[');
    if (pthread_create(&watchdog, NULL, watch, NULL)) return 1;
    DUET_ON(o.place) run_in_place();
    pthread_mutex_lock(&out.lock);
    const bool written = end_report();
    return written && !out.failed ? 0 : 1;
}
