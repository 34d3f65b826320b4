/* dlpack.h - exchanges matrices with other libraries, such as NumPy, PyTorch, CuPy and JAX, without copying:
 * DLPack 1.3. Not part of duet.h.
 *
 * DLPack describes an array in memory of the host or of a GPU by a C struct, a tensor, with a function that
 * its user calls when the memory is no longer needed, the deleter. The first part of this header declares the
 * structs of DLPack. If the program includes DLPack's own dlpack.h before, version 1.0 or later, those
 * declarations are used; if it includes it afterwards, that file adds nothing. */
#ifndef DUET_DLPACK_H
#define DUET_DLPACK_H

#include <duet/duet.h>

#ifdef DLPACK_DLPACK_H_
#ifndef DLPACK_MAJOR_VERSION
#error "the dlpack.h that was included is older than 1.0"
#endif
#else
#define DLPACK_DLPACK_H_

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3

#ifdef __cplusplus
#define DLPACK_EXTERN_C extern "C"
#else
#define DLPACK_EXTERN_C
#endif
#define DLPACK_DLL

#ifdef __cplusplus
extern "C" {
#define DUET_DLPACK_INT32 : int32_t
#else
#define DUET_DLPACK_INT32
#endif

/* Versions with the same major number have the same layout of structs. */
typedef struct {
    uint32_t major, minor;
} DLPackVersion;

/* Kinds of memory. Duet uses the CPU's, and those of CUDA. */
typedef enum DUET_DLPACK_INT32 {
    kDLCPU = 1,
    kDLCUDA = 2,
    kDLCUDAHost = 3, /* page-locked host memory */
    kDLOpenCL = 4,
    kDLVulkan = 7,
    kDLMetal = 8,
    kDLVPI = 9,
    kDLROCM = 10,
    kDLROCMHost = 11,
    kDLExtDev = 12,
    kDLCUDAManaged = 13, /* memory that the host and GPUs share */
    kDLOneAPI = 14,
    kDLWebGPU = 15,
    kDLHexagon = 16,
    kDLMAIA = 17,
    kDLTrn = 18
} DLDeviceType;

/* device_id: the number of the GPU; 0 for memory of the host */
typedef struct {
    DLDeviceType device_type;
    int32_t device_id;
} DLDevice;

/* Element types, with their size in DLDataType.bits. Duet uses kDLInt, kDLUInt, kDLFloat, kDLBfloat,
 * kDLComplex and kDLBool. */
typedef enum {
    kDLInt = 0U,
    kDLUInt = 1U,
    kDLFloat = 2U,
    kDLOpaqueHandle = 3U,
    kDLBfloat = 4U,
    kDLComplex = 5U,
    kDLBool = 6U,
    kDLFloat8_e3m4 = 7U,
    kDLFloat8_e4m3 = 8U,
    kDLFloat8_e4m3b11fnuz = 9U,
    kDLFloat8_e4m3fn = 10U,
    kDLFloat8_e4m3fnuz = 11U,
    kDLFloat8_e5m2 = 12U,
    kDLFloat8_e5m2fnuz = 13U,
    kDLFloat8_e8m0fnu = 14U,
    kDLFloat6_e2m3fn = 15U,
    kDLFloat6_e3m2fn = 16U,
    kDLFloat4_e2m1fn = 17U
} DLDataTypeCode;

/* code: a DLDataTypeCode; lanes: elements of a vector type, otherwise 1 */
typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DLDataType;

/* An array. The element whose indices are all 0 is byte_offset bytes after `data`, which is NULL if there are
 * no elements. Strides count elements. Before version 1.2, strides may be NULL: row-major without gaps. */
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;

/* A tensor with its deleter, which may be NULL, as of DLPack before 1.0. */
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx; /* for the deleter */
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

/* Bits of DLManagedTensorVersioned.flags: the memory must not be written; it is a copy that only the consumer
 * uses; elements of less than a byte occupy a byte each. */
#define DLPACK_FLAG_BITMASK_READ_ONLY              (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED              (1UL << 1UL)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)

/* The same with a version and flags. The members before `flags` are the same in all major versions, so that
 * the deleter can be called. */
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

/* The functions of the exchange table. All return 0, or -1 for a failure. None waits for a stream.
 *     DLPackManagedTensorAllocator           makes a tensor of the type, shape and device of the prototype.
 *                                            SetError gets the name of a Python exception and a text
 *     DLPackManagedTensorFromPyObjectNoSync  the tensor of a Python object
 *     DLPackDLTensorFromPyObjectNoSync       the same without ownership, valid until the caller returns
 *     DLPackManagedTensorToPyObjectNoSync    a new Python object, which owns the tensor
 *     DLPackCurrentWorkStream                the stream on which the library works now */
typedef int (*DLPackManagedTensorAllocator)(DLTensor *prototype, struct DLManagedTensorVersioned **out,
                                            void *error_ctx,
                                            void (*SetError)(void *error_ctx, const char *kind,
                                                             const char *message));
typedef int (*DLPackManagedTensorFromPyObjectNoSync)(void *py_object, struct DLManagedTensorVersioned **out);
typedef int (*DLPackDLTensorFromPyObjectNoSync)(void *py_object, DLTensor *out);
typedef int (*DLPackCurrentWorkStream)(DLDeviceType device_type, int32_t device_id,
                                       void **out_current_stream);
typedef int (*DLPackManagedTensorToPyObjectNoSync)(struct DLManagedTensorVersioned *tensor,
                                                   void **out_py_object);

typedef struct DLPackExchangeAPIHeader {
    DLPackVersion version;
    struct DLPackExchangeAPIHeader *prev_api; /* a table of an older version, or NULL */
} DLPackExchangeAPIHeader;

/* What the attribute __dlpack_c_exchange_api__ of a Python type points to, in a capsule that is named
 * "dlpack_exchange_api". */
typedef struct DLPackExchangeAPI {
    DLPackExchangeAPIHeader header;
    DLPackManagedTensorAllocator managed_tensor_allocator;
    DLPackManagedTensorFromPyObjectNoSync managed_tensor_from_py_object_no_sync;
    DLPackManagedTensorToPyObjectNoSync managed_tensor_to_py_object_no_sync;
    DLPackDLTensorFromPyObjectNoSync dltensor_from_py_object_no_sync; /* may be NULL */
    DLPackCurrentWorkStream current_work_stream;
} DLPackExchangeAPI;

#undef DUET_DLPACK_INT32
#ifdef __cplusplus
}
#endif
#endif /* the declarations of DLPack */

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensorVersioned; /* older versions of dlpack.h have no typedef, or lack the table */
struct DLPackExchangeAPI;

