/* placement.c - duet-place: measures whether DUET_AUTO chooses the faster device. It runs the five
 * benchmarks at every size, with inputs that are on the host, on the GPU, or half on each.
 * DUET_AUTO, DUET_CPU and DUET_GPU run in turns.
 *
 * "once": all inputs are moved to where they start before each call, and the time ends when the
 * result is computed. "loop": the inputs are moved once, then many calls follow; data may stay
 * where a call moves it. The report describes what DUET_AUTO did in the first calls (see
 * trace_calls). */
#include "bench.h"
#include "json.h"
#include "measure.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] = "duet-place [--quick] [--bench NAME[,NAME]] [--seed N] [--json FILE]\n";

enum start { ON_HOST, ON_DEVICE, HALF, STARTS };
enum mode { ONCE, LOOP, MODES };
enum choice { AUTO, CPU, GPU, CHOICES };
static const char *const start_names[STARTS] = { "host", "device", "half" }, *const mode_names[MODES] = {
    "once", "loop"
};
static const duet_place places[CHOICES] = { DUET_AUTO, DUET_CPU, DUET_GPU };

typedef struct options {
    bool quick, gpu;
    const char *benches;
    uint32_t seed;
} options;

typedef struct trial {
    const options *o;
    problem p;
    enum start start;
    enum mode mode;
    int calls[CHOICES], rounds[CHOICES];
    double us[CHOICES][ROUNDS];
    char trace[400];
} trial;

/* ---- one measurement ---- */

/* Moves the inputs to where they start, and makes all other copies stale. */
static bool restore(const trial *t)
{
    const tensor *of = t->p.bench->tensors;
    for (int i = 0; i < TENSORS && of[i].role != END; i++) {
        if (of[i].role != IN) continue;
        const bool device = t->start == ON_DEVICE || (t->start == HALF && i % 2);
        if (!(device && t->o->gpu ? duet_device_update(t->p.m[i]) : duet_update(t->p.m[i]))) return false;
    }
    return duet_synchronize() == DUET_OK;
}

/* Moves the inputs to where they start, then returns the seconds of `calls` calls until the last
 * result is computed. */
static double run(const trial *t, enum choice choice, int calls)
{
    duet_status s = DUET_OK;
    if (!restore(t)) return NAN;
    const double start = now();
    DUET_ON(places[choice])
    for (int i = 0; i < calls && s == DUET_OK; i++) s = t->p.bench->run(&t->p);
    if (s == DUET_OK) s = duet_synchronize();
    if (s == DUET_OK) return now() - start;
    return NAN;
}

/* With mode ONCE a round is the median of several single calls, as many as there is time for. */
#define SHOTS 15
static double round_us(const trial *t, enum choice choice)
{
    const double begin = now();
    double shot[SHOTS];
    int n = 0;
    if (t->mode == LOOP) return 1e6 * run(t, choice, t->calls[choice]) / t->calls[choice];
    while (n < SHOTS && (!n || now() - begin < 0.03))
        if (!isfinite(shot[n++] = 1e6 * run(t, choice, 1))) return NAN;
    return median(shot, n);
}

static bool is_available(const trial *t, enum choice choice) { return choice != GPU || t->o->gpu; }

/* A device that is FAR_BEHIND times slower gets one round with a shorter loop. Calls that take more
 * than LONG seconds get fewer. */
#define FAR_BEHIND 3
#define LONG       0.2

/* Returns the seconds of a call; in mode LOOP, of a call after all data have moved. */
static double seconds_of(const trial *t, enum choice choice)
{
    const double first = run(t, choice, 1);
    if (!(first < LONG)) return first;
    const double one = run(t, choice, 1);
    if (t->mode == ONCE) return one;
    return fmax((run(t, choice, 3) - one) / 2, 1e-8);
}

