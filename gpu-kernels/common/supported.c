/* supported.c - which steps the kernels support. Nothing here needs CUDA, so the fake kernels of
 * the tests use it too. */
#include "supported.h"
#include "dgrad_as_conv.h"
#include "dtype.h"
#include "index_ops.h"
#include "interpreter.h"
#include "layer_norm.h"
#include "random_step.h"
#include <stdlib.h>

#define REFUSE(condition, why)                                                                               \
    if (condition) return why

duet_dtype step_type(const step *s)
{
    return s->kernel == KERNEL_PROGRAM ? (duet_dtype)s->program->code[0].type : s->out[0].at.type;
}

/* ---- programs ---- */

duet_dtype reduce_type(int op, duet_dtype type)
{
    return op_infos[op].flags & OP_GIVES_INDEX ? DUET_I64 : type;
}

static bool is_integer(duet_dtype type) { return type == DUET_I64 || type == DUET_U64; }

static bool is_move(const instruction *c)
{
    return c->op == OP_STORE || (c->op == OP_LOAD && c->arg[0].kind == FROM_INPUT);
}

bool program_moves(const step *s)
{
    const duet_dtype type = step_type(s);
    for (const instruction *c = s->program->code; c < s->program->code + s->program->length; c++)
        if (!is_move(c)) return false;
    for (int k = 0; k < s->outs + s->ins; k++)
        if ((k < s->outs ? &s->out[k] : &s->in[k - s->outs])->at.type != type) return false;
    return true;
}

/* What goes into output i, before it is converted. */
static duet_dtype given_type(const program *p, int i, duet_dtype type)
{
    for (const instruction *c = p->code; c < p->code + p->length; c++)
        if (op_infos[c->op].kind == KIND_REDUCE && c->arg[2].index == i) return reduce_type(c->op, type);
    return type;
}

bool program_converts(const step *s)
{
    const duet_dtype type = step_type(s);
    bool other = type >= FLOAT_TYPES;
    for (int k = 0; k < s->ins; k++) other |= s->in[k].at.type != type;
    for (int k = 0; k < s->outs; k++) other |= s->out[k].at.type != given_type(s->program, k, type);
    return other && !program_moves(s);
}

static const char *refuse_instruction(const step *s, const instruction *c, duet_dtype type)
{
    const program *p = s->program;
    const bool wraps = c->op == OP_WRAP;
    REFUSE(c->type != type, "all instructions must have one element type");
    REFUSE(c->op < OPS && !(op_infos[c->op].flags & (is_integer(type) ? OP_INTEGERS : OP_FLOATS)),
           "the operator is not defined for the element type");
    REFUSE(wraps && !(is_integer(type) && op_wraps_to(c->arg[1].index)),
           "only integers can wrap to an integer type");
    REFUSE(p->reductions ? c->op == OP_STORE : op_infos[c->op].kind == KIND_REDUCE,
           "a program must either store or reduce its results");
    REFUSE(op_infos[c->op].flags & OP_GIVES_INDEX && s->out[c->arg[2].index].at.type != DUET_I64,
           "indices must be i64");
    return NULL;
}

/* Those that move may be of any type. */
static const char *refuse_types(const step *s)
{
    const duet_dtype type = step_type(s);
    if (program_moves(s)) return NULL;
    REFUSE(type >= FLOAT_TYPES && !is_integer(type), "programs compute in f32, f64, i64 or u64");
    for (int k = 0; k < s->ins; k++)
        REFUSE(dtype_kind(s->in[k].at.type) == TYPE_COMPLEX,
               "element-wise programs have no complex elements");
    for (int k = 0; k < s->outs; k++)
        REFUSE(dtype_kind(s->out[k].at.type) == TYPE_COMPLEX,
               "element-wise programs have no complex elements");
    return NULL;
}

