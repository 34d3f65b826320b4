/* conv_onednn.c - convolutions and their gradients by oneDNN, in f32.
 *
 * oneDNN is fastest on layouts of its own choice. The step stores the primitives: the convolution,
 * and reorders of operands to and from these layouts. Each run takes the memory for reordered
 * operands from the pool. oneDNN uses all OpenMP threads. */
#include "onednn.h"
#include <pthread.h>
#include <stdlib.h>

/* ---- what the step stores ---- */

enum { SRC, FILTERS, DST, OPERANDS };

/* oneDNN's names of the operands, indexed by the operand that is the result. */
static const struct operand_names {
    int argument[OPERANDS];
    dnnl_query_t query[OPERANDS];
} operand_names[OPERANDS] = {
    [DST] = { { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST },
              { dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md } },
    [SRC] = { { DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST },
              { dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md } },
    [FILTERS] = { { DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST },
                  { dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md } },
};

static int result_of(const step *s)
{
    if (s->kernel == OP_conv2d_input_grad) return SRC;
    return s->kernel == OP_conv2d_filter_grad ? FILTERS : DST;
}

typedef struct conv_cache {
    bool declined;
    int result; /* index of the result among the operands */
    dnnl_stream_t stream;
    dnnl_primitive_t convolution, reorder[OPERANDS]; /* NULL: not needed */
    dnnl_memory_t outer[OPERANDS], inner[OPERANDS], scratch;
    size_t bytes[OPERANDS], scratch_bytes; /* sizes of the memory from the pool */
} conv_cache;

static dnnl_engine_t engine;
static pthread_once_t engine_once = PTHREAD_ONCE_INIT;

static void create_engine(void)
{
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) engine = NULL;
}

dnnl_engine_t onednn_engine(void)
{
    pthread_once(&engine_once, create_engine);
    return engine;
}

static void cache_free(conv_cache *k)
{
    for (int i = 0; i < OPERANDS; i++) {
        if (k->reorder[i]) dnnl_primitive_destroy(k->reorder[i]);
        if (k->outer[i]) dnnl_memory_destroy(k->outer[i]);
        if (k->inner[i]) dnnl_memory_destroy(k->inner[i]);
    }
    if (k->scratch) dnnl_memory_destroy(k->scratch);
    if (k->convolution) dnnl_primitive_destroy(k->convolution);
    if (k->stream) dnnl_stream_destroy(k->stream);
    free(k);
}

void onednn_forget(step *s)
{
    if (s->cached) cache_free(s->cached);
    s->cached = NULL;
}

/* ---- creating the primitives ---- */

/* Creates the memory objects of one operand, in the layout of the step and in that of the
 * convolution. */
static dnnl_status_t make_operand(conv_cache *k, int i, const mem_desc *own, desc_ref wanted)
{
    DNN(dnnl_memory_create(&k->outer[i], desc_ref_of(own), engine, DNNL_MEMORY_NONE));
    DNN(dnnl_memory_create(&k->inner[i], wanted, engine, DNNL_MEMORY_NONE));
    DNN(i == k->result ? make_reorder(&k->reorder[i], engine, wanted, desc_ref_of(own))
                       : make_reorder(&k->reorder[i], engine, desc_ref_of(own), wanted));
    k->bytes[i] = k->reorder[i] ? dnnl_memory_desc_get_size(wanted) : 0;
    return dnnl_success;
}

static dnnl_status_t make_from(conv_cache *k, dnnl_primitive_desc_t pd, const mem_desc own[OPERANDS])
{
    const dnnl_query_t *query = operand_names[k->result].query;
    for (int i = 0; i < OPERANDS; i++)
        DNN(make_operand(k, i, &own[i], dnnl_primitive_desc_query_md(pd, query[i], 0)));
    desc_ref scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    k->scratch_bytes = dnnl_memory_desc_get_size(scratch);
    DNN(dnnl_memory_create(&k->scratch, scratch, engine, DNNL_MEMORY_NONE));
    DNN(dnnl_stream_create(&k->stream, engine, dnnl_stream_default_flags));
    return dnnl_primitive_create(&k->convolution, pd);
}

