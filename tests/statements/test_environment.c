/* test_environment.c - environment variables that name libraries and folders are ignored in a process
 * with raised rights. The program makes a setuid copy of itself, and runs it as another user. */
#define _GNU_SOURCE
#include "calibrate.h"
#include "tap.h"
#include <duet/duet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY "/nowhere/libduet-test.so"
#define NOBODY  65534

enum outcome { IGNORED, LIBRARY_USED = 1, FOLDER_USED = 2, NOT_RAISED = 4, NOT_RUN = 8 };

/* Executed in the copy. The result is the exit status. */
static int observe(void)
{
    char text[8000] = "", cache[CALIBRATION_PATH];
    FILE *out = fmemopen(text, sizeof text - 1, "w");
    if (!out) return NOT_RUN;
    duet_info(out);
    fclose(out);
    return (strstr(text, LIBRARY) ? LIBRARY_USED : 0) | (calibration_path(cache) ? FOLDER_USED : 0) |
           (getauxval(AT_SECURE) ? 0 : NOT_RAISED);
}

/* Runs the program as user and group `id`. */
static int run_as(const char *path, unsigned id)
{
    int status = -1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        setenv("DUET_FFT", LIBRARY, 1);
        setenv("XDG_CACHE_HOME", "/nowhere", 1);
        setenv("HOME", "/nowhere", 1);
        if (!id || (!setgid(id) && !setuid(id))) execl(path, path, "--observe", (char *)NULL);
        _exit(NOT_RUN);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : NOT_RUN;
}

/* Copies this program and gives the copy these permissions. *is_refused: the system refused only them. */
static bool copy_self(const char *to, mode_t mode, bool *is_refused)
{
    struct stat st;
    unlink(to); /* a program that runs, or has just run, cannot be written */
    const int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
              out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    bool good = in >= 0 && out >= 0 && !fstat(in, &st);
    for (off_t left = good ? st.st_size : 0; good && left > 0;) {
        const ssize_t n = sendfile(out, in, NULL, (size_t)left);
        good = n > 0;
        left -= n;
    }
    *is_refused = good && fchmod(out, mode);
    if (in >= 0) close(in);
    if (out >= 0) close(out);
    return good;
}

static void test_raised(const char *path, mode_t mode, const char *name)
{
    bool is_refused;
    CHECK(copy_self(path, mode, &is_refused), "the copy could not be made: %s", strerror(errno));
    const int seen = is_refused ? NOT_RAISED : run_as(path, NOBODY);
    if (seen & NOT_RAISED) {
        printf("ok %d - %s # SKIP the file system or a sandbox forbids it\n", ++tap_points, name);
        tap_checks = tap_failures = 0;
        return;
    }
    CHECK(!(seen & NOT_RUN), "the program did not run");
    CHECK(!(seen & LIBRARY_USED), "the library of DUET_FFT was opened");
    CHECK(!(seen & FOLDER_USED), "the folder of XDG_CACHE_HOME or HOME was used");
    tap_point(name);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/duet-environment-XXXXXX", copy[100];
    if (argc > 1 && !strcmp(argv[1], "--observe")) {
        const int seen = observe();
        fflush(stdout);
        _exit(seen); /* LeakSanitizer cannot run in a process with raised rights */
    }
    if (!mkdtemp(folder)) return 1;
    snprintf(copy, sizeof copy, "%s/program", folder);
    const bool has_fft = !(observe() & NOT_RUN) && run_as("/proc/self/exe", 0) & LIBRARY_USED;
    CHECK(run_as("/proc/self/exe", 0) & FOLDER_USED, "the folder of XDG_CACHE_HOME was not used");
    printf("# Fourier transforms: %s\n", has_fft ? "the variable names their library" : "built without");
    tap_point("the variables have an effect in an ordinary process");
    static const struct {
        mode_t bits;
        const char *name;
    } kinds[] = { { 04755, "a setuid program ignores them" }, { 02755, "a setgid program ignores them" } };
    for (int k = 0; k < 2; k++) {
        if (geteuid() == 0 && !chmod(folder, 0755)) test_raised(copy, kinds[k].bits, kinds[k].name);
        else printf("ok %d - %s # SKIP the test does not run as root\n", ++tap_points, kinds[k].name);
    }
    unlink(copy);
    rmdir(folder);
    return tap_end();
}
