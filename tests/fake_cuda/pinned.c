/* pinned.c - host memory registered with the fake CUDA. */
#include "fake.h"
#include <string.h>

typedef struct range {
    struct range *next;
    const char *p;
    size_t bytes;
    int device;     /* whose context it belongs to */
    bool allocated; /* by cudaMallocHost */
} range;

static range *ranges; /* protected by fake_lock */

/* The first range that contains a byte of [p, p + bytes). */
static range **find(const char *p, size_t bytes)
{
    range **r = &ranges;
    while (*r && !(p < (*r)->p + (*r)->bytes && (*r)->p < p + bytes)) r = &(*r)->next;
    return r;
}

/* Copies may not cross the end of a range of pinned memory. */
bool fake_is_whole(const void *p, size_t bytes, bool *pinned)
{
    pthread_mutex_lock(&fake_lock);
    const range *r = *find(p, bytes);
    const bool whole = !r || (r->p <= (const char *)p && (const char *)p + bytes <= r->p + r->bytes);
    pthread_mutex_unlock(&fake_lock);
    *pinned = r != NULL;
    return whole;
}

static bool enter(range *r)
{
    pthread_mutex_lock(&fake_lock);
    const bool is_new = !*find(r->p, r->bytes);
    if (is_new) {
        r->next = ranges;
        ranges = r;
        fake_counted.pinned++;
    }
    pthread_mutex_unlock(&fake_lock);
    return is_new;
}

cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned int flags)
{
    ENTER(cudaErrorMemoryAllocation);
    OUTSIDE_GRAPHS();
    if (!p || !bytes || flags != cudaHostRegisterPortable) return fake_error(cudaErrorInvalidValue);
    range *r = fake_alloc(sizeof *r);
    if (!r) return fake_error(cudaErrorMemoryAllocation);
    *r = (range){ NULL, p, bytes, fake_device(), false };
    if (enter(r)) return cudaSuccess;
    fake_free(r);
    return fake_error(cudaErrorHostMemoryAlreadyRegistered);
}

/* Freed only with the context. */
cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    ENTER(cudaErrorMemoryAllocation);
    OUTSIDE_GRAPHS();
    range *r = fake_alloc(sizeof *r);
    if (!r || !(*p = fake_alloc(bytes))) {
        fake_free(r);
        return fake_error(cudaErrorMemoryAllocation);
    }
    *r = (range){ NULL, *p, bytes, fake_device(), true };
    (void)enter(r);
    pthread_mutex_lock(&fake_lock);
    fake_counted.pinned--;
    fake_counted.rings++;
    pthread_mutex_unlock(&fake_lock);
    return cudaSuccess;
}

static range *leave(const char *p)
{
    pthread_mutex_lock(&fake_lock);
    range **at = find(p, 1), *r = *at;
    if (r && r->p == p) {
        *at = r->next;
        fake_counted.pinned--;
    } else r = NULL;
    pthread_mutex_unlock(&fake_lock);
    return r;
}

/* Waits for the device like the real function. A scripted failure reports an error of earlier work
 * and still unregisters. */
cudaError_t cudaHostUnregister(void *p)
{
    const cudaError_t e = fake_enter(cudaErrorUnknown);
    OUTSIDE_GRAPHS();
    fake_drain_all();
    range *r = leave(p);
    if (!r) return fake_error(cudaErrorHostMemoryNotRegistered);
    fake_free(r);
    return e;
}

void fake_forget_pinned(int card)
{
    pthread_mutex_lock(&fake_lock);
    for (range **at = &ranges, *r; (r = *at);) {
        if (r->device != card) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        if (r->allocated) fake_counted.rings--;
        else fake_counted.pinned--;
        if (r->allocated) memset((char *)(uintptr_t)r->p, 0xff, r->bytes);
        if (r->allocated) fake_free((char *)(uintptr_t)r->p);
        fake_free(r);
    }
    pthread_mutex_unlock(&fake_lock);
}
