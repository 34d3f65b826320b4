/* test_streams.c - matrices on open streams: round trips through files, pipes and memory, the position of the
 * stream after each matrix, the end of the stream, headers that claim more than there is, changed bytes, and
 * errors of the system. */
#define _GNU_SOURCE
#include "by_sanitizer.h"
#include "comma_locale.h"
#include "common.h"
#include "dtype.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static rng gen;

/* ---- matrices ---- */

static duet_matrix *random_bits(duet_dtype type, int rank, const int64_t *size)
{
    duet_matrix *m = duet_new_shape(type, rank, size);
    unsigned char *p = duet_overwrite(m);
    for (size_t i = 0; i < (size_t)duet_count(m) * dtypes[type].bytes; i++)
        p[i] = (unsigned char)rng_below(&gen, type == DUET_BOOL ? 2 : 100);
    return m;
}

/* Of any type, shape and order of axes; a view now and then. */
static duet_matrix *draw_matrix(int most)
{
    int64_t size[4];
    const int rank = (int)rng_below(&gen, 5);
    for (int a = 0; a < rank; a++) size[a] = rng_chance(&gen, 5) ? 0 : 1 + rng_below(&gen, most);
    duet_matrix *m = random_bits((duet_dtype)rng_below(&gen, DUET_DTYPE_COUNT), rank, size), *view = NULL;
    if (rng_chance(&gen, 30)) view = duet_transposed(m);
    else if (rank && rng_chance(&gen, 30)) view = duet_stepped(m, 0, DUET_OPEN, DUET_OPEN, -2);
    if (!view) return m;
    duet_free(&m);
    return view;
}

static bool same_matrix(duet_matrix *a, duet_matrix *b)
{
    if (!a || !b || duet_type(a) != duet_type(b) || duet_rank(a) != duet_rank(b)) return false;
    for (int i = 0; i < duet_rank(a); i++)
        if (duet_size(a, i) != duet_size(b, i)) return false;
    const size_t bytes = (size_t)duet_count(a) * dtypes[duet_type(a)].bytes;
    char *p = malloc(bytes + 1), *q = malloc(bytes + 1);
    const bool same = p && q && !duet_to_array(a, p) && !duet_to_array(b, q) && !memcmp(p, q, bytes);
    free(p);
    free(q);
    return same;
}

static void no_more(duet_matrix *m, const char *who)
{
    CHECK(!m && duet_error_status() == DUET_END_OF_FILE && strstr(duet_error(), who) &&
              strstr(duet_error(), "no more matrices"),
          "at the end there is %s", m ? "a matrix" : duet_error());
    duet_free(&m);
}

/* ---- a stream that returns few bytes at a time and has no size ---- */

typedef struct source {
    const char *bytes;
    size_t size, at;
    bool in_pieces;
} source;

static ssize_t read_source(void *cookie, char *to, size_t most)
{
    source *s = cookie;
    size_t n = s->size - s->at;
    if (n > most) n = most;
    if (s->in_pieces && n > 1) n = 1 + rng_below(&gen, (int64_t)n);
    memcpy(to, s->bytes + s->at, n);
    s->at += n;
    return (ssize_t)n;
}

static FILE *open_source(source *s)
{
    return fopencookie(s, "rb", (cookie_io_functions_t){ .read = read_source });
}

/* ---- round trips ---- */

enum { MANY = 40 };

static void round_trips(void)
{
    FILE *f = tmpfile();
    duet_matrix *m[MANY];
    char line[20];
    for (int k = 0; k < MANY; k++) {
        m[k] = draw_matrix(k < 3 ? 20 : 6);
        CHECK(duet_write_npy(f, m[k]) == DUET_OK, "%s", duet_error());
        if (k % 3 == 1) fprintf(f, "line %d\n", k);
    }
    rewind(f);
    for (int k = 0; k < MANY; k++) {
        duet_matrix *n = duet_read_npy(f);
        CHECK(same_matrix(m[k], n), "matrix %d: %s", k, n ? "another one was read" : duet_error());
        duet_free(&n);
        if (k % 3 == 1) CHECK(fgets(line, sizeof line, f) && atoi(line + 5) == k, "the line after %d", k);
    }
    no_more(duet_read_npy(f), "test_streams.c:");
    no_more(duet_read_npy(f), "duet_read_npy: ");
    for (int k = 0; k < MANY; k++) duet_free(&m[k]);
    fclose(f);
    tap_point("arrays and lines in a file");
}

