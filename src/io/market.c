/* market.c - Matrix Market's dense format: a banner, comments, the sizes, then the elements as
 * text, column by column. https://math.nist.gov/MatrixMarket/formats.html */
#include "market.h"
#include "c_locale.h"
#include "fp_environment.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FIRST_ELEMENTS (1 << 12) /* of a stream, allocated before anything is read */

const char *const market_symmetries[] = { "general", "symmetric", "skew-symmetric", "hermitian" };
#define symmetries market_symmetries

typedef struct reading {
    input *in;
    duet_dtype type;
    enum market_symmetry symmetry;
    int64_t rows, cols;
} reading;

/* ---- words ---- */

duet_status market_word(input *in, char word[MARKET_TOKEN])
{
    int c = getc(in->f);
    size_t n = 0;
    while (c != EOF && isspace(c)) c = getc(in->f);
    for (; c != EOF && !isspace(c); c = getc(in->f)) {
        if (n + 1 == MARKET_TOKEN) return bad_file(in, "a number is too long");
        if (!c) return bad_file(in, "the file is not text");
        word[n++] = (char)c;
    }
    word[n] = 0;
    if (!n) return bad_file(in, "the %s is truncated", in->path ? "file" : "stream");
    return DUET_OK;
}

duet_status market_integer(input *in, int64_t *to)
{
    char word[MARKET_TOKEN], *end;
    TRY(market_word(in, word));
    errno = 0;
    *to = strtoll(word, &end, 10);
    if (*end || errno) return bad_file(in, "\"%.40s\" is not a 64-bit integer", word);
    return DUET_OK;
}

duet_status market_number(input *in, double *to)
{
    char word[MARKET_TOKEN], *end;
    TRY(market_word(in, word));
    *to = strtod(word, &end);
    if (*end) return bad_file(in, "\"%.40s\" is not a number", word);
    return DUET_OK;
}

/* ---- the banner, comments and sizes ---- */

static duet_status unsupported(const input *in, const char *what, const char *word)
{
    return input_failed(in, DUET_UNSUPPORTED, "the %s \"%.40s\" is not supported", what, word);
}

static duet_status take_banner(reading *r)
{
    char word[5][MARKET_TOKEN];
    int k = 0;
    for (int i = 0; i < 5; i++) TRY(market_word(r->in, word[i]));
    if (strcasecmp(word[0], "%%MatrixMarket") || strcasecmp(word[1], "matrix"))
        return bad_file(r->in, "this is not a Matrix Market file");
    if (!strcasecmp(word[2], "coordinate"))
        return input_failed(r->in, DUET_UNSUPPORTED,
                            "the file has the format \"coordinate\", which duet_sparse_%s reads",
                            r->in->path ? "load_market" : "read_market");
    if (strcasecmp(word[2], "array")) return unsupported(r->in, "format", word[2]);
    if (!strcasecmp(word[3], "real") || !strcasecmp(word[3], "double")) r->type = DUET_F64;
    else if (!strcasecmp(word[3], "integer")) r->type = DUET_I64;
    else if (!strcasecmp(word[3], "complex")) r->type = DUET_C128;
    else return unsupported(r->in, "field", word[3]);
    while (k < 4 && strcasecmp(word[4], symmetries[k])) k++;
    if (k == 4 || (k == HERMITIAN && r->type != DUET_C128)) return unsupported(r->in, "symmetry", word[4]);
    r->symmetry = (enum market_symmetry)k;
    return DUET_OK;
}

