/* conv_onednn_fused.c - a convolution by oneDNN with all that follows it: some images at a time, whose results are finished while they are
 * in a thread's own cache.
 *
 * oneDNN adds the bias. Its relu and its pooling lose NaN, so these are ours. Each thread has images of its own and calls oneDNN alone;
 * fewer images than threads are taken together, and oneDNN's threads share them. */
#include "epilogue.h"
#include "onednn.h"
#include "threads.h"
#include <stdlib.h>

enum { SRC, FILTERS, BIAS, DST, ARGUMENTS };
enum { GROUP, SINGLE, SHAPES }; /* several images at once; one of those that are left */
static const int argument[ARGUMENTS] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST };

/* ---- what a step keeps ---- */

/* The convolution of so many images. */
typedef struct convolver {
    int64_t images;
    dnnl_primitive_t convolution, arrange; /* arrange: the images as oneDNN wants them; NULL: as they are */
    size_t src_bytes, dst_bytes, scratch_bytes;
} convolver;

/* What one thread has of it. */
typedef struct seat {
    dnnl_memory_t outer, src, bias, dst, scratch;
    finishing after;
} seat;

typedef struct lane {
    dnnl_stream_t stream;
    seat seat[SHAPES];
} lane;

typedef struct kept {
    bool declined;
    conv g;
    convolver shape[SHAPES];
    dnnl_primitive_t arrange_filters;
    dnnl_memory_t outer_filters, filters;
    size_t filter_bytes, lane_bytes; /* of what the pool lends */
    int lanes;
    lane lane[];
} kept;

static void memory_free(dnnl_memory_t m)
{
    if (m) dnnl_memory_destroy(m);
}

static void primitive_free(dnnl_primitive_t p)
{
    if (p) dnnl_primitive_destroy(p);
}

static void seat_free(seat *t)
{
    memory_free(t->outer), memory_free(t->src), memory_free(t->bias), memory_free(t->dst),
        memory_free(t->scratch);
    finishing_free(&t->after);
}

void onednn_finished_forget(step *s)
{
    kept *k = s->kept;
    s->kept = NULL;
    if (!k) return;
    for (lane *l = k->lane; l < k->lane + k->lanes; l++) {
        seat_free(&l->seat[GROUP]), seat_free(&l->seat[SINGLE]);
        if (l->stream) dnnl_stream_destroy(l->stream);
    }
    for (int w = 0; w < SHAPES; w++)
        primitive_free(k->shape[w].convolution), primitive_free(k->shape[w].arrange);
    primitive_free(k->arrange_filters);
    memory_free(k->outer_filters), memory_free(k->filters);
    free(k);
}

/* ---- making it ---- */

/* The operands of a convolution of so many images: these as they lie, then all as oneDNN may have them. */
enum { OUTER = ARGUMENTS, DESCRIPTIONS };

static dnnl_status_t describe_one(description *d, int which, const step *s, const conv *g, int64_t images,
                                  described filters)
{
    const dnnl_dims_t src = { images, g->c, g->h, g->w }, dst = { images, g->m, g->oh, g->ow },
                      bias = { g->m };
    const layout at = filters_of(g);
    const dims weights = dims_of(&at), images_at = dims_of(&s->in[0].at);
    switch (which) {
    case SRC: return describe_as(d, 4, src, dnnl_format_tag_any);
    case FILTERS:
        return filters ? description_copy(d, filters)
                       : describe_as(d, at.rank, weights.size, dnnl_format_tag_any);
    case BIAS: return describe_as(d, 1, bias, dnnl_a);
    case DST: return describe_as(d, 4, dst, dnnl_nhwc);
    default: return describe(d, 4, src, images_at.stride);
    }
}

static dnnl_status_t choose_alone(dnnl_primitive_desc_t *pd, const description d[DESCRIPTIONS], const conv *g)
{
    dnnl_primitive_attr_t attr;
    DNN(dnnl_primitive_attr_create(&attr));
    dnnl_status_t r = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (r == dnnl_success) r = choose(pd, onednn_engine(), &d[SRC], &d[FILTERS], &d[BIAS], &d[DST], g, attr);
    dnnl_primitive_attr_destroy(attr);
    return r;
}

