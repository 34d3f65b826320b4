/* npy.c - NumPy's .npy: a magic number, a version, a header that is a Python dictionary, then the
 * elements. https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#include "npy.h"
#include "elements.h"
#include "min_max.h"
#include <stdlib.h>
#include <string.h>

#define HEADER_MOST 10000 /* bytes; NumPy has the same limit */
#define FRONT       10    /* magic number, version 1.0, length of the header */
#define ALIGNED     64
#define FIRST_BYTES ((size_t)1 << 20) /* of a stream, allocated before anything is read */

static const unsigned char magic[6] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };
static const bool here_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

/* ---- element types ---- */

/* bf16 is stored as by the Python package ml_dtypes: as two opaque bytes. */
static char kind_of(duet_dtype t) { return t == DUET_BF16 ? 'V' : dtypes[t].name[0]; }

static char order_of(duet_dtype t)
{
    if (dtypes[t].bytes == 1) return '|';
    return here_is_big ? '>' : '<';
}

static bool type_named(const char *descr, duet_dtype *type, bool *swapped)
{
    char *end;
    const long bytes = strchr("<>|=", *descr) && *descr && descr[1] ? strtol(descr + 2, &end, 10) : 0;
    if (bytes <= 0 || *end) return false;
    *swapped = *descr == (here_is_big ? '<' : '>');
    for (int t = 0; t < DUET_DTYPE_COUNT; t++)
        if (kind_of((duet_dtype)t) == descr[1] && dtypes[t].bytes == (size_t)bytes) {
            *type = (duet_dtype)t;
            return true;
        }
    return false;
}

static void swap_bytes(unsigned char *p, size_t bytes, size_t each)
{
    for (unsigned char *end = p + bytes; p < end; p += each)
        for (size_t i = 0; i < each / 2; i++) {
            const unsigned char b = p[i];
            p[i] = p[each - 1 - i];
            p[each - 1 - i] = b;
        }
}

/* ---- reading the header ---- */

typedef struct scan {
    const input *in;
    const char *at, *end;
} scan;

static void skip_space(scan *s)
{
    while (s->at < s->end && strchr(" \t\n\r", *s->at) && *s->at) s->at++;
}

static bool take(scan *s, char c)
{
    skip_space(s);
    const bool is = s->at < s->end && *s->at == c;
    s->at += is;
    return is;
}

static bool take_word(scan *s, const char *word)
{
    const size_t n = strlen(word);
    skip_space(s);
    const bool is = (size_t)(s->end - s->at) >= n && !memcmp(s->at, word, n);
    s->at += is ? n : 0;
    return is;
}

static duet_status take_string(scan *s, char *to, size_t capacity)
{
    skip_space(s);
    const char quote = s->at < s->end ? *s->at : 0;
    if (quote != '\'' && quote != '"')
        return bad_file(s->in, "its header must have a string at this position");
    size_t n = 0;
    for (s->at++; s->at < s->end && *s->at != quote; s->at++, n++)
        if (n + 1 < capacity) to[n] = *s->at;
    if (s->at == s->end || n + 1 > capacity || memchr(to, 0, n))
        return bad_file(s->in, "its header has an invalid string");
    s->at++;
    to[n] = 0;
    return DUET_OK;
}

