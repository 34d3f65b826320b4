/* test_files.c - .npy, .npz, Matrix Market and duet_print: known bytes and texts, round trips,
 * errors; and thousands of randomly changed files, none of which may crash, be read out of bounds,
 * or allocate memory for elements that it lacks. With the main function of a fuzzer (-DFUZZER
 * -fsanitize=fuzzer) the last part is its target. tests/statements/numpy_compare.py compares with
 * NumPy. */
#define _GNU_SOURCE
#include "comma_locale.h"
#include "common.h"
#include <complex.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- files in memory ---- */

static int memory = -1;
static char memory_path[40];

static const char *file_of(const void *bytes, size_t size)
{
    if (memory < 0) memory = memfd_create("duet", 0);
    snprintf(memory_path, sizeof memory_path, "/proc/self/fd/%d", memory);
    if (ftruncate(memory, 0) || pwrite(memory, bytes, size, 0) != (ssize_t)size) abort();
    return memory_path;
}

static void load_all(const char *path, uint64_t size)
{
    duet_matrix *m = duet_load_npy(path), *t = duet_load_market(path);
    if (m && duet_count(m) && (uint64_t)duet_count(m) > size) abort();
    if (t && duet_count(t) && (uint64_t)duet_count(t) > 2 * size + 2) abort();
    duet_free(&m);
    duet_free(&t);
    char **names = duet_names_npz(path);
    for (int k = 0; names && names[k] && k < 20; k++) {
        m = duet_load_npz(path, names[k]);
        if (m && duet_count(m) && (uint64_t)duet_count(m) > 1100 * size) abort();
        duet_free(&m);
    }
    free(names);
}

#ifdef FUZZER
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    load_all(file_of(bytes, size), size);
    return 0;
}
#else

static uint64_t seed = 1;
static uint64_t draw(uint64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

/* ---- round trips ---- */

static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_I64,  DUET_F16, DUET_BF16,
                                    DUET_I8,  DUET_I16, DUET_I32,  DUET_U8,  DUET_U16,
                                    DUET_U32, DUET_U64, DUET_BOOL, DUET_C64, DUET_C128 };
enum { TYPES = sizeof types / sizeof *types };
static const size_t bytes_of[] = { 4, 8, 8, 2, 2, 1, 2, 4, 1, 2, 4, 8, 1, 8, 16 };

static char here[] = "/tmp/duet-files-XXXXXX";
static char path_text[400];
static const char *path(const char *name)
{
    snprintf(path_text, sizeof path_text, "%s/%s", here, name);
    return path_text;
}

static duet_matrix *some_matrix(int type, int rank, const int64_t *size)
{
    duet_matrix *m = duet_new_shape(types[type], rank, size);
    unsigned char *p = duet_overwrite(m);
    for (size_t i = 0; i < (size_t)duet_count(m) * bytes_of[type]; i++)
        p[i] = (unsigned char)draw(types[type] == DUET_BOOL ? 2 : 128);
    return m;
}

/* Compares every byte of every element, by pointers and strides. */
static bool equal(const duet_matrix *a, const duet_matrix *b, size_t each)
{
    const int rank = duet_rank(a);
    int64_t i[DUET_RANK_MAX] = { 0 };
    bool same = rank == duet_rank(b) && duet_type(a) == duet_type(b);
    for (int d = 0; d < rank; d++) same = same && duet_size(a, d) == duet_size(b, d);
    const char *p = duet_read(a), *q = duet_read(b);
    for (int64_t k = 0; same && k < duet_count(a); k++) {
        int64_t x = 0, y = 0;
        for (int d = 0; d < rank; d++) {
            x += i[d] * duet_stride(a, d);
            y += i[d] * duet_stride(b, d);
        }
        same = !memcmp(p + x * (int64_t)each, q + y * (int64_t)each, each);
        for (int d = rank; d-- > 0;) {
            if (++i[d] < duet_size(a, d)) break;
            i[d] = 0;
        }
    }
    return same;
}

static duet_matrix *turned(duet_matrix *m, int how)
{
    duet_matrix *t = NULL;
    if (how == 1) t = duet_transposed(m);
    else if (how == 2 && duet_rank(m)) t = duet_flipped(m, 0);
    else if (how == 3 && duet_rank(m)) t = duet_stepped(m, -1, 0, DUET_OPEN, 2);
    if (!t) return m;
    duet_free(&m);
    return t;
}

