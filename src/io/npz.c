/* npz.c - reads a zip file of several .npy files. It reads the directory at the end of the file first,
 * and supports zip64 for large files. https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT */
#include "io.h"
#include <stdlib.h>
#include <string.h>

#define END       22u /* bytes of the record at the end of the file, without a comment */
#define LOCATOR   20u
#define END64     56u
#define ENTRY     46u /* bytes of an entry of the directory, without name, extra fields, comment */
#define LOCAL     30u /* bytes of the header in front of a member, without name, extra fields */
#define COMMENT   65535u
#define STORED    0
#define DEFLATED  8
#define DENSEST   1032u /* the largest compression ratio of deflate */
#define ENCRYPTED 1
#define ZIP64     1 /* the type of the extra field of zip64 */
#define IN_ZIP64  0xffffffffu

static uint32_t get16(const unsigned char *p) { return p[0] | (uint32_t)p[1] << 8; }
static uint32_t get32(const unsigned char *p) { return get16(p) | get16(p + 2) << 16; }
static uint64_t get64(const unsigned char *p) { return get32(p) | (uint64_t)get32(p + 4) << 32; }

/* ---- the directory ---- */

typedef struct directory {
    unsigned char *bytes;
    uint64_t size;
} directory;

typedef struct member {
    const char *name;
    size_t length;
    uint32_t flags, method, sum;
    uint64_t packed, size, at;
} member;

/* Finds the last record that can be the end record: its comment extends to the end of the file. */
static const unsigned char *find_end(const unsigned char *tail, size_t bytes)
{
    for (size_t i = bytes - END + 1; i-- > 0;)
        if (get32(tail + i) == 0x06054b50 && get16(tail + i + 20) == bytes - END - i) return tail + i;
    return NULL;
}

/* Finds the position and the size of the directory, from the record of zip64 if there is one. */
static duet_status locate(input *in, const unsigned char *end, uint64_t end_at, uint64_t *at, uint64_t *size)
{
    unsigned char locator[LOCATOR], big[END64];
    *size = get32(end + 12);
    *at = get32(end + 16);
    if (end_at < LOCATOR) return DUET_OK;
    TRY(input_seek(in, end_at - LOCATOR));
    TRY(input_read(in, locator, LOCATOR));
    if (get32(locator) != 0x07064b50) return DUET_OK;
    TRY(input_seek(in, get64(locator + 8)));
    TRY(input_read(in, big, END64));
    if (get32(big) != 0x06064b50) return bad_file(in, "the zip directory is not at the recorded position");
    *size = get64(big + 40);
    *at = get64(big + 48);
    return DUET_OK;
}

static duet_status find_directory(input *in, const unsigned char *tail, size_t bytes, uint64_t *at,
                                  uint64_t *size)
{
    const unsigned char *end = find_end(tail, bytes);
    if (!end) return bad_file(in, "this is not a zip file");
    const uint64_t end_at = in->size - bytes + (uint64_t)(end - tail);
    TRY(locate(in, end, end_at, at, size));
    if (*at <= end_at && *size <= end_at - *at) return DUET_OK;
    return bad_file(in, "the zip directory is not at the recorded position");
}

static duet_status read_directory(input *in, directory *d)
{
    const size_t bytes = in->size < END + COMMENT ? (size_t)in->size : END + COMMENT;
    uint64_t at = 0;
    if (bytes < END) return bad_file(in, "this is not a zip file");
    unsigned char *tail = malloc(bytes);
    if (!tail) return fail(DUET_NO_MEMORY, "%s: out of memory for %zu bytes", in->who, bytes);
    duet_status s = input_seek(in, in->size - bytes);
    if (s == DUET_OK) s = input_read(in, tail, bytes);
    if (s == DUET_OK) s = find_directory(in, tail, bytes, &at, &d->size);
    free(tail);
    TRY(s);
    d->bytes = malloc(d->size + 1);
    if (!d->bytes)
        return fail(DUET_NO_MEMORY, "%s: out of memory for %llu bytes", in->who, (unsigned long long)d->size);
    TRY(input_seek(in, at));
    return input_read(in, d->bytes, (size_t)d->size);
}

/* Sizes and positions that do not fit in 32 bits are in an extra field. It contains only those, in this
 * order. */
static duet_status widen(const input *in, const unsigned char *extra, size_t bytes, member *m)
{
    uint64_t *const wide[] = { &m->size, &m->packed, &m->at };
    for (const unsigned char *end = extra + bytes; end - extra >= 4;) {
        const unsigned char *field = extra + 4, *next = field + get16(extra + 2);
        if (next > end) return bad_file(in, "a field of the zip directory is too long");
        for (int k = 0; get16(extra) == ZIP64 && k < 3; k++) {
            if (*wide[k] != IN_ZIP64) continue;
            if (next - field < 8) return bad_file(in, "a size in the zip directory is missing");
            *wide[k] = get64(field);
            field += 8;
        }
        extra = next;
    }
    return DUET_OK;
}

/* Reads the entry at offset *from of the directory. Sets *from to the offset of the next entry, or to
 * the size of the directory. */
static duet_status next_member(const input *in, const directory *d, uint64_t *from, member *m)
{
    const unsigned char *p = d->bytes + *from;
    const uint64_t left = d->size - *from;
    if (left < ENTRY || get32(p) != 0x02014b50) return bad_file(in, "the zip directory is truncated");
    const uint32_t name = get16(p + 28), extra = get16(p + 30), all = ENTRY + name + extra + get16(p + 32);
    if (left < all) return bad_file(in, "the zip directory is truncated");
    *m = (member){ (const char *)p + ENTRY, name,          get16(p + 8),  get16(p + 10),
                   get32(p + 16),           get32(p + 20), get32(p + 24), get32(p + 42) };
    *from += all;
    if (memchr(m->name, 0, name)) return bad_file(in, "a name in the zip directory contains a zero byte");
    return widen(in, p + ENTRY + name, extra, m);
}

