/* group_files.h - .npy files of matrices on a group. The bytes must be those of ordinary matrices, and each
 * rank reads its part of a file. The functions take a folder that all processes see. */
#ifndef GROUP_FILES_H
#define GROUP_FILES_H

#include "group_random.h"
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The bytes of a file, or NULL. */
static char *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *p = NULL;
    *size = 0;
    if (!f) return NULL;
    if (!fseek(f, 0, SEEK_END) && (p = malloc((size_t)ftell(f) + 1)) != NULL) {
        *size = (size_t)ftell(f);
        rewind(f);
        if (fread(p, 1, *size, f) != *size) *size = 0;
    }
    fclose(f);
    return p;
}

static void same_files(const char *a, const char *b, uint64_t seed)
{
    size_t n, k;
    char *p = read_file(a, &n), *q = read_file(b, &k);
    if (CHECK(p && q, "seed %llu: a file is missing", (unsigned long long)seed))
        CHECK(n == k && !memcmp(p, q, n), "seed %llu: the files differ", (unsigned long long)seed);
    free(p);
    free(q);
}

/* Is there a temporary file in the folder? */
static bool has_temporary(const char *folder)
{
    bool has = false;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) has |= !strncmp(e->d_name, ".duet-", 6);
    if (d) closedir(d);
    return has;
}

static void fill_bits(rng *r, duet_matrix *m)
{
    unsigned char *p = duet_overwrite(m);
    const size_t bytes = (size_t)duet_count(m) * element_bytes(duet_type(m));
    for (size_t i = 0; p && i < bytes; i++)
        p[i] = (unsigned char)rng_below(r, duet_type(m) == DUET_BOOL ? 2 : 256);
}

static void fill_pair(rng *r, pair *p)
{
    rng same = *r;
    fill_bits(r, p->grouped);
    fill_bits(&same, p->plain);
}

/* Sets own[1], where this process saves ordinary matrices, and own[0], where all save those on the group. */
static void name_files(char own[2][300], const char *folder, const duet_group *g, uint64_t seed)
{
    snprintf(own[0], 300, "%s/%llu.npy", folder, (unsigned long long)seed);
    snprintf(own[1], 300, "%s/%llu-%d.npy", folder, (unsigned long long)seed, duet_group_rank(g));
}

static int draw_sizes(rng *r, int64_t size[3], bool large)
{
    const int rank = (int)rng_below(r, 4);
    for (int a = 0; a < rank; a++) size[a] = rng_chance(r, 3) ? 0 : 1 + rng_below(r, 13);
    if (large && rank) size[rng_below(r, rank)] = 1000 + rng_below(r, 60000);
    return rank;
}

/* Reverses the bytes of all numbers, and says so in the header. */
static void swap_file(const char *path, size_t each)
{
    size_t n;
    char *p = read_file(path, &n);
    FILE *f = fopen(path, "wb");
    const size_t begin = p ? 10 + (size_t)(unsigned char)p[8] + 256 * (size_t)(unsigned char)p[9] : 0;
    char *order = p ? memchr(p, '<', n) : NULL;
    if (CHECK(f && order, "%s: no byte order", path)) {
        *order = '>';
        for (size_t i = begin; i < n; i += each)
            for (size_t k = 0; k < each / 2; k++) {
                const char c = p[i + k];
                p[i + k] = p[i + each - 1 - k];
                p[i + each - 1 - k] = c;
            }
        CHECK(fwrite(p, 1, n, f) == n, "%s", path);
    }
    if (f) fclose(f);
    free(p);
}

/* Reads the file into another matrix on the group, maybe a view, and into an ordinary one. */
static void load_case(rng *r, duet_group *g, uint64_t seed, const char *path, duet_dtype type, int rank,
                      const int64_t *size)
{
    pair p = { new_on_group(r, g, type, rank, size), duet_new_shape(type, rank, size), NULL, NULL };
    fill_pair(r, &p);
    const duet_status got = duet_load_npy_into(path, p.grouped), wanted = duet_load_npy_into(path, p.plain);
    CHECK(got == DUET_OK && wanted == DUET_OK, "seed %llu: %s", (unsigned long long)seed, duet_error());
    same_pair(&p, "loaded", rank, seed);
    free_pair(&p);
}