static void test_round_trips(void)
{
    static const struct {
        int rank;
        int64_t size[4];
    } shapes[] = { { 0, { 0 } },       { 1, { 0 } },          { 1, { 1 } },
                   { 1, { 5 } },       { 2, { 3, 4 } },       { 2, { 1, 7 } },
                   { 3, { 2, 0, 3 } }, { 4, { 2, 3, 4, 5 } }, { 2, { 130, 70 } } };
    for (int t = 0; t < TYPES; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int how = 0; how < 4; how++) {
                duet_matrix *m = turned(some_matrix(t, shapes[s].rank, shapes[s].size), how), *n;
                CHECK(duet_save_npy(path("a.npy"), m) == DUET_OK, "%s", duet_error());
                n = duet_load_npy(path("a.npy"));
                CHECK(n && equal(m, n, bytes_of[t]), ".npy, type %d, shape %d, order %d: %s", t, (int)s, how,
                      duet_error());
                duet_matrix *into = duet_new_shape(types[t], shapes[s].rank, shapes[s].size);
                duet_matrix *view = turned(into, how);
                CHECK(duet_load_npy_into(path("a.npy"), view) == DUET_OK && equal(m, view, bytes_of[t]),
                      "into a matrix, type %d, shape %d, order %d: %s", t, (int)s, how, duet_error());
                duet_free(&view);
                CHECK(!n || how != 1 || (s != 4 && s < 7) ||
                          duet_stride(n, duet_rank(n) - 1) == duet_stride(m, duet_rank(m) - 1),
                      "the order of the elements in memory is wrong");
                duet_free(&n);
                const duet_named list[] = { { "first", m }, { "a/b c", m }, { "", m } };
                CHECK(duet_save_npz(path("a.npz"), list, 3) == DUET_OK, "%s", duet_error());
                char **names = duet_names_npz(path("a.npz"));
                for (int k = 0; k < 3 && names; k++) {
                    CHECK(names[k] && !strcmp(names[k], list[k].name), "name %d is wrong", k);
                    n = duet_load_npz(path("a.npz"), list[k].name);
                    CHECK(n && equal(m, n, bytes_of[t]), ".npz, type %d, shape %d: %s", t, (int)s,
                          duet_error());
                    duet_free(&n);
                }
                CHECK(names && !names[3], "%s", duet_error());
                free(names);
                duet_free(&m);
            }
    tap_point("every type, shape and order is written and read back");
}

/* ---- known bytes ---- */

static size_t npy_of(char *to, int major, const char *header, const void *elements, size_t bytes)
{
    const size_t n = strlen(header), front = major == 1 ? 10 : 12;
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (char)major;
    to[7] = 0;
    to[8] = (char)n;
    to[9] = (char)(n >> 8);
    to[10] = to[11] = 0;
    memcpy(to + front, header, n);
    if (bytes) memcpy(to + front + n, elements, bytes);
    return front + n + bytes;
}

static void test_known(void)
{
    static const unsigned char big[] = { 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xfe };
    static const char *const headers[] = { "{'descr': '>i4', 'fortran_order': False, 'shape': (3,), }  \n",
                                           "{\"shape\":(3L,),'fortran_order':False,'descr':\">i4\"}",
                                           "{'fortran_order': True, 'descr': '>i4', 'shape': ( 3 , )}\n" };
    char file[400];
    for (int major = 1; major <= 3; major++)
        for (int h = 0; h < 3; h++) {
            duet_matrix *m = duet_load_npy(file_of(file, npy_of(file, major, headers[h], big, sizeof big)));
            const int32_t *p = m ? duet_read(m) : NULL;
            CHECK(p && duet_type(m) == DUET_I32 && duet_count(m) == 3 && p[0] == 1 && p[1] == 2 && p[2] == -2,
                  ".npy version %d, header %d: %s", major, h, duet_error());
            duet_free(&m);
        }
    const double fortran[] = { 1, 2, 3, 4, 5, 6 };
    duet_matrix *m = duet_load_npy(
        file_of(file, npy_of(file, 1, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3)}", fortran,
                             sizeof fortran)));
    const double *p = m ? duet_read(m) : NULL;
    CHECK(p && duet_stride(m, 0) == 1 && duet_stride(m, 1) == 2 && duet_size(m, 1) == 3,
          "an array in Fortran order is not a transposed view: %s", duet_error());
    duet_free(&m);
    static const unsigned char c64[] = { 0x3f, 0x80, 0, 0, 0x40, 0, 0, 0 };
    m = duet_load_npy(file_of(file, npy_of(file, 2, "{'descr': '>c8', 'fortran_order': False, 'shape': ()}",
                                           c64, sizeof c64)));
    const float *c = m ? duet_read(m) : NULL;
    CHECK(c && (int)c[0] == 1 && (int)c[1] == 2 && duet_type(m) == DUET_C64 && duet_rank(m) == 0,
          "a complex array is wrong: %s", duet_error());
    duet_free(&m);
    m = duet_load_npy(
        file_of(file, npy_of(file, 1, "{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", c64, 2)));
    CHECK(m && duet_type(m) == DUET_BF16, "a bf16 array is wrong: %s", duet_error());
    duet_free(&m);
    tap_point("known .npy files");
}

