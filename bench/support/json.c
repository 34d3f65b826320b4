/* json.c - writes a JSON document; see json.h. */
#include "json.h"
#include "environment.h"
#include <duet/duet.h>
#include <math.h>
#include <stdlib.h>

static void put_text(json *j, const char *s)
{
    putc('"', j->out);
    for (; *s; s++)
        if (*s == '"' || *s == '\\') fprintf(j->out, "\\%c", *s);
        else if ((unsigned char)*s < ' ') fprintf(j->out, "\\u%04x", *s);
        else putc(*s, j->out);
    putc('"', j->out);
}

/* Writes the separator and the key before a member. Members of the document and rows start a new
 * line; deeper ones follow on the same line. Returns false if nothing is to be written. */
static bool lead(json *j, const char *key)
{
    if (!j->out) return false;
    if (j->more) putc(',', j->out);
    if (j->depth <= 2) fprintf(j->out, "\n%*s", j->depth, "");
    else if (j->more) putc(' ', j->out);
    j->more = true;
    if (key) {
        put_text(j, key);
        fputs(": ", j->out);
    }
    return true;
}

void json_begin(json *j, const char *key, char bracket)
{
    if (!lead(j, key)) return;
    putc(bracket, j->out);
    j->depth++;
    j->more = false;
}

void json_end(json *j, char bracket)
{
    if (!j->out) return;
    if (--j->depth < 2) fprintf(j->out, "\n%*s", j->depth, "");
    putc(bracket, j->out);
    j->more = true;
}

void json_text(json *j, const char *key, const char *value)
{
    if (lead(j, key)) put_text(j, value);
}

void json_integer(json *j, const char *key, int64_t value)
{
    if (lead(j, key)) fprintf(j->out, "%lld", (long long)value);
}

void json_number(json *j, const char *key, double value)
{
    if (!lead(j, key)) return;
    if (isfinite(value)) fprintf(j->out, "%.9g", value);
    else fputs("null", j->out);
}

void json_truth(json *j, const char *key, bool value)
{
    if (lead(j, key)) fputs(value ? "true" : "false", j->out);
}

/* Writes the output of duet_info as one string. */
static void put_info(json *j)
{
    char *text = NULL;
    size_t size;
    FILE *in = open_memstream(&text, &size);
    if (!in) return;
    duet_info(in);
    fclose(in);
    if (text) json_text(j, "duet_info", text);
    free(text);
}

static void put_environment(json *j)
{
    environment f;
    environment_find(&f);
    json_text(j, "cpu", f.cpu);
    json_integer(j, "cores", f.cores);
    json_integer(j, "threads", f.threads);
    json_text(j, "gpu", f.gpu);
    json_text(j, "cuda_driver", f.driver);
    json_text(j, "blas", f.blas);
    json_text(j, "system", f.system);
    json_text(j, "compiler", __VERSION__);
    json_text(j, "commit", f.commit);
    json_text(j, "date", f.date);
    put_info(j);
}

bool json_open(json *j, const char *path)
{
    *j = (json){ .path = path };
    if (!path) return true;
    j->out = fopen(path, "w");
    if (!j->out) {
        perror(path);
        return false;
    }
    putc('{', j->out);
    j->depth = 1;
    put_environment(j);
    return true;
}

bool json_close(json *j)
{
    if (!j->out) return true;
    fputs("\n}\n", j->out);
    bool ok = !ferror(j->out);
    ok = fclose(j->out) == 0 && ok;
    if (!ok) fprintf(stderr, "cannot write %s\n", j->path);
    j->out = NULL;
    return ok;
}
