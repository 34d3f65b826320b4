/* market.c - Matrix Market's dense format: a banner, comments, the sizes, then the elements as
 * text, column by column. https://math.nist.gov/MatrixMarket/formats.html */
#include "c_locale.h"
#include "fp_environment.h"
#include "io.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TOKEN 400 /* characters of a number */

enum symmetry { GENERAL, SYMMETRIC, SKEW, HERMITIAN };
static const char *const symmetries[] = { "general", "symmetric", "skew-symmetric", "hermitian" };

typedef struct reading {
    input *in;
    duet_dtype type;
    enum symmetry symmetry;
    int64_t rows, cols;
} reading;

/* ---- words ---- */

/* Reads one word, and the character after it. */
static duet_status next_word(input *in, char word[TOKEN])
{
    int c = getc(in->f);
    size_t n = 0;
    while (c != EOF && isspace(c)) c = getc(in->f);
    for (; c != EOF && !isspace(c); c = getc(in->f)) {
        if (n + 1 == TOKEN) return bad_file(in, "a number is too long");
        if (!c) return bad_file(in, "the file is not text");
        word[n++] = (char)c;
    }
    word[n] = 0;
    if (!n) return bad_file(in, "the file is truncated");
    return DUET_OK;
}

static duet_status next_integer(input *in, int64_t *to)
{
    char word[TOKEN], *end;
    TRY(next_word(in, word));
    errno = 0;
    *to = strtoll(word, &end, 10);
    if (*end || errno) return bad_file(in, "\"%.40s\" is not a 64-bit integer", word);
    return DUET_OK;
}

static duet_status next_number(input *in, double *to)
{
    char word[TOKEN], *end;
    TRY(next_word(in, word));
    *to = strtod(word, &end);
    if (*end) return bad_file(in, "\"%.40s\" is not a number", word);
    return DUET_OK;
}

/* ---- the banner, comments and sizes ---- */

static duet_status unsupported(const input *in, const char *what, const char *word)
{
    return fail(DUET_UNSUPPORTED, "%s(\"%s\"): the %s \"%.40s\" is not supported", in->who, in->path, what,
                word);
}

static duet_status take_banner(reading *r)
{
    char word[5][TOKEN];
    int k = 0;
    for (int i = 0; i < 5; i++) TRY(next_word(r->in, word[i]));
    if (strcasecmp(word[0], "%%MatrixMarket") || strcasecmp(word[1], "matrix"))
        return bad_file(r->in, "this is not a Matrix Market file");
    if (strcasecmp(word[2], "array")) return unsupported(r->in, "format", word[2]);
    if (!strcasecmp(word[3], "real") || !strcasecmp(word[3], "double")) r->type = DUET_F64;
    else if (!strcasecmp(word[3], "integer")) r->type = DUET_I64;
    else if (!strcasecmp(word[3], "complex")) r->type = DUET_C128;
    else return unsupported(r->in, "field", word[3]);
    while (k < 4 && strcasecmp(word[4], symmetries[k])) k++;
    if (k == 4 || (k == HERMITIAN && r->type != DUET_C128)) return unsupported(r->in, "symmetry", word[4]);
    r->symmetry = (enum symmetry)k;
    return DUET_OK;
}

static void skip_comments(FILE *f)
{
    int c = getc(f);
    while (c == '%' || (c != EOF && isspace(c))) {
        while (c == '%' && (c = getc(f)) != EOF && c != '\n') c = '%';
        c = getc(f);
    }
    if (c != EOF) ungetc(c, f);
}

/* Reads the sizes. An element takes at least two characters, so larger sizes than the file can
 * contain are rejected before memory is allocated. */
static duet_status take_sizes(reading *r)
{
    int64_t n;
    skip_comments(r->in->f);
    TRY(next_integer(r->in, &r->rows));
    TRY(next_integer(r->in, &r->cols));
    if (r->rows < 0 || r->cols < 0) return bad_file(r->in, "its sizes must not be negative");
    if (r->symmetry && r->rows != r->cols)
        return bad_file(r->in, "a %s matrix must be square", symmetries[r->symmetry]);
    const bool overflows = __builtin_mul_overflow(r->rows, r->cols, &n);
    const uint64_t most = r->symmetry ? 2 * r->in->size + 2 : r->in->size / 2 + 1; /* elements */
    if (overflows || (uint64_t)n > most) return bad_file(r->in, "the file is too short for its sizes");
    if ((uint64_t)r->rows > (uint64_t)1 << 58 || (uint64_t)r->cols > (uint64_t)1 << 58)
        return bad_file(r->in, "its sizes are too large for memory");
    return limit_bytes(r->in, (uint64_t)n * dtypes[r->type].bytes);
}

/* ---- elements ---- */

