/* main.c - duet-bench: checks and times five benchmarks on each device at several sizes. */
#include "bench.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "duet-bench [options]\n"
    "  --backend cpu|gpu|both  device; both (the default) uses the GPU if there is one\n"
    "  --bench NAME[,NAME]     run only these of saxpy, sgemm, complex, dense, cnn\n"
    "  --sizes N[,N]           sizes instead of those of the paper\n"
    "  --quick                 few sizes and short measurements\n"
    "  --check                 check the results only\n"
    "  --math MODE             math mode of products: strict (the default), split, tf32, bf16\n"
    "  --seed N                seed of the input data; the default is the time of day\n"
    "  --json FILE, --csv FILE write the results to FILE\n"
    "  --peers                 also run PyTorch, JAX and Eigen on the same data, and add their results to "
    "the JSON file\n";

typedef struct options {
    bool cpu, gpu, gpu_required, quick, check_only, peers;
    const char *benches, *sizes, *json, *csv, *math;
    uint32_t seed;
} options;

typedef struct results {
    result *at;
    int count, capacity;
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
    if (!strcmp(name, "--seed")) {
        o->seed = (uint32_t)strtoul(value, NULL, 0);
        return true;
    }
    const struct {
        const char *name, **text;
    } texts[] = { { "--bench", &o->benches },
                  { "--sizes", &o->sizes },
                  { "--json", &o->json },
                  { "--csv", &o->csv },
                  { "--math", &o->math } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(name, texts[i].name)) {
            *texts[i].text = value;
            return true;
        }
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

/* Whether the comma-separated list contains name. Without a list, every name counts. */
static bool listed(const char *list, const char *name)
{
    for (size_t n = strlen(name); list && *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == n && !strncmp(list, name, n)) return true;
    return !list;
}

static bool benchmarks_exist(const char *list)
{
    for (; list && *list; list += strcspn(list, ","), list += *list == ',') {
        bool found = false;
        for (int b = 0; b < bench_count; b++)
            found |= strcspn(list, ",") == strlen(benches[b].name) &&
                     !strncmp(list, benches[b].name, strlen(benches[b].name));
        if (!found) {
            fprintf(stderr, "duet-bench: there is no benchmark %.*s\n", (int)strcspn(list, ","), list);
            return false;
        }
    }
    return true;
}

/* Fills in the sizes to run. Returns false if a size is not a number from 1 to 1e9. */
static bool sizes_of(const options *o, const bench *b, int64_t sizes[SIZES + 1])
{
    memset(sizes, 0, sizeof *sizes * (SIZES + 1));
    if (!o->sizes) {
        memcpy(sizes, o->quick ? b->quick : b->sizes, sizeof *sizes * SIZES);
        return true;
    }
    char *end = (char *)(uintptr_t)o->sizes;
    for (int n = 0; n < SIZES && *end; n++) {
        double x = strtod(end, &end); /* strtod, because 1e6 is a valid size */
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
    result r = { .bench = b, .n = n, .place = place, .checked.error = NAN };
    problem p = { .bench = b, .n = n, .seed = o->seed, .place = place };
    bool open = problem_open(&p);
    if (!open) complain(&r, "cannot create the matrices");
    if (open) r.checked = check(&p);
    if (open && !r.checked.ran) complain(&r, "the statement failed");
    if (r.checked.ok && !o->check_only) {
        r.timing = time_problem(&p, o->quick);
        r.checked.ok = r.timing.ok;
        if (!r.timing.ok) complain(&r, "the measurement failed");
    }
    problem_close(&p);
    return r;
}

static bool append(results *all, result r)
{
    if (all->count == all->capacity) {
        int capacity = all->capacity ? 2 * all->capacity : 64;
        result *at = realloc(all->at, sizeof *at * (size_t)capacity);
        if (!at) {
            perror("duet-bench");
            return false;
        }
        all->at = at;
        all->capacity = capacity;
    }
    all->at[all->count++] = r;
    all->failed |= !r.checked.ok;
    return true;
}

static bool run_bench(const options *o, const bench *b, results *all)
{
    int64_t sizes[SIZES + 1];
    if (!sizes_of(o, b, sizes)) {
        fprintf(stderr, "duet-bench: --sizes %s: this is not a list of sizes\n", o->sizes);
        return false;
    }
    for (int i = 0; sizes[i]; i++)
        for (duet_place place = DUET_CPU; place <= DUET_GPU; place++) {
            if (!(place == DUET_GPU ? o->gpu : o->cpu)) continue;
            if (!append(all, run_case(o, b, sizes[i], place))) return false;
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
    if (child < 0 || waitpid(child, &status, 0) < 0) {
        perror("duet-bench: peers.py");
        return 1;
    }
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    return 1;
}

int main(int argc, char **argv)
{
    options o;
    results all = { 0 };
    if (!parse(&o, argc, argv) || !benchmarks_exist(o.benches)) {
        fputs(usage, stderr);
        return 2;
    }
    if (o.math && !math_use(o.math, argv)) {
        fprintf(stderr, "duet-bench: this library has no math mode %s\n", o.math);
        return 2;
    }
    if (o.peers && !o.json) o.json = "duet-bench.json";
    if (o.gpu && !gpu_is_available()) {
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
    if (ok) return 0;
    return 1;
}