static dnnl_status_t choose_primitive(dnnl_primitive_desc_t *pd, int result, const mem_desc any[OPERANDS],
                                      const conv *g, const_dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t forward;
    DNN(create_forward(&forward, engine, &any[SRC], &any[FILTERS], NULL, &any[DST], g, attr));
    if (result == DST) {
        *pd = forward;
        return dnnl_success;
    }
    const dnnl_status_t r =
        create_backward(pd, engine, result == SRC, &any[SRC], &any[FILTERS], &any[DST], g, attr, forward);
    dnnl_primitive_desc_destroy(forward);
    return r;
}

/* On 64-bit Arm, oneDNN 2.6 computes wrong gradients of padded, strided or dilated depthwise
 * convolutions with respect to the images. */
static bool is_wrong(dnnl_primitive_desc_t pd, int result)
{
    const char *name = "";
    return result == SRC &&
           dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) == dnnl_success &&
           !strncmp(name, "jit_dw:sve", 10);
}

static dnnl_status_t make_primitives(conv_cache *k, const conv *g, const mem_desc own[OPERANDS],
                                     const mem_desc any[OPERANDS])
{
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd;
    DNN(dnnl_primitive_attr_create(&attr));
    dnnl_status_t r = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (r == dnnl_success) r = choose_primitive(&pd, k->result, any, g, attr);
    dnnl_primitive_attr_destroy(attr);
    DNN(r);
    r = is_reference(pd) || is_wrong(pd, k->result) ? dnnl_unimplemented : make_from(k, pd, own);
    dnnl_primitive_desc_destroy(pd);
    return r;
}

/* Describes one operand, in the layout of the step and in any layout. */
static dnnl_status_t describe_operand(const layout *l, mem_desc *own, mem_desc *any)
{
    const dims d = dims_of(l);
    DNN(mem_desc_strided(own, l->rank, d.size, d.stride));
    dnnl_status_t r = mem_desc_tagged(any, l->rank, d.size, dnnl_format_tag_any);
    if (r != dnnl_success) mem_desc_free(own);
    return r;
}

/* The filters are dense in every run: see conv_filters(). */
static dnnl_status_t make(conv_cache *k, const step *s)
{
    const conv g = conv_of(s);
    const conv_operands o = conv_operands_of(s);
    const layout at[OPERANDS] = { o.x->at, filters_of(&g), o.y->at };
    k->result = result_of(s);
    mem_desc own[OPERANDS], any[OPERANDS];
    dnnl_status_t r = dnnl_success;
    if (!engine) r = dnnl_runtime_error;
    int n = 0;
    for (; r == dnnl_success && n < OPERANDS; n += r == dnnl_success)
        r = describe_operand(&at[n], &own[n], &any[n]);
    if (r == dnnl_success) r = make_primitives(k, &g, own, any);
    for (int i = 0; i < n; i++) {
        mem_desc_free(&own[i]);
        mem_desc_free(&any[i]);
    }
    return r;
}

/* oneDNN counts in 32 bits, and reads out of bounds with very large padding or windows. */
enum { EXTENT_MAX = 1 << 16 };
bool onednn_supports_extent(const step *s)
{
    const conv g = conv_of(s);
    const int64_t size[] = { g.kh, g.kw, g.kd };
    for (int a = 0; a < 3; a++)
        if (g.pad[a] + g.extra[a] > EXTENT_MAX || (size[a] - 1) * g.dilation[a] > EXTENT_MAX) return false;
    return true;
}

bool onednn_supports_strides(const layout *l)
{
    for (int a = 0; a < l->rank; a++)
        if (l->size[a] > 1 && l->stride[a] <= 0) return false;
    return true;
}

