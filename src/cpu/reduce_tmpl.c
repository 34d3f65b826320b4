/* reduce_tmpl.c - runs programs with reductions, over the canonical tree of core/reduce_order.h.
 * Template.
 *
 * Threads share the panels (reduce_block.h). If there are few panels, they share the blocks of each
 * panel. */
#include "cpu_kernels.h"
#include "reduce_block.h"
#include "status.h"
#include "threads.h"
#include <stdlib.h>

#define FEW_ELEMENTS   64   /* for so few elements panels of adjacent outputs are always faster */
#define SUBTREES       64   /* maximum number of sub-trees of one panel that threads share */
#define STACK_ELEMENTS 5632 /* memory on the stack */

/* ---- the tree ---- */

/* The states of a panel are joined in pairs as blocks arrive. Bit k of `count`: level k holds a
 * sub-tree of 2^k blocks. */
typedef struct tree {
    const reduce_work *j;
    int64_t width;
    uint64_t count;
    T *level;
} tree;

static void tree_add(tree *t, const T *states)
{
    T *level = t->level;
    for (uint64_t c = t->count++; c & 1; c >>= 1, level += t->j->set_size) {
        join_states_of_all(t->j, level, states, t->width);
        states = level;
    }
    memcpy(level, states, (size_t)t->j->set_size * sizeof(T));
}

/* The root of the tree, which has at least one sub-tree. */
static void tree_root(tree *t, T *root)
{
    T *level = t->level;
    const T *below = NULL;
    for (uint64_t c = t->count; c; c >>= 1, level += t->j->set_size) {
        if (!(c & 1)) continue;
        if (below) join_states_of_all(t->j, level, below, t->width);
        below = level;
    }
    memcpy(root, below, (size_t)t->j->set_size * sizeof(T));
}

static void tree_of_blocks(const reduce_work *j, const panel *p, const thread_memory *r, int64_t from,
                           int64_t to, T *root)
{
    tree t = { j, p->width, 0, r->level };
    for (int64_t b = from; b < to; b++) {
        reduce_one_block(j, p, r, b, root);
        tree_add(&t, root);
    }
    tree_root(&t, root);
}

static thread_memory memory_of(const thread_memory *r, int thread)
{
    thread_memory mine = *r;
    mine.lanes += thread * r->each;
    mine.root += thread * r->each;
    mine.level += thread * r->each;
    for (int k = 0; k < STEP_INPUTS; k++)
        if (r->copy[k]) mine.copy[k] += thread * r->each;
    return mine;
}

/* Each thread reduces sub-trees of subtree_blocks = 2^k aligned blocks. One thread joins their roots. */
static void reduce_shared(const reduce_work *j, const panel *p, const thread_memory *r, int threads, T *root)
{
    const int64_t blocks = (j->n + REDUCE_BLOCK - 1) / REDUCE_BLOCK;
    int64_t subtree_blocks = 1;
    while ((blocks + subtree_blocks - 1) / subtree_blocks > SUBTREES) subtree_blocks *= 2;
    const int64_t subtrees = (blocks + subtree_blocks - 1) / subtree_blocks;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < subtrees; i++) {
        IN_DEFAULT_FP_ENVIRONMENT;
        const thread_memory mine = memory_of(r, omp_get_thread_num());
        tree_of_blocks(j, p, &mine, i * subtree_blocks, SMALLER((i + 1) * subtree_blocks, blocks),
                       r->sub_roots + i * j->set_size);
    }
    tree t = { j, p->width, 0, r->level };
    for (int64_t i = 0; i < subtrees; i++) tree_add(&t, r->sub_roots + i * j->set_size);
    tree_root(&t, root);
}

static void reduce_elements(const reduce_work *j, const panel *p, const thread_memory *r, int threads,
                            T *root)
{
    const int64_t blocks = (j->n + REDUCE_BLOCK - 1) / REDUCE_BLOCK;
    if (blocks == 1) reduce_one_block(j, p, r, 0, root);
    else if (threads > 1) reduce_shared(j, p, r, threads, root);
    else tree_of_blocks(j, p, r, 0, blocks, root);
}

static uint32_t scalar_inputs(const reduce_work *j)
{
    uint32_t scalars = 0;
    for (int k = 0; k < PROGRAM_INPUTS && k < j->s->ins; k++)
        scalars |= (uint32_t)(j->access[k] == SCALAR) << k;
    return scalars;
}

