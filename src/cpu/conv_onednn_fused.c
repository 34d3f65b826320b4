/* conv_onednn_fused.c - convolutions with an epilogue by oneDNN, in f32.
 *
 * A batch of a few images is convolved, and the epilogue runs while their results are in the cache
 * of a core. oneDNN adds the bias. Activation and pooling are Duet's, because oneDNN's lose NaN.
 *
 * Each thread takes images and calls oneDNN alone. If there are fewer images than threads, they are
 * computed one batch at a time and oneDNN uses all threads. */
#include "epilogue.h"
#include "min_max.h"
#include "onednn.h"
#include "threads.h"
#include <stdlib.h>

enum { SRC, FILTERS, BIAS, DST, ARGUMENTS };
enum { BATCH, ONE_IMAGE, BATCH_SIZES }; /* batches of several images, and of one for the remaining images */
static const int argument[ARGUMENTS] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST };

/* ---- what the step stores ---- */

/* The convolution of a batch. */
typedef struct batch_conv {
    int64_t images;
    dnnl_primitive_t convolution, reorder; /* reorder: of the images; NULL if oneDNN takes their layout */
    size_t src_bytes, dst_bytes, scratch_bytes;
} batch_conv;

/* The memory objects of one thread, and its epilogue. */
typedef struct worker_batch {
    dnnl_memory_t outer, src, bias, dst, scratch;
    epilogue_steps epilogue;
} worker_batch;

typedef struct worker {
    dnnl_stream_t stream;
    worker_batch batch[BATCH_SIZES];
} worker;

typedef struct conv_cache {
    bool declined;
    conv g;
    batch_conv size[BATCH_SIZES];
    dnnl_primitive_t reorder_filters;
    dnnl_memory_t outer_filters, filters;
    size_t filter_bytes, worker_bytes; /* sizes of the memory from the pool */
    int workers;
    worker worker[];
} conv_cache;

static void memory_free(dnnl_memory_t m)
{
    if (m) dnnl_memory_destroy(m);
}

static void primitive_free(dnnl_primitive_t p)
{
    if (p) dnnl_primitive_destroy(p);
}

static void worker_batch_free(worker_batch *t)
{
    memory_free(t->outer);
    memory_free(t->src);
    memory_free(t->bias);
    memory_free(t->dst);
    memory_free(t->scratch);
    epilogue_free(&t->epilogue);
}

void onednn_conv_fused_forget(step *s)
{
    conv_cache *k = s->cached;
    s->cached = NULL;
    if (!k) return;
    for (worker *l = k->worker; l < k->worker + k->workers; l++) {
        worker_batch_free(&l->batch[BATCH]);
        worker_batch_free(&l->batch[ONE_IMAGE]);
        if (l->stream) dnnl_stream_destroy(l->stream);
    }
    for (int w = 0; w < BATCH_SIZES; w++) {
        primitive_free(k->size[w].convolution);
        primitive_free(k->size[w].reorder);
    }
    primitive_free(k->reorder_filters);
    memory_free(k->outer_filters);
    memory_free(k->filters);
    free(k);
}

/* ---- creating the primitives ---- */

/* Descriptions of the operands: in oneDNN's layouts, and of the images in the layout of the step. */
enum { OUTER = ARGUMENTS, DESCRIPTIONS };

static dnnl_status_t describe_operand(mem_desc *d, int which, const step *s, const conv *g, int64_t images,
                                      desc_ref filters)
{
    const dnnl_dims_t src = { images, g->c, g->h, g->w }, dst = { images, g->m, g->oh, g->ow },
                      bias = { g->m };
    const layout at = filters_of(g);
    const dims weights = dims_of(&at), images_at = dims_of(&s->in[0].at);
    switch (which) {
    case SRC: return mem_desc_tagged(d, 4, src, dnnl_format_tag_any);
    case FILTERS:
        if (filters) return mem_desc_copy(d, filters);
        return mem_desc_tagged(d, at.rank, weights.size, dnnl_format_tag_any);
    case BIAS: return mem_desc_tagged(d, 1, bias, dnnl_a);
    case DST: return mem_desc_tagged(d, 4, dst, dnnl_nhwc);
    default: return mem_desc_strided(d, 4, src, images_at.stride);
    }
}

