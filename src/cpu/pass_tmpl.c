/* pass_tmpl.c - the engine of a pass: blocks, buffers, threads. */
#include "pass.h"
#include "walk.h"

/* How the elements are cut into blocks: `height` rows of `width` columns. All but those at the ends are full. */
typedef struct cut {
    int64_t rows, columns, height, width, down, across; /* down * across blocks */
    bool tiles;                                         /* blocks follow each other downwards */
} cut;

typedef struct block {
    int64_t row, height, column, width;
    walk walk; /* of the first row: its `at` holds for all operands */
} block;

enum manner { IN_PLACE, SINGLE, STILL, COPIED }; /* SINGLE: one element; STILL: the same ones in every block, copied once */

typedef struct work {
    const pass *p;
    cut cut;
    const layout *shape;
    uint8_t in[PROGRAM_INPUTS], out[PROGRAM_OUTPUTS];
    bool buffered;
} work;

void pass_open(pass *p, const step *s, const frame *f)
{
    p->s = s, p->f = f;
    p->loops = p->buffers = 0;
    p->early = 0, p->seconds = 0;
    p->num[0] = p->num[1] = 0;
    for (int k = 0; k < s->nums; k++) p->num[k] = (T)f->num[s->num[k]];
}

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
    for (int64_t r = 0; r < b->height; r++, to += b->width, walk_on(&w, l)) row_in(to, from + w.offset, row_stride(l), b->width);
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

static bool in_one_axis(const layout *l, const block *b) { return b->walk.at[l->rank - 2] + b->height <= l->size[l->rank - 2]; }

static void copy_in(T *to, const T *from, const layout *l, const block *b)
{
    if (b->height > 1 && stands(l) && in_one_axis(l, b)) tile_in(to, from, l, b);
    else rows_in(to, from, l, b);
}

/* ---- the cut ---- */

static bool any_stands(const step *s)
{
    for (int k = 0; k < s->outs; k++)
        if (stands(&s->out[k].at)) return true;
    for (int k = 0; k < s->ins; k++)
        if (stands(&s->in[k].at)) return true;
    return false;
}

/* Equal parts of at most `most` of n elements, in whole vectors. */
static int64_t equal_part(int64_t n, int64_t most)
{
    int64_t parts = (n + most - 1) / most, part = (n + parts - 1) / parts;
    return SMALLER((part + 15) / 16 * 16, most);
}

#define TILE_HEIGHT 64 /* of a line of memory each: larger tiles are faster, as long as there is room for their buffers */
#define TILE_WIDTH  ((int64_t)(64 / sizeof(T)))
#define ROOM        (VALUES * BLOCK)

static bool wants_tiles(const pass *p, const cut *c)
{
    const int buffers = p->s->ins + p->s->outs + p->buffers;
    return c->rows >= 16 && c->columns >= 16 && buffers * TILE_HEIGHT * TILE_WIDTH <= ROOM && any_stands(p->s);
}

static cut cut_of(const pass *p, int64_t most)
{
    const layout *l = &p->s->out[0].at;
    cut c = { .columns = row_length(l), .height = 1 };
    c.rows = layout_count(l) / c.columns;
    c.tiles = wants_tiles(p, &c);
    if (c.tiles) c.height = TILE_HEIGHT, c.width = TILE_WIDTH;
    else if (c.columns > BLOCK / 2 || c.rows == 1) c.width = equal_part(c.columns, most);
    else c.height = SMALLER(BLOCK / c.columns, c.rows), c.width = c.columns;
    c.down = (c.rows + c.height - 1) / c.height, c.across = (c.columns + c.width - 1) / c.width;
    return c;
}

static block block_at(const work *w, int64_t index)
{
    const cut *c = &w->cut;
    const int64_t down = c->tiles ? index % c->down : index / c->across, across = c->tiles ? index / c->down : index % c->across;
    block b = { .row = down * c->height, .column = across * c->width };
    b.height = SMALLER(c->height, c->rows - b.row), b.width = SMALLER(c->width, c->columns - b.column);
    b.walk = walk_to(w->shape, b.row);
    return b;
}

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

static enum manner manner_of(const layout *l, const cut *c, bool early)
{
    if (early) return COPIED;
    if (in_place(l, c)) return IN_PLACE;
    if (!rows_repeat(l)) return COPIED;
    return row_stride(l) == 0 ? SINGLE : c->across == 1 ? STILL : COPIED;
}

/* Without buffers, and with one loop, there is nothing to keep in L1: blocks are then longer. */
static bool needs_buffers(const work *w)
{
    const step *s = w->p->s;
    for (int k = 0; k < s->outs; k++)
        if (w->out[k] != IN_PLACE) return true;
    for (int k = 0; k < s->ins; k++)
        if (w->in[k] > SINGLE) return true;
    return w->p->loops > 1;
}

static void choose_manners(work *w)
{
    const step *s = w->p->s;
    for (int k = 0; k < s->ins; k++) w->in[k] = manner_of(&s->in[k].at, &w->cut, w->p->early >> k & 1);
    for (int k = 0; k < s->outs; k++) w->out[k] = in_place(&s->out[k].at, &w->cut) ? IN_PLACE : COPIED;
}

static bool is_single(const work *w, int value) { return value < NUMBERS ? w->in[value] == SINGLE : value < BUFFERS; }