/* A matrix keeps its elements if the file is invalid, or has another shape or type. */
static void test_into(void)
{
    enum { N = 3 << 20 };
    static const char *const headers[] = { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
                                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)}",
                                           "{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}",
                                           "{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}" };
    static const char *const texts[] = {
        "m: f32[2]): the array of the file is f32[3]; m must have the same shape",
        "is f32[2,1]; m must have the same shape", "is f64[2]; m must have the same element type",
        "is bool[2]"
    };
    const float elements[] = { 1, 2, 3, 4 };
    char file[400];
    duet_matrix *m = duet_new(DUET_F32, 2), *b = duet_new(DUET_BOOL, N), *two = duet_new(DUET_BOOL, 2);
    float *p = duet_overwrite(m);
    p[0] = 5, p[1] = 6;
    for (int k = 0; k < 4; k++) {
        const duet_status s =
            duet_load_npy_into(file_of(file, npy_of(file, 1, headers[k], elements, sizeof elements)), m);
        CHECK(s == (k < 2 ? DUET_BAD_SHAPE : DUET_BAD_TYPE) && strstr(duet_error(), texts[k]), "%d: %s", k,
              duet_error());
    }
    CHECK(duet_load_npy_into(file_of(file, npy_of(file, 1, headers[0], elements, 4)), m) == DUET_BAD_FILE,
          "a short file: %s", duet_error());
    CHECK(duet_load_npy_into(NULL, m) == DUET_BAD_ARGUMENT &&
              duet_load_npy_into("/nowhere", m) == DUET_IO_ERROR &&
              duet_load_npy_into(memory_path, NULL) == DUET_BAD_ARGUMENT,
          "%s", duet_error());
    const float *same = duet_read(m);
    CHECK(same && (int)same[0] == 5 && (int)same[1] == 6, "a failure has changed the elements");
    CHECK(duet_set(two, 1) == DUET_OK, "%s", duet_error());
    CHECK(duet_load_npy_into(file_of(file, npy_of(file, 1, headers[3], "\1\2", 2)), two) == DUET_BAD_FILE,
          "%s", duet_error());
    const bool *both = duet_read(two);
    CHECK(both && both[0] && both[1], "an invalid element has changed the matrix");
    char *bytes = calloc(1, N + 200);
    snprintf(file, sizeof file, "{'descr': '|b1', 'fortran_order': False, 'shape': (%d,)}", N);
    const size_t size = npy_of(bytes, 1, file, NULL, 0) + N;
    CHECK(duet_load_npy_into(file_of(bytes, size), b) == DUET_OK && duet_read(b), "%s", duet_error());
    bytes[size - 1] = 2;
    bytes[size - 2] = 1;
    CHECK(duet_load_npy_into(file_of(bytes, size), b) == DUET_BAD_FILE &&
              duet_load_npy_into(file_of(bytes, size - 1), b) == DUET_BAD_FILE,
          "an invalid element at the end: %s", duet_error());
    const bool *zeros = duet_read(b);
    CHECK(zeros && !zeros[N - 2] && !zeros[N - 1], "an invalid element at the end has changed the matrix");
    bytes[size - 1] = 1;
    CHECK(duet_load_npy_into(file_of(bytes, size), b) == DUET_OK && ((const bool *)duet_read(b))[N - 1], "%s",
          duet_error());
    free(bytes);
    duet_free(&m, &b, &two);
    tap_point("files are read into matrices");
}

static void test_deflated(void)
{
#include "deflated.h"
    duet_matrix *m = duet_load_npz(file_of(deflated, sizeof deflated), "x");
    FILE *f = tmpfile();
    char text[4000] = "";
    duet_info(f);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    const bool has = strstr(text, "files    zlib") != NULL;
    const float *p = m ? duet_read(m) : NULL;
    CHECK(has ? m && duet_count(m) == 20 && (int)p[19] == 19 : !m && strstr(duet_error(), "without zlib"),
          "%s", duet_error());
    CHECK(strstr(text, "files    "), "duet_info does not print the file formats");
    duet_free(&m);
    tap_point(has ? "deflated arrays are loaded" : "deflated arrays are unsupported without zlib");
}

/* ---- errors ---- */

static void refuses(duet_matrix *m, const char *why)
{
    CHECK(!m && strstr(duet_error(), why), "\"%s\", not: %s", why, m ? "a matrix" : duet_error());
    duet_free(&m);
}