/* A CUDA stream of another library, as the array API standard passes it to __dlpack__: a cudaStream_t as an
 * integer, or one of these.
 *     DUET_DLPACK_LEGACY   CUDA's legacy default stream; 1 means the same
 *     2                    CUDA's default stream of the calling thread
 *     DUET_DLPACK_NO_SYNC  the caller ensures the order of the work */
#define DUET_DLPACK_LEGACY  ((intptr_t)0)
#define DUET_DLPACK_NO_SYNC ((intptr_t)-1)

/* Options of duet_to_dlpack. NULL instead of a pointer means that all are 0.
 *     place      where the memory of the tensor is: on the host (DUET_CPU), on the GPU (DUET_GPU), or where
 *                the elements are now (DUET_AUTO), on the host if they are on both
 *     writable   1: the consumer may write the elements; 0: the tensor has the flag READ_ONLY
 *     copy       1: the tensor is a copy, which the consumer may write
 *     stream     the stream of the consumer; ignored for memory of the host */
typedef struct duet_dlpack_options {
    duet_place place;
    int writable, copy;
    intptr_t stream;
} duet_dlpack_options;

/* Gives the elements of m to another library, without copying them unless they must be brought to `place`.
 * The tensor shares the memory of m until its deleter is called, also after m is freed. Any thread may call
 * the deleter. The tensor has the strides of m, which may be negative or 0.
 * On the host, the call waits until the elements are there. On the GPU it does not wait: work that the stream
 * of the consumer gets from now on starts after the work of this thread.
 * The library does not notice what others do with the memory. As with a pointer of duet_update or
 * duet_device_update, do this when the consumer has written, and before the next use of m: call duet_update
 * for memory of the host. For memory of the GPU make duet_stream() wait for the consumer's stream, then call
 * duet_device_update. Do the same before a statement overwrites elements that the consumer still reads.
 * If the matrix is written on another device, the tensor keeps the old elements until duet_read, or
 * duet_device_read, brings them up to date.
 *     duet_to_dlpack          returns a tensor with version and flags, for a capsule "dltensor_versioned"
 *     duet_to_dlpack_legacy   returns a tensor for a capsule "dltensor", as libraries need it that know only
 *                             DLPack before 1.0. It has no flags, so the consumer may write: as if
 *                             options->writable were 1
 * Owner     the tensor: the caller, who gives it to one consumer. The consumer calls tensor->deleter(tensor)
 *           once. Memory of the GPU stays in use until all work of the GPU is done then
 * Errors    NULL: BAD_ARGUMENT (m is NULL or was freed; an option is not in its range; `writable`, but m must
 *           not be written), UNKNOWN, NO_MEMORY, NO_DEVICE, DEVICE_ERROR; with `copy` also as duet_set */
