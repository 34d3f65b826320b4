/* report.c - the results as a table, as JSON and as CSV. */
#include "bench.h"
#include <math.h>
#include <stdlib.h>

double result_rate(const result *r)
{
    return r->timing.us > 0 ? r->bench->work * pow((double)r->n, r->bench->power) / r->timing.us / 1e3 : 0;
}

void report_head(void)
{
    printf("%-8s %10s %-4s %12s %10s %-8s %7s  %-22s %9s %9s\n", "bench", "size", "on", "us", "rate", "", "ratio",
           "of the time of", "error", "bound");
}

void report_line(const result *r)
{
    printf("%-8s %10lld %-4s ", r->bench->name, (long long)r->n, place_name(r->place));
    if (r->timing.us > 0) printf("%12.2f %10.2f %-8s ", r->timing.us, result_rate(r), r->bench->unit);
    else printf("%12s %10s %-8s ", "-", "-", r->bench->unit);
    if (r->timing.peer && r->timing.us > 0) printf("%7.3f  %-22s ", r->timing.ratio, r->timing.peer);
    else printf("%7s  %-22s ", "-", "-");
    printf("%9.1e %9.1e%s\n", r->verdict.error, r->verdict.bound, r->verdict.ok ? "" : "  WRONG");
    fflush(stdout);
}

/* A text as a JSON string. */
static void put_text(FILE *out, const char *s)
{
    putc('"', out);
    for (; *s; s++)
        if (*s == '"' || *s == '\\') fprintf(out, "\\%c", *s);
        else if ((unsigned char)*s < ' ') fprintf(out, "\\u%04x", *s);
        else putc(*s, out);
    putc('"', out);
}

static void put_pair(FILE *out, const char *key, const char *value)
{
    fprintf(out, "  \"%s\": ", key);
    put_text(out, value);
    fputs(",\n", out);
}

/* What duet_info says, as one string. */
static void put_info(FILE *out)
{
    char *text = NULL;
    size_t size;
    FILE *in = open_memstream(&text, &size);
    if (!in) return;
    duet_info(in);
    fclose(in);
    if (text) put_pair(out, "duet_info", text);
    free(text);
}

static void put_facts(FILE *out)
{
    facts f;
    facts_find(&f);
    put_pair(out, "cpu", f.cpu);
    fprintf(out, "  \"cores\": %d,\n  \"threads\": %d,\n", f.cores, f.threads);
    put_pair(out, "gpu", f.gpu);
    put_pair(out, "cuda_driver", f.driver);
    put_pair(out, "blas", f.blas);
    put_pair(out, "system", f.system);
    put_pair(out, "compiler", __VERSION__);
    put_pair(out, "commit", f.commit);
    put_pair(out, "date", f.date);
    put_info(out);
}

/* JSON has no NaN: null. */
static void put_number(FILE *out, const char *key, double x)
{
    if (isfinite(x)) fprintf(out, ", \"%s\": %.17g", key, x);
    else fprintf(out, ", \"%s\": null", key);
}

static void put_result(FILE *out, const result *r)
{
    fprintf(out, "    {\"bench\": \"%s\", \"size\": %lld, \"machine\": \"%s\", \"unit\": \"%s\", \"ok\": %s", r->bench->name,
            (long long)r->n, place_name(r->place), r->bench->unit, r->verdict.ok ? "true" : "false");
    put_number(out, "us", r->timing.us > 0 ? r->timing.us : NAN);
    put_number(out, "rate", r->timing.us > 0 ? result_rate(r) : NAN);
    if (r->timing.peer) {
        fputs(", \"peer\": ", out), put_text(out, r->timing.peer);
        put_number(out, "peer_us", r->timing.us > 0 ? r->timing.peer_us : NAN);
        put_number(out, "ratio", r->timing.us > 0 ? r->timing.ratio : NAN);
    }
    put_number(out, "error", r->verdict.error);
    put_number(out, "bound", r->verdict.bound);
    put_number(out, "norm", r->verdict.norm);
    put_number(out, "probe", r->verdict.probe);
    putc('}', out);
}

static bool finish(FILE *out, const char *path)
{
    bool ok = !ferror(out);
    ok = fclose(out) == 0 && ok;
    if (!ok) fprintf(stderr, "duet-bench: cannot write %s\n", path);
    return ok;
}

bool report_json(const char *path, const result *r, int count, uint32_t seed)
{
    FILE *out = fopen(path, "w");
    if (!out) return perror(path), false;
    fputs("{\n", out);
    put_facts(out);
    fprintf(out, "  \"seed\": %u,\n  \"results\": [\n", seed);
    for (int i = 0; i < count; i++) put_result(out, &r[i]), fputs(i + 1 < count ? ",\n" : "\n", out);
    fputs("  ]\n}\n", out);
    return finish(out, path);
}

bool report_csv(const char *path, const result *r, int count)
{
    FILE *out = fopen(path, "w");
    if (!out) return perror(path), false;
    fputs("bench,size,machine,us,rate,unit,peer,peer_us,ratio,error,bound,ok\n", out);
    for (int i = 0; i < count; i++)
        fprintf(out, "%s,%lld,%s,%.4g,%.5g,%s,%s,%.4g,%.4g,%.3g,%.3g,%d\n", r[i].bench->name, (long long)r[i].n,
                place_name(r[i].place), r[i].timing.us, result_rate(&r[i]), r[i].bench->unit,
                r[i].timing.peer ? r[i].timing.peer : "", r[i].timing.peer_us, r[i].timing.ratio, r[i].verdict.error,
                r[i].verdict.bound, r[i].verdict.ok);
    return finish(out, path);
}