static const char *program_unsupported(const step *s)
{
    const program *p = s->program;
    machine_program m;
    REFUSE(!p || p->length == 0, "the step has no program");
    const duet_dtype type = step_type(s);
    REFUSE(p->reductions ? s->inner == 0 || s->inner > s->out[0].at.rank : s->inner > 0,
           "a program with reductions must have reduced axes, and others must not");
    const char *why = refuse_types(s);
    for (const instruction *c = p->code; c < p->code + p->length && !why; c++)
        why = refuse_instruction(s, c, type);
    return why ? why : machine_encode(&m, p, NULL);
}

static const char *refuse_type(const step *s)
{
    const duet_dtype type = s->out[0].at.type;
    REFUSE(s->outs != 1, "the kernel has one output");
    REFUSE(type != DUET_F32 && type != DUET_F64, "the elements must be f32 or f64");
    for (int k = 0; k < s->ins; k++)
        REFUSE(s->in[k].at.type != type, "the operands must have the same element type");
    return NULL;
}

/* May indices into a plane, and between its rows, be of 32 bits? */
bool pool2d_fits(const step *s)
{
    const layout *in = &s->in[0].at, *out = &s->out[0].at;
    layout plane = { .rank = 2 };
    int64_t low, high;
    for (int a = 0; a < 2; a++) {
        plane.size[a] = in->size[2 + a];
        plane.stride[a] = in->stride[2 + a];
    }
    layout_span(&plane, &low, &high);
    for (int a = 2; a < 4; a++)
        if (in->size[a] > INT32_MAX / 4 || llabs(in->stride[a]) > INT32_MAX || out->size[a] > INT32_MAX / 4)
            return false;
    return low > -INT32_MAX && high < INT32_MAX && out->size[2] * out->size[3] <= INT32_MAX / 2;
}

/* Do places of 2 x 4 results have numbers of 32 bits, and elements of one channel of an image, and rows, distances of as many? */
static bool conv2d_is_small(const layout *in, const layout *out)
{
    const int64_t *size = out->size, plane = INT32_MAX / 4;
    for (int a = 1; a < 4; a++)
        if (in->size[a] > plane || size[a] > plane / 2) return false;
    for (int a = 1; a < 3; a++)
        if (in->stride[a] > INT32_MAX || in->stride[a] < -INT32_MAX) return false;
    return (size[2] + 1) * (size[3] + 1) <= plane && size[0] <= INT32_MAX &&
           size[0] * (size[2] + 1) * (size[3] + 1) <= 2 * plane;
}

/* Pooling is by 2, without padding. */
static bool conv2d_is_pooled(const step *s)
{
    const pool_attributes *p = &s->attr.conv.pool;
    for (int i = 0; i < 2; i++)
        if (p->window[i] != 2 || p->stride[i] != 2 || p->pad[i] != 0) return false;
    return true;
}

/* May places along an axis be of 32 bits, with windows that begin before it and end behind? */
static bool pool_back_fits(const step *s)
{
    for (int a = 0; a < 2; a++)
        if (s->out[0].at.size[2 + a] >= 1 << 29 || s->in[0].at.size[2 + a] >= 1 << 29 ||
            spatial_window(s)[a] >= 1 << 29)
            return false;
    return true;
}

static bool has_strides(const step *s)
{
    return s->attr.conv.stride[SPATIAL_HEIGHT] != 1 || s->attr.conv.stride[SPATIAL_WIDTH] != 1;
}

