/* conv_onednn.c - convolution by oneDNN, and back from its results.
 *
 * oneDNN computes fastest on layouts of its own choice. A step keeps the convolution and the reorderings to and from these layouts;
 * the memory between them comes from the pool at each run. */
#include "onednn.h"
#include <pthread.h>
#include <stdlib.h>

/* ---- what a step keeps ---- */

enum { SRC, FILTERS, DST, OPERANDS };

/* What oneDNN calls the operands, by which of them is the result. */
static const struct names {
    int argument[OPERANDS];
    dnnl_query_t query[OPERANDS];
} names[OPERANDS] = {
    [DST] = { { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST },
              { dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md } },
    [SRC] = { { DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST },
              { dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md } },
    [FILTERS] = { { DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST },
                  { dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md } },
};

static int result_of(const step *s)
{
    return s->kernel == OP_conv2d_input_grad ? SRC : s->kernel == OP_conv2d_filter_grad ? FILTERS : DST;
}

typedef struct kept {
    bool declined;
    int result; /* which operand */
    dnnl_stream_t stream;
    dnnl_primitive_t convolution, reorder[OPERANDS]; /* NULL: not needed */
    dnnl_memory_t outer[OPERANDS], inner[OPERANDS], scratch;
    size_t bytes[OPERANDS], scratch_bytes; /* of what the pool lends */
} kept;

static dnnl_engine_t engine;
static pthread_once_t engine_once = PTHREAD_ONCE_INIT;

static void make_engine(void)
{
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) engine = NULL;
}

dnnl_engine_t onednn_engine(void)
{
    pthread_once(&engine_once, make_engine);
    return engine;
}

static void kept_free(kept *k)
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
    if (s->kept) kept_free(s->kept);
    s->kept = NULL;
}

/* ---- making it ---- */

/* The memory of one operand: as the step has it, and as the convolution wants it. */
static dnnl_status_t make_operand(kept *k, int i, const description *mine, described wanted)
{
    DNN(dnnl_memory_create(&k->outer[i], look(mine), engine, DNNL_MEMORY_NONE));
    DNN(dnnl_memory_create(&k->inner[i], wanted, engine, DNNL_MEMORY_NONE));
    DNN(i == k->result ? make_reorder(&k->reorder[i], engine, wanted, look(mine))
                       : make_reorder(&k->reorder[i], engine, look(mine), wanted));
    k->bytes[i] = k->reorder[i] ? dnnl_memory_desc_get_size(wanted) : 0;
    return dnnl_success;
}

static dnnl_status_t make_from(kept *k, dnnl_primitive_desc_t pd, const description mine[OPERANDS])
{
    const dnnl_query_t *query = names[k->result].query;
    for (int i = 0; i < OPERANDS; i++)
        DNN(make_operand(k, i, &mine[i], dnnl_primitive_desc_query_md(pd, query[i], 0)));
    described scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    k->scratch_bytes = dnnl_memory_desc_get_size(scratch);
    DNN(dnnl_memory_create(&k->scratch, scratch, engine, DNNL_MEMORY_NONE));
    DNN(dnnl_stream_create(&k->stream, engine, dnnl_stream_default_flags));
    return dnnl_primitive_create(&k->convolution, pd);
}

static dnnl_status_t choose_way(dnnl_primitive_desc_t *pd, int result, const description any[OPERANDS],
                                const conv *g, const_dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t forward;
    DNN(choose(&forward, engine, &any[SRC], &any[FILTERS], NULL, &any[DST], g, attr));
    if (result == DST) return *pd = forward, dnnl_success;
    const dnnl_status_t r =
        choose_back(pd, engine, result == SRC, &any[SRC], &any[FILTERS], &any[DST], g, attr, forward);
    dnnl_primitive_desc_destroy(forward);
    return r;
}

static dnnl_status_t make_chosen(kept *k, const conv *g, const description mine[OPERANDS],
                                 const description any[OPERANDS])
{
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd;
    DNN(dnnl_primitive_attr_create(&attr));
    dnnl_status_t r = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (r == dnnl_success) r = choose_way(&pd, k->result, any, g, attr);
    dnnl_primitive_attr_destroy(attr);
    DNN(r);
    r = is_slow(pd) ? dnnl_unimplemented : make_from(k, pd, mine);
    dnnl_primitive_desc_destroy(pd);
    return r;
}

/* One operand as the step has it, and in any layout. */
static dnnl_status_t describe_both(const layout *l, description *mine, description *any)
{
    const dims d = dims_of(l);
    DNN(describe(mine, l->rank, d.size, d.stride));
    dnnl_status_t r = describe_as(any, l->rank, d.size, dnnl_format_tag_any);
    if (r != dnnl_success) description_free(mine);
    return r;
}

