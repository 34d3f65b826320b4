/* test_files_nomem.c - every allocation of reading, writing and printing fails once, with files and streams:
 * a status and a text, no leak, no partial file. Also for views and copies of shapes, and duet_resize. */
#define _GNU_SOURCE /* fopencookie */
#include "nomem_trial.h"
#include <dirent.h>
#include <duet/duet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char npy[] = "plain.npy", npz[] = "stored.npz", market[] = "text.mtx", packed[] = "deflated.npz",
                  fortran[] = "columns.npy", split[] = "split.npy";
static duet_group *group;

/* The system's own allocations fail too. */
FILE *__real_fdopen(int, const char *), *__wrap_fdopen(int, const char *);
FILE *__wrap_fdopen(int f, const char *mode)
{
    if (!fails_now()) return __real_fdopen(f, mode);
    errno = ENOMEM;
    return NULL;
}

static int entries_in(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

static void try_file(duet_matrix *m)
{
    FILE *nothing = fopen("/dev/null", "w");
    const duet_named list[] = { { "a", m } };
    went(nothing && duet_print(nothing, m) == DUET_OK);
    went(duet_save_npy(npy, m) == DUET_OK);
    went(duet_save_npz(npz, list, 1) == DUET_OK);
    went(duet_load_npy_into(npy, m) == DUET_OK);
    went(duet_save_market(market, m) == DUET_OK);
    duet_matrix *back[] = { duet_load_npy(npy), duet_load_npz(npz, "a"), duet_load_market(market),
                            duet_load_npz(packed, "x") };
    for (int k = 0; k < 4; k++) {
        went(back[k]);
        duet_free(&back[k]);
    }
    duet_matrix *turned = duet_load_npy(fortran);
    went(turned);
    if (!turned && !strstr(duet_error(), fortran)) {
        printf("# %s\n", duet_error());
        wrong = true;
    }
    duet_free(&turned);
    char **names = duet_names_npz(npz);
    went(names);
    free(names);
    if (nothing) fclose(nothing);
}

/* The parts of a matrix on a group, which are columns, and a view of them. */
static void try_parts(void)
{
    duet_matrix *x = duet_new_split(group, DUET_F32, 1, 5, 6), *rows = x ? duet_stepped(x, 0, 0, 5, 2) : NULL;
    float *p = x ? duet_overwrite(x) : NULL;
    went(p && rows);
    for (int i = 0; p && i < 30; i++) p[i] = (float)i;
    if (p && rows) {
        went(duet_save_npy(split, x) == DUET_OK);
        went(duet_load_npy_into(split, x) == DUET_OK);
        went(duet_save_npy(split, rows) == DUET_OK);
        went(duet_load_npy_into(split, rows) == DUET_OK);
    }
    duet_free(&x, &rows);
}

/* A stream without a size: what it reads grows. */
typedef struct source {
    const char *bytes;
    size_t size, at;
} source;

static ssize_t read_source(void *cookie, char *to, size_t most)
{
    source *s = cookie;
    const size_t n = s->size - s->at < most ? s->size - s->at : most;
    memcpy(to, s->bytes + s->at, n);
    s->at += n;
    return (ssize_t)n;
}

enum { LARGE = 3 << 20, NUMBERS = 9000 };
static char large[LARGE], numbers[2 * NUMBERS + 100];

static void make_sources(void)
{
    int n = sprintf(large + 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,)}\n", LARGE - 200);
    memcpy(large, "\x93NUMPY\x01\0", 8);
    large[8] = (char)n;
    large[9] = 0;
    n = sprintf(numbers, "%%%%MatrixMarket matrix array real general\n%d 1\n", NUMBERS);
    for (int i = 0; i < NUMBERS; i++) memcpy(numbers + n + 2 * i, "1\n", 3);
}

static void try_source(const char *bytes, size_t size, duet_matrix *(*read)(FILE *))
{
    source s = { bytes, size, 0 };
    FILE *f = fopencookie(&s, "rb", (cookie_io_functions_t){ .read = read_source });
    duet_matrix *m = f ? read(f) : NULL;
    went(m);
    duet_free(&m);
    if (f) fclose(f);
}

