/* npz_write.c - writes several .npy files into a zip file, uncompressed. All sizes and positions are in
 * the fields of zip64, so that small and large files have the same format.
 * https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT */
#include "io.h"
#include <stdlib.h>
#include <string.h>

#define VERSION  45    /* version of the zip format that has zip64 */
#define UTF8     0x800 /* flag: names are UTF-8 */
#define DAY_ONE  0x21  /* the date 1980-01-01, so that equal arrays give equal files */
#define IN_ZIP64 0xffffffffu
#define SUM_AT   14 /* offset of the checksum in a local header */

/* A little-endian record that is being built. */
typedef struct record {
    unsigned char bytes[128];
    size_t n;
} record;

static void put(record *r, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) r->bytes[r->n++] = (unsigned char)(v >> 8 * i);
}

typedef struct entry {
    uint64_t at, size;
    uint32_t sum;
} entry;

static size_t name_bytes(const duet_named *a) { return strlen(a->name) + 4; }

/* Appends the fields that are the same in the header of a member and in its directory entry. */
static void put_common(record *r, const duet_named *a, uint32_t sum, int extra)
{
    put(r, VERSION, 2);
    put(r, UTF8, 2);
    put(r, 0, 2);
    put(r, 0, 2);
    put(r, DAY_ONE, 2);
    put(r, sum, 4);
    put(r, IN_ZIP64, 4);
    put(r, IN_ZIP64, 4);
    put(r, name_bytes(a), 2);
    put(r, (uint64_t)extra, 2);
}

static duet_status put_named(output *out, const record *r, const duet_named *a)
{
    TRY(output_write(out, r->bytes, r->n));
    TRY(output_write(out, a->name, strlen(a->name)));
    return output_write(out, ".npy", 4);
}

/* Writes the checksum into the header, after all bytes were written. */
static duet_status put_sum(output *out, const entry *e)
{
    record r = { .n = 0 };
    put(&r, e->sum, 4);
    return output_rewrite(out, e->at + SUM_AT, r.bytes, r.n);
}

static duet_status put_member(output *out, const duet_named *a, entry *e)
{
    record r = { .n = 0 }, extra = { .n = 0 };
    *e = (entry){ .at = out->written, .size = npy_bytes(a->m) };
    put(&r, 0x04034b50, 4);
    put_common(&r, a, 0, 20);
    put(&extra, 1, 2);
    put(&extra, 16, 2);
    put(&extra, e->size, 8);
    put(&extra, e->size, 8);
    TRY(put_named(out, &r, a));
    TRY(output_write(out, extra.bytes, extra.n));
    out->sum = 0;
    TRY(npy_write(out, a->m));
    e->sum = out->sum;
    return put_sum(out, e);
}

static duet_status put_entry(output *out, const duet_named *a, const entry *e)
{
    record r = { .n = 0 }, extra = { .n = 0 };
    put(&r, 0x02014b50, 4);
    put(&r, VERSION, 2);
    put_common(&r, a, e->sum, 28);
    put(&r, 0, 2);
    put(&r, 0, 2);
    put(&r, 0, 2);
    put(&r, 0, 4);
    put(&r, IN_ZIP64, 4);
    put(&extra, 1, 2);
    put(&extra, 24, 2);
    put(&extra, e->size, 8);
    put(&extra, e->size, 8);
    put(&extra, e->at, 8);
    TRY(put_named(out, &r, a));
    return output_write(out, extra.bytes, extra.n);
}

static duet_status put_end(output *out, uint64_t count, uint64_t at)
{
    record r = { .n = 0 };
    const uint64_t here = out->written;
    put(&r, 0x06064b50, 4);
    put(&r, 44, 8);
    put(&r, VERSION, 2);
    put(&r, VERSION, 2);
    put(&r, 0, 8);
    put(&r, count, 8);
    put(&r, count, 8);
    put(&r, here - at, 8);
    put(&r, at, 8);
    put(&r, 0x07064b50, 4);
    put(&r, 0, 4);
    put(&r, here, 8);
    put(&r, 1, 4);
    put(&r, 0x06054b50, 4);
    put(&r, 0, 4);
    put(&r, 0xffff, 2);
    put(&r, 0xffff, 2);
    put(&r, IN_ZIP64, 4);
    put(&r, IN_ZIP64, 4);
    put(&r, 0, 2);
    return output_write(out, r.bytes, r.n);
}

static duet_status put_all(output *out, const duet_named *list, int count, entry *e)
{
    for (int k = 0; k < count; k++) TRY(put_member(out, &list[k], &e[k]));
    const uint64_t at = out->written;
    for (int k = 0; k < count; k++) TRY(put_entry(out, &list[k], &e[k]));
    return put_end(out, (uint64_t)count, at);
}

static duet_status check_list(const char *who, const duet_named *list, int count)
{
    if (count < 0 || (count && !list))
        return fail(DUET_BAD_ARGUMENT, "%s: list must not be NULL, nor count negative", who);
    for (int k = 0; k < count; k++) {
        if (!list[k].name || strlen(list[k].name) > 60000)
            return fail(DUET_BAD_ARGUMENT, "%s: array %d must have a name of at most 60000 bytes", who, k);
        TRY(matrix_check(who, list[k].m));
        for (int i = 0; i < k; i++)
            if (!strcmp(list[i].name, list[k].name))
                return fail(DUET_BAD_ARGUMENT, "%s: two arrays are named \"%.200s\"", who, list[k].name);
    }
    return DUET_OK;
}

duet_status(duet_save_npz)(const char *path, const duet_named *list, int count)
{
    const char *who = "duet_save_npz";
    output out;
    TRY(check_list(who, list, count));
    entry *e = calloc((size_t)count + 1, sizeof *e);
    if (!e) return fail(DUET_NO_MEMORY, "%s: out of memory for %d entries", who, count);
    duet_status s = output_open(&out, who, path);
    if (s == DUET_OK) s = output_close(&out, put_all(&out, list, count, e));
    free(e);
    return s;
}