static dnnl_status_t make_memory(dnnl_memory_t *m, described d)
{
    return dnnl_memory_create(m, d, onednn_engine(), DNNL_MEMORY_NONE);
}

/* oneDNN leaves the results with their channels side by side. */
static void make_after(finishing *p, const step *s, const conv *g, int64_t images)
{
    const int64_t w = g->ow * g->m;
    const layout at = { DUET_F32, 4, { images, g->m, g->oh, g->ow }, { g->oh * w, 1, w, g->m } };
    finishing_make(p, s, &(results){ .at = at, .biased = true, .apart = true });
}

static dnnl_status_t make_seat(seat *t, const step *s, const kept *k, int64_t images,
                               dnnl_primitive_desc_t pd, const description d[DESCRIPTIONS])
{
    DNN(make_memory(&t->outer, look(&d[OUTER])));
    DNN(make_memory(&t->src, dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0)));
    DNN(make_memory(&t->bias, look(&d[BIAS])));
    DNN(make_memory(&t->dst, look(&d[DST])));
    DNN(make_memory(&t->scratch, dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0)));
    make_after(&t->after, s, &k->g, images);
    return dnnl_success;
}

static dnnl_status_t make_filters(kept *k, described wanted)
{
    const layout at = filters_of(&k->g);
    const dims d = dims_of(&at);
    description mine;
    DNN(describe(&mine, at.rank, d.size, d.stride));
    dnnl_status_t r = make_memory(&k->outer_filters, look(&mine));
    if (r == dnnl_success) r = make_memory(&k->filters, wanted);
    if (r == dnnl_success) r = make_reorder(&k->arrange_filters, onednn_engine(), look(&mine), wanted);
    k->filter_bytes = k->arrange_filters ? whole_lines(dnnl_memory_desc_get_size(wanted)) : 0;
    description_free(&mine);
    return r;
}

static dnnl_status_t make_from(kept *k, int w, const step *s, dnnl_primitive_desc_t pd,
                               const description d[DESCRIPTIONS])
{
    convolver *c = &k->shape[w];
    described src = dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0);
    DNN(make_reorder(&c->arrange, onednn_engine(), look(&d[OUTER]), src));
    c->src_bytes = c->arrange ? whole_lines(dnnl_memory_desc_get_size(src)) : 0;
    c->dst_bytes = whole_lines(dnnl_memory_desc_get_size(look(&d[DST])));
    c->scratch_bytes =
        whole_lines(dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0)));
    const size_t bytes = c->src_bytes + c->dst_bytes + c->scratch_bytes;
    if (bytes > k->lane_bytes) k->lane_bytes = bytes;
    for (lane *l = k->lane; l < k->lane + k->lanes; l++) DNN(make_seat(&l->seat[w], s, k, c->images, pd, d));
    return dnnl_primitive_create(&c->convolution, pd);
}

static dnnl_status_t make_described(kept *k, int w, const step *s, const description d[DESCRIPTIONS])
{
    dnnl_primitive_desc_t pd;
    DNN(choose_alone(&pd, d, &k->g));
    dnnl_status_t r = is_slow(pd) ? dnnl_unimplemented : dnnl_success;
    if (r == dnnl_success && !k->filters)
        r = make_filters(k, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0));
    if (r == dnnl_success) r = make_from(k, w, s, pd, d);
    dnnl_primitive_desc_destroy(pd);
    return r;
}

/* The filters are arranged once, as the shape that was made first wants them. */
static dnnl_status_t make_shape(kept *k, int w, const step *s)
{
    description d[DESCRIPTIONS];
    described filters = NULL;
    int n = 0;
    dnnl_status_t r = k->filters ? dnnl_memory_get_memory_desc(k->filters, &filters) : dnnl_success;
    for (; r == dnnl_success && n < DESCRIPTIONS; n += r == dnnl_success)
        r = describe_one(&d[n], n, s, &k->g, k->shape[w].images, filters);
    if (r == dnnl_success) r = make_described(k, w, s, d);
    for (int i = 0; i < n; i++) description_free(&d[i]);
    return r;
}