/* The length of the array's name, which is the member's name without ".npy". */
static size_t name_length(const member *m)
{
    return m->length >= 4 && !memcmp(m->name + m->length - 4, ".npy", 4) ? m->length - 4 : m->length;
}

static bool is_named(const member *m, const char *name)
{
    const size_t n = strlen(name);
    return (name_length(m) == n || m->length == n) && !memcmp(m->name, name, n);
}

static duet_status find_member(const input *in, const directory *d, const char *name, member *m)
{
    for (uint64_t from = 0; from < d->size;) {
        TRY(next_member(in, d, &from, m));
        if (is_named(m, name)) return DUET_OK;
    }
    return fail(DUET_BAD_ARGUMENT, "%s(\"%s\"): there is no array named \"%.200s\"", in->who, in->path, name);
}

/* ---- a member ---- */

static duet_status check_member(const input *in, const member *m)
{
    if (m->flags & ENCRYPTED)
        return fail(DUET_UNSUPPORTED, "%s(\"%s\"): encrypted arrays are not supported", in->who, in->path);
    if (m->method != STORED && m->method != DEFLATED)
        return fail(DUET_UNSUPPORTED, "%s(\"%s\"): zip compression method %u is not supported", in->who,
                    in->path, (unsigned)m->method);
    if (m->method == STORED ? m->size != m->packed : m->size / DENSEST > m->packed)
        return bad_file(in, "the sizes of an array in the zip directory contradict each other");
    return m->method == STORED ? DUET_OK : limit_ratio(in, m->size, m->packed);
}

static duet_status open_member(input *in, const member *m)
{
    unsigned char front[LOCAL];
    TRY(check_member(in, m));
    TRY(input_seek(in, m->at));
    TRY(input_read(in, front, LOCAL));
    if (get32(front) != 0x04034b50)
        return bad_file(in, "an array is not at the position that the zip directory records");
    TRY(input_seek(in, m->at + LOCAL + get16(front + 26) + get16(front + 28)));
    if (m->packed > in->left) return bad_file(in, "the file is truncated");
    if (m->method == DEFLATED) TRY(inflate_begin(in, m->packed));
    in->left = m->size;
    in->sum = 0;
    return DUET_OK;
}

/* Checks the CRC-32, which includes the bytes after the array. */
static duet_status check_sum(input *in, const member *m)
{
    char some[1 << 12];
    while (in->left) TRY(input_read(in, some, in->left < sizeof some ? (size_t)in->left : sizeof some));
    if (in->sum != m->sum) return bad_file(in, "the checksum of the array does not match");
    return DUET_OK;
}

static duet_matrix *read_member(input *in, const char *name)
{
    directory d = { NULL, 0 };
    member m;
    duet_matrix *x = NULL;
    duet_status s = read_directory(in, &d);
    if (s == DUET_OK) s = find_member(in, &d, name, &m);
    if (s == DUET_OK) s = open_member(in, &m);
    if (s == DUET_OK) x = npy_read(in);
    if (x && check_sum(in, &m)) duet_free(&x);
    free(d.bytes);
    return x;
}

duet_matrix *(duet_load_npz)(const char *path, const char *name)
{
    const char *who = "duet_load_npz";
    input in;
    if (!name) {
        fail(DUET_BAD_ARGUMENT, "%s: name must not be NULL", who);
        return NULL;
    }
    if (input_open(&in, who, path)) return NULL;
    duet_matrix *m = read_member(&in, name);
    input_close(&in);
    return m;
}

/* ---- names ---- */

/* Counts the names and their bytes. If `names` is not NULL, copies the names to it. */
static duet_status each_name(const input *in, const directory *d, char **names, size_t *count, size_t *bytes)
{
    char *text = names ? (char *)(names + *count + 1) : NULL;
    member m;
    size_t n = 0;
    *bytes = 0;
    for (uint64_t from = 0; from < d->size; n++) {
        TRY(next_member(in, d, &from, &m));
        const size_t length = name_length(&m);
        if (names) {
            names[n] = memcpy(text + *bytes, m.name, length);
            names[n][length] = 0;
        }
        *bytes += length + 1;
    }
    *count = n;
    return DUET_OK;
}

static char **names_of(const input *in, const directory *d)
{
    size_t count, bytes;
    if (each_name(in, d, NULL, &count, &bytes)) return NULL;
    if (limit_bytes(in, (count + 1) * sizeof(char *) + bytes)) return NULL;
    char **names = malloc((count + 1) * sizeof *names + bytes);
    if (!names) {
        fail(DUET_NO_MEMORY, "%s: out of memory for %zu names", in->who, count);
        return NULL;
    }
    names[count] = NULL;
    if (each_name(in, d, names, &count, &bytes)) {
        free(names);
        return NULL;
    }
    return names;
}

char **(duet_names_npz)(const char *path)
{
    input in;
    directory d = { NULL, 0 };
    if (input_open(&in, "duet_names_npz", path)) return NULL;
    char **names = read_directory(&in, &d) ? NULL : names_of(&in, &d);
    input_close(&in);
    free(d.bytes);
    return names;
}
