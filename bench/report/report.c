/* report.c - prints the results of duet-bench as a table and writes them as JSON and CSV. */
#include "bench.h"
#include "json.h"
#include <math.h>
#include <stdlib.h>

double result_rate(const result *r)
{
    if (r->timing.us > 0) return r->bench->work * pow((double)r->n, r->bench->power) / r->timing.us / 1e3;
    return 0;
}

void report_head(void)
{
    printf("%-8s %10s %-4s %12s %12s %10s %-8s %7s  %-22s %9s %9s\n", "bench", "size", "on", "us", "replayed",
           "rate", "", "ratio", "of the time of", "error", "bound");
}

void report_line(const result *r)
{
    printf("%-8s %10lld %-4s ", r->bench->name, (long long)r->n, place_name(r->place));
    if (r->timing.us > 0)
        printf("%12.2f %12.2f %10.2f %-8s ", r->timing.us, r->timing.replay_us, result_rate(r),
               r->bench->unit);
    else printf("%12s %12s %10s %-8s ", "-", "-", "-", r->bench->unit);
    if (r->timing.peer && r->timing.us > 0) printf("%7.3f  %-22s ", r->timing.ratio, r->timing.peer);
    else printf("%7s  %-22s ", "-", "-");
    printf("%9.1e %9.1e%s\n", r->checked.error, r->checked.bound, r->checked.ok ? "" : "  WRONG");
    if (r->timing.lower_bound_us > 0)
        printf("%24s %12.2f %37.3f  %s\n", "", r->timing.lower_bound_us, r->timing.lower_bound_ratio,
               r->timing.lower_bound);
    fflush(stdout);
}

static void put_result(json *j, const result *r)
{
    const bool timed = r->timing.us > 0;
    json_begin(j, NULL, '{');
    json_text(j, "bench", r->bench->name);
    json_integer(j, "size", r->n);
    json_text(j, "machine", place_name(r->place));
    json_text(j, "unit", r->bench->unit);
    json_truth(j, "ok", r->checked.ok);
    json_number(j, "us", timed ? r->timing.us : NAN);
    json_number(j, "replay_us", timed ? r->timing.replay_us : NAN);
    json_number(j, "auto_us", timed ? r->timing.auto_us : NAN);
    json_number(j, "rate", timed ? result_rate(r) : NAN);
    if (r->timing.peer) {
        json_text(j, "peer", r->timing.peer);
        json_number(j, "peer_us", timed ? r->timing.peer_us : NAN);
        json_number(j, "ratio", timed ? r->timing.ratio : NAN);
    }
    if (r->timing.lower_bound_us > 0) {
        json_text(j, "floor", r->timing.lower_bound);
        json_number(j, "floor_us", r->timing.lower_bound_us);
        json_number(j, "floor_ratio", r->timing.lower_bound_ratio);
    }
    json_number(j, "error", r->checked.error);
    json_number(j, "bound", r->checked.bound);
    json_number(j, "norm", r->checked.norm);
    json_number(j, "probe", r->checked.probe);
    json_end(j, '}');
}

bool report_json(const char *path, const result *r, int count, uint32_t seed)
{
    json j;
    if (!json_open(&j, path)) return false;
    json_integer(&j, "seed", seed);
    json_text(&j, "math", math_name());
    json_begin(&j, "results", '[');
    for (int i = 0; i < count; i++) put_result(&j, &r[i]);
    json_end(&j, ']');
    return json_close(&j);
}

static bool close_file(FILE *out, const char *path)
{
    bool ok = !ferror(out);
    ok = fclose(out) == 0 && ok;
    if (!ok) fprintf(stderr, "duet-bench: cannot write %s\n", path);
    return ok;
}

bool report_csv(const char *path, const result *r, int count)
{
    FILE *out = fopen(path, "w");
    if (!out) {
        perror(path);
        return false;
    }
    fputs("bench,size,machine,us,replay_us,auto_us,rate,unit,peer,peer_us,ratio,error,bound,ok\n", out);
    for (int i = 0; i < count; i++)
        fprintf(out, "%s,%lld,%s,%.4g,%.4g,%.4g,%.5g,%s,%s,%.4g,%.4g,%.3g,%.3g,%d\n", r[i].bench->name,
                (long long)r[i].n, place_name(r[i].place), r[i].timing.us, r[i].timing.replay_us,
                r[i].timing.auto_us, result_rate(&r[i]), r[i].bench->unit,
                r[i].timing.peer ? r[i].timing.peer : "", r[i].timing.peer_us, r[i].timing.ratio,
                r[i].checked.error, r[i].checked.bound, r[i].checked.ok);
    return close_file(out, path);
}
