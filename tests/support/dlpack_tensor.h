/* dlpack_tensor.h - tensors of an imaginary library, with memory on the host, whose deleters are counted. */
#ifndef DLPACK_TENSOR_H
#define DLPACK_TENSOR_H

#include "dtype.h"
#include "tap.h"
#include <duet/dlpack.h>
#include <stdlib.h>
#include <string.h>

typedef struct foreign {
    struct DLManagedTensorVersioned versioned;
    DLManagedTensor legacy;
    int64_t shape[DUET_RANK_MAX + 1], strides[DUET_RANK_MAX + 1];
    int deleted;                           /* calls of either deleter */
    void (*at_deletion)(struct foreign *); /* or NULL */
    void *memory, *arg;
} foreign;

static int foreign_deleted; /* of all tensors */

static void count_deletion(foreign *f)
{
    if (f->at_deletion) f->at_deletion(f);
    __atomic_add_fetch(&f->deleted, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&foreign_deleted, 1, __ATOMIC_SEQ_CST);
}
static void delete_versioned(struct DLManagedTensorVersioned *t) { count_deletion(t->manager_ctx); }
static void delete_legacy(DLManagedTensor *t) { count_deletion(t->manager_ctx); }

/* The numbers of DLPack for an element type, written down independently of the library. */
static inline DLDataType type_in_dlpack(duet_dtype t)
{
    static const DLDataType of[DUET_DTYPE_COUNT] = {
        [DUET_F32] = { 2, 32, 1 },  [DUET_F64] = { 2, 64, 1 }, [DUET_F16] = { 2, 16, 1 },
        [DUET_BF16] = { 4, 16, 1 }, [DUET_I8] = { 0, 8, 1 },   [DUET_I16] = { 0, 16, 1 },
        [DUET_I32] = { 0, 32, 1 },  [DUET_I64] = { 0, 64, 1 }, [DUET_U8] = { 1, 8, 1 },
        [DUET_U16] = { 1, 16, 1 },  [DUET_U32] = { 1, 32, 1 }, [DUET_U64] = { 1, 64, 1 },
        [DUET_BOOL] = { 6, 8, 1 },  [DUET_C64] = { 5, 64, 1 }, [DUET_C128] = { 5, 128, 1 },
    };
    return of[t];
}

/* strides: NULL if they are not to be given. first: the element whose indices are all 0. */
static inline void foreign_init(foreign *f, void *first, duet_dtype type, int rank, const int64_t *size,
                                const int64_t *strides)
{
    *f = (foreign){ .memory = first };
    for (int a = 0; a < rank; a++) {
        f->shape[a] = size[a];
        f->strides[a] = strides ? strides[a] : 0;
    }
    const DLTensor t = {
        first, { kDLCPU, 0 }, rank, type_in_dlpack(type), f->shape, strides ? f->strides : NULL, 0
    };
    f->versioned = (struct DLManagedTensorVersioned){ { 1, 3 }, f, delete_versioned, 0, t };
    f->legacy = (DLManagedTensor){ t, f, delete_legacy };
}

/* The offset of element i, in row-major order. */
static inline int64_t strided_offset(int rank, const int64_t *size, const int64_t *stride, int64_t i)
{
    int64_t offset = 0;
    for (int a = rank; a-- > 0; i /= size[a]) offset += i % size[a] * stride[a];
    return offset;
}

#endif