static void test_refusals(void)
{
    static const struct {
        const char *header, *why;
    } rows[] = {
        { "", "not a dictionary" },
        { "{", "must have a string" },
        { "{'descr': '<f4'", "no closing brace" },
        { "{'descr': '<f4', }", "lacks a key" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "data after the dictionary" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", "key \"more\"" },
        { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "key \"descr\"" },
        { "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}", "must be True or False" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': 2}", "must be a tuple" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2", "no closing parenthesis" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "must consist of integers" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
          "too large for memory" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4611686018427387904)}",
          "too short for its shape" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4611686018427387904)}",
          "too large for memory" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}", "too short for its shape" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "more than 8 axes" },
        { "{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}", "type \"<f3\"" },
        { "{'descr': 'f4', 'fortran_order': False, 'shape': (1,)}", "type \"f4\"" },
        { "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "type \"|O\"" },
        { "{'descr': '', 'fortran_order': False, 'shape': (1,)}", "type \"\"" },
        { "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "structured element types" },
        { "{'descr': '<U12345678901234567', 'fortran_order': False, 'shape': (1,)}", "invalid string" },
        { "{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", "neither 0 nor 1" },
    };
    const unsigned char elements[8] = { 0, 1, 2, 1 };
    char file[400];
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        refuses(duet_load_npy(file_of(file, npy_of(file, 1, rows[k].header, elements, 8))), rows[k].why);
    npy_of(file, 4, "{}", NULL, 0);
    refuses(duet_load_npy(file_of(file, 20)), "version 4.0");
    refuses(duet_load_npy(file_of("\x93NUMPY", 6)), "truncated");
    refuses(duet_load_npy(file_of("", 0)), "truncated");
    refuses(duet_load_npy(NULL), "NULL");
    refuses(duet_load_npy("/nowhere/at/all"), "No such file");
    refuses(duet_load_npy("/dev/null"), "not a regular file");
    CHECK(!mkfifo(path("pipe"), 0600), "the pipe could not be made or removed");
    refuses(duet_load_npy(path("pipe")), "not a regular file");
    CHECK(!unlink(path("pipe")), "the pipe could not be made or removed");
    refuses(duet_load_npz(file_of(file, 20), "x"), "not a zip file");
    refuses(duet_load_npz(file_of("", 0), "x"), "not a zip file");
    refuses(duet_load_npz(memory_path, NULL), "name must not be NULL");
    CHECK(!duet_names_npz(NULL) && !duet_names_npz(file_of(file, 20)),
          "duet_names_npz of a bad file returned names");
    duet_matrix *m = duet_new(DUET_F32, 2, 2), *gone = duet_new(DUET_F32, 1), *vector = duet_new(DUET_F32, 2);
    const duet_named twice[] = { { "a", m }, { "a", m } }, nameless[] = { { NULL, m } },
                     empty[] = { { "a", NULL } };
    CHECK(duet_save_npz(path("b.npz"), twice, 2) == DUET_BAD_ARGUMENT &&
              duet_save_npz(path("b.npz"), nameless, 1) == DUET_BAD_ARGUMENT &&
              duet_save_npz(path("b.npz"), empty, 1) == DUET_BAD_ARGUMENT &&
              duet_save_npz(path("b.npz"), NULL, 1) == DUET_BAD_ARGUMENT &&
              duet_save_npy(path("b.npz"), NULL) == DUET_BAD_ARGUMENT &&
              duet_save_npy(NULL, m) == DUET_BAD_ARGUMENT && access(path("b.npz"), F_OK),
          "a bad list was saved: %s", duet_error());
    CHECK(duet_save_npy("/nowhere/at/all", m) == DUET_IO_ERROR &&
              duet_save_npy("/dev/full", m) == DUET_IO_ERROR &&
              duet_save_npz("/dev/full", twice, 1) == DUET_IO_ERROR,
          "saving to a path that cannot be written: %s", duet_error());
    CHECK(duet_save_npz(path("c.npz"), NULL, 0) == DUET_OK, "%s", duet_error());
    refuses(duet_load_npz(path("c.npz"), "a"), "no array named \"a\"");
    CHECK(duet_save_market(path("b.mtx"), vector) == DUET_BAD_SHAPE, "a vector was saved as Matrix Market");
    duet_free(&m);
    duet_free(&gone);
    duet_free(&vector);
    tap_point("invalid files and arguments");
}

/* An existing file is unchanged if writing the new one fails, and links are followed. */
static void test_replaced(void)
{
    char target[sizeof path_text], link[sizeof path_text];
    snprintf(target, sizeof target, "%s", path("real.npy"));
    snprintf(link, sizeof link, "%s", path("link.npy"));
    duet_matrix *m = duet_new(DUET_F32, 2), *n;
    CHECK(duet_save_npy(target, m) == DUET_OK && !symlink(target, link) && duet_set(m, 3) == DUET_OK &&
              duet_save_npy(link, m) == DUET_OK,
          "%s", duet_error());
    n = duet_load_npy(target);
    CHECK(n && (int)((const float *)duet_read(n))[1] == 3,
          "saving through a symbolic link replaced the link");
    duet_free(&m);
    duet_free(&n);
    CHECK(!unlink(link) && !unlink(target), "the link or its target is missing");
    tap_point("existing files are replaced");
}

/* The longest name that the system allows, and one more character. */
static void test_long_names(void)
{
    char name[300];
    duet_matrix *m = duet_new(DUET_F32, 2), *n;
    for (int length = 230; length <= 256; length++) {
        memset(name, 'x', (size_t)length);
        name[length] = 0;
        const bool fits = length <= NAME_MAX;
        CHECK(duet_save_npy(path(name), m) == (fits ? DUET_OK : DUET_IO_ERROR), "%d characters: %s", length,
              duet_error());
        n = duet_load_npy(path(name));
        CHECK((n != NULL) == fits, "%d characters: %s", length, duet_error());
        duet_free(&n);
        unlink(path(name));
    }
    duet_free(&m);
    tap_point("long file names");
}

/* ---- signals of failed writes ---- */

enum reader { GONE, LIMITED };

/* In a child process: saves more bytes than can be written. */
static int save_too_much(const char *to, enum reader how, int format, bool blocked)
{
    sigset_t pipe_signal, now, before;
    duet_matrix *m = duet_new(DUET_F64, 1000, 300);
    const duet_named list[] = { { "a", m } };
    if (how == LIMITED && setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 30000, 30000 })) return 2;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    if (blocked && (sigprocmask(SIG_BLOCK, &pipe_signal, NULL) || raise(SIGPIPE))) return 2;
    sigprocmask(SIG_BLOCK, NULL, &before);
    const duet_status s = format == 0   ? duet_save_npy(to, m)
                          : format == 1 ? duet_save_npz(to, list, 1)
                                        : duet_save_market(to, m);
    if (s != DUET_IO_ERROR || !strstr(duet_error(), how == LIMITED ? "File too large" : "Broken pipe")) {
        printf("# status %d: %s\n", s, duet_error());
        return 3;
    }
    sigpending(&now);
    if (sigismember(&now, SIGXFSZ) || sigismember(&now, SIGPIPE) != blocked) return 4;
    sigprocmask(SIG_BLOCK, NULL, &now);
    return sigismember(&now, SIGPIPE) == blocked && !sigismember(&now, SIGXFSZ) ? 0 : 5;
}

