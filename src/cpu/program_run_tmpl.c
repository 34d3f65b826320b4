/* program_run_tmpl.c - the engine of a pass: where things are, blocks, buffers, threads. */
#include "converters.h"
#include "dtype.h"
#include "program_run.h"
#include "row_iterator.h"
#include <stdlib.h>

typedef struct block {
    int64_t row, height, column, width;
    walk walk; /* of the first row: its `at` holds for all operands */
} block;

typedef struct work {
    const pass *p;
    const step *s;
    const frame *f;
    T num[PROGRAM_NUMBERS];
} work;

/* ---- where things are ---- */

static int64_t offset_of(const block *b, const layout *l)
{
    int64_t offset = b->column * row_stride(l);
    for (int a = 0; a < l->rank - 1; a++) offset += b->walk.at[a] * l->stride[a];
    return offset;
}

/* Copies between a block in L1, dense, and the rows of an operand. */
static void rows_in(T *to, const T *from, const layout *l, const block *b)
{
    walk w = b->walk;
    w.offset = offset_of(b, l);
    for (int64_t r = 0; r < b->height; r++, to += b->width, walk_on(&w, l))
        row_in(to, from + w.offset, row_stride(l), b->width);
}

static void rows_out(T *to, const layout *l, const T *from, const block *b)
{
    walk w = b->walk;
    w.offset = offset_of(b, l);
    for (int64_t r = 0; r < b->height; r++, from += b->width, walk_on(&w, l))
        row_out(to + w.offset, from, row_stride(l), b->width);
}

/* Is going down a column of l going through memory, and its rows not? Then a block should be a tile. */
static bool stands(const layout *l)
{
    return l->rank > 1 && l->stride[l->rank - 2] == 1 && row_stride(l) != 1 && row_stride(l) != 0;
}

/* The same for a tile of an operand that stands, whose rows are all of one axis. */
static void tile_in(T *to, const T *from, const layout *l, const block *b)
{
    const T *first = from + offset_of(b, l);
    for (int64_t c = 0; c < b->width; c++)
        for (int64_t r = 0; r < b->height; r++) to[r * b->width + c] = first[c * row_stride(l) + r];
}

static bool in_one_axis(const layout *l, const block *b)
{
    return b->walk.at[l->rank - 2] + b->height <= l->size[l->rank - 2];
}

static void copy_in(T *to, const T *from, const layout *l, const block *b)
{
    if (b->height > 1 && stands(l) && in_one_axis(l, b)) tile_in(to, from, l, b);
    else rows_in(to, from, l, b);
}

/* ---- other types ---- */

static void convert_in(T *to, const void *from, const layout *l, const block *b)
{
    const int64_t bytes = (int64_t)dtypes[l->type].bytes;
    walk w = b->walk;
    w.offset = offset_of(b, l);
    for (int64_t r = 0; r < b->height; r++, to += b->width, walk_on(&w, l))
        converters[l->type].in(to, (const char *)from + w.offset * bytes, row_stride(l), b->width);
}

static void convert_out(void *to, const layout *l, const T *from, const block *b)
{
    const int64_t bytes = (int64_t)dtypes[l->type].bytes;
    walk w = b->walk;
    w.offset = offset_of(b, l);
    for (int64_t r = 0; r < b->height; r++, from += b->width, walk_on(&w, l))
        converters[l->type].out((char *)to + w.offset * bytes, from, row_stride(l), b->width);
}

static void find_conversions(pass *p, const step *s)
{
    p->converts_in = p->converts_out = 0;
    for (int k = 0; k < s->ins; k++) p->converts_in |= (uint32_t)(s->in[k].at.type != OWN_TYPE) << k;
    for (int k = 0; k < s->outs; k++) p->converts_out |= (uint32_t)(s->out[k].at.type != OWN_TYPE) << k;
}

/* ---- the cut ---- */

/* Equal parts of at most `most` of n elements, in whole tiles. */
static int64_t equal_part(int64_t n, int64_t most)
{
    const int64_t parts = (n + most - 1) / most, part = (n + parts - 1) / parts, whole = 512 / sizeof(T);
    return SMALLER((part + whole - 1) / whole * whole, most);
}

static void count_blocks(cut *c)
{
    c->down = (c->rows + c->height - 1) / c->height, c->across = (c->columns + c->width - 1) / c->width;
}

