/* reduce_tmpl.c - programs that reduction, over the canonical tree of core/reduction.h. */
#include "cpu_kernels.h"
#include "reduce_block.h"
#include "status.h"
#include "threads.h"

#define SHORT 64 /* elements, at most, of which so few lanes are used that a panel of many is faster anyway */
#define RUNS  64 /* sub-trees of one panel, at most, that threads share */
#define SMALL 4096 /* elements of room that the stack has */

/* ---- the tree ---- */

/* The states of one panel, joined in pairs as they come: bit k of count says that level k holds a sub-tree of 2^k. */
typedef struct tree {
    const job *j;
    int64_t width;
    uint64_t count;
    T *level;
} tree;

static void tree_add(tree *t, const T *set)
{
    T *level = t->level;
    for (uint64_t c = t->count++; c & 1; c >>= 1, level += t->j->set) {
        join_sets(t->j, level, set, t->width);
        set = level;
    }
    memcpy(level, set, (size_t)t->j->set * sizeof(T));
}

/* The root, of one sub-tree at least. */
static void tree_root(tree *t, T *root)
{
    T *level = t->level;
    const T *below = NULL;
    for (uint64_t c = t->count; c; c >>= 1, level += t->j->set) {
        if (!(c & 1)) continue;
        if (below) join_sets(t->j, level, below, t->width);
        below = level;
    }
    memcpy(root, below, (size_t)t->j->set * sizeof(T));
}

static void tree_of_blocks(const job *j, const panel *p, const room *r, int64_t from, int64_t to, T *root)
{
    tree t = { j, p->width, 0, r->level };
    for (int64_t b = from; b < to; b++) {
        block_set(j, p, r, b, root);
        tree_add(&t, root);
    }
    tree_root(&t, root);
}

static room room_of(const room *r, int thread)
{
    room mine = *r;
    mine.lanes += thread * r->each, mine.root += thread * r->each, mine.level += thread * r->each;
    for (int k = 0; k < STEP_INPUTS; k++)
        if (r->copy[k]) mine.copy[k] += thread * r->each;
    return mine;
}

/* Threads take aligned runs of 2^k blocks, whole sub-trees, and their roots make the rest of the tree. */
static void reduce_shared(const job *j, const panel *p, const room *r, int threads, T *root)
{
    const int64_t blocks = (j->n + REDUCE_BLOCK - 1) / REDUCE_BLOCK;
    int64_t run = 1;
    while ((blocks + run - 1) / run > RUNS) run *= 2;
    const int64_t runs = (blocks + run - 1) / run;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < runs; i++) {
        const room mine = room_of(r, omp_get_thread_num());
        tree_of_blocks(j, p, &mine, i * run, SMALLER((i + 1) * run, blocks), r->run + i * j->set);
    }
    tree t = { j, p->width, 0, r->level };
    for (int64_t i = 0; i < runs; i++) tree_add(&t, r->run + i * j->set);
    tree_root(&t, root);
}

static void reduce_elements(const job *j, const panel *p, const room *r, int threads, T *root)
{
    const int64_t blocks = (j->n + REDUCE_BLOCK - 1) / REDUCE_BLOCK;
    if (blocks == 1) block_set(j, p, r, 0, root);
    else if (threads > 1) reduce_shared(j, p, r, threads, root);
    else tree_of_blocks(j, p, r, 0, blocks, root);
}

static uint32_t singles_of(const job *j)
{
    uint32_t singles = 0;
    for (int k = 0; k < PROGRAM_INPUTS && k < j->s->ins; k++)
        singles |= (uint32_t)(j->manner[k] == SINGLE) << k;
    return singles;
}

#include "reduce_norm.h"

/* ---- panels ---- */

