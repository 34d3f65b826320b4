/* main.c - duet-bench: for each benchmark, machine and size, is it right, and how fast is it. */
#include "bench.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "duet-bench [options]\n"
    "  --backend cpu|gpu|both  where (both: the GPU if there is one)\n"
    "  --bench NAME[,NAME]     saxpy, sgemm, complex, dense, cnn (all)\n"
    "  --sizes N[,N]           instead of the paper's\n"
    "  --quick                 few sizes, short blocks\n"
    "  --check                 compare results, take no times\n"
    "  --math MODE             how products may round: strict (the default), split, tf32, bf16\n"
    "  --seed N                of the noise (the time of day)\n"
    "  --json FILE, --csv FILE\n"
    "  --peers                 then run PyTorch, JAX and Eigen on the same data, and add them to the JSON\n";

typedef struct options {
    bool cpu, gpu, gpu_required, quick, check_only, peers;
    const char *benches, *sizes, *json, *csv, *math;
    uint32_t seed;
} options;

typedef struct results {
    result *at;
    int count, room;
    bool failed;
} results;

/* ---- options ---- */

static bool set_backend(options *o, const char *s)
{
    bool both = !strcmp(s, "both");
    o->cpu = both || !strcmp(s, "cpu");
    o->gpu = both || !strcmp(s, "gpu");
    o->gpu_required = !both && o->gpu;
    return o->cpu || o->gpu;
}

static bool set_valued(options *o, const char *name, const char *value)
{
    if (!value) return false;
    if (!strcmp(name, "--backend")) return set_backend(o, value);
    if (!strcmp(name, "--seed")) return o->seed = (uint32_t)strtoul(value, NULL, 0), true;
    const struct {
        const char *name, **text;
    } texts[] = { { "--bench", &o->benches },
                  { "--sizes", &o->sizes },
                  { "--json", &o->json },
                  { "--csv", &o->csv },
                  { "--math", &o->math } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(name, texts[i].name)) return *texts[i].text = value, true;
    return false;
}

static bool set_flag(options *o, const char *name)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = { { "--quick", &o->quick }, { "--check", &o->check_only }, { "--peers", &o->peers } };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (!strcmp(name, flags[i].name)) return *flags[i].flag = true;
    return false;
}

static bool parse(options *o, int argc, char **argv)
{
    *o = (options){ .cpu = true, .gpu = true, .seed = (uint32_t)time(NULL) & 0xFFFFFF };
    for (int i = 1; i < argc; i++) {
        if (set_flag(o, argv[i])) continue;
        if (!set_valued(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL)) return false;
        i++;
    }
    return true;
}

/* Is `name` one of a list with commas? No list has all. */
static bool listed(const char *list, const char *name)
{
    for (size_t n = strlen(name); list && *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == n && !strncmp(list, name, n)) return true;
    return !list;
}

static bool known(const char *list)
{
    for (; list && *list; list += strcspn(list, ","), list += *list == ',') {
        bool found = false;
        for (int b = 0; b < bench_count; b++)
            found |= strcspn(list, ",") == strlen(benches[b].name) &&
                     !strncmp(list, benches[b].name, strlen(benches[b].name));
        if (!found)
            return fprintf(stderr, "duet-bench: no benchmark %.*s\n", (int)strcspn(list, ","), list), false;
    }
    return true;
}

/* The sizes asked for; false when one is no number of at least 1. */
static bool sizes_of(const options *o, const bench *b, int64_t sizes[SIZES + 1])
{
    memset(sizes, 0, sizeof *sizes * (SIZES + 1));
    if (!o->sizes) return memcpy(sizes, o->quick ? b->quick : b->sizes, sizeof *sizes * SIZES), true;
    char *end = (char *)(uintptr_t)o->sizes;
    for (int n = 0; n < SIZES && *end; n++) {
        double x = strtod(end, &end); /* 1e6 is a size too */
        if (!(x >= 1 && x <= 1e9) || (*end && *end++ != ',')) return false;
        sizes[n] = (int64_t)x;
    }
    return true;
}

/* ---- one case ---- */

static void complain(const result *r, const char *what)
{
    fprintf(stderr, "duet-bench: %s %lld on %s: %s: %s\n", r->bench->name, (long long)r->n,
            place_name(r->place), what, duet_error());
}

static result run_case(const options *o, const bench *b, int64_t n, duet_place place)
{
    result r = { .bench = b, .n = n, .place = place, .linalg_failed.error = NAN };
    problem p = { .bench = b, .n = n, .seed = o->seed, .place = place };
    bool open = problem_open(&p);
    if (!open) complain(&r, "cannot make the matrices");
    if (open) r.linalg_failed = check(&p);
    if (open && !r.linalg_failed.ran) complain(&r, "no result");
    if (r.linalg_failed.ok && !o->check_only) {
        r.timing = time_problem(&p, o->quick);
        r.linalg_failed.ok = r.timing.ok;
        if (!r.timing.ok) complain(&r, "cannot be timed");
    }
    problem_close(&p);
    return r;
}

static bool keep(results *all, result r)
{
    if (all->count == all->room) {
        int room = all->room ? 2 * all->room : 64;
        result *at = realloc(all->at, sizeof *at * (size_t)room);
        if (!at) return perror("duet-bench"), false;
        all->at = at, all->room = room;
    }
    all->at[all->count++] = r;
    all->failed |= !r.linalg_failed.ok;
    return true;
}

static bool run_bench(const options *o, const bench *b, results *all)
{
    int64_t sizes[SIZES + 1];
    if (!sizes_of(o, b, sizes))
        return fprintf(stderr, "duet-bench: --sizes %s: not a list of sizes\n", o->sizes), false;
    for (int i = 0; sizes[i]; i++)
        for (duet_place place = DUET_CPU; place <= DUET_GPU; place++) {
            if (!(place == DUET_GPU ? o->gpu : o->cpu)) continue;
            if (!keep(all, run_case(o, b, sizes[i], place))) return false;
            report_line(&all->at[all->count - 1]);
        }
    return true;
}

/* ---- peers.py ---- */

static int run_peers(const options *o)
{
    const char *argv[16] = {
        "python3", BENCH_DIR "/peers/peers.py", "--merge", o->json, "--eigen", PEER_EIGEN
    };
    int n = 6, status = 0;
    if (o->quick) argv[n++] = "--quick";
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[0], (char **)(uintptr_t)argv);
        perror("duet-bench: python3");
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) return perror("duet-bench: peers.py"), 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    options o;
    results all = { 0 };
    if (!parse(&o, argc, argv) || !known(o.benches)) return fputs(usage, stderr), 2;
    if (o.math && !math_use(o.math, argv))
        return fprintf(stderr, "duet-bench: no such mode, or not in this library: %s\n", o.math), 2;
    if (o.peers && !o.json) o.json = "duet-bench.json";
    if (o.gpu && !gpu_is_there()) {
        fprintf(stderr, "duet-bench: no GPU: %s\n", duet_error());
        if (o.gpu_required) return 1;
        o.gpu = false;
    }
    report_head();
    bool ok = true;
    for (int b = 0; b < bench_count && ok; b++)
        if (listed(o.benches, benches[b].name)) ok = run_bench(&o, &benches[b], &all);
    if (o.json) ok &= report_json(o.json, all.at, all.count, o.seed);
    if (o.csv) ok &= report_csv(o.csv, all.at, all.count);
    if (ok && o.peers) ok = run_peers(&o) == 0;
    ok &= !all.failed && all.count > 0;
    free(all.at);
    return ok ? 0 : 1;
}