DUET_API DUET_MUST struct DLManagedTensorVersioned *duet_to_dlpack(duet_matrix *m,
                                                                   const duet_dlpack_options *options);
DUET_API DUET_MUST struct DLManagedTensor *duet_to_dlpack_legacy(duet_matrix *m,
                                                                 const duet_dlpack_options *options);

/* Returns where duet_to_dlpack puts the tensor of m for DUET_AUTO: __dlpack_device__ in Python. For NULL or a
 * freed matrix it is the CPU. */
DUET_API DLDevice duet_dlpack_device(const duet_matrix *m);

/* Create a matrix that uses the memory of a tensor. Nothing is copied. A read-only tensor becomes a matrix
 * that can be read but not written, as duet_wrap_const makes it, and so do its views. Strides may be negative
 * or 0. If a stride is 0, or if axes overlap as for duet_wrap_strided, elements occur several times, and the
 * matrix can be read but not written. The elements are u8, u16, u32, u64, i8, i16, i32, i64, f16, bf16, f32,
 * f64, c64, c128 and bool, whose bytes must be 0 or 1. The memory is that of the host, page-locked or not, or
 * of a GPU that this library uses.
 * Of a tensor that duet_to_dlpack made, the matrix is a view of the original one. If the tensor is writable,
 * the elements count as written by its consumer.
 * `stream` is the stream of the producer, for memory of the GPU: work on the new matrix starts after all work
 * that is now in this stream. If the producer already knew duet_stream() as the consumer's stream, pass
 * DUET_DLPACK_NO_SYNC.
 * As for all memory of others: call duet_read, duet_update or duet_overwrite, or on the GPU duet_device_read
 * and so on, before other code uses the memory, and again after other code has written.
 *     duet_from_dlpack          the matrix of a tensor from a capsule "dltensor_versioned"
 *     duet_from_dlpack_legacy   the matrix of a tensor from a capsule "dltensor"
 * Shapes    that of the tensor; rank 0 to 8
 * Owner     the matrix: the caller, until duet_free. The tensor: the matrix. Its deleter is called once, when
 *           the matrix and its views are freed and no work uses the memory, by the thread that frees the last
 *           of them, or by a later call of duet_free. If the call fails, the tensor stays the caller's
 * Errors    NULL: BAD_ARGUMENT (the tensor, its shape or its data is NULL; the data is not aligned to its
 *           elements; the data is not on the device), BAD_SHAPE (rank, sizes, overflow),
 *           UNSUPPORTED (major version, element type, vector types, device), NO_DEVICE, NO_MEMORY,
 *           DEVICE_ERROR */
DUET_API DUET_MUST duet_matrix *duet_from_dlpack(struct DLManagedTensorVersioned *tensor, intptr_t stream);
DUET_API DUET_MUST duet_matrix *duet_from_dlpack_legacy(struct DLManagedTensor *tensor, intptr_t stream);

/* Returns the exchange table of DLPack 1.3. It has the functions that need no Python:
 * managed_tensor_allocator, whose tensors have undefined elements, and current_work_stream, which launches
 * deferred statements and returns the stream of duet_stream(), but leaves automatic replay on. Call it before
 * each use of the stream. The functions of Python objects are NULL: a binding copies the table, sets them,
 * and publishes the copy.
 * Owner     the library; the table is constant and always valid
 * Errors    none */
DUET_API const struct DLPackExchangeAPI *duet_dlpack_exchange(void);

#ifdef __cplusplus
}
#endif

/* These put the file and line of a call in front of its error text, as the macros of call_site.h do. */
static inline DUET_MUST struct DLManagedTensorVersioned *
duet_tensor_at(struct DLManagedTensorVersioned *tensor, const char *site)
{
    if (!tensor) duet_error_at(site);
    return tensor;
}
static inline DUET_MUST struct DLManagedTensor *duet_legacy_tensor_at(struct DLManagedTensor *tensor,
                                                                      const char *site)
{
    if (!tensor) duet_error_at(site);
    return tensor;
}
#define duet_to_dlpack(...)          duet_tensor_at((duet_to_dlpack)(__VA_ARGS__), DUET_HERE)
#define duet_to_dlpack_legacy(...)   duet_legacy_tensor_at((duet_to_dlpack_legacy)(__VA_ARGS__), DUET_HERE)
#define duet_from_dlpack(...)        DUET_MATRIX_HERE(duet_from_dlpack, __VA_ARGS__)
#define duet_from_dlpack_legacy(...) DUET_MATRIX_HERE(duet_from_dlpack_legacy, __VA_ARGS__)

#endif