static dnnl_status_t choose_primitive(dnnl_primitive_desc_t *pd, const mem_desc d[DESCRIPTIONS],
                                      const conv *g)
{
    dnnl_primitive_attr_t attr;
    DNN(dnnl_primitive_attr_create(&attr));
    dnnl_status_t r = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (r == dnnl_success)
        r = create_forward(pd, onednn_engine(), &d[SRC], &d[FILTERS], &d[BIAS], &d[DST], g, attr);
    dnnl_primitive_attr_destroy(attr);
    return r;
}

static dnnl_status_t make_memory(dnnl_memory_t *m, desc_ref d)
{
    return dnnl_memory_create(m, d, onednn_engine(), DNNL_MEMORY_NONE);
}

/* oneDNN writes the results as NHWC. */
static void make_epilogue(epilogue_steps *p, const step *s, const conv *g, int64_t images)
{
    const int64_t w = g->ow * g->m;
    const layout at = { DUET_F32, 4, { images, g->m, g->oh, g->ow }, { g->oh * w, 1, w, g->m } };
    epilogue_make(p, s, &(epilogue_input){ .at = at, .has_bias = true, .separate = true });
}

static dnnl_status_t make_worker_batch(worker_batch *t, const step *s, const conv_cache *k, int64_t images,
                                       dnnl_primitive_desc_t pd, const mem_desc d[DESCRIPTIONS])
{
    DNN(make_memory(&t->outer, desc_ref_of(&d[OUTER])));
    DNN(make_memory(&t->src, dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0)));
    DNN(make_memory(&t->bias, desc_ref_of(&d[BIAS])));
    DNN(make_memory(&t->dst, desc_ref_of(&d[DST])));
    DNN(make_memory(&t->scratch, dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0)));
    make_epilogue(&t->epilogue, s, &k->g, images);
    return dnnl_success;
}

static dnnl_status_t make_filters(conv_cache *k, desc_ref wanted)
{
    const layout at = filters_of(&k->g);
    const dims d = dims_of(&at);
    mem_desc own;
    DNN(mem_desc_strided(&own, at.rank, d.size, d.stride));
    dnnl_status_t r = make_memory(&k->outer_filters, desc_ref_of(&own));
    if (r == dnnl_success) r = make_memory(&k->filters, wanted);
    if (r == dnnl_success) r = make_reorder(&k->reorder_filters, onednn_engine(), desc_ref_of(&own), wanted);
    k->filter_bytes = k->reorder_filters ? round_to_cache_line(dnnl_memory_desc_get_size(wanted)) : 0;
    mem_desc_free(&own);
    return r;
}

static dnnl_status_t make_from(conv_cache *k, int w, const step *s, dnnl_primitive_desc_t pd,
                               const mem_desc d[DESCRIPTIONS])
{
    batch_conv *c = &k->size[w];
    desc_ref src = dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0);
    DNN(make_reorder(&c->reorder, onednn_engine(), desc_ref_of(&d[OUTER]), src));
    c->src_bytes = c->reorder ? round_to_cache_line(dnnl_memory_desc_get_size(src)) : 0;
    c->dst_bytes = round_to_cache_line(dnnl_memory_desc_get_size(desc_ref_of(&d[DST])));
    c->scratch_bytes = round_to_cache_line(
        dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0)));
    const size_t bytes = c->src_bytes + c->dst_bytes + c->scratch_bytes;
    if (bytes > k->worker_bytes) k->worker_bytes = bytes;
    for (worker *l = k->worker; l < k->worker + k->workers; l++)
        DNN(make_worker_batch(&l->batch[w], s, k, c->images, pd, d));
    return dnnl_primitive_create(&c->convolution, pd);
}

static dnnl_status_t make_primitive(conv_cache *k, int w, const step *s, const mem_desc d[DESCRIPTIONS])
{
    dnnl_primitive_desc_t pd;
    DNN(choose_primitive(&pd, d, &k->g));
    dnnl_status_t r = dnnl_success;
    if (is_reference(pd)) r = dnnl_unimplemented;
    if (r == dnnl_success && !k->filters)
        r = make_filters(k, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0));
    if (r == dnnl_success) r = make_from(k, w, s, pd, d);
    dnnl_primitive_desc_destroy(pd);
    return r;
}