static void file_case(duet_group *g, const char *folder, uint64_t seed, bool large)
{
    rng r = rng_new(seed);
    char path[2][300];
    int64_t size[3], of[3];
    const int rank = draw_sizes(&r, size, large);
    const duet_dtype type = (duet_dtype)rng_below(&r, DUET_DTYPE_COUNT);
    pair p = zeros(&r, g, type, rank, size);
    fill_pair(&r, &p);
    name_files(path, folder, g, seed);
    duet_matrix *m = used(p.grouped, p.grouped_view), *plain = used(p.plain, p.plain_view);
    CHECK(duet_save_npy(path[0], m) == DUET_OK && duet_save_npy(path[1], plain) == DUET_OK, "seed %llu: %s",
          (unsigned long long)seed, duet_error());
    same_files(path[0], path[1], seed);
    for (int a = 0; a < duet_rank(plain); a++) of[a] = duet_size(plain, a);
    load_case(&r, g, seed, path[0], type, duet_rank(plain), of);
    const size_t each = type == DUET_C64 || type == DUET_C128 ? element_bytes(type) / 2 : element_bytes(type);
    if (each > 1 && type != DUET_BF16) {
        swap_file(path[1], each);
        load_case(&r, g, seed, path[1], type, duet_rank(plain), of);
    }
    free_pair(&p);
}

/* A file that is read into a view: other elements of the matrix stay. */
static void load_view(duet_group *g, const char *folder, uint64_t seed)
{
    rng r = rng_new(seed);
    char path[2][300];
    int64_t size[3], of[3];
    const int rank = draw_sizes(&r, size, false);
    const duet_dtype type = (duet_dtype)rng_below(&r, DUET_DTYPE_COUNT);
    pair p = { new_on_group(&r, g, type, rank, size), duet_new_shape(type, rank, size), NULL, NULL };
    fill_pair(&r, &p);
    view_both(&r, &p);
    name_files(path, folder, g, seed);
    duet_matrix *m = used(p.grouped, p.grouped_view), *plain = used(p.plain, p.plain_view);
    for (int a = 0; a < duet_rank(plain); a++) of[a] = duet_size(plain, a);
    duet_matrix *other = duet_new_shape(type, duet_rank(plain), of);
    fill_bits(&r, other);
    CHECK(duet_save_npy(path[1], other) == DUET_OK && duet_load_npy_into(path[1], m) == DUET_OK &&
              duet_load_npy_into(path[1], plain) == DUET_OK,
          "seed %llu: %s", (unsigned long long)seed, duet_error());
    same_pair(&p, "loaded view", rank, seed);
    free_pair(&p);
    duet_free(&other);
}

/* ---- failures ---- */

/* Checks a call that fails on at least one rank. own: the status that this process must get. */
static void fails(const char *what, duet_status got, duet_status own, const char *text)
{
    char said[1024];
    snprintf(said, sizeof said, "%s", duet_error());
    CHECK(got == own, "%s: status %d, not %d: %s", what, got, own, said);
    CHECK(strstr(said, text) != NULL, "%s: not \"%s\" but: %s", what, text, said);
}

/* Saves m. bad: this process must fail, so its files are limited to 100 bytes. */
static duet_status save_limited(const char *path, const duet_matrix *m, bool bad)
{
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 100;
    if (bad) setrlimit(RLIMIT_FSIZE, &small);
    const duet_status s = duet_save_npy(path, m);
    setrlimit(RLIMIT_FSIZE, &before);
    return s;
}

