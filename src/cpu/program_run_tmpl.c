/* program_run_tmpl.c - runs programs (program_run.h) with all threads. Template. */
#include "converters.h"
#include "dtype.h"
#include "program_run.h"
#include "row_iterator.h"
#include <stdlib.h>

typedef struct block {
    int64_t row, height, column, width;
    row_iterator start; /* position of the first row; its indices hold for all operands */
} block;

typedef struct work {
    const program_plan *p;
    const step *s;
    const frame *f;
    T num[PROGRAM_NUMBERS];
} work;

/* ---- addresses and copies ---- */

static int64_t offset_of(const block *b, const layout *l)
{
    int64_t offset = b->column * row_stride(l);
    for (int a = 0; a < l->rank - 1; a++) offset += b->start.index[a] * l->stride[a];
    return offset;
}

/* Copy between a dense block in L1 and the rows of an operand. */
static void rows_in(T *to, const T *from, const layout *l, const block *b)
{
    row_iterator w = b->start;
    w.offset = offset_of(b, l);
    for (int64_t r = 0; r < b->height; r++, to += b->width, row_iterator_next(&w, l))
        gather_row(to, from + w.offset, row_stride(l), b->width);
}

static void rows_out(T *to, const layout *l, const T *from, const block *b)
{
    row_iterator w = b->start;
    w.offset = offset_of(b, l);
    for (int64_t r = 0; r < b->height; r++, from += b->width, row_iterator_next(&w, l))
        scatter_row(to + w.offset, from, row_stride(l), b->width);
}

/* Are columns of l contiguous, and rows not? Blocks should then be square tiles. */
static bool is_column_major(const layout *l)
{
    return l->rank > 1 && l->stride[l->rank - 2] == 1 && row_stride(l) != 1 && row_stride(l) != 0;
}

/* Copies a tile of a column-major operand. Its rows are in one axis. */
static void tile_in(T *to, const T *from, const layout *l, const block *b)
{
    const T *first = from + offset_of(b, l);
    for (int64_t c = 0; c < b->width; c++)
        for (int64_t r = 0; r < b->height; r++) to[r * b->width + c] = first[c * row_stride(l) + r];
}

static bool in_one_axis(const layout *l, const block *b)
{
    return b->start.index[l->rank - 2] + b->height <= l->size[l->rank - 2];
}

static void copy_in(T *to, const T *from, const layout *l, const block *b)
{
    if (b->height > 1 && is_column_major(l) && in_one_axis(l, b)) tile_in(to, from, l, b);
    else rows_in(to, from, l, b);
}

/* ---- conversion of other types ---- */

static void convert_in(T *to, const void *from, const layout *l, const block *b)
{
    const int64_t bytes = (int64_t)dtypes[l->type].bytes;
    row_iterator w = b->start;
    w.offset = offset_of(b, l);
    for (int64_t r = 0; r < b->height; r++, to += b->width, row_iterator_next(&w, l))
        converters[l->type].in(to, (const char *)from + w.offset * bytes, row_stride(l), b->width);
}

static void convert_out(void *to, const layout *l, const T *from, const block *b)
{
    const int64_t bytes = (int64_t)dtypes[l->type].bytes;
    row_iterator w = b->start;
    w.offset = offset_of(b, l);
    for (int64_t r = 0; r < b->height; r++, from += b->width, row_iterator_next(&w, l))
        converters[l->type].out((char *)to + w.offset * bytes, from, row_stride(l), b->width);
}

static void find_conversions(program_plan *p, const step *s)
{
    p->converts_in = p->converts_out = 0;
    for (int k = 0; k < s->ins; k++) p->converts_in |= (uint32_t)(s->in[k].at.type != OWN_TYPE) << k;
    for (int k = 0; k < s->outs; k++) p->converts_out |= (uint32_t)(s->out[k].at.type != OWN_TYPE) << k;
}

/* ---- division into blocks ---- */

/* Divides n elements into equal parts of at most `most` elements, rounded up to 512 bytes. */
static int64_t equal_part(int64_t n, int64_t most)
{
    const int64_t parts = (n + most - 1) / most, part = (n + parts - 1) / parts, align = 512 / sizeof(T);
    return SMALLER((part + align - 1) / align * align, most);
}

static void count_blocks(blocking *c)
{
    c->down = (c->rows + c->height - 1) / c->height;
    c->across = (c->columns + c->width - 1) / c->width;
}

static bool any_column_major(const step *s)
{
    for (int k = 0; k < s->outs; k++)
        if (is_column_major(&s->out[k].at)) return true;
    for (int k = 0; k < s->ins; k++)
        if (is_column_major(&s->in[k].at)) return true;
    return false;
}

/* TILE_HEIGHT rows of one cache line each. Larger tiles are faster as long as the buffers have space
 * for them. */