static const char *refuse_conv2d(const step *s)
{
    const layout *in = &s->in[0].at, *filters = &s->in[1].at;
    const epilogue_info *epilogue = &epilogue_infos[s->epilogue];
    REFUSE(in->type != DUET_F32, "the elements must be f32");
    REFUSE(in->rank != 4, "the images must have 2 spatial axes");
    REFUSE(filters->size[2] != 3 || filters->size[3] != 3, "the filters must be 3 x 3");
    REFUSE(has_strides(s) || !conv_is_plain(s),
           "the convolution must have no strides, dilation, groups or flipped filters");
    for (int a = 0; a < 2; a++)
        REFUSE(s->attr.conv.pad[a] < 0 || s->attr.conv.pad[a] > 1, "the padding must be at most 1");
    REFUSE(in->size[1] < 1 || in->size[1] > CONV_CHANNELS, "the number of channels is 0 or too large");
    REFUSE(in->size[3] > 1 && in->stride[3] != 1, "the rows of the images must be contiguous");
    REFUSE(s->epilogue && epilogue->act != OP_relu && epilogue->act != OP_LOAD,
           "the epilogue has a function other than relu");
    REFUSE(epilogue->pooled && !conv2d_is_pooled(s), "the pooling window must be 2 x 2");
    REFUSE(!conv2d_is_small(in, &s->out[0].at), "the images are too large for 32-bit indices");
    return NULL;
}

static const char *refuse_conv2d_back(const step *s)
{
    int64_t last;
    REFUSE(!conv_has_dgrad_as_conv(s),
           "the convolution must have no strides or groups, and less padding than its window");
    const step as_conv = dgrad_as_conv(s, &last);
    return refuse_conv2d(&as_conv);
}

/* Do rows and columns have distances of 32 bits, as channels do, and parts of the results and sums numbers of as many? */
static bool filter_grad_is_small(const layout *x, const layout *dy)
{
    const layout *all[] = { x, dy };
    const int64_t most = INT32_MAX / 4;
    for (int k = 0; k < 2; k++)
        for (int a = 1; a < 4; a++)
            if (all[k]->size[a] > most / 4 || llabs(all[k]->stride[a]) > most) return false;
    return x->size[1] + 32 < most / 9 / (dy->size[1] + 64) &&
           x->size[0] <= most / ((dy->size[2] + 1) * (dy->size[3] + 1));
}

#define FILTER_STRICT 1e9 /* products: of no more, rounding them would not help */

/* Is there a mode in which cuDNN may have tensor cores do it, and much to do? */
static bool may_be_rounded(const step *s)
{
    const bool is_permitted = s->math == DUET_MATH_TF32 || s->math == DUET_MATH_BF16;
    return is_permitted &&
           (double)layout_count(&s->in[1].at) * (double)s->in[0].at.size[1] * 9 > FILTER_STRICT;
}

static const char *refuse_filter_grad(const step *s)
{
    const layout *x = &s->in[0].at, *filters = &s->out[0].at;
    REFUSE(x->type != DUET_F32, "the elements must be f32");
    REFUSE(x->rank != 4, "the images must have 2 spatial axes");
    REFUSE(filters->size[2] != 3 || filters->size[3] != 3, "the filters must be 3 x 3");
    REFUSE(has_strides(s) || !conv_is_plain(s), "the convolution must have no strides, dilation or groups");
    for (int a = 0; a < 2; a++)
        REFUSE(s->attr.conv.pad[a] < 0 || s->attr.conv.pad[a] > 1, "the padding must be at most 1");
    REFUSE(may_be_rounded(s), "the math mode lets cuDNN compute this faster in reduced precision");
    REFUSE(!filter_grad_is_small(x, &s->in[1].at), "the images are too large for 32-bit indices");
    return NULL;
}

/* Indices of a permutation are of 32 bits. */
static const char *random_unsupported(const step *s)
{
    REFUSE(s->attr.random.distribution == DISTRIBUTION_PERMUTATION && s->out[0].at.size[0] > UINT32_MAX / 2,
           "a permutation must have less than 2^31 elements");
    return random_step_refuses(s);
}

/* Places and lines are counted in 32 bits. */
static int64_t lines_along(const layout *l, int axis)
{
    return l->size[axis] ? layout_count(l) / l->size[axis] : 0;
}

#define LONGEST_AXIS (INT32_MAX / 2)