static bool any_stands(const step *s)
{
    for (int k = 0; k < s->outs; k++)
        if (stands(&s->out[k].at)) return true;
    for (int k = 0; k < s->ins; k++)
        if (stands(&s->in[k].at)) return true;
    return false;
}

#define TILE_HEIGHT                                                                                          \
    64 /* of a line of memory each: larger tiles are faster, as long as there is room for their buffers */
#define TILE_WIDTH ((int64_t)(64 / sizeof(T)))
_Static_assert(64 * 64 <= 4096, "a tile has room in the buffer of a block");

static cut cut_of(const step *s)
{
    const layout *l = &s->out[0].at;
    cut c = { .columns = row_length(l), .height = 1 };
    c.rows = layout_count(l) / c.columns;
    c.tiles = c.rows >= 16 && c.columns >= 16 && any_stands(s);
    if (c.tiles) c.height = TILE_HEIGHT, c.width = TILE_WIDTH;
    else if (c.columns > BLOCK / 2 || c.rows == 1) c.width = equal_part(c.columns, BLOCK);
    else c.height = SMALLER(BLOCK / c.columns, c.rows), c.width = c.columns;
    count_blocks(&c);
    return c;
}

static block block_at(const pass *p, const layout *l, int64_t index)
{
    const cut *c = &p->cut;
    const int64_t down = c->tiles ? index % c->down : index / c->across,
                  across = c->tiles ? index / c->down : index % c->across;
    block b = { .row = down * c->height, .column = across * c->width };
    b.height = SMALLER(c->height, c->rows - b.row), b.width = SMALLER(c->width, c->columns - b.column);
    b.walk = walk_to(l, b.row);
    return b;
}

/* ---- manners ---- */

/* Do all rows of l lie at one place? */
static bool rows_repeat(const layout *l)
{
    for (int a = 0; a < l->rank - 1; a++)
        if (l->stride[a] != 0) return false;
    return true;
}

static bool in_place(const layout *l, const cut *c)
{
    if (c->height > 1) return c->across == 1 && layout_is_dense(l);
    return row_stride(l) == 1 || row_length(l) == 1;
}

static enum manner manner_of(const layout *l, const cut *c, bool converts)
{
    if (!converts && in_place(l, c)) return IN_PLACE;
    if (row_stride(l) == 0 && (c->height == 1 || rows_repeat(l))) return SINGLE;
    return rows_repeat(l) && c->across == 1 ? STILL : COPIED;
}

static bool runs_along(const layout *l, bool single)
{
    return row_stride(l) == 1 || row_length(l) == 1 || (single && row_stride(l) == 0);
}

/* Rows that are short are better copied together, unless there is one only. */
static bool is_straight(const pass *p, const step *s)
{
    const layout *l = &s->out[0].at;
    bool straight =
        (l->rank == 1 || row_length(l) >= (int64_t)(256 / sizeof(T))) && !p->converts_in && !p->converts_out;
    for (int k = 0; k < s->outs; k++) straight &= runs_along(&s->out[k].at, false);
    for (int k = 0; k < s->ins; k++) straight &= runs_along(&s->in[k].at, true);
    return straight;
}

static uint32_t choose_manners(pass *p, const step *s)
{
    uint32_t singles = 0;
    for (int k = 0; k < PROGRAM_OUTPUTS && k < s->outs; k++)
        p->out[k] = p->straight || (!(p->converts_out >> k & 1) && in_place(&s->out[k].at, &p->cut))
                        ? IN_PLACE
                        : COPIED;
    for (int k = 0; k < PROGRAM_INPUTS && k < s->ins; k++) {
        const layout *l = &s->in[k].at;
        p->in[k] = !p->straight                              ? manner_of(l, &p->cut, p->converts_in >> k & 1)
                   : row_stride(l) == 0 && row_length(l) > 1 ? SINGLE
                                                             : IN_PLACE;
        singles |= (uint32_t)(p->in[k] == SINGLE) << k;
    }
    return singles;
}

/* ---- making a pass ---- */

#define STREAM_BYTES 32e6 /* from here on outputs do not stay in any cache until they are read */

static bool is_input(const step *s, const frame *f, int output)
{
    for (int k = 0; k < s->ins; k++)
        if (address(f, &s->in[k]) == address(f, &s->out[output])) return true;
    return false;
}

static uint32_t streams_of(const pass *p, const step *s, const frame *f)
{
    uint32_t streams = 0;
    for (int k = 0; k < s->outs && p->straight && (double)p->count * sizeof(T) >= STREAM_BYTES; k++)
        streams |= (uint32_t)!is_input(s, f, k) << k;
    return streams;
}