#include "reduce_scaled.h"

/* ---- panels ---- */

/* Writes one output, given its state if it is an index, else its result. */
static void write_output(const reduce_work *j, int k, char *to, const T *state)
{
    const duet_dtype type = j->kept_axes[STEP_INPUTS + k].type;
    if (j->row[k]->gives_index) j->row[k]->results(to, state, 1, j->n);
    else if (type == OWN_TYPE) *(T *)to = *state;
    else converters[type].out(to, state, 1, 1);
}

static void write_outputs(const reduce_work *j, const panel *p, const thread_memory *r, int threads, int k,
                          T *state)
{
    const layout *l = &j->kept_axes[STEP_INPUTS + k];
    const int64_t bytes = row_stride(l) * (int64_t)dtypes[l->type].bytes;
    if (may_overflow(j, k) && j->n > 0) finish_scaled(j, p, r, threads, k, state);
    else if (!j->row[k]->gives_index) j->row[k]->results(state, state, p->width, j->n);
    for (int64_t w = 0; w < p->width; w++) write_output(j, k, p->out[k] + w * bytes, state + w);
}

static void reduce_panel(const reduce_work *j, const panel *p, const thread_memory *r, int threads)
{
    if (j->n > 0) reduce_elements(j, p, r, threads, r->root);
    else start_states_of_all(j, r->root, p->width);
    for (int k = 0; k < j->s->outs; k++) {
        for (int64_t w = 0; w < p->width && j->n == 0; w++) r->root[j->at[k] + w] += K(0);
        write_outputs(j, p, r, threads, k, r->root + j->at[k]);
    }
}

static char *address_at(const reduce_work *j, int k, const char *base, int64_t row, int64_t column)
{
    const layout *l = &j->kept_axes[k];
    return (char *)(uintptr_t)base +
           (row_iterator_at(l, row).offset + column * row_stride(l)) * (int64_t)dtypes[l->type].bytes;
}

/* The panel at `column` of a row of outputs. */
static panel panel_at(const reduce_work *j, int64_t row, int64_t column)
{
    panel p = { .width = 0 };
    for (int k = 0; k < j->s->ins; k++) p.in[k] = address_at(j, k, j->in[k], row, column);
    for (int k = 0; k < j->s->outs; k++) p.out[k] = address_at(j, STEP_INPUTS + k, j->out[k], row, column);
    return p;
}

static int64_t bytes_between(const layout *l, int64_t columns)
{
    return columns * row_stride(l) * (int64_t)dtypes[l->type].bytes;
}

/* Advances to a later column of the same row. */
static void advance_panel(const reduce_work *j, panel *p, int64_t columns)
{
    for (int k = 0; k < j->s->ins; k++) p->in[k] += bytes_between(&j->kept_axes[k], columns);
    for (int k = 0; k < j->s->outs; k++) p->out[k] += bytes_between(&j->kept_axes[STEP_INPUTS + k], columns);
}

static void reduce_panels(const reduce_work *j, const thread_memory *r, int64_t from, int64_t to,
                          int64_t width, int threads)
{
    const int64_t length = row_length(&j->kept_axes[STEP_INPUTS]), across = (length + width - 1) / width;
    int64_t row = from / across, column = from % across * width;
    panel p = panel_at(j, row, column);
    for (int64_t i = from; i < to; i++) {
        p.width = SMALLER(width, length - column);
        reduce_panel(j, &p, r, threads);
        column += width;
        if (column < length) advance_panel(j, &p, width);
        else {
            column = 0;
            p = panel_at(j, ++row, 0);
        }
    }
}

static int64_t count_panels(const reduce_work *j, int64_t width)
{
    const int64_t length = row_length(&j->kept_axes[STEP_INPUTS]);
    return j->outputs / length * ((length + width - 1) / width);
}

/* Panels are narrower if there would be too few for the threads. */
static int64_t panel_width(const reduce_work *j, int threads)
{
    const int64_t least = j->adjacent ? 16 : 1;
    int64_t width = j->grouped ? LANES : 1;
    if (j->adjacent) width = j->n > COPIED_ROWS && j->n <= FEW_ELEMENTS ? REDUCE_LANES / 2 : REDUCE_LANES;
    while (threads > 1 && width > least && count_panels(j, width) < 2 * threads) width /= 2;
    return width;
}