/* The rank `bad` of a group of several processes fails, or the only process. */
static void failed_files(duet_group *g, const char *folder, int bad)
{
    char path[400], other[400];
    const bool is_bad = duet_group_near(g) == duet_group_ranks(g) || duet_group_rank(g) == bad;
    const duet_status io = is_bad ? DUET_IO_ERROR : DUET_RANK_FAILED;
    duet_matrix *x = duet_new_split(g, DUET_F32, 1, 50, 40), *y = duet_new_split(g, DUET_F32, 0, 50, 40),
                *z = duet_new_split(g, DUET_F64, 0, 50, 40);
    snprintf(path, sizeof path, "%s/failed.npy", folder);
    CHECK(duet_random_uniform(x, 1, 0, 1) == DUET_OK && duet_set(y, 3) == DUET_OK &&
              duet_save_npy(path, x) == DUET_OK,
          "%s", duet_error());
    fails("too large", save_limited(path, y, is_bad), io, "File too large");
    CHECK(!has_temporary(folder), "a temporary file is left");
    CHECK(duet_set(y, 3) == DUET_OK, "%s", duet_error()); /* all processes have looked */
    snprintf(other, sizeof other, "%s/nothing/x.npy", folder);
    fails("no folder", duet_save_npy(is_bad ? other : path, y), io, "o such file");
    if (bad && duet_group_near(g) < duet_group_ranks(g))
        fails("another folder", duet_save_npy(is_bad ? "/tmp/x.npy" : path, y), io,
              "all processes must use the same folder of one file system");
    fails("no path", duet_save_npy(is_bad ? NULL : path, y), is_bad ? DUET_BAD_ARGUMENT : DUET_RANK_FAILED,
          "path must not be NULL");
    fails("no file", duet_load_npy_into(is_bad ? other : path, y), io, "o such file");
    CHECK(!has_temporary(folder), "a temporary file is left");
    duet_matrix *same = duet_load_npy(path);
    CHECK(same != NULL && duet_load_npy_into(path, z) == DUET_BAD_TYPE, "%s", duet_error());
    CHECK(duet_set(z, duet_sub(y, 3)) == DUET_OK && !memcmp(duet_read(z), (double[2000]){ 0 }, 16000),
          "y has changed: %s", duet_error());
    CHECK(duet_load_npy_into(path, y) == DUET_OK && duet_set(z, duet_sub(y, same)) == DUET_OK &&
              duet_set(y, duet_sub(x, y)) == DUET_OK,
          "%s", duet_error());
    CHECK(!memcmp(duet_read(z), (double[2000]){ 0 }, 16000) &&
              !memcmp(duet_read(y), (float[2000]){ 0 }, 8000),
          "the file has changed: %s", duet_error());
    duet_free(&x, &y, &z, &same);
}

/* In one process an element is invalid. No rank writes its part. */
static void failed_bools(duet_group *g, const char *folder, int bad)
{
    char path[2][300];
    unsigned char elements[60];
    const bool is_bad = duet_group_near(g) == duet_group_ranks(g) || duet_group_rank(g) == bad;
    duet_matrix *m = duet_new_split(g, DUET_BOOL, 1, 10, 6), *plain = duet_new(DUET_BOOL, 10, 6);
    name_files(path, folder, g, 1);
    CHECK(duet_set(m, 1) == DUET_OK && duet_save_npy(path[1], plain) == DUET_OK, "%s", duet_error());
    FILE *f = fopen(path[1], "rb+");
    if (CHECK(f && !fseek(f, -60, SEEK_END), "%s", path[1])) {
        memset(elements, is_bad ? 2 : 0, sizeof elements);
        CHECK(fwrite(elements, 1, sizeof elements, f) == sizeof elements, "%s", path[1]);
    }
    if (f) fclose(f);
    fails("bools", duet_load_npy_into(path[1], m), is_bad ? DUET_BAD_FILE : DUET_RANK_FAILED,
          "a bool element is neither 0 nor 1");
    CHECK(duet_set(plain, m) == DUET_OK, "%s", duet_error());
    const bool *p = duet_read(plain);
    for (int i = 0; i < 60 && p; i++) CHECK(p[i], "element %d has changed", i);
    duet_free(&m, &plain);
}