#define TILE_HEIGHT 64
#define TILE_WIDTH  ((int64_t)(64 / sizeof(T)))
_Static_assert(64 * 64 <= 4096, "a tile fits into the buffer of a block");

static blocking choose_blocking(const step *s)
{
    const layout *l = &s->out[0].at;
    blocking c = { .columns = row_length(l), .height = 1 };
    c.rows = layout_count(l) / c.columns;
    c.is_tiled = c.rows >= 16 && c.columns >= 16 && any_column_major(s);
    if (c.is_tiled) {
        c.height = TILE_HEIGHT;
        c.width = TILE_WIDTH;
    } else if (c.columns > BLOCK / 2 || c.rows == 1) c.width = equal_part(c.columns, BLOCK);
    else {
        c.height = SMALLER(BLOCK / c.columns, c.rows);
        c.width = c.columns;
    }
    count_blocks(&c);
    return c;
}

static block block_at(const program_plan *p, const layout *l, int64_t index)
{
    const blocking *c = &p->blocking;
    const int64_t down = c->is_tiled ? index % c->down : index / c->across,
                  across = c->is_tiled ? index / c->down : index % c->across;
    block b = { .row = down * c->height, .column = across * c->width };
    b.height = SMALLER(c->height, c->rows - b.row);
    b.width = SMALLER(c->width, c->columns - b.column);
    b.start = row_iterator_at(l, b.row);
    return b;
}

/* ---- access to the operands ---- */

/* Are all rows of l the same memory? */
static bool rows_repeat(const layout *l)
{
    for (int a = 0; a < l->rank - 1; a++)
        if (l->stride[a] != 0) return false;
    return true;
}

static bool is_in_place(const layout *l, const blocking *c)
{
    if (c->height > 1) return c->across == 1 && layout_is_dense(l);
    return row_stride(l) == 1 || row_length(l) == 1;
}

static enum access input_access(const layout *l, const blocking *c, bool converts)
{
    if (!converts && is_in_place(l, c)) return IN_PLACE;
    if (row_stride(l) == 0 && (c->height == 1 || rows_repeat(l))) return SCALAR;
    return rows_repeat(l) && c->across == 1 ? COPIED_ONCE : COPIED;
}

static bool is_row_contiguous(const layout *l, bool may_be_scalar)
{
    return row_stride(l) == 1 || row_length(l) == 1 || (may_be_scalar && row_stride(l) == 0);
}

/* Short rows are faster if several are copied together, unless there is only one row. */
static bool is_contiguous(const program_plan *p, const step *s)
{
    const layout *l = &s->out[0].at;
    bool contiguous =
        (l->rank == 1 || row_length(l) >= (int64_t)(256 / sizeof(T))) && !p->converts_in && !p->converts_out;
    for (int k = 0; k < s->outs; k++) contiguous &= is_row_contiguous(&s->out[k].at, false);
    for (int k = 0; k < s->ins; k++) contiguous &= is_row_contiguous(&s->in[k].at, true);
    return contiguous;
}

static uint32_t choose_access(program_plan *p, const step *s)
{
    uint32_t scalars = 0;
    for (int k = 0; k < PROGRAM_OUTPUTS && k < s->outs; k++)
        p->out[k] = p->contiguous || (!(p->converts_out >> k & 1) && is_in_place(&s->out[k].at, &p->blocking))
                        ? IN_PLACE
                        : COPIED;
    for (int k = 0; k < PROGRAM_INPUTS && k < s->ins; k++) {
        const layout *l = &s->in[k].at;
        if (!p->contiguous) p->in[k] = input_access(l, &p->blocking, p->converts_in >> k & 1);
        else p->in[k] = row_stride(l) == 0 && row_length(l) > 1 ? SCALAR : IN_PLACE;
        scalars |= (uint32_t)(p->in[k] == SCALAR) << k;
    }
    return scalars;
}

/* ---- the plan ---- */

#define STREAM_BYTES 32e6 /* outputs of this size do not stay in the caches until they are read */

static bool is_input(const step *s, const frame *f, int output)
{
    for (int k = 0; k < s->ins; k++)
        if (address(f, &s->in[k]) == address(f, &s->out[output])) return true;
    return false;
}

static uint32_t streaming_outputs(const program_plan *p, const step *s, const frame *f)
{
    uint32_t streams = 0;
    for (int k = 0; k < s->outs && p->contiguous && (double)p->count * sizeof(T) >= STREAM_BYTES; k++)
        streams |= (uint32_t)!is_input(s, f, k) << k;
    return streams;
}

/* Makes the plan. Of the frame it uses only which operands have the same address. This is the same
 * in all runs of a step, and affects only speed. */
