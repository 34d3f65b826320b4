/* calibration_file.c - stores measured costs in a file: one line for each curve, in integer
 * picoseconds, which do not depend on the locale. The last line is a checksum of all others,
 * because a damaged number may still be a number. The file is ignored if another user could have
 * written it. */
#include "calibrate.h"
#include "environment.h"
#include "thread.h"
#include "write_signals.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_LINE "duet costs 1, of version " DUET_VERSION
#define LINE       1000
#define PICO       1e12

/* Limits of a file that is read. */
#define BYTES_MOST   (LINE * (COSTED * COSTS + COSTED + 2))
#define SECONDS_MOST 2000 /* below 2^51 picoseconds, numbers are restored exactly */

static const char *const device_keys[COSTED] = { [HOST] = "cpu", [DEFAULT_GPU] = "gpu" };

/* ---- the path ---- */

#define HASH_START 14695981039346656037u /* FNV-1a */
static uint64_t hash(uint64_t h, const char *text)
{
    for (; *text; text++) h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

/* The first line, and one for each device: what the costs depend on. */
static void head_line(int i, char line[LINE])
{
    if (i == 0) snprintf(line, LINE, "%s", FIRST_LINE);
    else device_machine(i - 1)->identify(line, LINE - 1);
    line[strcspn(line, "\n")] = '\0';
}

static bool cache_folder(char *path, size_t size)
{
    const char *given = environment_trusted("XDG_CACHE_HOME"), *user = environment_trusted("HOME");
    const bool is_given = given && *given == '/';
    if (!is_given && (!user || *user != '/')) return false;
    const int length = is_given ? snprintf(path, size, "%s", given) : snprintf(path, size, "%s/.cache", user);
    return length > 0 && (size_t)length < size;
}

bool calibration_path(char path[CALIBRATION_PATH])
{
    char folder[CALIBRATION_PATH - 40], line[LINE];
    uint64_t key = HASH_START;
    if (!cache_folder(folder, sizeof folder)) return false;
    for (int i = 0; i <= COSTED; i++) {
        head_line(i, line);
        key = hash(key, line);
    }
    snprintf(path, CALIBRATION_PATH, "%s/duet/costs-%016" PRIx64, folder, key);
    return true;
}

static void curve_line(const costs *c, int s, enum cost k, char line[LINE])
{
    int at = snprintf(line, LINE, "%s %s", device_keys[s], cost_infos[k].name);
    for (int i = 0; i < cost_infos[k].points; i++)
        at +=
            snprintf(line + at, (size_t)(LINE - at), " %" PRIu64, (uint64_t)(c->seconds[k][i] * PICO + 0.5));
}

static void end_line(uint64_t sum, char line[LINE]) { snprintf(line, LINE, "end %016" PRIx64, sum); }

/* ---- the folder and the file: only those that nobody else can change ---- */

/* Does it belong to the user that this process acts for, and can nobody else write it? */
static bool is_own(const struct stat *st) { return st->st_uid == geteuid() && !(st->st_mode & 022); }

/* Opens the folder of the path and sets *name to the rest. Negative: others could change its content. */
static int open_folder(const char *path, const char **name)
{
    struct stat st;
    char folder[CALIBRATION_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    char *last = strrchr(folder, '/');
    *last = '\0';
    *name = path + (last - folder) + 1;
    const int f = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f < 0) return f;
    if (!fstat(f, &st) && is_own(&st)) return f;
    close(f);
    errno = EPERM;
    return -1;
}

/* Opens the file for reading. O_NONBLOCK: do not wait, whatever kind of file it is. */
static FILE *open_file(const char *path)
{
    struct stat st;
    const char *name;
    const int folder = open_folder(path, &name);
    if (folder < 0) return NULL;
    const int f = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    close(folder);
    if (f < 0) return NULL;
    const bool sound =
        !fstat(f, &st) && S_ISREG(st.st_mode) && is_own(&st) && st.st_nlink == 1 && st.st_size <= BYTES_MOST;
    FILE *in = sound ? fdopen(f, "r") : NULL;
    if (!in) close(f);
    return in;
}

/* ---- reading: if one line is not exactly as it would be written, the file is ignored ---- */

static bool next_line(FILE *in, char line[LINE], uint64_t *sum)
{
    if (!fgets(line, LINE, in)) return false;
    char *end = strchr(line, '\n');
    if (end) {
        *end = '\0';
        *sum = hash(*sum, line);
    }
    return end != NULL;
}

static bool is_curve(const char *text, int s, enum cost k, costs *to)
{
    char name[50], again[LINE];
    const char *line = text;
    const size_t length = (size_t)snprintf(name, sizeof name, "%s %s", device_keys[s], cost_infos[k].name);
    if (strncmp(line, name, length)) return false;
    line += length;
    for (int i = 0; i < cost_infos[k].points; i++) {
        char *end;
        if (line[0] != ' ' || line[1] < '0' || line[1] > '9') return false;
        to->seconds[k][i] = (double)strtoull(line + 1, &end, 10) / PICO;
        if (to->seconds[k][i] > SECONDS_MOST) return false;
        line = end;
    }
    curve_line(to, s, k, again);
    return !strcmp(text, again);
}

static bool read_curves(FILE *in, costs to[COSTED])
{
    char line[LINE], want[LINE];
    uint64_t sum = HASH_START;
    for (int i = 0; i <= COSTED; i++) {
        head_line(i, want);
        if (!next_line(in, line, &sum) || strcmp(line, want)) return false;
    }
    for (int s = 0; s < COSTED; s++)
        for (enum cost k = 0; k < COSTS; k++)
            if (!next_line(in, line, &sum) || !is_curve(line, s, k, &to[s])) return false;
    end_line(sum, want);
    return next_line(in, line, &sum) && !strcmp(line, want) && fgetc(in) == EOF;
}

bool calibration_read(const char *path, costs to[COSTED])
{
    costs read[COSTED] = { 0 };
    FILE *in = open_file(path);
    if (!in) return false;
    bool sound = read_curves(in, read);
    for (int s = 0; s < COSTED && sound; s++) sound = costs_sound(&read[s], s);
    fclose(in);
    if (sound) memcpy(to, read, sizeof read);
    return sound;
}

/* ---- writing: to a temporary file, which is then renamed ---- */

static void write_line(FILE *out, const char *line, uint64_t *sum)
{
    fprintf(out, "%s\n", line);
    *sum = hash(*sum, line);
}

static void write_all(FILE *out, const costs from[COSTED])
{
    char line[LINE];
    uint64_t sum = HASH_START;
    for (int i = 0; i <= COSTED; i++) {
        head_line(i, line);
        write_line(out, line, &sum);
    }
    for (int s = 0; s < COSTED; s++)
        for (enum cost k = 0; k < COSTS; k++) {
            curve_line(&from[s], s, k, line);
            write_line(out, line, &sum);
        }
    end_line(sum, line);
    write_line(out, line, &sum);
}

/* Create the folder of the path, and its parent. */
static void make_folders(const char *path)
{
    char folder[CALIBRATION_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    char *last = strrchr(folder, '/');
    *last = '\0';
    char *before = strrchr(folder, '/');
    *before = '\0';
    mkdir(folder, 0700);
    *before = '/';
    mkdir(folder, 0700);
}

static bool write_to(int file, const costs from[COSTED])
{
    FILE *out = fdopen(file, "w");
    if (!out) {
        close(file);
        return false;
    }
    write_all(out, from);
    const bool good = !ferror(out);
    return fclose(out) == 0 && good;
}

/* Creates a file with a new name, which no other user can read. */
static int create_beside(int folder, char name[64])
{
    for (int n = 0;; n++) {
        snprintf(name, 64, "new-%ld-%d", (long)getpid(), n);
        const int f = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (f >= 0 || errno != EEXIST) return f;
    }
}

static bool replace(int folder, const char *name, const costs from[COSTED])
{
    char other[64];
    const int file = create_beside(folder, other);
    if (file < 0) return false;
    const write_signals w = write_signals_begin();
    const bool written = write_to(file, from);
    write_signals_end(&w);
    if (written && !renameat(folder, other, folder, name)) return true;
    const int e = errno;
    unlinkat(folder, other, 0);
    errno = e;
    return false;
}

const char *calibration_write(const char *path, const costs from[COSTED])
{
    const char *name;
    make_folders(path);
    const int folder = open_folder(path, &name);
    if (folder < 0) return errno == EPERM ? "other users can change its folder" : strerror(errno);
    const char *why = replace(folder, name, from) ? NULL : strerror(errno);
    close(folder);
    return why;
}