/* Sets the number of calls and rounds. A loop is long enough that the first copies hardly matter. */
static bool plan_rounds(trial *t)
{
    const double target = t->o->quick ? 0.05 : 0.08;
    double takes[CHOICES], fastest = INFINITY;
    for (enum choice w = CHOICES; w-- > 0;) {
        const bool reused = t->mode == LOOP && w != AUTO &&
                            t->us[w][0] > 1e6 * LONG; /* the copies take little of such a long call */
        if (!is_available(t, w)) takes[w] = INFINITY;
        else takes[w] = reused ? 1e-6 * t->us[w][0] : seconds_of(t, w);
        if (isnan(takes[w])) return false;
        if (w != AUTO) fastest = fmin(fastest, takes[w]);
    }
    for (enum choice w = 0; w < CHOICES; w++) {
        const bool behind = w != AUTO && takes[w] > FAR_BEHIND * fastest;
        const double calls = fmin(50000, fmax(5, target / fastest)),
                     few = fmin(calls / 20, fmax(5, target / takes[w]));
        if (behind) t->calls[w] = (int)fmax(1, few);
        else t->calls[w] = (int)calls;
        if (behind) t->rounds[w] = takes[w] > LONG ? 0 : 1;
        else t->rounds[w] = fastest > LONG ? 2 : 3;
        if (!t->rounds[w]) t->us[w][0] = 1e6 * takes[w];
    }
    return true;
}

static bool measure_trial(trial *t)
{
    if (!plan_rounds(t)) return false;
    for (int r = 0; r < t->rounds[AUTO]; r++)
        for (enum choice w = 0; w < CHOICES; w++)
            if (is_available(t, w) && r < t->rounds[w] && !isfinite(t->us[w][r] = round_us(t, w)))
                return false;
    return true;
}

/* ---- what DUET_AUTO does in each call ---- */

#define TRACED_CALLS 60

/* Describes one call: where its steps ran and how many bytes were copied, as "2 of 3 on the GPU, up
 * 3.1 MB". */
static void call_text(char *text, size_t size, const duet_counts *a, const duet_counts *b)
{
    const unsigned long long steps = b->steps - a->steps, launches = b->launches - a->launches,
                             graphs = b->graphs - a->graphs;
    const double up = 1e-6 * (double)(b->upload_bytes - a->upload_bytes),
                 down = 1e-6 * (double)(b->download_bytes - a->download_bytes);
    int n;
    if (graphs) n = snprintf(text, size, "a graph, %llu steps", steps);
    else n = snprintf(text, size, "%llu of %llu on the GPU", launches < steps ? launches : steps, steps);
    if (up > 0) n += snprintf(text + n, size - (size_t)n, ", up %.3g MB", up);
    if (down > 0) snprintf(text + n, size - (size_t)n, ", down %.3g MB", down);
}

static void append_calls(trial *t, const char *what, int times)
{
    const size_t used = strlen(t->trace);
    if (times) snprintf(t->trace + used, sizeof t->trace - used, "%s%d x %s", used ? "; " : "", times, what);
}

/* Describes some single calls (ONCE), or the first calls of a loop (LOOP). */
static bool trace_calls(trial *t)
{
    char last[100] = "", now_text[100];
    const int trace = t->mode == ONCE ? 3 : (int)fmin(TRACED_CALLS, t->calls[AUTO]);
    int times = 0;
    t->trace[0] = '\0';
    for (int i = 0; i < trace; i++, times++) {
        if ((!i || t->mode == ONCE) && !restore(t)) return false;
        const duet_counts before = duet_stats();
        if (t->p.bench->run(&t->p) != DUET_OK) return false;
        const duet_counts after = duet_stats();
        call_text(now_text, sizeof now_text, &before, &after);
        if (strcmp(last, now_text)) {
            append_calls(t, last, times);
            times = 0;
        }
        strcpy(last, now_text);
    }
    append_calls(t, last, times);
    return duet_synchronize() == DUET_OK;
}

/* ---- the report ---- */

typedef struct tally {
    double ratio[1000];
    int count;
} tally;

#define BEHIND 1.1 /* larger ratios are explained in the output */