/* One output, of a state. */
static void finish_one(const job *j, int k, char *to, const T *state, bool norm)
{
    const duet_dtype type = j->over[STEP_INPUTS + k].type;
    T value = *state;
    if (j->row[k]->place) j->row[k]->epilogue(to, state, j->n);
    else {
        if (!norm) j->row[k]->epilogue(&value, state, j->n);
        if (type == OWN_TYPE) *(T *)to = value;
        else converters[type].out(to, &value, 1, 1);
    }
}

static void finish_reduce(const job *j, const panel *p, const room *r, int threads, int k, T *state)
{
    const layout *l = &j->over[STEP_INPUTS + k];
    const int64_t bytes = row_stride(l) * (int64_t)dtypes[l->type].bytes;
    const bool norm = is_norm(j, k) && j->n > 0;
    if (norm) finish_norms(j, p, r, threads, k, state);
    for (int64_t w = 0; w < p->width; w++) finish_one(j, k, p->out[k] + w * bytes, state + w, norm);
}

static void reduce_panel(const job *j, const panel *p, const room *r, int threads)
{
    if (j->n > 0) reduce_elements(j, p, r, threads, r->root);
    else start_set(j, r->root, p->width);
    for (int k = 0; k < j->s->outs; k++) {
        for (int64_t w = 0; w < p->width && j->n == 0; w++) r->root[j->at[k] + w] += K(0);
        finish_reduce(j, p, r, threads, k, r->root + j->at[k]);
    }
}

static char *address_over(const job *j, int k, const char *base, int64_t row, int64_t column)
{
    const layout *l = &j->over[k];
    return (char *)(uintptr_t)base +
           (walk_to(l, row).offset + column * row_stride(l)) * (int64_t)dtypes[l->type].bytes;
}

/* Outputs from `column` of a row on. */
static panel panel_at(const job *j, int64_t row, int64_t column)
{
    panel p = { .width = 0 };
    for (int k = 0; k < j->s->ins; k++) p.in[k] = address_over(j, k, j->in[k], row, column);
    for (int k = 0; k < j->s->outs; k++) p.out[k] = address_over(j, STEP_INPUTS + k, j->out[k], row, column);
    return p;
}

static int64_t bytes_between(const layout *l, int64_t columns)
{
    return columns * row_stride(l) * (int64_t)dtypes[l->type].bytes;
}

/* To later columns of its row. */
static void panel_on(const job *j, panel *p, int64_t columns)
{
    for (int k = 0; k < j->s->ins; k++) p->in[k] += bytes_between(&j->over[k], columns);
    for (int k = 0; k < j->s->outs; k++) p->out[k] += bytes_between(&j->over[STEP_INPUTS + k], columns);
}

static void reduce_panels(const job *j, const room *r, int64_t from, int64_t to, int64_t width, int threads)
{
    const int64_t length = row_length(&j->over[STEP_INPUTS]), across = (length + width - 1) / width;
    int64_t row = from / across, column = from % across * width;
    panel p = panel_at(j, row, column);
    for (int64_t i = from; i < to; i++) {
        p.width = SMALLER(width, length - column);
        reduce_panel(j, &p, r, threads);
        column += width;
        if (column < length) panel_on(j, &p, width);
        else column = 0, p = panel_at(j, ++row, 0);
    }
}

static int64_t count_panels(const job *j, int64_t width)
{
    const int64_t length = row_length(&j->over[STEP_INPUTS]);
    return j->outputs / length * ((length + width - 1) / width);
}

/* Narrower panels, where there would be too few for the threads. */
static int64_t width_for(const job *j, int threads)
{
    int64_t width = !j->side ? 1 : j->n > COPIED_ROWS && j->n <= SHORT ? REDUCE_LANES / 2 : REDUCE_LANES;
    while (width > 16 && count_panels(j, width) < 2 * threads) width /= 2;
    return width;
}

/* ---- parting the layouts ---- */

static layout axes(const layout *l, int from, int to)
{
    layout part = { .type = l->type, .rank = to - from };
    for (int a = from; a < to; a++) part.size[a - from] = l->size[a], part.stride[a - from] = l->stride[a];
    if (part.rank == 0) part.rank = 1, part.size[0] = 1;
    return part;
}