/* The filters are reordered once, to the layout that the first batch size needs. */
static dnnl_status_t make_size(conv_cache *k, int w, const step *s)
{
    mem_desc d[DESCRIPTIONS];
    desc_ref filters = NULL;
    int n = 0;
    dnnl_status_t r = dnnl_success;
    if (k->filters) r = dnnl_memory_get_memory_desc(k->filters, &filters);
    for (; r == dnnl_success && n < DESCRIPTIONS; n += r == dnnl_success)
        r = describe_operand(&d[n], n, s, &k->g, k->size[w].images, filters);
    if (r == dnnl_success) r = make_primitive(k, w, s, d);
    for (int i = 0; i < n; i++) mem_desc_free(&d[i]);
    return r;
}

static dnnl_status_t make(conv_cache *k, const step *s)
{
    if (!onednn_engine()) return dnnl_runtime_error;
    k->g = conv_of(s);
    k->size[BATCH].images = conv_batch(&k->g, sizeof(float), 1);
    k->size[ONE_IMAGE].images = 1;
    for (worker *l = k->worker; l < k->worker + k->workers; l++)
        DNN(dnnl_stream_create(&l->stream, onednn_engine(), dnnl_stream_default_flags));
    DNN(make_size(k, BATCH, s));
    if (k->size[BATCH].images <= 1) return dnnl_success;
    return make_size(k, ONE_IMAGE, s);
}

static duet_status cache_of(const step *s, conv_cache **k)
{
    const int64_t images = s->in[0].at.size[0], threads = omp_get_max_threads();
    const int workers = (int)smaller(images, threads);
    *k = s->cached;
    if (*k) return DUET_OK;
    *k = calloc(1, sizeof **k + (size_t)workers * sizeof(worker));
    if (!*k) return fail(DUET_NO_MEMORY, "no host memory to describe a convolution");
    ((step *)s)->cached = *k; /* the field is for the backend, although the step is const */
    (*k)->workers = workers;
    dnnl_status_t r = dnnl_unimplemented;
    if (onednn_supports_strides(&s->in[0].at) && onednn_supports_extent(s))
        r = cpu_has_room(ONEDNN_ROOM) ? make(*k, s) : dnnl_out_of_memory;
    (*k)->declined = r != dnnl_success;
    if (r != dnnl_out_of_memory) return DUET_OK;
    onednn_conv_fused_forget((step *)s);
    return fail(DUET_NO_MEMORY, "oneDNN could not allocate memory for a convolution");
}

/* ---- running them ---- */

typedef struct work {
    conv_cache *k;
    const step *s;
    const frame *f;
    void *bias;
    char *memory; /* for all workers */
} work;

static dnnl_status_t bind(const batch_conv *c, const worker_batch *t, const float *images, void *bias,
                          char *memory)
{
    DNN(dnnl_memory_set_data_handle(t->outer, (float *)(uintptr_t)images));
    DNN(dnnl_memory_set_data_handle(t->src, c->reorder ? memory : (char *)(uintptr_t)images));
    DNN(dnnl_memory_set_data_handle(t->bias, bias));
    DNN(dnnl_memory_set_data_handle(t->dst, memory + c->src_bytes));
    return dnnl_memory_set_data_handle(t->scratch, memory + c->src_bytes + c->dst_bytes);
}

static dnnl_status_t reorder(dnnl_primitive_t p, dnnl_stream_t stream, dnnl_memory_t from, dnnl_memory_t to)
{
    const dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to } };
    if (!p) return dnnl_success;
    return dnnl_primitive_execute(p, stream, 2, args);
}

static dnnl_status_t convolve(const conv_cache *k, const batch_conv *c, const worker_batch *t,
                              dnnl_stream_t stream)
{
    const dnnl_exec_arg_t args[] = { { argument[SRC], t->src },
                                     { argument[FILTERS], k->filters },
                                     { argument[BIAS], t->bias },
                                     { argument[DST], t->dst },
                                     { DNNL_ARG_SCRATCHPAD, t->scratch } };
    DNN(reorder(c->reorder, stream, t->outer, t->src));
    DNN(dnnl_primitive_execute(c->convolution, stream, ARGUMENTS + 1, args));
    return dnnl_stream_wait(stream);
}

/* Computes images first .. last - 1, in one thread or with oneDNN's threads. */
static dnnl_status_t run_images(const work *o, worker *l, char *memory, int64_t first, int64_t last)
{
    const conv_cache *k = o->k;
    const int64_t each = layout_count(&o->s->out[0].at) / k->g.n;
    for (int64_t n = first; n < last;) {
        const int w = n + k->size[BATCH].images <= last ? BATCH : ONE_IMAGE;
        const batch_conv *c = &k->size[w];
        worker_batch *t = &l->batch[w];
        DNN(bind(c, t, (float *)address(o->f, &o->s->in[0]) + n * o->s->in[0].at.stride[0], o->bias, memory));
        DNN(convolve(k, c, t, l->stream));
        float *out = (float *)address(o->f, &o->s->out[0]) + n * each;
        if (epilogue_run(&t->epilogue, o->s, o->f, memory + c->src_bytes, out) != DUET_OK)
            return dnnl_runtime_error;
        n += c->images;
    }
    return dnnl_success;
}