void market_skip_comments(FILE *f)
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
    market_skip_comments(r->in->f);
    TRY(market_integer(r->in, &r->rows));
    TRY(market_integer(r->in, &r->cols));
    if (r->rows < 0 || r->cols < 0) return bad_file(r->in, "its sizes must not be negative");
    if (r->symmetry && r->rows != r->cols)
        return bad_file(r->in, "a %s matrix must be square", symmetries[r->symmetry]);
    const bool overflows = __builtin_mul_overflow(r->rows, r->cols, &n);
    const uint64_t most = r->symmetry ? 2 * r->in->size + 2 : r->in->size / 2 + 1; /* elements */
    if (overflows || (!r->in->endless && (uint64_t)n > most))
        return bad_file(r->in, "the %s is too short for its sizes", r->in->path ? "file" : "stream");
    if (n > INT64_MAX / (int64_t)dtypes[r->type].bytes)
        return bad_file(r->in, "its sizes are too large for memory");
    if ((uint64_t)r->rows > (uint64_t)1 << 58 || (uint64_t)r->cols > (uint64_t)1 << 58)
        return bad_file(r->in, "its sizes are too large for memory");
    return limit_bytes(r->in, (uint64_t)n * dtypes[r->type].bytes);
}

/* ---- elements ---- */

static duet_status take_element(const reading *r, char *to)
{
    double part[2];
    int64_t whole;
    if (r->type == DUET_I64) {
        TRY(market_integer(r->in, &whole));
        if (r->symmetry == SKEW && whole == INT64_MIN) return bad_file(r->in, "an element cannot be negated");
        *(int64_t *)to = whole;
        return DUET_OK;
    }
    const int parts = r->type == DUET_C128 ? 2 : 1;
    for (int k = 0; k < parts; k++) TRY(market_number(r->in, &part[k]));
    memcpy(to, part, (size_t)parts * sizeof *part);
    return DUET_OK;
}

/* Stores the mirror image of an element across the diagonal. */
static void mirror(const reading *r, const char *element, char *across)
{
    double part[2];
    const size_t each = dtypes[r->type].bytes;
    if (r->type == DUET_I64) {
        const int64_t whole = *(const int64_t *)element;
        *(int64_t *)across = r->symmetry == SKEW ? -whole : whole;
        return;
    }
    memcpy(part, element, each);
    if (r->symmetry == SKEW) part[0] = -part[0];
    if (each > sizeof *part && r->symmetry != SYMMETRIC) part[1] = -part[1];
    memcpy(across, part, each);
}

/* The first row that is listed of a column. Of symmetric and Hermitian matrices, only the diagonal and the
 * part below it are listed; of skew-symmetric ones, only the part below it: the diagonal is zero. */
static int64_t first_row(const reading *r, int64_t column)
{
    return r->symmetry ? column + (r->symmetry == SKEW) : 0;
}

/* Reads all elements to p; or takes them from `list`, unless NULL. */
static duet_status take_elements(const reading *r, char *p, const char *list)
{
    const size_t each = dtypes[r->type].bytes;
    for (int64_t j = 0; r->rows && j < r->cols; j++)
        for (int64_t i = first_row(r, j); i < r->rows; i++) {
            char *to = p + (size_t)(i * r->cols + j) * each;
            if (!list) TRY(take_element(r, to));
            else memcpy(to, list, each);
            if (list) list += each;
            if (r->symmetry && i > j) mirror(r, to, p + (size_t)(j * r->cols + i) * each);
        }
    return DUET_OK;
}

/* Reads all elements of a stream whose size is not known to a list, which grows as they arrive. It is to be
 * freed, also on failure. */
static duet_status take_list(const reading *r, char **list)
{
    const size_t each = dtypes[r->type].bytes;
    size_t capacity = 0, n = 0;
    for (int64_t j = 0; r->rows && j < r->cols; j++)
        for (int64_t i = first_row(r, j); i < r->rows; i++, n++) {
            if (n == capacity) {
                capacity = capacity ? 2 * capacity : FIRST_ELEMENTS;
                char *p = realloc(*list, capacity * each);
                if (!p)
                    return input_failed(r->in, DUET_NO_MEMORY, "a buffer of %zu bytes could not be allocated",
                                        capacity * each);
                *list = p;
            }
            TRY(take_element(r, *list + n * each));
        }
    return DUET_OK;
}