static duet_status cache_of(const step *s, conv_cache **k)
{
    *k = s->cached;
    if (*k) return DUET_OK;
    onednn_engine();
    const conv_operands o = conv_operands_of(s);
    *k = calloc(1, sizeof **k);
    if (!*k) return fail(DUET_NO_MEMORY, "no host memory to describe a convolution");
    ((step *)s)->cached = *k; /* the field is for the backend, although the step is const */
    const bool takes =
        onednn_supports_strides(&o.x->at) && onednn_supports_strides(&o.y->at) && onednn_supports_extent(s);
    dnnl_status_t r = dnnl_unimplemented;
    if (takes) r = cpu_has_room(ONEDNN_ROOM) ? make(*k, s) : dnnl_out_of_memory;
    (*k)->declined = r != dnnl_success;
    if (r != dnnl_out_of_memory) return DUET_OK;
    onednn_forget((step *)s);
    return fail(DUET_NO_MEMORY, "oneDNN could not allocate memory for a convolution");
}

/* ---- running them ---- */

static dnnl_status_t reorder(const conv_cache *k, int i)
{
    bool out = i == k->result;
    const dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, out ? k->inner[i] : k->outer[i] },
                                     { DNNL_ARG_TO, out ? k->outer[i] : k->inner[i] } };
    if (!k->reorder[i]) return dnnl_success;
    return dnnl_primitive_execute(k->reorder[i], k->stream, 2, args);
}

static dnnl_status_t execute(const conv_cache *k)
{
    dnnl_exec_arg_t args[OPERANDS + 1] = { [OPERANDS] = { DNNL_ARG_SCRATCHPAD, k->scratch } };
    for (int i = 0; i < OPERANDS; i++)
        args[i] = (dnnl_exec_arg_t){ operand_names[k->result].argument[i], k->inner[i] };
    for (int i = 0; i < OPERANDS; i++)
        if (i != k->result) DNN(reorder(k, i));
    DNN(dnnl_primitive_execute(k->convolution, k->stream, OPERANDS + 1, args));
    DNN(reorder(k, k->result));
    return dnnl_stream_wait(k->stream);
}

static dnnl_status_t bind(const conv_cache *k, void *const data[OPERANDS], char *memory)
{
    for (int i = 0; i < OPERANDS; i++) {
        DNN(dnnl_memory_set_data_handle(k->outer[i], data[i]));
        DNN(dnnl_memory_set_data_handle(k->inner[i], k->reorder[i] ? memory : data[i]));
        memory += round_to_cache_line(k->bytes[i]);
    }
    return dnnl_memory_set_data_handle(k->scratch, memory);
}

static duet_status run_cached(const conv_cache *k, const frame *f, void *const data[OPERANDS])
{
    size_t bytes = round_to_cache_line(k->scratch_bytes);
    void *memory;
    for (int i = 0; i < OPERANDS; i++) bytes += round_to_cache_line(k->bytes[i]);
    TRY(scratch_take(bytes, f, &memory));
    dnnl_status_t r = bind(k, data, memory);
    if (r == dnnl_success) r = execute(k);
    scratch_give(memory);
    if (r == dnnl_success) return DUET_OK;
    return fail(r == dnnl_out_of_memory ? DUET_NO_MEMORY : DUET_DEVICE_ERROR,
                "oneDNN: a convolution ended with status %d", (int)r);
}

duet_status onednn_conv(const step *s, const frame *f, bool *done)
{
    conv_cache *k;
    void *copy = NULL;
    if (s->out[0].at.type != DUET_F32 || layout_count(&s->in[0].at) == 0) return DUET_OK;
    TRY(cache_of(s, &k));
    if (k->declined) return DUET_OK;
    const conv_operands o = conv_operands_of(s);
    const void *filters = address(f, o.w);
    duet_status r = DUET_OK;
    if (k->result != FILTERS) r = conv_filters(s, f, &filters, &copy);
    void *const data[OPERANDS] = { address(f, o.x), (void *)(uintptr_t)filters, address(f, o.y) };
    if (r == DUET_OK) r = run_cached(k, f, data);
    scratch_give(copy);
    *done = true;
    return r;
}

const char *onednn_version(void)
{
    static char text[64];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}