/* The filters are dense when it runs: conv_filters. */
static dnnl_status_t make(kept *k, const step *s)
{
    const conv g = conv_of(s);
    const conv_operands o = conv_operands_of(s);
    const layout at[OPERANDS] = { o.x->at, filters_of(&g), o.y->at };
    k->result = result_of(s);
    description mine[OPERANDS], any[OPERANDS];
    dnnl_status_t r = engine ? dnnl_success : dnnl_runtime_error;
    int n = 0;
    for (; r == dnnl_success && n < OPERANDS; n += r == dnnl_success)
        r = describe_both(&at[n], &mine[n], &any[n]);
    if (r == dnnl_success) r = make_chosen(k, &g, mine, any);
    for (int i = 0; i < n; i++) description_free(&mine[i]), description_free(&any[i]);
    return r;
}

/* Its kernels count in 32 bits, and read where nothing is when padding or windows reach far. */
enum { FARTHEST = 1 << 16 };
bool onednn_reaches(const step *s)
{
    const conv g = conv_of(s);
    const int64_t size[] = { g.kh, g.kw, g.kd };
    for (int a = 0; a < 3; a++)
        if (g.pad[a] + g.more[a] > FARTHEST || (size[a] - 1) * g.dilation[a] > FARTHEST) return false;
    return true;
}

bool onednn_walks(const layout *l)
{
    for (int a = 0; a < l->rank; a++)
        if (l->size[a] > 1 && l->stride[a] <= 0) return false;
    return true;
}

static duet_status keep(const step *s, kept **k)
{
    *k = s->kept;
    if (*k) return DUET_OK;
    (void)onednn_engine();
    const conv_operands o = conv_operands_of(s);
    *k = calloc(1, sizeof **k);
    if (!*k) return fail(DUET_NO_MEMORY, "no memory for a convolution's description");
    ((step *)s)->kept = *k; /* steps are the plan's, which lets their machine keep things */
    const bool takes = onednn_walks(&o.x->at) && onednn_walks(&o.y->at) && onednn_reaches(s);
    dnnl_status_t r = takes ? make(*k, s) : dnnl_unimplemented;
    (*k)->declined = r != dnnl_success;
    if (r != dnnl_out_of_memory) return DUET_OK;
    onednn_forget((step *)s);
    return fail(DUET_NO_MEMORY, "oneDNN has no memory for a convolution");
}

/* ---- running it ---- */

static dnnl_status_t reorder(const kept *k, int i)
{
    bool out = i == k->result;
    const dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, out ? k->inner[i] : k->outer[i] },
                                     { DNNL_ARG_TO, out ? k->outer[i] : k->inner[i] } };
    return k->reorder[i] ? dnnl_primitive_execute(k->reorder[i], k->stream, 2, args) : dnnl_success;
}

static dnnl_status_t execute(const kept *k)
{
    dnnl_exec_arg_t args[OPERANDS + 1] = { [OPERANDS] = { DNNL_ARG_SCRATCHPAD, k->scratch } };
    for (int i = 0; i < OPERANDS; i++)
        args[i] = (dnnl_exec_arg_t){ names[k->result].argument[i], k->inner[i] };
    for (int i = 0; i < OPERANDS; i++)
        if (i != k->result) DNN(reorder(k, i));
    DNN(dnnl_primitive_execute(k->convolution, k->stream, OPERANDS + 1, args));
    DNN(reorder(k, k->result));
    return dnnl_stream_wait(k->stream);
}

static dnnl_status_t bind(const kept *k, void *const data[OPERANDS], char *room)
{
    for (int i = 0; i < OPERANDS; i++) {
        DNN(dnnl_memory_set_data_handle(k->outer[i], data[i]));
        DNN(dnnl_memory_set_data_handle(k->inner[i], k->reorder[i] ? room : data[i]));
        room += whole_lines(k->bytes[i]);
    }
    return dnnl_memory_set_data_handle(k->scratch, room);
}

static duet_status run_kept(const kept *k, const frame *f, void *const data[OPERANDS])
{
    size_t bytes = whole_lines(k->scratch_bytes);
    void *room;
    for (int i = 0; i < OPERANDS; i++) bytes += whole_lines(k->bytes[i]);
    TRY(scratch_take(bytes, f, &room));
    dnnl_status_t r = bind(k, data, room);
    if (r == dnnl_success) r = execute(k);
    scratch_give(room);
    if (r == dnnl_success) return DUET_OK;
    return fail(r == dnnl_out_of_memory ? DUET_NO_MEMORY : DUET_DEVICE_ERROR,
                "oneDNN: a convolution ended with status %d", (int)r);
}

duet_status onednn_conv(const step *s, const frame *f, bool *done)
{
    kept *k;
    void *copy = NULL;
    if (s->out[0].at.type != DUET_F32 || layout_count(&s->in[0].at) == 0) return DUET_OK;
    TRY(keep(s, &k));
    if (k->declined) return DUET_OK;
    const conv_operands o = conv_operands_of(s);
    const void *filters = address(f, o.w);
    duet_status r = DUET_OK;
    if (k->result != FILTERS) r = conv_filters(s, f, &filters, &copy);
    void *const data[OPERANDS] = { address(f, o.x), (void *)(uintptr_t)filters, address(f, o.y) };
    if (r == DUET_OK) r = run_kept(k, f, data);
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
