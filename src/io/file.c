/* file.c - reads and writes the bytes of files; a new file replaces the old one only when it is
 * complete. */
#include "io.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static duet_status system_says(const char *who, const char *path)
{
    return fail(DUET_IO_ERROR, "%s(\"%s\"): %s", who, path, strerror(errno));
}

/* ---- CRC-32 ---- */

static uint32_t table[256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        table[i] = c;
    }
}

static uint32_t crc32_of(uint32_t sum, const void *p, size_t bytes)
{
    pthread_once(&table_once, make_table);
    uint32_t c = ~sum;
    for (const unsigned char *b = p; bytes-- > 0;) c = table[(c ^ *b++) & 255] ^ c >> 8;
    return ~c;
}

/* ---- reading ---- */

duet_status input_open(input *in, const char *who, const char *path)
{
    struct stat st;
    *in = (input){ .who = who, .path = path };
    if (!path) return fail(DUET_BAD_ARGUMENT, "%s: path must not be NULL", who);
    const int f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would wait for its other end */
    in->f = f < 0 ? NULL : fdopen(f, "rb");
    if (!in->f && f >= 0) close(f);
    if (!in->f || fstat(f, &st)) {
        input_close(in);
        return system_says(who, path);
    }
    if (!S_ISREG(st.st_mode)) {
        input_close(in);
        return fail(DUET_IO_ERROR, "%s(\"%s\"): this is not a regular file", who, path);
    }
    in->size = in->left = (uint64_t)st.st_size;
    return DUET_OK;
}

void input_close(input *in)
{
    const int e = errno;
    if (in->inflater) inflate_end(in);
    if (in->f) fclose(in->f);
    in->f = NULL;
    errno = e;
}

duet_status input_seek(input *in, uint64_t at)
{
    if (at > in->size) return bad_file(in, "the file refers to data beyond its end");
    in->left = in->size - at;
    if (!fseeko(in->f, (off_t)at, SEEK_SET)) return DUET_OK;
    return system_says(in->who, in->path);
}

static duet_status read_file(input *in, void *to, size_t bytes)
{
    if (fread(to, 1, bytes, in->f) == bytes) return DUET_OK;
    if (!ferror(in->f)) return bad_file(in, "the file is truncated");
    return system_says(in->who, in->path);
}

duet_status input_read(input *in, void *to, size_t bytes)
{
    if (bytes > in->left) return bad_file(in, "the file is truncated");
    TRY((in->inflater ? inflate_read : read_file)(in, to, bytes));
    in->left -= bytes;
    in->sum = crc32_of(in->sum, to, bytes);
    return DUET_OK;
}

/* ---- writing ---- */

/* Creates and opens a file with a new name in the folder of the target. */
static int open_beside(output *out, mode_t mode)
{
    const size_t bytes = strlen(out->target) + 40;
    out->beside = malloc(bytes);
    for (int n = 0, f; out->beside; n++) {
        snprintf(out->beside, bytes, "%s.%ld-%d~", out->target, (long)getpid(), n);
        f = open(out->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (f >= 0 || errno != EEXIST) return f;
    }
    errno = ENOMEM;
    return -1;
}

/* Returns a copy of the path. If the file exists, links are resolved. */
static char *resolved(const char *path, bool there)
{
    char *p = malloc(there ? PATH_MAX : strlen(path) + 1);
    if (p && there && !realpath(path, p)) {
        free(p);
        return NULL;
    }
    if (p && !there) return strcpy(p, path);
    return p;
}

/* Opens the file to write. If the path is not a regular file, such as a pipe, it is written directly. */
static FILE *open_target(output *out)
{
    struct stat st;
    const bool there = !stat(out->path, &st);
    if (there && !S_ISREG(st.st_mode)) return fopen(out->path, "wbe");
    out->target = resolved(out->path, there);
    if (!out->target) return NULL;
    const int f = open_beside(out, there ? st.st_mode & 07777 : 0666);
    if (f < 0) return NULL;
    return fdopen(f, "wb");
}

duet_status output_open(output *out, const char *who, const char *path)
{
    *out = (output){ .who = who, .path = path };
    if (!path) return fail(DUET_BAD_ARGUMENT, "%s: path must not be NULL", who);
    out->f = open_target(out);
    if (out->f) return DUET_OK;
    const bool memory = errno == ENOMEM;
    duet_status s = system_says(who, path);
    free(out->beside);
    free(out->target);
    return memory ? DUET_NO_MEMORY : s;
}

duet_status output_failed(const output *out) { return system_says(out->who, out->path); }

duet_status output_write(output *out, const void *from, size_t bytes)
{
    if (fwrite(from, 1, bytes, out->f) != bytes) return output_failed(out);
    out->written += bytes;
    out->sum = crc32_of(out->sum, from, bytes);
    return DUET_OK;
}

duet_status output_close(output *out, duet_status s)
{
    if (fclose(out->f) && s == DUET_OK) s = output_failed(out);
    if (out->beside && s == DUET_OK && rename(out->beside, out->target)) s = output_failed(out);
    if (out->beside && s != DUET_OK) unlink(out->beside);
    free(out->beside);
    free(out->target);
    return s;
}
