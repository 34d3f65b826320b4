/* test_cost.c - the expected time of steps with made-up costs, and the file of measured costs:
 * intact, damaged, foreign. */
#include "calibrate.h"
#include "cost.h"
#include "random_matrix.h"
#include "tap.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static rng gen;

/* Random increasing curves. */
static costs drawn_costs(void)
{
    costs c = { 0 };
    for (int k = 0; k < COSTS; k++)
        for (int i = 0; i < cost_infos[k].points; i++)
            c.seconds[k][i] = (i ? c.seconds[k][i - 1] : 0) + exp2(rng_real(&gen, -30, -8));
    return c;
}

static void test_curves(void)
{
    for (int trial = 0; trial < 200; trial++) {
        const costs c = drawn_costs();
        const enum cost k = (enum cost)rng_below(&gen, COSTS);
        const cost_info *info = &cost_infos[k];
        const double *x = info->work, *y = c.seconds[k], end = x[info->points - 1];
        for (int i = 0; i < info->points; i++)
            CHECK(fabs(cost_at(&c, k, x[i]) - y[i]) <= 1e-12 * y[i], "%s: the cost at point %d is wrong",
                  info->name, i);
        CHECK(cost_at(&c, k, 0) == y[0] && cost_at(&c, k, x[0] / 2) == y[0],
              "%s: the cost below the first point is wrong", info->name);
        CHECK(fabs(cost_at(&c, k, (x[0] + x[1]) / 2) - (y[0] + y[1]) / 2) <= 1e-12 * y[1],
              "%s: the cost between two points is wrong", info->name);
        double before = 0;
        for (double w = x[0] / 10; w < end * 100; w *= 1 + rng_real(&gen, 0, 1)) {
            const double now = cost_at(&c, k, w);
            CHECK(now >= before && now > 0, "%s falls at %g", info->name, w);
            before = now;
        }
        const double beyond = cost_at(&c, k, 2 * end) - cost_at(&c, k, end),
                     further = cost_at(&c, k, 3 * end) - cost_at(&c, k, 2 * end);
        CHECK(fabs(beyond - further) <= 1e-9 * before, "%s: the cost beyond the last point is not linear",
              info->name);
    }
    tap_point("curves pass through their points and never fall");
}

/* ---- steps: more work takes at least as much time ---- */

static operand dense(int rank, const int64_t *size)
{
    operand o = { 0 };
    layout_dense(&o.at, DUET_F32, rank, size);
    return o;
}
#define DENSE(...) dense(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), (int64_t[]){ __VA_ARGS__ })

static step product(int64_t m, int64_t k, int64_t n)
{
    step s = { .kernel = OP_matmul, .outs = 1, .ins = 2 };
    s.out[0] = DENSE(m, n);
    s.in[0] = DENSE(m, k);
    s.in[1] = DENSE(k, n);
    s.bytes = 4.0 * (double)(m * n + m * k + k * n);
    s.flops = 2.0 * (double)m * (double)k * (double)n;
    return s;
}

static void test_products(void)
{
    for (int trial = 0; trial < 500; trial++) {
        const costs c = drawn_costs();
        int64_t size[3], more[3];
        for (int i = 0; i < 3; i++) size[i] = more[i] = 1 + rng_below(&gen, 3000);
        more[rng_below(&gen, 3)] += rng_below(&gen, 3000);
        const step a = product(size[0], size[1], size[2]), b = product(more[0], more[1], more[2]);
        const double x = cost_of_product(&a, &c), y = cost_of_product(&b, &c);
        CHECK(x > 0 && y >= x * (1 - 1e-12), "%d x %d x %d: %g, larger: %g", (int)size[0], (int)size[1],
              (int)size[2], x, y);
        CHECK(x >= cost_at(&c, COST_pass, a.bytes) && x >= cost_at(&c, COST_product, a.flops),
              "the cost of a product is less than that of its parts");
    }
    const costs c = drawn_costs();
    const step thin = product(10, 1000, 1000), empty = product(0, 10, 10);
    CHECK(cost_of_product(&thin, &c) >= cost_at(&c, COST_thin, 10) * (1 - 1e-12),
          "the cost of a product of ten rows is too small");
    CHECK(cost_of_product(&empty, &c) > 0, "the cost of an empty product is not positive");
    tap_point("products: more work takes no less time");
}