static dnnl_status_t make(kept *k, const step *s)
{
    if (!onednn_engine()) return dnnl_runtime_error;
    k->g = conv_of(s);
    k->shape[GROUP].images = conv_images_at_once(&k->g, sizeof(float), 1), k->shape[SINGLE].images = 1;
    for (lane *l = k->lane; l < k->lane + k->lanes; l++)
        DNN(dnnl_stream_create(&l->stream, onednn_engine(), dnnl_stream_default_flags));
    DNN(make_shape(k, GROUP, s));
    return k->shape[GROUP].images > 1 ? make_shape(k, SINGLE, s) : dnnl_success;
}

static duet_status keep(const step *s, kept **k)
{
    const int64_t images = s->in[0].at.size[0], threads = omp_get_max_threads();
    const int lanes = (int)(images < threads ? images : threads);
    *k = s->kept;
    if (*k) return DUET_OK;
    *k = calloc(1, sizeof **k + (size_t)lanes * sizeof(lane));
    if (!*k) return fail(DUET_NO_MEMORY, "no memory for a convolution's description");
    ((step *)s)->kept = *k; /* steps are the plan's, which lets their machine keep things */
    (*k)->lanes = lanes;
    dnnl_status_t r = onednn_walks(&s->in[0].at) && onednn_reaches(s) ? make(*k, s) : dnnl_unimplemented;
    (*k)->declined = r != dnnl_success;
    if (r != dnnl_out_of_memory) return DUET_OK;
    onednn_finished_forget((step *)s);
    return fail(DUET_NO_MEMORY, "oneDNN has no memory for a convolution");
}

/* ---- running it ---- */

typedef struct work {
    kept *k;
    const step *s;
    const frame *f;
    void *bias;
    char *room; /* for each lane */
} work;

static dnnl_status_t bind(const convolver *c, const seat *t, const float *images, void *bias, char *room)
{
    DNN(dnnl_memory_set_data_handle(t->outer, (float *)(uintptr_t)images));
    DNN(dnnl_memory_set_data_handle(t->src, c->arrange ? room : (char *)(uintptr_t)images));
    DNN(dnnl_memory_set_data_handle(t->bias, bias));
    DNN(dnnl_memory_set_data_handle(t->dst, room + c->src_bytes));
    return dnnl_memory_set_data_handle(t->scratch, room + c->src_bytes + c->dst_bytes);
}

static dnnl_status_t arrange(dnnl_primitive_t p, dnnl_stream_t stream, dnnl_memory_t from, dnnl_memory_t to)
{
    const dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to } };
    return p ? dnnl_primitive_execute(p, stream, 2, args) : dnnl_success;
}

static dnnl_status_t convolve(const kept *k, const convolver *c, const seat *t, dnnl_stream_t stream)
{
    const dnnl_exec_arg_t args[] = { { argument[SRC], t->src },
                                     { argument[FILTERS], k->filters },
                                     { argument[BIAS], t->bias },
                                     { argument[DST], t->dst },
                                     { DNNL_ARG_SCRATCHPAD, t->scratch } };
    DNN(arrange(c->arrange, stream, t->outer, t->src));
    DNN(dnnl_primitive_execute(c->convolution, stream, ARGUMENTS + 1, args));
    return dnnl_stream_wait(stream);
}