static duet_status take_size(scan *s, int64_t *size)
{
    skip_space(s);
    const char *first = s->at;
    for (*size = 0; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
        if (__builtin_mul_overflow(*size, 10, size) || __builtin_add_overflow(*size, *s->at - '0', size))
            return bad_file(s->in, "a size in its shape is too large for memory");
    if (s->at <= first) return bad_file(s->in, "its shape must consist of integers");
    return DUET_OK;
}

static duet_status take_shape(scan *s, npy_header *h)
{
    if (!take(s, '(')) return bad_file(s->in, "its shape must be a tuple");
    while (!take(s, ')')) {
        if (h->rank == DUET_RANK_MAX)
            return input_failed(s->in, DUET_UNSUPPORTED, "arrays of more than %d axes are not supported",
                                DUET_RANK_MAX);
        TRY(take_size(s, &h->size[h->rank++]));
        take(s, 'L'); /* Python 2 wrote this suffix */
        if (!take(s, ',') && (s->at == s->end || *s->at != ')'))
            return bad_file(s->in, "its shape has no closing parenthesis");
    }
    return DUET_OK;
}

static duet_status take_bool(scan *s, bool *to)
{
    *to = take_word(s, "True");
    if (*to || take_word(s, "False")) return DUET_OK;
    return bad_file(s->in, "fortran_order must be True or False");
}

static duet_status take_descr(scan *s, npy_header *h)
{
    skip_space(s);
    if (s->at < s->end && (*s->at == '[' || *s->at == '('))
        return input_failed(s->in, DUET_UNSUPPORTED, "structured element types are not supported");
    return take_string(s, h->descr, sizeof h->descr);
}

static duet_status take_entry(scan *s, npy_header *h)
{
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    char key[16];
    int k = 0;
    TRY(take_string(s, key, sizeof key));
    while (k < 3 && strcmp(key, keys[k])) k++;
    if (k == 3 || h->seen >> k & 1)
        return bad_file(s->in, "its header has the key \"%s\", which is unknown or repeated", key);
    if (!take(s, ':')) return bad_file(s->in, "its header is not a dictionary");
    h->seen |= 1 << k;
    if (k == 0) return take_descr(s, h);
    if (k == 1) return take_bool(s, &h->fortran);
    return take_shape(s, h);
}

static duet_status parse(const input *in, const char *text, size_t bytes, npy_header *h)
{
    scan s = { in, text, text + bytes };
    *h = (npy_header){ .rank = 0 };
    if (!take(&s, '{')) return bad_file(in, "its header is not a dictionary");
    while (!take(&s, '}')) {
        TRY(take_entry(&s, h));
        if (!take(&s, ',') && (s.at == s.end || *s.at != '}'))
            return bad_file(in, "its header has no closing brace");
    }
    skip_space(&s);
    if (s.at == s.end && h->seen == 7) return DUET_OK;
    return bad_file(in, "its header lacks a key or has data after the dictionary");
}

duet_status npy_read_header(input *in, npy_header *h)
{
    unsigned char front[8], length[4] = { 0 };
    char text[HEADER_MOST];
    TRY(input_read(in, front, sizeof front));
    if (memcmp(front, magic, sizeof magic)) return bad_file(in, "this is not an array in the .npy format");
    if (front[6] < 1 || front[6] > 3 || front[7])
        return input_failed(in, DUET_UNSUPPORTED, "version %d.%d of the .npy format is not supported",
                            front[6], front[7]);
    TRY(input_read(in, length, front[6] == 1 ? 2 : 4));
    const uint32_t bytes =
        length[0] | (uint32_t)length[1] << 8 | (uint32_t)length[2] << 16 | (uint32_t)length[3] << 24;
    if (bytes > sizeof text) return bad_file(in, "its header is too long (%lu bytes)", (unsigned long)bytes);
    TRY(input_read(in, text, bytes));
    TRY(parse(in, text, bytes, h));
    if (type_named(h->descr, &h->type, &h->swapped)) return DUET_OK;
    return input_failed(in, DUET_UNSUPPORTED, "the element type \"%s\" is not supported", h->descr);
}

/* ---- reading the elements ---- */

static duet_status check_bools(const input *in, const unsigned char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (p[i] > 1) return bad_file(in, "a bool element is neither 0 nor 1");
    return DUET_OK;
}

duet_status npy_convert(const input *in, const npy_header *h, unsigned char *p, size_t bytes)
{
    if (h->swapped) swap_bytes(p, bytes, dtypes[type_of_part(h->type)].bytes);
    return h->type == DUET_BOOL ? check_bools(in, p, bytes) : DUET_OK;
}

/* Reads the first part of the elements, at least half of the bytes that the header claims, or none if these
 * are few. The buffer grows as data arrive. *ahead: to be freed, also on failure */
static duet_status read_ahead(input *in, size_t bytes, unsigned char **ahead, size_t *read)
{
    size_t capacity = FIRST_BYTES;
    if (!in->endless || bytes <= FIRST_BYTES) return DUET_OK;
    for (;;) {
        unsigned char *p = realloc(*ahead, capacity);
        if (!p)
            return input_failed(in, DUET_NO_MEMORY, "a buffer of %zu bytes could not be allocated", capacity);
        *ahead = p;
        TRY(input_read(in, p + *read, capacity - *read));
        *read = capacity;
        if (bytes - *read <= *read) return DUET_OK;
        capacity = smaller(2 * capacity, bytes - bytes / 2);
    }
}

static duet_status read_bytes(input *in, duet_matrix *m, size_t bytes)
{
    unsigned char *ahead = NULL, *p;
    size_t read = 0;
    duet_status s = read_ahead(in, bytes, &ahead, &read);
    if (s == DUET_OK) {
        p = (duet_overwrite)(m);
        if (p && read) memcpy(p, ahead, read);
        free(ahead);
        return p ? input_read(in, p + read, bytes - read) : no_memory(in);
    }
    free(ahead);
    return s;
}

static duet_status read_elements(input *in, duet_matrix *m, const npy_header *h)
{
    const size_t bytes = (size_t)m->count * dtypes[h->type].bytes;
    if (!bytes) return DUET_OK;
    TRY(read_bytes(in, m, bytes));
    unsigned char *p = (duet_update)(m);
    if (!p) return no_memory(in);
    return npy_convert(in, h, p, bytes);
}

/* Checks the size before memory is allocated, so that a bad header cannot cause a huge allocation. */
duet_status npy_check_size(const input *in, const npy_header *h, uint64_t *all)
{
    int64_t bytes = (int64_t)dtypes[h->type].bytes;
    bool empty = false, overflows = false;
    for (int a = 0; a < h->rank; a++) {
        empty |= !h->size[a];
        overflows |= __builtin_mul_overflow(bytes, h->size[a], &bytes);
    }
    if (!empty && (overflows || (uint64_t)bytes > in->left))
        return bad_file(in, "the %s is too short for its shape", in->path ? "file" : "stream");
    if (shape_check(in->who, h->type, h->rank, h->size) != DUET_OK)
        return bad_file(in, "its shape is too large for memory");
    *all = empty ? 0 : (uint64_t)bytes;
    return DUET_OK;
}

/* Fortran order is row-major order of the reversed axes. */
static duet_matrix *transposed_copy(const input *in, duet_matrix *m)
{
    duet_matrix *t = (duet_transposed)(m);
    duet_free(&m);
    if (!t) no_memory(in);
    return t;
}

static duet_matrix *new_for(const npy_header *h)
{
    int64_t size[DUET_RANK_MAX];
    for (int a = 0; a < h->rank; a++) size[a] = h->size[h->fortran ? h->rank - 1 - a : a];
    return (duet_new_shape)(h->type, h->rank, size);
}

duet_matrix *npy_read(input *in)
{
    npy_header h;
    uint64_t bytes;
    if (npy_read_header(in, &h) || npy_check_size(in, &h, &bytes) || limit_bytes(in, bytes)) return NULL;
    duet_matrix *m = new_for(&h);
    if (!m) {
        no_memory(in);
        return NULL;
    }
    if (read_elements(in, m, &h)) duet_free(&m);
    if (m && h.fortran) return transposed_copy(in, m);
    return m;
}

duet_matrix *(duet_load_npy)(const char *path)
{
    input in;
    if (input_open(&in, "duet_load_npy", path)) return NULL;
    duet_matrix *m = npy_read(&in);
    input_close(&in);
    return m;
}

duet_matrix *(duet_read_npy)(FILE *f)
{
    input in;
    if (input_stream(&in, "duet_read_npy", f) || input_begins(&in, false)) return NULL;
    return npy_read(&in);
}

/* ---- writing ---- */

duet_matrix npy_reversed(const duet_matrix *m)
{
    duet_matrix t = *m;
    for (int a = 0; a < t.at.rank; a++) {
        t.at.size[a] = m->at.size[t.at.rank - 1 - a];
        t.at.stride[a] = m->at.stride[t.at.rank - 1 - a];
    }
    t.dense = layout_is_dense(&t.at);
    return t;
}

/* Is m in Fortran order: dense if its axes are reversed? */
static bool is_fortran(const duet_matrix *m) { return !m->dense && npy_reversed(m).dense; }

duet_matrix npy_as_stored(const duet_matrix *m) { return is_fortran(m) ? npy_reversed(m) : *m; }

size_t npy_front(const duet_matrix *m, unsigned char front[NPY_FRONT_MOST])
{
    const duet_dtype t = m->at.type;
    char *text = (char *)front + FRONT;
    int n = sprintf(text, "{'descr': '%c%c%d', 'fortran_order': %s, 'shape': (", order_of(t), kind_of(t),
                    (int)dtypes[t].bytes, is_fortran(m) ? "True" : "False");
    for (int a = 0; a < m->at.rank; a++)
        n += sprintf(text + n, "%s%lld%s", a ? ", " : "", (long long)m->at.size[a],
                     m->at.rank == 1 ? "," : "");
    n += sprintf(text + n, "), }");
    while ((FRONT + n + 1) % ALIGNED) text[n++] = ' ';
    text[n++] = '\n';
    memcpy(front, magic, sizeof magic);
    front[6] = 1;
    front[7] = 0;
    front[8] = (unsigned char)n;
    front[9] = (unsigned char)(n >> 8);
    return (size_t)(FRONT + n);
}

uint64_t npy_bytes(const duet_matrix *m)
{
    unsigned char front[NPY_FRONT_MOST];
    return npy_front(m, front) + (uint64_t)m->count * dtypes[m->at.type].bytes;
}

duet_status npy_write_from(output *out, const duet_matrix *m, const void *p)
{
    unsigned char front[NPY_FRONT_MOST];
    cursor c;
    const duet_matrix as_stored = npy_as_stored(m);
    TRY(output_write(out, front, npy_front(m, front)));
    if (!p && m->count) return npy_write_parts(out, &as_stored);
    cursor_begin(&c, &as_stored, (void *)p);
    return cursor_write(&c, m->count, out);
}

duet_status npy_write(output *out, const duet_matrix *m)
{
    const void *p = NULL;
    const duet_matrix as_stored = npy_as_stored(m);
    if (!npy_has_near_parts(&as_stored)) TRY(elements_of(m, &p));
    return npy_write_from(out, m, p);
}

duet_status(duet_save_npy)(const char *path, const duet_matrix *m)
{
    output out;
    TRY(matrix_check("duet_save_npy", m));
    if (npy_is_spread(m)) return npy_save_together(path, m);
    TRY(output_open(&out, "duet_save_npy", path));
    return output_close(&out, npy_write(&out, m));
}

duet_status(duet_write_npy)(FILE *stream, const duet_matrix *m)
{
    output out;
    TRY(matrix_check("duet_write_npy", m));
    TRY(output_stream(&out, "duet_write_npy", stream));
    return output_close(&out, npy_write(&out, m));
}