static double program_cost(const costs *c, int64_t n, const int *ops, int count, bool reductions)
{
    program p = { .length = (uint8_t)count, .reductions = reductions };
    for (int i = 0; i < count; i++) {
        p.code[i].op = (uint8_t)ops[i];
        p.code[i].type = DUET_F32;
    }
    step s = { .kernel = KERNEL_PROGRAM, .outs = 1, .ins = 1, .program = &p, .bytes = 8.0 * (double)n };
    s.out[0] = s.in[0] = DENSE(n);
    return cost_of_program(&s, c);
}

static void test_programs(void)
{
    for (int trial = 0; trial < 500; trial++) {
        const costs c = drawn_costs();
        const int64_t n = 1 + rng_below(&gen, 10000000);
        const int simple[] = { OP_add, OP_mul, OP_STORE }, heavy[] = { OP_add, OP_exp, OP_STORE },
                  longer[] = { OP_add, OP_exp, OP_exp, OP_STORE };
        const double a = program_cost(&c, n, simple, 3, false), b = program_cost(&c, n, heavy, 3, false),
                     d = program_cost(&c, n, longer, 4, false), e = program_cost(&c, 2 * n, heavy, 3, false);
        CHECK(a <= b && b <= d && b <= e && a > 0, "%d elements: %g %g %g %g", (int)n, a, b, d, e);
    }
    tap_point("programs: more operators, and more elements, take no less time");
}

static void test_sound(void)
{
    const costs good = drawn_costs();
    CHECK(costs_sound(&good, DEFAULT_GPU) && costs_sound(&good, HOST), "good costs are not valid");
    static const double bad[] = { 0, -1, NAN, INFINITY, 1e4 };
    for (int k = 0; k < COSTS; k++)
        for (int i = 0; i < cost_infos[k].points; i++)
            for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
                costs c = good;
                c.seconds[k][i] = bad[b];
                CHECK(!costs_sound(&c, DEFAULT_GPU), "%s, point %d: %g is valid", cost_infos[k].name, i,
                      bad[b]);
            }
    costs falls = good;
    falls.seconds[COST_pass][2] = falls.seconds[COST_pass][1] / 2;
    CHECK(!costs_sound(&falls, HOST), "a falling curve is valid");
    for (int s = 0; s < COSTED; s++)
        if (!device_absent(s))
            CHECK(costs_sound(device_machine(s)->costs, s), "the built-in costs of the %s are not valid",
                  device_machine(s)->name);
    tap_point("invalid costs are detected");
}

static void test_use(void)
{
    const unsigned first = costs_edition();
    costs both[COSTED] = { drawn_costs(), drawn_costs() };
    CHECK(costs_now(HOST) == device_machine(HOST)->costs && !strcmp(costs_origin(), "as shipped"),
          "the costs are not the built-in ones: %s", costs_origin());
    costs_use(both, "made up");
    CHECK(!memcmp(costs_now(HOST), &both[HOST], sizeof both[HOST]) &&
              !memcmp(costs_now(DEFAULT_GPU), &both[DEFAULT_GPU], sizeof both[DEFAULT_GPU]),
          "the new costs are not in use");
    CHECK(costs_edition() != first && !strcmp(costs_origin(), "made up"), "edition %u, %s", costs_edition(),
          costs_origin());
    const double up = cost_of_move(1 << 20, DEFAULT_GPU, false),
                 pinned = cost_of_move(1 << 20, DEFAULT_GPU, true);
    CHECK(up == both[DEFAULT_GPU].seconds[COST_up][2] &&
              pinned == both[DEFAULT_GPU].seconds[COST_up_pinned][2],
          "the cost of an upload is wrong");
    CHECK(cost_of_move(4096, HOST, false) == both[DEFAULT_GPU].seconds[COST_down][0] &&
              cost_of_move(0, HOST, true) == 0,
          "the cost of a download is wrong");
    costs_use(NULL, "as shipped");
    CHECK(costs_now(DEFAULT_GPU) == device_machine(DEFAULT_GPU)->costs,
          "the built-in costs are not restored");
    tap_point("measured costs replace the built-in ones");
}

/* ---- the file ---- */

static char folder[] = "/tmp/duet-test-XXXXXX";

static void fetch(const char *path, char *text, size_t size, size_t *length)
{
    FILE *in = fopen(path, "r");
    if (in) *length = fread(text, 1, size, in);
    else *length = 0;
    if (in) fclose(in);
}

