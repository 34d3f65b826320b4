/* executable.c - memory for machine code (executable.h). At no time is a page both writable and
 * executable. */
#include "executable.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *executable_make(const uint8_t *code, size_t length, size_t *size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *size = (length + page - 1) / page * page;
    void *at = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return NULL;
    memcpy(at, code, length);
    if (mprotect(at, *size, PROT_READ | PROT_EXEC) == 0) return at;
    munmap(at, *size);
    return NULL;
}

void executable_free(void *code, size_t size) { munmap(code, size); }