static void make_plan(program_plan *p, const step *s, const frame *f, run_function *owner)
{
    p->cache = (program_cache){ .owner = owner };
    find_conversions(p, s);
    p->count = layout_count(&s->out[0].at);
    p->contiguous = is_contiguous(p, s);
    p->single_row = p->contiguous && s->out[0].at.rank == 1;
    if (p->count > 0) p->blocking = choose_blocking(s);
    const uint32_t scalars = p->count > 0 ? choose_access(p, s) : 0;
    interp_compile(&p->code, s->program, scalars, streaming_outputs(p, s, f));
    const double bytes = (double)sizeof(T) * (s->ins + s->outs);
    const int converted = __builtin_popcount(p->converts_in) + __builtin_popcount(p->converts_out);
    p->seconds =
        (double)p->count * (p->code.seconds + bytes * SECONDS_PER_BYTE + converted * SECONDS_PER_ROUNDED);
}

/* Stores the plan in the step, which belongs to the plan of the statement. Without memory the next
 * run makes it again. */
static void store_plan(const program_plan *p, step *s)
{
    const size_t bytes = offsetof(program_plan, code) + interp_code_bytes(&p->code);
    program_forget(s);
    s->cached = malloc(bytes);
    if (s->cached) memcpy(s->cached, p, bytes);
}

/* ---- contiguous operands ---- */

/* Runs `count` rows of one axis, from the row of b on. Only the columns of b. */
static void run_rows(const work *w, const block *b, int64_t count, T *value[VALUES])
{
    const step *s = w->s;
    int64_t row_step[ROW];
    for (int k = 0; k < s->ins; k++) {
        const layout *l = &s->in[k].at;
        value[INPUTS + k] = (T *)address(w->f, &s->in[k]) + offset_of(b, l);
        row_step[INPUTS + k] = l->rank > 1 ? l->stride[l->rank - 2] : 0;
    }
    for (int k = 0; k < s->outs; k++) {
        const layout *l = &s->out[k].at;
        value[OUTPUTS + k] = (T *)address(w->f, &s->out[k]) + offset_of(b, l);
        row_step[OUTPUTS + k] = l->rank > 1 ? l->stride[l->rank - 2] : 0;
    }
    interp_run(&w->p->code, value, count, b->width, row_step);
}

static void run_contiguous(const work *w, int64_t row, int64_t rows, int64_t column, int64_t columns,
                           T *value[VALUES])
{
    const layout *l = &w->s->out[0].at;
    block b = { .column = column, .width = columns };
    for (int64_t count; rows > 0; row += count, rows -= count) {
        b.start = row_iterator_at(l, row);
        count = l->rank > 1 ? SMALLER(rows, l->size[l->rank - 2] - b.start.index[l->rank - 2]) : 1;
        run_rows(w, &b, count, value);
    }
}

/* Runs part t of the work: some rows, or some columns if there are few rows. */
static void run_contiguous_part(const work *w, int t, int parts, T *value[VALUES])
{
    const int64_t rows = w->p->blocking.rows, columns = w->p->blocking.columns, align = 512 / sizeof(T);
    if (rows >= 4 * parts) {
        const int64_t from = part_of(rows, t, parts);
        run_contiguous(w, from, part_of(rows, t + 1, parts) - from, 0, columns, value);
    } else {
        const int64_t from = part_of(columns / align, t, parts) * align;
        const int64_t to = t + 1 == parts ? columns : part_of(columns / align, t + 1, parts) * align;
        if (to > from) run_contiguous(w, 0, rows, from, to - from, value);
    }
}

/* ---- by blocks ---- */

/* Sets the addresses of all values, and copies inputs into their buffers. COPIED_ONCE inputs are copied
 * for the first block of a thread, which has the most rows. */
static void load_block(const work *w, const block *b, T *value[VALUES], bool first)
{
    const step *s = w->s;
    for (int k = 0; k < s->ins; k++) {
        const layout *l = &s->in[k].at;
        const int access = w->p->in[k];
        T *from = address(w->f, &s->in[k]), **v = &value[INPUTS + k];
        if (w->p->converts_in >> k & 1) {
            const block one = { .height = 1, .column = b->column, .width = 1, .start = b->start };
            if (access != COPIED_ONCE || first) convert_in(*v, from, l, access == SCALAR ? &one : b);
        } else if (access == IN_PLACE || access == SCALAR) *v = from + offset_of(b, l);
        else if (access == COPIED || first) copy_in(*v, from, l, b);
    }
    for (int k = 0; k < s->outs; k++)
        if (w->p->out[k] == IN_PLACE)
            value[OUTPUTS + k] = (T *)address(w->f, &s->out[k]) + offset_of(b, &s->out[k].at);
}

