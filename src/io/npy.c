/* npy.c - NumPy's .npy: a magic number, a version, a header that is a Python dictionary, then the
 * elements. https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#include "io.h"
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

typedef struct header {
    char descr[16];
    bool fortran;
    int rank;
    int64_t size[DUET_RANK_MAX];
    int seen; /* bits: descr, fortran_order, shape */
} header;

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

static duet_status take_shape(scan *s, header *h)
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

static duet_status take_descr(scan *s, header *h)
{
    skip_space(s);
    if (s->at < s->end && (*s->at == '[' || *s->at == '('))
        return input_failed(s->in, DUET_UNSUPPORTED, "structured element types are not supported");
    return take_string(s, h->descr, sizeof h->descr);
}

static duet_status take_entry(scan *s, header *h)
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

static duet_status parse(const input *in, const char *text, size_t bytes, header *h)
{
    scan s = { in, text, text + bytes };
    *h = (header){ .rank = 0 };
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

static duet_status read_header(input *in, header *h)
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
    return parse(in, text, bytes, h);
}

/* ---- reading the elements ---- */

static duet_status check_bools(const input *in, const unsigned char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (p[i] > 1) return bad_file(in, "a bool element is neither 0 nor 1");
    return DUET_OK;
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

static duet_status read_elements(input *in, duet_matrix *m, bool swapped)
{
    const duet_dtype type = m->at.type;
    const size_t bytes = (size_t)m->count * dtypes[type].bytes;
    if (!bytes) return DUET_OK;
    TRY(read_bytes(in, m, bytes));
    unsigned char *p = (duet_update)(m);
    if (!p) return no_memory(in);
    if (swapped) swap_bytes(p, bytes, dtypes[type_of_part(type)].bytes);
    if (type != DUET_BOOL) return DUET_OK;
    return check_bools(in, p, bytes);
}

/* Checks the size before memory is allocated, so that a bad header cannot cause a huge allocation. */
static duet_status check_size(const input *in, duet_dtype type, const header *h)
{
    int64_t bytes = (int64_t)dtypes[type].bytes;
    bool empty = false, overflows = false;
    for (int a = 0; a < h->rank; a++) {
        empty |= !h->size[a];
        overflows |= __builtin_mul_overflow(bytes, h->size[a], &bytes);
    }
    if (!empty && (overflows || (uint64_t)bytes > in->left))
        return bad_file(in, "the %s is too short for its shape", in->path ? "file" : "stream");
    if (shape_check(in->who, type, h->rank, h->size) != DUET_OK)
        return bad_file(in, "its shape is too large for memory");
    return limit_bytes(in, empty ? 0 : (uint64_t)bytes);
}

/* Fortran order is row-major order of the reversed axes. */
static duet_matrix *transposed_copy(const input *in, duet_matrix *m)
{
    duet_matrix *t = (duet_transposed)(m);
    duet_free(&m);
    if (!t) no_memory(in);
    return t;
}

static duet_matrix *new_for(const header *h, duet_dtype type)
{
    int64_t size[DUET_RANK_MAX];
    for (int a = 0; a < h->rank; a++) size[a] = h->size[h->fortran ? h->rank - 1 - a : a];
    return (duet_new_shape)(type, h->rank, size);
}

duet_matrix *npy_read(input *in)
{
    header h;
    duet_dtype type;
    bool swapped;
    if (read_header(in, &h)) return NULL;
    if (!type_named(h.descr, &type, &swapped)) {
        input_failed(in, DUET_UNSUPPORTED, "the element type \"%s\" is not supported", h.descr);
        return NULL;
    }
    if (check_size(in, type, &h)) return NULL;
    duet_matrix *m = new_for(&h, type);
    if (!m) {
        no_memory(in);
        return NULL;
    }
    if (read_elements(in, m, swapped)) duet_free(&m);
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

/* Is m in Fortran order: dense if its axes are reversed? */
static bool is_fortran(const duet_matrix *m)
{
    layout l = m->at;
    for (int a = 0; a < l.rank; a++) {
        l.size[a] = m->at.size[l.rank - 1 - a];
        l.stride[a] = m->at.stride[l.rank - 1 - a];
    }
    return !m->dense && layout_is_dense(&l);
}

/* Writes all that precedes the elements, padded so that they are aligned. Returns its size in bytes. */
static size_t make_front(const duet_matrix *m, unsigned char front[4 * ALIGNED + 128])
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
    unsigned char front[4 * ALIGNED + 128];
    return make_front(m, front) + (uint64_t)m->count * dtypes[m->at.type].bytes;
}

/* Writes the elements in row-major order, some thousand at a time. */
static duet_status write_strided(output *out, const duet_matrix *m, const char *p)
{
    const size_t each = dtypes[m->at.type].bytes;
    char some[1 << 14];
    int64_t i[DUET_RANK_MAX] = { 0 }, at = 0;
    size_t n = 0;
    for (int64_t left = m->count; left > 0; left--) {
        memcpy(some + n, p + at * (int64_t)each, each);
        n += each;
        if (n + each > sizeof some || left == 1) {
            TRY(output_write(out, some, n));
            n = 0;
        }
        for (int a = m->at.rank; a-- > 0;) {
            at += m->at.stride[a];
            if (++i[a] < m->at.size[a]) break;
            at -= i[a] * m->at.stride[a];
            i[a] = 0;
        }
    }
    return DUET_OK;
}

duet_status npy_write(output *out, const duet_matrix *m)
{
    unsigned char front[4 * ALIGNED + 128];
    const void *p;
    TRY(elements_of(m, &p));
    TRY(output_write(out, front, make_front(m, front)));
    if (!m->count) return DUET_OK;
    if (m->dense || is_fortran(m)) return output_write(out, p, (size_t)m->count * dtypes[m->at.type].bytes);
    return write_strided(out, m, p);
}

duet_status(duet_save_npy)(const char *path, const duet_matrix *m)
{
    output out;
    TRY(matrix_check("duet_save_npy", m));
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