/* ---- layouts ---- */

static layout sub_layout(const layout *l, int from, int to)
{
    layout part = { .type = l->type, .rank = to - from };
    for (int a = from; a < to; a++) {
        part.size[a - from] = l->size[a];
        part.stride[a - from] = l->stride[a];
    }
    if (part.rank == 0) {
        part.rank = 1;
        part.size[0] = 1;
    }
    return part;
}

/* Are all elements of l the same memory? */
static bool is_broadcast(const layout *l)
{
    for (int a = 0; a < l->rank; a++)
        if (l->stride[a] != 0) return false;
    return true;
}

static bool is_contiguous(const layout *l) { return l->rank == 1 && l->stride[0] == 1; }

static int count_adjacent_inputs(const reduce_work *j, int axis)
{
    int n = 0;
    for (int k = 0; k < j->s->ins; k++) n += j->kept_axes[k].stride[axis] == 1;
    return n;
}

/* The axis of a panel: one along which inputs are adjacent, else the longest. */
static int panel_axis(const reduce_work *j)
{
    const layout *l = &j->kept_axes[STEP_INPUTS];
    int best = l->rank - 1;
    for (int a = 0; a < l->rank; a++) {
        const bool is_adjacent = l->size[a] >= LANES && count_adjacent_inputs(j, a),
                   best_is_adjacent = l->size[best] >= LANES && count_adjacent_inputs(j, best);
        if (is_adjacent > best_is_adjacent || (is_adjacent == best_is_adjacent && l->size[a] > l->size[best]))
            best = a;
    }
    return best;
}

static void move_axis_last(layout *l, int axis)
{
    const int last = l->rank - 1;
    const int64_t size = l->size[axis], stride = l->stride[axis];
    l->size[axis] = l->size[last];
    l->stride[axis] = l->stride[last];
    l->size[last] = size;
    l->stride[last] = stride;
}

static void split_layouts(reduce_work *j)
{
    const step *s = j->s;
    const int outer = s->out[0].at.rank - s->inner;
    for (int k = 0; k < s->ins; k++) {
        j->reduced[k] = sub_layout(&s->in[k].at, outer, s->in[k].at.rank);
        j->kept_axes[k] = sub_layout(&s->in[k].at, 0, outer);
    }
    for (int k = 0; k < s->outs; k++) j->kept_axes[STEP_INPUTS + k] = sub_layout(&s->out[k].at, 0, outer);
    const layout inner = sub_layout(&s->out[0].at, outer, s->out[0].at.rank);
    j->n = layout_count(&inner);
    j->outputs = layout_count(&j->kept_axes[STEP_INPUTS]);
    const int axis = panel_axis(j);
    for (int k = 0; k < s->ins; k++) move_axis_last(&j->kept_axes[k], axis);
    for (int k = 0; k < s->outs; k++) move_axis_last(&j->kept_axes[STEP_INPUTS + k], axis);
}

/* Inputs without elements may have no memory, and NULL + n is undefined. Nothing reads them, so one address
 * serves all panels. */
static void replace_empty_inputs(reduce_work *j)
{
    static const T none = K(0);
    for (int k = 0; k < j->s->ins && j->n == 0; k++) {
        j->in[k] = (const char *)&none;
        memset(j->kept_axes[k].stride, 0, sizeof j->kept_axes[k].stride);
    }
}

static bool choose_adjacent(const reduce_work *j)
{
    const int64_t across = row_length(&j->kept_axes[STEP_INPUTS]);
    int along = 0;
    for (int k = 0; k < j->s->ins; k++) along += is_contiguous(&j->reduced[k]);
    if (across < 2 || j->n == 0 || j->s->ins == 0) return false;
    return (j->n <= FEW_ELEMENTS && across >= LANES) ||
           count_adjacent_inputs(j, j->kept_axes[STEP_INPUTS].rank - 1) > along;
}

