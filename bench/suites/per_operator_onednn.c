/* per_operator_onednn.c - oneDNN's primitives as bare calls. They are created once, with operands
 * in the same layout as Duet's. */
#include "per_operator.h"
#include <stdlib.h>
#include <string.h>
#ifdef WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

#if defined WITH_ONEDNN && DNNL_VERSION_MAJOR == 2
enum { OPERANDS = 4 };

typedef struct primitive {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t run;
    dnnl_memory_desc_t desc[OPERANDS];
    dnnl_exec_arg_t arg[OPERANDS];
    int args;
    bool ok;
} primitive;

/* Fills in the descriptor of a primitive. A gradient also fills in hint, the descriptor of the
 * forward primitive. */
typedef bool describe(bare *b, primitive *p, void *desc, void *hint);

static const dnnl_dims_t once = { 1, 1 }, twice = { 2, 2 }, none = { 0, 0 };

static void end_primitive(void *plan)
{
    primitive *p = plan;
    for (int i = 0; i < p->args; i++) dnnl_memory_destroy(p->arg[i].memory);
    dnnl_primitive_destroy(p->run);
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
    free(p);
}

static int rank_of(const int64_t *size)
{
    int rank = 0;
    while (rank < 4 && size[rank]) rank++;
    return rank;
}

/* Adds an operand without gaps; `name` is oneDNN's number of the argument. */
static const dnnl_memory_desc_t *add_operand(primitive *p, int name, const int64_t *size, const void *data)
{
    static const dnnl_format_tag_t rows[] = { dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd };
    const int i = p->args++, rank = rank_of(size);
    dnnl_dims_t dims = { 0 };
    memcpy(dims, size, (size_t)rank * sizeof *size);
    p->ok &= dnnl_memory_desc_init_by_tag(&p->desc[i], rank, dims, dnnl_f32, rows[rank]) == 0;
    p->ok =
        p->ok && dnnl_memory_create(&p->arg[i].memory, &p->desc[i], p->engine, (void *)(uintptr_t)data) == 0;
    p->arg[i].arg = name;
    return &p->desc[i];
}

static bool make_primitive(bare *b, describe *what)
{
    union {
        dnnl_convolution_desc_t c;
        dnnl_pooling_desc_t p;
        dnnl_softmax_desc_t s;
        dnnl_layer_normalization_desc_t l;
        dnnl_eltwise_desc_t e;
        dnnl_binary_desc_t b;
        dnnl_reduction_desc_t r;
    } desc, forward = { .c = { .primitive_kind = dnnl_undefined_primitive } };
    dnnl_primitive_desc_t pd = NULL, hint = NULL;
    primitive *p = b->plan = calloc(1, sizeof *p);
    b->end = end_primitive;
    p->ok = dnnl_engine_create(&p->engine, dnnl_cpu, 0) == 0 &&
            dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags) == 0;
    bool ok = p->ok && what(b, p, &desc, &forward) && p->ok;
    if (ok && forward.c.primitive_kind)
        ok = dnnl_primitive_desc_create(&hint, &forward, NULL, p->engine, NULL) == 0;
    ok = ok && dnnl_primitive_desc_create(&pd, &desc, NULL, p->engine, hint) == 0 &&
         dnnl_primitive_create(&p->run, pd) == 0;
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_desc_destroy(hint);
    return ok;
}

static bool run(bare *b, describe *what)
{
    if (!b->plan && !make_primitive(b, what)) return false;
    const primitive *p = b->plan;
    return dnnl_primitive_execute(p->run, p->stream, p->args, p->arg) == 0 &&
           dnnl_stream_wait(p->stream) == 0;
}

/* ---- convolution with 3 x 3 windows; results have the size of the images ---- */

static bool forward(bare *b, primitive *p, void *desc, void *hint)
{
    const int64_t *x = b->size[0], *w = b->size[1], out[4] = { x[0], w[0], x[2], x[3] };
    const dnnl_memory_desc_t *in = add_operand(p, DNNL_ARG_SRC, x, b->x[0]),
                             *by = add_operand(p, DNNL_ARG_WEIGHTS, w, b->x[1]);
    const dnnl_memory_desc_t *to = add_operand(p, DNNL_ARG_DST, out, b->y);
    return dnnl_convolution_forward_desc_init(desc, dnnl_forward_inference, dnnl_convolution_auto, in, by,
                                              NULL, to, once, once, once) == 0;
}

static bool to_input(bare *b, primitive *p, void *desc, void *hint)
{
    const int64_t *dy = b->size[0], *w = b->size[1], image[4] = { dy[0], w[1], dy[2], dy[3] };
    const dnnl_memory_desc_t *grad = add_operand(p, DNNL_ARG_DIFF_DST, dy, b->x[0]),
                             *by = add_operand(p, DNNL_ARG_WEIGHTS, w, b->x[1]);
    const dnnl_memory_desc_t *to = add_operand(p, DNNL_ARG_DIFF_SRC, image, b->y);
    return dnnl_convolution_forward_desc_init(hint, dnnl_forward_training, dnnl_convolution_auto, to, by,
                                              NULL, grad, once, once, once) == 0 &&
           dnnl_convolution_backward_data_desc_init(desc, dnnl_convolution_auto, to, by, grad, once, once,
                                                    once) == 0;
}