/* Reads an element to `to`. Stores its mirror image across the diagonal at `across`, unless NULL. */
static duet_status take_element(const reading *r, char *to, char *across)
{
    double part[2] = { 0, 0 };
    int64_t whole;
    if (r->type == DUET_I64) {
        TRY(next_integer(r->in, &whole));
        if (r->symmetry == SKEW && whole == INT64_MIN) return bad_file(r->in, "an element cannot be negated");
        *(int64_t *)to = whole;
        if (across) *(int64_t *)across = r->symmetry == SKEW ? -whole : whole;
        return DUET_OK;
    }
    const int parts = r->type == DUET_C128 ? 2 : 1;
    for (int k = 0; k < parts; k++) TRY(next_number(r->in, &part[k]));
    memcpy(to, part, (size_t)parts * sizeof *part);
    if (r->symmetry == SKEW) part[0] = -part[0];
    if (r->symmetry == SKEW || r->symmetry == HERMITIAN) part[1] = -part[1];
    if (across) memcpy(across, part, (size_t)parts * sizeof *part);
    return DUET_OK;
}

/* Reads all elements. Files of symmetric and Hermitian matrices contain only the diagonal and the part
 * below it. Files of skew-symmetric matrices contain only the part below it: the diagonal is zero. */
static duet_status take_elements(const reading *r, char *p)
{
    const size_t each = dtypes[r->type].bytes;
    for (int64_t j = 0; r->rows && j < r->cols; j++)
        for (int64_t i = r->symmetry ? j + (r->symmetry == SKEW) : 0; i < r->rows; i++)
            TRY(take_element(r, p + (size_t)(i * r->cols + j) * each,
                             r->symmetry && i > j ? p + (size_t)(j * r->cols + i) * each : NULL));
    skip_comments(r->in->f);
    if (ferror(r->in->f))
        return fail(DUET_IO_ERROR, "%s(\"%s\"): the file cannot be read", r->in->who, r->in->path);
    if (getc(r->in->f) != EOF) return bad_file(r->in, "there is data after the last element");
    return DUET_OK;
}

static duet_status take_matrix(reading *r, duet_matrix **m)
{
    TRY(take_banner(r));
    TRY(take_sizes(r));
    *m = (duet_new_shape)(r->type, 2, (const int64_t[]){ r->rows, r->cols });
    char *p = *m ? (duet_overwrite)(*m) : NULL;
    if (!*m || (!p && (*m)->count)) return no_memory(r->in);
    if ((*m)->count) memset(p, 0, (size_t)(*m)->count * dtypes[r->type].bytes);
    return take_elements(r, p);
}

duet_matrix *(duet_load_market)(const char *path)
{
    input in;
    duet_matrix *m = NULL;
    if (input_open(&in, "duet_load_market", path)) return NULL;
    IN_DEFAULT_FP_ENVIRONMENT;
    const plain_numbers plain = plain_numbers_begin();
    if (take_matrix(&(reading){ .in = &in }, &m)) duet_free(&m);
    plain_numbers_end(plain);
    input_close(&in);
    return m;
}

/* ---- writing ---- */

static duet_status say(output *out, const char *text) { return output_write(out, text, strlen(text)); }

static duet_status put_number(output *out, duet_dtype type, const void *p, char behind)
{
    char text[64];
    const double x = number_of(type, p);
    snprintf(text, sizeof text, "%.*g%c", x - x == 0 ? shortest_digits(type, x) : 6, x, behind);
    return say(out, text);
}

static duet_status put_element(output *out, duet_dtype type, const char *p)
{
    char text[32];
    const duet_dtype part = type_of_part(type);
    if (type_is_float(type)) return put_number(out, type, p, '\n');
    if (!type_is_complex(type)) {
        integer_text(type, p, text);
        return say(out, strcat(text, "\n"));
    }
    TRY(put_number(out, part, p, ' '));
    return put_number(out, part, p + dtypes[part].bytes, '\n');
}

static const char *field_name(duet_dtype t)
{
    if (type_is_float(t)) return "real";
    return type_is_complex(t) ? "complex" : "integer";
}

static duet_status put_matrix(output *out, const duet_matrix *m)
{
    const void *p;
    char front[100];
    const duet_dtype t = m->at.type;
    TRY(elements_of(m, &p));
    snprintf(front, sizeof front, "%%%%MatrixMarket matrix array %s general\n%lld %lld\n", field_name(t),
             (long long)m->at.size[0], (long long)m->at.size[1]);
    TRY(say(out, front));
    for (int64_t j = 0; m->count && j < m->at.size[1]; j++)
        for (int64_t i = 0; i < m->at.size[0]; i++)
            TRY(put_element(out, t,
                            (const char *)p +
                                (i * m->at.stride[0] + j * m->at.stride[1]) * (int64_t)dtypes[t].bytes));
    return DUET_OK;
}

duet_status(duet_save_market)(const char *path, const duet_matrix *m)
{
    const char *who = "duet_save_market";
    char text[SHAPE_TEXT];
    output out;
    TRY(matrix_check(who, m));
    if (m->at.rank != 2)
        return fail(DUET_BAD_SHAPE, "%s(m: %s): m must have 2 axes", who,
                    shape_text(text, m->at.type, m->at.rank, m->at.size));
    TRY(output_open(&out, who, path));
    IN_DEFAULT_FP_ENVIRONMENT;
    const plain_numbers plain = plain_numbers_begin();
    duet_status s = put_matrix(&out, m);
    plain_numbers_end(plain);
    return output_close(&out, s);
}