/* Images first .. last - 1, by one thread or by oneDNN's. */
static dnnl_status_t run_images(const work *o, lane *l, char *room, int64_t first, int64_t last)
{
    const kept *k = o->k;
    const int64_t each = layout_count(&o->s->out[0].at) / k->g.n;
    for (int64_t n = first; n < last;) {
        const int w = n + k->shape[GROUP].images <= last ? GROUP : SINGLE;
        const convolver *c = &k->shape[w];
        seat *t = &l->seat[w];
        DNN(bind(c, t, (float *)address(o->f, &o->s->in[0]) + n * o->s->in[0].at.stride[0], o->bias, room));
        DNN(convolve(k, c, t, l->stream));
        float *out = (float *)address(o->f, &o->s->out[0]) + n * each;
        if (finishing_run(&t->after, o->s, o->f, room + c->src_bytes, out) != DUET_OK)
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
        const int t = omp_get_thread_num(), team = omp_get_num_threads();
        const int64_t n = o->k->g.n;
        const int r = run_images(o, &o->k->lane[t], o->room + (size_t)t * o->k->lane_bytes,
                                 part_of(n, t, team), part_of(n, t + 1, team));
        if (r != dnnl_success) __atomic_store_n(&failed, r, __ATOMIC_RELAXED);
    }
    return (dnnl_status_t)failed;
}

/* How many lanes so many threads take: one each, or where there are not as many images, one for all. */
static int takes_lanes(const kept *k, int threads)
{
    if (k->g.n < threads) return 1;
    return threads < k->lanes ? threads : k->lanes;
}

static dnnl_status_t run_all(const work *o, int threads)
{
    if (takes_lanes(o->k, threads) > 1) return run_shared(o, takes_lanes(o->k, threads));
    const int before = threads_alone(threads == 1);
    const dnnl_status_t r = run_images(o, &o->k->lane[0], o->room, 0, o->k->g.n);
    threads_again(before);
    return r;
}

static dnnl_status_t run_arranged(const work *o, const void *filters, char *room, int threads)
{
    const kept *k = o->k;
    DNN(dnnl_memory_set_data_handle(k->outer_filters, (void *)(uintptr_t)filters));
    DNN(dnnl_memory_set_data_handle(k->filters, k->arrange_filters ? room : (char *)(uintptr_t)filters));
    DNN(arrange(k->arrange_filters, k->lane[0].stream, k->outer_filters, k->filters));
    DNN(dnnl_stream_wait(k->lane[0].stream));
    return run_all(o, threads);
}

static int threads_of(const kept *k)
{
    const conv *g = &k->g;
    const double flops = 2.0 * (double)(g->n * g->m * g->oh) * (double)(g->ow * g->c * g->kh) * (double)g->kw;
    return threads_for(flops * SECONDS_PER_ONEDNN_FLOP);
}

static duet_status run_kept(kept *k, const step *s, const frame *f, const void *filters, void *bias)
{
    const int threads = threads_of(k);
    void *room;
    TRY(scratch_take(k->filter_bytes + (size_t)takes_lanes(k, threads) * k->lane_bytes, f, &room));
    const work o = { k, s, f, bias, (char *)room + k->filter_bytes };
    const dnnl_status_t r = run_arranged(&o, filters, room, threads);
    scratch_give(room);
    if (r == dnnl_success) return DUET_OK;
    return fail(DUET_DEVICE_ERROR, "oneDNN: a convolution ended with status %d", (int)r);
}

/* The bias one element after the other. */
static duet_status open_bias(const step *s, const frame *f, void **bias, void **copy)
{
    *copy = NULL, *bias = address(f, &s->in[2]);
    if (layout_is_dense(&s->in[2].at)) return DUET_OK;
    TRY(scratch_copy(&s->in[2], f, copy));
    *bias = *copy;
    return DUET_OK;
}

duet_status onednn_finished(const step *s, const frame *f, bool *done)
{
    kept *k;
    void *bias, *bias_copy = NULL, *filter_copy;
    const void *filters;
    if (s->out[0].at.type != DUET_F32 || layout_count(&s->in[0].at) == 0) return DUET_OK;
    TRY(keep(s, &k));
    if (k->declined) return DUET_OK;
    duet_status r = conv_filters(s, f, &filters, &filter_copy);
    if (r == DUET_OK) r = open_bias(s, f, &bias, &bias_copy);
    if (r == DUET_OK) r = run_kept(k, s, f, filters, bias);
    scratch_give(filter_copy), scratch_give(bias_copy);
    *done = true;
    return r;
}