/* What duet_save_npy writes, and the other way round. */
static void like_files(void)
{
    char path[] = "/tmp/duet-streams-XXXXXX";
    const int file = mkstemp(path);
    duet_matrix *m = random_bits(DUET_F32, 2, (int64_t[]){ 5, 7 }), *t = duet_transposed(m), *n;
    CHECK(duet_save_npy(path, t) == DUET_OK, "%s", duet_error());
    FILE *f = fopen(path, "rb");
    n = duet_read_npy(f);
    CHECK(same_matrix(t, n), "%s", duet_error());
    CHECK(duet_stride(n, 0) == 1, "an array in Fortran order was reordered");
    duet_free(&n);
    fclose(f);
    f = fopen(path, "wb");
    CHECK(duet_write_npy(f, m) == DUET_OK && !fclose(f), "%s", duet_error());
    n = duet_load_npy(path);
    CHECK(same_matrix(m, n), "%s", duet_error());
    duet_free(&n);
    duet_free(&m);
    duet_free(&t);
    close(file);
    unlink(path);
    tap_point("streams and files have the same formats");
}

typedef struct writer {
    FILE *f;
    duet_matrix **m;
    int count;
    bool market;
} writer;

static void *write_all(void *arg)
{
    writer *w = arg;
    for (int k = 0; k < w->count; k++) {
        const duet_status s = w->market ? duet_write_market(w->f, w->m[k]) : duet_write_npy(w->f, w->m[k]);
        CHECK(s == DUET_OK, "%s", duet_error());
    }
    fclose(w->f);
    return NULL;
}

/* Sizes on both sides of what is allocated at first. */
static void pipes(void)
{
    static const int64_t lengths[] = { 0, 1, 1000, 131072, 131073, 200000, 400000, 700001, 5 };
    enum { COUNT = sizeof lengths / sizeof *lengths };
    for (int market = 0; market < 2; market++) {
        duet_matrix *m[COUNT];
        int end[2];
        pthread_t thread;
        for (int k = 0; k < COUNT; k++) {
            const int64_t count = market ? lengths[k] / 20 : lengths[k];
            duet_matrix *line = duet_linspace(DUET_F64, -1, 1.1, count);
            m[k] = duet_reshaped(line, count, 1);
            duet_free(&line);
        }
        if (!CHECK(!pipe(end), "no pipe")) return;
        writer w = { fdopen(end[1], "wb"), m, COUNT, market };
        FILE *in = fdopen(end[0], "rb");
        CHECK(!pthread_create(&thread, NULL, write_all, &w), "no thread");
        for (int k = 0; k < COUNT; k++) {
            duet_matrix *n = market ? duet_read_market(in) : duet_read_npy(in);
            CHECK(same_matrix(m[k], n), "matrix %d through a pipe: %s", k, duet_error());
            duet_free(&n);
        }
        no_more(market ? duet_read_market(in) : duet_read_npy(in),
                market ? "duet_read_market" : "duet_read_npy");
        pthread_join(thread, NULL);
        fclose(in);
        for (int k = 0; k < COUNT; k++) duet_free(&m[k]);
    }
    tap_point("large and small arrays through a pipe");
}