static double report(json *j, trial *t)
{
    double us[CHOICES];
    for (enum choice w = 0; w < CHOICES; w++) {
        const int rounds = t->rounds[w] ? t->rounds[w] : 1;
        if (is_available(t, w)) us[w] = median(t->us[w], rounds);
        else us[w] = INFINITY;
    }
    const double ratio = us[AUTO] / fmin(us[CPU], us[GPU]);
    printf("%-8s %9lld %-6s %-4s %12.2f %12.2f ", t->p.bench->name, (long long)t->p.n, start_names[t->start],
           mode_names[t->mode], us[AUTO], us[CPU]);
    if (t->o->gpu) printf("%12.2f ", us[GPU]);
    else printf("%12s ", "-");
    printf("%7.3f\n", ratio);
    if (!(ratio <= BEHIND)) printf("%10s auto: %s\n", "", t->trace);
    fflush(stdout);
    json_begin(j, NULL, '{');
    json_text(j, "bench", "place");
    json_text(j, "case", t->p.bench->name);
    json_integer(j, "size", t->p.n);
    json_text(j, "start", start_names[t->start]);
    json_text(j, "mode", mode_names[t->mode]);
    json_number(j, "auto_us", us[AUTO]);
    json_number(j, "cpu_us", us[CPU]);
    json_number(j, "gpu_us", us[GPU]);
    json_number(j, "ratio", ratio);
    json_text(j, "turns", t->trace);
    json_number(j, "work", t->p.bench->work * pow((double)t->p.n, t->p.bench->power));
    json_text(j, "unit", t->p.bench->unit);
    json_end(j, '}');
    return ratio;
}

static void report_all(json *j, tally *of)
{
    json_begin(j, "summary", '{');
    for (enum mode m = 0; m < MODES; m++) {
        const double mean = geomean(of[m].ratio, of[m].count), most = greatest(of[m].ratio, of[m].count);
        printf(
            "%s: time of auto / time of the faster device: geometric mean %.3f, maximum %.3f, of %d cases\n",
            mode_names[m], mean, most, of[m].count);
        json_begin(j, mode_names[m], '{');
        json_number(j, "geomean", mean);
        json_number(j, "most", most);
        json_integer(j, "count", of[m].count);
        json_end(j, '}');
    }
    json_end(j, '}');
}

/* ---- all benchmarks ---- */

static bool run_size(const options *o, json *j, const bench *b, int64_t n, tally *of)
{
    trial t = { .o = o, .p = { .bench = b, .n = n, .seed = o->seed, .place = DUET_AUTO } };
    bool ok = problem_open(&t.p) && check(&t.p).ok;
    for (t.start = 0; t.start < (o->gpu ? STARTS : 1) && ok; t.start++)
        for (t.mode = 0; t.mode < MODES && ok; t.mode++) {
            ok = measure_trial(&t) && trace_calls(&t);
            if (ok && of[t.mode].count < 1000) of[t.mode].ratio[of[t.mode].count++] = report(j, &t);
        }
    if (!ok)
        fprintf(stderr, "duet-place: %s %lld: wrong result or failure: %s\n", b->name, (long long)n,
                duet_error());
    problem_close(&t.p);
    duet_memory_trim();
    return ok;
}

static bool listed(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && !strncmp(at, name, n)) return true;
    return !list;
}

static bool run_all(const options *o, json *j)
{
    static tally of[MODES];
    bool ok = true;
    printf("%-8s %9s %-6s %-4s %12s %12s %12s %7s\n", "bench", "size", "start", "", "auto, us", "cpu, us",
           "gpu, us", "ratio");
    json_integer(j, "seed", o->seed);
    json_begin(j, "results", '[');
    for (int b = 0; b < bench_count; b++)
        for (int i = 0; i < SIZES && listed(o->benches, benches[b].name); i++) {
            const int64_t n = o->quick ? benches[b].quick[i] : benches[b].sizes[i];
            if (!n) break;
            ok &= run_size(o, j, &benches[b], n, of);
        }
    json_end(j, ']');
    report_all(j, of);
    return ok && of[ONCE].count;
}

int main(int argc, char **argv)
{
    options o = { .seed = (uint32_t)time(NULL) & 0xFFFFFF };
    const char *path = NULL;
    json j;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick")) o.quick = true;
        else if (!strcmp(argv[i], "--bench") && i + 1 < argc) o.benches = argv[++i];
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc) o.seed = (uint32_t)strtoul(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--json") && i + 1 < argc) {
            path = argv[++i];
        } else {
            fputs(usage, stderr);
            return 2;
        }
    o.gpu = gpu_is_available();
    if (!o.gpu)
        fprintf(stderr, "duet-place: no GPU, so auto is compared with the CPU only: %s\n", duet_error());
    if (!json_open(&j, path)) return 1;
    const double start = now();
    const bool ok = run_all(&o, &j);
    printf("total time: %.0f s\n", now() - start);
    if (json_close(&j) && ok) return 0;
    return 1;
}
