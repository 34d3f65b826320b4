/* file.c - reads and writes the bytes of files and streams; a new file replaces the old one only when it is
 * complete. */
#define _GNU_SOURCE /* for O_PATH */
#include "io.h"
#include "write_signals.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static duet_status system_says(const char *who, const char *path)
{
    const duet_status s = errno == ENOMEM ? DUET_NO_MEMORY : DUET_IO_ERROR;
    if (!path) return fail(s, "%s: %s", who, strerror(errno));
    return fail(s, "%s(\"%s\"): %s", who, path, strerror(errno));
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

duet_status path_check(const char *who, const char *path)
{
    return path ? DUET_OK : fail(DUET_BAD_ARGUMENT, "%s: path must not be NULL", who);
}

duet_status input_open(input *in, const char *who, const char *path)
{
    struct stat st;
    *in = (input){ .who = who, .path = path };
    TRY(path_check(who, path));
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

/* A handler of a signal may have interrupted the call. */
static bool interrupted(FILE *f)
{
    if (feof(f) || errno != EINTR) return false;
    clearerr(f);
    errno = 0;
    return true;
}

static duet_status read_stream(input *in, void *to, size_t bytes)
{
    size_t n = 0;
    errno = 0;
    do n += fread((char *)to + n, 1, bytes - n, in->f);
    while (n < bytes && interrupted(in->f));
    if (n == bytes) return DUET_OK;
    if (feof(in->f) || !errno) return bad_file(in, "the stream ends within the array");
    return system_says(in->who, NULL);
}

duet_status input_read(input *in, void *to, size_t bytes)
{
    if (bytes > in->left) return bad_file(in, "the %s is truncated", in->path ? "file" : "stream");
    if (!in->path) TRY(read_stream(in, to, bytes));
    else TRY((in->inflater ? inflate_read : read_file)(in, to, bytes));
    in->left -= bytes;
    if (in->path) in->sum = crc32_of(in->sum, to, bytes);
    return DUET_OK;
}

duet_status input_read_at(const input *in, uint64_t at, void *to, size_t bytes)
{
    for (size_t n = 0; n < bytes;) {
        const ssize_t k = pread(fileno(in->f), (char *)to + n, bytes - n, (off_t)(at + n));
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return system_says(in->who, in->path);
        if (k == 0) return bad_file(in, "the file is truncated");
        n += (size_t)k;
    }
    return DUET_OK;
}

/* ---- streams ---- */

/* What remains of a regular file; 0 for others, and for files of the system that have no size. */
static uint64_t bytes_behind(FILE *f)
{
    struct stat st;
    const int file = fileno(f);
    if (file < 0 || fstat(file, &st) || !S_ISREG(st.st_mode)) return 0;
    const off_t at = ftello(f);
    return at >= 0 && at < st.st_size ? (uint64_t)(st.st_size - at) : 0;
}

duet_status input_stream(input *in, const char *who, FILE *f)
{
    *in = (input){ .who = who, .f = f };
    if (!f) return fail(DUET_BAD_ARGUMENT, "%s: the stream must not be NULL", who);
    in->size = bytes_behind(f);
    in->endless = !in->size;
    if (in->endless) in->size = UINT64_MAX;
    in->left = in->size;
    return DUET_OK;
}

duet_status input_begins(input *in, bool skip_space)
{
    int c;
    errno = 0;
    do c = getc(in->f);
    while ((skip_space && c != EOF && isspace(c)) || (c == EOF && interrupted(in->f)));
    if (c != EOF) {
        ungetc(c, in->f);
        return DUET_OK;
    }
    if (feof(in->f)) return input_failed(in, DUET_END_OF_FILE, "the stream has no more matrices");
    return system_says(in->who, NULL);
}

/* ---- writing ---- */

static void open_folder(output *out)
{
    char *slash = strrchr(out->target, '/');
    const char *folder = !slash ? "." : slash == out->target ? "/" : out->target;
    out->name = slash ? slash + 1 : out->target;
    if (slash) *slash = 0;
    out->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Creates and opens a file with a new name in the folder of the target. The name is short, because the
 * name of the target may be as long as the system allows. */
static int open_beside(output *out, mode_t mode)
{
    open_folder(out);
    for (int n = 0; out->folder >= 0; n++) {
        snprintf(out->beside, sizeof out->beside, ".duet-%ld-%d~", (long)getpid(), n);
        const int f = openat(out->folder, out->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (f >= 0 || errno != EEXIST) return f;
    }
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
static int open_target(output *out)
{
    struct stat st;
    const bool there = !stat(out->path, &st);
    if (!there && errno == ENAMETOOLONG) return -1;
    if (there && !S_ISREG(st.st_mode)) return open(out->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    out->target = resolved(out->path, there);
    return out->target ? open_beside(out, there ? st.st_mode & 0777 : 0666) : -1;
}

static void output_free(output *out)
{
    if (out->folder >= 0) close(out->folder);
    free(out->target);
}

static void output_begin(output *out, const char *who, const char *path)
{
    out->who = who;
    out->path = path;
    out->stream = NULL;
    out->file = out->folder = -1;
    out->at = -1;
    out->target = NULL;
    out->written = out->held = 0;
    out->sum = 0;
    out->read_only = false;
}

duet_status output_stream(output *out, const char *who, FILE *stream)
{
    output_begin(out, who, NULL);
    out->stream = stream;
    return stream ? DUET_OK : fail(DUET_BAD_ARGUMENT, "%s: the stream must not be NULL", who);
}

duet_status output_open(output *out, const char *who, const char *path)
{
    output_begin(out, who, path);
    TRY(path_check(who, path));
    out->file = open_target(out);
    if (out->file >= 0) return DUET_OK;
    const duet_status s = system_says(who, path);
    output_free(out);
    return s;
}

static duet_status output_failed(const output *out) { return system_says(out->who, out->path); }

duet_status output_fail_within(const output *out, duet_status s)
{
    return out->path ? fail_within(s, "%s(\"%s\")", out->who, out->path) : fail_within(s, "%s", out->who);
}

/* Writes to the file, at its current position, or at `at` unless it is negative. */
static bool write_whole(int file, const char *from, size_t bytes, off_t at)
{
    const write_signals w = write_signals_begin();
    ssize_t n = 0;
    while (bytes > 0) {
        n = at < 0 ? write(file, from, bytes) : pwrite(file, from, bytes, at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        from += n;
        bytes -= (size_t)n;
        at += at < 0 ? 0 : n;
    }
    write_signals_end(&w);
    if (n == 0 && bytes > 0) errno = ENOSPC;
    return bytes == 0;
}

static bool write_to_stream(FILE *f, const char *from, size_t bytes)
{
    const write_signals w = write_signals_begin();
    errno = 0;
    const bool done = fwrite(from, 1, bytes, f) == bytes;
    write_signals_end(&w);
    return done;
}

static bool flush_stream(FILE *f)
{
    const write_signals w = write_signals_begin();
    const bool done = !fflush(f);
    write_signals_end(&w);
    return done;
}

static bool write_next(output *out, const char *from, size_t bytes)
{
    if (out->stream) return write_to_stream(out->stream, from, bytes);
    const bool done = write_whole(out->file, from, bytes, (off_t)out->at);
    if (out->at >= 0) out->at += (int64_t)bytes;
    return done;
}

static duet_status flush(output *out)
{
    const size_t held = out->held;
    out->held = 0;
    if (write_next(out, out->buffer, held)) return DUET_OK;
    return output_failed(out);
}

duet_status output_write(output *out, const void *from, size_t bytes)
{
    if (out->held + bytes > sizeof out->buffer) TRY(flush(out));
    if (bytes > sizeof out->buffer) {
        if (!write_next(out, from, bytes)) return output_failed(out);
    } else {
        memcpy(out->buffer + out->held, from, bytes);
        out->held += bytes;
    }
    out->written += bytes;
    out->sum = crc32_of(out->sum, from, bytes);
    return DUET_OK;
}

duet_status output_rewrite(output *out, uint64_t at, const void *from, size_t bytes)
{
    TRY(flush(out));
    if (write_whole(out->file, from, bytes, (off_t)at)) return DUET_OK;
    return output_failed(out);
}

duet_status output_flush(output *out) { return flush(out); }

duet_status output_move(output *out, uint64_t at)
{
    if (out->at >= 0 && (uint64_t)out->at + out->held == at) return DUET_OK;
    TRY(flush(out));
    out->at = (int64_t)at;
    return DUET_OK;
}

/* ---- files that several processes write ---- */

static bool set_size(int file, uint64_t bytes)
{
    const write_signals w = write_signals_begin();
    const bool done = !ftruncate(file, (off_t)bytes);
    write_signals_end(&w);
    return done;
}

/* The name contains the time, too. A process that does not see this file system must not find an old file of
 * the same name in its own folder. */
static int open_shared(output *out, mode_t mode)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    open_folder(out);
    if (out->folder < 0) return -1;
    snprintf(out->beside, sizeof out->beside, ".duet-%ld-%llx-%lx~", (long)getpid(),
             (unsigned long long)t.tv_sec, t.tv_nsec);
    return openat(out->folder, out->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
}

duet_status output_open_shared(output *out, const char *who, const char *path, uint64_t bytes, shared_file *f)
{
    struct stat st;
    output_begin(out, who, path);
    *f = (shared_file){ .is_regular = false };
    TRY(path_check(who, path));
    const bool there = !stat(path, &st);
    if (there && !S_ISREG(st.st_mode)) return DUET_OK;
    const mode_t mode = there ? st.st_mode & 0777 : 0666;
    out->target = !there && errno == ENAMETOOLONG ? NULL : resolved(path, there);
    if (out->target) out->file = open_shared(out, mode | S_IWUSR);
    if (out->file >= 0 && set_size(out->file, bytes)) {
        out->read_only = !(mode & S_IWUSR);
        f->is_regular = true;
        memcpy(f->beside, out->beside, sizeof f->beside);
        return DUET_OK;
    }
    const duet_status s = output_failed(out);
    return out->file >= 0 ? output_close(out, s) : (output_free(out), s);
}

static duet_status not_shared(const output *out, const shared_file *f)
{
    return fail(
        DUET_IO_ERROR,
        "%s(\"%s\"): this process cannot open the temporary file that rank 0 has made (\"%s\"): %s; all "
        "processes must use the same folder of one file system",
        out->who, out->path, f->beside, strerror(errno));
}

duet_status output_join(output *out, const char *who, const char *path, const shared_file *f)
{
    struct stat st;
    output_begin(out, who, path);
    TRY(path_check(who, path));
    out->target = resolved(path, !stat(path, &st));
    if (!out->target) return system_says(who, path);
    open_folder(out);
    if (out->folder >= 0) out->file = openat(out->folder, f->beside, O_WRONLY | O_CLOEXEC);
    const duet_status s = out->file < 0 ? not_shared(out, f) : DUET_OK;
    output_free(out);
    out->folder = -1; /* rank 0 renames the file */
    out->target = NULL;
    return s;
}

static bool make_read_only(int file)
{
    struct stat st;
    return !fstat(file, &st) && !fchmod(file, st.st_mode & 0777 & ~(mode_t)S_IWUSR);
}

duet_status output_close(output *out, duet_status s)
{
    if (s == DUET_OK) s = flush(out);
    if (out->stream) {
        const bool done = flush_stream(out->stream); /* also what was written before a failure */
        return s == DUET_OK && !done ? output_failed(out) : s;
    }
    if (out->read_only && s == DUET_OK && !make_read_only(out->file)) s = output_failed(out);
    if (close(out->file) && s == DUET_OK) s = output_failed(out);
    if (out->folder >= 0) {
        if (s == DUET_OK && renameat(out->folder, out->beside, out->folder, out->name))
            s = output_failed(out);
        if (s != DUET_OK) unlinkat(out->folder, out->beside, 0);
    }
    output_free(out);
    return s;
}