static void in_memory(void)
{
    char *bytes = NULL;
    size_t size = 0;
    duet_matrix *a = draw_matrix(9), *b = draw_matrix(9), *n;
    FILE *f = open_memstream(&bytes, &size);
    CHECK(duet_write_npy(f, a) == DUET_OK && duet_write_npy(f, b) == DUET_OK && !fclose(f), "%s",
          duet_error());
    f = fmemopen(bytes, size, "rb");
    n = duet_read_npy(f);
    CHECK(same_matrix(a, n), "%s", duet_error());
    duet_free(&n);
    n = duet_read_npy(f);
    CHECK(same_matrix(b, n), "%s", duet_error());
    duet_free(&n);
    no_more(duet_read_npy(f), "duet_read_npy");
    fclose(f);
    free(bytes);
    duet_free(&a);
    duet_free(&b);
    tap_point("streams in memory");
}

/* ---- Matrix Market ---- */

static void market(void)
{
    const bool comma = comma_locale_begin();
    FILE *f = tmpfile();
    const duet_dtype to[] = { DUET_F32, DUET_F64, DUET_I8, DUET_U64, DUET_C64, DUET_C128, DUET_F16 };
    duet_matrix *m[14];
    for (int k = 0; k < 14; k++) {
        duet_matrix *line = duet_linspace(DUET_F64, 0, 1.1, (k + 1) * 3);
        m[k] = duet_eval(duet_cast(duet_reshape(duet_mul(line, 77), 3, -1), to[k % 7]));
        duet_free(&line);
        CHECK(m[k] && duet_write_market(f, m[k]) == DUET_OK, "%s", duet_error());
    }
    fputs("\n\n%%MatrixMarket matrix array real symmetric\n% it\n2 2\n1\n2.5\n3\nrest", f);
    rewind(f);
    for (int k = 0; k < 14; k++) {
        duet_matrix *n = duet_read_market(f), *like = n ? duet_eval(duet_cast(n, duet_type(m[k]))) : NULL;
        CHECK(same_matrix(m[k], like), "matrix %d: %s", k, duet_error());
        duet_free(&n);
        duet_free(&like);
        duet_free(&m[k]);
    }
    duet_matrix *n = duet_read_market(f);
    const double *p = n ? duet_read(n) : NULL;
    CHECK(p && p[0] == 1 && p[1] == 2.5 && p[2] == 2.5 && p[3] == 3, "%s", duet_error());
    char rest[10] = "";
    CHECK(fgets(rest, sizeof rest, f) && !strcmp(rest, "rest"), "after the last element there is \"%s\"",
          rest);
    no_more(duet_read_market(f), "duet_read_market");
    duet_free(&n);
    fclose(f);
    if (comma) comma_locale_end();
    tap_point(comma ? "Matrix Market, with a decimal comma" : "Matrix Market");
}

/* Symmetric matrices from a stream without a size. */
static void market_symmetries(void)
{
    static const struct {
        const char *text;
        int count;
        double want[8];
    } rows[] = {
        { "%%MatrixMarket matrix array real skew-symmetric\n2 2\n7", 4, { 0, -7, 7, 0 } },
        { "%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 3\n4 0\n",
          8,
          { 1, 0, 2, -3, 2, 3, 4, 0 } },
        { "%%MatrixMarket matrix array complex symmetric\n2 2\n1 0\n2 3\n4 0\n",
          8,
          { 1, 0, 2, 3, 2, 3, 4, 0 } },
        { "%%MatrixMarket matrix array complex skew-symmetric\n2 2\n2 3\n", 8, { 0, 0, -2, -3, 2, 3, 0, 0 } },
        { "%%MatrixMarket matrix array real general\n0 5\n", 0, { 0 } },
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        source s = { rows[k].text, strlen(rows[k].text), 0, true };
        FILE *f = open_source(&s);
        duet_matrix *m = duet_read_market(f);
        const double *p = m ? duet_read(m) : NULL;
        CHECK(p && !memcmp(p, rows[k].want, (size_t)rows[k].count * sizeof *p), "text %d: %s", (int)k,
              duet_error());
        no_more(duet_read_market(f), "duet_read_market");
        duet_free(&m);
        fclose(f);
    }
    tap_point("symmetries on a stream");
}

