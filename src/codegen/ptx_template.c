/* ptx_template.c - writes kernels from a template (ptx_write.h). */
#include "ptx_writer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A placeholder of the template. */
typedef struct placeholder {
    int count, names;
    char name[9][24]; /* of registers */
} placeholder;

typedef struct line {
    const char *at;
    int length;
} line;

static line next_line(const char **at, const char *end)
{
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    const line l = { *at, (int)((stop ? stop : end) - *at) };
    *at = stop ? stop + 1 : end;
    return l;
}

static bool starts(const line *l, const char *with)
{
    const size_t n = strlen(with);
    return (size_t)l->length >= n && !memcmp(l->at, with, n);
}

/* Returns how much the line changes the depth of braces. Lines of inline assembly may begin with a brace, so
 * braces are counted anywhere in the line. */
static int nesting(const line *l)
{
    int more = 0;
    for (int i = 0; i < l->length; i++) more += (l->at[i] == '{') - (l->at[i] == '}');
    return more;
}

enum { OUTSIDE = -1 }; /* before the first brace of a kernel */

/* Returns the next line of a kernel. The line of its last brace sets *depth to 0, and all others to more. */
static line line_of_body(const char **at, const char *end, int *depth)
{
    const line l = next_line(at, end);
    const int more = nesting(&l);
    *depth += more + (*depth < 0 && more > 0);
    return l;
}

/* Does the line begin the kernel of this name? */
static bool is_entry(const line *l, const char *name)
{
    char start[64];
    snprintf(start, sizeof start, ".visible .entry %s(", name);
    return starts(l, start);
}

static bool read_placeholder(const line *l, placeholder *m)
{
    static const char sign[] = "\t// duet:";
    char text[256];
    int at = 0, more;
    if (!starts(l, sign) || (size_t)l->length >= sizeof text) return false;
    snprintf(text, sizeof text, "%.*s", l->length, l->at);
    if (sscanf(text + sizeof sign - 1, "%d%n", &m->count, &at) != 1) return false;
    at += (int)sizeof sign - 1;
    for (m->names = 0; m->names < 9 && sscanf(text + at, "%23s%n", m->name[m->names], &more) == 1; at += more)
        m->names++;
    return true;
}

static bool has_given(const ptx_request *r)
{
    bool has = false;
    for (int k = 0; k < r->inputs; k++) has |= r->access[k] == PTX_GIVEN;
    return has;
}

static void take_given(writer *w, const placeholder *m, vector *x)
{
    for (int u = 0; u < m->count && has_given(w->r); u++) {
        x->given[u] = fresh(w);
        put(w, "mov.%s %%v%d, %s;\n", type(w), x->given[u], m->name[m->names - 1 - m->count + u]);
    }
}

/* Writes the code for one placeholder in a block, with its own register declarations. */
static void elements(writer *w, const placeholder *m, bool *full)
{
    ptx_text body = { 0 }, *all = w->t;
    arguments a = { .read = 0 };
    vector x;
    w->t = &body;
    w->values = w->words = w->doubles = w->conditions = w->indices = 0;
    put(w, "mov.b64 %%e, %s;\n", m->name[m->names - 1]);
    take_given(w, m, &x);
    ptx_load_arguments(w, &a);
    ptx_load_singles(w, &a);
    ptx_load_whole(w, &a, &x);
    ptx_elements(w, &x);
    for (int k = 0; k < w->r->outputs && !w->failed; k++)
        for (int u = 0; u < m->count; u++)
            put(w, "mov.%s %s, %%v%d;\n", type(w), m->name[k * m->count + u], x.out[u][k]);
    w->t = all;
    put(w, "{\n");
    ptx_declare(w);
    put(w, "%s}\n", body.at ? body.at : "");
    *full |= body.full;
    free(body.at);
}

/* A placeholder of one element is at the end of a row, or in a kernel of single elements. All others have
 * the width of the request. */
static void fill(writer *w, const placeholder *m, bool *full)
{
    const ptx_request *whole = w->r;
    ptx_request one = *whole;
    one.width = 1;
    const int names = m->count * (whole->outputs + has_given(whole)) + 1;
    w->failed |= (m->count != 1 && m->count != whole->width) || m->names != names;
    if (w->failed) return;
    if (m->count == 1) w->r = &one;
    elements(w, m, full);
    w->r = whole;
}

/* A kernel without placeholders was not optimized: they are in functions, which cannot read its argument. */
static void body_of(writer *w, const char **at, const char *end)
{
    bool full = false, any = false;
    for (int depth = OUTSIDE; *at < end && depth;) {
        placeholder m;
        const line l = line_of_body(at, end, &depth);
        if (read_placeholder(&l, &m)) {
            fill(w, &m, &full);
            any = true;
        } else if (!starts(&l, "\t//")) put(w, "%.*s\n", l.length, l.at);
    }
    w->failed |= full || !any;
}

static void skip_body(const char **at, const char *end)
{
    for (int depth = OUTSIDE; *at < end && depth;) line_of_body(at, end, &depth);
}

/* Declares the kernel's argument: that of the template, with the program's argument after it. */
static void argument(writer *w, const line *l)
{
    char text[64];
    int align = 0;
    snprintf(text, sizeof text, "%.*s", l->length, l->at);
    w->failed |= sscanf(text, " .param .align %d", &align) != 1;
    put(w, ".visible .entry " PTX_ENTRY "(.param .align %d .b8 %s[%d]\n", align, w->args,
        ptx_places_of(w->r).bytes);
}

static void copy(writer *w, const ptx_template *s)
{
    const char *at = s->text, *end = s->text + s->length;
    bool found = false;
    while (at < end) {
        const line l = next_line(&at, end);
        if (is_entry(&l, s->entry)) {
            const line parameter = next_line(&at, end);
            argument(w, &parameter);
            body_of(w, &at, end);
            found = true;
        } else if (starts(&l, ".visible .entry ")) skip_body(&at, end);
        else if (starts(&l, ".shared") || starts(&l, ".extern .shared")) put(w, "%.*s\n", l.length, l.at);
    }
    w->failed |= !found;
}

bool ptx_fill_template(ptx_text *t, const ptx_request *r, const ptx_template *s)
{
    char args[64];
    writer w = { .t = t, .r = r, .l = r->list, .args = args };
    *t = (ptx_text){ 0 };
    snprintf(args, sizeof args, "%s_param_0", s->entry);
    w.reg = malloc((size_t)(r->list->length + 1) * sizeof *w.reg);
    if (!w.reg) return false;
    put(&w, "%s\n.address_size 64\n", s->target ? s->target : ".version 7.0\n.target sm_80");
    copy(&w, s);
    free(w.reg);
    return !w.failed && !t->full;
}