static void store(const char *path, const char *text, size_t length)
{
    FILE *out = fopen(path, "w");
    CHECK(out && fwrite(text, 1, length, out) == length && !fclose(out), "cannot write %s", path);
}

static bool is_refused(const char *path)
{
    costs c[COSTED] = { 0 }, none[COSTED] = { 0 };
    return !calibration_read(path, c) && !memcmp(c, none, sizeof c);
}

static bool near(const costs *a, const costs *b)
{
    for (int k = 0; k < COSTS; k++)
        for (int i = 0; i < cost_infos[k].points; i++)
            if (!(fabs(a->seconds[k][i] - b->seconds[k][i]) <= 1e-12)) return false;
    return true;
}

static void test_kept(void)
{
    char path[CALIBRATION_PATH], text[10000], other[10000];
    size_t length, all;
    costs from[COSTED] = { drawn_costs(), drawn_costs() }, to[COSTED];
    setenv("XDG_CACHE_HOME", folder, 1);
    CHECK(calibration_path(path) && !strncmp(path, folder, strlen(folder)), "the path is %s", path);
    CHECK(is_refused(path), "a file that does not exist was read");
    const char *why = calibration_write(path, from);
    CHECK(!why, "%s", why);
    CHECK(calibration_read(path, to) && near(&from[HOST], &to[HOST]) &&
              near(&from[DEFAULT_GPU], &to[DEFAULT_GPU]),
          "the costs read differ from those written");
    struct stat st;
    CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0600, "other users may access the file");
    fetch(path, text, sizeof text, &all);
    CHECK(all > 500 && all < sizeof text, "the file has %d bytes", (int)all);
    tap_point("costs are stored in a file");

    for (length = 0; length < all; length++) {
        store(path, text, length);
        CHECK(is_refused(path), "a file with only the first %d bytes was accepted", (int)length);
    }
    for (size_t i = 0; i < all; i++) {
        memcpy(other, text, all);
        other[i] ^= (char)(1 << rng_below(&gen, 7));
        store(path, other, all);
        CHECK(is_refused(path), "a file with byte %d changed to %d was accepted", (int)i, other[i]);
    }
    text[all] = '\n';
    store(path, text, all + 1);
    CHECK(is_refused(path), "a file with another line was accepted");
    memset(other, 'x', sizeof other);
    store(path, other, sizeof other);
    CHECK(is_refused(path), "a file with a long line was accepted");
    tap_point("a truncated or damaged file is ignored");

    from[DEFAULT_GPU].seconds[COST_pass][1] = 0;
    CHECK(!calibration_write(path, from) && is_refused(path), "invalid costs were accepted");
    unlink(path);
    mkdir(path, 0700);
    CHECK(is_refused(path) && calibration_write(path, from), "a folder in place of the file was accepted");
    rmdir(path);
    mkfifo(path, 0600);
    CHECK(is_refused(path), "a pipe in place of the file was accepted");
    unlink(path);
    if (!geteuid()) {
        store(path, text, all);
        CHECK(calibration_read(path, to) && !chown(path, 12345, 12345) && is_refused(path),
              "a file of another user was accepted");
        unlink(path);
    }
    tap_point("a file of another user is ignored");
}

/* Writes the text with a leading zero, or a huge number, in its last curve, and the checksum of that. */
static void store_with(const char *path, const char *text, const char *digits)
{
    char changed[12000];
    const char *end = strstr(text, "\nend "), *number = end;
    while (number[-1] != ' ') number--;
    const int n = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(number - text), text, digits,
                           *digits == '0' ? number : end);
    char *last = strstr(changed, "\nend ") + 1;
    uint64_t sum = 14695981039346656037u; /* FNV-1a of all characters but line ends */
    for (const char *c = changed; c < last; c++)
        if (*c != '\n') sum = (sum ^ (unsigned char)*c) * 1099511628211u;
    snprintf(last, sizeof changed - (size_t)(last - changed), "end %016llx\n", (unsigned long long)sum);
    store(path, changed, (size_t)n);
}

