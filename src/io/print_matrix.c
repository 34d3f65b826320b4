/* print_matrix.c - prints a matrix as NumPy prints an array: rows in brackets, elements in columns.
 * The middle of large matrices is omitted. */
#include "print_matrix.h"
#include "c_locale.h"
#include <string.h>

#define THRESHOLD 1000 /* the middle of matrices with more elements is omitted */
#define EDGE      3    /* elements printed at each end of an abbreviated axis */
#define WIDTH     75   /* characters of a line */

/* ---- which elements ---- */

typedef struct printing {
    FILE *out;
    const duet_matrix *m;
    const char *p;
    bool abbreviated; /* the middle is omitted */
    notation form;
    char line[2 * WIDTH + 2 * WORD];
    size_t length;
} printing;

/* Finds which elements of an axis are printed: those before `low`, and those from `high` on. */
static void shown(const printing *x, int axis, int64_t *low, int64_t *high)
{
    const int64_t size = x->m->at.size[axis];
    const bool abbreviated = x->abbreviated && size > 2 * EDGE;
    *low = abbreviated ? EDGE : 0;
    *high = abbreviated ? size - EDGE : 0;
}

static const char *moved(const printing *x, const char *at, int axis, int64_t n)
{
    return at + n * x->m->at.stride[axis] * (int64_t)dtypes[x->m->at.type].bytes;
}

static void survey(printing *x, const char *at, int axis)
{
    int64_t low, high;
    if (axis == x->m->at.rank) {
        notation_sees(&x->form, at);
        return;
    }
    shown(x, axis, &low, &high);
    for (int64_t i = 0; i < x->m->at.size[axis]; i++) {
        if (i == low && high) i = high;
        survey(x, moved(x, at, axis, i), axis + 1);
    }
}

/* ---- lines ---- */

static void end_line(printing *x)
{
    while (x->length && x->line[x->length - 1] == ' ') x->length--;
    fprintf(x->out, "%.*s\n", (int)x->length, x->line);
    x->length = 0;
}

static void say(printing *x, const char *word)
{
    const size_t n = strlen(word);
    memcpy(x->line + x->length, word, n);
    x->length += n;
}

static void indent(printing *x, int by)
{
    memset(x->line + x->length, ' ', (size_t)by);
    x->length += (size_t)by;
}

/* Prints a word. Starts a new line if the word would exceed `width`. */
static void say_word(printing *x, const char *word, int width)
{
    if (x->length + strlen(word) > (size_t)width && x->length > (size_t)x->m->at.rank) {
        end_line(x);
        indent(x, x->m->at.rank);
    }
    say(x, word);
}

/* Prints a row, which is the last axis. */
static void print_row(printing *x, const char *at)
{
    const int axis = x->m->at.rank - 1, width = WIDTH - x->m->at.rank;
    int64_t low, high, size = x->m->at.size[axis];
    char word[WORD];
    shown(x, axis, &low, &high);
    for (int64_t i = 0; i < size; i++) {
        if (i == low && high) {
            say_word(x, "...", width);
            say(x, " ");
            i = high;
        }
        say_word(x, notation_text(&x->form, moved(x, at, axis, i), word), width);
        if (i + 1 < size) say(x, " ");
    }
}

static void print_axis(printing *x, const char *at, int axis);

static void between(printing *x, int axis)
{
    end_line(x);
    for (int a = axis + 2; a < x->m->at.rank; a++) end_line(x);
    indent(x, axis + 1);
}

static void print_rows(printing *x, const char *at, int axis)
{
    int64_t low, high;
    shown(x, axis, &low, &high);
    for (int64_t i = 0; i < x->m->at.size[axis]; i++) {
        if (i) between(x, axis);
        if (i == low && high) {
            say(x, "...");
            between(x, axis);
            i = high;
        }
        print_axis(x, moved(x, at, axis, i), axis + 1);
    }
}

static void print_axis(printing *x, const char *at, int axis)
{
    say(x, "[");
    if (axis + 1 == x->m->at.rank) print_row(x, at);
    else print_rows(x, at, axis);
    say(x, "]");
}

/* ---- printing a matrix ---- */

/* Prints x without the end of the last line. */
static void print(printing *x)
{
    char word[WORD];
    if (x->m->at.rank == 0) {
        fputs(alone_text(x->m->at.type, x->p, word), x->out);
    } else if (x->m->count == 0) {
        fputs("[]", x->out);
    } else {
        survey(x, x->p, 0);
        notation_settle(&x->form);
        print_axis(x, x->p, 0);
        fprintf(x->out, "%.*s", (int)x->length, x->line);
    }
}

duet_status matrix_print(const char *who, FILE *out, const duet_matrix *m)
{
    const void *p;
    TRY(matrix_check(who, m));
    TRY(elements_of(m, &p));
    printing x = {
        .out = out, .m = m, .p = p, .abbreviated = m->count > THRESHOLD, .form = notation_new(m->at.type)
    };
    const plain_numbers plain = plain_numbers_begin();
    print(&x);
    plain_numbers_end(plain);
    if (ferror(out)) return fail(DUET_IO_ERROR, "%s: the file cannot be written", who);
    return DUET_OK;
}