/* ---- incomplete and changed bytes ---- */

static size_t two_arrays(char **bytes, bool is_market, size_t *first)
{
    size_t size = 0;
    duet_matrix *a = random_bits(DUET_U16, 2, (int64_t[]){ 3, 2 }),
                *b = random_bits(DUET_U8, 2, (int64_t[]){ 1, 5 });
    FILE *f = open_memstream(bytes, &size);
    CHECK(!(is_market ? duet_write_market(f, a) : duet_write_npy(f, a)), "%s", duet_error());
    *first = size;
    CHECK(!(is_market ? duet_write_market(f, b) : duet_write_npy(f, b)) && !fclose(f), "%s", duet_error());
    duet_free(&a);
    duet_free(&b);
    return size;
}

/* Opens the first bytes as a file, whose size is known, or as a stream. */
static FILE *open_bytes(source *s, const char *bytes, size_t size, bool as_file)
{
    *s = (source){ bytes, size, 0, rng_chance(&gen, 50) };
    if (!as_file) return open_source(s);
    FILE *f = tmpfile();
    if (!f || fwrite(bytes, 1, size, f) != size) abort();
    rewind(f);
    return f;
}

static void truncated(void)
{
    for (int how = 0; how < 4; how++) {
        char *bytes;
        size_t first;
        const bool is_market = how / 2;
        const size_t size = two_arrays(&bytes, is_market, &first);
        for (size_t n = 0; n <= size; n++) {
            source s;
            int whole = 0;
            FILE *f = open_bytes(&s, bytes, n, how % 2);
            for (;;) {
                duet_matrix *m = is_market ? duet_read_market(f) : duet_read_npy(f);
                if (!m) break;
                whole++;
                duet_free(&m);
            }
            const duet_status status = duet_error_status();
            const bool ends = n == 0 || n == first || n == size;
            if (is_market) /* a text without its last characters may be whole, and words may be cut */
                CHECK(whole >= (n >= first) + (n == size) && whole <= (n + 6 >= first) + (n + 6 >= size) &&
                          (status == DUET_END_OF_FILE || status == DUET_BAD_FILE ||
                           status == DUET_UNSUPPORTED) &&
                          (status == DUET_END_OF_FILE || !ends),
                      "%d matrices in %d of %d bytes: %s", whole, (int)n, (int)size, duet_error());
            else
                CHECK(whole == (n >= first) + (n == size) &&
                          status == (ends ? DUET_END_OF_FILE : DUET_BAD_FILE),
                      "%d arrays in %d of %d bytes: %s", whole, (int)n, (int)size, duet_error());
            fclose(f);
        }
        free(bytes);
    }
    tap_point("streams that end early");
}

static void changed(int turns)
{
    for (int t = 0; t < turns; t++) {
        char *bytes;
        size_t first;
        source s;
        const bool is_market = t % 2;
        const size_t size = two_arrays(&bytes, is_market, &first);
        for (int k = rng_below(&gen, 4); k >= 0; k--)
            bytes[rng_below(&gen, (int64_t)size)] =
                (char)(rng_chance(&gen, 50) ? "0123456789(), .'%-"[rng_below(&gen, 18)]
                                            : rng_below(&gen, 256));
        FILE *f = open_bytes(&s, bytes, size, t / 2 % 2);
        for (int k = 0; k < 5; k++) {
            duet_matrix *m = is_market ? duet_read_market(f) : duet_read_npy(f);
            CHECK(m ? duet_count(m) <= (int64_t)size || !duet_count(m) : *duet_error() != 0, "%d elements",
                  m ? (int)duet_count(m) : 0);
            if (!m) break;
            duet_free(&m);
        }
        fclose(f);
        free(bytes);
    }
    tap_point("changed bytes");
}

/* ---- headers that claim too much ---- */