static bool to_filters(bare *b, primitive *p, void *desc, void *hint)
{
    const int64_t *x = b->size[0], *dy = b->size[1], w[4] = { dy[1], x[1], 3, 3 };
    const dnnl_memory_desc_t *in = add_operand(p, DNNL_ARG_SRC, x, b->x[0]),
                             *grad = add_operand(p, DNNL_ARG_DIFF_DST, dy, b->x[1]);
    const dnnl_memory_desc_t *to = add_operand(p, DNNL_ARG_DIFF_WEIGHTS, w, b->y);
    return dnnl_convolution_forward_desc_init(hint, dnnl_forward_training, dnnl_convolution_auto, in, to,
                                              NULL, grad, once, once, once) == 0 &&
           dnnl_convolution_backward_weights_desc_init(desc, dnnl_convolution_auto, in, to, NULL, grad, once,
                                                       once, once) == 0;
}

bool bare_conv2d(bare *b) { return run(b, forward); }
bool bare_conv2d_input_grad(bare *b) { return run(b, to_input); }
bool bare_conv2d_filter_grad(bare *b) { return run(b, to_filters); }

/* ---- pooling of 2 x 2 windows ---- */

static bool pool(bare *b, primitive *p, void *desc, dnnl_alg_kind_t how)
{
    const int64_t *x = b->size[0], out[4] = { x[0], x[1], x[2] / 2, x[3] / 2 };
    const dnnl_memory_desc_t *in = add_operand(p, DNNL_ARG_SRC, x, b->x[0]),
                             *to = add_operand(p, DNNL_ARG_DST, out, b->y);
    return dnnl_pooling_forward_desc_init(desc, dnnl_forward_inference, how, in, to, twice, twice, none,
                                          none) == 0;
}

static bool maxima(bare *b, primitive *p, void *desc, void *hint)
{
    return pool(b, p, desc, dnnl_pooling_max);
}
static bool means(bare *b, primitive *p, void *desc, void *hint)
{
    return pool(b, p, desc, dnnl_pooling_avg);
}

bool bare_max_pool2d(bare *b) { return run(b, maxima); }
bool bare_avg_pool2d(bare *b) { return run(b, means); }

/* ---- operators on rows, and element-wise operators ---- */

static bool softmax(bare *b, primitive *p, void *desc, void *hint)
{
    const dnnl_memory_desc_t *in = add_operand(p, DNNL_ARG_SRC, b->size[0], b->x[0]);
    add_operand(p, DNNL_ARG_DST, b->size[0], b->y);
    return dnnl_softmax_forward_desc_init(desc, dnnl_forward_inference, in, 1) == 0;
}

static bool layer_norm(bare *b, primitive *p, void *desc, void *hint)
{
    const dnnl_memory_desc_t *in = add_operand(p, DNNL_ARG_SRC, b->size[0], b->x[0]);
    const dnnl_dims_t count = { b->size[0][0] };
    dnnl_memory_desc_t of_rows;
    add_operand(p, DNNL_ARG_SCALE, b->size[1], b->x[1]);
    add_operand(p, DNNL_ARG_SHIFT, b->size[2], b->x[2]);
    add_operand(p, DNNL_ARG_DST, b->size[0], b->y);
    return dnnl_memory_desc_init_by_tag(&of_rows, 1, count, dnnl_f32, dnnl_a) == 0 &&
           dnnl_layer_normalization_forward_desc_init(desc, dnnl_forward_inference, in, &of_rows, 1e-5f,
                                                      dnnl_use_scale | dnnl_use_shift) == 0;
}

static bool gelu(bare *b, primitive *p, void *desc, void *hint)
{
    const dnnl_memory_desc_t *in = add_operand(p, DNNL_ARG_SRC, b->size[0], b->x[0]);
    add_operand(p, DNNL_ARG_DST, b->size[0], b->y);
    return dnnl_eltwise_forward_desc_init(desc, dnnl_forward_inference, dnnl_eltwise_gelu_erf, in, 0, 0) == 0;
}

static bool add(bare *b, primitive *p, void *desc, void *hint)
{
    const dnnl_memory_desc_t *x = add_operand(p, DNNL_ARG_SRC_0, b->size[0], b->x[0]),
                             *y = add_operand(p, DNNL_ARG_SRC_1, b->size[1], b->x[1]);
    const dnnl_memory_desc_t *to = add_operand(p, DNNL_ARG_DST, b->size[0], b->y);
    return dnnl_binary_desc_init(desc, dnnl_binary_add, x, y, to) == 0;
}

static bool sum_along(bare *b, primitive *p, void *desc, int axis)
{
    int64_t out[4] = { b->size[0][0], b->size[0][1] };
    out[axis] = 1;
    const dnnl_memory_desc_t *in = add_operand(p, DNNL_ARG_SRC, b->size[0], b->x[0]),
                             *to = add_operand(p, DNNL_ARG_DST, out, b->y);
    return dnnl_reduction_desc_init(desc, dnnl_reduction_sum, in, to, 0, 0) == 0;
}

static bool rows(bare *b, primitive *p, void *desc, void *hint) { return sum_along(b, p, desc, 1); }
static bool columns(bare *b, primitive *p, void *desc, void *hint) { return sum_along(b, p, desc, 0); }

bool bare_softmax(bare *b) { return run(b, softmax); }
bool bare_layer_norm(bare *b) { return run(b, layer_norm); }
bool bare_gelu(bare *b) { return run(b, gelu); }
bool bare_add(bare *b) { return run(b, add); }
bool bare_sum_rows(bare *b) { return run(b, rows); }
bool bare_sum_columns(bare *b) { return run(b, columns); }
#else
#define ABSENT(name)                                                                                         \
    bool bare_##name(bare *b) { return false; }
ABSENT(conv2d)
ABSENT(conv2d_input_grad)
ABSENT(conv2d_filter_grad)
ABSENT(max_pool2d)
ABSENT(avg_pool2d)
ABSENT(softmax)
ABSENT(layer_norm)
ABSENT(gelu)
ABSENT(add)
ABSENT(sum_rows)
ABSENT(sum_columns)
#endif
