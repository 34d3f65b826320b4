/* onednn.h - declarations for the files that call oneDNN, version 2 or 3. */
#ifndef ONEDNN_H
#define ONEDNN_H

#include "conv.h"
#include "cpu.h"
#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#define SECONDS_PER_ONEDNN_FLOP 5e-12 /* rough, without memory access */

/* oneDNN ends the process if memory is refused while it makes kernels. They need less than this. */
#define ONEDNN_ROOM ((size_t)32 << 20)

#define DNN(call)                                                                                            \
    do {                                                                                                     \
        dnnl_status_t dnn_ = (call);                                                                         \
        if (dnn_ != dnnl_success) return dnn_;                                                               \
    } while (0)

dnnl_engine_t onednn_engine(void);                 /* NULL if it could not be created */
bool onednn_supports_strides(const layout *image); /* false for broadcast and reversed images */
bool onednn_supports_extent(const step *s);        /* false for very large windows or padding */

/* Strides, padding and dilation in oneDNN's order of the axes. */
typedef struct conv_geometry {
    dnnl_dims_t stride, pad, end, dilation;
} conv_geometry;

static inline conv_geometry conv_geometry_of(const conv *g)
{
    conv_geometry p = { { 0 }, { 0 }, { 0 }, { 0 } };
    for (int i = 0; i < g->axes; i++) {
        const int a = g->axes == 2 ? i : (i + 2) % 3; /* depth comes first */
        p.stride[i] = g->stride[a];
        p.pad[i] = g->pad[a];
        p.end[i] = g->pad[a] + g->extra[a];
        p.dilation[i] = g->dilation[a] - 1;
    }
    return p;
}

/* ---- differences between versions: memory descriptors are values in 2, handles in 3 ---- */

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t mem_desc;
typedef const_dnnl_memory_desc_t desc_ref;

static inline desc_ref desc_ref_of(const mem_desc *d) { return *d; }
static inline void mem_desc_free(mem_desc *d) { dnnl_memory_desc_destroy(*d); }
static inline dnnl_status_t mem_desc_copy(mem_desc *d, desc_ref from)
{
    return dnnl_memory_desc_clone(d, from);
}
static inline dnnl_status_t mem_desc_tagged(mem_desc *d, int rank, const dnnl_dims_t size,
                                            dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(d, rank, size, dnnl_f32, tag);
}
static inline dnnl_status_t mem_desc_strided(mem_desc *d, int rank, const dnnl_dims_t size,
                                             const dnnl_dims_t stride)
{
    return dnnl_memory_desc_create_with_strides(d, rank, size, dnnl_f32, stride);
}
/* `bias` may be NULL. */
static inline dnnl_status_t create_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                           const mem_desc *src, const mem_desc *filters, const mem_desc *bias,
                                           const mem_desc *dst, const conv *g,
                                           const_dnnl_primitive_attr_t attr)
{
    const conv_geometry p = conv_geometry_of(g);
    return dnnl_convolution_forward_primitive_desc_create(pd, engine, dnnl_forward_inference,
                                                          dnnl_convolution_direct, *src, *filters,
                                                          bias ? *bias : NULL, *dst, p.stride, p.dilation,
                                                          p.pad, p.end, attr);
}
/* The gradient of the images or of the filters. hint: the descriptor of the forward convolution. */
static inline dnnl_status_t create_backward(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, bool to_images,
                                            const mem_desc *src, const mem_desc *filters, const mem_desc *dst,
                                            const conv *g, const_dnnl_primitive_attr_t attr,
                                            const_dnnl_primitive_desc_t hint)
{
    const conv_geometry p = conv_geometry_of(g);
    if (to_images)
        return dnnl_convolution_backward_data_primitive_desc_create(pd, engine, dnnl_convolution_direct, *src,
                                                                    *filters, *dst, p.stride, p.dilation,
                                                                    p.pad, p.end, hint, attr);
    return dnnl_convolution_backward_weights_primitive_desc_create(pd, engine, dnnl_convolution_direct, *src,
                                                                   *filters, NULL, *dst, p.stride, p.dilation,
                                                                   p.pad, p.end, hint, attr);
}
#else
typedef dnnl_memory_desc_t mem_desc;
typedef const dnnl_memory_desc_t *desc_ref;

