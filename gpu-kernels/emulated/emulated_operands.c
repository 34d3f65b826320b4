/* emulated_operands.c - the operands of emulated products and convolutions: packs operand 1, and
 * describes operands to the tensor memory accelerator. */
#include "emulated.h"
#include "min_max.h"
#include <cudaTypedefs.h>

static int64_t units_of(const layout *b)
{
    return quotient_up(b->size[0], EMULATED_UNIT) * quotient_up(b->size[1], EMULATED_UNIT);
}

/* A matrix product stores the largest magnitude and the packed operand, a convolution only the
 * largest magnitude: its filters are small, so each thread block converts them itself. */
size_t kernels_packed_bytes(const step *s)
{
    return EMULATED_HEAD + (s->kernel == OP_matmul ? (size_t)units_of(&s->in[1].at) * 2 * EMULATED_PART : 0);
}

/* Computes the largest magnitude of operand 1 into *most. Thread blocks update it with atomic
 * maxima, so it is set to 0 first. */
static cudaError_t measure(const step *s, const frame *f, float *most, cudaStream_t q)
{
    layout l = s->in[1].at, *one[] = { &l };
    magnitude_args a = { .at = f->data[s->in[1].slot], .most = most, .n = layout_count(&l) };
    layout_collapse(one, 1);
    a.rank = l.rank;
    a.flat = l.rank <= 1 && (l.rank == 0 || l.stride[0] == 1) && (uintptr_t)a.at % 16 == 0;
    for (int i = 0; i < l.rank; i++) {
        a.size[i] = divide_by64(l.size[i]);
        a.stride[i] = l.stride[i];
    }
    const cudaError_t e = cudaMemsetAsync(most, 0, sizeof *most, q);
    const int64_t blocks = quotient_up(a.n, MAGNITUDE_THREADS * 16), busy = 8 * card().blocks;
    if (e != cudaSuccess) return e;
    return launch_early(magnitude_kernel(), smaller(blocks, busy), MAGNITUDE_THREADS, 0, &a, q);
}

cudaError_t kernels_pack(const step *s, const frame *f, void *packed, const workspace *w, cudaStream_t q)
{
    const layout *b = &s->in[1].at;
    const cudaError_t e = measure(s, f, packed, q);
    if (e != cudaSuccess || s->kernel != OP_matmul) return e;
    pack_args a = { f->data[s->in[1].slot], packed, b->stride[0], b->stride[1], (int32_t)b->size[0],
                    (int32_t)b->size[1] };
    return launch(pack_kernel(), units_of(b), PACK_THREADS, 0, &a, q);
}

static PFN_cuTensorMapEncodeTiled_v12000 describer(void)
{
    static PFN_cuTensorMapEncodeTiled_v12000 cached;
    PFN_cuTensorMapEncodeTiled_v12000 f = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    if (f) return f;
    f = driver_function("cuTensorMapEncodeTiled");
    __atomic_store_n(&cached, f, __ATOMIC_RELAXED);
    return f;
}

cudaError_t emulated_describe_boxes(const void *at, int rank, const int64_t *size, const int64_t *stride,
                                    const int *box, CUtensorMapSwizzle swizzle, CUtensorMap *map)
{
    const PFN_cuTensorMapEncodeTiled_v12000 encode = describer();
    cuuint64_t sizes[4], strides[4];
    cuuint32_t boxes[4], each[4] = { 1, 1, 1, 1 };
    for (int i = 0; i < rank; i++) {
        sizes[i] = (cuuint64_t)size[i];
        boxes[i] = (cuuint32_t)box[i];
    }
    for (int i = 0; i + 1 < rank; i++) strides[i] = (cuuint64_t)stride[i] * sizeof(float);
    if (!encode) return cudaErrorNotSupported;
    const CUresult r = encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, (cuuint32_t)rank, (void *)(uintptr_t)at,
                              sizes, strides, boxes, each, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                              CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return r == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t emulated_describe(const void *p, int64_t rows, int64_t columns, int64_t line, int box_rows,
                              CUtensorMap *map)
{
    const int64_t size[] = { columns, rows };
    return emulated_describe_boxes(p, 2, size, &line, (const int[]){ EMULATED_UNIT / 2, box_rows },
                                   CU_TENSOR_MAP_SWIZZLE_128B, map);
}

bool emulated_is_packed(const step *s, const workspace *w)
{
    const char *first = w->packed, *end = first + kernels_packed_bytes(s);
    return first >= w->written.end || end <= w->written.first;
}
