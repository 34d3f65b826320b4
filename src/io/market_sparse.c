/* market_sparse.c - Matrix Market's coordinate format: a banner, comments, the sizes and the number of
 * elements, then the row, the column and the value of each element as text.
 * https://math.nist.gov/MatrixMarket/formats.html */
#include "c_locale.h"
#include "fp_environment.h"
#include "market.h"
#include "min_max.h"
#include "sparse.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FIRST_ELEMENTS (1 << 12) /* allocated before anything is read */
#define FEW_ROWS       (1 << 24) /* accepted without elements: a row takes memory, too */

/* A file and the elements read from it so far. */
typedef struct coordinates {
    input *in;
    duet_dtype type;
    bool has_values;
    enum market_symmetry symmetry;
    int64_t rows, columns, listed; /* listed: elements in the file */
    int64_t count, room;
    int64_t *row, *column;
    char *values;
} coordinates;

/* ---- the banner and the sizes ---- */

static duet_status unsupported(const input *in, const char *what, const char *word)
{
    return input_failed(in, DUET_UNSUPPORTED, "the %s \"%.40s\" is not supported", what, word);
}

static duet_status take_field(coordinates *r, const char *word)
{
    r->has_values = strcasecmp(word, "pattern") != 0;
    r->type = strcasecmp(word, "complex") ? DUET_F64 : DUET_C128;
    if (!r->has_values || r->type == DUET_C128 || !strcasecmp(word, "real") || !strcasecmp(word, "double") ||
        !strcasecmp(word, "integer"))
        return DUET_OK;
    return unsupported(r->in, "field", word);
}

static duet_status take_banner(coordinates *r)
{
    char word[5][MARKET_TOKEN];
    int k = 0;
    for (int i = 0; i < 5; i++) TRY(market_word(r->in, word[i]));
    if (strcasecmp(word[0], "%%MatrixMarket") || strcasecmp(word[1], "matrix"))
        return bad_file(r->in, "this is not a Matrix Market file");
    if (!strcasecmp(word[2], "array"))
        return input_failed(r->in, DUET_UNSUPPORTED, "the file has the format \"array\", which duet_%s reads",
                            r->in->path ? "load_market" : "read_market");
    if (strcasecmp(word[2], "coordinate")) return unsupported(r->in, "format", word[2]);
    TRY(take_field(r, word[3]));
    while (k < 4 && strcasecmp(word[4], market_symmetries[k])) k++;
    if (k == 4 || (k == HERMITIAN && r->type != DUET_C128) || (k == SKEW && !r->has_values))
        return unsupported(r->in, "symmetry", word[4]);
    r->symmetry = (enum market_symmetry)k;
    return DUET_OK;
}

static duet_status take_sizes(coordinates *r)
{
    market_skip_comments(r->in->f);
    TRY(market_integer(r->in, &r->rows));
    TRY(market_integer(r->in, &r->columns));
    TRY(market_integer(r->in, &r->listed));
    if (r->rows < 0 || r->columns < 0 || r->listed < 0)
        return bad_file(r->in, "the sizes in the file must not be negative");
    if (r->symmetry && r->rows != r->columns)
        return bad_file(r->in, "a %s matrix must be square", market_symmetries[r->symmetry]);
    if (r->rows > (int64_t)1 << 48 || r->columns > (int64_t)1 << 48)
        return bad_file(r->in, "the sizes in the file are too large for memory");
    if (r->rows > FEW_ROWS + 64 * smaller(r->listed, (int64_t)1 << 48))
        return bad_file(r->in, "%lld rows are too many for %lld elements", (long long)r->rows,
                        (long long)r->listed);
    if (!r->in->endless && (uint64_t)r->listed > r->in->size / 4 + 1) /* an element takes four characters */
        return bad_file(r->in, "the %s is too short for its sizes", r->in->path ? "file" : "stream");
    const uint64_t each = dtypes[r->type].bytes + 2 * sizeof(int64_t), most = UINT64_MAX / 4 / each;
    if ((uint64_t)r->listed > most) return bad_file(r->in, "its sizes are too large for memory");
    return limit_bytes(r->in, (uint64_t)r->listed * each + (uint64_t)r->rows * sizeof(int64_t));
}

/* ---- elements ---- */

static duet_status grow(coordinates *r)
{
    const int64_t room = r->room ? 2 * r->room : FIRST_ELEMENTS;
    const size_t bytes = (size_t)room * sizeof *r->row;
    int64_t *row = realloc(r->row, bytes);
    if (row) r->row = row;
    int64_t *column = row ? realloc(r->column, bytes) : NULL;
    if (column) r->column = column;
    char *values = column ? realloc(r->values, (size_t)room * dtypes[r->type].bytes) : NULL;
    if (!values)
        return input_failed(r->in, DUET_NO_MEMORY, "a buffer of %lld elements could not be allocated",
                            (long long)room);
    r->values = values;
    r->room = room;
    return DUET_OK;
}

