/* conv_parameters.c - the sizes and the filters of a convolution step (conv.h). */
#include "conv.h"
#include "dtype.h"
#include "min_max.h"

#define CACHE_BYTES 262144.0 /* results of this size stay in the cache of a core until the epilogue */

layout conv_volume(const layout *l)
{
    layout v = *l;
    if (v.rank == 4) layout_insert(&v, 2, 1, 1);
    return v;
}

conv conv_of(const step *s)
{
    const conv_attributes *a = &s->attr.conv;
    const conv_operands o = conv_operands_of(s);
    const layout image = conv_volume(&o.x->at), filters = conv_volume(&o.w->at),
                 results = conv_volume(&o.y->at);
    const int64_t *x = image.size, *w = filters.size, *y = results.size;
    conv g = { .n = x[0],
               .c = x[1],
               .d = x[2],
               .h = x[3],
               .w = x[4],
               .m = w[0],
               .depth = w[1],
               .kd = w[2],
               .kh = w[3],
               .kw = w[4],
               .od = y[2],
               .oh = y[3],
               .ow = y[4],
               .stride = { a->stride[0], a->stride[1], 1 },
               .pad = { a->pad[0], a->pad[1], 0 },
               .dilation = { a->dilation[0], a->dilation[1], 1 },
               .extra = { a->pad_end[0], a->pad_end[1], 0 },
               .groups = a->groups,
               .axes = o.x->at.rank - 2,
               .flip = a->flip != 0 };
    if (g.axes == 3) {
        g.stride[2] = a->stride[SPATIAL_DEPTH];
        g.pad[2] = a->pad[SPATIAL_DEPTH];
        g.dilation[2] = a->dilation[SPATIAL_DEPTH];
        g.extra[2] = a->pad_end[SPATIAL_DEPTH];
    }
    if (epilogue_infos[s->epilogue].pooled) { /* the output is pooled: compute the size before */
        const int64_t reach[] = { (g.kh - 1) * g.dilation[0] + 1, (g.kw - 1) * g.dilation[1] + 1 };
        g.oh = (g.h + 2 * g.pad[0] + g.extra[0] - reach[0]) / g.stride[0] + 1;
        g.ow = (g.w + 2 * g.pad[1] + g.extra[1] - reach[1]) / g.stride[1] + 1;
    }
    return g;
}

/* Reverses the axes of the filters. Returns the address of the new first element. */
static const char *reverse_axes(layout *l, const char *p)
{
    for (int a = 2; a < l->rank; a++) {
        p += (l->size[a] - 1) * l->stride[a] * (int64_t)dtypes[l->type].bytes;
        l->stride[a] = -l->stride[a];
    }
    return p;
}

duet_status conv_filters(const step *s, const frame *f, const void **p, void **copy)
{
    layout l = s->in[1].at, dense;
    const char *from = address(f, &s->in[1]);
    *p = from;
    *copy = NULL;
    if (s->attr.conv.flip == 0 && layout_is_dense(&l)) return DUET_OK;
    if (s->attr.conv.flip != 0) from = reverse_axes(&l, from);
    layout_dense(&dense, l.type, l.rank, l.size);
    TRY(scratch_take((size_t)layout_count(&l) * dtypes[l.type].bytes, f, copy));
    *p = *copy;
    return copy_elements(*copy, &dense, from, &l);
}

int64_t conv_batch(const conv *g, size_t element, int threads)
{
    const double each = (double)g->m * (double)g->oh * (double)g->ow * (double)element,
                 fit = CACHE_BYTES * threads / each;
    const int64_t images = fit < (double)g->n ? (int64_t)fit : g->n;
    return larger(images, 1);
}
