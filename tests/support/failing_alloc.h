/* failing_alloc.h - an allocator of which any single call can be made to fail, and which counts
 * live blocks.
 *
 * Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=posix_memalign and
 * -Wl,--wrap=aligned_alloc,--wrap=mmap. */
#ifndef FAILING_ALLOC_H
#define FAILING_ALLOC_H

#include "thread.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

static int64_t fail_in = -1; /* allocations until the one that fails; negative: none fails */
static bool fail_for_good;   /* all later allocations fail too */
static int64_t live;

/* The state of a thread could not be allocated. The shared fallback state remains allocated. */
static bool thread_state_missing;

static bool fails_now(void)
{
    const int64_t left = __atomic_fetch_sub(&fail_in, 1, __ATOMIC_RELAXED);
    return left == 0 || (left < 0 && fail_for_good);
}
static void *born(void *p)
{
    __atomic_fetch_add(&live, p != NULL, __ATOMIC_RELAXED);
    return p;
}

void *__real_malloc(size_t), *__real_calloc(size_t, size_t), *__real_realloc(void *, size_t),
    *__real_aligned_alloc(size_t, size_t), *__real_mmap(void *, size_t, int, int, int, off_t),
    *__wrap_malloc(size_t), *__wrap_calloc(size_t, size_t), *__wrap_realloc(void *, size_t),
    *__wrap_aligned_alloc(size_t, size_t), *__wrap_mmap(void *, size_t, int, int, int, off_t);
int __real_posix_memalign(void **, size_t, size_t), __wrap_posix_memalign(void **, size_t, size_t);
void __real_free(void *), __wrap_free(void *);

void *__wrap_malloc(size_t n) { return fails_now() ? NULL : born(__real_malloc(n)); }
void *__wrap_calloc(size_t n, size_t m)
{
    if (!fails_now()) return born(__real_calloc(n, m));
    thread_state_missing = n * m == sizeof(thread);
    return NULL;
}
void *__wrap_aligned_alloc(size_t a, size_t n)
{
    if (fails_now()) return NULL;
    return born(__real_aligned_alloc(a, n));
}
void *__wrap_realloc(void *p, size_t n)
{
    if (fails_now()) return NULL;
    if (p) return __real_realloc(p, n);
    return born(__real_malloc(n));
}
int __wrap_posix_memalign(void **p, size_t a, size_t n)
{
    const int e = fails_now() ? ENOMEM : __real_posix_memalign(p, a, n);
    if (e) return e;
    born(*p);
    return 0;
}
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int file, off_t from)
{
    if (fails_now()) return MAP_FAILED;
    return __real_mmap(at, n, protection, flags, file, from);
}
void __wrap_free(void *p)
{
    __atomic_fetch_sub(&live, p != NULL, __ATOMIC_RELAXED);
    __real_free(p);
}

#endif
