/* calibration_file.c - stores measured costs in a file: one line for each curve, in integer
 * picoseconds, which do not depend on the locale. The last line is a checksum of all others,
 * because a damaged number may still be a number. */
#include "calibrate.h"
#include "environment.h"
#include "thread.h"
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

static void end_line(uint64_t sum, char line[LINE]) { snprintf(line, LINE, "end %016" PRIx64, sum); }

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

static bool is_curve(const char *line, int s, enum cost k, double *seconds)
{
    char name[50];
    const size_t length = (size_t)snprintf(name, sizeof name, "%s %s", device_keys[s], cost_infos[k].name);
    if (strncmp(line, name, length)) return false;
    line += length;
    for (int i = 0; i < cost_infos[k].points; i++) {
        char *end;
        if (line[0] != ' ' || line[1] < '0' || line[1] > '9') return false;
        seconds[i] = (double)strtoull(line + 1, &end, 10) / PICO;
        line = end;
    }
    return !*line;
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
            if (!next_line(in, line, &sum) || !is_curve(line, s, k, to[s].seconds[k])) return false;
    end_line(sum, want);
    return next_line(in, line, &sum) && !strcmp(line, want) && fgetc(in) == EOF;
}

/* Do not trust another user's file. */
static bool is_own_file(FILE *in)
{
    struct stat st;
    return !fstat(fileno(in), &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

/* Do not block, whatever kind of file it is. */
static FILE *open_file(const char *path)
{
    const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    FILE *in = file < 0 ? NULL : fdopen(file, "r");
    if (file >= 0 && !in) close(file);
    return in;
}

bool calibration_read(const char *path, costs to[COSTED])
{
    costs read[COSTED] = { 0 };
    FILE *in = open_file(path);
    if (!in) return false;
    bool sound = is_own_file(in) && read_curves(in, read);
    for (int s = 0; s < COSTED && sound; s++) sound = costs_sound(&read[s], s);
    fclose(in);
    if (sound) memcpy(to, read, sizeof read);
    return sound;
}

/* ---- writing: to a temporary file, which is then renamed ---- */

static void curve_line(const costs *c, int s, enum cost k, char line[LINE])
{
    int at = snprintf(line, LINE, "%s %s", device_keys[s], cost_infos[k].name);
    for (int i = 0; i < cost_infos[k].points; i++)
        at +=
            snprintf(line + at, (size_t)(LINE - at), " %" PRIu64, (uint64_t)(c->seconds[k][i] * PICO + 0.5));
}

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

const char *calibration_write(const char *path, const costs from[COSTED])
{
    char other[CALIBRATION_PATH + 8];
    make_folders(path);
    snprintf(other, sizeof other, "%s.XXXXXX", path);
    const int file = mkstemp(other);
    if (file < 0) return strerror(errno);
    if (write_to(file, from) && !rename(other, path)) return NULL;
    const char *why = strerror(errno);
    unlink(other);
    return why;
}
