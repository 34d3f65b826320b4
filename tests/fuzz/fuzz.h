/* fuzz.h - functions that the fuzz targets share. A target is a function of libFuzzer, which calls it
 * with changed copies of its seeds. tests/fuzz/run.sh builds and runs the targets. */
#ifndef FUZZ_H
#define FUZZ_H

#define _GNU_SOURCE
#include <duet/duet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Ends the process, so that libFuzzer reports the input. */
__attribute__((unused)) static void expect(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "%s; the last error: %s\n", what, duet_error());
    abort();
}

/* The path of a file in memory with these bytes. The next call replaces the content. */
__attribute__((unused)) static const char *file_of(const uint8_t *bytes, size_t size)
{
    static char path[40];
    static int f = -1;
    if (f < 0) f = memfd_create("duet-fuzz", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", f);
    expect(!ftruncate(f, 0) && pwrite(f, bytes, size, 0) == (ssize_t)size, "the file could not be written");
    return path;
}

/* Checks the result of a function that loads a matrix, and frees it. `most` is the largest number of elements
 * that the file can contain. */
__attribute__((unused)) static void check_loaded(duet_matrix *m, uint64_t most)
{
    expect(m || *duet_error(), "a failure without an error text");
    if (!m) return;
    const int64_t n = duet_count(m);
    expect(n >= 0 && (uint64_t)n <= most, "the matrix has more elements than the file");
    if (n > 0 && n < 1000) expect(duet_read(m) != NULL, "the matrix cannot be read");
    duet_free(&m);
}

#endif
