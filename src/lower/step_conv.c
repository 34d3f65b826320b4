/* step_conv.c - the layouts of the operands of convolutions, pooling and upsampling. Operands with
 * one or three spatial axes become images if possible. */
#include "step.h"

/* Converts signals and volumes to images. A signal becomes an image of one row. To pool a volume in
 * its planes, depth is merged with the channels. To pool it along depth, its planes become rows. */
static void image_axes(layout *l, enum pool_form form)
{
    if (l->rank == 3) layout_insert(l, 2, 1, 1);
    if (form == POOL_PLANES) layout_merge(l, 1, 2);
    if (form == POOL_DEPTH) layout_merge(l, 3, 2);
}

/* An array becomes one image of one channel. */
static void plain_axes(layout *l)
{
    while (l->rank < 2) layout_insert(l, 0, 1, 1);
    layout_insert(l, 0, 1, 1);
    layout_insert(l, 0, 1, 1);
}

/* For a convolution of every image with every kernel: the first `own` axes are those of the images,
 * the others before the last two are those of the kernels. */
static void multi_axes(layout *l, int own)
{
    layout_merge(l, 0, own);
    layout_merge(l, 1, l->rank - 3);
}

/* For a convolution of each image with its own kernel: the images become the channels of one image. */
static void deep_axes(layout *l, bool filters)
{
    layout_merge(l, 0, l->rank - 2);
    layout_insert(l, filters, 1, 1);
}

static void conv_layouts(const job *j, step *s)
{
    const int own = s->in[0].at.rank - 2, form = j->attr.conv.form;
    layout *all[STEP_OPERANDS];
    const int n = step_operands(s, all);
    for (int k = 0; k < n && form == CONV_PLAIN; k++) plain_axes(all[k]);
    for (int k = 0; k < n && form == CONV_DEEP; k++) deep_axes(all[k], k == 2);
    if (form != CONV_MULTI) return;
    multi_axes(&s->out[0].at, own);
    multi_axes(&s->in[0].at, own);
    multi_axes(&s->in[1].at, s->in[1].at.rank - 2);
}

static enum pool_form pool_form_of(const job *j)
{
    return is_conv(j->kernel) ? POOL_IMAGES : (enum pool_form)j->attr.pool.form;
}

void image_layouts(const job *j, step *s)
{
    layout *all[STEP_OPERANDS];
    const int n = step_operands(s, all);
    if (is_conv(j->kernel) && j->attr.conv.form != CONV_IMAGES) {
        conv_layouts(j, s);
        return;
    }
    for (int k = 0; k < n; k++) image_axes(all[k], pool_form_of(j));
}
