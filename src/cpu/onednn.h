/* onednn.h - oneDNN, version 2 or 3, for the files that call it. */
#ifndef ONEDNN_H
#define ONEDNN_H

#include "conv.h"
#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#define SECONDS_PER_ONEDNN_FLOP 5e-12 /* rough, as if nothing came from memory */

#define DNN(call)                                                                                            \
    do {                                                                                                     \
        dnnl_status_t dnn_ = (call);                                                                         \
        if (dnn_ != dnnl_success) return dnn_;                                                               \
    } while (0)

dnnl_engine_t onednn_engine(void);      /* NULL: there is none */
bool onednn_walks(const layout *image); /* broadcast and reversed images are left to im2col, */
bool onednn_reaches(const step *s);     /* and windows and padding that reach far */

/* How windows go along the axes, in oneDNN's order. */
typedef struct paces {
    dnnl_dims_t stride, pad, end, dilates;
} paces;

static inline paces paces_of(const conv *g)
{
    paces p = { { 0 }, { 0 }, { 0 }, { 0 } };
    for (int i = 0; i < g->axes; i++) {
        const int a = g->axes == 2 ? i : (i + 2) % 3; /* depth comes first */
        p.stride[i] = g->stride[a], p.pad[i] = g->pad[a], p.end[i] = g->pad[a] + g->more[a],
        p.dilates[i] = g->dilation[a] - 1;
    }
    return p;
}

/* ---- what differs between the versions: descriptions of memory are values in 2, handles in 3 ---- */

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t description;
typedef const_dnnl_memory_desc_t described;

static inline described look(const description *d) { return *d; }
static inline void description_free(description *d) { dnnl_memory_desc_destroy(*d); }
static inline dnnl_status_t description_copy(description *d, described from)
{
    return dnnl_memory_desc_clone(d, from);
}
static inline dnnl_status_t describe_as(description *d, int rank, const dnnl_dims_t size,
                                        dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(d, rank, size, dnnl_f32, tag);
}
static inline dnnl_status_t describe(description *d, int rank, const dnnl_dims_t size,
                                     const dnnl_dims_t stride)
{
    return dnnl_memory_desc_create_with_strides(d, rank, size, dnnl_f32, stride);
}
/* bias may be NULL. */
static inline dnnl_status_t choose(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, const description *src,
                                   const description *filters, const description *bias,
                                   const description *dst, const conv *g, const_dnnl_primitive_attr_t attr)
{
    const paces p = paces_of(g);
    return dnnl_convolution_forward_primitive_desc_create(pd, engine, dnnl_forward_inference,
                                                          dnnl_convolution_direct, *src, *filters,
                                                          bias ? *bias : NULL, *dst, p.stride, p.dilates,
                                                          p.pad, p.end, attr);
}
/* Back to the images, or to the filters. hint: the same forward. */
static inline dnnl_status_t choose_back(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, bool images,
                                        const description *src, const description *filters,
                                        const description *dst, const conv *g,
                                        const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint)
{
    const paces p = paces_of(g);
    if (images)
        return dnnl_convolution_backward_data_primitive_desc_create(pd, engine, dnnl_convolution_direct, *src,
                                                                    *filters, *dst, p.stride, p.dilates,
                                                                    p.pad, p.end, hint, attr);
    return dnnl_convolution_backward_weights_primitive_desc_create(pd, engine, dnnl_convolution_direct, *src,
                                                                   *filters, NULL, *dst, p.stride, p.dilates,
                                                                   p.pad, p.end, hint, attr);
}
#else
typedef dnnl_memory_desc_t description;
typedef const dnnl_memory_desc_t *described;

static inline described look(const description *d) { return d; }
static inline void description_free(description *d) { (void)d; }
static inline dnnl_status_t description_copy(description *d, described from)
{
    return *d = *from, dnnl_success;
}
static inline dnnl_status_t describe_as(description *d, int rank, const dnnl_dims_t size,
                                        dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(d, rank, size, dnnl_f32, tag);
}
static inline dnnl_status_t describe(description *d, int rank, const dnnl_dims_t size,
                                     const dnnl_dims_t stride)
{
    return dnnl_memory_desc_init_by_strides(d, rank, size, dnnl_f32, stride);
}
/* bias may be NULL. */
static inline dnnl_status_t choose(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, const description *src,
                                   const description *filters, const description *bias,
                                   const description *dst, const conv *g, const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t d;
    const paces p = paces_of(g);
    dnnl_status_t r =
        dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_inference, dnnl_convolution_direct, src,
                                                   filters, bias, dst, p.stride, p.dilates, p.pad, p.end);
    return r == dnnl_success ? dnnl_primitive_desc_create(pd, &d, attr, engine, NULL) : r;
}
/* Back to the images, or to the filters. hint: the same forward. */
static inline dnnl_status_t choose_back(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, bool images,
                                        const description *src, const description *filters,
                                        const description *dst, const conv *g,
                                        const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint)
{
    dnnl_convolution_desc_t d;
    const paces p = paces_of(g);
    dnnl_status_t r =
        images ? dnnl_dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, src, filters,
                                                                  dst, p.stride, p.dilates, p.pad, p.end)
               : dnnl_dilated_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, src,
                                                                     filters, NULL, dst, p.stride, p.dilates,
                                                                     p.pad, p.end);
    return r == dnnl_success ? dnnl_primitive_desc_create(pd, &d, attr, engine, hint) : r;
}
#endif

/* ---- */

/* oneDNN's plain loops are slower than im2col. */
static inline bool is_slow(dnnl_primitive_desc_t pd)
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
    for (int a = 0; a < l->rank; a++) d.size[a] = l->size[a], d.stride[a] = l->stride[a];
    return d;
}

/* Dense filters as oneDNN sees them: groups are an axis of their own. */
static inline layout filters_of(const conv *g)
{
    const int64_t size[] = { g->groups, g->m / g->groups, g->depth, g->kd, g->kh, g->kw };
    layout at;
    layout_dense(&at, DUET_F32, 6 - (g->groups == 1), size + (g->groups == 1));
    if (g->axes == 2) layout_drop(&at, at.rank - 3);
    return at;
}

/* NULL where both are one. */
static inline dnnl_status_t make_reorder(dnnl_primitive_t *r, dnnl_engine_t engine, described from,
                                         described to)
{
    dnnl_primitive_desc_t pd;
    if (dnnl_memory_desc_equal(from, to)) return dnnl_success;
    DNN(dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, NULL));
    dnnl_status_t made = dnnl_primitive_create(r, pd);
    dnnl_primitive_desc_destroy(pd);
    return made;
}

static inline size_t whole_lines(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

#endif