/* Of the frame only which operands are one is looked at, which is the same in every run of a step, and then a matter of speed alone. */
static void plan(pass *p, const step *s, const frame *f, run_function *owner)
{
    p->owner = owner;
    find_conversions(p, s);
    p->count = layout_count(&s->out[0].at), p->straight = is_straight(p, s);
    p->flat = p->straight && s->out[0].at.rank == 1;
    if (p->count > 0) p->cut = cut_of(s);
    const uint32_t singles = p->count > 0 ? choose_manners(p, s) : 0;
    if (s->kernel == KERNEL_PROGRAM) tile_make(&p->code, s->program, singles, streams_of(p, s, f));
    else tile_make_fused(&p->code, s->kernel, s->ins, singles);
    const double bytes = (double)sizeof(T) * (s->ins + s->outs);
    const int converted = __builtin_popcount(p->converts_in) + __builtin_popcount(p->converts_out);
    p->seconds =
        (double)p->count * (p->code.seconds + bytes * SECONDS_PER_BYTE + converted * SECONDS_PER_ROUNDED);
}

/* Steps are the plan's, which lets their machine keep things. Without memory the next run plans again. */
static void keep(const pass *p, step *s)
{
    const size_t bytes = offsetof(pass, code) + code_bytes(&p->code);
    free(s->kept);
    s->kept = malloc(bytes);
    if (s->kept) memcpy(s->kept, p, bytes);
}

/* ---- straight ---- */

/* `some` rows of one axis from the row at which b stands, its columns. */
static void run_rows(const work *w, const block *b, int64_t some, T *value[VALUES])
{
    const step *s = w->s;
    int64_t down[ROW];
    for (int k = 0; k < s->ins; k++) {
        const layout *l = &s->in[k].at;
        value[INPUTS + k] = (T *)address(w->f, &s->in[k]) + offset_of(b, l);
        down[INPUTS + k] = l->rank > 1 ? l->stride[l->rank - 2] : 0;
    }
    for (int k = 0; k < s->outs; k++) {
        const layout *l = &s->out[k].at;
        value[OUTPUTS + k] = (T *)address(w->f, &s->out[k]) + offset_of(b, l);
        down[OUTPUTS + k] = l->rank > 1 ? l->stride[l->rank - 2] : 0;
    }
    tile_run(&w->p->code, value, some, b->width, down);
}

static void run_straight(const work *w, int64_t row, int64_t rows, int64_t column, int64_t columns,
                         T *value[VALUES])
{
    const layout *l = &w->s->out[0].at;
    block b = { .column = column, .width = columns };
    for (int64_t some; rows > 0; row += some, rows -= some) {
        b.walk = walk_to(l, row);
        some = l->rank > 1 ? SMALLER(rows, l->size[l->rank - 2] - b.walk.at[l->rank - 2]) : 1;
        run_rows(w, &b, some, value);
    }
}

/* Part t of the work: some rows, or where there are few, some columns. */
static void run_straight_part(const work *w, int t, int parts, T *value[VALUES])
{
    const int64_t rows = w->p->cut.rows, columns = w->p->cut.columns, whole = 512 / sizeof(T);
    if (rows >= 4 * parts) {
        const int64_t from = part_of(rows, t, parts);
        run_straight(w, from, part_of(rows, t + 1, parts) - from, 0, columns, value);
    } else {
        const int64_t from = part_of(columns / whole, t, parts) * whole;
        const int64_t to = t + 1 == parts ? columns : part_of(columns / whole, t + 1, parts) * whole;
        if (to > from) run_straight(w, 0, rows, from, to - from, value);
    }
}

/* ---- by blocks ---- */

static void prepare(const work *w, const block *b, T *value[VALUES], bool first)
{
    const step *s = w->s;
    for (int k = 0; k < s->ins; k++) {
        const layout *l = &s->in[k].at;
        const int manner = w->p->in[k];
        T *from = address(w->f, &s->in[k]), **v = &value[INPUTS + k];
        if (w->p->converts_in >> k & 1) {
            const block one = { .height = 1, .column = b->column, .width = 1, .walk = b->walk };
            if (manner != STILL || first) convert_in(*v, from, l, manner == SINGLE ? &one : b);
        } else if (manner == IN_PLACE || manner == SINGLE) *v = from + offset_of(b, l);
        else if (manner == COPIED || first)
            copy_in(*v, from, l, b); /* the first block of a thread has the most rows */
    }
    for (int k = 0; k < s->outs; k++)
        if (w->p->out[k] == IN_PLACE)
            value[OUTPUTS + k] = (T *)address(w->f, &s->out[k]) + offset_of(b, &s->out[k].at);
}

