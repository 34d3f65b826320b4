/* environment.c - finds out where a benchmark ran: processor, GPU, versions, commit, date. */
#include "environment.h"
#include <cblas.h>
#include <duet/duet.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Copies the rest of the first line that contains the prefix. If no line does, text is unchanged. */
static void first_line(FILE *in, const char *prefix, char *text, size_t size)
{
    char line[512];
    while (in && fgets(line, sizeof line, in)) {
        char *at = strstr(line, prefix);
        if (!at) continue;
        snprintf(text, size, "%.*s", (int)strcspn(at + strlen(prefix), "\n"), at + strlen(prefix));
        break;
    }
}

static void find_cpu(environment *f)
{
    FILE *in = fopen("/proc/cpuinfo", "r");
    snprintf(f->cpu, sizeof f->cpu, "unknown");
    first_line(in, "model name\t: ", f->cpu, sizeof f->cpu);
    if (in) fclose(in);
}

static void find_commit(environment *f)
{
    FILE *in =
        popen("git -C '" BENCH_DIR "' describe --always --dirty --abbrev=40 --exclude '*' 2>/dev/null", "r");
    first_line(in, "", f->commit, sizeof f->commit);
    if (in) pclose(in);
    const char *given = getenv("DUET_COMMIT"); /* for source trees without a git repository */
    if (!*f->commit && given) snprintf(f->commit, sizeof f->commit, "%s", given);
}

void environment_find(environment *f)
{
    struct utsname u;
    time_t t = time(NULL);
    memset(f, 0, sizeof *f);
    find_cpu(f);
    find_commit(f);
    gpu_describe(f->gpu, f->driver);
    if (uname(&u) == 0)
        snprintf(f->system, sizeof f->system, "%.60s %.60s %.30s", u.sysname, u.release, u.machine);
    snprintf(f->blas, sizeof f->blas, "%s", openblas_get_config());
    strftime(f->date, sizeof f->date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&t));
    f->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    f->threads = omp_get_max_threads();
}

bool has_gpu(void)
{
    duet_matrix *m = duet_new(DUET_F32, 1);
    const duet_status s = duet_set_on(DUET_GPU, m, 1);
    duet_free(&m);
    return s == DUET_OK;
}