static void test_hostile(void)
{
    char path[CALIBRATION_PATH], other[CALIBRATION_PATH + 8], parent[CALIBRATION_PATH], text[10000] = "";
    size_t length;
    costs from[COSTED] = { drawn_costs(), drawn_costs() }, to[COSTED];
    setenv("XDG_CACHE_HOME", folder, 1);
    CHECK(calibration_path(path) && !calibration_write(path, from), "the costs were not stored");
    fetch(path, text, sizeof text - 1, &length);
    snprintf(other, sizeof other, "%s.other", path);
    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = 0;
    CHECK(!chmod(path, 0620) && is_refused(path), "a file that a group can write was accepted");
    CHECK(!chmod(path, 0602) && is_refused(path), "a file that everyone can write was accepted");
    CHECK(!chmod(path, 0644) && calibration_read(path, to), "a file that others can read was ignored");
    CHECK(!link(path, other) && is_refused(path), "a file with a second name was accepted");
    CHECK(!unlink(path) && !symlink(other, path) && is_refused(path), "a symbolic link was accepted");
    CHECK(!calibration_write(path, from) && calibration_read(path, to) && !unlink(other),
          "a symbolic link was not replaced");
    CHECK(!chmod(parent, 0777) && is_refused(path), "a file in a folder of everyone was accepted");
    const char *why = calibration_write(path, from);
    CHECK(why && strstr(why, "other users can change its folder"), "%s", why ? why : "a file was written");
    CHECK(!chmod(parent, 0700) && calibration_read(path, to), "the file is damaged");
    if (!geteuid()) {
        CHECK(!chown(parent, 12345, 12345) && is_refused(path) && calibration_write(path, from),
              "a folder of another user was used");
        CHECK(!chown(parent, 0, 0), "the folder could not be given back");
    }
    store_with(path, text, "");
    CHECK(is_refused(path), "a curve without its last number was accepted");
    store_with(path, text, "0");
    CHECK(is_refused(path), "a number with a leading zero was accepted");
    store_with(path, text, "18446744073709551615");
    CHECK(is_refused(path), "a cost of 200 days was accepted");
    tap_point("a file or folder that others can change, and forged numbers, are ignored");
}

/* The process must not end by a signal, and the old file must remain. */
static void test_limited(void)
{
    char path[CALIBRATION_PATH];
    costs from[COSTED] = { drawn_costs(), drawn_costs() }, to[COSTED];
    int status = -1, entries = 0;
    CHECK(calibration_path(path) && !calibration_write(path, from), "the costs were not stored");
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const int limited = setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 50, 50 });
        _exit(limited || !calibration_write(path, from));
    }
    waitpid(child, &status, 0);
    CHECK(status == 0, "the process ended with %d", status);
    CHECK(calibration_read(path, to), "the old file is damaged");
    *strrchr(path, '/') = 0;
    DIR *d = opendir(path);
    while (d && readdir(d)) entries++;
    if (d) closedir(d);
    CHECK(entries == 3, "a temporary file is left");
    tap_point("a file that cannot be written leaves the old one");
}

static void test_folders(void)
{
    char path[CALIBRATION_PATH], home[700], long_name[700];
    costs from[COSTED] = { drawn_costs(), drawn_costs() };
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    CHECK(!calibration_path(path), "a path was made without any folder");
    setenv("XDG_CACHE_HOME", "relative", 1);
    setenv("HOME", "also relative", 1);
    CHECK(!calibration_path(path), "a path was made with a relative folder");
    snprintf(home, sizeof home, "%s/home", folder);
    mkdir(home, 0700);
    setenv("HOME", home, 1);
    CHECK(calibration_path(path) && strstr(path, "/home/.cache/duet/costs-"),
          "the path is not in the home folder: %s", path);
    CHECK(!calibration_write(path, from) && calibration_read(path, from), "the folders were not made");
    memset(long_name, 'a', sizeof long_name);
    long_name[0] = '/';
    long_name[sizeof long_name - 1] = '\0';
    setenv("XDG_CACHE_HOME", long_name, 1);
    CHECK(!calibration_path(path), "a path that is too long was made");
    setenv("XDG_CACHE_HOME", "/proc/self", 1);
    CHECK(calibration_path(path) && calibration_write(path, from),
          "writing to a read-only folder did not fail");
    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    CHECK(calibration_path(path) && calibration_write(path, from) && is_refused(path),
          "writing without a folder did not fail");
    tap_point("missing and read-only folders");
}

int main(void)
{
    char command[100];
    gen = rng_new(11);
    umask(022);
    if (!mkdtemp(folder)) {
        perror("test_cost");
        return 1;
    }
    test_curves();
    test_products();
    test_programs();
    test_sound();
    test_use();
    test_kept();
    test_hostile();
    test_limited();
    test_folders();
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command)) return 1;
    return tap_end();
}