static size_t npy_header(char *to, const char *shape)
{
    const int n = sprintf(to + 10, "{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }\n", shape);
    memcpy(to, "\x93NUMPY\x01\x00", 8);
    to[8] = (char)n;
    to[9] = 0;
    return (size_t)n + 10;
}

/* In a process that can allocate little. */
static int claims(const char *bytes, size_t size, bool is_market)
{
    source s = { bytes, size, 0, true };
    FILE *f = open_source(&s);
    duet_matrix *warm = duet_ones(DUET_F64, 100);
    duet_free(&warm);
    FILE *statm = fopen("/proc/self/statm", "r");
    long pages = 0;
    if (!statm || fscanf(statm, "%ld", &pages) != 1) return 2;
    fclose(statm);
    const rlim_t most = (rlim_t)pages * 4096 + (64 << 20);
    if (!by_sanitizer && setrlimit(RLIMIT_AS, &(struct rlimit){ most, most })) return 3;
    duet_matrix *m = is_market ? duet_read_market(f) : duet_read_npy(f);
    if (!m && duet_error_status() == DUET_BAD_FILE) return 0;
    printf("# %s\n", m ? "a matrix" : duet_error());
    fflush(stdout);
    return 4;
}

static void in_child(const char *what, const char *bytes, size_t size, bool is_market)
{
    int status = -1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) _exit(claims(bytes, size, is_market));
    waitpid(child, &status, 0);
    CHECK(status == 0, "%s: the process ended with %x", what, status);
}

static void lies(void)
{
    static const char *const shapes[] = { "100000000000", "1000000000", "131073", "4611686018427387903",
                                          "99999, 99999, 99999, 99999, 99999" };
    static const char *const texts[] = {
        "%%MatrixMarket matrix array real general\n1000000 1000000\n1 2 3",
        "%%MatrixMarket matrix array real symmetric\n3000000000 3000000000\n1 2 3",
        "%%MatrixMarket matrix array complex general\n1 999999999999999999\n1 2",
        "%%MatrixMarket matrix array integer general\n99999999999 9999999999\n1"
    };
    char bytes[2000] = { 0 };
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        in_child(shapes[k], bytes, npy_header(bytes, shapes[k]) + 900, false);
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        in_child(texts[k], texts[k], strlen(texts[k]), true);
    tap_point("headers that claim more than memory has");
}

static void limits(void)
{
    char bytes[2000] = { 0 };
    source s = { bytes, npy_header(bytes, "100000000000") + 900, 0, false };
    CHECK(duet_load_limits(1000, 0) == DUET_OK, "%s", duet_error());
    FILE *f = open_source(&s);
    CHECK(!duet_read_npy(f) && duet_error_status() == DUET_NO_MEMORY &&
              strstr(duet_error(),
                     "duet_read_npy: the result has 800000000000 bytes, which exceeds the limit"),
          "%s", duet_error());
    fclose(f);
    s = (source){ bytes, npy_header(bytes, "125") + 1000, 0, false };
    f = open_source(&s);
    duet_matrix *m = duet_read_npy(f);
    CHECK(m && duet_count(m) == 125, "%s", duet_error());
    duet_free(&m);
    fclose(f);
    const char *text = "%%MatrixMarket matrix array real general\n126 1\n1";
    s = (source){ text, strlen(text), 0, false };
    f = open_source(&s);
    CHECK(!duet_read_market(f) && duet_error_status() == DUET_NO_MEMORY, "%s", duet_error());
    fclose(f);
    CHECK(duet_load_limits(0, 0) == DUET_OK, "%s", duet_error());
    tap_point("limits of the program");
}

/* ---- errors of the system ---- */

static void ignore(int signal) { (void)signal; }

static void *write_slowly(void *arg)
{
    const int f = *(int *)arg;
    char bytes[2000] = { 0 };
    const size_t size = npy_header(bytes, "5") + 40;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (size_t i = 0; i < size; i++) {
        usleep(2000);
        if (write(f, bytes + i, 1) != 1) abort();
    }
    close(f);
    return NULL;
}