duet_status market_end(const input *in)
{
    market_skip_comments(in->f);
    if (ferror(in->f)) return input_failed(in, DUET_IO_ERROR, "the file cannot be read");
    if (getc(in->f) != EOF) return bad_file(in, "there is data after the last element");
    return DUET_OK;
}

static duet_status take_matrix(const reading *r, duet_matrix **m, const char *list)
{
    *m = (duet_new_shape)(r->type, 2, (const int64_t[]){ r->rows, r->cols });
    char *p = *m ? (duet_overwrite)(*m) : NULL;
    if (!*m || (!p && (*m)->count)) return no_memory(r->in);
    if ((*m)->count) memset(p, 0, (size_t)(*m)->count * dtypes[r->type].bytes);
    return take_elements(r, p, list);
}

static duet_status take_stream(const reading *r, duet_matrix **m)
{
    char *list = NULL;
    duet_status s = r->in->endless ? take_list(r, &list) : DUET_OK;
    if (s == DUET_OK) s = take_matrix(r, m, list);
    free(list);
    return s;
}

static duet_status take_file(const reading *r, duet_matrix **m)
{
    TRY(take_matrix(r, m, NULL));
    return market_end(r->in);
}

static duet_matrix *market_read(input *in)
{
    reading r = { .in = in };
    duet_matrix *m = NULL;
    IN_DEFAULT_FP_ENVIRONMENT;
    const plain_numbers plain = plain_numbers_begin();
    duet_status s = take_banner(&r);
    if (s == DUET_OK) s = take_sizes(&r);
    if (s == DUET_OK) s = (in->path ? take_file : take_stream)(&r, &m);
    plain_numbers_end(plain);
    if (s != DUET_OK) duet_free(&m);
    return m;
}

duet_matrix *(duet_load_market)(const char *path)
{
    input in;
    if (input_open(&in, "duet_load_market", path)) return NULL;
    duet_matrix *m = market_read(&in);
    input_close(&in);
    return m;
}

duet_matrix *(duet_read_market)(FILE *f)
{
    input in;
    if (input_stream(&in, "duet_read_market", f) || input_begins(&in, true)) return NULL;
    return market_read(&in);
}

/* ---- writing ---- */

static duet_status say(output *out, const char *text) { return output_write(out, text, strlen(text)); }

duet_status market_put_number(output *out, duet_dtype type, const void *p, char behind)
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
    if (type_is_float(type)) return market_put_number(out, type, p, '\n');
    if (!type_is_complex(type)) {
        integer_text(type, p, text);
        return say(out, strcat(text, "\n"));
    }
    TRY(market_put_number(out, part, p, ' '));
    return market_put_number(out, part, p + dtypes[part].bytes, '\n');
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

static duet_status check_rank(const char *who, const duet_matrix *m)
{
    char text[SHAPE_TEXT];
    TRY(matrix_check(who, m));
    if (m->at.rank == 2) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s(m: %s): m must have 2 axes", who,
                shape_text(text, m->at.type, m->at.rank, m->at.size));
}

static duet_status market_write(output *out, const duet_matrix *m)
{
    IN_DEFAULT_FP_ENVIRONMENT;
    const plain_numbers plain = plain_numbers_begin();
    const duet_status s = put_matrix(out, m);
    plain_numbers_end(plain);
    return output_close(out, s);
}

duet_status(duet_save_market)(const char *path, const duet_matrix *m)
{
    output out;
    TRY(check_rank("duet_save_market", m));
    TRY(output_open(&out, "duet_save_market", path));
    return market_write(&out, m);
}

duet_status(duet_write_market)(FILE *stream, const duet_matrix *m)
{
    output out;
    TRY(check_rank("duet_write_market", m));
    TRY(output_stream(&out, "duet_write_market", stream));
    return market_write(&out, m);
}