static void choose_loops(const work *w, pass *p)
{
    for (loop *l = p->loop; l < p->loop + p->loops; l++) {
        int singles = 0;
        for (int k = 0; k < 3; k++) singles |= is_single(w, l->from[k]) << k;
        l->run = l->choice[singles];
    }
}

static work work_of(pass *p)
{
    const layout *l = &p->s->out[0].at;
    work w = { .p = p, .cut = cut_of(p, BLOCK), .shape = l };
    choose_manners(&w);
    w.buffered = needs_buffers(&w);
    if (!w.buffered && w.cut.height == 1) w.cut = cut_of(p, 32 * BLOCK);
    choose_loops(&w, p);
    return w;
}

/* ---- one thread's work ---- */

static void prepare(const work *w, const block *b, T *value[VALUES], bool first)
{
    const step *s = w->p->s;
    for (int k = 0; k < s->ins; k++) {
        const layout *l = &s->in[k].at;
        T *from = address(w->p->f, &s->in[k]), **v = &value[INPUTS + k];
        if (w->in[k] == IN_PLACE) *v = from + offset_of(b, l);
        else if (w->in[k] == SINGLE) *v = from;
        else if (w->in[k] == COPIED || first) copy_in(*v, from, l, b); /* the first block of a thread has the most rows */
    }
    for (int k = 0; k < s->outs; k++)
        if (w->out[k] == IN_PLACE) value[OUTPUTS + k] = (T *)address(w->p->f, &s->out[k]) + offset_of(b, &s->out[k].at);
}

static void finish(const work *w, const block *b, T *value[VALUES])
{
    const step *s = w->p->s;
    for (int k = 0; k < s->outs; k++)
        if (w->out[k] != IN_PLACE) rows_out(address(w->p->f, &s->out[k]), &s->out[k].at, value[OUTPUTS + k], b);
}

static void run_blocks(const work *w, int64_t from, int64_t to, T *value[VALUES])
{
    const pass *p = w->p;
    for (int64_t i = from; i < to; i++) {
        const block b = block_at(w, i);
        prepare(w, &b, value, i == from);
        for (const loop *l = p->loop; l < p->loop + p->loops; l++)
            l->run(value[l->to], value[l->from[0]], value[l->from[1]], value[l->from[2]], p->num, b.height * b.width);
        finish(w, &b, value);
    }
}

static void place_numbers(const work *w, T *value[VALUES])
{
    for (int k = 0; k < PROGRAM_NUMBERS; k++) value[NUMBERS + k] = (T *)&w->p->num[k];
}

/* Addresses of all values that need a buffer, one after the other. */
static void place_buffers(const work *w, T *value[VALUES], T *room)
{
    const pass *p = w->p;
    const int64_t each = w->cut.tiles ? TILE_HEIGHT * TILE_WIDTH : BLOCK;
    for (int k = 0; k < p->s->ins; k++)
        if (w->in[k] > SINGLE) value[INPUTS + k] = room, room += each;
    for (int k = 0; k < p->s->outs; k++)
        if (w->out[k] != IN_PLACE) value[OUTPUTS + k] = room, room += each;
    for (int k = 0; k < p->buffers; k++) value[BUFFERS + k] = room, room += each;
}

__attribute__((noinline)) static void run_buffered(const work *w, int64_t from, int64_t to)
{
    T room[VALUES * 2048 / sizeof(T)] __attribute__((aligned(64)));
    T *value[VALUES];
    place_numbers(w, value);
    place_buffers(w, value, room);
    run_blocks(w, from, to, value);
}

static void run_part(const work *w, int64_t from, int64_t to)
{
    T *value[VALUES];
    place_numbers(w, value);
    if (w->buffered) run_buffered(w, from, to);
    else run_blocks(w, from, to, value);
}

/* One loop over operands that are one run each. */
static bool is_plain(const pass *p)
{
    const step *s = p->s;
    bool plain = p->loops == 1 && s->out[0].at.rank == 1 && s->out[0].at.stride[0] == 1;
    for (int k = 0; k < s->ins; k++) plain &= s->in[k].at.stride[0] == 1;
    for (int k = 0; k < 3; k++) plain &= p->loop[0].from[k] < NUMBERS;
    return plain;
}

static void run_plain(const pass *p)
{
    const step *s = p->s;
    const T *in[3];
    for (int k = 0; k < 3; k++) in[k] = address(p->f, &s->in[p->loop[0].from[k]]);
    p->loop[0].choice[0](address(p->f, &s->out[0]), in[0], in[1], in[2], p->num, s->out[0].at.size[0]);
}

static void run_shared(const work *w, int threads)
{
    const int64_t blocks = w->cut.down * w->cut.across;
    if (threads > blocks) threads = (int)blocks;
    if (threads <= 1) {
        run_part(w, 0, blocks);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        int t = omp_get_thread_num(), team = omp_get_num_threads();
        run_part(w, part_of(blocks, t, team), part_of(blocks, t + 1, team));
    }
}

void pass_run(pass *p)
{
    const int64_t count = layout_count(&p->s->out[0].at);
    if (count == 0 || p->loops == 0) return;
    const double bytes = (double)sizeof(T) * (p->s->ins + p->s->outs);
    const int threads = threads_for((double)count * (p->seconds + bytes * SECONDS_PER_BYTE));
    if (threads <= 1 && is_plain(p)) {
        run_plain(p);
        return;
    }
    const work w = work_of(p);
    run_shared(&w, threads);
}