/* Do all elements of l lie at one place? */
static bool stands_still(const layout *l)
{
    for (int a = 0; a < l->rank; a++)
        if (l->stride[a] != 0) return false;
    return true;
}

static bool goes_on(const layout *l) { return l->rank == 1 && l->stride[0] == 1; }

static int inputs_beside(const job *j, int axis)
{
    int n = 0;
    for (int k = 0; k < j->s->ins; k++) n += j->over[k].stride[axis] == 1;
    return n;
}

/* The axis of a panel: one along which outputs have their inputs side by side, else the longest. */
static int panel_axis(const job *j)
{
    const layout *l = &j->over[STEP_INPUTS];
    int best = l->rank - 1;
    for (int a = 0; a < l->rank; a++) {
        const bool beside = l->size[a] >= LANES && inputs_beside(j, a),
                   was = l->size[best] >= LANES && inputs_beside(j, best);
        if (beside > was || (beside == was && l->size[a] > l->size[best])) best = a;
    }
    return best;
}

static void put_last(layout *l, int axis)
{
    const int last = l->rank - 1;
    const int64_t size = l->size[axis], stride = l->stride[axis];
    l->size[axis] = l->size[last], l->stride[axis] = l->stride[last];
    l->size[last] = size, l->stride[last] = stride;
}

static void part_layouts(job *j)
{
    const step *s = j->s;
    const int kept = s->out[0].at.rank - s->inner;
    for (int k = 0; k < s->ins; k++) {
        j->along[k] = axes(&s->in[k].at, kept, s->in[k].at.rank);
        j->over[k] = axes(&s->in[k].at, 0, kept);
    }
    for (int k = 0; k < s->outs; k++) j->over[STEP_INPUTS + k] = axes(&s->out[k].at, 0, kept);
    const layout inner = axes(&s->out[0].at, kept, s->out[0].at.rank);
    j->n = layout_count(&inner), j->outputs = layout_count(&j->over[STEP_INPUTS]);
    const int axis = panel_axis(j);
    for (int k = 0; k < s->ins; k++) put_last(&j->over[k], axis);
    for (int k = 0; k < s->outs; k++) put_last(&j->over[STEP_INPUTS + k], axis);
}

static bool side_by_side(const job *j)
{
    const int64_t across = row_length(&j->over[STEP_INPUTS]);
    int along = 0;
    for (int k = 0; k < j->s->ins; k++) along += goes_on(&j->along[k]);
    if (across < 2 || j->n == 0 || j->s->ins == 0) return false;
    return (j->n <= SHORT && across >= LANES) || inputs_beside(j, j->over[STEP_INPUTS].rank - 1) > along;
}

static enum manner manner_of(const job *j, int k)
{
    const int64_t side = row_stride(&j->over[k]);
    if (converts(j, k)) return COPIED;
    if (j->side) return side == 1 ? IN_PLACE : side == 0 && !j->plain ? SINGLE : COPIED;
    return goes_on(&j->along[k]) ? IN_PLACE : stands_still(&j->along[k]) && !j->plain ? SINGLE : COPIED;
}

/* Does the program reduction its inputs as they are, and nothing else? */
static bool reduces_inputs(const program *p)
{
    bool plain = p->length == p->outputs;
    for (int i = 0; i < p->length && plain; i++)
        for (int k = 0; k < op_infos[p->code[i].op].arity && k < 2; k++)
            plain &= p->code[i].arg[k].kind == FROM_INPUT;
    return plain;
}

/* Side by side, rows must have one stride, and a copy room for a block. */
static bool is_plain(const job *j)
{
    bool copied = false;
    for (int k = 0; k < j->s->ins; k++) copied |= row_stride(&j->over[k]) != 1 || converts(j, k);
    if (j->side && (j->along[0].rank > 1 || (copied && j->n > SHORT))) return false;
    return reduces_inputs(j->s->program);
}