/* Copies the outputs from their buffers. */
static void store_block(const work *w, const block *b, T *value[VALUES])
{
    const step *s = w->s;
    for (int k = 0; k < s->outs; k++)
        if (w->p->converts_out >> k & 1)
            convert_out(address(w->f, &s->out[k]), &s->out[k].at, value[OUTPUTS + k], b);
        else if (w->p->out[k] != IN_PLACE)
            rows_out(address(w->f, &s->out[k]), &s->out[k].at, value[OUTPUTS + k], b);
}

/* Assigns buffers to all values that need one. */
static void set_buffers(const work *w, T *value[VALUES], T *buffer)
{
    for (int k = 0; k < w->s->ins; k++)
        if (w->p->in[k] > SCALAR || w->p->converts_in >> k & 1) {
            value[INPUTS + k] = buffer;
            buffer += BLOCK;
        }
    for (int k = 0; k < w->s->outs; k++)
        if (w->p->out[k] != IN_PLACE) {
            value[OUTPUTS + k] = buffer;
            buffer += BLOCK;
        }
}

__attribute__((noinline)) static void run_blocks(const work *w, int64_t from, int64_t to, T *value[VALUES])
{
    T buffer[(PROGRAM_INPUTS + PROGRAM_OUTPUTS) * 4096 / sizeof(T)] __attribute__((aligned(64)));
    set_buffers(w, value, buffer);
    for (int64_t i = from; i < to; i++) {
        const block b = block_at(w->p, &w->s->out[0].at, i);
        load_block(w, &b, value, i == from);
        interp_run(&w->p->code, value, 1, b.height * b.width, NULL);
        store_block(w, &b, value);
    }
}

/* ---- threads ---- */

static void run_part(const work *w, int t, int parts)
{
    const int64_t blocks = w->p->blocking.down * w->p->blocking.across;
    T *value[VALUES];
    for (int k = 0; k < w->p->code.numbers; k++) value[NUMBERS + k] = (T *)&w->num[k];
    if (w->p->contiguous) run_contiguous_part(w, t, parts, value);
    else run_blocks(w, part_of(blocks, t, parts), part_of(blocks, t + 1, parts), value);
}

__attribute__((noinline)) static void run_shared(const work *w, int threads)
{
#pragma omp parallel num_threads(threads)
    {
        IN_DEFAULT_FP_ENVIRONMENT;
        run_part(w, omp_get_thread_num(), omp_get_num_threads());
    }
}

static void bind_numbers(const program_plan *p, const step *s, const frame *f, T num[PROGRAM_NUMBERS])
{
    FOR_FEW (k, p->code.numbers) num[k] = k < s->nums ? number_of(f->num[s->num[k]]) : 0;
}

/* One row, one thread: the fastest path. */
static void run_single_row(const program_plan *p, const step *s, const frame *f)
{
    T *value[VALUES], num[PROGRAM_NUMBERS];
    bind_numbers(p, s, f, num);
    FOR_FEW (k, s->ins) value[INPUTS + k] = address(f, &s->in[k]);
    FOR_FEW (k, p->code.numbers) value[NUMBERS + k] = &num[k];
    FOR_FEW (k, s->outs) value[OUTPUTS + k] = address(f, &s->out[k]);
    interp_run(&p->code, value, 1, p->count, NULL);
}

static void run_work(const program_plan *p, const step *s, const frame *f, int threads)
{
    work w = { .p = p, .s = s, .f = f };
    bind_numbers(p, s, f, w.num);
    if (threads > 1) run_shared(&w, threads);
    else run_part(&w, 0, 1);
}

/* How many low bits of a stored integer the outputs keep. Other types depend on all bits. */
static int stored_bits(const step *s)
{
    int bits = dtype_is_integer(OWN_TYPE) ? 8 : 64;
    for (int k = 0; k < s->outs; k++) {
        const int kept = dtype_kept_bits(s->out[k].at.type);
        bits = kept > bits ? kept : bits;
    }
    return bits;
}

static void run_plan(program_plan *p, const step *s, const frame *f)
{
    const int threads = threads_for(p->seconds);
    if (p->count == 0) return;
    if (!p->code.generated)
        interp_generate(&p->code, s->program, &p->cache.generated, p->seconds, stored_bits(s));
    if (p->single_row && threads <= 1) run_single_row(p, s, f);
    else run_work(p, s, f, threads);
}

__attribute__((noinline)) static void run_first(const step *s, const frame *f, run_function *owner)
{
    program_plan p;
    make_plan(&p, s, f, owner);
    store_plan(&p, (step *)s);
    p.cache.generated.refused = true; /* nothing frees it */
    run_plan(s->cached ? s->cached : &p, s, f);
}

duet_status NAME(run_program)(const step *s, const frame *f)
{
    program_plan *p = s->cached;
    if (p && p->cache.owner == NAME(run_program)) run_plan(p, s, f);
    else run_first(s, f, NAME(run_program));
    return DUET_OK;
}