static bool is_long(const step *s) { return s->in[0].at.size[s->attr.index.axis] > LONGEST_AXIS; }

static const char *scan_unsupported(const step *s)
{
    REFUSE(is_long(s), "the axis must have less than 2^30 elements");
    return order_refuses(s);
}

#define take_unsupported scan_unsupported

static const char *one_hot_unsupported(const step *s) { return order_refuses(s); }
static const char *histogram_unsupported(const step *s) { return order_refuses(s); }

static const char *scatter_unsupported(const step *s)
{
    REFUSE(is_long(s), "the axis must have less than 2^30 elements");
    REFUSE(layout_count(&s->in[1].at) > LONGEST_AXIS, "there must be less than 2^30 indices");
    return order_refuses(s);
}

static const char *sort_unsupported(const step *s)
{
    REFUSE(is_long(s), "the axis must have less than 2^30 elements");
    REFUSE(lines_along(&s->in[0].at, s->attr.index.axis) > INT32_MAX,
           "there must be less than 2^31 lines along the axis");
    return order_refuses(s);
}

/* Long rows are reduced as their elements lie; where these have gaps, neighbouring rows may be closer. */
static const char *refuse_norm(const step *s)
{
    const operand *x = &s->in[0];
    const bool is_long = norm_length(s) > NORM_BYTES / (int64_t)dtypes[x->at.type].bytes;
    REFUSE(is_long && x->at.stride[x->at.rank - 1] != 1, "long rows must be contiguous");
    return norm_refuses(s);
}

#define FUSED_INPUTS 3

static const char *fused_unsupported(const step *s)
{
    const char *why = refuse_type(s);
    if (why) return why;
    return s->ins > FUSED_INPUTS || s->nums > 2 ? "a fused kernel has too many operands" : NULL;
}

static const char *layer_norm_unsupported(const step *s)
{
    const char *why = refuse_type(s);
    return why ? why : refuse_norm(s);
}

static const char *softmax_unsupported(const step *s) { return refuse_type(s); }

static const char *pool2d_unsupported(const step *s)
{
    const char *why = refuse_type(s);
    if (why) return why;
    return pool2d_fits(s) ? NULL : "the planes of an image must have less than 2^31 elements";
}

static const char *pool_grad_unsupported(const step *s)
{
    const char *why = refuse_type(s);
    if (why) return why;
    return pool_back_fits(s) ? NULL : "the sizes of images and windows must be below 2^29";
}

static const char *matmul_unsupported(const step *s)
{
    const char *why = refuse_type(s);
    if (why) return why;
    return product_fits(s) ? NULL : "the product has too many rows and columns, or an addend";
}

static const char *conv2d_unsupported(const step *s)
{
    const char *why = refuse_type(s);
    return why ? why : refuse_conv2d(s);
}

static const char *input_grad_unsupported(const step *s)
{
    const char *why = refuse_type(s);
    return why ? why : refuse_conv2d_back(s);
}

static const char *filter_grad_unsupported(const step *s)
{
    const char *why = refuse_type(s);
    return why ? why : refuse_filter_grad(s);
}

static const char *kron_unsupported(const step *s)
{
    const duet_dtype type = s->out[0].at.type;
    REFUSE(type != DUET_F32 && type != DUET_F64 && type != DUET_I64, "the element type is not supported");
    REFUSE(s->in[0].at.type != type || s->in[1].at.type != type,
           "the operands must have the same element type");
    return NULL;
}

/* ---- all of them ---- */

static const char *(*const unsupported_by[KERNELS_ALL])(const step *s) = {
#define KERNEL(number, unsupported, workspace, launch) [number] = unsupported,
#include "kernels.def"
};

const char *kernels_refuse(const step *s)
{
    const char *(*const unsupported)(const step *s) = unsupported_by[s->kernel];
    if (unsupported) return unsupported(s);
    const char *why = refuse_type(s);
    return why ? why : "there is no kernel for this operator";
}