/* A norm that is taken again needs the machine. */
static bool needs_lanes(const job *j)
{
    bool norm = false;
    for (int k = 0; k < j->s->outs; k++) norm |= is_norm(j, k);
    return norm || !j->plain;
}

static void open_job(job *j, const step *s, const frame *f, code *c)
{
    j->s = s, j->again = NULL, j->code = c, j->set = 0;
    for (int i = 0; i < s->program->length; i++)
        if (op_infos[s->program->code[i].op].kind == KIND_REDUCE)
            j->row[s->program->code[i].arg[2].index] = &reduce_rows[s->program->code[i].op];
    for (int k = 0; k < s->outs; k++) j->at[k] = j->set, j->set += j->row[k]->parts * REDUCE_LANES;
    for (int k = 0; k < s->ins; k++) j->in[k] = address(f, &s->in[k]);
    for (int k = 0; k < s->outs; k++) j->out[k] = address(f, &s->out[k]);
    for (int k = 0; k < s->nums; k++) j->num[k] = number_of(f->num[s->num[k]]);
    part_layouts(j);
    j->side = side_by_side(j), j->plain = is_plain(j);
    j->lanes = j->side && needs_lanes(j) ? SMALLER(j->n, REDUCE_LANES) : 1;
    for (int k = 0; k < s->ins; k++) j->manner[k] = manner_of(j, k);
    if (!j->plain) tile_make(c, s->program, singles_of(j), 0);
}

/* ---- memory and threads ---- */

/* Parts `memory` among what a thread needs, or counts that only. */
static int64_t open_room(const job *j, room *r, T *memory)
{
    const int64_t blocks = (j->n + REDUCE_BLOCK - 1) / REDUCE_BLOCK;
    int64_t levels = 1, used = 0;
    while (blocks >> levels) levels++;
    *r = (room){ .lanes = memory };
    used += j->lanes * j->set, r->root = memory + used;
    used += j->set, r->level = memory + used;
    used += levels * j->set;
    for (int k = 0; k < j->s->ins; k++)
        if (j->manner[k] == COPIED) r->copy[k] = memory + used, used += REDUCE_BLOCK;
    return r->each = used;
}

static double seconds_of(const job *j)
{
    const double each = (j->plain ? 0 : j->code->seconds) + j->s->ins * (double)sizeof(T) * SECONDS_PER_BYTE;
    return ((double)j->n * each + SECONDS_PER_FUNCTION) * (double)j->outputs;
}

static void run_job(const job *j, const room *r, int threads)
{
    const int64_t width = width_for(j, threads), panels = count_panels(j, width);
    if (threads == 1 || panels < 2 * threads) {
        reduce_panels(j, r, 0, panels, width, threads);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        const int t = omp_get_thread_num(), team = omp_get_num_threads();
        const room mine = room_of(r, t);
        reduce_panels(j, &mine, part_of(panels, t, team), part_of(panels, t + 1, team), width, 1);
    }
}

static duet_status run_in_pool(const job *j, const frame *f, int threads)
{
    room r;
    void *memory;
    const int64_t each = open_room(j, &r, NULL), runs = threads > 1 ? RUNS * j->set : 0;
    TRY(scratch_take((size_t)(each * threads + runs) * sizeof(T), f, &memory));
    open_room(j, &r, memory);
    r.run = (T *)memory + each * threads;
    run_job(j, &r, threads);
    scratch_give(memory);
    return DUET_OK;
}

duet_status NAME(run_reduce)(const step *s, const frame *f)
{
    T memory[SMALL] __attribute__((aligned(64)));
    code c;
    job j;
    room r;
    open_job(&j, s, f, &c);
    if (j.outputs == 0) return DUET_OK;
    const int threads = threads_for(seconds_of(&j));
    if (threads > 1 || open_room(&j, &r, memory) > SMALL) return run_in_pool(&j, f, threads);
    run_job(&j, &r, 1);
    return DUET_OK;
}