static duet_status append(coordinates *r, int64_t row, int64_t column, const double x[2])
{
    if (r->count == r->room) TRY(grow(r));
    r->row[r->count] = row;
    r->column[r->count] = column;
    memcpy(r->values + (size_t)r->count * dtypes[r->type].bytes, x, dtypes[r->type].bytes);
    r->count++;
    return DUET_OK;
}

static duet_status take_element(coordinates *r)
{
    int64_t row, column;
    double x[2] = { 1, 0 };
    TRY(market_integer(r->in, &row));
    TRY(market_integer(r->in, &column));
    for (int k = 0; r->has_values && k < (r->type == DUET_C128 ? 2 : 1); k++)
        TRY(market_number(r->in, &x[k]));
    if (row < 1 || row > r->rows || column < 1 || column > r->columns)
        return bad_file(r->in, "element %lld is in row %lld and column %lld of a %lld x %lld matrix",
                        (long long)r->count + 1, (long long)row, (long long)column, (long long)r->rows,
                        (long long)r->columns);
    TRY(append(r, row - 1, column - 1, x));
    if (!r->symmetry || row == column) return DUET_OK;
    if (r->symmetry == SKEW) x[0] = -x[0];
    if (r->symmetry != SYMMETRIC) x[1] = -x[1];
    return append(r, column - 1, row - 1, x);
}

static duet_status take_all(coordinates *r)
{
    TRY(take_banner(r));
    TRY(take_sizes(r));
    for (int64_t k = 0; k < r->listed; k++) TRY(take_element(r));
    return r->in->path ? market_end(r->in) : DUET_OK;
}

static duet_sparse *market_read(input *in)
{
    coordinates r = { .in = in };
    duet_sparse *made = NULL;
    IN_DEFAULT_FP_ENVIRONMENT;
    const plain_numbers plain = plain_numbers_begin();
    const duet_status s = take_all(&r);
    plain_numbers_end(plain);
    if (s == DUET_OK) {
        const coo list = { r.rows, r.columns, r.count, r.row, r.column, r.values, r.type };
        made = sparse_from_coo(in->who, &list, true);
    }
    free(r.row);
    free(r.column);
    free(r.values);
    return made;
}

duet_sparse *(duet_sparse_load_market)(const char *path)
{
    input in;
    if (input_open(&in, "duet_sparse_load_market", path)) return NULL;
    duet_sparse *s = market_read(&in);
    input_close(&in);
    return s;
}

duet_sparse *(duet_sparse_read_market)(FILE *f)
{
    input in;
    if (input_stream(&in, "duet_sparse_read_market", f) || input_begins(&in, true)) return NULL;
    return market_read(&in);
}

/* ---- writing ---- */

static duet_status put_place(output *out, int64_t row, int64_t column)
{
    char text[64];
    const int n = snprintf(text, sizeof text, "%lld %lld ", (long long)row + 1, (long long)column + 1);
    return output_write(out, text, (size_t)n);
}

static duet_status put_all(output *out, const sparse_view *v)
{
    const duet_dtype part = type_of_part(v->type);
    const bool two = type_is_complex(v->type);
    char front[120];
    const int n =
        snprintf(front, sizeof front, "%%%%MatrixMarket matrix coordinate %s general\n%lld %lld %lld\n",
                 two ? "complex" : "real", (long long)v->c.rows, (long long)v->c.columns,
                 (long long)v->c.count);
    TRY(output_write(out, front, (size_t)n));
    for (int64_t r = 0; r < v->c.rows; r++)
        for (int64_t k = csr_offset(&v->c, r); k < csr_offset(&v->c, r + 1); k++) {
            const char *x = (const char *)v->values + k * (int64_t)v->each;
            TRY(put_place(out, r, csr_column(&v->c, k)));
            TRY(market_put_number(out, part, x, two ? ' ' : '\n'));
            if (two) TRY(market_put_number(out, part, x + dtypes[part].bytes, '\n'));
        }
    return DUET_OK;
}

static duet_status market_write(output *out, const sparse_view *v)
{
    IN_DEFAULT_FP_ENVIRONMENT;
    const plain_numbers plain = plain_numbers_begin();
    const duet_status s = put_all(out, v);
    plain_numbers_end(plain);
    return output_close(out, s);
}

duet_status(duet_sparse_save_market)(const char *path, const duet_sparse *s)
{
    output out;
    sparse_view v;
    TRY(sparse_open("duet_sparse_save_market", s, &v));
    TRY(output_open(&out, "duet_sparse_save_market", path));
    return market_write(&out, &v);
}

duet_status(duet_sparse_write_market)(FILE *stream, const duet_sparse *s)
{
    output out;
    sparse_view v;
    TRY(sparse_open("duet_sparse_write_market", s, &v));
    TRY(output_stream(&out, "duet_sparse_write_market", stream));
    return market_write(&out, &v);
}