static void try_streams(const duet_matrix *m)
{
    FILE *f = fopen("stream", "wb+");
    went(f && duet_write_npy(f, m) == DUET_OK);
    went(f && duet_print_octave(f, m) == DUET_OK);
    if (f) rewind(f);
    duet_matrix *back = f ? duet_read_npy(f) : NULL;
    went(back);
    duet_free(&back);
    if (f) rewind(f);
    went(f && duet_write_market(f, m) == DUET_OK);
    if (f) rewind(f);
    back = f ? duet_read_market(f) : NULL;
    went(back);
    duet_free(&back);
    if (f) fclose(f);
    try_source(large, sizeof large, duet_read_npy);
    try_source(numbers, strlen(numbers), duet_read_market);
}

static void try_resize(void)
{
    duet_matrix *m = duet_ones(DUET_F32, 3);
    went(m && duet_resize(m, 4, 5) == DUET_OK);
    if (m && duet_count(m) != 3 && duet_count(m) != 20) wrong = true;
    went(m && duet_resize(m, 2) == DUET_OK);
    duet_free(&m);
}

static void try_shapes(duet_matrix *m)
{
    duet_matrix *to = duet_new(DUET_F64, 6, 4), *part[3] = { NULL }, *wide = duet_broadcast_to(m, 2, 3, 4);
    went(to);
    went(wide);
    if (to) {
        went(duet_split(to, 0, 3, part) == DUET_OK);
        went(duet_set(to, duet_concat(0, m, m)) == DUET_OK);
        went(duet_set(to, duet_tile(m, 2, 1)) == DUET_OK);
        went(duet_set(to, duet_roll(to, 1, 0)) == DUET_OK);
        went(duet_set(to, duet_pad(m, .before = { 2 }, .after = { 1 }, .mode = DUET_PAD_REFLECT)) == DUET_OK);
        went(duet_magic(m) == DUET_BAD_SHAPE);
    }
    for (int k = 0; k < 3; k++) duet_free(&part[k]);
    duet_free(&to);
    duet_free(&wide);
}

static void *play(void *arg)
{
    duet_matrix *m = duet_new(DUET_F64, 3, 4);
    double *p = m ? duet_overwrite(m) : NULL;
    went(p);
    for (int i = 0; p && i < 12; i++) p[i] = i;
    if (p) {
        try_file(m);
        try_parts();
        try_streams(m);
        try_resize();
        try_shapes(m);
    }
    duet_free(&m);
    return NULL;
}

/* Column-major. */
static void save_fortran(void)
{
    duet_matrix *m = duet_new(DUET_F64, 3, 4), *columns = duet_transposed(m);
    CHECK(duet_save_npy(fortran, columns) == DUET_OK, "%s", duet_error());
    duet_free(&columns);
    duet_free(&m);
}

int main(void)
{
#include "deflated.h"
    int n = 0;
    char folder[] = "/tmp/duet-nomem-XXXXXX";
    CHECK(mkdtemp(folder) && !chdir(folder), "the folder could not be made");
    FILE *f = fopen(packed, "wb");
    CHECK(f && fwrite(deflated, sizeof deflated, 1, f) == 1 && !fclose(f), "the file could not be written");
    save_fortran();
    make_sources();
    DUET_ON(DUET_CPU) group = duet_group_local(3);
    CHECK(group != NULL, "%s", duet_error());
    hit(play, -1);
    hit(play, -1);
    CHECK(!refused, "%s", duet_error());
    const int64_t living = live;
    const int files = entries_in("."), open = entries_in("/proc/self/fd");
    for (bool more = true; more && n < 2000; n++) {
        more = hit(play, n);
        CHECK(!wrong, "%d: a failure without an error text", n);
        CHECK(more || !refused, "%d: no allocation failed, but %d calls failed", n, refused);
        CHECK(thread_state_missing || live == living, "%d: %d blocks leaked", n, (int)(live - living));
        CHECK(entries_in(".") == files, "%d: a temporary file is left", n);
        CHECK(entries_in("/proc/self/fd") == open, "%d: a file is still open", n);
        hit(play, -1);
        CHECK(!refused, "%d: the next call fails: %s", n, duet_error());
    }
    CHECK(n > 40 && n < 2000, "%d failures", n);
    tap_point("every allocation fails once");
    CHECK(!unlink(npy) && !unlink(npz) && !unlink(market) && !unlink(packed) && !unlink(fortran) &&
              !unlink(split) && !unlink("stream"),
          "a file is missing");
    CHECK(!chdir("/") && !rmdir(folder), "another file is left in %s", folder);
    duet_group_free(&group);
    return tap_end();
}