/* Signals interrupt the reader, which continues. */
static void interrupted(void)
{
    int end[2];
    pthread_t thread;
    struct sigaction act = { .sa_handler = ignore }, before;
    if (!CHECK(!pipe(end) && !sigaction(SIGALRM, &act, &before), "no pipe")) return;
    FILE *in = fdopen(end[0], "rb");
    CHECK(!pthread_create(&thread, NULL, write_slowly, &end[1]), "no thread");
    setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 3000 }, { 0, 3000 } }, NULL);
    duet_matrix *m = duet_read_npy(in);
    setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 0 } }, NULL);
    CHECK(m && duet_count(m) == 5, "%s", duet_error());
    pthread_join(thread, NULL);
    sigaction(SIGALRM, &before, NULL);
    duet_free(&m);
    fclose(in);
    tap_point("signals while a stream is read");
}

static void fails(duet_status s, duet_status want, const char *text)
{
    CHECK(s == want && strstr(duet_error(), text), "status %d: %s", (int)s, duet_error());
}

/* SIGPIPE would end the process. */
static void refused(void)
{
    int end[2];
    duet_matrix *m = random_bits(DUET_F64, 2, (int64_t[]){ 300, 100 }),
                *v = random_bits(DUET_F32, 1, (int64_t[]){ 3 }), *none = NULL;
    FILE *nothing = NULL, *full = fopen("/dev/full", "wb"), *input = fopen("/dev/zero", "rb");
    fails(duet_write_npy(nothing, m), DUET_BAD_ARGUMENT, "duet_write_npy: the stream must not be NULL");
    fails(duet_write_npy(full, none), DUET_BAD_ARGUMENT, "duet_write_npy: the matrix must not be NULL");
    fails(duet_write_market(nothing, m), DUET_BAD_ARGUMENT, "duet_write_market: the stream must not be NULL");
    fails(duet_write_market(full, v), DUET_BAD_SHAPE, "duet_write_market(m: f32[3]): m must have 2 axes");
    CHECK(!duet_read_npy(nothing) && strstr(duet_error(), "duet_read_npy: the stream must not be NULL"), "%s",
          duet_error());
    CHECK(!duet_read_market(nothing) && strstr(duet_error(), "test_streams.c:"), "%s", duet_error());
    CHECK(!duet_read_npy(input) && duet_error_status() == DUET_BAD_FILE, "%s", duet_error());
    fails(duet_write_npy(full, m), DUET_IO_ERROR, "No space left");
    fails(duet_write_market(full, m), DUET_IO_ERROR, "No space left");
    fails(duet_write_npy(full, v), DUET_IO_ERROR, "No space left"); /* less than the stream's buffer */
    fails(duet_write_npy(input, m), DUET_IO_ERROR, "duet_write_npy: ");
    CHECK(!duet_read_npy(full) && duet_error_status() == DUET_IO_ERROR, "%s", duet_error());
    if (!CHECK(!pipe(end) && !close(end[0]), "no pipe")) return;
    FILE *closed = fdopen(end[1], "wb");
    fails(duet_write_npy(closed, v), DUET_IO_ERROR, "Broken pipe");
    fails(duet_write_npy(closed, m), DUET_IO_ERROR, "Broken pipe");
    fails(duet_write_market(closed, m), DUET_IO_ERROR, "Broken pipe");
    signal(SIGPIPE, SIG_IGN); /* the stream may still have bytes */
    fclose(closed);
    signal(SIGPIPE, SIG_DFL);
    fclose(full);
    fclose(input);
    duet_free(&m);
    duet_free(&v);
    tap_point("bad arguments and errors of the system");
}

int main(void)
{
    gen = rng_new(11);
    round_trips();
    like_files();
    pipes();
    in_memory();
    market();
    market_symmetries();
    truncated();
    changed(20000);
    lies();
    limits();
    interrupted();
    refused();
    return tap_end();
}