static enum access input_access(const reduce_work *j, int k)
{
    const int64_t adjacent = row_stride(&j->kept_axes[k]);
    if (converts(j, k)) return COPIED;
    const bool in_place = j->adjacent ? adjacent == 1 : is_contiguous(&j->reduced[k]);
    const bool is_scalar = j->adjacent ? adjacent == 0 : is_broadcast(&j->reduced[k]);
    if (in_place) return IN_PLACE;
    return is_scalar && !j->direct ? SCALAR : COPIED;
}

/* Does the program only reduce inputs, without computing anything? */
static bool reduces_inputs(const program *p)
{
    bool direct = p->length == p->outputs;
    for (int i = 0; i < p->length && direct; i++)
        for (int k = 0; k < op_infos[p->code[i].op].arity && k < 2; k++)
            direct &= p->code[i].arg[k].kind == FROM_INPUT;
    return direct;
}

/* A panel of adjacent outputs can be direct if its rows have one stride, and copies fit into a
 * block. */
static bool is_direct(const reduce_work *j)
{
    bool copied = false;
    for (int k = 0; k < j->s->ins; k++) copied |= row_stride(&j->kept_axes[k]) != 1 || converts(j, k);
    if (j->adjacent && (j->reduced[0].rank > 1 || (copied && j->n > FEW_ELEMENTS))) return false;
    return reduces_inputs(j->s->program);
}

static void prepare_work(reduce_work *j, const step *s, const frame *f, interp_code *c)
{
    j->s = s;
    j->retry = NULL;
    j->as_is = NULL;
    j->code = c;
    j->set_size = 0;
    for (int i = 0; i < s->program->length; i++)
        if (op_infos[s->program->code[i].op].kind == KIND_REDUCE)
            j->row[s->program->code[i].arg[2].index] = &reduce_rows[s->program->code[i].op];
    for (int k = 0; k < s->outs; k++) {
        j->at[k] = j->set_size;
        j->set_size += j->row[k]->parts * REDUCE_LANES;
    }
    for (int k = 0; k < s->ins; k++) j->in[k] = address(f, &s->in[k]);
    for (int k = 0; k < s->outs; k++) j->out[k] = address(f, &s->out[k]);
    for (int k = 0; k < s->nums; k++) j->num[k] = number_of(f->num[s->num[k]]);
    split_layouts(j);
    replace_empty_inputs(j);
    j->adjacent = choose_adjacent(j);
    j->direct = is_direct(j);
    j->lanes = j->adjacent && !j->direct ? SMALLER(j->n, REDUCE_LANES) : 1;
    for (int k = 0; k < s->ins; k++) j->access[k] = input_access(j, k);
    j->grouped = is_grouped(j);
    if (j->direct) return;
    interp_compile(c, s->program, scalar_inputs(j), 0);
    c->large = bytes_in_place(j) >= 16e6;
}

/* ---- memory and threads ---- */

/* NULL + n is undefined. */
static T *part_at(T *memory, int64_t n) { return memory ? memory + n : NULL; }

/* Divides `memory` for one thread, or only counts the elements needed if it is NULL. */
static int64_t divide_memory(const reduce_work *j, thread_memory *r, T *memory)
{
    const int64_t blocks = (j->n + REDUCE_BLOCK - 1) / REDUCE_BLOCK;
    int64_t levels = 1, used = 0;
    while (blocks >> levels) levels++;
    *r = (thread_memory){ .lanes = memory };
    used += j->lanes * j->set_size;
    r->root = part_at(memory, used);
    used += j->set_size;
    r->level = part_at(memory, used);
    used += levels * j->set_size;
    for (int k = 0; k < j->s->ins; k++)
        if (j->access[k] == COPIED) {
            r->copy[k] = part_at(memory, used);
            used += REDUCE_BLOCK;
        }
    return r->each = used;
}

/* The layout of several results may change after machine.scratch. It decides about these. */
static void assume_most_memory(reduce_work *j)
{
    if (j->outputs == 1) return;
    j->lanes = SMALLER(j->n, REDUCE_LANES);
    for (int k = 0; k < j->s->ins; k++) j->access[k] = COPIED;
}

static double seconds_of(const reduce_work *j)
{
    const double each = (j->direct ? 0 : j->code->seconds) + j->s->ins * (double)sizeof(T) * SECONDS_PER_BYTE;
    return ((double)j->n * each + SECONDS_PER_FUNCTION) * (double)j->outputs;
}