/* A file that replaces another one has its permissions, and a link stays. */
static void replaced_file(duet_group *g, const char *folder)
{
    char path[300], link[300];
    struct stat st = { 0 }, of_link = { 0 };
    const bool first = duet_group_rank(g) == 0;
    duet_matrix *x = duet_new_split(g, DUET_F32, 0, 9, 2);
    snprintf(path, sizeof path, "%s/replaced.npy", folder);
    snprintf(link, sizeof link, "%s/link.npy", folder);
    CHECK(duet_save_npy(path, x) == DUET_OK, "%s", duet_error());
    if (first) CHECK(!chmod(path, 0440) && !symlink("replaced.npy", link), "%s", path);
    CHECK(duet_set(x, 1) == DUET_OK && duet_save_npy(link, x) == DUET_OK, "%s", duet_error());
    CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0440, "its mode is %o", (unsigned)st.st_mode);
    CHECK(!lstat(link, &of_link) && S_ISLNK(of_link.st_mode), "the link was replaced");
    CHECK(duet_set(x, 0) == DUET_OK && duet_load_npy_into(path, x) == DUET_OK, "%s", duet_error());
    const float *p = duet_read(x);
    for (int i = 0; i < 18 && p; i++) CHECK(fabsf(p[i] - 1) < 0.5f, "element %d is old", i);
    CHECK(duet_set(x, 0) == DUET_OK, "%s", duet_error()); /* all processes have looked */
    if (first) CHECK(!unlink(path) && !unlink(link), "%s", path);
    duet_free(&x);
}

/* Files that are not regular, and streams. */
static void file_streams(duet_group *g)
{
    size_t size[2] = { 0 };
    char *text[2] = { NULL };
    duet_matrix *x = duet_new_split(g, DUET_F32, 1, 50, 40), *plain = duet_new(DUET_F32, 50, 40);
    CHECK(duet_random_uniform(x, 1, 0, 1) == DUET_OK && duet_random_uniform(plain, 1, 0, 1) == DUET_OK &&
              duet_save_npy("/dev/null", x) == DUET_OK,
          "%s", duet_error());
    for (int k = 0; k < 2; k++) {
        FILE *f = open_memstream(&text[k], &size[k]);
        CHECK(duet_write_npy(f, k ? plain : x) == DUET_OK, "%s", duet_error());
        fclose(f);
    }
    CHECK(size[0] == size[1] && !memcmp(text[0], text[1], size[0]), "streams differ");
    free(text[0]);
    free(text[1]);
    duet_free(&x, &plain);
}

/* Neither saving nor loading makes a buffer for all elements on the host. */
static void file_memory(duet_group *g, const char *folder)
{
    char path[400];
    snprintf(path, sizeof path, "%s/memory.npy", folder);
    for (int axis = 0; axis < 2; axis++) {
        duet_matrix *x = duet_new_split(g, DUET_F64, axis, 1000, 300);
        CHECK(duet_random_uniform(x, 1, 0, 1) == DUET_OK, "%s", duet_error());
        const size_t before = duet_memory_of(DUET_CPU).used;
        const uint64_t exchanges = duet_stats().exchanges;
        CHECK(duet_save_npy(path, x) == DUET_OK, "%s", duet_error());
        const size_t grown = duet_memory_of(DUET_CPU).used - before;
        CHECK(grown < 100000, "saving uses %zu bytes more", grown);
        CHECK(duet_stats().exchanges == exchanges, "saving gathers the elements");
        CHECK(duet_load_npy_into(path, x) == DUET_OK, "%s", duet_error());
        CHECK(duet_stats().exchanges == exchanges, "loading gathers the elements");
        duet_free(&x);
    }
}

static void all_files(duet_group *g, const char *folder, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) file_case(g, folder, seed + (uint64_t)i, i % 8 == 7);
    for (int64_t i = 0; i < count; i++) load_view(g, folder, seed + (uint64_t)(i + count));
    for (int k = 0; k < 2; k++) {
        failed_files(g, folder, k ? duet_group_ranks(g) - 1 : 0);
        failed_bools(g, folder, k ? duet_group_ranks(g) - 1 : 0);
    }
    replaced_file(g, folder);
    file_streams(g);
    file_memory(g, folder);
}

/* Removes the folder and its files. */
static __attribute__((unused)) void remove_folder(const char *folder)
{
    char path[600];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unlink(path);
    }
    if (d) closedir(d);
    rmdir(folder);
}

#endif