static inline desc_ref desc_ref_of(const mem_desc *d) { return d; }
static inline void mem_desc_free(mem_desc *d) {}
static inline dnnl_status_t mem_desc_copy(mem_desc *d, desc_ref from)
{
    *d = *from;
    return dnnl_success;
}
static inline dnnl_status_t mem_desc_tagged(mem_desc *d, int rank, const dnnl_dims_t size,
                                            dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(d, rank, size, dnnl_f32, tag);
}
static inline dnnl_status_t mem_desc_strided(mem_desc *d, int rank, const dnnl_dims_t size,
                                             const dnnl_dims_t stride)
{
    return dnnl_memory_desc_init_by_strides(d, rank, size, dnnl_f32, stride);
}
/* `bias` may be NULL. */
static inline dnnl_status_t create_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                           const mem_desc *src, const mem_desc *filters, const mem_desc *bias,
                                           const mem_desc *dst, const conv *g,
                                           const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t d;
    const conv_geometry p = conv_geometry_of(g);
    dnnl_status_t r =
        dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_inference, dnnl_convolution_direct, src,
                                                   filters, bias, dst, p.stride, p.dilation, p.pad, p.end);
    if (r != dnnl_success) return r;
    return dnnl_primitive_desc_create(pd, &d, attr, engine, NULL);
}
/* The gradient of the images or of the filters. hint: the descriptor of the forward convolution. */
static inline dnnl_status_t create_backward(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, bool to_images,
                                            const mem_desc *src, const mem_desc *filters, const mem_desc *dst,
                                            const conv *g, const_dnnl_primitive_attr_t attr,
                                            const_dnnl_primitive_desc_t hint)
{
    dnnl_convolution_desc_t d;
    const conv_geometry p = conv_geometry_of(g);
    dnnl_status_t r =
        to_images
            ? dnnl_dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, src, filters, dst,
                                                               p.stride, p.dilation, p.pad, p.end)
            : dnnl_dilated_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, src, filters,
                                                                  NULL, dst, p.stride, p.dilation, p.pad,
                                                                  p.end);
    if (r != dnnl_success) return r;
    return dnnl_primitive_desc_create(pd, &d, attr, engine, hint);
}
#endif

/* ---- both versions ---- */

/* oneDNN's reference implementations are slower than im2col. */
static inline bool is_reference(dnnl_primitive_desc_t pd)
{
    const char *name = "";
    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) != dnnl_success ||
           !strncmp(name, "ref", 3);
}

typedef struct dims {
    dnnl_dims_t size, stride;
} dims;

static inline dims dims_of(const layout *l)
{
    dims d = { { 0 }, { 0 } };
    for (int a = 0; a < l->rank; a++) {
        d.size[a] = l->size[a];
        d.stride[a] = l->stride[a];
    }
    return d;
}

/* The layout of dense filters as oneDNN expects it: groups are a separate axis. */
static inline layout filters_of(const conv *g)
{
    const int64_t size[] = { g->groups, g->m / g->groups, g->depth, g->kd, g->kh, g->kw };
    layout at;
    layout_dense(&at, DUET_F32, 6 - (g->groups == 1), size + (g->groups == 1));
    if (g->axes == 2) layout_drop(&at, at.rank - 3);
    return at;
}

/* *r is NULL if the descriptors are equal. */
static inline dnnl_status_t make_reorder(dnnl_primitive_t *r, dnnl_engine_t engine, desc_ref from,
                                         desc_ref to)
{
    dnnl_primitive_desc_t pd;
    if (dnnl_memory_desc_equal(from, to)) return dnnl_success;
    DNN(dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, NULL));
    dnnl_status_t made = dnnl_primitive_create(r, pd);
    dnnl_primitive_desc_destroy(pd);
    return made;
}

static inline size_t round_to_cache_line(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

#endif