/* Opens the pipe, reads a byte and closes it. */
static void read_one(const char *pipe_path)
{
    char byte;
    const int f = open(pipe_path, O_RDONLY);
    _exit(f < 0 || read(f, &byte, 1) != 1);
}

static void test_one_signal(const char *to, enum reader how, int format, bool blocked)
{
    int status = -1;
    fflush(stdout);
    const pid_t reader = how == GONE ? fork() : 1;
    if (reader == 0) read_one(to);
    const pid_t child = fork();
    if (child == 0) {
        const int result = save_too_much(to, how, format, blocked);
        fflush(stdout);
        _exit(result);
    }
    waitpid(child, &status, 0);
    CHECK(status == 0, "format %d, %s: the process ended with %d (signal %d)", format,
          how == GONE ? "a pipe" : "a limit", status, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    if (how == GONE) waitpid(reader, NULL, 0);
}

static void test_signals(void)
{
    char to[sizeof path_text];
    snprintf(to, sizeof to, "%s", path("pipe"));
    CHECK(!mkfifo(to, 0600), "the pipe could not be made");
    for (int format = 0; format < 3; format++)
        for (int blocked = 0; blocked < 2; blocked++) test_one_signal(to, GONE, format, blocked);
    CHECK(!unlink(to), "the pipe is missing");
    for (int format = 0; format < 3; format++) test_one_signal(path("big"), LIMITED, format, false);
    CHECK(access(path("big"), F_OK), "a partial file is left");
    tap_point("saving to a closed pipe or beyond a limit fails, and raises no signal");
}

/* ---- Matrix Market ---- */

static void market(const char *text, duet_dtype type, int n, const double *want)
{
    duet_matrix *m = duet_load_market(file_of(text, strlen(text)));
    const void *p = m ? duet_read(m) : NULL;
    CHECK(p && duet_type(m) == type, "%s: %s", text, duet_error());
    for (int i = 0; i < n && p; i++) {
        const double x = type == DUET_I64 ? (double)((const int64_t *)p)[i] : ((const double *)p)[i];
        CHECK(x == want[i], "%s: %d is %g, not %g", text, i, x, want[i]);
    }
    duet_free(&m);
}

/* Rows without elements are not iterated one by one. */
static void test_market_of_nothing(void)
{
    static const char text[] = "%%MatrixMarket matrix array real general\n0 288230376151711744\n";
    duet_matrix *m = duet_load_market(file_of(text, strlen(text)));
    CHECK(m && duet_size(m, 0) == 0 && duet_size(m, 1) == (int64_t)1 << 58, "%s", duet_error());
    CHECK(duet_save_market(path("a.mtx"), m) == DUET_OK, "%s", duet_error());
    duet_free(&m);
}

static void test_market(void)
{
    market("%%MatrixMarket matrix array real general\n% x\n%\n2 3\n1\n2\n3.5\n-4e2\n5\n6\n", DUET_F64, 6,
           (const double[]){ 1, 3.5, 5, 2, -400, 6 });
    market("%%matrixmarket MATRIX array integer symmetric\n2 2\n1\n2\n3", DUET_I64, 4,
           (const double[]){ 1, 2, 2, 3 });
    market("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n", DUET_F64, 9,
           (const double[]){ 0, -1, -2, 1, 0, -3, 2, 3, 0 });
    market("%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 3\n4 0\n%\n", DUET_C128, 8,
           (const double[]){ 1, 0, 2, -3, 2, 3, 4, 0 });
    static const struct {
        const char *text, *why;
    } rows[] = { { "", "truncated" },
                 { "hello a b c d", "not a Matrix Market file" },
                 { "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n", "format \"coordinate\"" },
                 { "%%MatrixMarket matrix array pattern general\n1 1\n1\n", "field \"pattern\"" },
                 { "%%MatrixMarket matrix array real hermitian\n1 1\n1\n", "symmetry \"hermitian\"" },
                 { "%%MatrixMarket matrix array real symmetric\n1 2\n1\n", "must be square" },
                 { "%%MatrixMarket matrix array real general\n-1 2\n1\n", "negative" },
                 { "%%MatrixMarket matrix array real general\n1000000 1000000\n1\n", "too short" },
                 { "%%MatrixMarket matrix array real general\n9223372036854775807 9223372036854775807\n1\n",
                   "too short" },
                 { "%%MatrixMarket matrix array real general\n0 9223372036854775807\n",
                   "too large for memory" },
                 { "%%MatrixMarket matrix array real general\n1 1\nx\n", "\"x\" is not a number" },
                 { "%%MatrixMarket matrix array integer general\n1 1\n1.5\n", "not a 64-bit integer" },
                 { "%%MatrixMarket matrix array real general\n1 2\n1\n", "truncated" },
                 { "%%MatrixMarket matrix array real general\n1 1\n1\n2\n", "after the last element" } };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        refuses(duet_load_market(file_of(rows[k].text, strlen(rows[k].text))), rows[k].why);
    static const char zero_inside[] = "%%MatrixMarket matrix array real general\n1 1\n1\0002\n";
    refuses(duet_load_market(file_of(zero_inside, sizeof zero_inside - 1)), "not text");
    test_market_of_nothing();
    for (int k = 0; k < 30; k++) {
        const int64_t size[] = { (int64_t)draw(5), (int64_t)draw(5) };
        duet_matrix *m = turned(some_matrix(1 + k % 2, 2, size), k % 4), *n;
        CHECK(duet_save_market(path("a.mtx"), m) == DUET_OK, "%s", duet_error());
        n = duet_load_market(path("a.mtx"));
        CHECK(n && equal(m, n, 8), "Matrix Market, file %d: %s", k, duet_error());
        duet_free(&m);
        duet_free(&n);
    }
    tap_point("Matrix Market");
}

/* ---- print ---- */

static void prints(duet_matrix *m, const char *want)
{
    char text[4000] = "";
    FILE *f = tmpfile();
    CHECK(duet_print(f, m) == DUET_OK, "%s", duet_error());
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    CHECK(!strcmp(text, want), "duet_print prints\n%snot\n%s", text, want);
    duet_free(&m);
}

#define MATRIX(type, ctype, sizes, ...)                                                                      \
    matrix_of(type, (const ctype[]){ __VA_ARGS__ }, sizeof(ctype), UNPACK sizes)
#define UNPACK(...)                                                                                          \
    RANK_OF(__VA_ARGS__), (const int64_t[]) { __VA_ARGS__, 0 }
static duet_matrix *matrix_of(duet_dtype type, const void *x, size_t each, int rank, const int64_t *size)
{
    duet_matrix *m = duet_new_shape(type, rank, size);
    memcpy(duet_overwrite(m), x,
           (size_t)duet_count(m) * each * (type == DUET_C64 || type == DUET_C128 ? 2 : 1));
    return m;
}

static void test_print(void)
{
    const bool comma = comma_locale_begin();
    prints(MATRIX(DUET_F64, double, (2, 2), 1, 2.5, -3, 0), "[[ 1.   2.5]\n [-3.   0. ]]\n");
    prints(MATRIX(DUET_F32, float, (3), 0.1f, 1.0f / 3, 100), "[  0.1          0.33333334 100.        ]\n");
    prints(MATRIX(DUET_F32, float, (3), 0.1f, 1.0f / 3, 10), "[ 0.1         0.33333334 10.        ]\n");
    prints(MATRIX(DUET_F64, double, (2), 1e-10, 1), "[1.e-10 1.e+00]\n");
    prints(MATRIX(DUET_F64, double, (4), NAN, INFINITY, -INFINITY, 1.5), "[ nan  inf -inf  1.5]\n");
    prints(MATRIX(DUET_F64, double, (2), NAN, NAN), "[nan nan]\n");
    prints(MATRIX(DUET_I64, int64_t, (2, 2), 1, -20, 300, 4), "[[  1 -20]\n [300   4]]\n");
    prints(MATRIX(DUET_BOOL, unsigned char, (2), 1, 0), "[ True False]\n");
    prints(MATRIX(DUET_U64, uint64_t, (1), UINT64_MAX), "[18446744073709551615]\n");
    prints(MATRIX(DUET_C128, double, (2), 1, 2, -1.5, -0.25), "[ 1. +2.j   -1.5-0.25j]\n");
    prints(MATRIX(DUET_F16, uint16_t, (2), 0x3c00, 0x2e66), "[1.  0.1]\n");
    prints(MATRIX(DUET_BF16, uint16_t, (2), 0x3f80, 0x3dcd), "[1.  0.1]\n");
    prints(duet_new(DUET_F32, 0, 3), "[]\n");
    prints(duet_new(DUET_F64), "0.0\n");
    prints(duet_new(DUET_C64), "0j\n");
    prints(duet_new(DUET_F32, 2, 1, 2), "[[[0. 0.]]\n\n [[0. 0.]]]\n");
    prints(duet_new(DUET_I64, 1001), "[0 0 0 ... 0 0 0]\n");
    prints(duet_new(DUET_I64, 500, 3), "[[0 0 0]\n [0 0 0]\n [0 0 0]\n ...\n [0 0 0]\n [0 0 0]\n [0 0 0]]\n");
    prints(duet_new(DUET_I64, 40),
           "[0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n 0 0 0]\n");
    CHECK(duet_print(NULL, NULL) == DUET_BAD_ARGUMENT && duet_print(stdout, NULL) == DUET_BAD_ARGUMENT,
          "duet_print of NULL did not fail");
    market("%%MatrixMarket matrix array real general\n1 1\n0.5\n", DUET_F64, 1, (const double[]){ 0.5 });
    printf("# locale: %s\n", comma ? COMMA_LOCALE : "C");
    comma_locale_end();
    tap_point("print");
}

/* What was written to f, which is closed. */
static const char *written(FILE *f)
{
    static char text[4000];
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

#define PRINTS(want, ...)                                                                                    \
    do {                                                                                                     \
        FILE *f = tmpfile();                                                                                 \
        CHECK(duet_print(f, __VA_ARGS__) == DUET_OK, "%s", duet_error());                                    \
        const char *text = written(f);                                                                       \
        CHECK(!strcmp(text, want), "duet_print prints\n%snot\n%s", text, want);                              \
    } while (0)
#define REFUSES(status, words, ...)                                                                          \
    do {                                                                                                     \
        FILE *f = tmpfile();                                                                                 \
        CHECK(duet_print(f, __VA_ARGS__) == (status) && strstr(duet_error(), words), "\"%s\"",               \
              duet_error());                                                                                 \
        CHECK(!*written(f), "a failed duet_print printed something");                                        \
    } while (0)

static void test_print_items(void)
{
    const int64_t live = duet_live(NULL);
    const char *label = "label";
    char word[] = "word";
    duet_matrix *x = duet_linspace(DUET_F32, 0, 1, 3), *gone = NULL;
    const duet_matrix *view = x;
    PRINTS("[0.  0.5 1. ]\n", x);
    PRINTS("1.5\n", duet_sum(x));
    PRINTS("sum and x 1.5 [0.  0.5 1. ]\n", "sum and x", duet_sum(x), view);
    PRINTS("label\nword 1 -2 0.1 0.1 1.5 18446744073709551615\n", label, word, 1, (short)-2, 0.1, 0.1f, 1.5L,
           UINT64_MAX);
    PRINTS("1 1 (1+2j)\nlast [[0 1]\n [2 3]] 6\n", true, (char)1, 1 + 2 * I, "last",
           duet_reshape(duet_iota(DUET_I32, 4), 2, -1), duet_sum(duet_iota(DUET_I32, 4)));
    PRINTS("mean [0. 1. 2.] 1.0\n", "mean", duet_mul(x, 2), duet_mean(duet_mul(x, 2)));
    PRINTS("a 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n", "a", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

    REFUSES(DUET_BAD_SHAPE, "duet_add(x: f32[3], y: f32[2]): ", "x", duet_sum(x),
            duet_add(x, duet_iota(DUET_F32, 2)));
    REFUSES(DUET_BAD_ARGUMENT, "duet_print: the matrix must not be NULL", duet_sum(x), gone);
    REFUSES(DUET_BAD_ARGUMENT, "duet_print: a text must not be NULL", duet_sum(x), (const char *)NULL);
    CHECK(duet_print(NULL, duet_sum(x)) == DUET_BAD_ARGUMENT, "duet_print to NULL did not fail");
    const duet_printed one = { .kind = DUET_PRINTED_MATRIX, .m = x };
    const duet_printed odd[] = { { .kind = (duet_printed_kind)9 },
                                 { .kind = DUET_PRINTED_NUMBER, .type = (duet_dtype)99 },
                                 { .kind = DUET_PRINTED_NUMBER, .type = DUET_C128 } };
    CHECK(duet_print_all(stdout, NULL, 1) == DUET_BAD_ARGUMENT && strstr(duet_error(), "the list must not"),
          "\"%s\"", duet_error());
    CHECK(duet_print_all(stdout, &one, 0) == DUET_BAD_ARGUMENT && strstr(duet_error(), "items (0) must be"),
          "\"%s\"", duet_error());
    CHECK(duet_print_all(stdout, &odd[0], 1) == DUET_BAD_ARGUMENT && strstr(duet_error(), "kind (9)"),
          "\"%s\"", duet_error());
    CHECK(duet_print_all(stdout, &odd[1], 1) == DUET_BAD_ARGUMENT && strstr(duet_error(), "type (99)"),
          "\"%s\"", duet_error());
    CHECK(duet_print_all(stdout, &odd[2], 1) == DUET_BAD_ARGUMENT && strstr(duet_error(), "must be DUET_F32"),
          "\"%s\"", duet_error());

    FILE *f = tmpfile();
    DUET_EXPLAIN(f) CHECK(duet_print(f, "sum", duet_sum(x)) == DUET_OK, "%s", duet_error());
    const char *plan = written(f);
    CHECK(strstr(plan, "duet_sum(") && strstr(plan, " 1 step"), "no plan, but \"%s\"", plan);
    CHECK(!strstr(plan, "sum "), "the values of an explained duet_print: \"%s\"", plan);
    duet_free(&x);
    CHECK(duet_live(NULL) == live && duet_arena_limit((size_t)64 << 20) == DUET_OK,
          "duet_print leaves something");
    tap_point("print several items");
}

/* ---- limits ---- */

static void limited(duet_matrix *m, duet_status status, const char *text)
{
    CHECK(!m && duet_error_status() == status && strstr(duet_error(), text), "\"%s\", not: %s", text,
          m ? "a matrix" : duet_error());
    duet_free(&m);
}

static void unlimited(duet_matrix *m)
{
    CHECK(m, "%s", duet_error());
    duet_free(&m);
}

static void test_limits(void)
{
#include "deflated.h"
    static const char text[] = "%%MatrixMarket matrix array complex general\n2 5\n";
    const int64_t size[] = { 4, 5 };
    char file[300];
    duet_matrix *m = some_matrix(1, 2, size), *none = duet_new(DUET_F64, 0, 7);
    const duet_named list[] = { { "a", m } };
    CHECK(duet_save_npy(path("a.npy"), m) == DUET_OK && duet_save_npz(path("a.npz"), list, 1) == DUET_OK &&
              duet_save_market(path("a.mtx"), m) == DUET_OK,
          "%s", duet_error());
    CHECK(duet_load_limits(160, 1) == DUET_OK, "%s", duet_error());
    unlimited(duet_load_npy(path("a.npy")));
    unlimited(duet_load_npz(path("a.npz"), "a"));
    unlimited(duet_load_market(path("a.mtx")));
    CHECK(duet_load_limits(159, 0) == DUET_OK, "%s", duet_error());
    const char *why = "the result has 160 bytes, which exceeds the limit of duet_load_limits (159 bytes)";
    limited(duet_load_npy(path("a.npy")), DUET_NO_MEMORY, why);
    CHECK(strstr(duet_error(), "duet_load_npy(\"/tmp/"), "%s", duet_error());
    limited(duet_load_npz(path("a.npz"), "a"), DUET_NO_MEMORY, why);
    limited(duet_load_market(path("a.mtx")), DUET_NO_MEMORY, why);
    memset(file, '\n', sizeof file);
    memcpy(file, text, strlen(text));
    limited(duet_load_market(file_of(file, sizeof file)), DUET_NO_MEMORY, "the result has 160 bytes");
    CHECK(duet_load_limits(10, 0) == DUET_OK, "%s", duet_error());
    CHECK(!duet_names_npz(path("a.npz")) && duet_error_status() == DUET_NO_MEMORY &&
              strstr(duet_error(), "the result has 18 bytes"),
          "%s", duet_error());
    CHECK(duet_save_npy(path("a.npy"), none) == DUET_OK, "%s", duet_error());
    unlimited(duet_load_npy(path("a.npy")));

    const char *compressed = "which exceeds the ratio of duet_load_limits (1)";
    CHECK(duet_load_limits(0, 1) == DUET_OK, "%s", duet_error());
    limited(duet_load_npz(file_of(deflated, sizeof deflated), "x"), DUET_BAD_FILE, compressed);
    CHECK(duet_load_limits(0, -1) == DUET_BAD_ARGUMENT && strstr(duet_error(), "ratio (-1)"), "%s",
          duet_error());
    limited(duet_load_npz(file_of(deflated, sizeof deflated), "x"), DUET_BAD_FILE, compressed);
    CHECK(duet_load_limits(0, 0) == DUET_OK, "%s", duet_error());
    duet_free(&m);
    duet_free(&none);
    tap_point("limits of the size and the ratio of compression");
}

/* ---- random changes ---- */

static size_t read_whole(const char *name, unsigned char *to, size_t room)
{
    FILE *f = fopen(name, "rb");
    const size_t n = f ? fread(to, 1, room, f) : 0;
    if (f) fclose(f);
    return n;
}

static size_t mutate(unsigned char *p, size_t n, size_t room)
{
    for (uint64_t left = 1 + draw(6); left > 0 && n; left--) {
        const size_t at = draw(4) ? draw(n) : n - 1 - draw(n < 120 ? n : 120), some = 1 + draw(8);
        switch (draw(7)) {
        case 0: p[at] ^= (unsigned char)(1u << draw(8)); break;
        case 1: p[at] = (unsigned char)draw(256); break;
        case 2: p[at] = draw(2) ? 0xff : 0; break;
        case 3: memset(p + at, draw(2) ? 0xff : '9', some < n - at ? some : n - at); break;
        case 4: n = at; break;
        case 5: memmove(p + at, p + draw(n - at), some < n - at ? 1 : 0); break;
        default:
            if (n + some > room) break;
            memmove(p + at + some, p + at, n - at);
            n += some;
        }
    }
    return n;
}

static void test_mutations(int turns)
{
#include "deflated.h"
    static unsigned char whole[6][4000], changed[4200];
    static const char text[] =
        "%%MatrixMarket matrix array real symmetric\n% a comment\n3 3\n1\n2\n3\n4\n5\n6\n";
    size_t n[6];
    duet_matrix *a = some_matrix(0, 2, (const int64_t[]){ 3, 5 }),
                *b = some_matrix(14, 1, (const int64_t[]){ 7 });
    const duet_named list[] = { { "a", a }, { "b", b } };
    CHECK(duet_save_npy(path("a.npy"), a) == DUET_OK && duet_save_npz(path("a.npz"), list, 2) == DUET_OK,
          "%s", duet_error());
    n[0] = read_whole(path("a.npy"), whole[0], 4000);
    n[1] = read_whole(path("a.npz"), whole[1], 4000);
    memcpy(whole[2], deflated, n[2] = sizeof deflated);
    memcpy(whole[3], text, n[3] = strlen(text));
    n[4] = npy_of((char *)whole[4], 3, "{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3, 4), }\n",
                  whole[1], 48);
    memcpy(whole[5], whole[1], n[5] = n[1]);
    const size_t before = duet_memory_of(DUET_CPU).peak;
    for (int k = 0; k < turns; k++) {
        memcpy(changed, whole[k % 6], n[k % 6]);
        const size_t size = mutate(changed, n[k % 6], sizeof changed);
        load_all(file_of(changed, size), size);
        CHECK(duet_memory_of(DUET_CPU).peak - before <= 1100 * sizeof changed, "round %d took %zu bytes", k,
              duet_memory_of(DUET_CPU).peak);
    }
    duet_free(&a);
    duet_free(&b);
    tap_point("randomly damaged files");
}

int main(int argc, char **argv)
{
    if (!mkdtemp(here)) return 1;
    test_round_trips();
    test_known();
    test_into();
    test_deflated();
    test_refusals();
    test_replaced();
    test_long_names();
    test_signals();
    test_market();
    test_print();
    test_print_items();
    test_limits();
    test_mutations(is_quick(argc, argv) ? 6000 : 60000);
    static const char *const left[] = { "a.npy", "a.npz", "c.npz", "a.mtx" };
    for (size_t k = 0; k < sizeof left / sizeof *left; k++) unlink(path(left[k]));
    CHECK(!rmdir(here), "another file is left in %s", here);
    tap_point("no temporary files are left");
    return tap_end();
}
#endif
