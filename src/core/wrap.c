/* wrap.c - matrices of memory that the caller or another library owns. */
#include "device_use.h"
#include "dtype.h"
#include "matrix.h"
#include "min_max.h"
#include <stdlib.h>

static duet_status check_memory(const char *who, const void *host, duet_dtype type)
{
    if (!host) return fail(DUET_BAD_ARGUMENT, "%s: the pointer must not be NULL", who);
    if ((uintptr_t)host % dtypes[dtype_part(type)].bytes == 0) return DUET_OK; /* as C aligns them */
    return fail(DUET_BAD_ARGUMENT, "%s: the pointer (%p) must be aligned to %s elements", who, host,
                dtypes[type].name);
}

duet_matrix *matrix_wrap(const char *who, void *host, duet_dtype type, int rank, const int64_t *size)
{
    if (shape_check(who, type, rank, size) || check_memory(who, host, type)) return NULL;
    return matrix_wrap_dense(host, type, rank, size);
}

duet_matrix *(duet_wrap_shape)(void *host, duet_dtype type, int rank, const int64_t *size)
{
    return matrix_wrap("duet_wrap", host, type, rank, size);
}

/* The size in bytes must not overflow. Axes may overlap: such a matrix can only be read. */
static duet_status check_strides(const char *who, const layout *l)
{
    char text[SHAPE_TEXT];
    int64_t reach = 0, along;
    const int64_t most = PTRDIFF_MAX / 2 / (int64_t)dtypes[l->type].bytes;
    for (int a = 0; a < l->rank; a++)
        if (l->stride[a] > most || l->stride[a] < -most)
            return fail(DUET_BAD_SHAPE, "%s: the stride of axis %d overflows", who, a);
    const int axes = layout_count(l) ? l->rank : 0;
    for (int a = 0; a < axes; a++) {
        if (__builtin_mul_overflow(l->size[a] - 1, llabs(l->stride[a]), &along) || along > most - 1 - reach)
            return fail(DUET_BAD_SHAPE, "%s(%s): the number of bytes overflows", who,
                        shape_text(text, l->type, l->rank, l->size));
        reach += along;
    }
    return DUET_OK;
}

/* GPU kernels need elements that are aligned to their size; C aligns complex ones to their parts. */
static duet_status check_foreign(const char *who, const foreign_memory *f, duet_dtype type)
{
    TRY(check_memory(who, f->first, type));
    if (f->device == HOST || (uintptr_t)f->first % dtypes[type].bytes == 0) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "%s: on the GPU the pointer (%p) must be aligned to %zu bytes for %s", who,
                f->first, dtypes[type].bytes, dtypes[type].name);
}

duet_matrix *matrix_of_foreign(const char *who, const layout *at, const foreign_memory *f)
{
    if (layout_count(at) && check_foreign(who, f, at->type)) return NULL;
    if (check_strides(who, at)) return NULL;
    return matrix_of_memory(at, f);
}

static duet_status read_layout(const char *who, duet_dtype type, int rank, const int64_t *size,
                               const int64_t *stride, layout *at)
{
    TRY(shape_check(who, type, rank, size));
    if (rank && !stride) return fail(DUET_BAD_ARGUMENT, "%s: stride must not be NULL", who);
    *at = (layout){ .type = type, .rank = rank };
    for (int a = 0; a < rank; a++) {
        at->size[a] = size[a];
        at->stride[a] = stride[a];
    }
    return DUET_OK;
}

static duet_matrix *wrap(const char *who, const foreign_memory *f, duet_dtype type, int rank,
                         const int64_t *size, const int64_t *stride)
{
    layout at;
    if (read_layout(who, type, rank, size, stride, &at) || check_foreign(who, f, type)) return NULL;
    return matrix_of_foreign(who, &at, f);
}

duet_matrix *(duet_wrap_strided)(void *first, duet_dtype type, int rank, const int64_t *size,
                                 const int64_t *stride)
{
    return wrap("duet_wrap_strided", &(foreign_memory){ first, HOST }, type, rank, size, stride);
}

duet_matrix *(duet_wrap_columns_shape)(void *host, duet_dtype type, int rank, const int64_t *size)
{
    int64_t stride[DUET_RANK_MAX], next = 1;
    if (shape_check("duet_wrap_columns", type, rank, size)) return NULL;
    for (int a = 0; a < rank; a++) {
        stride[a] = next;
        next *= larger(size[a], 1);
    }
    return wrap("duet_wrap_columns", &(foreign_memory){ host, HOST }, type, rank, size, stride);
}

static duet_matrix *wrap_dense(const char *who, const foreign_memory *f, duet_dtype type, int rank,
                               const int64_t *size)
{
    layout at;
    if (shape_check(who, type, rank, size) || check_foreign(who, f, type)) return NULL;
    layout_dense(&at, type, rank, size);
    return matrix_of_memory(&at, f);
}

/* ---- memory that must not be written ---- */

duet_matrix *(duet_wrap_const_shape)(const void *host, duet_dtype type, int rank, const int64_t *size)
{
    const foreign_memory f = { (void *)(uintptr_t)host, HOST, .constant = true };
    return wrap_dense("duet_wrap_const", &f, type, rank, size);
}

duet_matrix *(duet_wrap_const_strided)(const void *first, duet_dtype type, int rank, const int64_t *size,
                                       const int64_t *stride)
{
    const foreign_memory f = { (void *)(uintptr_t)first, HOST, .constant = true };
    return wrap("duet_wrap_const_strided", &f, type, rank, size, stride);
}

/* ---- memory of a GPU ---- */

/* Finds out on which GPU it is. */
static duet_status locate(const char *who, foreign_memory *f, duet_dtype type)
{
    const char *why = device_absent(DEFAULT_GPU);
    TRY(check_memory(who, f->first, type));
    if (why) return fail(DUET_NO_DEVICE, "%s: %s", who, why);
    return fail_at(device_machine(DEFAULT_GPU)->locate(f->first, &f->device), who);
}

duet_matrix *(duet_wrap_device_shape)(void *device, duet_dtype type, int rank, const int64_t *size)
{
    const char *who = "duet_wrap_device";
    foreign_memory f = { device };
    USE_GPUS;
    if (shape_check(who, type, rank, size) || locate(who, &f, type)) return NULL;
    return wrap_dense(who, &f, type, rank, size);
}

duet_matrix *(duet_wrap_device_strided)(void *first, duet_dtype type, int rank, const int64_t *size,
                                        const int64_t *stride)
{
    const char *who = "duet_wrap_device_strided";
    foreign_memory f = { first };
    USE_GPUS;
    if (shape_check(who, type, rank, size) || locate(who, &f, type)) return NULL;
    return wrap(who, &f, type, rank, size, stride);
}