static void epilogue(const work *w, const block *b, T *value[VALUES])
{
    const step *s = w->s;
    for (int k = 0; k < s->outs; k++)
        if (w->p->converts_out >> k & 1)
            convert_out(address(w->f, &s->out[k]), &s->out[k].at, value[OUTPUTS + k], b);
        else if (w->p->out[k] != IN_PLACE)
            rows_out(address(w->f, &s->out[k]), &s->out[k].at, value[OUTPUTS + k], b);
}

/* Addresses of all values that need a buffer, one after the other. */
static void place_buffers(const work *w, T *value[VALUES], T *room)
{
    for (int k = 0; k < w->s->ins; k++)
        if (w->p->in[k] > SINGLE || w->p->converts_in >> k & 1) value[INPUTS + k] = room, room += BLOCK;
    for (int k = 0; k < w->s->outs; k++)
        if (w->p->out[k] != IN_PLACE) value[OUTPUTS + k] = room, room += BLOCK;
}

__attribute__((noinline)) static void run_blocks(const work *w, int64_t from, int64_t to, T *value[VALUES])
{
    T room[(PROGRAM_INPUTS + PROGRAM_OUTPUTS) * 4096 / sizeof(T)] __attribute__((aligned(64)));
    place_buffers(w, value, room);
    for (int64_t i = from; i < to; i++) {
        const block b = block_at(w->p, &w->s->out[0].at, i);
        prepare(w, &b, value, i == from);
        tile_run(&w->p->code, value, 1, b.height * b.width, NULL);
        epilogue(w, &b, value);
    }
}

/* ---- threads ---- */

static void run_part(const work *w, int t, int parts)
{
    const int64_t blocks = w->p->cut.down * w->p->cut.across;
    T *value[VALUES];
    for (int k = 0; k < w->p->code.numbers; k++) value[NUMBERS + k] = (T *)&w->num[k];
    if (w->p->straight) run_straight_part(w, t, parts, value);
    else run_blocks(w, part_of(blocks, t, parts), part_of(blocks, t + 1, parts), value);
}

__attribute__((noinline)) static void run_shared(const work *w, int threads)
{
#pragma omp parallel num_threads(threads)
    run_part(w, omp_get_thread_num(), omp_get_num_threads());
}

static void bind_numbers(const pass *p, const step *s, const frame *f, T num[PROGRAM_NUMBERS])
{
    FOR_FEW (k, p->code.numbers) num[k] = k < s->nums ? number_of(f->num[s->num[k]]) : 0;
}

/* One row, one thread: the shortest way. */
static void run_flat(const pass *p, const step *s, const frame *f)
{
    T *value[VALUES], num[PROGRAM_NUMBERS];
    bind_numbers(p, s, f, num);
    FOR_FEW (k, s->ins) value[INPUTS + k] = address(f, &s->in[k]);
    FOR_FEW (k, p->code.numbers) value[NUMBERS + k] = &num[k];
    FOR_FEW (k, s->outs) value[OUTPUTS + k] = address(f, &s->out[k]);
    tile_run(&p->code, value, 1, p->count, NULL);
}

static void run_work(const pass *p, const step *s, const frame *f, int threads)
{
    work w = { .p = p, .s = s, .f = f };
    bind_numbers(p, s, f, w.num);
    if (threads > 1) run_shared(&w, threads);
    else run_part(&w, 0, 1);
}

static void run_pass(const pass *p, const step *s, const frame *f)
{
    const int threads = threads_for(p->seconds);
    if (p->count == 0) return;
    if (p->flat && threads <= 1) run_flat(p, s, f);
    else run_work(p, s, f, threads);
}

__attribute__((noinline)) static void run_first(const step *s, const frame *f, run_function *owner)
{
    pass p;
    plan(&p, s, f, owner);
    keep(&p, (step *)s);
    run_pass(&p, s, f);
}

duet_status NAME(run_program)(const step *s, const frame *f)
{
    const pass *p = s->kept;
    if (p && p->owner == NAME(run_program)) run_pass(p, s, f);
    else run_first(s, f, NAME(run_program));
    return DUET_OK;
}