static void run_panels(const reduce_work *j, const thread_memory *r, int threads)
{
    const int64_t width = panel_width(j, threads), panels = count_panels(j, width);
    if (threads == 1 || panels < 2 * threads) {
        reduce_panels(j, r, 0, panels, width, threads);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        IN_DEFAULT_FP_ENVIRONMENT;
        const int t = omp_get_thread_num(), team = omp_get_num_threads();
        const thread_memory mine = memory_of(r, t);
        reduce_panels(j, &mine, part_of(panels, t, team), part_of(panels, t + 1, team), width, 1);
    }
}

static duet_status run_with_scratch(const reduce_work *j, const frame *f, int threads)
{
    thread_memory r;
    void *memory;
    const int64_t each = divide_memory(j, &r, NULL), subtrees = threads > 1 ? SUBTREES * j->set_size : 0;
    TRY(scratch_take((size_t)(each * threads + subtrees) * sizeof(T), f, &memory));
    divide_memory(j, &r, memory);
    r.sub_roots = (T *)memory + each * threads;
    run_panels(j, &r, threads);
    scratch_give(memory);
    return DUET_OK;
}

/* fits: one thread needs no other memory than r has. Not part of run_reduce, because the error text
 * is large. */
static __attribute__((noinline)) duet_status run_on_threads(const reduce_work *j, const frame *f,
                                                            const thread_memory *r, int threads, bool fits)
{
    error_text before;
    if (!fits) return run_with_scratch(j, f, threads);
    error_keep(&before);
    const duet_status s = run_with_scratch(j, f, threads);
    if (likely(s == DUET_OK)) return s;
    error_put_back(&before);
    run_panels(j, r, 1);
    return DUET_OK;
}

run_function NAME(run_reduce);

/* Makes machine code for the program, once it has run often enough. */
static void generate(const reduce_work *j, interp_code *c, double seconds)
{
    step *s = (step *)j->s; /* the field is for the backend, although the step is const */
    program_cache *k = s->cached;
    if (j->direct || (k && k->owner != NAME(run_reduce))) return;
    if (!k) {
        k = s->cached = calloc(1, sizeof *k);
        if (!k) return;
        k->owner = NAME(run_reduce);
    }
    interp_generate(c, s->program, &k->generated, seconds, 64);
}

/* memory: STACK_ELEMENTS of them, or, if the plan gives memory, as many as needed. bytes: if not NULL,
 * nothing is run, and *bytes is what one thread needs beyond the stack; `memory` is NULL. One function, so
 * that the compiler makes only one copy of what it inlines here. */
static __attribute__((noinline)) duet_status reduce(const step *s, const frame *f, T *memory, size_t *bytes)
{
    interp_code c;
    reduce_work j;
    thread_memory r;
    prepare_work(&j, s, f, &c);
    if (j.outputs == 0) return DUET_OK;
    if (unlikely(bytes != NULL)) {
        assume_most_memory(&j);
        const int64_t most = divide_memory(&j, &r, NULL);
        *bytes = most <= STACK_ELEMENTS ? 0 : (size_t)most * sizeof(T);
        return DUET_OK;
    }
    const double seconds = seconds_of(&j);
    generate(&j, &c, seconds);
    const bool fits = divide_memory(&j, &r, memory) <= STACK_ELEMENTS || s->scratch;
    const int threads = threads_for(seconds);
    if (threads > 1 || !fits) return run_on_threads(&j, f, &r, threads, fits);
    run_panels(&j, &r, 1);
    return DUET_OK;
}

duet_status NAME(run_reduce)(const step *s, const frame *f)
{
    T memory[STACK_ELEMENTS] __attribute__((aligned(64)));
    return reduce(s, f, s->scratch ? f->data[s->scratch - 1] : memory, NULL);
}

size_t NAME(reduce_memory)(const step *s)
{
    static const double none[STEP_NUMBERS];
    void *const nowhere[1] = { NULL };
    step own = *s;
    size_t bytes = 0;
    for (int k = 0; k < s->ins; k++) own.in[k].slot = 0;
    for (int k = 0; k < s->outs; k++) own.out[k].slot = 0;
    for (int k = 0; k < s->nums; k++) own.num[k] = 0;
    return reduce(&own, &(frame){ nowhere, none }, NULL, &bytes) == DUET_OK ? bytes : 0;
}