static dnnl_status_t run_shared(const work *o, int threads)
{
    int failed = dnnl_success;
#pragma omp parallel num_threads(threads)
    {
        IN_DEFAULT_FP_ENVIRONMENT;
        const int t = omp_get_thread_num(), team = omp_get_num_threads();
        const int64_t n = o->k->g.n;
        const int r = run_images(o, &o->k->worker[t], o->memory + (size_t)t * o->k->worker_bytes,
                                 part_of(n, t, team), part_of(n, t + 1, team));
        if (r != dnnl_success) __atomic_store_n(&failed, r, __ATOMIC_RELAXED);
    }
    return (dnnl_status_t)failed;
}

/* The number of workers: one for each thread, or one if there are fewer images than threads. */
static int workers_for(const conv_cache *k, int threads)
{
    if (k->g.n < threads) return 1;
    return (int)smaller(threads, k->workers);
}

static dnnl_status_t run_all(const work *o, int threads)
{
    if (workers_for(o->k, threads) > 1) return run_shared(o, workers_for(o->k, threads));
    const int before = threads_alone(threads == 1);
    const dnnl_status_t r = run_images(o, &o->k->worker[0], o->memory, 0, o->k->g.n);
    threads_again(before);
    return r;
}

static dnnl_status_t run_reordered(const work *o, const void *filters, char *memory, int threads)
{
    const conv_cache *k = o->k;
    DNN(dnnl_memory_set_data_handle(k->outer_filters, (void *)(uintptr_t)filters));
    DNN(dnnl_memory_set_data_handle(k->filters, k->reorder_filters ? memory : (char *)(uintptr_t)filters));
    DNN(reorder(k->reorder_filters, k->worker[0].stream, k->outer_filters, k->filters));
    DNN(dnnl_stream_wait(k->worker[0].stream));
    return run_all(o, threads);
}

static int threads_for_conv(const conv_cache *k)
{
    const conv *g = &k->g;
    const double flops = 2.0 * (double)(g->n * g->m * g->oh) * (double)(g->ow * g->c * g->kh) * (double)g->kw;
    return threads_for(flops * SECONDS_PER_ONEDNN_FLOP);
}

static duet_status run_cached(conv_cache *k, const step *s, const frame *f, const void *filters, void *bias)
{
    const int threads = threads_for_conv(k);
    void *memory;
    TRY(scratch_take(k->filter_bytes + (size_t)workers_for(k, threads) * k->worker_bytes, f, &memory));
    const work o = { k, s, f, bias, (char *)memory + k->filter_bytes };
    const dnnl_status_t r = run_reordered(&o, filters, memory, threads);
    scratch_give(memory);
    if (r == dnnl_success) return DUET_OK;
    return fail(DUET_DEVICE_ERROR, "oneDNN: a convolution ended with status %d", (int)r);
}

/* The bias, dense: the operand or a copy. */
static duet_status open_bias(const step *s, const frame *f, void **bias, void **copy)
{
    *copy = NULL;
    *bias = address(f, &s->in[2]);
    if (layout_is_dense(&s->in[2].at)) return DUET_OK;
    TRY(scratch_copy(&s->in[2], f, copy));
    *bias = *copy;
    return DUET_OK;
}

duet_status onednn_conv_fused(const step *s, const frame *f, bool *done)
{
    conv_cache *k;
    void *bias, *bias_copy = NULL, *filter_copy;
    const void *filters;
    if (s->out[0].at.type != DUET_F32 || layout_count(&s->in[0].at) == 0) return DUET_OK;
    TRY(cache_of(s, &k));
    if (k->declined) return DUET_OK;
    duet_status r = conv_filters(s, f, &filters, &filter_copy);
    if (r == DUET_OK) r = open_bias(s, f, &bias, &bias_copy);
    if (r == DUET_OK) r = run_cached(k, s, f, filters, bias);
    scratch_give(filter_copy);
    scratch_give(bias_copy);
    *done = true;
    return r;
}
